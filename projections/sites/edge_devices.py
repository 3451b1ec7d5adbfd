"""Which edge devices are there, in which state, and what did each day of them cost?"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.edge_device (
        device_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        region_id text COLLATE "C" NOT NULL, model text NOT NULL, first_day text NOT NULL,
        last_day text, at_us bigint NOT NULL, removed_at_us bigint, position bigint NOT NULL,
        active_at_us bigint);
    CREATE TABLE own.device_fee (
        account_id text COLLATE "C", day text COLLATE "C", devices int NOT NULL,
        fee_units bigint NOT NULL, tariff_version int, due_units bigint NOT NULL,
        charge_units bigint NOT NULL, owed_units bigint NOT NULL, at_us bigint NOT NULL,
        position bigint NOT NULL, PRIMARY KEY (account_id, day));
"""
_INDEXES = """
    CREATE INDEX ON own.edge_device (account_id, position);
    CREATE INDEX ON own.edge_device (region_id) WHERE removed_at_us IS NULL;
"""
_RULES = (
    Rule(
        ("edge_device.added.v1",),
        "device_id text, account_id text, region_id text, model text, first_day text, at_us bigint",
        """INSERT INTO own.edge_device
        SELECT device_id, account_id, region_id, model, first_day, NULL, at_us, NULL, position, NULL
        FROM facts""",
    ),
    Rule(
        ("edge_device.activated.v1",),
        "device_id text, at_us bigint",
        """UPDATE own.edge_device d SET active_at_us = f.at_us FROM facts f
        WHERE d.device_id = f.device_id""",
    ),
    Rule(
        ("edge_device.removed.v1",),
        "device_id text, last_day text, at_us bigint",
        """UPDATE own.edge_device d SET last_day = f.last_day, removed_at_us = f.at_us
        FROM facts f WHERE d.device_id = f.device_id""",
    ),
    Rule(
        ("edge_device.fee_charged.v1",),
        'account_id text, day text, "unique" int, fee_per_month json, tariff_version int, due json,'
        " charge json, owed json, at_us bigint",
        """INSERT INTO own.device_fee
        SELECT account_id, day, "unique", (fee_per_month->>'units')::bigint, tariff_version,
            (due->>'units')::bigint, (charge->>'units')::bigint, (owed->>'units')::bigint, at_us,
            position
        FROM facts""",
    ),
)

EDGE_DEVICES = Projection("edge_devices", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class EdgeDevice:
    """Days are UTC, YYYY-MM-DD; `last_day` None: not removed."""

    device_id: str
    account_id: str
    region_id: str
    model: str
    first_day: str
    last_day: str | None
    at_us: int
    removed_at_us: int | None
    position: int
    active_at_us: int | None


@dataclass(frozen=True, slots=True)
class DeviceFee:
    """The fee of one account and day; `due_units` is cumulative since the month began."""

    account_id: str
    day: str
    devices: int
    fee_units: int
    tariff_version: int | None
    due_units: int
    charge_units: int
    owed_units: int
    at_us: int
    position: int


def read_edge_devices(
    connection: Connection,
    *,
    account_id: str | None = None,
    region_id: str | None = None,
    after: int = 0,
    limit: int = 50,
) -> list[EdgeDevice]:
    """In the order in which they were added; removed ones too."""
    sql = """SELECT * FROM proj_edge_devices.edge_device WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        AND (%(region)s::text IS NULL OR region_id = %(region)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.many(
        connection, EdgeDevice, sql, account=account_id, region=region_id, after=after, limit=limit
    )


def count_edge_devices(connection: Connection, region_id: str) -> int:
    """How many edge devices are configured in a region."""
    sql = """SELECT count(*) FROM proj_edge_devices.edge_device
        WHERE region_id = %s AND removed_at_us IS NULL"""
    row = connection.execute(sql, (region_id,)).fetchone()
    return 0 if row is None else int(row[0])


def read_device_fees(
    connection: Connection,
    *,
    account_id: str | None = None,
    after: tuple[str, str] = ("", ""),
    limit: int = 50,
) -> list[DeviceFee]:
    """By account and day; `after` is both of the last one of the page before."""
    sql = """SELECT * FROM proj_edge_devices.device_fee WHERE (account_id, day) > (%(who)s, %(day)s)
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        ORDER BY account_id, day LIMIT %(limit)s"""
    return read.many(
        connection, DeviceFee, sql, account=account_id, who=after[0], day=after[1], limit=limit
    )


def read_accounts_with_devices(connection: Connection) -> list[str]:
    """Accounts that have a device which is not charged to its end."""
    sql = """SELECT DISTINCT d.account_id FROM proj_edge_devices.edge_device d
        LEFT JOIN (
            SELECT account_id, max(day) AS day FROM proj_edge_devices.device_fee GROUP BY 1
        ) f USING (account_id)
        WHERE d.last_day IS NULL OR d.last_day > coalesce(f.day, '')
        ORDER BY d.account_id"""
    return [str(row[0]) for row in connection.execute(sql)]
