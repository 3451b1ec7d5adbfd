"""kill -9 before every statement of the spool: nothing that was recorded or acknowledged is lost.

The process is real, and so are its file and its connection; the server outlives it and is the judge
of the chain. The node's clock is stepped, so that a life of a minute takes a second.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from domain.metering import report
from node_reporter.clock import SteppedClock
from node_reporter.identity import public_key
from tests.node_reporter.killed import RUN_US
from tests.node_reporter.model_server import ModelServer, serve
from tests.node_reporter.reporter_scene import BEGIN_US, KEY, WALL_US

ROOT = Path(__file__).parents[3]
DEATHS = 12


class Life:
    """One spool over many processes, and the server they all talk to."""

    def __init__(self, folder: Path) -> None:
        self.spool = folder / "spool.db"
        self.clock = SteppedClock(wall_us=WALL_US)
        self.server = ModelServer(public_key=public_key(KEY), clock=self.clock)
        self.server.windows.append(
            {"lease_id": "lease_" + "1" * 32, "device_id": "GPU-x", "from_us": WALL_US}
        )
        self.on_disk: list[tuple[int, int]] = []
        self.runs = 0
        self.acked: list[bytes] = []

    def run(self, url: str, kill_at: int) -> int | None:
        """The number of statements of a process that was let live, None for one that was killed."""
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.node_reporter.killed",
                str(self.spool),
                url,
                str(self.runs),
                str(kill_at),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode in (0, -9), done.stderr
        self.runs += 1
        self.clock.advance(RUN_US)
        times, _, statements = done.stdout.partition("statements ")
        if times:
            begin_us = BEGIN_US + (self.runs - 1) * RUN_US
            self.on_disk.append((begin_us, int(times.split("\n")[-2])))
        assert self.server.bodies[: len(self.acked)] == self.acked, "what is acknowledged stays"
        self.acked = list(self.server.bodies)
        return int(statements) if statements else None

    def judge(self) -> None:
        """Every microsecond once, in order, under one chain; what was on disk is not unknown."""
        assert self.server.alerts == []
        bodies, prev = self.server.bodies, report.genesis(self.server.node_id, public_key(KEY))
        for number, body in enumerate(bodies, 1):
            one = report.parse(body)
            assert (one.seq, one.prev) == (number, prev.hex())
            prev = report.report_hash(body)
        rows = [row for _, _, row in self.server.rows()]
        assert all(a.mono_end_us == b.mono_start_us for a, b in pairwise(rows))
        assert rows[-1].mono_end_us == self.on_disk[-1][1]
        for begin_us, told_us in self.on_disk:
            lived = [
                row for row in rows if begin_us <= row.mono_start_us and row.mono_end_us <= told_us
            ]
            assert sum(row.available_us for row in lived) >= told_us - begin_us - _part(
                rows, told_us
            )


def _part(rows: list[report.Row], told_us: int) -> int:
    """Time of the row that goes on behind what was told: it was open, and is longer on disk."""
    across = [row for row in rows if row.mono_start_us < told_us < row.mono_end_us]
    assert all(row.unknown_us == 0 for row in across)
    return sum(told_us - row.mono_start_us for row in across)


def survive(folder: Path, deaths: Callable[[int], Sequence[int]]) -> tuple[int, list[int]]:
    """Live through the kills that `deaths` makes of the number of statements of a life: how many
    statements that was, and before which a life ended. One that has fewer than the first lives.
    """
    life = Life(folder)
    with serve(life.server) as url:
        statements = life.run(url, 0)
        assert statements is not None
        died = [kill_at for kill_at in deaths(statements) if life.run(url, kill_at) is None]
        assert life.run(url, 0) is not None, "nobody killed this one"
    life.judge()
    return statements, died


def evenly(statements: int) -> Sequence[int]:
    return [1 + number * statements // DEATHS for number in range(DEATHS)]


def run(seed: int) -> None:
    """A dozen lives of one spool, each ended before a statement that the seed draws."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="tally") as folder:
        _, died_before = survive(
            Path(folder), lambda statements: [draw.randint(1, statements) for _ in range(DEATHS)]
        )
    assert len(died_before) > DEATHS // 2, "a dozen were to die"


def test_a_reporter_killed_thrice_loses_nothing_and_forks_no_chain(tmp_path: Path) -> None:
    """At the beginning of a life, and after each third of it."""
    statements, died_before = survive(
        tmp_path, lambda many: [1 + third * many // 3 for third in range(3)]
    )
    assert len(set(died_before)) == 3
    assert statements > 150


@pytest.mark.slow("::test_a_reporter_killed_thrice_loses_nothing_and_forks_no_chain")
@pytest.mark.timeout(120)
def test_a_reporter_killed_a_dozen_times_loses_nothing_and_forks_no_chain(tmp_path: Path) -> None:
    statements, died_before = survive(tmp_path, evenly)
    assert len(set(died_before)) == DEATHS
    assert statements > 150


@pytest.mark.long
@pytest.mark.timeout(2_400)
def test_a_reporter_killed_before_every_statement_loses_nothing(tmp_path: Path) -> None:
    """200 processes and more: one dies before each statement of a life from start to stop.

    One of twenty lives, or what the others left behind would make each life longer than the last.
    """
    life = Life(tmp_path)
    with serve(life.server) as url:
        killed, kill_at = 0, 1
        while killed < 200 or kill_at:
            lived = life.run(url, kill_at)
            killed += lived is None
            if lived is not None:
                kill_at = 0 if killed >= 200 else 1
                continue
            kill_at += 1
            if killed % 20 == 0:
                assert life.run(url, 0) is not None
        assert life.run(url, 0) is not None
    life.judge()
    assert killed >= 200
