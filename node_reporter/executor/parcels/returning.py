"""What the work of a lease left under the paths that its renter asked back, sent to the server.

    a file is read only if it is a regular one, of the job's user, and no link leads to it

The job is over when this begins, so nothing changes while it is read. It made these files, so
nothing about them is believed: links, devices and pipes are left out. What does not come back is
told with the list of what does: the renter reads it there, and in the log of the work.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from domain.jobs.workspace import (
    DETAIL_MAX,
    FILES_MAX,
    LEFT_OUT_MAX,
    PATH_BYTES_MAX,
    PIECE_BYTES,
    batches,
    path_rule,
)
from node_reporter.reports.client import Unreachable
from node_reporter.terminal import printable

SECONDS_MAX = 300
PAUSE_SECONDS = 1.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Refused(Exception):
    """The server does not take the results; asking again would be answered alike. `is_of_form`: for
    a field of the request.
    """

    def __init__(self, why: str, *, is_of_form: bool = False) -> None:
        super().__init__(why)
        self.is_of_form = is_of_form


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What does not come back, and why. Not `is_lost`: a link, a pipe or a device, which is no file
    of the work, and a folder in which there is none.
    """

    path: str
    detail: str
    is_lost: bool = True

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"


class Sink(Protocol):
    """The server, as far as results go."""

    def list_results(
        self, lease_id: str, files: list[dict[str, Any]], left_out: list[dict[str, Any]]
    ) -> list[str]:
        """The pieces that are to be sent. Raises Unreachable, Refused."""
        ...

    def send_results(self, lease_id: str, bodies: list[bytes]) -> None:
        """Raises Unreachable, Refused."""
        ...


@dataclass
class Returning:
    """One delivery, in a thread of its own. `left_out`: what does not come back. `refused`: why
    nothing does, or not all of what was listed.
    """

    apart: Callable[[], AbstractContextManager[Sink]]
    lease_id: str
    folder: Path
    paths: tuple[str, ...]
    owner: int
    bytes_max: int
    is_done: bool = False
    left_out: list[LeftOut] = field(default_factory=list)
    refused: str = ""
    _thread: threading.Thread | None = None
    _ends: float = 0.0

    def start(self) -> None:
        self._ends = time.monotonic() + SECONDS_MAX
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        try:
            with self.apart() as sink:
                try:
                    self._return(sink)
                except (Refused, OSError) as error:
                    self._give_up(sink, str(error))
        finally:
            self.is_done = True

    def _give_up(self, sink: Sink, why: str) -> None:
        """Nothing comes back: the list says so, where the server has none yet."""
        self.refused = why
        nothing = [LeftOut(path, f"does not come back: {why}") for path in self.paths]
        with suppress(Refused, Unreachable):
            sink.list_results(self.lease_id, [], told(nothing, self.paths))

    @property
    def wrongs(self) -> list[str]:
        """The same in lines, for the log of the work."""
        refused = [f"results do not come back: {self.refused}"] if self.refused else []
        return [*map(str, self.left_out), *refused]

    def _return(self, sink: Sink) -> None:
        root = os.open(self.folder, _FOLDER)
        try:
            files, places = self._found(root)
            left_out = told(self.left_out, self.paths)
            asked = lambda: sink.list_results(self.lease_id, files, left_out)  # noqa: E731
            missing = set(self._patiently(asked))
            for batch in batches(_piece(root, *places[key]) for key in missing if key in places):
                self._patiently(lambda batch=batch: sink.send_results(self.lease_id, batch))
        finally:
            os.close(root)

    def _found(self, root: int) -> tuple[list[dict[str, Any]], dict[str, tuple[str, int]]]:
        """The files, and for each piece one place where it can be read. None is read before it is
        known that all of them come back.
        """
        files: list[dict[str, Any]] = []
        places: dict[str, tuple[str, int]] = {}
        for name, status in self._allowed(root):
            hashes = [
                sha256(body).hexdigest() for body in _bodies(root, name, range(status.st_size))
            ]
            for number, key in enumerate(hashes):
                places.setdefault(key, (name, number * PIECE_BYTES))
            is_program = bool(status.st_mode & stat.S_IXUSR)
            files.append(
                {"path": name, "is_program": is_program, "size": status.st_size, "sha256": hashes}
            )
        return files, places

    def _allowed(self, root: int) -> list[tuple[str, os.stat_result]]:
        """Every file that comes back. Raises Refused: they are too many or too large."""
        found: list[tuple[str, os.stat_result]] = []
        left = self.bytes_max
        for path in self.paths:
            before = len(found)
            for name, status in self._below(root, path):
                if len(found) >= FILES_MAX:
                    raise Refused(f"more than {FILES_MAX} files")
                # By their length: a file of holes takes no room on a disk, and hours to read.
                left -= status.st_size
                if left < 0:
                    raise Refused(f"more than {self.bytes_max} bytes")
                found.append((name, status))
            if len(found) == before and all(one.path != path for one in self.left_out):
                self.left_out.append(_nothing_of(root, path))
        return found

    def _below(self, root: int, asked: str) -> Iterator[tuple[str, os.stat_result]]:
        """Every regular file of the job under a path, without following a link. One folder is open
        at a time, however deep a job has nested them.
        """
        left = [asked]
        while left:
            path = left.pop()
            broken = path_rule(path)
            if broken is not None:
                self.left_out.append(LeftOut(path[:100], f"left out, it is not {broken}"))
                continue
            try:
                status = _status(root, path)
                inside = _names(root, path) if stat.S_ISDIR(status.st_mode) else []
            except OSError as error:
                if path != asked:
                    self.left_out.append(LeftOut(path, f"left out, {error.strerror}"))
                continue
            if stat.S_ISDIR(status.st_mode):
                left += [f"{path}/{name}" for name in sorted(inside, reverse=True)]
            elif not stat.S_ISREG(status.st_mode):
                why = "left out, it is no file but a link, a pipe or a device"
                self.left_out.append(LeftOut(path, why, is_lost=path == asked))
            elif status.st_uid != self.owner:
                self.left_out.append(LeftOut(path, "left out, it is not the work's own"))
            else:
                yield path, status

    def _patiently(self, ask: Any) -> Any:
        while True:
            try:
                return ask()
            except Unreachable as away:
                if time.monotonic() >= self._ends:
                    raise Refused("the server cannot be reached") from away
                time.sleep(PAUSE_SECONDS)


def _nothing_of(root: int, path: str) -> LeftOut:
    """Why no file of a path that was asked back comes."""
    try:
        is_folder = stat.S_ISDIR(_status(root, path).st_mode)
    except OSError:
        is_folder = False
    if is_folder:
        return LeftOut(path, "no file comes back of this folder", is_lost=False)
    return LeftOut(path, "there is no such file")


def told(left_out: list[LeftOut], asked: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """As the server takes it: what is lost first, then what was asked back by its name, and of more
    than it takes their number.
    """
    found = sorted(left_out, key=lambda one: (not one.is_lost, one.path not in asked))
    if len(found) > LEFT_OUT_MAX:
        rest = found[LEFT_OUT_MAX - 1 :]
        is_lost = any(one.is_lost for one in rest)
        found = [*found[: LEFT_OUT_MAX - 1], LeftOut(f"{len(rest)} more", "left out", is_lost)]
    return [
        {
            "path": printable(one.path)[:PATH_BYTES_MAX],
            "detail": printable(one.detail)[:DETAIL_MAX],
            "is_lost": one.is_lost,
        }
        for one in found
    ]


def _opened(root: int, parts: list[str]) -> int:
    """A folder below the root, entered step by step without following a link. Raises OSError."""
    here = os.dup(root)
    for part in parts:
        try:
            inner = os.open(part, _FOLDER, dir_fd=here)
        finally:
            os.close(here)
        here = inner
    return here


def _status(root: int, path: str) -> os.stat_result:
    *above, name = path.split("/")
    folder = _opened(root, above)
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    finally:
        os.close(folder)


def _names(root: int, path: str) -> list[str]:
    folder = _opened(root, path.split("/"))
    try:
        return os.listdir(folder)
    finally:
        os.close(folder)


def _bodies(root: int, path: str, places: range) -> Iterator[bytes]:
    """The pieces of a file between these places. Raises OSError: it is no regular file now."""
    *above, name = path.split("/")
    folder = _opened(root, above)
    try:
        handle = os.open(name, _FILE, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is no file")
        for offset in range(places.start, places.stop, PIECE_BYTES):
            yield os.pread(handle, PIECE_BYTES, offset)
    finally:
        os.close(handle)


def _piece(root: int, path: str, offset: int) -> bytes:
    (body,) = _bodies(root, path, range(offset, offset + 1))
    return body
