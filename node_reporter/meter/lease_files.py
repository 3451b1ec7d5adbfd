"""The folder `leases.d`: what a scheduler on this machine says works on which device.

A file is named by the UUID of a GPU or of a MIG instance and holds a line for each lease that works
there now; a lease that shares the device says how. The file goes, or the line, when the work ends:

    lease_0123456789abcdef
    lease_0123456789abcdef mps:25          a quarter of the threads of MPS
    lease_0123456789abcdef ts:1/4          a quarter of the time

Not a window and not a claim: the ledger's windows and shares win. It tells which of two equal MIG
instances a lease works on, and whose time it is while the server cannot be asked. Write a file
beside it and rename it, so that no half of it is read. What is not of this form is passed over.
"""

from __future__ import annotations

import heapq
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from domain.metering.report import DEVICE_PATTERN, LEASE_PATTERN, PPM

FILES_MAX = 256
FILE_BYTES_MAX = 16_384
PERCENT_PPM = 10_000
_DEVICE = re.compile(DEVICE_PATTERN)
_LINE = re.compile(rf"({LEASE_PATTERN})(?:\s+(mps|ts):([0-9]{{1,6}})(?:/([0-9]{{1,6}}))?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLease:
    """One line of one file. `since_us` is the wall time at which the file was last written."""

    device_id: str
    lease_id: str
    share_ppm: int
    mode: str | None
    since_us: int


def read_lease_files(folder: Path) -> list[LocalLease]:
    """Every line of every file; nothing where there is no such folder."""
    try:
        paths = heapq.nsmallest(FILES_MAX, folder.iterdir())
    except OSError:
        return []
    return [lease for path in paths for lease in _leases(path)]


def _leases(path: Path) -> Iterator[LocalLease]:
    if not _DEVICE.fullmatch(path.name) or path.name.startswith("."):
        return
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            told = os.fstat(file.fileno())
            text = file.read(FILE_BYTES_MAX) if stat.S_ISREG(told.st_mode) else b""
    except OSError:
        return
    since_us = told.st_mtime_ns // 1_000
    for line in text.decode("ascii", "replace").splitlines():
        said = _LINE.fullmatch(line.strip())
        share = None if said is None else _share(said[2], said[3], said[4])
        if said is not None and share is not None:
            yield LocalLease(
                device_id=path.name,
                lease_id=said[1],
                share_ppm=share[0],
                mode=share[1],
                since_us=since_us,
            )


def _without_waiting(path: str, flags: int) -> int:
    """A pipe that nobody writes to must not hold up the meter."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _share(kind: str | None, part: str | None, whole: str | None) -> tuple[int, str | None] | None:
    """(share, mode); None for a share that is none."""
    if kind is None or part is None:
        return PPM, None
    if kind == "mps":
        percent = int(part)
        return (percent * PERCENT_PPM, "mps") if whole is None and 1 <= percent <= 100 else None
    if whole is None or not 1 <= int(part) <= int(whole):
        return None
    return int(part) * PPM // int(whole), "time_slice"
