"""Lanes on two servers: what is stored, seen and pinned is that of one; a server that dies stops
its own lanes; and a lane moves without a report lost.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
import pytest

from ledger.log import lane_store, usage, usage_reads
from ledger.log.lane_logs import LaneLogs
from ledger.log.lane_map import HERE
from ledger.log.lane_store import LanesMisplaced, LanesStopped
from ledger.log.usage import Item, Receipt, Status, Unavailable
from ledger.log.usage_reads import NodeReader
from ledger.tree import cut, lane_move, trees
from ledger.tree.lane_move import MoveRefused
from tests.conftest import Databases, fresh, running
from tests.scenes.usage_reports import Node

Connection = psycopg.Connection[Any]
NOW_US = 1_795_161_720_000_000
UPPER = range(32, 64)


@pytest.fixture(scope="module")
def second() -> Generator[Databases, None, None]:
    """The other server."""
    with running() as server:
        yield server


@dataclass
class Two:
    """A market whose upper lanes lie on another server."""

    market: str
    other: str
    server: Databases

    @property
    def address(self) -> str:
        """The market's, told where the lanes lie."""
        return lane_store.carried(HERE.moved(UPPER, self.other), self.market)

    def connect(self) -> Connection:
        return psycopg.connect(self.address, autocommit=True)

    def kill(self) -> None:
        os.kill(self.server.pid, signal.SIGKILL)


@pytest.fixture
def two(database: str, second: Databases) -> Generator[Two, None, None]:
    _execute(second, "CREATE DATABASE lanes")
    other = second.uri_of("lanes")
    lane_move.prepare(other)
    lane_move.move(database, other, UPPER)
    yield Two(database, other, second)
    second.ensure_running()
    _execute(second, "DROP DATABASE lanes WITH (FORCE)")


def _execute(server: Databases, sql: LiteralString) -> None:
    """On a connection of its own: the server dies between tests."""
    with psycopg.connect(server.uri, autocommit=True) as connection:
        connection.execute(sql)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "RECONNECT_SECONDS_MAX", 0.1)


def put(address: str, some: list[list[Item]]) -> list[list[Receipt] | None]:
    """Send what each node has; None: it is to be sent again."""

    async def send() -> list[Any]:
        async with LaneLogs(address, now_us=lambda: NOW_US) as log:
            sent = [log.append(items) for items in some]
            return await asyncio.gather(*sent, return_exceptions=True)

    found: list[list[Receipt] | None] = []
    for told in asyncio.run(send()):
        assert isinstance(told, list | Unavailable), told
        found.append(told if isinstance(told, list) else None)
    return found


def nodes(count: int) -> list[Node]:
    return [Node(f"node {number}") for number in range(count)]


def in_lanes(upper: bool) -> Node:
    """A node in one of these lanes."""
    return next(node for node in nodes(100) if (node.lane in UPPER) == upper)


def seen(connection: Connection) -> list[tuple[int, int]]:
    return connection.execute("SELECT lane, pos FROM usage_lane ORDER BY lane").fetchall()


# --- the same as on one server ---------------------------------------------------------------


def test_two_servers_give_the_receipts_and_the_pin_of_one(
    two: Two, postgres: Databases, template: str
) -> None:
    with fresh(postgres, template) as one:
        senders = nodes(30)
        for _ in range(3):
            some = [node.items(2) for node in senders]
            assert put(two.address, some) == put(one, some)
        with psycopg.connect(one, autocommit=True) as alone, two.connect() as spread:
            assert trees.follow_all(alone) == trees.follow_all(spread) == 180
            assert cut.pin(spread) == cut.pin(alone)
            assert seen(spread) == seen(alone)
            ids = [node.id for node in senders]
            assert usage_reads.last_numbers(spread, ids) == usage_reads.last_numbers(alone, ids)
            spans = [(lane, 0, head) for lane, head in seen(alone)]
            stored = sorted(usage_reads.reports_between(alone, spans))
            assert sorted(usage_reads.reports_between(spread, spans)) == stored
            assert sorted(usage_reads.all_reports(spread)) == stored
            moments = [(lane, NOW_US + 1) for lane in range(64)]
            readers = [NodeReader(each) for each in (alone, spread)]
            for reader in readers:
                reader.look_up(moments)
                reader.read_ahead(dict.fromkeys(ids, 0))
            lease = "lease_" + "0" * 32
            read = [[each.rows(node_id, lease, 0) for node_id in ids] for each in readers]
            assert read[0] == read[1]
            assert all(read[0])
            for moment in moments:
                assert readers[0].received_before(*moment) == readers[1].received_before(*moment)


def test_a_second_body_is_found_on_the_server_of_its_lane(two: Two) -> None:
    for is_upper in (False, True):
        node = in_lanes(is_upper)
        first = node.body()
        other = node.body(agent="0.1.1")
        put(two.address, [[node.item(first)]])
        assert put(two.address, [[node.item(other)]]) != [None]
        with two.connect() as connection:
            assert node.id in usage_reads.nodes_that_signed_twice(connection)
            (found,) = usage_reads.twice_signed(connection, [node.id])
            assert (found.lane, found.node_seq) == (node.lane, 1)


def test_a_lane_elsewhere_is_seen_as_far_as_its_tree_so_each_pin_covers_what_was_accrued(
    two: Two,
) -> None:
    node = in_lanes(True)
    put(two.address, [node.items(3)])
    with two.connect() as connection:
        assert dict(seen(connection))[node.lane] == 0, "nobody has looked yet"
        trees.follow_all(connection)
        put(two.address, [node.items(2)])
        assert dict(seen(connection))[node.lane] == cut.pin(connection).lanes[node.lane].size == 3


# --- one server dies -------------------------------------------------------------------------


def test_a_dead_server_stops_its_lanes_only_and_nothing_is_lost(two: Two) -> None:
    here, there = in_lanes(False), in_lanes(True)
    assert None not in put(two.address, [here.items(2), there.items(2)])
    with two.connect() as connection:
        trees.follow_all(connection)
        before = cut.pin(connection)
        two.kill()
        later = there.items(1)
        told = put(two.address, [here.items(1), later])
        assert told[0] is not None
        assert told[0][0].status is Status.STORED
        assert told[1] is None
        trees.follow_all(connection)
        assert trees.stopped_lanes(connection) == tuple(UPPER)
        reader = NodeReader(connection)
        assert reader.head(here.lane) == 3
        with pytest.raises(LanesStopped, match="usage lanes"):
            reader.head(there.lane)
        reader.read_ahead({here.id: 0, there.id: 0})
        assert len(reader.rows(here.id, "lease_" + "0" * 32, 0)) > 0
        with pytest.raises(LanesStopped):
            reader.rows(there.id, "lease_" + "0" * 32, 0)
        meanwhile = cut.pin(connection)
        assert meanwhile.lanes[there.lane] == before.lanes[there.lane]
        assert meanwhile.lanes[here.lane].size == 3

        two.server.ensure_running()
        (again,) = put(two.address, [later])
        assert again is not None
        assert again[0].position == 3
        trees.follow_all(connection)
        assert trees.stopped_lanes(connection) == ()
        assert cut.pin(connection).lanes[there.lane].size == 3
        with psycopg.connect(two.other, autocommit=True) as other:
            assert usage.verify(other, UPPER) == 3


def test_a_lane_that_lost_what_was_seen_of_it_is_stopped(two: Two) -> None:
    node = in_lanes(True)
    put(two.address, [node.items(2)])
    with two.connect() as connection:
        trees.follow_all(connection)
        connection.execute(
            "UPDATE usage_elsewhere SET hash = sha256('another') WHERE lane = %s", (node.lane,)
        )
        trees.follow_all(connection)
        assert trees.stopped_lanes(connection) == (node.lane,)


# --- a lane moves ----------------------------------------------------------------------------


def test_a_lane_moves_with_its_reports_and_comes_back(two: Two) -> None:
    node = in_lanes(False)
    put(two.address, [node.items(3)])
    with two.connect() as connection:
        trees.follow_all(connection)
        before = cut.pin(connection).lanes_root
    (moved,) = lane_move.move(two.market, two.other, [node.lane])
    assert (moved.reports, moved.lane) == (3, node.lane)
    later = node.items(2)
    assert put(two.address, [later]) == [None], "a process that has not heard of the move"

    there = lane_store.carried(HERE.moved([*UPPER, node.lane], two.other), two.market)
    with psycopg.connect(there, autocommit=True) as connection:
        lane_store.require_placed(connection)
        trees.follow_all(connection)
        assert cut.pin(connection).lanes_root == before
        assert put(there, [later]) != [None]
        trees.follow_all(connection)
        pinned = cut.pin(connection)
    with two.connect() as connection:
        with pytest.raises(LanesMisplaced, match="move-lanes"):
            lane_store.require_placed(connection)
        with pytest.raises(LanesStopped):  # a process from before sees its head, not its rows
            NodeReader(connection).head(node.lane)

    (back,) = lane_move.move(two.other, two.market, [node.lane])
    assert (back.reports, back.root) == (5, pinned.lanes[node.lane].root)
    with psycopg.connect(there, autocommit=True) as untold, pytest.raises(LanesStopped):
        NodeReader(untold).head(node.lane)
    with two.connect() as connection:
        lane_store.require_placed(connection)
        trees.follow_all(connection)
        assert cut.pin(connection) == pinned
        assert usage.verify(connection, [node.lane]) == 5
    assert put(two.address, [node.items(1)]) != [None]


def test_a_copy_that_differs_is_refused_and_the_lane_goes_on_where_it_was(two: Two) -> None:
    node, other = in_lanes(False), Node("another")
    put(two.address, [node.items(2)])
    with psycopg.connect(two.other, autocommit=True) as there:
        there.execute(
            "INSERT INTO usage_event VALUES (%s, 1, %s, 1, 'x', '', '', '', 0, 0)",
            (node.lane, other.id),
        )
    with pytest.raises(MoveRefused, match="what was copied differs"):
        lane_move.move(two.market, two.other, [node.lane])
    assert put(two.address, [node.items(1)]) != [None]


def test_a_move_that_was_killed_goes_on_and_the_lane_lies_nowhere_twice(
    two: Two, monkeypatch: pytest.MonkeyPatch, postgres: Databases, template: str
) -> None:
    node = in_lanes(False)
    put(two.address, [node.items(2)])
    with monkeypatch.context() as broken:
        broken.setattr(lane_move, "_prove", _killed)
        with pytest.raises(KeyboardInterrupt):
            lane_move.move(two.market, two.other, [node.lane])
    assert put(two.address, [node.items(1)]) == [None]
    with fresh(postgres, template) as third:
        lane_move.prepare(third)
        with pytest.raises(MoveRefused, match="finish that move first"):
            lane_move.move(two.market, third, [node.lane])
        (moved,) = lane_move.move(two.market, two.other, [node.lane])
        assert moved.reports == 2
        with pytest.raises(MoveRefused, match="does not lie where TALLYSTICK_USAGE_LANES says"):
            lane_move.move(two.market, third, [node.lane])


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_database_of_another_market_is_not_made_a_server_of_lanes(
    two: Two, postgres: Databases, template: str
) -> None:
    lane_move.prepare(two.other)  # again
    with fresh(postgres, template) as another:
        put(another, [in_lanes(True).items(1)])
        with pytest.raises(MoveRefused, match="they are not of one market"):
            lane_move.move(two.other, another, [in_lanes(True).lane])
        with psycopg.connect(another, autocommit=True) as connection:
            connection.execute("DELETE FROM usage_head WHERE lane = 0")
        with pytest.raises(MoveRefused, match="not empty"):
            lane_move.prepare(another)
