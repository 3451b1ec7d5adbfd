"""`tallystick meter | device | storage`: what is metered beside GPUs. Thin clients of the API."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url
from api.cli_terminal import AnswerIsNo, AsJson, InputUnusable, columns, facts, group, tell

if TYPE_CHECKING:
    from api.client import Client

meter = group("Meters: CPU, memory, storage and network of leases.", "tallystick meter list")
device = group("Edge devices, which pay by the month.", "tallystick device list")
storage = group("Storage nodes of regions.", "tallystick storage show region_1f0c...")

RegionId = Annotated[str, typer.Argument(metavar="REGION", help="region_...")]
BATCH = 1_000
FILE_BYTES_MAX = 64 * 1024 * 1024
Model = Literal[
    "jetson-agx-xavier", "jetson-xavier-nx", "jetson-agx-orin", "jetson-orin-nx",
    "jetson-orin-nano",
]  # fmt: skip


# --- meters ----------------------------------------------------------------------------------


@meter.command("send", epilog="Example: tallystick meter send events.json")
def send(
    file: Annotated[Path, typer.Argument(help="A JSON list of CloudEvents, or one; - for stdin.")],
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Send metered usage. Sending it again changes nothing; what is refused is named."""
    events = _events(file)
    remote = Remote(url, api_key)
    told: dict[str, Any] = {"accepted": 0, "duplicate": 0, "rejected": []}
    for first in range(0, len(events), BATCH):
        batch = events[first : first + BATCH]
        answer: Any = remote.ask(partial(_send, batch))
        told["accepted"] += answer["accepted"]
        told["duplicate"] += answer["duplicate"]
        told["rejected"] += [{**one, "index": one["index"] + first} for one in answer["rejected"]]
    lines = [f"{told['accepted']} accepted, {told['duplicate']} known already"]
    lines += columns(told["rejected"], ("index", "code", "detail"))
    tell(told, lines, as_json=as_json)
    if told["rejected"]:
        raise AnswerIsNo(f"{len(told['rejected'])} of {len(events)} events are refused")


def _send(batch: list[Any], client: Client) -> Any:
    return client.report_usage_events(batch)


def _events(file: Path) -> list[Any]:
    """Raises InputUnusable."""
    try:
        raw = sys.stdin.buffer.read(FILE_BYTES_MAX + 1) if str(file) == "-" else file.read_bytes()
        if len(raw) > FILE_BYTES_MAX:
            raise InputUnusable(f"{file}: more than {FILE_BYTES_MAX} bytes")
        found = json.loads(raw)
    except (OSError, ValueError, RecursionError) as error:
        raise InputUnusable(f"{file}: {error}") from None
    events: list[Any] = found if isinstance(found, list) else [found]
    if not events:
        raise InputUnusable(f"{file}: no events")
    return events


_SHOWN = ("position", "state", "reason", "lease_id", "meter", "quantity", "from", "to")


@meter.command("list", epilog="Example: tallystick meter list --lease lease_1f0c...")
def list_events(
    lease_id: Annotated[
        str | None, typer.Option("--lease", metavar="LEASE", help="All events of this lease.")
    ] = None,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Events you sent, or those of a lease, and what became of each."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_usage_events(lease_id=lease_id, limit=size, cursor=cursor),
        limit,
    )
    tell(found, columns(found["data"], _SHOWN), as_json=as_json)


@meter.command("unmatched", epilog="Example: tallystick meter unmatched --json")
def list_unmatched(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Events of yours that count for nothing, each with its reason."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_unmatched_usage(limit=size, cursor=cursor), limit
    )
    tell(found, columns(found["data"], _SHOWN), as_json=as_json)


@meter.command("show", epilog="Example: tallystick meter show lease_1f0c...")
def show_lease(
    lease_id: Annotated[str, typer.Argument(metavar="LEASE", help="lease_...")],
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """What each meter of a lease counts and costs."""
    told = Remote(url, api_key).ask(lambda c: c.list_lease_resources(lease_id))
    rows = [{**one, "charge": one["charge"]["units"]} for one in told["resources"]]
    names = ("meter", "quantity", "unit", "charge", "events", "accrued_at")
    tell(told, columns(rows, names), as_json=as_json)


# --- edge devices ----------------------------------------------------------------------------


@device.command("add", epilog="Example: tallystick device add region_1f0c... jetson-orin-nano")
def add_device(
    region_id: RegionId,
    model: Annotated[Model, typer.Argument(help="What it is.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Configure an edge device; each add is a new device, charged from today on."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.add_edge_device(
            {"region_id": region_id, "model": model}, idempotency_key=remote.key
        )
    )
    tell(told, facts(told), as_json=as_json)


@device.command("remove", epilog="Example: tallystick device remove edge_1f0c...")
def remove_device(
    device_id: Annotated[str, typer.Argument(metavar="DEVICE", help="edge_...")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Remove an edge device; today is still charged."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.remove_edge_device(device_id, {}, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


@device.command("list", epilog="Example: tallystick device list --json")
def list_devices(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Edge devices, removed ones too."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_edge_devices(limit=size, cursor=cursor), limit
    )
    names = ("device_id", "model", "region_id", "first_day", "last_day")
    tell(found, columns(found["data"], names), as_json=as_json)


# --- storage nodes ---------------------------------------------------------------------------


@storage.command("provision", epilog="Example: tallystick storage provision region_1f0c... pd-ssd")
def provision_storage(
    region_id: RegionId,
    storage_class: Annotated[str, typer.Argument(metavar="CLASS", help="As the cloud names it.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Ask for a region's storage node. It runs always: a commitment with the cloud is cheaper."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.provision_storage_node(
            region_id, {"storage_class": storage_class}, idempotency_key=remote.key
        )
    )
    tell(told, facts(told), as_json=as_json)


@storage.command("ready", epilog="Example: tallystick storage ready region_1f0c...")
def ready_storage(
    region_id: RegionId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Say that a storage node serves (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.confirm_storage_node(region_id, {}, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


@storage.command("remove", epilog="Example: tallystick storage remove region_1f0c...")
def remove_storage(
    region_id: RegionId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Remove a region's storage node; it is charged up to now."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.remove_storage_node(region_id, {}, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


@storage.command("show", epilog="Example: tallystick storage show region_1f0c...")
def show_storage(
    region_id: RegionId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """The storage nodes of a region and what they have cost."""
    told = Remote(url, api_key).ask(lambda c: c.read_storage_node(region_id))
    rows = [{**one, "charge": one["charge"]["units"]} for one in told["storage_nodes"]]
    names = ("sequence", "storage_class", "provisioned_at", "removed_at", "charge")
    tell(told, columns(rows, names), as_json=as_json)
