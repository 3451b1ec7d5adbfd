"""The rows of both logs as PostgreSQL has them, each hashed anew and stepped in a walk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg

from ledger.log.chain import market_leaf, usage_leaf
from ledger.tree.walk import Walk

Connection = psycopg.Connection[Any]
Row = tuple[Any, ...]
GROUP_ROWS = 1_000
"""Rows fetched together."""
TO_THE_END = 2**63 - 1

_MARKET = """
    SELECT notification_id, originator_id, originator_version, topic, state, leaf, chain,
        recorded_us
    FROM market_events WHERE notification_id <= %s ORDER BY notification_id
"""
_USAGE = """
    SELECT lane, position, node_id, node_seq, name, body, leaf, chain, flags, recorded_us
    FROM usage_event WHERE lane = %s AND position <= %s ORDER BY position
"""


def market(conn: Connection, walk: Walk, last: int = TO_THE_END) -> Iterator[Row]:
    """The market log from its first row; each is told after the walk took it. Raises RowWrong."""
    for row in _stream(conn, _MARKET, (last,)):
        position, stream, version, name, body, leaf, chain, _ = row
        walk.step(position, market_leaf(stream, version, name, body), leaf, chain)
        yield row


def usage(conn: Connection, walk: Walk, lane: int, last: int = TO_THE_END) -> Iterator[Row]:
    """One lane of the usage log, likewise."""
    for row in _stream(conn, _USAGE, (lane, last)):
        lane, position, node, number, name, body, leaf, chain, _, _ = row
        walk.step(position, usage_leaf(lane, node, number, body, name.encode()), leaf, chain)
        yield row


def _stream(conn: Connection, query: str, parameters: tuple[int, ...]) -> Iterator[Row]:
    """By a cursor on the server."""
    with conn.cursor("rows", binary=True) as cursor:
        cursor.itersize = GROUP_ROWS
        yield from cursor.execute(query.encode(), parameters)
