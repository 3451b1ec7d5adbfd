"""When a lease may be ended, and with which code: by its window, its timers and who asks.

    provider's close of a lease with a window: refused before the deadline, accepted from it on
    the server's own codes: refused before their moment, whoever calls the timer

Funds and terms end a lease whatever window was quoted. Source: marketplace 1.
"""

from __future__ import annotations

from domain.fleet.reasons import FleetReason
from domain.lease.close_codes import (
    CANCELLED_BEFORE_START,
    EXPIRED,
    FUNDS_ENDED,
    GANG_TIMEOUT,
    RECLAIMED,
    START_TIMEOUT,
    TERM_REACHED,
    UNREACHABLE,
)
from domain.lease.lease import CloseLease, Lease
from domain.lease.reasons import LeaseReason
from domain.leasing.due import closes_us
from domain.refusal import Refused


def require_close_due(lease: Lease, command: CloseLease) -> None:
    """Raises Refused: LEASE_STATE for a code that says nothing true of this lease; LEASE_NOT_DUE
    before its moment.
    """
    if command.party == "provider":
        _require_window_over(lease, command)
    if command.code == CANCELLED_BEFORE_START and lease.opened is not None:
        raise _wrong(lease, command)
    if command.party == "job" and command.code in _DUE:
        due_us = closes_us(lease, command.code)
        if due_us is None:
            raise _wrong(lease, command)
        if command.at_us < due_us:
            raise Refused(LeaseReason.LEASE_NOT_DUE, lease_id=command.lease_id, due_us=due_us)


def _require_window_over(lease: Lease, command: CloseLease) -> None:
    """The provider of a lease that runs waits for the window of its reclaim; one that is paused,
    or that never ran, has none.
    """
    if lease.status == "reclaiming":
        assert lease.reclaim is not None
        if command.at_us < lease.reclaim.deadline_us:
            raise Refused(
                LeaseReason.LEASE_NOT_DUE, rule="reclaim_window", due_us=lease.reclaim.deadline_us
            )
        return
    if command.code == RECLAIMED or lease.status in ("requested", "quoted"):
        raise _wrong(lease, command)
    has_window = lease.reserved is not None and bool(lease.reserved.reclaim_window_us)
    if has_window and lease.status in ("active", "degraded"):
        raise Refused(LeaseReason.LEASE_NOT_DUE, rule="reclaim_window", status=lease.status)


_DUE = (START_TIMEOUT, GANG_TIMEOUT, EXPIRED, UNREACHABLE, FUNDS_ENDED, TERM_REACHED)
"""The codes of timers: each has its moment."""


def _wrong(lease: Lease, command: CloseLease) -> Refused:
    return Refused(
        FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status, code=command.code
    )
