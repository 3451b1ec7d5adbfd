"""`tallystick provider | region | node`: how GPUs come into the market. Thin clients of the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url
from api.cli_terminal import AnswerIsNo, AsJson, InputUnusable, columns, facts, group, tell

if TYPE_CHECKING:
    from api.client import Client, NewRegion

provider = group("Providers: who rents GPUs out.", "tallystick provider register")
region = group(
    "Regions: where a provider's nodes are.", "tallystick region open PROVIDER --name lab-1"
)
node = group("Nodes: machines with GPUs.", "tallystick node code REGION")

ProviderId = Annotated[str, typer.Argument(metavar="PROVIDER", help="prov_...")]
RegionId = Annotated[str, typer.Argument(metavar="REGION", help="region_...")]
NodeId = Annotated[str, typer.Argument(metavar="NODE", help="node_...")]


ProviderKind = Literal["physical", "gcp"]
StorageMode = Literal["local", "central"]
Setting = Literal["edge", "datacenter"]
Admission = Literal["operator", "permissionless"]


# --- providers -------------------------------------------------------------------------------


@provider.command("register", epilog="Example: tallystick provider register --kind physical")
def register_provider(
    kind: Annotated[ProviderKind, typer.Option(help="Whose machines.")] = "physical",
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Register your account as a provider."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.register_provider({"kind": kind}, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


@provider.command("list", epilog="Example: tallystick provider list --json")
def list_providers(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Your providers; all of them for operators and auditors."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_providers(limit=size, cursor=cursor), limit
    )
    names = ("provider_id", "account_id", "kind", "registered_at")
    tell(found, columns(found["data"], names), as_json=as_json)


@provider.command("show", epilog="Example: tallystick provider show prov_1f0c...")
def show_provider(
    provider_id: ProviderId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """One provider."""
    told = Remote(url, api_key).ask(lambda c: c.read_provider(provider_id))
    tell(told, facts(told), as_json=as_json)


# --- regions ---------------------------------------------------------------------------------


@region.command("open", epilog="Example: tallystick region open prov_1f0c... --name lab-1")
def open_region(
    provider_id: ProviderId,
    name: Annotated[str, typer.Option(help="Short name, like lab-1.")],
    storage_mode: Annotated[
        StorageMode, typer.Option("--storage", help="Never changes.")
    ] = "local",
    setting: Annotated[Setting, typer.Option(help="What kind of place.")] = "datacenter",
    admission: Annotated[Admission, typer.Option(help="Who lets nodes in.")] = "operator",
    private: Annotated[
        bool, typer.Option("--private", help="For the provider's own jobs only.")
    ] = False,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Open a region of one of your providers."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: NewRegion = {
        "provider_id": provider_id,
        "name": name,
        "storage_mode": storage_mode,
        "setting": setting,
        "admission": admission,
        "allow_public_jobs": not private,
    }
    told = remote.ask(lambda c: c.open_region(body, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


@region.command("list", epilog="Example: tallystick region list")
def list_regions(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Your regions; all of them for operators and auditors."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_regions(limit=size, cursor=cursor), limit
    )
    names = ("region_id", "name", "provider_id", "setting", "admission", "allow_public_jobs")
    tell(found, columns(found["data"], names), as_json=as_json)


@region.command("show", epilog="Example: tallystick region show region_1f0c...")
def show_region(
    region_id: RegionId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """One region."""
    told = Remote(url, api_key).ask(lambda c: c.read_region(region_id))
    tell(told, facts(told), as_json=as_json)


# --- nodes -----------------------------------------------------------------------------------


@node.command("code", epilog="Example: tallystick node code region_1f0c...")
def issue_code(
    region_id: RegionId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """A code that lets one machine join a region, once, within ten minutes.

    On the machine: tallystick-node join URL CODE
    """
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.create_join_code({"region_id": region_id}, idempotency_key=remote.key)
    )
    lines = [*facts(told), f"On the machine: tallystick-node join {remote.url} {told.get('code')}"]
    tell(told, lines, as_json=as_json)


@node.command("list", epilog="Example: tallystick node list --region region_1f0c...")
def list_nodes(
    region_id: Annotated[
        str | None, typer.Option("--region", metavar="REGION", help="Only of this region.")
    ] = None,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Your nodes; all of them for operators and auditors."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_nodes(region_id=region_id, limit=size, cursor=cursor), limit
    )
    rows = [{**each, "devices": len(_devices(each))} for each in found["data"]]
    names = ("node_id", "phase", "quarantined", "devices", "region_id", "joined_at")
    tell(found, columns(rows, names), as_json=as_json)


@node.command("show", epilog="Example: tallystick node show node_1f0c...")
def show_node(
    node_id: NodeId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """One node and its devices."""
    told = Remote(url, api_key).ask(lambda c: c.read_node(node_id))
    shown = {name: value for name, value in told.items() if name != "specs"}
    lines = facts(shown)
    lines += columns(_devices(told), ("device_id", "vendor", "model", "memory_mib"))
    tell(told, lines, as_json=as_json)


@node.command(
    "confirm", epilog='Example: tallystick node confirm node_1f0c... --fingerprint "3c9b 7f02..."'
)
def confirm_node(
    node_id: NodeId,
    fingerprint: Annotated[str, typer.Option(help="As the machine itself showed it.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Say that the key of a node that asks to join is your machine's own."""
    remote = Remote(url, api_key, key=idempotency_key)
    given = "".join(fingerprint.split()).lower()
    if len(given) != 32 or set(given) - set("0123456789abcdef"):
        raise InputUnusable("--fingerprint: the 32 hex digits that `tallystick-node join` shows")
    known = remote.ask(lambda c: c.read_node(node_id))["fingerprint"]
    if "".join(known.split()) != given:
        raise AnswerIsNo(
            f"the server knows this node by another key, {known}: somebody else joined in its place"
        )
    told = remote.ask(
        lambda c: c.confirm_node(node_id, {"key_id": given[:16]}, idempotency_key=remote.key)
    )
    tell(told, facts(told), as_json=as_json)


def _step(name: str, about: str, call: Callable[[Client, str, str], Any]) -> None:
    """One command that moves a node on and has no content: `call(client, node id, key)`."""

    def command(
        node_id: NodeId,
        url: Url = None,
        api_key: ApiKey = None,
        idempotency_key: IdempotencyKey = None,
        as_json: AsJson = False,
    ) -> None:
        remote = Remote(url, api_key, key=idempotency_key)
        told = remote.ask(lambda client: call(client, node_id, remote.key))
        tell(told, facts(told), as_json=as_json)

    example = f"Example: tallystick node {name} node_1f0c..."
    node.command(name, help=about, epilog=example)(command)


_step(
    "admit",
    "Let a confirmed node in (operator; owner where admission is open).",
    lambda c, node_id, key: c.admit_node(node_id, {}, idempotency_key=key),
)
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


def _devices(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    specs: dict[str, Any] = told.get("specs") or {}
    devices: list[dict[str, Any]] = specs.get("devices") or []
    return devices
