"""What one account was charged in a stretch of the log, charge by charge, to be written to a file.

    sum(units of the charges) == -(what moved on the account's books for the kinds of a charge)

Every row is one fact and kind: a lease hour, a federated fee, a meter, a day of devices, or an
adjustment that gave something back (units below zero). Read by a cursor on the server, so a month
of any length costs the same memory. Needs the movements, usage, leases, fleet and invoices views.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psycopg.rows import class_row

from projections.income.invoices import KINDS_OF
from projections.runner import Connection

KINDS = (*KINDS_OF["charges"], "adjustment")
BATCH_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Charge:
    """One charge. `units`: micro-credits this account paid, below zero given back; `body` is the
    fact. What only leases have is None elsewhere; `price_units` is per GPU-hour, on own
    hardware the fee.
    """

    position: int
    kind: str
    units: int
    topic: str
    recorded_us: int
    body: dict[str, Any]
    from_us: int | None
    price_units: int | None
    gpu_class: str | None
    region_id: str | None
    region_name: str | None
    credit_note: str | None = None
    provider_id: str | None = None


_CHARGES = """
    SELECT o.position, o.kind, o.units, e.topic, e.recorded_us,
        convert_from(e.state, 'UTF8')::json AS body, u.from_us,
        CASE WHEN l.own THEN l.fee_units ELSE l.price_units END AS price_units, l.gpu_class,
        n.region_id, r.name AS region_name, (
            SELECT d.number FROM proj_invoices.document d WHERE d.account_id = %(party)s
                AND d.cause = 'adjustment:' ||
                    (convert_from(e.state, 'UTF8')::json->>'adjustment_id')
            ORDER BY d.position LIMIT 1) AS credit_note, l.provider_id
    FROM (
        SELECT m.position, m.kind,
            -sum(CASE b.part WHEN 'owed' THEN -m.change ELSE m.change END)::bigint AS units
        FROM proj_movements.book b JOIN proj_movements.movement m ON m.book = b.book
        WHERE b.party = %(party)s AND m.kind = ANY(%(kinds)s)
            AND m.position > %(first)s AND m.position <= %(last)s
        GROUP BY m.position, m.kind) o
    JOIN public.market_events e ON e.notification_id = o.position
    LEFT JOIN proj_usage.accrual u ON u.position = o.position
    LEFT JOIN proj_leases.lease l
        ON l.lease_id = convert_from(e.state, 'UTF8')::json->>'lease_id'
    LEFT JOIN proj_fleet.node n ON n.node_id = l.node_id
    LEFT JOIN proj_fleet.region r ON r.region_id = n.region_id
    WHERE o.units <> 0 ORDER BY o.position, o.kind
"""


def read_charges(
    connection: Connection, account_id: str, first: int, last: int
) -> Iterator[Charge]:
    """Charges at positions (first, last], in order. The connection must be in a transaction.

    What an adjustment took back from earnings is no charge, so a provider's are left out.
    """
    with connection.cursor("charges", row_factory=class_row(Charge)) as cursor:
        cursor.itersize = BATCH_ROWS
        cursor.execute(
            _CHARGES.encode(),
            {"party": account_id, "kinds": list(KINDS), "first": first, "last": last},
        )
        for each in cursor:
            takes_earnings = (
                each.kind == "adjustment"
                and each.body["account_id"] != account_id
                and each.body["provider_account_id"] == account_id
            )
            if not takes_earnings:
                yield each
