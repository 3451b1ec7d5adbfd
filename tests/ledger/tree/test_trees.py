"""The tree followers on PostgreSQL: the roots of the RFC, exactly once, whatever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from domain.metering.report import LANES, lane_of
from ledger.log.chain import genesis_usage
from ledger.tree import cut, merkle, trees
from ledger.tree.checkpoint import Checkpoint, Signer, SigningRefused, open_checkpoint
from tests.scenes.audit import LOG_SEED, ORIGIN, Scene, open_scene


@pytest.fixture
def scene(database: str) -> Generator[Scene, None, None]:
    made = open_scene(database)
    with closing(made.conn):
        yield made


def market_leaves(conn: psycopg.Connection[Any]) -> list[bytes]:
    rows = conn.execute("SELECT leaf FROM market_events ORDER BY notification_id")
    return [bytes(leaf) for (leaf,) in rows]


def test_the_trees_of_empty_logs_are_empty(scene: Scene) -> None:
    assert trees.follow(scene.conn) == 0
    assert trees.head(scene.conn) == trees.TreeHead(trees.MARKET, 0, merkle.EMPTY_ROOT)
    made = cut.pin(scene.conn)
    assert [lane.head for lane in made.lanes] == [genesis_usage(lane) for lane in range(LANES)]
    assert made.lanes == tuple(
        cut.LaneRecord(lane, 0, genesis_usage(lane), merkle.EMPTY_ROOT) for lane in range(LANES)
    )


def test_the_market_tree_has_the_root_of_the_rfc_at_every_batch_size(scene: Scene) -> None:
    scene.anything(600)
    while trees.follow(scene.conn, leaves_max=83):
        size = trees.head(scene.conn).size
        expected = merkle.root_of(market_leaves(scene.conn)[:size])
        assert trees.head(scene.conn).root == expected
    assert trees.head(scene.conn).size == 600
    assert trees.tree(scene.conn).root() == trees.head(scene.conn).root


def test_past_sizes_are_proved_from_the_stored_tiles(scene: Scene) -> None:
    scene.anything(600)
    trees.follow_all(scene.conn)
    tree, leaves = trees.tree(scene.conn), market_leaves(scene.conn)
    for size in (1, 2, 255, 256, 257, 512, 600):
        path = merkle.inclusion(size - 1, size, tree.hash_at)
        root = merkle.root_of(leaves[:size])
        assert merkle.verify_inclusion(size - 1, size, leaves[size - 1], path, root)
        proof = merkle.consistency(size, 600, tree.hash_at)
        assert merkle.verify_consistency(size, 600, root, tree.root(), proof)


def test_every_lane_has_its_own_tree_and_the_pin_holds_all_of_them(scene: Scene) -> None:
    nodes = [scene.join(number) for number in range(12)]
    for _ in range(5):
        scene.send(*(node.report() for node in nodes))
    trees.follow_all(scene.conn)
    made = cut.pin(scene.conn)
    for lane in made.lanes:
        rows = scene.conn.execute(
            "SELECT leaf, chain FROM usage_event WHERE lane = %s ORDER BY position", (lane.lane,)
        ).fetchall()
        assert lane.size == len(rows)
        assert lane.root == merkle.root_of([row[0] for row in rows])
        assert lane.head == (rows[-1][1] if rows else genesis_usage(lane.lane))
    assert sum(lane.size for lane in made.lanes) == 60
    records = [merkle.leaf(lane.bytes) for lane in made.lanes]
    assert {len(lane.bytes) for lane in made.lanes} == {73}
    assert made.lanes_root == merkle.root_of(records)
    fact = made.fact(7)
    assert fact.lanes_root == made.lanes_root.hex()
    number = lane_of(nodes[0].id)
    assert made.covers(number, 5)
    assert not made.covers(number, made.lanes[number].size + 1)


def test_a_pin_is_taken_where_the_trees_are_not_where_the_log_is(scene: Scene) -> None:
    node = scene.join(1)
    scene.send(node.report())
    trees.follow_all(scene.conn)
    scene.send(node.report())
    assert cut.pin(scene.conn).lanes[lane_of(node.id)].size == 1


def test_following_again_changes_nothing(scene: Scene) -> None:
    scene.anything(300)
    trees.follow_all(scene.conn)
    before = scene.conn.execute("SELECT * FROM tree_tile ORDER BY 1, 2, 3").fetchall()
    assert trees.follow_all(scene.conn) == 0
    assert scene.conn.execute("SELECT * FROM tree_tile ORDER BY 1, 2, 3").fetchall() == before


def test_dropped_trees_are_rebuilt_equal(scene: Scene) -> None:
    node = scene.join(1)
    scene.anything(300)
    for _ in range(10):
        scene.send(node.report())
        trees.follow(scene.conn)
    queries = ("SELECT * FROM tree_tile ORDER BY 1, 2, 3", "SELECT * FROM tree_head ORDER BY 1")
    before = [scene.conn.execute(query.encode()).fetchall() for query in queries]
    scene.conn.execute("DELETE FROM tree_tile")
    scene.conn.execute("UPDATE tree_head SET size = 0, root = sha256('')")
    trees.follow_all(scene.conn)
    assert [scene.conn.execute(query.encode()).fetchall() for query in queries] == before


def test_two_followers_take_turns(scene: Scene, database: str) -> None:
    scene.anything(3_000)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with psycopg.connect(database, autocommit=True) as conn:
                while trees.head(conn).size < 3_000:
                    trees.follow(conn, leaves_max=37)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert trees.head(scene.conn).root == merkle.root_of(market_leaves(scene.conn))


FOLLOWER = """
import sys, psycopg
from ledger.tree import trees
with psycopg.connect(sys.argv[1], autocommit=True) as conn:
    print("ready", flush=True)
    while True:
        trees.follow(conn, leaves_max=11)
        print("step", flush=True)
"""


def test_killed_followers_leave_the_last_committed_tree(scene: Scene, database: str) -> None:
    scene.anything(4_000)
    for steps in (1, 2, 4):
        with subprocess.Popen(
            [sys.executable, "-c", FOLLOWER, database],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        ) as follower:
            assert follower.stdout is not None
            for _ in range(steps):
                follower.stdout.readline()
            os.kill(follower.pid, signal.SIGKILL)
        reached = trees.head(scene.conn)
        assert reached.root == merkle.root_of(market_leaves(scene.conn)[: reached.size])
    trees.follow_all(scene.conn)
    assert trees.head(scene.conn).root == merkle.root_of(market_leaves(scene.conn))
    assert trees.tree(scene.conn).root() == trees.head(scene.conn).root


def test_a_follower_holds_no_lock_of_the_log(scene: Scene, database: str) -> None:
    scene.anything(10)
    with psycopg.connect(database) as other:
        other.execute("SELECT * FROM market_events_head FOR UPDATE")
        assert other.info.transaction_status is TransactionStatus.INTRANS
        assert trees.follow(scene.conn) == 10


def test_followers_need_no_more_than_the_role_of_projections(scene: Scene) -> None:
    node = scene.join(1)
    scene.send(node.report())
    scene.conn.execute("SET ROLE tallystick_projections")
    assert trees.follow_all(scene.conn) == 2
    assert cut.pin(scene.conn).lanes[lane_of(node.id)].size == 1


def test_checkpoints_are_signed_kept_and_never_of_two_histories(
    scene: Scene, tmp_path: Path
) -> None:
    heads = tmp_path / "signed"
    heads.touch()
    with Signer(heads, ORIGIN, LOG_SEED) as signer:
        for count in (3, 300):
            scene.anything(count)
            trees.follow_all(scene.conn)
            note = trees.publish_checkpoint(scene.conn, signer, scene.now_us)
            assert trees.publish_checkpoint(scene.conn, signer, scene.now_us) == note
        reached = trees.head(scene.conn)
        opened = open_checkpoint(note, signer.verifier_key)
        assert opened == Checkpoint(ORIGIN, reached.size, reached.root)
        assert trees.latest_checkpoint(scene.conn) == (303, note)
        earlier = trees.latest_checkpoint(scene.conn, 302)
        assert earlier is not None
        assert earlier[0] == 3
        scene.conn.execute("DELETE FROM tree_tile")
        scene.conn.execute("UPDATE tree_head SET size = 0, root = sha256('')")
        with pytest.raises(SigningRefused):
            trees.publish_checkpoint(scene.conn, signer, scene.now_us)
