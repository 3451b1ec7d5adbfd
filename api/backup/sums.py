"""Is a backup still what was written? Every byte of it, by SHA-256.

    SHA256SUMS of a backup == the files below its folder, each with its hash; no more, no less
    backup_manifest        == what PostgreSQL read while it copied: its own hashes of its own files

`sha256sum -c SHA256SUMS` says the same without us. The wheel's `pg_verifybackup` crashes, so the
manifest is checked here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from contracts.durable_file import entry_to_disk

SUMS = "SHA256SUMS"
MANIFEST = "backup_manifest"
NOT_IN_MANIFEST = ("pg_wal/", "postgresql.auto.conf", MANIFEST)
"""What a server writes into its copy by itself; `SHA256SUMS` has these files, too."""
LINE = re.compile(r"([0-9a-f]{64})  (.+)")
"""SHA-256 and name; exactly so, or a changed byte could pass for a blank or an end of line."""
Told = Callable[[str, int, int], None]


def _silent(what: str, done: int, of: int) -> None:
    del what, done, of


def sum_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(folder: Path) -> None:
    """Write `SHA256SUMS` of everything below a folder, and everything to the disk; close every file
    to others, for PostgreSQL copies the modes that its source has.
    """
    lines = []
    for name in sorted(_files(folder)):
        lines.append(f"{sum_of(folder / name)}  {name}\n")
        (folder / name).chmod(0o600)
        entry_to_disk(folder / name)
    path = folder / SUMS
    path.write_text("".join(lines), encoding="utf-8")
    path.chmod(0o600)
    entry_to_disk(path)
    _folders_to_disk(folder)


def faults(folder: Path, told: Told = _silent) -> list[str]:
    """What is not as it was written; nothing: the backup is whole."""
    try:
        text = (folder / SUMS).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return [f"{SUMS} cannot be read: {error}"]
    lines = [LINE.fullmatch(line) for line in text.split("\n")[:-1]]
    if not text.endswith("\n") or None in lines:
        return [f"{SUMS} is damaged: it has lines that no backup writes"]
    wanted = {line[2]: line[1] for line in lines if line is not None}
    found = set(_files(folder)) - {SUMS}
    problems = [f"{name} is missing" for name in sorted(wanted.keys() - found)]
    problems += [f"{name} was not part of it" for name in sorted(found - wanted.keys())]
    known = sorted(wanted.keys() & found)
    for done, name in enumerate(known, 1):
        if sum_of(folder / name) != wanted[name]:
            problems.append(f"{name} has other bytes than were written")
        told("files checked", done, len(known))
    return problems


def manifest_faults(folder: Path) -> list[str]:
    """What of a copied data folder is not what PostgreSQL says it copied."""
    content = (folder / MANIFEST).read_bytes()
    listed = json.loads(content)
    body = content[: content.rindex(b'"Manifest-Checksum"')]
    if hashlib.sha256(body).hexdigest() != listed["Manifest-Checksum"]:
        return [f"{MANIFEST} has other bytes than were written"]
    wanted = {file["Path"]: file for file in listed["Files"] if "Path" in file}
    found = {name for name in _files(folder) if not name.startswith(NOT_IN_MANIFEST)}
    problems = [f"{name} was not copied" for name in sorted(wanted.keys() - set(_files(folder)))]
    problems += [f"{name} was not part of it" for name in sorted(found - wanted.keys())]
    for name in sorted(wanted.keys() & found):
        assert wanted[name]["Checksum-Algorithm"] == "SHA256", name
        if sum_of(folder / name) != wanted[name]["Checksum"]:
            problems.append(f"{name} has other bytes than PostgreSQL read")
    return problems


def _files(folder: Path) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in files:
            yield Path(root, name).relative_to(folder).as_posix()


def to_disk(folder: Path) -> None:
    """All below a folder, with the names: after it a lost power loses nothing of it."""
    for name in _files(folder):
        if (folder / name).is_file():  # and no socket
            entry_to_disk(folder / name)
    _folders_to_disk(folder)


def _folders_to_disk(folder: Path) -> None:
    for root, _, _ in os.walk(folder, topdown=False):
        entry_to_disk(Path(root))
