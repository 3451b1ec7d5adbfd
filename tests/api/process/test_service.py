"""One process of the service: what it opens, what it keeps secret, what it shares."""

from __future__ import annotations

import shutil
import socket
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from api.process import key_files, secret_files
from api.process.clock import SimulatedClock
from api.process.service import ProjectionBehind, Service
from api.settings import Settings
from domain.parties.account import BootstrapOperator
from projections import runner
from projections.parties.access import ACCESS, read_account

NOW_US = 1_795_161_720_000_000


def _settings(folder: Path, database: str) -> Settings:
    return Settings(data_dir=folder, database_url=database)


def _bootstrap(service: Service) -> int:
    command = BootstrapOperator(
        account_id="acct_operator",
        member_id="member_one",
        key_id="k" * 8,
        key_sha256="00" * 32,
        at_us=service.clock.now_us(),
    )
    return service.ledger.handle(command, key=None, now_us=service.clock.now_us()).position


def test_a_view_is_brought_up_to_what_was_just_written(database: str, tmp_path: Path) -> None:
    with Service.open(_settings(tmp_path, database), clock=SimulatedClock(NOW_US)) as service:
        position = _bootstrap(service)
        with service.connection() as connection:
            assert service.follow(connection, [ACCESS]) == position
            assert read_account(connection, "acct_operator") is not None


def test_who_waited_for_another_follower_goes_on_as_soon_as_that_one_is_done(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that comes second finds the view where it wants it, and does not pause first."""
    with Service.open(_settings(tmp_path, database), clock=SimulatedClock(NOW_US)) as service:
        position = _bootstrap(service)
        paused: list[float] = []
        watched = SimpleNamespace(monotonic=time.monotonic, sleep=paused.append)
        monkeypatch.setattr("api.process.service.time", watched)
        with (
            ThreadPoolExecutor(1) as reader,
            service.connection() as first,
            service.connection() as second,
            psycopg.connect(database, autocommit=True) as other,
        ):
            with first.transaction():
                runner.step(first, ACCESS)
                found = reader.submit(service.follow, second, [ACCESS])
                _until_it_waits(other, second.info.backend_pid)
            assert found.result(timeout=10) == position
        assert paused == []


def _until_it_waits(other: psycopg.Connection[Any], backend_pid: int) -> None:
    """Until that session waits for a lock of another one."""
    query = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
    ends = time.monotonic() + 10
    while other.execute(query, (backend_pid,)).fetchone() != (True,):
        assert time.monotonic() < ends


def test_a_start_asks_all_on_one_connection(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL begins a process for each. The pools make theirs meanwhile."""
    with Service.open(_settings(tmp_path, database)) as first:
        _bootstrap(first)
    asked: list[int] = []
    plain = psycopg.Connection.execute

    def execute(self: Any, *query: Any, **options: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            asked.append(self.info.backend_pid)
        return plain(self, *query, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    with Service.open(_settings(tmp_path, database)):
        assert len(set(asked)) == 1


def test_a_connection_that_does_not_get_its_role_is_closed(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Service.open(_settings(tmp_path, database)) as service, psycopg.connect(database) as other:
        monkeypatch.setattr("api.process.service.PROJECTIONS_ROLE", "nobody")
        before = _sessions(other)
        with pytest.raises(psycopg.Error) as kept:  # its traceback keeps the connection alive
            service.connect()
        assert kept.value is not None
        deadline = time.monotonic() + 10
        while _sessions(other) > before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert _sessions(other) == before


def _sessions(other: psycopg.Connection[Any]) -> int:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    row = other.execute(query).fetchone()
    other.rollback()  # a transaction sees the sessions as they were at its first look
    assert row is not None
    return int(row[0])


def test_a_position_nobody_has_written_is_waited_for_and_then_told(
    database: str, tmp_path: Path
) -> None:
    with (
        Service.open(_settings(tmp_path, database)) as service,
        service.connection() as connection,
        pytest.raises(ProjectionBehind),
    ):
        service.follow(connection, [ACCESS], 1, seconds=0.02)


def test_key_files_are_for_their_owner_only_and_stay_the_same(
    database: str, tmp_path: Path
) -> None:
    with Service.open(_settings(tmp_path, database)) as service:
        first = service.server_key
        assert service.signer.verifier_key.name == "localhost/v1/audit/log"
    for name in ("server.key", "sealing.key", "blinding.key", "signer.key"):
        assert stat.S_IMODE((tmp_path / "keys" / name).stat().st_mode) == 0o600
    with Service.open(_settings(tmp_path, database)) as service:
        assert service.server_key == first


def test_keys_are_made_at_the_start_alone(database: str, tmp_path: Path) -> None:
    """A folder that is not mounted any more gets no second signer, and forgets no head."""
    keys = tmp_path / "keys"
    with Service.open(_settings(tmp_path, database)) as service:
        first, kept = service.verifier_key, {one.name: one.read_text() for one in keys.iterdir()}
        assert set(kept) == set(key_files.FILES)
        (keys / "signed-heads").unlink()
        with pytest.raises(FileNotFoundError):
            _ = service.signer
        shutil.rmtree(keys)
        for lost in (lambda: service.verifier_key, lambda: service.signer):
            with pytest.raises(secret_files.SecretUnreadable, match=r"signer\.key is not there"):
                lost()
        assert not keys.exists()
        keys.mkdir()
        for name, text in kept.items():
            secret_files.make(keys / name, text)
        assert (service.verifier_key, str(service.signer.verifier_key)) == (first, first)


def test_of_two_machines_that_open_an_empty_log_at_once_one_makes_its_keys(
    database: str, tmp_path: Path
) -> None:
    """Each made a set of its own: one of them blinded facts and signed heads as another log."""
    folders = [tmp_path / name for name in ("one", "two")]
    at_once = threading.Barrier(len(folders))

    def start(folder: Path) -> str:
        at_once.wait(30)
        try:
            with Service.open(_settings(folder, database)) as service:
                return service.verifier_key
        except key_files.KeysDiffer as refused:
            return str(refused)

    with ThreadPoolExecutor(len(folders)) as pool:
        said = list(pool.map(start, folders))
    refused = [each for each in said if "are not those of this log" in each]
    assert len(refused) == 1, said
    winner, loser = sorted(folders, key=lambda each: said[folders.index(each)] in refused)
    for name in ("blinding.key", "signer.key", "sealing.key", "server.key"):
        why = f"{name} missing: {socket.gethostname()} made the keys of this log in {winner}/keys"
        assert why in refused[0]
    assert "Copy that folder to here; or, as the log is empty" in refused[0]
    assert not list((loser / "keys").iterdir()), "it made none"
    shutil.copytree(winner / "keys", loser / "keys", dirs_exist_ok=True)
    with Service.open(_settings(loser, database)) as service:
        assert service.verifier_key in said
        _bootstrap(service)


@pytest.mark.parametrize("name", ["blinding.key", "signer.key"])
def test_before_the_first_fact_the_keys_are_those_that_were_made(
    database: str, tmp_path: Path, name: str
) -> None:
    with Service.open(_settings(tmp_path, database)):
        pass
    kept = (tmp_path / "keys" / name).read_text()
    (tmp_path / "keys" / name).write_text("ab" * 32 + "\n")
    with pytest.raises(key_files.KeysDiffer, match=rf"{name} differs: .* made the keys"):
        Service.open(_settings(tmp_path, database))
    (tmp_path / "keys" / name).write_text(kept)
    with Service.open(_settings(tmp_path, database)):
        pass


def test_a_server_that_records_nothing_keeps_the_options_of_its_address(
    database: str, tmp_path: Path
) -> None:
    with Service.open(_settings(tmp_path, database)):
        pass
    address = make_conninfo(database, options="-c work_mem=7MB")
    settings = Settings(data_dir=tmp_path, database_url=address, read_only=True)
    with Service.open(settings) as service, service.connection() as connection:
        for name, value in (("work_mem", "7MB"), ("default_transaction_read_only", "on")):
            assert connection.execute("SELECT current_setting(%s)", (name,)).fetchone() == (value,)


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    secret_files.read_or_make(path)
    path.chmod(0o644)
    with pytest.raises(secret_files.SecretUnreadable):
        secret_files.read_or_make(path)


def test_what_is_derived_is_the_same_again_and_differs_by_purpose_and_by_parts() -> None:
    key = bytes(32)
    found = [
        secret_files.derive(key, *told)
        for told in (("api-key", "a", "b"), ("api-key", "ab"), ("api-key", "a"), ("join", "a"))
    ]
    assert len(set(found)) == 4
    assert secret_files.derive(key, "api-key", "a", "b") == found[0]
