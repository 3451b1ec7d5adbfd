"""Warnings, and top-ups by themselves: each threshold told once, a month never beyond its bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.calendar import day_start_us, days_in, first_day
from domain.funds.payment import FailPayment, PaymentStarted, ReceivePayment
from domain.funds.payment_terms import PublishPaymentTerms
from domain.funds.reasons import FundsReason
from domain.funds.top_up import (
    FAILURES_MAX,
    RETRY_US,
    RETRY_US_MAX,
    AutoTopUpSet,
    AutoTopUpStopped,
    BalanceRecovered,
    BalanceWarned,
    CheckFunds,
    SetAutoTopUp,
    SetBalanceWarnings,
    StopAutoTopUp,
    TopUpEnded,
    TopUps,
    TopUpStarted,
    top_ups_of,
)
from domain.money import Amount, credit, token
from domain.parties.account import AccountClosed
from tests.domain.funds.test_payment import BOB, Booked, receive, start
from tests.domain.scenes.supply import ALICE, ALICE_STREAM, NOON_US

CREDIT = 1_000_000
setting = SetAutoTopUp(
    account_id=ALICE,
    threshold=credit(10 * CREDIT),
    amount=credit(25 * CREDIT),
    monthly_max=credit(60 * CREDIT),
    payment_id="pay_1",
    by="mem_alice",
    at_us=NOON_US,
)


def warned_at(*thresholds: int) -> SetBalanceWarnings:
    amounts = tuple(credit(each * CREDIT) for each in thresholds)
    return SetBalanceWarnings(account_id=ALICE, thresholds=amounts, by="mem_alice", at_us=NOON_US)


def check(world: Booked, at_us: int = NOON_US) -> list[Any]:
    facts = world.do(CheckFunds(account_id=ALICE, at_us=at_us))
    assert world.do(CheckFunds(account_id=ALICE, at_us=at_us)) == [], "looking again tells nothing"
    return facts


def saved() -> Booked:
    """An account that paid 25 credits once and saved its card."""
    world = Booked()
    world.do(start())
    world.do(replace(receive(), saved_method="cus_1/pm_1"))
    return world


def topping_up(**changes: Any) -> Booked:
    """One that has set auto top-up and has 5 credits left."""
    world = saved()
    world.do(replace(setting, **changes))
    world.spend(20 * CREDIT)
    return world


def paid(payment_id: str, at_us: int = NOON_US) -> ReceivePayment:
    return replace(receive(payment_id), at_us=at_us)


# --- warnings ----------------------------------------------------------------------------------


def test_each_threshold_is_told_once_and_again_after_the_balance_came_back() -> None:
    world = saved()
    world.do(warned_at(20, 10))
    assert world.do(warned_at(20, 10)) == []
    assert check(world) == []
    world.spend(6 * CREDIT)
    (warning,) = check(world)
    assert isinstance(warning, BalanceWarned)
    assert (warning.threshold, warning.balance) == (credit(20 * CREDIT), credit(19 * CREDIT))
    world.spend(CREDIT)
    assert check(world) == []
    world.spend(10 * CREDIT)
    (warning,) = check(world)
    assert (warning.threshold, warning.below) == (
        credit(10 * CREDIT),
        (credit(20 * CREDIT), credit(10 * CREDIT)),
    )
    world.paid("pay_9", method="bank")
    (recovered,) = check(world)
    assert isinstance(recovered, BalanceRecovered)
    assert recovered.below == ()
    world.spend(24 * CREDIT, "cash")
    (warning,) = check(world)
    assert warning.threshold == credit(10 * CREDIT)


def test_both_thresholds_at_once_are_one_warning_of_the_lower() -> None:
    world = saved()
    world.do(warned_at(20, 10))
    world.spend(25 * CREDIT)
    (warning,) = check(world)
    assert (warning.threshold, warning.balance) == (credit(10 * CREDIT), credit(0))


def test_without_thresholds_nobody_is_warned() -> None:
    world = saved()
    world.do(warned_at(20))
    world.do(warned_at())
    world.spend(25 * CREDIT)
    assert check(world) == []


@pytest.mark.parametrize(
    "thresholds",
    [
        (credit(1), credit(2)),
        (credit(2), credit(2)),
        (credit(0),),
        (token(5),),
        tuple(credit(units) for units in range(6, 0, -1)),
    ],
)
def test_thresholds_are_few_different_and_highest_first(thresholds: tuple[Amount, ...]) -> None:
    asked = replace(warned_at(), thresholds=thresholds)
    assert saved().refused(asked) is FundsReason.TOP_UP_INVALID


# --- setting -----------------------------------------------------------------------------------


def test_auto_top_up_uses_what_the_account_itself_has_saved() -> None:
    world = saved()
    (fact,) = world.do(setting)
    assert isinstance(fact, AutoTopUpSet)
    assert (fact.processor, fact.saved_method) == ("stripe", "cus_1/pm_1")
    assert world.do(setting) == []
    assert world.refused(replace(setting, payment_id="pay_2")) is FundsReason.PAYMENT_UNKNOWN
    assert world.refused(replace(setting, account_id=BOB)) is FundsReason.PAYMENT_UNKNOWN
    world.paid("pay_2")
    assert world.refused(replace(setting, payment_id="pay_2")) is FundsReason.PAYMENT_STATE


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": credit(24 * CREDIT)},
        {"amount": credit(25 * CREDIT + 1)},
        {"monthly_max": credit(25 * CREDIT - 1)},
        {"threshold": credit(0)},
        {"amount": token(25 * CREDIT)},
    ],
)
def test_an_amount_is_a_purchase_and_the_month_holds_one(changes: dict[str, Any]) -> None:
    """Row C-25: the smallest purchase holds for top-ups too."""
    assert saved().refused(replace(setting, **changes)) is FundsReason.TOP_UP_INVALID


def test_a_stopped_auto_top_up_starts_nothing() -> None:
    world = topping_up()
    stop = StopAutoTopUp(account_id=ALICE, by="mem_alice", at_us=NOON_US)
    assert world.do(stop)
    assert world.do(stop) == []
    assert check(world) == []
    assert top_ups_of(world, ALICE).stopped is not None


# --- topping up --------------------------------------------------------------------------------


def test_below_the_threshold_one_payment_starts_and_no_second_before_it_ended_c_25() -> None:
    world = topping_up()
    started, payment = check(world)
    assert isinstance(started, TopUpStarted)
    assert isinstance(payment, PaymentStarted)
    assert (payment.amount, payment.saved_method, payment.cause) == (
        credit(25 * CREDIT),
        "cus_1/pm_1",
        "top_up",
    )
    world.do(paid(started.payment_id))
    (ended,) = check(world)
    assert isinstance(ended, TopUpEnded)
    assert (ended.is_paid, ended.failures) == (True, 0)
    assert world.of("card") == 30 * CREDIT
    world.spend(25 * CREDIT)
    again, _ = check(world)
    assert (again.number, again.payment_id != started.payment_id) == (2, True)


def test_at_the_threshold_nothing_starts() -> None:
    world = saved()
    world.do(setting)
    world.spend(15 * CREDIT)
    assert check(world) == []


def test_a_month_pays_no_more_than_its_maximum_and_the_next_one_pays_again() -> None:
    world = topping_up()
    for _ in range(2):
        started, _ = check(world)
        world.do(paid(started.payment_id))
        check(world)
        world.spend(25 * CREDIT)
    assert check(world) == [], "a third would make 75 of 60"
    assert check(world, NOON_US + 40 * 86_400_000_000)


def test_a_failed_payment_waits_twice_as_long_each_time_and_then_it_stops_with_its_reason() -> None:
    world, now_us = topping_up(monthly_max=credit(25 * CREDIT)), NOON_US
    for failures in range(1, FAILURES_MAX + 1):
        started, _ = check(world, now_us)
        failed = FailPayment(payment_id=started.payment_id, reason="declined", at_us=now_us)
        world.do(failed)
        ended, *stopped = check(world, now_us)
        assert (ended.is_paid, ended.reason, ended.failures) == (False, "declined", failures)
        assert ended.retry_at_us - now_us == min(RETRY_US << (failures - 1), RETRY_US_MAX)
        if failures < FAILURES_MAX:
            assert stopped == []
            assert check(world, ended.retry_at_us - 1) == []
            now_us = ended.retry_at_us
    assert [one.reason for one in stopped] == ["failures"]
    assert check(world, now_us + RETRY_US_MAX) == []
    assert world.do(replace(setting, at_us=now_us)), "set again, it begins anew"
    assert check(world, now_us)


def test_a_payment_that_is_late_after_all_counts_as_paid() -> None:
    world = topping_up()
    started, _ = check(world)
    world.do(FailPayment(payment_id=started.payment_id, reason="expired", at_us=NOON_US))
    world.do(paid(started.payment_id))
    (ended,) = check(world)
    assert (ended.is_paid, ended.reason) == (True, None)


def test_terms_that_refuse_the_amount_and_a_closed_account_stop_it() -> None:
    world = topping_up()
    world.do(
        PublishPaymentTerms(
            version=1,
            minimum=credit(50 * CREDIT),
            chargeback_window_us=1,
            effective_from_us=NOON_US,
            by="op",
            at_us=NOON_US,
        )
    )
    (stopped,) = check(world)
    assert isinstance(stopped, AutoTopUpStopped)
    assert stopped.reason == "payment_below_minimum"
    world = topping_up()
    world.tell(ALICE_STREAM, AccountClosed(account_id=ALICE, by="mem_alice", at_us=NOON_US))
    (stopped,) = check(world)
    assert stopped.reason == "account_closed"


# --- properties --------------------------------------------------------------------------------

steps = st.lists(
    st.tuples(st.sampled_from(("spend", "paid", "fail", "wait", "set")), st.integers(0, 40)),
    max_size=40,
)


@given(steps)
def test_a_month_never_starts_more_than_its_maximum_and_only_one_is_under_way(
    told: list[tuple[str, int]],
) -> None:
    world, now_us = topping_up(), NOON_US
    started: dict[str, tuple[int, int]] = {}
    ended: dict[str, bool] = {}
    for name, number in told:
        state: TopUps = top_ups_of(world, ALICE)
        open_id = state.open_payment_id
        if name == "spend":
            world.spend(min(number * CREDIT, world.of("card")))
        elif name == "wait":
            now_us += number * 86_400_000_000
        elif name == "set":
            world.do(replace(setting, at_us=now_us))
        elif open_id is not None and name == "paid":
            world.do(paid(open_id, now_us))
        elif open_id is not None:
            world.do(FailPayment(payment_id=open_id, reason="declined", at_us=now_us))
        for fact in world.do(CheckFunds(account_id=ALICE, at_us=now_us)):
            if isinstance(fact, TopUpStarted):
                assert not started.keys() - ended.keys(), "one at a time"
                started[fact.payment_id] = (fact.month, fact.amount.units)
            if isinstance(fact, TopUpEnded):
                ended[fact.payment_id] = fact.is_paid
    for month in {month for month, _ in started.values()}:
        kept = sum(
            units
            for payment_id, (its, units) in started.items()
            if its == month and ended.get(payment_id, True)
        )
        assert kept <= 60 * CREDIT


def test_a_month_is_a_month_of_the_calendar_in_utc() -> None:
    world = topping_up(monthly_max=credit(25 * CREDIT))
    first, _ = check(world)
    assert days_in(first.month) == 31, "January"
    world.do(paid(first.payment_id))
    check(world)
    world.spend(25 * CREDIT)
    turn_us = day_start_us(first_day(first.month + 1))
    assert check(world, turn_us - 1) == []
    assert check(world, turn_us)
