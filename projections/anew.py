"""All views built anew at once, beside those that are there, to be compared with them and dropped.

    differing of a view == () <=> built from the log alone, every table of it has the same rows

What `tables.rebuild` finds view by view, several times faster: for the proof of a restore. Nearly
all of a rebuild is the reading of JSON, and twenty views read the same facts. Here a range of the
log is decoded once, into a table for all kinds of facts that the same rules read, and the rules of
all views find their `facts` there. Several connections go through the views of a range, so
PostgreSQL uses several processors. What is built serves no reader: it is not logged, has no indexes
for reading and no statistics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from queue import SimpleQueue
from typing import Final, TypeVar

import psycopg

from ledger.log import usage_reads
from projections import runner, tables
from projections.decoded import Decoded
from projections.runner import Connection, Projection
from projections.tables import PROJECTIONS, Rebuilt

T = TypeVar("T")
FACTS_MAX: Final = 2 * runner.REBUILD_FACTS_MAX
REPORTS_APART: Final = 50_000


def compare(
    conninfo: str,
    projections: Sequence[Projection] = PROJECTIONS,
    *,
    workers: int = 1,
    facts_max: int = FACTS_MAX,
) -> list[Rebuilt]:
    """Build these views anew and name the tables whose rows differ; what is there stays as it is.
    Of a view that cannot be built it is told why, and the others are compared.

    They are brought to the head first, and nobody else may append. Raises GapInLog, LockHeld.
    """
    with ExitStack() as stack:
        owner = stack.enter_context(psycopg.connect(conninfo, autocommit=True))
        tables.ensure(owner, projections)
        stack.enter_context(tables.exclusive(owner))
        stack.enter_context(tables.building(owner))
        build = _Build(projections)
        for each in projections:
            build.attempt(each, partial(tables.step_all, owner, [each]))
        _forget(owner, projections)
        stack.callback(_forget, owner, projections)
        stack.callback(tables.drop_scratch, owner, build.scratch)
        for each in projections:
            tables.create(owner, each, schema=_beside(each), is_kept=False)
        team = _Team(stack, conninfo, workers)
        _all_facts(team, build, tables.head(owner), facts_max)
        # A process that folds reports takes a second to start.
        apart = workers if _reports(owner) >= REPORTS_APART else 1
        reports: dict[str, int] = {}
        for each in build.whole():
            if each.reports is not None:
                lanes = partial(tables.all_lanes, owner, each, _beside(each), conninfo, apart)
                build.attempt(each, partial(_noted, reports, each.name, lanes))
        found = {each.name: team.do(partial(_differing, projection=each)) for each in build.whole()}
        for each in build.whole():
            build.attempt(each, found[each.name].result)
        facts, whole = tables.head(owner), {each.name for each in build.whole()}
        return [
            Rebuilt(each.name, facts, reports.get(each.name, 0), *found[each.name].result())
            if each.name in whole
            else Rebuilt(each.name, facts, 0, 0.0, None, build.failed[each.name])
            for each in projections
        ]


class _Build:
    """Views that are built together; one that fails is left out from there on."""

    def __init__(self, projections: Sequence[Projection]) -> None:
        self._projections = projections
        self.scratch = tables.drawn_scratch()
        self.failed: dict[str, str] = {}

    def whole(self) -> list[Projection]:
        """Those that have not failed."""
        return [each for each in self._projections if each.name not in self.failed]

    def attempt(self, projection: Projection, step: Callable[[], object]) -> None:
        """Go on with a view. What these facts do not allow is remembered; a database that is lost
        or has no room ends it all.
        """
        try:
            step()
        except psycopg.OperationalError:
            raise
        except (psycopg.Error, ValueError) as error:
            self.failed[projection.name] = str(error).strip().split("\n", 1)[0]


def _forget(owner: Connection, projections: Sequence[Projection]) -> None:
    """What this or a killed run built."""
    for projection in projections:
        tables.drop(owner, projection, schema=_beside(projection))


def _beside(projection: Projection) -> str:
    return f"{projection.schema}_next"


def _reports(connection: Connection) -> int:
    row = connection.execute(f"SELECT {usage_reads.STORED_COUNT}".encode()).fetchone()
    assert row is not None
    return int(row[0])


class _Team:
    """Connections that take the next task as soon as they are free."""

    def __init__(self, stack: ExitStack, conninfo: str, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers)
        self._free: SimpleQueue[Connection] = SimpleQueue()
        for _ in range(workers):
            self._free.put(stack.enter_context(psycopg.connect(conninfo, autocommit=True)))
        stack.callback(self._end)

    def do(self, task: Callable[[Connection], T]) -> Future[T]:
        return self._pool.submit(self._run, task)

    def _run(self, task: Callable[[Connection], T]) -> T:
        connection = self._free.get()
        try:
            return task(connection)
        finally:
            self._free.put(connection)

    def _end(self) -> None:
        """What was not begun is left; what runs is waited for."""
        self._pool.shutdown(cancel_futures=True)


def _all_facts(team: _Team, build: _Build, head: int, facts_max: int) -> None:
    """Every range of the market log through every view; the next range is decoded meanwhile."""
    took = {each.name: 0.0 for each in build.whole()}
    ranges = [(low, min(head, low + facts_max)) for low in range(0, head, facts_max)]
    following = _decoding(team, build, ranges, 0)
    for number, _ in enumerate(ranges):
        assert following is not None
        decoded = following.result()
        following = _decoding(team, build, ranges, number + 1)
        # The longest first, so that no connection waits for one that began late.
        order = sorted(build.whole(), key=lambda each: took[each.name], reverse=True)
        steps = [
            (each, team.do(partial(decoded.apply, projection=each, schema=_beside(each))))
            for each in order
        ]
        for each, step in steps:
            build.attempt(each, partial(_noted, took, each.name, step.result))


def _noted(told: dict[str, T], name: str, step: Callable[[], T]) -> None:
    told[name] = step()


def _decoding(
    team: _Team, build: _Build, ranges: list[tuple[int, int]], number: int
) -> Future[Decoded] | None:
    if number == len(ranges):
        return None
    first, last = ranges[number]
    schema = build.scratch[number % 2]
    return team.do(lambda connection: Decoded(connection, build.whole(), schema, first, last))


def _differing(connection: Connection, projection: Projection) -> tuple[float, tuple[str, ...]]:
    """Seconds, and the tables whose rows are not those that are there."""
    began = time.perf_counter()
    schemas = (projection.schema, _beside(projection))
    with connection.transaction():
        found = tables.differing_rows(connection, projection, schemas)
    return time.perf_counter() - began, found
