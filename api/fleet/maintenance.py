"""Working on nodes: maintenance told ahead, drains, roles, and the load of ingress nodes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    EmptyRequest,
    Moment,
    NodeId,
    NodeInPath,
    Position,
    RegionId,
    RegionInPath,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.nodes import NodeStateAnswer, may_manage, may_run, node_state, visible_node
from api.fleet.providers import visible_region
from domain.fleet.growth import growth_stream
from domain.fleet.maintenance import CancelMaintenance, ScheduleMaintenance, Window, stream_of
from domain.fleet.node import node_stream
from domain.fleet.reasons import FleetReason
from domain.fleet.roles import SetNodeRole
from domain.leasing.drain import DrainNode
from domain.parties.reasons import PartiesReason
from projections.fleet import supply
from projections.fleet.fleet import FLEET

resource = Resource("maintenance")

RUN = with_scope("operator", "provider")
MaintenanceId = Annotated[str, Field(pattern=r"^maint_[0-9a-z]{1,64}$")]
MaintenanceInPath = Annotated[str, Path(pattern=r"^maint_[0-9a-z]{1,64}$")]
Kind = Literal["planned", "emergency", "security", "network", "capacity"]
Role = Literal["worker", "ingress", "control"]


class MaintenanceWindowRequest(RequestModel):
    """At most 7 days long and 90 days ahead. With `keep_leases` running leases go silent for its
    length and come back; silence is not held against the node before `until`.
    """

    kind: Kind
    from_: Annotated[Moment, Field(alias="from")]
    until: Moment
    keep_leases: bool = False

    model_config = with_examples(
        {
            "kind": "planned",
            "from": "2026-12-01T02:00:00Z",
            "until": "2026-12-01T04:00:00Z",
            "keep_leases": True,
        }
    )


class MaintenanceWindowAnswer(AnswerModel):
    """`status` follows from the time alone."""

    maintenance_id: MaintenanceId
    node_id: NodeId
    kind: Kind
    from_: Annotated[Told_at, Field(alias="from")]
    until: Told_at
    keep_leases: bool
    status: Literal["scheduled", "running", "over", "cancelled"]
    announced_at: Told_at
    cancelled_at: Told_at | None = None
    position: Position | None = None


@resource.post(
    "/v1/nodes/{node_id}/maintenances",
    RUN,
    MaintenanceWindowAnswer,
    status=201,
    problems=[
        FleetReason.NODE_UNKNOWN,
        FleetReason.NODE_STATE,
        FleetReason.MAINTENANCE_WINDOW,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def schedule_maintenance(
    node_id: NodeInPath, body: MaintenanceWindowRequest, call: Caller
) -> Response:
    """Schedules maintenance of a node. No lease is reserved over that time."""
    maintenance_id = call.id("maint")

    def commands() -> ScheduleMaintenance:
        may_run(call, node_id)
        return ScheduleMaintenance(
            maintenance_id=maintenance_id,
            node_id=node_id,
            kind=body.kind,
            from_us=body.from_,
            until_us=body.until,
            keep_leases=body.keep_leases,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, _window_of(call, node_id, maintenance_id))


@resource.post(
    "/v1/nodes/{node_id}/maintenances/{maintenance_id}/cancel",
    RUN,
    MaintenanceWindowAnswer,
    problems=[
        FleetReason.NODE_UNKNOWN,
        FleetReason.MAINTENANCE_UNKNOWN,
        FleetReason.MAINTENANCE_WINDOW,
    ],
)
def cancel_maintenance(
    node_id: NodeInPath, maintenance_id: MaintenanceInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Cancels maintenance that is announced, or ends one that runs."""
    del body

    def commands() -> CancelMaintenance:
        may_run(call, node_id)
        return CancelMaintenance(
            maintenance_id=maintenance_id,
            node_id=node_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, _window_of(call, node_id, maintenance_id))


@resource.get(
    "/v1/nodes/{node_id}/maintenances",
    with_scope("provider", "operator", "renter", "client", "audit:read"),
    page_of(MaintenanceWindowAnswer),
    problems=[FleetReason.NODE_UNKNOWN, "cursor_invalid"],
)
def list_maintenances(
    node_id: NodeInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the announced maintenance of a node, in order. Renters may read it before they rent."""
    place = call.place(cursor, [0], order)
    with call.read(FLEET) as view:
        visible_node(call, view, node_id, to_renters=True)
        rows = supply.read_maintenance(
            view.connection, node_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.position],
            lambda row: _told(row, row.cancelled_at_us, row.status(call.now_us)),
        )


def _window_of(call: Call, node_id: str, maintenance_id: str) -> Any:
    def told(after: After) -> AnswerModel:
        state = after.state(stream_of(node_id))
        window: Window = next(
            one for one in state.windows if one.told.maintenance_id == maintenance_id
        )
        return _told(window.told, window.cancelled_at_us, window.status(call.now_us))

    return told


def _told(row: Any, cancelled_at_us: int | None, status: Any) -> MaintenanceWindowAnswer:
    span: Any = {"from": moment(row.from_us), "until": moment(row.until_us)}
    return MaintenanceWindowAnswer(
        maintenance_id=row.maintenance_id,
        node_id=row.node_id,
        kind=row.kind,
        **span,
        keep_leases=row.keep_leases,
        status=status,
        announced_at=moment(row.at_us),
        cancelled_at=moment_or_none(cancelled_at_us),
    )


# --- drains ----------------------------------------------------------------------------------


class NodeDrainRequest(RequestModel):
    """Without `keep_leases` every running lease is reclaimed, within the window it was quoted."""

    keep_leases: bool = False

    model_config = with_examples({"keep_leases": False})


@resource.post(
    "/v1/nodes/{node_id}/drain",
    RUN,
    NodeStateAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE],
)
def drain_node(node_id: NodeInPath, body: NodeDrainRequest, call: Caller) -> Response:
    """Drains a node: it takes no new leases until it is activated again."""

    def commands() -> DrainNode:
        may_run(call, node_id)
        return DrainNode(
            node_id=node_id,
            keep_leases=body.keep_leases,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, node_state(node_id))


# --- roles -----------------------------------------------------------------------------------


class NodeRoleRequest(RequestModel):
    """`ingress_node_id`: the ingress of the same region a worker is reached through; left out, the
    server chooses. `address`: host and port of an ingress, which workers time connections to.
    """

    role: Role
    ingress_node_id: NodeId | None = None
    address: Annotated[str, Field(max_length=255)] | None = None

    model_config = with_examples({"role": "worker", "ingress_node_id": "node_" + "1" * 32})


class NodeRoleAnswer(AnswerModel):
    node_id: NodeId
    role: Role
    ingress_node_id: NodeId | None = None
    position: Position | None = None


class IngressLoadAnswer(AnswerModel):
    """`leases`: those that hold something of its workers now. `served_gpu_us`: in this epoch."""

    node_id: NodeId
    workers: Count
    leases: Count
    served_gpu_us: str


class IngressLoadsAnswer(AnswerModel):
    region_id: RegionId
    data: list[IngressLoadAnswer]
    position: Position


@resource.post(
    "/v1/nodes/{node_id}/role",
    RUN,
    NodeRoleAnswer,
    problems=[
        FleetReason.NODE_UNKNOWN,
        FleetReason.NODE_STATE,
        FleetReason.NODE_ROLE,
        FleetReason.NODE_BUSY,
        FleetReason.REGION_FULL,
        FleetReason.REGION_MIX,
    ],
)
def set_node_role(node_id: NodeInPath, body: NodeRoleRequest, call: Caller) -> Response:
    """Sets the role of a node: worker, ingress or control. Only workers are
    leased; a worker without an ingress gets the one with the fewest workers.
    """

    def commands() -> SetNodeRole:
        may_manage(call, node_id)
        return SetNodeRole(
            node_id=node_id,
            role=body.role,
            ingress_node_id=body.ingress_node_id,
            address=body.address,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        state = after.state(node_stream(node_id))
        assert state.joined is not None
        role: Any = state.role
        member = after.state(growth_stream(state.joined.region_id)).member(node_id)
        ingress = None if member is None else member.ingress_node_id
        return NodeRoleAnswer(node_id=node_id, role=role, ingress_node_id=ingress)

    return call.record(commands, told)


@resource.get(
    "/v1/regions/{region_id}/ingress",
    with_scope("provider", "operator", "audit:read"),
    IngressLoadsAnswer,
    problems=[FleetReason.REGION_UNKNOWN],
)
def read_ingress_load(region_id: RegionInPath, call: Caller) -> Response:
    """Returns how much work goes through each ingress node of a region."""
    with call.read(FLEET) as view:
        visible_region(call, view.connection, region_id)
        rows = supply.read_ingress_load(view.connection, region_id)
        data = [
            IngressLoadAnswer(
                node_id=row.node_id,
                workers=row.workers,
                leases=row.leases,
                served_gpu_us=str(row.served_gpu_us),
            )
            for row in rows
        ]
        told = IngressLoadsAnswer(region_id=region_id, data=data, position=view.position)
        return call.answer(view, told)
