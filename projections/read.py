"""How the reading side of a projection asks: SQL in, typed rows out. Knows no table by name."""

from __future__ import annotations

from typing import Any, TypeVar

from psycopg.rows import class_row

from projections.runner import Connection

T = TypeVar("T")


def many(connection: Connection, row: type[T], sql: str, **params: Any) -> list[T]:
    """All rows of a query; each column fills the field of its name."""
    with connection.cursor(row_factory=class_row(row)) as cursor:
        return cursor.execute(sql.encode(), params).fetchall()


def one(connection: Connection, row: type[T], sql: str, **params: Any) -> T | None:
    """The first row of a query, or None."""
    with connection.cursor(row_factory=class_row(row)) as cursor:
        return cursor.execute(sql.encode(), params).fetchone()


def number(connection: Connection, sql: str, **params: Any) -> int:
    """The one integer a query gives; no row or NULL is 0."""
    row = connection.execute(sql.encode(), params).fetchone()
    return 0 if row is None or row[0] is None else int(row[0])
