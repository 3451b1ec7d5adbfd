"""Three clocks read together, behind a port: a simulated clock drives the same reporter.

Durations come from the monotonic clock alone. Wall time only matches lease windows. The boot clock
also counts suspended time, which nobody pays for: suspended = delta boot - delta mono.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant on the three clocks, microseconds each."""

    mono_us: int
    boot_us: int
    wall_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffset:
    """Server minus node's wall clock in microseconds, and the round trip it was measured over."""

    offset_us: int
    rtt_us: int


class Clock(Protocol):
    """Where time comes from."""

    @property
    def boot_id(self) -> str:
        """Names the boot within which `mono_us` values compare."""
        ...

    def now(self) -> Moment: ...


WALL_JITTER_US = 1_000
"""Two clocks are never read at one instant: within this, their last difference is repeated."""


class SystemClock:
    """The machine's own clocks."""

    def __init__(self) -> None:
        self.boot_id = _boot_id()

    def now(self) -> Moment:
        mono_ns = time.monotonic_ns()
        # Where no clock counts suspended time, none is told of.
        knows_boot = hasattr(time, "CLOCK_BOOTTIME")
        boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) if knows_boot else mono_ns
        return Moment(mono_ns // 1_000, boot_ns // 1_000, time.time_ns() // 1_000)


class SteppedClock:
    """A clock that moves only when told to: simulations, replays and tests."""

    def __init__(self, *, wall_us: int, mono_us: int = 0, boot_id: str | None = None) -> None:
        self.boot_id = boot_id or "00000000-0000-4000-8000-000000000000"
        self._now = Moment(mono_us, mono_us, wall_us)

    def now(self) -> Moment:
        return self._now

    def advance(self, us: int, *, suspended_us: int = 0, wall_step_us: int = 0) -> None:
        """Let `us` pass; a suspended machine's monotonic clock stands still for its part."""
        self._now = Moment(
            self._now.mono_us + us,
            self._now.boot_us + us + suspended_us,
            self._now.wall_us + us + suspended_us + wall_step_us,
        )

    def advance_to(self, wall_us: int) -> None:
        """Let time pass until the wall clock shows `wall_us`; never backwards."""
        assert wall_us >= self._now.wall_us, (wall_us, self._now.wall_us)
        self.advance(wall_us - self._now.wall_us)


def _boot_id() -> str:
    """Linux names each boot; elsewhere each start counts as one, which only costs gap rows."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return str(uuid.uuid4())
