"""Usage lanes move from one server to another, and are let go when the new place is proved.

    the market's row of usage_elsewhere says who holds a lane: it changes in one transaction, last
    a lane takes a report  =>  its holder has its row of usage_head, and nothing was copied since
    chain and root of the rows at the new place == head and root of the lane at the old one

The steps of one lane, each a transaction or done again from its beginning:

1. What lies at the old place is copied and hashed anew at the new one, while the lane goes on.
2. The lane is taken out: the row of `usage_head` goes, after the append that holds it, and no
   later append finds one. From here on the lane takes no report anywhere.
3. The rows that came meanwhile are copied and hashed, and all is compared with the head taken out.
4. The head is put in at the new place, with the tree that was built from its rows. It takes no
   report there yet: each process asks the market who holds the lane before it uses a server.
   A lane that comes back to one is taken out only when no process knows it there from before.
5. The market names the new holder, and its head and root. From here on the lane takes reports.

Ended between 1 and 2, the lane goes on where it was. Ended between 2 and 5, it waits: the same move
goes on, or `give_up` lets it go on where it was. Nothing was stored at the new place then, whatever
lies there: a head that the market does not name is taken out again before the next copy. Rows stay
where they were, and nothing reads them; a lane that comes back there finds them.

Two copies of one lane are of one snapshot each, rows and keys together, and a copy begins behind
the last row that is there. If the new place has more rows than the old one and they continue it, as
where the market's database was restored to a time before the move, those are the lane, and nothing
is copied.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from ledger import advisory, migrate
from ledger.log import lane_store
from ledger.log.durable import DurableConnection, given_up_in_time
from ledger.log.lane_map import MARKET, ranges
from ledger.log.lane_store import NotAdmitted
from ledger.log.usage import LaneHead
from ledger.tree import cut, trees
from ledger.tree.lane_proof import CopyDiffers, LaneProof

Connection = psycopg.Connection[Any]

MOVING = 0x7A11_7574
"""The advisory lock of the market's database that one move at a time holds."""
CONNECT_SECONDS_MAX = 10
FORGET_SECONDS = lane_store.KNOWN_SECONDS + lane_store.ANSWER_MILLISECONDS_MAX / 1_000
"""A process that was told who holds a lane stores there for no longer without asking again."""

_COPIED = (
    (
        "usage_event",
        "lane, position, node_id, node_seq, name, body, leaf, chain, flags, recorded_us",
    ),
    ("usage_key", "lane, node_id, node_seq, position, leaf"),
)
"""Tables that grow by position, and their columns."""
_REACHED = "SELECT coalesce(max(position), 0) FROM usage_event WHERE lane = %s"
_RECORD = "SELECT server, moving_to FROM usage_elsewhere WHERE lane = %s"
_HEAD = "SELECT lane, pos, hash, recorded_us FROM usage_head WHERE lane = %s"
_LOCKED_HEAD = f"{_HEAD} FOR UPDATE"
_TAKEN_OUT = "SELECT lane, pos, hash, recorded_us, moving_to FROM usage_elsewhere WHERE lane = %s"
_AT = "SELECT lane, position, chain, recorded_us FROM usage_event WHERE lane = %s AND position = %s"
_TAKE_OUT = """
    WITH gone AS (DELETE FROM usage_head WHERE lane = %(lane)s RETURNING *)
    INSERT INTO usage_elsewhere (lane, pos, hash, recorded_us, moving_to)
    SELECT lane, pos, hash, recorded_us, %(to)s::uuid FROM gone
"""
_ARRIVE_HERE = "DELETE FROM usage_elsewhere WHERE lane = %s"
_COME_BACK = "DELETE FROM usage_elsewhere WHERE lane = %s AND server = %s"
_PUT_IN = "INSERT INTO usage_head VALUES (%s, %s, %s, %s)"
_NAME = """
    UPDATE usage_elsewhere SET server = %(to)s, moving_to = NULL, pos = %(pos)s, hash = %(hash)s,
        recorded_us = %(at_us)s, is_stopped = true
    WHERE lane = %(lane)s AND server IS NOT DISTINCT FROM %(holder)s::uuid
"""
_LET_GO = "UPDATE usage_elsewhere SET moving_to = NULL WHERE lane = %s"
# What no hash covers.
_TIMES = """
    SELECT sum(position::numeric * recorded_us), sum(position::numeric * flags) FROM usage_event
    WHERE lane = %s AND position <= %s
"""


class MoveRefused(Exception):
    """The lane was not moved; the message says why, and where it takes reports."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One lane at its new place: so many reports, with this head and root."""

    lane: int
    reports: int
    head: bytes
    root: bytes


@dataclass(frozen=True, slots=True)
class _Way:
    """The market's database, the old place and the new one; the market may be either of them."""

    market: Connection
    here: Connection
    there: Connection
    old: UUID
    new: UUID
    began: float

    @property
    def holder(self) -> UUID | None:
        """The old place as the market's rows name it: none for the market itself."""
        return None if self.here is self.market else self.old


def move(
    market: str,
    source: str,
    target: str,
    lanes: Iterable[int],
    told: Callable[[Moved], None] = lambda _moved: None,
) -> list[Moved]:
    """Move lanes between the servers at two addresses, `MARKET` for the market's own, one lane
    after the other; a new server is made one of this market's first.

    The login may become `tallystick_owner`. Raises MoveRefused; psycopg.Error when a server goes
    away. What was moved before stays moved, and each lane is `told` when it is.
    """
    moved: list[Moved] = []
    with _way(market, source, target) as way:
        for lane in lanes:
            moved.append(_move(way, lane))
            told(moved[-1])
    return moved


def give_up(market: str, source: str, lanes: Iterable[int]) -> list[int]:
    """Let lanes that were taken out and did not arrive go on where they were; which ones.

    The server they were on the way to is not asked. Raises MoveRefused, after all: another server
    holds one.
    """
    with _connections(market, source) as (at, here, _):
        old, _ = lane_store.identity(here)
        wanted = list(lanes)
        back = [lane for lane in wanted if _holder(at, lane) == old and _put_back(here, lane)]
        if others := [lane for lane in wanted if _holder(at, lane) != old]:
            told = f"; lanes {ranges(back)} take reports again where they were" if back else ""
            raise MoveRefused(
                f"lanes {ranges(others)} do not lie where TALLYSTICK_USAGE_LANES says{told}"
            )
    return back


# --- the servers -----------------------------------------------------------------------------


@contextmanager
def _way(market: str, source: str, target: str) -> Generator[_Way, None, None]:
    if source == target:
        raise MoveRefused("both addresses are the same")
    with _connections(market, source, target) as (at, here, there):
        old, _ = lane_store.identity(here)
        new, _ = lane_store.identity(there)
        yield _Way(at, here, there, old, new, time.monotonic())


@contextmanager
def _connections(
    market: str, source: str, target: str = MARKET
) -> Generator[list[Connection], None, None]:
    """To the market's database, the old place and the new one, as the owner of the tables; the new
    one is made a server first. Raises MoveRefused.
    """
    with ExitStack() as stack:
        found = {MARKET: stack.enter_context(_connect(market))}
        for address in (source, target):
            if address not in found:
                found[address] = stack.enter_context(_connect(address))
        _require_apart(list(found.values()))
        at = found[MARKET]
        if not advisory.try_lock(at, MOVING):
            raise MoveRefused(f"another move is under way: {advisory.held_by(at, MOVING)} has it")
        name, of = lane_store.identity(at)
        if name != of:
            raise MoveRefused("TALLYSTICK_DATABASE_URL leads to a server of lanes, not to a market")
        if source != MARKET and not _is_made(found[source], name):
            raise MoveRefused("the old server's database was not made a server of lanes")
        if target != MARKET:
            _prepare(target, found[target], name)
        for connection in found.values():
            connection.execute("SET ROLE tallystick_owner")
        yield [at, found[source], found[target]]


def _connect(address: str) -> Connection:
    told = given_up_in_time(address)
    return DurableConnection.connect(told, autocommit=True, connect_timeout=CONNECT_SECONDS_MAX)


def _require_apart(connections: list[Connection]) -> None:
    """No two lead to one database, under whatever name: a lock of one is seen in the other."""
    key = secrets.randbits(62)
    for connection in connections:
        if not advisory.try_lock(connection, key):
            raise MoveRefused("two of these addresses lead to the same database")


# --- a database becomes a server of lanes ----------------------------------------------------

_THERE_ARE = """
    SELECT to_regclass('public.migration') IS NOT NULL, EXISTS (
        SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname <> 'information_schema' AND n.nspname !~ '^pg_')
"""
_TABLES = ("market_events", "usage_event", "command", "key_set", "usage_elsewhere")
"""A database where each of them is missing or empty holds nothing."""
_NONE_HERE = """
    WITH gone AS (DELETE FROM usage_head RETURNING *)
    INSERT INTO usage_elsewhere (lane, pos, hash, recorded_us)
    SELECT lane, pos, hash, recorded_us FROM gone
"""
_BELONGS = "UPDATE usage_server SET market = %s"


def _prepare(address: str, there: Connection, market: UUID) -> None:
    """Make the database a server of this market's lanes: the schema, and no lane of its own. Done
    again it does nothing. Raises MoveRefused where it holds something else; nothing was changed.
    """
    if not _is_made(there, market):
        _require_empty(there)
    migrate.migrate(address)
    with there.transaction():
        there.execute("SET LOCAL ROLE tallystick_owner")
        there.execute("LOCK TABLE usage_server")
        if not _is_made(there, market):
            _require_empty(there)
            there.execute(_NONE_HERE)
            there.execute(_BELONGS, (market,))


def _is_made(there: Connection, market: UUID) -> bool:
    """Whether it is one already. Raises MoveRefused: it is one of another market's."""
    if there.execute("SELECT to_regclass('public.usage_server')").fetchone() == (None,):
        return False
    server, its_market = lane_store.identity(there)
    if server != its_market != market:
        raise MoveRefused("that server's database holds lanes of another market")
    return server != its_market


def _require_empty(there: Connection) -> None:
    is_migrated, has_relations = there.execute(_THERE_ARE).fetchone() or (False, True)
    holds = has_relations and not is_migrated
    for table in _TABLES:
        named = there.execute("SELECT to_regclass(%s)", (f"public.{table}",)).fetchone()
        if named != (None,):
            query = sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(table))
            holds = holds or there.execute(query).fetchone() == (True,)
    if holds:
        raise MoveRefused("the new server's database is not empty, and holds no usage lanes")


def migrate_server(market: Connection, address: str, lanes: Iterable[int]) -> None:
    """Bring a server of these lanes to this version. Raises NotAdmitted: it was not made one of
    this market's, or has lost what was seen of them; nothing was changed. Raises MoveRefused
    likewise, and as `migrate.migrate`.
    """
    with _connect(address) as there:
        if not _is_made(there, lane_store.identity(market)[0]):
            raise NotAdmitted("its database was not made a server of lanes")
        lane_store.admit(market, there, lanes)
    migrate.migrate(given_up_in_time(address))


# --- one lane --------------------------------------------------------------------------------


def _move(way: _Way, lane: int) -> Moved:
    if _holder(way.market, lane) == way.new:
        return _finished(way, lane)
    _require_holder(way.market, lane, way.old)
    _require_whole(way, lane)
    _take_out_unnamed(way, lane)
    proof, is_back = LaneProof(way.there, lane), _reached(way.there, lane) > 0
    try:
        _copy(way, lane)
        proof.read()
        _let_forget(way, is_back=is_back)
        head = _take_out(way.here, lane, way.new)
        _copy(way, lane)
        proof.read()
        head = _require_same(way, head, proof)
    except CopyDiffers as differs:
        _put_back(way.here, lane)
        raise MoveRefused(
            f"what was copied differs: {differs}. The lane takes reports where it was"
        ) from None
    _arrive(way, head, trees.TreeHead(lane, head.position, proof.tree.root()))
    return _finished(way, lane)


def _holder(market: Connection, lane: int) -> UUID:
    """The server that holds the lane, as the market says: the market's own while it leaves that."""
    row = market.execute(_RECORD, (lane,)).fetchone()
    at: UUID = lane_store.identity(market)[0] if row is None or row[0] is None else row[0]
    return at


def _require_holder(market: Connection, lane: int, old: UUID) -> None:
    if _holder(market, lane) != old:
        raise MoveRefused(f"lane {lane} does not lie where TALLYSTICK_USAGE_LANES says")


def _require_whole(way: _Way, lane: int) -> None:
    """That the old place holds what the market has seen of it."""
    if way.here is not way.market:
        try:
            lane_store.admit(way.market, way.here, [lane])
        except NotAdmitted as error:
            raise MoveRefused(f"the server of lane {lane} is not used: {error}") from None


def _take_out_unnamed(way: _Way, lane: int) -> None:
    """The head that a move which was ended left at the new place: no report came to it."""
    if way.there is not way.market:
        with way.there.transaction():
            way.there.execute(_LOCKED_HEAD, (lane,))
            way.there.execute(_TAKE_OUT, {"lane": lane, "to": None})


def _let_forget(way: _Way, *, is_back: bool) -> None:
    """The lane may have been held at the new place just now. A process that knows it so must not
    store there between the head that is put in and the name: the move may still be given up.
    """
    left = way.began + FORGET_SECONDS - time.monotonic()
    if is_back and way.there is not way.market and left > 0:
        time.sleep(left)


def _take_out(here: Connection, lane: int, to: UUID) -> LaneHead:
    """Waits for the append to the lane that runs; the next one finds no head. The tree of the lane
    reaches it in the same transaction: a pin then covers all that was accrued. Raises MoveRefused.
    """
    trees.follow_to_now(here)
    with here.transaction():
        if here.execute(_LOCKED_HEAD, (lane,)).fetchone() is not None:
            trees.follow_lane(here, lane)
            here.execute(_TAKE_OUT, {"lane": lane, "to": to})
        row = here.execute(_TAKEN_OUT, (lane,)).fetchone()
        if row is None or row[-1] is None:
            raise MoveRefused(f"the server of lane {lane} does not hold it: was it restored?")
        if row[-1] != to:
            raise MoveRefused(
                f"lane {lane} is on its way to another server: finish that move first, or give it"
                " up by moving the lane to where TALLYSTICK_USAGE_LANES says that it lies"
            )
    return LaneHead(*row[:-1])


def _put_back(here: Connection, lane: int) -> bool:
    """Whether the lane had been taken out."""
    row = here.execute(_TAKEN_OUT, (lane,)).fetchone()
    if row is None or row[-1] is None:
        return False
    with here.transaction():
        here.execute(_ARRIVE_HERE, (lane,))
        here.execute(_PUT_IN, row[:-1])
    return True


def _copy(way: _Way, lane: int) -> None:
    """What the new place does not have yet, of one snapshot."""
    after = _reached(way.there, lane)
    with way.here.transaction(), way.there.transaction():
        way.here.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for table, columns in _COPIED:
            _copy_table(way, lane, after, table, columns)
        if _reached(way.here, lane) >= after:
            _copy_nodes(way, lane)


def _reached(connection: Connection, lane: int) -> int:
    """The last position of the lane's rows, whether it is held there or not."""
    row = connection.execute(_REACHED, (lane,)).fetchone()
    assert row is not None
    at: int = row[0]
    return at


def _copy_table(way: _Way, lane: int, after: int, table: str, columns: str) -> None:
    names = {"table": sql.Identifier(table), "columns": sql.SQL(columns)}
    query = sql.SQL(
        "COPY (SELECT {columns} FROM {table} WHERE lane = {lane} AND position > {after}"
        " ORDER BY position) TO STDOUT (FORMAT binary)"
    ).format(lane=sql.Literal(lane), after=sql.Literal(after), **names)
    into = sql.SQL("COPY {table} ({columns}) FROM STDIN (FORMAT binary)").format(**names)
    with way.here.cursor().copy(query) as out, way.there.cursor().copy(into) as taken:
        for data in out:
            taken.write(data)


def _copy_nodes(way: _Way, lane: int) -> None:
    """What is small: each node's last report, and the second bodies."""
    nodes = way.here.execute("SELECT * FROM usage_node WHERE lane = %s", (lane,)).fetchall()
    second = way.here.execute("SELECT * FROM usage_evidence WHERE lane = %s", (lane,)).fetchall()
    with way.there.cursor() as cursor:
        cursor.execute("DELETE FROM usage_node WHERE lane = %s", (lane,))
        cursor.executemany("INSERT INTO usage_node VALUES (%s, %s, %s, %s)", nodes)
        cursor.executemany(
            "INSERT INTO usage_evidence VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            second,
        )


def _require_same(way: _Way, head: LaneHead, proof: LaneProof) -> LaneHead:
    """That the rows at the new place are the lane that was taken out, or continue it; the head of
    the lane. Raises CopyDiffers.
    """
    lane = head.lane
    if proof.position < head.position:
        raise CopyDiffers(f"lane {lane}: {proof.position} of {head.position} reports are there")
    if head.position:
        last = way.there.execute(_AT, (lane, head.position)).fetchone()
        if last is None or last[2] != head.hash:
            raise CopyDiffers(f"lane {lane}: position {head.position} has another chain there")
    for kept in (trees.head(way.here, lane), trees.head(way.market, lane)):
        if kept.size > proof.position or proof.tree.root(kept.size) != kept.root:
            raise CopyDiffers(f"lane {lane}: its first {kept.size} reports have another root there")
    asked = (lane, head.position)
    if way.here.execute(_TIMES, asked).fetchone() != way.there.execute(_TIMES, asked).fetchone():
        raise CopyDiffers(f"lane {lane}: a time of receipt or a flag is another one there")
    proof.require_kept_beside()
    if proof.position == head.position:
        return head
    row = way.there.execute(_AT, (lane, proof.position)).fetchone()
    assert row is not None
    return LaneHead(*row)


def _arrive(way: _Way, head: LaneHead, root: trees.TreeHead) -> None:
    """Put the head in at the new place, and then let the market name that. Raises MoveRefused."""
    if way.there is way.market:
        _come_back(way, head, root)
        return
    with way.there.transaction():
        way.there.execute(_ARRIVE_HERE, (head.lane,))
        way.there.execute(_PUT_IN, tuple(head))
        trees.keep_heads(way.there, [root])
    _name(way, head, root)


def _come_back(way: _Way, head: LaneHead, root: trees.TreeHead) -> None:
    """Both steps are one transaction where the new place is the market's own."""
    with way.market.transaction():
        if way.market.execute(_COME_BACK, (head.lane, way.old)).rowcount != 1:
            raise MoveRefused(f"lane {head.lane} was moved by another command meanwhile")
        way.market.execute(_PUT_IN, tuple(head))
        trees.keep_heads(way.market, [root])


def _name(way: _Way, head: LaneHead, root: trees.TreeHead) -> None:
    told = {"pos": head.position, "hash": head.hash, "at_us": head.recorded_us, "lane": head.lane}
    with way.market.transaction():
        named = way.market.execute(_NAME, {**told, "to": way.new, "holder": way.holder})
        if named.rowcount != 1:
            raise MoveRefused(f"lane {head.lane} was moved by another command meanwhile")
        trees.keep_heads(way.market, [root])


def _finished(way: _Way, lane: int) -> Moved:
    """The old place hears that the lane has arrived; what the market knows of it."""
    if way.here is not way.market:
        way.here.execute(_LET_GO, (lane,))
    known = cut.pin(way.market).lanes[lane]
    return Moved(lane, known.size, known.head, known.root)
