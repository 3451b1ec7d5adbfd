"""Forecasts are exact to the second: one second more and the balance would not cover it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.duration import SECOND_US
from domain.lease.escrow import funds_end_us
from domain.lease.forecast import _EXACT, Draw, charge_per_hour, cost, lasts_until_us

NOW_US = 1_795_161_600_000_000
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US

draws = st.lists(
    st.builds(
        Draw,
        price_per_gpu_hour=st.integers(0, 10**8),
        gpu_ppm_total=st.integers(1, 64 * 10**6),
        funds_end_us=st.integers(NOW_US, NOW_US + 30 * DAY_US),
        term_end_us=st.none() | st.integers(NOW_US, NOW_US + 60 * DAY_US),
    ),
    max_size=6,
)


@given(st.integers(0, 10**13), draws)
def test_the_balance_covers_the_last_second_and_not_one_more(
    balance: int, running: list[Draw]
) -> None:
    until_us = lasts_until_us(balance, running, NOW_US)
    if until_us is None:
        assert cost(running, NOW_US + 10_000 * DAY_US) <= balance * _EXACT
        return
    assert (until_us - NOW_US) % SECOND_US == 0
    assert cost(running, until_us) <= balance * _EXACT < cost(running, until_us + SECOND_US)


@given(
    st.integers(0, 10**12),
    st.integers(1, 10**8),
    st.integers(1, 64 * 10**6),
    st.integers(0, 10**10),
)
def test_one_lease_lasts_as_long_as_if_the_balance_were_in_its_escrow(
    balance: int, price: int, ppm: int, held: int
) -> None:
    """Within a second: an escrow floors its one charge, a forecast floors nothing."""
    funded_us = funds_end_us(NOW_US, held, price, ppm)
    both_us = funds_end_us(NOW_US, held + balance, price, ppm)
    lasts_us = lasts_until_us(balance, [Draw(price, ppm, funded_us)], NOW_US)
    if lasts_us is not None:
        assert lasts_us <= both_us
        unspent = held * _EXACT - price * ppm * (funded_us - NOW_US)
        seconds = max(0, unspent + _EXACT) // (price * ppm * SECOND_US)
        assert both_us - lasts_us <= (seconds + 1) * SECOND_US


def test_ten_credits_at_two_seventy_eight_end_at_second_12949() -> None:
    """Design economics 4: 10 CREDIT at 2.78 an hour; here they are a balance and not an escrow."""
    draw = Draw(2_780_000, 1_000_000, NOW_US)
    assert lasts_until_us(10_000_000, [draw], NOW_US) == NOW_US + 12_949 * SECOND_US
    assert charge_per_hour([draw, draw]) == 5_560_000


def test_what_is_free_or_ends_by_its_term_is_funded_for_ever() -> None:
    free = Draw(0, 1_000_000, NOW_US)
    term = Draw(2_780_000, 1_000_000, NOW_US + HOUR_US, NOW_US + HOUR_US)
    assert lasts_until_us(0, [], NOW_US) is None
    assert lasts_until_us(0, [free, term], NOW_US) is None
