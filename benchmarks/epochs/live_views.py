"""The views that a seal reads, filled as if a fleet had worked for an epoch: made up, by SQL.

Of each node: a board that was there and metered in some hours of the epoch, what its driver told, a
challenge that it passed, credits that cash paid and a burn confirmed, a week of uptime and twenty
leases of it and of its provider; an account of its own that was never paid before. The reports and
facts behind the rows are left out: a seal does not read them.
"""

from __future__ import annotations

from typing import Any

import psycopg

from domain.duration import DAY_US
from domain.gpu_time import GPU_HOUR_US
from projections import tables

HOURS = 4
"""Of an epoch in which each board is there: rows of a view by hour."""
UPTIME_DAYS = 7
VIEWS = ("epochs", "availability", "reputation")

_NODES = """
    CREATE TEMP TABLE made AS
    SELECT 'node_' || md5(n::text) AS node_id, 'prov_' || md5('p' || n) AS provider_id,
        'acct_' || md5('a' || n) AS account_id, n,
        'GPU-' || regexp_replace(md5('d' || n),
            '(.{8})(.{4})(.{4})(.{4})(.{12})', '\\1-\\2-\\3-\\4-\\5') AS device_id
    FROM generate_series(1, %(count)s) n ORDER BY 1
"""
_FILLED = (
    "INSERT INTO proj_availability.provider SELECT provider_id, account_id FROM made",
    "INSERT INTO proj_availability.node SELECT node_id, provider_id, 1 FROM made",
    """INSERT INTO proj_availability.registered
        SELECT device_id, node_id, 'datacenter', %(start)s, 1 FROM made""",
    "INSERT INTO proj_availability.library VALUES ('580.65.06', 'a1', 1, true)",
    """INSERT INTO proj_availability.identity
        SELECT node_id, device_id, 1, '{"name":"NVIDIA H200","pci_id":"0x233510DE",
            "mem_bytes":150754820096,"compute_capability":"9.0","driver":"580.65.06",
            "library_sha256":"a1","proc_nvidia":"ok","power_limit_mw":700000,
            "counter_mj":1000000,"integrated_mj":1000000}', n %% 64, n, %(start)s FROM made""",
    """INSERT INTO proj_availability.proof
        SELECT node_id, device_id, 'challenge', 'passed', NULL, %(start)s + 1, -n FROM made""",
    """INSERT INTO proj_availability.metered
        SELECT node_id, device_id, device_id, %(start)s + h * %(hour)s, 1, n %% 64, n, %(start)s,
            %(start)s + h * %(hour)s, %(start)s + (h + 1) * %(hour)s, 60, %(hour)s, %(hour)s,
            1000000000 + n %% 1000, 60, 300000, 400000 + n %% 1000, 60, 200000, 700000
        FROM generate_series(0, %(hours)s - 1) h CROSS JOIN made""",
    """INSERT INTO proj_availability.there
        SELECT node_id, device_id, device_id, %(start)s + h * %(hour)s, 1, %(hour)s - n %% 1000
        FROM generate_series(0, %(hours)s - 1) h CROSS JOIN made""",
    """INSERT INTO proj_epochs.weight
        SELECT 1, node_id, account_id, 'cash', 1000000 + n, 3600000000 + n FROM made""",
    """INSERT INTO proj_epochs.brought
        SELECT 1, node_id, 'acct_client', 'cash', 1000000 + n, 3600000000 + n FROM made""",
    """INSERT INTO proj_epochs.burn
        SELECT 1, 1, 1, sum(1000000 + n), count(*) * 100000000, 1, 'confirmed', NULL, %(start)s, 1,
            1, sum(1000000 + n) FROM made""",
    "INSERT INTO proj_epochs.burnt SELECT 1, 1, node_id, account_id, 1000000 + n FROM made",
    """INSERT INTO proj_reputation.subject
        SELECT 'node', node_id, provider_id, %(start)s, 1 FROM made
        UNION ALL SELECT 'provider', provider_id, NULL, %(start)s, 1 FROM made""",
    """INSERT INTO proj_reputation.day
        SELECT kind, CASE kind WHEN 'node' THEN node_id ELSE provider_id END, 'uptime',
            %(day)s + d, %(day)s + d, '', %(hour)s * 24 - n %% 1000, %(hour)s * 24
        FROM generate_series(0, %(days)s - 1) d
        CROSS JOIN unnest(ARRAY['node', 'provider']) kind CROSS JOIN made""",
    """INSERT INTO proj_reputation.day
        SELECT kind, CASE kind WHEN 'node' THEN node_id ELSE provider_id END, 'completion',
            %(day)s, %(day)s, '', (19 + n %% 2) * 1000000, 20000000
        FROM unnest(ARRAY['node', 'provider']) kind CROSS JOIN made""",
)


def fill(connection: psycopg.Connection[Any], count: int, start_us: int) -> None:
    """So many nodes in epoch 1, which began at a moment; the facts of the log are read first."""
    tables.step_all(connection, only=VIEWS)
    asked = {
        "count": count,
        "start": start_us,
        "hour": GPU_HOUR_US,
        "hours": HOURS,
        "day": start_us // DAY_US,
        "days": UPTIME_DAYS,
    }
    with connection.transaction():
        for statement in (_NODES, *_FILLED):
            connection.execute(statement.encode(), asked)
    for view in VIEWS:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = %s::regnamespace",
            (f"proj_{view}",),
        ).fetchall()
        for (name,) in rows:
            connection.execute(f"VACUUM ANALYZE proj_{view}.{name}".encode())
