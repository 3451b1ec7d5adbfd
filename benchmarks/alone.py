"""One benchmark in a process of its own, which is ended when it takes too long.

Whatever happens to it, death and hanging included, the others find the machine as before: it and
all that it started are gone afterwards, and so is the folder it worked in.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from benchmarks.size import Size

GOING_SECONDS = 5.0
"""For a process that has answered."""
PATIENCE_SECONDS = 60.0
"""For one that is asked to end: its servers stop, its folders go."""


class Failed(Exception):
    """A benchmark gave no result; says why in one line."""


def run_alone(
    run: Callable[[Size, None], dict[str, Any]], size: Size, limit_seconds: float
) -> dict[str, Any]:
    """What `run` gives in a process that knows nothing of the benchmarks before it.

    Raises Failed with the last line of its traceback, or that it died, or that it was ended.
    """
    making = get_context("spawn")
    ours, theirs = making.Pipe(duplex=False)
    folder = Path(tempfile.mkdtemp(prefix="bench", dir="/tmp"))
    folder.chmod(0o755)  # PostgreSQL does not run as root
    process = making.Process(target=_child, args=(theirs, run, size, str(folder)))
    process.start()
    theirs.close()
    try:
        return _answer(ours, process, limit_seconds)
    finally:
        _end(process, folder)


def _child(pipe: Connection, run: Callable[..., Any], size: Size, folder: str) -> None:
    os.setsid()  # so that all that it starts can be ended with it
    threading.Thread(target=_end_with_runner, args=(folder,), daemon=True).start()
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    try:
        told = run(size, None)
    except BaseException as error:
        traceback.print_exc()
        pipe.send(("failed", traceback.format_exception_only(error)[-1].strip()))
    else:
        pipe.send(("measured", told))


def _end_with_runner(folder: str) -> None:
    """A runner that was killed ends nothing itself."""
    runner = parent_process()
    if runner is not None:
        runner.join()
        _leave_nothing(Path(folder))
        os.killpg(os.getpid(), signal.SIGKILL)


def _answer(pipe: Connection, process: BaseProcess, limit_seconds: float) -> dict[str, Any]:
    if not pipe.poll(limit_seconds):
        raise Failed(f"ended after {limit_seconds:,.0f} s without a result")
    try:
        kind, told = pipe.recv()
    except EOFError:
        process.join()
        raise Failed(f"its process died: exit code {process.exitcode}") from None
    if kind == "failed":
        raise Failed(told)
    found: dict[str, Any] = told
    return found


def _end(process: BaseProcess, folder: Path) -> None:
    """It has answered and goes by itself, or is asked to go, or is made to."""
    assert process.pid is not None
    if process.is_alive():
        process.join(GOING_SECONDS)
    if process.is_alive():
        os.kill(process.pid, signal.SIGINT)  # as Ctrl-C: its servers are stopped in order
        process.join(PATIENCE_SECONDS)
    with suppress(ProcessLookupError):  # nothing of it is left
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()  # it may hang before it has a group of its own
    process.join()
    _leave_nothing(folder)


def _leave_nothing(folder: Path) -> None:
    """Of the servers that have left the group, and of what they wrote."""
    for pid in _working_in(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def _working_in(folder: Path) -> list[int]:
    """Processes whose command names a place in the folder."""
    found = []
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            try:
                command = (one / "cmdline").read_bytes()
            except OSError:
                continue  # it ended just now
            if f"{folder}/".encode() in command:
                found.append(int(one.name))
    return found
