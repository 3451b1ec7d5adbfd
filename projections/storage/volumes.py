"""Which volumes and datasets are there, where, for whom, and what do volumes cost?

charge_units of a volume == sum of its charges        billed once, however many leases attach it
erased_at_us of a volume == the last of its traces    once it is deleted and every node has said so
"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.volume (
        volume_id text COLLATE "C" PRIMARY KEY, name text NOT NULL,
        account_id text COLLATE "C" NOT NULL, project_id text,
        region_id text COLLATE "C" NOT NULL, size_gib bigint NOT NULL, price_units bigint,
        per bigint, tariff_version int NOT NULL, charged_until_us bigint NOT NULL,
        charge_units bigint NOT NULL, reserve_units bigint NOT NULL, deletes_at_us bigint,
        deleted_at_us bigint, cause text, at_us bigint NOT NULL,
        position bigint NOT NULL, CONSTRAINT reserve_not_negative CHECK (reserve_units >= 0)
    ) WITH (fillfactor = 70);
    CREATE TABLE own.attachment (
        volume_id text COLLATE "C", lease_id text COLLATE "C", job_id text COLLATE "C" NOT NULL,
        node_id text COLLATE "C" NOT NULL, path text NOT NULL, read_only boolean NOT NULL,
        at_us bigint NOT NULL, detached_at_us bigint, cause text, position bigint NOT NULL,
        PRIMARY KEY (volume_id, lease_id));
    COMMENT ON TABLE own.attachment IS 'Which leases have or had a volume, and where they saw it';
    CREATE TABLE own.trace (
        volume_id text COLLATE "C", node_id text COLLATE "C", erased_at_us bigint,
        PRIMARY KEY (volume_id, node_id)) WITH (fillfactor = 80);
    COMMENT ON TABLE own.trace IS 'Nodes that had a volume attached; until one says it is gone';
    CREATE TABLE own.dataset (
        dataset_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        name text NOT NULL, region_ids text[] NOT NULL, pinned boolean NOT NULL,
        at_us bigint NOT NULL, removed boolean NOT NULL, position bigint NOT NULL);
    COMMENT ON TABLE own.dataset IS 'Names that jobs refer to, and the regions of their data';
"""

_INDEXES = """
    CREATE INDEX ON own.volume (account_id, position);
    CREATE INDEX ON own.volume (position) WHERE deleted_at_us IS NULL;
    CREATE INDEX ON own.trace (node_id) WHERE erased_at_us IS NULL;
    CREATE INDEX ON own.dataset (account_id, position);
"""

_SUM = "coalesce((SELECT sum((p->'amount'->>'units')::bigint) FROM json_array_elements({}) p), 0)"


def _reserve(topic: str, field: str, columns: str, sign: str) -> Rule:
    """What a fact puts into the reserve, or takes out of it."""
    parts = _SUM.format(f"f.{field}")
    return Rule(
        (topic,),
        f"volume_id text, {field} json{columns}",
        f"""UPDATE own.volume v SET reserve_units = v.reserve_units {sign} f.units FROM (
            SELECT volume_id, sum({parts})::bigint AS units FROM facts f GROUP BY volume_id) f
        WHERE v.volume_id = f.volume_id""",
    )


_RULES = (
    Rule(
        ("volume.provisioned.v1",),
        "volume_id text, name text, account_id text, project_id text, region_id text,"
        " size_gib bigint, rate json, tariff_version int, reserve json, at_us bigint",
        f"""INSERT INTO own.volume
        SELECT volume_id, name, account_id, project_id, region_id, size_gib,
            (rate->'price'->>'units')::bigint, (rate->>'per')::bigint, tariff_version, at_us, 0,
            {_SUM.format("reserve")}, NULL, NULL, NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("volume.attached.v1",),
        "volume_id text, lease_id text, job_id text, node_id text, path text, read_only boolean,"
        " at_us bigint",
        """INSERT INTO own.attachment
        SELECT volume_id, lease_id, job_id, node_id, path, read_only, at_us, NULL, NULL, position
        FROM facts""",
    ),
    Rule(
        ("volume.attached.v1",),
        "volume_id text, node_id text",
        """INSERT INTO own.trace SELECT DISTINCT volume_id, node_id FROM facts
        ON CONFLICT DO NOTHING""",
    ),
    Rule(
        ("volume.detached.v1",),
        "volume_id text, lease_id text, cause text, at_us bigint",
        """UPDATE own.attachment a SET detached_at_us = f.at_us, cause = f.cause FROM facts f
        WHERE (a.volume_id, a.lease_id) = (f.volume_id, f.lease_id)""",
    ),
    Rule(
        ("volume.charged.v1",),
        "volume_id text, until_us bigint, charge json",
        """UPDATE own.volume v SET charged_until_us = f.until_us, charge_units = f.units FROM (
            SELECT volume_id, max(until_us) AS until_us,
                max((charge->>'units')::bigint) AS units FROM facts GROUP BY volume_id) f
        WHERE v.volume_id = f.volume_id""",
    ),
    _reserve("volume.grace_ended.v1", "refilled", "", "+"),
    _reserve("volume.charged.v1", "reserve_drawn", "", "-"),
    _reserve("volume.deleted.v1", "refund", "", "-"),
    Rule(
        ("volume.grace_started.v1", "volume.grace_ended.v1"),
        "volume_id text, deletes_at_us bigint",
        """UPDATE own.volume v SET deletes_at_us = f.deletes_at_us FROM (
            SELECT DISTINCT ON (volume_id) volume_id, deletes_at_us FROM facts
            ORDER BY volume_id, position DESC) f
        WHERE v.volume_id = f.volume_id""",
    ),
    Rule(
        ("volume.deleted.v1",),
        "volume_id text, cause text, deleted_at_us bigint",
        """UPDATE own.volume v SET deleted_at_us = f.deleted_at_us, cause = f.cause FROM facts f
        WHERE v.volume_id = f.volume_id""",
    ),
    Rule(
        ("volume.erased.v1",),
        "volume_id text, node_id text, at_us bigint",
        """UPDATE own.trace t SET erased_at_us = f.at_us FROM facts f
        WHERE (t.volume_id, t.node_id) = (f.volume_id, f.node_id)""",
    ),
    Rule(
        ("dataset.placed.v1",),
        "dataset_id text, account_id text, name text, region_ids text[], pinned boolean,"
        " at_us bigint",
        """, newest AS (
            SELECT DISTINCT ON (dataset_id) * FROM facts ORDER BY dataset_id, position DESC)
        INSERT INTO own.dataset
        SELECT dataset_id, account_id, name, region_ids, pinned, at_us, false, position FROM newest
        ON CONFLICT (dataset_id) DO UPDATE SET region_ids = excluded.region_ids,
            pinned = excluded.pinned, at_us = excluded.at_us, position = excluded.position""",
    ),
    Rule(
        ("dataset.removed.v1",),
        "dataset_id text",
        """UPDATE own.dataset d SET removed = true FROM facts f
        WHERE d.dataset_id = f.dataset_id""",
    ),
)

VOLUMES = Projection("volumes", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class VolumeRow:
    """A volume; `leases` have it attached now. Without a price it costs nothing. `nodes_left`: so
    many have not said yet that nothing of it is left; `erased_at_us`: when the last of them did.
    """

    volume_id: str
    name: str
    account_id: str
    project_id: str | None
    region_id: str
    size_gib: int
    price_units: int | None
    per: int | None
    tariff_version: int
    charged_until_us: int
    charge_units: int
    reserve_units: int
    deletes_at_us: int | None
    deleted_at_us: int | None
    cause: str | None
    at_us: int
    position: int
    leases: int
    nodes_left: int
    erased_at_us: int | None


@dataclass(frozen=True, slots=True)
class AttachmentRow:
    """A lease that has or had a volume; it detached, with the cause, or still has it."""

    volume_id: str
    lease_id: str
    job_id: str
    node_id: str
    path: str
    read_only: bool
    at_us: int
    detached_at_us: int | None
    cause: str | None
    position: int


@dataclass(frozen=True, slots=True)
class DatasetRow:
    dataset_id: str
    account_id: str
    name: str
    region_ids: list[str]
    pinned: bool
    at_us: int
    removed: bool
    position: int


_VOLUME = """SELECT v.*, (SELECT count(*) FROM proj_volumes.attachment a
        WHERE a.volume_id = v.volume_id AND a.detached_at_us IS NULL)::int AS leases,
        t.nodes_left, CASE WHEN t.nodes_left = 0
            THEN greatest(v.deleted_at_us, t.erased_at_us) END AS erased_at_us
    FROM proj_volumes.volume v CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE erased_at_us IS NULL)::int AS nodes_left,
            max(erased_at_us) AS erased_at_us
        FROM proj_volumes.trace WHERE volume_id = v.volume_id) t"""


def read_volumes(
    connection: Connection,
    *,
    account_id: str | None = None,
    volume_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[VolumeRow]:
    """In the order in which they were provisioned, deleted ones too."""
    sql = f"""{_VOLUME} WHERE v.position > %(after)s
        AND (%(account)s::text IS NULL OR v.account_id = %(account)s)
        AND (%(volume)s::text IS NULL OR v.volume_id = %(volume)s)
        ORDER BY v.position LIMIT %(limit)s"""
    return read.listed(
        connection,
        VolumeRow,
        sql,
        way,
        account=account_id,
        volume=volume_id,
        after=after,
        limit=limit,
    )


def read_attachments(connection: Connection, volume_id: str, limit: int) -> list[AttachmentRow]:
    """The leases that have or had a volume, the last one first."""
    sql = """SELECT * FROM proj_volumes.attachment WHERE volume_id = %(volume)s
        ORDER BY position DESC LIMIT %(limit)s"""
    return read.many(connection, AttachmentRow, sql, volume=volume_id, limit=limit)


def read_kept(connection: Connection, account_id: str | None = None) -> list[str]:
    """Ids of volumes that are not deleted, of one account or of all."""
    sql = """SELECT volume_id FROM proj_volumes.volume WHERE deleted_at_us IS NULL
        AND (%(account)s::text IS NULL OR account_id = %(account)s) ORDER BY position"""
    return [row[0] for row in connection.execute(sql, {"account": account_id})]


def read_to_erase(connection: Connection, node_id: str, limit: int) -> list[str]:
    """Ids of deleted volumes that a node had attached and has not said to be gone."""
    sql = """SELECT t.volume_id FROM proj_volumes.trace t
        JOIN proj_volumes.volume v USING (volume_id)
        WHERE t.node_id = %(node)s AND t.erased_at_us IS NULL AND v.deleted_at_us IS NOT NULL
        ORDER BY v.position LIMIT %(limit)s"""
    found = connection.execute(sql, {"node": node_id, "limit": limit})
    return [row[0] for row in found]


def read_datasets(
    connection: Connection,
    *,
    account_id: str | None = None,
    dataset_id: str | None = None,
    removed: bool = False,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[DatasetRow]:
    """In the order in which they were last placed. `removed`: those too that have no place now."""
    sql = """SELECT * FROM proj_volumes.dataset WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        AND (%(dataset)s::text IS NULL OR dataset_id = %(dataset)s)
        AND (%(removed)s OR NOT removed)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection,
        DatasetRow,
        sql,
        way,
        account=account_id,
        dataset=dataset_id,
        removed=removed,
        after=after,
        limit=limit,
    )
