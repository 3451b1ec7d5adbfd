"""Demand that no node met: leases that wait for one, and requests that were closed without one.

Tables: those of the leases' view. A request that names regions counts for each of them, any other
for the whole network (an empty region). Row K-11.
"""

from __future__ import annotations

from domain.lease.close_codes import NO_MATCH
from domain.record import dataclass
from projections import read
from projections.runner import Connection


@dataclass(frozen=True, slots=True)
class Unmet:
    """`waiting`: GPUs that are asked for now; `given_up`: GPUs of requests that ended so."""

    region_id: str
    waiting: int
    given_up: int


def read_unmet(connection: Connection, since_us: int) -> dict[str, Unmet]:
    """By region; "" for requests that name none. `since_us`: of those that were given up."""
    sql = f"""SELECT coalesce(p.region, '') AS region_id,
            coalesce(sum(l.gpu_count) FILTER (WHERE l.state = 'requested'), 0)::bigint AS waiting,
            coalesce(sum(l.gpu_count) FILTER (WHERE l.reserved_position IS NULL
                AND l.close_code = {NO_MATCH} AND l.closed_at_us >= %(since)s), 0)::bigint
                AS given_up
        FROM proj_leases.lease l LEFT JOIN LATERAL json_array_elements_text(
            CASE WHEN json_typeof(l.constraints->'regions') = 'array'
                THEN l.constraints->'regions' END) p(region) ON true
        WHERE l.state = 'requested'
            OR (l.reserved_position IS NULL AND l.close_code = {NO_MATCH})
        GROUP BY 1"""
    return {row.region_id: row for row in read.many(connection, Unmet, sql, since=since_us)}
