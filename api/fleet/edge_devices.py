"""What costs by the calendar: edge devices and their daily fee, storage nodes of regions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door.amounts import Money, credits_
from api.door.auth import with_scope
from api.door.call import Call, Caller
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    Count,
    EmptyRequest,
    Position,
    ProviderId,
    RegionId,
    RegionInPath,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.fleet.providers import own_region
from domain.calendar import day_of, day_text
from domain.fleet.edge_device import AddEdgeDevice, RemoveEdgeDevice, stream_of
from domain.fleet.reasons import FleetReason
from domain.fleet.storage_node import (
    ProvisionStorageNode,
    ReadyStorageNode,
    RemoveStorageNode,
    ReplaceStorageNode,
)
from domain.fleet.storage_node import stream_of as storage_stream
from domain.funds.reasons import FundsReason
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from projections.fleet import fleet
from projections.fleet.fleet import FLEET
from projections.metering import meters
from projections.metering.meters import METERS

resource = Resource("edge")

WRITE = with_scope("provider")
READ = with_scope("provider", "billing:read", "operator", "audit:read")
EdgeId = Annotated[str, Field(pattern=r"^edge_[0-9A-Za-z]{1,64}$")]
EdgeInPath = Annotated[str, Path(pattern=r"^edge_[0-9A-Za-z]{1,64}$")]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", examples=["2026-11-20"])]
Model = Literal[
    "jetson-agx-xavier", "jetson-xavier-nx", "jetson-agx-orin", "jetson-orin-nx", "jetson-orin-nano"
]
StorageClass = Annotated[str, Field(pattern=r"^[0-9a-z-]{1,40}$", examples=["pd-ssd"])]


class EdgeDeviceRequest(RequestModel):
    """Each add is a new device, also of the same machine, and is charged from today on."""

    region_id: RegionId
    model: Model

    model_config = with_examples({"region_id": "region_" + "1" * 32, "model": "jetson-orin-nano"})


class EdgeDeviceAnswer(AnswerModel):
    """Charged for every UTC day from `first_day` to `last_day`, both included."""

    device_id: EdgeId
    account_id: AccountId
    region_id: RegionId
    model: Model
    first_day: Day
    last_day: Day | None = None
    added_at: Told_at
    removed_at: Told_at | None = None
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


class StorageNodeRequest(RequestModel):
    """The class of storage. It runs always: a commitment with the cloud makes it cheaper there."""

    storage_class: StorageClass

    model_config = with_examples({"storage_class": "pd-ssd"})


class StorageNodeAnswer(AnswerModel):
    """The `sequence`th of its region. `charge` is up to `charged_until`; `owed` of it found no
    balance.
    """

    region_id: RegionId
    sequence: Count
    account_id: AccountId
    provider_id: ProviderId
    storage_class: StorageClass
    per_hour: Money
    tariff_version: Count
    provisioned_at: Told_at
    ready_at: Told_at | None = None
    removed_at: Told_at | None = None
    charged_until: Told_at
    charge: Money
    owed: Money


class StorageNodesAnswer(AnswerModel):
    """The storage nodes a region has had, the last one first."""

    region_id: RegionId
    storage_nodes: list[StorageNodeAnswer]
    position: Position


class StorageNodeStateAnswer(AnswerModel):
    region_id: RegionId
    sequence: Count
    state: Literal["none", "provisioned", "active"]
    position: Position | None = None


@resource.post(
    "/v1/edge-devices",
    WRITE,
    EdgeDeviceAnswer,
    status=201,
    problems=[
        FleetReason.REGION_UNKNOWN,
        FleetReason.REGION_NOT_SUITED,
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
            model=body.model,
            first_day=day_text(device.first_day),
            added_at=moment(call.now_us),
        )

    return call.record(commands, told)


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


@resource.get("/v1/edge-devices", READ, page_of(EdgeDeviceAnswer), problems=["cursor_invalid"])
def list_edge_devices(
    call: Caller, account_id: AccountQuery = None, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists edge devices in the order in which they were added, removed ones too."""
    place = call.place(cursor, [0])
    with call.read(METERS) as view:
        rows = meters.read_edge_devices(
            view.connection,
            account_id=call.principal.among(account_id),
            after=place.after[0],
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _device)


@resource.get("/v1/device-fees", READ, page_of(DeviceFeeAnswer), problems=["cursor_invalid"])
def list_device_fees(
    call: Caller, account_id: AccountQuery = None, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists the fee for edge devices, day by day."""
    place = call.place(cursor, ["", ""])
    with call.read(METERS) as view:
        rows = meters.read_device_fees(
            view.connection,
            account_id=call.principal.among(account_id),
            after=(place.after[0], place.after[1]),
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.account_id, row.day], _fee)


# --- storage nodes ---------------------------------------------------------------------------


@resource.post(
    "/v1/regions/{region_id}/storage-node",
    WRITE,
    StorageNodeStateAnswer,
    status=201,
    problems=[
        FleetReason.REGION_UNKNOWN,
        FleetReason.REGION_NOT_SUITED,
        PartiesReason.ACCOUNT_CLOSED,
        FleetReason.STORAGE_NODE_STATE,
        FundsReason.UNPAID_DEBT,
        FundsReason.CREDIT_TOO_LOW,
        PricesReason.TARIFF_UNKNOWN,
    ],
)
def provision_storage_node(
    region_id: RegionInPath, body: StorageNodeRequest, call: Caller
) -> Response:
    """Requests the storage node of a central region of yours. It costs by the hour from now on."""

    def commands() -> ProvisionStorageNode:
        own_region(call, region_id)
        return ProvisionStorageNode(
            region_id=region_id,
            storage_class=body.storage_class,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _state(region_id, after))


@resource.post(
    "/v1/regions/{region_id}/storage-node/ready",
    WRITE,
    StorageNodeStateAnswer,
    problems=[FleetReason.REGION_UNKNOWN, FleetReason.STORAGE_NODE_STATE],
)
def confirm_storage_node(region_id: RegionInPath, body: EmptyRequest, call: Caller) -> Response:
    """Reports that the storage node serves, sent by the machine itself with a key of its provider's
    account. It is active, and nodes may join the region from now on.
    """
    del body

    def commands() -> ReadyStorageNode:
        own_region(call, region_id)
        return ReadyStorageNode(region_id=region_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(commands, lambda after: _state(region_id, after))


@resource.post(
    "/v1/regions/{region_id}/storage-node/replace",
    WRITE,
    StorageNodeStateAnswer,
    problems=[
        FleetReason.REGION_UNKNOWN,
        FleetReason.STORAGE_NODE_STATE,
        FundsReason.UNPAID_DEBT,
        FundsReason.CREDIT_TOO_LOW,
        PricesReason.TARIFF_UNKNOWN,
    ],
)
def replace_storage_node(
    region_id: RegionInPath, body: StorageNodeRequest, call: Caller
) -> Response:
    """Replaces the storage node: the old one is charged to now, the next one is provisioned in the
    same moment, and the nodes of the region stay.
    """

    def commands() -> ReplaceStorageNode:
        own_region(call, region_id)
        return ReplaceStorageNode(
            region_id=region_id,
            storage_class=body.storage_class,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _state(region_id, after))


@resource.post(
    "/v1/regions/{region_id}/storage-node/remove",
    WRITE,
    StorageNodeStateAnswer,
    problems=[FleetReason.REGION_UNKNOWN, FleetReason.STORAGE_NODE_STATE],
)
def remove_storage_node(region_id: RegionInPath, body: EmptyRequest, call: Caller) -> Response:
    """Removes the storage node of a region without nodes. The time up to now is charged."""
    del body

    def commands() -> RemoveStorageNode:
        own_region(call, region_id)
        return RemoveStorageNode(
            region_id=region_id, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(commands, lambda after: _state(region_id, after))


@resource.get(
    "/v1/regions/{region_id}/storage-node",
    READ,
    StorageNodesAnswer,
    problems=[FleetReason.REGION_UNKNOWN],
)
def read_storage_node(region_id: RegionInPath, call: Caller) -> Response:
    """Returns the storage nodes of a region and their cost."""
    with call.read(FLEET, METERS) as view:
        _visible_region(call, view.connection, region_id)
        rows = meters.read_storage_nodes(view.connection, region_id)
        told = StorageNodesAnswer(
            region_id=region_id,
            storage_nodes=[_storage_node(row) for row in rows],
            position=view.position,
        )
        return call.answer(view, told)


def _visible_region(call: Call, connection: Any, region_id: str) -> None:
    only = call.principal.only
    if not fleet.read_regions(connection, region_id=region_id, account_id=only, limit=1):
        raise Refused(FleetReason.REGION_UNKNOWN, region_id=region_id)


def _state(region_id: str, after: Any) -> StorageNodeStateAnswer:
    state = after.state(storage_stream(region_id))
    name: Any = "none"
    if state.provisioned is not None:
        name = "active" if state.is_ready else "provisioned"
    return StorageNodeStateAnswer(region_id=region_id, sequence=state.number, state=name)


def _device(row: meters.EdgeDevice) -> EdgeDeviceAnswer:
    model: Any = row.model
    return EdgeDeviceAnswer(
        device_id=row.device_id,
        account_id=row.account_id,
        region_id=row.region_id,
        model=model,
        first_day=row.first_day,
        last_day=row.last_day,
        added_at=moment(row.at_us),
        removed_at=moment_or_none(row.removed_at_us),
    )


def _fee(row: meters.DeviceFee) -> DeviceFeeAnswer:
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


def _storage_node(row: meters.StorageNode) -> StorageNodeAnswer:
    return StorageNodeAnswer(
        region_id=row.region_id,
        sequence=row.number,
        account_id=row.account_id,
        provider_id=row.provider_id,
        storage_class=row.storage_class,
        per_hour=credits_(row.per_hour_units),
        tariff_version=row.tariff_version,
        provisioned_at=moment(row.at_us),
        ready_at=moment_or_none(row.ready_at_us),
        removed_at=moment_or_none(row.removed_at_us),
        charged_until=moment(row.charged_until_us),
        charge=credits_(row.charge_units),
        owed=credits_(row.owed_units),
    )
