"""Rows of a view are compared by a sum of hashes: other rows have another one."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql

from projections import tables


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
    return tables.digest(connection, "drawn", seed=7)["row"]


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
    _digest_of(drawn, "'a', 5")
    assert len({tables.digest(drawn, "drawn", seed=seed)["row"] for seed in range(3)}) == 3


def test_columns_that_change_their_names_have_another_digest(
    drawn: psycopg.Connection[Any],
) -> None:
    drawn.execute("CREATE TABLE drawn.pair AS SELECT 1::bigint AS a, 2::bigint AS b")
    before = tables.digest(drawn, "drawn", seed=7)
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        drawn.execute(f"ALTER TABLE drawn.pair RENAME {old} TO {new}".encode())
    after = tables.digest(drawn, "drawn", seed=7)
    assert {name for name in before if before[name] != after[name]} == {"pair"}


def test_names_that_a_backup_was_given_are_no_statements(drawn: psycopg.Connection[Any]) -> None:
    """A restore that was tampered with may hold tables and columns of any name."""
    for table, column in (("X; SELECT 1 --", "a"), ('y" z', "1; DROP TABLE drawn.row --")):
        made = sql.SQL("CREATE TABLE {} AS SELECT 1::bigint AS {}")
        drawn.execute(made.format(sql.Identifier("drawn", table), sql.Identifier(column)))
    found = tables.digest(drawn, "drawn", seed=7)
    assert {name: rows for name, (rows, _) in found.items()} == {
        "row": 0,
        "X; SELECT 1 --": 1,
        'y" z': 1,
    }
