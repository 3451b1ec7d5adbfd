"""The folder that `tallystick run` was started in, as it travels: which files, and which do not.

`.tallystickignore` has the syntax of `.gitignore`, and `!name` brings back what is left out by
default. A link that stays inside of the folder travels as what it leads to; one that leads out of
it, a device, a pipe and a socket stay.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from cli.terminal import InputUnusable
from domain.jobs.workspace import FILES_MAX, PIECE_BYTES, File, path_rule

IGNORE_FILE = ".tallystickignore"
DEFAULTS = (
    ".git",
    ".hg/",
    ".svn/",
    ".venv/",
    "venv/",
    "node_modules/",
    "__pycache__/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".ssh/",
    ".gnupg/",
    ".aws/",
    ".kube/",
    ".docker/",
    ".env",
    ".env.*",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".DS_Store",
)
"""What no program needs on a node, or what holds secrets: the node's owner could read them."""
MIB = 1_048_576

Counted = Callable[[int, int], None]
"""How many files are read, of how many."""


@dataclass
class Scanned:
    """The files in order of their path, each with its place here, and what stays behind."""

    root: Path
    files: list[File] = field(default_factory=list)
    places: dict[str, tuple[Path, int]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def piece(self, key: str) -> bytes:
        """A piece as it was read. Raises InputUnusable: the file has changed since."""
        place, offset = self.places[key]
        with place.open("rb") as file:
            file.seek(offset)
            body = file.read(PIECE_BYTES)
        if sha256(body).hexdigest() != key:
            raise InputUnusable(f"{place} was changed while it was sent: run the command again")
        return body


def scan(root: Path, size_max: int, counted: Counted = lambda _done, _of: None) -> Scanned:
    """Every file that travels, read once. Raises InputUnusable: too many, too large, or a folder
    that nobody means: a whole home, a whole machine.
    """
    root = root.resolve()
    if Path.home().resolve().is_relative_to(root):
        raise InputUnusable(
            f"{root} would travel as a whole: change into the folder of your program, or say"
            " --no-files"
        )
    found = Scanned(root)
    chosen = sorted(_chosen(root, found), key=lambda one: one[0])
    if len(chosen) > FILES_MAX:
        raise InputUnusable(
            f"{root} has {len(chosen):,} files, and at most {FILES_MAX:,} travel: leave some out"
            f" with {IGNORE_FILE}"
        )
    size = sum(status.st_size for _, _, status in chosen)
    if size > size_max:
        largest = max(chosen, key=lambda one: one[2].st_size)
        raise InputUnusable(
            f"{root} has {size / MIB:,.1f} MiB, and at most {size_max / MIB:,.0f} travel"
            f" (--size-max); the largest is {largest[0]}, {largest[2].st_size / MIB:,.1f} MiB:"
            f" leave it out with {IGNORE_FILE}"
        )
    for number, (path, place, status) in enumerate(chosen, 1):
        found.files.append(_file(found, path, place, status))
        counted(number, len(chosen))
    return found


def _file(found: Scanned, path: str, place: Path, status: os.stat_result) -> File:
    hashes, size = [], 0
    with place.open("rb") as file:
        while body := file.read(PIECE_BYTES):
            key = sha256(body).hexdigest()
            found.places.setdefault(key, (place, size))
            hashes.append(key)
            size += len(body)
    return File(path, bool(status.st_mode & stat.S_IXUSR), size, tuple(hashes))


def _chosen(root: Path, found: Scanned) -> Iterator[tuple[str, Path, os.stat_result]]:
    """Path in the folder, place, and what the file system says of it."""
    ignored = _ignored(root)
    for where, folders, names in os.walk(root):
        here = os.path.relpath(where, root)
        above = "" if here == "." else f"{here}/"
        folders[:] = sorted(one for one in folders if not ignored(f"{above}{one}/"))
        for name in [*folders]:
            if os.path.islink(os.path.join(where, name)):
                found.left_out.append(f"{above}{name}: a link to a folder")
                folders.remove(name)
        for name in names:
            path = f"{above}{name}"
            if ignored(path):
                continue
            place = Path(where, name)
            why_not, status = _why_not(root, path, place)
            if status is None:
                found.left_out.append(f"{path}: {why_not}")
            else:
                yield path, place, status


def _why_not(root: Path, path: str, place: Path) -> tuple[str, os.stat_result | None]:
    broken = path_rule(path)
    if broken is not None:
        return f"its name is not {broken}", None
    try:
        target = place.resolve(strict=True) if place.is_symlink() else place
        status = target.stat()
    except OSError as error:
        return error.strerror or "it cannot be read", None
    if place.is_symlink() and not target.is_relative_to(root):
        return "a link that leads out of the folder", None
    if not stat.S_ISREG(status.st_mode):
        return "no regular file", None
    return "", status


def _ignored(root: Path) -> Callable[[str], bool]:
    import pathspec

    own = root / IGNORE_FILE
    try:
        lines = own.read_text(encoding="utf-8").splitlines() if own.is_file() else []
    except (OSError, UnicodeDecodeError) as error:
        raise InputUnusable(f"{own}: {error}") from error
    try:
        spec: Any = pathspec.GitIgnoreSpec.from_lines([*DEFAULTS, *lines])
    except ValueError as error:
        raise InputUnusable(f"{own}: {error}") from error
    matches: Callable[[str], bool] = spec.match_file
    return matches
