"""Bytes, processor and gas of a report, a fact and a payout, one by one.

    python -m benchmarks.capacity.costs            full; writes benchmarks/results/capacity.json
    python -m benchmarks.capacity.costs --tiny     whether it runs at all; writes nothing

Bytes are what `pg_total_relation_size` (table, indexes and what is stored beside) of every table
grew by, over the reports or facts written. Processor time is the process's own and that of every
process of PostgreSQL. Gas is exact: an embedded chain with the contracts of a market.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from benchmarks import cpu
from benchmarks.capacity import keep
from benchmarks.history.market import Daily
from benchmarks.history.slopes import Store, append_one
from benchmarks.log import append
from benchmarks.log.reports import bench_node, reports
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from ledger import migrate
from ledger.bundle import parquet
from ledger.log import usage
from ledger.tree import trees
from projections import tables
from tests.contracts.conftest import deployed_set, staged
from tests.contracts.stage import CAP
from tests.contracts.test_gas import big_tree, propose_and_accept

RESULTS = Path(__file__).parents[1] / "results" / "capacity.json"
DEVICES = (2, 8)
"""GPUs of a node that reports; a report has a row for each."""
TOGETHER = 100
CLAIMS = range(100, 9_900, 98)

Connection = psycopg.Connection[Any]


class Numbers(NamedTuple):
    nodes: int
    per_node: int  # reports
    daily: Daily
    facts: int  # appended one by one


SIZES = {
    Size.FULL: Numbers(20, 500, Daily(nodes=20, renters=4, leases=1_000, hours=8, reports=0), 500),
    Size.SHORT: Numbers(20, 100, Daily(nodes=20, renters=4, leases=200, hours=8, reports=0), 100),
    Size.TINY: Numbers(2, 4, Daily(nodes=2, renters=1, leases=16, hours=4, reports=0), 2),
}


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """All of it: bytes and nanoseconds of one, gas of one."""
    numbers = SIZES[size]
    load = [round(each, 2) for each in os.getloadavg()]
    with workplace(server) as (folder, made):
        told = {str(devices): _reports(folder, made, devices, numbers) for devices in DEVICES}
        facts = _facts(folder, made, numbers)
    return {"load_average": load, "reports": told, "facts": facts, "gas": _gas()}


def _sizes(connection: Connection) -> dict[str, int]:
    """Bytes of all tables, by what they keep."""
    rows = connection.execute("""
        SELECT CASE WHEN n.nspname LIKE 'proj%' THEN 'views'
            WHEN c.relname LIKE 'usage%' THEN 'reports'
            WHEN c.relname LIKE 'tree%' OR c.relname = 'checkpoint' THEN 'trees'
            WHEN c.relname LIKE 'market_events%' THEN 'facts' ELSE 'books' END,
            sum(pg_total_relation_size(c.oid))::int8
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        GROUP BY 1 ORDER BY 1
    """)
    return dict(rows.fetchall())


def _grown(before: Mapping[str, int], after: Mapping[str, int], count: int) -> dict[str, int]:
    return {what: (size - before.get(what, 0)) // count for what, size in after.items()}


def _empty(server: Server, name: str) -> str:
    uri = server.create_database(name)
    migrate.migrate(uri)
    with psycopg.connect(uri, autocommit=True) as connection:
        tables.ensure(connection)
    return uri


# --- reports ----------------------------------------------------------------------------------


def _reports(folder: Path, server: Server, devices: int, numbers: Numbers) -> dict[str, Any]:
    """A report with a row for each device, from its signature to the views."""
    uri = _empty(server, f"capacity_{devices}")
    nodes = [bench_node(number) for number in range(numbers.nodes)]
    made = [list(islice(reports(node, devices, devices), numbers.per_node)) for node in nodes]
    raw = [(nodes[n], made[n][k]) for k in range(numbers.per_node) for n in range(len(nodes))]
    stored, followed = cpu.Spent(server.pid), cpu.Spent(server.pid)
    with psycopg.connect(uri, autocommit=True) as connection:
        usage.prepare(connection)
        before = _sizes(connection)
        with stored.counted(len(raw)):
            append.ours_checked(connection, raw, TOGETHER)
        there = connection.execute("SELECT count(*) FROM usage_event WHERE flags = 0").fetchone()
        assert there == (len(raw),), "every report is stored, and none breaks a rule"
        with followed.counted(len(raw)):
            trees.follow_all(connection)
            tables.step_all(connection)
        connection.execute("VACUUM ANALYZE")
        return {
            "reports": len(raw),
            "nodes": numbers.nodes,
            "signed_bytes": sum(len(one.body) for _, one in raw) // len(raw),
            "bytes": _grown(before, _sizes(connection), len(raw)),
            "exported_bytes": _exported(folder / str(devices), connection) // len(raw),
            "stored_ns": stored.each(),
            "followed_ns": followed.each(),
        }


def _exported(folder: Path, connection: Connection) -> int:
    """Bytes of the files that an export has of these reports."""
    names = ", ".join(parquet.USAGE.names)
    found = 0
    for (lane,) in connection.execute("SELECT lane FROM usage_head WHERE pos > 0").fetchall():
        of_lane = f"SELECT {names} FROM usage_event WHERE lane = %s ORDER BY position"
        rows = connection.execute(of_lane.encode(), (lane,))
        written = parquet.write_log(folder, f"usage-{lane}", parquet.USAGE, rows)
        found += sum(one.bytes for one in written)
    return found


# --- facts ------------------------------------------------------------------------------------


def _facts(folder: Path, server: Server, numbers: Numbers) -> dict[str, Any]:
    """The facts of a day of leases, with books and views; and one fact through the door."""
    with psycopg.connect(_empty(server, "capacity_none"), autocommit=True) as connection:
        before = _sizes(connection)
    uri, alone = server.create_database("capacity_facts"), cpu.Spent(server.pid)
    with ExitStack() as stack:
        store = Store(folder / "facts", uri, 1, numbers.daily, stack)
        grown = _grown(before, _sizes(store.connection), store.facts)
        with alone.counted(numbers.facts):
            for _ in range(numbers.facts):
                append_one(store)
            tables.step_all(store.connection)
        return {
            "facts": store.facts,
            "leases": numbers.daily.leases,
            "hours": numbers.daily.hours,
            "bytes": grown,
            "appended_ns": alone.each(),
        }


# --- payouts ----------------------------------------------------------------------------------


def _gas() -> dict[str, int]:
    """Of an epoch (mint, root proposed, root accepted), and of a recipient who is paid from it:
    the first time, later, and beside 99 others in one transaction. The tree has 10,000 leaves.
    """
    with deployed_set() as deployed, staged(deployed) as stage:
        mint = stage.mint(1, CAP).gas_used
        tree = big_tree(stage, 10**6)
        first_proposed, first_accepted = propose_and_accept(stage, tree)
        stage.do("relay", stage.claim_call(tree, 0))
        first = stage.do("relay", stage.claim_call(tree, 1)).gas_used
        many = [(str(tree.rows[n][2]), int(tree.rows[n][3]), tree.proof(n)) for n in CLAIMS]
        together = stage.do("relay", stage.tally.claim_many(many)).gas_used // len(many)
        again = big_tree(stage, 10**6 + 777)
        proposed, accepted = propose_and_accept(stage, again)
        later = stage.do("relay", stage.claim_call(again, 1)).gas_used
    return {
        "mint": mint,
        "proposed": max(proposed, first_proposed),
        "accepted": max(accepted, first_accepted),
        "first_claim": first,
        "later_claim": later,
        "claim_among_100": together,
    }


def main() -> None:
    """Measure, print, and in full size keep."""
    keep.measured(run, size_asked(__doc__), RESULTS)


if __name__ == "__main__":
    main()
