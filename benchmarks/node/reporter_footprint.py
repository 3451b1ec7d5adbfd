"""What the node reporter costs the machine it watches: 8 GPUs at 1 Hz, a report a minute.

    python -m benchmarks.node.reporter_footprint            two minutes of watching
    python -m benchmarks.node.reporter_footprint --short    twenty seconds
    python -m benchmarks.node.reporter_footprint --tiny     whether it runs at all

The whole program with its threads, spool (`synchronous=FULL`), signatures and HTTP client runs on
unmodified nvidia-ml-py. The driver library is the scripted one of the tests, in C: its calls cost
microseconds and a part of the processor time told here is its own. The server is the small one of
the tests, without TLS, in this process; its time is not counted. Every GPU is asked for all that
the reporter can use: energy, memory, GPM, fields, MIG mode.

Start to first signed report: from starting the process to the first report that the server has
checked and stored, with the interpreter's start and the handshake; the middle of several starts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import cpu
from benchmarks.size import Size, size_asked
from tests.node_reporter.conftest import SOURCE, FakeMachine
from tests.node_reporter.model_server import ModelServer, serve

GPUS = 8
WAIT_S = 30.0
ROOT = Path(__file__).parents[2]


class Numbers(NamedTuple):
    seconds: int
    starts: int


SIZES = {
    Size.FULL: Numbers(seconds=120, starts=5),
    Size.SHORT: Numbers(seconds=20, starts=5),
    Size.TINY: Numbers(seconds=2, starts=1),
}


def run(size: Size) -> dict[str, Any]:
    """Measure once: some starts, then a reporter that is watched for so many seconds."""
    seconds, count = SIZES[size]
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("no C compiler here, and the scripted driver is written in C")
    with tempfile.TemporaryDirectory() as folder:
        machine = _machine(Path(folder), compiler)
        starts = [_started(machine, Path(folder) / f"start-{n}") for n in range(count)]
        watched = _watched(machine, Path(folder) / "long", seconds)
    return {
        "conditions": {
            "gpus": GPUS,
            "hertz": 1,
            "report_every_s": 60,
            "tls": False,
            "driver": "scripted library in C",
            "server": "the tests' small server, over HTTP",
        },
        "start_to_first_report_ms": sorted(starts),
        **watched,
    }


def _machine(folder: Path, compiler: str) -> FakeMachine:
    library = folder / "lib" / "libnvidia-ml.so.1"
    library.parent.mkdir()
    flags = "-O2 -shared -fPIC -fvisibility=hidden -Wl,-soname,libnvidia-ml.so.1"
    subprocess.run(
        [compiler, *flags.split(), "-o", str(library), str(SOURCE), "-lpthread"], check=True
    )
    machine = FakeMachine(library=library, script=folder / "machine.txt")
    machine.gpus(GPUS)
    for gpu in range(GPUS):
        told = {"gpm": "60.5", "field.74": "0", "field.75": "0"}
        machine.values |= {f"gpu.{gpu}.{key}": value for key, value in told.items()}
    machine.write()
    return machine


@contextmanager
def _running(
    machine: FakeMachine, state: Path, interval_s: int
) -> Generator[tuple[subprocess.Popen[bytes], ModelServer, float], None, None]:
    """A joined reporter: its process, its server, and the moment it was started."""
    server = ModelServer()
    program = [sys.executable, "-m", "node_reporter"]
    environment = machine.environment()
    with serve(server) as url:
        joining = [*program, "join", url, "7Q4K9XWD", "--state", str(state)]
        subprocess.run(joining, cwd=ROOT, env=environment, check=True, capture_output=True)
        began = time.monotonic()
        node = subprocess.Popen(
            [*program, "run", "--state", str(state), "--interval", str(interval_s)],
            cwd=ROOT,
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield node, server, began
        finally:
            node.send_signal(signal.SIGTERM)
            node.wait(WAIT_S)


def _started(machine: FakeMachine, state: Path) -> int:
    """Milliseconds from the start of the process to its first stored report."""
    with _running(machine, state, 60) as (_, server, began):
        _until(lambda: server.seq >= 1)
        return round((time.monotonic() - began) * 1_000)


def _watched(machine: FakeMachine, state: Path, seconds: int) -> dict[str, Any]:
    with _running(machine, state, 60) as (node, server, _):
        _until(lambda: server.seq >= 1)
        before_s, began = cpu.of_process(node.pid), time.monotonic()
        time.sleep(seconds)
        used_s, passed_s = cpu.of_process(node.pid) - before_s, time.monotonic() - began
        resident, peak = _memory_kib(node.pid)
        threads = len(os.listdir(f"/proc/{node.pid}/task"))
    rows = [row for _, _, row in server.rows()]
    available_us, whole_us = sum(r.available_us for r in rows), sum(r.len_us for r in rows)
    assert whole_us > 0
    return {
        "watched_s": round(passed_s, 1),
        "cpu_ppm_of_a_core": round(used_s / passed_s * 1_000_000),
        "resident_kib": resident,
        "resident_peak_kib": peak,
        "threads": threads,
        "reports": server.seq,
        "available_ppm": available_us * 1_000_000 // whole_us,
    }


def _memory_kib(pid: int) -> tuple[int, int]:
    """Resident now, and at most since the start."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = [re.search(rf"^{name}:\s+([0-9]+) kB", status, re.MULTILINE) for name in _NAMES]
    assert all(found)
    now, peak = (int(one[1]) for one in found if one is not None)
    return now, peak


_NAMES = ("VmRSS", "VmHWM")


def _until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < deadline, "the reporter never reported"
        time.sleep(0.005)


if __name__ == "__main__":
    print(json.dumps(run(size_asked(__doc__)), indent=2))
