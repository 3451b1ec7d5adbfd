"""The turns of a lease: quoted, paused, degraded, reclaimed, extended, warned, revised, archived.

    funds end after a pause == funds end before + length of the pause              to the unit
    put in + held for a longer term >= charge(whole term)                          when extended
    deadline of a reclaim == its start + the window that was quoted

Nothing is charged here: what a turn does to charges follows from the windows it leaves to
`domain/leasing/accrual.py`. Facts and commands are in `domain/lease/turns.py`, states and how they
follow on each other in `domain/lease/states.py`. A turn asked for twice is taken once.
"""

from __future__ import annotations

from typing import Any

from domain.duration import DAY_US, HOUR_US, MINUTE_US
from domain.epochs.epoch import epoch_of
from domain.fleet.device import device_of, device_stream, reserve
from domain.fleet.maintenance import kept_until_us
from domain.fleet.reasons import FleetReason
from domain.fleet.revenue_share import handed_on_since
from domain.funds.reasons import FundsReason
from domain.lease.close_codes import INGRESS_FAILURE, UNREACHABLE, fault_of, may_give
from domain.lease.escrow import TIME_MAX_US
from domain.lease.lease import (
    DEGRADED_AFTER_US,
    PAUSES_MAX,
    QUOTES_MAX,
    Lease,
    LeaseReserved,
    lease_of,
    lease_stream,
)
from domain.lease.reasons import LeaseReason
from domain.lease.turns import (
    ArchiveLease,
    CancelReclaim,
    DegradeLease,
    ExtendLease,
    FaultRevised,
    FundsEndWarned,
    LeaseArchived,
    LeaseDegraded,
    LeaseDisputed,
    LeasePaused,
    LeaseQuoted,
    LeaseRecovered,
    LeaseResolved,
    LeaseResumed,
    PauseLease,
    QuoteLease,
    ReclaimCancelled,
    ReclaimStarted,
    RecoverLease,
    ResumeLease,
    ReviseFault,
    StartReclaim,
    Turn,
    WarnFundsEnd,
)
from domain.leasing.accrual import released_devices, released_room
from domain.leasing.demands import room_asked, room_promised
from domain.leasing.extension import extended
from domain.leasing.terms import MATCH_REFUSES, quoted_terms
from domain.market.offer import existing_offer
from domain.market.reasons import MarketReason
from domain.metering.reasons import MeteringReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Reason, Refused
from domain.storage import node_room
from domain.storage.node_room import Room
from domain.stream import Change, World

QUOTE_US_MAX = DAY_US
"""A quote binds its provider no longer than this."""
DISPUTED_US_MAX = 90 * DAY_US
"""For so long after its posting a charge can be disputed (`domain/corrections/dispute.py`)."""
PAUSE_REASONS = ("outbid", "renter")
WARNINGS_US = (10 * MINUTE_US, HOUR_US, DAY_US)
"""How long before the funds end the renter is warned, the last warning first."""


def decide_quote(command: QuoteLease, world: World) -> list[Change]:
    """A price for certain devices, kept until it expires. It holds neither devices nor money.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, LEASE_NOT_DUE, COUNT_OUT_OF_RANGE and like a
    reservation of them.
    """
    lease = lease_of(world, command.lease_id)
    for known in lease.quotes:
        if known.quote_id == command.quote_id:
            return []
    if lease.status not in ("requested", "quoted"):
        raise _wrong_state(lease, command.lease_id)
    if len(lease.quotes) >= QUOTES_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, quotes=len(lease.quotes), at_most=QUOTES_MAX
        )
    if not command.at_us < command.expires_at_us <= command.at_us + QUOTE_US_MAX:
        raise Refused(
            LeaseReason.LEASE_NOT_DUE, rule="quote_expiry", expires_us=command.expires_at_us
        )
    terms = quoted_terms(lease, command, world)
    fact = LeaseQuoted(
        lease_id=command.lease_id,
        quote_id=command.quote_id,
        rule=command.rule,
        provider_id=terms.provider_id,
        node_id=command.node_id,
        offer_id=command.offer_id,
        device_ids=command.device_ids,
        price_per_gpu_hour=terms.price_per_gpu_hour,
        reclaim_window_us=terms.reclaim_window_us,
        expires_at_us=command.expires_at_us,
        open_until_us=max(command.expires_at_us, lease.quoted_until_us),
        at_us=command.at_us,
        bid_id=command.bid_id,
        choice=command.choice,
    )
    return _turned(command.lease_id, fact)


def decide_pause(command: PauseLease, world: World) -> list[Change]:
    """Devices and network are given back and compute stops to the microsecond; disk and volumes
    go on.

    Raises Refused: LEASE_UNKNOWN, UNKNOWN_MODE, LEASE_STATE, COUNT_OUT_OF_RANGE.
    """
    lease = lease_of(world, command.lease_id)
    if command.reason not in PAUSE_REASONS:
        raise Refused(PartiesReason.UNKNOWN_MODE, pause=command.reason, allowed=PAUSE_REASONS)
    if lease.status == "paused":
        return []
    if lease.status != "active" or command.at_us >= lease.window_end_us:
        raise _wrong_state(lease, command.lease_id)
    assert lease.reserved is not None
    if not lease.reserved.interruptible:
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, rule="interruptible")
    if len(lease.pauses) >= PAUSES_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, pauses=len(lease.pauses), at_most=PAUSES_MAX
        )
    fact = LeasePaused(
        lease_id=command.lease_id,
        reason=command.reason,
        by=command.by,
        paused_at_us=max(command.at_us, lease.counted_until_us),
        at_us=command.at_us,
    )
    devices = released_devices(lease, command.at_us, world)
    network = released_room(lease, command.at_us, world, keeps_storage=True)
    return [*_turned(command.lease_id, fact), *devices, *network]


def decide_resume(command: ResumeLease, world: World) -> list[Change]:
    """The same devices and the network are taken again, if they are free, and if no owner has
    handed on its part of the node since: the lease's terms name the owners of its reservation.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, DEVICE_UNKNOWN, DEVICE_TAKEN, OFFER_MISMATCH.
    """
    lease = lease_of(world, command.lease_id)
    if lease.status == "active":
        return []
    if lease.status != "paused" or command.at_us >= lease.window_end_us:
        raise _wrong_state(lease, command.lease_id)
    reserved, paused_us = lease.reserved, lease.paused_at_us
    assert reserved is not None
    assert paused_us is not None
    if handed_on_since(world, reserved.node_id, reserved.at_us):
        raise Refused(
            FleetReason.LEASE_STATE, lease_id=command.lease_id, rule="its node was handed on"
        )
    resumed_us = max(command.at_us, paused_us)
    profile = None if reserved.mig is None else reserved.mig.profile
    held = [
        reserve(
            device_of(world, device_id),
            command.lease_id,
            reserved.share_ppm,
            reserved.mem_ppm,
            command.at_us,
            mode=reserved.mode,
            profile=profile,
        )
        for device_id in reserved.device_ids
    ]
    starts = tuple(one.mig.start for one in held if one.mig is not None)
    fact = LeaseResumed(
        lease_id=command.lease_id,
        by=command.by,
        resumed_at_us=resumed_us,
        funds_end_us=min(lease.funds_end_us + resumed_us - paused_us, TIME_MAX_US),
        at_us=command.at_us,
        mig_starts=starts,
    )
    devices = [Change(device_stream(one.device_id), one) for one in held]
    devices += _network_again(lease, reserved, command.at_us, world)
    return [*_turned(command.lease_id, fact), *devices]


def _network_again(lease: Lease, reserved: LeaseReserved, at_us: int, world: World) -> list[Change]:
    """Raises Refused: OFFER_MISMATCH, when others have the network meanwhile."""
    assert lease.requested is not None
    more = Room(network_mbps=room_asked(lease.requested).network_mbps)
    if not more:
        return []
    promised = room_promised(existing_offer(world, reserved.offer_id))
    if not node_room.fits(world, reserved.node_id, more, promised):
        left = promised - node_room.room_of(world, reserved.node_id).held
        raise Refused(
            MarketReason.OFFER_MISMATCH,
            dimension="network",
            offer_id=reserved.offer_id,
            offered=max(0, left.network_mbps),
        )
    return node_room.take(world, reserved.node_id, reserved.lease_id, more, promised, at_us)


def decide_degrade(command: DegradeLease, world: World) -> list[Change]:
    """Silence for so long is told; what it costs nobody is charged anyway.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, LEASE_NOT_DUE.
    """
    lease = lease_of(world, command.lease_id)
    if lease.status == "degraded":
        return []
    if lease.status != "active":
        raise _wrong_state(lease, command.lease_id)
    assert lease.reserved is not None
    since_us = max(command.since_us, runs_since_us(lease))
    if command.at_us < since_us + DEGRADED_AFTER_US:
        raise Refused(LeaseReason.LEASE_NOT_DUE, due_us=since_us + DEGRADED_AFTER_US)
    fact = LeaseDegraded(
        lease_id=command.lease_id,
        since_us=since_us,
        lane=command.lane,
        usage_position=command.usage_position,
        at_us=command.at_us,
        kept_until_us=kept_until_us(world, lease.reserved.node_id, command.at_us),
    )
    return _turned(command.lease_id, fact)


def runs_since_us(lease: Lease) -> int:
    """The moment it last began to run: its opening, or the end of its last pause."""
    assert lease.opened is not None
    return lease.pauses[-1].to_us if lease.pauses else lease.opened.opened_at_us


def decide_recover(command: RecoverLease, world: World) -> list[Change]:
    """Raises Refused: LEASE_UNKNOWN, LEASE_STATE, LEASE_NOT_DUE."""
    lease = lease_of(world, command.lease_id)
    if lease.status == "active":
        return []
    if lease.status != "degraded":
        raise _wrong_state(lease, command.lease_id)
    assert lease.degraded is not None
    least_us = max(lease.degraded.since_us + 1, command.at_us - DEGRADED_AFTER_US)
    if command.healthy_us < least_us:
        raise Refused(LeaseReason.LEASE_NOT_DUE, healthy_us=command.healthy_us, needed_us=least_us)
    fact = LeaseRecovered(
        lease_id=command.lease_id,
        healthy_us=command.healthy_us,
        gap_us=command.healthy_us - lease.degraded.since_us,
        at_us=command.at_us,
    )
    return _turned(command.lease_id, fact)


def decide_start_reclaim(command: StartReclaim, world: World) -> list[Change]:
    """The provider may close from the deadline on; the renter pays the full rate until then.

    Raises Refused: LEASE_UNKNOWN, CLOSE_CODE_PARTY, LEASE_STATE.
    """
    lease = lease_of(world, command.lease_id)
    if fault_of_code(command.code) != "provider" or not may_give("provider", command.code):
        raise Refused(LeaseReason.CLOSE_CODE_PARTY, party="provider", code=command.code)
    if lease.status == "reclaiming":
        return []
    if lease.status not in ("active", "degraded"):
        raise _wrong_state(lease, command.lease_id)
    assert lease.reserved is not None
    fact = ReclaimStarted(
        lease_id=command.lease_id,
        code=command.code,
        deadline_us=command.at_us + (lease.reserved.reclaim_window_us or 0),
        by=command.by,
        at_us=command.at_us,
    )
    return _turned(command.lease_id, fact)


def decide_cancel_reclaim(command: CancelReclaim, world: World) -> list[Change]:
    """Raises Refused: LEASE_UNKNOWN, LEASE_STATE."""
    lease = lease_of(world, command.lease_id)
    if lease.status == "active":
        return []
    if lease.status != "reclaiming":
        raise _wrong_state(lease, command.lease_id)
    fact = ReclaimCancelled(lease_id=command.lease_id, by=command.by, at_us=command.at_us)
    return _turned(command.lease_id, fact)


def decide_extend(command: ExtendLease, world: World) -> list[Change]:
    """A longer fixed term, all of it held at once, at the locked price.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, AMOUNT_NOT_POSITIVE, TERM_NOT_OFFERED,
    OFFER_WITHDRAWN, OFFER_MISMATCH, UNPAID_DEBT, CREDIT_TOO_LOW, BUDGET_EXHAUSTED.
    """
    lease = lease_of(world, command.lease_id)
    if lease.status not in ("reserved", "gang_waiting", "active", "paused", "degraded"):
        raise _wrong_state(lease, command.lease_id)
    if lease.term_us is None:
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, rule="fixed_term")
    if lease.opened is not None and command.at_us >= lease.window_end_us:
        raise _wrong_state(lease, command.lease_id)
    if command.more_us <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, field="more_us")
    fact, budgets = extended(lease, command, world)
    return [*_turned(command.lease_id, fact), *budgets]


def decide_warn(command: WarnFundsEnd, world: World) -> list[Change]:
    """Each warning once for each end that is forecast. Raises Refused: LEASE_NOT_DUE."""
    lease = lease_of(world, command.lease_id)
    ahead_us = warning_due(lease, command.at_us)
    if ahead_us is None:
        raise Refused(LeaseReason.LEASE_NOT_DUE, lease_id=command.lease_id)
    assert lease.requested is not None
    fact = FundsEndWarned(
        lease_id=command.lease_id,
        account_id=lease.requested.account_id,
        funds_end_us=lease.funds_end_us,
        ahead_us=ahead_us,
        at_us=command.at_us,
    )
    return _turned(command.lease_id, fact)


def warning_due(lease: Lease, at_us: int) -> int | None:
    """How far ahead the warning is that is due now; None: there is none, or it was given.

    A fixed term ends as was agreed, and a lease with `refill` is topped up half an hour before: it
    has the last warning only. Nobody is warned of what was so from the start.
    """
    if lease.status not in ("active", "degraded", "reclaiming") or lease.term_us is not None:
        return None
    assert lease.requested is not None
    assert lease.opened is not None
    end_us = lease.funds_end_us
    for ahead_us in WARNINGS_US[:1] if lease.requested.refill else WARNINGS_US:
        if at_us >= end_us:
            return None
        if end_us - ahead_us <= at_us:
            was = lease.warned
            is_told = was is not None and was.funds_end_us == end_us and was.ahead_us <= ahead_us
            is_news = lease.ran_us(end_us) > ahead_us
            return ahead_us if is_news and not is_told else None
    return None


def decide_revise(command: ReviseFault, world: World) -> list[Change]:
    """The silent time is covered by signed usage after all: the path failed, not the provider.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, USAGE_INCOMPLETE.
    """
    lease = lease_of(world, command.lease_id)
    closed, reserved = lease.closed, lease.reserved
    if lease.revised is not None:
        return []
    is_unreachable = closed is not None and closed.code == UNREACHABLE
    if closed is None or reserved is None or not is_unreachable or lease.status == "archived":
        raise _wrong_state(lease, command.lease_id)
    assert lease.degraded is not None
    needed_us = closed.closed_at_us - DEGRADED_AFTER_US
    if len(command.covered_us) != len(reserved.device_ids) or min(command.covered_us) < needed_us:
        raise Refused(
            MeteringReason.USAGE_INCOMPLETE, lease_id=command.lease_id, until_us=needed_us
        )
    fact = FaultRevised(
        lease_id=command.lease_id,
        provider_account_id=reserved.provider_account_id,
        from_code=UNREACHABLE,
        code=INGRESS_FAILURE,
        since_us=lease.degraded.since_us,
        closed_at_us=closed.closed_at_us,
        lane=command.lane,
        usage_position=command.usage_position,
        at_us=command.at_us,
    )
    return _turned(command.lease_id, fact)


def disputed(lease_id: str, dispute_id: str, at_us: int, world: World) -> list[Change]:
    """What a dispute that opens says to its lease."""
    lease = lease_of(world, lease_id)
    fact = LeaseDisputed(
        lease_id=lease_id,
        dispute_id=dispute_id,
        status="disputed" if lease.is_over else None,
        at_us=at_us,
    )
    return _turned(lease_id, fact)


def resolved(
    lease_id: str, dispute_id: str, outcome: str, at_us: int, world: World
) -> list[Change]:
    """What a dispute that is over says to its lease; one that opened before leases were told says
    nothing.
    """
    lease = lease_of(world, lease_id)
    if dispute_id not in lease.disputes:
        return []
    is_last = lease.status == "disputed" and lease.disputes == (dispute_id,)
    fact = LeaseResolved(
        lease_id=lease_id,
        dispute_id=dispute_id,
        outcome=outcome,
        status="resolved" if is_last else None,
        at_us=at_us,
    )
    return _turned(lease_id, fact)


def decide_archive(command: ArchiveLease, world: World) -> list[Change]:
    """Raises Refused: LEASE_UNKNOWN, LEASE_STATE, LEASE_NOT_DUE, EPOCH_UNKNOWN."""
    lease = lease_of(world, command.lease_id)
    if lease.status == "archived":
        return []
    if lease.status not in ("settled", "resolved"):
        raise _wrong_state(lease, command.lease_id)
    if command.at_us < archives_us(lease):
        raise Refused(LeaseReason.LEASE_NOT_DUE, due_us=archives_us(lease))
    epoch = epoch_of(world, command.epoch)
    assert epoch.opened is not None
    if epoch.sealed is None or epoch.opened.end_us <= lease.settled_at_us:
        raise Refused(LeaseReason.LEASE_NOT_DUE, epoch=command.epoch, status=epoch.status)
    assert lease.requested is not None
    fact = LeaseArchived(
        lease_id=command.lease_id,
        account_id=lease.requested.account_id,
        epoch=command.epoch,
        at_us=command.at_us,
    )
    return _turned(command.lease_id, fact)


def archives_us(lease: Lease) -> int:
    """When nobody can dispute a charge of the lease any more."""
    return lease.settled_at_us + DISPUTED_US_MAX


def fault_of_code(code: int) -> str | None:
    """The party a code names; None: there is no such code."""
    return fault_of(code) if 0 <= code < 40_000 else None


def _turned(lease_id: str, fact: Turn) -> list[Change]:
    return [Change(lease_stream(lease_id), fact)]


def _wrong_state(lease: Lease, lease_id: str) -> Refused:
    return Refused(FleetReason.LEASE_STATE, lease_id=lease_id, status=lease.status)


STREAMS: dict[str, tuple[Any, Any]] = {}
REFUSES: dict[type[Any], tuple[Reason, ...]] = {
    QuoteLease: (
        LeaseReason.LEASE_UNKNOWN,
        FleetReason.LEASE_STATE,
        LeaseReason.LEASE_NOT_DUE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        *MATCH_REFUSES,
    )
}
"""What a command can be refused for, in the order of its docstring."""
DECIDERS: dict[type[Any], Any] = {
    QuoteLease: decide_quote,
    PauseLease: decide_pause,
    ResumeLease: decide_resume,
    DegradeLease: decide_degrade,
    RecoverLease: decide_recover,
    StartReclaim: decide_start_reclaim,
    CancelReclaim: decide_cancel_reclaim,
    ExtendLease: decide_extend,
    WarnFundsEnd: decide_warn,
    ReviseFault: decide_revise,
    ArchiveLease: decide_archive,
}
