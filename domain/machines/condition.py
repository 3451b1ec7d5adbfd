"""Is a machine fit for work? Stopped by its provider, in error by its own word, or failed.

    maintenance, active --NodeStopped, NodeErrored, NodeFailed--> stopped, errored, failed
    stopped, errored, failed --NodeMaintenanceStarted--> maintenance --NodeActivated--> active

A node in any of the three takes no new leases; leases that run go on, and a silent one degrades by
itself. The error is kept. Offline is no fact: it follows from when the node was last heard. An
ephemeral node ends with its job. Rows C-7 and C-31.
"""

from __future__ import annotations

from typing import Any

from domain.fleet.condition import ConditionFact, NodeErrored, NodeFailed, NodeStopped
from domain.fleet.device import device_of
from domain.fleet.node import NodeState, existing_node, node_stream
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, World


@dataclass(frozen=True, slots=True, kw_only=True)
class StopNode:
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNodeError:
    node_id: str
    error: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailNode:
    node_id: str
    error: str
    by: str
    at_us: int


ERROR_LENGTH_MAX = 300


def decide_stop(command: StopNode, world: World) -> list[Change]:
    """A machine is turned off when nobody leases it.

    Raises Refused: NODE_UNKNOWN, NODE_STATE, NODE_BUSY.
    """
    state = existing_node(world, command.node_id)
    if state.phase == "stopped":
        return []
    _require_admitted(command.node_id, state)
    for device_id in state.device_ids:
        device = device_of(world, device_id)
        if device.node_id == command.node_id and device.holders:
            raise Refused(
                FleetReason.NODE_BUSY, device_id=device_id, leases=tuple(sorted(device.holders))
            )
    return _told(NodeStopped(node_id=command.node_id, by=command.by, at_us=command.at_us))


def decide_error(command: ReportNodeError, world: World) -> list[Change]:
    """The same error again changes nothing; a machine that failed stays so.

    Raises Refused: NODE_UNKNOWN, NODE_STATE, COUNT_OUT_OF_RANGE.
    """
    state = existing_node(world, command.node_id)
    if state.phase == "failed" or (state.phase, state.condition.error) == (
        "errored",
        command.error,
    ):
        return []
    _require_admitted(command.node_id, state)
    _require_error(command.error)
    fact = NodeErrored(node_id=command.node_id, error=command.error, at_us=command.at_us)
    return _told(fact)


def decide_fail(command: FailNode, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, NODE_STATE, COUNT_OUT_OF_RANGE."""
    state = existing_node(world, command.node_id)
    if (state.phase, state.condition.error) == ("failed", command.error):
        return []
    _require_admitted(command.node_id, state)
    _require_error(command.error)
    fact = NodeFailed(
        node_id=command.node_id, error=command.error, by=command.by, at_us=command.at_us
    )
    return _told(fact)


def _require_admitted(node_id: str, state: NodeState) -> None:
    if not state.is_admitted or state.is_quarantined:
        phase = "quarantined" if state.is_quarantined else state.phase
        raise Refused(FleetReason.NODE_STATE, node_id=node_id, phase=phase)


def _require_error(error: str) -> None:
    if not 1 <= len(error) <= ERROR_LENGTH_MAX or not error.isprintable():
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field="error", at_most=ERROR_LENGTH_MAX)


def _told(fact: ConditionFact) -> list[Change]:
    return [Change(node_stream(fact.node_id), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {
    StopNode: decide_stop,
    ReportNodeError: decide_error,
    FailNode: decide_fail,
}
