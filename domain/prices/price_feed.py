"""The prices sources published, and snapshots: what all of them said when a price was needed.

    nothing --PriceObserved--> known to its source, by publish time --PriceSnapshotTaken--> a price
    published_at <= observed_at <= at;   a snapshot == read_price(what is known before it, its time)

A snapshot stores every source it looked at, so whoever refers to it by its number refers to all of
it, dormant or not. What no reading can depend on any more is neither kept nor recorded: an older
price than the one before the window, or the same once more. Which sources count is the network's
decision. Not the formulas (`domain/prices/oracle.py`). Source: design economics 11.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeAlias, assert_never

from domain.parties.reasons import PartiesReason
from domain.prices.oracle import HEALTHY, LIMITS, Observation, Reading, read_price
from domain.prices.reasons import PricesReason
from domain.prices.token_burn import check_price
from domain.refusal import Refused
from domain.stream import Change, Stream, World

FEED: Stream[Feed] = Stream("oracle", "network")
SOURCES_MAX = 16
NAME_MAX = 64
KNOWN_MAX = 600
"""Prices of one source within one window: one in three seconds."""
PRICE_MAX = 10**12
"""Micro-dollars: a TOKEN never costs more than a million dollars."""

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSourcesSet:
    """Stream `oracle:network`: whose prices count from now on; of others nothing is kept."""

    sources: tuple[str, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceObserved:
    source: str
    price_micro_usd: int  # per whole TOKEN
    published_at_us: int  # the source's own time, by which it grows old
    observed_at_us: int  # when we saw it
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReading:
    """One source in a snapshot. Its newest price and that price's times; absent: it has none."""

    source: str
    is_stale: bool
    twap_micro_usd: int | None = None  # of a fresh one
    price_micro_usd: int | None = None
    published_at_us: int | None = None
    observed_at_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSnapshotTaken:
    """Numbers count from 1. `health` other than healthy: dormant, and this is the reason."""

    number: int
    sources: tuple[SourceReading, ...]
    window_us: int
    max_age_us: int
    max_deviation_bps: int
    min_sources: int
    health: str
    by: str
    at_us: int
    median_micro_usd: int | None
    deviation_bps: int | None


FeedFact: TypeAlias = PriceSourcesSet | PriceObserved | PriceSnapshotTaken

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPriceSources:
    sources: tuple[str, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservePrice:
    source: str
    price_micro_usd: int
    published_at_us: int
    observed_at_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakePriceSnapshot:
    by: str
    at_us: int


# What we remember.


@dataclass(frozen=True, slots=True)
class Seen:
    """A price a source published; `observed_at_us` of the first time we saw it."""

    published_at_us: int
    price_micro_usd: int
    observed_at_us: int


@dataclass(frozen=True, slots=True)
class Feed:
    """By source, by publish time; and the last snapshot. `is_set`: sources were ever named."""

    seen: dict[str, tuple[Seen, ...]] = field(default_factory=dict)
    last: PriceSnapshotTaken | None = None
    is_set: bool = False


def evolve(feed: Feed, fact: FeedFact) -> Feed:
    match fact:
        case PriceSourcesSet():
            kept = {source: feed.seen.get(source, ()) for source in fact.sources}
            return replace(feed, seen=kept, is_set=True)
        case PriceObserved():
            return replace(feed, seen={**feed.seen, fact.source: _seen_with(feed, fact)})
        case PriceSnapshotTaken():
            return replace(feed, last=fact)
        case _:
            assert_never(fact)


def _seen_with(feed: Feed, fact: PriceObserved | ObservePrice) -> tuple[Seen, ...]:
    """What is known of a source with one more price: in its window, and the last one before it.

    The later record of one publish time counts, unless it says the same.
    """
    known = {one.published_at_us: one for one in feed.seen[fact.source]}
    before = known.get(fact.published_at_us)
    if before is None or before.price_micro_usd != fact.price_micro_usd:
        known[fact.published_at_us] = Seen(
            fact.published_at_us, fact.price_micro_usd, fact.observed_at_us
        )
    newest_first = [known[at_us] for at_us in sorted(known, reverse=True)]
    floor_us = newest_first[0].published_at_us - LIMITS.window_us
    within = list(takewhile(lambda one: one.published_at_us > floor_us, newest_first))
    return tuple(reversed(newest_first[: len(within) + 1]))


def feed_of(world: World) -> Feed:
    return world.state(FEED)


def reading_of(feed: Feed, now_us: int) -> Reading:
    """What the sources say now, under the network's limits."""
    sources = {
        source: [Observation(one.published_at_us, one.price_micro_usd) for one in seen]
        for source, seen in feed.seen.items()
    }
    return read_price(sources, LIMITS, now_us)


def sources_of(feed: Feed, reading: Reading, now_us: int) -> tuple[SourceReading, ...]:
    """Every source by name: its average, and its newest price published by now."""
    return tuple(
        _source(source, feed.seen[source], reading, now_us) for source in sorted(feed.seen)
    )


def _source(source: str, seen: tuple[Seen, ...], reading: Reading, now_us: int) -> SourceReading:
    told = SourceReading(
        source=source, is_stale=source in reading.stale, twap_micro_usd=reading.twaps.get(source)
    )
    newest = next((one for one in reversed(seen) if one.published_at_us <= now_us), None)
    if newest is None:
        return told
    return replace(
        told,
        price_micro_usd=newest.price_micro_usd,
        published_at_us=newest.published_at_us,
        observed_at_us=newest.observed_at_us,
    )


def require_price(world: World, number: int | None, price_micro_usd: int, at_us: int) -> None:
    """That a price is the median of the last snapshot, healthy, and no older than a price may be.

    While no sources were ever named there is no snapshot to refer to, and none may be claimed.
    Raises Refused: ORACLE_DORMANT, PRICE_SNAPSHOT.
    """
    feed = feed_of(world)
    if not feed.is_set:
        if number is not None:
            raise Refused(PricesReason.PRICE_SNAPSHOT, number=number, rule="no sources were named")
        return
    last = feed.last
    if last is None or number != last.number:
        raise Refused(PricesReason.PRICE_SNAPSHOT, number=number, rule="not the last snapshot")
    if last.health != HEALTHY:
        raise Refused(PricesReason.ORACLE_DORMANT, number=number, health=last.health)
    if at_us - last.at_us > last.max_age_us:
        raise Refused(
            PricesReason.PRICE_SNAPSHOT, number=number, rule="too old", taken_us=last.at_us
        )
    if price_micro_usd != last.median_micro_usd:
        raise Refused(PricesReason.PRICE_SNAPSHOT, number=number, price_micro_usd=price_micro_usd)


# How we decide.


def decide_sources(command: SetPriceSources, world: World) -> list[Change]:
    """The same sources again change nothing. Raises Refused: PRICE_SOURCES_INVALID."""
    names = command.sources
    if len(set(names)) != len(names) or len(names) > SOURCES_MAX:
        raise Refused(PricesReason.PRICE_SOURCES_INVALID, rule=f"each once, at most {SOURCES_MAX}")
    if not all(name.strip() == name and 1 <= len(name) <= NAME_MAX for name in names):
        raise Refused(
            PricesReason.PRICE_SOURCES_INVALID, rule=f"1 to {NAME_MAX} characters, trimmed"
        )
    feed = feed_of(world)
    if feed.is_set and set(feed.seen) == set(names):
        return []
    fact = PriceSourcesSet(sources=tuple(sorted(names)), by=command.by, at_us=command.at_us)
    return [Change(FEED, fact)]


def decide_observe(command: ObservePrice, world: World) -> list[Change]:
    """What no reading can depend on changes nothing. Raises Refused: PRICE_SOURCE_UNKNOWN,
    PRICE_TIMES, PRICE_TOO_LOW, AMOUNT_OUT_OF_RANGE, COUNT_OUT_OF_RANGE.
    """
    feed = feed_of(world)
    if command.source not in feed.seen:
        raise Refused(PricesReason.PRICE_SOURCE_UNKNOWN, source=command.source)
    if not 0 <= command.published_at_us <= command.observed_at_us <= command.at_us:
        raise Refused(
            PricesReason.PRICE_TIMES,
            rule="published, then observed, and neither after now",
            published_at_us=command.published_at_us,
            observed_at_us=command.observed_at_us,
        )
    check_price(command.price_micro_usd)
    if command.price_micro_usd > PRICE_MAX:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, price_micro_usd=command.price_micro_usd)
    seen = _seen_with(feed, command)
    if seen == feed.seen[command.source]:
        return []
    if len(seen) > KNOWN_MAX + 1:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, source=command.source, most=KNOWN_MAX)
    fact = PriceObserved(
        source=command.source,
        price_micro_usd=command.price_micro_usd,
        published_at_us=command.published_at_us,
        observed_at_us=command.observed_at_us,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(FEED, fact)]


def decide_snapshot(command: TakePriceSnapshot, world: World) -> list[Change]:
    """Dormant or not, it is recorded: why there was no price is told by a fact, too."""
    feed = feed_of(world)
    reading = reading_of(feed, command.at_us)
    fact = PriceSnapshotTaken(
        number=feed.last.number + 1 if feed.last else 1,
        sources=sources_of(feed, reading, command.at_us),
        window_us=LIMITS.window_us,
        max_age_us=LIMITS.max_age_us,
        max_deviation_bps=LIMITS.max_deviation_bps,
        min_sources=LIMITS.min_sources,
        health=reading.health,
        by=command.by,
        at_us=command.at_us,
        median_micro_usd=reading.median,
        deviation_bps=reading.deviation_bps,
    )
    return [Change(FEED, fact)]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"oracle": (Feed(), evolve)}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    SetPriceSources: decide_sources,
    ObservePrice: decide_observe,
    TakePriceSnapshot: decide_snapshot,
}
