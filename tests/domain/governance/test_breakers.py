"""The breakers of the network: what passes, what waits and is told once, who may lift a limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import DAY_US, HOUR_US
from domain.funds.reasons import FundsReason
from domain.governance.breakers import (
    MINT,
    WAITING_MAX,
    BreakerPassed,
    BreakerSet,
    BreakerTripped,
    PassBreaker,
    SetBreaker,
    breaker_of,
    stream_of,
)
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Reason
from tests.examples import examples
from tests.given import Scene

AT = stream_of(MINT)
SET = SetBreaker(breaker=MINT, limit=100, window_us=DAY_US, reason="a day", by="mem", at_us=1)
LIMITED = Scene().after(SET)
ASK = PassBreaker(breaker=MINT, ref="mint/1", amount=60, at_us=HOUR_US)
SECOND = replace(ASK, ref="mint/2")


def passed(ref: str, amount: int, aggregate: int, at_us: int) -> tuple[Any, BreakerPassed]:
    fact = BreakerPassed(breaker=MINT, ref=ref, amount=amount, aggregate=aggregate, at_us=at_us)
    return AT, fact


def test_without_a_limit_everything_passes_and_nothing_is_recorded() -> None:
    Scene().when(ASK).then_nothing()
    assert breaker_of(Scene(), MINT).has_passed("mint/1")


def test_what_has_passed_passes_again_and_counts_once() -> None:
    LIMITED.when(ASK).then(passed("mint/1", 60, 60, HOUR_US))
    after = LIMITED.after(ASK)
    after.when(replace(ASK, at_us=2 * HOUR_US)).then_nothing()
    assert breaker_of(after, MINT).held(HOUR_US) == 60


def test_what_would_be_too_much_waits_and_is_told_once_with_a_machine_reason() -> None:
    after = LIMITED.after(ASK)
    tripped = BreakerTripped(
        breaker=MINT,
        ref="mint/2",
        amount=60,
        aggregate=60,
        limit=100,
        window_us=DAY_US,
        reason="breaker_limit",
        at_us=HOUR_US,
    )
    after.when(SECOND).then((AT, tripped))
    waits = after.after(SECOND)
    waits.when(SECOND).then_nothing()
    state = breaker_of(waits, MINT)
    assert (state.has_passed("mint/2"), list(state.waiting)) == (False, ["mint/2"])


def test_what_waits_passes_when_enough_has_faded() -> None:
    waits = LIMITED.after(ASK).after(SECOND)
    later = replace(SECOND, at_us=HOUR_US + DAY_US // 2)
    waits.when(later).then(passed("mint/2", 60, 90, later.at_us))
    assert breaker_of(waits.after(later), MINT).waiting == {}


def test_a_raised_limit_is_a_fact_with_a_reason_and_lets_what_waits_pass() -> None:
    waits = LIMITED.after(ASK).after(SECOND)
    more = replace(SET, limit=120, reason="a second epoch", by="mem_b", at_us=HOUR_US)
    fact = BreakerSet(
        breaker=MINT,
        limit=120,
        window_us=DAY_US,
        reason="a second epoch",
        by="mem_b",
        at_us=HOUR_US,
    )
    waits.when(more).then((AT, fact))
    waits.after(more).when(SECOND).then(passed("mint/2", 60, 120, HOUR_US))


@pytest.mark.parametrize(
    ("changed", "reason", "told"),
    [
        ({"breaker": "burn"}, PartiesReason.UNKNOWN_MODE, {"breaker": "burn"}),
        ({"limit": -1}, PricesReason.AMOUNT_OUT_OF_RANGE, {"field": "limit"}),
        ({"window_us": 0}, PricesReason.BAD_WINDOW, {"window_us": 0}),
        ({"reason": ""}, PricesReason.AMOUNT_OUT_OF_RANGE, {"field": "reason"}),
    ],
)
def test_a_limit_makes_sense(changed: dict[str, Any], reason: Reason, told: dict[str, Any]) -> None:
    LIMITED.when(replace(SET, **changed)).then_refused(reason, **told)


def test_nothing_cannot_pass_and_so_many_may_wait() -> None:
    LIMITED.when(replace(ASK, amount=0)).then_refused(FundsReason.AMOUNT_NOT_POSITIVE)
    full = LIMITED
    for number in range(WAITING_MAX):
        full = full.after(replace(ASK, ref=str(number), amount=101))
    full.when(replace(ASK, ref="more", amount=101)).then_nothing()
    assert not breaker_of(full, MINT).has_passed("more")


asked = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 120), st.integers(0, DAY_US)), max_size=20
)


@examples(40)
@given(asked)
def test_within_any_window_at_most_twice_the_limit_passes(
    asked: list[tuple[int, int, int]],
) -> None:
    scene, at_us = LIMITED, 1
    for ref, amount, wait_us in asked:
        at_us += wait_us
        ask = PassBreaker(breaker=MINT, ref=str(ref), amount=amount, at_us=at_us)
        scene = scene.after(ask)
    let = [fact for _, fact in scene.past if isinstance(fact, BreakerPassed)]
    assert len({fact.ref for fact in let}) == len(let), "each once"
    for first in let:
        window = [f.amount for f in let if first.at_us <= f.at_us < first.at_us + DAY_US]
        assert sum(window) <= 200
