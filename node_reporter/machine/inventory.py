"""What the node says about itself when it joins and when its hardware changes.

Only what was read: unknown is None, and a board whose model or memory the driver does not tell
is left out, because nobody could decide whether to rent it. A board is told as one device however
it is cut into instances: the server leases parts of it.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from node_reporter.gpus import hardware
from node_reporter.gpus.seam import Device
from node_reporter.machine.substrate import substrate

MIB = 1_048_576
_RELEASE = re.compile(r"[0-9]+(\.[0-9]+)+")
"""What releases of real drivers are called: 580.159.04."""
SXM_MODELS = ("SXM", "H100 80GB HBM3", "H200", "B200", "GB200")
"""NVML does not tell the socket; NVIDIA's names of boards without a PCIe slot do."""


def specs(devices: Iterable[Device], vendor: str, root: Path = Path("/")) -> dict[str, Any]:
    """Boards, host and hardware in the form of `POST /v1/nodes/join` and `.../{id}/specs`; the
    operating system's files are read under `root`.
    """
    found = [device for device in devices if device.parent is None]
    driver = next((device.driver for device in found if device.driver), None)
    built_of = hardware.facts(root)
    told: dict[str, Any] = {
        "devices": [
            _spec(device, vendor)
            for device in found
            if device.name is not None and device.mem_bytes is not None
        ],
        "host": {
            "arch": platform.machine(),
            "os": platform.system().lower(),
            "cpu_cores": os.cpu_count(),
            "ram_mib": _ram_mib(),
            "driver": driver,
            "kernel": platform.release() or None,
            "substrate": substrate(root),
        },
    }
    return told if built_of is None else {**told, "hardware": built_of}


def driver_note(devices: Iterable[Device]) -> str | None:
    """A line for the owner where a driver is none that a maker of GPUs ships, or None.

    A simulated or scripted one says so of itself; a server outside development refuses its node.
    """
    drivers = sorted({device.driver for device in devices if device.driver})
    strange = [driver for driver in drivers if not _RELEASE.match(driver)]
    if not strange:
        return None
    return f"driver {', '.join(strange)!r} is no real one: only a server in development takes it"


def _spec(device: Device, vendor: str) -> dict[str, Any]:
    name = device.name or ""
    told = {
        "device_id": device.id,
        "vendor": device.vendor or ("nvidia" if vendor == "nvml" else vendor),
        "model": name,
        "memory_mib": (device.mem_bytes or 0) // MIB,
        "connection": device.connection or ("sxm" if _is_sxm(name) else "pcie"),
        "pcie_gen": device.pcie_gen,
        "pcie_lanes": device.pcie_lanes,
    }
    optional = {"kind": device.kind, "memory": device.memory}
    return told | {key: value for key, value in optional.items() if value is not None}


def _is_sxm(name: str) -> bool:
    return any(part in name for part in SXM_MODELS) and "NVL" not in name and "PCIe" not in name


def _ram_mib() -> int | None:
    told = hardware.host_bytes()
    return None if told is None else told // MIB
