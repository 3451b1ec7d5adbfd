"""What did each lease use beside the GPU, as its node signed it, and who used how much by kind?

    each sum == sum of that amount over the resource rows of clean reports
    <meter>_us == time of the rows in which it could be measured; time_us == time of all of them

Reports say what a node claims; which of it is charged is in the facts (`meters.py`). By node and
lease, as another node may name a lease that is not its own: that is told apart and counts for
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from domain.metering.resources import AMOUNTS, AMOUNTS_OF
from domain.record import dataclass
from ledger.log.report_rows import used_by
from ledger.log.usage import StoredReport
from projections import read
from projections.runner import Connection, Projection, Reports, Rule, run

_TABLES = """
    CREATE TABLE own.reported (
        lease_id text COLLATE "C", node_id text COLLATE "C", lane int NOT NULL,
        rows bigint NOT NULL, first_position bigint NOT NULL, last_position bigint NOT NULL,
        first_us bigint NOT NULL, last_us bigint NOT NULL, time_us bigint NOT NULL,
        cpu_us bigint NOT NULL, memory_byte_s bigint NOT NULL, storage_byte_s bigint NOT NULL,
        received_bytes bigint NOT NULL, sent_bytes bigint NOT NULL,
        cpu_known_us bigint NOT NULL, memory_known_us bigint NOT NULL,
        storage_known_us bigint NOT NULL, network_known_us bigint NOT NULL,
        PRIMARY KEY (lease_id, node_id)) WITH (fillfactor = 50);
    COMMENT ON TABLE own.reported IS 'Resource rows of clean reports, by lease and node';
    CREATE TABLE own.lease (
        lease_id text COLLATE "C" PRIMARY KEY, node_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C" NOT NULL, provider_account_id text COLLATE "C" NOT NULL,
        client_id text COLLATE "C" NOT NULL, project_id text NOT NULL, job_id text NOT NULL,
        at_us bigint NOT NULL);
    CREATE TABLE own.route (lease_id text COLLATE "C" PRIMARY KEY, route_id text NOT NULL);
    CREATE TABLE own.job (job_id text COLLATE "C" PRIMARY KEY, kind text NOT NULL);
"""

_INDEXES = """
    CREATE INDEX ON own.lease (account_id, at_us);
    CREATE INDEX ON own.lease (provider_account_id, at_us);
    CREATE INDEX ON own.lease (at_us);
"""

_RULES = (
    Rule(
        ("job.submitted.v1",),
        "job_id text, kind text",
        "INSERT INTO own.job SELECT job_id, kind FROM facts",
    ),
    Rule(
        ("lease.requested.v1",),
        "lease_id text, route_id text",
        """INSERT INTO own.route SELECT lease_id, route_id FROM facts WHERE route_id IS NOT NULL""",
    ),
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, node_id text, account_id text, provider_account_id text, client_id text,"
        " project_id text, job_id text, at_us bigint",
        """INSERT INTO own.lease
        SELECT DISTINCT ON (lease_id) lease_id, node_id, account_id, provider_account_id, client_id,
            project_id, job_id, at_us
        FROM facts ORDER BY lease_id, position DESC
        ON CONFLICT (lease_id) DO UPDATE SET node_id = excluded.node_id, at_us = excluded.at_us""",
    ),
)

SUM_MAX = 2**63 - 1
"""A sum of what a node claims ends here: no honest one comes near, and nonsense stops nobody."""


@dataclass(slots=True)
class Sums:
    """What reports of one node tell of one lease."""

    lane: int
    first_position: int
    last_position: int = 0
    first_us: int = SUM_MAX
    last_us: int = 0
    rows: int = 0
    time_us: int = 0
    cpu_us: int = 0
    memory_byte_s: int = 0
    storage_byte_s: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    cpu_known_us: int = 0
    memory_known_us: int = 0
    storage_known_us: int = 0
    network_known_us: int = 0


_NAMES = tuple(field.name for field in fields(Sums))
_ADDED = _NAMES[_NAMES.index("rows") :]

Folded = dict[tuple[str, str], Sums]


def fold(reports: Sequence[StoredReport]) -> Folded:
    """Add up reports in any order: sums, and first and last of what there is."""
    found: Folded = {}
    for report in reports:
        for row in used_by(report):
            key = (row.lease_id, report.node_id)
            sums = found.get(key)
            if sums is None:
                sums = found[key] = Sums(report.lane, report.position)
            length_us = row.mono_end_us - row.mono_start_us
            sums.first_position = min(sums.first_position, row.position)
            sums.last_position = max(sums.last_position, row.position)
            sums.first_us = min(sums.first_us, max(0, row.from_us))
            sums.last_us = max(sums.last_us, min(row.until_us, SUM_MAX))
            sums.rows += 1
            sums.time_us += length_us
            for name in AMOUNTS:
                setattr(sums, name, getattr(sums, name) + (row.amounts[name] or 0))
            for meter in AMOUNTS_OF:
                if row.metered(meter) is not None:
                    known = f"{meter}_known_us"
                    setattr(sums, known, getattr(sums, known) + length_us)
    return found


def _added(column: str) -> str:
    return f"{column} = least(t.{column}::numeric + excluded.{column}, {SUM_MAX})::bigint"


_ADD = f"""
    INSERT INTO own.reported AS t (lease_id, node_id, {", ".join(_NAMES)})
    SELECT * FROM unnest(%s::text[], %s::text[], %s::int4[]{", %s::int8[]" * (len(_NAMES) - 1)})
    ON CONFLICT (lease_id, node_id) DO UPDATE SET
        first_position = least(t.first_position, excluded.first_position),
        last_position = greatest(t.last_position, excluded.last_position),
        first_us = least(t.first_us, excluded.first_us),
        last_us = greatest(t.last_us, excluded.last_us),
        {", ".join(map(_added, _ADDED))}
"""


def _apply(connection: Connection, schema: str, folded: Folded) -> None:
    if folded:
        rows = [
            (*key, *(min(getattr(sums, name), SUM_MAX) for name in _NAMES))
            for key, sums in folded.items()
        ]
        run(connection, schema, _ADD, *map(list, zip(*rows, strict=True)))


RESOURCES = Projection("resources", _TABLES, _RULES, _INDEXES, Reports(fold, _apply))


# --- reading ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reported:
    """What the node of a lease signed of it: microseconds, byte-seconds, bytes.

    `<meter>_known_us` is the time in which that could be measured, out of `time_us`.
    """

    lease_id: str
    node_id: str
    lane: int
    rows: int
    first_position: int
    last_position: int
    first_us: int
    last_us: int
    time_us: int
    cpu_us: int
    memory_byte_s: int
    storage_byte_s: int
    received_bytes: int
    sent_bytes: int
    cpu_known_us: int
    memory_known_us: int
    storage_known_us: int
    network_known_us: int


def read_reported(connection: Connection, lease_id: str) -> Reported | None:
    """Of the lease's own node; None: it told nothing of it."""
    sql = """SELECT r.* FROM proj_resources.reported r
        JOIN proj_resources.lease l USING (lease_id, node_id) WHERE r.lease_id = %(lease)s"""
    return read.one(connection, Reported, sql, lease=lease_id)


GROUPS = ("kind", "node_id", "client_id", "project_id", "lease_id", "route_id")
"""What used resources can be summed by. By route: leases that name one."""
_COLUMNS = {"kind": "coalesce(j.kind, '')", "route_id": "o.route_id"}


@dataclass(frozen=True, slots=True)
class UsedSum:
    """Signed use of one group: `leases` that told any; amounts as in `Reported`."""

    group: str
    leases: int
    time_us: int
    cpu_us: int
    memory_byte_s: int
    storage_byte_s: int
    received_bytes: int
    sent_bytes: int


def read_used(
    connection: Connection,
    account_id: str | None,
    *,
    as_provider: bool,
    by: str,
    from_us: int,
    to_us: int,
    after: str = "",
    limit: int = 50,
    **filters: Any,
) -> list[UsedSum]:
    """Leases reserved in [from_us, to_us), by group; `after` is the last group before."""
    assert by in GROUPS, by
    whose = "provider_account_id" if as_provider else "account_id"
    group = _COLUMNS.get(by, f"l.{by}")
    where = [f"l.{name} = %({name})s" for name in ("node_id", "client_id") if filters.get(name)]
    where += ["j.kind = %(kind)s"] if filters.get("kind") else []
    sums = ", ".join(
        f"least(sum(r.{name}), {SUM_MAX})::bigint AS {name}" for name in ("time_us", *AMOUNTS)
    )
    sql = f"""SELECT {group} AS group, count(*) AS leases, {sums}
        FROM proj_resources.lease l JOIN proj_resources.reported r USING (lease_id, node_id)
        LEFT JOIN proj_resources.job j USING (job_id)
        LEFT JOIN proj_resources.route o USING (lease_id)
        WHERE l.at_us >= %(from)s AND l.at_us < %(to)s
            AND (%(account)s::text IS NULL OR l.{whose} = %(account)s)
            {"".join(f" AND {one}" for one in where)}
            AND {group} COLLATE "C" > %(after)s
        GROUP BY 1 ORDER BY {group} COLLATE "C" LIMIT %(limit)s"""
    values = {"account": account_id, "from": from_us, "to": to_us, "after": after}
    return read.many(connection, UsedSum, sql, limit=limit, **values, **filters)
