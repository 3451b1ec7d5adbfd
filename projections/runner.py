"""Follow the logs. A projection's rows and its position move in one transaction, or neither does.

    rows == f(facts 1 .. position)          after every commit, whatever was killed in between

A rule is one set-based statement over a range of facts, run inside PostgreSQL: no fact of the
market log is decoded here. The position's row is locked first and is the fence: a second runner of
the same projection waits, then finds the position moved. This is no place to decide anything: a
rule adds up what was decided.

Rules run in their order over the whole range, so they must give the same rows for every way of
cutting the log into ranges. Tables of the projection itself are written `own.<table>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from ledger.log import lane_store, usage_reads
from ledger.log.lane_store import LanesStopped
from ledger.log.usage import StoredReport

Connection = psycopg.Connection[TupleRow]

MARKET = "market"
LANES = 64
FOLLOW_FACTS_MAX = 2_000
"""Facts (or reports) of one step while following."""
REBUILD_FACTS_MAX = 25_000
"""Facts of one step of a rebuild: nobody waits for the locks it holds."""
OWNER = "tallystick_projections"
"""The role that owns the views and what is made beside them, whoever makes it."""
LOG = "public.market_events"
EVERY = "*"
"""In place of names: the facts of every name."""
RETIRED = -1
"""Position of a schema that a rebuilt one has replaced: nothing may be applied to it any more."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One statement over the facts of these names, or of `EVERY`; without names it runs in every
    step and reads no facts.

    `fields` are the columns read from the body, as SQL ("lease_id text, at_us bigint"). The
    statement finds them in the relation `facts`, beside position, stream_version, topic and
    recorded_us;
    %(first)s and %(last)s bound the range (first < position <= last). One that starts with a comma
    goes on with further WITH queries.
    """

    topics: tuple[str, ...]
    fields: str
    sql: str


@dataclass(frozen=True, slots=True)
class Reports:
    """How a projection reads usage reports: `fold` in Python, then one `apply` for all of them.

    `apply(connection, schema, folded)` runs in the transaction that moves the lanes' positions.
    `heads` is how far it may read, as SQL: a relation of (lane, pos).
    """

    fold: Callable[[Sequence[StoredReport]], Any]
    apply: Callable[[Connection, str, Any], None]
    heads: str = usage_reads.HEADS


@dataclass(frozen=True, slots=True)
class Projection:
    """One question, its tables and the rules that fill them.

    `indexes` are for reading only: a rebuild makes them after the rows.
    """

    name: str
    tables: str
    rules: tuple[Rule, ...]
    indexes: str = ""
    reports: Reports | None = None
    version: int = 1  # raised when only Python code that decides the rows changes

    @property
    def schema(self) -> str:
        return f"proj_{self.name}"

    @property
    def sources(self) -> tuple[str, ...]:
        """The logs it follows, each with a position of its own."""
        lanes = [f"usage/{lane}" for lane in range(LANES)] if self.reports else []
        return (MARKET, *lanes)

    @property
    def definition(self) -> str:
        """Hash of everything that decides the rows: another one means rebuild."""
        parts = [str(self.version), self.tables, self.indexes]
        if self.reports is not None and self.reports.heads != usage_reads.HEADS:
            parts.append(self.reports.heads)
        for rule in self.rules:
            parts += [*rule.topics, rule.fields, rule.sql]
        return sha256("\0".join(parts).encode()).hexdigest()


class GapInLog(AssertionError):
    """The log lacks a position below its head: nothing may be derived from it."""


def is_read_only(connection: Connection) -> bool:
    """Whether nothing can be moved here: views stand where replication has brought them. The server
    tells its sessions by itself, so this asks nothing.
    """
    status = connection.info.parameter_status
    return "on" in (status("in_hot_standby"), status("default_transaction_read_only"))


_OWN = re.compile(r"\bown\.")


def own(schema: str, sql: str) -> bytes:
    """The statement with `own.` spelled out; bytes, as psycopg takes no computed text."""
    return _OWN.sub(f"{schema}.", sql).encode()


@lru_cache(maxsize=512)
def statement(rule: Rule, schema: str) -> bytes:
    """A rule over the facts of a range, decoded by itself."""
    if not rule.topics:
        return own(schema, rule.sql)
    return own(schema, f"WITH facts AS ({facts_of(rule.topics, rule.fields)}) {rule.sql}")


def facts_of(topics: Iterable[str], fields: str, log: str = LOG) -> str:
    """SQL: the facts of these names in a range, with these columns read from the body. `log`: the
    market log, or a table with its columns that holds all facts of these names in the range.
    """
    names = names_of(topics)
    of_these = "" if names == f"'{EVERY}'" else f" AND e.topic IN ({names})"
    return (
        "SELECT e.notification_id AS position,"
        " e.originator_version AS stream_version, e.topic, e.recorded_us, f.*"
        f" FROM {log} e CROSS JOIN LATERAL"
        f" json_to_record(convert_from(e.state, 'UTF8')::json) AS f({fields})"
        " WHERE e.notification_id > %(first)s AND e.notification_id <= %(last)s" + of_these
    )


def names_of(topics: Iterable[str]) -> str:
    """SQL: a list of names of facts, quoted: a log that was tampered with may hold any."""
    return ", ".join(sql.Literal(topic).as_string(None) for topic in topics)


def fields_of(rule: Rule) -> list[tuple[str, str]]:
    """Name and type of each column that a rule reads from the body."""
    each = [field.split(maxsplit=1) for field in rule.fields.split(",")]
    return [(name, kind.strip()) for name, kind in each]


# Plans must fit the range: one fact while following, tens of thousands in a rebuild. A lost commit
# loses rows and position together, so nobody needs to wait for the disk.
_LOCK = """
    SELECT p.position, h.pos, set_config('plan_cache_mode', 'force_custom_plan', true),
        set_config('synchronous_commit', 'off', true), set_config('work_mem', '64MB', true)
    FROM own.position p CROSS JOIN public.market_events_head h
    WHERE p.source = 'market' FOR UPDATE OF p
"""
_TOPICS = """
    SELECT topic, count(*) FROM public.market_events
    WHERE notification_id > %(first)s AND notification_id <= %(last)s GROUP BY topic
"""
_MOVE = "UPDATE own.position SET position = %(last)s WHERE source = 'market'"


def step(
    connection: Connection,
    projection: Projection,
    *,
    facts_max: int = FOLLOW_FACTS_MAX,
    schema: str | None = None,
) -> int:
    """Apply the next facts of the market log; returns how many, 0 when caught up.

    On a connection outside a transaction this commits. Raises GapInLog.
    """
    if is_read_only(connection):
        return 0
    schema = schema or projection.schema
    with connection.transaction():
        row = connection.execute(own(schema, _LOCK)).fetchone()
        assert row is not None, f"{schema} was never created"
        first, head = int(row[0]), int(row[1])
        if first == RETIRED or head <= first:
            return 0
        last = min(head, first + facts_max)
        apply(connection, projection, schema, first, last)
        move(connection, schema, last)
    return last - first


def lock(connection: Connection, schema: str) -> int:
    """The market position of a projection, which nobody else moves until the transaction ends."""
    row = connection.execute(own(schema, _LOCK)).fetchone()
    assert row is not None, f"{schema} was never created"
    return int(row[0])


def move(connection: Connection, schema: str, last: int) -> None:
    """Say that the rules ran up to there, in their transaction."""
    connection.execute(own(schema, _MOVE), {"last": last})


def apply(
    connection: Connection, projection: Projection, schema: str, first: int, last: int
) -> None:
    """Run the rules over (first, last], in their order. Does not move the position."""
    there = counted(connection, first, last)
    span = {"first": first, "last": last}
    for rule in projection.rules:
        if is_asked(rule, there):
            connection.execute(statement(rule, schema), span)


def is_asked(rule: Rule, there: Container[str]) -> bool:
    """Whether a rule has anything to do where there are facts of these names."""
    return rule.topics in ((), (EVERY,)) or any(topic in there for topic in rule.topics)


def counted(connection: Connection, first: int, last: int) -> dict[str, int]:
    """How many facts of each name there are in (first, last]. Raises GapInLog."""
    found: dict[str, int] = dict(
        connection.execute(_TOPICS, {"first": first, "last": last}).fetchall()
    )
    if sum(found.values()) != last - first:
        raise GapInLog(f"{last - first} facts expected after {first}, found {found}")
    return found


# --- usage lanes -----------------------------------------------------------------------------

_BEHIND = """
    SELECT h.lane, p.position, h.pos FROM {heads} h
    JOIN own.position p ON p.source = 'usage/' || h.lane
    WHERE h.lane = ANY(%(lanes)s) AND p.position >= 0 AND h.pos > p.position ORDER BY h.lane
"""
_LOCK_LANES = """
    SELECT source, position, set_config('synchronous_commit', 'off', true) FROM own.position
    WHERE source = ANY(%s) ORDER BY source FOR UPDATE
"""
_MOVE_LANES = """
    UPDATE own.position p SET position = r.last
    FROM unnest(%s::text[], %s::int8[]) r(source, last) WHERE p.source = r.source
"""


@dataclass(frozen=True, slots=True)
class _Span:
    lane: int
    first: int
    last: int

    @property
    def source(self) -> str:
        return f"usage/{self.lane}"


def step_lanes(
    connection: Connection,
    projection: Projection,
    *,
    lanes: Iterable[int] = range(LANES),
    reports_max: int = FOLLOW_FACTS_MAX,
    schema: str | None = None,
) -> int:
    """Apply the next reports of these usage lanes; returns how many, 0 when caught up.

    Reports are read and folded without any lock; then the positions are locked and compared with
    what was read, and a runner that came second drops its work. Lanes on a server that does not
    answer are left where they are. Raises GapInLog, and LanesStopped when there is nothing else.
    """
    assert projection.reports is not None, projection.name
    if is_read_only(connection):
        return 0
    schema = schema or projection.schema
    spans = _behind(connection, schema, projection.reports.heads, list(lanes), reports_max)
    if not spans:
        return 0
    spans, found = _read(connection, spans)
    folded = projection.reports.fold(found)
    with connection.transaction():
        held = connection.execute(own(schema, _LOCK_LANES), ([s.source for s in spans],))
        if {row[0]: row[1] for row in held} != {span.source: span.first for span in spans}:
            return 0
        projection.reports.apply(connection, schema, folded)
        moved = ([span.source for span in spans], [span.last for span in spans])
        connection.execute(own(schema, _MOVE_LANES), moved)
    return sum(span.last - span.first for span in spans)


def _behind(
    connection: Connection, schema: str, heads: str, lanes: list[int], reports_max: int
) -> list[_Span]:
    """What to read next: an equal part for each lane that moved, so that no lane starves."""
    behind = own(schema, _BEHIND.format(heads=heads))
    rows = connection.execute(behind, {"lanes": lanes}).fetchall()
    each = max(1, reports_max // max(1, len(rows)))
    return [_Span(lane, first, min(head, first + each)) for lane, first, head in rows]


def _read(connection: Connection, spans: Sequence[_Span]) -> tuple[list[_Span], list[StoredReport]]:
    """The reports, and the spans that could be read. Raises LanesStopped when none could."""
    by_lane = {span.lane: span for span in spans}
    read: list[_Span] = []
    found: list[StoredReport] = []
    for _, lanes in lane_store.each(connection, by_lane):
        bounds = [(lane, by_lane[lane].first, by_lane[lane].last) for lane in lanes]
        with suppress(LanesStopped):
            found += usage_reads.reports_between(connection, bounds)
            read += [by_lane[lane] for lane in lanes]
    if not read:
        raise LanesStopped(by_lane)
    if len(found) != sum(span.last - span.first for span in read):
        raise GapInLog(f"{len(found)} reports found in {read}")
    return read, found


def run(connection: Connection, schema: str, sql: str, *params: Any) -> None:
    """One statement of a projection's own, `own.` spelled out."""
    connection.execute(own(schema, sql), params)
