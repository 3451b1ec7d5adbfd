"""The machine that the rates belong to, and how much of it others use."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.workplace import workplace

SYNCS = 300
BUSY_PART = 0.1
"""A machine is busy when others use more than so much of all its cores."""
_BUSY = (0, 1, 2, 5, 6, 7)
"""Of /proc/stat: user, nice, system, both kinds of interrupts, and what other machines took."""
_STOLEN = 7


def machine() -> dict[str, Any]:
    """What the rates belong to: cores, memory, Python, PostgreSQL, and how fast a sync is."""
    with workplace(None) as (folder, server), psycopg.connect(server.uri) as connection:
        syncs = _syncs_per_second(folder / "sync")
        postgres = {
            name: _setting(connection, name)
            for name in (
                "server_version",
                "fsync",
                "synchronous_commit",
                "full_page_writes",
                "shared_buffers",
            )
        }
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "system": platform.system(),
        "python": platform.python_version(),
        "postgres": postgres,
        "fdatasync_per_second": syncs,
        "load_average_before": [round(load, 2) for load in os.getloadavg()],
    }


def _setting(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _syncs_per_second(path: Path) -> int:
    """8 kB written and synced, as a commit does."""
    page = bytes(8_192)
    with path.open("wb", buffering=0) as file:
        file.write(page)
        began = time.perf_counter()
        for _ in range(SYNCS):
            file.seek(0)
            file.write(page)
            os.fdatasync(file.fileno())
        return round(SYNCS / (time.perf_counter() - began))


# --- the others -------------------------------------------------------------------------------


def others(seconds: float) -> dict[str, Any]:
    """What the machine does while this process waits so long and nothing of ours runs."""
    before, began = _ticks(), time.perf_counter()
    time.sleep(seconds)
    cores = _cores(_BUSY, before, time.perf_counter() - began)
    return {"load_average": round(os.getloadavg()[0], 2), "cores_of_others": cores}


class Stolen:
    """How many cores other machines on the same processor took since this began."""

    def __init__(self) -> None:
        self._before, self._began = _ticks(), time.perf_counter()

    def cores(self) -> float:
        return _cores((_STOLEN,), self._before, time.perf_counter() - self._began)


def is_busy(before: dict[str, Any], after: dict[str, Any], stolen: float) -> bool:
    """Whether what was measured between them says less: others were at work."""
    most: float = max(before["cores_of_others"], after["cores_of_others"], stolen)
    return most > BUSY_PART * (os.cpu_count() or 1)


def _cores(places: tuple[int, ...], before: list[int], seconds: float) -> float:
    spent = sum(_ticks()[place] - before[place] for place in places)
    return round(spent / os.sysconf("SC_CLK_TCK") / seconds, 2)


def _ticks() -> list[int]:
    """Ticks of all cores together, by what they did."""
    first = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
    return [int(number) for number in first.split()[1:]]
