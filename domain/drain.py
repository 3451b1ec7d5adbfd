"""Draining a node: no new leases, and those that run are asked to go or are kept.

A drain is decided here because it touches a node, its devices and the leases on them. Source:
design marketplace 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.node import NodeDrainStarted, existing_node
from domain.refusal import Reason, Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainNode:
    node_id: str
    keep_leases: bool
    by: str
    at_us: int


def decide_drain(command: DrainNode, world: World) -> list[Change]:
    """No new leases from now on, until the node is activated again.

    Raises Refused: NODE_UNKNOWN, NODE_STATE.
    """
    state = existing_node(world, command.node_id)
    if not state.is_admitted:
        raise Refused(Reason.NODE_STATE, node_id=command.node_id, phase=state.phase)
    if state.phase == "draining":
        return []
    started = NodeDrainStarted(
        node_id=command.node_id,
        keep_leases=command.keep_leases,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(Stream("node", command.node_id), started)]


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {DrainNode: decide_drain}
