"""Backend `nvml`: NVIDIA GPUs through nvidia-ml-py, without root and without changing a setting.

Not a meter and not a guess: an error that says the GPU is gone raises DeviceLost, one that says we
cannot see it raises MonitorBlind, and a call that this GPU does not have costs its own value only.
A file for each thing: `driver` (the only one that imports pynvml), `board`, `instances`, `busy`,
`fields`, `events`, `described`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from node_reporter.gpus.nvml.board import Board
from node_reporter.gpus.nvml.driver import attempt, must, nvml, require_nvidia_ml_py
from node_reporter.gpus.nvml.events import Events
from node_reporter.gpus.seam import Device, Fault, MonitorBlind, Reading

LIBRARY = "libnvidia-ml"


class NvmlGpus:
    """Every NVIDIA GPU of this machine. Open it once, in the process that keeps using it."""

    vendor = "nvml"

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        """`now_s` is a clock that nobody sets, in seconds."""
        self._now_s = now_s
        self._boards: dict[str, Board] = {}
        self._events: Events | None = None
        self._pid = 0

    def open(self) -> None:
        """Load the driver library and describe the GPUs. Raises MonitorBlind."""
        require_nvidia_ml_py()
        must(nvml.nvmlInit)
        self._pid = os.getpid()
        found = [_found(index) for index in range(must(nvml.nvmlDeviceGetCount))]
        self._boards = {
            uuid: Board(uuid, handle, self._now_s) for uuid, handle in found if uuid is not None
        }
        self._events = Events(self._boards.values())

    def close(self) -> None:
        """Let the library go. Not called while a thread hangs in it."""
        if self._events is not None:
            self._events.close()
            self._events = None
        for board in self._boards.values():
            board.close()
        attempt(nvml.nvmlShutdown)

    def inventory(self) -> Sequence[Device]:
        return tuple(device for board in self._boards.values() for device in board.present())

    def look(self, board_id: str) -> Sequence[Device]:
        """Raises DeviceLost, MonitorBlind."""
        self._require_own_process()
        return self._boards[board_id].look()

    def read(self, device_id: str) -> Reading:
        """Raises DeviceLost, MonitorBlind."""
        self._require_own_process()
        return self._board_of(device_id).read(device_id)

    def denied(self, device_id: str) -> frozenset[str]:
        """What the driver has of this device and does not show to us, for `doctor`."""
        return self._board_of(device_id).denied

    def faults(self, timeout_s: float) -> Sequence[Fault]:
        """Wait for one XID. Raises MonitorBlind(restart) when the library on disk was replaced."""
        self._require_own_process()
        if _library_was_replaced():
            raise MonitorBlind(None, "libnvidia-ml was replaced on disk", restart=True)
        if self._events is None or not self._events.are_there:
            return ()
        fault = self._events.wait(timeout_s)
        return () if fault is None else (fault,)

    def attest(self, device_id: str, nonce: bytes) -> bytes | None:
        """No attestation in this version."""
        del device_id, nonce
        return None

    def _board_of(self, device_id: str) -> Board:
        if device_id in self._boards:
            return self._boards[device_id]
        return next(
            board
            for board in self._boards.values()
            if any(device.id == device_id for device in board.present())
        )

    def _require_own_process(self) -> None:
        """NVML does not say what a forked child may ask: nothing, then. Raises MonitorBlind."""
        if os.getpid() != self._pid:
            raise MonitorBlind(None, "this process was forked after NVML was opened", restart=True)


def _found(index: int) -> tuple[str | None, Any]:
    handle = attempt(nvml.nvmlDeviceGetHandleByIndex, index)
    return (None if handle is None else attempt(nvml.nvmlDeviceGetUUID, handle)), handle


def _library_was_replaced() -> bool:
    """A driver upgrade leaves the old library mapped: it answers wrongly even after a reload."""
    if sys.platform != "linux":
        return False
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return any(LIBRARY in line and "(deleted)" in line for line in maps.splitlines())
