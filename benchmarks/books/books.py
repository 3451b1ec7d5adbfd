"""Double entry in batches, beside one transfer per statement, in the same run.

    python -m benchmarks.books.books            full
    python -m benchmarks.books.books --short    half a minute; the ratios are rougher
    python -m benchmarks.books.books --tiny     whether it runs at all

Every contender books the same thing: one transfer between two of 1,000 accounts, durably (fsync
and synchronous_commit on), on one embedded server, taking turns in slices of 0.4 seconds.

- ours: facts with a balanced entry each, from Python objects, through the real
  `market_events_append`: stored bytes, leaf, hash chain, gapless position, `balances_after`, no
  account below zero, notification; 1, 100 and 1,000 facts an append
- peer: the pattern pgledger publishes: accounts with balance and version, a row per transfer, two
  rows of entries with the balance before and after, foreign keys and indexes as it has them; one
  function call per statement, 100 statements a transaction. No fact, no chain, no order. Written
  anew, statement for statement, after its public schema, but with plain uuids for its ULIDs, which
  are made in PL/pgSQL: that favours the peer
- limit: binary COPY of the same rows, ready, into tables of the same definitions

Ours and the peer run with one, two and four writers, each a process of its own with accounts of
its own; a ratio compares best with best, and is the median over the turns.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from struct import pack
from typing import Any, NamedTuple, Protocol

import psycopg

from benchmarks import cpu
from benchmarks.processes import context
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from domain.funds.deposit import DepositConfirmed, deposit_stream
from domain.money import Asset, credit
from domain.stream import Stream
from ledger.books.entry import Entry
from ledger.log import codec
from ledger.log.append import Append
from ledger.log.handle import Ledger
from ledger.log.market import Envelope
from ledger.migrate import migrate

ACCOUNTS = 1_000
PAIRS = 20_000
FUNDS = 10**12
UNITS = 1_265
BATCHES = (1, 100, 1_000)
PEER_BATCH = 100
FIGURES = {100: 6.0, 1_000: 7.0}
"""Multiples of the peer, by facts an append."""
NOW_US = 1_763_000_000_000_000
COMMAND_ID = "cmd_0123456789abcdef0123456789abcdef"


class Numbers(NamedTuple):
    """`limit_rows`: what one turn of the limit writes, about a slice's worth, built off the clock.
    `writers`: how many at once, one after the other.
    """

    turns: int
    slice_seconds: float
    limit_rows: int
    writers: tuple[int, ...]


SIZES = {
    Size.FULL: Numbers(turns=20, slice_seconds=0.4, limit_rows=20_000, writers=(1, 2, 4)),
    Size.SHORT: Numbers(turns=5, slice_seconds=0.4, limit_rows=20_000, writers=(1, 2, 4)),
    Size.TINY: Numbers(turns=1, slice_seconds=0.01, limit_rows=1_000, writers=(1,)),
}


class _Writer(Protocol):
    """Whoever books transfers, in a process of its own."""

    def book(self) -> int: ...


def _pairs(writer: int, writers: int) -> Iterator[tuple[int, int]]:
    """Two different accounts at random, for ever; writers have accounts of their own."""
    draw = random.Random(writer)
    mine = range(writer, ACCOUNTS, writers)
    return cycle([(one, other) for one, other in (draw.sample(mine, 2) for _ in range(PAIRS))])


# --- ours -------------------------------------------------------------------------------------


class _Ours:
    """`batch` facts an append, each with its entry, each on a stream of its own."""

    def __init__(self, uri: str, batch: int, writer: int, writers: int) -> None:
        self._ledger = Ledger(uri, blinding_key=b"benchmark blinding key", connections_max=1)
        self._batch = batch
        self._pairs = _pairs(writer, writers)
        self._prefix = f"{batch}/{writer}/{writers}"
        self._number = 0
        self._facts = [_fact(number) for number in range(ACCOUNTS)]
        self._names = [_account(number) for number in range(ACCOUNTS)]

    def book(self) -> int:
        envelopes: list[Any] = []
        entries: list[tuple[int, Entry]] = []
        for offset in range(1, self._batch + 1):
            self._number += 1
            one, other = next(self._pairs)
            stream = deposit_stream(f"{self._prefix}/{self._number}")
            envelopes.append(Envelope(stream.uuid, 1, self._facts[one], COMMAND_ID))
            lines = ((self._names[one], UNITS), (self._names[other], -UNITS))
            entries.append((offset, Entry(Asset.CREDIT, lines)))
        append = Append(now_us=NOW_US, entries=entries)
        self._ledger.market.events.put(envelopes, append=append)
        return self._batch


def _fact(number: int) -> DepositConfirmed:
    return DepositConfirmed(
        deposit_id=f"dep_{number:032x}",
        account_id=f"acct_{number:032x}",
        source="cash",
        amount=credit(UNITS),
        reference="0123456789",
        confirmed_by="acct_operator",
        at_us=NOW_US,
    )


def _account(number: int) -> str:
    return f"party:acct_{number:032x}:cash"


def _fund(ledger: Ledger) -> None:
    """Money for every account, so that no transfer is refused."""
    lines = tuple((_account(number), -FUNDS) for number in range(ACCOUNTS))
    entry = Entry(Asset.CREDIT, (("world:bank", ACCOUNTS * FUNDS), *lines))
    envelope: Any = Envelope(Stream("deposit", "funds").uuid, 1, _fact(0), COMMAND_ID)
    ledger.market.events.put([envelope], append=Append(now_us=NOW_US, entries=[(1, entry)]))


# --- the peer ---------------------------------------------------------------------------------

_PEER = """
CREATE TABLE peer_account (
    id text PRIMARY KEY,
    name text NOT NULL,
    currency text NOT NULL,
    balance numeric NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 0,
    allow_negative boolean NOT NULL DEFAULT true,
    allow_positive boolean NOT NULL DEFAULT true,
    metadata jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE peer_transfer (
    id text PRIMARY KEY DEFAULT 'xfer_' || uuidv7(),
    from_id text NOT NULL REFERENCES peer_account,
    to_id text NOT NULL REFERENCES peer_account,
    amount numeric NOT NULL CHECK (amount > 0),
    created_at timestamptz NOT NULL,
    event_at timestamptz NOT NULL,
    metadata jsonb,
    CHECK (from_id <> to_id)
);
CREATE INDEX ON peer_transfer (from_id);
CREATE INDEX ON peer_transfer (to_id);
CREATE INDEX ON peer_transfer (event_at);
CREATE TABLE peer_entry (
    id text PRIMARY KEY DEFAULT 'entry_' || uuidv7(),
    account_id text NOT NULL REFERENCES peer_account,
    transfer_id text NOT NULL REFERENCES peer_transfer,
    amount numeric NOT NULL,
    balance_before numeric NOT NULL,
    balance_after numeric NOT NULL,
    account_version bigint NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX ON peer_entry (account_id);
CREATE INDEX ON peer_entry (transfer_id);

CREATE FUNCTION peer_check(account peer_account) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF account.balance < 0 AND NOT account.allow_negative THEN
        RAISE EXCEPTION '% may not fall below zero', account.id;
    END IF;
    IF account.balance > 0 AND NOT account.allow_positive THEN
        RAISE EXCEPTION '% may not rise above zero', account.id;
    END IF;
END $$;

CREATE FUNCTION peer_create_transfer(payer text, payee text, sum numeric)
RETURNS SETOF peer_transfer LANGUAGE plpgsql AS $$
DECLARE
    source peer_account;
    target peer_account;
    one text;
    made text;
BEGIN
    -- In the order of ids, whichever pays: two transfers cannot wait for each other.
    FOREACH one IN ARRAY ARRAY[least(payer, payee), greatest(payer, payee)] LOOP
        PERFORM FROM peer_account a WHERE a.id = one FOR UPDATE;
    END LOOP;
    UPDATE peer_account a SET balance = balance - sum, version = version + 1, updated_at = now()
    WHERE a.id = payer RETURNING * INTO source;
    PERFORM peer_check(source);
    UPDATE peer_account a SET balance = balance + sum, version = version + 1, updated_at = now()
    WHERE a.id = payee RETURNING * INTO target;
    PERFORM peer_check(target);
    IF source.currency <> target.currency THEN
        RAISE EXCEPTION '% and % hold different currencies', payer, payee;
    END IF;
    INSERT INTO peer_transfer (from_id, to_id, amount, created_at, event_at)
    VALUES (payer, payee, sum, now(), now()) RETURNING id INTO made;
    INSERT INTO peer_entry (account_id, transfer_id, amount, balance_before, balance_after,
        account_version, created_at)
    VALUES (payer, made, -sum, source.balance + sum, source.balance, source.version, now());
    INSERT INTO peer_entry (account_id, transfer_id, amount, balance_before, balance_after,
        account_version, created_at)
    VALUES (payee, made, sum, target.balance - sum, target.balance, target.version, now());
    RETURN QUERY SELECT * FROM peer_transfer t WHERE t.id = made;
END $$;
"""


class _Peer:
    """One function call a statement, `batch` statements a transaction."""

    def __init__(self, uri: str, batch: int, writer: int, writers: int) -> None:
        self._batch = batch
        self._connection = psycopg.connect(uri, autocommit=True)
        self._pairs = _pairs(writer, writers)
        self._ids = [_peer_id(number) for number in range(ACCOUNTS)]

    def book(self) -> int:
        with self._connection.transaction(), self._connection.cursor(binary=True) as cursor:
            for _ in range(self._batch):
                one, other = next(self._pairs)
                cursor.execute(
                    b"SELECT id FROM peer_create_transfer(%s, %s, %s)",
                    (self._ids[one], self._ids[other], UNITS),
                    prepare=True,
                )
                cursor.fetchone()
        return self._batch


def _peer_id(number: int) -> str:
    return f"acct_{number:032x}"


def _peer_tables(uri: str) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(_PEER)
        connection.cursor().executemany(
            "INSERT INTO peer_account (id, name, currency) VALUES (%s, 'acct', 'USD')",
            [(_peer_id(number),) for number in range(ACCOUNTS)],
        )


# --- the limit --------------------------------------------------------------------------------

_COPY_EVENTS = "COPY limit_event FROM STDIN (FORMAT binary)"
_COPY_POSTINGS = "COPY limit_posting FROM STDIN (FORMAT binary)"


class _Limit:
    """The rows of an append, ready, into tables of the same definitions; nothing is computed."""

    def __init__(self, uri: str) -> None:
        self._connection = psycopg.connect(uri, autocommit=True)
        for table, model in (("limit_event", "market_events"), ("limit_posting", "posting")):
            self._connection.execute(f"CREATE TABLE {table} (LIKE {model} INCLUDING ALL)".encode())
        self._position = 0

    def rate(self, batch: int, rows: int) -> float:
        """Transfers a second over so many; what is written is built before the clock starts."""
        buffers = [self._buffers(batch) for _ in range(rows // batch)]
        began = time.perf_counter()
        for events, postings in buffers:
            with self._connection.transaction(), self._connection.cursor() as cursor:
                for statement, data in ((_COPY_EVENTS, events), (_COPY_POSTINGS, postings)):
                    with cursor.copy(statement.encode()) as copy:
                        copy.write(data)
        return batch * len(buffers) / (time.perf_counter() - began)

    def _buffers(self, batch: int) -> tuple[bytes, bytes]:
        head = b"PGCOPY\n\xff\r\n\0" + bytes(8)
        events, postings = [head], [head]
        for _ in range(batch):
            self._position += 1
            number = self._position % (ACCOUNTS - 1)
            position = pack("!q", self._position)
            name, body = codec.encode(_fact(number), COMMAND_ID, "00" * 16)
            stream = deposit_stream(str(self._position)).uuid.bytes
            events.append(
                _row(
                    stream,
                    pack("!q", 1),
                    name.encode(),
                    body,
                    position,
                    bytes(32),
                    bytes(32),
                    pack("!q", NOW_US),
                )
            )
            postings.append(
                _row(
                    position,
                    b"CREDIT",
                    _array(23, "i", number + 1, number + 2),
                    _array(20, "q", UNITS, -UNITS),
                    _array(20, "q", FUNDS, FUNDS),
                )
            )
        end = b"\xff\xff"
        return b"".join((*events, end)), b"".join((*postings, end))

    def close(self) -> None:
        self._connection.close()


def _row(*columns: bytes) -> bytes:
    parts = [pack("!h", len(columns))]
    for column in columns:
        parts += (pack("!i", len(column)), column)
    return b"".join(parts)


def _array(element: int, code: str, *values: int) -> bytes:
    width = {"i": 4, "q": 8}[code]
    flat = b"".join(pack("!i" + code, width, value) for value in values)
    return pack("!iiIii", 1, 0, element, len(values), 1) + flat


# --- measuring --------------------------------------------------------------------------------


class Cost(NamedTuple):
    """Microseconds of processor time that a transfer takes: of its writer and of PostgreSQL."""

    process: float
    postgresql: float


class _Team:
    """So many writers of one kind; they wait for their turn in between."""

    def __init__(self, kind: type[_Ours | _Peer], uri: str, batch: int, writers: int) -> None:
        making = context()
        self._pipes: list[Any] = []
        self._processes: list[Any] = []
        for writer in range(writers):
            here, there = making.Pipe()
            process = making.Process(
                target=_work, args=(there, kind, uri, batch, writer, writers), daemon=True
            )
            process.start()
            self._pipes.append(here)
            self._processes.append(process)

    def rate(self, server: int, seconds: float) -> tuple[float, Cost]:
        """Transfers a second of all writers at once, over one slice; and what one takes."""
        cpu_before = cpu.of_server(server)
        for pipe in self._pipes:
            pipe.send(seconds)
        told: list[tuple[int, float, float]] = [pipe.recv() for pipe in self._pipes]
        database = cpu.of_server(server) - cpu_before
        rate = sum(done / took for done, took, _ in told)
        done = sum(done for done, _, _ in told)
        return rate, Cost(1e6 * sum(used for _, _, used in told) / done, 1e6 * database / done)

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()


def _work(
    pipe: Any, kind: type[_Ours | _Peer], uri: str, batch: int, writer: int, writers: int
) -> None:
    one: _Writer = kind(uri, batch, writer, writers)
    while (seconds := pipe.recv()) is not None:
        began, used = time.perf_counter(), time.process_time()
        done = one.book()  # one at least, however busy the machine is
        while (took := time.perf_counter() - began) < seconds:
            done += one.book()
        pipe.send((done, took, time.process_time() - used))


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Transfers per second of all contenders, and the ratios."""
    numbers = SIZES[size]
    with workplace(server) as (_, made), ExitStack() as stack:
        ours_uri, peer_uri, limit_uri = (
            made.create_database(f"books_{side}") for side in ("ours", "peer", "limit")
        )
        migrate(ours_uri)
        migrate(limit_uri)
        _peer_tables(peer_uri)
        ledger = stack.enter_context(Ledger(ours_uri, blinding_key=b"benchmark blinding key"))
        _fund(ledger)
        limit = _Limit(limit_uri)
        stack.callback(limit.close)
        teams = {f"peer/{n}": _Team(_Peer, peer_uri, PEER_BATCH, n) for n in numbers.writers}
        for batch in BATCHES:
            teams |= {
                f"ours x{batch}/{n}": _Team(_Ours, ours_uri, batch, n) for n in numbers.writers
            }
        rates, costs = _measure(teams, limit, numbers, made.pid)
        for team in teams.values():
            team.close()
        assert ledger.books.faults() == []
        _check_peer(peer_uri)
    results = [_result(rates, batch, numbers.writers) for batch in BATCHES]
    return {
        "figure": "batched double entry beside one transfer a statement, 100 a transaction",
        "conditions": {
            "accounts": ACCOUNTS,
            "turns": numbers.turns,
            "slice_seconds": numbers.slice_seconds,
            "peer_batch": PEER_BATCH,
            "writers": list(numbers.writers),
        },
        "results": results,
        "reached": all(result["to_peer"] >= FIGURES.get(result["batch"], 0) for result in results),
        "transfers_per_second": {n: round(statistics.median(r)) for n, r in rates.items()},
        "range": {n: [round(min(r)), round(max(r))] for n, r in rates.items()},
        "cpu_us_per_transfer": {name: _middle(cost)._asdict() for name, cost in costs.items()},
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def _measure(
    teams: dict[str, _Team], limit: _Limit, numbers: Numbers, server: int
) -> tuple[dict[str, list[float]], dict[str, list[Cost]]]:
    rates: dict[str, list[float]] = {}
    costs: dict[str, list[Cost]] = {}
    for turn in range(numbers.turns + 1):
        for name, team in teams.items():
            rate, cost = team.rate(server, numbers.slice_seconds)
            rates.setdefault(name, []).append(rate)
            costs.setdefault(name, []).append(cost)
        for batch in BATCHES[1:]:
            rate = limit.rate(batch, numbers.limit_rows)
            rates.setdefault(f"limit x{batch}", []).append(rate)
        if turn == 0:
            rates.clear()  # the first turn prepares statements and fills caches
            costs.clear()
    return rates, costs


def _result(rates: dict[str, list[float]], batch: int, writers: tuple[int, ...]) -> dict[str, Any]:
    """Best with best: each side with as many writers as suit it, turn by turn."""
    mine = [max(turn) for turn in zip(*(rates[f"ours x{batch}/{w}"] for w in writers), strict=True)]
    peer = [max(turn) for turn in zip(*(rates[f"peer/{w}"] for w in writers), strict=True)]
    limit = rates.get(f"limit x{batch}")
    return {
        "batch": batch,
        "to_peer": round(_ratio(mine, peer), 2),
        "of_limit": None if limit is None else round(_ratio(mine, limit), 3),
        "ours": round(statistics.median(mine)),
        "peer": round(statistics.median(peer)),
        "limit": None if limit is None else round(statistics.median(limit)),
    }


def _middle(costs: list[Cost]) -> Cost:
    return Cost(*(round(statistics.median(part), 1) for part in zip(*costs, strict=True)))


def _ratio(mine: list[float], other: list[float]) -> float:
    return statistics.median(one / two for one, two in zip(mine, other, strict=True))


def _check_peer(uri: str) -> None:
    """The comparison counts only if the peer's books hold as well."""
    with psycopg.connect(uri) as connection:
        row = connection.execute(
            "SELECT (SELECT sum(balance) FROM peer_account), (SELECT sum(amount) FROM peer_entry),"
            " (SELECT count(*) FROM peer_entry) = 2 * (SELECT count(*) FROM peer_transfer)"
        ).fetchone()
        assert row == (0, 0, True), row


def main() -> None:
    """Print the comparison."""
    told = run(size_asked(__doc__))
    for result in told["results"]:
        limit = "" if result["of_limit"] is None else f", {result['of_limit']:.1%} of COPY"
        print(
            f"x{result['batch']:<5d} {result['to_peer']:.2f} x the peer{limit}:"
            f" {result['ours']:,} and {result['peer']:,} transfers/s"
        )
    for name, rate in told["transfers_per_second"].items():
        cost = told["cpu_us_per_transfer"].get(name, "")
        print(f"  {name:16s} {rate:>9,}  {told['range'][name]}  {cost} us of processor time")


if __name__ == "__main__":
    main()
