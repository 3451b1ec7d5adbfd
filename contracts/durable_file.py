"""A file that is there as a whole or not at all, whenever the power fails."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

TO_DISK_BYTES = 2**22
"""Of a large file, on disk at a time. All at the end, hundreds of megabytes, would hold up every
commit of a database on the same disk."""


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file so that a crash leaves the old bytes or the new ones, on disk."""
    with drafted(path) as draft:
        draft.take([data])
        draft.keep()


class Draft:
    """What a file is to hold, beside it."""

    def __init__(self, path: Path, draft: Path, file: BinaryIO) -> None:
        self._path, self._draft, self._file = path, draft, file
        self.is_kept = False

    def take(self, pieces: Iterable[bytes]) -> str:
        """Write them one after the other; hex SHA-256 of all of them."""
        digest, waiting = hashlib.sha256(), 0
        for piece in pieces:
            digest.update(piece)
            self._file.write(piece)
            waiting += len(piece)
            if waiting >= TO_DISK_BYTES:
                self._file.flush()
                os.fdatasync(self._file.fileno())
                waiting = 0
        return digest.hexdigest()

    def keep(self) -> None:
        """Put it in the place of the file, on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._draft.replace(self._path)
        self.is_kept = True
        entry_to_disk(self._path.parent)


@contextmanager
def drafted(path: Path) -> Generator[Draft, None, None]:
    """A draft that takes the place of the file if it is kept; a crash leaves the old bytes or the
    new ones. Who drafts the same file meanwhile waits: two would write into each other's bytes.
    """
    draft = path.with_suffix(".draft")
    with _alone(draft) as file:
        told = Draft(path, draft, file)
        try:
            yield told
        finally:
            if not told.is_kept:
                draft.unlink(missing_ok=True)


def _alone(draft: Path) -> BinaryIO:
    """The draft, empty, and locked until it is closed."""
    while True:
        file = draft.open("ab")
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(file.fileno()), draft.stat()):
                file.truncate(0)
                return file
        except FileNotFoundError:
            pass
        file.close()  # it was kept or given up while we waited: that name is another file's now


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file, read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def entry_to_disk(path: Path) -> None:
    """One file, or the names in one folder: a new file has its own name on disk only then."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
