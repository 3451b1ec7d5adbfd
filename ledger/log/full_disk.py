"""A full disk under the database: told in the log and to whoever asks whether the server is ready.

PostgreSQL refuses each write and goes on by itself when there is room again; nothing that was
acknowledged is lost. Reading goes on, so without this nobody would hear of it but those who write.
"""

from __future__ import annotations

import errno
import logging
import shutil
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

from ledger.log.lane_store import LanesStopped

logger = logging.getLogger(__name__)

SQLSTATE = "53100"
FULL_SECONDS = 60.0
"""How long after the last refused write a disk counts as full; the log says so as often."""
WAL_BYTES_MIN = 64 * 1_048_576
"""A disk of the embedded database with less than this takes no write soon: four segments of WAL."""


class FullDisk:
    """What one process has seen of it."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._refused_s: float | None = None
        self._told_s: float | None = None

    def notice(self, error: BaseException) -> bool:
        """Whether this error, or what caused it, is a full disk; it is told in the log."""
        if not any(map(_is_full_disk, _causes(error))):
            return False
        now_s = self._now_s()
        with self._lock:
            self._refused_s = now_s
            is_told = self._told_s is not None and now_s - self._told_s < FULL_SECONDS
            self._told_s = self._told_s if is_told else now_s
        if not is_told:
            logger.error("the disk of the database is full: nothing is recorded until it has room")
        return True

    def is_full(self, folder: Path | None) -> bool:
        """Whether a write was refused a short time ago, or this folder has no room for one."""
        with self._lock:
            refused_s = self._refused_s
        if refused_s is not None and self._now_s() - refused_s < FULL_SECONDS:
            return True
        return folder is not None and shutil.disk_usage(folder).free < WAL_BYTES_MIN


def _causes(error: BaseException) -> Generator[BaseException, None, None]:
    """Another server of lanes has a disk of its own, which stops its lanes."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, LanesStopped):
        yield seen
        seen = seen.__cause__ or seen.__context__


def _is_full_disk(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return True
    return getattr(error, "sqlstate", None) == SQLSTATE


DISK = FullDisk()
"""Of this process."""
