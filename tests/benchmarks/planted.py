"""Benchmarks that the runner's tests plant: each in a process of its own finds them by name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.workplace import workplace

KEPT = "PLANTED_KEPT"
"""The environment's name for the file of the results."""
STARTED = "PLANTED_STARTED"
"""For the file in which one that hangs writes what it has started: a line for each process."""


def first(*_: object) -> dict[str, Any]:
    return {"rate": 7}


def second(*_: object) -> dict[str, Any]:
    return {"rate": 8}


def failing(*_: object) -> dict[str, Any]:
    raise IndexError("list index out of range")


def dying(*_: object) -> dict[str, Any]:
    os._exit(9)


def orphaned(*_: object) -> dict[str, Any]:
    """Its runner is killed when all has started, and ends nothing."""
    threading.Thread(target=_kill_the_runner, daemon=True).start()
    return hanging()


def _kill_the_runner() -> None:
    while not Path(os.environ[STARTED]).exists():
        time.sleep(0.05)
    os.kill(os.getppid(), signal.SIGKILL)


def hanging(*_: object) -> dict[str, Any]:
    """With a server of its own and another process, neither of which goes by itself."""
    with workplace(None) as (folder, server):
        sleeper = subprocess.Popen(["sleep", "600"])
        started = Path(os.environ[STARTED])
        started.with_suffix(".new").write_text(f"{server.pid}\n{sleeper.pid}\n{folder}\n")
        started.with_suffix(".new").replace(started)
        while True:
            try:
                time.sleep(600)
            except KeyboardInterrupt:
                continue  # it does not even end when it is asked to


def last(*_: object) -> dict[str, Any]:
    kept = json.loads(Path(os.environ[KEPT]).read_text(encoding="utf-8"))
    assert kept["benchmarks"]["first"]["rate"] == 7, "written before the next begins"
    return {"rate": 9}
