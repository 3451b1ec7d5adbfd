"""`tallystick region terms | set-terms | shares`: how a region shares what its nodes earn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli_arguments import RegionId
from api.cli_remote import Limit, Remote, credits_of, reads, records
from api.cli_supply import region as region
from api.cli_terminal import amount, columns

if TYPE_CHECKING:
    from tallystick_client.forms import NewRegionTerms

_AMOUNTS = ("gathered", "infra", "arrears", "participation", "usage", "carry")
Cost = Annotated[str, typer.Option(metavar="CREDITS", help="Per UTC day.")]


@region.command("terms", epilog="Example: tallystick region terms region_1f0c...")
@reads
def terms(remote: Remote, region_id: RegionId) -> None:
    """How a region shares what its nodes earn, version by version."""
    told = remote.ask(lambda c: c.read_region_terms(region_id))
    names = ("version", "effective_from", "shared", "participation_ppm", "availability_min_tier",
             "control", "ingress", "most")  # fmt: skip
    rows: list[dict[str, Any]] = [
        {**one, **{cost: amount(one["infra"][cost]) for cost in ("control", "ingress", "most")}}
        for one in told["versions"]
    ]
    remote.tell(told, columns(rows, names))


@region.command(
    "set-terms",
    epilog="Example: tallystick region set-terms region_1f0c... --version 1 --from 2027-01-01"
    " --participation-ppm 200000 --control 3 --ingress 3 --most 20",
)
@records
def set_terms(
    remote: Remote,
    region_id: RegionId,
    version: Annotated[int, typer.Option(help="One more than the last one's.")],
    from_: Annotated[
        str, typer.Option("--from", metavar="DATE", help="A UTC day, like 2027-01-01")
    ],
    participation_ppm: Annotated[
        int, typer.Option(help="Part of a day for having been there, of a million.")
    ] = 0,
    min_tier: Annotated[int, typer.Option(help="Time below this tier is not paid for.")] = 3,
    base: Cost = "0",
    control: Cost = "0",
    ingress: Cost = "0",
    most: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="All cost of a day; default: no bound.")
    ] = None,
    arrears: Annotated[
        str, typer.Option(metavar="CREDITS", help="Cost that waits for better days, at most.")
    ] = "0",
    end: Annotated[bool, typer.Option("--end", help="Share nothing from that day on.")] = False,
) -> None:
    """Share what a region's nodes earn: control and ingress first, then who was there, then usage.

    Terms begin a week after they are set, and later where disputes may take longer.
    """
    body: NewRegionTerms = {
        "version": version,
        "effective_from": from_,
        "shared": not end,
        "participation_ppm": participation_ppm,
        "availability_min_tier": min_tier,
        "infra": {
            "base": credits_of(base),
            "control": credits_of(control),
            "ingress": credits_of(ingress),
            "most": credits_of("1000000" if most is None else most),
            "arrears_max": credits_of(arrears),
        },
    }
    told = remote.ask(
        lambda c: c.set_region_terms(region_id, body, idempotency_key=remote.key)
    )  # fmt: skip
    names = ("version", "effective_from", "shared", "participation_ppm", "availability_min_tier")
    remote.tell(told, columns(told["versions"], names))


@region.command(
    "shares", epilog="Example: tallystick region shares region_1f0c... --day 2027-01-01"
)
@reads
def shares(
    remote: Remote,
    region_id: RegionId,
    day: Annotated[
        str | None, typer.Option(metavar="DATE", help="What every node got of this UTC day.")
    ] = None,
    limit: Limit = 50,
) -> None:
    """What a region's days came to; with a day, what every node got and why."""
    if day is None:
        found = remote.list(
            lambda c, size, cursor: c.list_region_days(region_id, limit=size, cursor=cursor), limit
        )
        rows = [{**row, **{name: amount(row[name]) for name in _AMOUNTS}} for row in found["data"]]
        remote.tell(found, columns(rows, ("date", *_AMOUNTS, "nodes")))
        return
    found = remote.list(
        lambda c, size, cursor: c.list_region_shares(region_id, day, limit=size, cursor=cursor),
        limit,
    )
    money = ("revenue", "participation", "usage")
    rows = [{**row, **{name: amount(row[name]) for name in money}} for row in found["data"]]
    names = ("node_id", "available_gpu_us", "below_tier_gpu_us", *money)
    remote.tell(found, columns(rows, names))
