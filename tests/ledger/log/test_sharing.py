"""Threads that append at once share a transaction: in some order, and each with its own answer."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest
from eventsourcing.persistence import OperationalError, StoredEvent

from domain.market.reasons import MarketReason
from domain.money import Asset
from domain.refusal import Refused
from domain.stream import Change, World
from ledger.books.entry import Entry
from ledger.log import sharing
from ledger.log.append import Append, Appended
from ledger.log.handle import Answer, CommandKey, Ledger, Outcome, OutcomeUnknown
from tests.scenes.linearizability import Operation, linearization
from tests.scenes.told import NOW_US, Do, deposited, do, key, ledger_on, offer, withdrawn

THREADS, CALLS = 8, 12
STREAMS, ACCOUNTS = 3, 2
PAID, SPENT = 2, 3


def _entries(fact: Any) -> tuple[Entry, ...]:
    """A deposit pays an account; with the reference "spend" it takes from it. Others move none."""
    if not hasattr(fact, "account_id"):
        return ()
    units = fact.amount.units * (-1 if fact.deposit_id.startswith("spend") else 1)
    lines = ((f"party:{fact.account_id}:cash", -units), ("network:suspense", units))
    return (Entry(Asset.CREDIT, lines if units < 0 else _from_the_bank(fact)),)


def _from_the_bank(fact: Any) -> tuple[tuple[str, int], ...]:
    units = fact.amount.units
    return (("world:bank", units), (f"party:{fact.account_id}:cash", -units))


def _transactions(database: str) -> list[int]:
    """How many facts each transaction has recorded, the oldest first."""
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT count(*) FROM market_events GROUP BY xmin::text ORDER BY min(notification_id)"
        )
        return [row[0] for row in rows]


@contextmanager
def _held(database: str) -> Generator[None, None, None]:
    """Until the block ends nothing is appended; whoever comes stands in line behind one."""
    with psycopg.connect(database) as holder:
        holder.execute("SELECT FROM market_events_head FOR UPDATE")
        yield
        holder.rollback()


def _until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.001)


def _in_line(
    ledger: Ledger, pool: ThreadPoolExecutor, calls: Sequence[Callable[[], Outcome]]
) -> list[Future[Outcome]]:
    """The first call is being written; the others wait behind it, in this order."""
    waiting, futures = ledger.market.recorder._sharing, list[Future[Outcome]]()  # type: ignore[attr-defined]
    for place, call in enumerate(calls):
        futures.append(pool.submit(call))
        _until(partial(_stand, waiting, place))
    return futures


def _stand(waiting: Any, count: int) -> bool:
    return bool(waiting._is_writing and len(waiting._waiting) == count)


def _asked(ledger: Ledger, change: Change, name: str | None = None) -> Callable[[], Outcome]:
    named = None if name is None else key(name)
    return lambda: ledger.handle(do(change), key=named, now_us=NOW_US)


def test_all_that_wait_while_one_is_written_share_the_next_transaction(database: str) -> None:
    with ledger_on(database) as ledger, ThreadPoolExecutor(THREADS) as pool:
        calls = [
            _asked(ledger, deposited(f"d{n}", n + 1), f"k{n}" if n % 2 else None)
            for n in range(THREADS)
        ]
        with _held(database):
            futures = _in_line(ledger, pool, calls)
        assert [one.result(20).position for one in futures] == list(range(1, THREADS + 1))
        assert _transactions(database) == [1, THREADS - 1]
        told = [ledger.told_before(key(f"k{n}")) for n in (1, 3, 5, 7)]
        assert [one.position for one in told if one] == [2, 4, 6, 8]
        assert ledger.books.faults() == []


def test_the_log_is_that_of_the_same_appends_one_after_the_other(
    database: str, empty_database: str
) -> None:
    from ledger.migrate import migrate

    migrate(empty_database)
    changes = [deposited(f"d{n}", n + 1) for n in range(THREADS)]
    with (
        ledger_on(database) as ledger,
        ledger_on(empty_database) as other,
        ThreadPoolExecutor(THREADS) as pool,
    ):
        with _held(database):
            calls = [_asked(ledger, one, f"k{n}") for n, one in enumerate(changes)]
            futures = _in_line(ledger, pool, calls)
        for one in futures:
            one.result(20)
        for n, change in enumerate(changes):
            _asked(other, change, f"k{n}")()
        assert ledger.market.head() == other.market.head()


def test_one_that_is_refused_touches_no_other(database: str) -> None:
    with ledger_on(database, entries_for=_entries) as ledger, ThreadPoolExecutor(8) as pool:
        calls = [_asked(ledger, deposited(f"d{n}", 5, f"acct_{n}"), f"k{n}") for n in range(5)]
        calls[2] = _asked(ledger, deposited("spend", 1, "acct_poor"), "poor")
        with _held(database):
            futures = _in_line(ledger, pool, calls)
        positions = [futures[n].result(20).position for n in (0, 1, 3, 4)]
        assert sorted(positions) == [1, 2, 3, 4]
        with pytest.raises(Refused, match="credit_too_low"):
            futures[2].result(20)
        assert ledger.books.faults() == []


def test_one_key_asked_twice_at_once_is_recorded_once_and_spoils_no_other(database: str) -> None:
    with ledger_on(database) as ledger, ThreadPoolExecutor(8) as pool:
        names = ["first", "same", "same", "other"]
        calls = [_asked(ledger, deposited(f"d_{name}", 5), name) for name in names]
        with _held(database):
            futures = _in_line(ledger, pool, calls)
        told = [one.result(20) for one in futures]
        assert told[1].position == told[2].position
        assert sorted(one.replayed for one in told) == [False, False, False, True]
        assert _transactions(database) == [1, 2]


def test_who_is_overtaken_decides_again_and_spoils_no_other(database: str) -> None:
    """All write one stream, and one other does not."""
    with ledger_on(database) as ledger, ThreadPoolExecutor(8) as pool:
        calls = [_asked(ledger, withdrawn("a")) for _ in range(3)] + [
            _asked(ledger, withdrawn("b"))
        ]
        with _held(database):
            futures = _in_line(ledger, pool, calls)
        assert sorted(one.result(20).position for one in futures) == [1, 2, 3, 4]
        assert ledger.market.load(offer("a")).originator_version == 3


def test_what_another_only_read_has_not_moved_in_the_same_transaction(database: str) -> None:
    """Each reads what the other writes: side by side both would be right, one after the other one
    of them is wrong.
    """

    def first_only(own: str, other: str) -> Do:
        def decide(world: World) -> list[Change]:
            if world.state(offer(other)).facts:
                raise Refused(MarketReason.NO_MATCH)
            return [withdrawn(own)]

        return Do(decide)

    with ledger_on(database) as ledger, ThreadPoolExecutor(8) as pool:
        commands = [do(withdrawn("x")), first_only("a", "b"), first_only("b", "a")]
        calls = [
            lambda command=command: ledger.handle(command, key=None, now_us=NOW_US)
            for command in commands
        ]
        with _held(database):
            futures = _in_line(ledger, pool, calls)
        assert sum(one.exception(20) is None for one in futures) == 2


def test_a_lost_connection_is_told_to_all_that_shared_it(database: str) -> None:
    with ledger_on(database) as ledger, ThreadPoolExecutor(8) as pool:
        line: Any = ledger.market.recorder._sharing  # type: ignore[attr-defined]
        write = line._write

        def lose(events: Any, append: Any) -> None:
            write(events, append)
            if len(events) > 1:
                line._write = write
                raise OperationalError("connection lost")

        line._write = lose
        calls = [_asked(ledger, deposited(f"d{n}", 1), name) for n, name in enumerate("kl")]
        calls += [_asked(ledger, deposited("d_keyless", 1))]
        with _held(database):
            futures = _in_line(ledger, pool, calls)
        assert [one.result(20).position for one in futures[:2]] == [1, 2]
        with pytest.raises(OutcomeUnknown):
            futures[2].result(20)
        assert ledger.market.head()[0] == 3


def test_a_thread_that_is_interrupted_leaves_the_line_and_the_others_go_on(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = sharing._Member.wait

    def interrupted(_: sharing._Member, _seconds: float) -> None:
        monkeypatch.setattr(sharing._Member, "wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(sharing._Member, "wait", interrupted)
    with ledger_on(database) as ledger, ThreadPoolExecutor(8) as pool:
        line: Any = ledger.market.recorder._sharing  # type: ignore[attr-defined]
        with _held(database):
            writing = pool.submit(_asked(ledger, withdrawn("a")))
            _until(partial(_stand, line, 0))
            gone = pool.submit(_asked(ledger, withdrawn("b")))
            assert isinstance(gone.exception(20), KeyboardInterrupt)
            other = pool.submit(_asked(ledger, withdrawn("c")))
            _until(partial(_stand, line, 1))
        assert [one.result(20).position for one in (writing, other)] == [1, 2]
        assert _asked(ledger, withdrawn("d"))().position == 3


# --- mixed commands, in an order that explains every answer -------------------------------------


class Seen(NamedTuple):
    """What the model remembers: the facts of each stream, the units of each account."""

    facts: tuple[int, ...]
    units: tuple[int, ...]


def model(seen: Seen, asked: tuple[str, ...]) -> tuple[str, Seen]:
    """What one command is answered when nothing else happens."""
    verb, one, other = asked[0], int(asked[1]), int(asked[2])
    if verb == "add":
        return _counted(seen, one, other)
    if verb == "catch_up":
        if seen.facts[one] >= seen.facts[other]:
            return "no_match", seen
        return _counted(seen, one, other)
    units = list(seen.units)
    units[one] += PAID if verb == "pay" else -SPENT
    return ("credit_too_low", seen) if units[one] < 0 else ("", Seen(seen.facts, tuple(units)))


def _counted(seen: Seen, one: int, other: int) -> tuple[str, Seen]:
    facts = list(seen.facts)
    facts[one] += 1
    return f"{facts[one]} {facts[other]}", Seen(tuple(facts), seen.units)


def _command(asked: tuple[str, ...], name: str) -> Do:
    """What the books alone know is not looked at: PostgreSQL refuses it."""
    verb, one, other = asked[0], asked[1], asked[2]
    if verb == "pay":
        return do(deposited(f"pay_{name}", PAID, f"acct_{one}"))
    if verb == "spend":
        return do(deposited(f"spend_{name}", SPENT, f"acct_{one}"))

    def decide(world: World) -> list[Change]:
        mine, theirs = world.state(offer(one)).facts, world.state(offer(other)).facts
        if verb == "catch_up" and mine >= theirs:
            raise Refused(MarketReason.NO_MATCH)
        return [withdrawn(one)]

    return Do(decide)


def _call(ledger: Ledger, asked: tuple[str, ...], name: str, named: CommandKey | None) -> Operation:
    def answer(_: Sequence[Change], state_of: Callable[[Any], Any]) -> Answer:
        if asked[0] in ("pay", "spend"):
            return Answer(200, b"")
        told = f"{state_of(offer(asked[1])).facts} {state_of(offer(asked[2])).facts}"
        return Answer(200, told.encode())

    invoked_ns = time.monotonic_ns()
    try:
        outcome = ledger.handle(_command(asked, name), key=named, now_us=NOW_US, answer=answer)
        answered = outcome.answer.body.decode()
    except Refused as no:
        answered = no.reason.value
    return Operation(invoked_ns, time.monotonic_ns(), asked, answered)


def _plan(chance: random.Random) -> list[tuple[str, ...]]:
    verbs = chance.choices(["add", "catch_up", "catch_up", "pay", "spend"], k=CALLS)
    return [
        (verb, *map(str, chance.sample(range(STREAMS), 2)))
        if verb in ("add", "catch_up")
        else (verb, str(chance.randrange(ACCOUNTS)), "0")
        for verb in verbs
    ]


@pytest.mark.parametrize("seed", range(4))
def test_mixed_commands_of_eight_threads_are_linearizable(database: str, seed: int) -> None:
    """Half have a key; some write what others read, some are refused, some by PostgreSQL alone."""
    with ledger_on(database, entries_for=_entries, connections_max=THREADS) as ledger:
        told, gate = list[Operation](), threading.Barrier(THREADS)

        def ask(number: int) -> None:
            chance = random.Random(1_000 * seed + number)
            gate.wait()
            for turn, asked in enumerate(_plan(chance)):
                name = f"{number}_{turn}"
                named = key(name) if chance.random() < 0.5 else None
                told.append(_call(ledger, asked, name, named))

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(ask, range(THREADS)))
        assert len(told) == THREADS * CALLS
        order = linearization(told, model, Seen((0,) * STREAMS, (0,) * ACCOUNTS))
        assert order is not None, told
        assert max(_transactions(database)) > 1
        assert ledger.books.faults() == []


def test_a_writer_that_does_not_come_back_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a synchronous standby is away: the second goes to PostgreSQL by itself."""
    monkeypatch.setattr(sharing, "LINE_SECONDS_MAX", 0.1)
    hangs, goes_on = threading.Event(), threading.Event()
    written: list[int] = []

    def write(events: Sequence[StoredEvent], append: Append) -> None:
        if not hangs.is_set():
            hangs.set()
            assert goes_on.wait(30)
        written.append(len(events))
        append.appended = Appended(True, 1)

    here = sharing.Sharing(write)
    events = [StoredEvent(uuid4(), 1, "Fact", b"{}")]
    other = [StoredEvent(uuid4(), 1, "Fact", b"{}")] * 2
    first = threading.Thread(target=here.append, args=(events, Append()))
    first.start()
    assert hangs.wait(30)
    here.append(other, Append())
    assert written == [2]
    goes_on.set()
    first.join(30)
    assert written == [2, 1]
