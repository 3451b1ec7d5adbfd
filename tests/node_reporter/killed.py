"""A reporter that kills itself with signal 9 before a given statement of its spool.

    python -m tests.node_reporter.killed SPOOL URL RUN KILL_AT

Run number RUN begins where the clock of the one before ended. Each line of output is the monotonic
time up to which everything is on disk, as `record` returned it, or the number of statements at the
end. KILL_AT 0 never kills.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

from nacl.signing import SigningKey

from node_reporter.agent.agent import Reporter
from node_reporter.clock import SteppedClock
from node_reporter.gpus.simulated import SimulatedGpus
from node_reporter.reports.client import HttpTransport
from tests.node_reporter.model_server import NODE, NODE_KEY
from tests.node_reporter.reporter_scene import BEGIN_US, KEY, WALL_US, least

RUN_US = 600_000_000
TICK_US = 5_000_000
TICKS = 8


def trace(kill_at: int) -> list[int]:
    """Count the statements of every connection opened from now on, and die before one of them."""
    seen = [0]

    def before(_statement: str) -> None:
        seen[0] += 1
        if seen[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(before)
        return connection

    sqlite3.connect = traced  # type: ignore[assignment]
    return seen


def live(
    spool: str,
    url: str,
    run: int,
    tell: Callable[[int], None],
    *,
    key: SigningKey = KEY,
    node_key: str = NODE_KEY,
) -> None:
    """One run from start to stop; `tell` hears up to which time everything is on disk."""
    clock = SteppedClock(wall_us=WALL_US + run * RUN_US, mono_us=BEGIN_US + run * RUN_US)
    transport = HttpTransport(url)
    reporter = Reporter(
        NODE,
        key,
        SimulatedGpus(clock),
        clock,
        spool,
        transport,
        node_key=node_key,
        tick_us=TICK_US,
        interval_us=20_000_000,
        draw=least,
    )
    reporter.spool.cap_bytes = 1_200  # so small that rows are merged
    reporter.poll()
    for _ in range(TICKS):
        clock.advance(TICK_US)
        reporter.poll()
        reporter.turn()
        told_us = max(end.mono_end_us for end in reporter.spool.ends(clock.boot_id).values())
        tell(told_us)
    reporter.stop()
    reporter.close()
    transport.close()
    tell(clock.now().mono_us)


def main(spool: str, url: str, run: int, kill_at: int) -> None:
    seen = trace(kill_at)

    def tell(told_us: int) -> None:
        sys.stdout.write(f"{told_us}\n")
        sys.stdout.flush()

    live(spool, url, run, tell)
    sys.stdout.write(f"statements {seen[0]}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
