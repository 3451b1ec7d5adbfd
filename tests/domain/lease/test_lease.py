"""Every rule of a lease, as facts given, a command, and the facts that follow."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US, MINUTE_US
from domain.fleet.device import DeviceReleased
from domain.fleet.maintenance import ScheduleMaintenance
from domain.fleet.node import StartMaintenance
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.hardware.reasons import HardwareReason
from domain.lease.close_codes import START_TIMEOUT
from domain.lease.funds import EscrowPart
from domain.lease.lease import (
    LATE_WINDOW_US,
    START_TIMEOUT_US,
    AccrueUsage,
    Lease,
    LeaseClosed,
    LeaseReserved,
    LeaseSettled,
    UsageAccrued,
)
from domain.lease.reasons import LeaseReason
from domain.leasing.drain import DrainNode
from domain.market.offer import WithdrawOffer
from domain.market.reasons import MarketReason
from domain.metering.counting import Passed, UsageRow
from domain.metering.reasons import MeteringReason
from domain.money import credit
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.prices.tariff import TariffPublished, UsageFee
from domain.refusal import Refused
from domain.stream import Stream
from domain.trust.reasons import TrustReason
from tests.domain.scenes.market import (
    BURN_OFFER,
    DEVICES,
    LEASE,
    NODE,
    NOON_US,
    OFFER,
    OWNER,
    RENTER,
    close,
    job,
    lease_stream,
    opened,
    opening,
    ready,
    request,
    reserve,
    scene,
    settle,
    usage,
)
from tests.given import Scene


def facts(where: Scene, kind: type) -> list:  # type: ignore[type-arg]
    return [fact for _, fact in where.past if isinstance(fact, kind)]


def accrue(at_us: int, rows: tuple = (), position: int = 1) -> AccrueUsage:  # type: ignore[type-arg]
    return AccrueUsage(
        lease_id=LEASE, lane=1, usage_position=position, rows=rows, at_us=NOON_US + at_us
    )


def held(where: Scene) -> int:
    lease = where.state(lease_stream)
    assert isinstance(lease, Lease)
    return lease.held_units


# Requesting and reserving.


def test_only_the_owner_of_a_job_asks_for_its_devices() -> None:
    strangers = replace(request(), account_id=OWNER)
    scene().after(job()).when(strangers).then_refused(TrustReason.JOB_UNKNOWN)


def test_a_lease_is_requested_once() -> None:
    scene().after(job()).after(request()).when(request()).then_refused(LeaseReason.LEASE_EXISTS)


def test_an_unknown_lease_is_named() -> None:
    scene().when(close(0)).then_refused(LeaseReason.LEASE_UNKNOWN)


def test_a_fixed_term_holds_its_largest_possible_charge() -> None:
    where = opened(gpus=2, term_us=HOUR_US // 2)
    assert facts(where, LeaseReserved)[0].escrow == (EscrowPart("cash", credit(2_780_000)),)


def test_an_open_end_holds_at_least_an_hour() -> None:
    assert held(opened()) == 2_780_000
    too_little = scene().after(job()).after(request(funds=2_779_999))
    too_little.when(reserve()).then_refused(FundsReason.CREDIT_TOO_LOW)


def test_sources_are_spent_in_their_order_and_card_money_last() -> None:
    where = opened(
        funds=10_000_000,
        balances={
            f"party:{RENTER}:card": 9_000_000,
            f"party:{RENTER}:cash": 2_000_000,
            f"party:{RENTER}:grant": 1_000_000,
            f"party:{RENTER}:burned": 50_000_000,
        },
    )
    assert facts(where, LeaseReserved)[0].escrow == (
        EscrowPart("grant", credit(1_000_000)),
        EscrowPart("cash", credit(2_000_000)),
        EscrowPart("card", credit(7_000_000)),
    )


def test_too_little_credit_is_refused_with_what_is_missing() -> None:
    where = scene({f"party:{RENTER}:cash": 2_779_999}).after(job()).after(request())
    where.when(reserve()).then_refused(FundsReason.CREDIT_TOO_LOW)


def test_a_burning_offer_takes_burned_credits_only() -> None:
    where = scene().after(job()).after(request())
    where.when(reserve(offer=BURN_OFFER)).then_refused(FundsReason.CREDIT_TOO_LOW)


def test_a_lease_asked_to_burn_takes_no_cash_offer() -> None:
    burning = scene().after(job()).after(replace(request(), pay_with="burn"))
    burning.when(reserve()).then_refused(MarketReason.OFFER_MISMATCH, settlement="cash")
    odd = replace(request(), pay_with="barter")
    scene().after(job()).when(odd).then_refused(PartiesReason.UNKNOWN_MODE)


def test_an_unpaid_debt_blocks_new_leases() -> None:
    where = scene().having({f"party:{RENTER}:owed": 1}).after(job()).after(request())
    where.when(reserve()).then_refused(FundsReason.UNPAID_DEBT)


def test_a_price_above_the_cap_is_refused() -> None:
    cheap = job(max_price_per_gpu_hour=credit(2_779_999))
    scene().after(cheap).after(request()).when(reserve()).then_refused(PricesReason.PRICE_ABOVE_CAP)


def test_an_offer_below_the_usage_fee_of_a_later_tariff_takes_no_new_leases() -> None:
    """Its parts could not be paid: the fee alone is more than the charge."""
    dearer = TariffPublished(
        version=2,
        usage_fees=(UsageFee("datacenter", credit(2_780_001)),),
        provider_share_ppm=500_000,
        burn_share_ppm=0,
        effective_from_us=NOON_US,
        by="op",
        at_us=NOON_US,
        split=None,
        federated=None,
        device_fee_per_month=None,
        storage_node_per_hour=None,
        meters=(),
        sla=(),
        notice_us=0,
        free_start=None,
    )
    asked = scene().given((Stream("tariff", "network"), dearer)).after(job()).after(request())
    asked.when(reserve()).then_refused(MarketReason.OFFER_MISMATCH, usage_fee=2_780_001)


def test_a_withdrawn_offer_and_a_node_in_maintenance_take_no_new_leases() -> None:
    asked = scene().after(job()).after(request())
    gone = asked.after(WithdrawOffer(offer_id=OFFER, by="o", at_us=NOON_US))
    gone.when(reserve()).then_refused(MarketReason.OFFER_WITHDRAWN)
    closed = asked.after(StartMaintenance(node_id=NODE, by="o", at_us=NOON_US))
    closed.when(reserve()).then_refused(FleetReason.NODE_STATE)
    drained = asked.after(DrainNode(node_id=NODE, keep_leases=True, by="o", at_us=NOON_US))
    drained.when(reserve()).then_refused(FleetReason.NODE_STATE)


@pytest.mark.parametrize(
    ("term_us", "from_us", "is_refused"),
    [
        (HOUR_US, HOUR_US - 1, True),
        (HOUR_US, HOUR_US, False),
        (None, 1, False),  # open end: it is told, and may end before
        (None, 0, True),
    ],
)
def test_no_fixed_term_reaches_into_an_announced_maintenance(
    term_us: int | None, from_us: int, is_refused: bool
) -> None:
    planned = ScheduleMaintenance(
        maintenance_id="maint_1",
        node_id=NODE,
        kind="planned",
        from_us=NOON_US + from_us,
        until_us=NOON_US + 9 * HOUR_US,
        keep_leases=False,
        by="o",
        at_us=NOON_US,
    )
    asked = request(term_us, None if term_us else 10_000_000)
    told = scene().after(job()).after(asked).after(planned)
    if is_refused:
        told.when(reserve()).then_refused(FleetReason.NODE_IN_MAINTENANCE)
    else:
        assert any(isinstance(one.fact, LeaseReserved) for one in told.when(reserve()).changes())


def test_the_wrong_number_or_model_of_devices_is_refused() -> None:
    asked = scene().after(job(gpus=2)).after(request())
    asked.when(reserve(gpus=1)).then_refused(MarketReason.OFFER_MISMATCH, gpu_count=2)
    other = scene().after(job(models=("H200",))).after(request())
    other.when(reserve()).then_refused(MarketReason.OFFER_MISMATCH, model="A100")


def test_one_device_is_never_leased_beyond_its_share() -> None:
    where = opened(share_ppm=600_000)
    second = replace(request(), lease_id="lease_22222222")
    where.after(second).when(replace(reserve(), lease_id="lease_22222222")).then_refused(
        HardwareReason.DEVICE_TAKEN
    )


# Opening.


def test_the_price_is_locked_when_the_node_is_ready() -> None:
    assert opening(opened()).price_per_gpu_hour == credit(2_780_000)


def test_ten_credits_of_one_a100_end_at_second_12949() -> None:
    where = opened(funds=10_000_000)
    assert opening(where).funds_end_us == NOON_US + 12_949_000_000


def test_another_node_cannot_open_a_lease_and_ready_twice_is_once() -> None:
    reserved = scene().after(job()).after(request()).after(reserve())
    reserved.when(replace(ready, node_id="node_other")).then_refused(
        FleetReason.LEASE_STATE, lease_id="lease_11111111", status="reserved"
    )
    reserved.after(ready).when(ready).then_nothing()


def test_a_node_that_is_not_ready_in_time_is_at_fault_and_everything_goes_back() -> None:
    """10003: the provider's range. One microsecond earlier the timer may not, the node may."""
    reserved = scene().after(job()).after(request(funds=10_000_000)).after(reserve())
    late = close(START_TIMEOUT_US, party="job", code=START_TIMEOUT)
    soon = close(START_TIMEOUT_US - 1, party="job", code=START_TIMEOUT)
    reserved.when(soon).then_refused(LeaseReason.LEASE_NOT_DUE)
    ended = reserved.after(late)
    (closed,), (settled,) = facts(ended, LeaseClosed), facts(ended, LeaseSettled)
    assert (closed.party, closed.code) == ("job", START_TIMEOUT)
    assert (settled.charge, settled.refund) == (
        credit(0),
        (EscrowPart("cash", credit(10_000_000)),),
    )
    assert facts(ended, DeviceReleased)
    ended.when(replace(late, at_us=late.at_us + 1)).then_nothing()


def test_ready_too_late_is_refused_although_the_timer_has_not_run() -> None:
    reserved = scene().after(job()).after(request()).after(reserve())
    reserved.after(replace(ready, at_us=NOON_US + START_TIMEOUT_US - 1))
    reserved.when(replace(ready, at_us=NOON_US + START_TIMEOUT_US)).then_refused(
        FleetReason.LEASE_STATE, ready_until_us=...
    )


def test_the_start_timer_closes_no_lease_that_was_ready_in_time() -> None:
    late = close(START_TIMEOUT_US, party="job", code=START_TIMEOUT)
    opened().when(late).then_refused(FleetReason.LEASE_STATE)
    asked = scene().after(job()).after(request())
    asked.when(late).then_refused(FleetReason.LEASE_STATE)


# Accrual.


def test_an_hour_is_charged_at_the_locked_price_and_split() -> None:
    where = opened(funds=10_000_000).after(accrue(HOUR_US, (usage(0, HOUR_US),)))
    (fact,) = facts(where, UsageAccrued)
    assert (fact.gpu_us, fact.charge, fact.charge_new) == (
        HOUR_US,
        credit(2_780_000),
        credit(2_780_000),
    )
    assert (fact.parts.fee, fact.parts.provider, fact.parts.platform, fact.parts.burn) == (
        250_000,
        1_265_000,
        1_265_000,
        0,
    )
    assert (fact.client_id, fact.project_id, fact.end_user_ref) == ("direct", "p", "u")


def test_an_hour_is_accrued_when_it_is_over_and_once() -> None:
    where = opened(funds=10_000_000)
    where.when(accrue(HOUR_US - 1)).then_refused(MeteringReason.ACCRUAL_NOT_DUE, due_us=...)
    where.after(accrue(HOUR_US)).when(accrue(HOUR_US)).then_refused(
        MeteringReason.ACCRUAL_NOT_DUE, due_us=...
    )


def test_the_position_read_never_falls() -> None:
    where = opened(funds=10_000_000).after(accrue(HOUR_US, position=7))
    where.when(accrue(2 * HOUR_US, position=6)).then_refused(MeteringReason.USAGE_POSITION_FELL)


def test_own_jobs_pay_the_usage_fee_only() -> None:
    where = opened(account=OWNER, balances={f"party:{OWNER}:cash": 10_000_000}, funds=750_000)
    fact = facts(where.after(accrue(HOUR_US, (usage(0, HOUR_US),))), UsageAccrued)[0]
    assert fact.charge == credit(250_000)
    assert (fact.parts.fee, fact.parts.provider) == (250_000, 0)


def test_burned_credits_are_retired_whole() -> None:
    where = opened(
        offer=BURN_OFFER, funds=5_000_000, balances={f"party:{RENTER}:burned": 5_000_000}
    )
    fact = facts(where.after(accrue(HOUR_US, (usage(0, HOUR_US),))), UsageAccrued)[0]
    assert (fact.parts.burn, fact.parts.provider) == (2_780_000, 0)
    assert fact.drawn == (EscrowPart("burned", credit(2_780_000)),)


def test_nothing_served_is_nothing_charged() -> None:
    where = opened(term_us=HOUR_US // 2).after(close(HOUR_US // 2, "job", 3))
    late = settle(HOUR_US // 2 + LATE_WINDOW_US)
    done = where.after(late)
    assert len(facts(done, UsageAccrued)) == 1, "until when it was looked is told"
    assert facts(done, LeaseSettled)[0].charge == credit(0)
    assert not facts(done, LeaseSettled)[0].disputed
    assert (
        sum(part.amount.units for fact in facts(done, LeaseClosed) for part in fact.refund)
        + sum(part.amount.units for fact in facts(done, LeaseSettled) for part in fact.refund)
        == 1_390_000
    )


# Closing and settling.


def test_closing_frees_the_devices_and_returns_what_can_no_longer_be_used() -> None:
    where = opened(gpus=2, funds=20_000_000).after(close(HOUR_US // 2))
    assert facts(where, LeaseClosed)[0].refund == (EscrowPart("cash", credit(17_220_000)),)
    for device in DEVICES[:2]:
        assert where.state(lease_stream._replace(kind="device", id=device)).holders == {}


def test_a_close_that_an_accrual_overtook_ends_where_time_was_already_counted() -> None:
    """The close was asked for at 12:59:55 and decided after the hour was accrued. Device 0 is
    charged up to 13:00 then, and device 1, reported late, may be: the escrow must hold for both.
    """
    late = usage(0, HOUR_US, device="GPU-1", position=2)
    where = opened(gpus=2, funds=20_000_000).after(accrue(HOUR_US, (usage(0, HOUR_US),)))
    where = where.after(replace(close(HOUR_US - 5_000_000), at_us=NOON_US + HOUR_US))
    assert facts(where, LeaseClosed)[0].closed_at_us == NOON_US + HOUR_US
    done = where.after(settle(HOUR_US + LATE_WINDOW_US, (late,)))
    assert facts(done, LeaseSettled)[0].charge == credit(2 * 2_780_000)


def test_a_close_ends_no_earlier_than_the_time_a_crafted_report_was_credited() -> None:
    """A clock that stands still: 70 minutes that end within the hour, received after 70."""
    fast = replace(
        usage(0, 70 * HOUR_US // 60),
        wall_end_us=NOON_US + HOUR_US,
        received_us=NOON_US + 70 * HOUR_US // 60,
    )
    honest = usage(0, 70 * HOUR_US // 60, device="GPU-1", position=2)
    where = opened(gpus=2, funds=20_000_000).after(accrue(70 * HOUR_US // 60, (fast,)))
    where = where.after(replace(close(HOUR_US + 1), at_us=NOON_US + 71 * HOUR_US // 60))
    done = where.after(settle(HOUR_US + LATE_WINDOW_US + HOUR_US, (honest,)))
    refunds = [*facts(done, LeaseClosed), *facts(done, LeaseSettled)]
    returned = sum(part.amount.units for fact in refunds for part in fact.refund)
    assert facts(done, LeaseSettled)[0].charge.units + returned == 20_000_000


def test_what_may_still_be_charged_of_a_part_of_a_gpu_microsecond_is_floored() -> None:
    """A third of a GPU for 3,884 us: 1,294.67 GPU-us. 1,295 of them would cost a unit."""
    where = opened(share_ppm=333_333, funds=10_000_000).after(close(3_884))
    assert facts(where, LeaseClosed)[0].refund == (EscrowPart("cash", credit(10_000_000)),)
    done = where.after(settle(HOUR_US, (usage(0, 3_884),)))
    accrued = facts(done, UsageAccrued)[0]
    assert (accrued.ppm_us, accrued.gpu_us, accrued.gpu_us_new) == (3_884 * 333_333, 1_294, 1_294)
    assert facts(done, LeaseSettled)[0].gpu_us == 1_294
    longer = opened(share_ppm=333_333, funds=10_000_000).after(close(3_886))
    assert facts(longer, LeaseClosed)[0].refund == (EscrowPart("cash", credit(9_999_999)),)


def test_an_accrual_tells_after_which_row_the_next_one_reads() -> None:
    """Rows that end behind the hour wait; where none does it is all that was read."""
    first = usage(0, HOUR_US)
    second = usage(HOUR_US, HOUR_US + 7, position=2)
    for rows, resumes in (((first,), 9), ((first, second), 1), ((), 9)):
        where = opened(funds=10_000_000).after(accrue(HOUR_US + 7, rows, position=9))
        fact = facts(where, UsageAccrued)[0]
        assert (fact.usage_position, fact.resume_position) == (9, resumes)


def test_a_row_that_was_counted_is_neither_counted_nor_refused_again() -> None:
    first, second = usage(0, HOUR_US), usage(HOUR_US, 2 * HOUR_US, position=2)
    where = opened(funds=10_000_000).after(accrue(HOUR_US, (first,), position=1))
    where = where.after(accrue(2 * HOUR_US, (first, second), position=2))
    fact = facts(where, UsageAccrued)[-1]
    assert (fact.gpu_us_new, fact.gpu_us, fact.refused) == (HOUR_US, 2 * HOUR_US, ())


def test_an_hour_that_ends_with_the_lease_is_settled_and_not_accrued() -> None:
    where = opened(funds=2 * 2_780_000)
    where = where.after(accrue(HOUR_US, (usage(0, HOUR_US),)))
    last = accrue(2 * HOUR_US, (usage(HOUR_US, 2 * HOUR_US, position=2),), position=2)
    where.when(last).then_refused(
        MeteringReason.ACCRUAL_NOT_DUE, settles_at_us=NOON_US + 2 * HOUR_US
    )


def test_closing_twice_gives_no_fact() -> None:
    opened().after(close(5)).when(close(6)).then_nothing()


def test_a_late_timer_still_closes_at_the_funded_second() -> None:
    where = opened(funds=10_000_000).after(close(9 * HOUR_US, "job", 100))
    assert facts(where, LeaseClosed)[0].closed_at_us == NOON_US + 12_949_000_000


def test_a_party_closes_with_its_own_codes_only() -> None:
    opened().when(close(1, "renter", 10_000)).then_refused(LeaseReason.CLOSE_CODE_PARTY)
    opened().when(close(1, "stranger", 0)).then_refused(LeaseReason.CLOSE_CODE_PARTY)


def test_a_lease_that_never_opened_ends_at_charge_zero_with_everything_back() -> None:
    reserved = scene().after(job()).after(request()).after(reserve())
    done = reserved.after(close(1, "renter", 101))
    assert facts(done, LeaseSettled)[0].refund == (EscrowPart("cash", credit(2_780_000)),)
    assert facts(done, LeaseSettled)[0].charge == credit(0)
    assert facts(done, LeaseSettled)[0].gpu_us == 0
    assert facts(done, LeaseClosed)[0].refund == ()
    assert not facts(done, LeaseSettled)[0].disputed


def test_a_settlement_tells_of_an_accrual_where_it_counts_refuses_or_reaches_anything_new() -> None:
    """All time is accrued by then: only a row that counts or is refused is worth a fact."""
    where = opened(gpus=2, funds=20_000_000).after(accrue(HOUR_US, (usage(0, HOUR_US),)))
    where = where.after(replace(close(HOUR_US - 5_000_000), at_us=NOON_US + HOUR_US))
    late_us = HOUR_US + LATE_WINDOW_US
    strange = usage(0, HOUR_US, device="GPU-x", position=2)
    late = usage(0, HOUR_US, device="GPU-1", position=2)
    for rows, accruals in (((), 1), ((strange,), 2), ((late,), 2)):
        done = where.after(settle(late_us, rows))
        assert len(facts(done, UsageAccrued)) == accruals, rows
        assert len(facts(done, LeaseSettled)) == 1
    refused = facts(where.after(settle(late_us, (strange,))), UsageAccrued)[-1].refused
    assert sum(one.us for one in refused) == HOUR_US


def test_settling_waits_for_the_reports_of_every_device() -> None:
    where = opened(gpus=2, term_us=HOUR_US // 2).after(close(HOUR_US // 2, "job", 3))
    one = settle(HOUR_US // 2, (usage(0, HOUR_US // 2),))
    where.when(one).then_refused(MeteringReason.USAGE_INCOMPLETE)
    both = settle(
        HOUR_US // 2, (usage(0, HOUR_US // 2), usage(0, HOUR_US // 2, device="GPU-1", position=2))
    )
    assert facts(where.after(both), LeaseSettled)[0].charge == credit(2_780_000)


@given(st.integers(1, 5), st.integers(-5, 5), st.integers(-5, 5))
def test_a_lease_whose_device_goes_on_settles_at_the_time_that_was_reported_and_no_other(
    length_us: int, ends_us: int, passed_us: int
) -> None:
    end_us = HOUR_US // 2 + length_us
    where = opened(term_us=HOUR_US).after(close(end_us))
    row = usage(0, end_us + ends_us)
    behind = replace(row, received_us=row.wall_end_us + HOUR_US)
    passed = Passed("GPU-0", NOON_US + end_us + passed_us)
    asked = replace(settle(end_us + MINUTE_US, (behind,)), passed=(passed,))
    if max(ends_us, passed_us) < 0:
        where.when(asked).then_refused(MeteringReason.USAGE_INCOMPLETE)
        return
    done = where.after(asked)
    accrued = facts(done, UsageAccrued)[-1]
    assert accrued.gpu_us == min(end_us, end_us + ends_us), "what both say, to the microsecond"
    refused_us = sum(refused.us for refused in accrued.refused)
    assert accrued.gpu_us + refused_us == row.available_us
    assert facts(done, LeaseSettled)[0].gpu_us == accrued.gpu_us


def test_settling_twice_gives_no_fact() -> None:
    half = HOUR_US // 2
    done = opened(term_us=half).after(close(half, "job", 3)).after(settle(half, (usage(0, half),)))
    done.when(settle(half, (usage(0, half),))).then_nothing()


def test_an_active_lease_does_not_settle() -> None:
    opened().when(settle(1)).then_refused(FleetReason.LEASE_STATE)


def test_whole_hours_are_accrued_before_the_rest_is_settled() -> None:
    where = opened(funds=10_000_000).after(close(2 * HOUR_US))
    where.when(settle(2 * HOUR_US)).then_refused(MeteringReason.ACCRUAL_NOT_DUE)


# What must always hold.


@given(
    st.lists(
        st.tuples(st.integers(1, 2 * HOUR_US), st.integers(0, HOUR_US // 10)),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 1_000_000),
)
def test_charge_is_the_floor_of_the_whole_and_the_escrow_is_conserved(
    steps: list[tuple[int, int]], share_ppm: int
) -> None:
    """charged == floor(gpu_us x price / hour); escrow == charged + refunded; parts == charge."""
    where = opened(share_ppm=share_ppm, funds=90_000_000)
    rows, cursor = [], 0
    for index, (length_us, gap_us) in enumerate(steps, 1):
        rows.append(usage(cursor, cursor + length_us, position=index))
        cursor += length_us + gap_us
    hours = 0
    while (hours + 1) * HOUR_US < cursor:
        hours += 1
        where = where.after(accrue(hours * HOUR_US, tuple(rows), position=99))
    done = where.after(close(cursor)).after(settle(cursor + LATE_WINDOW_US, tuple(rows), 99))
    accrued, settled = facts(done, UsageAccrued), facts(done, LeaseSettled)[0]
    gpu_us = sum(length for length, _ in steps) * share_ppm // 1_000_000
    assert settled.gpu_us == gpu_us
    assert settled.charge.units == gpu_us * 2_780_000 // HOUR_US
    assert sum(fact.charge_new.units for fact in accrued) == settled.charge.units
    assert all(fact.parts.total == fact.charge.units for fact in accrued)
    refunds = [*facts(done, LeaseClosed), *facts(done, LeaseSettled)]
    returned = sum(part.amount.units for fact in refunds for part in fact.refund)
    assert settled.charge.units + returned == 90_000_000


crafted = st.builds(
    lambda position, device, boot, start, length, end, slew, available, share, received: UsageRow(
        position=position,
        device_id=device,
        boot=boot,
        mono_start_us=start,
        mono_end_us=start + length,
        wall_start_us=NOON_US + end - length + slew,
        wall_end_us=NOON_US + end,
        available_us=min(available, length),
        share_ppm=share,
        received_us=NOON_US + received,
    ),
    st.just(0),
    st.sampled_from(["GPU-0", "GPU-1", "GPU-z"]),
    st.sampled_from("aab"),
    st.integers(0, 3 * HOUR_US),
    st.integers(1, 5 * HOUR_US),
    st.integers(-HOUR_US, 6 * HOUR_US),
    st.sampled_from([0, 0, 4 * HOUR_US, -HOUR_US]),
    st.integers(0, 5 * HOUR_US),
    st.sampled_from([1_000_000, 250_000]),
    st.just(0),
)


@given(
    st.lists(
        st.tuples(
            st.integers(0, HOUR_US),
            st.lists(crafted, max_size=4),
            st.sampled_from(["wait", "accrue", "accrue", "close"]),
            st.sampled_from([0, 1, 5_000_000]),
        ),
        max_size=12,
    ),
    st.sampled_from([None, 90 * HOUR_US // 60]),
)
def test_no_report_however_crafted_breaks_a_lease_or_its_escrow(
    moves: list[tuple[int, list[UsageRow], str, int]], term_us: int | None
) -> None:
    """Clocks that stand still, jump or lie, alternating boots, a close that comes too late."""
    where = opened(gpus=2, term_us=term_us, funds=None if term_us else 25_000_000)
    escrow = held(where)
    now_us, rows = 0, list[UsageRow]()
    for position, (later_us, told, move, behind_us) in enumerate(moves, 1):
        now_us += later_us
        received = {"position": position, "received_us": NOON_US + now_us}
        rows += [replace(row, **received) for row in told]  # type: ignore[arg-type]
        with suppress(Refused):
            if move == "accrue":
                where = where.after(accrue(now_us, tuple(rows), position))
            elif move == "close":
                late = replace(close(now_us - behind_us), at_us=NOON_US + now_us)
                where = where.after(late)
    end_us = now_us + LATE_WINDOW_US + 10 * HOUR_US
    where = where.after(close(end_us, "job", 3))
    for _ in range(40):
        with suppress(Refused):
            where = where.after(settle(end_us + LATE_WINDOW_US, tuple(rows), 99))
        with suppress(Refused):
            where = where.after(accrue(end_us, tuple(rows), 99))
    lease = where.state(lease_stream)
    assert lease.status == "settled"
    assert lease.opened is not None
    assert lease.closed is not None
    open_us = lease.closed.closed_at_us - lease.opened.opened_at_us
    assert all(mark.credited_us <= open_us for mark in lease.marks)
    back = [*facts(where, LeaseClosed), *facts(where, LeaseSettled)]
    returned = sum(part.amount.units for fact in back for part in fact.refund)
    assert lease.charge_units + returned == escrow
