"""`tallystick client | group | project | counterparty | webhook`: who asks, and who is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import AccountId, OwnAccount
from cli.remote import IN_ORDER, Remote, lists, part_of, reads, records
from cli.terminal import EXIT_NO, InputUnusable, columns, facts, group, note

if TYPE_CHECKING:
    from tallystick_client.forms import (
        ClientPolicyRequest,
        ClientQuotaRequest,
        ComputeClientRequest,
        QuotaGroupRequest,
    )

client = group("client", "Compute clients and their instances.", "tallystick client show ACCOUNT")
groups = group("group", "Groups that share a quota of GPUs.", "tallystick group list")
project = group(
    "project", "Projects: what to do when a quota is full.", "tallystick project list ACCOUNT"
)
counterparty = group(
    "counterparty",
    "Counterparties: accounts to deal with or not.",
    "tallystick counterparty list ACCOUNT",
)

ClientId = Annotated[str, typer.Argument(metavar="CLIENT", help="acct_... of the client.")]
GroupId = Annotated[str, typer.Argument(metavar="GROUP", help="group_...")]
MemberKind = Literal["project", "member", "account"]
Gpus = Annotated[
    str | None,
    typer.Option(metavar="GPUS", help="GPUs at once, like 16 or 0.5; default: no limit."),
]
GPU_PPM = 1_000_000


# --- clients -----------------------------------------------------------------------------------


@client.command("register", epilog="Example: tallystick client register acct_1f0c...")
@records
def register_client(
    remote: Remote,
    client_id: ClientId,
    min_reputation: Annotated[
        str | None,
        typer.Option(
            metavar="SCORE", help="Reputation of the nodes that run its jobs, at least, like 0.9."
        ),
    ] = None,
) -> None:
    """Allow an account of the kind client to bring jobs (operator)."""
    body: ComputeClientRequest = {"client_id": client_id}
    if min_reputation is not None:
        body["min_reputation_ppm"] = part_of(min_reputation)
    told = remote.ask(lambda c: c.register_client(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@client.command("list", epilog="Example: tallystick client list --json")
@lists(IN_ORDER)
def list_clients(remote: Remote) -> None:
    """List compute clients: yourself, or all for operators and auditors."""
    found = remote.list(lambda c, page: c.list_clients(**page))
    names = ("client_id", "suspended", "min_reputation_ppm", "registered_at")
    remote.tell(found, columns(found["data"], names))


@client.command("show", epilog="Example: tallystick client show acct_1f0c...")
@reads
def show_client(remote: Remote, client_id: ClientId) -> None:
    """Show the keys of a client's instances."""
    told = remote.ask(lambda c: c.read_client(client_id))
    names = ("instance_id", "key_id", "bound_at", "revoked_at")
    remote.tell(told, columns(told.get("keys", []), names))


@client.command("key", epilog="Example: tallystick client key acct_1f0c... ci")
@records
def add_key(
    remote: Remote,
    client_id: ClientId,
    instance: Annotated[
        str, typer.Argument(metavar="INSTANCE", help="Your own name for the instance.")
    ],
) -> None:
    """Issue a key for an instance of a client and print it, once."""
    told = remote.ask(
        lambda c: c.add_client_key(client_id, instance, {}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))
    note("The key is not kept anywhere: give it to the instance now.")


@client.command("revoke", epilog="Example: tallystick client revoke acct_1f0c... 1a2b3c4d")
@reads
def revoke_key(
    remote: Remote,
    client_id: ClientId,
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Its 8 public characters.")],
) -> None:
    """Revoke the key of an instance at once."""
    told = remote.ask(lambda c: c.revoke_client_key(client_id, key_id))
    remote.tell(told, facts(told))


@client.command("suspend", epilog="Example: tallystick client suspend acct_1f0c...")
@records
def suspend_client(
    remote: Remote,
    client_id: ClientId,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the client.")] = False,
) -> None:
    """Suspend a client: nothing is submitted for it until it is resumed (operator)."""
    told = remote.ask(
        lambda c: (c.resume_client if resume else c.suspend_client)(
            client_id, {}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@client.command("floor", epilog="Example: tallystick client floor acct_1f0c... 0.6")
@records
def set_client_floor(
    remote: Remote,
    client_id: ClientId,
    part: Annotated[
        str | None, typer.Argument(metavar="PART", help="Of 1; without it there is no floor.")
    ] = None,
) -> None:
    """Set the lowest reputation that a node needs for any job of a client."""
    body: ClientPolicyRequest = {"min_reputation_ppm": None if part is None else part_of(part)}
    told = remote.ask(lambda c: c.set_client_policy(client_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@client.command("quota", epilog="Example: tallystick client quota acct_1f0c... --gpus 64")
@records
def set_client_quota(
    remote: Remote,
    client_id: ClientId,
    gpus: Gpus = None,
    pool: Annotated[
        str | None, typer.Option(help="Only in this pool; default: in all pools.")
    ] = None,
) -> None:
    """Set how many GPUs a client holds at once (operator)."""
    body: ClientQuotaRequest = {"pool_id": pool, "gpu_ppm_max": _gpu_ppm(gpus)}
    told = remote.ask(lambda c: c.set_client_quota(client_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


# --- groups ------------------------------------------------------------------------------------


@groups.command("create", epilog="Example: tallystick group create --gpus 16")
@records
def create_group(
    remote: Remote,
    gpus: Gpus = None,
    parent: Annotated[str | None, typer.Option(help="The group it is part of.")] = None,
    pool: Annotated[
        str | None, typer.Option(help="A group of accounts in a pool of yours.")
    ] = None,
) -> None:
    """Create a group that shares a quota of GPUs."""
    body: QuotaGroupRequest = {"pool_id": pool, "parent_id": parent, "gpu_ppm_max": _gpu_ppm(gpus)}
    told = remote.ask(lambda c: c.create_group(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@groups.command("list", epilog="Example: tallystick group list --json")
@lists(IN_ORDER)
def list_groups(remote: Remote) -> None:
    """List your groups, with the GPUs they hold and may hold."""
    found = remote.list(lambda c, page: c.list_groups(**page))
    names = ("group_id", "parent_id", "pool_id", "used_ppm", "gpu_ppm_max", "created_at")
    remote.tell(found, columns(found["data"], names))


@groups.command("show", epilog="Example: tallystick group show group_1f0c...")
@reads
def show_group(remote: Remote, group_id: GroupId) -> None:
    """Show the members of a group."""
    told = remote.ask(lambda c: c.read_group(group_id))
    remote.tell(told, columns(told.get("members", []), ("kind", "target", "since")))


@groups.command("quota", epilog="Example: tallystick group quota group_1f0c... --gpus 8")
@records
def set_quota(remote: Remote, group_id: GroupId, gpus: Gpus = None) -> None:
    """Change how many GPUs a group holds at once; without --gpus there is no limit."""
    told = remote.ask(
        lambda c: c.set_group_quota(
            group_id, {"gpu_ppm_max": _gpu_ppm(gpus)}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@groups.command("add", epilog="Example: tallystick group add group_1f0c... project train-7b")
@records
def add_member(
    remote: Remote,
    group_id: GroupId,
    kind: Annotated[
        MemberKind, typer.Argument(help="What to add: a project, a member or an account.")
    ],
    target: Annotated[str, typer.Argument(help="Its name or id.")],
    remove: Annotated[bool, typer.Option("--remove", help="Remove the member.")] = False,
) -> None:
    """Add a member: its later leases count in the group. With --remove they stop counting."""
    told = remote.ask(
        lambda c: (c.remove_group_member if remove else c.add_group_member)(
            group_id, {"kind": kind, "target": target}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


def _gpu_ppm(gpus: str | None) -> int | None:
    """GPUs as people write them, in ppm. Raises InputUnusable."""
    if gpus is None:
        return None
    whole, _, part = gpus.partition(".")
    if not (whole + part).isascii() or not (whole + part).isdecimal() or len(part) > 6:
        raise InputUnusable(f"GPUs are a number like 16 or 0.5, not {gpus!r}")
    return int(whole or "0") * GPU_PPM + int(part.ljust(6, "0"))


# --- projects and counterparties ---------------------------------------------------------------


@project.command("overflow", epilog="Example: tallystick project overflow ACCOUNT train-7b rent")
@records
def set_overflow(
    remote: Remote,
    account_id: AccountId,
    project_id: Annotated[
        str, typer.Argument(metavar="PROJECT", help="Label of the project, as on its leases.")
    ],
    overflow: Annotated[
        Literal["refuse", "rent"], typer.Argument(help="What happens when a quota is full.")
    ],
) -> None:
    """Set what happens to a lease of a project when a quota or your own nodes are full.

    refuse: the lease is refused. rent: the lease runs on a node of another provider, and no quota
    counts it.
    """
    told = remote.ask(
        lambda c: c.set_project_policy(
            account_id, {"project_id": project_id, "overflow": overflow}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@project.command("list", epilog="Example: tallystick project list acct_1f0c...")
@reads
def list_projects(remote: Remote, account_id: OwnAccount = None) -> None:
    """List projects with an overflow policy; requests of all others are refused."""
    who = remote.own(account_id)
    told = remote.ask(lambda c: c.list_project_policies(who))
    remote.tell(told, columns(told["data"], ("project_id", "overflow")))


@counterparty.command("set", epilog="Example: tallystick counterparty set ACCOUNT OTHER deny")
@records
def set_counterparty(
    remote: Remote,
    account_id: AccountId,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="acct_... of the other account.")],
    verdict: Annotated[
        Literal["allow", "deny", "none"],
        typer.Argument(help="allow, deny, or none to remove the entry."),
    ],
) -> None:
    """Put an account on a counterparty list, or remove it."""
    told = remote.ask(
        lambda c: c.set_counterparty(
            account_id, {"counterparty_id": other, "verdict": verdict}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@counterparty.command("list", epilog="Example: tallystick counterparty list acct_1f0c...")
@lists(IN_ORDER)
def list_counterparties(remote: Remote, account_id: OwnAccount = None) -> None:
    """List the accounts that an account allows and denies."""
    who = remote.own(account_id)
    found = remote.list(lambda c, page: c.list_counterparties(who, **page))
    names = ("counterparty_id", "verdict", "since")
    remote.tell(found, columns(found["data"], names))


# --- webhook -----------------------------------------------------------------------------------

webhook = group(
    "webhook", "Webhooks: events of your account, sent to your endpoint.", "tallystick webhook list"
)

EndpointId = Annotated[str, typer.Argument(metavar="ENDPOINT", help="hook_...")]
_NAMES = ("endpoint_id", "enabled", "disabled_reason", "url", "types")


@webhook.command("add", epilog="Example: tallystick webhook add https://a.example --type lease.")
@records
def add(
    remote: Remote,
    endpoint: Annotated[str, typer.Argument(metavar="URL", help="https, port 443 or 8443.")],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", help="Only facts with names that begin with this; may be repeated."),
    ] = None,
) -> None:
    """Add an endpoint. The answer shows its secret, this once."""
    body: Any = {"url": endpoint, "types": types or []}
    told = remote.ask(lambda c: c.add_webhook(body, idempotency_key=remote.key))
    remote.tell(told, facts({**told, "types": ", ".join(told["types"]) or "all"}))


@webhook.command("list", epilog="Example: tallystick webhook list --json")
@lists(IN_ORDER)
def list_endpoints(remote: Remote) -> None:
    """List your endpoints."""
    found = remote.list(lambda c, page: c.list_webhooks(**page))
    rows = [{**row, "types": ", ".join(row["types"]) or "all"} for row in found["data"]]
    remote.tell(found, columns(rows, _NAMES))


@webhook.command("stop", epilog="Example: tallystick webhook stop hook_1f0c...")
@records
def stop(remote: Remote, endpoint_id: EndpointId) -> None:
    """Stop deliveries to an endpoint."""
    told = remote.ask(lambda c: c.stop_webhook(endpoint_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts({name: told.get(name) for name in _NAMES[:3]}))


@webhook.command("start", epilog="Example: tallystick webhook start hook_1f0c...")
@records
def start(remote: Remote, endpoint_id: EndpointId) -> None:
    """Start deliveries to an endpoint again, from where they were stopped."""
    told = remote.ask(lambda c: c.start_webhook(endpoint_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts({name: told.get(name) for name in _NAMES[:3]}))


@webhook.command("rotate", epilog="Example: tallystick webhook rotate hook_1f0c...")
@records
def rotate(remote: Remote, endpoint_id: EndpointId) -> None:
    """Create a new secret, shown this once. The old one signs beside it for 24 hours."""
    told = remote.ask(lambda c: c.rotate_webhook(endpoint_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts({"endpoint_id": endpoint_id, "secret": told.get("secret")}))


@webhook.command("test", epilog="Example: tallystick webhook test hook_1f0c...")
@reads
def send_test(remote: Remote, endpoint_id: EndpointId) -> None:
    """Send `webhook.test` now. Exit 1 when the endpoint did not accept it."""
    told = remote.ask(lambda c: c.test_webhook(endpoint_id, {}))
    remote.tell(told, facts(dict(told)))
    if not told["delivered"]:
        raise typer.Exit(EXIT_NO)


@webhook.command("replay", epilog="Example: tallystick webhook replay hook_1f0c... 120 180")
@reads
def replay(
    remote: Remote,
    endpoint_id: EndpointId,
    first: Annotated[int, typer.Argument(metavar="FROM", min=1, help="A position of the log.")],
    last: Annotated[int, typer.Argument(metavar="TO", min=1, help="The last one, included.")],
) -> None:
    """Deliver events to an endpoint again, delivered ones and given-up ones."""
    body: Any = {"from_position": first, "to_position": last}
    told = remote.ask(lambda c: c.replay_webhook(endpoint_id, body))
    remote.tell(told, facts(dict(told)))


@webhook.command("deliveries", epilog="Example: tallystick webhook deliveries hook_1f0c...")
@lists(IN_ORDER)
def deliveries(remote: Remote, endpoint_id: EndpointId) -> None:
    """List the deliveries of each fact and their results."""
    found = remote.list(lambda c, page: c.list_deliveries(endpoint_id, **page))
    names = ("position", "outcome", "attempts", "answer", "error", "next_at")
    remote.tell(found, columns(found["data"], names))
