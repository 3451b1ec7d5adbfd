"""What do regions share? Terms, what is about to mature under them, who was there, what each got.

    sum(owed.units) of an account and node == what matured of it, with what was reduced

`owed` has a row for each account that a charge of a node in a region with terms was held back for,
until it matures; other regions have none. `present` is capacity that was there to be used, as
booked: leased, idle, mined or stranded, under the UTC day that it lies in. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domain.duration import DAY_US, HOUR_US
from projections import read
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.terms (
        region_id text COLLATE "C", version int, effective_from_day int NOT NULL,
        position bigint NOT NULL, PRIMARY KEY (region_id, version));
    COMMENT ON TABLE own.terms IS 'Since when a region is looked at';
    CREATE TABLE own.node (
        node_id text COLLATE "C" PRIMARY KEY, region_id text COLLATE "C" NOT NULL);
    CREATE TABLE own.owed (
        position bigint, account_id text COLLATE "C", region_id text NOT NULL,
        node_id text NOT NULL, day int NOT NULL, units bigint NOT NULL, credited bigint NOT NULL,
        PRIMARY KEY (account_id, position));
    COMMENT ON COLUMN own.owed.credited IS 'All of it: an owner may be the client as well';
    CREATE TABLE own.present (
        region_id text COLLATE "C", day int, node_id text COLLATE "C", device_id text COLLATE "C",
        ms bigint NOT NULL, PRIMARY KEY (region_id, day, node_id, device_id))
        WITH (fillfactor = 70);
    CREATE TABLE own.booked (
        device_id text COLLATE "C" PRIMARY KEY, region_id text COLLATE "C" NOT NULL,
        to_us bigint NOT NULL, is_retired boolean NOT NULL) WITH (fillfactor = 70);
    COMMENT ON TABLE own.booked IS 'How far the capacity of each device has been booked';
    CREATE TABLE own.gathered (
        region_id text COLLATE "C", day int, units bigint NOT NULL,
        PRIMARY KEY (region_id, day)) WITH (fillfactor = 70);
    CREATE TABLE own.day (
        region_id text COLLATE "C", day int, terms_version int NOT NULL, gathered bigint NOT NULL,
        carry_before bigint NOT NULL, infra_due bigint NOT NULL, arrears_before bigint NOT NULL,
        infra bigint NOT NULL, infra_account_id text NOT NULL, arrears bigint NOT NULL,
        forgone bigint NOT NULL, participation bigint NOT NULL, usage bigint NOT NULL,
        carry bigint NOT NULL, control_nodes int NOT NULL, ingress_nodes int NOT NULL,
        ingress_bytes bigint NOT NULL,
        nodes int NOT NULL, at_us bigint NOT NULL, position bigint NOT NULL,
        CHECK (gathered + carry_before = infra + participation + usage + carry),
        CHECK (infra_due + arrears_before = infra + arrears + forgone),
        PRIMARY KEY (region_id, day));
    CREATE TABLE own.share (
        region_id text COLLATE "C", day int, node_id text COLLATE "C", available_us bigint NOT NULL,
        below_tier_us bigint NOT NULL, revenue bigint NOT NULL, participation bigint NOT NULL,
        usage bigint NOT NULL, parts json NOT NULL, PRIMARY KEY (region_id, day, node_id));
    CREATE TABLE own.payee (
        region_id text COLLATE "C", account_id text COLLATE "C",
        PRIMARY KEY (region_id, account_id));
    COMMENT ON TABLE own.payee IS 'Who ever got a share of a region';
"""

_HERE = """JOIN own.node n ON n.node_id = f.node_id
    WHERE EXISTS (SELECT FROM own.terms t
        WHERE t.region_id = n.region_id AND t.position < f.position)"""
"""SQL: facts of nodes in regions that had terms before; the others cost nothing here."""


def _owed(at: str, new: str) -> str:
    """SQL: who was credited for a charge, what of it as owner, and for which UTC day: that in
    which the hour up to the end of the charge begins.
    """
    return f"""INSERT INTO own.owed
        SELECT f.position, o.account_id, n.region_id, f.node_id, ({at} - {HOUR_US}) / {DAY_US},
            o.units, o.units + CASE WHEN f.client_account_id = o.account_id
                THEN coalesce((f.{new}->>'client')::bigint, 0) ELSE 0 END
        FROM facts f CROSS JOIN LATERAL (
            SELECT f.provider_account_id AS account_id, (f.{new}->>'provider')::bigint AS units
            WHERE json_array_length(f.owners) = 0
            UNION ALL
            SELECT p->>'account_id', (p->>'units_new')::bigint
            FROM json_array_elements(f.owners) p) o
        {_HERE} AND o.units > 0"""


_RULES = (
    Rule(
        ("region.terms_set.v1",),
        "region_id text, version int, effective_from_day int",
        """INSERT INTO own.terms
        SELECT region_id, version, effective_from_day, position FROM facts""",
    ),
    Rule(
        ("node.join_requested.v1",),
        "node_id text, region_id text",
        "INSERT INTO own.node SELECT node_id, region_id FROM facts",
    ),
    Rule(
        ("lease.usage_accrued.v1",),
        "node_id text, until_us bigint, provider_account_id text, client_account_id text,"
        " parts_new json, owners json",
        _owed("f.until_us", "parts_new"),
    ),
    Rule(
        ("lease.term_ended_early.v1",),
        "node_id text, at_us bigint, provider_account_id text, client_account_id text,"
        " parts json, owners json",
        _owed("f.at_us", "parts"),
    ),
    Rule(
        ("earnings.matured.v1",),
        "account_id text, through_position bigint",
        """DELETE FROM own.owed o USING facts f
        WHERE o.account_id = f.account_id AND o.position <= f.through_position""",
    ),
    # Nearly all capacity is of one day, and counts there whole.
    Rule(
        ("device.capacity_accrued.v1", "device.retired.v1"),
        "device_id text, node_id text, from_us bigint, to_us bigint, physical json,"
        " unavailable json",
        f""", here AS MATERIALIZED (SELECT f.*, n.region_id FROM facts f {_HERE}), present AS (
            INSERT INTO own.present AS t
            SELECT region_id, day, node_id, device_id, sum(CASE
                WHEN from_us / {DAY_US} = (to_us - 1) / {DAY_US} THEN units
                ELSE div(units::numeric
                    * (least(to_us, (day + 1) * {DAY_US}) - greatest(from_us, day * {DAY_US})),
                    to_us - from_us) END)::bigint
            FROM (
                SELECT region_id, node_id, device_id, from_us, to_us,
                    generate_series(from_us / {DAY_US}, (to_us - 1) / {DAY_US}) AS day,
                    (physical->>'units')::bigint - (unavailable->>'units')::bigint AS units
                FROM here WHERE physical->>'asset' = 'GPU_MS' AND to_us > from_us) d
            GROUP BY 1, 2, 3, 4
            ON CONFLICT (region_id, day, node_id, device_id) DO UPDATE SET ms = t.ms + excluded.ms)
        INSERT INTO own.booked AS t
        SELECT h.device_id, h.region_id, d.to_us, h.topic = 'device.retired.v1'
        FROM here h JOIN (
            SELECT max(position) AS position, coalesce(max(to_us), 0) AS to_us
            FROM here GROUP BY device_id) d USING (position)
        ON CONFLICT (device_id) DO UPDATE SET region_id = excluded.region_id,
            to_us = greatest(t.to_us, excluded.to_us), is_retired = excluded.is_retired""",
    ),
    Rule(
        ("region.earnings_gathered.v1",),
        "region_id text, day int, amount json",
        """INSERT INTO own.gathered AS t
        SELECT region_id, day, sum((amount->>'units')::bigint) FROM facts GROUP BY 1, 2
        ON CONFLICT (region_id, day) DO UPDATE SET units = t.units + excluded.units""",
    ),
    Rule(
        ("region.day_shared.v1",),
        "region_id text, day int, terms_version int, gathered json, carry_before json,"
        " infra_due json, arrears_before json, infra json, infra_account_id text, arrears json,"
        " forgone json, participation json, usage json, carry json, control_nodes int,"
        " ingress_nodes int, ingress_bytes bigint, nodes int, at_us bigint",
        f"""INSERT INTO own.day SELECT region_id, day, terms_version,
            {
            ", ".join(
                f"({name}->>'units')::bigint"
                for name in ("gathered", "carry_before", "infra_due", "arrears_before", "infra")
            )
        },
            infra_account_id, {
            ", ".join(
                f"({name}->>'units')::bigint"
                for name in ("arrears", "forgone", "participation", "usage", "carry")
            )
        },
            control_nodes, ingress_nodes, ingress_bytes, nodes, at_us, position FROM facts""",
    ),
    Rule(
        ("region.shares_paid.v1",),
        "region_id text, day int, shares json",
        """INSERT INTO own.share
        SELECT region_id, day, s->>'node_id', (s->>'available_us')::bigint,
            (s->>'below_tier_us')::bigint, (s->>'revenue')::bigint,
            (s->>'participation')::bigint, (s->>'usage')::bigint, s->'parts'
        FROM facts CROSS JOIN LATERAL json_array_elements(shares) s""",
    ),
    Rule(
        ("region.shares_paid.v1",),
        "region_id text, shares json",
        """INSERT INTO own.payee
        SELECT DISTINCT region_id, p->>'account_id'
        FROM facts CROSS JOIN LATERAL json_array_elements(shares) s
        CROSS JOIN LATERAL json_array_elements(s->'parts') p
        ON CONFLICT DO NOTHING""",
    ),
)

_INDEXES = """
    CREATE INDEX ON own.owed (position);
    CREATE INDEX ON own.booked (region_id) WHERE NOT is_retired;
"""

REGIONS = Projection("regions", _TABLES, _RULES, _INDEXES)


# --- what is about to be gathered ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Owed:
    """What a node earned an account and is still held back, by the UTC day it was earned on."""

    account_id: str
    region_id: str
    node_id: str
    day: int
    units: int


@dataclass(frozen=True, slots=True)
class OwedAt:
    """One charge. `credited`: all that it held back for the account, as owner and as client."""

    position: int
    region_id: str
    node_id: str
    day: int
    units: int
    credited: int


def read_owed(
    connection: Connection, account_ids: Sequence[str], through_position: int
) -> list[Owed]:
    """Of these accounts, up to a position, in regions with terms; before any reduction."""
    sql = """SELECT account_id, region_id, node_id, day, sum(units)::bigint AS units
        FROM proj_regions.owed WHERE account_id = ANY(%(accounts)s) AND position <= %(through)s
        GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"""
    return read.many(connection, Owed, sql, accounts=list(account_ids), through=through_position)


def read_owed_at(connection: Connection, account_id: str, positions: Sequence[int]) -> list[OwedAt]:
    """The charges of an account at these positions."""
    sql = """SELECT position, region_id, node_id, day, units, credited FROM proj_regions.owed
        WHERE account_id = %(account)s AND position = ANY(%(positions)s) ORDER BY position"""
    return read.many(connection, OwedAt, sql, account=account_id, positions=list(positions))


# --- what a day is shared out by -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Next:
    """The first day of a region that has not been shared out."""

    region_id: str
    day: int


def read_next(connection: Connection) -> list[Next]:
    """Every region that ever had terms, and its next day."""
    sql = """SELECT t.region_id, coalesce(
            (SELECT max(d.day) + 1 FROM proj_regions.day d WHERE d.region_id = t.region_id),
            t.effective_from_day) AS day
        FROM proj_regions.terms t WHERE t.version = 1 ORDER BY t.region_id"""
    return read.many(connection, Next, sql)


def read_unbooked(connection: Connection, region_id: str, until_us: int) -> int:
    """Devices of a region whose capacity has not been booked up to a moment."""
    sql = """SELECT count(*) FROM proj_regions.booked
        WHERE region_id = %(region)s AND NOT is_retired AND to_us < %(until)s"""
    return read.number(connection, sql, region=region_id, until=until_us)


def read_with_role(connection: Connection, region_id: str, role: str, limit: int) -> list[str]:
    """Nodes of a region with a role, by id. The fleet's view must be there too."""
    sql = """SELECT r.node_id FROM proj_fleet.role r JOIN proj_fleet.node n USING (node_id)
        WHERE n.region_id = %(region)s AND r.role = %(role)s ORDER BY r.node_id LIMIT %(limit)s"""
    found = connection.execute(sql, {"region": region_id, "role": role, "limit": limit})
    return [str(node_id) for (node_id,) in found]


@dataclass(frozen=True, slots=True)
class Present:
    """One device on one day: `present_us` could be used, and of it reports attest `metered_us`.

    `told_id` is the device as reports name it: for a part of a GPU that part.
    """

    node_id: str
    device_id: str
    told_id: str
    present_us: int
    metered_us: int


def read_present(connection: Connection, region_id: str, day: int) -> list[Present]:
    """By node and device. The view of trust must be there too."""
    sql = f"""SELECT p.node_id, p.device_id, m.device_id AS told_id, p.ms * 1000 AS present_us,
            least(sum(m.available_us), {DAY_US})::bigint AS metered_us
        FROM proj_regions.present p JOIN proj_trust.metered m
            ON m.node_id = p.node_id AND m.board_id = p.device_id
            AND m.hour_us >= %(from)s AND m.hour_us < %(to)s
        WHERE p.region_id = %(region)s AND p.day = %(day)s AND p.ms > 0
        GROUP BY p.node_id, p.device_id, m.device_id, p.ms ORDER BY 1, 2, 3"""
    span = {"from": day * DAY_US, "to": (day + 1) * DAY_US}
    return read.many(connection, Present, sql, region=region_id, day=day, **span)


# --- what is told ----------------------------------------------------------------------------


def has_share(connection: Connection, region_id: str, account_id: str) -> bool:
    """Whether an account ever got a share of a region."""
    sql = """SELECT count(*) FROM proj_regions.payee
        WHERE region_id = %(region)s AND account_id = %(account)s"""
    return read.number(connection, sql, region=region_id, account=account_id) > 0


@dataclass(frozen=True, slots=True)
class Day:
    """A day that was shared out, in micro-credits."""

    day: int
    terms_version: int
    gathered: int
    carry_before: int
    infra_due: int
    arrears_before: int
    infra: int
    infra_account_id: str
    arrears: int
    forgone: int
    participation: int
    usage: int
    carry: int
    control_nodes: int
    ingress_nodes: int
    ingress_bytes: int
    nodes: int
    at_us: int
    position: int


def read_days(
    connection: Connection, region_id: str, *, before: int = 2**31 - 1, limit: int = 50
) -> list[Day]:
    """Days of a region that were shared out, the newest first."""
    sql = f"""SELECT {", ".join(Day.__slots__)} FROM proj_regions.day
        WHERE region_id = %(region)s AND day < %(before)s ORDER BY day DESC LIMIT %(limit)s"""
    return read.many(connection, Day, sql, region=region_id, before=before, limit=limit)


@dataclass(frozen=True, slots=True)
class Share:
    """What one node got of a day and why; `parts` as stored."""

    day: int
    node_id: str
    available_us: int
    below_tier_us: int
    revenue: int
    participation: int
    usage: int
    parts: list[dict[str, Any]]


def read_shares(
    connection: Connection,
    region_id: str,
    *,
    day: int,
    account_id: str | None = None,
    after: str = "",
    limit: int = 50,
) -> list[Share]:
    """The shares of one day by node; with an account only those that it got a part of."""
    sql = f"""SELECT {", ".join(Share.__slots__)} FROM proj_regions.share
        WHERE region_id = %(region)s AND day = %(day)s AND node_id > %(after)s
            AND (%(account)s::text IS NULL OR EXISTS (
                SELECT FROM json_array_elements(parts) p WHERE p->>'account_id' = %(account)s))
        ORDER BY node_id LIMIT %(limit)s"""
    return read.many(
        connection,
        Share,
        sql,
        region=region_id,
        day=day,
        account=account_id,
        after=after,
        limit=limit,
    )
