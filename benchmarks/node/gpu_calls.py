"""What the calls of a driver cost and do, on one GPU: a part of `gpu_node.py`'s record.

    python -m benchmarks.node.gpu_calls GPU-...

How long one reading takes (p50, p99), how often the energy counter moves, and what a forked child
sees. No setting is changed. Source: design metering 15.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from node_reporter.gpus.nvml.backend import NvmlGpus
from node_reporter.gpus.seam import MonitorBlind

READS = 200
ENERGY_S = 1.5


def measured(uuid: str) -> dict[str, Any]:
    """Raises DeviceLost, MonitorBlind."""
    gpus = NvmlGpus()
    gpus.open()
    device = next(one for one in gpus.inventory() if one.id == uuid)
    took = sorted(_took_us(lambda: gpus.read(uuid)) for _ in range(READS))
    moved = _moved_us(gpus, uuid)
    periods = sorted(b - a for a, b in pairwise(moved))
    seen = _child_sees(gpus, uuid)
    gpus.close()
    return {
        "device": device.described(),
        "read_us": {"p50": took[READS // 2], "p99": took[READS * 99 // 100]},
        "energy_moves_every_us": periods[len(periods) // 2] if periods else None,
        "a_forked_child_sees": seen,
    }


def _took_us(call: Callable[[], Any]) -> int:
    began = time.monotonic_ns()
    call()
    return (time.monotonic_ns() - began) // 1_000


def _moved_us(gpus: NvmlGpus, uuid: str) -> list[int]:
    """When the energy counter was found to have moved."""
    moved, last, until = [], gpus.read(uuid).energy_mj, time.monotonic() + ENERGY_S
    while time.monotonic() < until:
        told = gpus.read(uuid).energy_mj
        if told != last:
            moved.append(time.monotonic_ns() // 1_000)
            last = told
    return moved


def _child_sees(gpus: NvmlGpus, uuid: str) -> str:
    child = os.fork()
    if child == 0:
        try:
            gpus.read(uuid)
        except MonitorBlind:
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return "nothing" if os.waitstatus_to_exitcode(status) == 3 else "a reading"


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1])))
