"""A reporter that was offline for a week: what waits on disk, and how fast it is caught up.

    python -m benchmarks.node.reporter_week            a week, 8 leased GPUs, one row a minute each
    python -m benchmarks.node.reporter_week --short    half a day
    python -m benchmarks.node.reporter_week --tiny     whether it runs at all

Real: the reporter with its spool (WAL, synchronous FULL), signatures and HTTP; the served API,
PostgreSQL with fsync. Simulated: the clock and the GPUs. It runs online for a day
first, so that the spool holds acknowledged reports too; `spool_with_14_days_kept` adds the other 13
days at what this day takes. In one run, in turn, on the same cores:

- ours: catching up, from unsigned rows to receipts, until nothing waits
- limit: the same requests again, which the server answers as duplicates
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from api.process.clock import SimulatedClock
from api.process.service import Service
from api.replay import demo
from api.replay.gentd26 import MeasuredReplay
from api.replay.openb import START_US
from api.replay.trace_gentd26 import Pod, Sample
from api.replay.trace_openb import TraceTask
from api.settings import Settings
from benchmarks.size import Size, size_options
from benchmarks.workplace import Server, workplace
from domain.metering import report
from ledger import migrate
from ledger.log.usage import StoredReport
from node_reporter.agent.agent import Reporter
from node_reporter.clock import SteppedClock
from node_reporter.gpus.simulated import SimulatedGpus
from node_reporter.reports.client import HttpTransport, Response, Unreachable

GPUS = 8
MINUTE_US = 60_000_000
DAY_MINUTES = 1_440
OTHER_DAYS_KEPT = 13
BYTES_MAX = 64 * 1024 * 1024
SECONDS_MAX = 60.0
BURST = Settings(data_dir=Path()).reports_burst
"""A server takes so many reports at once; more would come back at one a second."""


class Numbers(NamedTuple):
    """Minutes."""

    online: int
    offline: int


SIZES = {
    Size.FULL: Numbers(online=DAY_MINUTES, offline=7 * DAY_MINUTES),
    Size.SHORT: Numbers(online=60, offline=DAY_MINUTES // 2),
    Size.TINY: Numbers(online=3, offline=20),
}


class LeasedGpus(SimulatedGpus):
    """Simulated GPUs under the names that the market knows them by."""

    def __init__(self, clock: SteppedClock, device_ids: Sequence[str]) -> None:
        super().__init__(clock, count=len(device_ids))
        self._devices = tuple(
            replace(device, id=device_id, vendor="nvidia")
            for device, device_id in zip(self._devices, device_ids, strict=True)
        )
        self._index = {device_id: index for index, device_id in enumerate(device_ids)}


@dataclass
class Line:
    """The way to the server: it can be down, and remembers what was posted."""

    transport: HttpTransport
    is_down: bool = False
    posted: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self.is_down:
            raise Unreachable("no network")
        if method == "POST" and path.endswith("/usage") and body is not None:
            self.posted.append((path, headers, body))
        return self.transport.request(method, path, headers, body)


class Stage(MeasuredReplay):
    """One node with eight leased GPUs on a served market."""

    def make(self) -> tuple[Reporter, SteppedClock, Line]:
        self._found()
        self._service.node_keys.refresh(self._connection)
        node = next(iter(self._nodes.values()))
        for number in range(GPUS):
            task = TraceTask(f"job-{number}", 1, 1_000_000, (), 0, 40 * 86_400)
            assert self._lease(task, START_US) is not None
        clock = SteppedClock(wall_us=START_US)
        line = Line(HttpTransport(self._url))
        self._stack.callback(line.transport.close)
        reporter = Reporter(
            node.node_id,
            node.key,
            LeasedGpus(clock, node.device_ids),
            clock,
            self._folder / "spool.db",
            line,
            node_key=self._node_keys[node.node_id],
            tick_us=MINUTE_US,
            draw=lambda low, _high: low,
        )
        self._stack.callback(reporter.close)
        return reporter, clock, line


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Be offline and catch up; sizes, seconds and what the server holds afterwards."""
    with workplace(server) as (folder, made):
        conninfo = made.create_database("reporter_week")
        migrate.migrate(conninfo)
        return measure(conninfo, folder, *SIZES[size])


@dataclass(frozen=True, slots=True)
class _Week:
    """A reporter with its server; `pass_minutes` lets the time of both pass."""

    reporter: Reporter
    clock: SteppedClock
    line: Line
    service_clock: SimulatedClock
    connection: psycopg.Connection[Any]

    def pass_minutes(self, count: int) -> None:
        for _ in range(count):
            self.clock.advance(MINUTE_US)
            self.service_clock.move_to(self.clock.now().wall_us)
            self.reporter.poll()
            self.reporter.turn()


def _opened(conninfo: str, folder: Path, stack: ExitStack) -> _Week:
    settings = Settings(
        data_dir=folder,
        database_url=conninfo,
        spec_ttl_s=0,
        reports_per_second=100_000,
        reports_burst=100_000,  # a day passes in a minute
    )
    service_clock = SimulatedClock(START_US)
    service = stack.enter_context(Service.open(settings, clock=service_clock))
    url = stack.enter_context(demo.serving(service))
    connection = stack.enter_context(psycopg.connect(conninfo, autocommit=True))
    pods = [Pod(str(n), (Sample(0, 0), Sample(57, 0))) for n in range(GPUS)]
    stage = Stage(service, connection, pods, url, folder, stack, lambda _w, _d, _o: None)
    return _Week(*stage.make(), service_clock, connection)


def measure(conninfo: str, folder: Path, online: int, offline: int) -> dict[str, Any]:
    """So many minutes online, then offline, then caught up, on this empty migrated database."""
    with ExitStack() as stack:
        week = _opened(conninfo, folder, stack)
        reporter, line = week.reporter, week.line
        reporter.poll()
        reporter.turn()
        empty_bytes = _kept_bytes(folder)
        week.pass_minutes(online)
        kept_a_day = (_kept_bytes(folder) - empty_bytes) * DAY_MINUTES // online
        line.is_down = True
        line.posted.clear()
        week.pass_minutes(offline)
        spool_bytes, waiting = _spool_bytes(folder), reporter.spool.unsigned_count()
        line.is_down, before = False, reporter.spool.seq
        began_s, cpu_s = time.perf_counter(), time.process_time()
        _catch_up(reporter, week.clock)
        seconds, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
        reports = reporter.spool.seq - before
        limit_s = _again(line)
        metered = _metered(week.connection)
    lost_us = sum((online + offline) * MINUTE_US - metered[device] for device in sorted(metered))
    with_kept = spool_bytes + OTHER_DAYS_KEPT * kept_a_day
    nothing_lost = lost_us == 0 and len(metered) == GPUS
    caught_up = reports <= BURST and seconds < SECONDS_MAX
    return {
        "figure": "a week offline, 8 GPUs: nothing lost, spool <= 64 MiB, caught up in < 60 s",
        "conditions": {
            "gpus": GPUS,
            "minutes_online_before": online,
            "minutes_offline": offline,
            "rows_waiting": waiting,
            "cores": os.cpu_count(),
            "load_average": [round(each, 1) for each in os.getloadavg()],
        },
        "spool_bytes": spool_bytes,
        "kept_bytes_a_day": kept_a_day,
        "spool_with_14_days_kept": with_kept,
        "lost_us": lost_us,
        "devices": len(metered),
        "reports": reports,
        "requests": len(line.posted),
        "bytes_sent": sum(len(body) for _, _, body in line.posted),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_s, 2),
        "rows_per_second": round(waiting / seconds),
        "limit_rows_per_second": round(waiting / limit_s),
        "of_limit": round(limit_s / seconds, 3),
        "holds": nothing_lost and with_kept <= BYTES_MAX and caught_up,
    }


def _catch_up(reporter: Reporter, clock: SteppedClock) -> None:
    """Turns as the loop makes them, the clock moving on only over a wait that was asked for."""
    for _ in range(10_000):
        if reporter.delivery.due_us > clock.now().mono_us:
            clock.advance(reporter.delivery.due_us - clock.now().mono_us)
        reporter.turn()
        waits = reporter.spool.unsigned_count() + reporter.spool.waiting()[0]
        if reporter.delivery.answering and not waits:
            return
    raise AssertionError("it never caught up")


def _again(line: Line) -> float:
    began_s = time.perf_counter()
    for path, headers, body in tuple(line.posted):
        answer = line.transport.request("POST", path, headers, body)
        assert answer.status in (200, 429), answer.body
    return time.perf_counter() - began_s


def _spool_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("spool.db*"))


def _kept_bytes(folder: Path) -> int:
    """The database without its write-ahead log, which is as long as ever at any time."""
    with sqlite3.connect(folder / "spool.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return (folder / "spool.db").stat().st_size


def _metered(connection: psycopg.Connection[Any]) -> Counter[str]:
    """Time the server holds of each device, every row of a clean report once."""
    found: Counter[str] = Counter()
    query = "SELECT lane, position, node_id, node_seq, body, flags, recorded_us FROM usage_event"
    for each in connection.execute(query):
        stored = StoredReport(*each)
        assert not stored.flags, stored
        one = report.parse(stored.signed)
        for row in one.rows:
            assert row.lease is not None
            found[one.devices[row.device].id] += row.available_us
    return found


def table(result: dict[str, Any]) -> str:
    """The result for people."""
    return "\n".join(
        [
            result["figure"],
            json.dumps(result["conditions"]),
            f"  {result['of_limit']:6.1%} of limit  {result['rows_per_second']:>7,} rows/s,"
            f" {result['seconds']} s, {result['cpu_seconds']} s CPU of both,"
            f" {result['requests']} requests, {result['bytes_sent']:,} bytes sent",
            f"  spool {result['spool_bytes']:,} bytes, {result['spool_with_14_days_kept']:,} with"
            f" 14 days kept; lost {result['lost_us']} us; holds: {result['holds']}",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.node.reporter_week")
    size_options(parser)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = run(options.size)
    print(json.dumps(result) if options.json else table(result))


if __name__ == "__main__":
    main()
