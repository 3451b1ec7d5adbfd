"""`tallystick doctor` and the errors of the database: one sentence each, and what to do."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest

from api.process.embedded_postgres import EmbeddedPostgres
from cli.operating import doctor
from ledger import advisory, migrate
from ledger.beside import timer_runs
from projections import tables
from projections.income.earnings import EARNINGS
from tests.processes import free_port
from tests.scenes import shell
from tests.scenes.shell import tallystick


class Machine(shell.Machine):
    """One whose port nobody listens on."""

    def __init__(self, folder: Path, database: str) -> None:
        super().__init__(folder, database)
        self.port = free_port()

    def run(self, *arguments: object, **more: object) -> shell.Ran:
        return super().run(*arguments, **{"PORT": self.port, **more})

    def checks(self, **more: object) -> tuple[int, dict[str, Any]]:
        ran = self.run("doctor", "--json", **more)
        return ran.code, {each["name"]: each for each in ran.document["checks"]}


@pytest.fixture
def machine(tmp_path: Path, database: str) -> Machine:
    return Machine(tmp_path / "data", database)


def test_a_sound_installation_has_no_failed_check(machine: Machine) -> None:
    """The tests' server runs without fsync: that, and that alone, is told as failed."""
    assert machine.run("admin", "bootstrap").code == 0
    code, told = machine.checks()
    assert [name for name, each in told.items() if each["state"] == "failed"] == ["durability"]
    assert code == 1
    assert "fsync off" in told["durability"]["said"]
    assert told["database"]["said"].startswith("PostgreSQL 18")
    for name in ("schema", "roles", "keys", "clock", "processors"):
        assert told[name]["state"] == "ok", told[name]
    assert (told["chain"]["state"], told["server"]["state"]) == ("absent", "absent")
    assert told["timers"]["state"] == "warn", "none has run"
    text = machine.run("doctor")
    assert "durability: set fsync = on" in text.out


def test_lost_keys_late_timers_and_an_open_folder_are_told(machine: Machine) -> None:
    assert machine.run("admin", "bootstrap").code == 0
    (machine.folder / "keys").chmod(0o755)
    now_us = time.time_ns() // 1_000
    with psycopg.connect(machine.database, autocommit=True) as connection:
        timer_runs.record(connection, "pin", now_us, 60_000_000)
        timer_runs.record(connection, "chain", now_us, 60_000_000, "NodeFailed: x")
    _, told = machine.checks()
    assert (told["keys"]["state"], "chmod 700" in told["keys"]["todo"]) == ("warn", True)
    assert told["timers"]["said"] == "chain: NodeFailed: x"
    (machine.folder / "keys" / "blinding.key").unlink()
    code, told = machine.checks()
    assert (code, told["keys"]["state"]) == (1, "failed")
    assert told["keys"]["said"] == "blinding.key missing"


def test_a_server_that_was_waited_for_in_vain_has_failed(machine: Machine) -> None:
    ran = machine.run("doctor", "--wait", 1, "--json")
    (server,) = (each for each in ran.document["checks"] if each["name"] == "server")
    assert (ran.code, server["state"]) == (1, "failed")
    assert "none answered" in server["said"]


def test_a_server_on_another_port_is_asked_where_it_was_told_to_listen(machine: Machine) -> None:
    class Ready(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"status": "ready"}')

    with HTTPServer(("127.0.0.1", 0), Ready) as server:
        port, server.timeout = server.server_address[1], 30
        with ThreadPoolExecutor(1) as beside:
            beside.submit(server.handle_request)
            told = machine.run("doctor", "--port", port, "--json").document
    (check,) = (each for each in told["checks"] if each["name"] == "server")
    assert (check["state"], f"ready on http://127.0.0.1:{port}/" in check["said"]) == ("ok", True)


def test_a_database_that_a_server_of_this_machine_lost_has_failed_whatever_is_named(
    machine: Machine,
) -> None:
    code, told = machine.checks(DATABASE_URL="", URL="")
    assert (code, told["database"]["state"]) == (1, "failed"), "no server is named"
    assert not any(name.startswith("server of") for name in told)
    away = f"http://127.0.0.1:{free_port()}"
    _, told = machine.checks(DATABASE_URL="", URL=away)
    assert told["database"]["state"] == "absent", "this machine is no server"
    assert machine.run("admin", "bootstrap").code == 0
    _, told = machine.checks(DATABASE_URL="", URL=away)
    assert told["database"]["state"] == "failed"
    assert "the keys of one are in" in told["database"]["said"]


def test_no_part_of_an_address_that_cannot_be_read_is_told(machine: Machine) -> None:
    ran = machine.run("doctor", "--json", DATABASE_URL="postgresql://me:S3CR%ETPW@127.0.0.1/x")
    assert ran.code == 1
    assert "S3CR" not in ran.out + ran.err
    assert "cannot be read" in ran.out


def test_a_setting_that_waits_for_no_standby_is_told() -> None:
    class Told:
        """A database with these settings, asked as doctor asks."""

        def __init__(self, **settings: str) -> None:
            self.settings = settings

        def execute(self, _query: str | bytes, names: tuple[str] | None = None) -> Told:
            self.row = (False,) if names is None else (self.settings.get(names[0], "on"),)
            return self

        def fetchone(self) -> tuple[str | bool]:
            return self.row

    for standbys, state in (("", "ok"), ("first", "warn")):
        told: Any = Told(synchronous_commit="local", synchronous_standby_names=standbys)
        assert doctor._durability(told).state == state


def test_a_migration_waits_for_the_one_before_it_and_has_a_name_meanwhile(machine: Machine) -> None:
    waiting = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND application_name = 'tallystick migrate' AND wait_event = 'advisory'"""
    with (
        psycopg.connect(machine.database, autocommit=True) as before,
        ThreadPoolExecutor(1) as pool,
    ):
        advisory.lock(before, migrate.LOCK_ID, "the migrations")
        after = pool.submit(machine.run, "migrate")
        deadline = time.monotonic() + 30
        while before.execute(waiting).fetchone() == (0,) and time.monotonic() < deadline:
            time.sleep(0.05)
        is_named, is_waiting = before.execute(waiting).fetchone() == (1,), not after.done()
        advisory.unlock(before, migrate.LOCK_ID)
        assert is_named
        assert is_waiting
        assert after.result().code == 0


def test_what_a_killed_proof_has_left_is_told_and_removed_by_the_next_start(
    machine: Machine,
) -> None:
    assert machine.run("migrate").code == 0
    with psycopg.connect(machine.database, autocommit=True) as connection:
        tables.create(connection, EARNINGS, schema="proj_earnings_next", is_kept=False)
        with tables.building(connection):
            assert machine.checks()[1]["views"]["state"] == "ok", "it is being built"
        _, told = machine.checks()
        assert told["views"]["state"] == "warn"
        assert "proj_earnings_next" in told["views"]["said"]
        assert machine.run("migrate").code == 0
        assert tables.left_behind(connection) == {}
        assert machine.checks()[1]["views"]["state"] == "ok"


@pytest.mark.parametrize(
    ("role", "table"), [("tallystick_app", "usage_event"), ("tallystick_projections", "posting")]
)
def test_no_table_of_the_log_may_be_written_by_another_way(
    machine: Machine, role: str, table: str
) -> None:
    assert machine.run("migrate").code == 0
    with psycopg.connect(machine.database, autocommit=True) as connection:
        connection.execute(f"GRANT DELETE ON {table} TO {role}".encode())
    _, told = machine.checks()
    assert told["roles"]["state"] == "failed"
    assert told["roles"]["said"] == f"{role} may write into the log directly: {table}"


def test_a_role_that_writes_past_the_functions_is_told(machine: Machine) -> None:
    assert machine.run("admin", "bootstrap").code == 0
    with psycopg.connect(machine.database, autocommit=True) as connection:
        connection.execute("GRANT INSERT ON market_events TO tallystick_app")
    _, told = machine.checks()
    assert told["roles"]["state"] == "failed"
    assert "may write into the log" in told["roles"]["said"]


def test_no_database_and_one_of_an_older_or_newer_version_are_told(machine: Machine) -> None:
    code, told = machine.checks(DATABASE_URL="postgresql://x@127.0.0.1:1/none")
    assert (code, told["database"]["state"]) == (1, "failed")
    assert "TALLYSTICK_DATABASE_URL" in told["database"]["todo"]
    code, told = machine.checks(DATABASE_URL="")
    assert "there is none" in told["database"]["said"]
    assert not (machine.folder / "pg").exists(), "doctor makes no database"
    with psycopg.connect(machine.database) as connection:
        connection.execute("DELETE FROM migration WHERE number = 8")
    _, told = machine.checks()
    assert "0008_timers.sql" in told["schema"]["said"]
    with psycopg.connect(machine.database) as connection:
        connection.execute("INSERT INTO migration VALUES (9999, '9999_later.sql', sha256(''))")
    _, told = machine.checks()
    assert "newer version" in told["schema"]["said"]


# --- migrations ------------------------------------------------------------------------------


def test_the_plan_says_what_would_be_applied_and_writes_nothing(
    tmp_path: Path, empty_database: str
) -> None:
    machine = Machine(tmp_path, empty_database)
    planned = machine.run("migrate", "--plan", "--json").document["missing"]
    assert [each["name"] for each in planned] == [each.name for each in migrate.shipped()]
    assert all(len(each["about"]) > 20 for each in planned)
    with psycopg.connect(empty_database) as connection:
        found = connection.execute("SELECT to_regclass('public.migration')").fetchone()
    assert found == (None,)


def test_a_failing_migration_leaves_nothing_of_itself(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = migrate.Migration(9999, "9999_broken.sql", "CREATE TABLE half (); SELECT 1 / 0;")
    shipped = migrate.shipped()
    monkeypatch.setattr(migrate, "shipped", lambda: [*shipped, broken])
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate.migrate(database)
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT to_regclass('public.half'), max(number) FROM migration")
        assert found.fetchone() == (None, shipped[-1].number)


def test_an_upgrade_from_the_landed_schema_keeps_what_was_recorded(
    empty_database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Migrations 1 to 5 are what the last release has: its rows are there after the upgrade."""
    shipped = migrate.shipped()
    monkeypatch.setattr(migrate, "shipped", lambda: shipped[:LANDED])
    migrate.migrate(empty_database)
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("INSERT INTO job_run VALUES ('pin', 5, 5, 60, NULL)")
    monkeypatch.undo()
    machine = Machine(tmp_path / "data", empty_database)
    upgraded = machine.run("migrate", "--json")
    assert upgraded.code == 0, upgraded
    assert upgraded.document["applied"] == [each.name for each in shipped[LANDED:]]
    assert all(f"applying {each.name}" in upgraded.err for each in shipped[LANDED:])
    with psycopg.connect(empty_database) as connection:
        (run,) = timer_runs.read(connection)
    assert (run.name, run.ran_us, run.next_us) == ("pin", 5, None)
    assert machine.run("admin", "bootstrap").code == 0
    assert machine.run("jobs", "--once").code == 0


LANDED = 5


@pytest.mark.parametrize("command", [("migrate",), ("serve",), ("admin", "bootstrap")])
def test_an_error_of_the_database_is_one_sentence_and_a_next_step(
    command: tuple[str, ...], postgres: EmbeddedPostgres, empty_database: str, tmp_path: Path
) -> None:
    name = empty_database.rpartition("/")[2].partition("?")[0]
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS poor")
        connection.execute("CREATE ROLE poor LOGIN")
    poor = empty_database.replace("postgres@", "poor@")
    for address, said in (
        (poor, "CREATEROLE"),
        (empty_database.replace(name, "nowhere"), "TALLYSTICK_DATABASE_URL"),
        ("postgresql://x@127.0.0.1:1/none", "TALLYSTICK_DATABASE_URL"),
    ):
        ran = tallystick(*command, DATABASE_URL=address, DATA_DIR=tmp_path)
        assert ran.code == 1, ran
        assert "Traceback" not in ran.err
        assert said in ran.err
        assert len(ran.err.strip().splitlines()) <= 3, ran.err


def test_an_old_postgres_is_refused_in_a_sentence() -> None:
    with pytest.raises(migrate.PostgresTooOld, match="PostgreSQL 14"):
        migrate._require_version(140_011)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--port", "99999"), "port: must be 65535 or less"),
        (("--ssl-certfile", "nosuch.pem", "--ssl-keyfile", "x"), "ssl_certfile: nosuch.pem"),
    ],
)
def test_a_wrong_setting_is_named(flags: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """users B26: a traceback, and a missing file that was not named."""
    ran = tallystick("serve", *flags, DATA_DIR=tmp_path)
    assert (ran.code, said in ran.err, "Traceback" in ran.err) == (2, True, False), ran
