"""All views built anew at once, beside those that are there, to be compared with them and dropped.

    differing of a view == () <=> built from the log alone, every table of it has the same rows

What `tables.rebuild` finds view by view, several times faster: for the proof of a restore. Nearly
all of a rebuild is the reading of JSON, and twenty views read the same facts. Here a range of the
log is decoded once, into a table for each kind of fact, and the rules of all views find their
`facts` there. Several connections go through the views of a range, so PostgreSQL uses several
processors. What is built serves no reader: it is not logged, has no indexes for reading and no
statistics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from queue import SimpleQueue
from typing import Final, TypeVar

import psycopg

from ledger.log import usage_reads
from projections import runner, tables
from projections.runner import Connection, Projection, Rule, own
from projections.tables import PROJECTIONS, Rebuilt

T = TypeVar("T")
FACTS_MAX: Final = runner.REBUILD_FACTS_MAX
REPORTS_APART: Final = 50_000
_ALWAYS = "position, stream_version, topic, recorded_us"
_DECODED = "proj_decoded_"


def compare(
    conninfo: str,
    projections: Sequence[Projection] = PROJECTIONS,
    *,
    workers: int = 1,
    facts_max: int = FACTS_MAX,
) -> list[Rebuilt]:
    """Build these views anew and name the tables whose rows differ; what is there stays as it is.

    They are brought to the head first, and nobody else may append. Raises GapInLog.
    """
    with ExitStack() as stack:
        owner = stack.enter_context(psycopg.connect(conninfo, autocommit=True))
        tables.ensure(owner, projections)
        tables.step_all(owner, projections)
        _forget(owner, projections)
        stack.callback(_forget, owner, projections)
        for projection in projections:
            tables.create(owner, projection, schema=_beside(projection), is_kept=False)
        team = _Team(stack, conninfo, workers)
        _all_facts(team, projections, _head(owner), facts_max)
        # A process that folds reports takes a second to start.
        apart = workers if _reports(owner) >= REPORTS_APART else 1
        reports = {
            each.name: tables.all_lanes(owner, each, _beside(each), conninfo, apart)
            for each in projections
            if each.reports is not None
        }
        found = [team.do(partial(_differing, projection=each)) for each in projections]
        facts = _head(owner)
        return [
            Rebuilt(each.name, facts, reports.get(each.name, 0), *one.result())
            for each, one in zip(projections, found, strict=True)
        ]


def _forget(owner: Connection, projections: Sequence[Projection]) -> None:
    """What this or a killed run built."""
    for projection in projections:
        tables.drop(owner, projection, schema=_beside(projection))
    for number in (0, 1):
        owner.execute(f"DROP SCHEMA IF EXISTS {_DECODED}{number} CASCADE".encode())


def _beside(projection: Projection) -> str:
    return f"{projection.schema}_next"


def _head(connection: Connection) -> int:
    row = connection.execute("SELECT pos FROM public.market_events_head").fetchone()
    assert row is not None
    return int(row[0])


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


def _all_facts(team: _Team, projections: Sequence[Projection], head: int, facts_max: int) -> None:
    """Every range of the market log through every view; the next range is decoded meanwhile."""
    took = {each.name: 0.0 for each in projections}
    ranges = [(low, min(head, low + facts_max)) for low in range(0, head, facts_max)]
    following = _decoding(team, projections, ranges, 0)
    for number, _ in enumerate(ranges):
        assert following is not None
        decoded = following.result()
        following = _decoding(team, projections, ranges, number + 1)
        # The longest first, so that no connection waits for one that began late.
        order = sorted(projections, key=lambda each: took[each.name], reverse=True)
        steps = [(each, team.do(partial(decoded.apply, projection=each))) for each in order]
        for each, step in steps:
            took[each.name] = step.result()


def _decoding(
    team: _Team, projections: Sequence[Projection], ranges: list[tuple[int, int]], number: int
) -> Future[Decoded] | None:
    if number == len(ranges):
        return None
    first, last = ranges[number]
    schema = f"{_DECODED}{number % 2}"
    return team.do(lambda connection: Decoded(connection, projections, schema, first, last))


class Decoded:
    """The facts first < position <= last, in a table of `schema` for each kind that a rule reads.

    A column is there for every field that some rule reads of the kind. Where two rules read one
    field as different types, the column has the first one's, and the other rule decodes for itself.
    """

    def __init__(
        self,
        connection: Connection,
        projections: Iterable[Projection],
        schema: str,
        first: int,
        last: int,
    ) -> None:
        self._schema, self._first, self._last = schema, first, last
        self._counted = runner.counted(connection, first, last)
        self._columns: dict[str, dict[str, str]] = {}
        for topic, fields in _read(projections):
            if topic in self._counted:
                columns = self._columns.setdefault(topic, {})
                for name, kind in fields:
                    columns.setdefault(name, kind)
        self._tables = {topic: f"{schema}.t{n}" for n, topic in enumerate(self._columns)}
        with connection.transaction():
            connection.execute("SET LOCAL synchronous_commit = off")
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
            connection.execute(f"CREATE SCHEMA {schema}".encode())
            for topic, columns in self._columns.items():
                told = ", ".join(f"{name} {kind}" for name, kind in columns.items())
                facts = runner.facts_of((topic,), told).replace("%(first)s", str(first))
                connection.execute(
                    f"CREATE UNLOGGED TABLE {self._tables[topic]} AS "
                    f"{facts.replace('%(last)s', str(last))}".encode()
                )

    def apply(self, connection: Connection, projection: Projection) -> float:
        """Run the rules of one view over the range, in its schema beside; returns the seconds."""
        began = time.perf_counter()
        schema, span = _beside(projection), {"first": self._first, "last": self._last}
        with connection.transaction():
            assert runner.lock(connection, schema) == self._first, schema
            for rule in projection.rules:
                if not rule.topics or not self._counted.keys().isdisjoint(rule.topics):
                    connection.execute(self._statement(rule, schema), span)
            runner.move(connection, schema, self._last)
        return time.perf_counter() - began

    def _statement(self, rule: Rule, schema: str) -> bytes:
        topics = [topic for topic in rule.topics if topic in self._columns]
        fields = runner.fields_of(rule) if topics else []
        if not topics or any(
            self._columns[topic][name] != kind for topic in topics for name, kind in fields
        ):
            return runner.statement(rule, schema)
        names = ", ".join([_ALWAYS, *(name for name, _ in fields)])
        facts = " UNION ALL ".join(f"SELECT {names} FROM {self._tables[one]}" for one in topics)
        return own(schema, f"WITH facts AS ({facts}) {rule.sql}")


def _read(projections: Iterable[Projection]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Which fields of which kind of fact the rules read, as (name, type)."""
    for projection in projections:
        for rule in projection.rules:
            for topic in rule.topics:
                yield topic, runner.fields_of(rule)


def _differing(connection: Connection, projection: Projection) -> tuple[float, tuple[str, ...]]:
    """Seconds, and the tables whose rows are not those that are there."""
    began = time.perf_counter()
    schemas = (projection.schema, _beside(projection))
    with connection.transaction():
        found = tables.differing_rows(connection, projection, schemas)
    return time.perf_counter() - began, found
