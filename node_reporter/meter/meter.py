"""From polls to steps: each stretch between two polls of one device goes to exactly one bucket.

    available + unavailable + unknown == elapsed monotonic time        always, reshapes included
    split(step): both parts sum to the whole in every counter

available: both polls healthy and the step at most 2.5 ticks. unavailable: the device was gone at
either end. unknown: a longer step, a blind poll, or a reshape in between. The last two are never
merged, because different parties pay for them. Pure: no clock, no driver, no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from node_reporter.clock import WALL_JITTER_US, Moment
from node_reporter.gpus.seam import PPM, Health, Reading

POWER_MW_MAX = 2_000_000
"""Bound of the energy rule where the device does not tell its limit: no board draws 2 kW."""


THROTTLES = ("throttle_power_ns", "throttle_thermal_ns")

NOTHING = Reading()


class Bucket(StrEnum):
    """Where a step's time goes."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """One attempt to read a device, stamped when the answer was there."""

    at: Moment
    health: Health
    driver_epoch: int
    reading: Reading = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The time between two polls of one device. Wall offsets are wall minus monotonic clock."""

    start_us: int
    end_us: int
    bucket: Bucket
    driver_epoch: int
    wall_from_us: int
    wall_to_us: int
    suspended_us: int = 0
    samples: int = 0
    busy_us: int | None = None
    mem_byte_us: int | None = None
    energy_mj: int | None = None
    energy_gaps: int = 0
    throttle_power_ns: int | None = None
    throttle_thermal_ns: int | None = None
    boot_from_us: int = 0
    """Boot clock minus monotonic clock at the start: what was suspended until then."""
    closes: str | None = None
    """Reason for which a row must end with this step, or None."""

    @property
    def len_us(self) -> int:
        return self.end_us - self.start_us


class Meter:
    """Turns the polls of one device into steps."""

    def __init__(self, tick_us: int) -> None:
        self.step_us_max = tick_us * 5 // 2
        self._last: Poll | None = None
        self._wall_us = 0
        self._shape: str | None = None
        self._resumed = False
        self._energy = EnergyCounter()
        self._power, self._thermal = (TimeCounter(name) for name in THROTTLES)

    @property
    def last(self) -> Poll | None:
        return self._last

    def resume(
        self,
        mono_end_us: int,
        wall_minus_mono_us: int,
        driver_epoch: int,
        boot_minus_mono_us: int = 0,
    ) -> None:
        """Continue where an earlier process of this boot stopped: what lies between is a gap."""
        wall_us = mono_end_us + wall_minus_mono_us
        at = Moment(mono_end_us, mono_end_us + boot_minus_mono_us, wall_us)
        self._last = Poll(at=at, health=Health.BLIND, driver_epoch=driver_epoch)
        self._wall_us = wall_minus_mono_us
        self._resumed = True

    def feed(self, poll: Poll) -> Step | None:
        """The step that ends with this poll; None for the first poll and for one that is late."""
        last = self._last
        if last is not None and poll.at.mono_us <= last.at.mono_us:
            return None
        wall_from_us = self._wall_us
        self._wall_us = _held(wall_from_us, poll.at, first=last is None)
        energy_mj, energy_gaps = self._energy.advance(poll)
        power_ns, thermal_ns = self._power.advance(poll), self._thermal.advance(poll)
        reshaped = self._reshaped(poll)
        self._last = poll
        if last is None:
            return None
        step = Step(
            start_us=last.at.mono_us,
            end_us=poll.at.mono_us,
            bucket=Bucket.UNKNOWN if reshaped else self._bucket(last, poll),
            driver_epoch=last.driver_epoch,
            wall_from_us=wall_from_us,
            wall_to_us=self._wall_us,
            suspended_us=_suspended_us(last.at, poll.at),
            samples=0 if poll.health is Health.BLIND else 1,
            energy_mj=energy_mj,
            energy_gaps=energy_gaps,
            throttle_power_ns=power_ns,
            throttle_thermal_ns=thermal_ns,
            boot_from_us=last.at.boot_us - last.at.mono_us,
            closes="reshape" if reshaped else self._closes(last, poll),
        )
        self._resumed = False
        return _with_gauges(step, poll.reading)

    def _bucket(self, last: Poll, poll: Poll) -> Bucket:
        if poll.at.mono_us - last.at.mono_us > self.step_us_max:
            return Bucket.UNKNOWN
        if Health.GONE in (last.health, poll.health):
            return Bucket.UNAVAILABLE
        if Health.BLIND in (last.health, poll.health):
            return Bucket.UNKNOWN
        return Bucket.AVAILABLE

    def _closes(self, last: Poll, poll: Poll) -> str | None:
        if self._resumed:
            return "gap"
        if poll.health is Health.GONE and last.health is not Health.GONE:
            return "fault"
        return None

    def _reshaped(self, poll: Poll) -> bool:
        """Whether this is another device than the last healthy poll saw, or another driver load."""
        last, shape = self._last, self._shape
        if poll.health is Health.HEALTHY:
            self._shape = poll.reading.shape
        if last is None or self._resumed:
            return False
        return last.driver_epoch != poll.driver_epoch or (
            shape is not None and shape != self._shape
        )


class EnergyCounter:
    """The counter delta rule, against the last *good* value, or an outage would lose energy."""

    def __init__(self) -> None:
        self._base: Poll | None = None

    def advance(self, poll: Poll) -> tuple[int | None, int]:
        """(energy since the last good value in mJ, gaps); None where nothing was measured.

        Accepted: same driver epoch, not negative, at most power limit x time x 1.2. Anything else
        counts one gap and becomes the new base; it is never guessed.
        """
        value = poll.reading.energy_mj
        if value is None or poll.health is not Health.HEALTHY:
            return None, 0
        base, self._base = self._base, poll
        if base is None or base.reading.energy_mj is None:
            return None, 0
        delta_mj = value - base.reading.energy_mj
        limit_mw = poll.reading.power_limit_mw or POWER_MW_MAX
        elapsed_us = poll.at.mono_us - base.at.mono_us
        plausible = 0 <= delta_mj * 5_000_000 <= limit_mw * elapsed_us * 6
        if base.driver_epoch != poll.driver_epoch or not plausible:
            return None, 1
        return delta_mj, 0


class TimeCounter:
    """A counter of nanoseconds spent in some state, by the same rule: it cannot outrun the clock.

    Evidence only, so what is not believed is left out and counts no gap.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._base: tuple[int, Poll] | None = None

    def advance(self, poll: Poll) -> int | None:
        """Nanoseconds since the last good value, or None where nothing was measured."""
        value: int | None = getattr(poll.reading, self._name)
        if value is None or poll.health is not Health.HEALTHY:
            return None
        base, self._base = self._base, (value, poll)
        if base is None or base[1].driver_epoch != poll.driver_epoch:
            return None
        delta_ns = value - base[0]
        elapsed_ns = (poll.at.mono_us - base[1].at.mono_us) * 1_000
        return delta_ns if 0 <= delta_ns * 5 <= elapsed_ns * 6 else None


def split(step: Step, at_us: int) -> tuple[Step, Step]:
    """Cut one step in two at a monotonic time inside it; measured values go by time, floored."""
    assert step.start_us < at_us < step.end_us, (step.start_us, at_us, step.end_us)
    part_us, whole_us = at_us - step.start_us, step.len_us

    def share(value: int | None) -> int | None:
        return None if value is None else value * part_us // whole_us

    def rest(value: int | None) -> int | None:
        return None if value is None else value - value * part_us // whole_us

    before = replace(
        step,
        end_us=at_us,
        wall_to_us=step.wall_from_us,
        suspended_us=0,
        samples=0,
        busy_us=share(step.busy_us),
        mem_byte_us=share(step.mem_byte_us),
        energy_mj=share(step.energy_mj),
        energy_gaps=0,
        throttle_power_ns=share(step.throttle_power_ns),
        throttle_thermal_ns=share(step.throttle_thermal_ns),
        closes=None,
    )
    after = replace(
        step,
        start_us=at_us,
        busy_us=rest(step.busy_us),
        mem_byte_us=rest(step.mem_byte_us),
        energy_mj=rest(step.energy_mj),
        throttle_power_ns=rest(step.throttle_power_ns),
        throttle_thermal_ns=rest(step.throttle_thermal_ns),
    )
    return before, after


def _with_gauges(step: Step, reading: Reading) -> Step:
    """Gauges are integrated over available time only: a step somebody watched at both ends."""
    if step.bucket is not Bucket.AVAILABLE:
        return step
    busy_ppm, used = reading.busy_ppm, reading.mem_used_bytes
    return replace(
        step,
        busy_us=None if busy_ppm is None else step.len_us * min(max(busy_ppm, 0), PPM) // PPM,
        mem_byte_us=None if used is None else step.len_us * used,
    )


def _held(held_us: int, at: Moment, *, first: bool) -> int:
    offset_us = at.wall_us - at.mono_us
    if first or abs(offset_us - held_us) > WALL_JITTER_US:
        return offset_us
    return held_us


def _suspended_us(last: Moment, now: Moment) -> int:
    return max(0, (now.boot_us - last.boot_us) - (now.mono_us - last.mono_us))
