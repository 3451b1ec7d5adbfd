"""How far a task has come, in a folder that outlives the process that does it (decision 0088).

    believed == the file of this name, whose first line is the SHA-256 of name and content

A name says all that decides what a mark says: the task makes it of the hashes of what it reads and
of the code that reads it (`ledger/fan_out/fingerprint.py`). So after another input or by other code
the mark is not found. It appears by rename: a half-written one is not there, and one that a crash,
a disk or a copy has changed is as if it were not there.

A checksum is no signature. A user who may write into the folder can write a mark that is believed,
and could as well change the program: so the folder is its owner's alone, or refused.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

_NAME = re.compile(r"[0-9a-f]{64}\.mark(\.[^/]+\.part)?")


class FolderRefused(ValueError):
    """Not a folder of marks, or one into which others may write; the message says which."""


@dataclass(frozen=True, slots=True)
class Marks:
    """JSON values by name, 64 hex digits. Every machine of an executor sees the folder."""

    path: Path

    def put(self, name: str, told: Any) -> None:
        """In place of what was there."""
        content = json.dumps(told, separators=(",", ":")).encode()
        file = self.path / f"{name}.mark"
        part = file.with_name(f"{file.name}.{socket.gethostname()}.{os.getpid()}.part")
        with part.open("wb") as opened:
            opened.write(_checksum(name, content) + b"\n" + content)
            opened.flush()
            os.fsync(opened.fileno())
        part.rename(file)

    def get(self, name: str) -> Any | None:
        """None: there is none, or what is there is not what was put."""
        try:
            told, _, content = (self.path / f"{name}.mark").read_bytes().partition(b"\n")
            return json.loads(content) if told == _checksum(name, content) else None
        except (OSError, ValueError, RecursionError):
            return None


def opened(folder: Path) -> Marks:
    """The marks of a folder, which is made where there is none. Raises FolderRefused, OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    there = folder.stat()
    if there.st_uid != os.geteuid():
        raise FolderRefused(f"{folder} belongs to another user: what it says cannot be believed")
    if there.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise FolderRefused(
            f"others may write into {folder}: `chmod go-w` it, or name a new folder"
        )
    other = next((file.name for file in folder.iterdir() if not _NAME.fullmatch(file.name)), None)
    if other is not None:
        raise FolderRefused(
            f"{folder} holds other files, such as {other}: name a folder of its own"
        )
    return Marks(folder.absolute())


def _checksum(name: str, content: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + content).hexdigest().encode()
