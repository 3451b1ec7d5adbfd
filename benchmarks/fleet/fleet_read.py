"""How long a process needs to read a fleet of 100,000 nodes, 800,000 GPUs from PostgreSQL.

    python -m benchmarks.fleet.fleet_read            100,000 nodes
    python -m benchmarks.fleet.fleet_read --nodes N

It is done once, when the process starts; after that only what changes is read. The rows are
written straight into the fleet's view, half of the devices in use; no log is replayed. Beside it
a lower bound: PostgreSQL writes the same devices to a null file (`COPY`).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from typing import Any

import psycopg

from benchmarks import cpu
from benchmarks.workplace import Server, workplace
from ledger import migrate
from projections import tables
from projections.market.feed import Feed
from projections.runner import Connection

NODES, GPUS_EACH, PROVIDERS, REGIONS = 100_000, 8, 5_000, 300

_FILL = (
    """INSERT INTO proj_fleet.provider
            (provider_id, account_id, kind, payment_mode, at_us, position)
        SELECT 'prov_' || n, 'acct_' || n, 'physical', 'credits', 1, n
        FROM generate_series(0, %(providers)s) n""",
    """INSERT INTO proj_fleet.region (region_id, provider_id, name, storage_mode, setting,
            admission, allow_public_jobs, at_us, position)
        SELECT 'region_' || n, 'prov_' || n, 'r', 'central', 'datacenter', 'operator', true, 1, n
        FROM generate_series(0, %(regions)s) n""",
    """INSERT INTO proj_fleet.node (node_id, provider_id, region_id, agent, key_id, public_key,
            phase, phase_at_us, quarantined, specs, specs_at_us, at_us, position, sellable,
            revoked, lifetime, capacity_class)
        SELECT 'node_' || lpad(n::text, 32, '0'), 'prov_' || n %% %(providers)s,
            'region_' || n %% %(regions)s, 'bench', 'k', 'p', 'active', 1, false,
            '{"host": {"arch": "x86_64", "os": "linux", "cpu_cores": 64, "ram_mib": 524288}}',
            1, 1, n, true, false, 'permanent', 'on_demand'
        FROM generate_series(0, %(nodes)s - 1) n""",
    """INSERT INTO proj_fleet.device
        SELECT 'GPU-' || n || '-' || g, 'node_' || lpad(n::text, 32, '0'),
            'prov_' || n %% %(providers)s, 'nvidia', 'NVIDIA H100 80GB HBM3', 'datacenter', 81559,
            false, free, free, CASE WHEN free < 1000000 THEN 'memory' END, 1, n, 'gpu', 'dedicated',
            true, 'GPU_MS'
        FROM generate_series(0, %(nodes)s - 1) n, generate_series(1, %(gpus)s) g, LATERAL (
            SELECT (ARRAY[1000000, 1000000, 500000, 0])[1 + (7 * n + g) %% 4] AS free) f""",
    """INSERT INTO proj_fleet.offer
        SELECT 'offer_' || lpad(n::text, 32, '0'), 'prov_' || n %% %(providers)s,
            'node_' || lpad(n::text, 32, '0'), 2000000 + n %% 200 * 10000, 'cash', true, NULL,
            '{"isolation": "container", "capabilities": ["cuda", "docker"]}', NULL, 1, n
        FROM generate_series(0, %(nodes)s - 1) n""",
)


def run(nodes: int = NODES, server: Server | None = None) -> dict[str, Any]:
    """Seconds of the first read, and of the processors on both sides of the connection."""
    with workplace(server) as (_, running):
        uri = running.create_database("fleet_read")
        migrate.migrate(uri)
        with psycopg.connect(uri, autocommit=True) as connection:
            tables.ensure(connection)
            _fill(connection, nodes)
            return _measure(connection, running.pid, nodes)


def _fill(connection: Connection, nodes: int) -> None:
    values = {"nodes": nodes, "gpus": GPUS_EACH, "providers": PROVIDERS, "regions": REGIONS}
    for sql in _FILL:
        connection.execute(sql.encode(), values)
    connection.execute("ANALYZE")


def _measure(connection: Connection, server_pid: int, nodes: int) -> dict[str, Any]:
    started = time.perf_counter()
    connection.execute("COPY proj_fleet.device TO '/dev/null'")
    limit = time.perf_counter() - started
    feed = Feed.empty()
    before, used, started = cpu.of_server(server_pid), time.process_time(), time.perf_counter()
    feed.follow(connection)
    wall, ours = time.perf_counter() - started, time.process_time() - used
    assert feed.columns.size == nodes
    return {
        "conditions": {
            "nodes": nodes,
            "devices": nodes * GPUS_EACH,
            "cores": os.cpu_count(),
            "load_average": [round(load, 2) for load in os.getloadavg()],
        },
        "wall_seconds": round(wall, 1),
        "process_cpu_seconds": round(ours, 1),
        "database_cpu_seconds": round(cpu.of_server(server_pid) - before, 1),
        "limit_copy_seconds": round(limit, 2),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    print(json.dumps(run(parser.parse_args().nodes), indent=1))


if __name__ == "__main__":
    main()
