"""Signs of wash trade: the worked numbers, and their bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.wash_signals import (
    CONCENTRATED_PPM,
    CONCENTRATION_FROM_US,
    Signals,
    concentration,
    of_shares,
    payout_multiple,
    related_share,
    signals,
)
from domain.money import PPM

OLD = CONCENTRATION_FROM_US


def test_the_worked_concentration() -> None:
    """Design, economics 13."""
    assert concentration([2280, 19, 1]) == 982_752


def test_the_worked_payout_multiple() -> None:
    """Design, economics 14: 656.72 TOKEN for 10.16 that were burned."""
    assert payout_multiple(65_672_419_732, 1_016_042_781) == 64_635_486


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=20))
def test_concentration_lies_between_equal_parts_and_one_alone(parts: list[int]) -> None:
    index = concentration(parts)
    assert index is None if not any(parts) else PPM // len(parts) <= index <= PPM  # type: ignore[operator]


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_the_related_share_is_a_share(related: int, others: int) -> None:
    share = related_share(related, others)
    assert share is None if not related + others else 0 <= share <= PPM  # type: ignore[operator]


def test_nothing_is_divided_by_nothing() -> None:
    assert signals(0, 0, [], 0, OLD) == Signals(None, None, None, ())


def test_a_washer_raises_every_signal() -> None:
    assert signals(300, 100, [7], 93, OLD).raised == (
        "payout_multiple",
        "concentration",
        "related_share",
    )


def test_what_is_listed_says_which_part_is_high() -> None:
    assert of_shares(90, 0, 100, OLD) == (900_000, 0, ("concentration",))
    assert of_shares(10, 50, 100, OLD) == (200_000, 500_000, ("related_share",))
    assert of_shares(0, 7, 7, OLD) == (0, 1_000_000, ("related_share",))


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=3), st.integers(0, 2 * OLD))
def test_who_is_new_is_not_concentrated_with_one_customer_or_with_any(
    parts: list[int], age_us: int
) -> None:
    """users B19: a node in its first weeks has the customers it has."""
    told = signals(0, 0, parts, 0, age_us)
    assert ("concentration" in told.raised) == (
        age_us >= CONCENTRATION_FROM_US and (told.concentration_ppm or 0) >= CONCENTRATED_PPM
    )
    largest = max(parts)
    assert age_us >= OLD or "concentration" not in of_shares(largest, 0, sum(parts), age_us)[2]
