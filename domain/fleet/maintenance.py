"""Maintenance: when a node will be worked on, told before it is.

    until - from <= 7 days,  from <= told + 90 days;  the status follows from the time alone

    now < from: scheduled,  from <= now < until: running,  later: over,  unless cancelled

No lease is reserved on a node while maintenance runs, nor for a fixed term that reaches into a
planned one. With `keep_leases` those that run go silent and come back: silence is not held against
the node before the announced end. Source: design marketplace 8 and 9, row V-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from domain.duration import DAY_US
from domain.fleet.node import existing_node
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceScheduled:
    """Stream `maintenance:{node_id}`."""

    maintenance_id: str
    node_id: str
    kind: str  # KINDS
    from_us: int
    until_us: int
    keep_leases: bool  # those that run go on afterwards (V-8)
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceCancelled:
    """Called off, or ended before its time."""

    maintenance_id: str
    node_id: str
    by: str
    at_us: int


# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleMaintenance:
    maintenance_id: str
    node_id: str
    kind: str
    from_us: int
    until_us: int
    keep_leases: bool
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelMaintenance:
    maintenance_id: str
    node_id: str
    by: str
    at_us: int


KINDS = ("planned", "emergency", "security", "network", "capacity")
LENGTH_US_MAX = 7 * DAY_US
AHEAD_US_MAX = 90 * DAY_US
SCHEDULED_MAX = 100
"""Windows of one node that are not over."""

# What is remembered.


@dataclass(frozen=True, slots=True)
class Window:
    """One maintenance as announced, and when it was called off, if it was."""

    told: MaintenanceScheduled
    cancelled_at_us: int | None = None

    @property
    def end_us(self) -> int:
        """Where it ends: as announced, or when it was called off."""
        until_us, cancelled_us = self.told.until_us, self.cancelled_at_us
        return until_us if cancelled_us is None else min(until_us, cancelled_us)

    def status(self, at_us: int) -> str:
        """By the time alone: scheduled, running, over or cancelled."""
        if self.cancelled_at_us is not None and self.cancelled_at_us <= at_us:
            return "cancelled"
        if at_us < self.told.from_us:
            return "scheduled"
        return "running" if at_us < self.told.until_us else "over"

    def overlaps(self, from_us: int, until_us: int) -> bool:
        """Whether it takes any time of [from_us, until_us)."""
        return max(from_us, self.told.from_us) < min(until_us, self.end_us)


@dataclass(frozen=True, slots=True)
class MaintenanceState:
    windows: tuple[Window, ...] = ()


def stream_of(node_id: str) -> Stream[MaintenanceState]:
    return Stream("maintenance", node_id)


def evolve(
    state: MaintenanceState, fact: MaintenanceScheduled | MaintenanceCancelled
) -> MaintenanceState:
    match fact:
        case MaintenanceScheduled():
            return MaintenanceState((*state.windows, Window(fact)))
        case MaintenanceCancelled():
            return MaintenanceState(
                tuple(
                    replace(window, cancelled_at_us=fact.at_us)
                    if window.told.maintenance_id == fact.maintenance_id
                    else window
                    for window in state.windows
                )
            )
        case _:
            assert_never(fact)


def maintenance_of(world: World, node_id: str) -> MaintenanceState:
    return world.state(stream_of(node_id))


def window_within(world: World, node_id: str, from_us: int, until_us: int) -> Window | None:
    """The first maintenance that takes any time of [from_us, until_us): no lease is reserved over
    it. An open-ended lease asks with `until_us = from_us + 1`: whether one runs now.
    """
    windows = maintenance_of(world, node_id).windows
    found = [window for window in windows if window.overlaps(from_us, until_us)]
    return min(found, key=lambda window: window.told.from_us, default=None)


def kept_until_us(world: World, node_id: str, at_us: int) -> int | None:
    """Until when silence at this moment is announced and leases are kept; None: it is not."""
    windows = maintenance_of(world, node_id).windows
    kept = [window for window in windows if window.told.keep_leases]
    ends = [window.end_us for window in kept if window.overlaps(at_us, at_us + 1)]
    return max(ends, default=None)


def announced_us(world: World, node_id: str, from_us: int, until_us: int) -> int:
    """How much of [from_us, until_us) was announced as maintenance before it began, in all: time
    that two windows share counts once. An emergency is announced by nobody.
    """
    spans = sorted(
        (max(from_us, window.told.from_us), min(until_us, window.end_us))
        for window in maintenance_of(world, node_id).windows
        if window.told.kind != "emergency"
        and window.told.at_us < window.told.from_us
        and window.overlaps(from_us, until_us)
    )
    total_us, reached_us = 0, from_us
    for start_us, end_us in spans:
        total_us += max(0, end_us - max(start_us, reached_us))
        reached_us = max(reached_us, end_us)
    assert 0 <= total_us <= max(0, until_us - from_us), spans
    return total_us


# How we decide.


def decide_schedule(command: ScheduleMaintenance, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, NODE_STATE, UNKNOWN_MODE, MAINTENANCE_WINDOW,
    COUNT_OUT_OF_RANGE.
    """
    node = existing_node(world, command.node_id)
    state = maintenance_of(world, command.node_id)
    for window in state.windows:
        if window.told.maintenance_id == command.maintenance_id:
            return []
    if not node.is_admitted:
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=node.phase)
    if command.kind not in KINDS:
        raise Refused(PartiesReason.UNKNOWN_MODE, kind=command.kind, allowed=KINDS)
    _require_window(command)
    ahead = [window for window in state.windows if window.end_us > command.at_us]
    if len(ahead) >= SCHEDULED_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, windows=len(ahead), at_most=SCHEDULED_MAX)
    told = MaintenanceScheduled(
        maintenance_id=command.maintenance_id,
        node_id=command.node_id,
        kind=command.kind,
        from_us=command.from_us,
        until_us=command.until_us,
        keep_leases=command.keep_leases,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.node_id), told)]


def decide_cancel(command: CancelMaintenance, world: World) -> list[Change]:
    """Also ends one that runs. Raises Refused: MAINTENANCE_UNKNOWN, MAINTENANCE_WINDOW."""
    windows = maintenance_of(world, command.node_id).windows
    for window in windows:
        if window.told.maintenance_id != command.maintenance_id:
            continue
        if window.cancelled_at_us is not None:
            return []
        if window.told.until_us <= command.at_us:
            raise Refused(
                FleetReason.MAINTENANCE_WINDOW, rule="not_over", until_us=window.told.until_us
            )
        cancelled = MaintenanceCancelled(
            maintenance_id=command.maintenance_id,
            node_id=command.node_id,
            by=command.by,
            at_us=command.at_us,
        )
        return [Change(stream_of(command.node_id), cancelled)]
    raise Refused(FleetReason.MAINTENANCE_UNKNOWN, maintenance_id=command.maintenance_id)


def _require_window(command: ScheduleMaintenance) -> None:
    length_us = command.until_us - command.from_us
    if not 0 < length_us <= LENGTH_US_MAX:
        raise Refused(FleetReason.MAINTENANCE_WINDOW, rule="length", at_most_us=LENGTH_US_MAX)
    if command.from_us < command.at_us:
        raise Refused(FleetReason.MAINTENANCE_WINDOW, rule="not_past", at_us=command.at_us)
    if command.from_us > command.at_us + AHEAD_US_MAX:
        raise Refused(FleetReason.MAINTENANCE_WINDOW, rule="ahead", at_most_us=AHEAD_US_MAX)


STREAMS: dict[str, tuple[Any, Any]] = {"maintenance": (MaintenanceState(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    ScheduleMaintenance: decide_schedule,
    CancelMaintenance: decide_cancel,
}
