"""Lost connections, waiting writers and a killed server: recorded exactly once, or not at all."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from eventsourcing.persistence import OperationalError, StoredEvent

from api.process.embedded_postgres import EmbeddedPostgres
from ledger.log.handle import InProgress, Ledger, LogBusy, OutcomeUnknown
from ledger.migrate import migrate
from tests.conftest import Databases
from tests.scenes.told import NOW_US, deposited, do, key, ledger_on, withdrawn

KILLS = 3


def _lose_the_answer_once(ledger: Ledger) -> None:
    """The next append is committed, and the connection is lost before its answer arrives."""
    recorder: Any = ledger.market.recorder
    insert = recorder.insert_events

    def insert_events(events: Sequence[StoredEvent], **kwargs: Any) -> Any:
        recorder.insert_events = insert
        insert(events, **kwargs)
        raise OperationalError("connection lost")

    recorder.insert_events = insert_events


def test_an_answer_lost_after_the_commit_is_found_again(database: str) -> None:
    with ledger_on(database) as ledger:
        _lose_the_answer_once(ledger)
        outcome = ledger.handle(do(deposited("d", 5)), key=key("k"), now_us=NOW_US)
        assert outcome.position == 1
        assert ledger.market.head()[0] == 1
        assert ledger.books.balance("world:bank") == 5


def test_without_a_key_a_lost_answer_is_said_to_be_unknown(database: str) -> None:
    with ledger_on(database) as ledger:
        _lose_the_answer_once(ledger)
        with pytest.raises(OutcomeUnknown):
            ledger.handle(do(withdrawn("a")), key=None, now_us=NOW_US)


def test_a_connection_killed_while_appending_is_no_loss(database: str) -> None:
    with ledger_on(database) as ledger, psycopg.connect(database) as holder:
        ledger.handle(do(withdrawn("a")), key=None, now_us=NOW_US)
        holder.execute("SELECT FROM market_events_head FOR UPDATE")
        outcomes: list[int] = []

        def append() -> None:
            outcome = ledger.handle(do(deposited("d", 5)), key=key("k"), now_us=NOW_US)
            outcomes.append(outcome.position)

        thread = threading.Thread(target=append)
        thread.start()
        with psycopg.connect(database, autocommit=True) as other:
            killed = 0
            while not killed:
                row = other.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
                ).fetchone()
                assert row is not None
                killed = row[0]
                time.sleep(0.01)
        holder.rollback()
        thread.join()
        assert outcomes == [2]
        assert ledger.books.balance("world:bank") == 5


def test_a_log_that_is_held_too_long_is_busy_and_nothing_is_recorded(database: str) -> None:
    with ledger_on(database) as ledger, psycopg.connect(database) as holder:
        holder.execute("SELECT FROM market_events_head FOR UPDATE")
        with pytest.raises(LogBusy):
            ledger.handle(do(withdrawn("a")), key=key("k"), now_us=NOW_US)
        holder.rollback()
        assert ledger.handle(do(withdrawn("a")), key=key("k"), now_us=NOW_US).position == 1


def test_a_duplicate_of_a_command_still_running_is_told_so(database: str) -> None:
    with ledger_on(database) as ledger, psycopg.connect(database) as first:
        first.execute("INSERT INTO command VALUES ('acct_a', 'k', sha256(''), 200, '', 0, 0)")
        with pytest.raises(InProgress):
            ledger.handle(do(withdrawn("a")), key=key("k"), now_us=NOW_US)
        first.rollback()


@pytest.mark.timeout(120)
@pytest.mark.slow(
    "tests/e2e/test_kill.py::test_a_kill_of_each_process_loses_nothing_that_was_acknowledged"
)
def test_a_killed_server_keeps_every_acknowledged_fact_exactly_once() -> None:
    with tempfile.TemporaryDirectory(prefix="tally") as folder:
        Path(folder).chmod(0o755)
        with EmbeddedPostgres(Path(folder), durable=False) as server:
            database = server.create_database("kill")
            migrate(database)
            with ledger_on(database) as ledger:
                acknowledged = _write_through_kills(server, ledger)
            with ledger_on(database) as ledger:
                facts = ledger.market.read_facts(0, 100_000)
                recorded = [fact.fact.deposit_id for fact in facts]
                assert len(set(recorded)) == len(recorded), "a command counted twice"
                assert acknowledged <= set(recorded)
                assert [fact.position for fact in facts] == list(range(1, len(facts) + 1))
                assert ledger.books.faults() == []
                assert ledger.books.balance("world:bank") == len(facts)


def _write_through_kills(server: EmbeddedPostgres, ledger: Ledger) -> set[str]:
    acknowledged: set[str] = set()
    done = threading.Event()

    def write(writer: int) -> None:
        number = 0
        while not done.is_set():
            number += 1
            name = f"d{writer}-{number}"
            ledger.handle(do(deposited(name, 1)), key=key(name), now_us=NOW_US)
            acknowledged.add(name)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    pause = random.Random(7)
    for kill in range(KILLS):
        before = len(acknowledged)
        while len(acknowledged) < before + 20:
            time.sleep(pause.random() / 20)
        os.kill(server.pid, signal.SIGKILL)
        server.ensure_running()
        assert kill < KILLS
    done.set()
    for thread in threads:
        thread.join()
    return acknowledged


def test_a_database_that_is_gone_makes_the_log_busy_not_the_caller_wait_for_ever(
    postgres: Databases, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.log.recorder.POOL_SECONDS_MAX", 1)
    with ledger_on(postgres.create_database("gone", template=template)) as ledger:
        ledger.handle(do(withdrawn("a")), key=key("k1"), now_us=NOW_US)
        with psycopg.connect(postgres.uri, autocommit=True) as connection:
            connection.execute("DROP DATABASE gone WITH (FORCE)")
        with pytest.raises(LogBusy):
            ledger.handle(do(), key=key("k2"), now_us=NOW_US)
