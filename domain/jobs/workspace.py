"""A workspace: what travels to the node with a job beside its command.

    digest(workspace) == SHA-256 of its canonical JSON            the job's hash covers it
    each path is relative, stays below the folder, and is named once
    bytes of a file == the sum of its pieces, each PIECE_BYTES but for the last

Files in pieces by content, variables, the names of sealed secrets, and the paths that come back. It
is no fact: the log knows its digest alone, and a random salt in it keeps the digest from telling a
guesser which files or values it is. Values of secrets are never in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

PIECE_BYTES = 524_288
PIECES_MAX = 512
BATCH_BYTES_MAX = 700_000
"""So many pieces, and so many bytes of them, travel in one request."""
FILES_MAX = 5_000
FOLDERS_MAX = 10_000
"""Folders that files lie in: a path alone can name five hundred, and each takes room on a disk."""
DOCUMENT_BYTES_MAX = 700_000
"""One request carries it, and one answer carries it and the sealed variables to the node."""
FILE_BYTES_MAX = 2**40
PATH_BYTES_MAX = 1_024
LEFT_OUT_MAX = 20
"""Of what does not come back, so many paths are told, each with a reason of DETAIL_MAX letters."""
DETAIL_MAX = 300
NAME_BYTES_MAX = 255
VARIABLES_MAX = 256
VALUE_BYTES_MAX = 32_768
VARIABLE_BYTES_MAX = 131_072
RESULTS_MAX = 64

_HASH = re.compile(r"[0-9a-f]{64}")
_SALT = re.compile(r"[0-9a-f]{32}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
OURS = ("TALLYSTICK_", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_MPS_")
"""Beginnings of names that the node sets itself: they say which share a program has."""


class WorkspaceInvalid(Exception):
    """The workspace breaks a rule of its form; the message names the place and the rule."""


@dataclass(frozen=True, slots=True)
class File:
    """A regular file; `sha256` of each of its pieces, in order."""

    path: str
    is_program: bool  # may be started
    size: int
    sha256: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """`secrets`: names whose values come sealed; `results`: paths that come back."""

    salt: str
    files: tuple[File, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()
    results: tuple[str, ...] = ()

    def pieces(self) -> dict[str, int]:
        """Every piece once, with its length."""
        return pieces_of(self.files)

    @property
    def bytes(self) -> int:
        return sum(one.size for one in self.files)


def pieces_of(files: tuple[File, ...]) -> dict[str, int]:
    """Every piece of these files once, with its length. Raises WorkspaceInvalid: one hash cannot
    have two lengths.
    """
    found: dict[str, int] = {}
    for one in files:
        left = one.size
        for piece in one.sha256:
            length = min(left, PIECE_BYTES)
            if found.setdefault(piece, length) != length:
                raise WorkspaceInvalid(f"{one.path}: the piece {piece[:8]} has two lengths")
            left -= length
    return found


def batches(bodies: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Pieces, as many together as one request carries."""
    batch: list[bytes] = []
    size = 0
    for body in bodies:
        if batch and (size + len(body) > BATCH_BYTES_MAX or len(batch) == PIECES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(body)
        size += len(body)
    if batch:
        yield batch


def count_of_pieces(size: int) -> int:
    """How many pieces a file of so many bytes has; an empty one has none."""
    return -(-size // PIECE_BYTES)


def document(workspace: Workspace) -> dict[str, Any]:
    """As it is sent: `read` makes the same workspace of it."""
    return {
        "salt": workspace.salt,
        "files": [{**asdict(one), "sha256": list(one.sha256)} for one in workspace.files],
        "environment": dict(workspace.environment),
        "secrets": list(workspace.secrets),
        "results": list(workspace.results),
    }


def canonical(workspace: Workspace) -> bytes:
    """The bytes that are hashed and kept."""
    told = document(workspace)
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()


def digest(workspace: Workspace) -> str:
    """SHA-256 of the canonical bytes, hex."""
    return sha256(canonical(workspace)).hexdigest()


def read(told: Any) -> Workspace:
    """Check a document to the letter. Raises WorkspaceInvalid."""
    parts = _mapping(told, ("salt", "files", "environment", "secrets", "results"), "workspace")
    salt = parts["salt"]
    if type(salt) is not str or _SALT.fullmatch(salt) is None:
        raise WorkspaceInvalid("salt: 32 hex digits")
    environment = _environment(parts["environment"])
    secrets = tuple(_variable(one) for one in _list(parts["secrets"], VARIABLES_MAX, "secrets"))
    results = tuple(_path(one) for one in _list(parts["results"], RESULTS_MAX, "results"))
    for names, where in ((secrets, "secrets"), (results, "results")):
        if len(set(names)) != len(names):
            raise WorkspaceInvalid(f"{where}: each name once")
    if set(secrets) & set(dict(environment)):
        raise WorkspaceInvalid("secrets: a name is a variable or a secret, not both")
    found = Workspace(
        salt=salt,
        files=read_files(parts["files"]),
        environment=environment,
        secrets=secrets,
        results=results,
    )
    if len(canonical(found)) > DOCUMENT_BYTES_MAX:
        raise WorkspaceInvalid(f"the list of files is longer than {DOCUMENT_BYTES_MAX} bytes")
    return found


def read_files(told: Any) -> tuple[File, ...]:
    """A list of files, checked to the letter. Raises WorkspaceInvalid."""
    files = tuple(_file(one) for one in _list(told, FILES_MAX, "files"))
    paths = {one.path for one in files}
    if len(paths) != len(files):
        raise WorkspaceInvalid("files: each path once")
    both = folders_of(files) & paths
    if both:
        raise WorkspaceInvalid(f"files: {min(both)} is a file and a folder")
    pieces_of(files)
    return files


def folders_of(files: tuple[File, ...]) -> set[str]:
    """Every folder that one of these files lies in. Raises WorkspaceInvalid: too many."""
    found: set[str] = set()
    for one in files:
        found.update(one.path[:at] for at, letter in enumerate(one.path) if letter == "/")
        if len(found) > FOLDERS_MAX:
            raise WorkspaceInvalid(f"files: they lie in at most {FOLDERS_MAX} folders")
    return found


def path_rule(path: str) -> str | None:
    """The rule that a path breaks; None: it stays below the folder that it is relative to."""
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        return "a name that is text"
    parts = path.split("/")
    if not 1 <= length <= PATH_BYTES_MAX or any(
        len(one.encode()) > NAME_BYTES_MAX for one in parts
    ):
        return f"a path of at most {PATH_BYTES_MAX} bytes, {NAME_BYTES_MAX} for each name"
    if any(one in ("", ".", "..") for one in parts) or "\0" in path:
        return "a path below the folder: no '..', no '/' at the beginning"
    return None


def is_below(path: str, folders: tuple[str, ...]) -> bool:
    """Whether a path is one of these, or lies below one."""
    return any(path == one or path.startswith(f"{one}/") for one in folders)


def variable_rule(name: str) -> str | None:
    """The rule that the name of a variable breaks; None: it may be one."""
    if _VARIABLE.fullmatch(name) is None:
        return "letters, digits and _, at most 128, not beginning with a digit"
    if name.startswith(OURS):
        return "the node sets this one itself"
    return None


def value_rule(value: str) -> str | None:
    """The rule that the value of a variable breaks; None: it may be one."""
    try:
        length = len(value.encode())
    except UnicodeEncodeError:
        return "a text"
    if "\0" in value or length > VALUE_BYTES_MAX:
        return f"a text of at most {VALUE_BYTES_MAX} bytes"
    return None


def _environment(told: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(told, Mapping) or len(told) > VARIABLES_MAX:
        raise WorkspaceInvalid(f"environment: at most {VARIABLES_MAX} variables")
    found = []
    for name, value in sorted(told.items()):
        broken = "a text" if type(value) is not str else value_rule(value)
        if broken is not None:
            raise WorkspaceInvalid(f"environment: {_variable(name)}: {broken}")
        found.append((_variable(name), value))
    if sum(len(name) + len(value.encode()) for name, value in found) > VARIABLE_BYTES_MAX:
        raise WorkspaceInvalid(f"environment: at most {VARIABLE_BYTES_MAX} bytes together")
    return tuple(found)


def _file(told: Any) -> File:
    parts = _mapping(told, ("path", "is_program", "size", "sha256"), "files")
    path, size = _path(parts["path"]), parts["size"]
    if type(size) is not int or not 0 <= size <= FILE_BYTES_MAX:
        raise WorkspaceInvalid(f"files: {path}: size: a whole number, 0 to {FILE_BYTES_MAX}")
    if type(parts["is_program"]) is not bool:
        raise WorkspaceInvalid(f"files: {path}: is_program: true or false")
    hashes = parts["sha256"]
    if not isinstance(hashes, list | tuple) or len(hashes) != count_of_pieces(size):
        raise WorkspaceInvalid(f"files: {path}: sha256: one for each {PIECE_BYTES} bytes")
    for one in hashes:
        if type(one) is not str or _HASH.fullmatch(one) is None:
            raise WorkspaceInvalid(f"files: {path}: sha256: 64 hex digits")
    return File(path, parts["is_program"], size, tuple(hashes))


def _path(told: Any) -> str:
    broken = "a text" if type(told) is not str else path_rule(told)
    if broken is not None:
        raise WorkspaceInvalid(f"files: {str(told)[:100]!r}: {broken}")
    return str(told)


def _variable(told: Any) -> str:
    broken = "a text" if type(told) is not str else variable_rule(told)
    if broken is not None:
        raise WorkspaceInvalid(f"environment: {str(told)[:100]!r}: {broken}")
    return str(told)


def _list(told: Any, most: int, where: str) -> list[Any]:
    if not isinstance(told, list | tuple) or len(told) > most:
        raise WorkspaceInvalid(f"{where}: a list of at most {most}")
    return list(told)


def _mapping(told: Any, names: tuple[str, ...], where: str) -> Mapping[str, Any]:
    if not isinstance(told, Mapping) or set(told) != set(names):
        raise WorkspaceInvalid(f"{where}: it has {', '.join(names)}, and nothing else")
    return told
