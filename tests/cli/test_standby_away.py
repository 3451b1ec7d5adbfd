"""A market whose synchronous standby is away: all places say so, and its server ends."""

from __future__ import annotations

import time
import urllib.request
from urllib.error import HTTPError

import psycopg

from api.process.embedded_postgres import EmbeddedPostgres
from cli.serve import DRAIN_SECONDS
from tests.cli.test_serve import serving
from tests.processes import until
from tests.scenes.shell import Machine
from tests.servers.standby import folder

WAITING = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def test_it_is_told_by_doctor_readyz_metrics_and_log_and_sigterm_ends_the_server() -> None:
    with folder() as root, EmbeddedPostgres(root / "pg", durable=True) as database:
        machine = Machine(root / "data", database.uri)
        assert machine.run("admin", "bootstrap").code == 0
        with (
            serving(root / "data", database.uri) as server,
            psycopg.connect(database.uri, autocommit=True) as look,
        ):
            until(lambda: _answer(server.address, "readyz")[0] == 200)
            look.execute("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
            look.execute("SELECT pg_reload_conf()")
            until(lambda: look.execute(WAITING).fetchone() == (True,))
            status, told = _answer(server.address, "readyz")
            assert (status, '"standby":"away"' in told) == (503, True), told
            assert "tallystick_standby_away 1.0" in _answer(server.address, "metrics")[1]
            checks = {
                each["name"]: each for each in machine.run("doctor", "--json").document["checks"]
            }
            assert "too few synchronous standbys stream" in checks["durability"]["said"]
            assert "--follow" in checks["durability"]["todo"]
            began = time.monotonic()
            code, said = server.stop()
            assert (code, "Traceback" in said) == (0, False), said
            assert time.monotonic() - began < 3 * DRAIN_SECONDS


def test_a_server_that_starts_without_its_standby_says_what_it_waits_for() -> None:
    with folder() as root, EmbeddedPostgres(root / "pg", durable=False) as database:
        machine = Machine(root / "data", database.uri)
        assert machine.run("admin", "bootstrap").code == 0
        with psycopg.connect(database.uri, autocommit=True) as look:
            look.execute("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
            look.execute("SELECT pg_reload_conf()")
        refused = machine.run("admin", "recover-key", "--json")
        assert (refused.code, refused.document["failed"][:17]) == (1, "nothing was begun")
        with serving(root / "data", database.uri, "--no-jobs") as server:
            until(lambda: "too few synchronous standbys stream" in server.stderr.read_text())
            assert server.stop()[0] == 0


def _answer(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}/{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""
