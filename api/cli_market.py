"""`tallystick account | offer | lease`: the market's daily commands. Thin clients of the API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args
from urllib.parse import urlencode

import typer

from api.cli_arguments import AccountId, LeaseId, OfferId
from api.cli_remote import Limit, Remote, credits_of, ppm_of, reads, records
from api.cli_terminal import (
    EXIT_NO,
    AnswerIsNo,
    InputUnusable,
    amount,
    columns,
    facts,
    group,
    note,
    tell,
)
from api.cli_work import Command, Gpus, Image, MaxPrice, Models, Project, Share, work_of

if TYPE_CHECKING:
    from tallystick_client.forms import NewDeposit, NewJob, NewLease, NewOffer

account = group("Accounts: who rents, who provides.", "tallystick account create")
offer = group("Offers: GPUs for rent, and their price.", "tallystick offer list")
lease = group("Leases: GPUs rented.", "tallystick lease list")

LOOK_EVERY_SECONDS = 1.0


AccountKind = Literal["party", "client", "auditor"]
Source = Literal["cash", "card"]
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


# --- accounts --------------------------------------------------------------------------------


@account.command("create", epilog="Example: tallystick account create --kind party")
@records
def create_account(
    remote: Remote, kind: Annotated[AccountKind, typer.Option(help="What for.")] = "party"
) -> None:
    """Open an account and print its first API key, once (operator)."""
    told = remote.ask(lambda c: c.create_account({"kind": kind}, idempotency_key=remote.key))
    remote.tell(told, facts({**told, "scopes": ",".join(told["scopes"])}))
    note("The key is not kept anywhere: give it to its owner now.")


@account.command("list", epilog="Example: tallystick account list --json")
@reads
def list_accounts(remote: Remote, limit: Limit = 50) -> None:
    """Your account; all of them for operators and auditors."""
    found = remote.list(lambda c, size, cursor: c.list_accounts(limit=size, cursor=cursor), limit)
    remote.tell(found, columns(found["data"], ("account_id", "kind", "opened_at")))


@account.command("show", epilog="Example: tallystick account show acct_1f0c...")
@reads
def show_account(remote: Remote, account_id: AccountId) -> None:
    """One account and what it has, straight from the books."""
    found = remote.ask(lambda c: c.read_account(account_id))
    balances = remote.ask(lambda c: c.read_balances(account_id))
    told = {**found, "balances": balances["data"], "position": balances["position"]}
    rows = [{"book": row["part"], "balance": amount(row["balance"])} for row in balances["data"]]
    names = ("account_id", "kind", "opened_at", "closed_at")
    shown = facts({name: told[name] for name in names if name in told})
    remote.tell(told, [*shown, *columns(rows, ("book", "balance"))])


@account.command(
    "deposit", epilog="Example: tallystick account deposit acct_1f0c... 25 --reference 2026-17"
)
@records
def deposit(
    remote: Remote,
    account_id: AccountId,
    credits: Annotated[str, typer.Argument(metavar="CREDITS", help="Like 25 or 2.50.")],
    reference: Annotated[str, typer.Option(help="The payment's own number: it counts once.")],
    source: Annotated[Source, typer.Option(help="How the money came.")] = "cash",
) -> None:
    """Confirm money that arrived for an account (operator)."""
    body: NewDeposit = {
        "source": source,
        "amount": credits_of(credits),
        "reference": reference,
    }
    told = remote.ask(lambda c: c.create_deposit(account_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@account.command("close", epilog="Example: tallystick account close acct_1f0c...")
@records
def close_account(remote: Remote, account_id: AccountId) -> None:
    """Close an account for good, and every key of it.

    Only when all is finished: leases settled, nodes retired, nothing in its books.
    """
    told = remote.ask(lambda c: c.close_account(account_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


# --- offers ----------------------------------------------------------------------------------


@offer.command(
    "create",
    epilog="Example: tallystick offer create --provider prov_... --node node_... --price 2.50",
)
@records
def create_offer(
    remote: Remote,
    provider: Annotated[str, typer.Option(metavar="PROVIDER", help="prov_...")],
    node: Annotated[str, typer.Option(metavar="NODE", help="node_...")],
    price: Annotated[str, typer.Option(metavar="CREDITS", help="Per GPU-hour, like 2.50.")],
    settlement: Annotated[Settlement, typer.Option(help="How renters pay.")] = "cash",
    fractions: Annotated[
        bool, typer.Option("--fractions", help="Also rent out parts of a GPU.")
    ] = False,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Open until, like 2030-01-01T00:00:00Z.")
    ] = None,
) -> None:
    """Offer the GPUs of a node at a price."""
    body: NewOffer = {
        "provider_id": provider,
        "node_id": node,
        "price_per_gpu_hour": credits_of(price),
        "settlement": settlement,
        "fractions": fractions,
        "available_until": until,
    }
    told = remote.ask(lambda c: c.publish_offer(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@offer.command("list", epilog='Example: tallystick offer list --model "NVIDIA H200"')
@reads
def list_offers(
    remote: Remote,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    max_price: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="At most, per GPU-hour.")
    ] = None,
    limit: Limit = 50,
) -> None:
    """Open offers, cheapest first. Needs no key."""
    price_max = None if max_price is None else int(credits_of(max_price)["units"])
    found = remote.list(
        lambda c, size, cursor: c.search_offers(
            model=model, price_max=price_max, limit=size, cursor=cursor
        ),
        limit,
    )
    rows = [{**row, "price": amount(row["price_per_gpu_hour"])} for row in found["data"]]
    names = ("offer_id", "price", "settlement", "devices_free", "models", "node_id")
    remote.tell(found, columns(rows, names))


@offer.command("show", epilog="Example: tallystick offer show offer_1f0c...")
@reads
def show_offer(remote: Remote, offer_id: OfferId) -> None:
    """One offer. Needs no key."""
    told = remote.ask(lambda c: c.read_offer(offer_id))
    remote.tell(told, facts(told))


@offer.command("close", epilog="Example: tallystick offer close offer_1f0c...")
@records
def close_offer(remote: Remote, offer_id: OfferId) -> None:
    """Take an offer back; leases opened from it keep their price."""
    told = remote.ask(lambda c: c.withdraw_offer(offer_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


# --- leases ----------------------------------------------------------------------------------


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
        str | None, typer.Option(metavar="CREDITS", help="Ends when they are used up.")
    ] = None,
    settlement: Annotated[
        Settlement | None, typer.Option(help="Pay so; else whatever you have credits for.")
    ] = None,
    project: Project = "",
) -> None:
    """Rent the cheapest GPUs that fit; the money is held until the lease is settled."""
    job: NewJob = {
        **work_of(command, image, gpus, model, max_price),
        "project_id": project,
        **_sharing(share, memory, mode, mig),
    }
    body: NewLease = {
        "job": job,
        "term_seconds": term,
        "funds": None if funds is None else credits_of(funds),
        "settlement": settlement,
    }
    told = remote.ask(lambda c: c.open_lease(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


def _sharing(share: str, memory: str | None, mode: Mode | None, mig: str | None) -> NewJob:
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
    sharing: NewJob = asked
    return sharing


@lease.command("list", epilog="Example: tallystick lease list --state active")
@reads
def list_leases(
    remote: Remote,
    state: Annotated[LeaseState | None, typer.Option(help="Only those.")] = None,
    limit: Limit = 50,
) -> None:
    """Your leases, as renter and as provider; all of them for operators and auditors."""
    found = remote.list(
        lambda c, size, cursor: c.list_leases(state=state, limit=size, cursor=cursor), limit
    )
    rows = [{**row, "charge": amount(row["charge"])} for row in found["data"]]
    names = ("lease_id", "state", "gpu_count", "share_ppm", "gpu_us", "charge", "requested_at")
    remote.tell(found, columns(rows, names))


@lease.command("show", epilog="Example: tallystick lease show lease_1f0c... --until settled")
@reads
def show_lease(
    remote: Remote,
    lease_id: LeaseId,
    until: Annotated[
        LeaseState | None, typer.Option(help="Wait until it has come that far.")
    ] = None,
    timeout: Annotated[int, typer.Option(min=1, metavar="SECONDS", help="Wait so long.")] = 120,
) -> None:
    """One lease: its state, what it used and what it cost. Exit 1 when the wait was too long."""
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


@lease.command("ready", epilog="Example: tallystick lease ready lease_1f0c...")
@records
def ready_lease(
    remote: Remote,
    lease_id: LeaseId,
    endpoint: Annotated[str | None, typer.Option(help="Where the renter reaches the work.")] = None,
) -> None:
    """Say that the work of a lease runs: billing starts now (provider).

    An executor beside the node says so by itself; by hand it is for nodes that have none, like
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
        int | None, typer.Option(min=0, max=39_999, help="Why, as a number; else your party's.")
    ] = None,
) -> None:
    """End a lease; it is settled once its node has reported its time."""
    told = remote.ask(lambda c: c.close_lease(lease_id, {"code": code}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@lease.command("charges", epilog="Example: tallystick lease charges lease_1f0c...")
@reads
def list_charges(remote: Remote, lease_id: LeaseId, limit: Limit = 50) -> None:
    """What a lease cost, hour by hour, and who got it: fee + provider + platform + burn."""
    found = remote.list(
        lambda c, size, cursor: c.list_lease_charges(lease_id, limit=size, cursor=cursor), limit
    )
    money = ("charge", "fee", "provider", "platform", "burn")
    rows = [{**row, **{name: amount(row[name]) for name in money}} for row in found["data"]]
    remote.tell(found, columns(rows, ("until", "gpu_us", *money)))


@lease.command("watch", epilog="Example: tallystick lease watch lease_1f0c... --seconds 60")
@reads
def watch_leases(
    remote: Remote,
    lease_id: Annotated[
        str | None, typer.Argument(metavar="LEASE", help="lease_...; absent: all of yours.")
    ] = None,
    seconds: Annotated[int, typer.Option(min=0, max=300, help="How long to stay.")] = 60,
    after: Annotated[
        int | None, typer.Option(min=0, help="Begin after this position; 0: from the start.")
    ] = None,
) -> None:
    """What happens to leases, as it happens: a line for each fact (--json: JSON lines)."""
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
