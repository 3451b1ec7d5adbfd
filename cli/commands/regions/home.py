"""`tallystick home | where-next | region grow ...`: how machines at home find their region.

Thin clients of the API.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from cli.arguments import NodeId, RegionId
from cli.remote import Remote, ppm_of, reads, records
from cli.terminal import columns, facts, group

home = group(
    "home",
    "Machines at home: check in, wait for a region, administer one.",
    "tallystick home check-in",
)
Phase = Literal["waitlisted", "opening", "open", "draining", "closed"]
Account = Annotated[str, typer.Argument(metavar="ACCOUNT", help="acct_...")]
ListId = Annotated[str, typer.Argument(metavar="LIST", help="A region, or place_DE-BE.")]


@home.command("check-in", epilog="Example: tallystick home check-in --state DE-BE")
@records
def check_in(
    remote: Remote,
    country: Annotated[str | None, typer.Option(help="ISO 3166-1, like DE.")] = None,
    state: Annotated[str | None, typer.Option(help="ISO 3166-2, like DE-BE.")] = None,
    city: Annotated[str | None, typer.Option(help="As it is written there.")] = None,
) -> None:
    """Ask from a new machine which region it belongs to; without one, join its wait list."""
    asked = {"country": country, "state": state, "city": city}
    body: Any = {name: value for name, value in asked.items() if value is not None}
    told: Any = remote.ask(lambda c: c.create_check_in(body, idempotency_key=remote.key))
    shown = {name: value for name, value in told.items() if name != "region"}
    lines = facts({**shown, **(told.get("region") or {})})
    if told.get("code"):
        lines.append(f"On the machine: tallystick-node join {remote.url} {told['code']}")
    remote.tell(told, lines)


@home.command("lists", epilog="Example: tallystick home lists")
@reads
def wait_lists(remote: Remote) -> None:
    """List the wait lists that your account is on; all of them for operators and auditors."""
    told = remote.ask(lambda c: c.list_wait_lists())
    names = ("list_id", "waiting", "threshold", "number", "reached_at")
    remote.tell(told, columns(told["data"], names))


@home.command("leave", epilog="Example: tallystick home leave place_DE-BE")
@records
def leave(remote: Remote, list_id: ListId) -> None:
    """Take your account off a wait list."""
    told = remote.ask(lambda c: c.withdraw_from_wait_list(list_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@home.command("list-terms", epilog="Example: tallystick home list-terms region_1f0c... 5")
@records
def list_terms(
    remote: Remote,
    list_id: ListId,
    threshold: Annotated[int, typer.Argument(help="So many start the region.")],
    first_user: Annotated[
        bool, typer.Option("--first-user", help="The first one starts it, and administers it.")
    ] = False,
) -> None:
    """Set what starts a region that people wait for."""
    body: Any = {"threshold": threshold, "first_user_administers": first_user}
    told = remote.ask(lambda c: c.set_wait_list_terms(list_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@home.command("grow", epilog="Example: tallystick home grow region_1f0c... --workers-min 3")
@records
def grow(
    remote: Remote,
    region_id: RegionId,
    workers_min: Annotated[int, typer.Option(help="The region opens with so many.")] = 0,
    workers_max: Annotated[int | None, typer.Option(help="No more join; default: no cap.")] = None,
    homogeneous: Annotated[
        bool, typer.Option("--homogeneous", help="All GPUs are of one model.")
    ] = False,
    cpu_and_gpu: Annotated[
        bool, typer.Option("--mix/--no-mix", help="Nodes without GPUs beside nodes with them.")
    ] = True,
    owner: Annotated[
        str, typer.Option(metavar="PART", help="Of 1, to the owner of a machine that checked in.")
    ] = "1",
    waitlisted: Annotated[
        bool, typer.Option("--waitlisted", help="People wait, and no node joins.")
    ] = False,
) -> None:
    """Set how a region grows: its smallest and largest number of workers, and which go together."""
    body: Any = {
        "workers_min": workers_min,
        "workers_max": workers_max,
        "homogeneous": homogeneous,
        "cpu_and_gpu": cpu_and_gpu,
        "owner_share_ppm": ppm_of(owner),
        "waitlisted": waitlisted,
    }
    told = remote.ask(lambda c: c.set_region_growth(region_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@home.command("growth", epilog="Example: tallystick home growth region_1f0c...")
@reads
def growth(remote: Remote, region_id: RegionId) -> None:
    """Show how a region grows, its phase, and how many nodes of each role it has."""
    told = remote.ask(lambda c: c.read_region_growth(region_id))
    remote.tell(told, facts(told))


@home.command("phase", epilog="Example: tallystick home phase region_1f0c... draining")
@records
def phase(
    remote: Remote, region_id: RegionId, phase: Annotated[Phase, typer.Argument(help="The next.")]
) -> None:
    """Move a region to another phase."""
    told = remote.ask(
        lambda c: c.set_region_phase(region_id, {"phase": phase}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@home.command(
    "place", epilog="Example: tallystick home place region_1f0c... --state DE-BE --at 52.52,13.405"
)
@records
def place(
    remote: Remote,
    region_id: RegionId,
    network: Annotated[list[str] | None, typer.Option(help="Like 203.0.113.0/24.")] = None,
    city: Annotated[list[str] | None, typer.Option(help="Like DE-BE/Berlin.")] = None,
    state: Annotated[list[str] | None, typer.Option(help="Like DE-BE.")] = None,
    country: Annotated[list[str] | None, typer.Option(help="Like DE.")] = None,
    at: Annotated[
        str | None, typer.Option(metavar="LAT,LON", help="The dot on the map, in degrees.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Of the region's control.")
    ] = None,
) -> None:
    """Set where a region is: machines within its boundaries are sent to it."""
    named = {"network": network, "city": city, "state": state, "country": country}
    body: Any = {
        "boundaries": [
            {"kind": kind, "value": value}
            for kind, values in named.items()
            for value in values or ()
        ],
        "address": address,
    }
    if at is not None:
        body["latitude_e6"], body["longitude_e6"] = _dot(at)
    told: Any = remote.ask(
        lambda c: c.set_region_place(region_id, body, idempotency_key=remote.key)
    )
    lines = columns(told["boundaries"], ("kind", "value"))
    remote.tell(told, lines)


@home.command("where", epilog="Example: tallystick home where region_1f0c...")
@reads
def where(remote: Remote, region_id: RegionId) -> None:
    """Show where a region is, and whose machines are sent to it."""
    told: Any = remote.ask(lambda c: c.read_region_place(region_id))
    shown = {name: value for name, value in told.items() if name != "boundaries"}
    remote.tell(told, facts(shown) + columns(told["boundaries"], ("kind", "value")))


def _dot(text: str) -> tuple[int, int]:
    north, _, east = text.partition(",")
    try:
        return _e6(north), _e6(east)
    except ValueError:
        raise typer.BadParameter("write LAT,LON, like 52.52,13.405", param_hint="--at") from None


def _e6(text: str) -> int:
    sign, digits = (-1 if text.strip().startswith("-") else 1), text.strip().lstrip("+-")
    whole, _, part = digits.partition(".")
    return sign * (int(whole) * 1_000_000 + int((part + "000000")[:6]))


@home.command("admins", epilog="Example: tallystick home admins region_1f0c...")
@reads
def admins(remote: Remote, region_id: RegionId) -> None:
    """List the administrators of a region beside its provider."""
    told: Any = remote.ask(lambda c: c.list_region_admins(region_id))
    remote.tell(told, columns(told["data"], ("account_id", "cause", "granted_at")))


@home.command("grant", epilog="Example: tallystick home grant region_1f0c... acct_2a...")
@records
def grant(remote: Remote, region_id: RegionId, account_id: Account) -> None:
    """Let another account see and manage the nodes of a region."""
    body: Any = {"account_id": account_id}
    told: Any = remote.ask(
        lambda c: c.grant_region_admin(region_id, body, idempotency_key=remote.key)
    )
    remote.tell(told, list(told["account_ids"]))


@home.command("revoke", epilog="Example: tallystick home revoke region_1f0c... acct_2a...")
@records
def revoke(remote: Remote, region_id: RegionId, account_id: Account) -> None:
    """Take the administration of a region from an account; you may step down yourself."""
    told: Any = remote.ask(
        lambda c: c.revoke_region_admin(region_id, account_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, list(told["account_ids"]))


@home.command("latency", epilog="Example: tallystick home latency node_1f0c...")
@reads
def latency(remote: Remote, node_id: NodeId) -> None:
    """Show what a node measured of the way to its region's control and its ingress."""
    told: Any = remote.ask(lambda c: c.read_latency(node_id))
    remote.tell(told, columns(told["data"], ("target", "rtt_us", "samples", "measured_at")))


@home.command("bytes", epilog="Example: tallystick home bytes region_1f0c...")
@reads
def ingress_bytes(remote: Remote, region_id: RegionId) -> None:
    """Show the bytes through each ingress node of a region, day by day."""
    told: Any = remote.ask(lambda c: c.list_ingress_bytes(region_id))
    remote.tell(told, columns(told["data"], ("date", "node_id", "bytes_in", "bytes_out")))


@home.command("where-next", epilog="Example: tallystick home where-next")
@reads
def where_next(
    remote: Remote,
    as_map: Annotated[bool, typer.Option("--map", help="As GeoJSON, with --json.")] = False,
) -> None:
    """Show where regions are wanted: accounts that wait, unmet demand, and what is used."""
    if as_map:
        dots: Any = remote.ask(lambda c: c.read_region_map())
        remote.tell(dots, columns([one["properties"] for one in dots["features"]], ("kind",)))
        return
    told: Any = remote.ask(lambda c: c.read_where_next())
    rows = [
        {**one, **one["demand"], "leased_ppm": one.get("leased_ppm", "-")}
        for one in told["regions"]
    ]
    names = (
        "region_id",
        "name",
        "phase",
        "workers",
        "waiting_people",
        "waiting_gpus",
        "refused_gpus",
        "leased_ppm",
    )
    lines = columns(rows, names)
    lines += columns(told["places"], ("place", "waiting_people", "threshold", "reached"))
    remote.tell(told, lines)
