"""`tallystick device`: edge devices, what they run, and what they cost. Thin clients of the API."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.arguments import RegionId
from cli.remote import Limit, Remote, reads, records
from cli.terminal import columns, facts, group

device = group("device", "Edge devices, which pay by the month.", "tallystick device list")

Model = Literal[
    "jetson-agx-xavier", "jetson-xavier-nx", "jetson-agx-orin", "jetson-orin-nx", "jetson-orin-nano"
]


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


@device.command("report", epilog="Example: tallystick device report edge_1f0c...")
@records
def report_device(
    remote: Remote, device_id: Annotated[str, typer.Argument(metavar="DEVICE", help="edge_...")]
) -> None:
    """Report that an edge device runs: it is active. The device runs this itself."""
    told = remote.ask(lambda c: c.report_edge_device(device_id, {}, idempotency_key=remote.key))
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
