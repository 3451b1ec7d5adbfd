"""When a timer has to look at a lease, and what it does then: the one rule of what is due.

    due_commands(lease) == []                   before due_us(lease), and where that is None
    due_us == min(moments of its state)         MOMENTS says which; lists of leases are made from it

A moment may come a little early: half of the runway before the funds end a refill may find that
there is nothing to do yet, and a finished hour waits for its last report. It never comes late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from domain.duration import HOUR_US
from domain.lease.close_codes import (
    EXPIRED,
    FUNDS_ENDED,
    GANG_TIMEOUT,
    START_TIMEOUT,
    TERM_REACHED,
    UNREACHABLE,
)
from domain.lease.lease import (
    DEGRADED_LIMIT_US,
    MIN_RUNWAY_US,
    REQUEST_TIMEOUT_US,
    AccrueUsage,
    CloseLease,
    Lease,
    SettleLease,
)
from domain.leasing.top_up import refill_due
from domain.metering.counting import Passed, UsageRow

PATIENCE_US = 600_000_000
"""How long a finished hour waits for its last report before it is accrued without it."""

_WAITS = ("reserved", "gang_waiting")

# --- the moments ------------------------------------------------------------------------------


def expires_us(lease: Lease) -> int | None:
    """When a request ends by itself: with the last of its quotes, or without any after a day; one
    that stands in a pool's queue waits.
    """
    if lease.status == "quoted":
        return lease.quoted_until_us
    if lease.status != "requested" or lease.queued_in is not None:
        return None
    assert lease.requested is not None
    return lease.requested.at_us + REQUEST_TIMEOUT_US


def unreachable_us(lease: Lease) -> int | None:
    """When a lease that stays degraded is closed: so long after it fell silent, or after the end of
    a maintenance that was announced to keep it (V-8).
    """
    if lease.status != "degraded" or lease.degraded is None:
        return None
    degraded = lease.degraded
    return max(degraded.since_us, degraded.kept_until_us or 0) + DEGRADED_LIMIT_US


def hour_end_us(lease: Lease) -> int:
    """When the lease hour is over that is accrued next."""
    assert lease.opened is not None
    return lease.opened.opened_at_us + (lease.hours_accrued + 1) * HOUR_US


def closes_us(lease: Lease, code: int) -> int | None:
    """From when on a timer may close a lease with its code; None: not in this state."""
    if code == EXPIRED:
        return expires_us(lease)
    if code == START_TIMEOUT:
        return lease.ready_until_us if lease.status == "reserved" else None
    if code == GANG_TIMEOUT:
        return lease.ready_until_us if lease.status in _WAITS else None
    if not lease.is_running:
        return None
    return unreachable_us(lease) if code == UNREACHABLE else lease.window_end_us


MOMENT_OF: dict[str, Callable[[Lease], int | None]] = {
    "request_ends": expires_us,
    "quotes_end": expires_us,
    "start_timeout": lambda lease: lease.ready_until_us,
    "hour_end": hour_end_us,
    "term_end": lambda lease: lease.term_end_us,
    "runway_begin": lambda lease: lease.funds_end_us - MIN_RUNWAY_US,
    "silence_end": unreachable_us,
    "at_once": lambda _: 0,
}
_RUNS = ("hour_end", "term_end", "runway_begin")
MOMENTS: dict[str, tuple[str, ...]] = {
    "requested": ("request_ends",),
    "quoted": ("quotes_end",),
    "reserved": ("start_timeout",),
    "gang_waiting": ("start_timeout",),
    "active": _RUNS,
    "reclaiming": _RUNS,
    "degraded": (*_RUNS, "silence_end"),
    "paused": ("hour_end", "term_end"),  # nothing is used up meanwhile
    "closing": ("at_once",),
}
"""By state, after which moments something may be due; a state that is not here waits for none."""


def due_us(lease: Lease) -> int | None:
    """From when on a timer may have something to do; None: never, as the lease stands."""
    told = (MOMENT_OF[name](lease) for name in MOMENTS.get(lease.status, ()))
    return min((at_us for at_us in told if at_us is not None), default=None)


def reports_due_us(lease: Lease) -> int | None:
    """From when on `due_commands` reads its reports: an hour of the lease is over, or the lease."""
    if lease.opened is None or lease.is_over:
        return None
    if lease.closed is not None:
        return 0
    silence_us = unreachable_us(lease)
    ends = (hour_end_us(lease), lease.window_end_us)
    return min(ends) if silence_us is None else min(*ends, silence_us)


# --- what is done then ------------------------------------------------------------------------


class Reports(Protocol):
    """What the node has reported and the lease has not consumed yet; read when it is needed."""

    def unread(self) -> AccrueUsage:
        """All of it, as the command that would accrue it."""
        ...

    def passed(self) -> tuple[Passed, ...]:
        """How far it tells of the lease's devices beyond the lease's own rows."""
        ...


def due_commands(
    lease: Lease, lease_id: str, reports: Reports, now_us: int, patience_us: int = PATIENCE_US
) -> list[Any]:
    """What is due for one lease now: the end of its start timeout, funds or term, finished hours,
    settlement.
    """
    if lease.opened is None or lease.is_over:
        return _never_runs(lease, lease_id, now_us)
    refill = refill_due(lease, lease_id, now_us)
    close = _close_due(lease, lease_id, now_us)
    commands: list[Any] = [command for command in (refill, close) if command is not None]
    is_over = lease.closed is not None or close is not None
    end_us = lease.window_end_us if close is None else close.closed_at_us
    until_us = hour_end_us(lease)
    if not is_over and until_us > now_us:
        return commands
    command = reports.unread()
    reached_us = _reached_us(lease, command.rows)
    while until_us < end_us and until_us <= now_us:
        if reached_us < until_us and now_us < until_us + patience_us:
            return commands
        commands.append(command)
        until_us += HOUR_US
    return [*commands, _settle(command, reports.passed())] if is_over else commands


def _never_runs(lease: Lease, lease_id: str, now_us: int) -> list[Any]:
    """The end of a lease that has not opened, when its time is over."""
    if lease.status in _WAITS and now_us >= lease.ready_until_us:
        return [_close(lease_id, lease.ready_until_us, START_TIMEOUT, now_us)]
    ends_us = expires_us(lease)
    if ends_us is not None and ends_us <= now_us:
        return [_close(lease_id, ends_us, EXPIRED, now_us)]
    return []


def _close_due(lease: Lease, lease_id: str, now_us: int) -> CloseLease | None:
    """The end of a lease that runs: of its term or funds, or of the wait for its node."""
    if lease.closed is not None:
        return None
    end_us, silence_us = lease.window_end_us, unreachable_us(lease)
    if end_us <= now_us:
        code = TERM_REACHED if lease.term_end_us == end_us else FUNDS_ENDED
        return _close(lease_id, end_us, code, now_us)
    if silence_us is not None and silence_us <= now_us:
        return _close(lease_id, silence_us, UNREACHABLE, now_us)
    return None


def _close(lease_id: str, closed_at_us: int, code: int, now_us: int) -> CloseLease:
    return CloseLease(
        lease_id=lease_id, closed_at_us=closed_at_us, party="job", code=code, at_us=now_us
    )


def _settle(command: AccrueUsage, passed: tuple[Passed, ...]) -> SettleLease:
    return SettleLease(
        lease_id=command.lease_id,
        lane=command.lane,
        usage_position=command.usage_position,
        rows=command.rows,
        at_us=command.at_us,
        passed=passed,
    )


def _reached_us(lease: Lease, rows: Iterable[UsageRow]) -> int:
    """The moment up to which every device of the lease has reported."""
    assert lease.reserved is not None
    ends = dict.fromkeys(lease.reserved.device_ids, 0)
    ends.update({mark.device_id: mark.wall_end_us for mark in lease.marks})
    for row in rows:
        if row.device_id in ends:
            ends[row.device_id] = max(ends[row.device_id], row.wall_end_us)
    return min(ends.values())
