"""`tallystick lease`: rent GPUs, watch the lease, sign for its usage and end it.

Thin clients of the API. The key that signs stays in its file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args
from urllib.parse import urlencode

import typer

from cli.arguments import JobId, KeyFile, LeaseId
from cli.remote import AS_IT_IS, IN_ORDER, Remote, credits_of, lists, ppm_of, reads, records
from cli.running.live import follow_log, follow_use
from cli.terminal import (
    EXIT_NO,
    AnswerIsNo,
    InputUnusable,
    amount,
    columns,
    facts,
    gpu_hours,
    group,
    note,
    tell,
)
from cli.work_options import (
    Command,
    Gpus,
    Image,
    MaxMeters,
    MaxPrice,
    Models,
    Mounts,
    Project,
    RemotingSession,
    ReservationOption,
    Route,
    Share,
    Split,
    attached_of,
    remoted,
    work_of,
)

if TYPE_CHECKING:
    from tallystick_client.forms import JobRequest, LeaseQuoteRequest, LeaseRequest

lease = group("lease", "Leases: rented GPUs.", "tallystick lease list")

LOOK_EVERY_SECONDS = 1.0

Settlement = Literal["cash", "burn"]
Mode = Literal["whole", "mig", "mps", "time_slice", "memory"]
LeaseState = Literal[
    "requested",
    "quoted",
    "reserved",
    "gang_waiting",
    "active",
    "paused",
    "degraded",
    "reclaiming",
    "closing",
    "settled",
    "disputed",
    "resolved",
    "archived",
]
STATES: tuple[str, ...] = get_args(LeaseState)
Seconds = Annotated[
    int, typer.Argument(min=1, metavar="SECONDS", help="Additional time in seconds.")
]


@lease.command(
    "create",
    epilog='Example: tallystick lease create --command "python train.py" --max-price 3 --term 3600',
)
@records
def create_lease(
    remote: Remote,
    max_price: MaxPrice,
    command: Command = None,
    image: Image = None,
    gpus: Gpus = 1,
    share: Share = "1",
    memory: Annotated[
        str | None, typer.Option(metavar="PART", help="Of each GPU's memory; else as the share.")
    ] = None,
    mode: Annotated[Mode | None, typer.Option(help="How each GPU is shared.")] = None,
    mig: Annotated[
        str | None, typer.Option(metavar="PROFILE", help="A MIG instance of each, like 3g.40gb.")
    ] = None,
    model: Models = None,
    term: Annotated[
        int | None, typer.Option(min=1, metavar="SECONDS", help="Fixed term, else open end.")
    ] = None,
    funds: Annotated[
        str | None,
        typer.Option(
            metavar="CREDITS", help="Credits for the lease; it ends when they are used up."
        ),
    ] = None,
    settlement: Annotated[
        Settlement | None,
        typer.Option(help="Kind of credits to pay with; default: any that you have."),
    ] = None,
    project: Project = "",
    max_meter: MaxMeters = None,
    mount: Mounts = None,
    reservation: ReservationOption = None,
    session: RemotingSession = None,
    split: Split = None,
    route: Route = None,
) -> None:
    """Rent the cheapest GPUs that fit. The money is held until the lease is settled."""
    job: JobRequest = {
        **work_of(command, image, gpus, model, max_price, max_meter),
        "project_id": project,
        **_sharing(share, memory, mode, mig),
        **attached_of(mount, reservation),
    }
    body: LeaseRequest = {
        "job": job,
        "term_seconds": term,
        "funds": None if funds is None else credits_of(funds),
        "settlement": settlement,
        **remoted(session, split, route),
    }
    told = remote.ask(lambda c: c.open_lease(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


def _sharing(share: str, memory: str | None, mode: Mode | None, mig: str | None) -> JobRequest:
    """How the devices are shared: by a MIG profile, which has its own shares, or by a share."""
    if mig is not None:
        if (share, memory) != ("1", None) or mode not in (None, "mig"):
            raise InputUnusable("a MIG profile has its own shares: give --mig without the others")
        asked: Any = {"constraints": {"mode": "mig", "mig_profile": mig}}
    else:
        asked = {"share_ppm": ppm_of(share)}
        if memory is not None:
            asked["mem_ppm"] = ppm_of(memory)
        if mode is not None:
            asked["constraints"] = {"mode": mode}
    sharing: JobRequest = asked
    return sharing


@lease.command("list", epilog="Example: tallystick lease list --state active")
@lists(IN_ORDER)
def list_leases(
    remote: Remote,
    state: Annotated[LeaseState | None, typer.Option(help="Only leases in this state.")] = None,
    job: Annotated[
        str | None, typer.Option(metavar="JOB", help="Only leases of this job, job_...")
    ] = None,
    node: Annotated[
        str | None, typer.Option(metavar="NODE", help="Only leases on this node, node_...")
    ] = None,
) -> None:
    """List your leases, as renter and as provider; all of them for operators and auditors."""
    found = remote.list(
        lambda c, page: c.list_leases(state=state, job_id=job, node_id=node, **page)
    )
    rows = [{**row, **_so_far(row)} for row in found["data"]]
    names = ("lease_id", "state", "gpu_count", "share_ppm", "gpu_us", "charge", "requested_at")
    remote.tell(found, columns(rows, names))
    if any("estimate" in row for row in rows) and not remote.as_json:
        note("~ is an estimate by the reports so far; billed each full hour, the rest at its end")


def _so_far(row: Mapping[str, Any]) -> dict[str, Any]:
    """What it used and costs: what was billed, or while it runs the estimate, marked with `~`."""
    estimate = row.get("estimate")
    if estimate is None:
        return {"charge": amount(row["charge"])}
    return {
        "gpu_us": f"~{gpu_hours(estimate['gpu_us'])}",
        "charge": f"~{amount(estimate['charge'])}",
    }


@lease.command("show", epilog="Example: tallystick lease show lease_1f0c... --until settled")
@reads
def show_lease(
    remote: Remote,
    lease_id: LeaseId,
    until: Annotated[LeaseState | None, typer.Option(help="Wait for this state.")] = None,
    timeout: Annotated[int, typer.Option(min=1, metavar="SECONDS", help="Seconds to wait.")] = 120,
    live: Annotated[
        bool,
        typer.Option("--live", help="Show use, cost and how busy its GPUs are, until it is over."),
    ] = False,
) -> None:
    """Show one lease: its state, use and cost. Exit 1 when the wait was too long."""
    if live:
        follow_use(remote, lease_id, LOOK_EVERY_SECONDS)
        return
    ends = time.monotonic() + timeout
    while True:
        told = remote.ask(lambda c: c.read_lease(lease_id))
        arrived = until is None or STATES.index(told["state"]) >= STATES.index(until)
        if arrived or time.monotonic() >= ends:
            break
        time.sleep(LOOK_EVERY_SECONDS)
    remote.tell(told, facts(told))
    if until is not None and not arrived:
        note(f"after {timeout} s the lease is {told['state']}, not {until}: is its node up?")
        raise typer.Exit(EXIT_NO)


@lease.command("log", epilog="Example: tallystick lease log lease_1f0c... --follow")
@reads
def print_log(
    remote: Remote,
    lease_id: LeaseId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the program has ended.")
    ] = False,
) -> None:
    """Print what the program of a lease has printed. Kept for a week.

    With --json the program's output goes to standard error.
    """
    import sys

    out = sys.stderr if remote.as_json else sys.stdout
    code = follow_log(remote, lease_id, out, follows=follow)
    if remote.as_json:
        tell({"lease_id": lease_id, "exit_code": code}, (), as_json=True)


@lease.command("ready", epilog="Example: tallystick lease ready lease_1f0c...")
@records
def ready_lease(
    remote: Remote,
    lease_id: LeaseId,
    endpoint: Annotated[str | None, typer.Option(help="Where the renter reaches the work.")] = None,
) -> None:
    """Report that the work of a lease runs: billing starts now (provider).

    An executor beside the node reports this by itself. Use the command for nodes without one, like
    those of the backend `sim`.
    """
    node_id = remote.ask(lambda c: c.read_lease(lease_id)).get("node_id")
    if node_id is None:
        raise InputUnusable(f"{lease_id} has no node yet")
    told = remote.ask(
        lambda c: c.start_lease(
            node_id, lease_id, {"endpoint": endpoint}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@lease.command("close", epilog="Example: tallystick lease close lease_1f0c...")
@records
def close_lease(
    remote: Remote,
    lease_id: LeaseId,
    code: Annotated[
        int | None,
        typer.Option(min=0, max=39_999, help="Close code; default: your party's usual code."),
    ] = None,
) -> None:
    """Close a lease. It is settled when its node has reported its time."""
    told = remote.ask(lambda c: c.close_lease(lease_id, {"code": code}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@lease.command("delete-results", epilog="Example: tallystick lease delete-results lease_1f0c...")
@reads
def delete_results(remote: Remote, lease_id: LeaseId) -> None:
    """Delete the files that came back from a lease's work before the server does, after a day."""
    told = remote.ask(lambda c: c.delete_lease_results(lease_id, {}))
    remote.tell(told, facts(told))


@lease.command("charges", epilog="Example: tallystick lease charges lease_1f0c...")
@lists(IN_ORDER)
def list_charges(remote: Remote, lease_id: LeaseId) -> None:
    """Show the cost of a lease, hour by hour: fee + provider + platform + burn."""
    found = remote.list(lambda c, page: c.list_lease_charges(lease_id, **page))
    money = ("charge", "fee", "provider", "platform", "burn")
    rows = [{**row, **{name: amount(row[name]) for name in money}} for row in found["data"]]
    remote.tell(found, columns(rows, ("until", "gpu_us", *money)))
    so_far = remote.ask(lambda c: c.read_lease(lease_id)).get("estimate")
    if so_far is not None and not remote.as_json:
        used, charge = gpu_hours(so_far["gpu_us"]), amount(so_far["charge"])
        note(f"in all, by the reports so far: ~{used} GPU-hours, ~{charge}")


@lease.command("watch", epilog="Example: tallystick lease watch lease_1f0c... --seconds 60")
@reads
def watch_leases(
    remote: Remote,
    lease_id: Annotated[
        str | None, typer.Argument(metavar="LEASE", help="lease_...; absent: all of yours.")
    ] = None,
    seconds: Annotated[int, typer.Option(min=0, max=300, help="Seconds to watch.")] = 60,
    after: Annotated[
        int | None, typer.Option(min=0, help="Begin after this position; 0: from the start.")
    ] = None,
) -> None:
    """Follow what happens to leases, live: a line for each fact (--json: JSON lines)."""
    asked: dict[str, int | str] = {"seconds": seconds}
    asked |= {} if lease_id is None else {"lease_id": lease_id}
    asked |= {} if after is None else {"after": after}
    path = f"/v1/lease-events?{urlencode(asked)}"
    remote.ask(lambda client: watch_pieces(client.download(path), as_json=remote.as_json))


def watch_pieces(pieces: Iterable[bytes], *, as_json: bool) -> None:
    """Tell the events of a stream as they come. Raises AnswerIsNo when the server ends it."""
    rest, event = b"", ""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            name, _, value = line.decode().partition(": ")
            if name == "event":
                event = value
            elif name == "data" and event == "problem":
                raise AnswerIsNo(f"the server closed the stream: {value}; try again later")
            elif name == "data":
                told = json.loads(value)
                shown = " ".join(str(told[each]) for each in ("at", "lease_id", "state", "type"))
                tell(told, [shown], as_json=as_json)


# --- the renter's half of the stick -----------------------------------------------------------


@lease.command("top-up", epilog="Example: tallystick lease top-up lease_1f0c... --amount 5")
@records
def top_up(
    remote: Remote,
    lease_id: LeaseId,
    credits: Annotated[
        str, typer.Option("--amount", metavar="CREDITS", help="Credits, like 2.78.")
    ],
    federated: Annotated[
        bool, typer.Option("--federated", help="Into the escrow of the federated fee.")
    ] = False,
) -> None:
    """Put credits of yours into the escrow of a lease. Its end moves with them."""
    body: Any = {"amount": credits_of(credits), "federated": federated}
    told = remote.ask(lambda c: c.fund_lease(lease_id, body, idempotency_key=remote.key))
    shown = {"lease_id": lease_id, "deposited": credits, "funds_end_at": told.get("funds_end_at")}
    remote.tell(told, facts(shown))


@lease.command("sign", epilog="Example: tallystick lease sign lease_1f0c... --key-file me.key")
@records
def sign(
    remote: Remote,
    lease_id: LeaseId,
    key_file: KeyFile,
    gpu_us: Annotated[
        int | None,
        typer.Option(min=0, help="Total to sign for; default: everything that was metered."),
    ] = None,
) -> None:
    """Sign for the usage of a lease up to its last accrual, as its renter."""
    import hashlib

    from api.door.moments import parse_moment
    from cli.countersigning import key_of
    from domain.lease.countersign import message_for

    key = key_of(key_file)
    hours = remote.list(lambda c, page: c.list_lease_usage(lease_id, **page), 10_000)["data"]
    until = str(hours[-1]["until"]) if hours else None
    if until is None:
        remote.tell({"lease_id": lease_id, "signed": False}, ["nothing was accrued yet"])
        raise typer.Exit(1)
    metered = sum(int(hour["gpu_us"]) for hour in hours) if gpu_us is None else gpu_us
    message = message_for(lease_id, metered, parse_moment(until))
    body: Any = {
        "key_id": hashlib.sha256(bytes(key.verify_key)).hexdigest()[:16],
        "gpu_us": str(metered),
        "until": until,
        "signature": key.sign(message).signature.hex(),
    }
    told = remote.ask(lambda c: c.countersign_usage(lease_id, body, idempotency_key=remote.key))
    shown = {name: told.get(name) for name in ("lease_id", "gpu_us", "until", "key_id")}
    remote.tell(told, facts(shown))


@lease.command("stick", epilog="Example: tallystick lease stick lease_1f0c... --json")
@reads
def stick(remote: Remote, lease_id: LeaseId) -> None:
    """Show how much of the reported GPU time the renter has confirmed with a signature."""
    told = remote.ask(lambda c: c.read_stick(lease_id))
    names = ("gpu_us", "matched_gpu_us", "unconfirmed_gpu_us", "contested_gpu_us", "signed_until")
    remote.tell(told, facts({name: told.get(name) for name in names}))


_HEALTH = (
    "health",
    "detail",
    "machine",
    "node_id",
    "node_state",
    "heard_at",
    "has_executor",
    "kernel",
    "arch",
    "seen_at",
    "reported_at",
)


@lease.command("health", epilog="Example: tallystick lease health lease_1f0c...")
@reads
def health(remote: Remote, lease_id: LeaseId) -> None:
    """Show the health of both halves: the renter's machine, and the node with its work."""
    told = remote.ask(lambda c: c.read_lease_health(lease_id))
    shown = {"state": told["state"]}
    for half in ("initiator", "acceptor"):
        found: Any = told[half]
        named = {f"{half} {name}": found.get(name) for name in _HEALTH}
        shown |= {name: one for name, one in named.items() if one not in (None, "")}
    remote.tell(told, facts(shown))


# --- turns of a lease -------------------------------------------------------------------------


@lease.command("pause", epilog="Example: tallystick lease pause lease_1f0c...")
@records
def pause_lease(remote: Remote, lease_id: LeaseId) -> None:
    """Pause an interruptible lease. It costs nothing until it is resumed."""
    told = remote.ask(lambda c: c.pause_lease(lease_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@lease.command("resume", epilog="Example: tallystick lease resume lease_1f0c...")
@records
def resume_lease(remote: Remote, lease_id: LeaseId) -> None:
    """Resume a lease on the same devices, if they are free."""
    told = remote.ask(lambda c: c.resume_lease(lease_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@lease.command("extend", epilog="Example: tallystick lease extend lease_1f0c... 3600")
@records
def extend_lease(remote: Remote, lease_id: LeaseId, seconds: Seconds) -> None:
    """Extend a fixed term. The money is held in full now, at the locked price."""
    told = remote.ask(
        lambda c: c.extend_lease(lease_id, {"seconds": seconds}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@lease.command("reclaim", epilog="Example: tallystick lease reclaim lease_1f0c... --code 10001")
@records
def reclaim_lease(
    remote: Remote,
    lease_id: LeaseId,
    code: Annotated[
        int, typer.Option(min=10_000, max=19_999, help="Why: 10000, 10001 or 10002.")
    ] = 10_002,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the reclaim.")] = False,
) -> None:
    """Reclaim the devices: the quoted reclaim window begins (provider)."""
    if cancel:
        told = remote.ask(lambda c: c.cancel_reclaim(lease_id, {}, idempotency_key=remote.key))
    else:
        told = remote.ask(
            lambda c: c.reclaim_lease(lease_id, {"code": code}, idempotency_key=remote.key)
        )
    remote.tell(told, facts(told))


@lease.command("quote", epilog="Example: tallystick lease quote job_1f0c... --term 3600")
@records
def quote_lease(
    remote: Remote,
    job_id: JobId,
    term: Annotated[int | None, typer.Option(min=1, help="A fixed term, in seconds.")] = None,
    funds: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="Credits that an open-ended lease holds.")
    ] = None,
    valid: Annotated[
        int, typer.Option(min=1, max=86_400, help="Seconds for which the price is valid.")
    ] = 900,
) -> None:
    """Quote a price for a job, valid for a limited time; `lease accept` takes it."""
    if term is not None and funds is not None:
        raise InputUnusable("--term or --funds: a fixed term holds the largest possible charge")
    body: LeaseQuoteRequest = {"job_id": job_id, "valid_seconds": valid}
    if term is not None:
        body["term_seconds"] = term
    if funds is not None:
        body["funds"] = credits_of(funds)
    told = remote.ask(lambda c: c.quote_lease(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@lease.command("accept", epilog="Example: tallystick lease accept lease_1f0c... quote_77ab...")
@records
def accept_quote(
    remote: Remote,
    lease_id: LeaseId,
    quote_id: Annotated[str, typer.Argument(metavar="QUOTE", help="quote_...")],
) -> None:
    """Accept a quote before it expires. Devices and money are held from now on."""
    told = remote.ask(
        lambda c: c.accept_quote(lease_id, {"quote_id": quote_id}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@lease.command("events", epilog="Example: tallystick lease events lease_1f0c...")
@lists(AS_IT_IS)
def list_events(remote: Remote, lease_id: LeaseId) -> None:
    """Show the life of a lease: each fact, its cause and what it moved (--json: all)."""
    found = remote.list(lambda c, page: c.list_lease_steps(lease_id, **page))
    rows = [
        {
            **row,
            "code": row.get("code", ""),
            "reason": row.get("reason", ""),
            "moved": _moved(row["money"]),
        }
        for row in found["data"]
    ]
    names = ("at", "type", "state", "party", "code", "reason", "moved")
    remote.tell(found, columns(rows, names))


def _moved(money: list[dict[str, Any]]) -> str:
    """Credits that left an account on one side: what the fact moved in all."""
    units = sum(max(0, int(one["units"])) for one in money if one["asset"] == "CREDIT")
    return (amount({"asset": "CREDIT", "units": str(units)}) or "") if units else ""
