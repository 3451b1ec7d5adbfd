"""How the nodes of a pool are, in one look. Tables: those of pools, fleet, usage and leases."""

from __future__ import annotations

from domain.record import dataclass
from projections import read
from projections.runner import Connection


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """`is_away`: it says so itself, by a maintenance that was announced for now."""

    node_id: str
    phase: str
    quarantined: bool
    is_away: bool
    role: str | None
    reported_us: int | None
    degraded_leases: int


_HEALTHS = """
    SELECT n.node_id, f.phase, f.quarantined,
        EXISTS (SELECT 1 FROM proj_fleet.maintenance m WHERE m.node_id = n.node_id
            AND m.from_us <= %(now)s AND least(m.until_us, m.cancelled_at_us) > %(now)s)
            AS is_away,
        r.role, u.last_recorded_us AS reported_us,
        (SELECT count(*)::int FROM proj_leases.lease l
            WHERE l.node_id = n.node_id AND l.settled_position IS NULL AND l.state = 'degraded')
            AS degraded_leases
    FROM proj_pools.node n JOIN proj_fleet.node f ON f.node_id = n.node_id
    LEFT JOIN proj_fleet.role r ON r.node_id = n.node_id
    LEFT JOIN proj_usage.node_reports u ON u.node_id = n.node_id
    WHERE n.pool_id = %(pool)s ORDER BY n.position
"""


def read_node_healths(connection: Connection, pool_id: str, now_us: int) -> list[NodeHealth]:
    """Every node of a pool, in the order in which they were added."""
    return read.many(connection, NodeHealth, _HEALTHS, pool=pool_id, now=now_us)
