"""Names that are unique in their region: of stores of data and of reserved ports.

a name of one sort stands for at most one thing of a region        two of them meet one stream
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias, assert_never

from domain.record import dataclass
from domain.refusal import Refused
from domain.sites.reasons import SitesReason
from domain.stream import Change, Stream, World

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
"""A DNS label, like the names of regions."""
NAME_RULE = "small letters, digits and hyphens, like a host name"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteNameTaken:
    """Stream `site-name:{region_id}|{sort}|{name}`."""

    region_id: str
    sort: str  # "datastore", "reservation", "endpoint"
    name: str
    holder: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteNameFreed:
    region_id: str
    sort: str
    name: str
    at_us: int


Fact: TypeAlias = SiteNameTaken | SiteNameFreed


@dataclass(frozen=True, slots=True)
class SiteName:
    holder: str | None = None


def evolve(_state: SiteName, fact: Fact) -> SiteName:
    match fact:
        case SiteNameTaken():
            return SiteName(fact.holder)
        case SiteNameFreed():
            return SiteName()
        case _:
            assert_never(fact)


def name_stream(region_id: str, sort: str, name: str) -> Stream[SiteName]:
    return Stream("site-name", f"{region_id}|{sort}|{name}")


def take_name(
    world: World, region_id: str, sort: str, name: str, holder: str, at_us: int
) -> Change:
    """Raises Refused: SITE_NAME_TAKEN."""
    stream = name_stream(region_id, sort, name)
    if world.state(stream).holder is not None:
        raise Refused(SitesReason.SITE_NAME_TAKEN, sort=sort, name=name, region_id=region_id)
    taken = SiteNameTaken(region_id=region_id, sort=sort, name=name, holder=holder, at_us=at_us)
    return Change(stream, taken)


def free_name(region_id: str, sort: str, name: str, at_us: int) -> Change:
    freed = SiteNameFreed(region_id=region_id, sort=sort, name=name, at_us=at_us)
    return Change(name_stream(region_id, sort, name), freed)


STREAMS: dict[str, tuple[Any, Any]] = {"site-name": (SiteName(), evolve)}
DECIDERS: dict[type[Any], Any] = {}
