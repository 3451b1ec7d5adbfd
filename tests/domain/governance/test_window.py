"""The breaker: it fades within one window, and what would pass its limit is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.funds.reasons import FundsReason
from domain.governance.reasons import GovernanceReason
from domain.governance.window import Gauge, faded, let_pass
from domain.refusal import Refused

W = 1_000
gauges = st.builds(Gauge, st.integers(0, 10**18), st.integers(0, 10**6))
waits = st.integers(0, 3 * W)


@given(gauges, waits, waits)
def test_the_aggregate_only_falls_while_nothing_passes(gauge: Gauge, one: int, more: int) -> None:
    left = faded(gauge, W, gauge.last_us + one)
    assert faded(gauge, W, gauge.last_us + one + more) <= left <= gauge.aggregate
    assert faded(gauge, W, gauge.last_us) == gauge.aggregate


@given(gauges, st.integers(W, 10 * W))
def test_after_one_window_it_is_gone(gauge: Gauge, wait: int) -> None:
    assert faded(gauge, W, gauge.last_us + wait) == 0


@given(gauges, st.integers(1, W))
def test_a_clock_that_runs_backwards_lets_nothing_fade(gauge: Gauge, back: int) -> None:
    assert faded(gauge, W, gauge.last_us - back) == gauge.aggregate
    after = let_pass(gauge, 1, gauge.aggregate + 1, W, gauge.last_us - back)
    assert after == Gauge(gauge.aggregate + 1, gauge.last_us)


@given(gauges, waits, st.integers(1, 10**18), st.integers(0, 10**18))
def test_the_limit_may_be_reached_and_not_passed(
    gauge: Gauge, wait: int, amount: int, limit: int
) -> None:
    at_us = gauge.last_us + wait
    total = gauge.aggregate * (W - min(W, wait)) // W + amount
    if total > limit:
        with pytest.raises(Refused) as caught:
            let_pass(gauge, amount, limit, W, at_us)
        assert caught.value.reason is GovernanceReason.BREAKER_LIMIT
    else:
        assert let_pass(gauge, amount, limit, W, at_us) == Gauge(total, at_us)


@given(gauges, waits, st.integers(1, 10**9), st.integers(1, 10**9))
def test_an_amount_in_two_parts_counts_as_one(
    gauge: Gauge, wait: int, one: int, other: int
) -> None:
    limit, at_us = 10**19, gauge.last_us + wait
    parts = let_pass(let_pass(gauge, one, limit, W, at_us), other, limit, W, at_us)
    assert parts == let_pass(gauge, one + other, limit, W, at_us)


asked = st.lists(st.tuples(st.integers(0, W // 4), st.integers(1, 2_000)), max_size=40)


@given(asked, st.integers(1, 2_000))
def test_no_stretch_of_one_window_lets_more_than_twice_the_limit_pass(
    plan: list[tuple[int, int]], limit: int
) -> None:
    """And one unit more for each passage, which the rounding down may give."""
    gauge, now, passed = Gauge(), 0, []
    for wait, amount in plan:
        now += wait
        try:
            gauge = let_pass(gauge, amount, limit, W, now)
        except Refused:
            continue
        assert gauge.aggregate <= limit
        passed.append((now, amount))
    for start, _ in passed:
        window = [amount for at_us, amount in passed if start <= at_us < start + W]
        assert sum(window) <= 2 * limit + len(window)


@pytest.mark.parametrize("amount", [0, -1])
def test_only_an_amount_passes(amount: int) -> None:
    with pytest.raises(Refused) as caught:
        let_pass(Gauge(), amount, 10, W, 0)
    assert caught.value.reason is FundsReason.AMOUNT_NOT_POSITIVE
