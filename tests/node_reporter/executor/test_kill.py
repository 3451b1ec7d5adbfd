"""kill -9 of the executor while a lease runs: its work ends, is told as lost, and leaves nothing.

what it used is on disk as counters, and stays the same after the restart: told once
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from node_reporter.executor.state import ExecutorFolder
from node_reporter.executor.usage import CGROUPS
from node_reporter.meter.used import read_used, rows_between
from tests.node_reporter.confined import needs_walls, processes_with
from tests.node_reporter.executor.test_executor import ME, NODE, Server
from tests.node_reporter.model_server import serve

ROOT = Path(__file__).parents[3]
SECONDS_MAX = 60.0
SCRIPT = "echo up; (sleep {mark} & sleep {mark} & wait) & echo secret > left; wait"


@dataclass
class Node:
    """A folder of an executor, the server it asks, and the process, which may be killed."""

    folder: ExecutorFolder
    url: str
    server: Server
    process: subprocess.Popen[bytes] | None = None
    leases: int = field(default=0)

    def start(self) -> None:
        command = [
            *(sys.executable, "-m", "node_reporter", "exec"),
            *("--executor-state", str(self.folder.path), "--allow-http"),
            *("--every", "50", "--grace", "1", "--memory", "256"),
        ]
        with (self.folder.path / "said").open("ab") as said:
            self.process = subprocess.Popen(command, cwd=ROOT, stderr=said)

    def kill(self) -> None:
        assert self.process is not None
        assert self.process.poll() is None, self.said()
        self.process.kill()
        self.process.wait(SECONDS_MAX)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(SECONDS_MAX)

    def until(self, holds: Callable[[], object], what: str) -> None:
        ends = time.monotonic() + SECONDS_MAX
        while not holds():
            assert time.monotonic() < ends, f"{what}: {self.said()}"
            time.sleep(0.02)

    def said(self) -> str:
        return (self.folder.path / "said").read_text(errors="replace")[-2_000:]


@contextmanager
def node() -> Generator[Node, None, None]:
    with tempfile.TemporaryDirectory(prefix="tally") as name:
        path = Path(name)
        path.chmod(0o755)  # jobs run as another user
        folder = ExecutorFolder(path / "executor")
        server = Server()
        with serve(server) as url:  # type: ignore[arg-type]
            folder.remember(url=url, node_id=NODE, executor_key="ts_exec_key")
            text = folder.settings.read_text()
            (line,) = (one for one in text.splitlines() if one.startswith("executor = "))
            folder.settings.write_text(text.replace(line, f'executor = "{ME}"'))
            made = Node(folder, url, server)
            try:
                yield made
            finally:
                made.stop()


def kill_once(here: Node, wait: Callable[[str], None]) -> str:
    """A lease starts, the executor dies at some moment of it, and another one takes over; its id.

    The work is told as lost; or begins again, where the server had not opened it; or is over.
    """
    here.leases += 1
    mark = f"{90_000 + os.getpid() % 1_000}.{here.leases:04}"
    lease = here.server.asks(f"{here.leases}", SCRIPT.format(mark=mark))
    wait(lease)
    here.kill()
    here.until(lambda: not processes_with(mark), "its work ends with it")
    used = {one.lease_id: one for one in read_used(here.folder.used)}
    begun = len(here.server.said(lease, "ready"))
    here.start()
    here.until(
        lambda: (
            here.server.said(lease, "ended")
            or len(here.server.said(lease, "ready")) > begun
            or lease not in here.server.starts
        ),
        "it is told",
    )
    if lease in here.server.running:
        here.server.closes(lease)
    here.until(lambda: lease not in here.server.starts, "its stop is acknowledged")
    ended = here.server.said(lease, "ended")
    assert len(ended) <= 1, "told once"
    if used.get(lease) is not None and ended and ended[0]["outcome"] == "lost":
        (now,) = (one for one in read_used(here.folder.used) if one.lease_id == lease)
        assert rows_between(used[lease], now, 0) == [], "its use is told once"
    here.until(lambda: not _left(here, lease), "nothing is left behind")
    assert processes_with(mark) == []
    return lease


def _left(here: Node, lease: str) -> list[Path]:
    groups = [*CGROUPS.glob(f"*/tallystick-{lease}"), *CGROUPS.glob(f"tallystick-{lease}")]
    return [*here.folder.jobs.glob(f"{lease}*"), *groups]


@needs_walls
@pytest.mark.timeout(180)
def test_work_of_an_executor_that_is_killed_thrice_is_told_as_lost_and_leaves_nothing() -> None:
    """While it runs and its use is counted, right after it was taken up, and while it stops."""
    with node() as here:
        here.start()

        def counted(lease: str) -> None:
            here.until(lambda: "up" in here.server.out(lease), "it runs")
            here.until(lambda: (here.folder.used / lease).exists(), "its use is counted")
            assert here.process is not None
            limits = Path(f"/proc/{here.process.pid}/limits").read_text()
            assert re.search(r"^Max core file size +0 +0 ", limits, re.MULTILINE), "no dump of keys"

        def taken_up(lease: str) -> None:
            here.until(lambda: here.server.said(lease, "acknowledge"), "it is taken up")

        def stopping(lease: str) -> None:
            here.until(lambda: "up" in here.server.out(lease), "it runs")
            here.server.closes(lease)

        lease = kill_once(here, counted)
        (ended,) = here.server.said(lease, "ended")
        assert (ended["outcome"], ended["exit_code"]) == ("lost", None)
        assert f"{lease} was left by an executor that was killed" in here.said()
        kill_once(here, taken_up)
        kill_once(here, stopping)


def run(seed: int) -> None:
    """Five kills, each at a moment that the seed draws."""
    random = Random(seed)
    with node() as here:
        here.start()
        for _ in range(5):
            kill_once(here, lambda _lease: time.sleep(random.random() * 2.0))
