"""The renter's folder comes to this node: fetched beside the executor's steps, checked, confined.

    what is written == what the job's hash covers        each piece against its SHA-256
    nothing is written outside of a new folder of ours   which no job sees before it is whole

The folder is made under the executor's own rights, and given to the user of jobs when it is
complete: no other job of that user can exchange a part of it for a link meanwhile.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from domain.jobs import workspace as rules
from domain.jobs.workspace import PIECE_BYTES, File, Workspace
from node_reporter.executor.runner import Limits, NotStarted
from node_reporter.executor.sandbox import JobUser
from node_reporter.executor.volume_store import remove_folder
from node_reporter.reports.client import Unreachable

WANTED_MAX = 256
TRIES_MAX = 30
PAUSE_SECONDS = 1.0
SECRETS_SECONDS_MAX = 60
HURRIED_SECONDS_MAX = 10
"""How long secrets are waited for where no time of the start is free."""
INCOMING = ".incoming-"


class Source(Protocol):
    """The server, as far as the files of a lease go."""

    def workspace(self, lease_id: str) -> Mapping[str, Any]:
        """Raises Unreachable, NotStarted."""
        ...

    def pieces(self, lease_id: str, wanted: list[str]) -> dict[str, bytes]:
        """Some of the wanted pieces, at least one. Raises Unreachable, NotStarted."""
        ...


@dataclass(frozen=True, slots=True)
class Brought:
    """`folder` is complete; `variables` are the renter's, the sealed ones among them."""

    folder: Path
    variables: Mapping[str, str]
    results: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass
class Bringing:
    """One fetch, in a thread of its own. `stop` ends it soon."""

    apart: Callable[[], AbstractContextManager[Source]]
    lease_id: str
    digest: str
    jobs: Path
    limits: Limits
    user: JobUser | None
    sealing_key: bytes | None
    secrets_s: int = SECRETS_SECONDS_MAX
    awaits_secrets: bool = True  # the renter may still send some, or it is not known yet
    is_done: bool = False
    brought: Brought | None = None
    error: str = "the fetch broke off"
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def ask_to_stop(self) -> None:
        """It is done soon after, and nobody waits for that."""
        self._stopped.set()

    def stop(self) -> None:
        """End it, and leave nothing."""
        self.ask_to_stop()
        if self._thread is not None:
            self._thread.join(PAUSE_SECONDS * 40)
        remove_folder(self.folder)

    @property
    def folder(self) -> Path:
        return self.jobs / f"{INCOMING}{self.lease_id}"

    def _run(self) -> None:
        try:
            with self.apart() as source:
                self.brought = self._bring(source)
        except (NotStarted, OSError, rules.WorkspaceInvalid) as error:
            self.error = str(error)
            remove_folder(self.folder)
        finally:
            self.is_done = True

    def _bring(self, source: Source) -> Brought:
        told, workspace = self._told(source)
        self._check_room(workspace)
        # First: the server takes them until billing starts, which may be before the files are here.
        sealed, notes = self._secrets(source, told, workspace)
        self.awaits_secrets = False
        remove_folder(self.folder)
        self.folder.mkdir(mode=0o700)
        make_files(self.folder, workspace.files)
        places = _places(workspace)
        wanted = list(places)
        while wanted:
            for key, body in self._pieces(source, wanted[:WANTED_MAX]).items():
                if key in places:
                    for path, offset in places.pop(key):
                        _write(self.folder / path, offset, body)
            wanted = [key for key in wanted if key in places]
        if self.user is not None:
            give(self.folder, self.user)
        variables = {**dict(workspace.environment), **sealed}
        return Brought(self.folder, variables, workspace.results, notes)

    def _told(self, source: Source) -> tuple[Mapping[str, Any], Workspace]:
        told = self._patiently(lambda: source.workspace(self.lease_id))
        workspace = rules.read(told.get("workspace"))
        if rules.digest(workspace) != self.digest:
            raise NotStarted("the list of files is not the one that the job's hash covers")
        return told, workspace

    def _check_room(self, workspace: Workspace) -> None:
        """Raises NotStarted."""
        most = self.limits.folder_bytes
        if workspace.bytes > most:
            raise NotStarted(f"its folder has {workspace.bytes} bytes; this node gives {most}")
        entries = len(workspace.files) + len(rules.folders_of(workspace.files))
        if entries > self.limits.folder_entries:
            raise NotStarted(f"its folder has more than {self.limits.folder_entries} files")

    def _pieces(self, source: Source, wanted: list[str]) -> dict[str, bytes]:
        """Each checked. Raises NotStarted."""
        found: dict[str, bytes] = self._patiently(lambda: source.pieces(self.lease_id, wanted))
        for key, body in found.items():
            if key not in wanted or sha256(body).hexdigest() != key:
                raise NotStarted("the server sent a piece of a file that is not the one asked for")
        if not found:
            raise NotStarted("the server does not have all of its files")
        return found

    def _secrets(
        self, source: Source, told: Mapping[str, Any], workspace: Workspace
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """The sealed variables, waited for; without them the work begins, and its log says so."""
        if not workspace.secrets:
            return {}, ()
        if self.sealing_key is None:
            raise NotStarted("this node has no key for secrets: enroll again")
        ends = time.monotonic() + self.secrets_s
        while told.get("sealed") is None:
            if time.monotonic() >= ends:
                names = ", ".join(workspace.secrets)
                return {}, (f"{names}: no value came; the work begins without",)
            self._pause()
            told = self._patiently(lambda: source.workspace(self.lease_id))
        return opened(self.sealing_key, str(told["sealed"]), self.lease_id, workspace.secrets), ()

    def _patiently(self, ask: Any) -> Any:
        """Ask again while the server is away. Raises NotStarted."""
        for _ in range(TRIES_MAX):
            if self._stopped.is_set():
                raise NotStarted("the lease is over")
            try:
                return ask()
            except Unreachable:
                self._pause()
        raise NotStarted("the server cannot be reached")

    def _pause(self) -> None:
        if self._stopped.wait(PAUSE_SECONDS):
            raise NotStarted("the lease is over")


def opened(key: bytes, sealed: str, lease_id: str, names: tuple[str, ...]) -> dict[str, str]:
    """The variables in a sealed box that is for this lease. Raises NotStarted: for another one,
    for another key, or names that the workspace does not announce.
    """
    try:
        told = json.loads(SealedBox(PrivateKey(key)).decrypt(base64.b64decode(sealed)))
        variables = told["variables"]
        is_ours = told["lease_id"] == lease_id
    except (CryptoError, ValueError, KeyError, TypeError):
        raise NotStarted("its secrets are not sealed for this node") from None
    if not is_ours or not isinstance(variables, dict) or set(variables) != set(names):
        raise NotStarted("its secrets are not those of this lease")
    for name, value in variables.items():
        if type(value) is not str or rules.value_rule(value) or rules.variable_rule(name):
            raise NotStarted("its secrets are no variables")
    return variables


def make_files(folder: Path, files: tuple[File, ...]) -> None:
    """Every file, empty and of its length, in a new folder that is ours alone. Raises OSError."""
    for one in files:
        broken = rules.path_rule(one.path)
        if broken is not None:
            raise NotStarted(f"{one.path!r}: {broken}")
        place = folder / one.path
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = 0o700 if one.is_program else 0o600
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        try:
            os.truncate(handle, one.size)
        finally:
            os.close(handle)


def _places(workspace: Workspace) -> dict[str, list[tuple[str, int]]]:
    """Where each piece goes: the same content may stand in several files."""
    found: dict[str, list[tuple[str, int]]] = {}
    for one in workspace.files:
        for number, key in enumerate(one.sha256):
            found.setdefault(key, []).append((one.path, number * PIECE_BYTES))
    return found


def _write(path: Path, offset: int, body: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        os.pwrite(handle, body, offset)
    finally:
        os.close(handle)


def give(folder: Path, user: JobUser) -> None:
    """All of it is the user's, the folder itself last: until then nobody else gets in to exchange a
    file for a link to another one. No link is followed, and there is none.
    """
    for where, _, files in os.walk(folder, topdown=False):
        for name in files:
            os.lchown(os.path.join(where, name), user.uid, user.gid)
        os.lchown(where, user.uid, user.gid)


def left_behind(jobs: Path) -> Iterator[Path]:
    """Folders of fetches that a killed executor left."""
    return jobs.glob(f"{INCOMING}*")
