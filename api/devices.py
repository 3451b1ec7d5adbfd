"""Devices: every accelerator that was admitted, who holds which share of it, what is free."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.auth import with_scope
from api.call import Caller
from api.models import (
    AccountId,
    DeviceId,
    DeviceInPath,
    LeaseId,
    NodeId,
    NodeQuery,
    Position,
    Ppm,
    ProviderId,
    Short,
    Told,
    Told_at,
    moment,
    page_of,
)
from api.operation import Resource
from api.paging import LIST_LIMIT, Cursor, Limit
from domain.refusal import Reason, Refused
from projections import fleet
from projections.fleet import FLEET

resource = Resource("devices")

READ = with_scope("provider", "operator", "audit:read")
FreePpm = Annotated[int, Field(ge=0, le=1_000_000)]


class HoldingTold(Told):
    lease_id: LeaseId
    share_ppm: Ppm
    mem_ppm: Ppm
    since: Told_at


class DeviceTold(Told):
    """`gpu_class` absent: the model is listed and not priced. Free shares are parts per million."""

    device_id: DeviceId
    node_id: NodeId
    provider_id: ProviderId
    account_id: AccountId
    vendor: Short
    model: Short
    gpu_class: Literal["development", "professional", "datacenter"] | None = None
    memory_mib: Annotated[int, Field(ge=0, le=2**40)]
    retired: bool
    share_free_ppm: FreePpm
    mem_free_ppm: FreePpm
    registered_at: Told_at
    holdings: list[HoldingTold] | None = None
    position: Position | None = None


@resource.get("/v1/devices", READ, page_of(DeviceTold), problems=["cursor_invalid"])
def list_devices(
    call: Caller, node_id: NodeQuery = None, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Devices in order of registration: your own, or all for operators and auditors."""
    place = call.place(cursor, [0])
    with call.read(FLEET) as view:
        rows = fleet.read_devices(
            view.connection, node_id=node_id, account_id=call.principal.only,
            after=place.after[0], limit=limit + 1,
        )  # fmt: skip
        return call.page(view, place, rows, limit, lambda row: [row.position], _device)


@resource.get("/v1/devices/{device_id}", READ, DeviceTold, problems=[Reason.DEVICE_UNKNOWN])
def read_device(device_id: DeviceInPath, call: Caller) -> Response:
    """Read a device, and which leases hold how much of it."""
    with call.read(FLEET) as view:
        found = fleet.read_devices(
            view.connection, device_id=device_id, account_id=call.principal.only, limit=1
        )
        if not found:
            raise Refused(Reason.DEVICE_UNKNOWN, device_id=device_id)
        holdings = [
            HoldingTold(
                lease_id=row.lease_id, share_ppm=row.share_ppm, mem_ppm=row.mem_ppm,
                since=moment(row.at_us),
            )
            for row in fleet.read_holdings(view.connection, device_id=device_id)
        ]  # fmt: skip
        return call.answer(view, _device(found[0]).model_copy(update={"holdings": holdings}))


def _device(row: fleet.Device) -> DeviceTold:
    gpu_class: Any = row.gpu_class
    return DeviceTold(
        device_id=row.device_id, node_id=row.node_id, provider_id=row.provider_id,
        account_id=row.account_id, vendor=row.vendor, model=row.model, gpu_class=gpu_class,
        memory_mib=row.memory_mib, retired=row.retired, share_free_ppm=row.share_free,
        mem_free_ppm=row.mem_free, registered_at=moment(row.at_us),
    )  # fmt: skip
