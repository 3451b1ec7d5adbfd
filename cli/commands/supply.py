"""`tallystick provider | node | maintenance`: how GPUs come into the market and stay there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import NodeId, ProviderId, RegionId
from cli.remote import IN_ORDER, Remote, credits_of, lists, ppm_of, reads, records
from cli.terminal import AnswerIsNo, InputUnusable, amount, columns, facts, group, local_time, note
from domain.fleet.condition import Phase

if TYPE_CHECKING:
    from tallystick_client import Client
    from tallystick_client.forms import (
        NodeSetupRequest,
        ProviderKindRequest,
        ProviderRequest,
        RevenueSharesRequest,
    )

provider = group(
    "provider", "Providers: accounts that rent GPUs out.", "tallystick provider register"
)
node = group("node", "Nodes: machines with GPUs.", "tallystick node code REGION")


PaymentMode = Literal["credits", "cash"]
Role = Literal["worker", "ingress", "control"]
Uplink = Literal["corporate_firewall", "internet_provider"]


# --- providers -------------------------------------------------------------------------------


@provider.command("register", epilog="Example: tallystick provider register --payment-mode credits")
@records
def register_provider(
    remote: Remote,
    kind: Annotated[
        str, typer.Option(help="Kind of provider, as `kinds` lists them.")
    ] = "physical",
    payment_mode: Annotated[
        PaymentMode | None,
        typer.Option(help="How the account is paid, if it has not said so before."),
    ] = None,
) -> None:
    """Register your account as a provider, together with how it is paid."""
    body: ProviderRequest = {"kind": kind}
    if payment_mode is not None:
        body["payment_mode"] = payment_mode
    for other in remote.list(lambda c, page: c.list_providers(**page), 3)["data"]:
        note(
            f"warning: your account has the provider {other['provider_id']} already; regions, nodes"
            " and offers can be added to that one"
        )
    told = remote.ask(lambda c: c.register_provider(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@provider.command("kinds", epilog="Example: tallystick provider kinds --json")
@reads
def list_kinds(remote: Remote) -> None:
    """List the kinds of providers, with what a GPU-hour costs there beside the usage fee."""
    told = remote.ask(lambda c: c.list_provider_kinds())
    rows = [{**one, "cost_per_gpu_hour": amount(one["cost_per_gpu_hour"])} for one in told["data"]]
    remote.tell(told, columns(rows, ("kind", "cloud", "cost_per_gpu_hour", "effective_from")))


@provider.command(
    "add-kind",
    epilog="Example: tallystick provider add-kind acme --cost 0.40 --from 2027-01-01T00:00Z",
)
@records
def add_kind(
    remote: Remote,
    kind: Annotated[str, typer.Argument(help="Its name.")],
    cost: Annotated[str, typer.Option(metavar="CREDIT", help="Of its cheapest GPU-hour.")],
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="RFC 3339, with its offset.")
    ],
    cloud: Annotated[
        bool, typer.Option("--cloud", help="Its regions are those of a cloud.")
    ] = False,
) -> None:
    """Register a kind of provider, or a new cost of one, from a date on (operator)."""
    body: ProviderKindRequest = {
        "kind": kind,
        "cloud": cloud,
        "cost_per_gpu_hour": credits_of(cost),
        "effective_from": from_,
    }
    told = remote.ask(lambda c: c.register_provider_kind(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@provider.command("list", epilog="Example: tallystick provider list --json")
@lists(IN_ORDER)
def list_providers(remote: Remote) -> None:
    """List your providers; all of them for operators and auditors."""
    found = remote.list(lambda c, page: c.list_providers(**page))
    names = ("provider_id", "account_id", "kind", "registered_at")
    remote.tell(found, columns(found["data"], names))


@provider.command("show", epilog="Example: tallystick provider show prov_1f0c...")
@reads
def show_provider(remote: Remote, provider_id: ProviderId) -> None:
    """Show one provider."""
    told = remote.ask(lambda c: c.read_provider(provider_id))
    remote.tell(told, facts(told))


# --- nodes -----------------------------------------------------------------------------------


@node.command("code", epilog="Example: tallystick node code region_1f0c...")
@records
def issue_code(
    remote: Remote,
    region_id: RegionId,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="The node is retired with its last lease.")
    ] = False,
) -> None:
    """Print a code that lets one machine join a region, once, within ten minutes.

    On the machine: tallystick-node join URL CODE
    """
    told = remote.ask(
        lambda c: c.create_join_code(
            {"region_id": region_id, "lifetime": "ephemeral" if ephemeral else "permanent"},
            idempotency_key=remote.key,
        )
    )
    lines = [*facts(told), f"On the machine: tallystick-node join {remote.url} {told.get('code')}"]
    remote.tell(told, lines)


@node.command("list", epilog="Example: tallystick node list --region region_1f0c...")
@lists(IN_ORDER)
def list_nodes(
    remote: Remote,
    region_id: Annotated[
        str | None, typer.Option("--region", metavar="REGION", help="Only of this region.")
    ] = None,
    phase: Annotated[Phase | None, typer.Option(help="Only in this phase.")] = None,
) -> None:
    """List your nodes; all of them for operators and auditors."""
    found = remote.list(lambda c, page: c.list_nodes(region_id=region_id, phase=phase, **page))
    rows = [
        {**each, "state": _standing(each), "devices": len(_devices(each))} for each in found["data"]
    ]
    names = ("node_id", "state", "agent", "devices", "region_id", "joined_at")
    remote.tell(found, columns(rows, names))


@node.command("show", epilog="Example: tallystick node show node_1f0c...")
@reads
def show_node(remote: Remote, node_id: NodeId) -> None:
    """Show one node and its devices."""
    told = remote.ask(lambda c: c.read_node(node_id))
    shown = {name: value for name, value in told.items() if name != "specs"}
    lines = facts(_with_verdict(shown))
    lines += columns(_devices(told), ("device_id", "vendor", "model", "memory_mib"))
    remote.tell(told, lines)


@node.command("matches", epilog="Example: tallystick node matches node_1f0c...")
@reads
def show_matches(remote: Remote, node_id: NodeId) -> None:
    """Show how often a node was a candidate for a lease in the last week, and by what it lost."""
    told = remote.ask(lambda c: c.read_node_matches(node_id))
    shown = {name: value for name, value in told.items() if name != "reasons"}
    price = "winning_price_at_most"
    reasons: list[dict[str, Any]] = [dict(each) for each in told["reasons"]]
    rows = [{**each, price: amount(each[price])} if price in each else each for each in reasons]
    lines = facts(shown) + columns(rows, ("reason", "times", price))
    remote.tell(told, lines)


@node.command("trust", epilog="Example: tallystick node trust node_1f0c... --epoch 3")
@reads
def show_trust(
    remote: Remote,
    node_id: NodeId,
    epoch: Annotated[
        int | None, typer.Option(help="Of this epoch; the newest if left out.")
    ] = None,
) -> None:
    """Show the trust tier of each device of a node, and what keeps it from a higher one."""
    told = remote.ask(lambda c: c.read_node_trust(node_id, epoch=epoch))
    lines = [f"epoch: {told.get('epoch', 'none')}"]
    for device in told["devices"]:
        mark = " (simulated)" if device["simulated"] else ""
        lines.append(f"{device['device_id']}: tier {device['tier']}{mark}")
        lines += [
            f"  not tier {one['denies']}: {one['rule']}, {one['detail']}"
            for one in device["findings"]
        ]
    remote.tell(told, lines)


@node.command("usage", epilog="Example: tallystick node usage node_1f0c...")
@reads
def show_usage(remote: Remote, node_id: NodeId) -> None:
    """Show a node's reports, and why some of them earned nothing: report by report, row by row."""
    told = remote.ask(lambda c: c.read_node_usage(node_id))
    lines = [f"{told['reports']} reports, {told['reports_flagged']} of them earn nothing"]
    for one in told["flagged"]:
        cost = "time not readable" if "claimed_us" not in one else _seconds(one["claimed_us"])
        lines.append(f"report {one['seq']}: {one['rule']} ({one['detail']}), {cost}")
    for hour in told["refused"]:
        cost = _seconds(int(hour["microseconds"]))
        until = local_time(hour["until"])
        lines.append(f"{hour['lease_id']} until {until}: {hour['rule']}, {cost}")
        lines += [
            f"  {row['device_id']} {local_time(row['start'])} to {local_time(row['end'])}:"
            f" {_seconds(int(row['microseconds']))} of the report at {row['usage_position']}"
            for row in hour["rows"]
        ]
    remote.tell(told, lines)


def _seconds(us: int) -> str:
    return f"{us // 1_000_000}.{us % 1_000_000:06d} s"


@node.command(
    "confirm", epilog='Example: tallystick node confirm node_1f0c... --fingerprint "3c9b 7f02..."'
)
@records
def confirm_node(
    remote: Remote,
    node_id: NodeId,
    fingerprint: Annotated[str, typer.Option(help="The fingerprint that the machine showed.")],
) -> None:
    """Confirm that the key of a node that asks to join is your machine's own."""
    given = "".join(fingerprint.split()).lower()
    if len(given) != 32 or set(given) - set("0123456789abcdef"):
        raise InputUnusable("--fingerprint: the 32 hex digits that `tallystick-node join` shows")
    known = remote.ask(lambda c: c.read_node(node_id))["fingerprint"]
    if "".join(known.split()) != given:
        raise AnswerIsNo(
            f"the server knows this node by another key, {known}:"
            " another machine joined in its place"
        )
    told = remote.ask(
        lambda c: c.confirm_node(node_id, {"key_id": given[:16]}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(_with_verdict(told)))


def _step(name: str, about: str, call: Callable[[Client, str, str], Any]) -> None:
    """One command that moves a node on and has no content: `call(client, node id, key)`."""

    @records
    def command(remote: Remote, node_id: NodeId) -> None:
        told = remote.ask(lambda client: call(client, node_id, remote.key))
        remote.tell(told, facts(_with_verdict(told)))

    example = f"Example: tallystick node {name} node_1f0c..."
    node.command(name, help=about, epilog=example)(command)


@node.command("admit", epilog="Example: tallystick node admit node_1f0c... --waive tpm_2_0")
@records
def admit_node(
    remote: Remote,
    node_id: NodeId,
    waive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE", help="Hardware rule that the node need not meet; may be repeated."
        ),
    ] = None,
) -> None:
    """Admit a confirmed node (operator; owner where admission is open)."""
    body: Any = {"waive": waive} if waive else {}
    told = remote.ask(lambda c: c.admit_node(node_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(_with_verdict(told)))


def _with_verdict(told: Mapping[str, Any]) -> dict[str, Any]:
    """The verdicts of hardware in the words of a line each."""
    shown = {name: value for name, value in told.items() if name != "verdict"}
    verdict: Mapping[str, Any] | None = told.get("verdict")
    if verdict is None:
        return shown
    waived = [name for name in verdict["failing"] if name in verdict["waived"]]
    failing = [name for name in verdict["failing"] if name not in verdict["waived"]]
    return {
        **shown,
        "joinable": verdict["joinable"],
        "sellable": verdict["sellable"],
        "failing_rules": ", ".join(map(_rule, failing)) or "none",
        "rules_waived_here": ", ".join(map(_rule, waived)) + " (nothing to do)" if waived else None,
    }


def _rule(name: str) -> str:
    """A rule as people name it."""
    return name.replace("_", " ")


_step(
    "activate",
    "Let a node take leases from now on.",
    lambda c, node_id, key: c.activate_node(node_id, {}, idempotency_key=key),
)
_step(
    "maintenance",
    "Let a node take no new leases; running ones go on.",
    lambda c, node_id, key: c.start_maintenance(node_id, {}, idempotency_key=key),
)
_step(
    "retire",
    "Take a node out for good.",
    lambda c, node_id, key: c.retire_node(node_id, {}, idempotency_key=key),
)


@node.command("condition", epilog="Example: tallystick node condition node_1f0c...")
@reads
def show_condition(remote: Remote, node_id: NodeId) -> None:
    """Show whether a node is fit for work, its last error, and what its owner states."""
    told = remote.ask(lambda c: c.read_node_condition(node_id))
    remote.tell(told, facts(told))


@node.command("neighbours", epilog="Example: tallystick node neighbours node_1f0c...")
@reads
def show_neighbours(remote: Remote, node_id: NodeId) -> None:
    """Show which nodes of its region a node reaches on private addresses."""
    told = remote.ask(lambda c: c.read_neighbours(node_id))
    remote.tell(told, facts(told))


@node.command("stop", epilog="Example: tallystick node stop node_1f0c...")
@records
def stop_node(remote: Remote, node_id: NodeId) -> None:
    """Record that a machine is turned off. It comes back by way of maintenance."""
    told = remote.ask(lambda c: c.stop_node(node_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@node.command("fail", epilog='Example: tallystick node fail node_1f0c... "fan broken"')
@records
def fail_node(
    remote: Remote,
    node_id: NodeId,
    error: Annotated[str, typer.Argument(help="What is wrong with it.")],
) -> None:
    """Mark a node as failed until it is repaired."""
    told = remote.ask(lambda c: c.fail_node(node_id, {"error": error}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@node.command("setup", epilog="Example: tallystick node setup node_1f0c... --exclusive-access")
@records
def state_setup(
    remote: Remote,
    node_id: NodeId,
    uplink: Annotated[Uplink | None, typer.Option(help="What the machine is behind.")] = None,
    upnp: Annotated[bool | None, typer.Option("--upnp/--no-upnp", help="UPnP on or off.")] = None,
    exclusive_access: Annotated[
        bool, typer.Option("--exclusive-access", help="Used through the market only.")
    ] = False,
) -> None:
    """State how your machine is set up. The server does not check it and tells it as stated."""
    body: NodeSetupRequest = {"exclusive_access": exclusive_access}
    if uplink is not None:
        body["uplink"] = uplink
    if upnp is not None:
        body["upnp"] = upnp
    told = remote.ask(lambda c: c.state_node_setup(node_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@node.command("mining", epilog="Example: tallystick node mining node_1f0c... --on")
@records
def set_mining(
    remote: Remote,
    node_id: NodeId,
    on: Annotated[bool, typer.Option("--on/--off", help="Mine while no lease runs on it.")],
) -> None:
    """Set whether your machine mines while no lease runs on it. It needs a wallet that is paid."""
    told = remote.ask(
        lambda c: c.set_idle_mining(node_id, {"enabled": on}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@node.command("revoke", epilog="Example: tallystick node revoke node_1f0c...")
@records
def revoke_node_key(
    remote: Remote,
    node_id: NodeId,
    key_id: Annotated[
        str | None,
        typer.Option("--key", metavar="KEY", help="A present or former key of the node."),
    ] = None,
) -> None:
    """Revoke a lost or stolen key. The server rejects the node's reports until it joins again."""
    known = key_id or remote.ask(lambda c: c.read_node(node_id))["key_id"]
    told = remote.ask(
        lambda c: c.revoke_node_key(node_id, {"key_id": known}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@node.command("drain", epilog="Example: tallystick node drain node_1f0c... --keep-leases")
@records
def drain(
    remote: Remote,
    node_id: NodeId,
    keep_leases: Annotated[
        bool, typer.Option("--keep-leases", help="Do not reclaim running leases.")
    ] = False,
) -> None:
    """Drain a node: no new leases, and leases with a reclaim window are reclaimed."""
    body: Any = {"keep_leases": keep_leases}
    told = remote.ask(lambda c: c.drain_node(node_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@node.command("owners", epilog="Example: tallystick node owners node_1f0c...")
@reads
def list_owners(remote: Remote, node_id: NodeId) -> None:
    """List the owners that share what the node earns; its provider owns the rest."""
    remote.tell(*_owners(remote.ask(lambda c: c.read_revenue_shares(node_id))))


@node.command(
    "set-owners", epilog="Example: tallystick node set-owners node_1f0c... acct_2a...=0.25"
)
@records
def set_owners(
    remote: Remote,
    node_id: NodeId,
    shares: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ACCOUNT=PART]...", help="Parts of 1; none: the provider alone."),
    ] = None,
) -> None:
    """Split what your node earns among its owners, for leases reserved from now on."""
    named = [one.partition("=") for one in shares or []]
    body: RevenueSharesRequest = {
        "shares": [{"account_id": who, "share_ppm": ppm_of(part)} for who, _, part in named]
    }
    told = remote.ask(lambda c: c.set_revenue_shares(node_id, body, idempotency_key=remote.key))
    remote.tell(*_owners(told))


@node.command("leave-owners", epilog="Example: tallystick node leave-owners node_1f0c...")
@records
def leave_owners(remote: Remote, node_id: NodeId) -> None:
    """Give up your share of a node of another provider, for leases reserved from now on."""
    told = remote.ask(lambda c: c.release_revenue_shares(node_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@node.command("transfer", epilog="Example: tallystick node transfer node_1f0c... acct_2a...")
@records
def transfer(
    remote: Remote,
    node_id: NodeId,
    account_id: Annotated[str, typer.Argument(metavar="ACCOUNT", help="The new owner.")],
) -> None:
    """Offer your part of a node to another account, which accepts within seven days."""
    told = remote.ask(
        lambda c: c.create_node_transfer(
            node_id, {"account_id": account_id}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@node.command("accept-transfer", epilog="Example: tallystick node accept-transfer node_1f0c...")
@records
def accept_transfer(remote: Remote, node_id: NodeId) -> None:
    """Accept a part of a node that its owner offered you. Drain the node first."""
    told = remote.ask(lambda c: c.accept_node_transfer(node_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


def _owners(told: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    rest = {"account_id": "the provider", "share_ppm": told["provider_ppm"]}
    return told, columns([*told["shares"], rest], ("account_id", "share_ppm"))


@node.command("role", epilog="Example: tallystick node role node_1f0c... worker --ingress node_9a")
@records
def role(
    remote: Remote,
    node_id: NodeId,
    role: Annotated[Role, typer.Argument(help="What the node is for.")],
    ingress: Annotated[
        str | None, typer.Option(metavar="NODE", help="The node a worker is reached through.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Of an ingress, for its workers.")
    ] = None,
) -> None:
    """Set the role of a node: worker, ingress or control. Only workers are leased."""
    body: Any = {"role": role, "ingress_node_id": ingress, "address": address}
    told = remote.ask(lambda c: c.set_node_role(node_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


def _standing(told: Mapping[str, Any]) -> str:
    """Where a node stands, in a word: a key taken back outweighs a state nobody can leave."""
    if told["phase"] != "retired" and told["quarantined"]:
        return "revoked" if told.get("revoked") else "quarantined"
    return "draining" if told["phase"] == "draining" else str(told["state"])


def _devices(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    specs: dict[str, Any] = told.get("specs") or {}
    devices: list[dict[str, Any]] = specs.get("devices") or []
    return devices


# --- maintenance -------------------------------------------------------------------------------

maintenance = group(
    "maintenance", "Maintenance of nodes, announced ahead.", "tallystick maintenance list NODE"
)

Kind = Literal["planned", "emergency", "security", "network", "capacity"]
_SHOWN = ("maintenance_id", "kind", "status", "from", "until", "keep_leases")


@maintenance.command(
    "schedule",
    epilog="Example: tallystick maintenance schedule node_1f0c... --from 2026-12-01T02:00:00Z"
    " --until 2026-12-01T04:00:00Z --keep-leases",
)
@records
def schedule(
    remote: Remote,
    node_id: NodeId,
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="RFC 3339, with its offset.")
    ],
    until: Annotated[str, typer.Option(metavar="TIME", help="At most 7 days later.")],
    kind: Annotated[Kind, typer.Option(help="Why.")] = "planned",
    keep_leases: Annotated[
        bool, typer.Option("--keep-leases", help="Running leases go silent and come back.")
    ] = False,
) -> None:
    """Schedule maintenance of a node. No lease is reserved over that time."""
    body: Any = {"kind": kind, "from": from_, "until": until, "keep_leases": keep_leases}
    told = remote.ask(lambda c: c.schedule_maintenance(node_id, body, idempotency_key=remote.key))
    remote.tell(told, facts({name: told.get(name) for name in _SHOWN}))


@maintenance.command("list", epilog="Example: tallystick maintenance list node_1f0c...")
@lists(IN_ORDER)
def list_maintenances(remote: Remote, node_id: NodeId) -> None:
    """List the announced maintenance of a node."""
    found = remote.list(lambda c, page: c.list_maintenances(node_id, **page))
    remote.tell(found, columns(found["data"], _SHOWN))


@maintenance.command(
    "cancel", epilog="Example: tallystick maintenance cancel node_1f0c... maint_2a..."
)
@records
def cancel(
    remote: Remote,
    node_id: NodeId,
    maintenance_id: Annotated[str, typer.Argument(metavar="MAINTENANCE", help="maint_...")],
) -> None:
    """Cancel maintenance that is announced, or end one that runs."""
    told = remote.ask(
        lambda c: c.cancel_maintenance(node_id, maintenance_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, facts({name: told.get(name) for name in _SHOWN}))
