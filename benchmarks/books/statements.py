"""How long a statement of one account-month takes, in a short log and in a long one.

    python -m benchmarks.books.statements            50,000 and 5,000,000 facts; some ten minutes
    python -m benchmarks.books.statements --short    50,000 and 200,000 facts
    python -m benchmarks.books.statements --tiny     whether it runs at all

The log is a month of leases that run all the month and are accrued every hour, in the order of
time, beside a deposit a day for every account; nothing else, so almost every fact moves money. The
account asked for has ten leases in both logs: 7,200 accruals, a month of about 7,300 lines. All
other facts belong to others. They are written with COPY: the bytes, leaves, chain, postings and
balances are those of the append function, and the views are built by their own rules.

Measured is the whole answer over HTTP in this process, key check and JSON included: balances
before and after, the sums of every kind, and the first 50 lines; of the whole month, as of random
positions in it, and of any renter. Beside it stands a request that reads nothing.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from typing import Any, NamedTuple

import psycopg
from starlette.testclient import TestClient

from api.door import keys
from api.door.moments import moment
from api.main import create_app
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.settings import Settings
from benchmarks import cpu
from benchmarks.books.leases import accrued, requested, reserved
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from domain.funds import deposit
from domain.funds.deposit import deposit_stream
from domain.gpu_time import GPU_HOUR_US
from domain.lease import lease
from domain.lease.lease import lease_stream
from domain.money import credit
from domain.parties import account
from domain.parties.account import account_stream
from domain.stream import Stream
from projections import runner, tables
from projections.income.movements import MOVEMENTS
from projections.parties.access import ACCESS
from tests.projections.story import Writer

START_US = 1_793_491_200_000_000
"""2026-11-01T00:00:00Z: the month asked for."""
HOURS = 720
DAYS = 30
LEASES_EACH = 10
PRICE, FEE = 2_780_000, 250_000
CHUNK = 250_000
FIGURE_MS, FIGURE_RATIO = 50, 1.5
OPERATOR = "acct_operator"


class Numbers(NamedTuple):
    """`facts`: of the short and of the long log, about. `hours`: accrued of each lease."""

    facts: tuple[int, int]
    hours: int
    calls: int


SIZES = {
    Size.FULL: Numbers(facts=(50_000, 5_000_000), hours=HOURS, calls=1_000),
    Size.SHORT: Numbers(facts=(50_000, 200_000), hours=HOURS, calls=200),
    Size.TINY: Numbers(facts=(300, 600), hours=26, calls=3),
}

Told = tuple[Stream[Any], Any]
Connection = psycopg.Connection[Any]


# --- the log ---------------------------------------------------------------------------------


def market(accounts: int, key: str, hours: int = HOURS) -> Iterator[Told]:
    """A month, or its first hours, of `accounts` renters with ten leases each, hour by hour."""
    yield from _account(OPERATOR, "operator", key)
    for number in range(accounts):
        yield from _account(_renter(number), "party", None)
        yield _deposit(number, 0)
    running = [_Running(number) for number in range(accounts * LEASES_EACH)]
    for each in running:
        yield from each.opened()
    for hour in range(hours):
        if hour and hour % 24 == 0:
            yield from (_deposit(number, hour // 24) for number in range(accounts))
        for each in running:
            yield each.accrued(hour)


def _renter(number: int) -> str:
    return f"acct_{number:032x}"


def _account(account_id: str, kind: str, key: str | None) -> Iterator[Told]:
    stream, at = account_stream(account_id), {"at_us": START_US}
    yield stream, account.AccountOpened(account_id=account_id, kind=kind, opened_by="bench", **at)
    yield (
        stream,
        account.MemberAdded(
            account_id=account_id, member_id="mem_a", role="owner", by="mem_a", **at
        ),
    )
    if key is not None:
        key_id = keys.key_id(key)
        assert key_id is not None
        yield (
            stream,
            account.ApiKeyIssued(
                account_id=account_id,
                key_id=key_id,
                key_sha256=keys.digest(key),
                member_id="mem_a",
                scopes=("operator", "billing:read"),
                expires_at_us=None,
                by_key_id=None,
                succeeds=None,
                **at,
            ),
        )


def _deposit(number: int, day: int) -> Told:
    deposit_id = f"dep_{number}_{day}"
    return deposit_stream(deposit_id), deposit.DepositConfirmed(
        deposit_id=deposit_id,
        account_id=_renter(number),
        source="cash",
        amount=credit(LEASES_EACH * (HOURS + 1) * PRICE if not day else 25_000_000),
        reference=deposit_id,
        confirmed_by=OPERATOR,
        at_us=START_US + day * 24 * GPU_HOUR_US,
    )


class _Running:
    """One lease of one device that runs all the month."""

    def __init__(self, number: int) -> None:
        self.id = f"lease_{number:032x}"
        self.stream = lease_stream(self.id)
        self.number = number
        self.names: dict[str, Any] = {
            "account_id": _renter(number // LEASES_EACH),
            "client_id": "client_1",
            "project_id": f"p{number % 3}",
            "end_user_ref": f"u{number % 5}",
        }

    def opened(self) -> Iterator[Told]:
        """From the request to the opening."""
        at: dict[str, Any] = {"lease_id": self.id, "at_us": START_US}
        names = {**self.names, **at, "job_id": f"job_{self.number:032x}"}
        offer = {
            "node_id": f"node_{self.number:032x}",
            "provider_id": "prov_1",
            "provider_account_id": f"acct_owner{self.number % 100}",
            "offer_id": "offer_1",
        }
        device_id = f"GPU-{self.number:032x}"
        yield self.stream, requested(names, credit(PRICE), None)
        yield self.stream, reserved(names, offer, device_id, (PRICE, FEE), HOURS + 1)
        yield (
            self.stream,
            lease.LeaseOpened(
                price_per_gpu_hour=credit(PRICE),
                opened_at_us=START_US,
                funds_end_us=START_US + (HOURS + 1) * GPU_HOUR_US,
                term_end_us=None,
                **at,
            ),
        )

    def accrued(self, hour: int) -> Told:
        """One hour at the full price."""
        placed = {
            "node_id": f"node_{self.number:032x}",
            "provider_account_id": f"acct_owner{self.number % 100}",
        }
        names, device_id = {**self.names, "lease_id": self.id}, f"GPU-{self.number:032x}"
        lane = self.number % 64
        return self.stream, accrued(names, placed, device_id, (PRICE, FEE), lane, START_US, hour)


def accounts_for(facts: int, hours: int = HOURS) -> int:
    """How many renters make a log of about so many facts; the one asked for is always there."""
    each = 3 + (hours - 1) // 24 + LEASES_EACH * (3 + hours)
    return max(1, round(facts / each))


def write_log(
    connection: Connection, facts: int, key: str, hours: int, blinding_key: bytes | None = None
) -> int:
    """Append a market of about so many facts; the position of the last one."""
    writer, chunk = Writer(connection, blinding_key), []
    for told in market(accounts_for(facts, hours), key, hours):
        chunk.append(told)
        if len(chunk) == CHUNK:
            writer.write(chunk)
            chunk = []
    return writer.write(chunk)


# --- measuring -------------------------------------------------------------------------------


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Milliseconds of the same account-month in a short and in a long log, and their ratio.

    Both logs stand on one server and are asked in turn, so whatever else the machine does falls on
    both; the ratio is that of the 99th percentiles.
    """
    numbers = SIZES[size]
    clock = SimulatedClock(START_US + 60 * 24 * GPU_HOUR_US)
    with workplace(server) as (folder, made), ExitStack() as stack:
        logs = []
        for facts in numbers.facts:
            uri = made.create_database(f"statements_{facts}")
            settings = Settings(
                data_dir=folder / str(facts),
                database_url=uri,
                requests_per_second=10**6,
                requests_burst=10**6,
            )
            # Opened while the log is empty: what is written past its door is not blinded.
            service = stack.enter_context(Service.open(settings, clock=clock))
            logs.append(_Log(service, uri, facts, numbers.hours))
        load = [round(each, 2) for each in os.getloadavg()]
        measured = _asked(logs, numbers.calls, made.pid)
    month = measured["month"]
    ratio = month[-1]["p99_ms"] / month[0]["p99_ms"]
    return {
        "figure": f"p99 < {FIGURE_MS} ms, at most {FIGURE_RATIO} x its time in the short log",
        "logs": [log.told for log in logs],
        "measured": measured,
        "ratio_p50": round(month[-1]["p50_ms"] / month[0]["p50_ms"], 2),
        "ratio_p99": round(ratio, 2),
        "holds": month[-1]["p99_ms"] < FIGURE_MS and ratio <= FIGURE_RATIO,
        "load_average_while_asking": load,
    }


class _Log:
    """A log of about so many facts on a database of its own, its views built."""

    def __init__(self, service: Service, uri: str, facts: int, hours: int) -> None:
        self.service, self.uri = service, uri
        self.key = keys.new(live=False)
        with psycopg.connect(self.uri, autocommit=True) as connection:
            began = time.perf_counter()
            self.head = write_log(connection, facts, self.key, hours)
            written = time.perf_counter() - began
            rates = {each.name: _built(connection, each) for each in (ACCESS, MOVEMENTS)}
            connection.execute("VACUUM ANALYZE")
            row = connection.execute(
                "SELECT pg_database_size(current_database()) >> 20,"
                " pg_total_relation_size('proj_movements.movement') >> 20"
            ).fetchone()
        assert row is not None
        self.told = {
            "facts": self.head,
            "renters": accounts_for(facts, hours),
            "write_seconds": round(written, 1),
            "rebuild_facts_per_second": rates,
            "database_mib": row[0],
            "lines_mib": row[1],
        }


def _built(connection: Connection, projection: runner.Projection) -> int:
    """Facts per second of building it from nothing, indexes included."""
    tables.drop(connection, projection)
    tables.create(connection, projection)
    rebuilt = tables.rebuild(connection, projection)
    return int(rebuilt.facts / max(0.001, rebuilt.seconds))


def _asked(logs: list[_Log], calls: int, server: int) -> dict[str, Any]:
    spent = cpu.Spent(server)
    chance = random.Random(1)
    month: dict[str, Any] = {
        "from": moment(START_US),
        "to": moment(START_US + DAYS * 24 * GPU_HOUR_US),
    }
    late = {**month, "from": moment(START_US + 29 * 24 * GPU_HOUR_US)}
    with ExitStack() as stack:
        asked = [_Asked(log, stack) for log in logs]
        lines = [sum(kind["lines"] for kind in each.get(**month)["kinds"]) for each in asked]
        before = [_scans(log.uri) for log in logs]
        told: dict[str, Any] = {
            "lines_of_the_month": lines,
            "month": _times(asked, lambda one: one.get(**month), calls, spent),
            "month_as_of_any_position": _times(
                asked,
                lambda one: one.get(**month, as_of_position=chance.randrange(1, one.log.head)),
                calls,
            ),
            "any_renters_month": _times(
                asked,
                lambda one: one.get(chance.randrange(one.log.told["renters"]), **month),
                calls,
            ),
            "its_last_day": _times(asked, lambda one: one.get(**late), calls),
            "reads_nothing": _times(asked, lambda one: one.http.get("/v1/audit/log/key"), calls),
        }
        told["processor_ns"] = spent.each()
        told["tables_scanned_whole"] = [
            sorted(name for name, scans in _scans(log.uri).items() if scans > was.get(name, 0))
            for log, was in zip(logs, before, strict=True)
        ]
    return told


class _Asked:
    """One log behind the API."""

    def __init__(self, log: _Log, stack: ExitStack) -> None:
        self.log = log
        app: Any = create_app(log.service)
        headers = {"Authorization": f"Bearer {log.key}"}
        self.http = stack.enter_context(TestClient(app, headers=headers))

    def get(self, renter: int = 0, **query: Any) -> dict[str, Any]:
        answer = self.http.get(f"/v1/accounts/{_renter(renter)}/statements", params=query)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told


def _times(
    asked: list[_Asked], call: Callable[[_Asked], Any], calls: int, spent: cpu.Spent | None = None
) -> list[dict[str, Any]]:
    """Of each log in turn, a few calls to warm up left out. `spent`: on the last log."""
    taken: list[list[float]] = [[] for _ in asked]
    for turn in range(calls + 10):
        for times, one in zip(taken, asked, strict=True):
            is_counted = spent is not None and turn >= 10 and one is asked[-1]
            with spent.counted(1) if spent is not None and is_counted else nullcontext():
                began = time.perf_counter()
                call(one)
                took = time.perf_counter() - began
            if turn >= 10:
                times.append(1_000 * took)
    return [
        {
            "calls": calls,
            "p50_ms": round(times[calls // 2], 2),
            "p99_ms": round(times[calls * 99 // 100], 2),
            "max_ms": round(times[-1], 2),
        }
        for times in map(sorted, taken)
    ]


def _scans(uri: str) -> dict[str, int]:
    """Sequential scans so far of every table that is larger than a few pages."""
    time.sleep(1.5)  # until the other sessions have told their counts
    with psycopg.connect(uri, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT schemaname || '.' || relname, seq_scan FROM pg_stat_user_tables"
            " WHERE pg_relation_size(relid) > 64 * 1024"
        ).fetchall()
    return {row[0]: row[1] or 0 for row in rows}


def main() -> None:
    asked = size_asked("Statements in a short log and in a long one.")
    print(json.dumps(run(asked), indent=2))


if __name__ == "__main__":
    main()
