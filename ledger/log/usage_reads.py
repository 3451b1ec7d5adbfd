"""What the others read of the usage log: every SELECT on its tables that is not the log's own.

Nobody else names these tables, so how reports are stored can change in this room alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg

from domain.metering.counting import Passed, UsageRow
from ledger.log import lane_store
from ledger.log.lane_map import MARKET
from ledger.log.lane_store import LanesStopped
from ledger.log.lanes import lane_of
from ledger.log.report_rows import LeaseRows, lease_rows
from ledger.log.usage import StoredReport, reports_of_node

Connection = psycopg.Connection[Any]
T = TypeVar("T")
R = TypeVar("R")

REPORTS_AHEAD_MAX = 20_000
"""Reports read together: those of an hour, also from nodes that report every few minutes."""

_NODE_SEQ_AT = """
    SELECT node_seq FROM usage_key
    WHERE lane = %s AND node_id = %s AND position <= %s
    ORDER BY node_seq DESC LIMIT 1
"""
_LANE_HEADS = """
    SELECT lane, pos, true FROM usage_head
    UNION ALL SELECT lane, pos, false FROM usage_elsewhere WHERE NOT is_stopped
"""
_UNREAD = b"""
    SELECT e.lane, e.position, e.node_id, e.node_seq, e.body, e.flags, e.recorded_us
    FROM unnest(%s::int2[], %s::text[], %s::int8[], %s::int8[])
        WITH ORDINALITY n(lane, node_id, after, head, place)
    CROSS JOIN LATERAL (
        SELECT y.position FROM usage_key y
        WHERE y.lane = n.lane AND y.node_id = n.node_id AND y.node_seq > coalesce((
            SELECT k.node_seq FROM usage_key k
            WHERE k.lane = n.lane AND k.node_id = n.node_id AND k.position <= n.after
            ORDER BY k.node_seq DESC LIMIT 1), 0)
        ORDER BY y.node_seq
    ) y
    JOIN usage_event e ON e.lane = n.lane AND e.position = y.position
    WHERE y.position <= n.head
    ORDER BY n.place, y.position LIMIT %s
"""
_AT = (
    "SELECT lane, position, node_id, node_seq, body, flags, recorded_us FROM usage_event"
    " WHERE lane = %s AND position = %s"
)
_LATEST = """
    SELECT e.lane, e.position, e.node_id, e.node_seq, e.body, e.flags, e.recorded_us
    FROM (SELECT lane, position FROM usage_key WHERE lane = %s AND node_id = %s
        ORDER BY node_seq DESC LIMIT %s) k
    JOIN usage_event e USING (lane, position) ORDER BY e.node_seq
"""
_LAST_SEQ = """
    SELECT n.node_id, (SELECT k.node_seq FROM usage_key k
        WHERE k.lane = n.lane AND k.node_id = n.node_id ORDER BY k.node_seq DESC LIMIT 1)
    FROM unnest(%s::int2[], %s::text[]) n(lane, node_id) JOIN usage_head h ON h.lane = n.lane
"""
_ALL = """
    SELECT lane, position, node_id, node_seq, body, flags, recorded_us
    FROM usage_event WHERE lane = ANY(%s)
"""
_BETWEEN = """
    SELECT e.lane, e.position, e.node_id, e.node_seq, e.body, e.flags, e.recorded_us
    FROM unnest(%s::int2[], %s::int8[], %s::int8[]) r(lane, first, last)
    JOIN public.usage_event e
        ON e.lane = r.lane AND e.position > r.first AND e.position <= r.last
"""
_SIGNED_TWICE = "SELECT DISTINCT node_id FROM usage_evidence WHERE lane = ANY(%s)"
_TWICE_SIGNED = """
    SELECT e.lane, e.node_id, e.node_seq, k.leaf, e.leaf, s.body, e.body, e.recorded_us
    FROM usage_evidence e JOIN usage_key k USING (lane, node_id, node_seq)
    JOIN usage_event s ON s.lane = k.lane AND s.position = k.position
    WHERE e.node_id = ANY(%s) ORDER BY e.lane, e.node_id, e.node_seq
"""
_RECEIVED_MANY = """
    SELECT e.lane, e.position, e.recorded_us
    FROM unnest(%s::int2[], %s::int8[]) n(lane, position) JOIN usage_event e USING (lane, position)
"""
_RECEIVED = "SELECT recorded_us FROM usage_event WHERE lane = %s AND position = %s"


# --- for the SQL of views ---------------------------------------------------------------------

HEADS = "public.usage_lane"
"""A relation of (lane, pos): how far each lane goes."""
STORED_COUNT = "(SELECT coalesce(sum(pos), 0)::bigint FROM public.usage_lane)"
"""How many reports are stored."""
NEXT_RECEIVED_US = """(
    SELECT e.recorded_us FROM public.usage_event e
    WHERE e.lane = h.lane AND e.position = p.position + 1)"""
"""When the report behind a position `p` of the lane `h` was received."""


# --- one report, some, all --------------------------------------------------------------------


def stored_count(connection: Connection) -> int:
    """How many reports are stored."""
    row = connection.execute(f"SELECT {STORED_COUNT}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def report_at(connection: Connection, lane: int, position: int) -> StoredReport | None:
    """The report at a place of a lane."""
    with lane_store.at(connection, lane) as there:
        row = there.execute(_AT, (lane, position), binary=True).fetchone()
    return None if row is None else StoredReport(*row)


def latest_reports(connection: Connection, node_id: str, limit: int) -> list[StoredReport]:
    """The last reports of a node, in order."""
    lane = lane_of(node_id)
    with lane_store.at(connection, lane) as there:
        rows = there.execute(_LATEST, (lane, node_id, limit), binary=True).fetchall()
    return [StoredReport(*row) for row in rows]


def last_numbers(connection: Connection, node_ids: Sequence[str]) -> dict[str, int]:
    """The number of each node's last report, by one query a server; 0: it has sent none. Nodes of
    stopped lanes are left out.
    """
    found: dict[str, int] = {}
    for address, lanes in lane_store.each(connection, map(lane_of, node_ids)):
        nodes = [node_id for node_id in node_ids if lane_of(node_id) in lanes]
        with suppress(LanesStopped), lane_store.on(connection, address, lanes) as there:
            rows = there.execute(_LAST_SEQ, ([lane_of(one) for one in nodes], nodes)).fetchall()
            found.update({str(node_id): int(seq or 0) for node_id, seq in rows})
    return found


def reports_between(
    connection: Connection, spans: Iterable[tuple[int, int, int]]
) -> list[StoredReport]:
    """The reports of some lanes, (lane, after, until) each, in no order. Raises LanesStopped."""

    def read(there: Connection, some: list[tuple[int, int, int]]) -> list[StoredReport]:
        rows = there.execute(_BETWEEN, tuple(map(list, zip(*some, strict=True))), binary=True)
        return [StoredReport(*row) for row in rows]

    return _by_server(connection, spans, lambda span: span[0], read)


def all_reports(connection: Connection) -> Iterator[StoredReport]:
    """Every report, lane by lane as they lie: for replays and counts, not for a busy server."""
    for address, lanes in lane_store.each(connection):
        with lane_store.on(connection, address, lanes) as there:
            rows = there.execute(_ALL, (list(lanes),))
        yield from (StoredReport(*row) for row in rows)


@dataclass(frozen=True, slots=True)
class TwiceSigned:
    """Two bodies that a node signed under one number: the stored one and the other."""

    lane: int
    node_id: str
    node_seq: int
    stored_leaf: bytes
    other_leaf: bytes
    stored: bytes
    other: bytes
    received_us: int  # the other one


def nodes_that_signed_twice(connection: Connection) -> list[str]:
    """Nodes of which there is evidence that they signed two bodies under one number; those of
    stopped lanes are found later.
    """
    found: set[str] = set()
    for address, lanes in lane_store.each(connection):
        with suppress(LanesStopped), lane_store.on(connection, address, lanes) as there:
            found |= {node_id for (node_id,) in there.execute(_SIGNED_TWICE, (list(lanes),))}
    return sorted(found)


def twice_signed(connection: Connection, node_ids: Sequence[str]) -> list[TwiceSigned]:
    """What these nodes signed twice, by lane, node and number."""

    def read(there: Connection, nodes: list[str]) -> list[TwiceSigned]:
        return [TwiceSigned(*row) for row in there.execute(_TWICE_SIGNED, (nodes,))]

    found = _by_server(connection, node_ids, lane_of, read)
    return sorted(found, key=lambda one: (one.lane, one.node_id, one.node_seq))


def _by_server(
    connection: Connection,
    of: Iterable[T],
    lane: Callable[[T], int],
    read: Callable[[Connection, list[T]], list[R]],
) -> list[R]:
    """What is read of things that belong to lanes, on the connection of those lanes. Raises
    LanesStopped.
    """
    wanted: defaultdict[int, list[T]] = defaultdict(list)
    for one in of:
        wanted[lane(one)].append(one)
    found: list[R] = []
    for address, lanes in lane_store.each(connection, wanted):
        with lane_store.on(connection, address, lanes) as there:
            found += read(there, [one for each in lanes for one in wanted[each]])
    return found


# --- the reports of one node, for its leases --------------------------------------------------


@dataclass(slots=True)
class NodeReader:
    """Reads a node's reports once for all of its leases in one run of the job."""

    connection: Connection
    _stored: dict[str, list[StoredReport]] = field(default_factory=dict)
    _reports: dict[str, list[LeaseRows]] = field(default_factory=dict)
    _read_from: dict[str, int] = field(default_factory=dict)
    _heads: dict[int, int] = field(default_factory=dict)
    _has_looked: bool = False
    _received: dict[tuple[int, int], int] = field(default_factory=dict)

    def head(self, lane: int) -> int:
        """How far the lane is read in this run: fixed, for all lanes, at the first look. Raises
        LanesStopped.
        """
        if not self._is_seen(lane):
            raise LanesStopped([lane])
        return self._heads[lane]

    def _is_seen(self, lane: int) -> bool:
        """Whether the lane lies where this process reads it. What it looks at first are the heads,
        then who holds the lanes: so every report up to a head is on the server that is asked.
        """
        if not self._has_looked:
            self._look()
        return lane in self._heads

    def _look(self) -> None:
        self._has_looked = True
        lanes = lane_store.of(self.connection)
        for each, head, is_here in self.connection.execute(_LANE_HEADS).fetchall():
            if is_here == (lanes.addresses[each] == MARKET):
                self._heads[each] = head
        for address, told in lanes.elsewhere().items():
            if some := [lane for lane in told if lane in self._heads]:  # else it is stopped already
                held = lane_store.held_now(self.connection, address, some)
                for lane in set(some) - held:
                    del self._heads[lane]

    def beside(self) -> NodeReader:
        """Another reader of the same run: it sees the lanes as far as this one does."""
        if not self._has_looked:
            self._look()
        return NodeReader(self.connection, _heads=self._heads, _has_looked=True)

    def received_before(self, lane: int, at_us: int) -> int:
        """The last position of a lane received before a moment; 0 when there is none.

        Times of receipt never fall along a lane, so a bisection needs no index of its own. Raises
        LanesStopped.
        """
        if (lane, at_us) in self._received:
            return self._received[lane, at_us]
        low, high = 0, self.head(lane)
        with lane_store.at(self.connection, lane) as there:
            while low < high:
                middle = (low + high + 1) // 2
                row = there.execute(_RECEIVED, (lane, middle)).fetchone()
                assert row is not None, (lane, middle)
                low, high = (middle, high) if row[0] < at_us else (low, middle - 1)
        self._received[lane, at_us] = low
        return low

    def look_up(self, moments: Iterable[tuple[int, int]]) -> None:
        """`received_before` of many (lane, moment), all bisected together: a question a step and
        server. Those of stopped lanes are left for `received_before` to refuse.
        """
        wanted = [one for one in moments if one not in self._received and self._is_seen(one[0])]
        open_ = {one: (0, self.head(one[0])) for one in wanted}
        while open_:
            middles = {}
            for one, (low, high) in list(open_.items()):
                if low >= high:
                    self._received[one] = low
                    del open_[one]
                else:
                    middles[one] = (low + high + 1) // 2
            received, stopped = self._received_at({(one[0], at) for one, at in middles.items()})
            for one, middle in middles.items():
                if one[0] in stopped:
                    del open_[one]
                    continue
                low, high = open_[one]
                is_before = received[one[0], middle] < one[1]
                open_[one] = (middle, high) if is_before else (low, middle - 1)

    def _received_at(
        self, places: Iterable[tuple[int, int]]
    ) -> tuple[dict[tuple[int, int], int], set[int]]:
        """When the reports at these places were received; and the lanes that are stopped."""
        by_lane: defaultdict[int, list[int]] = defaultdict(list)
        for lane, position in sorted(places):
            by_lane[lane].append(position)
        received: dict[tuple[int, int], int] = {}
        stopped: set[int] = set()
        for address, lanes in lane_store.each(self.connection, by_lane):
            asked = [(lane, position) for lane in lanes for position in by_lane[lane]]
            try:
                with lane_store.on(self.connection, address, lanes) as there:
                    columns = tuple(map(list, zip(*asked, strict=True)))
                    for lane, position, at_us in there.execute(_RECEIVED_MANY, columns):
                        received[lane, position] = at_us
            except LanesStopped:
                stopped.update(lanes)
        return received, stopped

    def read_ahead(self, after: Mapping[str, int]) -> None:
        """Read the reports of many nodes, each after its position, with one query a server; forget
        others.

        When there are more than REPORTS_AHEAD_MAX, the nodes it does not come to are read when
        they are asked for, as are those of stopped lanes. What cannot be decoded is found then as
        well: it stops its node only.
        """
        self._stored.clear()
        self._reports.clear()
        self._read_from.clear()
        by_lane: defaultdict[int, list[str]] = defaultdict(list)
        for node_id in after:
            by_lane[lane_of(node_id)].append(node_id)
        for address, lanes in lane_store.each(self.connection, filter(self._is_seen, by_lane)):
            nodes = [node_id for lane in lanes for node_id in by_lane[lane]]
            with suppress(LanesStopped), lane_store.on(self.connection, address, lanes) as there:
                self._read_ahead_on(there, nodes, after)

    def _read_ahead_on(self, there: Connection, nodes: list[str], after: Mapping[str, int]) -> None:
        lanes = [lane_of(node_id) for node_id in nodes]
        rows: Sequence[Any] = there.execute(
            _UNREAD,
            (
                lanes,
                nodes,
                [after[node_id] for node_id in nodes],
                [self.head(lane) for lane in lanes],
                REPORTS_AHEAD_MAX,
            ),
            binary=True,
        ).fetchall()
        for row in rows:
            stored = StoredReport(*row)
            self._stored.setdefault(stored.node_id, []).append(stored)
        if len(rows) == REPORTS_AHEAD_MAX:  # the last one may have more
            nodes = nodes[: nodes.index(rows[-1][2])]
            self._stored.pop(rows[-1][2])
        self._read_from.update({node_id: after[node_id] for node_id in nodes})

    def rows(self, node_id: str, lease_id: str, after_position: int) -> tuple[UsageRow, ...]:
        """The lease's rows of every report of the node after a lane position, in lane order."""
        return tuple(
            row
            for one in self._read(node_id, after_position)
            if one.position > after_position
            for row in one.rows.get(lease_id, ())
        )

    def passed(
        self, node_id: str, device_ids: Iterable[str], after_position: int
    ) -> tuple[Passed, ...]:
        """How far the node's reports after a lane position tell of each device, where they do."""
        told = [one for one in self._read(node_id, after_position) if one.position > after_position]
        found = []
        for device_id in device_ids:
            moments = [one.passed[device_id] for one in told if device_id in one.passed]
            found += [Passed(device_id, max(moments))] if moments else []
        return tuple(found)

    def reports(
        self, node_id: str, after_position: int, until_position: int
    ) -> Iterator[StoredReport]:
        """A node's reports with after < lane position <= until, in order."""
        lane = lane_of(node_id)
        with lane_store.at(self.connection, lane) as there:
            known = there.execute(_NODE_SEQ_AT, (lane, node_id, after_position)).fetchone()
        after_seq = 0 if known is None else known[0]
        while batch := reports_of_node(self.connection, node_id, after_seq):
            yield from (one for one in batch if one.position <= until_position)
            if batch[-1].position > until_position:
                return
            after_seq = batch[-1].node_seq

    def _read(self, node_id: str, after_position: int) -> list[LeaseRows]:
        """The node's reports after this position, and perhaps some before it."""
        if self._read_from.get(node_id, after_position + 1) > after_position:
            found = self.reports(node_id, after_position, self.head(lane_of(node_id)))
            self._reports[node_id] = [lease_rows(one) for one in found]
            self._read_from[node_id] = after_position
        elif node_id not in self._reports:
            self._reports[node_id] = [lease_rows(one) for one in self._stored.pop(node_id, ())]
        return self._reports[node_id]
