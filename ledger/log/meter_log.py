"""The meter log: usage of other resources than GPUs, stored as it was sent, once, in one order.

    leaf  = SHA-256(0x00 || lp4(account) || lp4(source) || lp4(id) || lp4(body))
    chain = SHA-256(chain before || leaf);   genesis = SHA-256("meter")

The body is the event in one form: JSON, keys sorted, no spaces; so the same event is the same bytes
whoever wrote them. Not the door (form is judged before) and not the bill (worth is judged after,
`domain/leasing/other_resources.py`). All decisions about an event (stored, duplicate, another
payload, overlap) are taken by the SQL function `meter_append` under the log's lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from ledger.log.chain import chain, lp4

GENESIS = sha256(b"meter").digest()
EVENTS_MAX = 1_000
"""Events of one append: everybody who sends waits for its lock."""

_APPEND = b"SELECT * FROM meter_append(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s) ORDER BY i"


class Status(IntEnum):
    """What became of one event; the numbers are those of `meter_append`."""

    STORED = 0
    DUPLICATE = 1
    ID_REUSED = 2
    OVERLAP = 3
    UNTIMELY = 4


@dataclass(frozen=True, slots=True)
class Item:
    """One well-formed event on its way into the log; `body` in the one form."""

    source: str
    event_id: str
    lease_id: str
    meter: str
    quantity: int
    from_us: int
    to_us: int
    route: str | None
    dataset: str | None
    body: bytes
    is_timely: bool


class Told(NamedTuple):
    """What became of one event; `position` of its (first) storing, or of the one in its way."""

    status: Status
    position: int | None


class Stored(NamedTuple):
    """One row of the log."""

    position: int
    account_id: str
    source: str
    event_id: str
    lease_id: str
    meter: str
    quantity: int
    from_us: int
    to_us: int
    leaf: bytes


class Head(NamedTuple):
    """Where the log stands."""

    position: int
    hash: bytes


def leaf_of(account_id: str, source: str, event_id: str, body: bytes) -> bytes:
    """The leaf of an event, from the bytes as stored."""
    parts = (account_id.encode(), source.encode(), event_id.encode(), body)
    return sha256(b"\0" + b"".join(map(lp4, parts))).digest()


def append(
    connection: psycopg.Connection[Any], account_id: str, items: Sequence[Item], now_us: int
) -> list[Told]:
    """Store what is new of one sender's events; what each became, in their order. All durable."""
    assert len(items) <= EVENTS_MAX, len(items)
    if not items:
        return []
    columns: list[list[Any]] = [
        [getattr(item, name) for item in items]
        for name in (
            "source",
            "event_id",
            "lease_id",
            "meter",
            "quantity",
            "from_us",
            "to_us",
            "route",
            "dataset",
            "body",
        )
    ]
    leaves = [leaf_of(account_id, item.source, item.event_id, item.body) for item in items]
    timely = [item.is_timely for item in items]
    with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(_APPEND, (account_id, *columns, leaves, timely, now_us)).fetchall()
    assert len(rows) == len(items), (len(rows), len(items))
    return [Told(Status(status), position) for _, status, position in rows]


def head(connection: psycopg.Connection[Any]) -> Head:
    """The last position and its chain."""
    row = connection.execute(b"SELECT pos, hash FROM meter_head").fetchone()
    assert row is not None
    return Head(row[0], bytes(row[1]))


def events_of(
    connection: psycopg.Connection[Any],
    lease_id: str,
    meter: str,
    after: int,
    until: int,
    limit: int,
) -> list[Stored]:
    """The first events of one meter of one lease at positions in (after, until], in order."""
    rows = connection.execute(
        b"SELECT position, account_id, source, event_id, lease_id, meter, quantity, from_us, to_us,"
        b" leaf FROM meter_event WHERE lease_id = %s AND meter = %s AND position > %s"
        b" AND position <= %s ORDER BY position LIMIT %s",
        (lease_id, meter, after, until, limit),
    )
    return [Stored(*row) for row in rows]


class Broken(Exception):
    """The meter log does not hold what its chain says."""


def verify(connection: psycopg.Connection[Any]) -> Head:
    """Recompute every leaf and the chain from the stored bytes. Raises Broken with the position."""
    with connection.transaction():
        told = head(connection)
        position, before = 0, GENESIS
        for row in _up_to(connection, told.position):
            position += 1
            leaf = leaf_of(row[1], row[2], row[3], bytes(row[4]))
            before = chain(before, leaf)
            if (row[0], bytes(row[5]), bytes(row[6])) != (position, leaf, before):
                raise Broken(f"meter log, position {position}")
        if told != (position, before):
            raise Broken(f"meter log: the head says {told.position}, there are {position}")
    return told


def _up_to(connection: psycopg.Connection[Any], last: int) -> Iterator[Any]:
    with connection.cursor(name="meter_log") as cursor:
        cursor.execute(
            "SELECT position, account_id, source, event_id, body, leaf, chain FROM meter_event"
            " WHERE position <= %s ORDER BY position",
            (last,),
        )
        yield from cursor
