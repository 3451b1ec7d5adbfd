"""Tables that rules only add rows to are told from all others, and add up to the same rows."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from projections import gathered, tables
from projections.runner import Projection, Rule
from projections.tables import PROJECTIONS

USED = """CREATE TABLE own.used (
    who text COLLATE "C", units bigint NOT NULL, most bigint NOT NULL,
    PRIMARY KEY (who)) WITH (fillfactor = 70);"""
LINES = "CREATE TABLE own.line (position bigint PRIMARY KEY, units bigint);"
ADDED = """INSERT INTO own.used AS u SELECT who, sum(units), max(units) FROM facts GROUP BY 1
    ON CONFLICT (who) DO UPDATE SET units = u.units + excluded.units,
    most = greatest(u.most, excluded.most)"""
NEW = "INSERT INTO own.line SELECT position, units FROM facts"


def _found(made: str, *rules: str) -> dict[str, gathered.Gathered]:
    told = tuple(Rule(("a.b.v1",), "who text, units bigint", rule) for rule in rules)
    return gathered.tables_of(Projection("drawn", made, told))


def test_a_table_that_rows_are_only_added_to_needs_no_key() -> None:
    found = _found(USED + LINES, ADDED, NEW)
    assert found.keys() == {"used", "line"}
    assert found["line"].rows("x.line") == "x.line"
    assert found["used"].rows("x.used") == (
        "(SELECT who, sum(units)::bigint AS units, max(most)::bigint AS most FROM x.used"
        " GROUP BY who) gathered"
    )


@pytest.mark.parametrize(
    "rules",
    [
        (ADDED, "INSERT INTO own.line SELECT 1, units FROM own.used"),
        (ADDED, "UPDATE own.used SET units = 0"),
        (ADDED, "INSERT INTO own.used SELECT who, units, units FROM facts"),
        (ADDED.replace("u.units + excluded.units", "excluded.units"),),
        (ADDED.replace("u.units + excluded.units", "u.units - excluded.units"),),
        (ADDED.replace("u.units + excluded.units", "u.most + excluded.units"),),
        (ADDED.replace(",\n    most = greatest(u.most, excluded.most)", ""),),
        (ADDED + " WHERE u.most > 0",),
        ("INSERT INTO own.used SELECT who, 1, 1 FROM facts ON CONFLICT DO NOTHING",),
        (f"WITH stored AS ({ADDED} RETURNING *) SELECT * FROM stored",),
    ],
)
def test_a_table_that_is_read_or_changed_otherwise_keeps_its_key(rules: tuple[str, ...]) -> None:
    assert "used" not in _found(USED + LINES, *rules)


def test_a_sum_that_may_be_unknown_is_not_gathered() -> None:
    assert _found(USED.replace("units bigint NOT NULL", "units bigint"), ADDED) == {}


def test_only_what_a_conflict_does_is_left_out_of_a_statement() -> None:
    rule = f", moved AS (SELECT 1), used AS ({ADDED}) {NEW} ON CONFLICT DO NOTHING"
    left = gathered.without_conflicts(rule, _found(USED, ADDED))
    whole = " ".join(left.split())
    assert whole == (
        ", moved AS (SELECT 1), used AS (INSERT INTO own.used AS u SELECT who, sum(units),"
        f" max(units) FROM facts GROUP BY 1 ) {NEW} ON CONFLICT DO NOTHING"
    )


def test_views_of_the_market_have_such_tables() -> None:
    """Or the tests of a proof, which compare them, would try nothing of this."""
    found = {
        f"{each.name}.{name}": bool(table.sums)
        for each in PROJECTIONS
        for name, table in gathered.tables_of(each).items()
    }
    assert {name for name, is_summed in found.items() if is_summed} >= {
        "demand.used",
        "usage_hours.hour",
        "epochs.weight",
        "counterparties.used",
    }
    assert found["unmatched.request"] is False
    assert found.keys().isdisjoint({"epochs.counted", "earnings.earning", "leases.lease"})


@pytest.fixture
def drawn(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    connection.execute("CREATE SCHEMA drawn")
    connection.execute(
        "CREATE TABLE drawn.row (who text, units bigint, part json, few int, share numeric,"
        " names text[])"
    )
    return connection


def _digest_of(connection: psycopg.Connection[Any], *rows: str) -> tuple[int, int]:
    connection.execute("TRUNCATE drawn.row")
    for row in rows:
        connection.execute(f"INSERT INTO drawn.row VALUES ({row})".encode())
    return tables.digest(connection, "drawn", 7)["row"]


@pytest.mark.parametrize(
    ("rows", "others"),
    [
        # PostgreSQL hashes an int8 as its halves folded over each other: these two are one.
        (["'a', 5"], [f"'a', {2**32 + 4}"]),
        (["'a', 5"], ["'a', -6"]),
        # A hash of a row is a sum over its columns: two rows that change a value must not cancel.
        (["'a', 1", "'b', 2"], ["'a', 2", "'b', 1"]),
        (["'a', 1, '{\"x\":1}'"], ["'a', 1, '{\"x\": 1}'"]),
        (["'a', 1, NULL, 1, 1.0"], ["'a', 1, NULL, 1, 1.00"]),
        (["'a', 1, NULL, 1, 1, '{a,b}'"], ["'a', 1, NULL, 1, 1, '{\"a,b\"}'"]),
        (["'a', 1, NULL, 1, 1, '{}'"], ["'a', 1, NULL, 1, 1, NULL"]),
        (["'a', NULL"], ["'a', 0"]),
        (["'a', 1"], ["'a', 1", "'a', 1"]),
    ],
)
def test_other_rows_have_another_digest(
    drawn: psycopg.Connection[Any], rows: list[str], others: list[str]
) -> None:
    assert _digest_of(drawn, *rows) != _digest_of(drawn, *others)


def test_the_same_rows_in_another_order_have_one_digest(drawn: psycopg.Connection[Any]) -> None:
    rows = [f"'a{number}', {number << 31}, NULL, {number}, 0.5, '{{x}}'" for number in range(5)]
    assert _digest_of(drawn, *rows) == _digest_of(drawn, *reversed(rows))


def test_a_digest_depends_on_its_seed(drawn: psycopg.Connection[Any]) -> None:
    """So that rows which were made to have one digest have it by no other seed."""
    _digest_of(drawn, "'a', 5")
    assert len({tables.digest(drawn, "drawn", seed)["row"] for seed in range(3)}) == 3
