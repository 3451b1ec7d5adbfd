"""Where the time comes from: the machine's clock, or one that a demo, a replay or a test moves.

Nothing else in the server asks for the time: commands carry it, and deciding needs no clock.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Microseconds since 1970, UTC."""

    def now_us(self) -> int: ...


class WallClock:
    """This machine's clock."""

    def now_us(self) -> int:
        return time.time_ns() // 1_000


class SimulatedClock:
    """A clock that stands still until it is moved, and never goes back."""

    def __init__(self, at_us: int) -> None:
        self._at_us = at_us
        self._lock = threading.Lock()

    def now_us(self) -> int:
        return self._at_us

    def advance(self, us: int) -> int:
        """Move on by so many microseconds; returns the new time."""
        return self.move_to(self._at_us + us)

    def move_to(self, at_us: int) -> int:
        """Move on to a moment; an earlier one changes nothing."""
        with self._lock:
            self._at_us = max(self._at_us, at_us)
            return self._at_us
