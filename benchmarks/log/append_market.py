"""Market log append with books, beside the stock library's `save` in the same run.

Both sides record facts of about the same size from Python objects, durably (fsync and
synchronous_commit on), on one embedded server, taking turns. Ours also keeps the books:
every fact carries one balanced entry of three lines, and one of the two sides of ours writes an
idempotency row with every append. The machine's limit is binary COPY of ready rows of the same
size into a table of the same definition, one transaction a batch, and nothing else. Ratios come
first.

    python -m benchmarks.log.append_market [--short | --tiny]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from struct import pack
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from psycopg.conninfo import conninfo_to_dict

from benchmarks import cpu
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from domain.funds.deposit import DepositConfirmed, deposit_stream
from domain.money import Asset, credit
from ledger.books.entry import Entry
from ledger.log import codec
from ledger.log.append import Append, CommandRow
from ledger.log.handle import Ledger
from ledger.log.market import Envelope
from ledger.migrate import migrate

STREAMS = 1_000
NOW_US = 1_763_000_000_000_000
BATCHES = (1, 100)
TARGETS = {1: 1.8, 100: 3.0}


class Numbers(NamedTuple):
    """`limit_buffers`: ready batches of 1 and of 100 that one turn of the limit writes, about a
    slice's worth, built off the clock.
    """

    turns: int
    slice_seconds: float
    limit_buffers: dict[int, int]


SIZES = {
    Size.FULL: Numbers(turns=60, slice_seconds=0.2, limit_buffers={1: 300, 100: 60}),
    Size.SHORT: Numbers(turns=15, slice_seconds=0.2, limit_buffers={1: 300, 100: 60}),
    Size.TINY: Numbers(turns=1, slice_seconds=0.01, limit_buffers={1: 3, 100: 1}),
}


class Deposit(Aggregate):
    """The stock library's way: an aggregate that triggers events."""

    @event("Opened")
    def __init__(self, account_id: str) -> None:
        self.account_id = account_id
        self.units = 0
        self.last = ("", "", "", "")

    @event("Confirmed")
    def confirm(
        self, deposit_id: str, account_id: str, source: str, units: int, reference: str, by: str
    ) -> None:
        assert account_id == self.account_id
        self.units += units
        self.last = (deposit_id, source, reference, by)


class Stock(Application[UUID]):
    """The stock recorder, mapper and tables."""


class _Ours:
    def __init__(self, uri: str, *, with_command: bool) -> None:
        migrate(uri)
        self._ledger = Ledger(uri, blinding_key=b"benchmark blinding key")
        self._streams = [deposit_stream(f"dep_{n}").uuid for n in range(STREAMS)]
        self._versions = [0] * STREAMS
        self._with_command = with_command
        self._commands = 0

    def append(self, first: int, batch: int) -> None:
        envelopes: list[Any] = []
        entries: list[tuple[int, Entry]] = []
        for offset in range(batch):
            number = (first + offset) % STREAMS
            self._versions[number] += 1
            envelopes.append(
                Envelope(
                    self._streams[number],
                    self._versions[number],
                    _fact(number),
                    "cmd_0123456789abcdef0123456789abcdef",
                )
            )
            entries.append((offset + 1, _entry(number)))
        command = None
        if self._with_command:
            self._commands += 1
            command = CommandRow("acct_bench", f"key-{self._commands}", b"f" * 32, 201, b"{}")
        append = Append(now_us=NOW_US, entries=entries, command=command)
        self._ledger.market.events.put(envelopes, append=append)

    def check(self) -> None:
        """The figures count only if what was written holds."""
        assert self._ledger.books.faults() == []
        assert self._ledger.market.head()[0] == sum(self._versions)

    def close(self) -> None:
        self._ledger.close()


class StockSide:
    def __init__(self, uri: str) -> None:
        given = conninfo_to_dict(uri)
        self._app = Stock(
            env={
                "PERSISTENCE_MODULE": "eventsourcing.postgres",
                "POSTGRES_DBNAME": str(given["dbname"]),
                "POSTGRES_HOST": str(given["host"]),
                "POSTGRES_PORT": str(given["port"]),
                "POSTGRES_USER": str(given["user"]),
                "POSTGRES_PASSWORD": "",
            }
        )
        self._deposits = [Deposit(account_id=f"acct_{n:032x}") for n in range(STREAMS)]
        for start in range(0, STREAMS, 100):
            self._app.save(*self._deposits[start : start + 100])

    def append(self, first: int, batch: int) -> None:
        changed = []
        for offset in range(batch):
            number = (first + offset) % STREAMS
            fact = _fact(number)
            deposit = self._deposits[number]
            deposit.confirm(
                fact.deposit_id,
                fact.account_id,
                fact.source,
                fact.amount.units,
                fact.reference,
                fact.confirmed_by,
            )
            changed.append(deposit)
        self._app.save(*changed)

    def close(self) -> None:
        self._app.close()


class Limit:
    """The same rows, ready, straight into a table with the same keys."""

    def __init__(self, uri: str) -> None:
        migrate(uri)
        self._connection = psycopg.connect(uri, autocommit=True)
        self._connection.execute("CREATE TABLE limit_event (LIKE market_events INCLUDING ALL)")
        self._position = 0

    def rate(self, batch: int, count: int) -> float:
        """Facts per second over `count` batches; they are built before the clock starts."""
        buffers = [self._buffer(batch) for _ in range(count)]
        began = time.perf_counter()
        for buffer in buffers:
            with (
                self._connection.transaction(),
                self._connection.cursor() as cursor,
                cursor.copy("COPY limit_event FROM STDIN (FORMAT binary)") as copy,
            ):
                copy.write(buffer)
        return batch * len(buffers) / (time.perf_counter() - began)

    def _buffer(self, batch: int) -> bytes:
        parts = [b"PGCOPY\n\xff\r\n\0", bytes(8)]
        for _ in range(batch):
            self._position += 1
            number = self._position % STREAMS
            name, body = codec.encode(_fact(number), f"cmd_{self._position:032x}", "00" * 16)
            stream = deposit_stream(f"dep_{number}").uuid.bytes
            columns = (
                stream,
                pack("!q", self._position),
                name.encode(),
                body,
                pack("!q", self._position),
                bytes(32),
                bytes(32),
                pack("!q", NOW_US),
            )
            parts.append(pack("!h", len(columns)))
            parts += (pack("!i", len(column)) + column for column in columns)
        return b"".join((*parts, b"\xff\xff"))

    def close(self) -> None:
        self._connection.close()


def _fact(number: int) -> DepositConfirmed:
    return DepositConfirmed(
        deposit_id=f"dep_{number:032x}",
        account_id=f"acct_{number:032x}",
        source="cash",
        amount=credit(1_265_000),
        reference="0123456789",
        confirmed_by="acct_operator",
        at_us=NOW_US,
    )


def _entry(number: int) -> Entry:
    """Three lines, as an accrual's: bank to a party and to the platform."""
    lines = (
        ("world:bank", 1_265_000),
        (f"party:acct_{number:032x}:payable", -1_000_000),
        ("network:revenue:usage", -265_000),
    )
    return Entry(Asset.CREDIT, lines)


def _rate(append: Callable[[int, int], None], batch: int, seconds: float) -> tuple[float, int]:
    """Facts a second over a slice of so many seconds, and how many they were."""
    began = time.perf_counter()
    append(0, batch)  # one at least, however busy the machine is
    done = batch
    while (took := time.perf_counter() - began) < seconds:
        append(done, batch)
        done += batch
    return done / took, done


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Facts per second of all sides and the ratios, for single facts and for batches of 100.

    The sides take turns in slices of a fifth of a second, so that whatever else the machine does
    falls on all of them; a ratio is the median over the turns.
    """
    with workplace(server) as (_, made), ExitStack() as stack:
        ours = _Ours(made.create_database("append_market_ours"), with_command=False)
        keyed = _Ours(made.create_database("append_market_keyed"), with_command=True)
        stock = StockSide(made.create_database("append_market_stock"))
        limit = Limit(made.create_database("append_market_limit"))
        for side in (ours, keyed, stock, limit):
            stack.callback(side.close)
        sides: dict[str, _Ours | StockSide] = {
            "books": ours,
            "books_and_key": keyed,
            "stock": stock,
        }
        results = [_compare(sides, limit, batch, SIZES[size], made.pid) for batch in BATCHES]
        ours.check()
        keyed.check()
        with psycopg.connect(made.uri) as connection:
            version = connection.info.server_version
    return {"name": "append_market", "server_version": version, "results": results}


def _compare(
    sides: dict[str, _Ours | StockSide], limit: Limit, batch: int, numbers: Numbers, server: int
) -> dict[str, Any]:
    rates: dict[str, list[float]] = {name: [] for name in (*sides, "limit")}
    spent = {name: cpu.Spent(server) for name in sides}
    for side in sides.values():
        side.append(0, STREAMS)  # every account is open before the clock starts
    for _ in range(numbers.turns):
        for name, side in sides.items():
            with spent[name].counted() as operations:
                rate, done = _rate(side.append, batch, numbers.slice_seconds)
                operations.done = done
            rates[name].append(rate)
        rates["limit"].append(limit.rate(batch, numbers.limit_buffers[batch]))
    ratios = {
        name: statistics.median(
            mine / stock for mine, stock in zip(rates[name], rates["stock"], strict=True)
        )
        for name in ("books", "books_and_key")
    }
    return {
        "batch": batch,
        "ratio": round(ratios["books"], 2),
        "ratio_at_least": TARGETS[batch],
        "holds": ratios["books"] >= TARGETS[batch],
        "ratio_with_key": round(ratios["books_and_key"], 2),
        "of_limit": round(
            statistics.median(
                mine / limit for mine, limit in zip(rates["books"], rates["limit"], strict=True)
            ),
            3,
        ),
        "facts_per_second": {name: round(statistics.median(r)) for name, r in rates.items()},
        "processor_ns": {name: one.each() for name, one in spent.items()},
        "range": {name: [round(min(r)), round(max(r))] for name, r in rates.items()},
    }


def main() -> None:
    """Print the comparison."""
    for result in run(size_asked(__doc__))["results"]:
        rates = result["facts_per_second"]
        print(
            f"x{result['batch']:<4d} {result['ratio']:.2f} of stock's save"
            f" (at least {result['ratio_at_least']}); with an idempotency row"
            f" {result['ratio_with_key']:.2f}; {result['of_limit']:.1%} of COPY:"
            f" {rates['books']:,}, {rates['books_and_key']:,}, {rates['stock']:,}"
            f" and {rates['limit']:,} facts/s"
        )


if __name__ == "__main__":
    main()
