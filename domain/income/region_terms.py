"""Terms under which a region shares what its nodes earn: dated, with notice, known beforehand.

    version n + 1 begins after version n        terms of a day == the latest that began by that day

A region without terms shares nothing: each owner keeps what its node earned. Terms count from the
first moment of a UTC day. Who may set them and how long before is
`domain/income/region_sharing.py`'s; what they lead to is `domain/income/region_waterfall.py`'s.
Source: design economics 9; rows K-2, K-12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from domain.calendar import day_start_us
from domain.money import Amount
from domain.record import dataclass
from domain.stream import Stream, World


@dataclass(frozen=True, slots=True)
class InfraCost:
    """What a region's control costs its operator per UTC day, in credits."""

    base: Amount  # hosting and management, whatever the nodes
    control: Amount  # for each control node
    ingress: Amount  # for each ingress node
    most: Amount  # all of it together, however many nodes there are
    arrears_max: Amount  # so much of what could not be paid waits for better days
    per_gib: Amount  # of bytes through ingress nodes, in and out, as they report them


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionTermsSet:
    """Stream `region-terms:{region_id}`; versions count from 1."""

    region_id: str
    version: int
    effective_from_day: int  # UTC days since 1970
    is_shared: bool  # False: from then on every owner keeps what its node earns
    participation_ppm: int
    availability_min_tier: int  # of `domain/trust/tiers.py`: time below it is not paid for
    infra: InfraCost
    by: str
    at_us: int


@dataclass(frozen=True, slots=True)
class RegionTerms:
    """Every version, in order: version n is `versions[n - 1]`."""

    versions: tuple[RegionTermsSet, ...] = ()


def evolve(state: RegionTerms, fact: RegionTermsSet) -> RegionTerms:
    return RegionTerms((*state.versions, fact))


def stream_of(region_id: str) -> Stream[RegionTerms]:
    return Stream("region-terms", region_id)


def terms_of(world: World, region_id: str) -> tuple[RegionTermsSet, ...]:
    """Every version that was ever set, oldest first; most regions have none."""
    state = world.state(stream_of(region_id))
    return state.versions


def terms_on(versions: Sequence[RegionTermsSet], day: int) -> RegionTermsSet | None:
    """The terms of a day; None before the first ones began."""
    return next((one for one in reversed(versions) if one.effective_from_day <= day), None)


def may_gather(versions: Sequence[RegionTermsSet], earned_day: int, shared_day: int) -> bool:
    """Whether what a node earned on one day may be shared out with another one's.

    Only what was earned while the region shared, and after the terms by which it is shared had been
    announced: nobody's earnings are shared under terms that nobody could know when they were
    earned.
    """
    then, now = terms_on(versions, earned_day), terms_on(versions, shared_day)
    if then is None or now is None or not then.is_shared:
        return False
    return now.at_us <= day_start_us(earned_day)


STREAMS: dict[str, tuple[Any, Any]] = {"region-terms": (RegionTerms(), evolve)}
DECIDERS: dict[type[Any], Any] = {}
