"""What a job holds that no walk through its folder finds: files without a name, open in a process.

    memory   files of memory (`memfd_create`) and of other file systems of memory
    disk     files that were deleted while they are open

Each file counts once, however many processes hold it. A kernel's group (`usage.Group`) counts
memory exactly; this is the bound where no group can be made. Linux.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

BLOCK_BYTES = 512


@dataclass(frozen=True, slots=True)
class Nameless:
    """Bytes in memory and on the disk of the job's folder; `unseen`: processes that hide theirs."""

    memory_bytes: int
    disk_bytes: int
    unseen: frozenset[int]


def held(pids: Iterable[int], device: int) -> Nameless:
    """What these processes hold open without a name; `device` is the disk of the job's folder."""
    memory: dict[tuple[int, int], int] = {}
    disk: dict[tuple[int, int], int] = {}
    unseen = set()
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        try:
            names = os.listdir(folder)
        except PermissionError:
            unseen.add(pid)
            continue
        except OSError:
            continue  # it has ended
        for name in names:
            try:
                found = os.stat(f"{folder}/{name}")
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                where = disk if found.st_dev == device else memory
                where[found.st_dev, found.st_ino] = found.st_blocks * BLOCK_BYTES
    return Nameless(sum(memory.values()), sum(disk.values()), frozenset(unseen))
