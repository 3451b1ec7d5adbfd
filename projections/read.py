"""How the reading side of a projection asks: SQL in, typed rows out. Knows no table by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from psycopg.rows import class_row

from projections.runner import Connection

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Way:
    """In which direction a list is read, and how far back: only what is after the key `since`.

    Positions begin at 1, and the numbers of a job's parts at 0: from -1 on is all of them.
    """

    newest: bool = False
    since: int = -1


OLDEST, NEWEST = Way(), Way(newest=True)


def many(connection: Connection, row: type[T], sql: str, **params: Any) -> list[T]:
    """All rows of a query; each column fills the field of its name."""
    with connection.cursor(row_factory=class_row(row)) as cursor:
        return cursor.execute(sql.encode(), params).fetchall()


def listed(connection: Connection, row: type[T], sql: str, way: Way, **params: Any) -> list[T]:
    """One page of a list whose query reads upwards: `key > %(after)s`, then `ORDER BY key LIMIT
    %(limit)s` at its end. The same query read downwards gives the newest rows before `after`.
    """
    if way.newest:
        return many(connection, row, newest_first(sql), since=way.since, **params)
    return many(connection, row, sql, **{**params, "after": max(params["after"], way.since)})


@lru_cache(maxsize=256)
def newest_first(sql: str) -> str:
    """The query of a list, read from its other end."""
    between = r"(\1 < %(after)s AND \1 > %(since)s)"
    turned, keys = re.subn(r"([\w.]+) > %\(after\)s", between, sql)
    turned, ends = re.subn(
        r"ORDER BY ([\w.]+) LIMIT %\(limit\)s\s*$", r"ORDER BY \1 DESC LIMIT %(limit)s", turned
    )
    assert (keys, ends) == (1, 1), f"no list by one key: {sql}"
    return turned


def one(connection: Connection, row: type[T], sql: str, **params: Any) -> T | None:
    """The first row of a query, or None."""
    with connection.cursor(row_factory=class_row(row)) as cursor:
        return cursor.execute(sql.encode(), params).fetchone()


def number(connection: Connection, sql: str, **params: Any) -> int:
    """The one integer a query gives; no row or NULL is 0."""
    row = connection.execute(sql.encode(), params).fetchone()
    return 0 if row is None or row[0] is None else int(row[0])
