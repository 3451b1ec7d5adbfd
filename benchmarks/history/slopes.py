"""What one operation takes in a market that is 1, 10 and 100 times as old, and what it costs.

    python -m benchmarks.history.slopes            full: 1, 10 and 100 days of 100 leases
    python -m benchmarks.history.slopes --short    fewer leases a day
    python -m benchmarks.history.slopes --tiny     whether it runs at all

Three stores on one server, each behind the API in this process, key check and JSON included: all
ended yesterday with the same day, and are older by more days of the same. They are asked in turn,
so whatever else the machine does falls on all three. The slope of an operation is the middle of
its times in the oldest store over the middle of its times in the youngest.

    flat  <=>  slope <= 1.3

The views of each store are made from nothing first, which is the operation `rebuild`, told for a
fact. There is no peer: a slope compares with itself.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from httpx2 import Response

from api.audit.tree_timer import run_trees
from api.door.moments import moment
from api.main import create_app
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.settings import Settings
from benchmarks import cpu
from benchmarks.fleet.lease_open import OPERATOR, OWNER
from benchmarks.history import market
from benchmarks.history.market import Daily, Reporting
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from domain.duration import DAY_US
from domain.funds.deposit import ConfirmDeposit
from domain.money import credit
from ledger.log import usage
from projections import tables
from tests.in_process import InProcess
from tests.projections.story import Writer

AGES = (1, 10, 100)
FIGURE = 1.3
NOW_US = 1_795_161_600_000_000
PRICE_MAX = {"asset": "CREDIT", "units": str(2 * market.PRICE)}
CASH_OUT = {"amount": {"asset": "CREDIT", "units": str(market.CASH_OUT_MIN)}}
FOUNDED_BEFORE_US = 10 * DAY_US
"""Before its first day: by then cash-outs leave to the owner's destination."""
REPORTS_APPENDED = 1
"""Of each node that reports, in one append."""


class Numbers(NamedTuple):
    daily: Daily
    rounds: int
    warm_rounds: int


SIZES = {
    Size.FULL: Numbers(Daily(nodes=20, renters=4, leases=100, hours=8, reports=4), 60, 5),
    Size.SHORT: Numbers(Daily(nodes=20, renters=4, leases=30, hours=8, reports=1), 20, 3),
    Size.TINY: Numbers(Daily(nodes=2, renters=1, leases=16, hours=4, reports=1), 1, 1),
}


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Milliseconds of every operation in each store, the slopes, and the processor time."""
    numbers, began = SIZES[size], time.perf_counter()
    with workplace(server) as (folder, made), ExitStack() as stack:
        stores = []
        for age in AGES:
            uri = made.create_database(f"slopes_{age}")
            stores.append(Store(folder / str(age), uri, age, numbers.daily, stack))
        grown = time.perf_counter() - began
        load = [round(each, 2) for each in os.getloadavg()]
        measured = _measured(stores, numbers, made.pid)
    return {
        "figure": f"every path at 100 x the history: at most {FIGURE} x the time of one operation",
        "conditions": {
            "days": list(AGES),
            "facts": [store.facts for store in stores],
            "reports": [store.reports for store in stores],
            "daily": numbers.daily._asdict(),
            "rounds": numbers.rounds,
            "grown_seconds": round(grown, 1),
            "load_average": load,
        },
        "operations": {**_rebuilt(stores), **measured},
    }


# --- the stores -------------------------------------------------------------------------------


class Store:
    """One market of so many days behind the API; `rebuilt_ns`: of each view, for a fact."""

    def __init__(self, folder: Path, uri: str, age: int, daily: Daily, stack: ExitStack) -> None:
        settings = Settings(
            data_dir=folder,
            database_url=uri,
            requests_per_second=10**6,
            requests_burst=10**6,
            spec_ttl_s=0,  # no node of ours says how it is
            console=False,
        )
        first_us = NOW_US - age * DAY_US
        self.clock = SimulatedClock(NOW_US)
        self.service = stack.enter_context(Service.open(settings, clock=self.clock))
        self.connection = stack.enter_context(psycopg.connect(uri, autocommit=True))
        market.found(self.service.ledger, daily, first_us - FOUNDED_BEFORE_US)
        writer = Writer(self.connection)
        writer.go_on()
        self.facts = writer.write(
            told for day in range(age) for told in market.day(daily, day, first_us + day * DAY_US)
        )
        self.connection.execute(
            "SELECT setval(pg_get_serial_sequence('account', 'id'), max(id)) FROM account"
        )
        self.reporting = Reporting(self.connection)
        self.reports = age * daily.reports * market.REPORTING
        self.reporting.stored(self.reporting.made(age * daily.reports))
        self.rebuilt_ns = self._built()
        run_trees(self.service, self.connection, NOW_US)
        self.connection.execute("VACUUM ANALYZE")
        app: Any = create_app(self.service)
        self._http = stack.enter_context(InProcess(app))
        self._numbers = count(1)
        self.lease_id = ""
        self.signed: list[usage.Item] = []

    def _built(self) -> dict[str, int]:
        """Every view from nothing: nanoseconds for a fact of the log, indexes included."""
        found = {}
        for each in tables.PROJECTIONS:
            tables.drop(self.connection, each)
            found[each.name] = round(tables.rebuild(self.connection, each).seconds * 1e9)
        return {name: seconds // self.facts for name, seconds in found.items()}

    def call(self, who: str, method: str, path: str, body: Any = None, **query: Any) -> Response:
        """Answer one question about the past. Raises AssertionError where it is refused."""
        headers = {"Authorization": f"Bearer {market.secret_of(who)}"}
        if method == "POST":
            headers["Idempotency-Key"] = f"slope-{next(self._numbers)}"
        answer = self._http.request(method, path, json=body, params=query, headers=headers)
        assert answer.status_code in (200, 201), (path, answer.status_code, answer.text)
        return answer


# --- the operations ---------------------------------------------------------------------------

RENTER = market.renter(0)


def append_one(store: Store) -> None:
    """One command through the door: a deposit, with its books."""
    deposit = ConfirmDeposit(
        deposit_id=f"slope_{next(store._numbers)}",
        account_id=RENTER,
        source="cash",
        amount=credit(1_000_000),
        reference="slope",
        confirmed_by="operator",
        at_us=NOW_US,
    )
    store.service.ledger.handle(deposit, key=None, now_us=NOW_US)


def _open(store: Store) -> None:
    body = {"job": {"command": ["true"], "max_price_per_gpu_hour": PRICE_MAX}}
    store.lease_id = store.call(RENTER, "POST", "/v1/leases", body).json()["lease_id"]


def _close(store: Store) -> None:
    store.call(RENTER, "POST", f"/v1/leases/{store.lease_id}/close", {})


def _match(store: Store) -> None:
    job = {"command": ["true"], "max_price_per_gpu_hour": PRICE_MAX}
    store.call(RENTER, "POST", "/v1/quotes", {"job": job})


def _follow(store: Store) -> None:
    tables.step_all(store.connection)


def _list(store: Store) -> None:
    store.call(RENTER, "GET", "/v1/leases", order="desc", limit=50)


LAST_DAY = {"from": moment(NOW_US - DAY_US), "to": moment(NOW_US)}


def _statement(store: Store) -> None:
    store.call(RENTER, "GET", f"/v1/accounts/{RENTER}/statements", **LAST_DAY)


def _balances(store: Store) -> None:
    store.call(RENTER, "GET", f"/v1/accounts/{RENTER}/balances")


def _earnings(store: Store) -> None:
    store.call(OWNER, "GET", "/v1/earnings", **LAST_DAY)


def _maturity(store: Store) -> None:
    store.call(OWNER, "GET", f"/v1/accounts/{OWNER}/maturity")


def _cash_out(store: Store) -> None:
    store.call(OWNER, "POST", f"/v1/accounts/{OWNER}/cash-outs", CASH_OUT)


def _event(store: Store) -> None:
    store.call(OPERATOR, "GET", f"/v1/audit/events/{store.facts // 2}")


def _proof(store: Store) -> None:
    store.call(OPERATOR, "GET", f"/v1/audit/proofs/{store.facts // 2}")


def _report(store: Store) -> None:
    store.reporting.stored(store.signed)


OPERATIONS: dict[str, Callable[[Store], None]] = {
    "market append, one command": append_one,
    "open a lease": _open,
    "follow it with every view": _follow,
    "close a lease": _close,
    "match, explained: a quote": _match,
    "a page of leases, the newest": _list,
    "statement of the last day": _statement,
    "balances": _balances,
    "earnings of the last day": _earnings,
    "what matures": _maturity,
    "ask for a cash-out": _cash_out,
    "read a fact": _event,
    "prove a fact": _proof,
}
USAGE = "usage append, ten reports"
REBUILD = "rebuild of "


# --- measuring --------------------------------------------------------------------------------


class _Times:
    """Seconds of one operation in each store; processor seconds in the oldest."""

    def __init__(self, stores: list[Store], server: int) -> None:
        self.taken: list[list[float]] = [[] for _ in stores]
        self._stores = stores
        self.spent = cpu.Spent(server)

    def turn(self, operation: Callable[[Store], None], *, counts: bool) -> None:
        for store, taken in zip(self._stores, self.taken, strict=True):
            is_oldest = store is self._stores[-1]
            with self.spent.counted(1) if counts and is_oldest else nullcontext():
                began = time.perf_counter()
                operation(store)
                seconds = time.perf_counter() - began
            if counts:
                taken.append(seconds)

    def told(self) -> dict[str, Any]:
        middle = [statistics.median(times) for times in self.taken]
        return {
            "p50_ms": [round(1e3 * one, 3) for one in middle],
            "p99_ms": [round(1e3 * sorted(t)[len(t) * 99 // 100], 3) for t in self.taken],
            "slope": round(middle[-1] / middle[0], 2),
            "processor_ns": self.spent.each(),
        }


def _measured(stores: list[Store], numbers: Numbers, server: int) -> dict[str, Any]:
    """Every operation in turn, a few rounds to warm up left out."""
    times = {name: _Times(stores, server) for name in (*OPERATIONS, USAGE)}
    for number in range(numbers.warm_rounds + numbers.rounds):
        for name, operation in OPERATIONS.items():
            times[name].turn(operation, counts=number >= numbers.warm_rounds)
        for store in stores:
            store.signed = store.reporting.made(REPORTS_APPENDED)
        times[USAGE].turn(_report, counts=number >= numbers.warm_rounds)
    return {name: found.told() for name, found in times.items()}


def _rebuilt(stores: list[Store]) -> dict[str, Any]:
    """All views one after the other, and the one with the steepest slope."""
    sums = [sum(store.rebuilt_ns.values()) for store in stores]
    slopes = {
        name: store_ns / max(1, stores[0].rebuilt_ns[name])
        for name, store_ns in stores[-1].rebuilt_ns.items()
    }
    steepest = max(slopes, key=lambda name: slopes[name])
    return {
        f"{REBUILD}{what}, a fact": {
            "p50_ms": [round(ns / 1e6, 6) for ns in ns_of],
            "p99_ms": None,
            "slope": round(ns_of[-1] / max(1, ns_of[0]), 2),
            "processor_ns": None,
        }
        for what, ns_of in (
            ("all views", sums),
            (f"{steepest}, the steepest", [store.rebuilt_ns[steepest] for store in stores]),
        )
    }


def main() -> None:
    """Print what was measured."""
    print(json.dumps(run(size_asked(__doc__)), indent=1))


if __name__ == "__main__":
    main()
