"""What has become of the work of each lease? Taken up by which executor, ended how, stopped when.

A row exists for leases whose node acknowledged the start, or sealed credentials for; who they
belong to is with the leases. `running` work is acknowledged, not ended and not stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from projections import read
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.work (
        lease_id text COLLATE "C" PRIMARY KEY, node_id text COLLATE "C" NOT NULL,
        executor text, runner text, workload_sha256 text, acknowledged_at_us bigint,
        credentials text, outcome text, exit_code int, ended_at_us bigint,
        opened_at_us bigint, closed_at_us bigint, close_code int, stopped_at_us bigint,
        position bigint NOT NULL
    ) WITH (fillfactor = 70);
"""

_INDEXES = """
    CREATE INDEX ON own.work (node_id, position)
        WHERE acknowledged_at_us IS NOT NULL AND stopped_at_us IS NULL;
"""

_RULES = (
    Rule(
        ("lease.command_acknowledged.v1",),
        "lease_id text, node_id text, command text, executor text, runner text,"
        " workload_sha256 text, at_us bigint",
        """INSERT INTO own.work (lease_id, node_id, executor, runner, workload_sha256,
            acknowledged_at_us, position)
        SELECT lease_id, node_id, executor, runner, workload_sha256, at_us, position
        FROM facts WHERE command = 'start'""",
    ),
    Rule(
        ("lease.ready.v1",),
        "lease_id text, node_id text, credentials text",
        """INSERT INTO own.work (lease_id, node_id, credentials, position)
        SELECT lease_id, node_id, credentials, position FROM facts WHERE credentials IS NOT NULL
        ON CONFLICT (lease_id) DO UPDATE SET credentials = excluded.credentials""",
    ),
    Rule(
        ("lease.work_ended.v1",),
        "lease_id text, outcome text, exit_code int, at_us bigint",
        """UPDATE own.work w SET outcome = f.outcome, exit_code = f.exit_code,
            ended_at_us = f.at_us FROM facts f WHERE w.lease_id = f.lease_id""",
    ),
    Rule(
        ("lease.opened.v1",),
        "lease_id text, opened_at_us bigint",
        """UPDATE own.work w SET opened_at_us = f.opened_at_us
        FROM facts f WHERE w.lease_id = f.lease_id""",
    ),
    Rule(
        ("lease.closed.v1",),
        "lease_id text, closed_at_us bigint, code int",
        """UPDATE own.work w SET closed_at_us = f.closed_at_us, close_code = f.code
        FROM facts f WHERE w.lease_id = f.lease_id""",
    ),
    Rule(
        ("lease.command_acknowledged.v1",),
        "lease_id text, command text, at_us bigint",
        """UPDATE own.work w SET stopped_at_us = f.at_us FROM facts f
        WHERE w.lease_id = f.lease_id AND f.command = 'stop'""",
    ),
)

WORK = Projection("work", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class WorkRow:
    """The work of one lease; None: not yet, or never."""

    lease_id: str
    node_id: str
    executor: str | None
    runner: str | None
    workload_sha256: str | None
    acknowledged_at_us: int | None
    credentials: str | None
    outcome: str | None
    exit_code: int | None
    ended_at_us: int | None
    opened_at_us: int | None
    closed_at_us: int | None
    close_code: int | None
    stopped_at_us: int | None
    position: int


def read_work(connection: Connection, lease_id: str) -> WorkRow | None:
    """The work of a lease; None: its node has not answered."""
    sql = "SELECT * FROM proj_work.work WHERE lease_id = %(id)s"
    return read.one(connection, WorkRow, sql, id=lease_id)


def read_free_starts(connection: Connection, lease_ids: Sequence[str]) -> dict[str, int]:
    """Of those of these leases that were billed, the time of their start before that."""
    sql = """SELECT lease_id, greatest(0, opened_at_us - acknowledged_at_us) FROM proj_work.work
        WHERE lease_id = ANY(%s) AND acknowledged_at_us IS NOT NULL AND opened_at_us IS NOT NULL"""
    return dict(connection.execute(sql, (list(lease_ids),)).fetchall())


def read_on_node(connection: Connection, node_id: str, limit: int) -> list[WorkRow]:
    """Work of a node that was taken up and whose stop is not acknowledged, oldest first."""
    sql = """SELECT * FROM proj_work.work WHERE node_id = %(id)s
        AND acknowledged_at_us IS NOT NULL AND stopped_at_us IS NULL
        ORDER BY position LIMIT %(limit)s"""
    return read.many(connection, WorkRow, sql, id=node_id, limit=limit)
