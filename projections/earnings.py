"""What has each provider earned, by node, lease and epoch, and where did the rest go?

    fee + provider + platform + burn == charge        row by row, as decided at each accrual

An accrual belongs to the epoch whose cut is the first at or after it. It prices nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.runner import Connection, Projection, Rule

CUTS = """
    CREATE TABLE own.cut (position bigint PRIMARY KEY, epoch int NOT NULL);
    COMMENT ON TABLE own.cut IS 'EpochClosing: facts after it belong to a later epoch';
"""
CUT_RULE = Rule(
    ("epoch.closing.v1",), "epoch int", "INSERT INTO own.cut SELECT position, epoch FROM facts"
)
EPOCH_OF = "coalesce((SELECT max(c.epoch) FROM own.cut c WHERE c.position < f.position), 0) + 1"
"""SQL: the epoch of fact `f`; nothing but the pin lies between a closing and its cut."""

_TABLES = (
    CUTS
    + """
    CREATE TABLE own.earning (
        account_id text COLLATE "C", node_id text COLLATE "C", lease_id text COLLATE "C",
        epoch int, accruals int NOT NULL, gpu_us bigint NOT NULL, charge bigint NOT NULL,
        fee bigint NOT NULL, provider bigint NOT NULL, platform bigint NOT NULL,
        burn bigint NOT NULL, first_position bigint NOT NULL, last_position bigint NOT NULL,
        PRIMARY KEY (account_id, node_id, lease_id, epoch)) WITH (fillfactor = 70);
"""
)

_INDEXES = "CREATE INDEX ON own.earning (epoch, account_id);"

_RULES = (
    CUT_RULE,
    Rule(
        ("lease.usage_accrued.v1",),
        "provider_account_id text, node_id text, lease_id text, gpu_us_new bigint,"
        " charge_new json, parts_new json",
        f"""INSERT INTO own.earning AS t
        SELECT provider_account_id, node_id, lease_id, {EPOCH_OF}, count(*), sum(gpu_us_new),
            sum((charge_new->>'units')::bigint), sum((parts_new->>'fee')::bigint),
            sum((parts_new->>'provider')::bigint), sum((parts_new->>'platform')::bigint),
            sum((parts_new->>'burn')::bigint), min(position), max(position)
        FROM facts f GROUP BY 1, 2, 3, 4
        ON CONFLICT (account_id, node_id, lease_id, epoch) DO UPDATE SET
            accruals = t.accruals + excluded.accruals, gpu_us = t.gpu_us + excluded.gpu_us,
            charge = t.charge + excluded.charge, fee = t.fee + excluded.fee,
            provider = t.provider + excluded.provider, platform = t.platform + excluded.platform,
            burn = t.burn + excluded.burn, last_position = excluded.last_position""",
    ),
)

EARNINGS = Projection("earnings", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class Earned:
    """Micro-credits and GPU-microseconds of one group; a field that was summed over is None.

    `provider` is the provider's part, `burn` what is retired for it and paid in TOKEN.
    """

    account_id: str
    node_id: str | None
    lease_id: str | None
    epoch: int | None
    accruals: int
    gpu_us: int
    charge: int
    fee: int
    provider: int
    platform: int
    burn: int


_KEYS = ("node_id", "lease_id", "epoch")


def read_earnings(
    connection: Connection,
    *,
    account_id: str | None = None,
    node_id: str | None = None,
    lease_id: str | None = None,
    epoch: int | None = None,
    by: tuple[str, ...] = ("node_id", "epoch"),
    after: tuple[str, str, str, int] = ("", "", "", 0),
    limit: int = 50,
) -> list[Earned]:
    """Sums per account and the fields of `by` (of node_id, lease_id, epoch), sorted by them.

    `after` is (account_id, node_id or "", lease_id or "", epoch or 0) of the last group before.
    """
    assert set(by) <= set(_KEYS), by
    kept = [key if key in by else f"NULL::{'int' if key == 'epoch' else 'text'}" for key in _KEYS]
    sql = f"""SELECT * FROM (
            SELECT account_id, {", ".join(f"{v} AS {k}" for v, k in zip(kept, _KEYS, strict=True))},
                sum(accruals)::bigint AS accruals, sum(gpu_us)::bigint AS gpu_us,
                sum(charge)::bigint AS charge, sum(fee)::bigint AS fee,
                sum(provider)::bigint AS provider, sum(platform)::bigint AS platform,
                sum(burn)::bigint AS burn
            FROM proj_earnings.earning
            WHERE (%(account)s::text IS NULL OR account_id = %(account)s)
                AND (%(node)s::text IS NULL OR node_id = %(node)s)
                AND (%(lease)s::text IS NULL OR lease_id = %(lease)s)
                AND (%(epoch)s::int IS NULL OR epoch = %(epoch)s)
            GROUP BY {", ".join(["account_id", *by])}
        ) g
        WHERE (account_id, coalesce(node_id, ''), coalesce(lease_id, ''), coalesce(epoch, 0))
            > (%(a)s, %(n)s, %(l)s, %(e)s)
        ORDER BY account_id, coalesce(node_id, '') COLLATE "C", coalesce(lease_id, '') COLLATE "C",
            coalesce(epoch, 0) LIMIT %(limit)s"""
    return read.many(
        connection, Earned, sql, account=account_id, node=node_id, lease=lease_id, epoch=epoch,
        a=after[0], n=after[1], l=after[2], e=after[3], limit=limit,
    )  # fmt: skip
