"""What tests with real processes share: a free port, a folder in memory, waiting, ends, kill -9."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

SECONDS_MAX = 60.0
MEMORY_BYTES_MIN = 8 << 30


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def memory() -> Path | None:
    """A file system in memory, where there is plenty. ext4 passes over each inode that was deleted
    within minutes: a database made after hundreds were dropped takes a second there.
    """
    shared = Path("/dev/shm")
    has_room = shared.is_dir() and shutil.disk_usage(shared).free >= MEMORY_BYTES_MIN
    return shared if has_room else None


def until(holds: Callable[[], bool], seconds: float = SECONDS_MAX) -> None:
    """Asked seldomer the longer it takes: each question takes time from what is awaited."""
    ends, pause = time.monotonic() + seconds, 0.02
    while not holds():
        assert time.monotonic() < ends, "it never came to hold"
        time.sleep(pause)
        pause = min(1.2 * pause, 0.1)


WITH_STACKS = (sys.executable, "-X", "faulthandler")
"""A Python that tells where each of its threads is when it is ended by SIGABRT."""


def ended(process: subprocess.Popen[Any], seconds: float = SECONDS_MAX) -> Any:
    """What it wrote to its pipes until it ended; one that does not end tells where it is."""
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        told = process.communicate(timeout=SECONDS_MAX)
        raise AssertionError(f"it did not end within {seconds:g} s: {told}") from None


def kill_with_children(parent: int) -> None:
    """SIGKILL to the parent first, so that nobody tidies up, then to its children. Raises
    ProcessLookupError when the parent had ended.
    """
    children = [pid for pid, above in _processes() if above == parent]
    os.kill(parent, signal.SIGKILL)
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[tuple[int, int]]:
    """Every process and its parent: from /proc, or from `ps` where there is none."""
    if not Path("/proc/self/stat").exists():
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True)
        for line in listed.stdout.splitlines():
            pid, above = line.split()
            yield int(pid), int(above)
        return
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            fields = stat.read_text().rpartition(")")[2].split()
            yield int(stat.parent.name), int(fields[1])
