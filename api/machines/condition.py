"""Is a machine fit for work, and what does its owner state about it?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.door.auth import nodes_only, nodes_or_scope, with_scope
from api.door.call import After, Caller
from api.door.models import (
    AnswerModel,
    EmptyRequest,
    NodeId,
    NodeInPath,
    Position,
    RequestModel,
    with_examples,
)
from api.door.operation import Resource
from api.fleet.nodes import may_run, own_node, visible_node
from api.regions.neighbours import Verdict, verdict_on
from domain.fleet.node import NodeState, node_stream
from domain.fleet.reasons import FleetReason
from domain.machines.condition import ERROR_LENGTH_MAX, FailNode, ReportNodeError, StopNode
from domain.machines.setup import SetIdleMining, StateNodeSetup, advised_upnp
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from projections.fleet.fleet import FLEET

resource = Resource("nodes")

WRITE = with_scope("provider")
RUN = with_scope("operator", "provider")
READ = nodes_or_scope("provider", "operator", "audit:read")
Error = Annotated[
    str, Field(min_length=1, max_length=ERROR_LENGTH_MAX, examples=["Xid 79: GPU fell off the bus"])
]
Uplink = Literal["corporate_firewall", "internet_provider"]


class NodeErrorRequest(RequestModel):
    """What keeps the machine from working, in its own words."""

    error: Error

    model_config = with_examples({"error": "Xid 79: GPU has fallen off the bus"})


class NodeSetupRequest(RequestModel):
    """What the owner states; the server does not check it. UPnP belongs off behind a corporate
    firewall and on behind an internet provider. `exclusive_access`: the machine is used only
    through this market.
    """

    uplink: Uplink | None = None
    upnp: bool | None = None
    exclusive_access: bool = False

    model_config = with_examples(
        {"uplink": "internet_provider", "upnp": True, "exclusive_access": True}
    )


class IdleMiningRequest(RequestModel):
    """Whether the machine mines while no lease runs on it."""

    enabled: bool

    model_config = with_examples({"enabled": True})


class NodeConditionAnswer(AnswerModel):
    """`stated` lists what is only the owner's word. `upnp_advised` follows from the uplink.
    `private_network`: whether it reaches the admitted nodes of its region on private addresses, as
    the nodes tried; also before it is admitted. Absent in a region of a cloud.
    """

    node_id: NodeId
    phase: str
    lifetime: Literal["permanent", "ephemeral"]
    minion_id: str | None = None
    error: str | None = None
    uplink: Uplink | None = None
    upnp: bool | None = None
    upnp_advised: bool | None = None
    exclusive_access: bool
    idle_mining: bool
    stated: list[str]
    private_network: Verdict | None = None
    position: Position | None = None


@resource.post(
    "/v1/nodes/{node_id}/stop",
    RUN,
    NodeConditionAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE, FleetReason.NODE_BUSY],
)
def stop_node(node_id: NodeInPath, body: EmptyRequest, call: Caller) -> Response:
    """Records that a machine is turned off. It comes back by way of maintenance."""
    del body

    def commands() -> StopNode:
        may_run(call, node_id)
        return StopNode(node_id=node_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(commands, _told(node_id))


@resource.post(
    "/v1/nodes/{node_id}/error",
    nodes_only(),
    NodeConditionAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE],
)
def report_node_error(node_id: NodeInPath, body: NodeErrorRequest, call: Caller) -> Response:
    """Reports an error, sent by the node. It takes no new leases until it comes back by way of
    maintenance.
    """

    def commands() -> ReportNodeError:
        if not call.node_of_caller(node_id):
            raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)
        return ReportNodeError(node_id=node_id, error=body.error, at_us=call.now_us)

    return call.record(commands, _told(node_id))


@resource.post(
    "/v1/nodes/{node_id}/fail",
    RUN,
    NodeConditionAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE],
)
def fail_node(node_id: NodeInPath, body: NodeErrorRequest, call: Caller) -> Response:
    """Marks a node as failed until it is repaired. The error is kept."""

    def commands() -> FailNode:
        may_run(call, node_id)
        return FailNode(
            node_id=node_id, error=body.error, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(commands, _told(node_id))


@resource.post(
    "/v1/nodes/{node_id}/setup",
    WRITE,
    NodeConditionAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE, PartiesReason.UNKNOWN_MODE],
)
def state_node_setup(node_id: NodeInPath, body: NodeSetupRequest, call: Caller) -> Response:
    """States how a machine is set up: its uplink, UPnP, and exclusive access."""

    def commands() -> StateNodeSetup:
        own_node(call, node_id)
        return StateNodeSetup(
            node_id=node_id,
            uplink=body.uplink,
            upnp=body.upnp,
            exclusive_access=body.exclusive_access,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, _told(node_id))


@resource.post(
    "/v1/nodes/{node_id}/idle-mining",
    WRITE,
    NodeConditionAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE, FleetReason.WALLET_NEEDED],
)
def set_idle_mining(node_id: NodeInPath, body: IdleMiningRequest, call: Caller) -> Response:
    """Sets whether a machine mines while no lease runs on it. It needs a wallet that is paid."""

    def commands() -> SetIdleMining:
        own_node(call, node_id)
        return SetIdleMining(
            node_id=node_id, is_on=body.enabled, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(commands, _told(node_id))


@resource.get(
    "/v1/nodes/{node_id}/condition", READ, NodeConditionAnswer, problems=[FleetReason.NODE_UNKNOWN]
)
def read_node_condition(node_id: NodeInPath, call: Caller) -> Response:
    """Returns the condition of a node, and what its owner states about it."""
    with call.read(FLEET) as view:
        found = visible_node(call, view, node_id)
        state = call.service.ledger.market.state_of(node_stream(node_id))
        told = {"private_network": verdict_on(call, view, found)}
        return call.answer(view, _condition(node_id, state).model_copy(update=told))


def _told(node_id: str) -> Any:
    def told(after: After) -> NodeConditionAnswer:
        return _condition(node_id, after.state(node_stream(node_id)))

    return told


def _condition(node_id: str, state: NodeState) -> NodeConditionAnswer:
    condition, setup = state.condition, state.condition.setup
    lifetime: Any = condition.lifetime
    uplink: Any = None if setup is None else setup.uplink
    stated = [] if setup is None else ["uplink", "upnp", "exclusive_access"]
    return NodeConditionAnswer(
        node_id=node_id,
        phase=state.phase,
        lifetime=lifetime,
        minion_id=condition.minion_id,
        error=condition.error,
        uplink=uplink,
        upnp=None if setup is None else setup.upnp,
        upnp_advised=advised_upnp(uplink),
        exclusive_access=setup is not None and setup.exclusive_access,
        idle_mining=condition.is_mining,
        stated=[*stated, "idle_mining"],
    )
