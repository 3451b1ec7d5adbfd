"""How much of the usage in a stretch of the log has the renter signed for, and what is in dispute?

    matched + unconfirmed + contested == gpu_us                       accrual by accrual
    summed over all of a lease == domain/lease/countersign.py `compare`

A signature says how much in all up to a moment, so what is signed is taken as the earliest usage of
the lease. Accruals that end by that moment and are not covered are contested; later ones are
unconfirmed. Disputed usage is counted beside this: a dispute is about a charge. Needs the usage,
leases, countersigned and disputes views.
"""

from __future__ import annotations

from typing import Any

from domain.record import dataclass
from projections import read
from projections.metering.usage import _where
from projections.runner import Connection


@dataclass(frozen=True, slots=True)
class Agreed:
    """GPU-microseconds; matched, unconfirmed and contested sum to all of the usage asked for."""

    lease_id: str | None  # None: of all of them together
    matched: int
    unconfirmed: int
    contested: int
    disputed: int


_AGREED = """WITH chosen AS (
        SELECT position, lease_id, gpu_us FROM proj_usage.accrual WHERE {where}
    ), signed AS (
        SELECT l.lease_id, s.gpu_us, (
            SELECT coalesce(sum(gpu_us), 0) FROM proj_usage.accrual a
            WHERE a.lease_id = l.lease_id AND a.until_us <= s.until_us
                AND a.position <= %(until_position)s) AS metered
        FROM (SELECT DISTINCT lease_id FROM chosen) l CROSS JOIN LATERAL (
            SELECT gpu_us, until_us FROM proj_countersigned.signature
            WHERE lease_id = l.lease_id AND position <= %(until_position)s
            ORDER BY position DESC LIMIT 1) s
    ), parts AS (
        SELECT c.position, c.gpu_us,
            greatest(0, least(h.gpu_us, s.gpu_us, s.metered) - h.gpu_us + c.gpu_us) AS matched,
            greatest(0, h.gpu_us - greatest(h.gpu_us - c.gpu_us, s.metered)) AS unconfirmed
        FROM chosen c JOIN signed s ON s.lease_id = c.lease_id
        JOIN proj_leases.lease_history h
            ON h.lease_id = c.lease_id AND h.position = c.position
    )
    SELECT {lease_id} AS lease_id, coalesce(sum(p.matched), 0)::bigint AS matched,
        coalesce(sum(coalesce(p.unconfirmed, c.gpu_us)), 0)::bigint AS unconfirmed,
        coalesce(sum(p.gpu_us - p.matched - p.unconfirmed), 0)::bigint AS contested,
        coalesce(sum(c.gpu_us) FILTER (WHERE EXISTS (
            SELECT FROM proj_disputes.disputed_line l
            JOIN proj_disputes.dispute d ON d.dispute_id = l.dispute_id
            WHERE l.position = c.position AND d.position <= %(until_position)s
                AND coalesce(d.resolved_position > %(until_position)s, true)
        )), 0)::bigint AS disputed
    FROM chosen c LEFT JOIN parts p ON p.position = c.position{group_by}"""


def read_agreed(connection: Connection, until_position: int, **filters: Any) -> Agreed:
    """Of the accruals that pass `filters` (those of `projections/metering/usage.py`), as of a
    position.
    """
    chosen = {**filters, "until_position": until_position}
    sql = _AGREED.format(where=_where(chosen), lease_id="NULL::text", group_by="")
    found = read.one(connection, Agreed, sql, **chosen)
    assert found is not None
    return found


def read_agreed_by_lease(
    connection: Connection, until_position: int, lease_ids: list[str], **filters: Any
) -> dict[str, Agreed]:
    """The same for each of these leases that has such accruals."""
    chosen = {**filters, "until_position": until_position}
    where = f"{_where(chosen)} AND lease_id = ANY(%(lease_ids)s)"
    sql = _AGREED.format(where=where, lease_id="c.lease_id", group_by=" GROUP BY c.lease_id")
    rows = read.many(connection, Agreed, sql, **chosen, lease_ids=lease_ids)
    return {str(row.lease_id): row for row in rows}
