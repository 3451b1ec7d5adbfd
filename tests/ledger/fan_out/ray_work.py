"""What the tests of Ray do on a cluster: an export verified and an epoch settled, while something
is killed. Run by itself it makes a cluster of two nodes with one processor each:

    unshare --net --pid --fork --mount-proc python -m tests.ledger.fan_out.ray_work FOLDER SOCKETS

because `ray start` announces the first address that is not the loopback interface's, and so that
all that it starts ends with it. The name of the folder of sockets has to be short.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.epochs import settle as synthetic
from benchmarks.log.ray_nodes import (
    ADDRESS,
    HEAD,
    SECOND,
    open_network,
    processes,
    raylets,
    start,
    wait_for_both,
)
from benchmarks.log.verify import write_bundle
from benchmarks.size import Size
from ledger.bundle.verify import verify_bundle
from ledger.fan_out.executor import Executor
from ledger.fan_out.ray_tasks import NAME, RayTasks

ROOT = Path(__file__).parents[3]
SIZE = synthetic.SIZES[Size.TINY].epoch


@dataclass
class Killing:
    """The executor, with something killed once, after so many results."""

    executor: Executor
    kill: Callable[[], bool]
    after: int = 8
    done: int = 0
    has_killed: bool = False

    def map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        for found in self.executor.map(function, tasks):
            self.done += 1
            if self.done >= self.after and not self.has_killed:
                self.has_killed = self.kill()
            yield found


def make(folder: Path) -> None:
    """An export, and an epoch's lanes, for `digest` and `root`."""
    write_bundle(folder / "bundle", nodes=256, reports_each=8)
    (folder / "lanes").mkdir()
    synthetic.write_lanes(folder / "lanes", SIZE)


def digest(folder: Path, executor: Executor) -> str:
    found = verify_bundle(folder / "bundle", executor=executor)
    assert found.ok, found
    return found.digest


def root(folder: Path, executor: Executor, name: str) -> str:
    files = [folder / "lanes" / f"{lane}.npz" for lane in range(synthetic.LANES)]
    store = folder / name
    store.mkdir()
    return synthetic.root_by_lanes(SIZE, files, executor, store)


def kill_worker(session: str) -> bool:
    """SIGKILL for a process that does a task of this cluster now; whether there was one."""
    for pid, command in processes():
        if command.startswith(f"ray::{NAME}"):
            where = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
            if f"RAY_WORK={session}\0" in where:
                os.kill(pid, signal.SIGKILL)
                return True
    return False


# --- two nodes -------------------------------------------------------------------------------


def kill_node(raylet: int) -> bool:
    os.kill(raylet, signal.SIGKILL)
    return True


def two_nodes(folder: Path, sockets: Path) -> dict[str, Any]:
    """Both pieces of work on two nodes; then each again, with the second node killed meanwhile."""
    found: dict[str, Any] = {}
    start(folder, *HEAD, f"--temp-dir={sockets}")
    first = raylets()
    works: dict[str, Callable[[Executor], str]] = {
        "digest": lambda executor: digest(folder, executor),
        "root": lambda executor: root(folder, executor, f"store_{time.monotonic_ns()}"),
    }
    for name, work in works.items():
        start(folder, *SECOND)
        (second,) = raylets() - first
        with RayTasks(ADDRESS) as tasks:
            found[f"{name}_processors"] = wait_for_both(tasks)
            found[name], found[f"{name}_seconds"] = _timed(work, tasks)
            killing = Killing(tasks, partial(kill_node, second))
            told = _timed(work, killing)
            found[f"{name}_node_killed"], found[f"{name}_node_killed_seconds"] = told
            found[f"{name}_has_killed"] = killing.has_killed
    return found


def _timed(work: Callable[[Executor], str], executor: Executor) -> tuple[str, float]:
    began = time.monotonic()
    found = work(executor)
    return found, round(time.monotonic() - began, 1)


def main() -> None:
    folder, sockets = map(Path, sys.argv[1:])
    open_network()
    sys.stdout.write(json.dumps(two_nodes(folder, sockets)) + "\n")


if __name__ == "__main__":
    main()
