"""Every projection there is: made, dropped, rebuilt, followed, and how far each has got.

    drop + rebuild == the same rows        for every projection; `digest` compares

A projection lives in a schema of its own, `proj_<name>`, with its positions beside its rows. It is
never migrated: when its definition changed it is rebuilt beside the old one, and the two change
places in one transaction, so that readers see one or the other.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Container, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import sql

from ledger import advisory
from ledger.fan_out.processes import Processes
from ledger.log import usage_reads
from ledger.log.lane_store import LanesStopped
from projections import runner
from projections.audit import registry as audit
from projections.corrections import registry as corrections
from projections.decoded import Decoded
from projections.epochs import registry as epochs
from projections.fleet import registry as fleet
from projections.funds import registry as funds
from projections.governance import registry as governance
from projections.income import registry as income
from projections.lease import registry as lease
from projections.market import registry as market
from projections.metering import registry as metering
from projections.parties import registry as parties
from projections.pools import registry as pools
from projections.runner import LANES, REBUILD_FACTS_MAX, RETIRED, Connection, Projection, own
from projections.sites import registry as sites
from projections.storage import registry as storage
from projections.trust import registry as trust

PROJECTIONS: tuple[Projection, ...] = (
    *parties.VIEWS,
    *funds.VIEWS,
    *fleet.VIEWS,
    *sites.VIEWS,
    *metering.VIEWS,
    *lease.VIEWS,
    *storage.VIEWS,
    *trust.VIEWS,
    *epochs.VIEWS,
    *governance.VIEWS,
    *market.VIEWS,
    *pools.VIEWS,
    *income.VIEWS,
    *corrections.VIEWS,
    *audit.VIEWS,
)
BY_NAME = {projection.name: projection for projection in PROJECTIONS}

POLL_SECONDS = 0.25
STOPPED_SECONDS = 2.0
"""How long a view waits for the server of lanes that are stopped, before it looks again."""
PAUSE_SECONDS_MAX = 60.0
_LOCK_ID = 0x7A11_7572
_BUILDING_ID = 0x7A11_7573
"""Shared by all that build beside; where it can be had alone, none lives that does."""
DECODED = "proj_decoded_"
Submit = Callable[..., Future[Any]]
POSITION = "position"
"""The table of each view that says how far it has read, by log and lane."""
_READERS = ("tallystick_app", "tallystick_audit")

logger = logging.getLogger(__name__)


# --- made, dropped, rebuilt ------------------------------------------------------------------

_POSITIONS = """
    CREATE TABLE own.position (source text COLLATE "C" PRIMARY KEY, position bigint NOT NULL)
        WITH (fillfactor = 50);
    COMMENT ON TABLE own.position IS 'How far each log has been applied; its rows are the fence';
    CREATE TABLE own.definition (sha256 text NOT NULL);
"""


def ensure(connection: Connection, projections: Iterable[Projection] = PROJECTIONS) -> None:
    """Make what is missing and rebuild what was defined otherwise. Safe from several processes."""
    wanted = tuple(projections)
    remove_left(connection)
    found = _definitions(connection, [projection.schema for projection in wanted])
    for projection in wanted:
        if found.get(projection.schema) == projection.definition:
            continue
        with exclusive(connection):
            made = _definition(connection, projection.schema)
            if made is None:
                create(connection, projection)
            elif made != projection.definition:
                rebuild(connection, projection)


def differing(connection: Connection, projections: Sequence[Projection] = PROJECTIONS) -> list[str]:
    """The names of those that `ensure` would make or rebuild; changes nothing."""
    found = _definitions(connection, [projection.schema for projection in projections])
    return [one.name for one in projections if found.get(one.schema) != one.definition]


def create(
    connection: Connection,
    projection: Projection,
    *,
    schema: str | None = None,
    indexes: bool = True,
    is_kept: bool = True,
) -> None:
    """Empty tables at position 0. Raises psycopg.errors.DuplicateSchema if they exist. What is not
    kept has no indexes for reading, and a server that dies empties it.
    """
    schema = schema or projection.schema
    with connection.transaction():
        # Whoever makes it, the workers' role owns it and can follow.
        connection.execute(f"SET LOCAL ROLE {runner.OWNER}".encode())
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(own(schema, _POSITIONS))
        made = projection.tables
        if not is_kept:
            made = made.replace("CREATE TABLE own.", "CREATE UNLOGGED TABLE own.")
        connection.execute(own(schema, made))
        connection.execute(
            own(schema, "INSERT INTO own.position SELECT s, 0 FROM unnest(%s::text[]) s"),
            (list(projection.sources),),
        )
        connection.execute(
            own(schema, "INSERT INTO own.definition VALUES (%s)"), (projection.definition,)
        )
        if indexes and is_kept:
            connection.execute(own(schema, projection.indexes))
        for role in _READERS:
            connection.execute(
                f"GRANT USAGE ON SCHEMA {schema} TO {role};"
                f" GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}".encode()
            )


def drop(connection: Connection, projection: Projection, *, schema: str | None = None) -> None:
    """Away with it, if it is there: it comes back equal from the log."""
    name = sql.Identifier(schema or projection.schema)
    connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(name))


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild read, how long it took without waiting, and tables whose rows differ.

    `differing` is None when there was nothing to compare with; `failed`: why there is no view.
    """

    name: str
    facts: int
    reports: int
    seconds: float
    differing: tuple[str, ...] | None
    failed: str | None = None


def rebuild(
    connection: Connection,
    projection: Projection,
    *,
    conninfo: str | None = None,
    workers: int = 1,
    facts_max: int = REBUILD_FACTS_MAX,
) -> Rebuilt:
    """Build the projection anew beside the old one, then let the two change places.

    `connection` must be outside a transaction. With `workers` above 1 the usage lanes are shared
    out over processes that connect to `conninfo`. Followers may go on meanwhile. Raises LockHeld.
    """
    with exclusive(connection), building(connection):
        return _rebuilt(connection, projection, conninfo, workers, facts_max)


def _rebuilt(
    connection: Connection,
    projection: Projection,
    conninfo: str | None,
    workers: int,
    facts_max: int,
) -> Rebuilt:
    beside, old = f"{projection.schema}_next", f"{projection.schema}_old"
    for left in (beside, old):  # by a rebuild that was killed
        drop(connection, projection, schema=left)
    create(connection, projection, schema=beside, indexes=False)
    started = time.perf_counter()
    reports = 0
    facts = _apply_all(connection, projection, beside, facts_max)
    if projection.reports is not None:
        reports = all_lanes(connection, projection, beside, conninfo, workers)
    with connection.transaction():
        connection.execute("SET LOCAL maintenance_work_mem = '256MB'")
        connection.execute(own(beside, projection.indexes))
    seconds = time.perf_counter() - started
    analyze(connection, beside)
    if _is_comparable(connection, projection, beside):
        # Not in the transaction below: of many steps in one, each walks what those before replaced.
        while runner.step(connection, projection, facts_max=facts_max):
            pass
    differing = _change_places(connection, projection, beside)
    drop(connection, projection, schema=old)
    return Rebuilt(projection.name, facts, reports, seconds, differing)


def _apply_all(connection: Connection, projection: Projection, schema: str, facts_max: int) -> int:
    """Apply the market log, up to its head, to what is built; returns how many facts. While a range
    is applied, a connection of its own decodes the next one.

    Kinds that one rule reads are decoded there too where that is faster, which the first two ranges
    tell: a rule that looks elsewhere first decodes few of them. The rows are the same.
    """
    scratch = drawn_scratch()
    with _second(connection) as (beside, submit):

        def decode(number: int, first: int, whole: bool) -> Decoded | None:
            last = min(head(beside), first + facts_max)
            if first == last:
                return None
            place = scratch[number % 2]
            return Decoded(beside, [projection], place, first, last, whole=whole)

        facts, number, whole = 0, 0, False
        took = {True: 0.0, False: 0.0}
        waited = submit(decode, number, facts, whole)
        try:
            while (decoded := waited.result()) is not None:
                facts, number = decoded.last, number + 1
                next_whole = took[True] <= took[False]
                waited = submit(decode, number, facts, next_whole)
                took[whole] = max(decoded.seconds, decoded.apply(connection, projection, schema))
                whole = next_whole
        finally:
            wait([waited])
            with suppress(psycopg.Error):  # of a lost connection the next start removes them
                drop_scratch(beside, scratch)
    return facts


def drawn_scratch() -> tuple[str, str]:
    """Schemas for what is decoded of two ranges, by turns. The names are drawn: who builds at the
    same time, or was thought to be dead and goes on, has others.
    """
    drawn = f"{DECODED}{secrets.token_hex(8)}"
    return f"{drawn}_0", f"{drawn}_1"


def drop_scratch(connection: Connection, scratch: Iterable[str]) -> None:
    for each in scratch:
        connection.execute(f"DROP SCHEMA IF EXISTS {each} CASCADE".encode())


@contextmanager
def _second(connection: Connection) -> Generator[tuple[Connection, Submit], None, None]:
    """Another connection of the same user in the same role, and a thread for what it does. Where
    none is to be had it is the same connection, and what it does is done at once.
    """
    known = connection.info
    try:
        twin = psycopg.connect(known.dsn, password=known.password or None, autocommit=True)
    except psycopg.OperationalError as error:
        logger.warning("no second connection, so this rebuild takes longer: %s", error)
        yield connection, _at_once
        return
    with twin as beside, ThreadPoolExecutor(1) as thread:
        (role,) = connection.execute("SELECT current_user").fetchone() or ("",)
        beside.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        yield beside, thread.submit


def _at_once(function: Callable[..., Any], *given: Any) -> Future[Any]:
    done: Future[Any] = Future()
    done.set_result(function(*given))
    return done


def head(connection: Connection) -> int:
    """The position of the last fact of the market log."""
    row = connection.execute("SELECT pos FROM public.market_events_head").fetchone()
    assert row is not None
    return int(row[0])


_PLAIN = frozenset({"text", "bool", "int2", "int4"})
"""Types that PostgreSQL hashes by all of their bytes; of other values their text is hashed."""
_COLUMNS = """
    SELECT c.relname, array_agg(a.attname::text ORDER BY a.attname),
        array_agg(t.typname::text ORDER BY a.attname)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
    WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind = 'r' AND a.attnum > 0
        AND NOT a.attisdropped AND c.relname NOT IN ('position', 'definition')
    GROUP BY c.relname ORDER BY c.relname
"""


def digest(connection: Connection, schema: str, seed: int) -> dict[str, tuple[int, int]]:
    """Rows and a sum of row hashes of every table of a schema but its positions.

    Equal rows have equal digests with one `seed`, whatever their order and that of the columns,
    which are taken by their names. Other rows have another digest but by chance: the hash is
    PostgreSQL's, of 64 bits, which is not made against forgery. Draw the seed where rows may be
    forged. Names come from the catalog, which may be forged as well: they are quoted.
    """
    found: dict[str, tuple[int, int]] = {}
    for table, columns, types in connection.execute(_COLUMNS, (schema,)).fetchall():
        parts = [part for each in zip(columns, types, strict=True) for part in _hashed(*each)]
        row = connection.execute(
            sql.SQL(
                "SELECT count(*), coalesce(sum(hashtextextended("
                "hash_record_extended(ROW({}), {seed})::text, {seed})), 0)::text FROM {}"
            ).format(sql.SQL(", ").join(parts), sql.Identifier(schema, table), seed=seed)
        ).fetchone()
        assert row is not None
        found[str(table)] = (int(row[0]), int(row[1]))
    return found


def _hashed(column: str, kind: str) -> list[sql.Composed]:
    """What is hashed of a column. Both halves of a large number: PostgreSQL hashes the one folded
    over the other, and so do numbers that differ in both.
    """
    name = sql.Identifier(column)
    if kind == "int8":
        return [sql.SQL("{}").format(name), sql.SQL("({} >> 32)::int4").format(name)]
    return [sql.SQL("{}" if kind in _PLAIN else "{}::text").format(name)]


def analyze(connection: Connection, schema: str) -> None:
    """Statistics now, not when autovacuum comes by: readers need their indexes at once."""
    for (table,) in connection.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (schema,)
    ).fetchall():
        connection.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(schema, table)))


def _definition(connection: Connection, schema: str) -> str | None:
    known = connection.execute("SELECT to_regclass(%s)", (f"{schema}.definition",)).fetchone()
    if known is None or known[0] is None:
        return None
    row = connection.execute(own(schema, "SELECT sha256 FROM own.definition")).fetchone()
    return "" if row is None else str(row[0])


def _definitions(connection: Connection, schemas: list[str]) -> dict[str, str]:
    """Those of all schemas that are there, in two questions: a start asks for every view."""
    there = connection.execute(
        "SELECT s FROM unnest(%s::text[]) s WHERE to_regclass(s || '.definition') IS NOT NULL",
        (schemas,),
    ).fetchall()
    each = [
        sql.SQL("SELECT {}, sha256 FROM {}").format(
            sql.Literal(schema), sql.Identifier(schema, "definition")
        )
        for (schema,) in there
    ]
    if not each:
        return {}
    return dict(connection.execute(sql.SQL(" UNION ALL ").join(each)).fetchall())


@contextmanager
def exclusive(connection: Connection) -> Generator[None, None, None]:
    """One process at a time makes or rebuilds projections of a database. Raises LockHeld."""
    advisory.lock(connection, _LOCK_ID, "the views, which another process makes or rebuilds")
    try:
        yield
    finally:
        advisory.unlock(connection, _LOCK_ID)


@contextmanager
def building(connection: Connection) -> Generator[None, None, None]:
    """What stands beside a view meanwhile is the work of a living process. Raises LockHeld."""
    advisory.lock(connection, _BUILDING_ID, "what is built beside the views", shared=True)
    try:
        yield
    finally:
        advisory.unlock(connection, _BUILDING_ID, shared=True)


_LEFT = """
    SELECT n.nspname, coalesce((
        SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
        WHERE c.relnamespace = n.oid AND c.relkind = 'r'), 0)::bigint
    FROM pg_namespace n WHERE pg_has_role(n.nspowner, 'USAGE')
        AND (n.nspname ~ '^proj_.*_(next|old)$' OR starts_with(n.nspname, %s)) ORDER BY 1
"""


def left_behind(connection: Connection) -> dict[str, int]:
    """Bytes by schema of what a proof or a rebuild that was killed has left beside the views; none
    while any runs.
    """
    found: dict[str, int] = dict(connection.execute(_LEFT, (DECODED,)).fetchall())
    with _alone(connection, bool(found)) as alone:
        return found if alone else {}


def remove_left(connection: Connection) -> None:
    """Drop what `left_behind` tells, unless a living process builds beside the views."""
    there = connection.execute(_LEFT, (DECODED,)).fetchall()
    with _alone(connection, bool(there)) as alone:
        if alone:
            for name, _ in connection.execute(_LEFT, (DECODED,)).fetchall():
                logger.warning("%s is dropped: what built it was killed", name)
                connection.execute(
                    sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name))
                )


@contextmanager
def _alone(connection: Connection, wanted: bool) -> Generator[bool, None, None]:
    """Whether nothing is made, rebuilt or compared meanwhile, and by no older version either."""
    locks = (_LOCK_ID, _BUILDING_ID) if wanted else ()
    held = []
    try:
        for key in locks:
            if not advisory.try_lock(connection, key):
                break
            held.append(key)
        yield wanted and len(held) == len(locks)
    finally:
        for key in held:
            advisory.unlock(connection, key)


def all_lanes(
    connection: Connection, projection: Projection, schema: str, conninfo: str | None, workers: int
) -> int:
    """Bring all usage lanes of one schema to their heads, by so many processes; the reports."""
    if workers == 1 or conninfo is None:
        return lanes_to_head(connection, projection, schema, range(LANES))
    parts = [
        (conninfo, projection.name, schema, range(worker, LANES, workers))
        for worker in range(workers)
    ]
    with Processes(workers) as processes:
        return sum(processes.map(_lanes_apart, parts))


def _lanes_apart(part: tuple[str, str, str, range]) -> int:
    """Done again where its process was killed, from where its schema stands."""
    conninfo, name, schema, lanes = part
    with psycopg.connect(conninfo, autocommit=True) as connection:
        return lanes_to_head(connection, BY_NAME[name], schema, lanes)


def lanes_to_head(
    connection: Connection, projection: Projection, schema: str, lanes: Iterable[int]
) -> int:
    """Bring some usage lanes of one schema to their heads; returns how many reports."""
    done, wanted = 0, list(lanes)
    while moved := runner.step_lanes(connection, projection, lanes=wanted, schema=schema):
        done += moved
    return done


def _change_places(
    connection: Connection, projection: Projection, beside: str
) -> tuple[str, ...] | None:
    """Bring both to one position, compare them, and swap their names, in one transaction."""
    differing = None
    with connection.transaction():
        if _definition(connection, projection.schema) is not None:
            both = (projection.schema, beside)
            for schema in both:
                connection.execute(own(schema, "SELECT 1 FROM own.position FOR UPDATE"))
            if _is_comparable(connection, projection, beside):
                differing = differing_rows(connection, projection, both)
            connection.execute(
                own(projection.schema, "UPDATE own.position SET position = %s"), (RETIRED,)
            )
            _rename(connection, projection.schema, f"{projection.schema}_old")
        _rename(connection, beside, projection.schema)
    return differing


def _is_comparable(connection: Connection, projection: Projection, beside: str) -> bool:
    """Whether the old one is made by the same rules, and has read anything or has any row, or there
    is nothing to read.
    """
    if _definition(connection, projection.schema) != projection.definition:
        return False
    return (
        _has_read(connection, projection.schema)
        or not _has_read(connection, beside)
        or any(rows for rows, _ in digest(connection, projection.schema, 0).values())
    )


def _has_read(connection: Connection, schema: str) -> bool:
    row = connection.execute(own(schema, "SELECT max(position) > 0 FROM own.position")).fetchone()
    return row == (True,)


def differing_rows(
    connection: Connection, projection: Projection, schemas: tuple[str, str]
) -> tuple[str, ...]:
    """The tables of the second schema that have other rows than those of the first, both at one
    position, in a transaction. `position` is one of them if one says that it read what no log has.
    """
    for schema in schemas:
        connection.execute(own(schema, "SELECT 1 FROM own.position FOR UPDATE"))
    is_level = _level(connection, projection, schemas)
    seed = secrets.randbits(63)
    old, new = (digest(connection, schema, seed) for schema in schemas)
    differing = tuple(table for table in new if old.get(table) != new[table])
    if not is_level:
        differing += (POSITION,)
    if differing:
        logger.error("%s differs after its rebuild: %s", projection.name, differing)
    return differing


def _level(connection: Connection, projection: Projection, schemas: Sequence[str]) -> bool:
    """Step whichever is behind until both have read the same: nobody else can move them. False if
    no step is left and they have not.
    """
    while True:
        levels: list[dict[str, int]] = [
            dict(connection.execute(own(schema, "SELECT source, position FROM own.position")))
            for schema in schemas
        ]
        if levels[0] == levels[1]:
            return True
        read = 0
        for schema in schemas:
            read += runner.step(connection, projection, facts_max=REBUILD_FACTS_MAX, schema=schema)
            if projection.reports is not None:
                read += runner.step_lanes(connection, projection, schema=schema)
        if not read:
            return False


def _rename(connection: Connection, old: str, new: str) -> None:
    names = sql.Identifier(old), sql.Identifier(new)
    connection.execute(sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(*names))


# --- followed --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a projection is behind one log: "market", or "usage" over all lanes.

    `waiting_since_us` is when the oldest fact not applied yet was recorded, None when caught up.
    """

    projection: str
    log: str
    position: int
    head: int
    waiting_since_us: int | None

    @property
    def behind(self) -> int:
        return self.head - self.position


_MARKET_LAG = """
    SELECT p.name, 'market', p.position, h.pos, (
        SELECT e.recorded_us FROM public.market_events e
        WHERE e.notification_id = p.position + 1)
    FROM ({parts}) p, public.market_events_head h
"""
_MARKET_POSITION = """
    SELECT '{name}' AS name, position FROM {schema}.position WHERE source = 'market'
"""
_USAGE_LAG = f"""
    SELECT '{{name}}', 'usage', sum(p.position)::bigint, sum(h.pos)::bigint,
        min(CASE WHEN h.pos > p.position THEN {usage_reads.NEXT_RECEIVED_US} END)
    FROM {{schema}}.position p JOIN {{heads}} h ON p.source = 'usage/' || h.lane
"""


def lag(connection: Connection, projections: Sequence[Projection] = PROJECTIONS) -> list[Lag]:
    """Position and head of every projection and log, in one snapshot: `/readyz` and `/metrics`."""
    if not projections:
        return []
    rows = connection.execute(_lag(tuple(projections))).fetchall()
    found = [Lag(*row) for row in rows]
    places = {each.name: place for place, each in enumerate(projections)}
    return sorted(found, key=lambda one: (places[one.projection], one.log))


@lru_cache(maxsize=64)
def _lag(projections: tuple[Projection, ...]) -> bytes:
    """One look at the head and at what comes next, for all: 1.3 ms to plan, one for each 2.3."""
    named = [{"name": one.name, "schema": one.schema} for one in projections]
    positions = " UNION ALL ".join(_MARKET_POSITION.format(**each) for each in named)
    parts = [_MARKET_LAG.format(parts=positions)]
    for one, each in zip(projections, named, strict=True):
        if one.reports is not None:
            heads = own(one.schema, one.reports.heads).decode()
            parts.append(_USAGE_LAG.format(heads=heads, **each))
    return " UNION ALL ".join(parts).encode()


def position_of(connection: Connection, projection: Projection) -> int:
    """The market position a projection's rows reflect."""
    row = connection.execute(
        own(projection.schema, "SELECT position FROM own.position WHERE source = 'market'")
    ).fetchone()
    assert row is not None
    return int(row[0])


def standing(connection: Connection, projections: Sequence[Projection]) -> tuple[int, list[int]]:
    """The head of the market log, and the position that each of these reflects, in one question."""
    row = connection.execute(_standing(tuple(one.schema for one in projections))).fetchone()
    assert row is not None, "one of them was never created"
    head, *reached = row
    return int(head), reached


@lru_cache(maxsize=512)
def _standing(schemas: tuple[str, ...]) -> bytes:
    names = [f"p{number}" for number in range(len(schemas))]
    columns = ", ".join(["h.pos", *(f"{name}.position" for name in names)])
    tables = "".join(
        f" JOIN {schema}.position {name} ON {name}.source = 'market'"
        for schema, name in zip(schemas, names, strict=True)
    )
    return f"SELECT {columns} FROM public.market_events_head h{tables}".encode()


def lane_position_of(connection: Connection, projection: Projection, lane: int) -> int:
    """The position of a usage lane that a projection's rows reflect."""
    row = connection.execute(
        own(projection.schema, "SELECT position FROM own.position WHERE source = %s"),
        (f"usage/{lane}",),
    ).fetchone()
    assert row is not None
    return int(row[0])


def step_all(
    connection: Connection,
    projections: Sequence[Projection] = PROJECTIONS,
    *,
    only: Container[str] | None = None,
) -> int:
    """Bring every projection (or those named in `only`) to the heads of both logs; returns how
    many facts were applied.

    For tests, the demo and replays: no thread, no waiting. The connection must be outside a
    transaction. Reports of stopped lanes are left out: what decides by them asks for those lanes.
    Raises runner.GapInLog.
    """
    wanted = [each for each in projections if only is None or each.name in only]
    try:
        return _step_to_heads(connection, wanted)
    except psycopg.errors.UndefinedTable:
        ensure(connection, wanted)
        return _step_to_heads(connection, wanted)


def _step_to_heads(connection: Connection, projections: Sequence[Projection]) -> int:
    done = 0
    if runner.is_read_only(connection):
        return done
    stopped: set[str] = set()
    while behind := [part for part in lag(connection, projections) if part.behind]:
        moved = [_step_unless_stopped(connection, part, stopped) for part in behind]
        done += sum(moved)
        is_all = all(step >= part.behind for step, part in zip(moved, behind, strict=True))
        if (is_all and not any(map(_may_read_further, behind))) or (stopped and not sum(moved)):
            break  # all that was there to apply is applied
    return done


def _step_unless_stopped(connection: Connection, part: Lag, stopped: set[str]) -> int:
    """0 where only stopped lanes are left, of a projection that is then among `stopped`."""
    try:
        return _step(connection, part)
    except LanesStopped as error:
        if part.projection not in stopped:
            logger.warning("%s: %s", part.projection, error)
        stopped.add(part.projection)
        return 0


def _may_read_further(part: Lag) -> bool:
    """Whether facts that were applied may have opened reports to this projection."""
    reports = BY_NAME[part.projection].reports
    return part.log == runner.MARKET and reports is not None and reports.heads != usage_reads.HEADS


def _step(connection: Connection, part: Lag) -> int:
    projection = BY_NAME[part.projection]
    if part.log == runner.MARKET:
        return runner.step(connection, projection)
    return runner.step_lanes(connection, projection)


def follow(
    conninfo: str, stop: threading.Event, projections: Sequence[Projection] = PROJECTIONS
) -> None:
    """Follow both logs until `stop` is set; any number of processes may do so at once.

    A lost database is waited for. A projection that fails is logged and tried again, ever more
    seldom, while the others go on; its lag shows.
    """
    pause = 1.0
    while not stop.is_set():
        try:
            with psycopg.connect(conninfo, autocommit=True) as connection:
                # Before the first read, or a fact between read and LISTEN would wait for the poll.
                connection.execute("LISTEN market_events")
                ensure(connection, projections)
                pause = 1.0
                _follow(connection, stop, projections)
        except (psycopg.OperationalError, advisory.LockHeld) as error:
            logger.warning("projections wait %.0f s for the database: %s", pause, error)
            stop.wait(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)


def _follow(
    connection: Connection, stop: threading.Event, projections: Sequence[Projection]
) -> None:
    pauses: dict[tuple[str, str], tuple[float, float]] = {}  # until when, and how long
    while not stop.is_set():
        moved = 0
        for part in lag(connection, projections):
            key = (part.projection, part.log)
            until, pause = pauses.get(key, (0.0, 0.5))
            if not part.behind or time.monotonic() < until:
                continue
            try:
                moved += _step(connection, part)
                pauses.pop(key, None)
            except psycopg.OperationalError:
                raise
            except LanesStopped as stopped:
                pauses[key] = (time.monotonic() + STOPPED_SECONDS, 0.5)
                logger.warning("%s: %s", part.projection, stopped)
            except (psycopg.Error, AssertionError, ValueError):
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
                pauses[key] = (time.monotonic() + pause, pause)
                logger.exception("%s (%s) stops at %d for %.0f s", *key, part.position, pause)
        if not moved:
            for _ in connection.notifies(timeout=POLL_SECONDS, stop_after=1):
                pass
