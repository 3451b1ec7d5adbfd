"""Members of a gang get ready and end together, as long as it has not opened.

    all members open at one instant, in one append       when the last one is ready
    or all members close at charge 0, in one append      when one of them is late, or leaves

A member that was late, or whose provider left, is closed with that party's code; the others with
`gang_timeout`, which is no fault of theirs. Once a gang is open its members are leases like any
other.
"""

from __future__ import annotations

from typing import Any

from domain.fleet.reasons import FleetReason
from domain.jobs.gang import (
    GANG_WAIT_US,
    CloseGang,
    GangClosed,
    GangMemberReady,
    GangOpened,
    GangState,
    gang_of,
    gang_stream,
)
from domain.jobs.reasons import JobsReason
from domain.lease.close_codes import (
    CANCELLED_BEFORE_START,
    EXPIRED,
    GANG_TIMEOUT,
    START_TIMEOUT,
    may_give,
)
from domain.lease.lease import CloseLease, ReadyLease, lease_of
from domain.lease.reasons import LeaseReason
from domain.leasing.accrual import cancelled, decide_close
from domain.leasing.opening import decide_ready, opened
from domain.pools.queue import LeaveQueue, decide_leave, left_queue, reason_of
from domain.refusal import Refused
from domain.stream import Change, World


def decide_ready_together(command: ReadyLease, world: World) -> list[Change]:
    """The last member that is ready opens all of them, at its own instant.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, GANG_UNKNOWN, ENCRYPTION_KEY_UNKNOWN,
    AMOUNT_OUT_OF_RANGE.
    """
    lease = lease_of(world, command.lease_id)
    asked, reserved = lease.requested, lease.reserved
    assert asked is not None
    if asked.gang_id is None or reserved is None:
        return decide_ready(command, world)
    gang = gang_of(world, asked.gang_id)
    if gang.status != "reserved" or command.lease_id not in gang.lease_ids:
        if gang.status == "open":
            return decide_ready(command, world)
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if lease.status == "gang_waiting" and reserved.node_id == command.node_id:
        return []
    # As alone, but for its opening: that waits for the others.
    alone = decide_ready(command, world, opens=False)
    member = GangMemberReady(
        gang_id=asked.gang_id,
        lease_id=command.lease_id,
        ready=len(gang.ready) + 1,
        at_us=command.at_us,
    )
    stream = gang_stream(asked.gang_id)
    changes = [*alone, Change(stream, member)]
    if gang.missing != (command.lease_id,):
        return changes
    fact = GangOpened(gang_id=asked.gang_id, opened_at_us=command.at_us, at_us=command.at_us)
    return [
        *changes,
        *opened([lease_of(world, one) for one in gang.lease_ids], command.at_us, world),
        Change(stream, fact),
    ]


def decide_close_together(command: CloseLease, world: World) -> list[Change]:
    """A member that ends before its gang has opened ends the gang.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, LEASE_NOT_DUE, GANG_UNKNOWN, GANG_STATE,
    CLOSE_CODE_PARTY.
    """
    lease = lease_of(world, command.lease_id)
    asked = lease.requested
    assert asked is not None
    gang = None if asked.gang_id is None else gang_of(world, asked.gang_id)
    if gang is None or gang.status != "reserved" or command.lease_id not in gang.lease_ids:
        return [*decide_close(command, world), *left_queue(lease, command)]
    if not may_give(command.party, command.code):
        raise Refused(LeaseReason.CLOSE_CODE_PARTY, party=command.party, code=command.code)
    if command.party == "job" and command.code == START_TIMEOUT:
        _require_late(gang, command.at_us)
        return _closed(gang, command.party, GANG_TIMEOUT, command.at_us, world)
    return _closed(
        gang, command.party, command.code, command.at_us, world, leaving=command.lease_id
    )


def decide_close_gang(command: CloseGang, world: World) -> list[Change]:
    """End a gang that has not opened; an open one is ended lease by lease. Twice gives no fact.

    Raises Refused: GANG_UNKNOWN, GANG_STATE, CLOSE_CODE_PARTY.
    """
    gang = gang_of(world, command.gang_id)
    if gang.status == "closed":
        return []
    if gang.status == "open":
        raise Refused(JobsReason.GANG_STATE, gang_id=command.gang_id, status=gang.status)
    is_timeout = (command.party, command.code) == ("job", GANG_TIMEOUT)
    if is_timeout:
        _require_late(gang, command.at_us)
    elif (command.party, command.code) == ("job", EXPIRED):
        _require_expired(gang, command.at_us)
    elif not may_give(command.party, command.code):
        raise Refused(LeaseReason.CLOSE_CODE_PARTY, party=command.party, code=command.code)
    return _closed(gang, command.party, command.code, command.at_us, world)


def _require_late(gang: GangState, at_us: int) -> None:
    """Raises Refused: GANG_STATE, for the timer's close of a gang that still has time."""
    if gang.status != "reserved" or at_us < gang.ready_until_us:
        raise Refused(JobsReason.GANG_STATE, status=gang.status, ready_until_us=gang.ready_until_us)


def _require_expired(gang: GangState, at_us: int) -> None:
    """Raises Refused: GANG_STATE, for the timer's close of a gang that may wait still."""
    assert gang.requested is not None
    until_us = gang.requested.at_us + GANG_WAIT_US
    if gang.status != "requested" or at_us < until_us:
        raise Refused(JobsReason.GANG_STATE, status=gang.status, waits_until_us=until_us)


def _closed(
    gang: GangState, party: str, code: int, at_us: int, world: World, *, leaving: str | None = None
) -> list[Change]:
    """Every member at charge 0, and the gang. `code` is the gang's; each member has its own."""
    asked = gang.requested
    assert asked is not None
    changes: list[Change] = []
    for lease_id in gang.lease_ids:
        lease = lease_of(world, lease_id)
        whose = _code_of(gang, lease_id, code, leaving)
        closing = CloseLease(
            lease_id=lease_id, closed_at_us=at_us, party=party, code=whose, at_us=at_us
        )
        changes += cancelled(lease, closing, world)
    if asked.pool_id is not None:
        left = LeaveQueue(
            pool_id=asked.pool_id,
            request_id=asked.gang_id,
            reason=reason_of(party, code),
            at_us=at_us,
        )
        changes += decide_leave(left, world)
    fact = GangClosed(
        gang_id=asked.gang_id, party=party, code=code, missing=gang.missing, at_us=at_us
    )
    return [*changes, Change(gang_stream(asked.gang_id), fact)]


def _code_of(gang: GangState, lease_id: str, code: int, leaving: str | None) -> int:
    """Who was late pays with its name; who left, too; the others are closed for nobody's fault."""
    if code == GANG_TIMEOUT:
        return GANG_TIMEOUT if lease_id in gang.ready else START_TIMEOUT
    if code == CANCELLED_BEFORE_START or leaving in (None, lease_id):
        return code
    return GANG_TIMEOUT


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {
    ReadyLease: decide_ready_together,
    CloseLease: decide_close_together,
    CloseGang: decide_close_gang,
}
