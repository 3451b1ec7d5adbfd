"""The usage log on a real PostgreSQL: every case of an append, group commit, triggers and roles."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from domain.metering.report import report_hash
from ledger.log import report_form, usage
from ledger.log.chain import chain, genesis_usage, split_body
from ledger.log.usage import Item, Receipt, Status, UsageLog
from ledger.log.usage_reads import NodeReader
from tests.conftest import Databases, fresh
from tests.scenes.usage_reports import Node

NOW_US = 1_795_161_720_000_000


@pytest.fixture(scope="module")
def of_all(postgres: Databases, template: str) -> Generator[str, None, None]:
    """A log that is empty again after each test."""
    with fresh(postgres, template) as database:
        yield database


@pytest.fixture
def connection(of_all: str) -> Generator[psycopg.Connection[Any], None, None]:
    """An empty log; what the test does there is taken back at its end."""
    with psycopg.connect(of_all, autocommit=True) as opened:
        usage.prepare(opened)
        with opened.transaction(force_rollback=True):
            yield opened


def statuses(receipts: list[Receipt]) -> list[Status]:
    return [receipt.status for receipt in receipts]


def put(connection: psycopg.Connection[Any], *items: Item, now_us: int = NOW_US) -> list[Receipt]:
    return usage.append(connection, items, now_us)


def count(connection: psycopg.Connection[Any], table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    assert row is not None
    return int(row[0])


# --- what becomes of a report ----------------------------------------------------------------


def test_a_first_report_is_stored_with_its_place_in_the_lane(
    connection: psycopg.Connection[Any],
) -> None:
    node = Node()
    first = node.items(1)[0]
    (receipt,) = put(connection, first)
    assert receipt == Receipt(
        Status.STORED, 1, chain(genesis_usage(node.lane), first.leaf), NOW_US, 0, 1, node.head
    )
    (stored,) = usage.reports_of_node(connection, node.id, 0)
    assert stored.body == first.body
    assert report_hash(stored.signed) == node.head
    assert usage.verify(connection, range(64)) == 1


def test_a_report_sent_twice_counts_once_and_gets_its_first_receipt_again(
    connection: psycopg.Connection[Any],
) -> None:
    first, second = Node().items(2)
    (before,) = put(connection, first)
    put(connection, second)
    (again,) = put(connection, first, now_us=NOW_US + 5_000_000)
    assert again.status is Status.DUPLICATE
    assert again[1:5] == before[1:5]
    assert again.acked_seq == 2
    assert count(connection, "usage_event") == 2
    assert count(connection, "usage_evidence") == 0


def test_the_same_bytes_under_another_signature_are_the_same_report(
    connection: psycopg.Connection[Any],
) -> None:
    node = Node()
    body, signature = node.next()
    one = usage.item(node.id, 1, node.genesis, body, node.key_id, signature, node.genesis)
    other = usage.item(node.id, 1, node.genesis, body, "another key", b"s" * 64, node.genesis)
    assert one.leaf != other.leaf
    assert statuses(put(connection, one)) == [Status.STORED]
    assert statuses(put(connection, other)) == [Status.DUPLICATE]
    assert count(connection, "usage_evidence") == 0


def test_a_second_signed_body_under_a_stored_number_is_kept_as_evidence_and_stores_nothing(
    connection: psycopg.Connection[Any],
) -> None:
    node = Node()
    other = node.item(node.body(agent="another"))
    first = node.items(1)[0]
    put(connection, first)
    (receipt,) = put(connection, other)
    assert receipt == Receipt(Status.EQUIVOCATION, None, None, None, None, 1, node.head)
    row = connection.execute("SELECT node_id, node_seq, body FROM usage_evidence").fetchone()
    assert row == (node.id, 1, other.body)
    assert count(connection, "usage_event") == 1
    put(connection, other)
    assert count(connection, "usage_evidence") == 1


def test_evidence_against_one_node_is_bounded(connection: psycopg.Connection[Any]) -> None:
    node = Node()
    others = [node.item(node.body(agent=f"other {index}")) for index in range(8)]
    put(connection, node.items(1)[0])
    for other in others:
        assert statuses(put(connection, other)) == [Status.EQUIVOCATION]
    assert count(connection, "usage_evidence") == 4


def test_a_number_too_far_ahead_is_a_gap_and_says_where_to_go_on(
    connection: psycopg.Connection[Any],
) -> None:
    node = Node()
    first, _, third = node.items(3)
    put(connection, first)
    (receipt,) = put(connection, third)
    assert receipt == Receipt(Status.GAP, None, None, None, None, 1, first.hash)


def test_a_gap_of_a_new_node_answers_with_its_genesis(connection: psycopg.Connection[Any]) -> None:
    node = Node()
    _, second = node.items(2)
    (receipt,) = put(connection, second)
    assert (receipt.status, receipt.acked_seq, receipt.head) == (Status.GAP, 0, node.genesis)
    assert count(connection, "usage_node") == 0


def test_a_right_number_on_another_history_is_a_fork(connection: psycopg.Connection[Any]) -> None:
    first, second = Node().items(2)
    put(connection, first)
    (receipt,) = put(connection, replace(second, prev=bytes(32)))
    assert receipt == Receipt(Status.FORK, None, None, None, None, 1, first.hash)
    (from_nowhere,) = put(connection, replace(Node("two").items(1)[0], prev=bytes(32)))
    assert from_nowhere.status is Status.FORK


def test_a_flagged_report_is_stored_and_its_receipt_shows_the_flags(
    connection: psycopg.Connection[Any],
) -> None:
    node = Node()
    broken = node.item(node.next()[0], report_form.FLAG_CONTENT)
    (receipt,) = put(connection, broken)
    assert (receipt.status, receipt.flags) == (Status.STORED, report_form.FLAG_CONTENT)
    (again,) = put(connection, replace(broken, flags=0))
    assert (again.status, again.flags) == (Status.DUPLICATE, report_form.FLAG_CONTENT)


def test_an_owner_sees_which_rule_a_flagged_report_breaks(
    connection: psycopg.Connection[Any],
) -> None:
    node = Node()
    broken = node.body().replace(b'"unknown_us":0', b'"unknown_us":1')
    node.seq, node.head = 1, report_hash(broken)
    put(connection, node.item(broken, report_form.FLAG_CONTENT), *node.items(1))
    ((stored, rule),) = usage.flagged_of_node(connection, node.id)
    assert (stored.node_seq, rule.rule, rule.pointer) == (1, "bucket_sum", "row 0")


def test_the_same_key_twice_in_one_batch_is_stored_once(
    connection: psycopg.Connection[Any],
) -> None:
    node = Node()
    forged = node.item(node.body(agent="another"))
    first, second = node.items(2)
    receipts = put(connection, first, first, second)
    assert statuses(receipts) == [Status.STORED, Status.DUPLICATE, Status.STORED]
    assert receipts[0][1:5] == receipts[1][1:5]
    twin = Node("two")
    other = twin.item(twin.body(agent="another"))
    assert statuses(put(connection, twin.items(1)[0], other)) == [
        Status.STORED,
        Status.EQUIVOCATION,
    ]
    assert statuses(put(connection, forged)) == [Status.EQUIVOCATION]
    assert usage.verify(connection, range(64)) == 3


def test_after_a_refused_report_the_rest_of_its_node_waits_but_not_other_nodes(
    connection: psycopg.Connection[Any],
) -> None:
    node, other = Node(), Node("two")
    first, second, third = node.items(3)
    forked = replace(second, prev=bytes(32))
    receipts = put(connection, first, forked, third, other.items(1)[0])
    assert statuses(receipts) == [Status.STORED, Status.FORK, Status.NOT_REACHED, Status.STORED]
    assert usage.head_of(connection, node.id) == (1, first.hash)


def test_reports_may_be_given_in_any_order(connection: psycopg.Connection[Any]) -> None:
    nodes = [Node(str(index)) for index in range(5)]
    items = [one for node in nodes for one in node.items(3)]
    receipts = put(connection, *reversed(items))
    assert statuses(receipts) == [Status.STORED] * 15
    assert [receipt.acked_seq for receipt in receipts] == [3, 2, 1] * 5


def test_positions_of_a_lane_are_gapless_and_every_chain_can_be_recomputed(
    connection: psycopg.Connection[Any],
) -> None:
    nodes = [Node(str(index)) for index in range(70)]
    for _ in range(3):
        put(connection, *(one for node in nodes for one in node.items(2)))
    assert usage.verify(connection, range(64)) == 420
    heads = usage.lane_heads(connection)
    assert [head.lane for head in heads] == list(range(64))
    assert sum(head.position for head in heads) == 420


def test_recorded_time_never_goes_back_within_a_lane(connection: psycopg.Connection[Any]) -> None:
    first, second = Node().items(2)
    put(connection, first, now_us=NOW_US)
    (receipt,) = put(connection, second, now_us=NOW_US - 1_000_000)
    assert receipt.recorded_us == NOW_US


def test_a_lane_nobody_knows_stores_nothing(connection: psycopg.Connection[Any]) -> None:
    with (
        pytest.raises(psycopg.errors.RaiseException, match="lane outside"),
        connection.transaction(),
    ):
        put(connection, replace(Node().items(1)[0], lane=64))
    assert count(connection, "usage_event") == 0


def test_stored_bodies_hold_signed_bytes_key_and_signature(
    connection: psycopg.Connection[Any],
) -> None:
    node = Node()
    body, signature = node.next()
    put(connection, node.item(body))
    (stored,) = usage.reports_of_node(connection, node.id, 0)
    assert split_body(stored.body) == (body, node.key_id, signature)


def test_moments_of_many_lanes_are_looked_up_with_a_question_a_step(
    connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [Node(f"of lane {number}") for number in range(6)]
    for node in nodes:
        for turn, item in enumerate(node.items(9)):
            put(connection, item, now_us=NOW_US + 10 * turn)
    lanes = [node.lane for node in nodes]
    moments = [(lane, NOW_US + after) for lane in lanes for after in (-1, 0, 1, 35, 80, 81, 999)]
    each = [NodeReader(connection).received_before(*one) for one in moments]
    assert len(set(each)) > 4
    reader, asked = NodeReader(connection), 0
    reader.head(lanes[0])

    class Counted:
        info = connection.info

        def execute(self, *told: Any) -> Any:
            nonlocal asked
            asked += 1
            return connection.execute(*told)

    monkeypatch.setattr(reader, "connection", Counted())
    reader.look_up(iter(moments))
    assert [reader.received_before(*one) for one in moments] == each
    deepest = max(reader.head(lane) for lane in lanes)
    assert asked <= deepest.bit_length() + 1, "not one for each of them"
    reader.look_up(moments)
    assert asked <= deepest.bit_length() + 1


def test_a_follower_reads_a_node_from_where_it_stopped(connection: psycopg.Connection[Any]) -> None:
    node = Node()
    put(connection, *node.items(5))
    assert [x.node_seq for x in usage.reports_of_node(connection, node.id, 3)] == [4, 5]
    assert [x.position for x in usage.reports_of_node(connection, node.id, 1)] == [2, 3, 4, 5]


# --- nothing recorded changes ----------------------------------------------------------------


@pytest.mark.parametrize("table", ["usage_event", "usage_key", "usage_evidence"])
@pytest.mark.parametrize("replica", [False, True])
def test_stored_rows_cannot_be_changed_removed_or_cut_off(
    connection: psycopg.Connection[Any], table: str, replica: bool
) -> None:
    node = Node()
    other = node.item(node.body(agent="another"))
    put(connection, *node.items(1))
    put(connection, other)
    if replica:
        connection.execute("SET session_replication_role = replica")
    for statement in (
        f"UPDATE {table} SET leaf = leaf",
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
    ):
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"),
            connection.transaction(),
        ):
            connection.execute(statement.encode())


def test_the_app_role_appends_by_the_function_and_in_no_other_way(
    connection: psycopg.Connection[Any],
) -> None:
    connection.execute("SET ROLE tallystick_app")
    assert statuses(put(connection, *Node().items(1))) == [Status.STORED]
    for statement in (
        "INSERT INTO usage_key SELECT lane, node_id, 99, 99, leaf FROM usage_key",
        "UPDATE usage_head SET pos = 0",
        "UPDATE usage_node SET last_node_seq = 0",
        "DELETE FROM usage_event",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute(statement.encode())


def test_the_reading_roles_read_and_cannot_append(connection: psycopg.Connection[Any]) -> None:
    one = Node().items(1)[0]
    for role in ("tallystick_projections", "tallystick_audit"):
        connection.execute(f"SET ROLE {role}".encode())
        assert count(connection, "usage_event") == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            put(connection, one)


def test_a_changed_row_is_found_by_recomputing_the_chain(
    connection: psycopg.Connection[Any],
) -> None:
    node = Node()
    put(connection, *node.items(3))
    connection.execute("ALTER TABLE usage_event DISABLE TRIGGER ALL")
    connection.execute("UPDATE usage_event SET flags = flags, node_seq = 9 WHERE position = 2")
    with pytest.raises(usage.ChainBroken, match=f"lane {node.lane}, position 2"):
        usage.verify(connection, [node.lane])


def test_a_cut_tail_is_found_at_the_head(connection: psycopg.Connection[Any]) -> None:
    node = Node()
    put(connection, *node.items(3))
    connection.execute("ALTER TABLE usage_event DISABLE TRIGGER ALL")
    connection.execute("DELETE FROM usage_event WHERE position = 3")
    with pytest.raises(usage.ChainBroken, match="rows end at 2, head at 3"):
        usage.verify(connection, [node.lane])


# --- group commit ----------------------------------------------------------------------------


def test_reports_that_wait_together_are_committed_together(database: str) -> None:
    nodes = [Node(str(index)) for index in range(40)]

    async def scenario() -> tuple[list[list[Receipt]], int]:
        async with UsageLog(database, now_us=lambda: NOW_US) as log:
            answers = await asyncio.gather(*(log.append(node.items(2)) for node in nodes))
            return answers, log.transactions

    answers, transactions = asyncio.run(scenario())
    assert all(statuses(answer) == [Status.STORED] * 2 for answer in answers)
    assert transactions <= 2
    with psycopg.connect(database) as connection:
        assert usage.verify(connection, range(64)) == 80


def test_a_restart_goes_on_where_the_log_stands(database: str) -> None:
    node = Node()
    items = node.items(4)

    async def life(part: list[Item]) -> tuple[list[Receipt], tuple[int, bytes | None]]:
        async with UsageLog(database) as log:
            return await log.append(part), await log.head(node.id)

    receipts, head = asyncio.run(life(items[:2]))
    assert head == (2, items[1].hash)
    receipts, head = asyncio.run(life(items[1:]))
    assert statuses(receipts) == [Status.DUPLICATE, Status.STORED, Status.STORED]
    assert head == (4, node.head)


def test_a_full_queue_refuses_instead_of_growing(database: str) -> None:
    nodes = [Node(str(index)) for index in range(4)]

    async def scenario() -> list[list[Receipt]]:
        async with UsageLog(database, queue_reports_max=5) as log:
            first = log.submit(nodes[0].items(3))
            with pytest.raises(usage.Full):
                log.submit(nodes[1].items(3))
            second = log.submit(nodes[2].items(2))
            return [await first, await second]

    assert [len(answer) for answer in asyncio.run(scenario())] == [3, 2]


def test_the_queue_is_bounded_in_bytes_too(database: str) -> None:
    items = Node().items(2)

    async def scenario() -> None:
        async with UsageLog(database, queue_bytes_max=len(items[0].body)) as log:
            with pytest.raises(usage.Full):
                log.submit(items)

    asyncio.run(scenario())


def test_nobody_waits_for_ever_for_a_committer_that_died(database: str) -> None:
    """A clock that fails stands for any bug: who waits and who comes later is told."""

    def broken_clock() -> int:
        raise ZeroDivisionError

    async def scenario() -> None:
        log = UsageLog(database, now_us=broken_clock)
        await log.start()
        waiting = [log.submit(Node(str(index)).items(1)) for index in range(3)]
        for answer in waiting:
            with pytest.raises(usage.Unavailable):
                await answer
        with pytest.raises(usage.Unavailable):
            log.submit(Node().items(1))
        with pytest.raises(ZeroDivisionError):
            await log.close()

    asyncio.run(scenario())


def test_closing_commits_what_waits(database: str) -> None:
    items = Node().items(3)

    async def scenario() -> list[Receipt]:
        log = UsageLog(database)
        await log.start()
        answer = log.submit(items)
        await log.close()
        return answer.result()

    assert statuses(asyncio.run(scenario())) == [Status.STORED] * 3


def test_a_report_the_database_chokes_on_fails_alone(database: str) -> None:
    """A node id with a NUL cannot come through the door; the log must survive it all the same."""
    good, bad = Node(), Node("two")
    good_items = good.items(2)
    bad_items = [replace(bad.items(1)[0], node=b"node_\0")]

    async def scenario() -> list[Any]:
        async with UsageLog(database) as log:
            both = [log.submit(bad_items), log.submit(good_items)]
            return await asyncio.gather(*both, return_exceptions=True)

    failed, stored = asyncio.run(scenario())
    assert isinstance(failed, usage.AppendFailed)
    assert statuses(stored) == [Status.STORED] * 2


def test_a_lost_connection_is_replaced_and_the_same_reports_are_sent_again(database: str) -> None:
    node = Node()
    items = node.items(6)

    async def scenario() -> list[list[Receipt]]:
        async with UsageLog(database) as log:
            answers = [await log.append(items[:2])]
            with psycopg.connect(database, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            answers.append(await log.append(items[2:4]))
            answers.append(await log.append(items[3:]))
            return answers

    answers = asyncio.run(scenario())
    assert [x.status for answer in answers for x in answer].count(Status.STORED) == 6
    with psycopg.connect(database) as connection:
        assert usage.verify(connection, range(64)) == 6


def test_a_connection_lost_during_the_commit_leaves_each_report_there_once(database: str) -> None:
    """The backend is killed while it waits for the lane's lock, with reports of many nodes."""
    nodes = [Node(str(index)) for index in range(8)]

    async def scenario() -> list[list[Receipt]]:
        async with UsageLog(database) as log:
            with psycopg.connect(database) as blocker:
                blocker.execute("SELECT FROM usage_head FOR UPDATE")
                waiting = [log.submit(node.items(3)) for node in nodes]
                with psycopg.connect(database, autocommit=True) as killer:
                    killed = False
                    while not killed:
                        await asyncio.sleep(0.01)
                        killed = bool(
                            killer.execute(
                                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
                            ).fetchall()
                        )
            return [await answer for answer in waiting]

    answers = asyncio.run(scenario())
    assert all(statuses(answer) == [Status.STORED] * 3 for answer in answers)
    with psycopg.connect(database) as connection:
        assert usage.verify(connection, range(64)) == 24
