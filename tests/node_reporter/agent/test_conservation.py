"""Time and energy are conserved over any schedule of faults, from the poll to the credited lease.

    available + unavailable + unknown == elapsed        for every device, whatever happened
    energy reported == sum of the believable deltas     of the values a device answered
    leased <= available x share;   device time over all leases <= elapsed
    totals do not depend on how time was cut into reports, nor on what the wire did to them

The whole reporter runs: polls, meter, rows, spool, signatures, delivery. Accrual is the server's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from domain.metering import counting as accrual
from ledger.log.report_rows import lease_rows
from node_reporter.clock import SteppedClock
from node_reporter.gpus.seam import DeviceLost, Health, MonitorBlind, Reading
from node_reporter.gpus.simulated import POWER_LIMIT_MW, Outage, SimulatedGpus
from tests.examples import examples
from tests.node_reporter.reporter_scene import BEGIN_US, DAY_US, MINUTE_US, WALL_US, Scene
from tests.seeds.machines import run_properties

DEVICES = 2
SHARES = (1_000_000, 500_000, 300_000)


@dataclass
class Board:
    """One device as the world knows it, and the energy that the rule lets anybody believe."""

    health: Health = Health.HEALTHY
    counter_mj: int = 0
    believed_mj: int = 0
    gaps: int = 0
    base: tuple[int, int] | None = None  # (value, monotonic time) of the last good answer

    def answer(self, mono_us: int) -> Reading:
        if self.health is Health.GONE:
            raise DeviceLost(15, "lost")
        if self.health is Health.BLIND:
            raise MonitorBlind(999, "unknown")
        if self.base is not None:
            delta_mj, elapsed_us = self.counter_mj - self.base[0], mono_us - self.base[1]
            if delta_mj >= 0 and delta_mj * 1_000_000 <= POWER_LIMIT_MW * elapsed_us * 12 // 10:
                self.believed_mj += delta_mj
            else:
                self.gaps += 1
        self.base = (self.counter_mj, mono_us)
        return Reading(
            energy_mj=self.counter_mj,
            power_limit_mw=POWER_LIMIT_MW,
            busy_ppm=self.counter_mj % 1_000_001,
        )


class Boards(SimulatedGpus):
    """Devices that answer what a test makes of them."""

    boards: Sequence[Board] = ()

    def read(self, device_id: str) -> Reading:
        return self.boards[self._index[device_id]].answer(self._clock.now().mono_us)


@dataclass(frozen=True)
class Happening:
    """What happens in a stretch of time before both devices are polled again."""

    after_us: int
    health: tuple[Health, Health]
    energy_mj: tuple[int, int]
    what: str


@dataclass(frozen=True)
class Lease:
    """A window known from the start, in ticks of the schedule's time."""

    device: int
    from_us: int
    len_us: int
    share_ppm: int


HARMLESS = ["nothing", "nothing", "nothing", "backwards", "absurd", "crash", "suspend", "silence"]
lengths = st.sampled_from([10_000_000, 10_000_000, 12_345_678, 25_000_000, 25_000_001, 400_000_000])


def happenings(what: list[str]) -> st.SearchStrategy[list[Happening]]:
    some = st.sampled_from([Health.HEALTHY, Health.HEALTHY, Health.GONE, Health.BLIND])
    energy = st.integers(0, 20_000_000)
    one = st.builds(
        Happening,
        after_us=lengths,
        health=st.tuples(some, some),
        energy_mj=st.tuples(energy, energy),
        what=st.sampled_from(what),
    )
    return st.lists(one, min_size=1, max_size=25)


leases = st.lists(
    st.builds(
        Lease,
        device=st.integers(0, DEVICES - 1),
        from_us=st.integers(0, 20 * MINUTE_US),
        len_us=st.integers(1, 90 * MINUTE_US),
        share_ppm=st.sampled_from(SHARES),
    ),
    max_size=3,
)


@dataclass
class Run:
    """One life of a node under a schedule."""

    folder: Path
    schedule: list[Happening]
    leases: list[Lease]
    interval_us: int = MINUTE_US
    faults: tuple[str, ...] = ()
    boards: list[Board] = field(default_factory=lambda: [Board() for _ in range(DEVICES)])

    def __post_init__(self) -> None:
        self.scene = Scene(
            self.folder, count=DEVICES, backend=self.make, interval_us=self.interval_us
        )
        for number, lease in enumerate(self.leases, 1):
            begin_us = WALL_US + lease.from_us
            self.scene.lease(number, lease.device, begin_us, begin_us + lease.len_us)
            self.scene.server.windows[-1]["share_ppm"] = lease.share_ppm
        self.scene.reporter.flush()
        self.scene.wire.faults = list(self.faults)
        for one in self.schedule:
            self.happen(one)
        self.until_us = self.scene.clock.now().mono_us
        for board in self.boards:
            board.health = Health.HEALTHY
        self.scene.finish()

    def make(self, clock: SteppedClock, count: int, outages: tuple[Outage, ...]) -> Boards:
        found = Boards(clock, count=count, outages=outages)
        found.boards = self.boards
        return found

    def happen(self, one: Happening) -> None:
        scene = self.scene
        jump_us = {"a day ahead": DAY_US, "a day back": -DAY_US}.get(one.what, 0)
        suspended_us = 1_800_000_000 if one.what == "suspend" else 0
        scene.clock.advance(one.after_us, suspended_us=suspended_us, wall_step_us=jump_us)
        for board, health, energy_mj in zip(self.boards, one.health, one.energy_mj, strict=True):
            board.health = health
            board.counter_mj += energy_mj
            if one.what == "backwards":
                board.counter_mj //= 2
            elif one.what == "absurd":
                board.counter_mj += 10**12
        if one.what == "crash":
            for board in self.boards:
                board.base = None
            scene.crash()
        elif one.what == "silence":
            scene.reporter.mark_silent()
        else:
            scene.reporter.poll()
        scene.reporter.turn()

    # --- what it came to ---------------------------------------------------------------------

    def energy(self, device: int) -> tuple[int, int]:
        own = self.scene.gpus.inventory()[device].id
        rows = {
            row.mono_start_us: row
            for device_id, _, row in self.scene.server.rows()
            if device_id == own
        }
        return (
            sum(row.energy_mj or 0 for row in rows.values()),
            sum(row.energy_gaps for row in rows.values()),
        )

    def credited(self, number: int) -> int:
        """Share times microseconds that accrual counts for one lease."""
        lease, lease_id = self.leases[number - 1], f"lease_{number:032d}"
        begin_us = WALL_US + lease.from_us
        own = self.scene.gpus.inventory()[lease.device].id
        window = accrual.Window(begin_us, begin_us + lease.len_us, (own,), lease.share_ppm)
        stored = self.scene.server.stored()
        found = [row for each in stored for row in lease_rows(each).rows.get(lease_id, ())]
        counted = accrual.count(found, window, {})
        available_us = sum(row.available_us for row in found)
        assert counted.ppm_us <= available_us * lease.share_ppm
        return int(counted.ppm_us)

    def totals(self) -> dict[str, object]:
        """Everything that must not depend on batching, order or repetition."""
        per_row: dict[tuple[str, str | None], list[int]] = {}
        for device, lease, row in self.scene.server.rows():
            sums = per_row.setdefault((device, lease), [0] * 6)
            for index, value in enumerate(
                (
                    row.available_us,
                    row.unavailable_us,
                    row.unknown_us,
                    row.suspended_us,
                    row.busy_us or 0,
                    row.samples,
                )
            ):
                sums[index] += value
        credited = [self.credited(number) for number in range(1, len(self.leases) + 1)]
        whole = all(lease.share_ppm == 1_000_000 for lease in self.leases)
        energy = [self.energy(device) for device in range(DEVICES)] if whole else []
        return {"rows": per_row, "credited": credited, "energy": energy}


def overlap(some: Sequence[Lease]) -> bool:
    spans = sorted((one.device, one.from_us, one.from_us + one.len_us) for one in some)
    return any(a[0] == b[0] and a[2] > b[1] for a, b in pairwise(spans))


@examples(60)
@given(happenings([*HARMLESS, "a day ahead", "a day back"]), leases)
def test_time_and_energy_are_conserved_over_any_schedule_of_faults(
    schedule: list[Happening], held: list[Lease]
) -> None:
    held = [] if overlap(held) else held
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder), schedule, held)
        elapsed_us = run.scene.clock.now().mono_us - BEGIN_US
        leased_us = dict.fromkeys(range(DEVICES), 0)
        for number, lease in enumerate(held, 1):
            leased_us[lease.device] += run.credited(number) // lease.share_ppm
        for device, board in enumerate(run.boards):
            buckets = run.scene.device_us(device)
            assert min(buckets) >= 0
            assert sum(buckets) == elapsed_us
            assert leased_us[device] <= buckets[0]
            if all(lease.share_ppm == 1_000_000 for lease in held):
                assert run.energy(device) == (board.believed_mj, board.gaps)
        for _, _, row in run.scene.server.rows():
            assert (row.energy_mj or 0) >= 0
            assert (row.busy_us or 0) <= row.available_us
        assert run.scene.server.alerts == []
        run.scene.reporter.close()


@examples(25)
@given(
    happenings(HARMLESS),
    leases,
    st.lists(
        st.sampled_from(["twice", "old_again", "lost_request", "lost_answer", "reordered", "tail"]),
        max_size=6,
    ),
)
def test_totals_do_not_depend_on_batching_order_or_repetition(
    schedule: list[Happening], held: list[Lease], faults: list[str]
) -> None:
    held = [] if overlap(held) else held
    found = []
    with tempfile.TemporaryDirectory() as name:
        for number, (interval_us, wire) in enumerate(
            [(MINUTE_US, ()), (17 * MINUTE_US, ()), (MINUTE_US, tuple(faults))]
        ):
            folder = Path(name) / str(number)
            folder.mkdir()
            run = Run(folder, schedule, held, interval_us, wire)
            found.append(run.totals())
            run.scene.reporter.close()
    assert found[0] == found[1]
    assert found[0]["credited"] == found[2]["credited"]


def run(seed: int) -> None:
    """85 schedules that the seed draws."""
    run_properties(
        seed,
        test_time_and_energy_are_conserved_over_any_schedule_of_faults,
        test_totals_do_not_depend_on_batching_order_or_repetition,
    )
