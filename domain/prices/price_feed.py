"""The prices sources published, and snapshots: what all of them said when a price was needed.

    nothing --PriceObserved--> known to its source, by publish time --PriceSnapshotTaken--> a price
    observed_at - 60 s <= published_at <= observed_at;   at - 60 s <= observed_at <= at
    published_at of a source's prices rises;   a source has one feeder, a feeder one source
    a snapshot == read_price(what is known before it, its time), and near the one it is held to:
    (max - min) x 10,000 <= MOVE_MAX_BPS x 2^(whole days between) x min    of the two medians

Prices are only added: an average of the past is what it was, whatever comes later and from whom
(decision 0047). One key is one source, so a stolen one moves one of the prices that must agree, and
keys for all of them move a snapshot no faster than the bound above. A snapshot stores every source
it looked at, so whoever refers to it by its number refers to all of it, dormant or not. What no
reading can depend on any more is not kept. Which sources count, and who feeds each, is the
network's decision. Not the formulas (`domain/prices/oracle.py`). Source: design economics 11.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeAlias, assert_never

from domain.duration import DAY_US, SECOND_US
from domain.frozen import replace
from domain.parties.reasons import PartiesReason
from domain.prices.oracle import BPS, HEALTHY, LIMITS, Observation, Reading, read_price
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
LATE_US = 60 * SECOND_US
"""A price is observed this soon after it was published, and told this soon after it was seen."""
SPACING_US = 10 * SECOND_US
"""A snapshot is taken anew this long after a healthy one; until then that one is the answer."""
MOVE_MAX_BPS = 2_000
"""How far a median may lie from the one it is held to. It doubles with each day in which no
snapshot was healthy, so that a price that really changed is taken after days, not never.
"""
MOVE_DAYS_MAX = 32
"""Beyond these doublings every price is near every other."""
MOVED = "moved"
"""The sources agree on a price too far from the last one: it is not used yet."""
RECENT_MAX = LIMITS.max_age_us // SPACING_US + 1
"""All healthy snapshots that are no older than a price may be."""

# Facts.


@dataclass(frozen=True, slots=True)
class PriceSource:
    """Only this member of the operator's account tells what this source published."""

    source: str
    member_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSourcesSet:
    """Stream `oracle:network`: whose prices count from now on; of others nothing is kept."""

    sources: tuple[PriceSource, ...]
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
    """Numbers count from 1. `health` other than healthy: dormant, and this is the reason.

    `held_to`: the number of the snapshot from which this median may be `max_move_bps` away.
    """

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
    held_to: int | None
    max_move_bps: int | None


FeedFact: TypeAlias = PriceSourcesSet | PriceObserved | PriceSnapshotTaken

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPriceSources:
    sources: tuple[PriceSource, ...]
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
class Usable:
    """A healthy snapshot: its price, until it is too old."""

    number: int
    price_micro_usd: int
    at_us: int


@dataclass(frozen=True, slots=True)
class Feed:
    """By source, by publish time; and the snapshots. `is_set`: sources were ever named."""

    seen: dict[str, tuple[Seen, ...]] = field(default_factory=dict)
    feeders: dict[str, str] = field(default_factory=dict)  # source -> member id
    last: PriceSnapshotTaken | None = None
    recent: tuple[Usable, ...] = ()  # no older than a price may be, oldest first
    held_to: Usable | None = None  # what the next median may not be far from
    is_set: bool = False


def evolve(feed: Feed, fact: FeedFact) -> Feed:
    match fact:
        case PriceSourcesSet():
            kept = {one.source: feed.seen.get(one.source, ()) for one in fact.sources}
            feeders = {one.source: one.member_id for one in fact.sources}
            return replace(feed, seen=kept, feeders=feeders, is_set=True)
        case PriceObserved():
            return replace(feed, seen={**feed.seen, fact.source: _seen_with(feed, fact)})
        case PriceSnapshotTaken():
            return _with_snapshot(feed, fact)
        case _:
            assert_never(fact)


def _seen_with(feed: Feed, fact: PriceObserved) -> tuple[Seen, ...]:
    """What is known of a source with one more price: in its window, and the last one before it."""
    newest = Seen(fact.published_at_us, fact.price_micro_usd, fact.observed_at_us)
    newest_first = (newest, *reversed(feed.seen[fact.source]))
    floor_us = newest.published_at_us - LIMITS.window_us
    within = list(takewhile(lambda one: one.published_at_us > floor_us, newest_first))
    return tuple(reversed(newest_first[: len(within) + 1]))


def _with_snapshot(feed: Feed, fact: PriceSnapshotTaken) -> Feed:
    if fact.health != HEALTHY:
        return replace(feed, last=fact)
    assert fact.median_micro_usd is not None
    usable = Usable(fact.number, fact.median_micro_usd, fact.at_us)
    fresh = [one for one in feed.recent if fact.at_us - one.at_us <= LIMITS.max_age_us]
    held_to = feed.held_to
    if held_to is None or fact.at_us - held_to.at_us >= DAY_US:
        held_to = usable
    recent = (*fresh, usable)[-RECENT_MAX:]
    return replace(feed, last=fact, recent=recent, held_to=held_to)


def feed_of(world: World) -> Feed:
    return world.state(FEED)


def reading_of(feed: Feed, now_us: int) -> Reading:
    """What the sources say now, under the network's limits: those of each reading, and how far
    from the price before a price may be.
    """
    sources = {
        source: [Observation(one.published_at_us, one.price_micro_usd) for one in seen]
        for source, seen in feed.seen.items()
    }
    reading = read_price(sources, LIMITS, now_us)
    if reading.price is not None and has_moved(feed, reading.price, now_us):
        return replace(reading, health=MOVED)
    return reading


def has_moved(feed: Feed, price_micro_usd: int, now_us: int) -> bool:
    """Whether a price is further than it may be from the one that it is held to."""
    if feed.held_to is None:
        return False
    low, high = sorted((price_micro_usd, feed.held_to.price_micro_usd))
    return (high - low) * BPS > move_max_bps(now_us - feed.held_to.at_us) * low


def move_max_bps(elapsed_us: int) -> int:
    """How far a median may be from one that is so old."""
    return int(MOVE_MAX_BPS << min(max(0, elapsed_us) // DAY_US, MOVE_DAYS_MAX))


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


def require_recent(world: World, number: int, at_us: int) -> None:
    """That a snapshot had a price, and is no older than a price may be; others may have been taken
    since. Raises Refused: PRICE_SNAPSHOT.
    """
    for one in feed_of(world).recent:
        if one.number == number and at_us - one.at_us <= LIMITS.max_age_us:
            return
    raise Refused(PricesReason.PRICE_SNAPSHOT, number=number, rule="no healthy recent snapshot")


# How we decide.


def decide_sources(command: SetPriceSources, world: World) -> list[Change]:
    """The same sources again change nothing. Raises Refused: PRICE_SOURCES_INVALID."""
    names = [one.source for one in command.sources]
    feeders = [one.member_id for one in command.sources]
    if len(set(names)) != len(names) or len(names) > SOURCES_MAX:
        raise Refused(PricesReason.PRICE_SOURCES_INVALID, rule=f"each once, at most {SOURCES_MAX}")
    if not all(name.strip() == name and 1 <= len(name) <= NAME_MAX for name in (*names, *feeders)):
        raise Refused(
            PricesReason.PRICE_SOURCES_INVALID, rule=f"1 to {NAME_MAX} characters, trimmed"
        )
    if len(set(feeders)) != len(feeders):
        raise Refused(PricesReason.PRICE_SOURCES_INVALID, rule="each fed by another member")
    feed = feed_of(world)
    if feed.is_set and feed.feeders == dict(zip(names, feeders, strict=True)):
        return []
    by_name = tuple(sorted(command.sources, key=lambda one: one.source))
    return [Change(FEED, PriceSourcesSet(sources=by_name, by=command.by, at_us=command.at_us))]


def decide_observe(command: ObservePrice, world: World) -> list[Change]:
    """The same price again changes nothing. Raises Refused: PRICE_SOURCE_UNKNOWN,
    PRICE_SOURCE_FOREIGN, PRICE_TIMES, PRICE_TOO_LOW, AMOUNT_OUT_OF_RANGE, PRICE_KNOWN,
    COUNT_OUT_OF_RANGE.
    """
    feed = feed_of(world)
    if command.source not in feed.seen:
        raise Refused(PricesReason.PRICE_SOURCE_UNKNOWN, source=command.source)
    if command.by != feed.feeders[command.source]:
        raise Refused(PricesReason.PRICE_SOURCE_FOREIGN, source=command.source)
    known = feed.seen[command.source]
    if any(
        (one.published_at_us, one.price_micro_usd)
        == (command.published_at_us, command.price_micro_usd)
        for one in known
    ):
        return []
    _check_times(command)
    check_price(command.price_micro_usd)
    if command.price_micro_usd > PRICE_MAX:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, price_micro_usd=command.price_micro_usd)
    if known and command.published_at_us <= known[-1].published_at_us:
        raise Refused(
            PricesReason.PRICE_KNOWN,
            source=command.source,
            published_at_us=command.published_at_us,
            newest_us=known[-1].published_at_us,
        )
    fact = PriceObserved(
        source=command.source,
        price_micro_usd=command.price_micro_usd,
        published_at_us=command.published_at_us,
        observed_at_us=command.observed_at_us,
        by=command.by,
        at_us=command.at_us,
    )
    if len(_seen_with(feed, fact)) > KNOWN_MAX + 1:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, source=command.source, most=KNOWN_MAX)
    return [Change(FEED, fact)]


def _check_times(command: ObservePrice) -> None:
    """Published, then observed, then told, each within a minute of the one before.

    Raises Refused: PRICE_TIMES.
    """
    published_us, observed_us = command.published_at_us, command.observed_at_us
    seen_late_us, told_late_us = observed_us - published_us, command.at_us - observed_us
    if published_us < 0 or not (0 <= seen_late_us <= LATE_US and 0 <= told_late_us <= LATE_US):
        raise Refused(
            PricesReason.PRICE_TIMES,
            rule="published, then observed, then told, each within a minute of the one before",
            published_at_us=published_us,
            observed_at_us=observed_us,
        )


def decide_snapshot(command: TakePriceSnapshot, world: World) -> list[Change]:
    """Dormant or not, it is recorded: why there was no price is told by a fact, too. So soon after
    another one that says as much nothing is recorded: that one is the last snapshot still.
    """
    feed = feed_of(world)
    reading = reading_of(feed, command.at_us)
    if _says_as_much(feed.last, reading, command.at_us):
        return []
    held_to = feed.held_to
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
        held_to=held_to.number if held_to else None,
        max_move_bps=move_max_bps(command.at_us - held_to.at_us) if held_to else None,
    )
    return [Change(FEED, fact)]


def _says_as_much(last: PriceSnapshotTaken | None, reading: Reading, now_us: int) -> bool:
    """Whether the last snapshot is new and has a price, or is new and there is none now either."""
    if last is None or now_us - last.at_us >= SPACING_US:
        return False
    return last.health == HEALTHY or reading.health != HEALTHY


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"oracle": (Feed(), evolve)}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    SetPriceSources: decide_sources,
    ObservePrice: decide_observe,
    TakePriceSnapshot: decide_snapshot,
}
