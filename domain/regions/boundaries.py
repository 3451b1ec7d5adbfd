"""Where a region is: its boundaries, its dot on the map, and the address of its control cluster.

    a machine belongs to a region  <=>  one of the region's boundaries holds its place

A boundary is an IP network, a city, a state (ISO 3166-2) or a country (ISO 3166-1). Of two regions
the one whose boundary is narrower wins: a longer network before a shorter one, a network before a
city, a city before a state, a state before a country; of equals the one with fewer workers, then by
id. Regions of several providers may overlap. Source: design marketplace 8; row K-5.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domain.fleet.growth import OPEN, OPENING, WAITLISTED
from domain.fleet.provider import existing_region
from domain.fleet.roles import ADDRESS
from domain.frozen import replace
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True)
class Boundary:
    """`value`: "203.0.113.0/24", "DE-BE/Berlin", "DE-BE" or "DE"."""

    kind: str  # KINDS
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPlaceSet:
    """Stream `region-place:{region_id}`; the latest counts."""

    region_id: str
    boundaries: tuple[Boundary, ...]
    address: str | None  # host:port where nodes reach the region's control; None: this server
    latitude_e6: int | None  # millionths of a degree
    longitude_e6: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRegionPlace:
    region_id: str
    boundaries: tuple[Boundary, ...]
    address: str | None
    latitude_e6: int | None
    longitude_e6: int | None
    by: str
    at_us: int


KINDS = NETWORK, CITY, STATE, COUNTRY = ("network", "city", "state", "country")
"""Narrow before wide."""
BOUNDARIES_MAX = 256
_WRITTEN = {
    CITY: re.compile(r"[A-Z]{2}(-[A-Z0-9]{1,3})?/[^/\x00-\x1f]{1,80}"),
    STATE: re.compile(r"[A-Z]{2}-[A-Z0-9]{1,3}"),
    COUNTRY: re.compile(r"[A-Z]{2}"),
}
LATITUDE_E6, LONGITUDE_E6 = 90_000_000, 180_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a machine is, as far as it is known. `state`: ISO 3166-2, like "DE-BE"."""

    country: str | None = None
    state: str | None = None
    city: str | None = None
    address: str | None = None  # of IP
    latitude_e6: int | None = None
    longitude_e6: int | None = None

    @property
    def code(self) -> str | None:
        """What a wait list is named by: the state, or else the country; None: not known."""
        return self.state or self.country


@dataclass(frozen=True, slots=True)
class Candidate:
    """A region that a machine might belong to."""

    region_id: str
    phase: str
    workers: int
    workers_max: int | None
    boundaries: tuple[Boundary, ...]


@dataclass(frozen=True, slots=True)
class RegionPlace:
    told: RegionPlaceSet | None = None


def evolve(_state: RegionPlace, fact: RegionPlaceSet) -> RegionPlace:
    return RegionPlace(fact)


def place_stream(region_id: str) -> Stream[RegionPlace]:
    return Stream("region-place", region_id)


def decide_place(command: SetRegionPlace, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN, COUNT_OUT_OF_RANGE, UNKNOWN_MODE."""
    existing_region(world, command.region_id)
    if len(command.boundaries) > BOUNDARIES_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE,
            boundaries=len(command.boundaries),
            at_most=BOUNDARIES_MAX,
        )
    for boundary in command.boundaries:
        if not is_written(boundary):
            raise Refused(
                PartiesReason.UNKNOWN_MODE, kind=boundary.kind, boundary=boundary.value[:100]
            )
    if command.address is not None and not ADDRESS.fullmatch(command.address):
        raise Refused(PartiesReason.UNKNOWN_MODE, address=command.address[:100])
    _require_dot(command)
    told = RegionPlaceSet(
        region_id=command.region_id,
        boundaries=command.boundaries,
        address=command.address,
        latitude_e6=command.latitude_e6,
        longitude_e6=command.longitude_e6,
        by=command.by,
        at_us=command.at_us,
    )
    present = world.state(place_stream(command.region_id)).told
    if present is not None and replace(told, by=present.by, at_us=present.at_us) == present:
        return []
    return [Change(place_stream(command.region_id), told)]


def _require_dot(command: SetRegionPlace) -> None:
    north, east = command.latitude_e6, command.longitude_e6
    is_dot = (north is None) == (east is None)
    if not is_dot or abs(north or 0) > LATITUDE_E6 or abs(east or 0) > LONGITUDE_E6:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, latitude_e6=north, longitude_e6=east)


def is_written(boundary: Boundary) -> bool:
    """Whether a boundary is written as its kind is."""
    if boundary.kind == NETWORK:
        try:
            ipaddress.ip_network(boundary.value)
        except ValueError:
            return False
        return True
    pattern = _WRITTEN.get(boundary.kind)
    return pattern is not None and pattern.fullmatch(boundary.value) is not None


def narrowness(boundary: Boundary, place: Place) -> tuple[int, int] | None:
    """How narrowly a boundary holds a place, the more the narrower; None: it does not."""
    if boundary.kind == NETWORK:
        if place.address is None:
            return None
        network = ipaddress.ip_network(boundary.value)
        address = ipaddress.ip_address(place.address)
        is_in = network.version == address.version and address in network
        return (len(KINDS), network.prefixlen) if is_in else None
    holds = {
        CITY: place.city is not None
        and boundary.value.casefold()
        in {f"{code}/{place.city}".casefold() for code in (place.state, place.country) if code},
        STATE: boundary.value == place.state,
        COUNTRY: boundary.value == place.country,
    }
    return (len(KINDS) - KINDS.index(boundary.kind), 0) if holds[boundary.kind] else None


def choose(candidates: Sequence[Candidate], place: Place) -> Candidate | None:
    """The region of a machine: one that nodes may join and that has room, or else one that waits
    for people; None: there is neither.
    """
    for phases in ((OPENING, OPEN), (WAITLISTED,)):
        found = [
            (held, one)
            for one in candidates
            if one.phase in phases and (one.workers_max is None or one.workers < one.workers_max)
            for held in (narrowness(boundary, place) for boundary in one.boundaries)
            if held is not None
        ]
        if found:
            narrow = max(held for held, _ in found)
            equal = [one for held, one in found if held == narrow]
            return min(equal, key=lambda one: (one.workers, one.region_id))
    return None


STREAMS: dict[str, tuple[Any, Any]] = {"region-place": (RegionPlace(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetRegionPlace: decide_place}
