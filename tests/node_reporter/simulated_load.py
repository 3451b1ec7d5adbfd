"""A load on the scripted GPU, and what `nvidia-smi` would say of it, for
`benchmarks/node/gpu_node.py`.

    python -m tests.node_reporter.simulated_load load SCRIPT
    python -m tests.node_reporter.simulated_load sample SCRIPT

Not a GPU: the load writes into the script how busy the GPU is and how fast its energy grows, and
tells how long each kernel "ran"; the sampler reads the same lines.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

BUSY_S, IDLE_S, ROUNDS = 2.0, 0.8, 2
POWER_MW = {True: 500_000, False: 90_000}
UUID = "GPU-00000000-0000-0000-0000-000000000000"


def told(script: Path) -> dict[str, str]:
    lines = script.read_text().splitlines()
    return {key: value for key, _, value in (line.partition("=") for line in lines)}


def turn(script: Path, *, busy: bool) -> None:
    """From now on the GPU works, or rests; its energy goes on from where it is."""
    values, now_ms = told(script), time.time_ns() // 1_000_000
    passed_ms = now_ms - int(values["gpu.0.energy_since_ms"])
    grown_mj = int(values["gpu.0.energy_rate_mw"]) * passed_ms // 1_000
    values |= {
        "gpu.0.energy_mj": str(int(values["gpu.0.energy_mj"]) + grown_mj),
        "gpu.0.energy_since_ms": str(now_ms),
        "gpu.0.energy_rate_mw": str(POWER_MW[busy]),
        "gpu.0.util": "100" if busy else "0",
    }
    fresh = script.with_suffix(".fresh")
    fresh.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    fresh.replace(script)


def load(script: Path) -> None:
    kernels = []
    for _ in range(ROUNDS):
        start_us = time.monotonic_ns() // 1_000
        turn(script, busy=True)
        time.sleep(BUSY_S)
        turn(script, busy=False)
        end_us = time.monotonic_ns() // 1_000
        kernels.append({"start_us": start_us, "end_us": end_us, "ran_us": end_us - start_us})
        time.sleep(IDLE_S)
    sys.stdout.write(json.dumps({"uuid": UUID, "kernels": kernels}) + "\n")


def sample(script: Path) -> None:
    while True:
        values = told(script)
        watts = int(values["gpu.0.energy_rate_mw"]) / 1_000
        sys.stdout.write(f"{UUID}, {watts:.2f}, {values['gpu.0.util']}\n")
        sys.stdout.flush()
        time.sleep(0.05)


if __name__ == "__main__":
    {"load": load, "sample": sample}[sys.argv[1]](Path(sys.argv[2]))
