"""Market log append by 32 threads of one process, one fact each, beside the stock library's `save`.

    python -m benchmarks.log.append_shared [--short | --tiny]

As the routes of a server append: each thread records a fact of a stream of its own with one
balanced entry of three lines and an idempotency row, and goes on when it is durable; appends that
wait together share a transaction. Three sides take turns on one durable embedded server, each on a
database of its own: ours, ours while another process brings every view up to the head as `serve`
does, and the stock library's application from as many threads. The limit is binary COPY of as many
ready rows as there are threads, one transaction a batch, and nothing else.

What views lag is how long the oldest fact that some view does not show yet has been recorded,
looked at ten times a second while the second side is at work.
"""

from __future__ import annotations

import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any, NamedTuple, Protocol

import psycopg

from benchmarks import cpu
from benchmarks.log import append_market
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from domain.funds.deposit import DepositConfirmed, deposit_stream
from domain.money import credit
from ledger.books.entry import Entry
from ledger.log.append import Append, CommandRow
from ledger.log.handle import Ledger
from ledger.log.market import Envelope
from ledger.migrate import migrate
from projections import tables

THREADS = 32
FIGURE_RATE, FIGURE_LAG_MS = 10_000, 1_000
LOOK_S = 0.1
CAUGHT_UP_S = 120


class Numbers(NamedTuple):
    """`limit_buffers`: ready batches that one turn of the limit writes."""

    turns: int
    slice_seconds: float
    limit_buffers: int


SIZES = {
    Size.FULL: Numbers(turns=5, slice_seconds=3.0, limit_buffers=100),
    Size.SHORT: Numbers(turns=2, slice_seconds=1.0, limit_buffers=100),
    Size.TINY: Numbers(turns=1, slice_seconds=0.1, limit_buffers=1),
}


class Side(Protocol):
    """`append(thread)` records one fact and returns when it is durable."""

    def append(self, thread: int) -> None: ...


class Ours:
    """Deposits, each of a stream of its own."""

    def __init__(self, uri: str) -> None:
        migrate(uri)
        self._ledger = Ledger(uri, blinding_key=b"benchmark blinding key")
        self._numbers = count(1)
        self.appended = 0

    def append(self, thread: int) -> None:
        number, now_us = next(self._numbers), time.time_ns() // 1_000
        account = f"acct_{thread:032x}"
        fact = DepositConfirmed(
            deposit_id=f"dep_{number:032x}",
            account_id=account,
            source="cash",
            amount=credit(1_265_000),
            reference=str(number),
            confirmed_by="acct_operator",
            at_us=now_us,
        )
        lines = (
            ("world:bank", 1_265_000),
            (f"party:{account}:cash", -1_000_000),
            ("network:revenue:usage", -265_000),
        )
        command = CommandRow(account, f"key-{number}", b"f" * 32, 201, b"{}")
        append = Append(
            now_us=now_us, entries=[(1, Entry(fact.amount.asset, lines))], command=command
        )
        stream = deposit_stream(fact.deposit_id).uuid
        self._ledger.market.events.put(
            [Envelope(stream, 1, fact, f"cmd_{number:032x}")], append=append
        )

    def check(self, facts: int) -> None:
        """The figures count only if what was written is there and holds."""
        assert self._ledger.market.head()[0] == facts
        assert self._ledger.books.faults() == []

    def close(self) -> None:
        self._ledger.close()


class Stock:
    """The stock library's application, an aggregate a thread."""

    def __init__(self, uri: str) -> None:
        self._side = append_market.StockSide(uri)

    def append(self, thread: int) -> None:
        self._side.append(thread, 1)

    def close(self) -> None:
        self._side.close()


# --- measuring -------------------------------------------------------------------------------


def _rate(side: Side, pool: ThreadPoolExecutor, seconds: float) -> tuple[float, list[float]]:
    """Facts a second of all threads together, and how long each append took."""
    began = time.perf_counter()

    def work(thread: int) -> list[float]:
        took, at = list[float](), time.perf_counter()
        while not took or at - began < seconds:
            side.append(thread)
            took.append((now := time.perf_counter()) - at)
            at = now
        return took

    took = [one for each in pool.map(work, range(THREADS)) for one in each]
    return len(took) / (time.perf_counter() - began), took


@contextmanager
def _followed(uri: str) -> Generator[None, None, None]:
    """Another process brings all views up to the head, as one of `serve` does."""
    spawned = multiprocessing.get_context("spawn")
    stop: Any = spawned.Event()
    process = spawned.Process(target=tables.follow, args=(uri, stop))
    process.start()
    try:
        yield
    finally:
        stop.set()
        process.join()


class _Lag:
    """What views lag, looked at while it is open."""

    def __init__(self, uri: str) -> None:
        self._connection = psycopg.connect(uri, autocommit=True)
        self._ends = threading.Event()
        self.seen_ms: list[float] = []

    def now_ms(self) -> float:
        waiting = [one.waiting_since_us for one in tables.lag(self._connection)]
        oldest_us = min((one for one in waiting if one is not None), default=None)
        return 0.0 if oldest_us is None else max(0.0, time.time_ns() / 1e6 - oldest_us / 1e3)

    @contextmanager
    def looking(self) -> Generator[None, None, None]:
        looker = threading.Thread(target=self._look)
        self._ends.clear()
        looker.start()
        try:
            yield
        finally:
            self._ends.set()
            looker.join()

    def _look(self) -> None:
        while not self._ends.wait(LOOK_S):
            self.seen_ms.append(self.now_ms())

    def wait(self) -> None:
        """Until all views are at the head."""
        ends = time.monotonic() + CAUGHT_UP_S
        while self.now_ms() and time.monotonic() < ends:
            time.sleep(LOOK_S)

    def close(self) -> None:
        self._connection.close()


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Facts a second of each side, how long an append takes, and what the views lag."""
    numbers = SIZES[size]
    with workplace(server) as (_, made), ExitStack() as stack:
        uris = {name: made.create_database(f"append_shared_{name}") for name in _SIDES}
        sides: dict[str, Any] = {name: make(uris[name]) for name, make in _SIDES.items()}
        for side in sides.values():
            stack.callback(side.close)
        limit = append_market.Limit(made.create_database("append_shared_limit"))
        stack.callback(limit.close)
        with psycopg.connect(uris["followed"], autocommit=True) as connection:
            tables.ensure(connection)
        stack.enter_context(_followed(uris["followed"]))
        lag = _Lag(uris["followed"])
        stack.callback(lag.close)
        pool = stack.enter_context(ThreadPoolExecutor(THREADS))
        rates: dict[str, list[float]] = {name: [] for name in (*sides, "limit")}
        took: dict[str, list[float]] = {name: [] for name in sides}
        spent = {name: cpu.Spent(made.pid) for name in sides}
        for _ in range(numbers.turns):
            for name, side in sides.items():
                with ExitStack() as turn:
                    if name == "followed":
                        turn.enter_context(lag.looking())
                    operations = turn.enter_context(spent[name].counted())
                    rate, times = _rate(side, pool, numbers.slice_seconds)
                    operations.done = len(times)
                rates[name].append(rate)
                took[name] += times
                lag.wait()  # what views still have to read is no load of the next side
            rates["limit"].append(limit.rate(THREADS, numbers.limit_buffers))
        sides["ours"].check(len(took["ours"]))
        sides["followed"].check(len(took["followed"]))
    found = {name: round(statistics.median(several)) for name, several in rates.items()}
    return {
        "figure": f"{THREADS} writers, one fact each: >= {FIGURE_RATE:,}/s, views lag"
        f" < {FIGURE_LAG_MS} ms at p99",
        "conditions": {
            "threads": THREADS,
            "seconds": numbers.slice_seconds,
            "turns": numbers.turns,
        },
        "facts_per_second": found,
        "p99_ms": {name: _p99([one * 1e3 for one in times]) for name, times in took.items()},
        "lag_p50_ms": round(statistics.median(lag.seen_ms or [0.0])),
        "lag_p99_ms": _p99(lag.seen_ms or [0.0]),
        "of_stock": round(found["ours"] / found["stock"], 2),
        "of_limit": round(found["ours"] / found["limit"], 3),
        "processor_ns": {name: one.each() for name, one in spent.items()},
        "range": {name: [round(min(r)), round(max(r))] for name, r in rates.items()},
    }


_SIDES: dict[str, Callable[[str], Ours | Stock]] = {"ours": Ours, "followed": Ours, "stock": Stock}


def _p99(values: list[float]) -> float:
    return round(sorted(values)[-1 - len(values) // 100], 1)


def main() -> None:
    """Print what was measured."""
    found = run(size_asked(__doc__))
    rates = found["facts_per_second"]
    print(
        f"{found['of_stock']:.2f} x stock, {found['of_limit']:.1%} of COPY: {rates['ours']:,},"
        f" {rates['stock']:,} and {rates['limit']:,} facts/s; p99 {found['p99_ms']['ours']} ms;"
        f" with views {rates['followed']:,}/s, which lag {found['lag_p50_ms']} ms (p50),"
        f" {found['lag_p99_ms']} ms (p99)"
    )


if __name__ == "__main__":
    main()
