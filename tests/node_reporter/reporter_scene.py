"""A node on a stepped clock with its disk, and the server at the other end of a wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from nacl.signing import SigningKey

from domain.metering import counting as accrual
from ledger.log.report_rows import lease_rows
from node_reporter.agent.agent import Reporter
from node_reporter.clock import Moment, SteppedClock
from node_reporter.gpus.simulated import Outage, SimulatedGpus
from node_reporter.identity import public_key
from tests.node_reporter.model_server import NODE, NODE_KEY, ModelServer, Wire

WALL_US = 1_795_161_600_000_000
"""A full UTC hour."""
BEGIN_US = 10**9
TICK_US = 10_000_000
MINUTE_US = 60_000_000
DAY_US = 86_400_000_000
KEY = SigningKey(b"k" * 32)


class TrueClock:
    """The server's clock: right, whatever is done to the node's wall clock."""

    boot_id = "00000000-0000-4000-8000-0000000000ff"

    def __init__(self, clock: SteppedClock) -> None:
        self._wall_us = clock.now().wall_us
        self.follow(clock)

    def follow(self, clock: SteppedClock) -> None:
        """Go on from here with the time of another boot."""
        self._clock, self.begin_us = clock, clock.now().boot_us

    def now(self) -> Moment:
        passed_us = self._clock.now().boot_us - self.begin_us
        return Moment(passed_us, passed_us, self._wall_us + passed_us)

    def pass_time(self, us: int) -> None:
        """Time in which the node is switched off."""
        self._wall_us += us


def least(low: int, high: int) -> int:
    """Jitter without chance: always the shortest wait."""
    del high
    return low


def simulated(clock: SteppedClock, count: int, outages: tuple[Outage, ...]) -> SimulatedGpus:
    return SimulatedGpus(clock, count=count, outages=outages)


@dataclass
class Scene:
    """A node, its disk, its clock, and the server at the other end of a wire."""

    folder: Path
    count: int = 1
    outages: tuple[Outage, ...] = ()
    shared: Wire | None = None
    draw: Callable[[int, int], int] = least
    tick_us: int = TICK_US
    interval_us: int = MINUTE_US
    backend: Callable[[SteppedClock, int, tuple[Outage, ...]], SimulatedGpus] = simulated
    said: list[str] = field(default_factory=list)
    key: SigningKey = KEY
    node_key: str = NODE_KEY
    clocks: type[SteppedClock] = SteppedClock

    def __post_init__(self) -> None:
        self.clock = self.clocks(wall_us=WALL_US, mono_us=BEGIN_US)
        self.true_clock = TrueClock(self.clock)
        server = ModelServer(public_key=public_key(self.key), clock=self.true_clock)
        self.wire = self.shared or Wire(server)
        self.server = self.wire.server
        self.start()

    def start(self) -> None:
        self.gpus = self.backend(self.clock, self.count, self.outages)
        self.reporter = Reporter(
            NODE,
            self.key,
            self.gpus,
            self.clock,
            self.folder / "spool.db",
            self.wire,
            node_key=self.node_key,
            tick_us=self.tick_us,
            interval_us=self.interval_us,
            tell=self.said.append,
            draw=self.draw,
            keep_key=self.keep_key,
            used_folder=self.folder / "used",
        )
        self.reporter.poll()

    def keep_key(self, node_key: str) -> None:
        self.node_key = node_key

    def run(self, minutes: int, each: Callable[[], None] = lambda: None) -> None:
        for _ in range(minutes * MINUTE_US // self.tick_us):
            self.clock.advance(self.tick_us)
            self.reporter.poll()
            self.reporter.turn()
            each()

    def crash(self) -> None:
        """The process is gone: nothing is flushed, the next one starts from the disk."""
        self.reporter.spool.close()
        self.start()

    def reboot(self, down_us: int, *, wall_step_us: int = 0) -> None:
        """Power off without warning, and on again after a while: new boot id, clocks from zero, and
        a wall clock that may have been set meanwhile."""
        self.reporter.spool.close()
        self.true_clock.pass_time(self.clock.now().boot_us - self.true_clock.begin_us + down_us)
        wall_us = self.clock.now().wall_us + down_us + wall_step_us
        boot_id = f"00000000-0000-4000-8000-{self.clock.now().mono_us:012d}"
        self.clock = SteppedClock(wall_us=wall_us, mono_us=30_000_000, boot_id=boot_id)
        self.true_clock.follow(self.clock)
        self.start()

    def finish(self) -> None:
        """A healthy wire until everything has arrived."""
        self.wire.faults, self.wire.down = [], False
        self.server.refuse_next.clear()
        for _ in range(30):
            self.run(1)
            self.reporter.flush()
            spool = self.reporter.spool
            if not spool.unsigned_count() and not spool.unacked(1, 1):
                return
        raise AssertionError(f"the reporter never caught up: {self.said[-3:]}")

    def credited_us(self, lease_id: str, opened_us: int, end_us: int) -> dict[str, int]:
        """What the server's own accrual counts for a lease, by device, of all that is stored."""
        own = [device.id for device in self.gpus.inventory()]
        window = accrual.Window(opened_us, end_us, tuple(own), 1_000_000)
        stored = self.server.stored()
        found = [row for each in stored for row in lease_rows(each).rows.get(lease_id, ())]
        counted = accrual.count(found, window, {})
        return {mark.device_id: int(mark.credited_us) for mark in counted.watermarks}

    def lease(self, number: int, device: int, from_us: int, until_us: int | None = None) -> str:
        lease_id = f"lease_{number:032d}"
        window = {
            "lease_id": lease_id,
            "device_id": self.gpus.inventory()[device].id,
            "share_ppm": 1_000_000,
            "mem_ppm": 1_000_000,
            "from_us": from_us,
        }
        self.server.windows.append(window if until_us is None else window | {"until_us": until_us})
        return lease_id

    def device_us(self, device: int = 0) -> tuple[int, int, int]:
        """(available, unavailable, unknown) of a device over everything the server holds."""
        own = self.gpus.inventory()[device].id
        rows = [row for device_id, _, row in self.server.rows() if device_id == own]
        assert all(a.mono_end_us == b.mono_start_us for a, b in pairwise(rows)), "rows adjoin"
        return (
            sum(row.available_us for row in rows),
            sum(row.unavailable_us for row in rows),
            sum(row.unknown_us for row in rows),
        )
