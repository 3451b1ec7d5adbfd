"""The stream of one small database: who can read its password, and for whom commits wait."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from api.backup import following
from api.backup.archive import Archive, BackupUnusable
from api.backup.programs import Programs, login
from api.process.embedded_postgres import EmbeddedPostgres
from ledger.log import durable
from tests.processes import until
from tests.servers.standby import folder

SECRET = "only-the-server-knows"


@pytest.fixture(scope="module")
def uri() -> Generator[str, None, None]:
    with folder() as root, EmbeddedPostgres(root / "data", durable=False) as server:
        with psycopg.connect(server.uri, autocommit=True) as connection:
            connection.execute("CREATE ROLE streamer LOGIN REPLICATION")
        yield server.uri


def _waits_for(uri: str, name: str | None = None) -> str:
    with psycopg.connect(uri, autocommit=True) as connection:
        if name is not None:
            connection.execute(
                sql.SQL("ALTER SYSTEM SET synchronous_standby_names = {}").format(sql.Literal(name))
            )
            connection.execute("SELECT pg_reload_conf()")
    with psycopg.connect(uri, autocommit=True) as connection:
        row = connection.execute("SHOW synchronous_standby_names").fetchone()
        assert row is not None
        return str(row[0])


def _follow(uri: str, backups: Path, *, synchronous: bool) -> None:
    """Only what comes before the stream."""
    stop = threading.Event()
    stop.set()
    following.follow(uri, Archive(backups), stop, lambda _said: None, synchronous=synchronous)


def test_no_command_line_shows_the_password_of_the_database(uri: str, tmp_path: Path) -> None:
    stop, said = threading.Event(), list[str]()
    address = make_conninfo(uri, password=SECRET)
    stream = threading.Thread(
        target=following.follow, args=(address, Archive(tmp_path / "to"), stop, said.append)
    )
    stream.start()
    try:
        ours = bytes(tmp_path / "to" / "wal")
        until(lambda: any(ours in line for line in _command_lines()))
        assert not [line for line in _command_lines() if SECRET.encode() in line]
    finally:
        stop.set()
        stream.join()
    assert said == [f"streaming into {tmp_path / 'to' / 'wal'}; stop it with Ctrl-C"]


def test_a_second_stream_into_the_folder_is_refused_and_says_why(uri: str, tmp_path: Path) -> None:
    stop, archive = threading.Event(), Archive(tmp_path / "to")
    stream = threading.Thread(
        target=following.follow, args=(uri, archive, stop, lambda _said: None)
    )
    stream.start()
    try:
        until(lambda: any(bytes(archive.wal) in line for line in _command_lines()))
        with pytest.raises(BackupUnusable, match="another `backup --follow` streams into"):
            _follow(uri, archive.folder, synchronous=True)
        assert _waits_for(uri) == "", "nothing was changed"
        said, other = list[str](), threading.Event()
        elsewhere = Archive(tmp_path / "elsewhere")
        second = threading.Thread(
            target=following.follow, args=(uri, elsewhere, other, said.append)
        )
        second.start()
        until(lambda: len(said) > 1)
        other.set()
        second.join()
        assert f'slot "{following.NAME}" is active' in said[1], "not only that it is disconnected"
    finally:
        stop.set()
        stream.join()


def test_the_end_of_a_stream_that_is_waited_for_says_that_the_market_stands_still(
    uri: str, tmp_path: Path
) -> None:
    stop, said = threading.Event(), list[str]()
    stop.set()
    until(lambda: _waits_for(uri, following.NAME) == following.NAME)
    following.follow(uri, Archive(tmp_path / "to"), stop, said.append)
    assert "the market waits for this stream" in said[-1]
    assert "--asynchronous" in said[-1]
    following.follow(uri, Archive(tmp_path / "to"), stop, said.append, synchronous=False)
    until(lambda: _waits_for(uri) == "")
    assert said[-1].startswith("streaming into")


def _slots(uri: str) -> list[str]:
    with psycopg.connect(uri, autocommit=True) as connection:
        return [
            name for (name,) in connection.execute("SELECT slot_name FROM pg_replication_slots")
        ]


def test_a_stream_that_is_refused_leaves_no_slot_that_fills_the_disk(
    uri: str, tmp_path: Path
) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        for name in _slots(uri):
            durable.drop_slot(connection, name)
        with pytest.raises(BackupUnusable, match="ALTER SYSTEM SET synchronous_standby_names = 't"):
            _follow(make_conninfo(uri, user="streamer"), tmp_path / "to", synchronous=True)
        assert _slots(uri) == []
        until(lambda: _waits_for(uri, "b") == "b")
        with pytest.raises(BackupUnusable, match="is not ended here"):
            _follow(uri, tmp_path / "to", synchronous=True)
        until(lambda: _waits_for(uri, "") == "")
        assert _slots(uri) == []
        _follow(uri, tmp_path / "to", synchronous=False)
        assert durable.kept_for(connection, following.NAME) is not None, "doctor tells of it"


def test_a_stream_that_outlives_its_command_keeps_the_folder(uri: str, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "to")
    archive.prepare()
    with following._alone(archive) as lock:
        left = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
    try:
        with pytest.raises(BackupUnusable, match="where it was killed"):
            _follow(uri, archive.folder, synchronous=False)
    finally:
        left.kill()
        left.wait()


def _command_lines() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:  # it has ended
            continue
    return found


def test_a_program_gets_the_password_in_its_environment_alone() -> None:
    address, env = login(f"postgresql://me:{SECRET}@db.example/market", application_name="b")
    assert SECRET not in address
    assert env["PGPASSWORD"] == SECRET
    told = Programs(Path("/usr/bin"), durable=False).run("env", as_us=True, env=env).stdout
    assert f"PGPASSWORD={SECRET}\n" in told


def test_a_standby_that_commits_wait_for_is_not_forgotten(uri: str, tmp_path: Path) -> None:
    for synchronous in (True, False):
        until(lambda: _waits_for(uri, "b") == "b")
        with pytest.raises(BackupUnusable, match="'b', and that promise is not ended here"):
            _follow(uri, tmp_path / "to", synchronous=synchronous)
        assert _waits_for(uri) == "b"
    until(lambda: _waits_for(uri, "") == "")


def test_only_the_first_synchronous_start_needs_a_superuser(uri: str, tmp_path: Path) -> None:
    _follow(uri, tmp_path / "to", synchronous=True)
    until(lambda: _waits_for(uri) == following.NAME)
    login_only = make_conninfo(uri, user="streamer")
    _follow(login_only, tmp_path / "to", synchronous=True)
    with pytest.raises(BackupUnusable, match="only a superuser"):
        _follow(login_only, tmp_path / "to", synchronous=False)
    assert _slots(uri) == [following.NAME]
    _follow(uri, tmp_path / "to", synchronous=False)
    until(lambda: _waits_for(uri) == "")
