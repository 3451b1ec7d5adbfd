"""`tallystick serve` as a process: its workers answer, TLS is TLS, SIGTERM ends all of it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import uvicorn

from api.process.embedded_postgres import EmbeddedPostgres
from api.settings import Settings, SettingsInvalid
from cli.serve import _how, _require_shared_key, warn_of_plain_http
from tests.processes import free_port, until
from tests.scenes.shell import tallystick
from tests.servers.certificates import certify

SECONDS_MAX = 60
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Serving:
    """A server's process, the file of its standard error, its host and port."""

    process: subprocess.Popen[bytes]
    stderr: Path
    address: str

    def stop(self) -> tuple[int, str]:
        """SIGTERM, as a service manager sends it: exit code and what it said."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS_MAX), self.stderr.read_text()


def started(folder: Path, database: str, said: Path, *flags: str) -> subprocess.Popen[bytes]:
    """The process, whose standard error goes to `said`."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("TALLYSTICK")}
    environment = {"TALLYSTICK_DATABASE_URL": database, "TALLYSTICK_DATA_DIR": str(folder)}
    with said.open("w") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "cli.main", "serve", *flags],
            cwd=ROOT,
            env={**ours, **environment},
            stderr=stderr,
            start_new_session=True,
        )


@contextmanager
def serving(folder: Path, database: str, *flags: str) -> Generator[Serving, None, None]:
    """The process, once somebody listens."""
    port = free_port()
    said = folder.with_name(f"{folder.name}.stderr")
    process = started(folder, database, said, "--port", str(port), *flags)
    try:
        ends = time.monotonic() + SECONDS_MAX
        while not _listens(port):
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < ends, "the server did not start in time"
            time.sleep(0.05)
        yield Serving(process, said, f"127.0.0.1:{port}")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    ("trusted", "came_from", "seen"),
    [
        (None, "127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1", "203.0.113.9"),
        ("10.0.3.0/24, 127.0.0.1", "10.0.3.7", "203.0.113.9"),
        ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
    ],
)
def test_who_a_request_comes_from_is_said_by_trusted_proxies_only(
    trusted: str | None, came_from: str, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    told: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        told.append(scope["client"][0])

    config = uvicorn.Config(app, **_how(Settings(trusted_proxies=trusted)))
    config.load()
    forwarded = [(b"x-forwarded-for", b"192.0.2.66, 203.0.113.9")]
    scope: Any = {"type": "http", "client": (came_from, 1), "headers": forwarded}
    nothing: Any = None
    asyncio.run(config.loaded_app(scope, nothing, nothing))
    assert told == [seen]


@pytest.mark.parametrize("text", ["*", "", "proxy.example", "10.0.0.1/8", "0.0.0.0/0", "::/0"])
def test_a_trusted_proxy_is_an_address_or_a_network_and_never_everybody(text: str) -> None:
    with pytest.raises(SettingsInvalid, match="trusted_proxies"):
        Settings(trusted_proxies=text)


@pytest.mark.parametrize(
    ("settings", "warns"),
    [
        (Settings(host="0.0.0.0"), True),
        (Settings(host="192.0.2.7"), True),
        (Settings(host="127.0.0.1"), False),
        (Settings(host="0.0.0.0", trusted_proxies="10.0.3.7"), False),
        (Settings(host="0.0.0.0", ssl_certfile=Path("c"), ssl_keyfile=Path("k")), False),
    ],
)
def test_s_l22_a_server_that_is_open_to_others_without_tls_says_so(
    settings: Settings, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_plain_http(settings)
    assert ("keys of callers can be read" in caplog.text) == warns


def is_healthy(url: str, *, trusting: ssl.SSLContext | None = None) -> bool:
    with urllib.request.urlopen(f"{url}/healthz", timeout=30, context=trusting) as answer:
        return bool(answer.status == 200)


def page(url: str) -> str:
    """What a browser is shown first."""
    asked = urllib.request.Request(url, headers={"Accept": "text/html"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return str(answer.read().decode())


def health_checks(url: str) -> float:
    """How many `/metrics` tells."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        told = answer.read().decode()
    counted = 'tallystick_http_request_seconds_count{method="GET",route="/healthz",status="200"} '
    return sum(float(line.removeprefix(counted)) for line in told.splitlines() if counted in line)


def sessions(database: str) -> int:
    """Who else is connected to the database."""
    with psycopg.connect(database) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_of_two_machines_that_start_at_once_on_an_empty_database_one_serves(
    database: str, tmp_path: Path
) -> None:
    """Both made keys and served: what one of them recorded no auditor of the other one could check.
    `tests/api/process/test_service.py` copies the folder to the second one, as it is told.
    """
    ports, running = [], []
    for name in ("one", "two"):
        ports.append(free_port())
        flags = ("--port", str(ports[-1]), "--no-jobs")
        running.append(started(tmp_path / name, database, tmp_path / f"{name}.stderr", *flags))
    try:
        until(lambda: any(each.poll() is not None for each in running))
        until(lambda: any(map(_listens, ports)))
        (winner,) = [at for at, port in enumerate(ports) if _listens(port)]
        loser, names = 1 - winner, ("one", "two")
        assert running[loser].wait(SECONDS_MAX) == 1
        said = (tmp_path / f"{names[loser]}.stderr").read_text()
        made = (
            f"{socket.gethostname()} made the keys of this log in {tmp_path / names[winner]}/keys"
        )
        assert f"blinding.key missing: {made}" in said
        assert "Copy that folder to here" in said
        assert not list((tmp_path / names[loser] / "keys").iterdir())
        running[winner].send_signal(signal.SIGTERM)
        assert running[winner].wait(SECONDS_MAX) == 0
    finally:
        for each in running:
            if each.poll() is None:
                each.kill()
                each.wait()


def test_several_workers_that_only_read_need_the_key_they_share(tmp_path: Path) -> None:
    reading = Settings(data_dir=tmp_path, read_only=True, workers=2)
    with pytest.raises(SettingsInvalid, match="set workers to 1, or copy the file"):
        _require_shared_key(reading)
    _require_shared_key(replace(reading, workers=1))
    _require_shared_key(replace(reading, read_only=False))
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "server.key").touch()
    _require_shared_key(reading)


def test_workers_serve_and_all_of_them_end_on_sigterm(tmp_path: Path, database: str) -> None:
    with serving(tmp_path, database, "--workers", "2") as server:
        url = f"http://{server.address}"
        assert all(is_healthy(url) for _ in range(40))
        # Whichever worker is asked, its numbers are those of both.
        until(lambda: health_checks(url) == 40)
        assert {health_checks(url) for _ in range(8)} == {40}
        assert all("<h1" in page(url) for _ in range(8)), "users A12: there was no console"
        code, said = server.stop()
    assert code == 0, said
    assert "Traceback" not in said
    assert sessions(database) == 0


@pytest.mark.slow("::test_workers_serve_and_all_of_them_end_on_sigterm")
def test_workers_end_with_a_killed_parent_and_leave_the_port(tmp_path: Path, database: str) -> None:
    """users B25: they went on serving, and the next start found the address in use."""
    with serving(tmp_path, database, "--workers", "2", "--no-jobs") as server:
        until(lambda: is_healthy(f"http://{server.address}"))
        server.process.kill()
        server.process.wait(SECONDS_MAX)
        port = int(server.address.rpartition(":")[2])
        until(lambda: not _listens(port))
        until(lambda: sessions(database) == 0)
    assert "this worker ends" in server.stderr.read_text()


@pytest.mark.slow(
    "tests/api/process/test_embedded_postgres.py::test_a_killed_server_comes_back_with_every_committed_row",
    "::test_workers_serve_and_all_of_them_end_on_sigterm",
)
def test_a_killed_database_is_started_again_and_sigterm_lets_a_request_end() -> None:
    """security S-H3: the server answered 503 for ever. The read waits 2 s for a position that never
    comes, and SIGTERM arrives meanwhile.
    """
    with tempfile.TemporaryDirectory(prefix="tally") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "data"
        with serving(folder, "", "--no-jobs") as server:
            url = f"http://{server.address}/readyz"
            until(lambda: _status(urllib.request.Request(url)) == 200)
            killed = EmbeddedPostgres(folder).pid
            os.kill(killed, signal.SIGKILL)
            until(lambda: EmbeddedPostgres(folder).pid not in (0, killed))
            until(lambda: _status(urllib.request.Request(url)) == 200)
            waits = urllib.request.Request(f"http://{server.address}/v1/governors")
            waits.add_header("Tallystick-Min-Position", "999999")
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(_status, waits)
                time.sleep(0.5)
                assert not answer.done()
                code, said = server.stop()
                assert answer.result() == 503
        assert (code, "Traceback" in said) == (0, False), said
        assert "starting it again" in said


def _status(request: urllib.request.Request) -> int:
    """The status of an answer, whatever it is; 0: none came."""
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def test_a_certificate_makes_it_tls(tmp_path: Path, database: str) -> None:
    certificate, key = certify(tmp_path)
    flags = ("--ssl-certfile", str(certificate), "--ssl-keyfile", str(key), "--no-jobs")
    with serving(tmp_path / "data", database, *flags) as server:
        assert is_healthy(
            f"https://{server.address}",
            trusting=ssl.create_default_context(cafile=str(certificate)),
        )
        with pytest.raises(OSError, match=r".*"):
            is_healthy(f"http://{server.address}")
        code, said = server.stop()
    assert code == 0, said


def test_a_port_that_is_taken_is_a_sentence_and_exit_1(tmp_path: Path, database: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = tallystick("serve", "--port", port, DATABASE_URL=database, DATA_DIR=tmp_path)
    assert ran.code == 1
    assert "give another --host or --port" in ran.err
    assert "Traceback" not in ran.err
