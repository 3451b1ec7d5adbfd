"""How the telling of facts to webhooks went: one row per endpoint and fact. Not facts.

Losing these rows loses no fact, but an endpoint is told everything again from where it was enabled.
When something is told, and what ends it, is decided in `api/parties/webhook_sender.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, LiteralString

import psycopg
from psycopg.rows import class_row

Connection = psycopg.Connection[Any]
Outcome = Literal["waiting", "delivered", "failed"]

_RECORD = """
    INSERT INTO webhook_delivery VALUES (%(id)s, %(position)s, %(attempts)s,
        %(outcome)s, %(answer)s, %(error)s, %(now)s, %(now)s, %(next)s)
    ON CONFLICT (endpoint_id, position) DO UPDATE SET attempts = excluded.attempts,
        outcome = excluded.outcome, answer = excluded.answer, error = excluded.error,
        last_at_us = excluded.last_at_us, next_at_us = excluded.next_at_us
"""
_CLAIM = """
    INSERT INTO webhook_delivery AS d VALUES (%(id)s, %(position)s, %(attempts)s + 1,
        'waiting', NULL, NULL, %(now)s, %(now)s, %(next)s)
    ON CONFLICT (endpoint_id, position) DO UPDATE SET attempts = d.attempts + 1,
        last_at_us = excluded.last_at_us, next_at_us = excluded.next_at_us
        WHERE d.attempts = %(attempts)s AND d.outcome = 'waiting' AND d.next_at_us <= %(now)s
"""
_READ = """
    SELECT * FROM webhook_delivery WHERE endpoint_id = %s AND position > %s
    ORDER BY position LIMIT %s
"""
_READ_NEWEST = """
    SELECT * FROM webhook_delivery WHERE endpoint_id = %s AND position < %s AND position > %s
    ORDER BY position DESC LIMIT %s
"""
_LAST = """
    SELECT * FROM webhook_delivery WHERE endpoint_id = %s ORDER BY position DESC LIMIT 1
"""
_DUE = """
    SELECT * FROM webhook_delivery
    WHERE endpoint_id = %s AND outcome = 'waiting' AND next_at_us <= %s ORDER BY position LIMIT %s
"""
_COUNT = """
    SELECT count(*) FROM webhook_delivery
    WHERE endpoint_id = %(id)s AND position BETWEEN %(first)s AND %(last)s
"""
_AGAIN = """
    UPDATE webhook_delivery SET outcome = 'waiting', attempts = 0, first_at_us = %(now)s,
        next_at_us = %(now)s
    WHERE endpoint_id = %(id)s AND position BETWEEN %(first)s AND %(last)s
"""


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the telling of one fact to one endpoint went; `next_at_us` while it is waiting."""

    endpoint_id: str
    position: int
    attempts: int
    outcome: Outcome
    answer: int | None  # the last HTTP status
    error: str | None
    first_at_us: int
    last_at_us: int
    next_at_us: int | None


def record(
    connection: Connection,
    endpoint_id: str,
    position: int,
    *,
    attempts: int,
    outcome: Outcome,
    answer: int | None,
    error: str | None,
    now_us: int,
    next_at_us: int | None,
) -> None:
    """Note one attempt, over the one before; `next_at_us` is None unless the outcome is waiting."""
    connection.execute(
        _RECORD,
        {
            "id": endpoint_id,
            "position": position,
            "attempts": attempts,
            "outcome": outcome,
            "answer": answer,
            "error": error,
            "now": now_us,
            "next": next_at_us,
        },
    )


def claim(
    connection: Connection,
    endpoint_id: str,
    position: int,
    attempts: int,
    now_us: int,
    *,
    next_at_us: int,
) -> bool:
    """Note an attempt that is about to be made, after so many; False: somebody else makes it.
    `next_at_us`: when it is made again if nobody records how it went.
    """
    asked = {
        "id": endpoint_id,
        "position": position,
        "attempts": attempts,
        "now": now_us,
        "next": next_at_us,
    }
    return connection.execute(_CLAIM, asked).rowcount == 1


def read(connection: Connection, endpoint_id: str, after: int, limit: int) -> list[Delivery]:
    """In order of position; `after` is the last of the page before."""
    return _rows(connection, _READ, endpoint_id, after, limit)


def read_newest(
    connection: Connection, endpoint_id: str, before: int, since: int, limit: int
) -> list[Delivery]:
    """The newest first: positions in (since, before)."""
    return _rows(connection, _READ_NEWEST, endpoint_id, before, since, limit)


def read_last(connection: Connection, endpoint_id: str) -> Delivery | None:
    """The latest fact that the endpoint was told, or is being told."""
    found = _rows(connection, _LAST, endpoint_id)
    return found[0] if found else None


def read_due(connection: Connection, endpoint_id: str, now_us: int, limit: int) -> list[Delivery]:
    """What is to be told again by now, in order."""
    return _rows(connection, _DUE, endpoint_id, now_us, limit)


def tell_again(
    connection: Connection, endpoint_id: str, first: int, last: int, now_us: int, count_max: int
) -> int:
    """Have what was told between two positions told again; how many, and none if too many."""
    asked = {"id": endpoint_id, "first": first, "last": last, "now": now_us}
    row = connection.execute(_COUNT, asked).fetchone()
    assert row is not None
    if row[0] <= count_max:
        connection.execute(_AGAIN, asked)
    return int(row[0])


def _rows(connection: Connection, sql: LiteralString, *asked: str | int) -> list[Delivery]:
    with connection.cursor(row_factory=class_row(Delivery)) as cursor:
        return cursor.execute(sql, asked).fetchall()
