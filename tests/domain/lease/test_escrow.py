"""Escrow: it ends at an exact second, pays no more than it holds, and gives back the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import SECOND_US
from domain.funds.reasons import FundsReason
from domain.gpu_time import charge_for
from domain.lease.escrow import (
    TIME_MAX_US,
    Deposit,
    Rate,
    Refund,
    funded_gpu_us,
    funds_end_us,
    settle,
)
from domain.refusal import Reason, Refused

OPENED_US = 1_800_000_000_123_456
funds = st.integers(0, 10**12)
prices = st.integers(1, 10**8)
shares = st.integers(1, 64_000_000)


@given(funds, prices, shares)
def test_funds_end_at_the_last_whole_second_they_pay_for(
    funds: int, price: int, share_ppm: int
) -> None:
    end_us = funds_end_us(OPENED_US, funds, price, share_ppm)
    seconds, rest = divmod(end_us - OPENED_US, SECOND_US)
    assert rest == 0
    assert charge_for(seconds * share_ppm, price) <= funds
    at_calendar_end = end_us + SECOND_US > TIME_MAX_US
    assert charge_for((seconds + 1) * share_ppm, price) > funds or at_calendar_end


@given(funds, prices)
def test_one_more_gpu_microsecond_than_funded_costs_too_much(funds: int, price: int) -> None:
    funded = funded_gpu_us(funds, price)
    assert charge_for(funded, price) <= funds < charge_for(funded + 1, price)


def test_ten_credits_last_one_gpu_12949_seconds() -> None:
    assert funded_gpu_us(10_000_000, 2_780_000) == 12_949_641_582
    assert charge_for(12_949_641_583, 2_780_000) == 10_000_001
    end_us = funds_end_us(OPENED_US, 10_000_000, 2_780_000, 1_000_000)
    assert end_us == OPENED_US + 12_949 * SECOND_US
    assert charge_for(12_949 * SECOND_US, 2_780_000) == 9_999_505


def test_an_empty_escrow_ends_within_the_first_charged_second() -> None:
    assert funds_end_us(OPENED_US, 0, 2_780_000, 1_000_000) == OPENED_US
    # A price so low that the first second rounds to nothing is not charged for it.
    assert funds_end_us(OPENED_US, 0, 3_599, 1_000_000) == OPENED_US + SECOND_US


def test_a_free_lease_ends_with_the_calendar() -> None:
    end_us = funds_end_us(OPENED_US, 5, 0, 1_000_000)
    assert end_us <= TIME_MAX_US < end_us + SECOND_US
    assert funds_end_us(OPENED_US, 10**30, 1, 1_000_000) == end_us


@st.composite
def escrows(draw: st.DrawFn) -> tuple[list[Deposit], list[Rate], int]:
    amounts = draw(st.lists(st.integers(1, 10**6), min_size=1, max_size=4))
    deposits = [
        Deposit(draw(st.sampled_from("abc")), amount, draw(st.integers(0, amount)))
        for amount in amounts
    ]
    per_second = draw(st.lists(st.integers(0, 10**4), max_size=4))
    rates = [Rate(f"p{index}", rate) for index, rate in enumerate(per_second)]
    return deposits, rates, draw(st.integers(0, 10**5))


@given(escrows())
def test_paid_and_refunded_is_what_is_left_and_paid_and_owed_is_what_was_due(
    escrow: tuple[list[Deposit], list[Rate], int],
) -> None:
    deposits, rates, elapsed = escrow
    settled = settle(deposits, rates, elapsed)
    left = sum(deposit.amount - deposit.reversed for deposit in deposits)
    due = sum(rate.rate_per_second for rate in rates) * settled.ran_seconds
    refunded = sum(refund.amount for refund in settled.refunds)
    assert sum(settled.paid.values()) + refunded == left
    assert sum(settled.paid.values()) + sum(settled.owed.values()) == due
    assert min([0, *settled.paid.values(), *settled.owed.values()]) == 0
    assert all(refund.amount >= 0 for refund in settled.refunds)


@given(escrows())
def test_nobody_is_owed_anything_unless_money_was_taken_back(
    escrow: tuple[list[Deposit], list[Rate], int],
) -> None:
    deposits, rates, elapsed = escrow
    kept = [Deposit(deposit.depositor, deposit.amount) for deposit in deposits]
    assert not any(settle(kept, rates, elapsed).owed.values())


def test_deposits_are_used_first_in_first_out() -> None:
    settled = settle([Deposit("alice", 30), Deposit("bob", 100)], [Rate("p", 10)], 5)
    assert settled.refunds == (Refund("alice", 0), Refund("bob", 80))


def test_a_late_timer_still_closes_at_the_funds_end() -> None:
    settled = settle([Deposit("t", 100)], [Rate("a", 10), Rate("b", 10)], 6)
    assert (settled.end_second, settled.ran_seconds) == (5, 5)
    assert settled.paid == {"a": 50, "b": 50}


@pytest.mark.parametrize(
    ("deposits", "rates", "elapsed", "reason"),
    [
        ([], [Rate("p", -1)], -1, FundsReason.BAD_DEPOSIT),
        ([Deposit("t", 0)], [], 0, FundsReason.BAD_DEPOSIT),
        ([Deposit("t", 5, 6)], [], 0, FundsReason.BAD_DEPOSIT),
        ([Deposit("t", 5, -1)], [], 0, FundsReason.BAD_DEPOSIT),
        ([Deposit("t", 5)], [Rate("p", -1), Rate("p", 1)], -1, FundsReason.DUPLICATE_PAYEE),
        ([Deposit("t", 5)], [Rate("p", -1)], -1, FundsReason.BAD_RATE),
        ([Deposit("t", 5)], [Rate("p", 1)], -1, FundsReason.NEGATIVE_ELAPSED),
    ],
)
def test_the_first_rule_that_is_broken_refuses(
    deposits: list[Deposit], rates: list[Rate], elapsed: int, reason: Reason
) -> None:
    with pytest.raises(Refused) as caught:
        settle(deposits, rates, elapsed)
    assert caught.value.reason is reason


def test_a_payee_may_work_for_nothing_and_a_deposit_be_one_unit_or_taken_back_whole() -> None:
    free = settle([Deposit("t", 1)], [Rate("p", 0)], 0)
    assert (free.end_second, free.ran_seconds) == (None, 0)
    assert (free.paid, free.owed, free.refunds) == ({"p": 0}, {"p": 0}, (Refund("t", 1),))
    gone = settle([Deposit("t", 5, 5)], [Rate("p", 1), Rate("q", 0)], 9)
    assert (gone.end_second, gone.ran_seconds) == (5, 5)
    assert (gone.paid, gone.owed) == ({"p": 0, "q": 0}, {"p": 5, "q": 0})


def test_what_is_left_after_a_reversal_is_paid_by_rates_and_the_unit_over_goes_back() -> None:
    """11 of 22 are left for 8 and 12 that are due: 4.4 and 6.6 floored, and one unit over."""
    settled = settle([Deposit("t", 22, 11)], [Rate("p", 2), Rate("q", 3)], 4)
    assert settled.paid == {"p": 4, "q": 6}
    assert settled.owed == {"p": 4, "q": 6}
    assert settled.refunds == (Refund("t", 1),)


def test_the_calendar_of_facts_ends_with_the_largest_number_of_json() -> None:
    assert TIME_MAX_US == 9_007_199_254_740_991
