"""Which leases have a turn to take, and what each fact of a lease did to the books.

Reads over the leases view, the log and the books; it has no tables of its own. What is listed may
have a turn to take, and nothing else has: whether it does is decided from the lease itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from domain.record import dataclass
from projections.runner import Connection

_WATCHED = """
    SELECT lease_id, node_id, state FROM proj_leases.lease
    WHERE opened_position IS NOT NULL AND settled_position IS NULL
        AND state IN ('active', 'degraded') AND (node_id, position) > (%(node)s, %(after)s)
    ORDER BY node_id, position LIMIT %(limit)s
"""
_ENDING = """
    SELECT lease_id, position FROM proj_leases.lease
    WHERE settled_position IS NULL AND state IN ('active', 'degraded', 'reclaiming')
        AND term_end_us IS NULL AND funds_end_us <= %(until)s AND funds_end_us > %(now)s
        AND position > %(after)s
    ORDER BY position LIMIT %(limit)s
"""
_UNREACHABLE = """
    SELECT lease_id, position FROM proj_leases.lease
    WHERE close_code = 10004 AND revised_code IS NULL AND closed_at_us > %(since)s
        AND position > %(after)s
    ORDER BY position LIMIT %(limit)s
"""
_SETTLED = """
    SELECT lease_id FROM proj_leases.lease
    WHERE settled_position IS NOT NULL AND archived_position IS NULL
        AND settled_at_us <= %(until)s AND state IN ('settled', 'resolved')
    ORDER BY settled_at_us LIMIT %(limit)s
"""
_STEPS = """
    SELECT h.position, h.version, h.topic, h.at_us, h.state, e.recorded_us,
        convert_from(e.state, 'UTF8') AS body,
        coalesce((
            SELECT json_agg(json_build_array(a.name, p.asset, p.units[n.n]::text)
                ORDER BY p.asset, n.n)
            FROM public.posting p CROSS JOIN LATERAL generate_subscripts(p.accounts, 1) AS n(n)
            JOIN public.account a ON a.id = p.accounts[n.n] WHERE p.position = h.position),
            '[]'::json)::text AS money
    FROM proj_leases.lease_history h
    JOIN public.market_events e ON e.notification_id = h.position
    WHERE h.lease_id = %(id)s AND h.position > %(after)s ORDER BY h.position LIMIT %(limit)s
"""
_STATE_BEFORE = """
    SELECT state FROM proj_leases.lease_history
    WHERE lease_id = %(id)s AND position <= %(at)s ORDER BY position DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Watched:
    """A lease whose node has to report."""

    lease_id: str
    node_id: str
    state: str


@dataclass(frozen=True, slots=True)
class Step:
    """One fact of a lease: the state after it, its body, and its lines (account, asset, units)."""

    position: int
    version: int
    topic: str
    at_us: int
    state: str
    recorded_us: int
    body: dict[str, Any]
    money: list[tuple[str, str, int]]


def read_watched(
    connection: Connection, node_id: str, after: int, limit: int
) -> tuple[list[Watched], int]:
    """Leases that run, by node, after a place in that order; and the last one's position."""
    sql = _WATCHED.replace("state FROM", "state, position FROM", 1)
    params = {"node": node_id, "after": after, "limit": limit}
    rows = connection.execute(sql.encode(), params).fetchall()
    return [Watched(*row[:3]) for row in rows], rows[-1][3] if rows else after


def read_ending(connection: Connection, now_us: int, until_us: int, limit: int) -> Iterator[str]:
    """Open-ended leases whose funds end in (now, until], so many read together."""
    return _all(connection, _ENDING, limit, now=now_us, until=until_us)


def read_unreachable(connection: Connection, since_us: int, limit: int) -> Iterator[str]:
    """Leases closed as unreachable after a moment, with the fault not revised."""
    return _all(connection, _UNREACHABLE, limit, since=since_us)


def _all(connection: Connection, sql: str, limit: int, **params: int) -> Iterator[str]:
    """Page by page: those that were looked at stay, and must keep no others from their turn."""
    after = -1
    while True:
        found = {**params, "after": after, "limit": limit}
        rows = connection.execute(sql.encode(), found).fetchall()
        yield from (str(row[0]) for row in rows)
        if len(rows) < limit:
            return
        after = rows[-1][1]


def read_settled(connection: Connection, until_us: int, limit: int) -> list[str]:
    """Leases settled up to a moment that are not archived, the oldest first."""
    return _ids(connection, _SETTLED, until=until_us, limit=limit)


def read_steps(
    connection: Connection, lease_id: str, *, after: int = 0, limit: int = 100
) -> tuple[str | None, list[Step]]:
    """The state before a page of facts, and the facts in order."""
    params = {"id": lease_id, "after": after, "limit": limit}
    rows = connection.execute(_STEPS.encode(), params).fetchall()
    before = connection.execute(_STATE_BEFORE.encode(), {"id": lease_id, "at": after}).fetchone()
    return None if before is None else before[0], [_step(row) for row in rows]


def _step(row: Sequence[Any]) -> Step:
    position, version, topic, at_us, state, recorded_us, body, money = row
    lines = [(name, asset, int(units)) for name, asset, units in json.loads(money)]
    return Step(position, version, topic, at_us, state, recorded_us, json.loads(body), lines)


def _ids(connection: Connection, sql: str, **params: int) -> list[str]:
    return [row[0] for row in connection.execute(sql.encode(), params).fetchall()]
