"""The pin: one fact that commits the market log to every usage report received so far.

`lanes_root` is the RFC 6962 root over 64 lane records (design: audit). The pin appended together
with `EpochClosing` is the epoch's cut.
"""

from __future__ import annotations

from dataclasses import dataclass


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
