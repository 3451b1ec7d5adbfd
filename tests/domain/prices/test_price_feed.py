"""The feed of prices: what is kept, what a snapshot says, and which price a burn may use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.chain.burn import IntendBurn
from domain.money import credit
from domain.parties.reasons import PartiesReason
from domain.prices.oracle import LIMITS, Observation, read_price
from domain.prices.price_feed import (
    FEED,
    KNOWN_MAX,
    PRICE_MAX,
    ObservePrice,
    PriceObserved,
    PriceSnapshotTaken,
    PriceSourcesSet,
    SetPriceSources,
    SourceReading,
    TakePriceSnapshot,
    feed_of,
    reading_of,
)
from domain.prices.reasons import PricesReason
from domain.refusal import Reason
from domain.rules import decide
from tests.given import Scene

NOW = 10**12
W, AGE = LIMITS.window_us, LIMITS.max_age_us
BY: dict[str, Any] = {"by": "feeder", "at_us": NOW}
SET = PriceSourcesSet(sources=("a", "b", "c"), **BY)
NAMED = Scene().given((FEED, SET))


def observe(source: str, price: int, published_us: int, **changed: Any) -> ObservePrice:
    asked = ObservePrice(
        source=source, price_micro_usd=price, published_at_us=published_us, observed_at_us=NOW, **BY
    )
    return replace(asked, **changed)


def observed(source: str, price: int, published_us: int) -> PriceObserved:
    return PriceObserved(
        source=source, price_micro_usd=price, published_at_us=published_us, observed_at_us=NOW, **BY
    )


def priced(*prices: tuple[str, int, int]) -> Scene:
    return NAMED.given(*((FEED, observed(*one)) for one in prices))


HEALTHY = priced(("a", 2_000_000, NOW - 5), ("b", 2_010_000, NOW - 6), ("c", 2_005_000, NOW - 7))
TAKE = TakePriceSnapshot(**BY)
TAKEN = HEALTHY.after(TAKE)
INTEND = IntendBurn(
    burn_id=1,
    first_position=1,
    last_position=9,
    credits=credit(19_000_000),
    price_micro_usd=2_005_000,
    price_round=1,
    at_us=NOW,
    price_snapshot=1,
)
DUE = {"network:burn_due": 20_000_000, "world:bank": 30_000_000}


def test_the_sources_that_count_are_named_each_once() -> None:
    Scene().when(SetPriceSources(sources=("c", "a", "b"), **BY)).then((FEED, SET))
    NAMED.when(SetPriceSources(sources=("b", "a", "c"), **BY)).then_nothing()
    Scene().when(SetPriceSources(sources=(), **BY)).then((FEED, PriceSourcesSet(sources=(), **BY)))


@pytest.mark.parametrize(
    "names", [("a", "a"), ("",), (" a",), ("x" * 65,), tuple(f"s{n}" for n in range(17))]
)
def test_sources_without_a_proper_name_are_refused(names: tuple[str, ...]) -> None:
    Scene().when(SetPriceSources(sources=names, **BY)).then_refused(
        PricesReason.PRICE_SOURCES_INVALID
    )


def test_of_a_source_that_counts_no_more_nothing_is_kept() -> None:
    without = HEALTHY.after(SetPriceSources(sources=("b", "c"), **BY))
    again = without.after(SetPriceSources(sources=("a", "b", "c"), **BY))
    assert reading_of(feed_of(again), NOW).stale == ("a",)
    without.when(observe("a", 2_000_000, NOW)).then_refused(PricesReason.PRICE_SOURCE_UNKNOWN)


def test_a_price_is_recorded_with_both_times() -> None:
    seen = observe("a", 1_870_000, NOW - 9, observed_at_us=NOW - 2)
    fact = replace(observed("a", 1_870_000, NOW - 9), observed_at_us=NOW - 2)
    NAMED.when(seen).then((FEED, fact))


def test_the_same_price_once_more_changes_nothing() -> None:
    HEALTHY.when(observe("a", 2_000_000, NOW - 5)).then_nothing()
    corrected = observe("a", 2_000_001, NOW - 5)
    HEALTHY.when(corrected).then((FEED, observed("a", 2_000_001, NOW - 5)))


def test_a_price_older_than_the_last_one_before_the_window_changes_nothing() -> None:
    scene = priced(("a", 5_000, NOW - W - 10), ("a", 6_000, NOW))
    scene.when(observe("a", 7_000, NOW - W - 11)).then_nothing()
    late = observe("a", 7_000, NOW - W - 9)
    scene.when(late).then((FEED, observed("a", 7_000, NOW - W - 9)))


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (observe("x", 0, NOW + 1), PricesReason.PRICE_SOURCE_UNKNOWN),
        (observe("a", 0, NOW + 1), PricesReason.PRICE_TIMES),
        (observe("a", 0, -1), PricesReason.PRICE_TIMES),
        (observe("a", 0, NOW, observed_at_us=NOW - 1), PricesReason.PRICE_TIMES),
        (observe("a", 0, NOW, observed_at_us=NOW + 1), PricesReason.PRICE_TIMES),
        (observe("a", 999, NOW), PricesReason.PRICE_TOO_LOW),
        (observe("a", PRICE_MAX + 1, NOW), PricesReason.AMOUNT_OUT_OF_RANGE),
    ],
)
def test_the_first_rule_that_is_broken_refuses(asked: ObservePrice, reason: Reason) -> None:
    NAMED.when(asked).then_refused(reason)


def test_a_source_cannot_fill_the_memory() -> None:
    many = priced(*(("a", 5_000, NOW - each) for each in range(KNOWN_MAX + 1)))
    many.when(observe("a", 5_000, NOW - W + 1)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    assert many.when(observe("b", 5_000, NOW)).changes()


def test_a_snapshot_tells_all_that_was_looked_at() -> None:
    def said(source: str, price: int, age_us: int) -> SourceReading:
        return SourceReading(
            source=source,
            is_stale=False,
            twap_micro_usd=price,
            price_micro_usd=price,
            published_at_us=NOW - age_us,
            observed_at_us=NOW,
        )

    first = PriceSnapshotTaken(
        number=1,
        window_us=W,
        max_age_us=AGE,
        max_deviation_bps=150,
        min_sources=3,
        sources=(said("a", 2_000_000, 5), said("b", 2_010_000, 6), said("c", 2_005_000, 7)),
        health="healthy",
        median_micro_usd=2_005_000,
        deviation_bps=50,
        **BY,
    )
    HEALTHY.when(TAKE).then((FEED, first))
    TAKEN.when(TAKE).then((FEED, replace(first, number=2)))


def test_a_snapshot_says_why_there_is_no_price() -> None:
    (nobody,) = Scene().when(TAKE).changes()
    assert (nobody.fact.health, nobody.fact.median_micro_usd) == ("too_few_sources", None)
    (old,) = HEALTHY.when(replace(TAKE, at_us=NOW + AGE - 6)).changes()
    assert old.fact.health == "too_few_sources"
    assert [one.is_stale for one in old.fact.sources] == [False, False, True]
    apart = HEALTHY.given((FEED, observed("c", 2_500_000, NOW - 7)))
    (change,) = apart.when(TAKE).changes()
    assert (change.fact.health, change.fact.deviation_bps) == ("deviation", 2_500)


prices = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1_000, 10**9), st.integers(NOW - 2 * W, NOW)),
    max_size=25,
    unique_by=lambda one: (one[0], one[2]),
)


@given(st.data(), prices, st.integers(0, 2 * AGE))
def test_what_is_kept_reads_like_everything_ever_published(
    data: st.DataObject, all_prices: list[tuple[str, int, int]], later_us: int
) -> None:
    """In whatever order it was recorded, and however often."""
    order = data.draw(st.permutations([*all_prices, *all_prices[:5]]))
    scene = NAMED
    for source, price, published_us in order:
        scene = scene.after(observe(source, price, published_us))
    whole: dict[str, list[Observation]] = {"a": [], "b": [], "c": []}
    for source, price, published_us in all_prices:
        whole[source].append(Observation(published_us, price))
    now = NOW + later_us
    feed = feed_of(scene)
    assert reading_of(feed, now) == read_price(whole, LIMITS, now)
    straight = feed_of(priced(*all_prices))
    assert straight == feed


@given(prices)
def test_a_snapshot_is_found_again_from_the_facts_before_it(
    all_prices: list[tuple[str, int, int]],
) -> None:
    scene = priced(*all_prices)
    (change,) = decide(TAKE, scene)
    taken = change.fact
    whole = {
        name: [Observation(at, price) for who, price, at in all_prices if who == name]
        for name in "abc"
    }
    again = read_price(whole, LIMITS, taken.at_us)
    told = {one.source: one.twap_micro_usd for one in taken.sources if not one.is_stale}
    assert told == again.twaps
    assert (taken.median_micro_usd, taken.health) == (again.median, again.health)


# Burns.


def test_a_burn_refers_to_the_last_snapshot() -> None:
    (change,) = TAKEN.having(DUE).when(INTEND).changes()
    assert (change.fact.price_snapshot, change.fact.price_micro_usd) == (1, 2_005_000)
    later = replace(INTEND, at_us=NOW + AGE)
    assert TAKEN.having(DUE).when(later).changes()


@pytest.mark.parametrize(
    ("scene", "changed", "reason", "told"),
    [
        (
            TAKEN,
            {"price_snapshot": None},
            PricesReason.PRICE_SNAPSHOT,
            {"rule": "not the last snapshot"},
        ),
        (
            TAKEN,
            {"price_snapshot": 2},
            PricesReason.PRICE_SNAPSHOT,
            {"rule": "not the last snapshot"},
        ),
        (
            TAKEN,
            {"price_micro_usd": 2_005_001},
            PricesReason.PRICE_SNAPSHOT,
            {"price_micro_usd": 2_005_001},
        ),
        (TAKEN, {"at_us": NOW + AGE + 1}, PricesReason.PRICE_SNAPSHOT, {"rule": "too old"}),
        (TAKEN.after(TAKE), {}, PricesReason.PRICE_SNAPSHOT, {"rule": "not the last snapshot"}),
        (HEALTHY, {}, PricesReason.PRICE_SNAPSHOT, {"rule": "not the last snapshot"}),
        (NAMED.after(TAKE), {}, PricesReason.ORACLE_DORMANT, {"health": "too_few_sources"}),
        (Scene(), {}, PricesReason.PRICE_SNAPSHOT, {"rule": "no sources were named"}),
    ],
)
def test_nothing_is_burned_at_another_price(
    scene: Scene, changed: dict[str, Any], reason: Reason, told: dict[str, Any]
) -> None:
    scene.having(DUE).when(replace(INTEND, **changed)).then_refused(reason, **told)


@given(st.integers(1_000, 10**9), st.integers(1_000, 10**9), st.integers(1_000, 10**9))
def test_only_a_healthy_snapshot_lets_a_burn_through(one: int, two: int, three: int) -> None:
    scene = priced(("a", one, NOW), ("b", two, NOW), ("c", three, NOW)).after(TAKE)
    low, median, high = sorted((one, two, three))
    burn = replace(INTEND, price_micro_usd=median)
    is_apart = (high - low) * 10_000 > LIMITS.max_deviation_bps * low
    if is_apart:
        scene.having(DUE).when(burn).then_refused(PricesReason.ORACLE_DORMANT)
    else:
        assert scene.having(DUE).when(burn).changes()
