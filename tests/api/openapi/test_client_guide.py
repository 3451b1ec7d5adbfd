"""`docs/howto/use-the-client.md`: its programs are those that mypy checks, and each does its work
against a server on a port.
"""

from __future__ import annotations

import runpy
import sys
import threading
from collections.abc import Generator
from contextlib import closing
from datetime import datetime
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import standardwebhooks.webhooks

from api.parties import webhook_sender
from api.parties.webhook_sender import Sent
from api.parties.webhook_senders import Senders
from tests.cli.test_remote import answering
from tests.e2e.test_tutorial import blocks
from tests.scenes.server import Caller, Scene
from tests.scenes.work import hours_of_work

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "use-the-client.md"
PUBLISHED = Path(__file__).parents[2] / "published"
PROGRAMS = ("rent", "bill", "watch", "receive")


def test_the_programs_of_the_page_are_those_that_are_checked_and_run() -> None:
    files = [(PUBLISHED / f"{name}.py").read_text(encoding="utf-8") for name in PROGRAMS]
    assert blocks(PAGE, "python") == files
    assert {path.stem for path in PUBLISHED.glob("*.py")} == {*PROGRAMS, "__init__"}


@pytest.fixture
def run(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> Generator[Any, None, None]:
    """Run a program of the page as a caller; what it printed."""
    monkeypatch.chdir(tmp_path)

    def ran(who: Caller, name: str, *words: str) -> str:
        monkeypatch.setenv("TALLYSTICK_API_KEY", who.key or "")
        monkeypatch.setattr(sys, "argv", [name, *words])
        runpy.run_path(str(PUBLISHED / f"{name}.py"), run_name="__main__")
        return str(capsys.readouterr().out)

    with answering(scene.service, "", is_started=True) as server:
        monkeypatch.setenv("TALLYSTICK_URL", server.url)
        yield ran


def test_a_gpu_is_rented_and_given_back_and_a_refusal_is_told_in_its_words(
    scene: Scene, run: Any
) -> None:
    lease, closed = run(scene.renter, "rent").splitlines()
    lease_id = lease.split()[1]
    assert lease == f"lease {lease_id} on {scene.provider.node_id}"
    told = scene.renter.read(f"/v1/leases/{lease_id}")["state"]
    assert closed == f"lease {lease_id} {told}"
    with pytest.raises(SystemExit, match=r"^no GPU: .+ \(credit_too_low\)$"):
        run(scene.stranger, "rent")


def test_a_month_is_added_up_and_written(scene: Scene, run: Any, tmp_path: Path) -> None:
    lease = hours_of_work(scene)[0]
    assert f"{lease['lease_id']} 2" in run(scene.renter, "bill", "2026-11").splitlines()
    path = f"/v1/accounts/{scene.renter.account_id}/statements/2026-11.csv"
    assert (tmp_path / "2026-11.csv").read_bytes() == scene.renter.get(path).content


def test_two_things_are_asked_at_a_time(scene: Scene, run: Any) -> None:
    scene.running()
    assert run(scene.renter, "watch") == "cheapest 2000000 running 1\n"


def test_a_receiver_takes_what_the_server_signed_and_nothing_else(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    told = scene.renter.made(
        "/v1/webhooks", {"url": "https://hooks.example.com/tally", "types": ["deposit."]}
    )
    monkeypatch.setenv("WEBHOOK_SECRET", told["secret"])
    _clock_of(scene, monkeypatch)
    receiver = runpy.run_path(str(PUBLISHED / "receive.py"))["Receiver"]
    server = HTTPServer(("127.0.0.1", 0), receiver)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/"

    def send(_url: str, body: bytes, headers: dict[str, str]) -> Sent:
        forged = httpx.post(url, content=body + b" ", headers=headers)
        assert forged.status_code == 401
        return Sent(httpx.post(url, content=body, headers=headers).status_code, None)

    try:
        scene.deposit(scene.renter, 5)
        with scene.service.connect() as connection, closing(Senders()) as senders:
            now_us = scene.clock.now_us()
            assert webhook_sender.tell_all(scene.service, connection, now_us, senders, send) == 1
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split()[1].startswith("deposit.")


def _clock_of(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library compares with the time of the machine: here with the scene's."""

    class Now(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Now:
            return cls.fromtimestamp(scene.clock.now_us() / 1_000_000, tz)

    monkeypatch.setattr(standardwebhooks.webhooks, "datetime", Now)
