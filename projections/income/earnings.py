"""What has each provider earned, by node, lease, hour and epoch, and where did the rest go?

    fee + provider + client + platform + burn == charge     row by row, as decided at each accrual
    sum(earned) over all accounts == sum(provider + client)

The row of the provider's account holds the whole charge and where it went; `earned` is what that
account got of it. Owners of a node and the client that brought the job have rows of their own in
which only `earned` counts. An accrual belongs to the epoch whose cut is the first at or after it,
and to the UTC hour in which its lease hour begins. It prices nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.gpu_time import GPU_HOUR_US
from projections import read
from projections.epochs.cuts import CUT_RULE, CUTS, EPOCH_OF
from projections.runner import Connection, Projection, Rule

_TABLES = (
    CUTS
    + """
    CREATE TABLE own.earning (
        account_id text COLLATE "C", node_id text COLLATE "C", lease_id text COLLATE "C",
        epoch int, accruals int NOT NULL, gpu_us bigint NOT NULL, charge bigint NOT NULL,
        fee bigint NOT NULL, provider bigint NOT NULL, platform bigint NOT NULL,
        burn bigint NOT NULL, client bigint NOT NULL, earned bigint NOT NULL,
        first_position bigint NOT NULL, last_position bigint NOT NULL,
        PRIMARY KEY (account_id, node_id, lease_id, epoch)) WITH (fillfactor = 70);
    CREATE TABLE own.opened (lease_id text COLLATE "C" PRIMARY KEY, opened_at_us bigint NOT NULL);
    CREATE TABLE own.earning_hour (
        account_id text COLLATE "C" NOT NULL, hour_us bigint NOT NULL,
        node_id text COLLATE "C" NOT NULL, lease_id text COLLATE "C" NOT NULL, epoch int NOT NULL,
        position bigint NOT NULL, gpu_us bigint NOT NULL, charge bigint NOT NULL,
        fee bigint NOT NULL, provider bigint NOT NULL, platform bigint NOT NULL,
        burn bigint NOT NULL, client bigint NOT NULL, earned bigint NOT NULL);
    COMMENT ON TABLE own.earning_hour IS 'One row per accrual, under the UTC hour it began in';
"""
)

_INDEXES = """
    CREATE INDEX ON own.earning (epoch, account_id);
    CREATE UNIQUE INDEX earning_hour_key ON own.earning_hour (account_id, hour_us, position);
"""

_SUMS = ("gpu_us", "charge", "fee", "provider", "platform", "burn", "client", "earned")
_FIELDS = (
    "provider_account_id text, node_id text, lease_id text, hour_index bigint, gpu_us_new bigint,"
    " charge_new json, parts_new json, owners json, client_account_id text"
)
_RECEIVED = f"""received AS (
    SELECT f.position, f.node_id, f.lease_id, {EPOCH_OF} AS epoch,
        o.opened_at_us + f.hour_index * {GPU_HOUR_US} AS began_us, r.*
    FROM facts f JOIN own.opened o ON o.lease_id = f.lease_id
    CROSS JOIN LATERAL (
        SELECT f.provider_account_id AS account_id, f.gpu_us_new AS gpu_us,
            (f.charge_new->>'units')::bigint AS charge, p.fee, p.provider, p.platform, p.burn,
            coalesce(p.client, 0) AS client,
            CASE WHEN json_array_length(f.owners) = 0 THEN p.provider ELSE 0 END AS earned
        FROM json_to_record(f.parts_new)
            p(fee bigint, provider bigint, platform bigint, burn bigint, client bigint)
        UNION ALL
        SELECT p->>'account_id', 0, 0, 0, 0, 0, 0, 0, (p->>'units_new')::bigint
        FROM json_array_elements(f.owners) p
        UNION ALL
        SELECT f.client_account_id, 0, 0, 0, 0, 0, 0, 0, (f.parts_new->>'client')::bigint
        WHERE f.client_account_id IS NOT NULL) r
)"""
"""SQL: what each account got of the accruals among `facts`."""

_OTHERS_FIELDS = (
    "provider_account_id text, node_id text, lease_id text, at_us bigint, charge_new json,"
    " parts_new json"
)


def _others(names: str) -> str:
    """SQL: the same of charges that are the provider's alone: they belong to the hour of their
    accrual. `names`: the node and the lease that earned it.
    """
    return f"""received AS (
    SELECT f.position, {names}, {EPOCH_OF} AS epoch, f.at_us AS began_us,
        f.provider_account_id AS account_id, 0 AS gpu_us,
        (f.charge_new->>'units')::bigint AS charge,
        (f.parts_new->>'fee')::bigint AS fee, (f.parts_new->>'provider')::bigint AS provider,
        (f.parts_new->>'platform')::bigint AS platform, (f.parts_new->>'burn')::bigint AS burn,
        0 AS client, (f.parts_new->>'provider')::bigint AS earned
    FROM facts f
)"""


_OTHERS = _others("f.node_id, f.lease_id")
"""SQL: of CPU, memory, storage and network."""
_VOLUME_FIELDS = "provider_account_id text, at_us bigint, charge_new json, parts_new json"
_VOLUME = _others("'' AS node_id, '' AS lease_id")
"""SQL: of volumes, which no node and no lease earns: both names are empty."""

_EARLY_FIELDS = (
    "provider_account_id text, node_id text, lease_id text, at_us bigint, kept json, parts json,"
    " owners json, client_account_id text"
)
_EARLY = f"""received AS (
    SELECT f.position, f.node_id, f.lease_id, {EPOCH_OF} AS epoch, f.at_us AS began_us, r.*
    FROM facts f CROSS JOIN LATERAL (
        SELECT f.provider_account_id AS account_id, 0 AS gpu_us,
            (f.kept->>'units')::bigint AS charge, (f.parts->>'fee')::bigint AS fee,
            (f.parts->>'provider')::bigint AS provider,
            (f.parts->>'platform')::bigint AS platform, (f.parts->>'burn')::bigint AS burn,
            coalesce((f.parts->>'client')::bigint, 0) AS client,
            CASE WHEN json_array_length(f.owners) = 0
                THEN (f.parts->>'provider')::bigint ELSE 0 END AS earned
        UNION ALL
        SELECT p->>'account_id', 0, 0, 0, 0, 0, 0, 0, (p->>'units_new')::bigint
        FROM json_array_elements(f.owners) p
        UNION ALL
        SELECT f.client_account_id, 0, 0, 0, 0, 0, 0, 0, (f.parts->>'client')::bigint
        WHERE f.client_account_id IS NOT NULL AND f.parts->>'client' IS NOT NULL) r
)"""
"""SQL: the same of what is kept of a reserved term that its renter ended early."""


def _rule(topic: str, fields: str, received: str) -> Rule:
    """By hour and in total: what each account got of the accruals of one kind."""
    return Rule(
        (topic,),
        fields,
        f""", {received}, stored AS (
            INSERT INTO own.earning_hour
            SELECT r.account_id, r.began_us - r.began_us %% {GPU_HOUR_US}, r.node_id, r.lease_id,
                r.epoch, r.position, {", ".join(f"sum(r.{name})" for name in _SUMS)}
            FROM received r
            GROUP BY r.position, r.account_id, r.began_us, r.node_id, r.lease_id, r.epoch
            RETURNING *
        ) INSERT INTO own.earning AS t (account_id, node_id, lease_id, epoch,
            accruals, {", ".join(_SUMS)}, first_position, last_position)
        SELECT account_id, node_id, lease_id, epoch, count(*),
            {", ".join(f"sum({name})" for name in _SUMS)}, min(position), max(position)
        FROM stored GROUP BY 1, 2, 3, 4
        ON CONFLICT (account_id, node_id, lease_id, epoch) DO UPDATE SET
            accruals = t.accruals + excluded.accruals, last_position = excluded.last_position,
            {", ".join(f"{name} = t.{name} + excluded.{name}" for name in _SUMS)}""",
    )


_RULES = (
    CUT_RULE,
    Rule(
        ("lease.opened.v1",),
        "lease_id text, opened_at_us bigint",
        "INSERT INTO own.opened SELECT lease_id, opened_at_us FROM facts",
    ),
    _rule("lease.usage_accrued.v1", _FIELDS, _RECEIVED),
    _rule("resource.accrued.v1", _OTHERS_FIELDS, _OTHERS),
    _rule("volume.charged.v1", _VOLUME_FIELDS, _VOLUME),
    _rule("lease.term_ended_early.v1", _EARLY_FIELDS, _EARLY),
)

EARNINGS = Projection("earnings", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Earned:
    """Micro-credits and GPU-microseconds of one group; a field that was summed over is None.

    `provider` is the provider's part, `burn` what is retired for it and paid in TOKEN, `earned`
    what this account got.
    """

    account_id: str
    node_id: str | None
    lease_id: str | None
    hour_us: int | None
    epoch: int | None
    accruals: int
    gpu_us: int
    charge: int
    fee: int
    provider: int
    platform: int
    burn: int
    client: int
    earned: int

    @property
    def key(self) -> list[str | int]:
        """What groups are sorted by, and a page goes on after."""
        return [
            self.account_id,
            self.node_id or "",
            self.lease_id or "",
            self.hour_us or 0,
            self.epoch or 0,
        ]


_KEYS = {"node_id": "text", "lease_id": "text", "hour_us": "bigint", "epoch": "int"}
START: tuple[str | int, ...] = ("", "", "", 0, 0)


def read_earnings(
    connection: Connection,
    *,
    account_id: str | None = None,
    node_id: str | None = None,
    lease_id: str | None = None,
    epoch: int | None = None,
    from_us: int | None = None,
    to_us: int | None = None,
    by: Sequence[str] = ("node_id", "epoch"),
    after: Sequence[str | int] = START,
    limit: int = 50,
) -> list[Earned]:
    """Sums per account and the fields of `by` (of node_id, lease_id, hour_us, epoch), sorted.

    `from_us` and `to_us` bound the begin of the hour, half-open. `after` is the `key` of the last
    group before.
    """
    assert set(by) <= _KEYS.keys(), by
    hourly = "hour_us" in by or from_us is not None or to_us is not None
    table, count = ("earning_hour", "count(*)") if hourly else ("earning", "sum(accruals)::bigint")
    kept = [name if name in by else f"NULL::{kind}" for name, kind in _KEYS.items()]
    given = {"account_id": account_id, "node_id": node_id, "lease_id": lease_id, "epoch": epoch}
    where = [
        "true",
        *(f"{name} = %({name})s" for name, value in given.items() if value is not None),
    ]
    where += ["hour_us >= %(from_us)s"] if from_us is not None else []
    where += ["hour_us < %(to_us)s"] if to_us is not None else []
    sql = f"""SELECT * FROM (
            SELECT account_id, {", ".join(f"{v} AS {k}" for v, k in zip(kept, _KEYS, strict=True))},
                {count} AS accruals,
                {", ".join(f"sum({name})::bigint AS {name}" for name in _SUMS)}
            FROM proj_earnings.{table} WHERE {" AND ".join(where)}
            GROUP BY {", ".join(["account_id", *by])}
        ) g
        WHERE (account_id, coalesce(node_id, '') COLLATE "C", coalesce(lease_id, '') COLLATE "C",
                coalesce(hour_us, 0), coalesce(epoch, 0))
            > (%(a0)s, %(a1)s, %(a2)s, %(a3)s, %(a4)s)
        ORDER BY account_id, coalesce(node_id, '') COLLATE "C", coalesce(lease_id, '') COLLATE "C",
            coalesce(hour_us, 0), coalesce(epoch, 0) LIMIT %(limit)s"""
    return read.many(
        connection,
        Earned,
        sql,
        **given,
        from_us=from_us,
        to_us=to_us,
        limit=limit,
        **{f"a{n}": value for n, value in enumerate(after)},
    )


def read_earned(
    connection: Connection, account_id: str, from_us: int, to_us: int, until_position: int
) -> int:
    """Micro-credits that an account got for hours that begin in [from_us, to_us), as of a
    position.
    """
    sql = b"""SELECT coalesce(sum(earned), 0)::bigint FROM proj_earnings.earning_hour
        WHERE account_id = %(account)s AND hour_us >= %(from)s AND hour_us < %(to)s
            AND position <= %(until)s"""
    asked = {"account": account_id, "from": from_us, "to": to_us, "until": until_position}
    row = connection.execute(sql, asked).fetchone()
    assert row is not None
    return int(row[0])
