"""Every benchmark runs, at a size at which it measures nothing: what it calls is still there.

In the runs themselves all is checked that a full run checks: the books, every lease, every root.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from dataclasses import asdict, dataclass, field

import psycopg
import pytest
from psycopg import sql

from benchmarks.door import console, under_attack
from benchmarks.fleet import fleet_read
from benchmarks.lines import BENCHMARKS, Benchmark
from benchmarks.log import restore
from benchmarks.size import Size
from benchmarks.table import table
from tests.conftest import Databases


@dataclass
class Shared:
    """The server of all tests; a benchmark's databases on it are copies of one that is migrated."""

    postgres: Databases
    template: str
    made: list[str] = field(default_factory=list)

    @property
    def uri(self) -> str:
        return self.postgres.uri

    @property
    def pid(self) -> int:
        return self.postgres.pid

    def create_database(self, name: str) -> str:
        self.made.append(name)
        return self.postgres.create_database(name, template=self.template)


@pytest.fixture
def shared(postgres: Databases, template: str) -> Generator[Shared, None, None]:
    server = Shared(postgres, template)
    yield server
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        for name in server.made:  # some drop theirs themselves, to have room for the next
            dropped = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            connection.execute(dropped.format(sql.Identifier(name)))


SHORT = {"append", "append_market", "accrual", "matching", "rehearsal"}
WHOLE = pytest.mark.slow("::test_a_benchmark_runs_and_tells_its_lines")


def params() -> list[object]:
    return [
        pytest.param(one, id=one.name, marks=() if one.name in SHORT else WHOLE)
        for one in BENCHMARKS
    ]


@pytest.mark.parametrize("benchmark", params())
def test_a_benchmark_runs_and_tells_its_lines(benchmark: Benchmark, shared: Shared) -> None:
    if benchmark.name == "reporter_footprint" and not (shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("no C compiler here, and the scripted driver is written in C")
    result = benchmark.run(Size.TINY, shared)
    lines = list(benchmark.lines(result))
    assert lines
    assert json.loads(json.dumps([result, [asdict(line) for line in lines]]))
    told = table(lines)
    assert all(line.what in told for line in lines)


def test_the_fleet_is_read(shared: Shared) -> None:
    """It is in no table: it is asked for alone."""
    told = fleet_read.run(40, shared)
    assert told["conditions"]["devices"] == 320


@pytest.mark.long
def test_a_renter_is_answered_under_each_attack(shared: Shared) -> None:
    """It is in no table either; at this size it says that the attacks are what they were."""
    told = under_attack.run(Size.TINY, shared)
    rows = {row["attack"]: row for row in told["rows"]}
    assert set(rows) == {None, "empty", *under_attack.ATTACKS}
    assert all(row["failed"] == 0 for row in rows.values()), under_attack.table(told)
    assert rows["closes"]["attacker"].keys() <= {"201", "200", "429"}, "never 500 (S-L13)"
    assert "401" in rows["strangers"]["attacker"]


@pytest.mark.long
def test_the_console_is_measured(shared: Shared) -> None:
    """In no table; every page answers, and every line of a lease reaches its live page."""
    told = console.run(Size.TINY, shared)
    assert told["live"]["lines"] >= 2
    assert told["live"]["lines_never_told"] == 0
    assert told["script"]["kib"] < console.SCRIPT_KIB
    assert len(told["visitors"]["memory_kib"]) == 4
    assert told["pages"], console.table(told)


@pytest.mark.long
def test_a_market_is_restored() -> None:
    told = restore.run(Size.TINY)
    assert told["proved"]["whole"]
    assert told["proved"]["missing_facts"] == 0
