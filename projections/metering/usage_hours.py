"""How much did each renter use, hour by hour? By client, project, end user and model.

    sum over the hours of any grouping == the sum of the renter's accruals

A lease hour counts in the UTC hour in which it begins, whenever it was accrued. Rows grow with the
hours in which something ran, not with the leases that ran in them. Largest values are those of one
accrual: a lease hour, or the last part of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.duration import DAY_US
from domain.gpu_time import GPU_HOUR_US
from projections import read
from projections.runner import Connection, Projection, Rule

MIXED = ", "
"""What stands between the models of a lease whose devices are of several."""

_TABLES = """
    CREATE TABLE own.device (
        device_id text COLLATE "C", position bigint, model text NOT NULL,
        PRIMARY KEY (device_id, position));
    CREATE TABLE own.lease (lease_id text COLLATE "C" PRIMARY KEY, model text NOT NULL);
    CREATE TABLE own.opened (lease_id text COLLATE "C" PRIMARY KEY, opened_at_us bigint NOT NULL);
    CREATE TABLE own.hour (
        account_id text COLLATE "C", hour_us bigint, client_id text COLLATE "C",
        project_id text COLLATE "C", end_user_ref text COLLATE "C", model text COLLATE "C",
        accruals bigint NOT NULL, gpu_us bigint NOT NULL, gpu_us_max bigint NOT NULL,
        charge bigint NOT NULL, charge_max bigint NOT NULL,
        PRIMARY KEY (account_id, hour_us, client_id, project_id, end_user_ref, model)
    ) WITH (fillfactor = 70);
    COMMENT ON TABLE own.hour IS 'What a renter''s leases used, by the UTC hour it began in';
"""

_RULES = (
    Rule(
        ("device.registered.v1",),
        "device_id text, model text",
        "INSERT INTO own.device SELECT device_id, position, model FROM facts",
    ),
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, device_ids text[]",
        f"""INSERT INTO own.lease
        SELECT f.lease_id, coalesce(string_agg(DISTINCT d.model, '{MIXED}'), '')
        FROM facts f CROSS JOIN unnest(f.device_ids) i(device_id)
        CROSS JOIN LATERAL (
            SELECT model FROM own.device
            WHERE device_id = i.device_id AND position < f.position
            ORDER BY position DESC LIMIT 1) d
        GROUP BY f.lease_id""",
    ),
    Rule(
        ("lease.opened.v1",),
        "lease_id text, opened_at_us bigint",
        "INSERT INTO own.opened SELECT lease_id, opened_at_us FROM facts",
    ),
    Rule(
        ("lease.usage_accrued.v1",),
        "lease_id text, hour_index bigint, account_id text, client_id text, project_id text,"
        " end_user_ref text, gpu_us_new bigint, charge_new json",
        f"""INSERT INTO own.hour AS t
        SELECT account_id, began_us - began_us %% {GPU_HOUR_US}, client_id, project_id,
            end_user_ref, model, count(*), sum(gpu_us_new), max(gpu_us_new), sum(charge),
            max(charge)
        FROM (
            SELECT f.*, (f.charge_new->>'units')::bigint AS charge, coalesce(l.model, '') AS model,
                o.opened_at_us + f.hour_index * {GPU_HOUR_US} AS began_us
            FROM facts f JOIN own.opened o ON o.lease_id = f.lease_id
            LEFT JOIN own.lease l ON l.lease_id = f.lease_id) a
        GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
        ON CONFLICT (account_id, hour_us, client_id, project_id, end_user_ref, model)
        DO UPDATE SET
            accruals = t.accruals + excluded.accruals, gpu_us = t.gpu_us + excluded.gpu_us,
            gpu_us_max = greatest(t.gpu_us_max, excluded.gpu_us_max),
            charge = t.charge + excluded.charge,
            charge_max = greatest(t.charge_max, excluded.charge_max)""",
    ),
)

USAGE_HOURS = Projection("usage_hours", _TABLES, _RULES)

_BUCKETS = {"hour": GPU_HOUR_US, "day": DAY_US}
NAMES = ("client_id", "project_id", "end_user_ref", "model")


@dataclass(frozen=True, slots=True)
class Used:
    """GPU-microseconds and micro-credits of one group; a field that was summed over is None.

    `bucket_us` begins the hour or day. The largest values are those of one accrual.
    """

    bucket_us: int | None
    client_id: str | None
    project_id: str | None
    end_user_ref: str | None
    model: str | None
    accruals: int
    gpu_us: int
    gpu_us_max: int
    charge: int
    charge_max: int

    @property
    def key(self) -> list[int | str]:
        """What groups are sorted by, and a page goes on after."""
        return [self.bucket_us or 0, *(getattr(self, name) or "" for name in NAMES)]


START: tuple[int | str, ...] = (-1, "", "", "", "")


def read_usage_hours(
    connection: Connection,
    account_id: str,
    *,
    from_us: int,
    to_us: int,
    by: Sequence[str] = ("day",),
    after: Sequence[int | str] = START,
    limit: int = 50,
    **filters: str | None,
) -> list[Used]:
    """A renter's usage in hours that begin in [from_us, to_us), added up by `by`, sorted by it.

    `by`: at most one of hour and day, and any of `NAMES`; `filters` are values of `NAMES`. `after`
    is the `key` of the last group of the page before.
    """
    buckets = [each for each in by if each in _BUCKETS]
    assert len(buckets) <= 1, by
    assert {*by, *filters} <= {*_BUCKETS, *NAMES}, (by, filters)
    kept = [f"(hour_us - hour_us %% {_BUCKETS[buckets[0]]})" if buckets else "NULL::bigint"]
    kept += [name if name in by else "NULL::text" for name in NAMES]
    where = [f"{name} = %({name})s" for name, value in filters.items() if value is not None]
    columns = ("bucket_us", *NAMES)
    sql = f"""SELECT * FROM (
            SELECT {", ".join(f"{v} AS {k}" for v, k in zip(kept, columns, strict=True))},
                sum(accruals)::bigint AS accruals, sum(gpu_us)::bigint AS gpu_us,
                max(gpu_us_max) AS gpu_us_max, sum(charge)::bigint AS charge,
                max(charge_max) AS charge_max
            FROM proj_usage_hours.hour
            WHERE {" AND ".join(["account_id = %(account)s", *where])}
                AND hour_us >= %(from_us)s AND hour_us < %(to_us)s
            GROUP BY 1, 2, 3, 4, 5
        ) g
        WHERE (coalesce(bucket_us, 0), {", ".join(f"coalesce({name}, '')" for name in NAMES)})
            > (%(a0)s, {", ".join(f'%(a{n})s COLLATE "C"' for n in range(1, 5))})
        ORDER BY coalesce(bucket_us, 0),
            {", ".join(f'''coalesce({name}, '') COLLATE "C"''' for name in NAMES)}
        LIMIT %(limit)s"""
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
