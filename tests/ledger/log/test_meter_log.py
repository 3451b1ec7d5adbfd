"""The meter log: an event is stored once, in one order, and never changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from ledger.log import meter_log
from ledger.log.chain import chain
from ledger.log.meter_log import GENESIS, Broken, Item, Status, leaf_of

NOW_US = 1_795_161_600_000_000
ACCOUNT = "acct_owner"
LEASE = "lease_1"


def item(number: int, **changes: Any) -> Item:
    """An hour of the lease, each number the next one."""
    hour = 3_600_000_000
    made = Item(
        source="meter/1",
        event_id=f"e-{number}",
        lease_id=LEASE,
        meter="cpu",
        quantity=number,
        from_us=number * hour,
        to_us=(number + 1) * hour,
        route=None,
        dataset=None,
        body=b'{"n":%d}' % number,
        is_timely=True,
    )
    return replace(made, **changes)


def put(connection: psycopg.Connection[Any], *items: Item, account_id: str = ACCOUNT) -> list[Any]:
    return meter_log.append(connection, account_id, items, NOW_US)


def count(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT count(*) FROM meter_event").fetchone()
    assert row is not None
    return int(row[0])


def test_events_are_stored_in_order_with_their_chain(connection: psycopg.Connection[Any]) -> None:
    told = put(connection, item(1), item(2))
    assert told == [(Status.STORED, 1), (Status.STORED, 2)]
    hashed = GENESIS
    for number in (1, 2):
        hashed = chain(hashed, leaf_of(ACCOUNT, "meter/1", f"e-{number}", b'{"n":%d}' % number))
    assert meter_log.head(connection) == (2, hashed) == meter_log.verify(connection)
    stored = meter_log.events_of(connection, LEASE, "cpu", 1, 2, 9)
    assert [(one.position, one.event_id, one.quantity) for one in stored] == [(2, "e-2", 2)]
    assert put(connection) == []


def test_an_event_sent_again_is_no_error_also_in_one_batch_and_when_it_is_old_by_now(
    connection: psycopg.Connection[Any],
) -> None:
    put(connection, item(1))
    again = put(connection, item(1), replace(item(1), is_timely=False), item(2), item(2))
    assert again == [
        (Status.DUPLICATE, 1),
        (Status.DUPLICATE, 1),
        (Status.STORED, 2),
        (Status.DUPLICATE, 2),
    ]
    assert count(connection) == 2


def test_another_payload_under_an_id_is_refused_and_an_id_is_the_senders_own(
    connection: psycopg.Connection[Any],
) -> None:
    put(connection, item(1))
    assert put(connection, item(1, body=b"{}")) == [(Status.ID_REUSED, 1)]
    assert put(connection, item(1, body=b"{}"), account_id="acct_x") == [(Status.STORED, 2)]
    assert put(connection, item(2, event_id="e-1", source="meter/2")) == [(Status.STORED, 3)]


@pytest.mark.parametrize(("start", "end"), [(0, 1), (5, 11), (15, 16), (19, 25), (5, 40), (10, 20)])
def test_a_window_that_overlaps_one_of_its_source_is_refused_under_any_id(
    connection: psycopg.Connection[Any], start: int, end: int
) -> None:
    put(connection, item(1, from_us=10, to_us=20), item(2, from_us=30, to_us=35))
    (told,) = put(connection, item(3, from_us=start, to_us=end))
    touches = start < 20 and end > 10
    assert told.status is (Status.OVERLAP if touches else Status.STORED)
    others = {"source": "meter/2"}, {"lease_id": "lease_2"}, {"meter": "storage"}
    for number, other in enumerate(others, start=4):
        (told,) = put(connection, item(number, from_us=start, to_us=end, **other))
        assert told.status is Status.STORED, other


def test_events_may_come_in_any_order_and_touch(connection: psycopg.Connection[Any]) -> None:
    told = put(connection, item(5), item(3), item(4), item(1))
    assert [one.status for one in told] == [Status.STORED] * 4


def test_what_is_not_timely_is_not_stored(connection: psycopg.Connection[Any]) -> None:
    assert put(connection, item(1, is_timely=False)) == [(Status.UNTIMELY, None)]
    assert (count(connection), meter_log.head(connection)) == (0, (0, GENESIS))


# --- nothing recorded changes ----------------------------------------------------------------


@pytest.mark.parametrize("replica", [False, True])
def test_stored_events_cannot_be_changed_removed_or_cut_off(
    connection: psycopg.Connection[Any], replica: bool
) -> None:
    put(connection, item(1))
    if replica:
        connection.execute("SET session_replication_role = replica")
    for statement in (
        "UPDATE meter_event SET quantity = 9",
        "DELETE FROM meter_event",
        "TRUNCATE meter_event",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
            connection.execute(statement)


def test_the_app_role_appends_by_the_function_and_in_no_other_way(
    connection: psycopg.Connection[Any],
) -> None:
    connection.execute("SET ROLE tallystick_app")
    assert put(connection, item(1)) == [(Status.STORED, 1)]
    for statement in (
        "INSERT INTO meter_event SELECT * FROM meter_event",
        "UPDATE meter_head SET pos = 0",
        "UPDATE meter_last SET position = 0",
        "DELETE FROM meter_event",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())


def test_the_reading_roles_read_and_cannot_append(connection: psycopg.Connection[Any]) -> None:
    for role in ("tallystick_projections", "tallystick_audit"):
        connection.execute(f"SET ROLE {role}".encode())
        assert count(connection) == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            put(connection, item(1))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE meter_event SET body = 'x' WHERE position = 2",
        "DELETE FROM meter_event WHERE position = 2",
        "DELETE FROM meter_event WHERE position = 3",
        "UPDATE meter_head SET hash = sha256('x')",
    ],
)
def test_a_changed_row_is_found_by_recomputing_the_chain(
    connection: psycopg.Connection[Any], change: str
) -> None:
    put(connection, item(1), item(2), item(3))
    connection.execute("ALTER TABLE meter_event DISABLE TRIGGER ALL")
    connection.execute(change.encode())
    with pytest.raises(Broken):
        meter_log.verify(connection)
