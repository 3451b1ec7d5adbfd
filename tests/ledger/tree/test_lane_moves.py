"""A lane moves without a report lost, however it is used meanwhile, whenever the move ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from ledger.log import lane_store, usage
from ledger.log.lane_logs import LaneLogs
from ledger.log.lane_map import MARKET
from ledger.log.usage import Item, Receipt, Status
from ledger.tree import cut, lane_move, trees
from ledger.tree.lane_move import MoveRefused
from tests.conftest import Databases, fresh
from tests.ledger.tree.two_servers import NOW_US, UPPER, Two, in_lanes, nodes, put
from tests.scenes.usage_reports import Node

FORGET_SECONDS = lane_move.FORGET_SECONDS


def append(address: str, items: list[Item]) -> list[Receipt]:
    """As a process that lies beside."""
    with psycopg.connect(address, autocommit=True) as connection:
        usage.prepare(connection)
        return usage.append(connection, items, NOW_US)


def reports_at(address: str, node: Node) -> int:
    """So many of the node's reports lie there, and the lane hashes to its head."""
    with psycopg.connect(address, autocommit=True) as connection:
        heads = {head.lane: head for head in usage.lane_heads(connection)}
        usage.verify_lane(connection, heads[node.lane])
        return len(usage.reports_of_node(connection, node.id, 0))


# --- as it should go -------------------------------------------------------------------------


def test_a_lane_moves_with_its_reports_and_comes_back_and_all_trees_go_on(two: Two) -> None:
    node, other = in_lanes(False), in_lanes(True)
    put(two.address, [node.items(300), other.items(2)])  # more than a tile
    with two.connect() as connection:
        trees.follow_all(connection)
        before = cut.pin(connection).lanes_root
    (moved,) = two.move([node.lane])
    assert (moved.reports, moved.lane) == (300, node.lane)
    later = node.items(2)
    assert put(two.address, [later]) == [None], "a process that has not heard of the move"
    with two.connect([node.lane]) as connection:
        lane_store.require_placed(connection)
        trees.follow_all(connection)
        assert cut.pin(connection).lanes_root == before
        assert put(two.told([node.lane]), [later]) != [None]
        trees.follow_all(connection)
        pinned = cut.pin(connection)
        assert pinned.lanes[node.lane].size == 302

    (back,) = two.move_back([node.lane])
    assert (back.reports, back.root) == (302, pinned.lanes[node.lane].root)
    with two.connect() as connection:
        lane_store.require_placed(connection)
        trees.follow_all(connection)
        assert cut.pin(connection) == pinned
        assert put(two.address, [node.items(1), other.items(1)]).count(None) == 0
        assert trees.follow_all(connection) == 2, "the trees of all logs go on"
        after = cut.pin(connection).lanes
        assert (after[node.lane].size, after[other.lane].size) == (303, 3)
        assert trees.tree(connection, node.lane).root() == after[node.lane].root
    assert reports_at(two.market, node) == 303
    assert two.move([node.lane])[0].reports == 303, "and again, over what lies there"


def test_a_lane_that_takes_reports_all_the_time_moves_with_each_that_was_acknowledged(
    two: Two,
) -> None:
    node = in_lanes(False)
    stop, stored = threading.Event(), [0]

    def send() -> None:
        while not stop.is_set():
            try:
                append(two.market, node.items(1))
            except psycopg.errors.RaiseException:
                return  # it was taken out
            stored[0] += 1

    sending = threading.Thread(target=send)
    sending.start()
    try:
        two.move([node.lane])
    finally:
        stop.set()
        sending.join()
    assert reports_at(two.other, node) == stored[0] > 0


def test_a_report_between_the_copies_of_two_tables_is_in_both_or_in_none(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = in_lanes(False)
    put(two.address, [node.items(2)])
    copy = psycopg.Cursor.copy

    def after_another(self: Any, *told: Any, **more: Any) -> Any:
        here = self.connection.info
        if here.dbname != "lanes" and _has_head(two.market, node.lane):
            append(two.market, node.items(1))
        return copy(self, *told, **more)

    monkeypatch.setattr(psycopg.Cursor, "copy", after_another)
    two.move([node.lane])
    monkeypatch.undo()
    assert reports_at(two.other, node) == 4
    assert two.move_back([node.lane])[0].reports == 4


def _has_head(address: str, lane: int) -> bool:
    with psycopg.connect(address, autocommit=True) as connection:
        return lane in [head.lane for head in usage.lane_heads(connection)]


# --- ended at each step ----------------------------------------------------------------------

STEPS = (
    "_copy",
    "_take_out_unnamed",
    "_take_out",
    "_require_same",
    "_arrive",
    "_name",
    "_finished",
)
OTHERS = pytest.mark.slow("::test_a_move_that_was_killed_loses_nothing_whatever_is_done_then")
KILLED_AT = [
    pytest.param(step, marks=() if step in ("_take_out", "_name") else OTHERS) for step in STEPS
]


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", KILLED_AT)
@pytest.mark.parametrize("goes_on", [True, False], ids=["goes on", "is given up"])
def test_a_move_that_was_killed_loses_nothing_whatever_is_done_then(
    two: Two, monkeypatch: pytest.MonkeyPatch, step: str, is_after: bool, goes_on: bool
) -> None:
    node = in_lanes(False)
    put(two.address, [node.items(3)])
    with monkeypatch.context() as broken:
        broken.setattr(lane_move, step, _killed(getattr(lane_move, step), is_after))
        with pytest.raises(KeyboardInterrupt):
            two.move([node.lane])
    item = node.items(1)
    stored = [one for one in (two.address, two.told([node.lane])) if put(one, [item]) != [None]]
    assert len(stored) <= 1, "a lane lies nowhere twice"
    with two.connect() as connection:
        trees.follow_all(connection)  # of a lane that waits, nothing stops the others
        cut.pin(connection)
    named = _holder(two, node.lane)
    if goes_on:
        two.move([node.lane])
    elif named is None:
        lane_move.give_up(two.market, MARKET, [node.lane])
    else:
        with pytest.raises(MoveRefused, match=f"lanes {node.lane} do not lie where"):
            lane_move.give_up(two.market, MARKET, [node.lane])
    is_there = goes_on or named is not None
    address = two.told([node.lane]) if is_there else two.address
    told = put(address, [item])[0]
    assert told is not None
    assert (told[0].status, told[0].position) == (Status(bool(stored)), 4)
    assert reports_at(two.other if is_there else two.market, node) == 4
    with psycopg.connect(address, autocommit=True) as connection:
        lane_store.require_placed(connection)
        trees.follow_all(connection)
        assert cut.pin(connection).lanes[node.lane].size == 4
    if not is_there:  # the head that was left there is no second one
        two.move([node.lane])
        assert reports_at(two.other, node) == 4


def _killed(step: Callable[..., Any], is_after: bool) -> Callable[..., Any]:
    def ends(*told: Any) -> Any:
        if is_after:
            step(*told)
        raise KeyboardInterrupt

    return ends


def _holder(two: Two, lane: int) -> Any:
    with psycopg.connect(two.market, autocommit=True) as connection:
        row = connection.execute(
            "SELECT server FROM usage_elsewhere WHERE lane = %s", (lane,)
        ).fetchone()
    return None if row is None else row[0]


@pytest.mark.parametrize("step", ["_take_out", "_require_same", "_come_back"])
def test_a_move_back_that_was_killed_goes_on(
    two: Two, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    node = in_lanes(True)
    put(two.address, [node.items(3)])
    for is_after in (False, True):
        with monkeypatch.context() as broken:
            broken.setattr(lane_move, step, _killed(getattr(lane_move, step), is_after))
            with pytest.raises(KeyboardInterrupt):
                two.move_back([node.lane])
    with two.connect() as connection:
        trees.follow_all(connection)
        cut.pin(connection)
    assert two.move_back([node.lane])[0].reports == 3
    with two.connect() as connection:
        trees.follow_all(connection)
        assert cut.pin(connection).lanes[node.lane].size == 3
    append(two.market, node.items(1))
    assert reports_at(two.market, node) == 4


def test_a_process_that_knows_a_lane_from_before_stores_nothing_in_a_move_that_is_given_up(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asked while the server held the lane, which has left and was on its way back."""
    node = in_lanes(True)
    monkeypatch.setattr(lane_move, "FORGET_SECONDS", FORGET_SECONDS)

    async def send() -> list[Receipt] | None:
        async with LaneLogs(two.address, now_us=lambda: NOW_US) as log:
            await log.append(node.items(2))
            (there,) = log._elsewhere.values()

            def pass_by(seconds: float) -> None:
                there._asked -= seconds

            monkeypatch.setattr("ledger.tree.lane_move.time.sleep", pass_by)
            await asyncio.to_thread(two.move_back, [node.lane])
            monkeypatch.setattr(lane_move, "_name", _killed(lane_move._name, is_after=False))
            with pytest.raises(KeyboardInterrupt):
                await asyncio.to_thread(two.move, [node.lane])
            try:
                return await log.append(node.items(1))
            except usage.Unavailable:
                return None

    stored = asyncio.run(send())
    lane_move.give_up(two.market, MARKET, [node.lane])
    assert reports_at(two.market, node) == 2
    assert stored is None, "a report that was acknowledged is not where the lane goes on"


def test_a_move_ends_although_the_logs_grow_all_the_time(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, other, steps = in_lanes(False), in_lanes(True), 0
    beside = next(x for x in nodes(100) if x.lane not in UPPER and x.lane != node.lane)
    follow = trees.follow

    def grows(connection: Any, *told: Any) -> int:
        nonlocal steps
        steps += 1
        assert steps < 50, "it follows for ever"
        append(two.market, beside.items(1))
        append(two.other, other.items(1))
        return follow(connection, *told)

    monkeypatch.setattr(trees, "follow", grows)
    assert two.move([node.lane])
    with two.connect([node.lane]) as connection:
        assert trees.see_elsewhere(connection).unseen == ()


def test_a_move_to_a_third_place_waits_for_the_one_that_was_ended_or_for_its_end(
    two: Two, monkeypatch: pytest.MonkeyPatch, postgres: Databases
) -> None:
    node = in_lanes(False)
    put(two.address, [node.items(2)])
    with monkeypatch.context() as broken:
        broken.setattr(lane_move, "_require_same", _killed(lane_move._require_same, False))
        with pytest.raises(KeyboardInterrupt):
            two.move([node.lane])
    third = postgres.create_database("lanes_third")
    with pytest.raises(MoveRefused, match="finish that move first, or give it up"):
        lane_move.move(two.market, MARKET, third, [node.lane])
    assert lane_move.give_up(two.market, MARKET, [node.lane]) == [node.lane]
    assert lane_move.move(two.market, MARKET, third, [node.lane])[0].reports == 2
    with pytest.raises(MoveRefused, match="does not lie where TALLYSTICK_USAGE_LANES says"):
        two.move([node.lane])
    lane_store._IDLE.forget(third)
    postgres.drop_database("lanes_third")


def test_a_pin_during_a_move_covers_what_was_accrued_before_it(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = in_lanes(False)
    put(two.address, [node.items(3)])
    with monkeypatch.context() as broken:
        broken.setattr(lane_move, "_require_same", _killed(lane_move._require_same, False))
        broken.setattr(trees, "follow", lambda *_: 0)  # the last reports came after it
        with pytest.raises(KeyboardInterrupt):
            two.move([node.lane])
    with two.connect() as connection:
        assert cut.pin(connection).lanes[node.lane].size == 3


# --- what is refused -------------------------------------------------------------------------


def test_a_copy_that_differs_is_refused_and_the_lane_goes_on_where_it_was(two: Two) -> None:
    node, other = in_lanes(False), Node("another")
    put(two.address, [node.items(2)])
    with psycopg.connect(two.other, autocommit=True) as there:
        there.execute(
            "INSERT INTO usage_event VALUES (%s, 1, %s, 1, 'x', '', '', '', 0, 0)",
            (node.lane, other.id),
        )
    with pytest.raises(MoveRefused, match="what was copied differs"):
        two.move([node.lane])
    assert put(two.address, [node.items(1)]) != [None]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE usage_node SET last_node_seq = 1", "the last report of node_"),
        ("UPDATE usage_event SET recorded_us = recorded_us + 1", "a time of receipt"),
        ("DELETE FROM usage_key WHERE node_seq = 2", "the list of reports by node differs"),
    ],
)
def test_what_no_hash_covers_is_compared_as_well(
    two: Two, monkeypatch: pytest.MonkeyPatch, change: str, says: str
) -> None:
    node = in_lanes(False)
    put(two.address, [node.items(2)])
    same = lane_move._require_same

    def changed(way: Any, *told: Any) -> Any:
        with way.there.transaction():
            for table in ("usage_key", "usage_event"):
                way.there.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER".encode())
            way.there.execute(change.encode())
        return same(way, *told)

    monkeypatch.setattr(lane_move, "_require_same", changed)
    with pytest.raises(MoveRefused, match=says):
        two.move([node.lane])
    assert put(two.address, [node.items(1)]) != [None]


@pytest.mark.parametrize("more", ["", "&application_name=another", "&options=-cgeqo%3Doff"])
def test_the_same_database_under_another_name_is_no_new_place_and_is_left_as_it_was(
    two: Two, more: str
) -> None:
    with pytest.raises(MoveRefused, match="lead to the same database"):
        lane_move.move(two.market, MARKET, two.market + more, [0])
    with two.connect() as connection:
        lane_store.require_market(connection)
        assert len(usage.lane_heads(connection)) == 32


def test_a_database_that_holds_something_is_not_made_a_server_of_lanes(
    two: Two, postgres: Databases, template: str, empty_database: str
) -> None:
    with fresh(postgres, template) as another:
        append(another, in_lanes(True).items(1))
        with pytest.raises(MoveRefused, match="not empty"):
            lane_move.move(two.market, MARKET, another, [0])
        assert len(_heads(another)) == 64
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE of_somebody (x int)")
    with pytest.raises(MoveRefused, match="not empty"):
        lane_move.move(two.market, MARKET, empty_database, [0])
    with psycopg.connect(empty_database, autocommit=True) as connection:
        made = connection.execute("SELECT to_regclass('public.migration')").fetchone()
        assert made == (None,), "nothing was made there"


def test_a_database_that_was_being_made_when_the_command_ended_is_made_in_the_end(
    two: Two, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(lane_move, "_NONE_HERE", "SELECT pg_terminate_backend(pg_backend_pid())")
        with pytest.raises(psycopg.Error):
            lane_move.move(two.market, MARKET, empty_database, [0])
    (moved,) = lane_move.move(two.market, MARKET, empty_database, [0])
    assert moved.reports == 0
    assert [head.lane for head in _heads(empty_database)] == [0]
    lane_store._IDLE.forget(empty_database)


def _heads(address: str) -> list[usage.LaneHead]:
    with psycopg.connect(address, autocommit=True) as connection:
        return usage.lane_heads(connection)


def test_two_moves_do_not_run_at_once(two: Two) -> None:
    with lane_move._connections(two.market, MARKET), pytest.raises(MoveRefused, match="under way"):
        two.move([0])


def test_a_server_that_was_lost_is_not_made_anew_by_a_move_from_it(
    two: Two, empty_database: str
) -> None:
    with pytest.raises(MoveRefused, match="was not made a server of lanes"):
        lane_move.move(two.market, empty_database, MARKET, [40])
    with psycopg.connect(empty_database) as connection:
        made = connection.execute("SELECT to_regclass('public.migration')").fetchone()
        assert made == (None,), "nothing was made there"


# --- after a restore -------------------------------------------------------------------------


def test_a_market_that_was_restored_to_before_a_move_finds_the_lane_where_it_went(
    two: Two, postgres: Databases
) -> None:
    node = in_lanes(False)
    put(two.address, [node.items(2)])
    name = two.market.split("/")[-1].split("?")[0]
    earlier = postgres.create_database("market_earlier", template=name)
    two.move([node.lane])
    put(two.told([node.lane]), [node.items(3)])
    restored = Two(earlier, two.other, two.server)
    assert put(restored.told([node.lane]), [node.items(1)]) == [None], "not named there"
    (moved,) = restored.move([node.lane])
    assert moved.reports == 5
    assert reports_at(two.other, node) == 5
    with restored.connect([node.lane]) as connection:
        trees.follow_all(connection)
        assert cut.pin(connection).lanes[node.lane].size == 5
    postgres.drop_database("market_earlier")


def test_a_server_that_was_restored_to_before_a_lane_left_takes_nothing_of_it(two: Two) -> None:
    node = in_lanes(True)
    put(two.address, [node.items(2)])
    two.keep("earlier")
    two.move_back([node.lane])
    two.restore("earlier")
    assert node.lane in [head.lane for head in _heads(two.other)]
    assert put(two.address, [node.items(1)]) == [None], "a process with the old map"
    (moved,) = two.move([node.lane])
    assert moved.reports == 2


def test_of_two_servers_that_hold_the_same_lane_the_one_that_the_market_names_takes_reports(
    two: Two, postgres: Databases
) -> None:
    """The second was restored to before the lane went to a third: nothing that was seen is lost."""
    node = in_lanes(True)
    put(two.address, [node.items(2)])
    two.keep("earlier")
    third = postgres.create_database("lanes_named")
    lane_move.move(two.market, two.other, third, [node.lane])
    two.restore("earlier")
    item = node.items(1)
    assert put(two.address, [item]) == [None], "a process with the old map"
    lanes = lane_store.of_address(two.address).moved([node.lane], third)
    told = put(lane_store.carried(lanes, two.market), [item])[0]
    assert told is not None
    assert told[0].position == 3
    lane_store._IDLE.forget(third)
    postgres.drop_database("lanes_named")


def test_a_lane_of_many_batches_is_proved_as_it_grows(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "LEAVES_MAX", 100)
    node = in_lanes(False)
    put(two.address, [node.items(500)])
    put(two.address, [node.items(123)])
    (moved,) = two.move([node.lane])
    with two.connect([node.lane]) as connection:
        assert trees.tree(connection, node.lane).root() == moved.root
        put(two.told([node.lane]), [node.items(7)])
        trees.follow_all(connection)
        assert trees.tree(connection, node.lane).root() == cut.pin(connection).lanes[node.lane].root
