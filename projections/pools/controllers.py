"""What a pool shows on its controller: components, metadata, cuts, and the facts its heads count.

    counted == facts that a head of `domain/pools/controller.py` counts, each once for each head

The leaves themselves are in the log; a cut joins them by position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from projections import read
from projections.read import NEWEST, OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.component (
        component_id text COLLATE "C" PRIMARY KEY, pool_id text COLLATE "C" NOT NULL,
        kind text NOT NULL, name text NOT NULL, endpoint text, licence_id text COLLATE "C",
        removed_position bigint, health text, detail text, health_at_us bigint,
        health_since_us bigint, at_us bigint NOT NULL,
        position bigint NOT NULL) WITH (fillfactor = 70);
    CREATE TABLE own.metadata (
        pool_id text COLLATE "C", version int, metadata json NOT NULL, sha256 text NOT NULL,
        at_us bigint NOT NULL, PRIMARY KEY (pool_id, version));
    CREATE TABLE own.cut (
        pool_id text COLLATE "C", position bigint, allocation_head text NOT NULL,
        licence_head text NOT NULL, at_us bigint NOT NULL, PRIMARY KEY (pool_id, position));
    CREATE TABLE own.checked (
        pool_id text COLLATE "C" PRIMARY KEY, block bigint NOT NULL, differences text[] NOT NULL,
        at_us bigint NOT NULL);
    CREATE TABLE own.lease (
        lease_id text COLLATE "C" PRIMARY KEY, pool_id text COLLATE "C" NOT NULL,
        has_seat boolean NOT NULL);
    CREATE TABLE own.counted (
        pool_id text COLLATE "C", is_licence boolean, position bigint,
        PRIMARY KEY (pool_id, is_licence, position));
"""
_INDEXES = """
    CREATE INDEX ON own.component (pool_id, position);
    CREATE INDEX ON own.component (licence_id) WHERE licence_id IS NOT NULL;
"""

_RULES = (
    Rule(
        ("pool.component_registered.v1",),
        "component_id text, pool_id text, kind text, name text, endpoint text, licence_id text,"
        " at_us bigint",
        """, licences AS (
            INSERT INTO own.counted
            SELECT pool_id, true, position FROM facts WHERE licence_id IS NOT NULL
        )
        INSERT INTO own.component
        SELECT component_id, pool_id, kind, name, endpoint, licence_id, NULL, NULL, NULL, NULL,
            NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("pool.component_removed.v1",),
        "component_id text",
        """, gone AS (
            UPDATE own.component c SET removed_position = f.position
            FROM facts f WHERE c.component_id = f.component_id
            RETURNING c.pool_id, c.licence_id, f.position
        )
        INSERT INTO own.counted
        SELECT pool_id, true, position FROM gone WHERE licence_id IS NOT NULL""",
    ),
    Rule(
        ("pool.component_health_reported.v1",),
        "component_id text, health text, detail text, at_us bigint",
        """, runs AS (
            SELECT component_id, health, detail, at_us, position,
                lag(health) OVER (PARTITION BY component_id ORDER BY position) AS before
            FROM facts
        ), last AS (
            SELECT DISTINCT ON (component_id) * FROM runs ORDER BY component_id, position DESC
        ), turned AS (
            SELECT r.component_id, max(r.at_us) AS at_us
            FROM runs r JOIN own.component c ON c.component_id = r.component_id
            WHERE r.health IS DISTINCT FROM coalesce(r.before, c.health)
            GROUP BY r.component_id
        )
        UPDATE own.component c SET health = l.health, detail = l.detail, health_at_us = l.at_us,
            health_since_us = coalesce(t.at_us, c.health_since_us)
        FROM last l LEFT JOIN turned t ON t.component_id = l.component_id
        WHERE c.component_id = l.component_id""",
    ),
    Rule(
        ("licence.revoked.v1",),
        "licence_id text",
        """INSERT INTO own.counted
        SELECT c.pool_id, true, f.position
        FROM facts f JOIN own.component c ON c.licence_id = f.licence_id
        WHERE c.position < f.position
            AND (c.removed_position IS NULL OR c.removed_position > f.position)""",
    ),
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, pool_id text, device_ids text[]",
        """, leases AS (
            INSERT INTO own.lease
            SELECT lease_id, pool_id,
                EXISTS (SELECT 1 FROM unnest(device_ids) d WHERE d ~ '^lic_[0-9a-z]+:[0-9]+$')
            FROM facts WHERE pool_id IS NOT NULL
            RETURNING lease_id, pool_id, has_seat
        )
        INSERT INTO own.counted
        SELECT l.pool_id, h.is_licence, f.position
        FROM leases l JOIN facts f ON f.lease_id = l.lease_id
            JOIN (VALUES (false), (true)) AS h(is_licence) ON NOT h.is_licence OR l.has_seat""",
    ),
    Rule(
        ("lease.closed.v1",),
        "lease_id text",
        """INSERT INTO own.counted
        SELECT l.pool_id, h.is_licence, f.position
        FROM facts f JOIN own.lease l ON l.lease_id = f.lease_id
            JOIN (VALUES (false), (true)) AS h(is_licence) ON NOT h.is_licence OR l.has_seat""",
    ),
    Rule(
        ("pool.metadata_set.v1",),
        "pool_id text, version int, metadata json, sha256 text, at_us bigint",
        """INSERT INTO own.metadata
        SELECT pool_id, version, metadata, sha256, at_us FROM facts""",
    ),
    Rule(
        ("pool.heads_cut.v1",),
        "pool_id text, cut_position bigint, allocation_head text, licence_head text, at_us bigint",
        """INSERT INTO own.cut
        SELECT pool_id, cut_position, allocation_head, licence_head, at_us FROM facts""",
    ),
    Rule(
        ("pool.controller_checked.v1",),
        "pool_id text, block bigint, differences text[], at_us bigint",
        """INSERT INTO own.checked
        SELECT DISTINCT ON (pool_id) pool_id, block, differences, at_us
        FROM facts ORDER BY pool_id, position DESC
        ON CONFLICT (pool_id) DO UPDATE SET block = excluded.block,
            differences = excluded.differences, at_us = excluded.at_us""",
    ),
)

CONTROLLERS = Projection("controllers", _TABLES, _RULES, _INDEXES)
LAST = 2**63 - 1


# --- reading ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ComponentRow:
    """`health`, `detail`: as last reported; `health_since_us`: since when it has been so."""

    component_id: str
    pool_id: str
    kind: str
    name: str
    endpoint: str | None
    licence_id: str | None
    removed_position: int | None
    health: str | None
    detail: str | None
    health_at_us: int | None
    health_since_us: int | None
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Metadata:
    version: int
    metadata: list[dict[str, Any]]
    sha256: str


@dataclass(frozen=True, slots=True)
class Cut:
    position: int
    allocation_head: str
    licence_head: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Checked:
    block: int
    differences: list[str]
    at_us: int


def read_components(
    connection: Connection, pool_id: str, *, after: int = 0, way: Way = OLDEST, limit: int
) -> list[ComponentRow]:
    """All components that a pool ever had, in the order of registration."""
    sql = """SELECT * FROM proj_controllers.component
        WHERE pool_id = %(pool)s AND position > %(after)s ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, ComponentRow, sql, way, pool=pool_id, after=after, limit=limit)


def read_metadata(connection: Connection, pool_id: str, *, limit: int) -> list[Metadata]:
    """Versions of a pool's metadata, the one in force first."""
    sql = """SELECT version, metadata, sha256 FROM proj_controllers.metadata
        WHERE pool_id = %(pool)s ORDER BY version DESC LIMIT %(limit)s"""
    return read.many(connection, Metadata, sql, pool=pool_id, limit=limit)


def read_cuts(
    connection: Connection, pool_id: str, *, after: int = LAST, way: Way = NEWEST, limit: int
) -> list[Cut]:
    """Cuts of a pool by position, the latest first if nothing else is asked."""
    sql = """SELECT position, allocation_head, licence_head, at_us FROM proj_controllers.cut
        WHERE pool_id = %(pool)s AND position > %(after)s ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Cut, sql, way, pool=pool_id, after=after, limit=limit)


def read_checked(connection: Connection, pool_id: str) -> Checked | None:
    """What the last check of the contract found."""
    sql = """SELECT block, differences, at_us FROM proj_controllers.checked
        WHERE pool_id = %(pool)s"""
    return read.one(connection, Checked, sql, pool=pool_id)


def read_leaves(
    connection: Connection, pool_id: str, *, is_licence: bool, after: int, until: int
) -> tuple[bytes, ...]:
    """Leaf hashes of the facts that a head counts in (after, until], in the order of the log."""
    rows = connection.execute(_LEAVES, (pool_id, is_licence, after, until)).fetchall()
    return tuple(bytes(row[0]) for row in rows)


_LEAVES = """
    SELECT m.leaf
    FROM proj_controllers.counted c
        JOIN public.market_events m ON m.notification_id = c.position
    WHERE c.pool_id = %s AND c.is_licence = %s AND c.position > %s AND c.position <= %s
    ORDER BY c.position
"""
