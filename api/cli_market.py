"""`tallystick account | offer | lease`: the market's daily commands. Thin clients of the API."""

from __future__ import annotations

import shlex
import time
from enum import StrEnum
from typing import Annotated, Any

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url, credits_of, ppm_of
from api.cli_terminal import (
    EXIT_NO,
    AsJson,
    InputUnusable,
    amount,
    columns,
    facts,
    group,
    note,
    tell,
)

account = group("Accounts: who rents, who provides.", "tallystick account create")
offer = group("Offers: GPUs for rent, and their price.", "tallystick offer list")
lease = group("Leases: GPUs rented.", "tallystick lease list")

AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT", help="acct_...")]
OfferId = Annotated[str, typer.Argument(metavar="OFFER", help="offer_...")]
LeaseId = Annotated[str, typer.Argument(metavar="LEASE", help="lease_...")]
LOOK_EVERY_SECONDS = 1.0


class AccountKind(StrEnum):
    """Renters and providers alike are parties."""

    PARTY = "party"
    CLIENT = "client"
    AUDITOR = "auditor"


class Source(StrEnum):
    """How money came in."""

    CASH = "cash"
    CARD = "card"


class Settlement(StrEnum):
    """Cash is shared with the provider; burn is retired and paid in TOKEN."""

    CASH = "cash"
    BURN = "burn"


class LeaseState(StrEnum):
    """How far a lease has come, in order."""

    REQUESTED = "requested"
    RESERVED = "reserved"
    ACTIVE = "active"
    CLOSING = "closing"
    SETTLED = "settled"


# --- accounts --------------------------------------------------------------------------------


@account.command("create", epilog="Example: tallystick account create --kind party")
def create_account(
    kind: Annotated[AccountKind, typer.Option(help="What for.")] = AccountKind.PARTY,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Open an account and print its first API key, once (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.post("/v1/accounts", {"kind": kind.value})
    tell(told, facts({**told, "scopes": ",".join(told["scopes"])}), as_json=as_json)
    note("The key is not kept anywhere: give it to its owner now.")


@account.command("list", epilog="Example: tallystick account list --json")
def list_accounts(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Your account; all of them for operators and auditors."""
    found = Remote(url, api_key).list("/v1/accounts", limit)
    tell(found, columns(found["data"], ("account_id", "kind", "opened_at")), as_json=as_json)


@account.command("show", epilog="Example: tallystick account show acct_1f0c...")
def show_account(
    account_id: AccountId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """One account and what it has, straight from the books."""
    remote = Remote(url, api_key)
    told = remote.get(f"/v1/accounts/{account_id}")
    balances = remote.get(f"/v1/accounts/{account_id}/balances")
    told = {**told, "balances": balances["data"], "position": balances["position"]}
    rows = [{"book": row["part"], "balance": amount(row["balance"])} for row in balances["data"]]
    shown = facts({name: told[name] for name in ("account_id", "kind", "opened_at")})
    tell(told, [*shown, *columns(rows, ("book", "balance"))], as_json=as_json)


@account.command(
    "deposit", epilog="Example: tallystick account deposit acct_1f0c... 25 --reference 2026-17"
)
def deposit(
    account_id: AccountId,
    credits: Annotated[str, typer.Argument(metavar="CREDITS", help="Like 25 or 2.50.")],
    reference: Annotated[str, typer.Option(help="The payment's own number: it counts once.")],
    source: Annotated[Source, typer.Option(help="How the money came.")] = Source.CASH,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Confirm money that arrived for an account (operator)."""
    told = Remote(url, api_key, key=idempotency_key).post(
        f"/v1/accounts/{account_id}/deposits",
        {"source": source.value, "amount": credits_of(credits), "reference": reference},
    )
    tell(told, facts({**told, "amount": amount(told["amount"])}), as_json=as_json)


# --- offers ----------------------------------------------------------------------------------


@offer.command(
    "create",
    epilog="Example: tallystick offer create --provider prov_... --node node_... --price 2.50",
)
def create_offer(
    provider: Annotated[str, typer.Option(metavar="PROVIDER", help="prov_...")],
    node: Annotated[str, typer.Option(metavar="NODE", help="node_...")],
    price: Annotated[str, typer.Option(metavar="CREDITS", help="Per GPU-hour, like 2.50.")],
    settlement: Annotated[Settlement, typer.Option(help="How renters pay.")] = Settlement.CASH,
    fractions: Annotated[
        bool, typer.Option("--fractions", help="Also rent out parts of a GPU.")
    ] = False,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Open until, like 2030-01-01T00:00:00Z.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Offer the GPUs of a node at a price."""
    told = Remote(url, api_key, key=idempotency_key).post(
        "/v1/offers",
        {
            "provider_id": provider,
            "node_id": node,
            "price_per_gpu_hour": credits_of(price),
            "settlement": settlement.value,
            "fractions": fractions,
            "available_until": until,
        },
    )
    tell(told, _money_facts(told), as_json=as_json)


@offer.command("list", epilog='Example: tallystick offer list --model "NVIDIA H200"')
def list_offers(
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    max_price: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="At most, per GPU-hour.")
    ] = None,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Open offers, cheapest first. Needs no key."""
    price_max = None if max_price is None else credits_of(max_price)["units"]
    found = Remote(url, api_key).list("/v1/offers", limit, model=model, price_max=price_max)
    rows = [{**row, "price": amount(row["price_per_gpu_hour"])} for row in found["data"]]
    names = ("offer_id", "price", "settlement", "devices_free", "models", "node_id")
    tell(found, columns(rows, names), as_json=as_json)


@offer.command("show", epilog="Example: tallystick offer show offer_1f0c...")
def show_offer(
    offer_id: OfferId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """One offer. Needs no key."""
    told = Remote(url, api_key).get(f"/v1/offers/{offer_id}")
    tell(told, _money_facts(told), as_json=as_json)


@offer.command("close", epilog="Example: tallystick offer close offer_1f0c...")
def close_offer(
    offer_id: OfferId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Take an offer back; leases opened from it keep their price."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.post(f"/v1/offers/{offer_id}/withdraw", {})
    tell(told, facts(told), as_json=as_json)


# --- leases ----------------------------------------------------------------------------------


@lease.command(
    "create",
    epilog='Example: tallystick lease create --command "python train.py" --max-price 3 --term 3600',
)
def create_lease(
    max_price: Annotated[str, typer.Option(metavar="CREDITS", help="At most, per GPU-hour.")],
    command: Annotated[str | None, typer.Option(help="What to run, as in a shell.")] = None,
    image: Annotated[str | None, typer.Option(help="Container image to run.")] = None,
    gpus: Annotated[int, typer.Option(min=1, max=64, help="GPUs, all of one node.")] = 1,
    share: Annotated[str, typer.Option(metavar="PART", help="Of each GPU, like 0.37.")] = "1",
    model: Annotated[list[str] | None, typer.Option(help="Allowed model; may be repeated.")] = None,
    term: Annotated[
        int | None, typer.Option(min=1, metavar="SECONDS", help="Fixed term, else open end.")
    ] = None,
    funds: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="Ends when they are used up.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="Your own mark on the bill.")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Rent the cheapest GPUs that fit; the money is held until the lease is settled."""
    if command is None and image is None:
        raise InputUnusable("what is to run? give --command or --image")
    ppm = ppm_of(share)
    job: dict[str, Any] = {
        "image": image,
        "command": _words(command),
        "gpu_count": gpus,
        "share_ppm": ppm,
        "models": model or [],
        "max_price_per_gpu_hour": credits_of(max_price),
        "project_id": project,
    }
    told = Remote(url, api_key, key=idempotency_key).post(
        "/v1/leases",
        {
            "job": {name: value for name, value in job.items() if value is not None},
            "term_seconds": term,
            "funds": None if funds is None else credits_of(funds),
        },
    )
    tell(told, _money_facts(told), as_json=as_json)


@lease.command("list", epilog="Example: tallystick lease list --state active")
def list_leases(
    state: Annotated[LeaseState | None, typer.Option(help="Only those.")] = None,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Your leases, as renter and as provider; all of them for operators and auditors."""
    asked = None if state is None else state.value
    found = Remote(url, api_key).list("/v1/leases", limit, state=asked)
    rows = [{**row, "charge": amount(row["charge"])} for row in found["data"]]
    names = ("lease_id", "state", "gpu_count", "share_ppm", "gpu_us", "charge", "requested_at")
    tell(found, columns(rows, names), as_json=as_json)


@lease.command("show", epilog="Example: tallystick lease show lease_1f0c... --until settled")
def show_lease(
    lease_id: LeaseId,
    until: Annotated[
        LeaseState | None, typer.Option(help="Wait until it has come that far.")
    ] = None,
    timeout: Annotated[int, typer.Option(min=1, metavar="SECONDS", help="Wait so long.")] = 120,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """One lease: its state, what it used and what it cost. Exit 1 when the wait was too long."""
    remote = Remote(url, api_key)
    ends = time.monotonic() + timeout
    while True:
        told = remote.get(f"/v1/leases/{lease_id}")
        arrived = until is None or _order(told["state"]) >= _order(until.value)
        if arrived or time.monotonic() >= ends:
            break
        time.sleep(LOOK_EVERY_SECONDS)
    tell(told, _money_facts(told), as_json=as_json)
    if until is not None and not arrived:
        note(f"after {timeout} s the lease is {told['state']}, not {until.value}: is its node up?")
        raise typer.Exit(EXIT_NO)


@lease.command("ready", epilog="Example: tallystick lease ready lease_1f0c...")
def ready_lease(
    lease_id: LeaseId,
    endpoint: Annotated[str | None, typer.Option(help="Where the renter reaches the work.")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Say that the work of a lease runs: billing starts now (provider).

    An executor beside the node says so by itself; by hand it is for nodes that have none, like
    those of the backend `sim`.
    """
    remote = Remote(url, api_key, key=idempotency_key)
    node_id = remote.get(f"/v1/leases/{lease_id}").get("node_id")
    if node_id is None:
        raise InputUnusable(f"{lease_id} has no node yet")
    path = f"/v1/nodes/{node_id}/assignments/{lease_id}/ready"
    told = remote.post(path, {"endpoint": endpoint})
    tell(told, facts(told), as_json=as_json)


@lease.command("close", epilog="Example: tallystick lease close lease_1f0c...")
def close_lease(
    lease_id: LeaseId,
    code: Annotated[
        int | None, typer.Option(min=0, max=39_999, help="Why, as a number; else your party's.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """End a lease; it is settled once its node has reported its time."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.post(f"/v1/leases/{lease_id}/close", {"code": code})
    tell(told, _money_facts(told), as_json=as_json)


@lease.command("charges", epilog="Example: tallystick lease charges lease_1f0c...")
def list_charges(
    lease_id: LeaseId,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """What a lease cost, hour by hour, and who got it: fee + provider + platform + burn."""
    found = Remote(url, api_key).list(f"/v1/leases/{lease_id}/charges", limit)
    money = ("charge", "fee", "provider", "platform", "burn")
    rows = [{**row, **{name: amount(row[name]) for name in money}} for row in found["data"]]
    tell(found, columns(rows, ("until", "gpu_us", *money)), as_json=as_json)


def _words(command: str | None) -> list[str]:
    try:
        return [] if command is None else shlex.split(command)
    except ValueError as error:
        raise InputUnusable(f"--command {command!r}: {error}") from error


def _order(state: str) -> int:
    return [each.value for each in LeaseState].index(state)


def _money_facts(told: dict[str, Any]) -> list[str]:
    """Facts with amounts as people write them, and lists in one line."""
    shown = {}
    for name, value in told.items():
        is_money = isinstance(value, dict) and value.keys() == {"asset", "units"}
        shown[name] = amount(value) if is_money else value
    return facts({n: ", ".join(v) if isinstance(v, list) else v for n, v in shown.items()})
