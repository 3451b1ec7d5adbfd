"""Storage nodes of regions: provisioned, ready, replaced, removed; and their cost by the hour."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.door.amounts import Money, credits_
from api.door.auth import with_scope
from api.door.call import Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    EmptyRequest,
    Position,
    ProviderId,
    RegionId,
    RegionInPath,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.fleet.providers import own_region, visible_region
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
from projections.fleet.fleet import FLEET
from projections.metering import meters
from projections.metering.meters import METERS

resource = Resource("regions")

WRITE = with_scope("provider")
READ = with_scope("provider", "billing:read", "operator", "audit:read")
StorageClass = Annotated[str, Field(pattern=r"^[0-9a-z-]{1,40}$", examples=["pd-ssd"])]


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
        visible_region(call, view.connection, region_id)
        rows = meters.read_storage_nodes(view.connection, region_id)
        told = StorageNodesAnswer(
            region_id=region_id,
            storage_nodes=[_storage_node(row) for row in rows],
            position=view.position,
        )
        return call.answer(view, told)


def _state(region_id: str, after: Any) -> StorageNodeStateAnswer:
    state = after.state(storage_stream(region_id))
    name: Any = "none"
    if state.provisioned is not None:
        name = "active" if state.is_ready else "provisioned"
    return StorageNodeStateAnswer(region_id=region_id, sequence=state.number, state=name)


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
