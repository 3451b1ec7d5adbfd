"""Which edge devices are there, what do they run, and what did each day of them cost?

inference == what was told of the last deployment; "pending" while nothing was told of it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.edge_device (
        device_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        region_id text COLLATE "C" NOT NULL, model text NOT NULL, first_day text NOT NULL,
        last_day text, at_us bigint NOT NULL, removed_at_us bigint, position bigint NOT NULL,
        active_at_us bigint, name text NOT NULL, minion_id text NOT NULL, config text,
        revision int, deployment int, deployed_at_us bigint, inference text, exit_code bigint,
        inference_at_us bigint);
    CREATE TABLE own.device_config (
        region_id text COLLATE "C", name text COLLATE "C", revision int,
        account_id text COLLATE "C" NOT NULL, work jsonb NOT NULL, at_us bigint NOT NULL,
        position bigint NOT NULL, PRIMARY KEY (region_id, name, revision));
    CREATE TABLE own.device_fee (
        account_id text COLLATE "C", day text COLLATE "C", devices int NOT NULL,
        fee_units bigint NOT NULL, tariff_version int, due_units bigint NOT NULL,
        charge_units bigint NOT NULL, owed_units bigint NOT NULL, at_us bigint NOT NULL,
        position bigint NOT NULL, PRIMARY KEY (account_id, day));
"""
_INDEXES = """
    CREATE INDEX ON own.edge_device (account_id, position);
    CREATE INDEX ON own.edge_device (region_id) WHERE removed_at_us IS NULL;
    CREATE INDEX ON own.device_config (account_id, position);
"""
_RULES = (
    Rule(
        ("edge_device.added.v1",),
        "device_id text, account_id text, region_id text, name text, minion_id text, model text,"
        " first_day text, at_us bigint",
        """INSERT INTO own.edge_device (device_id, account_id, region_id, model, first_day, at_us,
            position, name, minion_id)
        SELECT device_id, account_id, region_id, model, first_day, at_us, position, name, minion_id
        FROM facts""",
    ),
    Rule(
        ("region.device_config_set.v1",),
        "region_id text, name text, revision int, account_id text, work jsonb, at_us bigint",
        """INSERT INTO own.device_config
        SELECT region_id, name, revision, account_id, work, at_us, position FROM facts""",
    ),
    Rule(
        ("edge_device.config_deployed.v1", "edge_device.inference_reported.v1"),
        "device_id text, config text, revision int, deployment int, status text, exit_code bigint,"
        " at_us bigint",
        """UPDATE own.edge_device d SET (config, revision, deployment, deployed_at_us) = (
                coalesce(f.config, d.config), coalesce(f.revision, d.revision),
                coalesce(f.deployment, d.deployment), coalesce(f.deployed_at_us, d.deployed_at_us)),
            inference = f.inference, exit_code = f.exit_code, inference_at_us = f.at_us
        FROM (
            SELECT DISTINCT ON (t.device_id) t.device_id, c.config, c.revision, c.deployment,
                c.at_us AS deployed_at_us, coalesce(t.status, 'pending') AS inference,
                t.exit_code, t.at_us
            FROM facts t LEFT JOIN LATERAL (
                SELECT config, revision, deployment, at_us FROM facts o
                WHERE o.device_id = t.device_id AND o.topic = 'edge_device.config_deployed.v1'
                ORDER BY position DESC LIMIT 1) c ON true
            ORDER BY t.device_id, t.position DESC
        ) f WHERE d.device_id = f.device_id""",
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
    name: str
    minion_id: str
    config: str | None
    revision: int | None
    deployment: int | None
    deployed_at_us: int | None
    inference: str | None
    exit_code: int | None
    inference_at_us: int | None


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """One revision; `work` as it stands in its fact."""

    region_id: str
    name: str
    revision: int
    account_id: str
    work: dict[str, Any]
    at_us: int
    position: int


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
    way: Way = OLDEST,
    limit: int = 50,
) -> list[EdgeDevice]:
    """In the order in which they were added; removed ones too."""
    sql = """SELECT * FROM proj_edge_devices.edge_device WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        AND (%(region)s::text IS NULL OR region_id = %(region)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection,
        EdgeDevice,
        sql,
        way,
        account=account_id,
        region=region_id,
        after=after,
        limit=limit,
    )


def read_device_configs(
    connection: Connection,
    *,
    account_id: str | None = None,
    region_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[DeviceConfig]:
    """The last revision of each, in the order of those revisions."""
    sql = """SELECT c.* FROM proj_edge_devices.device_config c
        WHERE c.position > %(after)s
        AND (%(account)s::text IS NULL OR c.account_id = %(account)s)
        AND (%(region)s::text IS NULL OR c.region_id = %(region)s)
        AND NOT EXISTS (SELECT FROM proj_edge_devices.device_config n
            WHERE (n.region_id, n.name) = (c.region_id, c.name) AND n.revision > c.revision)
        ORDER BY c.position LIMIT %(limit)s"""
    return read.listed(
        connection,
        DeviceConfig,
        sql,
        way,
        account=account_id,
        region=region_id,
        after=after,
        limit=limit,
    )


def read_revisions(
    connection: Connection,
    region_id: str,
    name: str,
    *,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[DeviceConfig]:
    """The revisions of one configuration in order; `after`: the last one of the page before."""
    sql = """SELECT * FROM proj_edge_devices.device_config
        WHERE region_id = %(region)s AND name = %(name)s AND revision > %(after)s
        ORDER BY revision LIMIT %(limit)s"""
    return read.listed(
        connection, DeviceConfig, sql, way, region=region_id, name=name, after=after, limit=limit
    )


def count_edge_devices(connection: Connection, region_id: str) -> int:
    """How many edge devices are configured in a region."""
    sql = """SELECT count(*) FROM proj_edge_devices.edge_device
        WHERE region_id = %(region)s AND removed_at_us IS NULL"""
    return read.number(connection, sql, region=region_id)


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
