"""Draining a node: no new leases, and those that run are asked to go or are kept.

A drain touches a node, its devices and the leases on them, so it has a file of its own. A lease
that was quoted a reclaim window is reclaimed within it; one without runs to its own end, because
nothing else was agreed. Source: design marketplace 8.
"""

from __future__ import annotations

from typing import Any

from domain.fleet.device import device_of
from domain.fleet.node import NodeDrainStarted, NodeState, existing_node, node_stream
from domain.fleet.reasons import FleetReason
from domain.lease.close_codes import DECOMMISSION
from domain.lease.lease import lease_of
from domain.lease.turns import StartReclaim
from domain.leasing.life import decide_start_reclaim
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, World


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainNode:
    node_id: str
    keep_leases: bool
    by: str
    at_us: int


def decide_drain(command: DrainNode, world: World) -> list[Change]:
    """No new leases from now on, until the node is activated again; and the reclaims, in the same
    append, unless leases are kept.

    Raises Refused: NODE_UNKNOWN, NODE_STATE.
    """
    state = existing_node(world, command.node_id)
    if not state.is_at_work:
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=state.phase)
    if state.phase == "draining":
        return []
    started = NodeDrainStarted(
        node_id=command.node_id, keep_leases=command.keep_leases, by=command.by, at_us=command.at_us
    )
    drained = Change(node_stream(command.node_id), started)
    return [drained] if command.keep_leases else [drained, *_reclaims(command, state, world)]


def _reclaims(command: DrainNode, state: NodeState, world: World) -> list[Change]:
    """A reclaim for each running lease of the node that has a window."""
    devices = (device_of(world, device_id) for device_id in state.device_ids)
    here = (device for device in devices if device.node_id == command.node_id)
    leases = sorted({lease_id for device in here for lease_id in device.holders})
    changes: list[Change] = []
    for lease_id in leases:
        lease = lease_of(world, lease_id)
        has_window = lease.reserved is not None and bool(lease.reserved.reclaim_window_us)
        if lease.status in ("active", "degraded") and has_window:
            reclaim = StartReclaim(
                lease_id=lease_id, code=DECOMMISSION, by=command.by, at_us=command.at_us
            )
            changes += decide_start_reclaim(reclaim, world)
    return changes


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {DrainNode: decide_drain}
