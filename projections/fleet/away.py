"""When was a node away, and when did it mine? Away: not active, in quarantine, or in a window.

What no lease holds of its devices is unavailable while it is away, and not idle; a device that no
lease holds is mined, and not idle, while its provider states that the node mines (row C-10).
Tables: the fleet's.
"""

from __future__ import annotations

from collections import defaultdict

from domain.hardware.capacity import Span
from projections.runner import Connection

_AWAY = b"""
    SELECT node_id, at_us AS from_us, until_us FROM (
        SELECT *, coalesce(lead(at_us) OVER (PARTITION BY node_id ORDER BY position), %(to)s)
            AS until_us
        FROM proj_fleet.standing) s
    WHERE is_away AND at_us < until_us AND until_us > %(from)s
    UNION ALL
    SELECT node_id, from_us, least(until_us, cancelled_at_us) FROM proj_fleet.maintenance
    WHERE from_us < %(to)s AND until_us > %(from)s AND from_us < least(until_us, cancelled_at_us)
    ORDER BY 1, 2, 3
"""

_MINING = b"""
    SELECT node_id, at_us AS from_us, until_us FROM (
        SELECT *, coalesce(lead(at_us) OVER (PARTITION BY node_id ORDER BY position), %(to)s)
            AS until_us
        FROM proj_fleet.mining) m
    WHERE is_on AND at_us < until_us AND until_us > %(from)s
    ORDER BY 1, 2, 3
"""


def read_away(connection: Connection, from_us: int, to_us: int) -> dict[str, tuple[Span, ...]]:
    """By node, the stretches that touch [from_us, to_us); they may overlap and reach beyond it."""
    return _spans(connection, _AWAY, from_us, to_us)


def read_mining(connection: Connection, from_us: int, to_us: int) -> dict[str, tuple[Span, ...]]:
    """By node, the stretches that touch [from_us, to_us) in which it mines while nobody leases it;
    they may reach beyond it.
    """
    return _spans(connection, _MINING, from_us, to_us)


def _spans(
    connection: Connection, sql: bytes, from_us: int, to_us: int
) -> dict[str, tuple[Span, ...]]:
    found: defaultdict[str, list[Span]] = defaultdict(list)
    for node_id, start_us, until_us in connection.execute(sql, {"from": from_us, "to": to_us}):
        found[node_id].append(Span(start_us, until_us))
    return {node_id: tuple(spans) for node_id, spans in found.items()}
