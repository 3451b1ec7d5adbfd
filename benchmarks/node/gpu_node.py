"""The node reporter on a real NVIDIA GPU under a known load, against an independent measurement.

    make test-gpu                               half a minute of load on the first GPU
    python -m benchmarks.node.gpu_node --out FILE    and keep the record

The whole program meters the GPU while `gpu_load.py` runs kernels of a known length on it. Compared
with what it signed:

    time      available + unavailable + unknown == the time it ran;  all of it available
    busy      busy_us beside the time the kernels ran by CUDA's own events
    energy    energy_mj beside power x time, from `nvidia-smi` ten times a second

No setting of the device is changed. The server is the small one of the tests. Without a GPU it says
what it needs and ends with status 2. What it found belongs into docs/gpu-runs.md. Source: design
metering 15.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import cpu
from benchmarks.node.gpu_load import Kernel
from domain.metering import report
from tests.node_reporter.model_server import ModelServer, serve

ROOT = Path(__file__).parents[2]
PPM = 1_000_000
WAIT_S = 60.0
AVAILABLE_PPM_MIN = 990_000
BUSY_PPM, ENERGY_PPM = (850_000, 1_150_000), (800_000, 1_250_000)
"""Metered beside measured. Boards sample their power for a part of the time only, so the second
is wide; what was found is told whatever it is.
"""
NEEDS = """this needs a machine with an NVIDIA GPU that nobody else uses, and on it:
  nvidia-smi and libcuda.so.1    the driver, with CUDA; in a container, both let in
  nvidia-ml-py                   `pip install ./tallystick_node`
missing here: """


class Missing(Exception):
    """What this machine lacks."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What `nvidia-smi` said of one GPU, and when it was heard (CLOCK_MONOTONIC)."""

    at_us: int
    uuid: str
    power_mw: int
    util_percent: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The programs that make the load and sample the power; the tests bring their own."""

    load: Sequence[str]
    sampler: Sequence[str] = (
        "nvidia-smi",
        "--query-gpu=uuid,power.draw,utilization.gpu",
        "--format=csv,noheader,nounits",
        "-lms",
        "100",
    )
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    tick_ms: int = 1_000
    settle_s: float = 5.0
    """How long the GPU is watched before the load and after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """What the reporter signed of one GPU."""

    start_us: int
    end_us: int
    available_us: int
    unavailable_us: int
    unknown_us: int
    busy_us: int | None
    energy_mj: int | None
    energy_gaps: int


def sample_of(line: str, at_us: int) -> Sample | None:
    """One line of `nvidia-smi`; None for one without a power ("[N/A]") or of another form."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != 3:
        return None
    try:
        power_mw = round(float(parts[1]) * 1_000)
    except ValueError:
        return None
    return Sample(at_us, parts[0], power_mw, int(parts[2]) if parts[2].isdigit() else None)


def energy_between(samples: Iterable[Sample], from_us: int, until_us: int) -> int | None:
    """Power x time in mJ, straight lines between samples; None where they do not cover the time."""
    found = sorted(samples, key=lambda one: one.at_us)
    inside = [one for one in found if from_us <= one.at_us <= until_us]
    if len(inside) < 2:
        return None
    total = sum((a.power_mw + b.power_mw) * (b.at_us - a.at_us) for a, b in pairwise(inside))
    edges_us = (inside[0].at_us - from_us, until_us - inside[-1].at_us)
    if max(edges_us) > 1_000_000:
        return None
    total += 2 * (inside[0].power_mw * edges_us[0] + inside[-1].power_mw * edges_us[1])
    return total // (2 * PPM)


def busy_between(kernels: Iterable[Kernel], from_us: int, until_us: int) -> int:
    """How long kernels ran in this time; of one that overlaps an edge its part by the clock."""
    total = 0
    for one in kernels:
        inside_us = min(one.end_us, until_us) - max(one.start_us, from_us)
        if inside_us > 0:
            total += one.ran_us * inside_us // max(1, one.end_us - one.start_us)
    return total


def metered_of(rows: Iterable[tuple[str, str | None, report.Row]], uuid: str) -> Metered:
    """The rows of one GPU, added up; None where a value was in none of them."""
    own = [row for device, _, row in rows if device == uuid]
    if not own:
        raise Missing(f"the reporter metered no {uuid}")

    def total(name: str) -> int | None:
        told = [value for row in own if (value := getattr(row, name)) is not None]
        return sum(told) if told else None

    return Metered(
        start_us=min(row.mono_start_us for row in own),
        end_us=max(row.mono_end_us for row in own),
        available_us=sum(row.available_us for row in own),
        unavailable_us=sum(row.unavailable_us for row in own),
        unknown_us=sum(row.unknown_us for row in own),
        busy_us=total("busy_us"),
        energy_mj=total("energy_mj"),
        energy_gaps=sum(row.energy_gaps for row in own),
    )


def judged(
    metered: Metered, samples: Sequence[Sample], kernels: Sequence[Kernel]
) -> dict[str, Any]:
    """Metered beside measured, each with its ratio in ppm and whether it is within bounds."""
    whole_us = metered.end_us - metered.start_us
    booked_us = metered.available_us + metered.unavailable_us + metered.unknown_us
    window = (metered.start_us, metered.end_us)
    return {
        "time": {
            "ran_us": whole_us,
            "booked_us": booked_us,
            "available_ppm": metered.available_us * PPM // max(1, whole_us),
            "ok": booked_us == whole_us
            and metered.available_us * PPM >= AVAILABLE_PPM_MIN * whole_us,
        },
        "busy": _beside(metered.busy_us, busy_between(kernels, *window), BUSY_PPM),
        "energy": {
            **_beside(metered.energy_mj, energy_between(samples, *window), ENERGY_PPM),
            "gaps": metered.energy_gaps,
        },
    }


def _beside(metered: int | None, measured: int | None, bounds: tuple[int, int]) -> dict[str, Any]:
    ratio = metered * PPM // measured if metered is not None and measured else None
    is_ok = ratio is not None and bounds[0] <= ratio <= bounds[1]
    return {"metered": metered, "measured": measured, "ratio_ppm": ratio, "ok": is_ok}


def run(tools: Tools) -> dict[str, Any]:
    """One run: the reporter, the sampler, a pause, the load, a pause. Raises Missing."""
    server = ModelServer()
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as folder, serve(server) as url:
        state = str(Path(folder) / "node")
        with _sampling(tools, samples), _metering(tools, url, state) as node:
            _until(lambda: server.seq >= 1)
            before_s, began = cpu.of_process(node.pid), time.monotonic()
            time.sleep(tools.settle_s)
            load = _loaded(tools)
            time.sleep(tools.settle_s)
            used_s, passed_s = cpu.of_process(node.pid) - before_s, time.monotonic() - began
            resident_kib = _resident_kib(node.pid)
        doctor = _told(tools, "node_reporter", "doctor", "--json", "--state", state)
        calls = _told(tools, "benchmarks.node.gpu_calls", load["uuid"])
    kernels = [Kernel(**one) for one in load["kernels"]]
    own = [sample for sample in samples if sample.uuid == load["uuid"]]
    return {
        "gpu": load["uuid"],
        "kernels": len(kernels),
        "samples": len(own),
        **judged(metered_of(server.rows(), load["uuid"]), own, kernels),
        "reporter": {
            "cpu_ppm_of_a_core": round(used_s / passed_s * PPM),
            "resident_kib": resident_kib,
            "tick_ms": tools.tick_ms,
        },
        "calls": calls,
        "doctor": doctor["devices"],
        "machine": {"kernel": platform.release(), "python": platform.python_version()},
    }


@contextmanager
def _metering(tools: Tools, url: str, state: str) -> Generator[subprocess.Popen[bytes], None, None]:
    """The reporter, joined and running; ended as a service manager ends it."""
    program = [sys.executable, "-m", "node_reporter"]
    environment = dict(tools.environment)
    joining = [*program, "join", url, "7Q4K9XWD", "--state", state]
    done = subprocess.run(
        joining, cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise Missing(done.stderr.strip())
    node = subprocess.Popen(
        [*program, "run", "--state", state, "--interval", "1", "--tick", str(tools.tick_ms)],
        cwd=ROOT,
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield node
    finally:
        node.send_signal(signal.SIGTERM)
        node.wait(WAIT_S)


@contextmanager
def _sampling(tools: Tools, samples: list[Sample]) -> Generator[None, None, None]:
    """The sampler, each line stamped when it is heard."""
    sampler = subprocess.Popen(
        tools.sampler, stdout=subprocess.PIPE, text=True, env=dict(tools.environment), cwd=ROOT
    )

    def hear() -> None:
        assert sampler.stdout is not None
        for line in sampler.stdout:
            found = sample_of(line, time.monotonic_ns() // 1_000)
            if found is not None:
                samples.append(found)

    listener = threading.Thread(target=hear)
    listener.start()
    try:
        yield
    finally:
        sampler.terminate()
        sampler.wait(WAIT_S)
        listener.join(WAIT_S)
        if sampler.stdout is not None:
            sampler.stdout.close()


def _loaded(tools: Tools) -> dict[str, Any]:
    done = subprocess.run(
        tools.load,
        cwd=ROOT,
        env=dict(tools.environment),
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Missing(done.stderr.strip())
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _told(tools: Tools, *module: str) -> Any:
    """The JSON document that a program of ours prints about this driver, without root."""
    done = subprocess.run(
        [sys.executable, "-m", *module],
        cwd=ROOT,
        env=dict(tools.environment),
        check=False,
        capture_output=True,
        text=True,
    )
    if not done.stdout:
        raise Missing(done.stderr.strip())
    return json.loads(done.stdout)


def _resident_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def _until(happened: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not happened():
        if time.monotonic() > deadline:
            raise Missing("the reporter never reported")
        time.sleep(0.01)


def missing() -> str | None:
    """What this machine lacks for a run, or None."""
    if shutil.which("nvidia-smi") is None:
        return "nvidia-smi"
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "libcuda.so.1"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The reporter on a real GPU, under a known load.")
    parser.add_argument("--gpu", type=int, default=0, help="which, as CUDA counts them")
    parser.add_argument("--seconds", type=int, default=30, help="of load, default 30")
    parser.add_argument("--out", help="write the record to this file as well")
    options = parser.parse_args(arguments)
    lacks = missing()
    if lacks is not None:
        sys.stderr.write(f"not run: {NEEDS}{lacks}\n")
        return 2
    load = [
        sys.executable,
        "-m",
        "benchmarks.node.gpu_load",
        "--gpu",
        str(options.gpu),
        "--rounds",
        str(options.seconds),
    ]
    try:
        result = run(Tools(load=load))
    except Missing as error:
        sys.stderr.write(f"not run: {NEEDS}{error}\n")
        return 2
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        Path(options.out).write_text(text + "\n", encoding="utf-8")
    return 0 if all(result[name]["ok"] for name in ("time", "busy", "energy")) else 1


if __name__ == "__main__":
    sys.exit(main())
