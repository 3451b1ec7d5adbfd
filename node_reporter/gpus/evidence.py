"""What a node says of a device so that a server can check whether it fits together (tier 2).

Told once per process for each device, as a `device.inventory` event of the signed chain. Evidence
and no proof: root can answer all of it. Unknown is None, and the server counts it against the
device. Source: design metering 9.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

from node_reporter.gpus.seam import Device

LIBRARY = "libnvidia-ml"
PROC_NVIDIA = "/proc/driver/nvidia"
LIBRARIES = {"amd": "libamd_smi", "intel": "libze_intel_gpu"}
"""The driver library of each backend; `LIBRARY` of every other."""
MODULES = {"amd": ("/sys/module/amdgpu",), "intel": ("/sys/module/i915", "/sys/module/xe")}
"""Where the kernel shows the driver of these backends; `PROC_NVIDIA` for every other."""
LIBRARY_BYTES_MAX = 64 * 1024 * 1024

Data = dict[str, int | str | bool | None]


def inventory(device: Device, library_sha256: str | None, proc_nvidia: str) -> Data:
    """The data of one device's `device.inventory` event."""
    return {
        "name": device.name,
        "pci_id": device.pci_id,
        "mem_bytes": device.mem_bytes,
        "compute_capability": device.compute_capability,
        "driver": device.driver,
        "vbios": device.vbios,
        "power_limit_mw": device.power_limit_mw,
        "library_sha256": library_sha256,
        "proc_nvidia": proc_nvidia,
    }


def library_digest(vendor: str, maps: Path = Path("/proc/self/maps")) -> str | None:
    """SHA-256 of the driver library this process has mapped; None where there is none, or where it
    was replaced on disk since.
    """
    if sys.platform != "linux":
        return None
    try:
        lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
        name = LIBRARIES.get(vendor, LIBRARY)
        path = next((line.split(None, 5)[5] for line in lines if name in line), None)
        if path is None or path.endswith("(deleted)"):
            return None
        with Path(path).open("rb") as file:
            return sha256(file.read(LIBRARY_BYTES_MAX)).hexdigest()
    except (OSError, IndexError):
        return None


def kernel_driver(
    vendor: str, root: Path = Path("/"), mounts: Path = Path("/proc/self/mountinfo")
) -> str:
    """`ok`, `absent`, or `mounted`: something lies over the kernel driver's own folder."""
    try:
        told = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "absent"
    points = [fields[4] for line in told if len(fields := line.split()) > 4]
    folders = MODULES.get(vendor, (PROC_NVIDIA,))
    if any(_is_over(point, folder) for point in points for folder in folders):
        return "mounted"
    found = folders if vendor in MODULES else (f"{PROC_NVIDIA}/version",)
    return "ok" if any((root / path.lstrip("/")).exists() for path in found) else "absent"


def _is_over(point: str, folder: str) -> bool:
    return point == folder or point.startswith(f"{folder}/")
