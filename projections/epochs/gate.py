"""Who still has something to say about an epoch that is over? The leases and nodes it may wait for.

Set-based, at most `limit` names each. Tables: those of the leases, the fleet and the usage.
"""

from __future__ import annotations

from domain.record import dataclass
from projections import read
from projections.runner import Connection

# An accrual found here is enough to let a lease go; one that is not is asked of the lease itself.
_LEASES = """
    SELECT l.lease_id FROM proj_leases.lease l
    LEFT JOIN LATERAL (
        SELECT a.until_us FROM proj_usage.accrual a WHERE a.lease_id = l.lease_id
        ORDER BY a.position DESC LIMIT 1) a ON true
    WHERE l.settled_position IS NULL AND l.opened_at_us < %(end)s
        AND coalesce(a.until_us, 0) < %(end)s AND l.lease_id > %(after)s
    ORDER BY l.lease_id LIMIT %(limit)s
"""
_NODES = """
    SELECT n.node_id, r.last_end_us, count(*) OVER () AS nodes
    FROM proj_fleet.node n JOIN proj_usage.node_reports r ON r.node_id = n.node_id
    WHERE n.phase = 'active' AND NOT n.quarantined
        AND r.last_end_us BETWEEN 1 AND %(end)s - 1 AND r.last_recorded_us > %(silent)s
        AND NOT EXISTS (SELECT FROM proj_fleet.maintenance m
            WHERE m.node_id = n.node_id AND m.from_us <= %(end)s
                AND least(m.until_us, m.cancelled_at_us) > %(end)s)
    ORDER BY n.node_id LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class BehindNode:
    """A node whose reports do not reach the end; `nodes`: how many such there are altogether."""

    node_id: str
    last_end_us: int
    nodes: int


def read_unaccrued(connection: Connection, end_us: int, *, after: str, limit: int) -> list[str]:
    """Leases opened before `end_us` that may not be accrued up to it, by id."""
    rows = connection.execute(_LEASES, {"end": end_us, "after": after, "limit": limit})
    return [lease_id for (lease_id,) in rows.fetchall()]


def read_behind(
    connection: Connection, end_us: int, *, silent_us: int, limit: int
) -> list[BehindNode]:
    """Active nodes that report, but not up to `end_us` yet.

    One that nothing came from after `silent_us` is offline and not waited for, nor is one that is
    away at `end_us`: not active, quarantined, or in a maintenance that was announced.
    """
    return read.many(connection, BehindNode, _NODES, end=end_us, silent=silent_us, limit=limit)
