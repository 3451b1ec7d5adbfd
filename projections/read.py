"""How the reading side of a projection asks: SQL in, typed rows out. Knows no table by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeVar

from psycopg.rows import class_row

from domain.frozen import maker
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


def rows_of(kind: Any) -> Any:
    """Makes each row one of a kind; each column fills the field of its name. Raises TypeError where
    one has no field, or a field has no column and no default.
    """

    def rows(cursor: Any) -> Any:
        result = cursor.pgresult
        columns = () if result is None else tuple(map(result.fname, range(result.nfields)))
        return _fitting(kind, columns) or class_row(kind)(cursor)

    return rows


@lru_cache(maxsize=1_024)
def _fitting(kind: Any, columns: tuple[bytes, ...]) -> Callable[[Sequence[Any]], Any] | None:
    """What makes one of a kind of a row with these columns; None: they are not just its fields."""
    names = [field.name.encode() for field in fields(kind)]
    if sorted(columns) != sorted(names):
        return None
    make = maker(kind)
    if len(names) == 1 or list(columns) == names:
        return lambda values: make(*values)
    in_order = itemgetter(*(columns.index(name) for name in names))
    return lambda values: make(*in_order(values))


def many(connection: Connection, row: type[T], sql: str, **params: Any) -> list[T]:
    """All rows of a query; each column fills the field of its name."""
    with connection.cursor(row_factory=rows_of(row)) as cursor:
        return cursor.execute(sql.encode(), params).fetchall()


def listed(
    connection: Connection, row: type[T], sql: str | tuple[str, ...], way: Way, **params: Any
) -> list[T]:
    """One page of a list whose query reads upwards: `key > %(after)s`, then `ORDER BY key LIMIT
    %(limit)s` at its end. The same query read downwards gives the newest rows before `after`.
    Several queries: parts of the list, which have no row in common.
    """
    sql = together((sql,) if isinstance(sql, str) else sql, is_newest=way.newest)
    if way.newest:
        return many(connection, row, sql, since=way.since, **params)
    return many(connection, row, sql, **{**params, "after": max(params["after"], way.since)})


@lru_cache(maxsize=256)
def together(parts: tuple[str, ...], *, is_newest: bool) -> str:
    """The query of a list that is read in parts by one key: a page is among the pages of all."""
    turned = [newest_first(part) if is_newest else part for part in parts]
    if len(turned) == 1:
        return turned[0]
    orders = {part[part.rindex("ORDER BY") :] for part in turned}
    assert len(orders) == 1, f"parts in different orders: {orders}"
    return f"SELECT * FROM (({') UNION ALL ('.join(turned)})) part {orders.pop()}"


@lru_cache(maxsize=256)
def newest_first(sql: str) -> str:
    """The query of a list, read from its other end."""
    between = r"(\1 < %(after)s AND \1 > %(since)s)"
    key = r"([\w.]+(?: \+ 0)?)"
    turned, keys = re.subn(rf"{key} > %\(after\)s", between, sql)
    turned, ends = re.subn(
        rf"ORDER BY {key} LIMIT %\(limit\)s\s*$", r"ORDER BY \1 DESC LIMIT %(limit)s", turned
    )
    assert (keys, ends) == (1, 1), f"no list by one key: {sql}"
    return turned


def one(connection: Connection, row: type[T], sql: str, **params: Any) -> T | None:
    """The first row of a query, or None."""
    with connection.cursor(row_factory=rows_of(row)) as cursor:
        return cursor.execute(sql.encode(), params).fetchone()


def number(connection: Connection, sql: str, **params: Any) -> int:
    """The one integer a query gives; no row or NULL is 0."""
    row = connection.execute(sql.encode(), params).fetchone()
    return 0 if row is None or row[0] is None else int(row[0])
