"""What do storage nodes and the other resources of leases cost, and what is waiting?

    sum(charge of the accruals of a meter) == its charge;   measured + refused == what rows told
    charge + what is left of its hold == what was held for it, until the rest goes back

Bills are added up elsewhere (`projections/income/movements.py`); here is what each line is made
of. The signed rows themselves are read from the usage log; which of them counted is in the facts.
"""

from __future__ import annotations

from domain.duration import HOUR_US
from domain.record import dataclass
from projections import read
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.storage_node (
        region_id text COLLATE "C", number int, account_id text COLLATE "C" NOT NULL,
        provider_id text COLLATE "C" NOT NULL, storage_class text NOT NULL,
        per_hour_units bigint NOT NULL, tariff_version int NOT NULL, at_us bigint NOT NULL,
        ready_at_us bigint, removed_at_us bigint, charged_until_us bigint NOT NULL,
        charge_units bigint NOT NULL, owed_units bigint NOT NULL, position bigint NOT NULL,
        PRIMARY KEY (region_id, number));
    CREATE TABLE own.resource (
        lease_id text COLLATE "C", meter text COLLATE "C", unit text NOT NULL,
        node_id text COLLATE "C" NOT NULL, account_id text COLLATE "C" NOT NULL,
        provider_account_id text COLLATE "C" NOT NULL, client_id text COLLATE "C" NOT NULL,
        project_id text NOT NULL, end_user_ref text NOT NULL, through_position bigint NOT NULL,
        rows bigint NOT NULL, measured numeric NOT NULL, quantity bigint NOT NULL,
        price_units bigint NOT NULL, per bigint NOT NULL,
        tariff_version int NOT NULL, charge_units bigint NOT NULL, fee_units bigint NOT NULL,
        provider_units bigint NOT NULL, platform_units bigint NOT NULL, burn_units bigint NOT NULL,
        at_us bigint NOT NULL,
        position bigint NOT NULL, PRIMARY KEY (lease_id, meter)) WITH (fillfactor = 70);
    COMMENT ON TABLE own.resource IS 'Each meter of each lease: totals, as of its last accrual';
    CREATE TABLE own.accrual (
        lease_id text COLLATE "C", meter text COLLATE "C", through_position bigint,
        lane int NOT NULL, after_position bigint NOT NULL, rows int NOT NULL,
        measured numeric NOT NULL, quantity bigint NOT NULL,
        charge_units bigint NOT NULL, at_us bigint NOT NULL, position bigint NOT NULL,
        PRIMARY KEY (lease_id, meter, through_position));
    COMMENT ON TABLE own.accrual IS 'What each fact added; it judged (after_position, through]';
    CREATE TABLE own.refused (
        lease_id text COLLATE "C", meter text COLLATE "C", usage_position bigint, rule text,
        quantity numeric NOT NULL, position bigint NOT NULL,
        PRIMARY KEY (lease_id, meter, usage_position, rule));
    COMMENT ON TABLE own.refused IS 'What of a report did not count, in the units of its rows';
    CREATE TABLE own.hold (
        lease_id text COLLATE "C", meter text COLLATE "C", units bigint NOT NULL,
        is_returned boolean NOT NULL, position bigint NOT NULL, PRIMARY KEY (lease_id, meter));
    COMMENT ON TABLE own.hold IS 'What a renter agreed to pay at most, and is held for it';
"""

_INDEXES = """
    CREATE INDEX ON own.storage_node (account_id) WHERE removed_at_us IS NULL;
    CREATE INDEX ON own.resource (account_id, lease_id);
    CREATE INDEX ON own.hold (position) WHERE NOT is_returned;
"""

_RULES = (
    Rule(
        ("storage_node.provisioned.v1",),
        "region_id text, number int, account_id text, provider_id text, storage_class text,"
        " per_hour json, tariff_version int, at_us bigint",
        """INSERT INTO own.storage_node
        SELECT region_id, number, account_id, provider_id, storage_class,
            (per_hour->>'units')::bigint, tariff_version, at_us, NULL, NULL, at_us, 0, 0, position
        FROM facts""",
    ),
    Rule(
        ("storage_node.charged.v1",),
        "region_id text, number int, until_us bigint, charge_new json, owed json",
        """UPDATE own.storage_node s SET charged_until_us = f.until_us,
            charge_units = s.charge_units + f.charge, owed_units = s.owed_units + f.owed
        FROM (
            SELECT region_id, number, max(until_us) AS until_us,
                sum((charge_new->>'units')::bigint)::bigint AS charge,
                sum((owed->>'units')::bigint)::bigint AS owed
            FROM facts GROUP BY 1, 2
        ) f WHERE (s.region_id, s.number) = (f.region_id, f.number)""",
    ),
    Rule(
        ("storage_node.ready.v1", "storage_node.removed.v1"),
        "region_id text, number int, at_us bigint",
        """UPDATE own.storage_node s SET ready_at_us = coalesce(f.ready_us, s.ready_at_us),
            removed_at_us = coalesce(f.removed_us, s.removed_at_us)
        FROM (
            SELECT region_id, number,
                max(at_us) FILTER (WHERE topic = 'storage_node.ready.v1') AS ready_us,
                max(at_us) FILTER (WHERE topic = 'storage_node.removed.v1') AS removed_us
            FROM facts GROUP BY 1, 2
        ) f WHERE (s.region_id, s.number) = (f.region_id, f.number)""",
    ),
    Rule(
        ("resource.accrued.v1",),
        "lease_id text, meter text, unit text, node_id text, account_id text,"
        " provider_account_id text, client_id text, project_id text, end_user_ref text,"
        " lane int, after_position bigint, through_position bigint, rows int, measured numeric,"
        " quantity bigint, quantity_new bigint, rate json,"
        " tariff_version int, charge json, charge_new json, parts json, refused json,"
        " at_us bigint",
        """, told AS (
            SELECT f.*, measured - coalesce(
                lag(measured) OVER (PARTITION BY lease_id, meter ORDER BY position),
                (SELECT r.measured FROM own.resource r
                    WHERE (r.lease_id, r.meter) = (f.lease_id, f.meter)), 0) AS measured_new
            FROM facts f
        ), added AS (
            INSERT INTO own.accrual
            SELECT lease_id, meter, through_position, lane, after_position, rows, measured_new,
                quantity_new, (charge_new->>'units')::bigint, at_us, position
            FROM told
        ), lost AS (
            INSERT INTO own.refused
            SELECT f.lease_id, f.meter, (r->>'position')::bigint, r->>'rule',
                (r->>'quantity')::numeric, f.position
            FROM facts f CROSS JOIN LATERAL json_array_elements(f.refused) r
        )
        INSERT INTO own.resource AS t
        SELECT lease_id, meter, unit, node_id, account_id, provider_account_id, client_id,
            project_id, end_user_ref, through_position, all_rows, measured, quantity,
            (rate->'price'->>'units')::bigint, (rate->>'per')::bigint, tariff_version,
            (charge->>'units')::bigint, (parts->>'fee')::bigint, (parts->>'provider')::bigint,
            (parts->>'platform')::bigint, (parts->>'burn')::bigint, at_us,
            position
        FROM (
            SELECT f.*, row_number() OVER (last_first) AS n,
                (sum(rows) OVER (meters))::bigint AS all_rows
            FROM facts f
            WINDOW meters AS (PARTITION BY lease_id, meter),
                last_first AS (PARTITION BY lease_id, meter ORDER BY position DESC)
        ) g WHERE n = 1
        ON CONFLICT (lease_id, meter) DO UPDATE SET
            through_position = excluded.through_position, rows = t.rows + excluded.rows,
            measured = excluded.measured,
            quantity = excluded.quantity, charge_units = excluded.charge_units,
            fee_units = excluded.fee_units, provider_units = excluded.provider_units,
            platform_units = excluded.platform_units, burn_units = excluded.burn_units,
            at_us = excluded.at_us, position = excluded.position""",
    ),
    Rule(
        ("resource.held.v1",),
        "lease_id text, meter text, parts json",
        """INSERT INTO own.hold
        SELECT lease_id, meter, (
            SELECT sum((p->'amount'->>'units')::bigint) FROM json_array_elements(parts) p),
            false, position
        FROM facts""",
    ),
    Rule(
        ("resource.returned.v1",),
        "lease_id text, meter text",
        """UPDATE own.hold h SET is_returned = true FROM facts f
        WHERE (h.lease_id, h.meter) = (f.lease_id, f.meter)""",
    ),
)

METERS = Projection("meters", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class StorageNode:
    """`charge_units` and `owed_units` are totals."""

    region_id: str
    number: int
    account_id: str
    provider_id: str
    storage_class: str
    per_hour_units: int
    tariff_version: int
    at_us: int
    ready_at_us: int | None
    removed_at_us: int | None
    charged_until_us: int
    charge_units: int
    owed_units: int
    position: int


@dataclass(frozen=True, slots=True)
class Resource:
    """Totals of one meter of one lease; `price_units` for every `per` units. `measured` is the
    sum of rows: microseconds of processor, byte-seconds or bytes.
    """

    lease_id: str
    meter: str
    unit: str
    node_id: str
    account_id: str
    provider_account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    through_position: int
    rows: int
    measured: int
    quantity: int
    price_units: int
    per: int
    tariff_version: int
    charge_units: int
    fee_units: int
    provider_units: int
    platform_units: int
    burn_units: int
    at_us: int
    position: int
    agreed_units: int | None


@dataclass(frozen=True, slots=True)
class Accrual:
    """What one fact added: the rows of the meter in reports (after_position, through_position]."""

    lease_id: str
    meter: str
    through_position: int
    lane: int
    after_position: int
    rows: int
    measured: int
    quantity: int
    charge_units: int
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Refused:
    """What of a report's rows of one meter did not count, and the rule."""

    usage_position: int
    rule: str
    quantity: int
    position: int


def read_storage_nodes(connection: Connection, region_id: str) -> list[StorageNode]:
    """Every storage node a region has had, the last one first."""
    sql = """SELECT * FROM proj_meters.storage_node WHERE region_id = %(region)s
        ORDER BY number DESC LIMIT 100"""
    return read.many(connection, StorageNode, sql, region=region_id)


def read_storage_regions(connection: Connection, account_id: str | None = None) -> list[str]:
    """Regions that have a storage node now."""
    sql = """SELECT region_id FROM proj_meters.storage_node WHERE removed_at_us IS NULL
        AND (%s::text IS NULL OR account_id = %s) ORDER BY region_id"""
    return [str(row[0]) for row in connection.execute(sql, (account_id, account_id))]


_RESOURCE = """SELECT r.*, h.units AS agreed_units FROM proj_meters.resource r
    LEFT JOIN proj_meters.hold h ON h.lease_id = r.lease_id AND h.meter = r.meter"""


def read_resources(connection: Connection, lease_id: str) -> list[Resource]:
    """The meters of a lease, by name."""
    sql = f"{_RESOURCE} WHERE r.lease_id = %(lease)s ORDER BY r.meter"
    return read.many(connection, Resource, sql, lease=lease_id)


def read_accruals(
    connection: Connection, lease_id: str, meter: str, *, after: int = 0, limit: int = 50
) -> list[Accrual]:
    """The facts of one meter in order; `after` is the last `through_position` before."""
    sql = """SELECT * FROM proj_meters.accrual WHERE lease_id = %(lease)s AND meter = %(meter)s
        AND through_position > %(after)s ORDER BY through_position LIMIT %(limit)s"""
    return read.many(
        connection, Accrual, sql, lease=lease_id, meter=meter, after=after, limit=limit
    )


def read_refused(
    connection: Connection, lease_id: str, meter: str, after: int, until: int
) -> list[Refused]:
    """What did not count of reports at (after, until] of the lane, in order."""
    sql = """SELECT usage_position, rule, quantity, position FROM proj_meters.refused
        WHERE lease_id = %(lease)s AND meter = %(meter)s
            AND usage_position > %(after)s AND usage_position <= %(until)s
        ORDER BY usage_position, rule"""
    return read.many(
        connection, Refused, sql, lease=lease_id, meter=meter, after=after, until=until
    )


def read_due(
    connection: Connection, now_us: int, *, after: int = 0, limit: int = 500
) -> list[tuple[int, str, str]]:
    """(position, lease, meter) of holds whose lease's node has signed rows that nobody judged: once
    an hour while it runs, and when it is over.
    """
    sql = """SELECT h.position, h.lease_id, h.meter FROM proj_meters.hold h
        JOIN proj_leases.lease s ON s.lease_id = h.lease_id
        JOIN proj_resources.reported u ON u.lease_id = h.lease_id AND u.node_id = s.node_id
        LEFT JOIN proj_meters.resource r ON r.lease_id = h.lease_id AND r.meter = h.meter
        WHERE NOT h.is_returned AND h.position > %(after)s
            AND u.last_position > coalesce(r.through_position, 0)
            AND CASE h.meter WHEN 'cpu' THEN u.cpu_known_us WHEN 'memory' THEN u.memory_known_us
                WHEN 'storage' THEN u.storage_known_us ELSE u.network_known_us END > 0
            AND (s.closed_at_us IS NOT NULL OR s.settled_position IS NOT NULL
                OR coalesce(r.at_us, s.opened_at_us) <= %(hour_ago)s)
        ORDER BY h.position LIMIT %(limit)s"""
    values = {"after": after, "limit": limit, "hour_ago": now_us - HOUR_US}
    return [(row[0], row[1], row[2]) for row in connection.execute(sql.encode(), values)]


def read_holds_due(
    connection: Connection, closed_until_us: int, *, after: int = 0, limit: int = 500
) -> list[tuple[int, str, str]]:
    """(position, lease, meter) of holds whose lease was closed by then, or never ran, and is over:
    what is left of them goes back, if anything is.
    """
    sql = """SELECT h.position, h.lease_id, h.meter FROM proj_meters.hold h
        JOIN proj_leases.lease s ON s.lease_id = h.lease_id AND s.settled_position IS NOT NULL
            AND (s.opened_at_us IS NULL OR s.closed_at_us <= %(until)s)
        WHERE NOT h.is_returned AND h.position > %(after)s
        ORDER BY h.position LIMIT %(limit)s"""
    values = {"until": closed_until_us, "after": after, "limit": limit}
    return [(row[0], row[1], row[2]) for row in connection.execute(sql.encode(), values)]


def read_open_holds(connection: Connection, account_id: str) -> list[tuple[str, str]]:
    """(lease, meter) for which credits of the account are still held, in order."""
    sql = """SELECT h.lease_id, h.meter FROM proj_meters.hold h
        JOIN proj_leases.lease s ON s.lease_id = h.lease_id AND s.account_id = %s
        LEFT JOIN proj_meters.resource r ON r.lease_id = h.lease_id AND r.meter = h.meter
        WHERE NOT h.is_returned AND h.units > coalesce(r.charge_units, 0)
        ORDER BY h.position, h.meter"""
    return [(row[0], row[1]) for row in connection.execute(sql, (account_id,))]
