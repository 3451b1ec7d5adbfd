"""Replays measured duty cycles through the whole agent and the whole server.

Real: the node reporter with its meter, its spools on disk, signatures and delivery over HTTP; the
REST API, the door of the usage log, every domain rule, the market log with its books, accrual and
settlement. Simulated: the clock, and the devices, which answer what the trace says they answered.

Each pod is a lease of one GPU from its first sample to its last. A GPU without a pod answers that
it is idle; where a pod's sample is missing its GPU does not answer, and a step longer than 2.5
ticks is unknown. What the finished logs hold is compared with `trace_gentd26.counted`, which knows
the file and nothing else.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from api.door import auth
from api.metering.accrual import accrue
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.replay import demo
from api.replay import openb as replay
from api.replay.openb import PRICES, START_US, Progress, Replay
from api.replay.trace_gentd26 import SECOND_US, TICK_S, Counted, Pod, Sample, counted
from api.replay.trace_openb import TraceNode, TraceTask
from api.settings import Settings
from domain.fleet.node import JoinNode
from domain.frozen import replace
from domain.lease.lease import lease_stream
from domain.metering import report
from ledger.log.usage_reads import all_reports
from node_reporter.agent.agent import Reporter
from node_reporter.clock import SteppedClock
from node_reporter.gpus.seam import Device, Fault, MonitorBlind, Reading
from node_reporter.gpus.simulated import DRIVER
from node_reporter.meter import polling
from node_reporter.reports.client import HttpTransport

GPUS_PER_NODE = 8
MODEL = "V100M32"
"""The trace does not name its GPUs; this one has the memory that its pods use, and a price here."""
MEM_BYTES = 32_768 * 1_048_576
REPORT_EVERY_US = 900 * SECOND_US
ACCRUE_EVERY_US = 3_600 * SECOND_US


class MeasuredGpus:
    """The GPUs of one node: each answers what its pod's sample says, and 0 while it has none."""

    vendor = "trace"

    def __init__(self, device_ids: Sequence[str]) -> None:
        self._devices = {
            device_id: Device(
                id=device_id,
                name=MODEL,
                mem_bytes=MEM_BYTES,
                driver=DRIVER,
                busy_source="util",
                vendor="nvidia",
            )
            for device_id in device_ids
        }
        self.samples: dict[str, Sample] = {}

    def open(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing to release."""

    def inventory(self) -> Sequence[Device]:
        return tuple(self._devices.values())

    def look(self, board_id: str) -> Sequence[Device]:
        return (self._devices[board_id],)

    def read(self, device_id: str) -> Reading:
        if device_id not in self._devices:
            raise MonitorBlind(None, "no such device")
        sample = self.samples.get(device_id)
        return Reading(busy_ppm=0 if sample is None else sample.busy_ppm)

    def faults(self, timeout_s: float) -> Sequence[Fault]:
        del timeout_s
        return ()

    def attest(self, device_id: str, nonce: bytes) -> bytes | None:
        del device_id, nonce
        return None


@dataclass(slots=True)
class Machine:
    """One node with its real reporter. `running`: the pod of each device that has one."""

    reporter: Reporter
    gpus: MeasuredGpus
    clock: SteppedClock
    running: dict[str, Pod]

    def watch(self, at_s: int, sampled: dict[str, Sample]) -> None:
        """Poll every GPU that answers at this moment, then do what is due."""
        for device in self.gpus.inventory():
            pod = self.running.get(device.id)
            sample = None if pod is None else sampled.get(pod.name)
            if pod is not None and sample is None:
                continue
            if sample is None:
                self.gpus.samples.pop(device.id, None)
            else:
                self.gpus.samples[device.id] = sample
            self.reporter.see(
                polling.see(
                    self.gpus,
                    device.id,
                    self.clock,
                    driver_epoch=self.reporter.driver_epoch,
                    tick_us=TICK_S * SECOND_US,
                )
            )
            if pod is not None and pod.until_s == at_s:
                del self.running[device.id]
        self.reporter.mark_silent()
        self.reporter.turn()


class MeasuredReplay(Replay):
    """One run on a served market."""

    def __init__(
        self,
        service: Service,
        connection: psycopg.Connection[Any],
        pods: Sequence[Pod],
        url: str,
        folder: Path,
        stack: ExitStack,
        progress: Progress,
    ) -> None:
        count = -(-len(pods) // GPUS_PER_NODE)
        nodes = [TraceNode(f"gentd26-{n}", GPUS_PER_NODE, MODEL) for n in range(count)]
        super().__init__(service.ledger, connection, nodes, (), progress)
        self._service, self._pods, self._url = service, pods, url
        self._folder, self._stack = folder, stack
        self._node_keys: dict[str, str] = {}
        self._machines: dict[str, Machine] = {}

    def replay(self) -> None:
        """Found the market, let every sample happen at its time, settle every lease."""
        self._found()
        self._service.node_keys.refresh(self._connection)
        for node_id in self._nodes:
            self._machines[node_id] = self._machine(node_id)
        at: dict[int, dict[str, Sample]] = {}
        for pod in self._pods:
            for sample in pod.samples:
                at.setdefault(sample.at_s, {})[pod.name] = sample
        accrued_us = START_US
        for done, at_s in enumerate(sorted(at), 1):
            now_us = self._pass_to(at_s)
            for pod in self._pods:
                if pod.from_s == at_s:
                    self._begin(pod, now_us)
            for machine in self._machines.values():
                machine.watch(at_s, at[at_s])
            for running in self._open.values():
                if running.end_us == now_us:
                    self._close(running.lease_id, now_us)
            if now_us >= accrued_us + ACCRUE_EVERY_US:
                self._settle_due(now_us)
                accrued_us = now_us
            self._progress("samples taken", done, len(at))
        self._finish(max(at))

    def _join(self, node: TraceNode, at_us: int) -> Iterator[Any]:
        for command in super()._join(node, at_us):
            if not isinstance(command, JoinNode):
                yield command
                continue
            secret = hashlib.sha256(b"tallystick/replay/bearer/" + node.name.encode()).digest()
            bearer = auth.node_key(secret)
            self._node_keys[command.node_id] = bearer
            yield replace(command, token_sha256=hashlib.sha256(bearer.encode()).hexdigest())

    def _machine(self, node_id: str) -> Machine:
        node = self._nodes[node_id]
        clock, gpus = SteppedClock(wall_us=START_US), MeasuredGpus(node.device_ids)
        transport = HttpTransport(self._url)
        self._stack.callback(transport.close)
        reporter = Reporter(
            node_id,
            node.key,
            gpus,
            clock,
            self._folder / f"{node_id}.db",
            transport,
            node_key=self._node_keys[node_id],
            tick_us=TICK_S * SECOND_US,
            interval_us=REPORT_EVERY_US,
            draw=lambda low, _high: low,
        )
        self._stack.callback(reporter.close)
        return Machine(reporter, gpus, clock, {})

    def _pass_to(self, at_s: int) -> int:
        now_us = START_US + at_s * SECOND_US
        clock = self._service.clock
        assert isinstance(clock, SimulatedClock)
        clock.move_to(now_us)
        for machine in self._machines.values():
            machine.clock.advance_to(now_us)
        return now_us

    def _begin(self, pod: Pod, now_us: int) -> None:
        task = TraceTask(pod.name, 1, 1_000_000, (), pod.from_s, pod.until_s - pod.from_s)
        running = self._lease(task, now_us)
        assert running is not None, "there is a GPU for every pod"
        self._machines[running.node_id].running[running.device_ids[0]] = pod

    def _settle_due(self, now_us: int) -> None:
        """Record what the reports are worth so far; leases that are settled are done."""
        accrue(self._ledger, self._connection, tuple(self._open), now_us)
        for lease_id, running in tuple(self._open.items()):
            if self._ledger.market.state_of(lease_stream(lease_id)).is_over:
                del self._open[lease_id]
                del self._nodes[running.node_id].leases[lease_id]
                self._settled += 1

    def _finish(self, last_s: int) -> None:
        """Stop the nodes and settle what their last reports complete."""
        for machine in self._machines.values():
            machine.reporter.stop()
            spool = machine.reporter.spool
            assert (spool.unsigned_count(), spool.waiting()) == (0, (0, 0))
        self._settle_due(START_US + last_s * SECOND_US)
        assert not self._open, "every lease is settled"


# --- the independent pass --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reported:
    """What the stored reports hold under a lease, added up row by row."""

    reports: int
    rows: int
    samples: int
    elapsed_us: int
    available_us: int
    unknown_us: int
    busy_us: int
    flagged: int


def reported(connection: psycopg.Connection[Any]) -> Reported:
    """Read every stored report once more with the strict parser and add up the leased rows."""
    reports = rows = samples = elapsed_us = available_us = unknown_us = busy_us = flagged = 0
    for stored in all_reports(connection):
        reports += 1
        flagged += bool(stored.flags)
        for row in report.parse(stored.signed).rows:
            if row.lease is None:
                continue
            rows += 1
            samples += row.samples
            elapsed_us += row.len_us
            available_us += row.available_us
            unknown_us += row.unknown_us
            busy_us += row.busy_us or 0
    return Reported(reports, rows, samples, elapsed_us, available_us, unknown_us, busy_us, flagged)


def replay_gentd26(
    conninfo: str, pods: Sequence[Pod], progress: Progress = lambda _what, _done, _of: None
) -> dict[str, Any]:
    """Replay the trace and count it again; the document of `tallystick trace replay --json`."""
    started = time.monotonic()
    wanted = counted(pods, PRICES[MODEL])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tallystick-")))
        settings = Settings(
            data_dir=folder,
            database_url=conninfo,
            spec_ttl_s=0,
            requests_per_second=100_000,
            requests_burst=100_000,
            reports_per_second=100_000,
            reports_burst=100_000,
        )
        service = stack.enter_context(Service.open(settings, clock=SimulatedClock(START_US)))
        url = stack.enter_context(demo.serving(service))
        connection = stack.enter_context(psycopg.connect(conninfo, autocommit=True))
        MeasuredReplay(service, connection, pods, url, folder, stack, progress).replay()
        found, told = replay.recount(connection), reported(connection)
        balanced = service.ledger.books.books_balanced()
    return {
        "pods": len(pods),
        "leases_settled": found.leases_settled,
        **_compared(wanted, told, found),
        "reports": told.reports,
        "rows": told.rows,
        "reports_flagged": told.flagged,
        "providers_units": str(found.providers_units),
        "platform_units": str(found.platform_units),
        "double_bookings": found.double_bookings,
        "books_balanced": balanced,
        "seconds": round(time.monotonic() - started, 1),
    }


def _compared(wanted: Counted, told: Reported, found: replay.Recount) -> dict[str, Any]:
    """Each total by the file, by the signed reports and by the settled leases; whether they agree.

    A pod's first sample ends no step, so one for each pod is not in the rows.
    """
    by_file = {
        "elapsed_us": wanted.elapsed_us,
        "available_us": wanted.available_us,
        "unknown_us": wanted.unknown_us,
        "busy_us": wanted.busy_us,
        "samples": wanted.samples,
    }
    by_reports = {
        "elapsed_us": told.elapsed_us,
        "available_us": told.available_us,
        "unknown_us": told.unknown_us,
        "busy_us": told.busy_us,
        "samples": told.samples + found.leases_settled,
    }
    charged = found.charged_units == wanted.charge_units
    metered = found.gpu_microseconds_metered == wanted.available_us
    return {
        "equal": by_file == by_reports and charged and metered,
        **{f"{name}_by_file": str(value) for name, value in by_file.items()},
        **{f"{name}_by_reports": str(value) for name, value in by_reports.items()},
        "gpu_microseconds_metered": str(found.gpu_microseconds_metered),
        "charged_units_by_file": str(wanted.charge_units),
        "charged_units": str(found.charged_units),
    }
