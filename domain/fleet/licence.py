"""Licences of software backends: seats that are rented like devices, one seat one device.

    seats of a licence in service <= seats granted          by the id of the device, always

Seat n of a licence is the device `{licence_id}:{n}`. A device lives on one node at a time, so a
seat is never sold twice, whichever of its provider's nodes lists it; its time is counted in
SEAT-milliseconds. The licence says what may be listed: a node that lists a seat which no licence in
force grants does not join. Source: design marketplace 8, rows V-4 and J-4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, assert_never

from domain.fleet.kinds import MODEL_LENGTH_MAX, NAME
from domain.fleet.provider import existing_provider
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class LicenceGranted:
    """Stream `licence:{licence_id}`."""

    licence_id: str
    provider_id: str  # whose nodes may list its seats
    vendor: str
    model: str  # the product, as its seats name it
    seats: int
    terms_sha256: str  # of the paper that grants it
    from_us: int
    until_us: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LicenceRevoked:
    """Its seats come into no more nodes; leases that hold some run to their end."""

    licence_id: str
    by: str
    at_us: int


# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantLicence:
    licence_id: str
    provider_id: str
    vendor: str
    model: str
    seats: int
    terms_sha256: str
    from_us: int
    until_us: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeLicence:
    licence_id: str
    by: str
    at_us: int


SEATS_MAX = 10_000
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SEAT = re.compile(r"(lic_[0-9a-z]{1,64}):([1-9][0-9]{0,4})")

# What is remembered.


@dataclass(frozen=True, slots=True)
class LicenceState:
    granted: LicenceGranted | None = None
    is_revoked: bool = False

    def covers(self, number: int, provider_id: str, vendor: str, model: str, at_us: int) -> bool:
        """Whether a seat of this number may be listed now, as this product, by this provider."""
        licence = self.granted
        return (
            licence is not None
            and not self.is_revoked
            and (licence.provider_id, licence.vendor) == (provider_id, vendor.lower())
            and licence.model == model
            and 1 <= number <= licence.seats
            and licence.from_us <= at_us
            and (licence.until_us is None or at_us < licence.until_us)
        )


def evolve(state: LicenceState, fact: LicenceGranted | LicenceRevoked) -> LicenceState:
    match fact:
        case LicenceGranted():
            return LicenceState(fact)
        case LicenceRevoked():
            return replace(state, is_revoked=True)
        case _:
            assert_never(fact)


def licence_stream(licence_id: str) -> Stream[LicenceState]:
    return Stream("licence", licence_id)


def licence_of(world: World, licence_id: str) -> LicenceState:
    return world.state(licence_stream(licence_id))


def seat_of(device_id: str) -> tuple[str, int] | None:
    """The licence and the number of a seat's device id; None: not a seat's id."""
    found = _SEAT.fullmatch(device_id)
    return None if found is None else (found[1], int(found[2]))


def seat_id(licence_id: str, number: int) -> str:
    """The device id of a seat."""
    return f"{licence_id}:{number}"


# How we decide.


def decide_grant(command: GrantLicence, world: World) -> list[Change]:
    """Raises Refused: PROVIDER_UNKNOWN, LICENCE_EXISTS, UNKNOWN_MODE, COUNT_OUT_OF_RANGE,
    BAD_PERIOD.
    """
    existing_provider(world, command.provider_id)
    granted = LicenceGranted(
        licence_id=command.licence_id,
        provider_id=command.provider_id,
        vendor=command.vendor.lower(),
        model=command.model,
        seats=command.seats,
        terms_sha256=command.terms_sha256,
        from_us=command.from_us,
        until_us=command.until_us,
        by=command.by,
        at_us=command.at_us,
    )
    present = licence_of(world, command.licence_id).granted
    if present is not None:
        if replace(granted, at_us=present.at_us) == present:
            return []
        raise Refused(FleetReason.LICENCE_EXISTS, licence_id=command.licence_id)
    if not NAME.fullmatch(granted.vendor) or not 1 <= len(granted.model) <= MODEL_LENGTH_MAX:
        raise Refused(PartiesReason.UNKNOWN_MODE, vendor=granted.vendor, model=granted.model[:100])
    if not 1 <= granted.seats <= SEATS_MAX or not _SHA256.fullmatch(granted.terms_sha256):
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, seats=granted.seats, at_most=SEATS_MAX)
    if granted.until_us is not None and granted.until_us <= granted.from_us:
        raise Refused(FleetReason.BAD_PERIOD, from_us=granted.from_us, until_us=granted.until_us)
    return [Change(licence_stream(command.licence_id), granted)]


def decide_revoke(command: RevokeLicence, world: World) -> list[Change]:
    """Raises Refused: LICENCE_UNKNOWN."""
    state = licence_of(world, command.licence_id)
    if state.granted is None:
        raise Refused(FleetReason.LICENCE_UNKNOWN, licence_id=command.licence_id)
    if state.is_revoked:
        return []
    revoked = LicenceRevoked(licence_id=command.licence_id, by=command.by, at_us=command.at_us)
    return [Change(licence_stream(command.licence_id), revoked)]


STREAMS: dict[str, tuple[Any, Any]] = {"licence": (LicenceState(), evolve)}
DECIDERS: dict[type[Any], Any] = {GrantLicence: decide_grant, RevokeLicence: decide_revoke}
