"""Capacity classes: how a node's machine is held, and so how surely it stays.

    on_demand      for as long as it is wanted
    preemptible    its cloud or its owner may take it back: only leases that may be paused
    committed      for a term that was agreed: like on demand, and there to stay

A lease takes preemptible capacity only where it says so, and then it is an interruptible one: its
price is a standing bid or an interruptible offer's (design marketplace 4). Machines of Google Cloud
are on demand only (row C-29). Without a word a node is on demand.
"""

from __future__ import annotations

from typing import Any

from domain.cloud.reasons import CloudReason
from domain.fleet.node import NodeCapacityClassSet, existing_node, node_stream
from domain.fleet.provider import existing_provider
from domain.fleet.reasons import FleetReason
from domain.hardware.constraints import CAPACITY_CLASSES, ON_DEMAND
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, World

ON_DEMAND_ONLY = ("gcp",)
"""Kinds of providers whose other classes are announced and not there yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNodeCapacityClass:
    node_id: str
    capacity_class: str
    by: str
    at_us: int


def decide_set(command: SetNodeCapacityClass, world: World) -> list[Change]:
    """For leases to come; those that run keep what was agreed.

    Raises Refused: NODE_UNKNOWN, NODE_STATE, UNKNOWN_MODE, CAPACITY_CLASS.
    """
    node = existing_node(world, command.node_id)
    assert node.joined is not None
    if node.phase == "retired":
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=node.phase)
    if command.capacity_class not in CAPACITY_CLASSES:
        raise Refused(PartiesReason.UNKNOWN_MODE, capacity_class=command.capacity_class)
    if node.capacity_class == command.capacity_class:
        return []
    kind = existing_provider(world, node.joined.provider_id).kind
    if kind in ON_DEMAND_ONLY and command.capacity_class != ON_DEMAND:
        raise Refused(CloudReason.CAPACITY_CLASS, kind=kind, capacity_class=command.capacity_class)
    told = NodeCapacityClassSet(
        node_id=command.node_id,
        capacity_class=command.capacity_class,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(node_stream(command.node_id), told)]


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {SetNodeCapacityClass: decide_set}
