"""A lock that another session keeps is waited for within bounds, then it is told whose it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from api.process import key_files
from api.process.leading import keeping_out
from cli import terminal
from ledger import advisory, migrate
from ledger.beside import chain_store
from projections import tables
from projections.income.earnings import EARNINGS

HOLDER = "a server that hangs"
Connection = psycopg.Connection[Any]
Hold = Callable[[Connection], AbstractContextManager[None]]


@contextmanager
def _migrating(connection: Connection) -> Any:
    advisory.lock(connection, migrate.LOCK_ID, "the migrations")
    yield


def _migrate(connection: Connection) -> None:
    migrate.migrate(connection.info.dsn)


def _ensure(connection: Connection) -> None:
    tables.drop(connection, EARNINGS)
    tables.ensure(connection, [EARNINGS])


def _job(connection: Connection) -> AbstractContextManager[None]:
    return keeping_out(connection, "accrual")


def _key(connection: Connection) -> AbstractContextManager[None]:
    return chain_store.key_lock(connection, "0x1", 1)


def _entered(hold: Hold) -> Callable[[Connection], None]:
    def wait(connection: Connection) -> None:
        with hold(connection):
            pass

    return wait


@pytest.mark.parametrize(
    ("hold", "wait"),
    [
        pytest.param(_migrating, _migrate, id="migrate"),
        pytest.param(tables.exclusive, _ensure, id="views"),
        pytest.param(_job, _entered(_job), id="job"),
        pytest.param(_key, _entered(_key), id="key of a chain"),
    ],
)
def test_a_wait_for_a_process_that_hangs_ends_and_names_it(
    database: str, hold: Hold, wait: Callable[[Connection], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        psycopg.connect(database, autocommit=True, application_name=HOLDER) as holder,
        psycopg.connect(database, autocommit=True) as connection,
        hold(holder),
    ):
        monkeypatch.setattr(advisory, "SECONDS_MAX", 0.2)
        named = rf"session {holder.info.backend_pid} \({HOLDER}, as .*connected since .* UTC\)"
        with pytest.raises(advisory.LockHeld, match=f"{named} has the lock of .*0.2 s") as held:
            wait(connection)
        assert connection.execute("SHOW lock_timeout").fetchone() == ("0",), "as it was"
    found = terminal.expected(held.value)
    assert found is not None
    assert found[0] == 1
    assert "pg_terminate_backend" in found[1]


def test_two_servers_that_open_one_log_at_once_are_not_kept_for_ever(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        psycopg.connect(database, autocommit=True) as first,
        psycopg.connect(database, autocommit=True) as second,
    ):
        with keeping_out(first, "key_files"):
            monkeypatch.setattr(advisory, "SECONDS_MAX", 0.2)
            with pytest.raises(advisory.LockHeld, match="the job key_files"):
                key_files.open_log(second, tmp_path, "log.example")
        key_files.open_log(second, tmp_path, "log.example")


def test_a_lock_that_is_handed_over_is_had(database: str, caplog: pytest.LogCaptureFixture) -> None:
    """The next server of a restart waits until the one before has done its part."""
    key = 2**63 - 5
    with (
        psycopg.connect(database, autocommit=True) as before,
        psycopg.connect(database, autocommit=True) as after,
    ):
        number = before.info.backend_pid
        for wanted in (key, -key):
            advisory.lock(before, wanted, "one")
            handed = threading.Timer(0.3, advisory.unlock, (before, wanted))
            handed.start()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(advisory, "TOLD_EVERY_SECONDS", 0.1)
                advisory.lock(after, wanted, "one")
            handed.join()
            assert not advisory.try_lock(before, wanted)
    assert caplog.text.count(f"session {number} (") >= 2


def test_those_that_share_a_lock_keep_out_one_that_wants_it_alone(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        psycopg.connect(database, autocommit=True) as first,
        psycopg.connect(database, autocommit=True) as second,
    ):
        advisory.lock(first, 7, "one", shared=True)
        advisory.lock(second, 7, "one", shared=True)
        advisory.unlock(second, 7, shared=True)
        monkeypatch.setattr(advisory, "SECONDS_MAX", 0.1)
        with pytest.raises(advisory.LockHeld):
            advisory.lock(second, 7, "one")
        advisory.unlock(first, 7, shared=True)
        assert advisory.try_lock(second, 7)
