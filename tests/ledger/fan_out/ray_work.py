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
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.epochs import settle as synthetic
from benchmarks.log.verify import write_bundle
from benchmarks.size import Size
from ledger.bundle.verify import verify_bundle
from ledger.fan_out.executor import Executor
from ledger.fan_out.ray_tasks import NAME, RayTasks

ROOT = Path(__file__).parents[3]
SIZE = synthetic.SIZES[Size.TINY].epoch
PORT = 6399
NODE = ("--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=100000000")
STARTED_S, STARTS_MAX = 120, 3


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


def _processes() -> Iterator[tuple[int, str]]:
    """Each process that is seen here, and its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield int(path.parent.name), path.read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):
            continue


def kill_worker(session: str) -> bool:
    """SIGKILL for a process that does a task of this cluster now; whether there was one."""
    for pid, command in _processes():
        if command.startswith(f"ray::{NAME}"):
            where = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
            if f"RAY_WORK={session}\0" in where:
                os.kill(pid, signal.SIGKILL)
                return True
    return False


# --- two nodes -------------------------------------------------------------------------------


def start(folder: Path, *more: str) -> None:
    """A node beside this process. Ray gives a node 30 s to start, which a busy machine may need
    twice.
    """
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", *NODE, *more]
    with (folder / "ray.log").open("ab") as told:
        for _ in range(STARTS_MAX):
            done = subprocess.run(
                command, stdout=told, stderr=told, timeout=STARTED_S, cwd=ROOT, check=False
            )
            if done.returncode == 0:
                return
    raise AssertionError(f"a node did not start {STARTS_MAX} times")


def raylets() -> set[int]:
    return {pid for pid, command in _processes() if command.split(" ")[0].endswith("/raylet")}


def kill_node(raylet: int) -> bool:
    os.kill(raylet, signal.SIGKILL)
    return True


def two_nodes(folder: Path, sockets: Path) -> dict[str, Any]:
    """Both pieces of work on two nodes; then each again, with the second node killed meanwhile."""
    found: dict[str, Any] = {}
    head = ("--head", f"--port={PORT}", "--include-dashboard=false", "--disable-usage-stats")
    start(folder, *head, f"--temp-dir={sockets}")
    first = raylets()
    address = f"127.0.0.1:{PORT}"
    works: dict[str, Callable[[Executor], str]] = {
        "digest": lambda executor: digest(folder, executor),
        "root": lambda executor: root(folder, executor, f"store_{time.monotonic_ns()}"),
    }
    for name, work in works.items():
        start(folder, f"--address={address}", "--disable-usage-stats")
        (second,) = raylets() - first
        with RayTasks(address) as tasks:
            found[f"{name}_processors"] = tasks.processors()
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
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    sys.stdout.write(json.dumps(two_nodes(folder, sockets)) + "\n")


if __name__ == "__main__":
    main()
