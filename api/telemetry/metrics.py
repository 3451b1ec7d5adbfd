"""The numbers that a process counts: requests by route, reports by outcome, what waits.

    a counter of the service == the sum over its processes, those that ended included
    a gauge of the service == the sum over its processes that live

With one worker the numbers lie in memory. With more, each worker writes them into a file of a
folder that all share (`PROMETHEUS_MULTIPROC_DIR`, set by `serve` before a worker starts), and
whichever worker answers `/metrics` adds them up.
"""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    multiprocess,
)

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0)

OURS = CollectorRegistry()
ProcessCollector(registry=OURS)

REQUESTS = Histogram(
    "tallystick_http_request_seconds",
    "Seconds from a request's head to its answer's last byte",
    ("method", "route", "status"),
    buckets=SECONDS,
    registry=OURS,
)
REPORTS = Counter(
    "tallystick_usage_reports",
    "Usage reports that nodes sent, by what became of them",
    ("outcome",),
    registry=OURS,
)
REPORTS_WAITING = Gauge(
    "tallystick_usage_waiting",
    "Reports waiting for their commit",
    multiprocess_mode="livesum",
    registry=OURS,
)
COMMITS = Counter("tallystick_usage_commits", "Group commits of usage reports", registry=OURS)
READERS_WAITING = Gauge(
    "tallystick_database_waiting",
    "Calls waiting for a database connection",
    multiprocess_mode="livesum",
    registry=OURS,
)

TURNS_WAITING = Gauge(
    "tallystick_requests_waiting",
    "Requests waiting for their caller's turn",
    multiprocess_mode="livesum",
    registry=OURS,
)
TURN_SECONDS = Histogram(
    "tallystick_requests_turn_seconds",
    "Seconds that a request waited whose turn did not come at once",
    buckets=SECONDS,
    registry=OURS,
)
TURNED_AWAY = Counter(
    "tallystick_requests_turned_away",
    "Requests that were not begun: their line was full, they waited too long, or the client left",
    ("why",),
    registry=OURS,
)

_GAUGE_FILE = re.compile(r"gauge_live[a-z]*_([0-9]+)\.db")


def registry() -> CollectorRegistry:
    """A registry with the numbers of the whole service; more may be registered in it."""
    shared = os.environ.get(SHARED_FOLDER)
    found = CollectorRegistry()
    if shared is None:
        found.register(OURS)
    else:
        forget_the_dead(Path(shared))
        multiprocess.MultiProcessCollector(found, path=shared)  # type: ignore[no-untyped-call]
    return found


def forget_the_dead(folder: Path) -> None:
    """Drop the gauges of processes that ended; their counters stay counted."""
    for file in folder.glob("gauge_live*_*.db"):
        match = _GAUGE_FILE.fullmatch(file.name)
        if match is not None and not Path(f"/proc/{match[1]}").exists():
            file.unlink(missing_ok=True)


class Commits(Protocol):
    """What the usage log counts by itself."""

    @property
    def transactions(self) -> int: ...

    @property
    def waiting(self) -> int: ...


class Pool(Protocol):
    """What a pool of connections counts by itself."""

    def get_stats(self) -> dict[str, int]: ...


_copying = threading.Lock()
_copied: WeakKeyDictionary[Commits, int] = WeakKeyDictionary()


def copy(commits: Commits, pool: Pool) -> None:
    """Bring the numbers that others count up to now; called by every process again and again."""
    with _copying:
        now = commits.transactions
        COMMITS.inc(now - _copied.get(commits, 0))
        _copied[commits] = now
    REPORTS_WAITING.set(commits.waiting)
    READERS_WAITING.set(pool.get_stats().get("requests_waiting", 0))
