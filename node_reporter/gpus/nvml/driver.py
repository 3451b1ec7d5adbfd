"""The only file that imports pynvml: its functions, and what its errors say about a GPU.

    gone     8, 11, 15, 16: the device is lost or needs a reset       -> DeviceLost
    absent   3, 4, 6, 13, 25: this GPU does not have that value       -> None, and not asked again
    blind    everything else, 999 UNKNOWN above all                   -> MonitorBlind

Of the blind ones 1, 9, 12, 17 and 18 never pass: nothing this process can call will answer again.
Source: design metering 6 and 7.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pynvml

from node_reporter.gpus.seam import DeviceLost, MonitorBlind

nvml: Any = pynvml
"""It carries no types we could trust."""

GONE = frozenset({8, 11, 15, 16})
"""INSUFFICIENT_POWER, IRQ_ISSUE, GPU_IS_LOST, RESET_REQUIRED."""
RESTART = frozenset({1, 9, 12, 17, 18})
"""UNINITIALIZED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, OPERATING_SYSTEM, VERSION_MISMATCH."""
ABSENT = frozenset({3, 4, 6, 13, 25})
"""NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH."""
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
FETCHES_MAX = 3
"""A list that grows between asking its size and fetching it is asked for so often."""


class Asking:
    """Optional calls on one GPU: absent ones are remembered and cost nothing, others raise."""

    def __init__(self) -> None:
        self._absent: set[str] = set()
        self.denied: set[str] = set()
        self.answers = 0

    def __call__(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """The answer, or None for what this GPU does not have. Raises DeviceLost, MonitorBlind."""
        if name in self._absent:
            return None
        try:
            value = call(*arguments)
        except nvml.NVMLError as error:
            if error.value not in ABSENT:
                raise classified(error) from error
            self._absent.add(name)
            if error.value == NO_PERMISSION:
                self.denied.add(name)
            return None
        self.answers += 1
        return value

    def growing(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """Like a call, for lists that may grow while they are fetched: None when they always do."""
        for _ in range(FETCHES_MAX):
            try:
                return self(name, call, *arguments)
            except MonitorBlind as blind:
                if blind.code != INSUFFICIENT_SIZE:
                    raise
        return None


def classified(error: Any) -> DeviceLost | MonitorBlind:
    """What an NVMLError says about the GPU it was asked of."""
    code = int(error.value)
    if code in GONE:
        return DeviceLost(code, str(error))
    return MonitorBlind(code, str(error), restart=code in RESTART)


def must(call: Callable[..., Any], *arguments: Any) -> Any:
    """The answer. Raises DeviceLost or MonitorBlind for any error."""
    try:
        return call(*arguments)
    except nvml.NVMLError as error:
        raise classified(error) from error


def attempt(call: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or None for any error: for what describes a GPU, never for its health."""
    try:
        return call(*arguments)
    except nvml.NVMLError:
        return None


def text(value: Any) -> str:
    """Some releases of nvidia-ml-py answer with bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def require_nvidia_ml_py() -> None:
    """Another distribution installs a module of the same name. Raises MonitorBlind."""
    try:
        version("nvidia-ml-py")
    except PackageNotFoundError as error:
        raise MonitorBlind(None, "the module pynvml here is not nvidia-ml-py") from error
