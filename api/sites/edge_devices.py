"""Edge devices of a region, and the fee of each day."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from fastapi import Path, Response
from pydantic import Field

from api.door.amounts import Money, credits_
from api.door.auth import with_scope
from api.door.call import Caller
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    Count,
    EmptyRequest,
    Position,
    RegionId,
    RegionQuery,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.providers import own_region, visible_region
from api.sites.datastores import SiteName
from domain.calendar import day_of, day_text
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.parties.reasons import PartiesReason
from domain.sites.edge_device import (
    EDGE_MODELS,
    MINION_ID,
    AddEdgeDevice,
    RemoveEdgeDevice,
    ReportEdgeDevice,
    stream_of,
)
from domain.sites.inference import ACCESS, EXIT_CODE_MAX
from domain.sites.reasons import SitesReason
from projections.fleet.fleet import FLEET
from projections.sites import edge_devices
from projections.sites.edge_devices import EDGE_DEVICES

resource = Resource("edge")

WRITE = with_scope("provider")
READ = with_scope("provider", "billing:read", "operator", "audit:read")
EdgeId = Annotated[str, Field(pattern=r"^edge_[0-9A-Za-z]{1,64}$")]
EdgeInPath = Annotated[str, Path(pattern=r"^edge_[0-9A-Za-z]{1,64}$")]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", examples=["2026-11-20"])]
Model = Literal[
    "jetson-agx-xavier", "jetson-xavier-nx", "jetson-agx-orin", "jetson-orin-nx", "jetson-orin-nano"
]
assert get_args(Model) == EDGE_MODELS
MinionId = Annotated[str, Field(pattern=MINION_ID)]
DeviceAccess = Literal["accelerator", "video", "media"]
assert get_args(DeviceAccess) == ACCESS
InferenceStatus = Literal["pending", "running", "exited"]
ExitCode = Annotated[int, Field(ge=0, le=EXIT_CODE_MAX)]


class EdgeDeviceRequest(RequestModel):
    """Each add is a new device, also of the same machine, and is charged from today on. `name` is
    unique in the region; `minion_id` is what the machine shows.
    """

    region_id: RegionId
    name: SiteName
    minion_id: MinionId
    model: Model

    model_config = with_examples(
        {
            "region_id": "region_" + "1" * 32,
            "name": "gate-1",
            "minion_id": "minion-4f21",
            "model": "jetson-orin-nano",
        }
    )


class EdgeDeviceAnswer(AnswerModel):
    """Charged for every UTC day from `first_day` to `last_day`, both included. `access`: what of
    the board the one model that runs on it may use. `inference`: how the last deployment goes,
    since `inference_at`; it is pending until the device tells of it.
    """

    device_id: EdgeId
    account_id: AccountId
    region_id: RegionId
    name: SiteName
    minion_id: MinionId
    model: Model
    access: list[DeviceAccess]
    state: Literal["added", "active", "removed"]
    config: SiteName | None = None
    revision: Count | None = None
    deployment: Count | None = None
    deployed_at: Told_at | None = None
    inference: InferenceStatus | None = None
    exit_code: ExitCode | None = None
    inference_at: Told_at | None = None
    first_day: Day
    last_day: Day | None = None
    added_at: Told_at
    removed_at: Told_at | None = None
    position: Position | None = None


class EdgeDeviceStateAnswer(AnswerModel):
    device_id: EdgeId
    state: Literal["active"]
    position: Position | None = None


class EdgeDeviceRemovedAnswer(AnswerModel):
    device_id: EdgeId
    last_day: Day
    position: Position | None = None


class DeviceFeeAnswer(AnswerModel):
    """The fee of one UTC day; `due` is what the month has come to by then."""

    account_id: AccountId
    day: Day
    devices: Count
    fee_per_month: Money
    tariff_version: Count | None = None
    due: Money
    charge: Money
    owed: Money
    charged_at: Told_at
    charged_position: Position


@resource.post(
    "/v1/edge-devices",
    WRITE,
    EdgeDeviceAnswer,
    status=201,
    problems=[
        FleetReason.REGION_UNKNOWN,
        FleetReason.REGION_NOT_SUITED,
        SitesReason.DEVICE_INVALID,
        SitesReason.SITE_NAME_TAKEN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.COUNT_OUT_OF_RANGE,
        FundsReason.UNPAID_DEBT,
        FundsReason.CREDIT_TOO_LOW,
    ],
)
def add_edge_device(body: EdgeDeviceRequest, call: Caller) -> Response:
    """Adds an edge device in a region of yours: a physical one with the storage mode central."""
    device_id = call.id("edge")
    account_id = call.principal.account_id

    def commands() -> AddEdgeDevice:
        own_region(call, body.region_id)
        return AddEdgeDevice(
            device_id=device_id,
            account_id=account_id,
            region_id=body.region_id,
            name=body.name,
            minion_id=body.minion_id,
            model=body.model,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: Any) -> EdgeDeviceAnswer:
        device = after.state(stream_of(account_id)).devices[device_id]
        return EdgeDeviceAnswer(
            device_id=device_id,
            account_id=account_id,
            region_id=body.region_id,
            name=body.name,
            minion_id=body.minion_id,
            model=body.model,
            access=list(get_args(DeviceAccess)),
            state="added",
            first_day=day_text(device.first_day),
            added_at=moment(call.now_us),
        )

    return call.record(commands, told)


@resource.post(
    "/v1/edge-devices/{edge_device_id}/report",
    WRITE,
    EdgeDeviceStateAnswer,
    problems=[FleetReason.DEVICE_UNKNOWN],
)
def report_edge_device(edge_device_id: EdgeInPath, body: EmptyRequest, call: Caller) -> Response:
    """Reports that an edge device runs, sent by the device with a key of its owner's account. It is
    active from now on.
    """
    del body
    command = ReportEdgeDevice(
        device_id=edge_device_id,
        account_id=call.principal.account_id,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    told = EdgeDeviceStateAnswer(device_id=edge_device_id, state="active")
    return call.record(lambda: command, lambda _after: told)


@resource.post(
    "/v1/edge-devices/{edge_device_id}/remove",
    WRITE,
    EdgeDeviceRemovedAnswer,
    problems=[FleetReason.DEVICE_UNKNOWN],
)
def remove_edge_device(edge_device_id: EdgeInPath, body: EmptyRequest, call: Caller) -> Response:
    """Removes an edge device. It is charged for today and no longer."""
    del body
    device_id, account_id = edge_device_id, call.principal.account_id
    command = RemoveEdgeDevice(
        device_id=device_id, account_id=account_id, by=call.principal.member_id, at_us=call.now_us
    )

    def told(after: Any) -> EdgeDeviceRemovedAnswer:
        device = after.state(stream_of(account_id)).devices.get(device_id)
        last = day_of(call.now_us) if device is None else device.last_day
        return EdgeDeviceRemovedAnswer(device_id=device_id, last_day=day_text(last))

    return call.record(lambda: command, told)


@resource.get(
    "/v1/edge-devices",
    READ,
    page_of(EdgeDeviceAnswer),
    problems=[FleetReason.REGION_UNKNOWN, "cursor_invalid"],
)
def list_edge_devices(
    call: Caller,
    order: InOrder,
    account_id: AccountQuery = None,
    region_id: RegionQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists edge devices in the order in which they were added, removed ones too: your own, or
    those of a region that you administer.
    """
    place = call.place(cursor, [0], order)
    with call.read(FLEET, EDGE_DEVICES) as view:
        if region_id is not None:
            visible_region(call, view.connection, region_id)
        rows = edge_devices.read_edge_devices(
            view.connection,
            account_id=call.principal.among(account_id) if region_id is None else account_id,
            region_id=region_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _device)


@resource.get("/v1/device-fees", READ, page_of(DeviceFeeAnswer), problems=["cursor_invalid"])
def list_device_fees(
    call: Caller, account_id: AccountQuery = None, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists the fee for edge devices, day by day."""
    place = call.place(cursor, ["", ""])
    with call.read(EDGE_DEVICES) as view:
        rows = edge_devices.read_device_fees(
            view.connection,
            account_id=call.principal.among(account_id),
            after=(place.after[0], place.after[1]),
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.account_id, row.day], _fee)


def _device(row: edge_devices.EdgeDevice) -> EdgeDeviceAnswer:
    model: Any = row.model
    state: Any = "added" if row.active_at_us is None else "active"
    inference: Any = row.inference
    return EdgeDeviceAnswer(
        state=state if row.last_day is None else "removed",
        device_id=row.device_id,
        account_id=row.account_id,
        region_id=row.region_id,
        name=row.name,
        minion_id=row.minion_id,
        model=model,
        access=list(get_args(DeviceAccess)),
        config=row.config,
        revision=row.revision,
        deployment=row.deployment,
        deployed_at=moment_or_none(row.deployed_at_us),
        inference=inference,
        exit_code=row.exit_code,
        inference_at=moment_or_none(row.inference_at_us),
        first_day=row.first_day,
        last_day=row.last_day,
        added_at=moment(row.at_us),
        removed_at=moment_or_none(row.removed_at_us),
    )


def _fee(row: edge_devices.DeviceFee) -> DeviceFeeAnswer:
    return DeviceFeeAnswer(
        account_id=row.account_id,
        day=row.day,
        devices=row.devices,
        fee_per_month=credits_(row.fee_units),
        tariff_version=row.tariff_version,
        due=credits_(row.due_units),
        charge=credits_(row.charge_units),
        owed=credits_(row.owed_units),
        charged_at=moment(row.at_us),
        charged_position=row.position,
    )
