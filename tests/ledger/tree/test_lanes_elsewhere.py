"""Lanes on two servers: what is stored, seen and pinned is that of one; a server that dies stops
its own lanes; and a server that is not what it was takes nothing.
"""

from __future__ import annotations

import asyncio
import socket
import time
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from ledger import migrate
from ledger.log import full_disk, lane_store, usage, usage_reads
from ledger.log.lane_logs import LaneLogs
from ledger.log.lane_map import HERE, MARKET
from ledger.log.lane_store import LanesMisplaced, LanesStopped
from ledger.log.usage import Status, Unavailable
from ledger.log.usage_reads import NodeReader
from ledger.tree import cut, lane_move, trees
from ledger.tree.lane_move import MoveRefused
from tests.conftest import Databases, fresh
from tests.ledger.tree.two_servers import NOW_US, UPPER, Two, execute, in_lanes, nodes, put, seen

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


# --- a server that is not what it was ---------------------------------------------------------


def test_a_server_that_was_restored_to_an_earlier_time_takes_and_shows_nothing(two: Two) -> None:
    node, other = in_lanes(True), in_lanes(False)
    two.keep("earlier")
    first = node.items(2)
    assert put(two.address, [first]) != [None]
    with two.connect() as connection:
        trees.follow_all(connection)
        pinned = cut.pin(connection).lanes[node.lane]
    two.restore("earlier")
    again = put(two.address, [first, other.items(1)])
    assert again[0] is None
    assert again[1] is not None
    with two.connect() as connection:
        trees.follow_all(connection)
        assert trees.stopped_lanes(connection) == tuple(UPPER)
        assert cut.pin(connection).lanes[node.lane] == pinned
        with pytest.raises(LanesStopped, match="restored to an earlier time"):
            usage.reports_of_node(connection, node.id, 0)
        with pytest.raises(lane_store.NotAdmitted, match="restored to an earlier time"):
            lane_move.migrate_server(connection, two.other, UPPER)
        with pytest.raises(MoveRefused, match="restored to an earlier time"):
            two.move_back([node.lane])
    with psycopg.connect(two.other, autocommit=True) as there:
        assert usage.head_of(there, node.id) == (0, None)


@pytest.mark.parametrize("kind", ["new", "migrated", "of another market", "of that name"])
def test_a_database_that_was_not_made_a_server_of_this_market_takes_nothing(
    two: Two, postgres: Databases, template: str, kind: str
) -> None:
    node = in_lanes(True)
    execute(two.server, sql.SQL("CREATE DATABASE wrong"))
    wrong = two.server.uri_of("wrong")
    if kind == "migrated":
        migrate.migrate(wrong)
    if kind in ("of another market", "of that name"):
        with fresh(postgres, template) as another:
            if kind == "of another market":
                with psycopg.connect(another, autocommit=True) as connection:
                    name = uuid4()
                    connection.execute(
                        "UPDATE usage_server SET server = %s, market = %s", [name] * 2
                    )
            lane_move.move(another, MARKET, wrong, UPPER)
    address = lane_store.carried(HERE.moved(UPPER, wrong), two.market)
    assert put(address, [node.items(1)]) == [None]
    with psycopg.connect(address, autocommit=True) as connection:
        trees.follow_all(connection)
        if kind != "of that name":  # a server of ours that holds other lanes tells nothing of these
            assert trees.stopped_lanes(connection) == tuple(UPPER)
        with pytest.raises(LanesStopped):
            usage.reports_of_node(connection, node.id, 0)
        if kind in ("new", "migrated", "of another market"):
            with pytest.raises((lane_store.NotAdmitted, MoveRefused)):
                lane_move.migrate_server(connection, wrong, UPPER)
    if kind == "new":
        with psycopg.connect(wrong) as there:
            query = "SELECT to_regclass('public.migration')"
            assert there.execute(query).fetchone() == (None,), "nothing was made there"
    lane_store._IDLE.forget(wrong)
    execute(two.server, sql.SQL("DROP DATABASE wrong WITH (FORCE)"))


def test_nothing_is_written_in_another_market_although_no_lane_is_named_there(
    two: Two, postgres: Databases, template: str
) -> None:
    node = in_lanes(False)
    with fresh(postgres, template) as another:
        put(another, [node.items(2)])
        address = lane_store.carried(HERE.moved([node.lane], another), two.market)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("UPDATE usage_elsewhere SET server = NULL")
            trees.follow_all(connection)
        with psycopg.connect(another, autocommit=True) as connection:
            assert trees.head(connection, node.lane).size == 0
        lane_store._IDLE.forget(another)


def test_a_market_is_not_opened_in_a_server_of_lanes(two: Two) -> None:
    with (
        psycopg.connect(two.other, autocommit=True) as there,
        pytest.raises(LanesMisplaced, match="made a server of usage lanes"),
    ):
        lane_store.require_market(there)
    with pytest.raises(MoveRefused, match="leads to a server of lanes"):
        lane_move.move(two.other, MARKET, two.market, [0])


def test_a_committer_asks_again_who_holds_a_lane_although_its_connection_stays(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the market failed over to a standby that had not heard of a move."""
    monkeypatch.setattr(lane_store, "KNOWN_SECONDS", 0.0)
    node = in_lanes(True)

    async def send() -> list[bool]:
        stored = []
        async with LaneLogs(two.address, now_us=lambda: NOW_US) as log:
            for _ in range(2):
                try:
                    await log.append(node.items(1))
                    stored.append(True)
                except Unavailable:
                    stored.append(False)
                with psycopg.connect(two.market, autocommit=True) as connection:
                    connection.execute("UPDATE usage_elsewhere SET server = NULL")
        return stored

    assert asyncio.run(send()) == [True, False]


# --- whatever goes wrong there, nothing here waits or ends ------------------------------------


def test_a_server_that_writes_nothing_stops_its_lanes_and_the_trees_of_others_go_on(
    two: Two,
) -> None:
    here, there = in_lanes(False), in_lanes(True)
    put(two.address, [here.items(2), there.items(2)])
    lane_store._IDLE.forget(two.other)
    execute(two.server, sql.SQL("ALTER DATABASE lanes SET default_transaction_read_only = on"))
    with two.connect() as connection:
        assert trees.follow_all(connection) == 2
        assert trees.stopped_lanes(connection) == tuple(UPPER)
    execute(two.server, sql.SQL("ALTER DATABASE lanes RESET default_transaction_read_only"))
    lane_store._IDLE.forget(two.other)
    with two.connect() as connection:
        assert trees.follow_all(connection) == 2
        assert trees.stopped_lanes(connection) == ()


@pytest.mark.parametrize("state", ["53100", "25006", "57014"])
def test_a_server_with_a_full_disk_or_that_only_reads_makes_its_own_reports_wait(
    two: Two, state: str
) -> None:
    """The process stays ready, and the reports of other lanes are taken."""
    with psycopg.connect(two.other, autocommit=True) as there:
        there.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{state}'; END $$".encode()
        )
        for table in ("usage_event", "tree_tile"):
            there.execute(
                f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH STATEMENT"
                " EXECUTE FUNCTION refuse()".encode()
            )
    here, node = in_lanes(False), in_lanes(True)
    told = put(two.address, [here.items(1), node.items(1)])
    assert (told[0] is None, told[1] is None) == (False, True)
    assert not full_disk.DISK.is_full(None)
    assert not full_disk.FullDisk().notice(_stopped_by(psycopg.errors.DiskFull()))
    assert full_disk.FullDisk().notice(psycopg.errors.DiskFull())


def _stopped_by(cause: Exception) -> LanesStopped:
    stopped = LanesStopped([40], cause)
    stopped.__cause__ = cause
    return stopped


def test_a_look_locks_nothing_here_while_it_waits_for_the_other_server(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    follow = trees.follow

    def waited(conn: psycopg.Connection[object], leaves_max: int = 1) -> int:
        if conn.info.dbname == "lanes":
            with psycopg.connect(two.market, autocommit=True) as beside:
                beside.execute("SELECT FROM usage_elsewhere FOR UPDATE NOWAIT")
                beside.execute("SELECT FROM tree_head FOR UPDATE NOWAIT")
            asked.append(conn)
        return follow(conn, leaves_max)

    put(two.address, [in_lanes(True).items(2)])
    monkeypatch.setattr(trees, "follow", waited)
    with two.connect() as connection:
        trees.follow_all(connection)
        assert trees.stopped_lanes(connection) == ()
    assert asked


def test_a_server_that_says_nothing_is_given_up_in_time_and_not_asked_for_each_lane(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_store, "AWAY_SECONDS", 60.0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        nowhere = f"postgresql://postgres@127.0.0.1:{silent.getsockname()[1]}/lanes"
        address = lane_store.carried(HERE.moved(UPPER, nowhere), two.market)
        began = time.monotonic()
        with psycopg.connect(address, autocommit=True) as connection:
            for _ in range(5):
                trees.see_elsewhere(connection)
                with pytest.raises(LanesStopped):
                    NodeReader(connection).head(40)
                with pytest.raises(LanesStopped):
                    usage_reads.report_at(connection, 40, 1)
        assert time.monotonic() - began < 2 * lane_store.CONNECT_SECONDS_MAX + 2


def test_a_lane_that_is_stopped_is_not_asked_for(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    with two.connect() as connection:
        connection.execute("UPDATE usage_elsewhere SET is_stopped = true")
        monkeypatch.setattr(lane_store, "on", lambda *_: pytest.fail("asked"))
        with pytest.raises(LanesStopped):
            NodeReader(connection).head(40)
        assert NodeReader(connection).head(0) == 0


def test_an_answer_that_does_not_come_stops_the_lanes_that_were_asked_for(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_store, "ANSWER_MILLISECONDS_MAX", 100)
    lane_store.reached.cache_clear()
    slow = "SELECT pg_sleep(20) FROM unnest(%s::int2[], %s::int8[], %s::int8[])"
    monkeypatch.setattr(usage_reads, "_BETWEEN", slow)
    with two.connect() as connection, pytest.raises(LanesStopped, match="statement timeout"):
        usage_reads.reports_between(connection, [(40, 0, 1)])
    lane_store.reached.cache_clear()


def test_connections_to_other_servers_are_given_up_as_those_to_the_market(two: Two) -> None:
    told = psycopg.conninfo.conninfo_to_dict(lane_store.reached(two.other))
    assert told["keepalives_idle"]
    assert told["tcp_user_timeout"]
    assert int(str(told["connect_timeout"])) == lane_store.CONNECT_SECONDS_MAX
    assert "statement_timeout" in str(told["options"])


def test_a_commit_that_no_standby_of_the_other_server_has_is_not_seen(two: Two) -> None:
    node = in_lanes(True)
    put(two.address, [node.items(2)])
    execute(two.server, sql.SQL("ALTER SYSTEM SET synchronous_standby_names = 'gone'"))
    execute(two.server, sql.SQL("SELECT pg_reload_conf()"))
    lane_store._IDLE.forget(two.other)
    before, lane_store.ANSWER_MILLISECONDS_MAX = lane_store.ANSWER_MILLISECONDS_MAX, 500
    lane_store.reached.cache_clear()
    try:
        with two.connect() as connection:
            trees.follow_all(connection)
            assert trees.stopped_lanes(connection) == tuple(UPPER)
            assert dict(seen(connection))[node.lane] == 0
    finally:
        lane_store.ANSWER_MILLISECONDS_MAX = before
        lane_store.reached.cache_clear()
        execute(two.server, sql.SQL("ALTER SYSTEM RESET synchronous_standby_names"))
        execute(two.server, sql.SQL("SELECT pg_reload_conf()"))
        lane_store._IDLE.forget(two.other)
    with two.connect() as connection:
        trees.follow_all(connection)
        assert dict(seen(connection))[node.lane] == 2


# --- processes that were told another map -----------------------------------------------------


def test_a_process_with_the_old_map_stops_no_lane_of_one_with_the_new_map(two: Two) -> None:
    node = in_lanes(False)
    put(two.address, [node.items(2)])
    two.move([node.lane])
    with two.connect() as old, two.connect([node.lane]) as new:
        trees.follow_all(new)
        assert trees.see_elsewhere(old).unseen == (node.lane,)
        assert trees.stopped_lanes(new) == ()
        assert NodeReader(new).head(node.lane) == 2
        with pytest.raises(LanesStopped):
            NodeReader(old).head(node.lane)
        assert usage_reads.last_numbers(old, [node.id]) == {}
        with pytest.raises(LanesMisplaced, match="move-lanes"):
            lane_store.require_placed(old)
        lane_store.require_placed(new)
        assert put(two.address, [node.items(1)]) == [None]


def test_the_second_map_of_one_server_shows_no_lane_that_another_holds(
    two: Two, postgres: Databases
) -> None:
    """The map changed in one of two processes, as a lane went from the second server to a third."""
    node = in_lanes(True)
    put(two.address, [node.items(2)])
    third = postgres.create_database("lanes_of_the_third")
    lane_move.move(two.market, two.other, third, [node.lane])
    later = lane_store.carried(HERE.moved(UPPER, two.other).moved([node.lane], third), two.market)
    third_item = node.items(1)
    assert put(two.address, [third_item]) == [None]
    assert put(later, [third_item]) != [None]
    with two.connect() as old, psycopg.connect(later, autocommit=True) as new:
        trees.follow_all(new)
        trees.follow_all(old)
        assert trees.stopped_lanes(new) == ()
        assert dict(seen(old))[node.lane] == 3
        with pytest.raises(LanesStopped):
            usage.reports_of_node(old, node.id, 0)
        assert len(usage.reports_of_node(new, node.id, 0)) == 3
    lane_store._IDLE.forget(third)
    postgres.drop_database("lanes_of_the_third")
