"""One backend in a process of its own: a call per line in, its answer per line out.

    forks.Forked("tests.node_reporter.backend_probe", environment, nvml|amd|intel|apple|seats|sim)

A driver library is loaded once per process and found through the environment, so every machine a
test makes up needs a process. `threads` answers how many the operating system counts.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import sys
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from node_reporter.clock import Moment
from node_reporter.gpus.seam import Backend, DeviceLost, Health, MonitorBlind
from node_reporter.gpus.seats import LicenceSeats
from node_reporter.gpus.simulated import Outage, SimulatedGpus

LICENCE = "lic_bolt"
SECOND_US = 1_000_000
LEVEL_ZERO = "/usr/lib/x86_64-linux-gnu/libze_loader.so.1"
"""Where pyzes looks, and nowhere else."""
OUTAGES = (
    Outage(index=0, from_us=100 * SECOND_US, until_us=200 * SECOND_US),
    Outage(
        index=0, from_us=300 * SECOND_US, until_us=400 * SECOND_US, health=Health.BLIND, code=999
    ),
)


class ToldClock:
    """The time that a file tells."""

    boot_id = "00000000-0000-4000-8000-000000000000"

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> Moment:
        us = int(self._path.read_text())
        return Moment(us, us, us)


def backend(kind: str) -> Backend:
    if kind == "sim":
        return SimulatedGpus(ToldClock(Path(os.environ["TOLD_CLOCK"])), count=2, outages=OUTAGES)
    if kind == "seats":
        check = ("sh", os.environ["SEATS_CHECK"])
        seconds = itertools.count()
        return LicenceSeats(
            LICENCE, 2, model="Bolt", maker="thirdai", check=check, now_s=lambda: next(seconds)
        )
    if kind == "intel":
        _lead_level_zero_to(os.environ["FAKE_ZE_LIBRARY"])
    from node_reporter.gpus import backends

    return backends.of_hardware(kind)


def _lead_level_zero_to(library: str) -> None:
    opened = ctypes.CDLL

    def lead(name: Any, *more: Any, **others: Any) -> ctypes.CDLL:
        return opened(library if name == LEVEL_ZERO else name, *more, **others)

    ctypes.CDLL = lead  # type: ignore[assignment,misc]


def answered(gpus: Backend, name: str, arguments: list[Any]) -> Any:
    if name == "threads":
        return len(os.listdir("/proc/self/task"))
    if name == "attest":
        arguments = [arguments[0], bytes.fromhex(arguments[1])]
    try:
        answer = getattr(gpus, name)(*arguments)
    except DeviceLost as error:
        return {"lost": error.code, "why": str(error)}
    except MonitorBlind as error:
        return {"blind": error.code, "restart": error.restart, "why": str(error)}
    if isinstance(answer, bytes):
        return answer.hex()
    if isinstance(answer, frozenset):
        return sorted(answer)
    if isinstance(answer, (list, tuple)):
        return [asdict(item) for item in answer]
    return asdict(answer) if is_dataclass(answer) and not isinstance(answer, type) else answer


def main() -> None:
    gpus = backend(sys.argv[1])
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        sys.stdout.write(json.dumps(answered(gpus, name, arguments)) + "\n")
        sys.stdout.flush()
