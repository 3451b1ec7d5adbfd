"""The usage log: verified reports in, receipts out after the commit.

Not the door (signatures and form are judged before) and not the meter (accrual judges what a row
is worth). What arrives while a transaction runs goes into the next one, so the price of a commit
is shared by everybody who waits.

    an answered report is durable;   a report sent twice is stored once, by its key
    positions of a lane are gapless and in commit order

All decisions about a report (stored, duplicate, equivocation, gap, fork) are taken by the SQL
function `usage_append` under the lane's lock; nothing here reads before it writes.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import psycopg
from psycopg import AsyncConnection, Connection

from domain.metering import report
from ledger.log import lane_store, pgbin
from ledger.log.chain import chain, genesis_usage, stored_body, usage_leaf
from ledger.log.durable import DurableAsyncConnection, NotReplicated, wait_for_standbys_async
from ledger.log.full_disk import DISK
from ledger.log.lane_store import NotAdmitted
from ledger.log.lanes import lane_of

BATCH_REPORTS_MAX = 512
BATCH_BYTES_MAX = 1_000_000
QUEUE_REPORTS_MAX = 2_000
QUEUE_BYTES_MAX = 32 * 1024 * 1024
RECONNECT_SECONDS_MAX = 5.0
READ_BATCH_MAX = 2_000

NOT_HERE = "the lane lies on another server now"
"""`usage_append` passes by a report whose lane has no head here, and refuses when it is the last.
What it stored beside it is told again as a duplicate."""

Admit = Callable[[AsyncConnection[Any]], Awaitable[frozenset[int]]]
"""Which lanes a connection may be used for, asked before it is. Raises NotAdmitted."""

_APPEND = b"SELECT * FROM usage_append(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)"


class Full(Exception):
    """The queue of reports waiting for their commit is full: try again shortly."""


class Unavailable(Exception):
    """The database of the usage log could not be reached: try again shortly."""


class AppendFailed(Exception):
    """The database refused to store a report for a reason that is nobody's rule."""


class Status(IntEnum):
    """What became of one report; the numbers are those of `usage_append`."""

    STORED = 0
    DUPLICATE = 1
    EQUIVOCATION = 2
    GAP = 3
    FORK = 4
    NOT_REACHED = 5


@dataclass(slots=True, eq=False)
class Item:
    """One verified report on its way into the log."""

    lane: int
    node: bytes
    seq: int
    prev: bytes
    hash: bytes
    genesis: bytes
    leaf: bytes
    body: bytes
    signed: int
    flags: int


class Receipt(NamedTuple):
    """The answer for one report; the middle four are None unless stored or duplicate.

    `acked_seq` and `head` are the node's last stored sequence number and hash after this report.
    """

    status: Status
    position: int | None
    lane_hash: bytes | None
    recorded_us: int | None
    flags: int | None
    acked_seq: int
    head: bytes


class StoredReport(NamedTuple):
    """One row of the log, as accrual and audit read it."""

    lane: int
    position: int
    node_id: str
    node_seq: int
    body: bytes
    flags: int
    recorded_us: int

    @property
    def signed(self) -> bytes:
        """The bytes the node signed: what `domain.metering.report.parse` reads."""
        return signed_of(self.body)


def signed_of(body: bytes) -> bytes:
    """The bytes the node signed, of a report as it is stored."""
    return body[4 : 4 + int.from_bytes(body[:4], "big")]


def key_id_of(body: bytes) -> str:
    """The key that signed a stored body."""
    at = 4 + int.from_bytes(body[:4], "big")
    size = int.from_bytes(body[at : at + 4], "big")
    return body[at + 4 : at + 4 + size].decode()


class LaneHead(NamedTuple):
    """Where a lane stands."""

    lane: int
    position: int
    hash: bytes
    recorded_us: int


def item(
    node_id: str,
    seq: int,
    prev: bytes,
    signed: bytes,
    key_id: str,
    signature: bytes,
    genesis: bytes,
    flags: int = 0,
) -> Item:
    """Prepare a report whose signature was verified. `genesis`:
    `domain.metering.report.genesis`.
    """
    lane = lane_of(node_id)
    body = stored_body(signed, key_id, signature)
    return Item(
        lane=lane,
        node=node_id.encode(),
        seq=seq,
        prev=prev,
        hash=report.report_hash(signed),
        genesis=genesis,
        leaf=usage_leaf(lane, node_id, seq, body),
        body=body,
        signed=4 + len(signed),
        flags=flags,
    )


def wall_clock_us() -> int:
    """Microseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000


# --- appending -------------------------------------------------------------------------------


def prepare(connection: Connection[Any] | AsyncConnection[Any]) -> None:
    """Make a connection ready for `append`: teach it the binary arrays."""
    pgbin.register(connection)


def append(
    connection: Connection[Any], items: Sequence[Item], now_us: int | None = None
) -> list[Receipt]:
    """Append in one statement on a prepared connection; receipts in the order given.

    Meant for replays and tests: the service goes through `UsageLog`. `now_us` is the recorded
    time; never earlier than the lane's last.
    """
    clock_us = wall_clock_us() if now_us is None else now_us
    places = _places(items)
    arguments = _arguments([items[place] for place in places], clock_us)
    cursor = connection.execute(_APPEND, arguments, prepare=True, binary=True)
    return _receipts(places, cursor.fetchall())


def _places(items: Sequence[Item]) -> list[int]:
    """The order `usage_append` wants: by lane, node, number; equal ones as they came."""

    def order(place: int) -> tuple[int, bytes, int]:
        one = items[place]
        return (one.lane, one.node, one.seq)

    return sorted(range(len(items)), key=order)


def _arguments(batch: Sequence[Item], now_us: int) -> tuple[Any, ...]:
    return (
        pgbin.int2s([x.lane for x in batch]),
        pgbin.texts([x.node for x in batch]),
        pgbin.int8s([x.seq for x in batch]),
        pgbin.byteas([x.prev for x in batch]),
        pgbin.byteas([x.hash for x in batch]),
        pgbin.byteas([x.genesis for x in batch]),
        pgbin.byteas([x.leaf for x in batch]),
        pgbin.byteas([x.body for x in batch]),
        pgbin.int4s([x.signed for x in batch]),
        pgbin.int4s([x.flags for x in batch]),
        report.NAME,
        now_us,
    )


def _receipts(places: Sequence[int], rows: Sequence[tuple[Any, ...]]) -> list[Receipt]:
    assert len(rows) == len(places), (len(rows), len(places))
    receipts: list[Any] = [None] * len(places)
    for number, status, *rest in rows:
        receipts[places[number - 1]] = Receipt(Status(status), *rest)
    return receipts


class _Group:
    """The reports of one request: answered together, never split."""

    __slots__ = ("answer", "bytes", "items")

    def __init__(self, items: list[Item], answer: asyncio.Future[list[Receipt]]) -> None:
        self.items = items
        self.answer = answer
        self.bytes = sum(len(x.body) for x in items)

    def resolve(self, receipts: list[Receipt]) -> None:
        if not self.answer.done():
            self.answer.set_result(receipts)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class UsageLog:
    """Group commit over one connection: `async with UsageLog(conninfo) as log`.

    One per process and database: one committer on 2 cores did 1.5 times what four did. All lanes
    that wait go into one transaction, in ascending order.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        now_us: Callable[[], int] = wall_clock_us,
        queue_reports_max: int = QUEUE_REPORTS_MAX,
        queue_bytes_max: int = QUEUE_BYTES_MAX,
        admit: Admit | None = None,
    ) -> None:
        self.transactions = 0
        self._admit = admit
        self._lanes: frozenset[int] = frozenset()
        self._asked = 0.0
        self._conninfo = conninfo
        self._now_us = now_us
        self._queue_reports_max = queue_reports_max
        self._queue_bytes_max = queue_bytes_max
        self._queue: deque[_Group] = deque()
        self._waiting_reports = 0
        self._waiting_bytes = 0
        self._wake = asyncio.Event()
        self._writer: AsyncConnection[Any] | None = None
        self._reader: AsyncConnection[Any] | None = None
        self._reading = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    async def __aenter__(self) -> UsageLog:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self, *, is_there: bool = True) -> None:
        """Begin to commit; connect at once, unless the server may be away (`is_there`)."""
        assert self._task is None, "already started"
        self._closing = False
        if is_there:
            self._writer = await self._connect()
        self._task = asyncio.create_task(self._run(), name="usage log committer")

    async def close(self) -> None:
        """Commit what waits, then stop."""
        assert self._task is not None, "never started"
        self._closing = True
        self._wake.set()
        try:
            await self._task
        finally:
            self._task = None
            for connection in (self._writer, self._reader):
                if connection is not None:
                    await connection.close()
            self._writer = self._reader = None

    @property
    def waiting(self) -> int:
        """Reports in the queue, those in the running transaction not counted."""
        return self._waiting_reports

    def submit(self, items: list[Item]) -> asyncio.Future[list[Receipt]]:
        """Queue the reports of one request; the future resolves after their commit.

        Raises Full when the queue is, Unavailable when the committer has died. The future raises
        Unavailable or AppendFailed.
        """
        assert self._task is not None, "never started"
        if self._task.done() or self._closing:
            raise Unavailable("the committer has stopped")
        group = _Group(items, asyncio.get_running_loop().create_future())
        if (
            self._waiting_reports + len(items) > self._queue_reports_max
            or self._waiting_bytes + group.bytes > self._queue_bytes_max
        ):
            raise Full
        self._waiting_reports += len(items)
        self._waiting_bytes += group.bytes
        self._queue.append(group)
        self._wake.set()
        return group.answer

    async def append(self, items: list[Item]) -> list[Receipt]:
        """`submit` and wait."""
        return await self.submit(items)

    async def head(self, node_id: str) -> tuple[int, bytes | None]:
        """Last stored sequence number of a node and its hash; (0, None) before the first.

        Raises Unavailable.
        """
        async with self._reading:
            for _ in range(2):  # the first failure may be a connection that died long ago
                try:
                    reader = await self._open_reader(lane_of(node_id))
                    cursor = await reader.execute(_HEAD, (lane_of(node_id), node_id))
                    row = await cursor.fetchone()
                except psycopg.OperationalError:
                    continue
                return (0, None) if row is None else (row[0], bytes(row[1]))
        raise Unavailable

    async def hashes(self, node_id: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Hashes of a node's stored reports, of those numbers that it has. Raises Unavailable."""
        async with self._reading:
            try:
                reader = await self._open_reader(lane_of(node_id))
                cursor = await reader.execute(
                    _BODIES, (lane_of(node_id), node_id, list(seqs)), binary=True
                )
                rows = await cursor.fetchall()
            except psycopg.OperationalError as error:
                raise Unavailable from error
        return {seq: report.report_hash(signed_of(body)) for seq, body in rows}

    async def _connect(self) -> AsyncConnection[Any]:
        """Raises NotAdmitted."""
        connection = await DurableAsyncConnection.connect(self._conninfo, autocommit=True)
        try:
            prepare(connection)
            await self._ask(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _open_reader(self, lane: int) -> AsyncConnection[Any]:
        """Raises Unavailable and psycopg.OperationalError."""
        if self._reader is None or self._reader.closed:
            reader = await AsyncConnection.connect(self._conninfo, autocommit=True)
            try:
                await self._ask(reader)
            except BaseException as error:
                await reader.close()
                if isinstance(error, NotAdmitted):
                    raise Unavailable(str(error)) from error
                raise
            self._reader = reader
        if self._admit is not None and lane not in self._lanes:
            raise Unavailable(NOT_HERE)
        return self._reader

    async def _ask(self, connection: AsyncConnection[Any]) -> None:
        """Ask which lanes the connection may be used for. Raises NotAdmitted."""
        if self._admit is not None:
            asked = time.monotonic()
            self._lanes = await self._admit(connection)
            self._asked = asked

    async def _require_held(self, connection: AsyncConnection[Any], items: Sequence[Item]) -> None:
        """That the server holds the lanes of these: what is known is asked for again now and then,
        a lane that was not held sooner. Raises NotAdmitted, and RaiseException as `usage_append`
        does.
        """
        lanes = {item.lane for item in items}
        is_known = lanes <= self._lanes
        patience = lane_store.KNOWN_SECONDS if is_known else lane_store.AWAY_SECONDS
        if time.monotonic() >= self._asked + patience:
            await self._ask(connection)
        if not lanes <= self._lanes:
            raise psycopg.errors.RaiseException(NOT_HERE)

    async def _run(self) -> None:
        while self._queue or not self._closing:
            if not self._queue:
                self._wake.clear()
                await self._wake.wait()
                continue
            groups = self._take()
            try:
                await self._commit(groups)
            except BaseException as error:  # a bug, or the end: nobody may wait for ever
                for group in [*groups, *self._queue]:
                    group.fail(Unavailable(repr(error)))
                raise

    def _take(self) -> list[_Group]:
        groups: list[_Group] = []
        reports = size = 0
        while self._queue:
            group = self._queue[0]
            if groups and (
                reports + len(group.items) > BATCH_REPORTS_MAX
                or size + group.bytes > BATCH_BYTES_MAX
            ):
                break
            groups.append(self._queue.popleft())
            reports += len(group.items)
            size += group.bytes
        self._waiting_reports -= reports
        self._waiting_bytes -= size
        return groups

    async def _commit(self, groups: list[_Group]) -> None:
        try:
            receipts = await self._append_reconnecting([x for g in groups for x in g.items])
        except Unavailable as error:
            for group in groups:
                group.fail(error)
        except psycopg.Error:
            for group in groups:  # one bad report must not fail its neighbours
                await self._commit_singly(group)
        else:
            at = 0
            for group in groups:
                group.resolve(receipts[at : at + len(group.items)])
                at += len(group.items)

    async def _commit_singly(self, group: _Group) -> None:
        """Report by report; the first failure ends the group, and with it its node's turn."""
        receipts: list[Any] = [None] * len(group.items)
        for place in _places(group.items):
            try:
                (receipts[place],) = await self._append_reconnecting([group.items[place]])
            except Unavailable as error:
                group.fail(error)
                return
            except psycopg.errors.RaiseException:
                group.fail(Unavailable(NOT_HERE))
                return
            except psycopg.Error as error:
                full = DISK.notice(error)  # the node keeps the report, and sends it again
                group.fail(Unavailable(str(error)) if full else AppendFailed(str(error)))
                return
        group.resolve(receipts)

    async def _append_reconnecting(self, items: list[Item]) -> list[Receipt]:
        """Append; when the connection is lost, send the same again on a new one.

        Safe without knowing whether the lost commit happened: what was stored answers as a
        duplicate, with its first receipt.
        """
        give_up = time.monotonic() + RECONNECT_SECONDS_MAX
        pause = 0.02
        while True:
            try:
                if self._writer is None:
                    self._writer = await self._connect()
                return await self._append_once(self._writer, items)
            except NotAdmitted as error:
                if self._writer is not None:
                    await self._writer.close()
                self._writer = None
                raise Unavailable(str(error)) from error
            except NotReplicated as error:
                # Sent again at once it would wait for the same standby; the node comes back later.
                self._writer = None
                raise Unavailable(str(error)) from error
            except (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction) as error:
                if self._writer is not None and not self._writer.closed:
                    if self._admit is None:
                        raise
                    # Of another server nothing else is to be learnt: its lanes wait, no other does.
                    raise Unavailable(str(error)) from error
                self._writer = None
                if time.monotonic() > give_up:
                    raise Unavailable(str(error)) from error
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 2)

    async def _append_once(
        self, connection: AsyncConnection[Any], items: list[Item]
    ) -> list[Receipt]:
        if self._admit is not None:
            await self._require_held(connection, items)
        places = _places(items)
        arguments = _arguments([items[place] for place in places], self._now_us())
        cursor = await connection.execute(_APPEND, arguments, prepare=True, binary=True)
        rows = await cursor.fetchall()
        if len(rows) < len(places):
            raise psycopg.errors.RaiseException(NOT_HERE)
        receipts = _receipts(places, rows)
        if any(receipt.status is not Status.STORED for receipt in receipts):
            # Found, not written now: of a row that no standby has yet nothing may be said.
            await wait_for_standbys_async(connection)
        self.transactions += 1
        return receipts


# --- reading ---------------------------------------------------------------------------------

_HEAD = b"SELECT last_node_seq, last_hash FROM usage_node WHERE lane = %s AND node_id = %s"
_COLUMNS = b"e.lane, e.position, e.node_id, e.node_seq, e.body, e.flags, e.recorded_us"
_OF_NODE = (
    b"SELECT " + _COLUMNS + b" FROM usage_key y JOIN usage_event e USING (lane, position)"
    b" WHERE y.lane = %s AND y.node_id = %s AND y.node_seq > %s ORDER BY y.node_seq LIMIT %s"
)
_FLAGGED = (
    b"SELECT " + _COLUMNS + b" FROM usage_event e WHERE e.lane = %s AND e.node_id = %s"
    b" AND e.flags <> 0 AND e.position > %s ORDER BY e.position LIMIT %s"
)
_BODIES = (
    b"SELECT y.node_seq, e.body FROM usage_key y JOIN usage_event e USING (lane, position)"
    b" WHERE y.lane = %s AND y.node_id = %s AND y.node_seq = ANY(%s::int8[])"
)
_LANE_HEADS = b"SELECT lane, pos, hash, recorded_us FROM usage_head ORDER BY lane"
_AUDIT = (
    b"SELECT position, node_id, node_seq, name, body, leaf, chain FROM usage_event"
    b" WHERE lane = %s ORDER BY position"
)


def head_of(connection: Connection[Any], node_id: str) -> tuple[int, bytes | None]:
    """Last stored sequence number of a node and its hash; (0, None) before the first."""
    lane = lane_of(node_id)
    with lane_store.at(connection, lane) as there:
        row = there.execute(_HEAD, (lane, node_id)).fetchone()
    return (0, None) if row is None else (row[0], bytes(row[1]))


def lane_heads(connection: Connection[Any]) -> list[LaneHead]:
    """Where every lane stands, ascending."""
    rows = connection.execute(_LANE_HEADS, binary=True)
    return [LaneHead(*row) for row in rows]


def reports_of_node(
    connection: Connection[Any], node_id: str, after_seq: int, limit: int = READ_BATCH_MAX
) -> list[StoredReport]:
    """Up to `limit` reports of one node with a higher sequence number, in order.

    A node's order by sequence number is its order by position.
    """
    lane = lane_of(node_id)
    with lane_store.at(connection, lane) as there:
        rows = there.execute(_OF_NODE, (lane, node_id, after_seq, limit), binary=True).fetchall()
    return [StoredReport(*row) for row in rows]


def flagged_of_node(
    connection: Connection[Any], node_id: str, after_position: int = 0, limit: int = 100
) -> list[tuple[StoredReport, report.ReportInvalid]]:
    """A node's flagged reports, each with the rule it breaks: why it earned nothing."""
    lane, asked = lane_of(node_id), (node_id, after_position, limit)
    with lane_store.at(connection, lane) as there:
        rows = there.execute(_FLAGGED, (lane, *asked), binary=True).fetchall()
    return [(stored, _broken_rule(stored)) for stored in map(StoredReport._make, rows)]


def _broken_rule(stored: StoredReport) -> report.ReportInvalid:
    try:
        report.parse(stored.signed)
    except report.ReportInvalid as broken:
        return broken
    return report.ReportInvalid("rule_of_an_earlier_version", "valid by today's rules")


class ChainBroken(Exception):
    """A stored lane does not hash to its head: a row was changed, removed or inserted."""


def verify(connection: Connection[Any], lanes: Iterable[int]) -> int:
    """Recompute positions, leaves and chains from the stored bytes; the number of reports read.

    Raises ChainBroken naming lane and first bad position.
    """
    heads = {head.lane: head for head in lane_heads(connection)}
    return sum(verify_lane(connection, heads[lane]) for lane in lanes)


def verify_lane(connection: Connection[Any], head: LaneHead) -> int:
    """Recompute one lane up to a head; the number of reports read. Raises ChainBroken."""
    at, hash_ = 0, genesis_usage(head.lane)
    with connection.transaction(), connection.cursor(f"verify_{head.lane}", binary=True) as cursor:
        cursor.itersize = READ_BATCH_MAX
        cursor.execute(_AUDIT, (head.lane,))
        for position, node_id, node_seq, name, body, leaf, link in cursor:
            if position > head.position:
                break  # appended after the heads were read
            wanted = usage_leaf(head.lane, node_id, node_seq, body, name.encode())
            hash_ = chain(hash_, wanted)
            if (position, leaf, link) != (at + 1, wanted, hash_):
                raise ChainBroken(f"lane {head.lane}, position {at + 1}")
            at = position
    if (at, hash_) != (head.position, head.hash):
        raise ChainBroken(f"lane {head.lane}: rows end at {at}, head at {head.position}")
    return at
