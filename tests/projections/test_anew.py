"""Views built anew together are those that are there, and what differs is named and left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from projections import anew, decoded, runner, tables
from projections.audit.audit_index import AUDIT_INDEX
from projections.decoded import Decoded
from projections.runner import GapInLog
from projections.tables import PROJECTIONS
from tests.conftest import Databases, fresh

SPOILT = """
    UPDATE market_events SET state = convert_to(regexp_replace(convert_from(state, 'UTF8'),
        '"gpu_us_new":"?[0-9]+', '"gpu_us_new":"x'), 'UTF8')
    WHERE notification_id = (
        SELECT max(notification_id) FROM market_events WHERE topic = 'lease.usage_accrued.v1')
"""
SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'proj%' ORDER BY 1"


@pytest.fixture(scope="module")
def told(postgres: Databases, story_template: str) -> Iterator[tuple[str, psycopg.Connection[Any]]]:
    """The story, in which every table of every view has rows, and reports."""
    with (
        fresh(postgres, story_template) as database,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        yield database, connection


@pytest.mark.parametrize("again_max", [0, decoded.DECODED_AGAIN_MAX])
@pytest.mark.parametrize(("workers", "facts_max"), [(1, anew.FACTS_MAX), (2, 150)])
def test_facts_that_were_decoded_once_give_every_view_the_rows_it_has(
    told: tuple[str, psycopg.Connection[Any]],
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
    facts_max: int,
    again_max: int,
) -> None:
    """However the log is cut, whichever connection goes through which view, and whether a kind of
    fact has a table or each rule decodes it.
    """
    monkeypatch.setattr(decoded, "DECODED_AGAIN_MAX", again_max)
    database, connection = told
    before = connection.execute(SCHEMAS).fetchall()
    found = anew.compare(database, workers=workers, facts_max=facts_max)
    assert [one.name for one in found] == [each.name for each in PROJECTIONS]
    assert {one.name: one.differing for one in found if one.differing} == {}
    assert {one.reports for one in found} > {0}
    assert connection.execute(SCHEMAS).fetchall() == before, "what was built is gone"


def test_rows_that_do_not_follow_from_the_log_are_named_and_left(
    told: tuple[str, psycopg.Connection[Any]],
) -> None:
    database, connection = told
    rules = [each for each in PROJECTIONS if each.name in ("leases", "earnings")]
    (before,) = connection.execute("SELECT sum(charge_units) FROM proj_leases.lease").fetchall()
    change = "UPDATE proj_leases.lease SET charge_units = charge_units + {}"
    connection.execute(change.format(1).encode())
    found = {one.name: one.differing for one in anew.compare(database, rules, workers=2)}
    assert found == {"leases": ("lease",), "earnings": ()}
    connection.execute(change.format(-1).encode())
    assert connection.execute("SELECT sum(charge_units) FROM proj_leases.lease").fetchall() == [
        before
    ]


@pytest.mark.parametrize("source", ["market", "usage/3"])
def test_a_view_that_says_it_read_more_than_there_is_differs_by_its_position(
    told: tuple[str, psycopg.Connection[Any]], source: str
) -> None:
    """No step can bring the log to it, so none is waited for."""
    database, connection = told
    change = "UPDATE proj_usage.position SET position = position + %s WHERE source = %s"
    rules = [each for each in PROJECTIONS if each.name in ("usage", "earnings")]
    connection.execute(change, (5, source))
    try:
        found = {one.name: one.differing for one in anew.compare(database, rules)}
    finally:
        connection.execute(change, (-5, source))
    assert found == {"usage": ("position",), "earnings": ()}


def test_a_log_with_a_gap_is_no_log_to_build_from(
    told: tuple[str, psycopg.Connection[Any]],
) -> None:
    _, connection = told
    with connection.transaction(force_rollback=True):
        connection.execute("ALTER TABLE market_events DISABLE TRIGGER ALL")
        connection.execute("DELETE FROM market_events WHERE notification_id = 7")
        with pytest.raises(GapInLog):
            Decoded(connection, PROJECTIONS, "proj_decoded_0", 0, 10)


def test_a_field_that_two_rules_read_as_different_types_is_read_as_each_says() -> None:
    """`device_ids` of a reservation is a list here and JSON there: one of them decodes itself."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for each in PROJECTIONS:
        for rule in each.rules:
            for topic in rule.topics:
                for name, kind in runner.fields_of(rule):
                    assert name not in ("position", "stream_version", "topic", "recorded_us")
                    kinds.setdefault((topic, name), set()).add(kind)
    assert len(kinds["lease.reserved.v1", "device_ids"]) == 2, "the story above reads both"


def test_a_name_of_a_fact_is_no_statement(told: tuple[str, psycopg.Connection[Any]]) -> None:
    """A log that was tampered with may hold any."""
    _, connection = told
    with connection.transaction(force_rollback=True):
        connection.execute("ALTER TABLE market_events DISABLE TRIGGER ALL")
        connection.execute(
            "UPDATE market_events SET topic = %s WHERE notification_id = 7",
            ("x'); DROP SCHEMA proj_fleet CASCADE; --",),
        )
        Decoded(connection, PROJECTIONS, "proj_decoded_0", 0, 200)
        assert ("proj_fleet",) in connection.execute(SCHEMAS).fetchall()


def test_a_name_of_a_fact_is_no_parameter(
    told: tuple[str, psycopg.Connection[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where some kinds have a table, the others are named, and `%` begins a parameter."""
    _, connection = told
    monkeypatch.setattr(decoded, "DECODED_AGAIN_MAX", 10)
    with connection.transaction(force_rollback=True):
        connection.execute("ALTER TABLE market_events DISABLE TRIGGER ALL")
        connection.execute("UPDATE market_events SET topic = 'a%sb' WHERE notification_id = 7")
        tables.create(connection, AUDIT_INDEX, schema="proj_tried")
        Decoded(connection, PROJECTIONS, "proj_decoded_0", 0, 200).apply(
            connection, AUDIT_INDEX, "proj_tried"
        )
        found = connection.execute("SELECT topic FROM proj_tried.fact WHERE position = 7")
        assert found.fetchall() == [("a%sb",)]


MOVED = """
    WITH two AS (SELECT ctid, row_number() OVER () AS number FROM {table} LIMIT 2)
    UPDATE {table} t SET {column} = t.{column} + CASE number WHEN 1 THEN 1 ELSE -1 END
    FROM two WHERE t.ctid = two.ctid
"""


def test_one_unit_that_is_moved_between_two_rows_of_a_sum_is_found(
    followed_database: str, followed: psycopg.Connection[Any]
) -> None:
    sums = {"demand": "used.gpu_us", "epochs": "weight.burned", "reputation": "day.total"}
    for view, told in sums.items():
        table, column = f"{tables.BY_NAME[view].schema}.{told}".rsplit(".", 1)
        moved = followed.execute(MOVED.format(table=table, column=column).encode())
        assert moved.rowcount == 2
    found = anew.compare(followed_database, [tables.BY_NAME[view] for view in sums])
    assert {one.name: one.differing for one in found} == {
        "demand": ("used",),
        "epochs": ("weight",),
        "reputation": ("day",),
    }


def test_two_columns_that_change_their_names_are_found(
    followed_database: str, followed: psycopg.Connection[Any]
) -> None:
    for old, new in (("burned", "was"), ("gpu_us", "burned"), ("was", "gpu_us")):
        followed.execute(f"ALTER TABLE proj_epochs.weight RENAME {old} TO {new}".encode())
    (found,) = anew.compare(followed_database, [tables.BY_NAME["epochs"]])
    assert found.differing == ("weight",)


def test_one_row_less_in_any_table_of_any_view_is_found(
    followed_database: str, followed: psycopg.Connection[Any]
) -> None:
    """In each of them at once: every table that has rows, and no other, is named."""
    changed = {
        each.name: tuple(
            name
            for name, (rows, _) in tables.digest(followed, each.schema, seed=7).items()
            if rows and _one_row_less(followed, each.schema, name)
        )
        for each in PROJECTIONS
    }
    assert sum(map(len, changed.values())) > 100
    found = anew.compare(followed_database, workers=2, facts_max=500)
    assert {one.name: one.differing for one in found} == changed


def _one_row_less(connection: psycopg.Connection[Any], schema: str, table: str) -> bool:
    name = sql.Identifier(schema, table)
    one = sql.SQL("DELETE FROM {} WHERE ctid = (SELECT ctid FROM {} LIMIT 1)").format(name, name)
    return connection.execute(one).rowcount == 1


def test_a_view_that_cannot_be_built_is_told_and_the_others_are_compared(
    followed_database: str, followed: psycopg.Connection[Any]
) -> None:
    """`gpu_us_new` of an accrual is no number any more: views that do not read it come as before,
    though all accruals were to be decoded together.
    """
    followed.execute("ALTER TABLE market_events DISABLE TRIGGER ALL")
    spoilt = followed.execute(SPOILT)
    assert spoilt.rowcount == 1
    found = {one.name: one for one in anew.compare(followed_database, workers=2, facts_max=700)}
    failed = {name for name, one in found.items() if one.failed is not None}
    assert {"earnings", "epochs", "usage"} <= failed
    assert "invalid input syntax" in str(found["earnings"].failed)
    assert {"leases", "statements", "access", "trust"} <= found.keys() - failed
    assert {one.differing for name, one in found.items() if name not in failed} == {()}


def test_what_a_killed_proof_has_left_is_removed_unless_one_lives(
    told: tuple[str, psycopg.Connection[Any]],
) -> None:
    database, connection = told
    scratch, _ = tables.drawn_scratch()
    tables.create(connection, PROJECTIONS[0], schema=f"{PROJECTIONS[0].schema}_next")
    Decoded(connection, PROJECTIONS, scratch, 0, 10)
    left = {f"{PROJECTIONS[0].schema}_next", scratch}
    with psycopg.connect(database, autocommit=True) as living, tables.building(living):
        assert tables.left_behind(connection) == {}
        tables.ensure(connection)
        assert left <= {name for (name,) in connection.execute(SCHEMAS)}
    assert tables.left_behind(connection).keys() == left
    with psycopg.connect(database, autocommit=True) as server:
        server.execute(f"SET ROLE {runner.OWNER}".encode())
        tables.ensure(server)
    assert left.isdisjoint(name for (name,) in connection.execute(SCHEMAS))
