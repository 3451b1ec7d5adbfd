"""Pins: what was once pinned stays, and every lane is in every pin."""

from __future__ import annotations

from dataclasses import replace

from domain.metering.pin import PINS, PinUsage
from domain.metering.reasons import MeteringReason
from tests.domain.scenes.epochs import pin
from tests.given import Scene

PINNED = Scene().given((PINS, pin(7)))


def test_a_pin_follows_the_lanes_as_they_grow() -> None:
    Scene().when(PinUsage(pin=pin(7))).then((PINS, pin(7)))
    PINNED.when(PinUsage(pin=pin(8))).then((PINS, pin(8)))


def test_a_pin_of_nothing_new_is_not_recorded() -> None:
    PINNED.when(PinUsage(pin=pin(7, at_us=99))).then_nothing()


def test_a_lane_never_shrinks() -> None:
    PINNED.when(PinUsage(pin=pin(6))).then_refused(MeteringReason.USAGE_POSITION_FELL)


def test_what_was_pinned_is_never_rewritten() -> None:
    first, *others = pin(7).lanes
    for forged in (replace(first, head="other"), replace(first, root="other")):
        lanes = (forged, *others)
        command = PinUsage(pin=replace(pin(7), lanes=lanes))
        PINNED.when(command).then_refused(MeteringReason.USAGE_POSITION_FELL)


def test_no_lane_is_left_out() -> None:
    for lanes in (pin(9).lanes[:-1], pin(9).lanes[::-1], ()):
        command = PinUsage(pin=replace(pin(9), lanes=lanes))
        PINNED.when(command).then_refused(MeteringReason.CUT_INCOMPLETE)
