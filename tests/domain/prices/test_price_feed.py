"""The feed of prices: what is kept, what a snapshot says, and which price a burn may use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.chain.burn import IntendBurn
from domain.duration import DAY_US
from domain.money import credit
from domain.parties.reasons import PartiesReason
from domain.prices.oracle import LIMITS, Observation, read_price
from domain.prices.price_feed import (
    FEED,
    KNOWN_MAX,
    LATE_US,
    MOVE_MAX_BPS,
    MOVED,
    PRICE_MAX,
    SPACING_US,
    ObservePrice,
    PriceObserved,
    PriceSnapshotTaken,
    PriceSource,
    PriceSourcesSet,
    SetPriceSources,
    SourceReading,
    TakePriceSnapshot,
    feed_of,
    reading_of,
)
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from domain.rules import decide
from tests.given import Scene

NOW = 10**12
W, AGE = LIMITS.window_us, LIMITS.max_age_us
BY: dict[str, Any] = {"by": "feeder", "at_us": NOW}


def fed(*names: str) -> tuple[PriceSource, ...]:
    """Each source with a feeder of its own."""
    return tuple(PriceSource(name, f"feeder_{name}") for name in names)


SET = PriceSourcesSet(sources=fed("a", "b", "c"), **BY)
NAMED = Scene().given((FEED, SET))


def observe(source: str, price: int, published_us: int, **changed: Any) -> ObservePrice:
    asked = ObservePrice(
        source=source,
        price_micro_usd=price,
        published_at_us=published_us,
        observed_at_us=NOW,
        by=f"feeder_{source}",
        at_us=NOW,
    )
    return replace(asked, **changed)


def when_published(source: str, price: int, published_us: int) -> ObservePrice:
    """Told in the moment it was published."""
    return observe(source, price, published_us, observed_at_us=published_us, at_us=published_us)


def observed(source: str, price: int, published_us: int) -> PriceObserved:
    return PriceObserved(
        source=source,
        price_micro_usd=price,
        published_at_us=published_us,
        observed_at_us=NOW,
        by=f"feeder_{source}",
        at_us=NOW,
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
    Scene().when(SetPriceSources(sources=fed("c", "a", "b"), **BY)).then((FEED, SET))
    NAMED.when(SetPriceSources(sources=fed("b", "a", "c"), **BY)).then_nothing()
    Scene().when(SetPriceSources(sources=(), **BY)).then((FEED, PriceSourcesSet(sources=(), **BY)))
    other = (*fed("a", "b"), PriceSource("c", "somebody"))
    NAMED.when(SetPriceSources(sources=other, **BY)).then(
        (FEED, PriceSourcesSet(sources=other, **BY))
    )


@pytest.mark.parametrize(
    "sources",
    [
        fed("a", "a"),
        fed(""),
        fed(" a"),
        fed("x" * 65),
        fed(*(f"s{n}" for n in range(17))),
        (PriceSource("a", " feeder"),),
        (PriceSource("a", "feeder"), PriceSource("b", "feeder")),
    ],
)
def test_sources_without_a_proper_name_or_a_feeder_of_their_own_are_refused(
    sources: tuple[PriceSource, ...],
) -> None:
    Scene().when(SetPriceSources(sources=sources, **BY)).then_refused(
        PricesReason.PRICE_SOURCES_INVALID
    )


def test_of_a_source_that_counts_no_more_nothing_is_kept() -> None:
    without = HEALTHY.after(SetPriceSources(sources=fed("b", "c"), **BY))
    again = without.after(SetPriceSources(sources=fed("a", "b", "c"), **BY))
    assert reading_of(feed_of(again), NOW).stale == ("a",)
    without.when(observe("a", 2_000_000, NOW)).then_refused(PricesReason.PRICE_SOURCE_UNKNOWN)


def test_the_key_of_one_source_is_not_every_source() -> None:
    """Economics M1: one key with oracle:write told the prices of all sources."""
    for source in ("b", "c"):
        stolen = observe(source, 1_000, NOW, by="feeder_a")
        HEALTHY.when(stolen).then_refused(PricesReason.PRICE_SOURCE_FOREIGN, source=source)
    (change,) = HEALTHY.after(observe("a", 1_000, NOW)).when(TAKE).changes()
    assert change.fact.median_micro_usd == 2_005_000, "of what its own source said until now"
    later = replace(TAKE, at_us=NOW + LATE_US)
    (change,) = HEALTHY.after(observe("a", 1_000, NOW)).when(later).changes()
    assert change.fact.health == "deviation"


def test_no_key_rewrites_what_was_said_before() -> None:
    """Economics M1: another price of the same publish time replaced the one that was known."""
    for published_us in (NOW - 5, NOW - 6):
        again = observe("a", 1_000, published_us)
        HEALTHY.when(again).then_refused(
            PricesReason.PRICE_KNOWN, published_at_us=published_us, newest_us=NOW - 5
        )
    HEALTHY.when(observe("a", 2_000_000, NOW - 5)).then_nothing()


def test_a_price_is_recorded_with_both_times() -> None:
    seen = observe("a", 1_870_000, NOW - 9, observed_at_us=NOW - 2)
    fact = replace(observed("a", 1_870_000, NOW - 9), observed_at_us=NOW - 2)
    NAMED.when(seen).then((FEED, fact))
    late = observe("a", 1_870_000, NOW - 2 * LATE_US, observed_at_us=NOW - LATE_US)
    assert NAMED.when(late).changes()


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (observe("x", 0, NOW + 1), PricesReason.PRICE_SOURCE_UNKNOWN),
        (observe("a", 0, NOW + 1, by="feeder_b"), PricesReason.PRICE_SOURCE_FOREIGN),
        (observe("a", 0, NOW + 1), PricesReason.PRICE_TIMES),
        (observe("a", 0, -1), PricesReason.PRICE_TIMES),
        (observe("a", 0, NOW, observed_at_us=NOW - 1), PricesReason.PRICE_TIMES),
        (observe("a", 0, NOW, observed_at_us=NOW + 1), PricesReason.PRICE_TIMES),
        (observe("a", 0, NOW - LATE_US - 1), PricesReason.PRICE_TIMES),
        (
            observe("a", 0, NOW - LATE_US - 1, observed_at_us=NOW - LATE_US - 1),
            PricesReason.PRICE_TIMES,
        ),
        (observe("a", 999, NOW), PricesReason.PRICE_TOO_LOW),
        (observe("a", PRICE_MAX + 1, NOW), PricesReason.AMOUNT_OUT_OF_RANGE),
    ],
)
def test_the_first_rule_that_is_broken_refuses(asked: ObservePrice, reason: Reason) -> None:
    NAMED.when(asked).then_refused(reason)


def test_a_source_cannot_fill_the_memory() -> None:
    many = priced(*(("a", 5_000, NOW - each) for each in reversed(range(1, KNOWN_MAX + 2))))
    many.when(observe("a", 5_000, NOW)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
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
        held_to=None,
        max_move_bps=None,
        **BY,
    )
    HEALTHY.when(TAKE).then((FEED, first))
    TAKEN.when(replace(TAKE, at_us=NOW + SPACING_US - 1)).then_nothing()
    later = NOW + SPACING_US
    second = replace(first, number=2, at_us=later, held_to=1, max_move_bps=MOVE_MAX_BPS)
    TAKEN.when(replace(TAKE, at_us=later)).then((FEED, second))


def test_a_snapshot_says_why_there_is_no_price() -> None:
    (nobody,) = Scene().when(TAKE).changes()
    assert (nobody.fact.health, nobody.fact.median_micro_usd) == ("too_few_sources", None)
    (old,) = HEALTHY.when(replace(TAKE, at_us=NOW + AGE - 6)).changes()
    assert old.fact.health == "too_few_sources"
    assert [one.is_stale for one in old.fact.sources] == [False, False, True]
    apart = HEALTHY.given((FEED, observed("c", 2_500_000, NOW - 7)))
    (change,) = apart.when(TAKE).changes()
    assert (change.fact.health, change.fact.deviation_bps) == ("deviation", 2_500)


def in_order(said: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    return sorted(said, key=lambda one: one[2])


prices = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1_000, 10**9), st.integers(NOW - 2 * W, NOW)),
    max_size=25,
    unique_by=lambda one: (one[0], one[2]),
).map(in_order)


@given(prices, st.integers(0, 2 * AGE))
def test_what_is_kept_reads_like_everything_ever_published(
    all_prices: list[tuple[str, int, int]], later_us: int
) -> None:
    """However often it was told."""
    scene = NAMED
    for one in all_prices:
        scene = scene.after(when_published(*one))
        scene.when(when_published(*one)).then_nothing()
    whole: dict[str, list[Observation]] = {"a": [], "b": [], "c": []}
    for source, price, published_us in all_prices:
        whole[source].append(Observation(published_us, price))
    now = NOW + later_us
    assert reading_of(feed_of(scene), now) == read_price(whole, LIMITS, now)


told = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from("abc"),
    st.integers(1_000, 10**9),
    st.integers(0, 3 * LATE_US),
    st.integers(0, 2 * LATE_US),
    st.integers(0, LATE_US),
)


@given(st.lists(told, max_size=20))
def test_a_reading_of_the_past_is_what_it_was_whatever_comes_later_and_from_whom(
    all_told: list[tuple[str, str, int, int, int, int]],
) -> None:
    scene, now = NAMED, NOW
    known: dict[str, list[Observation]] = {"a": [], "b": [], "c": []}
    for source, feeder, price, published_ago, observed_ago, step in all_told:
        now += step
        command = ObservePrice(
            source=source,
            price_micro_usd=price,
            published_at_us=now - published_ago,
            observed_at_us=now - observed_ago,
            by=f"feeder_{feeder}",
            at_us=now,
        )
        try:
            changes = decide(command, scene)
        except Refused:
            continue
        for change in changes:
            fact = change.fact
            assert fact.by == f"feeder_{source}"
            assert fact.published_at_us >= now - 2 * LATE_US
            before_us = fact.published_at_us - 1
            was = read_price(known, LIMITS, before_us)
            known[source].append(Observation(fact.published_at_us, price))
            assert read_price(known, LIMITS, before_us) == was
            scene = scene.given((FEED, fact))


def agreed(scene: Scene, price: int, at_us: int) -> Scene:
    """All three sources said this for as long as a reading looks back."""
    for source in "abc":
        scene = scene.after(when_published(source, price, at_us - W))
        scene = scene.after(when_published(source, price, at_us))
    return scene


def snapshot_of(scene: Scene, at_us: int) -> PriceSnapshotTaken:
    (change,) = scene.when(replace(TAKE, at_us=at_us)).changes()
    assert isinstance(change.fact, PriceSnapshotTaken)
    return change.fact


def test_whoever_holds_the_keys_of_all_sources_does_not_move_the_price_at_once() -> None:
    """Economics M1: `healthy median: 1870000` became `healthy 1000` in the same second."""
    scene = agreed(NAMED, 1_870_000, NOW).after(replace(TAKE, at_us=NOW))
    later = NOW + 2 * W
    taken = snapshot_of(agreed(scene, 1_000, later), later)
    assert (taken.health, taken.median_micro_usd) == (MOVED, 1_000)
    assert (taken.held_to, taken.max_move_bps) == (1, 2_000)
    intend = replace(INTEND, price_micro_usd=1_000, price_snapshot=2, at_us=later)
    moved = agreed(scene, 1_000, later).after(replace(TAKE, at_us=later)).having(DUE)
    moved.when(intend).then_refused(PricesReason.ORACLE_DORMANT, health=MOVED)


@pytest.mark.parametrize(
    ("price", "days", "health"),
    [
        (2_400_000, 0, "healthy"),
        (2_400_001, 0, MOVED),
        (1_666_667, 0, "healthy"),
        (1_666_666, 0, MOVED),
        (2_800_000, 1, "healthy"),
        (2_800_001, 1, MOVED),
        (1_000_000, 2, MOVED),
        (1_000_000, 3, "healthy"),
        (10**12, 40, "healthy"),
    ],
)
def test_a_price_that_really_changed_is_taken_after_days(
    price: int, days: int, health: str
) -> None:
    scene = agreed(NAMED, 2_000_000, NOW).after(replace(TAKE, at_us=NOW))
    later = NOW + 2 * W + days * DAY_US
    assert snapshot_of(agreed(scene, price, later), later).health == health


def test_many_small_moves_are_held_to_one_price_a_day() -> None:
    scene = agreed(NAMED, 2_000_000, NOW).after(replace(TAKE, at_us=NOW))
    at_us, said = NOW, []
    for price in (2_390_000, 2_800_000, 3_300_000):
        at_us += 2 * W
        scene = agreed(scene, price, at_us)
        said.append(snapshot_of(scene, at_us))
        scene = scene.after(replace(TAKE, at_us=at_us))
    assert [one.health for one in said] == ["healthy", MOVED, MOVED]
    assert {one.held_to for one in said} == {1}
    day = NOW + DAY_US
    scene = agreed(scene, 2_390_000, day).after(replace(TAKE, at_us=day))
    assert snapshot_of(scene, day + SPACING_US).held_to == 5


@given(st.lists(st.tuples(st.integers(1_000, 10**7), st.integers(2, 60)), min_size=2, max_size=8))
def test_a_healthy_median_is_near_the_one_that_it_is_held_to(said: list[tuple[int, int]]) -> None:
    scene, at_us = NAMED, NOW
    healthy: dict[int, PriceSnapshotTaken] = {}
    for price, windows in said:
        at_us += windows * W
        scene = agreed(scene, price, at_us)
        taken = snapshot_of(scene, at_us)
        scene = scene.after(replace(TAKE, at_us=at_us))
        if taken.health != "healthy":
            continue
        healthy[taken.number] = taken
        if taken.held_to is not None:
            before = healthy[taken.held_to]
            assert before.median_micro_usd is not None
            assert taken.median_micro_usd is not None
            low, high = sorted((before.median_micro_usd, taken.median_micro_usd))
            days = (taken.at_us - before.at_us) // DAY_US
            assert (high - low) * 10_000 <= MOVE_MAX_BPS * 2**days * low


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
        (
            TAKEN.after(replace(TAKE, at_us=NOW + SPACING_US)),
            {},
            PricesReason.PRICE_SNAPSHOT,
            {"rule": "not the last snapshot"},
        ),
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
