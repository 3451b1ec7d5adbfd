"""How fast views come back from the logs, beside a runner that takes one event at a time.

    python -m benchmarks.books.projections            full
    python -m benchmarks.books.projections --short    a few seconds
    python -m benchmarks.books.projections --tiny     whether it runs at all

One embedded server, durable, all in one run:

- ours: each projection rebuilt from the market log alone, with its indexes; then the usage
  projection from signed reports of 100 rows, two workers by lane
- peer: what the eventsourcing library's runner does: decode one event, change the view and insert
  the tracking row in one transaction of its own, through the library's tracking recorder
- limit: the same facts read and parsed in PostgreSQL, the same reports read and decoded, and
  nothing kept
- the matcher: one step of the fleet and one match with its explanation, in milliseconds
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import psycopg
from eventsourcing.persistence import Tracking
from eventsourcing.postgres import PostgresFactory, PostgresTrackingRecorder
from eventsourcing.utils import Environment
from psycopg.conninfo import conninfo_to_dict

from benchmarks import cpu
from benchmarks.log.reports import bench_node, reports
from benchmarks.processes import context
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from domain.fleet.device import DeviceReserved, device_stream
from domain.lease.lease import UsageAccrued
from domain.market.matching import Need, choose
from domain.metering import report
from domain.money import PPM
from ledger import migrate
from ledger.log import codec, usage
from ledger.log.chain import split_body
from ledger.log.usage import StoredReport
from projections import runner, tables
from projections.fleet.fleet import FLEET
from projections.market.feed import Feed, fees
from projections.market.match import answer
from projections.metering.usage import USAGE, fold
from tests.projections.story import LEASES_MIN, START_US, Writer, story
from tests.projections.story import Size as StorySize

ROWS = 100
FIGURE = 200_000
"""Facts of the market log a second, of any view."""
HOUR_US = 3_600_000_000
OPENB = StorySize(nodes=1_213, devices=5, leases=LEASES_MIN, hours=2)
"""A fleet of the size of the openb trace: 6,065 devices, with as few leases as a story has."""

Connection = psycopg.Connection[Any]


class Numbers(NamedTuple):
    """`per_node`: reports of each node of the log. `fleet`: what is matched in, `calls` times."""

    log: StorySize
    per_node: int
    peer_events: int
    peer_reports: int
    fleet: StorySize
    calls: int


def _log(nodes: int, leases: int) -> StorySize:
    return StorySize(nodes=nodes, devices=4, leases=leases, hours=9)


SIZES = {
    Size.FULL: Numbers(_log(200, 6_000), 150, 3_000, 400, OPENB, 300),
    Size.SHORT: Numbers(_log(200, 600), 10, 300, 100, OPENB, 50),
    Size.TINY: Numbers(_log(3, LEASES_MIN), 2, 10, 4, replace(OPENB, nodes=3), 3),
}


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Measure and return rates (facts/s, reports/s) and ratios to the peer and to the limit."""
    numbers = SIZES[size]
    with workplace(server) as (_, made):
        uri = made.create_database("projections")
        migrate.migrate(uri)
        with psycopg.connect(uri, autocommit=True) as connection:
            Writer(connection).write(story(numbers.log))
            _store_reports(connection, numbers)
            connection.execute("VACUUM ANALYZE")
            market = _market(connection, uri, numbers.peer_events, made.pid)
            metered = _usage(connection, uri, numbers.peer_reports)
        matcher = _matcher(made.create_database("matcher"), numbers)
    return {
        "figure": f"projection rebuild: >= {FIGURE:,} market facts/s,"
        " >= 20,000 reports of 100 rows/s",
        "market": market,
        "usage": metered,
        "matcher": matcher,
    }


# --- the market log --------------------------------------------------------------------------


def _market(connection: Connection, uri: str, peer_events: int, server: int) -> dict[str, Any]:
    head = _head(connection)
    ours: dict[str, int] = {}
    spent: dict[str, dict[str, int]] = {}
    for projection in tables.PROJECTIONS:
        whole = runner.Projection(
            projection.name, projection.tables, projection.rules, projection.indexes
        )
        tables.drop(connection, whole)
        used = cpu.Spent(server)
        with used.counted(head):
            ours[whole.name] = int(head / tables.rebuild(connection, whole).seconds)
        spent[whole.name] = used.each()
        tables.drop(connection, whole)
    peer = _peer(connection, uri, peer_events)
    limit = int(head / _parse_only(connection))
    slowest = min(ours.values())
    return {
        "facts": head,
        "facts_per_second": ours,
        "processor_ns": spent,
        "slowest": slowest,
        "all_one_after_the_other": int(1 / sum(1 / rate for rate in ours.values())),
        "peer_per_second": peer,
        "limit_per_second": limit,
        "earnings_to_peer": round(ours["earnings"] / peer, 1),
        "slowest_to_limit": round(slowest / limit, 2),
    }


def _head(connection: Connection) -> int:
    row = connection.execute("SELECT pos FROM market_events_head").fetchone()
    assert row is not None
    return int(row[0])


def _parse_only(connection: Connection) -> float:
    started = time.perf_counter()
    connection.execute(
        "SELECT sum(f.at_us) FROM market_events e CROSS JOIN LATERAL"
        " json_to_record(convert_from(e.state, 'UTF8')::json) f(at_us bigint)"
    )
    return time.perf_counter() - started


class _EarningsView(PostgresTrackingRecorder):
    """The library's way: one event, one transaction, the tracking row inserted with it."""

    def process(self, name: str, body: bytes, tracking: Tracking) -> None:
        fact = codec.decode(name, body)
        with self.datastore.transaction(commit=True) as cursor:
            if isinstance(fact, UsageAccrued):
                cursor.execute(
                    "INSERT INTO peer_earning AS t VALUES (%s, %s, %s, %s) ON CONFLICT"
                    " (account_id, lease_id) DO UPDATE SET gpu_us = t.gpu_us + excluded.gpu_us,"
                    " charge = t.charge + excluded.charge",
                    (
                        fact.provider_account_id,
                        fact.lease_id,
                        fact.gpu_us_new,
                        fact.charge_new.units,
                    ),
                    prepare=True,
                )
            self._insert_tracking(cursor, tracking)


def _peer(connection: Connection, uri: str, events: int) -> int:
    connection.execute(
        "CREATE TABLE peer_earning (account_id text, lease_id text, gpu_us bigint,"
        " charge bigint, PRIMARY KEY (account_id, lease_id))"
    )
    given = conninfo_to_dict(uri)
    factory: Any = PostgresFactory(
        Environment(
            "peer",
            {
                "PERSISTENCE_MODULE": "eventsourcing.postgres",
                "POSTGRES_DBNAME": str(given["dbname"]),
                "POSTGRES_HOST": str(given["host"]),
                "POSTGRES_PORT": str(given["port"]),
                "POSTGRES_USER": str(given["user"]),
                "POSTGRES_PASSWORD": "",
            },
        )
    )
    view = factory.tracking_recorder(_EarningsView)
    rows = connection.execute(
        "SELECT notification_id, topic, state FROM market_events WHERE notification_id <= %s"
        " ORDER BY notification_id",
        (events,),
    ).fetchall()
    started = time.perf_counter()
    for position, topic, state in rows:
        view.process(topic, bytes(state), Tracking("market", position))
    seconds = time.perf_counter() - started
    factory.close()
    return int(len(rows) / seconds)


# --- the usage log ---------------------------------------------------------------------------


def _store_reports(connection: Connection, numbers: Numbers) -> None:
    usage.prepare(connection)
    nodes = [bench_node(number) for number in range(numbers.log.nodes)]
    for node in nodes:
        items = [
            usage.item(
                node.id, one.seq, one.prev, one.body, node.key_id, one.signature, node.genesis
            )
            for one in islice(reports(node, ROWS), numbers.per_node)
        ]
        for at in range(0, len(items), 100):
            usage.append(connection, items[at : at + 100])


def _usage(connection: Connection, uri: str, peer_reports: int) -> dict[str, Any]:
    tables.drop(connection, USAGE)
    tables.create(connection, USAGE, indexes=False)
    two, count = _two_workers(uri)
    some = _some(connection, peer_reports)
    started = time.perf_counter()
    fold(some)
    decode = time.perf_counter() - started
    return {
        "reports": count,
        "body_bytes": len(some[0].body),
        "reports_per_second": int(count / two),
        "rows_per_second": int(ROWS * count / two),
        "peer_per_second": (peer := _peer_usage(connection, some)),
        "limit_per_second_one_core": int(len(some) / decode),
        "to_peer": round(count / two / peer, 1),
    }


def _two_workers(uri: str) -> tuple[float, int]:
    """Seconds from the moment both are connected until both are done, and reports applied."""
    making = context()
    barrier, results = making.Barrier(3), making.Queue()
    workers = [making.Process(target=_worker, args=(uri, n, barrier, results)) for n in (0, 1)]
    for worker in workers:
        worker.start()
    barrier.wait()
    started = time.perf_counter()
    done = sum(results.get() for _ in workers)
    seconds = time.perf_counter() - started
    for worker in workers:
        worker.join()
    return seconds, done


def _worker(uri: str, number: int, barrier: Any, results: Any) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        barrier.wait()
        lanes = range(number, runner.LANES, 2)
        results.put(tables.lanes_to_head(connection, USAGE, USAGE.schema, lanes))


def _some(connection: Connection, count: int) -> list[StoredReport]:
    rows = connection.cursor(binary=True).execute(
        "SELECT lane, position, node_id, node_seq, body, flags, recorded_us FROM usage_event"
        " ORDER BY lane, position LIMIT %s",
        (count,),
    )
    return [StoredReport(*row) for row in rows]


def _peer_usage(connection: Connection, some: list[StoredReport]) -> int:
    """One report at a time: read it strictly, add up its rows, one transaction."""
    connection.execute(
        "CREATE TABLE peer_hour (node_id text, hour_us bigint, ppm_us bigint,"
        " PRIMARY KEY (node_id, hour_us));"
        " CREATE TABLE peer_position (lane int PRIMARY KEY, position bigint)"
    )
    started = time.perf_counter()
    for one in some:
        parsed = report.parse(split_body(one.body)[0])
        hours: dict[int, int] = {}
        for row in parsed.rows:
            end_us = row.wall_end_us + (parsed.clock_offset_us or 0)
            hour_us = (end_us - 1) // HOUR_US * HOUR_US
            share = parsed.devices[row.device].share_ppm
            hours[hour_us] = hours.get(hour_us, 0) + row.available_us * share
        with connection.transaction():
            for hour_us, ppm_us in hours.items():
                connection.execute(
                    "INSERT INTO peer_hour AS t VALUES (%s, %s, %s) ON CONFLICT"
                    " (node_id, hour_us) DO UPDATE SET ppm_us = t.ppm_us + excluded.ppm_us",
                    (one.node_id, hour_us, ppm_us),
                )
            connection.execute(
                "INSERT INTO peer_position VALUES (%s, %s) ON CONFLICT (lane)"
                " DO UPDATE SET position = excluded.position",
                (one.lane, one.position),
            )
    return int(len(some) / (time.perf_counter() - started))


# --- the matcher -----------------------------------------------------------------------------


def _matcher(uri: str, numbers: Numbers) -> dict[str, Any]:
    """Milliseconds to follow one reservation and to match and explain, in a fleet of the size of
    the openb trace: 1,213 nodes, 6,065 devices.
    """
    calls = numbers.calls
    migrate.migrate(uri)
    taken: list[float] = []
    with psycopg.connect(uri, autocommit=True) as connection:
        writer = Writer(connection)
        writer.write(story(numbers.fleet))
        tables.step_all(connection)
        feed = Feed.empty()
        feed.follow(connection)
        for number in range(calls):
            share = (PPM, PPM // 2, PPM // 4)[number % 3]
            need = Need(
                1 + number % 2,
                share,
                share,
                (),
                10**9,
                "acct_cash",
                at_us=START_US,
                until_us=START_US + 1,
            )
            started = time.perf_counter()
            runner.step(connection, FLEET)
            feed.follow(connection)
            found = choose(need, answer(feed.columns, need, fees(connection, START_US)).nodes)
            taken.append(1_000 * (time.perf_counter() - started))
            writer.write(
                (
                    device_stream(device_id),
                    DeviceReserved(
                        device_id=device_id,
                        lease_id=f"lease_{number}",
                        share_ppm=share,
                        mem_ppm=share,
                        at_us=START_US,
                        mode="memory",
                        mig=None,
                    ),
                )
                for device_id in (found.device_ids if found is not None else ())
            )
    taken.sort()
    return {
        "nodes": numbers.fleet.nodes,
        "calls": calls,
        "p50_ms": round(taken[calls // 2], 2),
        "p99_ms": round(taken[calls * 99 // 100], 2),
    }


def main() -> None:
    print(json.dumps(run(size_asked("Rates of rebuilding projections.")), indent=2))


if __name__ == "__main__":
    main()
