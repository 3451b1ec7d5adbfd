"""The pin: one fact that commits the market log to every usage report received so far.

    size(lane) never falls from pin to pin;   an unchanged size has an unchanged head and root

`lanes_root` is the RFC 6962 root over 64 lane records (design audit 2). The pin appended together
with `EpochClosing` is the epoch's cut. Not the tree: `ledger/tree/cut.py` reads that.
"""

from __future__ import annotations

from typing import Any

from domain.metering.reasons import MeteringReason
from domain.metering.report import LANES
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True)
class LanePin:
    """One usage lane at the size its tree follower had reached."""

    lane: int
    size: int
    head: str  # hex, hash chain at `size`
    root: str  # hex, RFC 6962 root of the first `size` leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePinned:
    """Stream `pins:usage`."""

    lanes: tuple[LanePin, ...]
    lanes_root: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class PinUsage:
    """Pin what the tree followers have reached; nothing is recorded when no lane has grown."""

    pin: UsagePinned


# What we remember.


@dataclass(frozen=True, slots=True)
class PinState:
    last: UsagePinned | None = None


PINS: Stream[PinState] = Stream("pins", "usage")


def evolve_pins(_state: PinState, fact: UsagePinned) -> PinState:
    return PinState(fact)


def last_pin(world: World) -> UsagePinned | None:
    state = world.state(PINS)
    return state.last


# How we decide.


def decide_pin(command: PinUsage, world: World) -> list[Change]:
    """Raises Refused: USAGE_POSITION_FELL, CUT_INCOMPLETE."""
    last = last_pin(world)
    if last is not None and (last.lanes, last.lanes_root) == (
        command.pin.lanes,
        command.pin.lanes_root,
    ):
        return []
    return [pinned(command.pin, world)]


def pinned(pin: UsagePinned, world: World) -> Change:
    """The pin as a change, checked against the one before.

    Raises Refused: USAGE_POSITION_FELL when a lane shrank or was rewritten, CUT_INCOMPLETE when
    the lanes are not exactly 0 to 63 in order.
    """
    last = last_pin(world)
    before = {lane.lane: lane for lane in last.lanes} if last is not None else {}
    for lane in pin.lanes:
        known = before.get(lane.lane)
        if known is not None and (lane.size < known.size or _rewritten(known, lane)):
            raise Refused(MeteringReason.USAGE_POSITION_FELL, lane=lane.lane, size=lane.size)
    if [lane.lane for lane in pin.lanes] != list(range(LANES)):
        raise Refused(MeteringReason.CUT_INCOMPLETE, lanes=len(pin.lanes))
    return Change(PINS, pin)


def _rewritten(known: LanePin, lane: LanePin) -> bool:
    return lane.size == known.size and lane != known


STREAMS: dict[str, tuple[Any, Any]] = {"pins": (PinState(), evolve_pins)}
DECIDERS: dict[type[Any], Any] = {PinUsage: decide_pin}
