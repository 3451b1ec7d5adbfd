"""Machines with AMD's and Intel's GPUs: libraries in C that the makers' own packages load.

The packages are used as they are. amdsmi looks up all its functions when it is imported, so those
that the scripted library does not have are added and answer NOT_SUPPORTED. pyzes opens Level Zero
under one fixed path of the system, so `backend_probe.py` leads this one path elsewhere.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.node_reporter.forks import Forked

HERE = Path(__file__).parent
COMPILER_FLAGS = "-O1 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden"
_LOOKED_UP = re.compile(r"_libraries\['libamd_smi\.so'\]\.(amdsmi_\w+)")
_WRITTEN = re.compile(r"^API int (amdsmi_\w+)\(", re.MULTILINE)


def compiled(folder: Path, name: str, *sources: Path) -> Path:
    """A library of this name in this folder; skips where no compiler is."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here, and the scripted drivers are written in C")
    library = folder / name
    files = [str(source) for source in sources]
    include = ["-I", str(HERE), f"-Wl,-soname,{name}"]
    subprocess.run(
        [compiler, *COMPILER_FLAGS.split(), *include, "-o", str(library), *files], check=True
    )
    return library


def amd_library(folder: Path) -> Path:
    """The scripted libamd_smi.so, in `folder`/lib as ROCm has it."""
    spec = importlib.util.find_spec("amdsmi")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package amdsmi is not installed here")
    wrapper = Path(spec.submodule_search_locations[0]) / "amdsmi_wrapper.py"
    written = set(_WRITTEN.findall((HERE / "fake_amdsmi.c").read_text()))
    missing = sorted(set(_LOOKED_UP.findall(wrapper.read_text())) - written)
    rest = folder / "rest.c"
    lines = [f"EXPORT int {name}(void) {{ return 2; }}" for name in missing]
    rest.write_text(
        '#define EXPORT __attribute__((visibility("default")))\n' + "\n".join(lines) + "\n"
    )
    (folder / "lib").mkdir()
    return compiled(folder / "lib", "libamd_smi.so", HERE / "fake_amdsmi.c", rest)


def ze_library(folder: Path) -> Path:
    """The scripted libze_loader.so.1."""
    if importlib.util.find_spec("pyzes") is None:
        pytest.skip("the package pyzes is not installed here")
    return compiled(folder, "libze_loader.so.1", HERE / "fake_ze_loader.c")


@dataclass
class Scripted:
    """A machine that a test changes while it is watched: lines of key=value."""

    script: Path
    variables: dict[str, str]
    values: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables}

    def set(self, **values: object) -> None:
        """Change lines; `__` stands for a dot and `ALL` for a star. None removes."""
        for name, value in values.items():
            key = name.replace("__", ".").replace("ALL", "*")
            self.values.pop(key, None)
            if value is not None:
                self.values[key] = str(value)
        fresh = self.script.with_suffix(".new")
        fresh.write_text("".join(f"{key}={value}\n" for key, value in self.values.items()))
        fresh.replace(self.script)


def amd_machine(library: Path, script: Path, count: int) -> Scripted:
    """This many healthy MI300X."""
    variables = {"ROCM_HOME": str(library.parents[1]), "FAKE_AMD_SCENARIO": str(script)}
    machine = Scripted(script, variables)
    told = {
        "name": "AMD Instinct MI300X",
        "serial": "0x1234",
        "vbios": "113-M3000100-103",
        "driver": "fake-amdsmi 1.0",
        "mem_total": 205_822_885_888,
        "mem_used": 1_073_741_824,
        "energy": 1_000_000_000,
        "activity": 50,
        "power_uw": 750_000_000,
        "slot": 1,
        "pcie_gen": 5,
        "pcie_width": 16,
    }
    own = {
        f"gpu__{n}__{key}": value
        for n in range(count)
        for key, value in {
            **told,
            "uuid": f"{n:08x}-0000-1000-8000-0000000000aa",
            "bus": n + 5,
        }.items()
    }
    machine.set(count=count, **own)
    return machine


def intel_machine(library: Path, script: Path, count: int) -> Scripted:
    """This many healthy Arc Pro B60: a counter of the card, one of a tile, all engines and one."""
    variables = {"FAKE_ZE_LIBRARY": str(library), "FAKE_ZE_SCENARIO": str(script)}
    machine = Scripted(script, variables)
    told = {
        "name": "Intel Arc Pro B60",
        "serial": "S0",
        "driver": "fake-level-zero 1.0",
        "pcie_gen": 5,
        "pcie_width": 8,
        "powers": 2,
        "power__0__domain": 2,
        "power__0__sub": 1,
        "power__0__energy_uj": 1,
        "power__1__domain": 1,
        "power__1__limit_mw": 200_000,
        "power__1__energy_uj": 5_000_000,
        "engines": 2,
        "engine__0__type": 4,
        "engine__1__type": 0,
        "engine__1__active_us": 1_000,
        "engine__1__at_us": 1_000_000,
        "memories": 1,
        "memory__0__size": 25_669_140_480,
        "memory__0__free": 20_000_000_000,
    }
    own = {
        f"gpu__{n}__{key}": value
        for n in range(count)
        for key, value in {**told, "uuid_byte": n + 1, "bus": n + 3}.items()
    }
    machine.set(count=count, **own)
    return machine


class Probe(Forked):
    """A process of its own that has loaded one backend, asked one call at a time.

    `pid` is of the process that has the library mapped.
    """

    def __init__(self, kind: str, environment: Mapping[str, str]) -> None:
        super().__init__("tests.node_reporter.backend_probe", environment, kind)
