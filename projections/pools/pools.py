"""Pools: their nodes, who waits, who holds and has used how much, and each decision.

    waiting == queued - left - decided           of every pool
    held == reserved - closed                    of leases on nodes of the pool

What a pool could serve is told by the fleet, so reading capacity asks both. Gangs are here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domain.duration import HOUR_US
from domain.jobs.gang import GANG_WAIT_US
from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.pool (
        pool_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        name text NOT NULL, version int NOT NULL, policy json NOT NULL, controller_address text,
        at_us bigint NOT NULL, position bigint NOT NULL) WITH (fillfactor = 70);
    CREATE TABLE own.node (
        node_id text COLLATE "C" PRIMARY KEY, pool_id text COLLATE "C" NOT NULL,
        at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE TABLE own.waiting (
        request_id text COLLATE "C" PRIMARY KEY, pool_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C" NOT NULL, project_id text NOT NULL, place bigint NOT NULL,
        is_gang boolean NOT NULL, demand json NOT NULL, at_us bigint NOT NULL,
        position bigint NOT NULL);
    CREATE TABLE own.decision (
        position bigint PRIMARY KEY, pool_id text COLLATE "C" NOT NULL, chosen text NOT NULL,
        rule text NOT NULL, policy_version int NOT NULL, fleet_position bigint NOT NULL,
        waiting_count int NOT NULL, at_us bigint NOT NULL);
    CREATE TABLE own.asked (
        lease_id text COLLATE "C" PRIMARY KEY, cpu_cores bigint, ram_mib bigint);
    CREATE TABLE own.lease (
        lease_id text COLLATE "C" PRIMARY KEY, pool_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C" NOT NULL, project_id text NOT NULL, job_id text NOT NULL,
        gpus int NOT NULL, share_ppm int NOT NULL, mem_ppm int NOT NULL, cpu_cores bigint NOT NULL,
        ram_mib bigint NOT NULL, is_held boolean NOT NULL) WITH (fillfactor = 70);
    CREATE TABLE own.used (
        pool_id text COLLATE "C", account_id text COLLATE "C", project_id text COLLATE "C",
        hour bigint, gpu_us bigint NOT NULL, PRIMARY KEY (pool_id, account_id, project_id, hour))
        WITH (fillfactor = 70);
    COMMENT ON TABLE own.used IS 'GPU time by the hour in which it ended';
    CREATE TABLE own.gang (
        gang_id text COLLATE "C" PRIMARY KEY, job_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C" NOT NULL, pool_id text COLLATE "C", members int NOT NULL,
        min_members int NOT NULL, gpus_per_member int NOT NULL, state text NOT NULL,
        lease_ids text[] NOT NULL, ready_count int NOT NULL, ready_until_us bigint,
        opened_at_us bigint, closed_at_us bigint, close_party text, close_code int,
        at_us bigint NOT NULL, position bigint NOT NULL) WITH (fillfactor = 50);
"""

_INDEXES = """
    CREATE INDEX ON own.pool (position);
    CREATE INDEX ON own.node (pool_id, position);
    CREATE INDEX ON own.waiting (pool_id, place);
    CREATE INDEX ON own.decision (pool_id, position);
    CREATE INDEX ON own.lease (pool_id) WHERE is_held;
    CREATE INDEX ON own.used (pool_id, hour);
    CREATE INDEX ON own.gang (account_id, position);
"""

_RULES = (
    Rule(
        ("pool.created.v1",),
        "pool_id text, account_id text, name text, policy json, controller_address text,"
        " at_us bigint",
        """INSERT INTO own.pool
        SELECT pool_id, account_id, name, 1, policy, controller_address, at_us, position
        FROM facts""",
    ),
    Rule(
        ("pool.policy_set.v1",),
        "pool_id text, version int, policy json",
        """UPDATE own.pool p SET version = f.version, policy = f.policy
        FROM (SELECT DISTINCT ON (pool_id) * FROM facts ORDER BY pool_id, position DESC) f
        WHERE p.pool_id = f.pool_id""",
    ),
    Rule(
        ("pool.node_added.v1", "pool.node_removed.v1"),
        "pool_id text, node_id text, at_us bigint",
        """, last AS (
            SELECT DISTINCT ON (node_id) * FROM facts ORDER BY node_id, position DESC
        ), gone AS (
            DELETE FROM own.node n USING last f
            WHERE n.node_id = f.node_id AND f.topic = 'pool.node_removed.v1'
        )
        INSERT INTO own.node
        SELECT node_id, pool_id, at_us, position FROM last WHERE topic = 'pool.node_added.v1'
        ON CONFLICT (node_id) DO UPDATE
        SET pool_id = excluded.pool_id, at_us = excluded.at_us, position = excluded.position""",
    ),
    Rule(
        ("pool.request_queued.v1",),
        "request_id text, pool_id text, account_id text, project_id text, place bigint,"
        " is_gang boolean, demand json, at_us bigint",
        """INSERT INTO own.waiting
        SELECT request_id, pool_id, account_id, project_id, place, is_gang, demand, at_us,
            position
        FROM facts""",
    ),
    Rule(
        ("pool.request_left.v1",),
        "request_id text",
        "DELETE FROM own.waiting WHERE request_id IN (SELECT request_id FROM facts)",
    ),
    Rule(
        ("pool.schedule_decided.v1",),
        "pool_id text, chosen text, rule text, policy_version int, fleet_position bigint,"
        " waiting_count int, at_us bigint",
        """, gone AS (
            DELETE FROM own.waiting WHERE request_id IN (SELECT chosen FROM facts)
        )
        INSERT INTO own.decision
        SELECT position, pool_id, chosen, rule, policy_version, fleet_position, waiting_count,
            at_us
        FROM facts""",
    ),
    Rule(
        ("lease.requested.v1",),
        "lease_id text, constraints json",
        """INSERT INTO own.asked
        SELECT lease_id, (constraints->>'cpu_cores')::bigint, (constraints->>'ram_mib')::bigint
        FROM facts WHERE constraints->>'cpu_cores' IS NOT NULL
            OR constraints->>'ram_mib' IS NOT NULL""",
    ),
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, pool_id text, account_id text, project_id text, job_id text,"
        " device_ids text[], share_ppm int, mem_ppm int",
        """INSERT INTO own.lease
        SELECT f.lease_id, f.pool_id, f.account_id, f.project_id, f.job_id,
            cardinality(f.device_ids), f.share_ppm, f.mem_ppm, coalesce(a.cpu_cores, 0),
            coalesce(a.ram_mib, 0), true
        FROM facts f LEFT JOIN own.asked a ON a.lease_id = f.lease_id
        WHERE f.pool_id IS NOT NULL""",
    ),
    Rule(
        ("lease.closed.v1",),
        "lease_id text",
        """UPDATE own.lease SET is_held = false
        WHERE lease_id IN (SELECT lease_id FROM facts)""",
    ),
    Rule(
        ("lease.usage_accrued.v1",),
        "lease_id text, until_us bigint, gpu_us_new bigint",
        """INSERT INTO own.used AS u
        SELECT l.pool_id, l.account_id, l.project_id, (f.until_us - 1) / 3600000000,
            sum(f.gpu_us_new)::bigint
        FROM facts f JOIN own.lease l ON l.lease_id = f.lease_id
        GROUP BY 1, 2, 3, 4
        ON CONFLICT (pool_id, account_id, project_id, hour)
            DO UPDATE SET gpu_us = u.gpu_us + excluded.gpu_us""",
    ),
    Rule(
        ("gang.requested.v1",),
        "gang_id text, job_id text, account_id text, pool_id text, members int, min_members int,"
        " gpus_per_member int, at_us bigint",
        """INSERT INTO own.gang
        SELECT gang_id, job_id, account_id, pool_id, members, min_members, gpus_per_member,
            'requested', '{}', 0, NULL, NULL, NULL, NULL, NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("gang.reserved.v1",),
        "gang_id text, lease_ids text[], ready_until_us bigint",
        """UPDATE own.gang g SET state = 'reserved', lease_ids = f.lease_ids,
            ready_until_us = f.ready_until_us
        FROM facts f WHERE g.gang_id = f.gang_id""",
    ),
    Rule(
        ("gang.member_ready.v1",),
        "gang_id text, ready int",
        """UPDATE own.gang g SET ready_count = f.ready
        FROM (SELECT gang_id, max(ready) AS ready FROM facts GROUP BY gang_id) f
        WHERE g.gang_id = f.gang_id""",
    ),
    Rule(
        ("gang.opened.v1",),
        "gang_id text, opened_at_us bigint",
        """UPDATE own.gang g SET state = 'open', opened_at_us = f.opened_at_us
        FROM facts f WHERE g.gang_id = f.gang_id""",
    ),
    Rule(
        ("gang.grown.v1",),
        "gang_id text, lease_ids text[]",
        """UPDATE own.gang g SET lease_ids = g.lease_ids || f.lease_ids
        FROM (SELECT gang_id, array_agg(lease_id ORDER BY position, ordinality) AS lease_ids
            FROM facts, unnest(lease_ids) WITH ORDINALITY AS l(lease_id, ordinality)
            GROUP BY gang_id) f
        WHERE g.gang_id = f.gang_id""",
    ),
    Rule(
        ("gang.closed.v1",),
        "gang_id text, party text, code int, at_us bigint",
        """UPDATE own.gang g SET state = 'closed', closed_at_us = f.at_us, close_party = f.party,
            close_code = f.code
        FROM facts f WHERE g.gang_id = f.gang_id""",
    ),
)

POOLS = Projection("pools", _TABLES, _RULES, _INDEXES)


# --- reading ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pool:
    """`policy` as it is stored; `nodes`, `waiting`: how many."""

    pool_id: str
    account_id: str
    name: str
    version: int
    policy: dict[str, Any]
    controller_address: str | None
    nodes: int
    waiting: int
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class PoolNode:
    node_id: str
    pool_id: str
    provider_id: str
    region_id: str
    phase: str
    models: list[str]
    vendors: list[str]
    devices: int
    free: int  # that nobody holds any of
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Accelerators:
    """Devices of one kind in a pool that may be leased, and what is free of them."""

    vendor: str
    model: str
    gpu_class: str | None
    devices: int
    whole_free: int
    share_free_ppm: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    request_id: str
    pool_id: str
    account_id: str
    project_id: str
    place: int
    is_gang: bool
    demand: list[dict[str, Any]]
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Decision:
    position: int
    pool_id: str
    chosen: str
    rule: str
    policy_version: int
    fleet_position: int
    waiting_count: int
    at_us: int


@dataclass(frozen=True, slots=True)
class GangRow:
    gang_id: str
    job_id: str
    account_id: str
    pool_id: str | None
    members: int
    min_members: int
    gpus_per_member: int
    state: str
    lease_ids: list[str]
    ready_count: int
    ready_until_us: int | None
    opened_at_us: int | None
    closed_at_us: int | None
    close_party: str | None
    close_code: int | None
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Held:
    """What the leases of one project of an account hold of a pool now."""

    account_id: str
    project_id: str
    gpu: int  # ppm of a device
    gpu_memory: int
    cpu_cores: int
    ram_mib: int


@dataclass(frozen=True, slots=True)
class Used:
    account_id: str
    project_id: str
    hour: int
    gpu_us: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the active nodes of a pool have: devices, and host resources that they tell of."""

    devices: int
    cpu_cores: int
    ram_mib: int


_POOL = """
    SELECT p.*, (SELECT count(*) FROM proj_pools.node n WHERE n.pool_id = p.pool_id) AS nodes,
        (SELECT count(*) FROM proj_pools.waiting w WHERE w.pool_id = p.pool_id) AS waiting
    FROM proj_pools.pool p
"""


def read_pool(connection: Connection, pool_id: str) -> Pool | None:
    return read.one(connection, Pool, _POOL + "WHERE p.pool_id = %(id)s", id=pool_id)


def read_pools(
    connection: Connection,
    *,
    account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Pool]:
    """In order of creation; `after` is the last position of the page before."""
    sql = (
        _POOL
        + """WHERE p.position > %(after)s
        AND (%(account)s::text IS NULL OR p.account_id = %(account)s)
        ORDER BY p.position LIMIT %(limit)s"""
    )
    return read.listed(connection, Pool, sql, way, account=account_id, after=after, limit=limit)


def pools_with_waiting(connection: Connection) -> list[str]:
    """Pools that somebody waits for."""
    rows = connection.execute("SELECT DISTINCT pool_id FROM proj_pools.waiting ORDER BY pool_id")
    return [str(row[0]) for row in rows]


def gangs_expired(connection: Connection, now_us: int, limit: int = 100) -> list[str]:
    """Gangs that have waited for longer than a gang does, the oldest first."""
    sql = """SELECT gang_id FROM proj_pools.gang
        WHERE state = 'requested' AND at_us <= %s ORDER BY at_us, gang_id LIMIT %s"""
    rows = connection.execute(sql, (now_us - GANG_WAIT_US, limit))
    return [str(row[0]) for row in rows]


def gangs_to_grow(connection: Connection, limit: int = 100) -> list[str]:
    """Open gangs with fewer members than they wished for, oldest first."""
    sql = """SELECT gang_id FROM proj_pools.gang
        WHERE state = 'open' AND cardinality(lease_ids) < members ORDER BY position LIMIT %s"""
    return [str(row[0]) for row in connection.execute(sql, (limit,))]


def read_pool_nodes(
    connection: Connection, pool_id: str, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[PoolNode]:
    """In the order in which they were added. Asks the fleet."""
    sql = """
        SELECT n.node_id, n.pool_id, f.provider_id, f.region_id, f.phase,
            coalesce(d.models, '{}') AS models, coalesce(d.vendors, '{}') AS vendors,
            coalesce(d.devices, 0) AS devices, coalesce(d.free, 0) AS free, n.at_us, n.position
        FROM proj_pools.node n JOIN proj_fleet.node f ON f.node_id = n.node_id
        LEFT JOIN LATERAL (
            SELECT array_agg(DISTINCT v.model) AS models, array_agg(DISTINCT v.vendor) AS vendors,
                count(*)::int AS devices,
                (count(*) FILTER (WHERE v.share_free = 1000000 AND v.mem_free = 1000000))::int
                    AS free
            FROM proj_fleet.device v WHERE v.node_id = n.node_id AND NOT v.retired) d ON true
        WHERE n.pool_id = %(pool)s AND n.position > %(after)s
        ORDER BY n.position LIMIT %(limit)s"""
    return read.listed(connection, PoolNode, sql, way, pool=pool_id, after=after, limit=limit)


_OF_POOL = """
    proj_pools.node n JOIN proj_fleet.node f ON f.node_id = n.node_id
    JOIN proj_fleet.device d ON d.node_id = n.node_id
    WHERE n.pool_id = %(pool)s AND f.phase = 'active' AND NOT f.quarantined AND NOT d.retired
"""


def read_accelerators(connection: Connection, pool_id: str) -> list[Accelerators]:
    """What a pool has of each model on nodes that may be leased. Asks the fleet."""
    sql = f"""
        SELECT d.vendor, d.model, min(d.gpu_class) AS gpu_class, count(*)::int AS devices,
            (count(*) FILTER (WHERE d.share_free = 1000000 AND d.mem_free = 1000000))::int
                AS whole_free,
            sum(d.share_free)::bigint AS share_free_ppm, min(d.memory_mib) AS memory_mib
        FROM {_OF_POOL} GROUP BY d.vendor, d.model ORDER BY d.vendor, d.model"""
    return read.many(connection, Accelerators, sql, pool=pool_id)


def read_capacity(connection: Connection, pool_id: str) -> Capacity:
    """Asks the fleet."""
    sql = f"""
        SELECT (SELECT count(*) FROM {_OF_POOL})::int AS devices,
            coalesce(sum((f.specs->'host'->>'cpu_cores')::bigint), 0)::bigint AS cpu_cores,
            coalesce(sum((f.specs->'host'->>'ram_mib')::bigint), 0)::bigint AS ram_mib
        FROM proj_pools.node n JOIN proj_fleet.node f ON f.node_id = n.node_id
        WHERE n.pool_id = %(pool)s AND f.phase = 'active' AND NOT f.quarantined"""
    found = read.one(connection, Capacity, sql, pool=pool_id)
    assert found is not None
    return found


def most_members(
    connection: Connection,
    *,
    models: Sequence[str],
    gpus: int,
    slots: int,
    pool_id: str | None = None,
) -> int:
    """How many members of `gpus` devices each the whole fleet, or a pool, could hold if nobody held
    anything; `slots`: members that share one device. Asks the fleet.
    """
    sql = """
        SELECT sum(n.devices * %(slots)s / %(gpus)s)::bigint FROM (
            SELECT count(*) AS devices FROM proj_fleet.device d
            JOIN proj_fleet.node f ON f.node_id = d.node_id
            WHERE NOT d.retired AND f.phase IN ('active', 'maintenance') AND NOT f.quarantined
                AND (%(any)s OR d.model = ANY(%(models)s))
                AND (%(pool)s::text IS NULL OR d.node_id IN (
                    SELECT p.node_id FROM proj_pools.node p WHERE p.pool_id = %(pool)s))
            GROUP BY d.node_id) n
        WHERE n.devices >= %(gpus)s"""
    return read.number(
        connection, sql, models=list(models), any=not models, gpus=gpus, slots=slots, pool=pool_id
    )


def read_held(connection: Connection, pool_id: str) -> list[Held]:
    """Who holds what of a pool, the most GPUs first."""
    sql = """
        SELECT account_id, project_id, sum(gpus::bigint * share_ppm)::bigint AS gpu,
            sum(gpus::bigint * mem_ppm)::bigint AS gpu_memory,
            sum(cpu_cores)::bigint AS cpu_cores, sum(ram_mib)::bigint AS ram_mib
        FROM proj_pools.lease WHERE pool_id = %(pool)s AND is_held
        GROUP BY account_id, project_id ORDER BY gpu DESC, account_id, project_id"""
    return read.many(connection, Held, sql, pool=pool_id)


def read_used(connection: Connection, pool_id: str, since_us: int) -> list[Used]:
    """GPU time used in a pool, by project and hour, since a moment."""
    sql = """SELECT account_id, project_id, hour, gpu_us FROM proj_pools.used
        WHERE pool_id = %(pool)s AND hour >= %(since)s ORDER BY account_id, project_id, hour"""
    return read.many(connection, Used, sql, pool=pool_id, since=since_us // HOUR_US)


def read_waiting(
    connection: Connection, pool_id: str, *, after: int = 0, limit: int = 50
) -> list[WaitingRequest]:
    """Who waits, first come first; `after` is the last place of the page before."""
    sql = """SELECT * FROM proj_pools.waiting WHERE pool_id = %(pool)s AND place > %(after)s
        ORDER BY place LIMIT %(limit)s"""
    return read.many(connection, WaitingRequest, sql, pool=pool_id, after=after, limit=limit)


def read_decisions(
    connection: Connection, pool_id: str, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[Decision]:
    """In order; the whole of each is the fact at its position."""
    sql = """SELECT * FROM proj_pools.decision WHERE pool_id = %(pool)s AND position > %(after)s
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Decision, sql, way, pool=pool_id, after=after, limit=limit)


def read_gang(
    connection: Connection, gang_id: str, *, account_id: str | None = None
) -> GangRow | None:
    sql = """SELECT * FROM proj_pools.gang WHERE gang_id = %(id)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)"""
    return read.one(connection, GangRow, sql, id=gang_id, account=account_id)


def read_is_waiting(connection: Connection, job_ids: Sequence[str]) -> bool:
    """Whether a gang of one of these jobs waits for its leases."""
    sql = """SELECT EXISTS (SELECT FROM proj_pools.gang
        WHERE job_id = ANY(%(ids)s) AND state = 'requested')"""
    row = connection.execute(sql, {"ids": list(job_ids)}).fetchone()
    return row is not None and bool(row[0])


def read_gangs(
    connection: Connection,
    *,
    account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[GangRow]:
    """In order of request; `after` is the last position of the page before."""
    sql = """SELECT * FROM proj_pools.gang WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, GangRow, sql, way, account=account_id, after=after, limit=limit)
