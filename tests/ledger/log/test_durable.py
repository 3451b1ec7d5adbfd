"""An acknowledgement is durable, whatever is cancelled: against a real synchronous standby that is
gone, so that each commit waits for ever.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from api.process.leading import leading
from ledger import migrate
from ledger.beside import chain_store, timer_runs
from ledger.log.durable import (
    DurableConnection,
    NotReplicated,
    cancelled_after,
    given_up_in_time,
    standby_is_away,
    unwaited,
)
from ledger.log.handle import LogBusy, OutcomeUnknown
from ledger.log.usage import Item, Receipt, Status, Unavailable, UsageLog
from ledger.tree import trees
from ledger.tree.checkpoint import Signer
from tests.processes import until
from tests.scenes.told import NOW_US, deposited, do, key, ledger_on
from tests.scenes.usage_reports import Node
from tests.servers.standby import Pair, pair

pytestmark = pytest.mark.timeout(120)
CANCEL = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
WRITE = "SELECT pg_logical_emit_message(true, 'test', 'any write')"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
END = CANCEL.replace("cancel", "terminate")


@pytest.fixture(scope="module")
def servers() -> Generator[Pair, None, None]:
    with pair() as made:
        migrate.migrate(made.primary.uri)
        yield made


@pytest.fixture
def alone(servers: Pair) -> Generator[Pair, None, None]:
    """The standby is gone when the test begins."""
    servers.standby.stop()
    yield servers
    _back(servers)


def _back(servers: Pair) -> None:
    if servers.primary.ask("SELECT count(*) FROM pg_stat_replication") == (0,):
        servers.standby.start()
    servers.wait_for_standby()


def _while_waiting(servers: Pair, how: str, work: Callable[[], Any]) -> Future[Any]:
    """Do something whose commit waits for the standby, and cancel that wait."""
    with ThreadPoolExecutor(1) as threads:
        doing = threads.submit(work)
        until(lambda: servers.primary.ask(how) != (0,))
        doing.exception(30)
    return doing


def test_without_the_mend_postgresql_answers_success_with_a_warning(alone: Pair) -> None:
    """What the rest of this file is about: were this to fail, the mend would not be needed."""
    with psycopg.connect(alone.primary.uri, autocommit=True) as plain:
        warned: list[str | None] = []
        plain.add_notice_handler(lambda told: warned.append(told.source_function))
        done = _while_waiting(alone, CANCEL, lambda: plain.execute(WRITE))
        assert done.exception() is None
        assert warned == ["SyncRepWaitForLSN"]
        assert not plain.closed


@pytest.mark.parametrize("how", [CANCEL, END])
def test_a_cancelled_wait_is_an_error_and_the_end_of_the_connection(alone: Pair, how: str) -> None:
    connection = DurableConnection.connect(alone.primary.uri, autocommit=True)
    done = _while_waiting(alone, how, lambda: connection.execute(WRITE))
    assert isinstance(done.exception(), psycopg.OperationalError)
    assert connection.closed


def _named(servers: Pair, names: str) -> Callable[[], bool]:
    """From now on commits wait for these; whether the setting is in force."""
    with psycopg.connect(servers.primary.uri, autocommit=True) as connection:
        connection.execute(
            sql.SQL("ALTER SYSTEM SET synchronous_standby_names = {}").format(sql.Literal(names))
        )
        connection.execute("SELECT pg_reload_conf()")
    return lambda: servers.primary.ask("SHOW synchronous_standby_names") == (names,)


def test_a_standby_that_is_away_is_seen_by_any_login(alone: Pair) -> None:
    with psycopg.connect(alone.primary.uri, autocommit=True) as connection:
        connection.execute("SET ROLE tallystick_app")
        until(lambda: standby_is_away(connection))
        with unwaited(connection):
            assert not standby_is_away(connection), "this one waits for nothing"
        _back(alone)
        assert not standby_is_away(connection)


def test_one_standby_is_too_few_where_two_are_demanded(servers: Pair) -> None:
    names = str(servers.primary.ask("SHOW synchronous_standby_names")[0])
    with psycopg.connect(servers.primary.uri, autocommit=True) as connection:
        assert not standby_is_away(connection)
        for demanded in (f"FIRST 2 ({names}, other)", f"any 2 ({names}, other)", "2 (x, y)", "x"):
            until(_named(servers, demanded))
            assert standby_is_away(connection), demanded
        for demanded in (f"ANY 1 ({names}, other)", f"{names}, other", names):
            until(_named(servers, demanded))
            assert not standby_is_away(connection), demanded


def test_a_login_that_sees_no_states_tells_by_its_own_waits(servers: Pair) -> None:
    """Another stream hides from it that the one which is waited for is away."""
    names = str(servers.primary.ask("SHOW synchronous_standby_names")[0])
    with psycopg.connect(servers.primary.uri, autocommit=True) as superuser:
        superuser.execute("CREATE ROLE plain LOGIN")
    plain = make_conninfo(servers.primary.uri, user="plain")
    writing = DurableConnection.connect(plain, autocommit=True)
    try:
        until(_named(servers, "gone"))
        with psycopg.connect(plain, autocommit=True) as connection, ThreadPoolExecutor(1) as pool:
            assert not standby_is_away(connection), "nothing waits yet"
            doing = pool.submit(writing.execute, WRITE)
            until(lambda: standby_is_away(connection))
            until(_named(servers, names))
            doing.result(30)
            assert not standby_is_away(connection)
    finally:
        until(_named(servers, names))
        writing.close()


def test_who_is_told_to_stop_waits_for_a_standby_no_longer_than_it_is_given(alone: Pair) -> None:
    stop, connection = threading.Event(), DurableConnection.connect(alone.primary.uri)
    with ThreadPoolExecutor(1) as threads, connection, cancelled_after(stop, 0.2):
        doing = threads.submit(_write, connection)
        until(lambda: alone.primary.ask(WAITING) == (1,))
        assert not doing.done()
        stop.set()
        assert isinstance(doing.exception(30), NotReplicated)


def _write(connection: psycopg.Connection[Any]) -> None:
    connection.execute(WRITE)
    connection.commit()


def test_how_a_timer_went_and_what_may_be_lost_wait_for_no_standby(alone: Pair) -> None:
    with DurableConnection.connect(alone.primary.uri, autocommit=True) as connection:
        timer_runs.record(connection, "pin", NOW_US, 1, "waits")
        with leading(connection, "alerts", rests_on_log=False) as leads, unwaited(connection):
            assert leads
            connection.execute(WRITE)
        assert timer_runs.read(connection)[0].error == "waits"


def test_an_append_that_no_standby_has_is_not_answered_and_found_by_the_retry(alone: Pair) -> None:
    def deposit(name: str) -> Callable[[], Any]:
        return lambda: ledger.handle(do(deposited(name, 5)), key=key(name), now_us=NOW_US)

    with ledger_on(alone.primary.uri) as ledger:
        first = _while_waiting(alone, CANCEL, deposit("d1"))
        assert isinstance(first.exception(), OutcomeUnknown)
        position, _ = ledger.market.head()
        # Asked again while the standby is away: it is recorded here, and that is not enough.
        again = _while_waiting(alone, CANCEL, deposit("d1"))
        assert isinstance(again.exception(), OutcomeUnknown)
        known = _while_waiting(alone, CANCEL, lambda: ledger.told_before(key("d1")))
        assert known.exception() is not None
        _back(alone)
        outcome = deposit("d1")()
        assert (outcome.position, outcome.replayed) == (position, True)
        assert ledger.books.balance("world:bank") == 5
    until(lambda: alone.standby.ask("SELECT pos FROM market_events_head") == (position,))


def test_a_thread_that_waits_for_the_standby_holds_up_no_other(alone: Pair) -> None:
    """The others are told that the log is busy, as they are by PostgreSQL."""
    with ledger_on(alone.primary.uri) as ledger, ThreadPoolExecutor(3) as threads:

        def deposit(name: str) -> Any:
            return ledger.handle(do(deposited(name, 5)), key=None, now_us=NOW_US)

        first = threads.submit(deposit, "waits")
        until(lambda: alone.primary.ask(CANCEL.replace("pg_cancel_backend(pid)", "*")) == (1,))
        others = [threads.submit(deposit, f"other-{number}") for number in range(2)]
        assert [type(each.exception(20)) for each in others] == [LogBusy, LogBusy]
        assert not first.done()
        _back(alone)
        assert first.exception(20) is None


def test_a_machine_that_is_cut_off_is_given_up_as_the_address_says_or_after_25_seconds() -> None:
    told = conninfo_to_dict(given_up_in_time("postgresql://tally@a,b/log?keepalives_idle=60"))
    assert (told["host"], told["keepalives_idle"]) == ("a,b", "60")
    assert (told["keepalives_count"], told["tcp_user_timeout"]) == ("3", "15000")


def test_a_report_that_no_standby_has_gets_no_receipt_not_as_a_duplicate_either(
    alone: Pair,
) -> None:
    node = Node("durable")
    items = node.items(2)

    def sent(some: list[Item]) -> Callable[[], list[Receipt]]:
        async def append() -> list[Receipt]:
            async with UsageLog(alone.primary.uri) as log:
                return await log.append(some)

        return lambda: asyncio.run(append())

    for _ in range(2):  # stored, then found
        done = _while_waiting(alone, CANCEL, sent(items))
        assert isinstance(done.exception(), Unavailable)
    assert alone.primary.ask("SELECT count(*) FROM usage_event") == (2,)
    _back(alone)
    assert [one.status for one in sent(items)()] == [Status.DUPLICATE] * 2
    until(lambda: alone.standby.ask("SELECT count(*) FROM usage_event") == (2,))


def test_no_head_is_signed_and_nothing_is_sent_of_what_no_standby_has(
    alone: Pair, tmp_path: Path
) -> None:
    """After the cancelled append: the head, the payouts' outbox and every timer wait."""
    with ledger_on(alone.primary.uri) as ledger:
        _while_waiting(
            alone, CANCEL, lambda: ledger.handle(do(deposited("d2", 1)), key=None, now_us=NOW_US)
        )
    heads = tmp_path / "signed-heads"
    heads.touch()
    signer = Signer(heads, "example.com/log", b"s" * 32)
    sent: list[str] = []

    def sign(connection: psycopg.Connection[Any]) -> None:
        trees.publish_checkpoint(connection, signer, NOW_US)
        sent.append("a head")

    def pay(connection: psycopg.Connection[Any]) -> None:
        with chain_store.key_lock(connection, "0x1", 1):
            sent.append("a transaction")

    def lead(connection: psycopg.Connection[Any]) -> None:
        with leading(connection, "cash_out") as leads:
            assert leads
            sent.append("a payout")

    with signer:
        for work in (sign, pay, lead):
            with DurableConnection.connect(alone.primary.uri, autocommit=True) as connection:
                done = _while_waiting(alone, CANCEL, lambda: work(connection))  # noqa: B023
                assert isinstance(done.exception(), NotReplicated), work.__name__
    assert sent == []
    assert heads.read_text() == ""


def test_a_statement_timeout_does_not_end_the_wait(alone: Pair) -> None:
    with DurableConnection.connect(alone.primary.uri, autocommit=True) as connection:
        connection.execute("SET statement_timeout = '100ms'")
        with ThreadPoolExecutor(1) as threads:
            doing = threads.submit(connection.execute, WRITE)
            with pytest.raises(TimeoutError):
                doing.result(0.5)
            _back(alone)
            assert doing.exception(30) is None
