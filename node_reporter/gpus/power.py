"""Energy by the counter beside energy by power over time: evidence for tier 2, never billed.

    counter_mj    == what the counter moved        integrated_mj == sum of (p0 + p1) / 2 x dt

over exactly the same stretches: two good readings in a row, not further apart than a meter's step
may be, in one driver epoch, the counter not falling. A counter that is a fake stands still, or runs
away, beside a power gauge that is read each second.

Compared after the first minute and then after every hour. A counter that is off by more than ten
times counts something else: its energy is not told until a later comparison finds it in order.
Source: design metering 10 (Zeus drops such a counter).
"""

from __future__ import annotations

from dataclasses import dataclass

START_US = 60_000_000
"""So much time is covered before the first comparison."""
TELL_EVERY_US = 3_600_000_000
"""And before each later one, once an hour of a device that works."""
OFF_TIMES = 10
INTEGRATED_MJ_MIN = 10_000
"""Less shows nothing: counters move in steps."""


@dataclass(frozen=True, slots=True)
class _Read:
    at_us: int
    epoch: int
    energy_mj: int
    power_mw: int


@dataclass(slots=True)
class PowerCheck:
    """Of one device, since it was last told."""

    step_us_max: int
    covered_us: int = 0
    counter_mj: int = 0
    doubled_mw_us: int = 0  # twice the integral, so that no half is lost
    last: _Read | None = None
    due_us: int = START_US
    is_off: bool = False  # the last comparison found another thing than energy

    def see(self, at_us: int, epoch: int, energy_mj: int | None, power_mw: int | None) -> None:
        """Take one poll; None where the device did not tell."""
        known = energy_mj is not None and power_mw is not None
        now = _Read(at_us, epoch, energy_mj or 0, power_mw or 0) if known else None
        last, self.last = self.last, now
        if last is None or now is None or last.epoch != now.epoch:
            return
        passed_us = now.at_us - last.at_us
        if not 0 < passed_us <= self.step_us_max or now.energy_mj < last.energy_mj:
            return
        self.covered_us += passed_us
        self.counter_mj += now.energy_mj - last.energy_mj
        self.doubled_mw_us += (last.power_mw + now.power_mw) * passed_us

    def told(self) -> dict[str, int] | None:
        """What to tell, once there is enough of it; then it begins anew."""
        if self.covered_us < self.due_us:
            return None
        told = {
            "counter_mj": self.counter_mj,
            "integrated_mj": self.doubled_mw_us // 2_000_000,
            "covered_us": self.covered_us,
        }
        if told["integrated_mj"] >= INTEGRATED_MJ_MIN:
            self.is_off = _is_off(told["counter_mj"], told["integrated_mj"])
        self.due_us = TELL_EVERY_US
        self.covered_us = self.counter_mj = self.doubled_mw_us = 0
        return told


def _is_off(counter_mj: int, integrated_mj: int) -> bool:
    return not integrated_mj <= counter_mj * OFF_TIMES <= integrated_mj * OFF_TIMES**2
