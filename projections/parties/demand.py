"""Who demands what, under which limits, and what did it use? Clients, groups, lists, usage by kind.

    sum of `used` over any grouping == the sum of the accruals of the same leases

Usage is kept by hour, node, pool, client, project, end user, kind of job and groups: what a
scheduler learns from (R-16) and what a group, an end user or a client is told. A lease counts in
the groups it was counted in when it was reserved. Limits that decide are in the streams; here they
are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.gpu_time import GPU_HOUR_US
from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.client (
        client_id text COLLATE "C" PRIMARY KEY, min_reputation_ppm int, suspended boolean NOT NULL,
        at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE TABLE own.client_key (
        client_id text COLLATE "C", key_id text COLLATE "C", instance_id text NOT NULL,
        at_us bigint NOT NULL, revoked_at_us bigint, position bigint NOT NULL,
        PRIMARY KEY (client_id, key_id));
    CREATE TABLE own.pool_group (
        group_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL, pool_id text,
        parent_id text, at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE TABLE own.member (
        scope text COLLATE "C", kind text COLLATE "C", target text COLLATE "C",
        group_id text COLLATE "C", at_us bigint NOT NULL, position bigint NOT NULL,
        PRIMARY KEY (scope, kind, target));
    CREATE TABLE own.quota (
        quota_id text COLLATE "C" PRIMARY KEY, gpu_ppm_max bigint, used_ppm bigint NOT NULL,
        position bigint NOT NULL) WITH (fillfactor = 70);
    CREATE TABLE own.counterparty (
        account_id text COLLATE "C", counterparty_id text COLLATE "C", verdict text NOT NULL,
        at_us bigint NOT NULL, position bigint NOT NULL, PRIMARY KEY (account_id, counterparty_id));
    CREATE TABLE own.project (
        account_id text COLLATE "C", project_id text COLLATE "C", overflow text NOT NULL,
        at_us bigint NOT NULL, position bigint NOT NULL, PRIMARY KEY (account_id, project_id));
    CREATE TABLE own.job (job_id text COLLATE "C" PRIMARY KEY, kind text NOT NULL, work text);
    CREATE TABLE own.lease (
        lease_id text COLLATE "C" PRIMARY KEY, kind text NOT NULL, work text, pool_id text,
        group_ids text[], opened_at_us bigint);
    CREATE TABLE own.used (
        hour_us bigint, node_id text COLLATE "C", pool_id text COLLATE "C",
        account_id text COLLATE "C", provider_account_id text COLLATE "C",
        client_id text COLLATE "C", project_id text COLLATE "C", end_user_ref text COLLATE "C",
        kind text COLLATE "C", work text COLLATE "C", group_ids text[],
        accruals bigint NOT NULL, gpu_us bigint NOT NULL, charge bigint NOT NULL,
        PRIMARY KEY (hour_us, node_id, pool_id, account_id, provider_account_id, client_id,
            project_id, end_user_ref, kind, work, group_ids)) WITH (fillfactor = 70);
    COMMENT ON TABLE own.used IS 'What leases used, by the UTC hour it began in';
"""

_INDEXES = """
    CREATE INDEX ON own.client_key (key_id);
    CREATE INDEX ON own.pool_group (account_id, position);
    CREATE INDEX ON own.member (group_id);
    CREATE INDEX ON own.used (account_id, hour_us);
    CREATE INDEX ON own.used (provider_account_id, hour_us);
"""

_RULES = (
    Rule(
        ("compute_client.registered.v1",),
        "client_id text, min_reputation_ppm int, at_us bigint",
        """INSERT INTO own.client
        SELECT client_id, min_reputation_ppm, false, at_us, position FROM facts""",
    ),
    Rule(
        ("compute_client.floor_set.v1",),
        "client_id text, min_reputation_ppm int",
        """UPDATE own.client c SET min_reputation_ppm = f.min_reputation_ppm FROM (
            SELECT DISTINCT ON (client_id) * FROM facts ORDER BY client_id, position DESC) f
        WHERE c.client_id = f.client_id""",
    ),
    Rule(
        ("compute_client.suspended.v1", "compute_client.resumed.v1"),
        "client_id text",
        """UPDATE own.client c SET suspended = f.topic = 'compute_client.suspended.v1' FROM (
            SELECT DISTINCT ON (client_id) * FROM facts ORDER BY client_id, position DESC) f
        WHERE c.client_id = f.client_id""",
    ),
    Rule(
        ("compute_client.key_added.v1", "compute_client.key_revoked.v1"),
        "client_id text, instance_id text, key_id text, at_us bigint",
        """INSERT INTO own.client_key AS k
        SELECT DISTINCT ON (client_id, key_id) client_id, key_id, instance_id,
            first_value(at_us) OVER w,
            CASE topic WHEN 'compute_client.key_revoked.v1' THEN at_us END,
            first_value(position) OVER w
        FROM facts WINDOW w AS (PARTITION BY client_id, key_id ORDER BY position)
        ORDER BY client_id, key_id, position DESC
        ON CONFLICT (client_id, key_id) DO UPDATE SET instance_id = excluded.instance_id,
            revoked_at_us = excluded.revoked_at_us""",
    ),
    Rule(
        ("group.created.v1",),
        "group_id text, account_id text, pool_id text, parent_id text, at_us bigint",
        """INSERT INTO own.pool_group
        SELECT group_id, account_id, pool_id, parent_id, at_us, position FROM facts""",
    ),
    Rule(
        ("group.member_added.v1", "group.member_removed.v1"),
        "group_id text, scope text, kind text, target text, at_us bigint",
        """INSERT INTO own.member
        SELECT DISTINCT ON (scope, kind, target) scope, kind, target,
            CASE topic WHEN 'group.member_added.v1' THEN group_id END, at_us, position
        FROM facts ORDER BY scope, kind, target, position DESC
        ON CONFLICT (scope, kind, target) DO UPDATE SET group_id = excluded.group_id,
            at_us = excluded.at_us, position = excluded.position""",
    ),
    Rule(
        ("quota.set.v1",),
        "quota_id text, gpu_ppm_max bigint",
        """INSERT INTO own.quota
        SELECT DISTINCT ON (quota_id) quota_id, gpu_ppm_max, 0, position
        FROM facts ORDER BY quota_id, position DESC
        ON CONFLICT (quota_id) DO UPDATE SET gpu_ppm_max = excluded.gpu_ppm_max,
            position = excluded.position""",
    ),
    Rule(
        ("quota.held.v1", "quota.released.v1"),
        "quota_id text, used_ppm bigint",
        """UPDATE own.quota q SET used_ppm = f.used_ppm FROM (
            SELECT DISTINCT ON (quota_id) * FROM facts ORDER BY quota_id, position DESC) f
        WHERE q.quota_id = f.quota_id""",
    ),
    Rule(
        ("counterparty.allowed.v1", "counterparty.denied.v1", "counterparty.removed.v1"),
        "account_id text, counterparty_id text, at_us bigint",
        """INSERT INTO own.counterparty
        SELECT DISTINCT ON (account_id, counterparty_id) account_id, counterparty_id,
            CASE topic WHEN 'counterparty.allowed.v1' THEN 'allow'
                WHEN 'counterparty.denied.v1' THEN 'deny' ELSE 'none' END, at_us, position
        FROM facts ORDER BY account_id, counterparty_id, position DESC
        ON CONFLICT (account_id, counterparty_id) DO UPDATE SET verdict = excluded.verdict,
            at_us = excluded.at_us, position = excluded.position""",
    ),
    Rule(
        ("project.overflow_set.v1",),
        "account_id text, project_id text, overflow text, at_us bigint",
        """INSERT INTO own.project
        SELECT DISTINCT ON (account_id, project_id) account_id, project_id, overflow, at_us,
            position
        FROM facts ORDER BY account_id, project_id, position DESC
        ON CONFLICT (account_id, project_id) DO UPDATE SET overflow = excluded.overflow,
            at_us = excluded.at_us, position = excluded.position""",
    ),
    Rule(
        ("job.submitted.v1",),
        "job_id text, kind text, work text",
        "INSERT INTO own.job SELECT job_id, kind, work FROM facts",
    ),
    Rule(
        ("lease.requested.v1",),
        "lease_id text, job_id text",
        """INSERT INTO own.lease (lease_id, kind, work)
        SELECT f.lease_id, coalesce(j.kind, ''), coalesce(j.work, '')
        FROM facts f LEFT JOIN own.job j USING (job_id)""",
    ),
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, quotas text[], pool_id text",
        """UPDATE own.lease l SET pool_id = f.pool_id, group_ids = ARRAY(
            SELECT q FROM unnest(f.quotas) q WHERE position('|' IN q) = 0 ORDER BY q)
        FROM facts f WHERE l.lease_id = f.lease_id""",
    ),
    Rule(
        ("lease.opened.v1",),
        "lease_id text, opened_at_us bigint",
        """UPDATE own.lease l SET opened_at_us = f.opened_at_us FROM facts f
        WHERE l.lease_id = f.lease_id""",
    ),
    Rule(
        ("lease.usage_accrued.v1",),
        "lease_id text, hour_index bigint, node_id text, account_id text,"
        " provider_account_id text, client_id text, project_id text, end_user_ref text,"
        " gpu_us_new bigint, charge_new json",
        f"""INSERT INTO own.used AS t
        SELECT began_us - began_us %% {GPU_HOUR_US}, node_id, pool_id, account_id,
            provider_account_id, client_id, project_id, end_user_ref, kind, work, group_ids,
            count(*), sum(gpu_us_new), sum(charge)
        FROM (
            SELECT f.*, (f.charge_new->>'units')::bigint AS charge, l.kind,
                coalesce(l.work, '') AS work, coalesce(l.pool_id, '') AS pool_id,
                coalesce(l.group_ids, '{{}}') AS group_ids,
                l.opened_at_us + f.hour_index * {GPU_HOUR_US} AS began_us
            FROM facts f JOIN own.lease l ON l.lease_id = f.lease_id
            WHERE l.opened_at_us IS NOT NULL) a
        GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
        ON CONFLICT (hour_us, node_id, pool_id, account_id, provider_account_id, client_id,
            project_id, end_user_ref, kind, work, group_ids)
        DO UPDATE SET accruals = t.accruals + excluded.accruals,
            gpu_us = t.gpu_us + excluded.gpu_us, charge = t.charge + excluded.charge""",
    ),
)

DEMAND = Projection("demand", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Client:
    client_id: str
    min_reputation_ppm: int | None
    suspended: bool
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class ClientKey:
    key_id: str
    instance_id: str
    at_us: int
    revoked_at_us: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """`used_ppm` of its quota, and how much that is at most."""

    group_id: str
    account_id: str
    pool_id: str | None
    parent_id: str | None
    gpu_ppm_max: int | None
    used_ppm: int
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Member:
    kind: str
    target: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Counterparty:
    counterparty_id: str
    verdict: str
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Project:
    project_id: str
    overflow: str
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class ClientQuota:
    pool_id: str
    gpu_ppm_max: int | None
    used_ppm: int


def read_clients(
    connection: Connection,
    *,
    client_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Client]:
    """In order of registration; `after` is the last position of the page before."""
    sql = """SELECT * FROM proj_demand.client WHERE position > %(after)s
        AND (%(client)s::text IS NULL OR client_id = %(client)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Client, sql, way, client=client_id, after=after, limit=limit)


def read_client_keys(connection: Connection, client_id: str) -> list[ClientKey]:
    """Keys of all instances, revoked ones too, bound first first."""
    sql = """SELECT key_id, instance_id, at_us, revoked_at_us FROM proj_demand.client_key
        WHERE client_id = %(id)s ORDER BY position"""
    return read.many(connection, ClientKey, sql, id=client_id)


def read_client_quotas(connection: Connection, client_id: str) -> list[ClientQuota]:
    """By pool; the empty pool is everywhere."""
    sql = """SELECT split_part(quota_id, '|', 2) AS pool_id, gpu_ppm_max, used_ppm
        FROM proj_demand.quota WHERE split_part(quota_id, '|', 1) = %(id)s
            AND position('|' IN quota_id) > 0 ORDER BY quota_id"""
    return read.many(connection, ClientQuota, sql, id=client_id)


def read_groups(
    connection: Connection,
    *,
    account_id: str | None = None,
    group_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Group]:
    """In order of creation; `after` is the last position of the page before."""
    sql = """SELECT g.group_id, g.account_id, g.pool_id, g.parent_id, q.gpu_ppm_max, q.used_ppm,
            g.at_us, g.position
        FROM proj_demand.pool_group g JOIN proj_demand.quota q ON q.quota_id = g.group_id
        WHERE g.position > %(after)s
            AND (%(account)s::text IS NULL OR g.account_id = %(account)s)
            AND (%(group)s::text IS NULL OR g.group_id = %(group)s)
        ORDER BY g.position LIMIT %(limit)s"""
    return read.listed(
        connection, Group, sql, way, account=account_id, group=group_id, after=after, limit=limit
    )


def read_members(connection: Connection, group_id: str) -> list[Member]:
    """Who is in a group now."""
    sql = """SELECT kind, target, at_us FROM proj_demand.member WHERE group_id = %(id)s
        ORDER BY position, kind, target"""
    return read.many(connection, Member, sql, id=group_id)


def read_counterparties(
    connection: Connection, account_id: str, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[Counterparty]:
    """Everybody on the lists of an account, listed last last."""
    sql = """SELECT counterparty_id, verdict, at_us, position FROM proj_demand.counterparty
        WHERE account_id = %(id)s AND verdict <> 'none' AND position > %(after)s
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Counterparty, sql, way, id=account_id, after=after, limit=limit)


def read_projects(connection: Connection, account_id: str) -> list[Project]:
    """The projects of an account that have an overflow policy."""
    sql = """SELECT project_id, overflow, at_us, position FROM proj_demand.project
        WHERE account_id = %(id)s ORDER BY project_id"""
    return read.many(connection, Project, sql, id=account_id)


# --- usage -----------------------------------------------------------------------------------

NAMES = (
    "kind",
    "work",
    "node_id",
    "pool_id",
    "client_id",
    "project_id",
    "end_user_ref",
    "group_id",
)
_BUCKETS = {"hour": GPU_HOUR_US, "day": 24 * GPU_HOUR_US}


@dataclass(frozen=True, slots=True)
class Used:
    """GPU-microseconds and micro-credits of one grouping; what was summed over is None."""

    bucket_us: int | None
    kind: str | None
    work: str | None
    node_id: str | None
    pool_id: str | None
    client_id: str | None
    project_id: str | None
    end_user_ref: str | None
    group_id: str | None
    accruals: int
    gpu_us: int
    charge: int

    @property
    def key(self) -> list[int | str]:
        """What groupings are sorted by, and a page goes on after."""
        return [self.bucket_us or 0, *(getattr(self, name) or "" for name in NAMES)]


START: tuple[int | str, ...] = (-1, *("" for _ in NAMES))


def read_used(
    connection: Connection,
    account_id: str | None,
    *,
    from_us: int,
    to_us: int,
    as_provider: bool = False,
    by: Sequence[str] = ("kind",),
    after: Sequence[int | str] = START,
    limit: int = 50,
    **filters: str | None,
) -> list[Used]:
    """Usage in hours that begin in [from_us, to_us), added up by `by`, sorted by it.

    `account_id`: the renter, or with `as_provider` the provider; None: of everybody. `by`: at most
    one of hour and day, and any of `NAMES`; `filters` are values of `NAMES`. By `group_id` a lease
    counts once in each of its groups, so their sum can be more than the whole.
    """
    buckets = [each for each in by if each in _BUCKETS]
    assert len(buckets) <= 1, by
    assert {*by, *filters} <= {*_BUCKETS, *NAMES}, (by, filters)
    in_groups = "group_id" in by
    kept = [f"(hour_us - hour_us %% {_BUCKETS[buckets[0]]})" if buckets else "NULL::bigint"]
    kept += [name if name in by else "NULL::text" for name in NAMES]
    whose = "provider_account_id" if as_provider else "account_id"
    where = ["hour_us >= %(from_us)s", "hour_us < %(to_us)s"]
    where += [] if account_id is None else [f"{whose} = %(account)s"]
    where += [
        "%(group_id)s = ANY(group_ids)" if name == "group_id" else f"{name} = %({name})s"
        for name, value in filters.items()
        if value is not None
    ]
    unnested = "LEFT JOIN LATERAL unnest(group_ids) g(group_id) ON true" if in_groups else ""
    columns = ("bucket_us", *NAMES)
    sorted_by = [f"coalesce({name}, '') COLLATE \"C\"" for name in NAMES]
    sql = f"""SELECT * FROM (
            SELECT {", ".join(f"{v} AS {k}" for v, k in zip(kept, columns, strict=True))},
                sum(accruals)::bigint AS accruals, sum(gpu_us)::bigint AS gpu_us,
                sum(charge)::bigint AS charge
            FROM proj_demand.used {unnested} WHERE {" AND ".join(where)}
            GROUP BY {", ".join(str(n + 1) for n in range(len(columns)))}
        ) s
        WHERE (coalesce(bucket_us, 0), {", ".join(sorted_by)})
            > (%(a0)s, {", ".join(f'%(a{n + 1})s COLLATE "C"' for n in range(len(NAMES)))})
        ORDER BY coalesce(bucket_us, 0), {", ".join(sorted_by)} LIMIT %(limit)s"""
    return read.many(
        connection,
        Used,
        sql,
        account=account_id,
        from_us=from_us,
        to_us=to_us,
        limit=limit,
        **filters,
        **{f"a{n}": value for n, value in enumerate(after)},
    )
