"""Usage lanes move from one server to another, and are let go when the new place is proved.

    chain and root recomputed from the rows there == head and root of the lane here
    a lane has a row of `usage_head` on at most one server at any moment

Most rows are copied while the lane goes on. Then its head is taken out where it was: from there on
its reports are refused, to be sent again. The rest is copied, all of it is hashed anew, and the
head is put in at the new place. A move that ended in between goes on where it stopped; until then
the lane takes no report anywhere. Rows that were copied stay where they were, and nothing reads
them; a lane that comes back there finds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from domain.metering.report import LANES
from ledger import migrate
from ledger.log import usage
from ledger.tree import merkle, trees

Connection = psycopg.Connection[Any]

_COPIED = (
    (
        "usage_event",
        "position",
        "lane, position, node_id, node_seq, name, body, leaf, chain, flags, recorded_us",
    ),
    ("usage_key", "position", "lane, node_id, node_seq, position, leaf"),
)
"""Tables, the column in which they grow, and their columns."""
_REACHED = "SELECT coalesce(max(position), 0) FROM usage_event WHERE lane = %s"
_TAKE_OUT = """
    WITH gone AS (DELETE FROM usage_head WHERE lane = %(lane)s RETURNING *)
    INSERT INTO usage_elsewhere SELECT lane, pos, hash, recorded_us, true, %(to)s FROM gone
"""
_PUT_IN = """
    WITH gone AS (DELETE FROM usage_elsewhere WHERE lane = %(lane)s)
    INSERT INTO usage_head VALUES (%(lane)s, %(pos)s, %(hash)s, %(at_us)s)
"""
_HEAD = "SELECT lane, pos, hash, recorded_us FROM usage_head WHERE lane = %s"
_TAKEN_OUT = "SELECT lane, pos, hash, recorded_us, moving_to FROM usage_elsewhere WHERE lane = %s"
_LET_GO = "UPDATE usage_elsewhere SET moving_to = NULL WHERE lane = %s"
_LEAVES = """
    SELECT leaf FROM usage_event WHERE lane = %s AND position > %s AND position <= %s
    ORDER BY position
"""
_IS_EMPTY = """
    SELECT NOT EXISTS (SELECT FROM usage_event) AND NOT EXISTS (SELECT FROM market_events)
        AND NOT EXISTS (SELECT FROM usage_elsewhere)
"""
_NONE_HERE = """
    WITH gone AS (DELETE FROM usage_head RETURNING *)
    INSERT INTO usage_elsewhere SELECT lane, pos, hash, recorded_us, true FROM gone
"""


class MoveRefused(Exception):
    """The lanes were not moved; the message says why."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One lane at its new place: so many reports, with this head and root."""

    lane: int
    reports: int
    head: bytes
    root: bytes


def prepare(address: str) -> None:
    """Make a server ready to hold lanes: the schema, and no lane of its own. Done again it does
    nothing. Raises MoveRefused where the database holds something else.
    """
    migrate.migrate(address)
    with psycopg.connect(address, autocommit=True) as there, there.transaction():
        there.execute("SET LOCAL ROLE tallystick_owner")
        there.execute("LOCK TABLE usage_elsewhere")
        (is_new,) = there.execute(_IS_EMPTY).fetchone() or (False,)
        held = there.execute(
            "SELECT (SELECT count(*) FROM usage_head) + (SELECT count(*) FROM usage_elsewhere),"
            " EXISTS (SELECT FROM market_events)"
        ).fetchone()
        if is_new:
            there.execute(_NONE_HERE)
        elif held != (LANES, False):
            raise MoveRefused("the new server's database is not empty and holds no usage lanes")


def move(source: str, target: str, lanes: Iterable[int]) -> list[Moved]:
    """Move lanes between the databases at two addresses, one lane after the other.

    The login may become `tallystick_owner`. Raises MoveRefused: neither holds a lane, or what was
    copied differs; psycopg.Error when a server goes away. What was moved before stays moved.
    """
    with ExitStack() as stack:
        here, there = (
            stack.enter_context(psycopg.connect(each, autocommit=True)) for each in (source, target)
        )
        for connection in (here, there):
            connection.execute("SET ROLE tallystick_owner")
        if _name(here) == _name(there):
            raise MoveRefused("both addresses lead to the same database")
        return [_move(here, there, lane) for lane in lanes]


def _name(connection: Connection) -> str:
    """A database without the login."""
    info = connection.info
    return f"{info.host}:{info.port}/{info.dbname}"


def _move(here: Connection, there: Connection, lane: int) -> Moved:
    arrived = there.execute(_HEAD, (lane,)).fetchone()
    if arrived is None:
        _copy(here, there, lane)
        head = _take_out(here, lane, _name(there))
        _copy(here, there, lane)
        _copy_nodes(here, there, lane)
        try:
            _prove(here, there, head)
        except MoveRefused:
            _put_in(here, head)
            raise
        _put_in(there, head)
    elif here.execute(_HEAD, (lane,)).fetchone() is not None:
        raise MoveRefused(f"both addresses hold a lane {lane}: they are not of one market")
    else:
        head = usage.LaneHead(*arrived)
    while trees.follow(there):
        pass
    here.execute(_LET_GO, (lane,))
    return Moved(lane, head.position, bytes(head.hash), trees.head(there, lane).root)


def _put_in(connection: Connection, head: usage.LaneHead) -> None:
    told = {"pos": head.position, "hash": head.hash, "at_us": head.recorded_us}
    connection.execute(_PUT_IN, {"lane": head.lane, **told})


def _take_out(here: Connection, lane: int, to: str) -> usage.LaneHead:
    """Waits for an append to the lane that runs; the next one finds no head. Raises MoveRefused:
    the lane is not here, or goes to another place.
    """
    with here.transaction():
        here.execute(_TAKE_OUT, {"lane": lane, "to": to})
        row = here.execute(_TAKEN_OUT, (lane,)).fetchone()
        if row is None or row[-1] is None:
            raise MoveRefused(f"lane {lane} does not lie where TALLYSTICK_USAGE_LANES says")
        if row[-1] != to:
            raise MoveRefused(f"lane {lane} is on its way to {row[-1]}: finish that move first")
    return usage.LaneHead(*row[:-1])


def _copy(here: Connection, there: Connection, lane: int) -> None:
    """The rows that the new place does not have yet."""
    row = there.execute(_REACHED, (lane,)).fetchone()
    assert row is not None
    with there.transaction():
        for table, grows, columns in _COPIED:
            names = {
                "table": sql.Identifier(table),
                "columns": sql.SQL(columns),
                "grows": sql.Identifier(grows),
            }
            query = sql.SQL(
                "COPY (SELECT {columns} FROM {table} WHERE lane = {lane} AND {grows} > {after}"
                " ORDER BY {grows}) TO STDOUT (FORMAT binary)"
            ).format(lane=sql.Literal(lane), after=sql.Literal(row[0]), **names)
            into = sql.SQL("COPY {table} ({columns}) FROM STDIN (FORMAT binary)").format(**names)
            with here.cursor().copy(query) as out, there.cursor().copy(into) as taken:
                for data in out:
                    taken.write(data)


def _copy_nodes(here: Connection, there: Connection, lane: int) -> None:
    """What is small: each node's last report, and the second bodies."""
    nodes = here.execute("SELECT * FROM usage_node WHERE lane = %s", (lane,)).fetchall()
    second = here.execute("SELECT * FROM usage_evidence WHERE lane = %s", (lane,)).fetchall()
    with there.transaction(), there.cursor() as cursor:
        cursor.execute("DELETE FROM usage_node WHERE lane = %s", (lane,))
        cursor.executemany("INSERT INTO usage_node VALUES (%s, %s, %s, %s)", nodes)
        cursor.executemany(
            "INSERT INTO usage_evidence VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            second,
        )


def _prove(here: Connection, there: Connection, head: usage.LaneHead) -> None:
    """Hash all rows at the new place, and compare head and root. Raises MoveRefused."""
    try:
        usage.verify_lane(there, head)
    except usage.ChainBroken as broken:
        raise MoveRefused(f"what was copied differs: {broken}") from None
    kept = trees.head(here, head.lane)
    if _root(there, head.lane, kept.size) != kept.root:
        raise MoveRefused(f"what was copied differs: lane {head.lane} has another root there")


def _root(connection: Connection, lane: int, size: int) -> bytes:
    """Over the first leaves of a lane, from its rows."""
    tree = merkle.Tiles()
    for after in range(0, size, trees.LEAVES_MAX):
        last = min(size, after + trees.LEAVES_MAX)
        rows = connection.execute(_LEAVES, (lane, after, last), binary=True)
        tree.extend(b"".join(leaf for (leaf,) in rows))
    return tree.root()
