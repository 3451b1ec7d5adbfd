"""What a server does not load before somebody needs it, and what waits until it answers."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api import timers
from api.process.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresFailed
from api.settings import Settings
from cli import serve
from cli.operating import early_database, kept_code

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
    "rich",
    "stripe",
    "web3",
    "webauthn",
)
"""For the chain, exports, invoices, passkeys, cards, traces, messages, the console and help."""

WITH_FORMS = {f"api.door.{name}" for name in ("amounts", "models", "operation", "second_person")}
"""The modules with forms that a server knows before its first request."""


def _ran(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_server_starts_without_forms_and_timers_and_is_idle_without_what_few_requests_need() -> (
    None
):
    """Forms come with the first request to a room, and timers when requests are answered."""
    told = _ran(
        "import json, sys, cli.serve\n"
        "from api.main import build\n"
        "build(None)\n"
        "from api.rooms import RESOURCES\n"
        "from pydantic import BaseModel\n"
        "def below(kind):\n"
        "    return {kind}.union(*map(below, kind.__subclasses__()))\n"
        "forms = {one.__module__ for one in below(BaseModel)}\n"
        "files = [name.split('.') for name in sys.modules if name.startswith('api.')]\n"
        "rooms = {one[1] for one in files if len(one) == 3 and one[2] != 'registry'}\n"
        "assert 'numpy' not in sys.modules, 'the first match loads it'\n"
        "from api import timers\n"
        "timers.load()\n"
        f"found = [name for name in {NOT_AT_THE_START} if name in sys.modules]\n"
        "print(json.dumps([sorted(forms), sorted(rooms & set(RESOURCES)), found]))\n"
    )
    forms, rooms, found = json.loads(told)
    assert found == [], "an idle server has no use for it"
    assert {one for one in forms if one.startswith("api.")} == WITH_FORMS
    assert rooms == ["monitoring"], "what monitors read is no operation"


def test_a_dataclass_made_with_kept_code_is_the_one_made_without(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "codes"

    def made() -> Any:
        @dataclass(frozen=True, slots=True, order=True)
        class Told:
            first: int
            second: object = "x"

        return Told

    plain, kinds = made(), []
    for compiles in (True, False):
        with pytest.MonkeyPatch.context() as patched, kept_code.kept(file):
            patched.setattr(
                kept_code, "compile", compile if compiles else None, raising=False
            )  # the second time nothing is left to compile
            kinds.append(made())
        assert not hasattr(dataclasses, "exec")
    for kind in kinds:
        assert kind(1) == kind(1, "x") != kind(2)
        assert repr(kind(1)) == repr(plain(1))
        assert kind(1) < kind(2)
        assert hash(kind(1)) == hash(plain(1))
        with pytest.raises(dataclasses.FrozenInstanceError):
            kind(1).first = 2
        for name in ("__init__", "__eq__", "__hash__", "__lt__", "__setattr__", "__delattr__"):
            kept, whole = getattr(kind, name).__code__, getattr(plain, name).__code__
            assert kept == whole
            assert kept.co_code == whole.co_code


def test_kept_code_that_is_damaged_or_of_another_python_is_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "codes"

    def make() -> None:
        with kept_code.kept(file):

            @dataclass
            class _One:
                at: int

    make()
    text, made = "def __create_fn__():\n return 7", dict[str, Any]()
    for _ in range(2):  # the second time it is in the file
        with kept_code.kept(file):
            late = dataclasses.exec  # type: ignore[attr-defined]
            late(text, {}, {})
    late(text, {}, made)  # by a thread that was in the middle of it
    assert made["__create_fn__"]() == 7
    file.unlink()
    make()
    whole = file.read_bytes()
    for damaged in (b"", b"xxxx" + whole[4:], whole[:-1], whole[:80] + b"x" + whole[81:]):
        file.write_bytes(damaged)
        make()
        assert file.read_bytes() == whole
    file.unlink()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "dont_write_bytecode", True)
        make()
    assert not file.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_used_goes_when_the_file_is_full_and_all_that_was_stays(
    tmp_path: Path,
) -> None:
    file = tmp_path / "codes"
    texts = [f"def __create_fn__():\n return {number}" for number in range(5)]

    def use(numbers: range) -> None:
        with kept_code.kept(file):
            for number in numbers:
                made = dict[str, Any]()
                dataclasses.exec(texts[number], {}, made)  # type: ignore[attr-defined]
                assert made["__create_fn__"]() == number

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kept_code, "CODES_MAX", 3)
        use(range(3))
        three = file.stat().st_size
        use(range(3, 5))
        assert file.stat().st_size < three, "the two of this version alone"
        use(range(3, 5))
        use(range(2, 4))
        assert file.stat().st_size == three
        use(range(5))
        whole = file.stat().st_mtime_ns
        patched.setattr(kept_code, "compile", None, raising=False)
        use(range(5))
        assert file.stat().st_mtime_ns == whole, "one version with more than that is kept whole"


@pytest.fixture
def folder() -> Generator[Path, None, None]:
    """A data folder that PostgreSQL's own user can enter."""
    with tempfile.TemporaryDirectory(prefix="tally") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_the_database_that_is_there_starts_beside_the_imports_and_ends_with_the_server(
    folder: Path,
) -> None:
    """The server joins it; whoever leaves last stops it. An empty folder stays empty."""
    settings = Settings(data_dir=folder)
    with early_database.starting(settings) as database:
        assert database.done(), "there is nothing to wait for"
    assert list(folder.iterdir()) == []
    with EmbeddedPostgres(folder, durable=False):
        pass
    elsewhere = Settings(data_dir=folder, database_url="postgresql:///elsewhere")
    with early_database.starting(elsewhere) as database:
        assert database.done()
        assert not EmbeddedPostgres(folder).is_alive
    with early_database.starting(settings) as database:
        database.result(60)
        early = EmbeddedPostgres(folder)
        assert early.is_alive
        with EmbeddedPostgres(folder) as joined:
            assert joined.pid == early.pid
        assert early.is_alive, "the first holder is there still"
    assert not early.is_alive


@pytest.mark.parametrize("failure", [EmbeddedPostgresFailed("no answer"), ValueError("no text")])
def test_a_database_that_cannot_start_is_told_at_once_whatever_it_fails_by(
    folder: Path, failure: Exception
) -> None:
    def fails(_server: EmbeddedPostgres) -> None:
        raise failure

    (folder / "pg").mkdir()
    (folder / "pg" / "PG_VERSION").write_text("18\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(EmbeddedPostgres, "_start_if_down", fails)
        with early_database.starting(Settings(data_dir=folder)) as database:
            assert database.exception(60) is failure


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


def test_timers_that_cannot_begin_end_the_server_and_say_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a thread nobody would hear of it, and the market would stand still."""
    ended = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: ended.set())

    def load() -> None:
        raise ImportError("no such room")

    monkeypatch.setattr(timers, "load", load)
    begin = threading.Event()
    begin.set()
    try:
        with pytest.raises(ImportError, match="no such room"), serve._jobs(_service(), begin):
            assert ended.wait(30)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("settings", [{}, {"jobs": False}, {"read_only": True}])
def test_a_server_that_never_answers_runs_no_timer_and_ends(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(timers, "run", lambda *_, **__: ran.append(1))
    with serve._jobs(_service(**settings), threading.Event()):
        pass
    assert ran == []
