"""Where did the time of the accelerators go, hour by hour, and how is what is free cut up now?

    leased + idle + mined + stranded + unavailable == physical      in every row, by every grouping

Times are those of `CapacityAccrued`, in GPU-milliseconds or, for software, seat-milliseconds. What
was booked counts in the UTC hour in which it begins, for the pool its node was in at that time.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.gpu_time import GPU_HOUR_US
from projections import read
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.node (
        node_id text COLLATE "C" PRIMARY KEY, region_id text COLLATE "C" NOT NULL);
    CREATE TABLE own.membership (
        node_id text COLLATE "C", from_position bigint, pool_id text COLLATE "C",
        PRIMARY KEY (node_id, from_position));
    COMMENT ON COLUMN own.membership.pool_id IS 'NULL: from here on in no pool';
    CREATE TABLE own.device (
        device_id text COLLATE "C", position bigint, node_id text COLLATE "C" NOT NULL,
        model text COLLATE "C" NOT NULL, PRIMARY KEY (device_id, position));
    CREATE TABLE own.hour (
        node_id text COLLATE "C", pool_id text COLLATE "C", model text COLLATE "C", hour_us bigint,
        asset text, physical bigint NOT NULL, leased bigint NOT NULL, stranded bigint NOT NULL,
        unavailable bigint NOT NULL, mined bigint NOT NULL,
        CHECK (leased >= 0 AND stranded >= 0 AND unavailable >= 0 AND mined >= 0),
        CHECK (leased + stranded + unavailable + mined <= physical),
        PRIMARY KEY (hour_us, node_id, pool_id, model, asset)) WITH (fillfactor = 70);
    COMMENT ON COLUMN own.hour.pool_id IS 'Empty: in no pool';
    CREATE TABLE own.region_hour (
        hour_us bigint, region_id text COLLATE "C", pool_id text COLLATE "C",
        model text COLLATE "C", asset text, physical bigint NOT NULL, leased bigint NOT NULL,
        stranded bigint NOT NULL, unavailable bigint NOT NULL, mined bigint NOT NULL,
        PRIMARY KEY (hour_us, region_id, pool_id, model, asset)) WITH (fillfactor = 70);
    COMMENT ON TABLE own.region_hour IS 'The same without nodes: few rows of many';
"""

_SUMS = ("physical", "leased", "stranded", "unavailable", "mined")
_SUMMED = ", ".join(f"sum({name})::bigint" for name in _SUMS)


def _added(to: str) -> str:
    """SQL: what a conflicting row adds to the row that is there."""
    return ", ".join(f"{name} = {to}.{name} + excluded.{name}" for name in _SUMS)


_RULES = (
    Rule(
        ("node.join_requested.v1",),
        "node_id text, region_id text",
        "INSERT INTO own.node SELECT node_id, region_id FROM facts",
    ),
    Rule(
        ("pool.node_added.v1", "pool.node_removed.v1"),
        "pool_id text, node_id text",
        """INSERT INTO own.membership
        SELECT node_id, position, CASE topic WHEN 'pool.node_added.v1' THEN pool_id END
        FROM facts""",
    ),
    Rule(
        ("device.registered.v1",),
        "device_id text, node_id text, model text",
        "INSERT INTO own.device SELECT device_id, position, node_id, model FROM facts",
    ),
    Rule(
        ("device.capacity_accrued.v1",),
        "device_id text, from_us bigint, physical json, leased json, stranded json,"
        " unavailable json, mined json",
        f""", booked AS (
            SELECT d.node_id, coalesce(m.pool_id, '') AS pool_id, d.model,
                from_us - from_us %% {GPU_HOUR_US} AS hour_us, physical->>'asset' AS asset,
                {", ".join(f"sum(({name}->>'units')::bigint)::bigint AS {name}" for name in _SUMS)}
            FROM facts f
            CROSS JOIN LATERAL (
                SELECT node_id, model FROM own.device
                WHERE device_id = f.device_id AND position < f.position
                ORDER BY position DESC LIMIT 1) d
            LEFT JOIN LATERAL (
                SELECT pool_id FROM own.membership
                WHERE node_id = d.node_id AND from_position < f.position
                ORDER BY from_position DESC LIMIT 1) m ON true
            GROUP BY 1, 2, 3, 4, 5
        ), summed AS (
            INSERT INTO own.region_hour AS r
            SELECT hour_us, region_id, pool_id, model, asset, {_SUMMED}
            FROM booked JOIN own.node USING (node_id) GROUP BY 1, 2, 3, 4, 5
            ON CONFLICT (hour_us, region_id, pool_id, model, asset) DO UPDATE SET {_added("r")}
        ) INSERT INTO own.hour AS h
        SELECT node_id, pool_id, model, hour_us, asset, {", ".join(_SUMS)} FROM booked
        ON CONFLICT (hour_us, node_id, pool_id, model, asset) DO UPDATE SET {_added("h")}""",
    ),
)

UTILISATION = Projection("utilisation", _TABLES, _RULES)

BUCKETS = {"hour": GPU_HOUR_US, "day": 24 * GPU_HOUR_US}
NAMES = ("pool", "region", "model", "node")
_COLUMNS = {"pool": "pool_id", "region": "region_id", "model": "model", "node": "node_id"}


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Milliseconds of one group; a field that was summed over is None. idle is the rest."""

    bucket_us: int | None
    pool: str | None
    region: str | None
    model: str | None
    node: str | None
    asset: str
    physical: int
    leased: int
    stranded: int
    unavailable: int
    mined: int

    @property
    def idle(self) -> int:
        return self.physical - self.leased - self.stranded - self.unavailable - self.mined

    @property
    def key(self) -> list[int | str]:
        """What groups are sorted by, and a page goes on after."""
        return [self.bucket_us or 0, *(getattr(self, name) or "" for name in NAMES), self.asset]


START: tuple[int | str, ...] = (-1, "", "", "", "", "")


_OF_ACCOUNT = """AND node_id IN (
                SELECT n.node_id FROM proj_fleet.node n JOIN proj_fleet.provider p
                USING (provider_id) WHERE p.account_id = %(account)s)"""


def read_utilisation(
    connection: Connection,
    *,
    by: tuple[str, ...],
    from_us: int,
    to_us: int,
    account_id: str | None = None,
    pool_id: str | None = None,
    after: tuple[int | str, ...] = START,
    limit: int = 50,
) -> list[Utilisation]:
    """Groups of `by` (at most one of BUCKETS, and NAMES) of hours in [from_us, to_us).

    `account_id`: of nodes of this provider's account only. The fleet's view must be there too.
    """
    bucket = next((one for one in by if one in BUCKETS), None)
    told = [f"{_COLUMNS[name]}" if name in by else "NULL::text" for name in NAMES]
    is_by_node = "node" in by or account_id is not None
    kept = "hour JOIN proj_utilisation.node USING (node_id)" if is_by_node else "region_hour"
    hour = "NULL::bigint" if bucket is None else f"hour_us - hour_us %% {BUCKETS[bucket]}"
    sql = f"""SELECT * FROM (
        SELECT {hour} AS bucket_us, {told[0]} AS pool, {told[1]} AS region, {told[2]} AS model,
            {told[3]} AS node, asset, sum(physical)::bigint AS physical,
            sum(leased)::bigint AS leased, sum(stranded)::bigint AS stranded,
            sum(unavailable)::bigint AS unavailable, sum(mined)::bigint AS mined
        FROM proj_utilisation.{kept}
        WHERE hour_us >= %(from)s AND hour_us < %(to)s
            AND (%(pool)s::text IS NULL OR pool_id = %(pool)s)
            {"" if account_id is None else _OF_ACCOUNT}
        GROUP BY 1, 2, 3, 4, 5, 6) g
        WHERE (coalesce(bucket_us, 0), coalesce(pool, '') COLLATE "C", coalesce(region, '')
            COLLATE "C", coalesce(model, '') COLLATE "C", coalesce(node, '') COLLATE "C",
            asset COLLATE "C") > (%(a0)s, %(a1)s, %(a2)s, %(a3)s, %(a4)s, %(a5)s)
        ORDER BY coalesce(bucket_us, 0), coalesce(pool, '') COLLATE "C",
            coalesce(region, '') COLLATE "C", coalesce(model, '') COLLATE "C",
            coalesce(node, '') COLLATE "C", asset COLLATE "C"
        LIMIT %(limit)s"""
    values = {f"a{place}": value for place, value in enumerate(after)}
    return read.many(
        connection,
        Utilisation,
        sql,
        **{"from": from_us, "to": to_us},
        pool=pool_id,
        account=account_id,
        limit=limit,
        **values,
    )


# --- what is free now, and how it is cut up ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """What is free now on one group's devices of active nodes, in ppm of a device.

    `room_N`: how many requests for N whole devices of one node could be placed side by side.
    """

    pool: str | None
    region: str | None
    model: str | None
    devices: int
    whole_free: int
    partly_free: int
    free_ppm: int
    free_on_parts_ppm: int  # of it, on devices that somebody holds a part of
    unsellable_ppm: int  # of it, on devices without a bit of memory left
    room_1: int
    room_2: int
    room_4: int
    room_8: int

    @property
    def fragmented_ppm(self) -> int:
        """Which part of what is free cannot be sold as whole devices; 0 when nothing is free."""
        return 0 if not self.free_ppm else self.free_on_parts_ppm * 1_000_000 // self.free_ppm


_MEMBER = """LEFT JOIN LATERAL (
                SELECT pool_id FROM proj_utilisation.membership
                WHERE node_id = d.node_id ORDER BY from_position DESC LIMIT 1) m ON true"""
"""SQL: the pool of a node, which costs a look for each device."""


def read_fragmentation(
    connection: Connection, *, by: tuple[str, ...], pool_id: str | None = None, limit: int = 500
) -> list[Fragmentation]:
    """Groups of `by`, some of pool, region and model. Read from the fleet's view."""
    columns = {"pool": "m.pool_id", "region": "n.region_id", "model": "d.model"}
    told = [columns[name] if name in by else "NULL::text" for name in columns]
    member = _MEMBER if "pool" in by or pool_id is not None else ""
    sql = f"""WITH here AS (
            SELECT {told[0]} AS pool, {told[1]} AS region, {told[2]} AS model, d.node_id,
                count(*) AS devices,
                count(*) FILTER (WHERE share_free = 1000000 AND mem_free = 1000000) AS whole,
                count(*) FILTER (WHERE share_free BETWEEN 1 AND 999999) AS partly,
                sum(share_free)::bigint AS free,
                coalesce(sum(share_free) FILTER (
                    WHERE share_free < 1000000 OR mem_free < 1000000), 0)::bigint AS on_parts,
                coalesce(sum(share_free) FILTER (WHERE mem_free = 0), 0)::bigint AS unsellable
            FROM proj_fleet.device d JOIN proj_fleet.node n USING (node_id) {member}
            WHERE NOT d.retired AND n.phase = 'active' AND NOT n.quarantined
                {"" if pool_id is None else "AND m.pool_id = %(pool)s"}
            GROUP BY 1, 2, 3, 4)
        SELECT pool, region, model, sum(devices)::bigint AS devices,
            sum(whole)::bigint AS whole_free, sum(partly)::bigint AS partly_free,
            sum(free)::bigint AS free_ppm, sum(on_parts)::bigint AS free_on_parts_ppm,
            sum(unsellable)::bigint AS unsellable_ppm, sum(whole)::bigint AS room_1,
            sum(whole / 2)::bigint AS room_2, sum(whole / 4)::bigint AS room_4,
            sum(whole / 8)::bigint AS room_8
        FROM here GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT %(limit)s"""
    return read.many(connection, Fragmentation, sql, pool=pool_id, limit=limit)
