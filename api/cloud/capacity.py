"""The capacity class of a node: how its machine is held."""

from __future__ import annotations

from typing import get_args

from fastapi import Response

from api.door.call import Caller
from api.door.models import AnswerModel, NodeId, NodeInPath, Position, RequestModel, with_examples
from api.door.operation import Resource
from api.fleet.constraints import CapacityClass
from api.fleet.nodes import own_node
from api.fleet.providers import WRITE
from domain.cloud.capacity import SetNodeCapacityClass
from domain.cloud.reasons import CloudReason
from domain.fleet.reasons import FleetReason
from domain.hardware.constraints import CAPACITY_CLASSES

resource = Resource("clouds")

assert get_args(CapacityClass) == CAPACITY_CLASSES


class CapacityClassRequest(RequestModel):
    """`on_demand`: for as long as it is wanted. `preemptible`: it may be taken back, so only
    leases that may be paused go there. `committed`: held for a term that was agreed.
    """

    capacity_class: CapacityClass

    model_config = with_examples({"capacity_class": "preemptible"})


class CapacityClassAnswer(AnswerModel):
    node_id: NodeId
    capacity_class: CapacityClass
    position: Position | None = None


@resource.post(
    "/v1/nodes/{node_id}/capacity-class",
    WRITE,
    CapacityClassAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE, CloudReason.CAPACITY_CLASS],
)
def set_capacity_class(node_id: NodeInPath, body: CapacityClassRequest, call: Caller) -> Response:
    """Sets the capacity class of a node for leases to come."""

    def commands() -> SetNodeCapacityClass:
        own_node(call, node_id)
        return SetNodeCapacityClass(
            node_id=node_id,
            capacity_class=body.capacity_class,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = CapacityClassAnswer(node_id=node_id, capacity_class=body.capacity_class)
    return call.record(commands, lambda _after: told)
