"""Rows of a view are compared by a sum of hashes: other rows have another one."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

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
