"""The fake NVML, compiled once, and the script that tells it which machine to be."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.node_reporter import scripted_machines

SOURCE = Path(__file__).with_name("fake_nvml.c")


@dataclass
class FakeMachine:
    """A machine of H200s that a test changes while a reporter watches it."""

    library: Path
    script: Path
    values: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """What a process needs to find the fake instead of a driver."""
        return {
            **os.environ,
            "LD_LIBRARY_PATH": str(self.library.parent),
            "FAKE_NVML_SCENARIO": str(self.script),
        }

    def gpus(self, count: int) -> None:
        """Describe this many healthy GPUs."""
        self.values["count"] = str(count)
        for n in range(count):
            described = {
                "uuid": f"GPU-{n:08x}-0000-0000-0000-000000000000",
                "name": "NVIDIA H200",
                "serial": f"165000000000{n}",
                "vbios": "96.00.A0.00.01",
                "busid": f"00000000:{n + 15:02X}:00.0",
                "mem_total": "150754820096",
                "mem_used": "1073741824",
                "util": "50",
                "cc": "9.0",
                "pcie_gen": "5",
                "pcie_width": "16",
                "power_max_mw": "700000",
                "energy_mj": "1000000",
                "energy_rate_mw": "500000",
                "power_mw": "500000",
                "energy_since_ms": str(time.time_ns() // 1_000_000),
                "mig": "0",
                "events": "1",
                "field.230": "0",
                "processes": "1",
            }
            self.values |= {f"gpu.{n}.{key}": value for key, value in described.items()}

    def cut(self, gpu: int, *instances: dict[str, str]) -> None:
        """Put this GPU into MIG mode and cut it into these; each takes the next free handle."""
        self.values = {
            key: value
            for key, value in self.values.items()
            if not key.startswith(f"gpu.{gpu}.mig.")
        }
        self.values[f"gpu.{gpu}.mig"] = "1" if instances else "0"
        for handle, instance in enumerate(instances):
            self.values |= {f"gpu.{gpu}.mig.{handle}.{key}": v for key, v in instance.items()}
        self.write()

    def set(self, **values: str) -> None:
        """Change lines; `__` stands for a dot and `ALL` for a star. An empty value removes."""
        for name, value in values.items():
            key = name.replace("__", ".").replace("ALL", "*")
            if value:
                self.values[key] = value
            else:
                self.values.pop(key, None)
        self.write()

    def write(self) -> None:
        """Replace the script in one step, so that no half of it is ever read."""
        fresh = self.script.with_suffix(".new")
        fresh.write_text("".join(f"{key}={value}\n" for key, value in self.values.items()))
        fresh.replace(self.script)


@pytest.fixture(scope="session")
def fake_nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake library, built without a warning."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here, and the fake NVML is written in C")
    library = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    flags = "-O1 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden"
    names = ["-Wl,-soname,libnvidia-ml.so.1", "-o", str(library), str(SOURCE), "-lpthread"]
    subprocess.run([compiler, *flags.split(), *names], check=True)
    return library


@pytest.fixture
def machine(fake_nvml: Path, tmp_path: Path) -> Callable[[int], FakeMachine]:
    """Makes a machine with this many GPUs."""

    def make(count: int) -> FakeMachine:
        found = FakeMachine(library=fake_nvml, script=tmp_path / "machine.txt")
        found.gpus(count)
        found.write()
        return found

    return make


@pytest.fixture(scope="session")
def amd_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripted library of ROCm."""
    return scripted_machines.amd_library(tmp_path_factory.mktemp("rocm"))


@pytest.fixture(scope="session")
def ze_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripted library of Level Zero."""
    return scripted_machines.ze_library(tmp_path_factory.mktemp("ze"))
