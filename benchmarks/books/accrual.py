"""One hour of many active leases: from signed reports to booked facts, beside one lease at a time.

    python -m benchmarks.books.accrual            full: 100,000 leases, some minutes
    python -m benchmarks.books.accrual --short    5,000
    python -m benchmarks.books.accrual --tiny     16: whether it runs at all

One embedded server, durable; one process runs the real accrual job against it, as
`tallystick jobs` does. Conditions:

- 8 devices a node, a whole device a lease, nodes in all 64 lanes; leases were opened in another
  order than their nodes stand in the log; 1,000 renters, 100 providers; settled in cash, with
  usage fee, provider's part and take rate: 4 lines a posting
- one signed report per node and hour, of 8 rows, received before the job runs
- hour 1 cold: a process that has just started, no state of any lease in memory
- hour 2 warm: the same process, which has kept the states of the leases
- idle: the job once more, when nothing is due; it runs every five seconds
- afterwards every lease is compared with its price, and the books are added up

- peer: the same job on the next hour of some of the leases, one lease a transaction
- limit: binary COPY of the facts and postings of one hour, ready, into tables of the same
  definitions
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from nacl.bindings import crypto_sign

from api.metering.accrual import accrue, run_accrual
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.settings import Settings
from benchmarks import cpu
from benchmarks.books.leases import requested, reserved
from benchmarks.log.reports import BOOT, BenchNode, bench_node
from benchmarks.processes import context
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from domain.funds import deposit
from domain.funds.deposit import deposit_stream
from domain.gpu_time import GPU_HOUR_US, charge_for
from domain.lease import lease
from domain.lease.choice import Candidate
from domain.lease.lease import lease_stream
from domain.metering import report
from domain.money import credit
from ledger.log import usage
from projections import tables
from tests.projections.story import Told, Writer

FIGURE_SECONDS = {"cold": 10.0, "warm": 7.0}
DEVICES = 8
RENTERS, PROVIDERS = 1_000, 100
HOURS_FUNDED = 24
PRICE, FEE = 2_780_000, 250_000
HOUR_US = 3_600_000_000
START_US = 1_795_161_600_000_000
WRITE_BATCH = 25_000
Connection = psycopg.Connection[Any]


class Numbers(NamedTuple):
    leases: int
    peer_leases: int


SIZES = {
    Size.FULL: Numbers(leases=100_000, peer_leases=2_000),
    Size.SHORT: Numbers(leases=5_000, peer_leases=500),
    Size.TINY: Numbers(leases=16, peer_leases=2),
}
LEASES = SIZES[Size.FULL].leases


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Seconds of the accrual job for one hour of all leases, cold and warm."""
    leases, peer_leases = SIZES[size]
    with workplace(server) as (folder, made), ExitStack() as stack:
        settings = Settings(data_dir=folder / "data", database_url=made.create_database("accrual"))
        clock = SimulatedClock(START_US)
        service = stack.enter_context(Service.open(settings, clock=clock))
        connection = stack.enter_context(
            psycopg.connect(settings.database_url or "", autocommit=True)
        )
        founding = context().Process(target=_found, args=(settings.database_url, leases))
        founding.start()
        founding.join()
        assert founding.exitcode == 0
        market = _Market(connection, leases)
        hours = [
            _hour(service, connection, market, number, name, made.pid)
            for number, name in ((1, "cold"), (2, "warm"))
        ]
        idle = _idle(service, connection)
        peer = _one_by_one(service, connection, market, peer_leases)
        limit = _limit(connection, leases)
    return {
        "figure": f"accrual of {LEASES:,} active leases for one hour, seconds: {FIGURE_SECONDS}",
        "leases": leases,
        "nodes": -(-leases // DEVICES),
        "hours": hours,
        "idle_seconds": round(idle, 3),
        "peer_leases_per_second": round(peer),
        "limit_leases_per_second": round(limit),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


# --- the market -------------------------------------------------------------------------------


class _Market:
    """Nodes that sign what their leases ran."""

    def __init__(self, connection: Connection, size: int) -> None:
        self._connection = connection
        self.size = size
        self.nodes = [bench_node(number) for number in range(-(-size // DEVICES))]
        self._heads = [(0, node.genesis) for node in self.nodes]
        usage.prepare(connection)

    def report(self, hour: int) -> None:
        """Every node signs the hour that ends now; the log takes it."""
        items = []
        for place, node in enumerate(self.nodes):
            seq, prev = self._heads[place]
            body = _report(
                node, place, min(DEVICES, self.size - place * DEVICES), seq + 1, prev, hour
            )
            signature = crypto_sign(report.pae(body), node.secret)[:64]
            self._heads[place] = (seq + 1, report.report_hash(body))
            items.append(
                usage.item(node.id, seq + 1, prev, body, node.key_id, signature, node.genesis)
            )
        for at in range(0, len(items), 500):
            usage.append(self._connection, items[at : at + 500], START_US + hour * HOUR_US)


def _found(uri: str, size: int) -> None:
    """Deposits, then every lease from its request to its opening, in a shuffled order.

    In a process of its own, for it needs more memory than what is measured.
    """
    nodes = [bench_node(number) for number in range(-(-size // DEVICES))]
    order = list(range(size))
    random.Random(1).shuffle(order)
    with psycopg.connect(uri, autocommit=True) as connection:
        writer = Writer(connection)
        writer.write(_deposit(number, size) for number in range(RENTERS))
        for at in range(0, size, WRITE_BATCH):
            some = order[at : at + WRITE_BATCH]
            writer.write(told for n in some for told in _lease(n, nodes[n // DEVICES]))
        connection.execute(
            "SELECT setval(pg_get_serial_sequence('account', 'id'), max(id)) FROM account"
        )
        connection.execute("VACUUM ANALYZE")


def _lease(number: int, node: BenchNode) -> Iterator[Told]:
    at_us = START_US
    common: dict[str, Any] = {
        "lease_id": lease_id(number),
        "job_id": f"job_{number:032x}",
        "account_id": f"acct_{number % RENTERS:032x}",
        "client_id": "direct",
        "project_id": "project",
        "end_user_ref": "user",
        "at_us": at_us,
    }
    stream, device = lease_stream(lease_id(number)), _device(node, number % DEVICES)
    provider = number // DEVICES % PROVIDERS
    offer = {
        "node_id": node.id,
        "provider_id": f"prov_{provider:032x}",
        "provider_account_id": f"acct_owner{provider:027x}",
        "offer_id": f"offer_{number // DEVICES:032x}",
    }
    yield stream, requested(common, credit(PRICE), credit(HOURS_FUNDED * PRICE))
    yield (
        stream,
        lease.MatchDecided(
            lease_id=lease_id(number),
            rule="lowest_cost/1",
            fleet_position=1,
            candidates=(Candidate(node.id, offer["offer_id"], PRICE, 0, 0),),
            considered=1,
            node_id=node.id,
            offer_id=offer["offer_id"],
            device_ids=(device,),
            at_us=at_us,
            pricing=None,
            weights=None,
            narrowed=(),
        ),
    )
    yield stream, reserved(common, offer, device, (PRICE, FEE), HOURS_FUNDED)
    yield (
        stream,
        lease.LeaseReady(
            lease_id=lease_id(number), node_id=node.id, endpoint=None, at_us=at_us, credentials=None
        ),
    )
    yield (
        stream,
        lease.LeaseOpened(
            lease_id=lease_id(number),
            price_per_gpu_hour=credit(PRICE),
            opened_at_us=at_us,
            funds_end_us=at_us + HOURS_FUNDED * HOUR_US,
            term_end_us=None,
            at_us=at_us,
        ),
    )


def lease_id(number: int) -> str:
    return f"lease_{number:032x}"


def _device(node: BenchNode, slot: int) -> str:
    return f"GPU-{sha256(f'{node.id}/{slot}'.encode()).hexdigest()[:32]}"


def _deposit(number: int, leases: int) -> Told:
    units = HOURS_FUNDED * PRICE * (leases // RENTERS + 1)
    return deposit_stream(f"dep_{number}"), deposit.DepositConfirmed(
        deposit_id=f"dep_{number}",
        account_id=f"acct_{number:032x}",
        source="cash",
        amount=credit(units),
        reference="wire",
        confirmed_by="acct_operator",
        at_us=START_US,
    )


def _report(node: BenchNode, place: int, devices: int, seq: int, prev: bytes, hour: int) -> bytes:
    """One row for each device: the hour that was leased."""
    return report.encode(
        report.Report(
            node=node.id,
            seq=seq,
            prev=prev.hex(),
            boot=BOOT,
            agent="0.1.0",
            mono_us=hour * HOUR_US,
            wall_us=START_US + hour * HOUR_US,
            clock_offset_us=0,
            clock_rtt_us=8_000,
            devices=tuple(
                report.Device(id=_device(node, slot), busy_source="gpm", energy_scope="device")
                for slot in range(devices)
            ),
            leases=tuple(lease_id(place * DEVICES + slot) for slot in range(devices)),
            rows=tuple(
                report.Row(
                    device=slot,
                    lease=slot,
                    driver_epoch=3,
                    mono_start_us=(hour - 1) * HOUR_US,
                    len_us=HOUR_US,
                    wall_minus_mono_us=START_US,
                    available_us=HOUR_US,
                    unavailable_us=0,
                    unknown_us=0,
                    samples=3_600,
                    busy_us=3_000_000_000 + 7_919 * slot,
                    mem_byte_s=10**14 + slot,
                    energy_mj=900_000_000 + slot,
                    throttle_power_ns=0,
                    throttle_thermal_ns=0,
                    reason="hour",
                )
                for slot in range(devices)
            ),
        )
    )


# --- measuring --------------------------------------------------------------------------------


def _hour(
    service: Service, connection: Connection, market: _Market, hour: int, name: str, server: int
) -> dict[str, Any]:
    """Run the job once for one hour of every lease; then check what it wrote."""
    market.report(hour)
    tables.step_all(connection, only=("leases",))  # the followers' work, as in a running service
    connection.execute("CHECKPOINT")
    before, memory = service.ledger.market.head()[0], _resident_mib()
    load, ours, theirs = os.getloadavg()[0], time.process_time(), cpu.of_server(server)
    began = time.perf_counter()
    done = run_accrual(service, connection, START_US + hour * HOUR_US)
    seconds, ours = time.perf_counter() - began, time.process_time() - ours
    theirs = cpu.of_server(server) - theirs
    assert done == market.size, (done, market.size)
    _check(service, connection, market.size, hour, before)
    return {
        "hour": name,
        "seconds": round(seconds, 2),
        "leases_per_second": round(market.size / seconds),
        "seconds_for_100000": round(seconds * 100_000 / market.size, 2),
        "cpu_seconds": {"python": round(ours, 2), "postgresql": round(theirs, 2)},
        "memory_mib": [memory, _resident_mib()],
        "load_average_before": round(load, 2),
    }


def _idle(service: Service, connection: Connection) -> float:
    """Seconds of a run that finds nothing to do."""
    tables.step_all(connection, only=("leases",))
    began = time.perf_counter()
    assert run_accrual(service, connection, START_US + 2 * HOUR_US + 1) == 0
    return time.perf_counter() - began


def _check(service: Service, connection: Connection, size: int, hour: int, before: int) -> None:
    """Every lease charged exactly once, to the unit; the books add up."""
    charge = charge_for(hour * GPU_HOUR_US, PRICE)
    row = connection.execute(
        "SELECT count(*), count(DISTINCT f.lease_id), min((f.charge->>'units')::bigint),"
        " max((f.charge->>'units')::bigint), min(f.hour_index), max(f.hour_index)"
        " FROM market_events e CROSS JOIN LATERAL json_to_record("
        "   convert_from(e.state, 'UTF8')::json) f(lease_id text, charge json, hour_index int)"
        " WHERE e.topic = 'lease.usage_accrued.v1' AND e.notification_id > %s",
        (before,),
    ).fetchone()
    assert row == (size, size, charge, charge, hour - 1, hour - 1), row
    assert service.ledger.market.head()[0] == before + size
    assert service.ledger.books.faults() == []
    earned = connection.execute(
        "SELECT sum(units) FROM account WHERE name LIKE 'network:revenue:%%'"
        " OR name LIKE 'party:%%:holdback'"
    ).fetchone()
    assert earned == (charge * size,), (earned, charge * size)


def _one_by_one(service: Service, connection: Connection, market: _Market, size: int) -> float:
    """The peer: leases a second when each is read, decided and appended by itself."""
    market.report(3)
    now_us = START_US + 3 * HOUR_US
    began = time.perf_counter()
    for number in range(size):
        assert accrue(service.ledger, connection, [lease_id(number)], now_us) == 1
    return size / (time.perf_counter() - began)


def _limit(connection: Connection, size: int) -> float:
    """Leases a second when one hour's rows are copied in, ready, 1,000 a transaction."""
    for table, model in (("limit_event", "market_events"), ("limit_posting", "posting")):
        connection.execute(f"CREATE TABLE {table} (LIKE {model} INCLUDING ALL)".encode())
    head = connection.execute("SELECT pos FROM market_events_head").fetchone()
    assert head is not None
    ready = [
        [
            _copied(connection, "event", "market_events", "notification_id", at),
            _copied(connection, "posting", "posting", "position", at),
        ]
        for at in range(head[0] - min(size, 20_000), head[0], 1_000)
    ]
    began = time.perf_counter()
    for pair in ready:
        with connection.transaction(), connection.cursor() as cursor:
            for statement, data in pair:
                with cursor.copy(statement) as copy:
                    copy.write(data)
    return 1_000 * len(ready) / (time.perf_counter() - began)


def _copied(
    connection: Connection, name: str, table: str, key: str, after: int
) -> tuple[bytes, bytes]:
    """The statement that copies the rows of 1,000 positions in, and its data."""
    query = f"SELECT * FROM {table} WHERE {key} > {after} AND {key} <= {after + 1_000}"
    with connection.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT binary)".encode()) as copy:
        data = b"".join(map(bytes, copy))
    return f"COPY limit_{name} FROM STDIN (FORMAT binary)".encode(), data


def _resident_mib() -> int:
    """Memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def main() -> None:
    """Print what was measured."""
    told = run(size_asked(__doc__))
    for hour in told["hours"]:
        print(
            f"{told['leases']:,} leases, {hour['hour']}: {hour['seconds']} s"
            f" ({hour['leases_per_second']:,} leases/s; {hour['seconds_for_100000']} s for"
            f" 100,000); processor {hour['cpu_seconds']} s; memory {hour['memory_mib']} MiB;"
            f" load {hour['load_average_before']}"
        )
    print(
        f"idle {told['idle_seconds']} s; one by one {told['peer_leases_per_second']:,} leases/s;"
        f" COPY {told['limit_leases_per_second']:,} leases/s; load {told['load_average']}"
    )


if __name__ == "__main__":
    main()
