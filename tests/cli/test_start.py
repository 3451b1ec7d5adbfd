"""What a server does not load before somebody needs it, and what waits until it answers."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api import timers
from api.settings import Settings
from cli import serve

NOT_AT_THE_START = (
    "cryptography",
    "duckdb",
    "eth_account",
    "httpx",
    "hypothesis",
    "jinja2",
    "opentelemetry.sdk",
    "pyarrow",
    "reportlab",
    "stripe",
    "web3",
    "webauthn",
)
"""For the chain, exports, invoices, passkeys, cards, traces, messages and the console."""


def test_a_server_starts_without_what_only_some_requests_need() -> None:
    script = (
        "import sys, cli.serve\n"
        "from api.main import build\n"
        "build(None)\n"
        f"found = [name for name in {NOT_AT_THE_START} if name in sys.modules]\n"
        "sys.exit(f'imported {found}' if found else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr


def _service(**settings: Any) -> Any:
    return SimpleNamespace(settings=Settings(**settings))


def test_timers_begin_once_requests_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    began, ended = threading.Event(), threading.Event()

    def run(_service: Any, *, once: bool, stop: threading.Event) -> None:
        assert not once
        began.set()
        stop.wait(30)
        ended.set()

    monkeypatch.setattr(timers, "run", run)
    begin = threading.Event()
    with serve._jobs(_service(), begin):
        assert not began.wait(0.1)
        begin.set()
        assert began.wait(30)
    assert ended.is_set()


@pytest.mark.parametrize("settings", [{}, {"jobs": False}, {"read_only": True}])
def test_a_server_that_never_answers_runs_no_timer_and_ends(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(timers, "run", lambda *_, **__: ran.append(1))
    with serve._jobs(_service(**settings), threading.Event()):
        pass
    assert ran == []
