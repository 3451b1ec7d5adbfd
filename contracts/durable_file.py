"""A file that is there as a whole or not at all, whenever the power fails."""

from __future__ import annotations

import os
from pathlib import Path


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file so that a crash leaves the old bytes or the new ones, on disk."""
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    entry_to_disk(path.parent)


def entry_to_disk(path: Path) -> None:
    """One file, or the names in one folder: a new file has its own name on disk only then."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
