"""One thing that `doctor` looked at, and those that need neither a driver nor a server."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from node_reporter.agent.unit_file import SYSTEM_STATE
from node_reporter.identity import KeyUnreadable, fingerprint, load_key, public_key
from node_reporter.machine.config import StateFolder

OK, ABSENT, DENIED, FAILED = "ok", "absent", "denied", "failed"
DISK_BYTES_MIN = 256 * 1024 * 1024
"""Room for the spool at its cap (64 MiB), its log beside it, and what else grows on a disk."""
CONTAINER_FILES = (Path("/.dockerenv"), Path("/run/.containerenv"))
CONTAINER_NOTE = (
    "`systemctl daemon-reload` on the host can take the GPUs away from a container"
    " (nvidia-container-toolkit issue 48): run tallystick-node on the host itself"
)

JOIN_COMMAND = "tallystick-node join URL CODE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`state`: ok; absent (not there, and that is no fault); denied (there, and not for us);
    failed (must be put right). `todo` is what to do about it.
    """

    name: str
    state: str
    said: str
    todo: str = ""


def local(folder: StateFolder) -> Iterator[Check]:
    """The machine and the node's own files."""
    yield _key(folder)
    yield _files(folder)
    yield _disk(folder)
    yield _agent(folder)
    yield _container()


def _key(folder: StateFolder) -> Check:
    if not folder.signing_key.exists():
        return Check(name="key", state=ABSENT, said="none yet", todo=JOIN_COMMAND)
    try:
        key = load_key(folder.signing_key)
    except KeyUnreadable as error:
        return Check(name="key", state=FAILED, said=str(error), todo="see what is said")
    return Check(name="key", state=OK, said=f"fingerprint {fingerprint(public_key(key))}")


def _files(folder: StateFolder) -> Check:
    if not folder.path.is_dir():
        # The service's folder is a link that everybody sees and only root may follow.
        elsewhere = f"sudo tallystick-node doctor --state {SYSTEM_STATE}"
        todo = (
            f"the service's node is another: {elsewhere}" if os.path.lexists(SYSTEM_STATE) else ""
        )
        return Check(name="folder", state=ABSENT, said=f"{folder.path} is not there yet", todo=todo)
    if not os.access(folder.path, os.R_OK | os.W_OK | os.X_OK):
        return Check(
            name="folder",
            state=DENIED,
            said=f"{folder.path} cannot be written",
            todo="run this as the account that runs the node (a service of the system: sudo)",
        )
    mode = folder.path.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o077:
        return Check(
            name="folder",
            state=FAILED,
            said=f"{folder.path} can be read by others",
            todo=f"chmod 700 {folder.path}",
        )
    return Check(name="folder", state=OK, said=str(folder.path))


def _disk(folder: StateFolder) -> Check:
    there = next(path for path in (folder.path, *folder.path.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    said = f"{free // 1_048_576} MiB free"
    if free < DISK_BYTES_MIN:
        todo = "free some space: a disk that is full takes no more metered time"
        return Check(name="disk", state=FAILED, said=said, todo=todo)
    return Check(name="disk", state=OK, said=said)


def _agent(folder: StateFolder) -> Check:
    """Whether an agent works in this folder now: it holds the lock."""
    if not folder.lock.exists() or sys.platform == "win32":
        return Check(
            name="agent", state=ABSENT, said="never started here", todo="tallystick-node install"
        )
    import fcntl

    with suppress(OSError), folder.lock.open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return Check(name="agent", state=OK, said="metering now")
    return Check(
        name="agent",
        state=ABSENT,
        said="not running",
        todo="systemctl start tallystick-node, or tallystick-node run",
    )


def _container() -> Check:
    if any(path.exists() for path in CONTAINER_FILES):
        return Check(name="host", state=ABSENT, said="inside a container", todo=CONTAINER_NOTE)
    return Check(name="host", state=OK, said="no container")
