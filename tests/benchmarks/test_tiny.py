"""Every benchmark runs, at a size at which it measures nothing: what it calls has not changed."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass, field

import pytest

from benchmarks.__main__ import BENCHMARKS, Benchmark, table
from benchmarks.size import Size
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
    with postgres._connection.cursor() as cursor:
        for name in server.made:
            cursor.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda one: one.name)
def test_a_benchmark_runs_and_tells_its_lines(benchmark: Benchmark, shared: Shared) -> None:
    if benchmark.name == "reporter_footprint" and shutil.which("cc") is None:
        pytest.skip("no C compiler here, and the scripted driver is written in C")
    import os

    t0 = os.times()
    w = time.time()
    result = benchmark.run(Size.TINY, shared)
    t1 = os.times()
    print(
        f"CPU {benchmark.name} wall {time.time() - w:.1f} self {t1[0] + t1[1] - t0[0] - t0[1]:.2f} children {t1[2] + t1[3] - t0[2] - t0[3]:.2f}"
    )
    lines = list(benchmark.lines(result))
    assert lines
    json.dumps([result, [asdict(line) for line in lines]])
    assert all(line.what in table(lines) for line in lines)
