"""Devices: every accelerator that was admitted, who holds which share of it, what is free."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field, field_validator

from api.door.auth import KEY, nodes_or_scope, with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    DeviceId,
    DeviceInPath,
    LeaseId,
    NodeId,
    NodeQuery,
    NodesQuery,
    Position,
    Ppm,
    ProviderId,
    RegionQuery,
    RequestModel,
    Short,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.constraints import MigStart, Mode
from domain.fleet.device import DeviceState, ReshapeDevice, device_stream
from domain.fleet.provider import provider_stream
from domain.fleet.reasons import FleetReason
from domain.hardware import mig
from domain.hardware.sharing import MIG, Gpu, Held, blocked_ppm, instances_of
from domain.lease.close_codes import RESHAPED
from domain.lease.lease import CloseLease
from domain.refusal import Refused
from projections.fleet import fleet
from projections.fleet.fleet import FLEET

resource = Resource("devices")

READ = with_scope("provider", "operator", "audit:read")
HOLDERS_MAX = 64
"""Leases of one device that one call can end."""
FreePpm = Annotated[int, Field(ge=0, le=1_000_000)]


class DeviceHoldingAnswer(AnswerModel):
    """A MIG instance begins at memory slice `mig_start`."""

    lease_id: LeaseId
    share_ppm: Ppm
    mem_ppm: Ppm
    mode: Mode
    mig_profile: str | None = None
    mig_start: MigStart | None = None
    since: Told_at


class MigPlacementAnswer(AnswerModel):
    """An instance that could be placed: a lease of the profile begins at the first start listed."""

    mig_profile: str
    starts: list[MigStart]


class DevicePartitionAnswer(AnswerModel):
    """How a GPU is cut, and what fits beside that."""

    model: str
    compute_slices: Count
    memory_slices: Count
    stranded_compute_slices: Count
    possible: list[MigPlacementAnswer]


class DeviceAnswer(AnswerModel):
    """`gpu_class` absent: the model is listed and not priced. Free shares are parts per million.
    `memory` unified: it is the host's memory, not a second one beside it.

    `mode`: how its holders share it now; absent: it has no holder, and the next lease decides.
    `partition`: of a model that MIG can cut, what is still possible beside the instances held;
    `stranded_ppm`: compute that no lease can hold as the device is partitioned now.
    """

    device_id: DeviceId
    node_id: NodeId
    provider_id: ProviderId
    account_id: AccountId
    vendor: Short
    model: Short
    kind: Short
    gpu_class: Short | None = None
    memory_mib: Annotated[int, Field(ge=0, le=2**40)]
    memory: Literal["dedicated", "unified", "none"]
    divisible: bool
    capacity_asset: Literal["GPU_MS", "SEAT_MS"]
    retired: bool
    share_free_ppm: FreePpm
    mem_free_ppm: FreePpm
    mode: Mode | None = None
    stranded_ppm: FreePpm | None = None
    partition: DevicePartitionAnswer | None = None
    registered_at: Told_at
    holdings: list[DeviceHoldingAnswer] | None = None
    position: Position | None = None


@resource.get("/v1/devices", READ, page_of(DeviceAnswer), problems=["cursor_invalid"])
def list_devices(
    call: Caller,
    order: InOrder,
    node_id: NodeQuery = None,
    node_ids: NodesQuery = None,
    region_id: RegionQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists devices in order of registration: your own, those of nodes that you own a part of and
    of regions that you administer, or all for operators and auditors.
    """
    place = call.place(cursor, [0], order)
    with call.read(FLEET) as view:
        rows = fleet.read_devices(
            view.connection,
            node_id=node_id,
            node_ids=None if node_ids is None else node_ids.split(","),
            region_id=region_id,
            account_id=call.principal.only,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _device)


@resource.get("/v1/devices/{device_id}", READ, DeviceAnswer, problems=[FleetReason.DEVICE_UNKNOWN])
def read_device(device_id: DeviceInPath, call: Caller) -> Response:
    """Returns a device, and which leases hold how much of it."""
    with call.read(FLEET) as view:
        found = fleet.read_devices(
            view.connection, device_id=device_id, account_id=call.principal.only, limit=1
        )
        if not found:
            raise Refused(FleetReason.DEVICE_UNKNOWN, device_id=device_id)
        rows = fleet.read_holdings(view.connection, device_id=device_id)
        return call.answer(view, _with_holdings(found[0], rows))


def _with_holdings(row: fleet.Device, rows: list[fleet.Holding]) -> DeviceAnswer:
    gpu = Gpu(row.vendor, row.model, row.memory_mib)
    held = [Held(one.share_ppm, one.mem_ppm, one.mode, one.profile, one.start) for one in rows]
    told = {
        "holdings": [_holding(one) for one in rows],
        "stranded_ppm": blocked_ppm(held, gpu),
        "partition": _partition(gpu, held) if row.mode in (None, MIG) else None,
    }
    return _device(row).model_copy(update=told)


def _holding(row: fleet.Holding) -> DeviceHoldingAnswer:
    mode: Any = row.mode
    return DeviceHoldingAnswer(
        lease_id=row.lease_id,
        share_ppm=row.share_ppm,
        mem_ppm=row.mem_ppm,
        mode=mode,
        mig_profile=row.profile,
        mig_start=row.start,
        since=moment(row.at_us),
    )


def _partition(gpu: Gpu, held: list[Held]) -> DevicePartitionAnswer | None:
    table = mig.table_of(gpu.model, gpu.memory_mib)
    if table is None:
        return None
    cut = instances_of(held)
    return DevicePartitionAnswer(
        model=table.model,
        compute_slices=table.compute,
        memory_slices=table.memory,
        stranded_compute_slices=mig.stranded_slices(table, cut),
        possible=[
            MigPlacementAnswer(mig_profile=profile.name, starts=list(starts))
            for profile in table.profiles
            if (starts := mig.starts_by_choice(table, cut, profile))
        ],
    )


def _device(row: fleet.Device) -> DeviceAnswer:
    told: Any = row
    mode: Any = row.mode
    return DeviceAnswer(
        device_id=row.device_id,
        node_id=row.node_id,
        provider_id=row.provider_id,
        account_id=row.account_id,
        vendor=row.vendor,
        model=row.model,
        gpu_class=row.gpu_class,
        kind=row.kind,
        memory=told.memory,
        divisible=row.is_divisible,
        capacity_asset=told.capacity_asset,
        memory_mib=row.memory_mib,
        retired=row.retired,
        share_free_ppm=row.share_free,
        mem_free_ppm=row.mem_free,
        mode=mode,
        registered_at=moment(row.at_us),
    )


# --- a partition that is gone ----------------------------------------------------------------


class DeviceReshapingRequest(RequestModel):
    """The leases whose part of the device is gone."""

    lease_ids: Annotated[list[LeaseId], Field(min_length=1, max_length=HOLDERS_MAX)]

    model_config = with_examples({"lease_ids": ["lease_" + "0" * 32]})

    @field_validator("lease_ids")
    @classmethod
    def _once(cls, lease_ids: list[str]) -> list[str]:
        if len(set(lease_ids)) != len(lease_ids):
            raise ValueError("each lease once")
        return lease_ids


class DeviceReshapedAnswer(AnswerModel):
    """`closed`: leases that ended with code 10005, at no charge from then on."""

    device_id: DeviceId
    node_id: NodeId
    closed: list[LeaseId]
    reshaped_at: Told_at
    position: Position | None = None


@resource.post(
    "/v1/devices/{device_id}/reshape",
    nodes_or_scope("provider"),
    DeviceReshapedAnswer,
    problems=[FleetReason.DEVICE_UNKNOWN, FleetReason.LEASE_STATE],
)
def reshape_device(device_id: DeviceInPath, body: DeviceReshapingRequest, call: Caller) -> Response:
    """Ends the leases whose part of a repartitioned device is gone, by the provider's fault.

    The node that found the change calls this, or its provider.
    """

    def commands() -> list[Any]:
        device = call.service.ledger.market.state_of(device_stream(device_id))
        node_id = device.node_id or ""
        if not (device.is_live and (call.node_of_caller(node_id) or _owns(call, device))):
            raise Refused(FleetReason.DEVICE_UNKNOWN, device_id=device_id)
        gone = [lease_id for lease_id in body.lease_ids if lease_id in device.holders]
        reshape = ReshapeDevice(
            device_id=device_id,
            node_id=node_id,
            lease_ids=tuple(body.lease_ids),
            by=call.principal.member_id or node_id,
            at_us=call.now_us,
        )
        return [reshape, *(_ended(lease_id, call) for lease_id in gone)]

    def told(after: After) -> AnswerModel:
        return DeviceReshapedAnswer(
            device_id=device_id,
            node_id=after.state(device_stream(device_id)).node_id or "",
            closed=body.lease_ids,
            reshaped_at=moment(call.now_us),
        )

    return call.record(commands, told)


def _owns(call: Call, device: DeviceState) -> bool:
    """Whether the caller's account is the provider's."""
    assert device.registered is not None
    provider = call.service.ledger.market.state_of(provider_stream(device.registered.provider_id))
    return call.principal.kind == KEY and call.principal.owns(provider.account_id)


def _ended(lease_id: str, call: Call) -> CloseLease:
    return CloseLease(
        lease_id=lease_id,
        closed_at_us=call.now_us,
        party="job",
        code=RESHAPED,
        at_us=call.now_us,
        by=call.principal.member_id or None,
    )
