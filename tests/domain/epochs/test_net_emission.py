"""Net emission: nothing comes back that was not burned, and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.net_emission import NetEmission, net_emission, release
from domain.epochs.reasons import EpochsReason
from domain.refusal import Reason, Refused

burned = st.lists(st.integers(0, 10**16), max_size=20)
pools, taus, caps = st.integers(0, 10**16), st.integers(1, 60), st.integers(0, 10**15)


@given(burned, pools, taus, caps)
def test_what_is_not_released_stays_in_the_pool(
    burns: list[int], start: int, tau: int, cap: int
) -> None:
    run = net_emission(burns, start, tau, cap)
    assert sum(run.released) + run.pool_end == start + sum(burns)
    assert len(run.released) == len(burns)
    assert all(0 <= units <= cap for units in run.released)


@given(burned, pools, taus, caps)
def test_never_more_is_released_than_was_burned_until_then(
    burns: list[int], start: int, tau: int, cap: int
) -> None:
    run = net_emission(burns, start, tau, cap)
    for epoch in range(len(burns) + 1):
        assert sum(run.released[:epoch]) <= start + sum(burns[:epoch])


@given(burned, st.integers(0, 20), pools, taus, caps)
def test_a_run_may_be_cut_anywhere(
    burns: list[int], place: int, start: int, tau: int, cap: int
) -> None:
    first = net_emission(burns[:place], start, tau, cap)
    second = net_emission(burns[place:], first.pool_end, tau, cap)
    whole = NetEmission(first.released + second.released, second.pool_end)
    assert whole == net_emission(burns, start, tau, cap)


@given(burned, pools, taus, caps, st.integers(0, 19), st.integers(1, 10**15))
def test_burning_more_never_releases_less(
    burns: list[int], start: int, tau: int, cap: int, place: int, more: int
) -> None:
    larger = [units + more * (epoch == place) for epoch, units in enumerate(burns)]
    less, greater = (net_emission(some, start, tau, cap) for some in (burns, larger))
    totals = range(len(burns) + 1)
    assert all(sum(less.released[:n]) <= sum(greater.released[:n]) for n in totals)


@given(pools, taus)
def test_less_than_tau_units_never_leave_the_pool(pool: int, tau: int) -> None:
    assert release(tau - 1, tau, 10**9) == 0
    while units := release(pool, tau, 10**18):
        pool -= units
    assert pool < tau


@pytest.mark.parametrize(
    ("tau", "burns", "reason"),
    [
        (0, [-1], EpochsReason.BAD_TAU),
        (-1, [], EpochsReason.BAD_TAU),
        (1, [1, -1], EpochsReason.NEGATIVE_BURN),
    ],
)
def test_the_first_rule_that_is_broken_refuses(tau: int, burns: list[int], reason: Reason) -> None:
    with pytest.raises(Refused) as caught:
        net_emission(burns, 0, tau, 1)
    assert caught.value.reason is reason


def test_a_pool_is_not_released_by_a_tau_of_nothing() -> None:
    with pytest.raises(Refused) as caught:
        release(1, 0, 1)
    assert caught.value.reason is EpochsReason.BAD_TAU
