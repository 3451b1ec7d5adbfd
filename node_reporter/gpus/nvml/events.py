"""What the driver reports by itself: XIDs, told once to whoever registered before they happened.

An error of the wait says nothing about any GPU and is passed over. Only Linux has events.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from node_reporter.gpus.nvml.board import Board
from node_reporter.gpus.nvml.driver import attempt, nvml
from node_reporter.gpus.seam import Fault

XIDS_OF_APPLICATIONS = frozenset({13, 31, 43, 45, 68, 109})
"""XIDs a program causes; any other means that the GPU is not fit to be rented."""
XID_EVENT = 8
NO_INSTANCE = 0xFFFFFFFF


class Events:
    """One event set for all boards; None of it where the driver has no events."""

    def __init__(self, boards: Iterable[Board]) -> None:
        # By address: a GPU that fell off the bus does not even tell its name any more.
        self._boards = {_address(board.handle): board for board in boards}
        self._set = attempt(nvml.nvmlEventSetCreate)
        if self._set is not None:
            for board in self._boards.values():
                attempt(nvml.nvmlDeviceRegisterEvents, board.handle, XID_EVENT, self._set)

    @property
    def are_there(self) -> bool:
        return self._set is not None

    def wait(self, timeout_s: float) -> Fault | None:
        """The next XID, or None. A fatal one condemns what it names."""
        event = attempt(nvml.nvmlEventSetWait_v2, self._set, int(timeout_s * 1_000))
        if event is None or not event.eventType & XID_EVENT:
            return None
        code, gi = int(event.eventData), _instance(event.gpuInstanceId)
        board = self._boards.get(_address(event.device))
        fatal = code not in XIDS_OF_APPLICATIONS
        named = None
        if board is not None:
            named = board.condemn(gi, code) if fatal else board.holder(gi)
        return Fault(
            device_id=None if named is None else named.id,
            code=code,
            fatal=fatal,
            gi=gi,
            ci=_instance(event.computeInstanceId),
        )

    def close(self) -> None:
        if self._set is not None:
            attempt(nvml.nvmlEventSetFree, self._set)
            self._set = None


def _instance(number: Any) -> int | None:
    return None if int(number) == NO_INSTANCE else int(number)


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
