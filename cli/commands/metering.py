"""`tallystick meter | device | storage`: what is metered beside GPUs. Thin clients of the API."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import LeaseId, RegionId
from cli.remote import Limit, Remote, reads, records
from cli.terminal import AnswerIsNo, InputUnusable, columns, facts, group

if TYPE_CHECKING:
    from tallystick_client import Client

meter = group(
    "meter", "Meters: CPU, memory, storage and network of leases.", "tallystick meter list"
)
device = group("device", "Edge devices, which pay by the month.", "tallystick device list")
storage = group("storage", "Storage nodes of regions.", "tallystick storage show region_1f0c...")

BATCH = 1_000
FILE_BYTES_MAX = 64 * 1024 * 1024
Model = Literal[
    "jetson-agx-xavier", "jetson-xavier-nx", "jetson-agx-orin", "jetson-orin-nx", "jetson-orin-nano"
]


# --- meters ----------------------------------------------------------------------------------


@meter.command("send", epilog="Example: tallystick meter send events.json")
@reads
def send(
    remote: Remote,
    file: Annotated[Path, typer.Argument(help="A JSON list of CloudEvents, or one; - for stdin.")],
) -> None:
    """Send metered usage. Sending it again changes nothing; refused events are named."""
    events = _events(file)
    told: dict[str, Any] = {"accepted": 0, "duplicate": 0, "rejected": []}
    for first in range(0, len(events), BATCH):
        batch = events[first : first + BATCH]
        answer: Any = remote.ask(partial(_send, batch))
        told["accepted"] += answer["accepted"]
        told["duplicate"] += answer["duplicate"]
        told["rejected"] += [{**one, "index": one["index"] + first} for one in answer["rejected"]]
    lines = [f"{told['accepted']} accepted, {told['duplicate']} known already"]
    lines += columns(told["rejected"], ("index", "code", "detail"))
    remote.tell(told, lines)
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
@reads
def list_events(
    remote: Remote,
    lease_id: Annotated[
        str | None, typer.Option("--lease", metavar="LEASE", help="All events of this lease.")
    ] = None,
    limit: Limit = 50,
) -> None:
    """List events that you sent, or those of a lease, and the result of each."""
    found = remote.list(
        lambda c, size, cursor: c.list_usage_events(lease_id=lease_id, limit=size, cursor=cursor),
        limit,
    )
    remote.tell(found, columns(found["data"], _SHOWN))


@meter.command("unmatched", epilog="Example: tallystick meter unmatched --json")
@reads
def list_unmatched(remote: Remote, limit: Limit = 50) -> None:
    """List events of yours that count for nothing, each with its reason."""
    found = remote.list(
        lambda c, size, cursor: c.list_unmatched_usage(limit=size, cursor=cursor), limit
    )
    remote.tell(found, columns(found["data"], _SHOWN))


@meter.command("show", epilog="Example: tallystick meter show lease_1f0c...")
@reads
def show_lease(remote: Remote, lease_id: LeaseId) -> None:
    """Show what each meter of a lease counts and costs."""
    told = remote.ask(lambda c: c.list_lease_resources(lease_id))
    rows = [{**one, "charge": one["charge"]["units"]} for one in told["resources"]]
    names = ("meter", "quantity", "unit", "charge", "events", "accrued_at")
    remote.tell(told, columns(rows, names))


# --- edge devices ----------------------------------------------------------------------------


@device.command("add", epilog="Example: tallystick device add region_1f0c... jetson-orin-nano")
@records
def add_device(
    remote: Remote,
    region_id: RegionId,
    model: Annotated[Model, typer.Argument(help="Model of the device.")],
) -> None:
    """Configure an edge device. Each add is a new device, charged from today on."""
    told = remote.ask(
        lambda c: c.add_edge_device(
            {"region_id": region_id, "model": model}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@device.command("remove", epilog="Example: tallystick device remove edge_1f0c...")
@records
def remove_device(
    remote: Remote, device_id: Annotated[str, typer.Argument(metavar="DEVICE", help="edge_...")]
) -> None:
    """Remove an edge device. Today is still charged."""
    told = remote.ask(lambda c: c.remove_edge_device(device_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@device.command("list", epilog="Example: tallystick device list --json")
@reads
def list_devices(remote: Remote, limit: Limit = 50) -> None:
    """List edge devices, removed ones too."""
    found = remote.list(
        lambda c, size, cursor: c.list_edge_devices(limit=size, cursor=cursor), limit
    )
    names = ("device_id", "model", "region_id", "first_day", "last_day")
    remote.tell(found, columns(found["data"], names))


# --- storage nodes ---------------------------------------------------------------------------


@storage.command("provision", epilog="Example: tallystick storage provision region_1f0c... pd-ssd")
@records
def provision_storage(
    remote: Remote,
    region_id: RegionId,
    storage_class: Annotated[str, typer.Argument(metavar="CLASS", help="As the cloud names it.")],
) -> None:
    """Request a storage node for a region.

    The node runs day and night, so a long commitment with the cloud provider costs less.
    """
    told = remote.ask(
        lambda c: c.provision_storage_node(
            region_id, {"storage_class": storage_class}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@storage.command("ready", epilog="Example: tallystick storage ready region_1f0c...")
@records
def ready_storage(remote: Remote, region_id: RegionId) -> None:
    """Report that the storage node serves: it is active. The machine runs this itself."""
    told = remote.ask(lambda c: c.confirm_storage_node(region_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@storage.command("replace", epilog="Example: tallystick storage replace region_1f0c... pd-ssd")
@records
def replace_storage(
    remote: Remote,
    region_id: RegionId,
    storage_class: Annotated[str, typer.Argument(metavar="CLASS", help="As the cloud names it.")],
) -> None:
    """Replace a region's storage node by another one. The nodes of the region stay."""
    told = remote.ask(
        lambda c: c.replace_storage_node(
            region_id, {"storage_class": storage_class}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@storage.command("remove", epilog="Example: tallystick storage remove region_1f0c...")
@records
def remove_storage(remote: Remote, region_id: RegionId) -> None:
    """Remove a region's storage node once no node needs it. It is charged up to now."""
    told = remote.ask(lambda c: c.remove_storage_node(region_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@storage.command("show", epilog="Example: tallystick storage show region_1f0c...")
@reads
def show_storage(remote: Remote, region_id: RegionId) -> None:
    """Show the storage nodes of a region and their cost."""
    told = remote.ask(lambda c: c.read_storage_node(region_id))
    rows = [{**one, "charge": one["charge"]["units"]} for one in told["storage_nodes"]]
    names = ("sequence", "storage_class", "provisioned_at", "removed_at", "charge")
    remote.tell(told, columns(rows, names))
