"""Reserved ports: a host name and a port of a region that work keeps, whichever machine it runs on.

    at most one lease holds a reservation          at every moment
    (region, host name, port) is unique            and so is (region, name)

The name stays when the work moves: the lease on the next machine holds it once the one before is
over. Name and port are published on the region's network by mDNS. Rows C-9 and C-38.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.frozen import replace
from domain.refusal import Refused
from domain.sites.datastore import require_site
from domain.sites.names import NAME, NAME_RULE, free_name, take_name
from domain.sites.reasons import SitesReason
from domain.stream import Change, Stream, World

# Facts. Stream `reservation:{reservation_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationAdded:
    reservation_id: str
    region_id: str
    account_id: str
    name: str  # unique in the region
    kind: str  # RESERVATION_KINDS
    host_name: str  # without ".local"
    port: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationHeld:
    reservation_id: str
    lease_id: str
    node_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationReleased:
    reservation_id: str
    lease_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRemoved:
    reservation_id: str
    by: str
    at_us: int


Fact: TypeAlias = ReservationAdded | ReservationHeld | ReservationReleased | ReservationRemoved


@dataclass(frozen=True, slots=True, kw_only=True)
class AddReservation:
    """`machines`: nodes and edge devices of the region, as the views tell them."""

    reservation_id: str
    region_id: str
    name: str
    kind: str
    host_name: str
    port: int
    machines: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveReservation:
    reservation_id: str
    by: str
    at_us: int


RESERVATION_KINDS = ("port",)
PORTS = range(1, 65_536)


@dataclass(frozen=True, slots=True)
class ReservationState:
    added: ReservationAdded | None = None
    is_removed: bool = False
    held: ReservationHeld | None = None


def evolve(state: ReservationState, fact: Fact) -> ReservationState:
    match fact:
        case ReservationAdded():
            return ReservationState(fact)
        case ReservationHeld():
            return replace(state, held=fact)
        case ReservationReleased():
            return replace(state, held=None)
        case ReservationRemoved():
            return replace(state, is_removed=True)
        case _:
            assert_never(fact)


def reservation_stream(reservation_id: str) -> Stream[ReservationState]:
    return Stream("reservation", reservation_id)


def existing_reservation(world: World, reservation_id: str) -> ReservationAdded:
    """Raises Refused: RESERVATION_UNKNOWN, also for one that was removed."""
    state = world.state(reservation_stream(reservation_id))
    if state.added is None or state.is_removed:
        raise Refused(SitesReason.RESERVATION_UNKNOWN, reservation_id=reservation_id)
    return state.added


def decide_add(command: AddReservation, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN, ACCOUNT_CLOSED, PLAN_NEEDED, REGION_EMPTY,
    RESERVATION_INVALID, SITE_NAME_TAKEN.
    """
    account_id = require_site(world, command.region_id, command.machines)
    stream = reservation_stream(command.reservation_id)
    if world.state(stream).added is not None:
        return []
    _require_told(command)
    added = ReservationAdded(
        reservation_id=command.reservation_id,
        region_id=command.region_id,
        account_id=account_id,
        name=command.name,
        kind=command.kind,
        host_name=command.host_name,
        port=command.port,
        by=command.by,
        at_us=command.at_us,
    )
    holder, at_us = command.reservation_id, command.at_us
    place = _place(command.host_name, command.port)
    return [
        take_name(world, command.region_id, "reservation", command.name, holder, at_us),
        take_name(world, command.region_id, "endpoint", place, holder, at_us),
        Change(stream, added),
    ]


def decide_remove(command: RemoveReservation, world: World) -> list[Change]:
    """Raises Refused: RESERVATION_UNKNOWN, RESERVATION_HELD."""
    stream = reservation_stream(command.reservation_id)
    state = world.state(stream)
    if state.added is None:
        raise Refused(SitesReason.RESERVATION_UNKNOWN, reservation_id=command.reservation_id)
    if state.is_removed:
        return []
    _require_free(state, command.reservation_id)
    added, at_us = state.added, command.at_us
    removed = ReservationRemoved(reservation_id=command.reservation_id, by=command.by, at_us=at_us)
    return [
        free_name(added.region_id, "reservation", added.name, at_us),
        free_name(added.region_id, "endpoint", _place(added.host_name, added.port), at_us),
        Change(stream, removed),
    ]


def hold(
    world: World, reservation_id: str, lease_id: str, node_id: str, at_us: int
) -> list[Change]:
    """A lease takes the name and port. Raises Refused: RESERVATION_UNKNOWN, RESERVATION_HELD."""
    existing_reservation(world, reservation_id)
    stream = reservation_stream(reservation_id)
    _require_free(world.state(stream), reservation_id)
    held = ReservationHeld(
        reservation_id=reservation_id, lease_id=lease_id, node_id=node_id, at_us=at_us
    )
    return [Change(stream, held)]


def release(world: World, reservation_id: str, lease_id: str, at_us: int) -> list[Change]:
    """The lease is over: the next one may hold the name. Of another lease's hold nothing."""
    stream = reservation_stream(reservation_id)
    held = world.state(stream).held
    if held is None or held.lease_id != lease_id:
        return []
    released = ReservationReleased(reservation_id=reservation_id, lease_id=lease_id, at_us=at_us)
    return [Change(stream, released)]


def _place(host_name: str, port: int) -> str:
    return f"{host_name}:{port}"


def _require_free(state: ReservationState, reservation_id: str) -> None:
    if state.held is not None:
        raise Refused(
            SitesReason.RESERVATION_HELD,
            reservation_id=reservation_id,
            lease_id=state.held.lease_id,
        )


def _require_told(command: AddReservation) -> None:
    """Raises Refused: RESERVATION_INVALID."""
    if NAME.fullmatch(command.name) is None:
        raise _invalid("name", NAME_RULE)
    if command.kind not in RESERVATION_KINDS:
        raise _invalid("kind", "port")
    if NAME.fullmatch(command.host_name) is None:
        raise _invalid("host_name", "one label of a host name, without .local")
    if command.port not in PORTS:
        raise _invalid("port", "1 to 65535")


def _invalid(field: str, rule: str) -> Refused:
    return Refused(SitesReason.RESERVATION_INVALID, field=field, rule=rule)


STREAMS: dict[str, tuple[Any, Any]] = {"reservation": (ReservationState(), evolve)}
DECIDERS: dict[type[Any], Any] = {AddReservation: decide_add, RemoveReservation: decide_remove}
