"""Started as a program of its own: lets go of rights, sets limits, and becomes the job.

    python -I -S launch.py '{"argv": [...], "limits": {...}, "user": [uid, gid] or null, ...}'

It imports nothing of ours, so that it can run under any user. What it does cannot be undone by what
it becomes: hard limits, `no_new_privs`, closed files, another user. With `supervise` it stays
behind instead, adopts whatever the job leaves behind, and ends that with the job. Linux only.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
LIMITS = {
    "memory_bytes": resource.RLIMIT_DATA,
    "open_files": resource.RLIMIT_NOFILE,
    "folder_bytes": resource.RLIMIT_FSIZE,
    "cpu_seconds": resource.RLIMIT_CPU,
}
NOT_STARTED = 126


def main(text: str) -> NoReturn:
    told: dict[str, Any] = json.loads(text)
    _let_go(told)
    # This interpreter may have added one of its own.
    for name in os.environ.keys() - set(told["variables"]):
        del os.environ[name]
    if told.get("supervise"):
        _supervise(told["argv"], _renters(told.get("told_fd")))
    os.execvpe(told["argv"][0], told["argv"], os.environ)  # noqa: S606


def _let_go(told: dict[str, Any]) -> None:
    kept = sorted(told.get("keep", ()))
    for first, last in zip([3, *(fd + 1 for fd in kept)], [*kept, 4_096], strict=True):
        os.closerange(first, last)
    os.umask(0o077)
    for group in told.get("groups", ()):  # while there is still the right to
        with open(group, "w") as file:
            file.write("0")
    user = told.get("user")
    if user is not None:
        os.setgroups([])
        os.setgid(user[1])
        os.setuid(user[0])
    for name, most in told["limits"].items():
        if name in LIMITS and most is not None:
            _, hard = resource.getrlimit(LIMITS[name])
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(LIMITS[name], (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    # After the change of user, which forgets it: the job does not outlive the executor.
    _end_with(told["executor"])


def _end_with(parent: int) -> None:
    """This process ends when its parent does, and at once where that has ended already: nobody
    tells of an end that was before the wish to be told.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _renters(handle: int | None) -> dict[str, str]:
    """Variables of the renter: read without rights, and set for the job alone."""
    if handle is None:
        return {}
    with os.fdopen(handle, "rb") as told:
        found: dict[str, str] = json.load(told)
    return found


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")


# --- staying behind ------------------------------------------------------------------------------


def _supervise(argv: list[str], variables: dict[str, str]) -> NoReturn:
    """Run it as a child; when it is over, or SIGUSR1 comes, end everything it left behind."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        _end_with(supervisor)
        try:
            os.execvpe(argv[0], argv, {**os.environ, **variables})  # noqa: S606
        except OSError as error:
            sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
            sys.stderr.flush()
            os._exit(127 if isinstance(error, FileNotFoundError) else NOT_STARTED)

    def forward(_number: int, _frame: Any) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGUSR1, lambda _number, _frame: _kill(descendants(os.getpid())))
    _, status = os.waitpid(pid, 0)
    _end_descendants()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _end_descendants() -> None:
    """SIGKILL to every process below this one, until there is none: a fork may be under way."""
    while below := descendants(os.getpid()):
        _kill(below)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if all(_is_over(pid) for pid in below):
            return
        time.sleep(0.01)


def _is_over(pid: int) -> bool:
    fields = _stat(Path(f"/proc/{pid}/stat"))
    return fields is None or fields[0] == "Z"


def descendants(root: int) -> list[int]:
    """Every process below this one, from /proc."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(folder / "stat")
        if fields is not None:
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
    found: list[int] = []
    left = [root]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def _stat(path: Path) -> list[str] | None:
    """The fields from the state on; the name before them may hold anything."""
    try:
        return path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


if __name__ == "__main__":
    main(sys.argv[1])
