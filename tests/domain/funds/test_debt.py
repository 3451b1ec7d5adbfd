"""What is owed: what repays it and in which order, and what the reserve pays of it."""

from __future__ import annotations

from typing import Any

import pytest

from domain.funds.debt import (
    AMOUNT_UNITS_MAX,
    RESERVE_STREAM,
    Debt,
    DebtRepaid,
    DebtWrittenOff,
    FundReserve,
    Repaid,
    RepayDebt,
    Reserve,
    ReserveFunded,
    WriteOffDebt,
    debt_stream,
    repayments,
)
from domain.funds.reasons import FundsReason
from domain.money import Amount, credit, token
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Reason
from domain.stream import Stream
from tests.domain.scenes.supply import ALICE, ALICE_STREAM, NOON_US, opened
from tests.given import Scene

OPEN = Scene().given((ALICE_STREAM, opened))
STREAM = debt_stream(ALICE)


def owing(units: int, **held: int) -> Scene:
    """What the account owes and holds, by source."""
    parts = {"owed": units, **held}
    return OPEN.having({f"party:{ALICE}:{part}": units for part, units in parts.items()})


def reserved(units: int, owed: int) -> Scene:
    return owing(owed).having({"network:chargeback_reserve": units})


def off(amount: Amount, account_id: str = ALICE) -> WriteOffDebt:
    return WriteOffDebt(account_id=account_id, amount=amount, reason="r", by="op", at_us=NOON_US)


def repaid(*paid: tuple[str, int], cause: str = "set_off") -> tuple[Stream[Any], DebtRepaid]:
    parts = tuple(Repaid(source, credit(units)) for source, units in paid)
    return STREAM, DebtRepaid(account_id=ALICE, paid=parts, cause=cause, at_us=NOON_US)


def written_off(units: int) -> tuple[Stream[Any], DebtWrittenOff]:
    fact = DebtWrittenOff(
        account_id=ALICE, amount=credit(units), reason="r", by="op", at_us=NOON_US
    )
    return STREAM, fact


def fund(amount: Amount) -> FundReserve:
    return FundReserve(amount=amount, by="op", at_us=NOON_US)


def funded(units: int) -> tuple[Stream[Any], ReserveFunded]:
    return RESERVE_STREAM, ReserveFunded(amount=credit(units), by="op", at_us=NOON_US)


def test_what_was_repaid_and_what_was_written_off_are_counted_apart() -> None:
    facts = (repaid(("earned", 3), ("card", 4)), written_off(5), repaid(("cash", 11)))
    assert (OPEN.state(STREAM), OPEN.state(RESERVE_STREAM)) == (Debt(0, 0), Reserve(0))
    assert OPEN.given(*facts, written_off(2)).state(STREAM) == Debt(repaid=18, written_off=7)
    assert OPEN.given(funded(3), funded(4)).state(RESERVE_STREAM) == Reserve(funded=7)


def test_what_is_owed_is_repaid_by_earned_then_cash_then_card_credits_and_by_no_grant() -> None:
    cases = (
        (
            10,
            {"earned": 3, "cash": 4, "card": 9, "grant": 5},
            (("earned", 3), ("cash", 4), ("card", 3)),
        ),
        (3, {"earned": 3, "cash": 4}, (("earned", 3),)),
        (4, {"earned": 3, "cash": 4}, (("earned", 3), ("cash", 1))),
        (9, {"cash": 1, "burned": 7}, (("cash", 1),)),
    )
    repay = RepayDebt(account_id=ALICE, at_us=NOON_US)
    for owed, held, paid in cases:
        owing(owed, **held).when(repay).then(repaid(*paid))
    owing(9, grant=5, burned=7).when(repay).then_nothing()
    owing(0, cash=5).when(repay).then_nothing()


def test_what_moves_in_the_same_append_repays_and_what_it_takes_does_not() -> None:
    """One that repays by what a lease gives back, or owes more by what a bank took."""
    cases: tuple[tuple[Scene, dict[str, int], int, tuple[tuple[str, int], ...]], ...] = (
        (owing(5), {"card": 4}, 0, (("card", 4),)),
        (owing(5, card=4), {"card": -4, "cash": 2}, 0, (("cash", 2),)),
        (owing(5, card=4), {"card": -5}, 0, ()),
        (owing(0, cash=9), {}, 3, (("cash", 3),)),
        (owing(2, cash=9), {}, 3, (("cash", 5),)),
        (owing(0, cash=9), {}, 0, ()),
    )
    for scene, moved, more, paid in cases:
        made = repayments(scene, ALICE, "pay_1", NOON_US, moved=moved, owed_more=more)
        expected = [repaid(*paid, cause="pay_1")] if paid else []
        assert [(one.stream, one.fact) for one in made] == expected


def test_only_an_account_that_exists_repays_or_is_written_off() -> None:
    """Said first, whatever else is wrong with it."""
    for command in (RepayDebt(account_id="acct_x", at_us=NOON_US), off(credit(0), "acct_x")):
        OPEN.when(command).then_refused(PartiesReason.ACCOUNT_UNKNOWN, account_id="acct_x")


@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        (credit(0), FundsReason.AMOUNT_NOT_POSITIVE),
        (credit(-1), FundsReason.AMOUNT_NOT_POSITIVE),
        (token(1), PricesReason.AMOUNT_OUT_OF_RANGE),
        (credit(10**15 + 1), PricesReason.AMOUNT_OUT_OF_RANGE),
    ],
)
def test_a_write_off_and_a_reserve_are_of_credits_more_than_none_and_10_15_at_most(
    amount: Amount, reason: Reason
) -> None:
    assert AMOUNT_UNITS_MAX == 10**15
    plenty = reserved(10**16, 10**16).having({"network:revenue:take": 10**16})
    told = {"units": amount.units}
    if reason is PricesReason.AMOUNT_OUT_OF_RANGE:
        told["asset"] = amount.asset.value  # type: ignore[assignment]
    for command in (off(amount), fund(amount)):
        plenty.when(command).then_refused(reason, **told)
    for units in (1, 10**15):
        plenty.when(off(credit(units))).then(written_off(units))
        plenty.when(fund(credit(units))).then(funded(units))


def test_no_more_is_written_off_than_is_owed_and_than_the_reserve_has() -> None:
    reserved(7, 7).when(off(credit(7))).then(written_off(7))
    reserved(8, 7).when(off(credit(8))).then_refused(
        PricesReason.AMOUNT_OUT_OF_RANGE, units=8, owed=7
    )
    reserved(6, 7).when(off(credit(7))).then_refused(FundsReason.CREDIT_TOO_LOW, units=7, reserve=6)


def test_the_reserve_is_filled_from_take_revenue_alone() -> None:
    scene = OPEN.having({"network:revenue:take": 7, "network:revenue:device": 9})
    scene.when(fund(credit(7))).then(funded(7))
    scene.when(fund(credit(8))).then_refused(FundsReason.CREDIT_TOO_LOW, units=8, revenue=7)
