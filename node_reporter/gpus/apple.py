"""Apple's GPUs, read through `ioreg` and `system_profiler`, which every Mac has. Untried: it was
written from their documented property lists and run against recorded ones alone.

A Mac has one GPU, on one chip with its processor: its memory is the host's, it has no PCIe lanes,
no energy counter and no identity of its own, so the id is that of the machine. It says how busy it
is and how much memory it has in use; faults it tells by not answering.
"""

from __future__ import annotations

import json
import plistlib
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from node_reporter.gpus.seam import Device, DeviceLost, Fault, MonitorBlind, Reading

PLATFORM = ("ioreg", "-a", "-r", "-d", "1", "-c", "IOPlatformExpertDevice")
ACCELERATOR = ("ioreg", "-a", "-r", "-d", "1", "-c", "IOAccelerator")
DISPLAYS = ("system_profiler", "-json", "SPDisplaysDataType")
MEMORY = ("sysctl", "-n", "hw.memsize")
TIMEOUT_S = 10
ANSWER_BYTES_MAX = 4 * 1024 * 1024
_CHIP = re.compile(r"Apple M[0-9]{1,2}( Pro| Max| Ultra)?")
_UUID = re.compile(r"[0-9A-Fa-f-]{36}")
PPM_OF_PERCENT = 10_000

Ask = Callable[[tuple[str, ...]], bytes]


def ask(command: tuple[str, ...]) -> bytes:
    """What a tool of the system prints. Raises OSError, subprocess.SubprocessError."""
    done = subprocess.run(  # noqa: S603  (four commands, written here)
        command, capture_output=True, timeout=TIMEOUT_S, check=True
    )
    return done.stdout[:ANSWER_BYTES_MAX]


class AppleGpus:
    """The one GPU of a Mac."""

    vendor = "apple"

    def __init__(self, asked: Ask = ask) -> None:
        self._ask = asked
        self._device: Device | None = None

    def open(self) -> None:
        """Raises MonitorBlind: not a Mac, or one with another maker's chip."""
        try:
            name = self._name()
            told = _first(self._ask(PLATFORM)).get("IOPlatformUUID", "")
            memory = int(self._ask(MEMORY).strip())
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
            raise MonitorBlind(None, f"no Apple GPU: {error}") from error
        if name is None or not _UUID.fullmatch(str(told)):
            raise MonitorBlind(None, "no Apple GPU: its chip or the machine's id is not told")
        self._device = Device(
            id=f"APPLE-{str(told).upper()}",
            name=name,
            mem_bytes=memory,
            connection="soc",
            memory="unified",
            busy_source="util",
            energy_scope="none",
        )

    def close(self) -> None:
        self._device = None

    def inventory(self) -> Sequence[Device]:
        return () if self._device is None else (self._device,)

    def look(self, board_id: str) -> Sequence[Device]:
        device = self._known(board_id)
        self._statistics()
        return (device,)

    def read(self, device_id: str) -> Reading:
        self._known(device_id)
        told = self._statistics()
        busy = told.get("Device Utilization %")
        used = told.get("In use system memory")
        return Reading(
            busy_ppm=min(int(busy), 100) * PPM_OF_PERCENT if isinstance(busy, int) else None,
            mem_used_bytes=int(used) if isinstance(used, int) else None,
        )

    def faults(self, timeout_s: float) -> Sequence[Fault]:
        time.sleep(timeout_s)
        return ()

    def attest(self, device_id: str, nonce: bytes) -> bytes | None:
        del device_id, nonce
        return None

    def _known(self, device_id: str) -> Device:
        if self._device is None or self._device.id != device_id:
            raise DeviceLost(0, "the GPU is not this machine's")
        return self._device

    def _name(self) -> str | None:
        """The chip, as the registry of classes knows it."""
        found = json.loads(self._ask(DISPLAYS)).get("SPDisplaysDataType", [])
        names = (str(one.get("sppci_model", "")) for one in found if isinstance(one, dict))
        return next((name for name in names if _CHIP.fullmatch(name)), None)

    def _statistics(self) -> dict[str, Any]:
        """Raises MonitorBlind: the system did not answer; DeviceLost: the GPU is not listed."""
        try:
            told = _first(self._ask(ACCELERATOR))
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise MonitorBlind(None, f"ioreg does not answer: {error}") from error
        except IndexError as error:
            raise DeviceLost(0, "ioreg lists no accelerator") from error
        found = told.get("PerformanceStatistics", {})
        return found if isinstance(found, dict) else {}


def _first(raw: bytes) -> dict[str, Any]:
    """The first entry of a property list. Raises ValueError, IndexError."""
    try:
        listed = plistlib.loads(raw)
    except plistlib.InvalidFileException as error:
        raise ValueError(str(error)) from error
    except Exception as error:  # expat has errors of its own
        raise ValueError(f"no property list: {error}") from error
    if not isinstance(listed, list) or not listed:
        raise IndexError("an empty list")
    return dict(listed[0])
