"""Burns: one after the other, without gap or overlap, worth what they burn for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.chain.burn import (
    BurnConfirmed,
    BurnFailed,
    BurnIntended,
    ConfirmBurn,
    FailBurn,
    IntendBurn,
    burn_of,
    stream_of,
)
from domain.chain.reasons import ChainReason
from domain.funds.reasons import FundsReason
from domain.money import credit, token
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.rules import decide
from tests.given import Scene

ONE = stream_of(1)
INTEND = IntendBurn(
    burn_id=1,
    first_position=1,
    last_position=100,
    credits=credit(19_000_000),
    price_micro_usd=1_870_000,
    price_round=3,
    at_us=10,
)
INTENDED = BurnIntended(
    burn_id=1,
    first_position=1,
    last_position=100,
    credits=credit(19_000_000),
    price_micro_usd=1_870_000,
    price_round=3,
    tokens=token(1_016_042_781),
    at_us=10,
    price_snapshot=None,
)
CONFIRM = ConfirmBurn(burn_id=1, tokens=INTENDED.tokens, tx_hash="0xab", block_number=8, at_us=20)
CONFIRMED = BurnConfirmed(
    burn_id=1,
    credits=INTENDED.credits,
    tokens=INTENDED.tokens,
    tx_hash="0xab",
    block_number=8,
    at_us=20,
)
FAIL = FailBurn(burn_id=1, reason="cancelled", at_us=20)
FAILED = BurnFailed(burn_id=1, reason="cancelled", at_us=20)
NEXT = replace(INTEND, burn_id=2, first_position=101, last_position=150)

DUE = Scene().having({"network:burn_due": 20_000_000, "world:bank": 30_000_000})
OPEN = DUE.given((ONE, INTENDED))
DONE = OPEN.given((ONE, CONFIRMED))
LOST = OPEN.given((ONE, FAILED))


def test_an_intent_stores_price_and_tokens() -> None:
    DUE.when(INTEND).then((ONE, INTENDED))


def test_zero_credits_make_no_intent() -> None:
    DUE.when(replace(INTEND, credits=credit(0))).then_nothing()


def test_intending_twice_burns_once() -> None:
    OPEN.when(replace(INTEND, at_us=99)).then_nothing()
    DONE.when(INTEND).then_nothing()
    OPEN.when(replace(INTEND, credits=credit(1))).then_refused(
        ChainReason.BURN_STATE, burn_id=1, rule="id taken or below 1"
    )


def test_one_burn_at_a_time() -> None:
    OPEN.when(NEXT).then_refused(ChainReason.BURN_STATE, burn_id=2, rule="the one before waits")
    assert DONE.when(NEXT).changes()[0].fact.first_position == 101


def test_burns_are_numbered_without_gaps() -> None:
    DUE.when(NEXT).then_refused(ChainReason.BURN_STATE, burn_id=2, rule="the one before waits")
    DUE.when(replace(INTEND, burn_id=0)).then_refused(
        ChainReason.BURN_STATE, burn_id=0, rule="id taken or below 1"
    )


@pytest.mark.parametrize(("first", "last"), [(100, 150), (102, 150), (101, 100)])
def test_a_burn_begins_where_the_last_one_ended(first: int, last: int) -> None:
    odd = replace(NEXT, first_position=first, last_position=last)
    DONE.when(odd).then_refused(ChainReason.BURN_STATE, first_position=..., expected=101)


def test_the_range_of_a_failed_burn_is_burned_by_the_next() -> None:
    LOST.when(NEXT).then_refused(ChainReason.BURN_STATE, first_position=101, expected=1)
    whole = replace(NEXT, first_position=1)
    assert LOST.when(whole).changes()[0].fact.first_position == 1


def test_no_more_is_burned_than_is_due() -> None:
    DUE.when(replace(INTEND, credits=credit(20_000_001))).then_refused(
        FundsReason.CREDIT_TOO_LOW, credits=20_000_001, burn_due=20_000_000
    )
    DUE.when(replace(INTEND, credits=credit(-1))).then_refused(FundsReason.AMOUNT_NOT_POSITIVE)
    DUE.when(replace(INTEND, credits=token(1))).then_refused(FundsReason.AMOUNT_NOT_POSITIVE)


def test_no_more_is_burned_than_the_bank_can_pay() -> None:
    """What card money paid is due, but it is not cash yet: its burn could not be booked."""
    DUE.having({"world:bank": 18_999_999}).when(INTEND).then_refused(
        FundsReason.CREDIT_TOO_LOW, credits=19_000_000, bank=18_999_999
    )
    DUE.having({"world:bank": 19_000_000}).when(INTEND).then((ONE, INTENDED))


def test_a_price_too_coarse_is_refused() -> None:
    DUE.when(replace(INTEND, price_micro_usd=999)).then_refused(PricesReason.PRICE_TOO_LOW)


def test_a_burn_is_confirmed_once() -> None:
    OPEN.when(CONFIRM).then((ONE, CONFIRMED))
    DONE.when(replace(CONFIRM, at_us=99)).then_nothing()
    DONE.when(replace(CONFIRM, tx_hash="0xcd")).then_refused(
        ChainReason.BURN_STATE, burn_id=1, tokens=1_016_042_781
    )


def test_what_was_not_intended_is_not_confirmed() -> None:
    DUE.when(CONFIRM).then_refused(ChainReason.BURN_STATE, burn_id=1, rule="not intended")
    OPEN.when(replace(CONFIRM, tokens=token(1))).then_refused(
        ChainReason.BURN_STATE, burn_id=1, tokens=1
    )
    LOST.when(CONFIRM).then_refused(ChainReason.BURN_STATE, burn_id=1, tokens=1_016_042_781)


def test_a_burn_fails_once_and_never_after_it_was_confirmed() -> None:
    OPEN.when(FAIL).then((ONE, FAILED))
    LOST.when(replace(FAIL, at_us=99)).then_nothing()
    LOST.when(replace(FAIL, reason="other")).then_refused(ChainReason.BURN_STATE)
    DONE.when(FAIL).then_refused(ChainReason.BURN_STATE)
    DUE.when(FAIL).then_refused(ChainReason.BURN_STATE)


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=12))
def test_every_position_is_in_exactly_one_confirmed_burn(plan: list[tuple[int, bool]]) -> None:
    """I9: whatever fails in between, confirmed ranges touch and never overlap."""
    scene, first = DUE, 1
    for burn_id, (length, succeeds) in enumerate(plan, start=1):
        intend = replace(
            INTEND, burn_id=burn_id, first_position=first, last_position=first + length - 1
        )
        with pytest.raises(Refused):
            decide(replace(intend, first_position=first + 1, last_position=first + 99), scene)
        scene = scene.after(intend)
        end = CONFIRM if succeeds else FAIL
        scene = scene.after(replace(end, burn_id=burn_id))
        first += length if succeeds else 0
    burns = [burn_of(scene, burn_id) for burn_id in range(1, len(plan) + 1)]
    covered = [
        position
        for burn in burns
        if burn.confirmed is not None and burn.intended is not None
        for position in range(burn.intended.first_position, burn.intended.last_position + 1)
    ]
    assert covered == list(range(1, first))
