"""What is there to rent right now? Providers, regions, nodes, devices with what is free, offers.

    share_free == 1_000_000 - sum(share_ppm of holders) >= 0   for every device, likewise memory
    mode == the one mode of its holders, none while it is free

The matcher keeps a copy of it in memory (`projections/market/feed.py`). A stale answer does no
harm: the device streams decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from projections import read
from projections.fleet import match_tables, region_tables, supply_tables
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.provider (
        provider_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        kind text NOT NULL, payment_mode text NOT NULL, at_us bigint NOT NULL,
        position bigint NOT NULL);
    CREATE TABLE own.region (
        region_id text COLLATE "C" PRIMARY KEY, provider_id text COLLATE "C" NOT NULL,
        name text NOT NULL, storage_mode text NOT NULL, setting text NOT NULL,
        admission text NOT NULL, allow_public_jobs boolean NOT NULL, cloud_region text, site text,
        at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE TABLE own.node (
        node_id text COLLATE "C" PRIMARY KEY, provider_id text COLLATE "C" NOT NULL,
        region_id text COLLATE "C" NOT NULL, client_id text, owner_account_id text COLLATE "C",
        agent text NOT NULL,
        key_id text NOT NULL, public_key text NOT NULL, phase text NOT NULL,
        phase_at_us bigint NOT NULL, quarantined boolean NOT NULL, specs json,
        specs_at_us bigint, at_us bigint NOT NULL, position bigint NOT NULL,
        pool_id text COLLATE "C", sellable boolean NOT NULL, revoked boolean NOT NULL,
        lifetime text NOT NULL, minion_id text, error text, capacity_class text NOT NULL);
    CREATE TABLE own.pool (pool_id text COLLATE "C" PRIMARY KEY, keeps_queue boolean NOT NULL);
    COMMENT ON TABLE own.pool IS 'Nodes of a pool that keeps a queue are only for who names it';
    CREATE TABLE own.device (
        device_id text COLLATE "C" PRIMARY KEY, node_id text COLLATE "C" NOT NULL,
        provider_id text COLLATE "C" NOT NULL, vendor text NOT NULL, model text NOT NULL,
        gpu_class text, memory_mib bigint NOT NULL, retired boolean NOT NULL,
        share_free int NOT NULL, mem_free int NOT NULL, mode text, at_us bigint NOT NULL,
        position bigint NOT NULL, kind text NOT NULL, memory text NOT NULL,
        is_divisible boolean NOT NULL, capacity_asset text NOT NULL,
        CONSTRAINT not_over_committed CHECK (
            share_free BETWEEN 0 AND 1000000 AND mem_free BETWEEN 0 AND 1000000),
        CONSTRAINT held_in_a_mode CHECK (
            (mode IS NULL) = (share_free = 1000000 AND mem_free = 1000000))
    ) WITH (fillfactor = 70);
    CREATE INDEX ON own.device (node_id);
    CREATE INDEX ON own.device (node_id) WHERE share_free < 1000000 OR mem_free < 1000000;
    CREATE TABLE own.holding (
        device_id text COLLATE "C", lease_id text COLLATE "C", share_ppm int NOT NULL,
        mem_ppm int NOT NULL, at_us bigint NOT NULL, mode text NOT NULL, profile text,
        start int, PRIMARY KEY (device_id, lease_id));
    CREATE TABLE own.offer (
        offer_id text COLLATE "C" PRIMARY KEY, provider_id text COLLATE "C" NOT NULL,
        node_id text COLLATE "C" NOT NULL, price_units bigint NOT NULL, pay_with text NOT NULL,
        fractions boolean NOT NULL, available_until_us bigint, terms json NOT NULL,
        withdrawn_at_us bigint, at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE TABLE own.fee (
        version int, gpu_class text COLLATE "C", units bigint NOT NULL,
        effective_from_us bigint NOT NULL, PRIMARY KEY (version, gpu_class));
    CREATE TABLE own.epoch (epoch int PRIMARY KEY, position bigint NOT NULL);
    CREATE TABLE own.served (
        epoch int, node_id text COLLATE "C", gpu_us bigint NOT NULL,
        PRIMARY KEY (epoch, node_id)) WITH (fillfactor = 70);
    COMMENT ON TABLE own.served IS 'GPU time a node has served, by the epoch open at the fact';
"""

_INDEXES = """
    CREATE INDEX ON own.provider (account_id);
    CREATE INDEX ON own.region (provider_id);
    CREATE INDEX ON own.node (provider_id, position);
    CREATE INDEX ON own.node (region_id, position);
    CREATE INDEX ON own.node (position);
    CREATE INDEX ON own.node (phase, position) INCLUDE (node_id, quarantined, at_us);
    CREATE INDEX ON own.offer (node_id);
    CREATE INDEX ON own.offer (price_units, position) WHERE withdrawn_at_us IS NULL;
    CREATE INDEX ON own.holding (lease_id);
"""

_PHASES = {
    "node.join_requested.v1": "joining",
    "node.key_confirmed.v1": "confirmed",
    "node.admitted.v1": "maintenance",
    "node.activated.v1": "active",
    "node.maintenance_started.v1": "maintenance",
    "node.drain_started.v1": "draining",
    "node.provisioning_started.v1": "provisioning",
    "node.provisioned.v1": "maintenance",
    "node.stopped.v1": "stopped",
    "node.errored.v1": "errored",
    "node.failed.v1": "failed",
    "node.retired.v1": "retired",
}
_PHASE = " ".join(f"WHEN '{topic}' THEN '{phase}'" for topic, phase in _PHASES.items())

_HELD = ("device.reserved.v1", "device.released.v1")

_RULES = (
    Rule(
        ("provider.registered.v1",),
        "provider_id text, account_id text, kind text, payment_mode text, at_us bigint",
        """INSERT INTO own.provider
        SELECT provider_id, account_id, kind, payment_mode, at_us, position FROM facts""",
    ),
    Rule(
        ("region.opened.v1",),
        "region_id text, provider_id text, name text, storage_mode text, setting text,"
        " admission text, allow_public_jobs boolean, cloud_region text, site text, at_us bigint",
        """INSERT INTO own.region
        SELECT region_id, provider_id, name, storage_mode, setting, admission,
            allow_public_jobs, cloud_region, site, at_us, position
        FROM facts""",
    ),
    Rule(
        ("region.policy_set.v1",),
        "region_id text, allow_public_jobs boolean",
        """UPDATE own.region r SET allow_public_jobs = f.allow_public_jobs FROM (
            SELECT DISTINCT ON (region_id) * FROM facts ORDER BY region_id, position DESC) f
        WHERE r.region_id = f.region_id""",
    ),
    Rule(
        ("node.join_requested.v1",),
        "node_id text, provider_id text, region_id text, client_id text, owner_account_id text,"
        " agent text, key_id text, public_key text, at_us bigint",
        """INSERT INTO own.node
        SELECT node_id, provider_id, region_id, client_id, owner_account_id, agent, key_id,
            public_key, 'joining', at_us, false, NULL, NULL, at_us, position, NULL, true, false,
            'permanent', NULL, NULL, 'on_demand'
        FROM facts""",
    ),
    Rule(
        ("pool.created.v1", "pool.policy_set.v1"),
        "pool_id text, policy json",
        """INSERT INTO own.pool
        SELECT DISTINCT ON (pool_id) pool_id, policy->>'scheduler' <> 'immediate' FROM facts
        ORDER BY pool_id, position DESC
        ON CONFLICT (pool_id) DO UPDATE SET keeps_queue = excluded.keeps_queue""",
    ),
    Rule(
        ("pool.node_added.v1", "pool.node_removed.v1"),
        "node_id text, pool_id text",
        """UPDATE own.node n SET pool_id = f.pool_id FROM (
            SELECT DISTINCT ON (node_id) node_id,
                CASE topic WHEN 'pool.node_added.v1' THEN pool_id END AS pool_id
            FROM facts ORDER BY node_id, position DESC) f
        WHERE n.node_id = f.node_id""",
    ),
    Rule(
        ("node.spec_reported.v1",),
        "node_id text, devices json, host json, hardware json, agent text, at_us bigint",
        """UPDATE own.node n SET specs_at_us = f.at_us, agent = f.agent,
            specs = json_build_object('devices', f.devices, 'host', f.host,
                'hardware', f.hardware)
        FROM (SELECT DISTINCT ON (node_id) * FROM facts ORDER BY node_id, position DESC) f
        WHERE n.node_id = f.node_id""",
    ),
    Rule(
        ("node.spec_confirmed.v1",),
        "node_id text, at_us bigint",
        """UPDATE own.node n SET specs_at_us = greatest(n.specs_at_us, f.at_us)
        FROM (SELECT node_id, max(at_us) AS at_us FROM facts GROUP BY node_id) f
        WHERE n.node_id = f.node_id""",
    ),
    # Admission of an admitted node lets in more devices and leaves its phase: take the newest fact
    # that set a phase, with admissions after the first left out.
    Rule(
        tuple(_PHASES),
        "node_id text, at_us bigint",
        f"""UPDATE own.node n SET phase = f.phase, phase_at_us = f.at_us FROM (
            SELECT DISTINCT ON (g.node_id) g.node_id, g.at_us, CASE g.topic {_PHASE} END AS phase
            FROM (
                SELECT node_id, at_us, topic, position, sum((topic = 'node.admitted.v1')::int)
                    OVER (PARTITION BY node_id ORDER BY position) AS admissions
                FROM facts
            ) g JOIN own.node m ON m.node_id = g.node_id
            WHERE g.topic <> 'node.admitted.v1'
                OR (g.admissions = 1 AND m.phase IN ('joining', 'confirmed'))
            ORDER BY g.node_id, g.position DESC) f
        WHERE n.node_id = f.node_id""",
    ),
    Rule(
        ("node.terms_stated.v1",),
        "node_id text, lifetime text, minion_id text",
        """UPDATE own.node n SET lifetime = f.lifetime, minion_id = f.minion_id FROM facts f
        WHERE n.node_id = f.node_id""",
    ),
    Rule(
        ("node.errored.v1", "node.failed.v1"),
        "node_id text, error text",
        """UPDATE own.node n SET error = f.error FROM (
            SELECT DISTINCT ON (node_id) * FROM facts ORDER BY node_id, position DESC) f
        WHERE n.node_id = f.node_id""",
    ),
    Rule(
        ("node.key_rotated.v1",),
        "node_id text, key_id text, public_key text",
        """UPDATE own.node n SET key_id = f.key_id, public_key = f.public_key FROM (
            SELECT DISTINCT ON (node_id) * FROM facts ORDER BY node_id, position DESC) f
        WHERE n.node_id = f.node_id""",
    ),
    Rule(
        ("node.equivocated.v1", "node.boots_alternated.v1", "node.key_revoked.v1"),
        "node_id text",
        "UPDATE own.node SET quarantined = true WHERE node_id IN (SELECT node_id FROM facts)",
    ),
    Rule(
        ("node.key_revoked.v1",),
        "node_id text",
        "UPDATE own.node SET revoked = true WHERE node_id IN (SELECT node_id FROM facts)",
    ),
    Rule(
        ("node.hardware_judged.v1",),
        "node_id text, sellable boolean",
        """UPDATE own.node n SET sellable = f.sellable FROM (
            SELECT DISTINCT ON (node_id) * FROM facts ORDER BY node_id, position DESC) f
        WHERE n.node_id = f.node_id""",
    ),
    Rule(
        ("node.capacity_class_set.v1",),
        "node_id text, capacity_class text",
        """UPDATE own.node n SET capacity_class = f.capacity_class FROM (
            SELECT DISTINCT ON (node_id) * FROM facts ORDER BY node_id, position DESC) f
        WHERE n.node_id = f.node_id""",
    ),
    Rule(
        ("device.registered.v1",),
        "device_id text, node_id text, provider_id text, vendor text, model text,"
        " gpu_class text, memory_mib bigint, at_us bigint, kind text, memory text,"
        " is_divisible boolean, capacity_asset text",
        """INSERT INTO own.device
        SELECT DISTINCT ON (device_id) device_id, node_id, provider_id, vendor, model, gpu_class,
            memory_mib, false, 1000000, 1000000, NULL, at_us, position, kind, memory,
            is_divisible, capacity_asset
        FROM facts ORDER BY device_id, position DESC
        ON CONFLICT (device_id) DO UPDATE SET node_id = excluded.node_id,
            provider_id = excluded.provider_id, vendor = excluded.vendor, model = excluded.model,
            gpu_class = excluded.gpu_class, memory_mib = excluded.memory_mib, retired = false,
            at_us = excluded.at_us, position = excluded.position, kind = excluded.kind,
            memory = excluded.memory, is_divisible = excluded.is_divisible,
            capacity_asset = excluded.capacity_asset""",
    ),
    Rule(
        ("device.retired.v1",),
        "device_id text",
        """UPDATE own.device d SET retired = true
        FROM (SELECT device_id, max(position) AS position FROM facts GROUP BY device_id) f
        WHERE d.device_id = f.device_id AND d.position < f.position""",
    ),
    Rule(
        _HELD,
        "device_id text, lease_id text, share_ppm int, mem_ppm int, at_us bigint, mode text,"
        " mig json",
        """, last AS (
            SELECT DISTINCT ON (device_id, lease_id) * FROM facts
            ORDER BY device_id, lease_id, position DESC
        ), gone AS (
            DELETE FROM own.holding h USING last f WHERE f.topic = 'device.released.v1'
                AND h.device_id = f.device_id AND h.lease_id = f.lease_id
        )
        INSERT INTO own.holding
        SELECT device_id, lease_id, share_ppm, mem_ppm, at_us, mode, mig->>'profile',
            (mig->>'start')::int
        FROM last WHERE topic = 'device.reserved.v1'
        ON CONFLICT (device_id, lease_id) DO UPDATE SET share_ppm = excluded.share_ppm,
            mem_ppm = excluded.mem_ppm, at_us = excluded.at_us, mode = excluded.mode,
            profile = excluded.profile, start = excluded.start""",
    ),
    Rule(
        _HELD,
        "device_id text",
        """UPDATE own.device d
        SET share_free = 1000000 - h.share, mem_free = 1000000 - h.mem, mode = h.mode
        FROM (
            SELECT f.device_id, coalesce(sum(share_ppm), 0)::int AS share,
                coalesce(sum(mem_ppm), 0)::int AS mem, min(mode) AS mode
            FROM (SELECT DISTINCT device_id FROM facts) f
            LEFT JOIN own.holding USING (device_id) GROUP BY f.device_id) h
        WHERE d.device_id = h.device_id""",
    ),
    Rule(
        ("offer.published.v1",),
        "offer_id text, provider_id text, node_id text, price_per_gpu_hour json,"
        " pay_with text, fractions boolean, available_until_us bigint, at_us bigint, terms json",
        """INSERT INTO own.offer
        SELECT offer_id, provider_id, node_id, (price_per_gpu_hour->>'units')::bigint, pay_with,
            fractions, available_until_us, terms, NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("offer.withdrawn.v1",),
        "offer_id text, at_us bigint",
        """UPDATE own.offer o SET withdrawn_at_us = f.at_us FROM facts f
        WHERE o.offer_id = f.offer_id""",
    ),
    Rule(
        ("tariff.published.v1",),
        "version int, effective_from_us bigint, usage_fees json",
        """INSERT INTO own.fee
        SELECT version, fee->>'gpu_class', (fee->'per_gpu_hour'->>'units')::bigint,
            effective_from_us
        FROM facts, json_array_elements(usage_fees) fee""",
    ),
    Rule(
        ("epoch.opened.v1",), "epoch int", "INSERT INTO own.epoch SELECT epoch, position FROM facts"
    ),
    Rule(
        ("lease.usage_accrued.v1",),
        "node_id text, gpu_us_new bigint",
        """INSERT INTO own.served AS s
        SELECT coalesce((SELECT max(e.epoch) FROM own.epoch e WHERE e.position < f.position), 0),
            node_id, sum(gpu_us_new)::bigint
        FROM facts f GROUP BY 1, 2
        ON CONFLICT (epoch, node_id) DO UPDATE SET gpu_us = s.gpu_us + excluded.gpu_us""",
    ),
)

FLEET = Projection(
    "fleet",
    _TABLES + supply_tables.TABLES + region_tables.TABLES + match_tables.TABLES,
    (*_RULES, *supply_tables.RULES, *region_tables.RULES, *match_tables.RULES),
    _INDEXES + supply_tables.INDEXES + region_tables.INDEXES,
)


# --- reading ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Provider:
    provider_id: str
    account_id: str
    kind: str
    payment_mode: str
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Region:
    region_id: str
    provider_id: str
    account_id: str
    name: str
    storage_mode: str
    setting: str
    admission: str
    allow_public_jobs: bool
    cloud_region: str | None
    site: str | None
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Node:
    """`specs` is {"devices": [...], "host": {...}} as last reported."""

    node_id: str
    provider_id: str
    account_id: str
    region_id: str
    client_id: str | None
    owner_account_id: str | None
    agent: str
    key_id: str
    public_key: str
    phase: str
    phase_at_us: int
    quarantined: bool
    specs: dict[str, Any] | None
    specs_at_us: int | None
    at_us: int
    position: int
    pool_id: str | None
    sellable: bool
    revoked: bool
    lifetime: str
    minion_id: str | None
    error: str | None  # the last one told, whether or not it is over
    capacity_class: str


@dataclass(frozen=True, slots=True)
class Device:
    device_id: str
    node_id: str
    provider_id: str
    account_id: str
    vendor: str
    model: str
    gpu_class: str | None
    memory_mib: int
    retired: bool
    share_free: int
    mem_free: int
    mode: str | None
    at_us: int
    position: int
    kind: str
    memory: str  # "dedicated", "unified" with the host's, or "none"
    is_divisible: bool
    capacity_asset: str


@dataclass(frozen=True, slots=True)
class Holding:
    device_id: str
    lease_id: str
    share_ppm: int
    mem_ppm: int
    at_us: int
    mode: str
    profile: str | None
    start: int | None


@dataclass(frozen=True, slots=True)
class Offer:
    """`models` to `memory_mib` are of the node's priced devices, `free` counts those that nobody
    holds any of; `kinds` are of all in service.
    """

    offer_id: str
    provider_id: str
    account_id: str
    node_id: str
    region_id: str
    price_units: int
    pay_with: str
    fractions: bool
    available_until_us: int | None
    terms: dict[str, Any]
    withdrawn_at_us: int | None
    models: list[str]
    gpu_classes: list[str]
    free: int
    memory_mib: int | None
    kinds: list[str]
    phase: str  # of the node, as the three after it
    quarantined: bool
    specs_at_us: int | None
    capacity_class: str
    at_us: int
    position: int


_NODE = """
    SELECT n.*, p.account_id FROM proj_fleet.node n JOIN proj_fleet.provider p USING (provider_id)
"""
_OFFER = """
    SELECT o.*, p.account_id, n.region_id, n.phase, n.quarantined, n.specs_at_us,
        n.capacity_class, k.models, k.gpu_classes, k.free, k.memory_mib, k.kinds
    FROM proj_fleet.offer o JOIN proj_fleet.provider p USING (provider_id)
    JOIN proj_fleet.node n ON n.node_id = o.node_id
    CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(DISTINCT d.model) FILTER (WHERE priced), '{}') AS models,
            coalesce(array_agg(DISTINCT d.gpu_class) FILTER (WHERE priced), '{}') AS gpu_classes,
            (count(*) FILTER (WHERE priced AND d.share_free = 1000000
                AND d.mem_free = 1000000))::int AS free,
            min(d.memory_mib) FILTER (WHERE priced) AS memory_mib,
            coalesce(array_agg(DISTINCT d.kind), '{}') AS kinds
        FROM (SELECT *, gpu_class IS NOT NULL AS priced FROM proj_fleet.device) d
        WHERE d.node_id = o.node_id AND NOT d.retired) k
"""


def read_provider(connection: Connection, provider_id: str) -> Provider | None:
    sql = "SELECT * FROM proj_fleet.provider WHERE provider_id = %(id)s"
    return read.one(connection, Provider, sql, id=provider_id)


def read_providers(
    connection: Connection,
    *,
    account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Provider]:
    """In order of registration; `after` is the last position of the page before."""
    sql = """SELECT * FROM proj_fleet.provider WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Provider, sql, way, account=account_id, after=after, limit=limit)


def read_regions(
    connection: Connection,
    *,
    region_id: str | None = None,
    provider_id: str | None = None,
    account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Region]:
    """In order of opening; `after` is the last position of the page before. `account_id`: those of
    its providers, and those that it administers.
    """
    sql = """SELECT r.*, p.account_id FROM proj_fleet.region r
        JOIN proj_fleet.provider p USING (provider_id) WHERE r.position > %(after)s
        AND (%(region)s::text IS NULL OR r.region_id = %(region)s)
        AND (%(provider)s::text IS NULL OR r.provider_id = %(provider)s)
        AND (%(account)s::text IS NULL OR p.account_id = %(account)s OR EXISTS (
            SELECT FROM proj_fleet.region_admin a
            WHERE a.region_id = r.region_id AND a.account_id = %(account)s))
        ORDER BY r.position LIMIT %(limit)s"""
    return read.listed(
        connection,
        Region,
        sql,
        way,
        region=region_id,
        provider=provider_id,
        account=account_id,
        after=after,
        limit=limit,
    )


def read_node(connection: Connection, node_id: str) -> Node | None:
    return read.one(connection, Node, _NODE + "WHERE n.node_id = %(id)s", id=node_id)


def read_specs(connection: Connection, node_ids: list[str]) -> dict[str, dict[str, Any]]:
    """The inventories of nodes as last told."""
    sql = "SELECT node_id, specs FROM proj_fleet.node WHERE node_id = ANY(%s) AND specs IS NOT NULL"
    return dict(connection.execute(sql, (node_ids,)).fetchall())


def read_unretired(connection: Connection, account_id: str, limit: int = 50) -> list[str]:
    """Ids of an account's nodes that have not left for good, first joined first."""
    sql = """SELECT n.node_id FROM proj_fleet.node n JOIN proj_fleet.provider p USING (provider_id)
        WHERE p.account_id = %s AND n.phase <> 'retired' ORDER BY n.position LIMIT %s"""
    return [str(row[0]) for row in connection.execute(sql, (account_id, limit))]


def read_nodes(
    connection: Connection,
    *,
    provider_id: str | None = None,
    region_id: str | None = None,
    account_id: str | None = None,
    phase: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Node]:
    """In order of joining; `after` is the last position of the page before. `account_id`: nodes of
    its providers, nodes that it owns a part of, and those of regions that it administers.
    """
    of_phase = "" if phase is None else "AND n.phase = %(phase)s"  # so that its index is used
    sql = (
        _NODE
        + f"""WHERE n.position > %(after)s {of_phase}
        AND (%(provider)s::text IS NULL OR n.provider_id = %(provider)s)
        AND (%(region)s::text IS NULL OR n.region_id = %(region)s)
        AND (%(account)s::text IS NULL OR p.account_id = %(account)s
            OR n.owner_account_id = %(account)s
            OR EXISTS (SELECT FROM proj_fleet.owner o
                WHERE o.node_id = n.node_id AND o.account_id = %(account)s)
            OR EXISTS (SELECT FROM proj_fleet.region_admin a
                WHERE a.region_id = n.region_id AND a.account_id = %(account)s))
        ORDER BY n.position LIMIT %(limit)s"""
    )
    return read.listed(
        connection,
        Node,
        sql,
        way,
        provider=provider_id,
        region=region_id,
        account=account_id,
        phase=phase,
        after=after,
        limit=limit,
    )


def count_standing(connection: Connection, region_id: str) -> int:
    """How many nodes of a region were admitted and are not retired."""
    sql = """SELECT count(*) FROM proj_fleet.node
        WHERE region_id = %(region)s AND phase NOT IN ('joining', 'confirmed', 'retired')"""
    return read.number(connection, sql, region=region_id)


def read_last_heard(connection: Connection, node_ids: list[str]) -> dict[str, int]:
    """When each node last told its inventory or sent a signed report."""
    sql = """SELECT n.node_id,
            greatest(n.specs_at_us, n.at_us, coalesce(r.last_recorded_us, 0))
        FROM proj_fleet.node n LEFT JOIN proj_usage.node_reports r USING (node_id)
        WHERE n.node_id = ANY(%s)"""
    return dict(connection.execute(sql, (node_ids,)).fetchall())


def read_devices(
    connection: Connection,
    *,
    device_id: str | None = None,
    node_id: str | None = None,
    node_ids: list[str] | None = None,
    region_id: str | None = None,
    account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Device]:
    """In order of registration; `after` is the last position of the page before. `account_id`: of
    the nodes that `read_nodes` tells it.
    """
    sql = """SELECT d.*, p.account_id FROM proj_fleet.device d
        JOIN proj_fleet.provider p USING (provider_id)
        JOIN proj_fleet.node n ON n.node_id = d.node_id WHERE d.position > %(after)s
        AND (%(device)s::text IS NULL OR d.device_id = %(device)s)
        AND (%(node)s::text IS NULL OR d.node_id = %(node)s)
        AND (%(nodes)s::text[] IS NULL OR d.node_id = ANY(%(nodes)s))
        AND (%(region)s::text IS NULL OR n.region_id = %(region)s)
        AND (%(account)s::text IS NULL OR p.account_id = %(account)s
            OR n.owner_account_id = %(account)s
            OR EXISTS (SELECT FROM proj_fleet.owner o
                WHERE o.node_id = n.node_id AND o.account_id = %(account)s)
            OR EXISTS (SELECT FROM proj_fleet.region_admin a
                WHERE a.region_id = n.region_id AND a.account_id = %(account)s))
        ORDER BY d.position LIMIT %(limit)s"""
    return read.listed(
        connection,
        Device,
        sql,
        way,
        device=device_id,
        node=node_id,
        nodes=node_ids,
        region=region_id,
        account=account_id,
        after=after,
        limit=limit,
    )


def read_holdings(
    connection: Connection, *, device_id: str | None = None, lease_id: str | None = None
) -> list[Holding]:
    """Who holds what now, of one device or by one lease."""
    sql = """SELECT * FROM proj_fleet.holding
        WHERE (%(device)s::text IS NULL OR device_id = %(device)s)
        AND (%(lease)s::text IS NULL OR lease_id = %(lease)s) ORDER BY device_id, lease_id"""
    return read.many(connection, Holding, sql, device=device_id, lease=lease_id)


def read_offer(connection: Connection, offer_id: str) -> Offer | None:
    return read.one(connection, Offer, _OFFER + "WHERE o.offer_id = %(id)s", id=offer_id)


def read_offers(
    connection: Connection,
    *,
    model: str | None = None,
    gpu_class: str | None = None,
    price_max: int | None = None,
    account_id: str | None = None,
    node_id: str | None = None,
    node_ids: list[str] | None = None,
    setting: str | None = None,
    kind: str | None = None,
    rtt_us_max: int | None = None,
    withdrawn: bool = False,
    among: list[str] | None = None,
    after: tuple[int, int] = (-1, 0),
    limit: int = 50,
) -> list[Offer]:
    """Cheapest first, of all or of `among`: by the index of prices, and offer by offer (`EXISTS`
    would read all devices), so that a page looks at no more than it passes. `rtt_us_max`: only of
    nodes that measured their ways and found none longer; `after` is (price_units, position) of the
    last offer of the page before.
    """
    sql = (
        _OFFER
        + """WHERE (o.price_units, o.position) > (%(price)s, %(position)s)
        AND (%(withdrawn)s OR o.withdrawn_at_us IS NULL)
        AND (%(model)s::text IS NULL OR (SELECT true FROM proj_fleet.device d
            WHERE d.node_id = o.node_id AND NOT d.retired AND d.gpu_class IS NOT NULL
                AND d.model = %(model)s LIMIT 1))
        AND (%(class)s::text IS NULL OR (SELECT true FROM proj_fleet.device d
            WHERE d.node_id = o.node_id AND NOT d.retired AND d.gpu_class = %(class)s LIMIT 1))
        AND (%(price_max)s::bigint IS NULL OR o.price_units <= %(price_max)s)
        AND (%(account)s::text IS NULL OR p.account_id = %(account)s)
        AND (%(node)s::text IS NULL OR o.node_id = %(node)s)
        AND (%(nodes)s::text[] IS NULL OR o.node_id = ANY(%(nodes)s))
        AND (%(setting)s::text IS NULL OR n.region_id IN (
            SELECT region_id FROM proj_fleet.region WHERE setting = %(setting)s))
        AND (%(kind)s::text IS NULL OR (SELECT true FROM proj_fleet.device d
            WHERE d.node_id = o.node_id AND NOT d.retired AND d.kind = %(kind)s LIMIT 1))
        AND (%(rtt)s::bigint IS NULL OR %(rtt)s >= (
            SELECT max(l.rtt_us) FROM proj_fleet.latency l WHERE l.node_id = o.node_id))
        AND (%(among)s::text[] IS NULL OR o.offer_id = ANY(%(among)s))
        ORDER BY o.price_units, o.position LIMIT %(limit)s"""
    )
    values = {
        "price": after[0],
        "position": after[1],
        "withdrawn": withdrawn,
        "model": model,
        "class": gpu_class,
        "price_max": price_max,
        "account": account_id,
        "node": node_id,
        "nodes": node_ids,
        "setting": setting,
        "kind": kind,
        "rtt": rtt_us_max,
        "among": among,
        "limit": limit,
    }
    return read.many(connection, Offer, sql, **values)
