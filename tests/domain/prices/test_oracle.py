"""The price: never from a stale source, never outside what the sources said, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import SECOND_US
from domain.prices.oracle import (
    DEVIATION,
    HEALTHY,
    LIMITS,
    TOO_FEW_SOURCES,
    Limits,
    Observation,
    Reading,
    lower_median,
    read_price,
    twap,
)
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused

NOW = 10_000
WIDE = Limits(window_us=1_000, max_age_us=500, max_deviation_bps=10**9, min_sources=1)
observations = st.lists(
    st.builds(Observation, st.integers(NOW - 3_000, NOW + 500), st.integers(0, 10**12)),
    max_size=12,
    unique_by=lambda one: one.published_us,
)
feeds = st.dictionaries(st.text("abcAB", min_size=1, max_size=3), observations, max_size=6)


def flat(**prices: int) -> dict[str, list[Observation]]:
    return {source: [Observation(NOW - 100, price)] for source, price in prices.items()}


def usable(seen: Sequence[Observation]) -> list[Observation]:
    return [one for one in seen if one.published_us <= NOW and one.price]


@given(feeds)
def test_each_source_is_fresh_or_stale_by_its_own_publish_time(
    sources: dict[str, list[Observation]],
) -> None:
    reading = read_price(sources, WIDE, NOW)
    assert set(reading.twaps) | set(reading.stale) == set(sources)
    assert not set(reading.twaps) & set(reading.stale)
    for source, seen in sources.items():
        newest = max((one.published_us for one in usable(seen)), default=NOW - 10**6)
        assert (source in reading.twaps) == (newest >= NOW - WIDE.max_age_us)


@given(feeds)
def test_a_price_lies_within_what_was_published(sources: dict[str, list[Observation]]) -> None:
    reading = read_price(sources, WIDE, NOW)
    for source, average in reading.twaps.items():
        prices = [one.price for one in usable(sources[source])]
        assert min(prices) <= average <= max(prices)
    if reading.median is not None:
        below = sum(average < reading.median for average in reading.twaps.values())
        above = sum(average > reading.median for average in reading.twaps.values())
        assert reading.median in reading.twaps.values()
        assert 2 * below < len(reading.twaps) >= 2 * above


@given(st.data(), feeds)
def test_order_and_repetition_change_nothing(
    data: st.DataObject, sources: dict[str, list[Observation]]
) -> None:
    again = data.draw(st.permutations(list(sources)))
    shuffled = {
        source: data.draw(st.permutations([*sources[source], *sources[source]])) for source in again
    }
    assert read_price(shuffled, WIDE, NOW) == read_price(sources, WIDE, NOW)


@given(feeds, st.integers(0, 400))
def test_reading_an_old_price_again_does_not_make_it_new(
    sources: dict[str, list[Observation]], later_us: int
) -> None:
    """Without news a source only ever goes from fresh to stale."""
    past = {source: usable(seen) for source, seen in sources.items()}
    before = read_price(past, WIDE, NOW)
    after = read_price(past, WIDE, NOW + later_us)
    assert set(before.stale) <= set(after.stale)


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 10**12))
def test_one_outlier_of_three_does_not_move_the_median_out_of_the_other_two(
    one: int, other: int, outlier: int
) -> None:
    reading = read_price(flat(a=one, b=other, c=outlier), WIDE, NOW)
    assert reading.median is not None
    assert min(one, other) <= reading.median <= max(one, other)


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=9))
def test_the_median_of_an_even_number_is_the_lower_one(values: list[int]) -> None:
    doubled = [*values, *values]
    assert lower_median(doubled) == sorted(doubled)[len(values) - 1]
    assert lower_median([*doubled, max(values)]) >= lower_median(doubled)


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=6), st.integers(0, 10_000))
def test_sources_apart_are_told_by_exact_numbers(prices: list[int], most_bps: int) -> None:
    sources = {str(place): flat(a=price)["a"] for place, price in enumerate(prices)}
    reading = read_price(sources, replace(WIDE, max_deviation_bps=most_bps), NOW)
    is_apart = (max(prices) - min(prices)) * 10_000 > most_bps * min(prices)
    assert reading.health == (DEVIATION if is_apart else HEALTHY)
    assert reading.price == (None if is_apart else reading.median)
    assert reading.median == lower_median(prices)


@given(st.integers(0, 6), st.integers(1, 6))
def test_too_few_sources_give_no_price_at_all(fresh: int, needed: int) -> None:
    sources = {str(place): [Observation(NOW, 5)] for place in range(fresh)}
    reading = read_price(sources, replace(WIDE, min_sources=needed), NOW)
    if fresh < needed:
        assert (reading.median, reading.price, reading.health) == (None, None, TOO_FEW_SOURCES)
        assert reading.deviation_bps is None
    else:
        assert (reading.price, reading.health) == (5, HEALTHY)


@given(st.integers(1, 10**12), observations)
def test_prices_scale_with_their_unit(factor: int, seen: list[Observation]) -> None:
    """A source that quotes in another unit gives the same average, less than one unit away."""
    prices = {one.published_us: one.price for one in usable(seen)}
    if prices:
        average = twap(prices, NOW - 1_000, NOW)
        times = {at_us: price * factor for at_us, price in prices.items()}
        assert 0 <= twap(times, NOW - 1_000, NOW) - average * factor < factor


@given(
    st.dictionaries(st.integers(-40, 20), st.integers(1, 10**6), min_size=1, max_size=9),
    st.integers(1, 40),
)
def test_the_average_is_that_of_every_microsecond(prices: dict[int, int], window_us: int) -> None:
    """Counted one by one: what the newest price was, where there was any."""
    asked = [
        prices[max(known)]
        for now_us in range(20 - window_us, 20)
        if (known := [at_us for at_us in prices if at_us <= now_us])
    ]
    average = sum(asked) // len(asked) if asked else prices[20]
    assert twap(prices, 20 - window_us, 20) == average


def test_the_last_price_before_the_window_counts_from_its_start() -> None:
    assert twap({0: 2_000_000, 2_700: 1_000_000}, 1_800, 3_600) == 1_500_000
    assert twap({0: 100, 600: 120, 1_500: 110}, 0, 1_800) == 111
    assert twap({1_800: 7}, 0, 1_800) == 7


def test_the_networks_limits_are_those_of_the_design() -> None:
    assert (LIMITS.window_us, LIMITS.max_age_us) == (1_800 * SECOND_US, 600 * SECOND_US)
    at = 10**15
    three = {name: [Observation(at - LIMITS.max_age_us, 1_000)] for name in "abc"}
    assert read_price(three, LIMITS, at).price == 1_000
    assert read_price(three, LIMITS, at + 1).health == TOO_FEW_SOURCES
    apart = {**three, "c": [Observation(at, 1_016)]}
    assert read_price(apart, LIMITS, at) == Reading(
        {"a": 1_000, "b": 1_000, "c": 1_016}, (), 1_000, 160, DEVIATION
    )


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (replace(WIDE, window_us=0, min_sources=0), PricesReason.BAD_WINDOW),
        (replace(WIDE, min_sources=0), PricesReason.BAD_MIN_SOURCES),
    ],
)
def test_limits_must_make_sense(limits: Limits, reason: Reason) -> None:
    with pytest.raises(Refused) as caught:
        read_price({}, limits, NOW)
    assert caught.value.reason is reason
