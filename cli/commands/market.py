"""`tallystick account | offer | quote | explain`: accounts, offers, what a job would get and why.

Thin clients of the API.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import AccountId, JobId, KeyFile, OfferId, OwnAccount
from cli.remote import (
    AS_IT_IS,
    IN_ORDER,
    Remote,
    acts,
    credits_of,
    lists,
    part_of,
    ppm_of,
    reads,
    records,
)
from cli.terminal import amount, columns, facts, group, note, part, top_level
from cli.work_options import ANY_PRICE, Share, words_of

if TYPE_CHECKING:
    from tallystick_client.forms import (
        AccountInvitationRequest,
        AccountPlanRequest,
        DepositRequest,
        JobQuoteRequest,
        JobRequest,
        NodeDemandsForm,
        OfferRequest,
    )

account = group("account", "Accounts of renters and providers.", "tallystick account create")
commands = top_level()
offer = group("offer", "Offers: GPUs for rent, and their price.", "tallystick offer list")

AccountKind = Literal["party", "client", "auditor"]
Source = Literal["cash", "card"]
Settlement = Literal["cash", "burn"]
Mode = Literal["whole", "mig", "mps", "time_slice", "memory"]
Isolation = Literal["process", "container", "vm", "machine"]
Setting = Literal["edge", "datacenter"]

Memory = Annotated[int | None, typer.Option(min=1, metavar="MIB", help="Of each GPU, at least.")]
Vendor = Annotated[str | None, typer.Option(help="Like nvidia.")]
Model = Annotated[str | None, typer.Option(help="Only this model.")]
Gpus = Annotated[int, typer.Option(min=1, max=64, help="GPUs of one node.")]
SettingOption = Annotated[Setting | None, typer.Option(help="Where the node stands.")]
IsolationOption = Annotated[Isolation | None, typer.Option(help="This level, or a stronger one.")]
Capability = Annotated[str | None, typer.Option(help="Like docker, cudnn or pytorch.")]
Cores = Annotated[int | None, typer.Option(min=1, help="CPU cores, at least.")]
Ram = Annotated[int | None, typer.Option(min=1, metavar="MIB", help="At least.")]
Storage = Annotated[int | None, typer.Option(min=1, metavar="GIB", help="At least.")]
Arch = Annotated[str | None, typer.Option(help="Like x86_64.")]
Kernel = Annotated[str | None, typer.Option(metavar="VERSION", help="At least, like 5.10.")]
NetworkClass = Annotated[
    Literal["internet", "local", "switched"] | None, typer.Option(help="This one, or a better one.")
]
Substrate = Annotated[str | None, typer.Option(help="Like bare_metal, esxi or kubernetes.")]
Capacity = Annotated[
    Literal["on_demand", "preemptible", "committed"] | None,
    typer.Option(help="How the machine is held."),
]
Tier = Annotated[int | None, typer.Option(min=0, max=9, help="Security tier, at least.")]
Reputation = Annotated[
    str | None, typer.Option(metavar="SCORE", help="Reputation of the node, at least, like 0.9.")
]


# --- accounts --------------------------------------------------------------------------------


@account.command("create", epilog="Example: tallystick account create --kind party")
@records
def create_account(
    remote: Remote, kind: Annotated[AccountKind, typer.Option(help="Kind of account.")] = "party"
) -> None:
    """Open an account and print its first API key, once (operator)."""
    told = remote.ask(lambda c: c.create_account({"kind": kind}, idempotency_key=remote.key))
    remote.tell(told, facts({**told, "scopes": ",".join(told["scopes"])}))
    note("The key is not kept anywhere: give it to its owner now.")


@account.command("invite", epilog="Example: tallystick account invite --kind party")
@records
def invite_account(
    remote: Remote,
    kind: Annotated[AccountKind, typer.Option(help="Kind of account.")] = "party",
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The code works until then; default: 24 h, at most 7 d."),
    ] = None,
) -> None:
    """Open an account and print a code for its owner, once; you never see the key (operator)."""
    body: AccountInvitationRequest = {"kind": kind}
    if until is not None:
        body["expires_at"] = until
    told = remote.ask(lambda c: c.invite_account(body, idempotency_key=remote.key))
    remote.tell(told, facts({**told, "scopes": ",".join(told["scopes"])}))
    note("Hand the code to the owner, who runs: tallystick member join CODE")


@account.command("sign-up", epilog="Example: tallystick account sign-up --url https://the.server")
@records
def sign_up(remote: Remote) -> None:
    """Open an account of your own and print its API key, once, where a market lets you.

    It can read and pay in, and does everything once money arrived on it, or the operator verified
    it. An account that gets neither is closed after 14 days.
    """
    nonce = secrets.token_urlsafe(32)
    told = remote.ask(lambda c: c.sign_up({"nonce": nonce}, idempotency_key=remote.key))
    remote.tell(told, facts({**told, "scopes": ",".join(told["scopes"])}))
    note("The key is not kept anywhere: store it now. Then: tallystick payment create ACCOUNT 25")


@account.command("verify", epilog="Example: tallystick account verify acct_1f0c...")
@records
def verify_account(remote: Remote, account_id: AccountId) -> None:
    """Verify an account that signed itself up, because you know its owner (operator)."""
    told = remote.ask(lambda c: c.verify_account(account_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@account.command("list", epilog="Example: tallystick account list --json")
@lists(IN_ORDER)
def list_accounts(remote: Remote) -> None:
    """List your account; all of them for operators and auditors."""
    found = remote.list(lambda c, page: c.list_accounts(**page))
    remote.tell(found, columns(found["data"], ("account_id", "kind", "opened_at")))


@account.command("show", epilog="Example: tallystick account show acct_1f0c...")
@reads
def show_account(remote: Remote, account_id: OwnAccount = None) -> None:
    """Show one account and its balances, from the books."""
    who = remote.own(account_id)
    found = remote.ask(lambda c: c.read_account(who))
    balances = remote.ask(lambda c: c.read_balances(who))
    told = {**found, "balances": balances["data"], "position": balances["position"]}
    rows = [{"book": row["part"], "balance": amount(row["balance"])} for row in balances["data"]]
    names = ("account_id", "kind", "opened_at", "closed_at", "unverified")
    shown = facts({name: told[name] for name in names if name in told})
    remote.tell(told, [*shown, *columns(rows, ("book", "balance"))])


@account.command(
    "deposit", epilog="Example: tallystick account deposit acct_1f0c... 25 --reference 2026-17"
)
@acts
def deposit(
    remote: Remote,
    account_id: AccountId,
    credits: Annotated[str, typer.Argument(metavar="CREDITS", help="Like 25 or 2.50.")],
    reference: Annotated[str, typer.Option(help="The payment's own number: it counts once.")],
    source: Annotated[Source, typer.Option(help="How the money arrived.")] = "cash",
) -> None:
    """Confirm money that arrived for an account (operator)."""
    body: DepositRequest = {"source": source, "amount": credits_of(credits), "reference": reference}
    told = remote.ask(lambda c: c.create_deposit(account_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@account.command("close", epilog="Example: tallystick account close acct_1f0c...")
@records
def close_account(remote: Remote, account_id: AccountId) -> None:
    """Close an account for good, with every key of it.

    Its leases must be settled, its nodes retired and its books empty.
    """
    told = remote.ask(lambda c: c.close_account(account_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@account.command("plan", epilog="Example: tallystick account plan acct_1f0c... --set team")
@acts
def plan(
    remote: Remote,
    account_id: AccountId,
    new: Annotated[
        Literal["individual", "team", "enterprise"] | None,
        typer.Option("--set", help="Set it (operator)."),
    ] = None,
) -> None:
    """Show the plan of an account, or set it. Team has datastores and reservations."""
    if new is None:
        told = remote.ask(lambda c: c.read_plan(account_id))
    else:
        body: AccountPlanRequest = {"plan": new}
        told = remote.ask(lambda c: c.set_plan(account_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@account.command(
    "signing-key", epilog="Example: tallystick account signing-key acct_1f0c... --key-file me.key"
)
@records
def signing_key(remote: Remote, account_id: AccountId, key_file: KeyFile) -> None:
    """Register the key in a file to sign for usage. The file is created if it is missing."""
    from cli.countersigning import key_of

    body: Any = {"public_key": bytes(key_of(key_file).verify_key).hex()}
    told = remote.ask(lambda c: c.add_signing_key(account_id, body, idempotency_key=remote.key))
    remote.tell(told, facts({name: told.get(name) for name in ("key_id", "public_key")}))


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
        str | None,
        typer.Option(metavar="TIME", help="End of the offer, like 2030-01-01T00:00:00Z."),
    ] = None,
    interruptible: Annotated[
        bool, typer.Option("--interruptible", help="Also take leases that may be paused.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell your part of the price, and offer nothing.")
    ] = False,
) -> None:
    """Offer the GPUs of a node at a price, and tell which part of it is yours."""
    told_part = remote.ask(lambda c: c.read_owner_part(node, price=int(credits_of(price)["units"])))
    before = remote.ask(lambda c: c.search_offers(node_id=node, limit=10))["data"]
    for line in _owner_part(told_part, settlement):
        note(line)
    for other in before:
        note(
            f"warning: the offer {other['offer_id']} of this node at"
            f" {amount(other['price_per_gpu_hour'])} stays open, and renters take the cheapest."
            f" Close it: tallystick offer close {other['offer_id']}"
        )
    if dry_run:
        remote.tell(told_part, ["nothing was offered: leave out --dry-run"])
        return
    body: OfferRequest = {
        "provider_id": provider,
        "node_id": node,
        "price_per_gpu_hour": credits_of(price),
        "settlement": settlement,
        "fractions": fractions,
        "available_until": until,
        "terms": {"interruptible": True} if interruptible else None,
    }
    told = remote.ask(lambda c: c.publish_offer(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


def _owner_part(told: Mapping[str, Any], settlement: Settlement) -> list[str]:
    """What the owner gets of a GPU-hour, by class, and when."""
    lines = [
        f"you get {_plain(one['provider'])} of {_plain(one['price'])} CREDIT per GPU-hour"
        f" ({one['gpu_class']}): usage fee {_plain(one['fee'])}, platform"
        f" {_plain(one['platform'])}"
        + (f", burned {_plain(one['burn'])}" if int(one["burn"]["units"]) else "")
        for one in told["data"]
    ]
    if settlement == "burn":
        return [*lines, "paid in TOKEN when the epoch is sealed"]
    hours, wait = (told[f"{name}_seconds"] // 3_600 for name in ("held_back", "destination"))
    minimum = _plain(told["cash_out_minimum"])
    return [
        *lines,
        f"it matures {hours} hours after it was earned; the smallest cash-out is {minimum} CREDIT,"
        f" and none leaves within {wait} hours of a new destination",
    ]


def _plain(money: Mapping[str, Any]) -> str:
    """`1.125`, without the zeros at its end."""
    return str(amount(money)).partition(" ")[0].rstrip("0").rstrip(".")


@offer.command("list", epilog='Example: tallystick offer list --model "NVIDIA H200"')
@lists(AS_IT_IS)
def list_offers(
    remote: Remote,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    max_price: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="Highest price per GPU-hour.")
    ] = None,
) -> None:
    """List open offers, cheapest first. Needs no key."""
    price_max = None if max_price is None else int(credits_of(max_price)["units"])
    found = remote.list(lambda c, page: c.search_offers(model=model, price_max=price_max, **page))
    rows = [{**row, "price": amount(row["price_per_gpu_hour"])} for row in found["data"]]
    remote.tell(found, columns(rows, _OFFERS))


@offer.command("show", epilog="Example: tallystick offer show offer_1f0c...")
@reads
def show_offer(remote: Remote, offer_id: OfferId) -> None:
    """Show one offer. Needs no key."""
    told = remote.ask(lambda c: c.read_offer(offer_id))
    remote.tell(told, facts(told))


@offer.command("close", epilog="Example: tallystick offer close offer_1f0c...")
@records
def close_offer(remote: Remote, offer_id: OfferId) -> None:
    """Close an offer. Leases opened from it keep their price."""
    told = remote.ask(lambda c: c.withdraw_offer(offer_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@offer.command("unmatched", epilog="Example: tallystick offer unmatched --json")
@lists(AS_IT_IS)
def unmatched(remote: Remote) -> None:
    """List your requests that found no node, the newest first; all of them for operators."""
    found = remote.list(lambda c, page: c.list_unmatched_requests(**page))
    rows = [
        {
            "at": row["at"],
            "code": row["code"],
            "gpus": row["members"] * row["gpu_count"],
            "fails": _fails(row["dimensions"]),
            "eased": _eased(row.get("eased")),
            "times": row["times"],
        }
        for row in found["data"]
    ]
    remote.tell(found, columns(rows, ("at", "code", "gpus", "fails", "eased", "times")))


def _fails(dimensions: list[Any]) -> str:
    """The demand that left no node."""
    return next((one["dimension"] for one in dimensions if not one["nodes_left"]), "")


def _eased(one: Any) -> str:
    if one is None:
        return ""
    shown = _of_people(one, one["field"], "offered")
    return f"{one['field']} {shown['required']} -> {shown['offered']}"


@offer.command("search", epilog="Example: tallystick offer search --memory 80000 --setting edge")
@lists(AS_IT_IS)
def search(
    remote: Remote,
    model: Model = None,
    vendor: Vendor = None,
    memory: Memory = None,
    gpus: Gpus = 1,
    mode: Annotated[Mode | None, typer.Option(help="How GPUs are shared.")] = None,
    setting: SettingOption = None,
    isolation: IsolationOption = None,
    capability: Capability = None,
    cores: Cores = None,
    ram: Ram = None,
    storage: Storage = None,
    arch: Arch = None,
    kernel: Kernel = None,
    network_class: NetworkClass = None,
    substrate: Substrate = None,
    capacity: Capacity = None,
    tier: Tier = None,
    reputation: Reputation = None,
    max_price: Annotated[str | None, typer.Option(metavar="CREDITS", help="Per GPU-hour.")] = None,
) -> None:
    """List open offers that meet every demand, cheapest first. Needs no key."""
    price_max = None if max_price is None else int(credits_of(max_price)["units"])
    found = remote.list(
        lambda c, page: c.search_offers(
            model=model,
            vendor=vendor,
            memory_mib=memory,
            gpu_count=gpus,
            mode=mode,
            setting=setting,
            isolation=isolation,
            capability=capability,
            cpu_cores=cores,
            ram_mib=ram,
            storage_gib=storage,
            arch=arch,
            security_tier=tier,
            min_kernel=kernel,
            network_class=network_class,
            substrate=substrate,
            capacity_class=capacity,
            min_reputation_ppm=None if reputation is None else part_of(reputation),
            price_max=price_max,
            **page,
        )
    )
    rows = [{**row, "price": amount(row["price_per_gpu_hour"])} for row in found["data"]]
    remote.tell(found, columns(rows, _OFFERS))


_OFFERS = ("offer_id", "price", "settlement", "devices_free", "models", "node_id")


# --- what a job would get ---------------------------------------------------------------------


@commands.command("quote", epilog="Example: tallystick quote --memory 80000")
@reads
def quote(
    remote: Remote,
    max_price: Annotated[
        str | None,
        typer.Option(
            metavar="CREDITS", help="Highest price per GPU-hour, like 2.78; default: any price."
        ),
    ] = None,
    command: Annotated[str, typer.Option(help="What would run, as in a shell.")] = "true",
    gpus: Gpus = 1,
    share: Share = "1",
    model: Model = None,
    vendor: Vendor = None,
    memory: Memory = None,
    setting: SettingOption = None,
    isolation: IsolationOption = None,
    capability: Capability = None,
    cores: Cores = None,
    ram: Ram = None,
    storage: Storage = None,
    arch: Arch = None,
    kernel: Kernel = None,
    network_class: NetworkClass = None,
    substrate: Substrate = None,
    capacity: Capacity = None,
    tier: Tier = None,
    reputation: Reputation = None,
    term: Annotated[int | None, typer.Option(min=1, metavar="SECONDS", help="Fixed term.")] = None,
) -> None:
    """What a job would get now, why, and if nothing, which demand to ease. Nothing is recorded."""
    demands: NodeDemandsForm = {
        "vendors": None if vendor is None else [vendor],
        "memory_mib": memory,
        "setting": setting,
        "isolation": isolation,
        "capabilities": None if capability is None else [capability],
        "cpu_cores": cores,
        "ram_mib": ram,
        "storage_gib": storage,
        "arch": arch,
        "min_kernel": kernel,
        "network_class": network_class,
        "substrate": substrate,
        "capacity_classes": None if capacity is None else [capacity],
        "interruptible": True if capacity == "preemptible" else None,
        "security_tier": tier,
        "min_reputation_ppm": None if reputation is None else part_of(reputation),
    }
    job: JobRequest = {
        "command": words_of(command),
        "gpu_count": gpus,
        "share_ppm": ppm_of(share),
        "models": [] if model is None else [model],
        "max_price_per_gpu_hour": credits_of(max_price or ANY_PRICE),
        "constraints": demands,
    }
    body: JobQuoteRequest = {"job": job, "term_seconds": term}
    told = remote.ask(lambda c: c.quote_job(body))
    remote.tell(told, _quoted(told))


@commands.command("explain", epilog="Example: tallystick explain job_1f0c...")
@reads
def explain(remote: Remote, job_id: JobId) -> None:
    """Show why the leases of a job run on their nodes, or which demand left the job without a node.

    Each recorded choice is computed again. Exit 1: a record does not follow from its inputs.
    """
    told = remote.ask(lambda c: c.explain_job(job_id))
    lines: list[str] = []
    for match in told["matches"]:
        shown = {name: match.get(name) for name in _MATCH if match.get(name) is not None}
        lines += [*facts({**shown, "differences": ", ".join(match["differences"]) or "none"}), ""]
        lines += [*_dimensions(match.get("dimensions") or []), ""]
    now = told.get("now")
    remote.tell(told, [*lines, *([] if now is None else _quoted(now))])
    if any(match["differences"] for match in told["matches"]):
        raise typer.Exit(1)


_MATCH = ("lease_id", "node_id", "rule", "considered", "runner_up", "deciding", "recomputed")


def _quoted(told: Mapping[str, Any]) -> list[str]:
    offered = told.get("offered")
    if offered is not None:
        shown = {**offered, "price_per_gpu_hour": amount(offered["price_per_gpu_hour"])}
        shown.pop("expected", None)
        head = facts({**shown, "considered": told["considered"]})
    else:
        head = facts({"match": "none", "impossible": told.get("impossible") or "no"})
        rows = [_of_people(one, one["field"], "offered") for one in told["relaxations"]]
        names = ("field", "required", "offered", "nodes", "distance_ppm")
        head = [*head, "", "One of these alone would give a match:", *columns(rows, names)]
    return [*head, "", *_dimensions(told["dimensions"])]


def _dimensions(told: list[Any]) -> list[str]:
    names = ("dimension", "required", "best_offered", "nodes_left", "nodes_refused")
    rows = [_of_people(one, one["dimension"], "best_offered") for one in told]
    return columns([{"best_offered": "", **one} for one in rows], names)


_PRICES = ("price", "budget", "max_price_per_gpu_hour")
_PARTS = ("reputation", "renter", "min_reputation_ppm", "share_ppm")
"""Demands that are told in millionths of a credit, and in millionths of one."""


def _of_people(told: Mapping[str, Any], demand: str, offered: str) -> dict[str, Any]:
    """A demand with both of its values in people's units."""
    return {**told, **{name: _value(demand, told.get(name)) for name in ("required", offered)}}


def _value(demand: str, text: str | None) -> str | None:
    if text is None or not text.isdigit():
        return text
    if demand in _PRICES:
        return amount({"asset": "CREDIT", "units": text})
    return part(text) if demand in _PARTS else text
