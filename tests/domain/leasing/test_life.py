"""The turns of a lease: pauses, silence, reclaims, quotes, longer terms, warnings, its archive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.corrections.sla import promised_gpu_us
from domain.duration import HOUR_US
from domain.epochs.epoch import Epoch, EpochOpened, EpochSealed
from domain.epochs.reasons import EpochsReason
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.hardware.constraints import Constraints
from domain.hardware.reasons import HardwareReason
from domain.lease.close_codes import (
    CLOSE_REASONS,
    FAULTS,
    FUNDS_ENDED,
    PARTIES,
    RECLAIMED,
    UNREACHABLE,
    fault_of,
    may_give,
)
from domain.lease.escrow import TIME_MAX_US
from domain.lease.lease import (
    DEGRADED_AFTER_US,
    DEGRADED_LIMIT_US,
    LATE_WINDOW_US,
    AccrueUsage,
    CloseLease,
    Lease,
    LeaseClosed,
    LeaseReserved,
    TopUpLease,
    lease_of,
)
from domain.lease.reasons import LeaseReason
from domain.lease.turns import (
    ArchiveLease,
    CancelReclaim,
    DegradeLease,
    ExtendLease,
    FaultRevised,
    FundsEndWarned,
    LeaseDegraded,
    LeaseExtended,
    LeaseQuoted,
    LeaseRecovered,
    LeaseResumed,
    PauseLease,
    QuoteLease,
    ReclaimStarted,
    RecoverLease,
    ResumeLease,
    ReviseFault,
    StartReclaim,
    WarnFundsEnd,
)
from domain.leasing.accrual import accrued_so_far, reports_from_us
from domain.leasing.life import DISPUTED_US_MAX
from domain.market.offer import OfferPublished, OfferTerms
from domain.market.reasons import MarketReason
from domain.metering.reasons import MeteringReason
from domain.money import credit
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Stream
from tests.domain.scenes.market import (
    DEVICES,
    LEASE,
    NODE,
    NOON_US,
    OFFER,
    RENTER,
    close,
    job,
    ready,
    request,
    reserve,
    scene,
    settle,
    usage,
)
from tests.scenes.booked import Booked
from tests.scenes.samples import sample

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
PRICE = 2_780_000
CASH = f"party:{RENTER}:cash"


def market(window_us: int | None = None, *, interruptible: bool = True) -> Booked:
    """The market at noon; its offers quote this window and take leases that may be paused."""
    made = Booked()
    terms = OfferTerms(reclaim_window_us=window_us, interruptible=interruptible)
    for stream, fact in scene({}).past:
        told = replace(fact, terms=terms) if isinstance(fact, OfferPublished) else fact
        made.record(stream, told)
    made.books[CASH] = 100_000_000
    made.books["world:bank"] = 100_000_000
    return made


def running(window_us: int | None = None, *, interruptible: bool = True, **asked: Any) -> Booked:
    """A lease of one device that runs since noon."""
    made = market(window_us)
    demands = Constraints(interruptible=True) if interruptible else None
    made.do(job(constraints=demands), request(**(asked or {"funds": 10_000_000})))
    made.do(reserve(), ready)
    return made


def lease_in(made: Booked) -> Lease:
    return lease_of(made, LEASE)


def refused(made: Booked, *commands: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        made.do(*commands)
    return caught.value


def pause(us: int, reason: str = "outbid") -> PauseLease:
    return PauseLease(lease_id=LEASE, reason=reason, by="job", at_us=NOON_US + us)


def resume(us: int) -> ResumeLease:
    return ResumeLease(lease_id=LEASE, by="job", at_us=NOON_US + us)


def degrade(us: int, since_us: int = 0) -> DegradeLease:
    return DegradeLease(
        lease_id=LEASE, since_us=NOON_US + since_us, lane=1, usage_position=0, at_us=NOON_US + us
    )


def reclaim(us: int, code: int = 10_001) -> StartReclaim:
    return StartReclaim(lease_id=LEASE, code=code, by="prov_a", at_us=NOON_US + us)


def charged(made: Booked) -> int:
    return lease_in(made).charge_units


# --- codes ---------------------------------------------------------------------------------------


def test_a_code_lies_in_the_range_of_the_party_it_blames() -> None:
    for code, reason in CLOSE_REASONS.items():
        assert reason.fault == fault_of(code)
        assert code in dict(FAULTS)[reason.fault]
        assert reason.given_by
        assert set(reason.given_by) <= set(PARTIES)


@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("code", [*CLOSE_REASONS, 7, 99, 104, 10_007, 20_000, 30_001])
def test_a_lease_is_closed_only_with_a_code_of_the_party(party: str, code: int) -> None:
    made = running()
    if may_give(party, code):
        try:
            made.do(close(MINUTE_US, party, code))
        except Refused as told:
            assert told.reason in (FleetReason.LEASE_STATE, LeaseReason.LEASE_NOT_DUE)  # noqa: PT017
        return
    assert refused(made, close(MINUTE_US, party, code)).reason is LeaseReason.CLOSE_CODE_PARTY


def test_no_provider_blames_the_renter_and_no_renter_the_network() -> None:
    for code, reason in CLOSE_REASONS.items():
        if "provider" in reason.given_by:
            assert reason.fault == "provider" or code == RECLAIMED
        if "renter" in reason.given_by:
            assert reason.fault in ("none", "renter", "client")


# --- pauses --------------------------------------------------------------------------------------


def test_a_paused_lease_pays_for_the_microseconds_it_ran_and_no_other() -> None:
    """Rows that lie across the pause count only outside it; the rest is named."""
    made = running()
    made.do(pause(10 * MINUTE_US))
    made.do(resume(40 * MINUTE_US), close(HOUR_US))
    made.do(settle(HOUR_US + 1, (usage(0, HOUR_US),)))
    lease = lease_in(made)
    assert lease.status == "settled"
    assert lease.gpu_us == 30 * MINUTE_US
    assert lease.charge_units == PRICE // 2
    assert made.books[CASH] == 100_000_000 - PRICE // 2


def test_a_paused_lease_holds_no_device_and_another_takes_it() -> None:
    made = running()
    made.do(pause(MINUTE_US))
    other = replace(request(funds=5_000_000), lease_id="lease_22222222")
    took = replace(reserve(), lease_id="lease_22222222", at_us=NOON_US + 2 * MINUTE_US)
    made.do(other, took)
    assert refused(made, resume(3 * MINUTE_US)).reason is HardwareReason.DEVICE_TAKEN
    leave = CloseLease(
        lease_id="lease_22222222",
        closed_at_us=NOON_US,
        party="renter",
        code=101,
        at_us=NOON_US + 4 * MINUTE_US,
    )
    made.do(leave, resume(5 * MINUTE_US))
    assert lease_in(made).status == "active"
    assert set(made.state(Stream("device", "GPU-0")).holders) == {LEASE}


def test_the_funds_end_later_by_the_length_of_the_pause() -> None:
    made = running()
    before = lease_in(made).window_end_us
    made.do(pause(10 * MINUTE_US))
    assert lease_in(made).window_end_us > before, "nothing is used up"
    told = made.do(resume(10 * MINUTE_US + 7))[0]
    assert isinstance(told, LeaseResumed)
    assert lease_in(made).window_end_us == told.funds_end_us == before + 7
    more = TopUpLease(
        lease_id=LEASE, account_id=RENTER, amount=credit(PRICE), at_us=NOON_US + HOUR_US
    )
    made.do(more)
    run_us = lease_in(made).ran_us(lease_in(made).window_end_us)
    assert run_us % SECOND_US == 0
    paid = 10_000_000 + PRICE
    assert run_us * PRICE // HOUR_US <= paid < (run_us + SECOND_US) * PRICE // HOUR_US + 1


def test_funds_that_last_beyond_the_calendar_end_with_it_after_a_pause_too() -> None:
    """A fact holds no later moment: such a lease could not be resumed."""
    made = market()
    made.books[CASH] = made.books["world:bank"] = 10**13
    made.do(job(constraints=Constraints(interruptible=True)), request(funds=9 * 10**12))
    made.do(reserve(), ready, pause(10 * MINUTE_US))
    told = made.do(resume(HOUR_US))[0]
    assert isinstance(told, LeaseResumed)
    assert told.funds_end_us == TIME_MAX_US


def test_a_closed_pause_waits_for_no_reports_of_its_time() -> None:
    made = running()
    made.do(pause(HOUR_US // 2), close(3 * HOUR_US // 4))
    made.do(settle(HOUR_US, (usage(0, HOUR_US // 2),)))
    assert lease_in(made).charge_units == PRICE // 2


def test_a_lease_that_is_closed_while_it_is_paused_waits_for_the_reports_before_the_pause() -> None:
    made = running()
    made.do(pause(HOUR_US // 2), close(3 * HOUR_US // 4))
    early = settle(HOUR_US, (usage(0, HOUR_US // 2 - 1),))
    assert refused(made, early).reason is MeteringReason.USAGE_INCOMPLETE
    made.do(settle(HOUR_US, (usage(0, HOUR_US // 2),)))
    assert lease_in(made).status == "settled"


def test_a_pause_that_is_over_ends_no_waiting_for_the_reports_after_it() -> None:
    made = running()
    made.do(pause(10 * MINUTE_US), resume(20 * MINUTE_US), close(HOUR_US))
    until_the_pause = settle(HOUR_US + 1, (usage(0, 10 * MINUTE_US),))
    assert refused(made, until_the_pause).reason is MeteringReason.USAGE_INCOMPLETE
    made.do(settle(HOUR_US + 1, (usage(0, HOUR_US),)))
    assert lease_in(made).charge_units == PRICE * 50 // 60


def test_reports_of_a_lease_are_read_from_an_hour_before_it_was_reserved() -> None:
    """By whole hours, so that a clock that is behind loses nothing."""
    told = sample(LeaseReserved)
    hours = {
        minutes: reports_from_us(replace(told, at_us=NOON_US + minutes * MINUTE_US))
        for minutes in (0, 1, 59, 60)
    }
    before_us = NOON_US - HOUR_US
    assert hours == {0: before_us, 1: before_us, 59: before_us, 60: NOON_US}


def test_what_is_told_of_a_paused_lease_so_far_ends_with_the_pause() -> None:
    made = running()
    made.do(pause(10 * MINUTE_US))
    rows = (usage(0, HOUR_US),)
    told = AccrueUsage(
        lease_id=LEASE, lane=1, usage_position=1, rows=rows, at_us=NOON_US + 2 * HOUR_US
    )
    so_far = accrued_so_far(lease_in(made), told)
    assert (so_far.gpu_us, so_far.charge.units) == (10 * MINUTE_US, PRICE // 6)


def test_what_is_told_so_far_goes_to_now_no_less_than_was_accrued_and_not_beyond_the_end() -> None:
    made = running(funds=2 * PRICE)
    asked = AccrueUsage(
        lease_id=LEASE, lane=1, usage_position=1, rows=(usage(0, HOUR_US),), at_us=NOON_US + HOUR_US
    )
    made.do(asked)
    for us, until_us in (
        (HOUR_US // 2, HOUR_US),
        (HOUR_US, HOUR_US),
        (HOUR_US + 7, HOUR_US + 7),
        (9 * HOUR_US, 2 * HOUR_US),
    ):
        rows = (usage(HOUR_US, 3 * HOUR_US // 2, position=2),)
        told = replace(asked, usage_position=2, rows=rows, at_us=NOON_US + us)
        so_far = accrued_so_far(lease_in(made), told)
        assert so_far.until_us == NOON_US + until_us
        assert so_far.charge_new.units == PRICE // 2
        assert {part.source for part in so_far.drawn} == {"cash"}


def test_only_an_interruptible_lease_is_paused_and_twice_is_once() -> None:
    plain = running(interruptible=False)
    assert refused(plain, pause(1)).reason is FleetReason.LEASE_STATE
    made = running()
    assert refused(made, pause(1, "whim")).reason is PartiesReason.UNKNOWN_MODE
    made.do(pause(1))
    assert made.do(pause(2)) == []
    made.do(resume(3))
    assert made.do(resume(4)) == []


def test_the_provider_closes_a_paused_lease_without_a_window() -> None:
    made = running(HOUR_US)
    made.do(pause(MINUTE_US))
    assert isinstance(made.do(close(2 * MINUTE_US, "provider", 10_001))[0], LeaseClosed)


# --- silence -------------------------------------------------------------------------------------


def test_a_silent_lease_is_degraded_after_180_seconds_and_not_a_microsecond_before() -> None:
    made = running()
    soon = refused(made, degrade(DEGRADED_AFTER_US - 1))
    assert soon.reason is LeaseReason.LEASE_NOT_DUE
    assert isinstance(made.do(degrade(DEGRADED_AFTER_US))[0], LeaseDegraded)
    assert made.do(degrade(DEGRADED_AFTER_US + 1)) == []


def test_a_lease_that_reports_again_recovers_and_the_gap_is_told() -> None:
    made = running()
    made.do(degrade(5 * MINUTE_US, MINUTE_US))
    stale = RecoverLease(
        lease_id=LEASE, healthy_us=NOON_US + 2 * MINUTE_US, at_us=NOON_US + 6 * MINUTE_US
    )
    assert refused(made, stale).reason is LeaseReason.LEASE_NOT_DUE, "that is old news"
    back = replace(stale, healthy_us=NOON_US + 6 * MINUTE_US)
    told = made.do(back)[0]
    assert isinstance(told, LeaseRecovered)
    assert told.gap_us == 5 * MINUTE_US
    assert lease_in(made).status == "active"


def unreachable(us: int) -> CloseLease:
    return close(us, "job", UNREACHABLE)


def test_a_provider_that_is_down_for_thirty_minutes_is_unpaid_and_closed() -> None:
    """Half an hour of silence after ten minutes of work: ten minutes are paid."""
    made = running()
    since_us = 10 * MINUTE_US
    made.do(degrade(since_us + DEGRADED_AFTER_US, since_us))
    limit_us = since_us + DEGRADED_LIMIT_US
    assert refused(made, unreachable(limit_us - 1)).reason is LeaseReason.LEASE_NOT_DUE
    late = replace(unreachable(limit_us), at_us=NOON_US + limit_us + HOUR_US)
    made.do(late)
    closed = lease_in(made).closed
    assert closed is not None
    assert closed.closed_at_us == NOON_US + limit_us, "an hour late, and still at its moment"
    rows = (usage(0, since_us),)
    soon = refused(made, settle(limit_us + HOUR_US, rows))
    assert soon.reason is MeteringReason.USAGE_INCOMPLETE
    made.do(settle(limit_us + LATE_WINDOW_US, rows))
    assert charged(made) == PRICE // 6
    assert made.books[CASH] == 100_000_000 - PRICE // 6


def closed_as_unreachable() -> Booked:
    made = running()
    made.do(degrade(DEGRADED_AFTER_US), unreachable(DEGRADED_LIMIT_US))
    return made


def revise(covered_us: int) -> ReviseFault:
    return ReviseFault(
        lease_id=LEASE,
        lane=1,
        usage_position=9,
        covered_us=(NOON_US + covered_us,),
        at_us=NOON_US + 2 * HOUR_US,
    )


def test_late_proof_that_the_node_worked_moves_the_fault_to_the_network() -> None:
    made = closed_as_unreachable()
    short = revise(DEGRADED_LIMIT_US - DEGRADED_AFTER_US - 1)
    assert refused(made, short).reason is MeteringReason.USAGE_INCOMPLETE
    told = made.do(revise(DEGRADED_LIMIT_US))[0]
    assert isinstance(told, FaultRevised)
    assert (told.from_code, told.code) == (10_004, 20_004)
    assert fault_of(told.code) == "network"
    assert made.do(revise(DEGRADED_LIMIT_US)) == []
    made.do(settle(2 * HOUR_US, (usage(0, DEGRADED_LIMIT_US),)))
    assert charged(made) == PRICE // 2, "and what it served is paid"


def test_only_silence_is_revised() -> None:
    made = running()
    made.do(close(HOUR_US))
    assert refused(made, revise(HOUR_US)).reason is FleetReason.LEASE_STATE


# --- reclaims ------------------------------------------------------------------------------------


def test_a_provider_waits_for_the_window_it_quoted_to_the_second() -> None:
    """59:59 is refused, 60:00 is accepted; both reasons stay."""
    made = running(HOUR_US)
    assert refused(made, close(0, "provider", 10_001)).reason is LeaseReason.LEASE_NOT_DUE
    told = made.do(reclaim(0))[0]
    assert isinstance(told, ReclaimStarted)
    early = refused(made, close(HOUR_US - SECOND_US, "provider", RECLAIMED))
    assert early.reason is LeaseReason.LEASE_NOT_DUE
    assert early.facts["rule"] == "reclaim_window"
    made.do(close(HOUR_US, "provider", RECLAIMED))
    lease = lease_in(made)
    assert lease.reclaim is not None
    assert lease.closed is not None
    assert (lease.reclaim.code, lease.closed.code) == (10_001, 2)


def test_without_a_window_the_provider_closes_at_once() -> None:
    made = running()
    made.do(close(0, "provider", 10_000))
    assert lease_in(made).status == "closing"


def test_funds_end_in_the_middle_of_a_window() -> None:
    made = running(100 * HOUR_US)
    made.do(reclaim(0))
    end_us = lease_in(made).window_end_us - NOON_US
    made.do(close(end_us, "job", FUNDS_ENDED))
    assert lease_in(made).status == "closing"


def test_reclaiming_wins_over_degraded_and_can_be_called_off() -> None:
    made = running(HOUR_US)
    made.do(degrade(DEGRADED_AFTER_US), reclaim(200 * SECOND_US))
    lease = lease_in(made)
    assert (lease.status, lease.degraded) == ("reclaiming", None)
    assert refused(made, unreachable(HOUR_US)).reason is FleetReason.LEASE_STATE
    assert made.do(reclaim(300 * SECOND_US)) == []
    made.do(CancelReclaim(lease_id=LEASE, by="prov_a", at_us=NOON_US + 400 * SECOND_US))
    assert lease_in(made).status == "active"
    assert refused(made, reclaim(1, code=0)).reason is LeaseReason.CLOSE_CODE_PARTY


def test_a_reclaimed_lease_pays_the_full_rate() -> None:
    made = running(HOUR_US)
    made.do(reclaim(0), close(HOUR_US, "provider", RECLAIMED))
    made.do(settle(HOUR_US, (usage(0, HOUR_US),)))
    assert charged(made) == PRICE


# --- quotes --------------------------------------------------------------------------------------


def quote(quote_id: str = "quote_1", expires_us: int = HOUR_US, **changes: Any) -> QuoteLease:
    asked = QuoteLease(
        lease_id=LEASE,
        quote_id=quote_id,
        rule="posted/1",
        node_id=NODE,
        offer_id=OFFER,
        device_ids=DEVICES[:1],
        price_per_gpu_hour=None,
        expires_at_us=NOON_US + expires_us,
        at_us=NOON_US,
    )
    return replace(asked, **changes)


def asked_for() -> Booked:
    made = market(HOUR_US)
    made.do(job(), request(funds=10_000_000))
    return made


def test_a_quote_holds_nothing_and_is_taken_at_its_price() -> None:
    made = asked_for()
    told = made.do(quote(price_per_gpu_hour=credit(1_000_000)))[0]
    assert isinstance(told, LeaseQuoted)
    assert told.reclaim_window_us == HOUR_US
    assert made.books[CASH] == 100_000_000
    assert not made.state(Stream("device", "GPU-0")).holders
    assert made.do(quote(price_per_gpu_hour=credit(1_000_000))) == []
    assert refused(made, reserve()).reason is FleetReason.LEASE_STATE, "which quote?"
    made.do(replace(reserve(), quote_id="quote_1"))
    reserved = lease_in(made).reserved
    assert reserved is not None
    assert reserved.price_per_gpu_hour == credit(1_000_000)
    assert (reserved.reclaim_window_us, reserved.quote_id) == (HOUR_US, "quote_1")


def test_a_quote_ends_at_its_second_and_the_request_with_the_last_of_them() -> None:
    made = asked_for()
    made.do(quote(), quote("quote_2", 2 * HOUR_US))
    late = replace(reserve(), quote_id="quote_1", at_us=NOON_US + HOUR_US)
    assert refused(made, late).reason is FleetReason.LEASE_STATE
    assert refused(made, close(2 * HOUR_US - 1, "job", 6)).reason is LeaseReason.LEASE_NOT_DUE
    made.do(close(2 * HOUR_US, "job", 6))
    lease = lease_in(made)
    assert lease.closed is not None
    assert (lease.status, lease.closed.code) == ("settled", 6)
    assert made.books[CASH] == 100_000_000


def test_a_quote_above_the_cap_or_for_ever_is_refused() -> None:
    made = asked_for()
    assert (
        refused(made, quote(price_per_gpu_hour=credit(3_000_001))).reason
        is PricesReason.PRICE_ABOVE_CAP
    )
    assert refused(made, quote(expires_us=25 * HOUR_US)).reason is LeaseReason.LEASE_NOT_DUE
    assert refused(made, quote(device_ids=DEVICES[:2])).reason is MarketReason.OFFER_MISMATCH


# --- longer terms and warnings -------------------------------------------------------------------


def extend(us: int, more_us: int = HOUR_US) -> ExtendLease:
    return ExtendLease(lease_id=LEASE, account_id=RENTER, more_us=more_us, at_us=NOON_US + us)


def test_a_longer_term_is_held_in_full_at_the_locked_price() -> None:
    made = running(term_us=HOUR_US)
    assert made.books[CASH] == 100_000_000 - PRICE
    told = made.do(extend(MINUTE_US))[0]
    assert isinstance(told, LeaseExtended)
    assert told.term_end_us == lease_in(made).window_end_us == NOON_US + 2 * HOUR_US
    assert made.books[CASH] == 100_000_000 - 2 * PRICE
    made.do(close(2 * HOUR_US, "job", 3))
    made.do(*_two_hours())
    assert charged(made) == 2 * PRICE
    assert not made.of("escrow:")


def _two_hours() -> list[Any]:
    rows = (usage(0, HOUR_US), usage(HOUR_US, 2 * HOUR_US, position=2))
    first = AccrueUsage(
        lease_id=LEASE, lane=1, usage_position=1, rows=rows[:1], at_us=NOON_US + 2 * HOUR_US
    )
    return [first, settle(2 * HOUR_US, rows)]


def test_an_open_end_has_no_term_and_an_ended_lease_no_longer_one() -> None:
    assert refused(running(), extend(1)).reason is FleetReason.LEASE_STATE
    made = running(term_us=HOUR_US)
    assert refused(made, extend(HOUR_US)).reason is FleetReason.LEASE_STATE
    assert refused(made, extend(1, more_us=0)).reason is FundsReason.AMOUNT_NOT_POSITIVE
    assert refused(made, extend(1, more_us=1_000 * HOUR_US)).reason is FundsReason.CREDIT_TOO_LOW


def warn(us: int) -> WarnFundsEnd:
    return WarnFundsEnd(lease_id=LEASE, at_us=NOON_US + us)


def test_the_renter_is_warned_a_day_an_hour_and_ten_minutes_before_once_each() -> None:
    made = running(funds=30 * PRICE)
    end_us = lease_in(made).window_end_us - NOON_US
    assert end_us == 30 * HOUR_US
    given = []
    for ahead_us in (24 * HOUR_US, HOUR_US, 10 * MINUTE_US):
        assert refused(made, warn(end_us - ahead_us - 1)).reason is LeaseReason.LEASE_NOT_DUE
        told = made.do(warn(end_us - ahead_us))[0]
        assert isinstance(told, FundsEndWarned)
        assert refused(made, warn(end_us - ahead_us + 1)).reason is LeaseReason.LEASE_NOT_DUE
        given.append(told.ahead_us)
    assert given == [24 * HOUR_US, HOUR_US, 10 * MINUTE_US]
    more = TopUpLease(
        lease_id=LEASE, account_id=RENTER, amount=credit(PRICE), at_us=NOON_US + end_us - 1
    )
    made.do(more)
    assert made.do(warn(end_us))[0].ahead_us == HOUR_US, "another end, another warning"


def test_a_late_warning_is_the_one_that_counts_now() -> None:
    made = running(funds=30 * PRICE)
    assert made.do(warn(30 * HOUR_US - MINUTE_US))[0].ahead_us == 10 * MINUTE_US


def test_nobody_is_warned_of_a_term_or_of_what_was_so_from_the_start() -> None:
    assert refused(running(term_us=HOUR_US), warn(HOUR_US - 1)).reason is LeaseReason.LEASE_NOT_DUE
    made = running(funds=2 * PRICE)
    assert refused(made, warn(1)).reason is LeaseReason.LEASE_NOT_DUE, (
        "less than a day was paid for"
    )


# --- the end -------------------------------------------------------------------------------------


def test_closing_twice_gives_no_fact_and_the_first_answer() -> None:
    made = running()
    made.do(close(MINUTE_US))
    first = lease_in(made).closed
    assert made.do(close(HOUR_US, "provider", 10_000)) == []
    assert lease_in(made).closed == first


def test_a_term_that_the_provider_breaks_off_was_promised_to_its_end() -> None:
    """Half an hour of an hour was served: 500,000 ppm. Broken off by the network: all of it."""
    for party, code, promised_us in (
        ("provider", 10_000, HOUR_US),
        ("operator", 20_002, HOUR_US // 2),
        ("renter", 1, HOUR_US // 2),
    ):
        made = running(term_us=HOUR_US)
        made.do(close(HOUR_US // 2, party, code))
        made.do(settle(HOUR_US // 2, (usage(0, HOUR_US // 2),)))
        lease = lease_in(made)
        assert lease.reserved is not None
        assert promised_gpu_us(lease, lease.reserved) == promised_us


def test_a_lease_is_archived_after_the_last_window_and_the_seal() -> None:
    made = running()
    made.do(close(HOUR_US // 2))
    made.do(settle(HOUR_US // 2, (usage(0, HOUR_US // 2),)))
    late_us = HOUR_US // 2 + DISPUTED_US_MAX
    archive = ArchiveLease(lease_id=LEASE, epoch=1, at_us=NOON_US + late_us)
    assert (
        refused(made, replace(archive, at_us=archive.at_us - 1)).reason is LeaseReason.LEASE_NOT_DUE
    )
    assert refused(made, archive).reason is EpochsReason.EPOCH_UNKNOWN
    stream = Stream("epoch", "1")
    opened = replace(
        sample(EpochOpened, leave_out_optional=True), epoch=1, end_us=NOON_US + HOUR_US
    )
    made._states[stream] = Epoch(opened=opened)
    assert refused(made, archive).reason is LeaseReason.LEASE_NOT_DUE, "the epoch is open"
    sealed = sample(EpochSealed, leave_out_optional=True)
    made._states[stream] = Epoch(opened=replace(opened, end_us=NOON_US + 1), sealed=sealed)
    assert refused(made, archive).reason is LeaseReason.LEASE_NOT_DUE, "settled in a later epoch"
    made._states[stream] = Epoch(opened=opened, sealed=sealed)
    made.do(archive)
    assert lease_in(made).status == "archived"
    assert made.do(archive) == []


def test_nothing_served_is_nothing_charged() -> None:
    made = running()
    made.do(close(HOUR_US // 2))
    made.do(settle(HOUR_US + LATE_WINDOW_US))
    assert charged(made) == 0
    assert made.books[CASH] == 100_000_000
