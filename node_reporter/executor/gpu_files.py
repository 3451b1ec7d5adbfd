"""Which device files belong to a leased accelerator, as the NVIDIA driver tells it under /proc.

Only the files of leased devices are let into a job, so it finds no other tenant's GPU. A device the
driver does not know (a simulated one) has no files. No driver library is needed for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
"""What every process that uses a GPU opens, whichever one it uses."""
_UUID = re.compile(r"^GPU UUID:\s*(\S+)", re.MULTILINE)
_MINOR = re.compile(r"^Device Minor:\s*([0-9]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DeviceFiles:
    """Where the driver describes its devices, and where their files are."""

    driver: Path = Path("/proc/driver/nvidia/gpus")
    root: Path = Path("/")

    def of(self, device_ids: Iterable[str]) -> tuple[str, ...]:
        """The files of these devices, and the shared ones if there is any; sorted."""
        wanted = set(device_ids)
        found = [f"/dev/nvidia{minor}" for uuid, minor in self._known() if uuid in wanted]
        if not found:
            return ()
        return tuple(sorted(path for path in (*found, *SHARED) if self._is_there(path)))

    def _known(self) -> Iterable[tuple[str, str]]:
        for path in sorted(self.driver.glob("*/information")):
            text = path.read_text(errors="replace")
            uuid, minor = _UUID.search(text), _MINOR.search(text)
            if uuid is not None and minor is not None:
                yield uuid[1], minor[1]

    def _is_there(self, path: str) -> bool:
        return (self.root / path.lstrip("/")).exists()
