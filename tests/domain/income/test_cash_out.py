"""Cash-outs: earned credits leave once, whole, and only when nothing holds them (C-24)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import rules
from domain.brought import ClientPart
from domain.funds.reasons import FundsReason
from domain.income import cash_out
from domain.income.cash_out import (
    CancelCashOut,
    CashOutMinimumSet,
    CashOutRequested,
    CashOutsHeld,
    CashOutsReleased,
    CashOutStarted,
    ConfirmCashOutPaid,
    ConfirmCashOutSent,
    FailCashOut,
    HoldCashOuts,
    ReleaseCashOuts,
    RequestCashOut,
    ReturnCashOut,
    SetCashOutMinimum,
    StartCashOut,
    cash_out_of,
    holds_stream,
    least_of,
    stream_of,
    turn_of,
)
from domain.income.maturity import DESTINATION_DELAY_US, SetPaymentMode
from domain.income.reasons import IncomeReason
from domain.money import MoneyReason, credit, token
from domain.parties.account import AccountClosed, AccountOpened
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from domain.stream import Stream
from ledger.books.chart import kind_of
from ledger.books.postings import entries_for
from tests.given import Scene

NOON_US = 1_795_176_000_000_000
OWNER, CASH_OUT = "acct_owner", "cashout_1"
EARNED, BANK, IN_FLIGHT = f"party:{OWNER}:earned", "world:bank", "payout:in_flight"
THIRTY = 30_000_000


def scene(earned: int = THIRTY, bank: int = 10**12) -> Scene:
    account = AccountOpened(account_id=OWNER, kind="party", opened_by="op", at_us=0)
    mode = SetPaymentMode(
        account_id=OWNER,
        mode="cash",
        billing_account_id=OWNER,
        destination="acct_x",
        by="mem",
        at_us=0,
    )
    return (
        Scene()
        .given((Stream("account", OWNER), account))
        .after(mode)
        .having({EARNED: earned, BANK: bank})
    )


def request(amount: int | None = None, name: str = CASH_OUT, at_us: int = NOON_US) -> Any:
    asked = None if amount is None else credit(amount)
    return RequestCashOut(cash_out_id=name, account_id=OWNER, amount=asked, by="mem", at_us=at_us)


start = StartCashOut(
    cash_out_id=CASH_OUT, processor="bank", leaving=0, customers_cash=0, at_us=NOON_US
)
sent = ConfirmCashOutSent(cash_out_id=CASH_OUT, reference="po_1", instructions=None, at_us=NOON_US)
paid = ConfirmCashOutPaid(cash_out_id=CASH_OUT, by="job", at_us=NOON_US)
fail = FailCashOut(cash_out_id=CASH_OUT, reason="account_closed", by="job", at_us=NOON_US)
cancel = CancelCashOut(cash_out_id=CASH_OUT, by="mem", at_us=NOON_US)


def back(units: int) -> ReturnCashOut:
    return ReturnCashOut(
        cash_out_id=CASH_OUT, returned=credit(units), reason="bounced", at_us=NOON_US
    )


def hold(hold_id: str = "operator") -> HoldCashOuts:
    return HoldCashOuts(account_id=OWNER, hold_id=hold_id, reason="a look", by="op", at_us=NOON_US)


# --- asking -------------------------------------------------------------------------------------


def test_all_whole_cents_are_taken_when_no_amount_is_named() -> None:
    asked = CashOutRequested(
        cash_out_id=CASH_OUT,
        account_id=OWNER,
        amount=credit(THIRTY),
        destination="acct_x",
        by="mem",
        at_us=NOON_US,
        clients=(ClientPart("", THIRTY),),
    )
    scene(THIRTY + 9_999).when(request()).then((stream_of(CASH_OUT), asked))


def test_the_same_request_is_one_and_another_under_its_id_is_refused() -> None:
    asked = scene().after(request(THIRTY))
    asked.when(request(THIRTY)).then_nothing()
    asked.when(request()).then_nothing()
    asked.when(request(THIRTY - 10_000)).then_refused(MoneyReason.DUPLICATE_ID)


@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        (credit(0), FundsReason.AMOUNT_NOT_POSITIVE),
        (token(THIRTY), PricesReason.AMOUNT_OUT_OF_RANGE),
        (credit(THIRTY - 1), FundsReason.AMOUNT_NOT_CENTS),
        (credit(THIRTY + 10_000), FundsReason.CREDIT_TOO_LOW),
        (credit(20_000_000), IncomeReason.CASH_OUT_TOO_SMALL),
    ],
)
def test_an_amount_that_cannot_leave_is_refused(amount: Any, reason: Reason) -> None:
    scene().when(replace(request(), amount=amount)).then_refused(reason)


def test_more_than_the_bank_has_beside_what_is_in_flight_is_refused() -> None:
    scene(bank=THIRTY).having({IN_FLIGHT: 1}).when(request()).then_refused(
        FundsReason.CREDIT_TOO_LOW
    )
    assert scene(bank=THIRTY + 1).having({IN_FLIGHT: 1}).when(request()).changes()


def test_e_m5_what_customers_paid_for_good_pays_no_cash_out() -> None:
    """A thief's card money was cashed out on day 4 of 120, from the bank that others filled."""
    asked = scene(bank=THIRTY + 5).after(request())
    covered = replace(start, leaving=2, customers_cash=3)
    assert asked.when(covered).changes()
    asked.when(replace(covered, customers_cash=4)).then_refused(
        FundsReason.CREDIT_TOO_LOW, needed=THIRTY, bank=THIRTY + 5, leaving=2, customers_cash=4
    )
    asked.when(replace(covered, leaving=3)).then_refused(FundsReason.CREDIT_TOO_LOW)


def test_the_minimum_holds_unless_it_is_all_and_nothing_more_is_coming() -> None:
    assert scene(10_000).when(request()).changes()
    small = scene(10_000).having({f"party:{OWNER}:holdback": 1})
    small.when(request()).then_refused(IncomeReason.CASH_OUT_TOO_SMALL)
    scene(9_999).when(request()).then_refused(IncomeReason.CASH_OUT_TOO_SMALL)
    least = SetCashOutMinimum(minimum=credit(10_000), by="op", at_us=NOON_US)
    scene().when(least).then(
        (cash_out.POLICY, CashOutMinimumSet(minimum=credit(10_000), by="op", at_us=NOON_US))
    )
    assert small.after(least).when(request()).changes()
    scene().after(least).when(least).then_nothing()
    scene().when(replace(least, minimum=credit(1))).then_refused(PricesReason.AMOUNT_OUT_OF_RANGE)
    scene().when(replace(least, minimum=credit(10_001))).then_refused(FundsReason.AMOUNT_NOT_CENTS)


def test_without_a_destination_or_an_open_account_there_is_no_cash_out() -> None:
    account = AccountOpened(account_id=OWNER, kind="party", opened_by="op", at_us=0)
    bare = Scene().given((Stream("account", OWNER), account)).having({EARNED: THIRTY})
    bare.when(request()).then_refused(IncomeReason.PAYMENT_MODE)
    closed = AccountClosed(account_id=OWNER, by="mem", at_us=0)
    gone = scene().given((Stream("account", OWNER), closed))
    gone.when(request()).then_refused(PartiesReason.ACCOUNT_CLOSED)


# --- holds --------------------------------------------------------------------------------------


def test_held_is_neither_asked_for_nor_started_until_every_hold_is_released() -> None:
    one = CashOutsHeld(
        account_id=OWNER, hold_id="operator", reason="a look", by="op", at_us=NOON_US
    )
    scene().when(hold()).then((holds_stream(OWNER), one))
    scene().after(hold()).when(hold()).then_nothing()
    held = scene().after(request()).after(hold()).after(hold("audit"))
    held.when(request(name="cashout_2")).then_refused(IncomeReason.CASH_OUT_HELD)
    held.when(start).then_refused(IncomeReason.CASH_OUT_HELD)
    release = ReleaseCashOuts(account_id=OWNER, hold_id="operator", by="op", at_us=NOON_US)
    released = CashOutsReleased(account_id=OWNER, hold_id="operator", by="op", at_us=NOON_US)
    held.when(release).then((holds_stream(OWNER), released))
    half = held.after(release)
    half.when(release).then_nothing()
    half.when(start).then_refused(IncomeReason.CASH_OUT_HELD)
    free = half.after(replace(release, hold_id="audit"))
    started = CashOutStarted(cash_out_id=CASH_OUT, processor="bank", at_us=NOON_US)
    free.when(start).then((stream_of(CASH_OUT), started))
    begun = free.after(start)
    begun.when(start).then_nothing()
    begun.when(replace(start, processor="other")).then_refused(IncomeReason.CASH_OUT_STATE)


def test_who_owes_is_held_by_it() -> None:
    owing = scene().having({f"party:{OWNER}:owed": 1})
    owing.when(request()).then_refused(IncomeReason.CASH_OUT_HELD)
    scene().after(request()).having({f"party:{OWNER}:owed": 1}).when(start).then_refused(
        IncomeReason.CASH_OUT_HELD
    )


def test_nothing_is_sent_to_a_destination_that_is_new() -> None:
    change = SetPaymentMode(
        account_id=OWNER,
        mode="cash",
        billing_account_id=OWNER,
        destination="acct_thief",
        by="mem",
        at_us=NOON_US,
    )
    changed = scene().after(change)
    changed.when(request()).then_refused(IncomeReason.CASH_OUT_HELD)
    assert changed.when(request(at_us=NOON_US + DESTINATION_DELAY_US)).changes()


# --- its way ------------------------------------------------------------------------------------


def test_only_what_was_started_is_sent_and_only_what_was_sent_is_paid() -> None:
    asked = scene().after(request())
    asked.when(sent).then_refused(IncomeReason.CASH_OUT_STATE)
    asked.when(paid).then_refused(IncomeReason.CASH_OUT_STATE)
    asked.when(fail).then_refused(IncomeReason.CASH_OUT_STATE)
    begun = asked.after(start)
    begun.when(start).then_nothing()
    begun.when(cancel).then_refused(IncomeReason.CASH_OUT_STATE)
    begun.when(paid).then_refused(IncomeReason.CASH_OUT_STATE)
    gone = begun.after(sent)
    gone.when(sent).then_nothing()
    gone.when(replace(sent, reference="po_2")).then_refused(IncomeReason.CASH_OUT_STATE)
    done = gone.after(paid)
    done.when(paid).then_nothing()
    done.when(fail).then_refused(IncomeReason.CASH_OUT_STATE)
    done.when(start).then_refused(IncomeReason.CASH_OUT_STATE)
    assert cash_out_of(done, CASH_OUT).is_finished
    scene().when(start).then_refused(IncomeReason.CASH_OUT_UNKNOWN)


def test_what_fails_or_is_cancelled_comes_back_and_a_closed_accounts_waits_in_suspense() -> None:
    asked = scene().after(request())
    change, known = asked.when(cancel).changes()
    assert (change.fact.account_id, change.fact.amount) == (OWNER, credit(THIRTY))
    assert (known.fact.account_id, known.fact.book) == (OWNER, "earned")
    assert known.fact.clients == (ClientPart("", THIRTY),), "whose work it was comes back, too"
    begun = asked.after(start)
    change, _ = begun.when(fail).changes()
    assert (change.fact.account_id, change.fact.amount) == (OWNER, credit(THIRTY))
    closed = AccountClosed(account_id=OWNER, by="mem", at_us=0)
    (change,) = begun.given((Stream("account", OWNER), closed)).when(fail).changes()
    assert change.fact.account_id is None
    begun.after(fail).when(fail).then_nothing()
    asked.after(cancel).when(cancel).then_nothing()


def test_what_comes_back_after_it_was_paid_is_credited_once() -> None:
    done = scene().after(request()).after(start).after(sent).after(paid)
    change, _ = done.when(back(10)).changes()
    assert (change.fact.amount, change.fact.returned) == (credit(10), credit(10))
    some = done.after(back(10))
    some.when(back(10)).then_nothing()
    change, _ = some.when(back(THIRTY)).changes()
    assert change.fact.amount == credit(THIRTY - 10)
    some.when(back(THIRTY + 1)).then_refused(PricesReason.AMOUNT_OUT_OF_RANGE)
    scene().after(request()).when(back(1)).then_refused(IncomeReason.CASH_OUT_STATE)


# --- whatever is asked in whatever order --------------------------------------------------------

NAMES = ("cashout_1", "cashout_2", "cashout_3")
moves = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(
            ("ask", "start", "sent", "sent_other", "paid", "fail", "cancel", "back", "hold", "free")
        ),
        st.integers(1, 4_000),
    ),
    max_size=60,
)


def _command(name: str, move: str, number: int) -> Any:
    named: dict[str, Any] = {"cash_out_id": name}
    match move:
        case "ask":
            return request(10_000 * number, name)
        case "start" | "sent" | "paid" | "fail" | "cancel":
            of = {"start": start, "sent": sent, "paid": paid, "fail": fail, "cancel": cancel}
            found: Any = of[move]
            return replace(found, **named)
        case "sent_other":
            return replace(sent, reference="po_other", **named)
        case "back":
            return replace(back(10_000 * number), **named)
        case "hold":
            return hold()
        case _:
            return ReleaseCashOuts(account_id=OWNER, hold_id="operator", by="op", at_us=NOON_US)


@given(moves=moves)
def test_no_order_of_commands_pays_a_cash_out_twice_or_loses_a_unit(
    moves: list[tuple[str, str, int]],
) -> None:
    """Each command is sent twice. C-24; economics 20 item 6: bank, in flight and earned add up."""
    start_units, bank_units = 60_000_000, 50_000_000
    world = scene(start_units, bank_units).after(
        SetCashOutMinimum(minimum=credit(10_000), by="op", at_us=NOON_US)
    )
    left_the_bank = dict.fromkeys(NAMES, 0)
    for name, move, number in moves:
        command = _command(name, move, number)
        for _ in range(2):
            try:
                changes = rules.decide(command, world)
            except Refused:
                continue
            for change in changes:
                world = world.given((change.stream, change.fact))
                for entry in entries_for(change.fact):
                    for account, units in entry.lines:
                        now = world.balance(account) + kind_of(account).side * units
                        assert now >= 0, (account, change.fact)
                        world = world.having({account: now})
                        if account == BANK:
                            left_the_bank[change.fact.cash_out_id] -= units
        states = {each: cash_out_of(world, each) for each in NAMES}
        asked = {each: s.requested.amount.units for each, s in states.items() if s.requested}
        assert all(0 <= left_the_bank[each] <= asked.get(each, 0) for each in NAMES)
        open_units = sum(asked[each] for each in asked if not states[each].is_finished)
        assert world.balance(IN_FLIGHT) == open_units
        gone = sum(left_the_bank.values())
        assert world.balance(EARNED) + open_units + gone == start_units
        assert world.balance(BANK) + gone == bank_units
        assert world.balance(BANK) >= world.balance(IN_FLIGHT), "what is promised is there"


def test_no_account_is_always_the_first_that_asks_by_itself() -> None:
    """The same day has the same order for everybody, and another day another one."""
    accounts = [f"acct_{number}" for number in range(8)]
    first = Counter(min(accounts, key=lambda one: turn_of(one, day)) for day in range(365))
    assert set(first) == set(accounts)
    assert max(first.values()) < 2 * 365 / len(accounts)


@pytest.mark.parametrize(
    ("earned", "coming", "least"),
    [
        (24_995_000, 0, 24_990_000),
        (24_995_000, 1, 25_000_000),
        (25_000_000, 0, 25_000_000),
        (9_999, 0, 25_000_000),
        (0, 0, 25_000_000),
    ],
)
def test_the_smallest_cash_out_is_all_cents_of_who_gets_no_more(
    earned: int, coming: int, least: int
) -> None:
    assert least_of(25_000_000, earned, coming) == least


def test_who_does_not_exist_is_neither_held_nor_released() -> None:
    release = ReleaseCashOuts(account_id="acct_x", hold_id="operator", by="op", at_us=NOON_US)
    for command in (replace(hold(), account_id="acct_x"), release):
        scene().when(command).then_refused(PartiesReason.ACCOUNT_UNKNOWN, account_id="acct_x")


def test_an_account_has_a_thousand_holds_at_most_and_those_may_still_change() -> None:
    held = scene().given(
        *(
            (
                holds_stream(OWNER),
                CashOutsHeld(
                    account_id=OWNER,
                    hold_id=f"h{number:04}",
                    reason="a look",
                    by="op",
                    at_us=NOON_US,
                ),
            )
            for number in range(999)
        )
    )
    full = held.after(hold("h0999"))
    full.when(hold("h1000")).then_refused(IncomeReason.CASH_OUT_HELD, holds=1_000)
    full.when(hold("h0999")).then_nothing()
    assert full.when(replace(hold("h0999"), reason="another look")).changes()


def test_five_reasons_of_what_holds_a_cash_out_are_told() -> None:
    held = scene()
    for number in range(6, 0, -1):
        held = held.after(hold(f"h{number}"))
    told = "; ".join(f"h{number}: a look" for number in range(1, 6))
    held.when(request()).then_refused(IncomeReason.CASH_OUT_HELD, holds=told, until_us=None)


def test_the_minimum_is_of_credits_between_a_cent_and_a_million_of_them() -> None:
    least = SetCashOutMinimum(minimum=credit(10_000), by="op", at_us=NOON_US)
    for units in (10_000, 20_000, 10**12):
        assert scene().when(replace(least, minimum=credit(units))).changes()
    for amount in (credit(0), credit(9_999), credit(10**12 + 10_000), token(20_000)):
        scene().when(replace(least, minimum=amount)).then_refused(
            PricesReason.AMOUNT_OUT_OF_RANGE, least=10_000, most=10**12
        )
