"""The price of a TOKEN from several sources: an average over time of each, then their median.

    TWAP       = floor(sum(price x us) / sum(us)) over [now - window, now)
    median     = the middle TWAP; of an even number the lower of the two (burns more)
    deviation  : (max - min) x 10,000 > max_deviation_bps x min        min <= median <= max

How old a source is, is told by its own publish time, never by when somebody looked: an old price
is not made new by reading it again. Time before a source's first price is left out, not filled.
No healthy reading, no price: what needs one is dormant, for the reason that is named. The facts
are in `domain/prices/price_feed.py`. Rule: conformance suite `oracle`; design economics 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from domain.duration import SECOND_US
from domain.prices.reasons import PricesReason
from domain.record import dataclass
from domain.refusal import Refused

BPS = 10_000
HEALTHY = "healthy"
TOO_FEW_SOURCES = "too_few_sources"
DEVIATION = "deviation"


@dataclass(frozen=True, slots=True)
class Limits:
    """When a price may be used. `max_age_us`: so old may a source's newest price be."""

    window_us: int
    max_age_us: int
    max_deviation_bps: int
    min_sources: int


LIMITS = Limits(
    window_us=1_800 * SECOND_US, max_age_us=600 * SECOND_US, max_deviation_bps=150, min_sources=3
)
"""Those of the network."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a source published, and when: micro-dollars per whole TOKEN; 0 means no price."""

    published_us: int
    price: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What all sources together say at one moment; `twaps` of the fresh ones alone."""

    twaps: Mapping[str, int]
    stale: tuple[str, ...]  # by the bytes of their names
    median: int | None
    deviation_bps: int | None  # rounded down, to be shown; `health` was judged on exact numbers
    health: str

    @property
    def price(self) -> int | None:
        """The median while it may be used; None means dormant, and `health` is the reason."""
        return self.median if self.health == HEALTHY else None


def read_price(
    sources: Mapping[str, Sequence[Observation]], limits: Limits, now_us: int
) -> Reading:
    """Observations in any order; of several of a source at one instant the last one counts.

    Raises Refused: BAD_WINDOW, BAD_MIN_SOURCES.
    """
    if limits.window_us <= 0:
        raise Refused(PricesReason.BAD_WINDOW, window_us=limits.window_us)
    if limits.min_sources < 1:
        raise Refused(PricesReason.BAD_MIN_SOURCES, min_sources=limits.min_sources)
    twaps: dict[str, int] = {}
    stale: list[str] = []
    for source, observations in sources.items():
        prices = _usable(observations, now_us)
        if not prices or now_us - max(prices) > limits.max_age_us:
            stale.append(source)
        else:
            twaps[source] = twap(prices, now_us - limits.window_us, now_us)
    by_bytes = tuple(sorted(stale, key=str.encode))
    if len(twaps) < limits.min_sources:
        return Reading(twaps, by_bytes, None, None, TOO_FEW_SOURCES)
    spread, lowest = max(twaps.values()) - min(twaps.values()), min(twaps.values())
    is_apart = spread * BPS > limits.max_deviation_bps * lowest
    median = lower_median(list(twaps.values()))
    health = DEVIATION if is_apart else HEALTHY
    return Reading(twaps, by_bytes, median, spread * BPS // lowest, health)


def _usable(observations: Sequence[Observation], now_us: int) -> dict[int, int]:
    """Publish time -> price, without what is no price and what is not published yet."""
    return {
        one.published_us: one.price
        for one in observations
        if one.published_us <= now_us and one.price > 0
    }


def twap(prices: Mapping[int, int], from_us: int, to_us: int) -> int:
    """The average over [from, to) of prices by publish time, none after `to`, weighted by how
    long each was the newest. The one in force at `from` counts from there on; with no time at
    all, the only price there is.
    """
    assert from_us < to_us, (from_us, to_us)
    assert prices, "a fresh source has a price"
    moments = [*sorted(prices), to_us]
    assert moments[-2] <= to_us, (moments[-2], to_us)
    weighted = total_us = 0
    for at_us, until_us in pairwise(moments):
        held_us = max(0, until_us - max(at_us, from_us))
        weighted += prices[at_us] * held_us
        total_us += held_us
    average = weighted // total_us if total_us else prices[to_us]
    assert min(prices.values()) <= average <= max(prices.values()), average
    return average


def lower_median(values: Sequence[int]) -> int:
    """The middle value; of an even number the lower of the two middle ones."""
    assert values, "no values, no median"
    return sorted(values)[(len(values) - 1) // 2]
