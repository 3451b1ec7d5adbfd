"""How every command speaks: help with an example, exit codes, one JSON document, settings."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
import typer

from api.door.moments import moment, parse_moment
from api.settings import Settings, SettingsInvalid, load
from cli import reference as cli_reference
from cli import terminal as cli_terminal
from cli.index import COMMANDS
from cli.main import Commands, app, main
from cli.main import opened as opened_anew
from cli.terminal import (
    EXPECTED,
    amount,
    columns,
    facts,
    group,
    local_time,
    printable,
    tell,
    top_level,
    with_local_times,
)
from tests.scenes.shell import tallystick

ROOT = Path(__file__).parents[2]

TOP = typer.main.get_command(app)
LATER = ("witness", "gentd26")
HEAVY = ("psycopg", "fastapi", "eventsourcing", "web3", "httpx", "rich", "pydantic", "nacl")


def commands_of(path: str, found: Any) -> Iterator[tuple[str, Any]]:
    """Every command and group below this one, opened, with the words that lead to it."""
    yield path, found
    for name, below in getattr(found, "commands", {}).items():
        below = opened(name) if isinstance(found, Commands) else below
        yield from commands_of(f"{path} {name}", below)


opened = cache(opened_anew)
NAMES = [name for name, _ in commands_of("tallystick", TOP)]


@cache
def helps() -> dict[str, str]:
    """What every command says of itself: seconds to write, so not while tests are collected."""
    return dict(cli_reference.helps())


# --- help ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", NAMES, ids=str)
def test_help_on_every_level_shows_an_example(command: str) -> None:
    ran = tallystick(*command.split()[1:], "--help")
    assert ran.code == 0
    assert "Example: " in ran.out


def test_every_command_has_a_help() -> None:
    assert list(helps()) == NAMES


def test_every_argument_and_every_option_says_what_it_is_for() -> None:
    without = [
        f"{path} {parameter.name}"
        for path, command in commands_of("tallystick", TOP)
        for parameter in command.params
        if not (getattr(parameter, "help", None) or "").strip()
    ]
    assert without == []


@pytest.mark.parametrize("command", NAMES, ids=str)
def test_every_example_is_a_command_that_parses(command: str) -> None:
    example = " ".join(helps()[command].split("Example: ")[1].split())
    words = [word for word in shlex.split(example) if not word.startswith("TALLYSTICK_")]
    assert words[0] == "tallystick"
    assert " ".join(words).startswith(command) or len(command.split()) < 3
    found: Any = TOP
    for word in words[1:]:
        if word not in getattr(found, "commands", {}):
            break
        found = opened(word) if isinstance(found, Commands) else found.commands[word]
        words = words[1:]
    known = {name for parameter in found.params for name in parameter.opts}
    words = words[: words.index("--")] if "--" in words else words  # the rest is another program's
    assert {word for word in words if word.startswith("--")} <= known


def test_commands_of_later_versions_are_not_listed() -> None:
    words = {word for command in NAMES for word in command.split()}
    assert not words & set(LATER)


def test_every_command_that_prints_a_result_has_json() -> None:
    groups = {name.rpartition(" ")[0] for name in NAMES}
    without = {
        name for name, text in helps().items() if name not in groups and "--json" not in text
    }
    assert without == {"tallystick serve"}


def test_gpu_time_and_shares_are_told_as_people_write_them_and_as_they_are_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = {"gpu_us": "5400000000", "share_ppm": 370_000, "used": {"largest_ppm": 1_000_000}}
    assert facts(told) == ["gpu_hours     1.500000", "share         0.37", "used largest  1"]
    shown = columns([told, {"gpu_us": "~0.25", "share_ppm": None}], ("gpu_us", "share_ppm"))
    assert shown == ["GPU_HOURS  SHARE", "1.500000   0.37", "~0.25      -"]
    tell(told, facts(told), as_json=True)
    assert json.loads(capsys.readouterr().out) == told


def test_every_command_that_shows_a_list_can_show_all_of_it() -> None:
    """With its limit; and a list that can begin at a moment can be turned round."""
    found = 0
    for path, command in commands_of("tallystick", TOP):
        names = {name for parameter in command.params for name in parameter.opts}
        if "--limit" in names and path not in (
            "tallystick policy dry-run",
            "tallystick breaker set",
        ):
            assert "--all" in names, path
            found += "--order" in names
        assert {"--since", "--order"} & names in (set(), {"--order"}, {"--since", "--order"}), path
    assert found > 35


def test_the_reference_page_is_current() -> None:
    assert cli_reference.PAGE.read_text() == cli_reference.page(), "run: python -m cli.reference"


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; sys.argv = ['tallystick', '--help']\n"
        "from cli.main import main; code = main()\n"
        f"found = [name for name in {HEAVY} if name in sys.modules]\n"
        "sys.exit(code or (f'imported {found}' if found else 0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr


def test_what_each_command_is_about_is_written_down_as_its_help_says_it() -> None:
    assert cli_reference.INDEX.read_text(encoding="utf-8") == cli_reference.index(), (
        "run: python -m cli.reference"
    )


@pytest.mark.parametrize(("word", "module"), [(None, None), ("lease", "cli.commands.leases")])
def test_help_imports_the_module_that_is_asked_for_and_no_other(
    word: str | None, module: str | None
) -> None:
    asked = ["--help"] if word is None else [word, "--help"]
    script = (
        f"import sys; sys.argv = ['tallystick', *{asked}]\n"
        "from cli.index import COMMANDS; from cli.main import main; code = main()\n"
        "found = {module for module, _ in COMMANDS.values() if module in sys.modules}\n"
        f"sys.exit(code or (0 if found == { ({module} if module else set())!r} else str(found)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr


def test_a_new_group_is_found_in_its_file_by_its_own_name() -> None:
    """Nothing else names it by hand: the index is written from the files."""
    module = ModuleType("cli.commands.tides")
    module.app = group("tide", "Tides: when the sea comes.", "tallystick tide list")  # type: ignore[attr-defined]
    module.commands = top_level()  # type: ignore[attr-defined]
    module.commands.command()(test_commands_of_later_versions_are_not_listed)
    found = cli_reference.all_commands([module])
    assert found.pop("tide") == ("cli.commands.tides", "app")
    assert list(found.values()) == [("cli.commands.tides", "commands")]
    with pytest.raises(AssertionError, match="two commands have one name"):
        cli_reference.all_commands([module, module])


def test_no_module_adds_commands_to_the_group_of_another() -> None:
    """Each group is one Typer of one file, and all its commands are functions of that file."""
    for name, (module, attribute) in COMMANDS.items():
        found = opened(name)
        for command in getattr(found, "commands", {"": found}).values():
            assert command.callback.__module__ == module, (name, command.name, attribute)


def test_a_reader_that_has_enough_is_no_failure_with_a_traceback() -> None:
    command = f"{shlex.quote(sys.executable)} -m cli.main config | true"
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stderr == ""


# --- exit codes ------------------------------------------------------------------------------

_LEASE = ("lease", "create", "--max-price", "3", "--image", "x")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("config", "--nonsense"),
        ("lease", "create", "--max-price", "3"),
        ("lease", "create", "--max-price", "3.1234567", "--image", "x"),
        ("lease", "create", "--max-price", "3", "--image", "x", "--share", "1.5"),
        ("lease", "create", "--max-price", "3", "--command", "'"),
        ("job", "submit", "--max-price", "3"),
        ("job", "submit", "--max-price", "3", "--command", "'"),
        ("bid", "ask", "--max-price", "3", "--command", "'"),
        ("gang", "open", "--max-price", "3", "--members", "2", "--command", "'"),
        ("quote", "--max-price", "3", "--command", "'"),
        (*_LEASE, "--mig", "3g.40gb", "--share", ".5"),
        (*_LEASE, "--mig", "3g.40gb", "--mode", "mps"),
        ("lease", "create", "--max-price", "3", "--image", "x", "--mode", "vgpu"),
        ("account", "list", "--url", "ftp://tallystick.example"),
        ("account", "list", "--url", "http://tallystick.example", "--api-key", "k"),
        ("node", "confirm", "node_1", "--fingerprint", "abc"),
        ("conformance", "/nowhere.json"),
        ("audit", "verify", "/nowhere"),
        ("payout", "status", "/nowhere.json"),
        ("trace", "replay", "--nodes", "/nowhere.csv", "--tasks", "/nowhere.csv"),
        ("trace", "replay", "--format", "other", "--nodes", "n", "--tasks", "t"),
        ("config", "--config", "/nowhere.toml"),
    ],
    ids=" ".join,
)
def test_wrong_usage_and_unreadable_input_exit_2_and_say_why(arguments: tuple[str, ...]) -> None:
    ran = tallystick(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.strip()
    assert "Traceback" not in ran.err


def test_a_database_that_is_not_there_is_a_sentence_and_not_a_traceback(tmp_path: Path) -> None:
    ran = tallystick(
        "migrate", DATA_DIR=tmp_path, DATABASE_URL="postgresql://127.0.0.1:1/none?password=geheim"
    )
    assert ran.code == 1
    assert "TALLYSTICK_DATABASE_URL" in ran.err
    assert "geheim" not in ran.err
    assert "Traceback" not in ran.err


WRITING = [("migrate",), ("serve",), ("admin", "bootstrap")]


@pytest.mark.parametrize("command", WRITING, ids=" ".join)
def test_what_a_database_refuses_is_a_sentence_or_two_and_no_traceback(
    command: tuple[str, ...], empty_database: str, tmp_path: Path
) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',"
            " current_database()); END $$"
        )
    ran = tallystick(*command, DATA_DIR=tmp_path, DATABASE_URL=empty_database)
    assert ran.code == 1
    said = ran.err.splitlines()
    assert 1 <= len(said) <= 2
    assert "read-only transaction" in said[0]
    assert "Traceback" not in ran.err


def test_every_expected_failure_names_a_class_that_exists() -> None:
    import importlib

    for name in EXPECTED:
        module, _, kind = name.rpartition(".")
        assert issubclass(getattr(importlib.import_module(module), kind), Exception), name


# --- settings --------------------------------------------------------------------------------


def test_flags_win_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tallystick.toml"
    file.write_text('port = 1111\nhost = "file.example"\nworkers = 3\n')
    shown = tallystick(
        "config",
        "--config",
        file,
        "--data-dir",
        tmp_path,
        "--json",
        PORT=2222,
        DATA_DIR="/elsewhere",
    ).document
    assert shown["data_dir"] == {"value": str(tmp_path), "source": "flag"}
    assert shown["port"] == {"value": "2222", "source": "environment TALLYSTICK_PORT"}
    assert shown["workers"] == {"value": "3", "source": f"file {file}"}
    assert shown["environment"]["source"] == "default"


def test_secrets_are_masked() -> None:
    ran = tallystick("config", DATABASE_URL="postgresql://u:geheim@db/x")
    assert "geheim" not in ran.out + ran.err
    assert "********" in ran.out


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("https://node.example/v3/0123456789abcdef", "https://node.example/********"),
        ("https://user:secret@node.example:8545/", "https://node.example:8545/********"),
        ("https://node.example/?key=0123456789abcdef", "https://node.example/********"),
    ],
)
def test_the_key_in_the_address_of_a_hosted_chain_node_is_masked(url: str, shown: str) -> None:
    loaded = load(environ={"TALLYSTICK_CHAIN_URL": url})
    assert loaded.shown()["chain_url"]["value"] == shown


@pytest.mark.parametrize(
    "url", ["postgres//u:geheim@db/x", "postgresql://u:geheim%zz@db/x", "password=x geheim"]
)
def test_an_address_that_cannot_be_read_is_not_quoted(url: str) -> None:
    ran = tallystick("migrate", DATABASE_URL=url)
    assert (ran.code, ran.out) == (1, "")
    assert "geheim" not in ran.err
    assert "TALLYSTICK_DATABASE_URL" in ran.err


def test_a_setting_that_cannot_be_is_refused_by_name() -> None:
    ran = tallystick("config", PORT="many")
    assert (ran.code, ran.out) == (2, "")
    assert "port" in ran.err


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("TALLYSTICK_DATABSE_URL", "TALLYSTICK_DATABASE_URL"),
        ("TALLYSTICK_DATABASEURL", "TALLYSTICK_DATABASE_URL"),
        ("TALLYSTICK_ALERTS_MAIL_TO", "TALLYSTICK_ALERT_MAIL_TO"),
        ("TALLYSTICK_PROT", "TALLYSTICK_PORT"),
    ],
)
def test_a_misspelt_variable_is_refused_and_told_which_setting_is_meant(
    written: str, meant: str
) -> None:
    with pytest.raises(SettingsInvalid, match=f"{written}: no such setting; {meant} is one"):
        load(environ={written: "x"})


def test_a_variable_that_is_called_like_a_setting_and_is_none_is_named_by_config() -> None:
    ran = tallystick("config", "--json", DB_URL="postgresql://x", URL="http://127.0.0.1:1")
    assert (ran.code, ran.document["database_url"]["value"]) == (0, None)
    assert ran.err == "no settings, and not used: TALLYSTICK_DB_URL\n"


def test_with_json_a_command_that_fails_prints_one_document_too(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text('host = "')
    for words, code, why in (
        (("keys", "check", "--data-dir", tmp_path), 1, "there is no database"),
        (("migrate", "--plan", "--data-dir", tmp_path), 1, "there is no database"),
        (("backup", tmp_path / "none", "--check"), 1, "is no folder"),
        (("restore", tmp_path, "--data-dir", tmp_path / "new"), 1, "is no folder of backups"),
        (("keys", "export", tmp_path / "x", "--data-dir", tmp_path), 2, "has no key files"),
        (("config", "--config", tmp_path / "broken.toml"), 2, "broken.toml is no TOML"),
        (("config", "--config", tmp_path / "none.toml"), 2, "none.toml: No such file"),
        (("config", "--no-such-option"), 2, "the arguments are wrong"),
    ):
        ran = tallystick(*words, "--json")
        assert ran.code == code, (words, ran)
        assert why in ran.document["failed"], (words, ran)
        assert tallystick(*words).out == "", "people read it on standard error"


def test_words_after_two_dashes_are_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_terminal, "run", lambda _app, *, as_json: int(as_json))
    for words, as_json in (("run --json -- x", True), ("run -- x --json", False), ("run x", False)):
        monkeypatch.setattr(sys, "argv", ["tallystick", *words.split()])
        assert main() == as_json, words


@pytest.mark.parametrize("where", ["| true", "> /dev/full", ">&-"])
def test_a_failure_that_nobody_can_read_is_no_traceback(where: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m cli.main keys check --json --data-dir {tmp_path} {where}"
    shell = ["bash", "-c", command]
    ran = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "there is no database" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_address_with_a_password_is_refused_and_not_repeated() -> None:
    ran = tallystick("epoch", "list", "--json", URL="http://me:S3CRET@127.0.0.1:1")
    assert (ran.code, "S3CRET" in ran.out + ran.err) == (2, False)


def test_a_variable_that_others_read_is_no_misspelt_setting() -> None:
    sources = "\n".join(
        file.read_text(encoding="utf-8")
        for room in ("api", "cli", "contracts", "deploy", "node_reporter", "tallystick_client")
        for file in (ROOT / room).rglob("*")
        if file.suffix in (".py", ".service", ".yaml", ".env") and file.name != "settings.py"
    )
    read = set(re.findall(r"TALLYSTICK_[A-Z_]*[A-Z]", sources))
    assert {"TALLYSTICK_URL", "TALLYSTICK_API_KEY", "TALLYSTICK_NODE_DIR"} < read
    foreign = {"TALLYSTICK_SERVICE_HOST", "TALLYSTICK_PORT_8420_TCP_PORT"}  # Kubernetes sets them
    settings = {f"TALLYSTICK_{each.name.upper()}" for each in fields(Settings)}
    load(environ=dict.fromkeys((read | foreign) - settings - {"TALLYSTICK_CONFIG"}, "x"))


# --- text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asset", "units", "text"),
    [
        ("CREDIT", "1265000", "1.265000 CREDIT"),
        ("CREDIT", "-5", "-0.000005 CREDIT"),
        ("TOKEN", "0", "0.00000000 TOKEN"),
        ("GPU_MS", "12", "12 GPU_MS"),
        ("TOKEN", "1" + "0" * 38, "1" + "0" * 30 + ".00000000 TOKEN"),
    ],
)
def test_amounts_are_shown_to_the_last_unit(asset: str, units: str, text: str) -> None:
    assert amount({"asset": asset, "units": units}) == text


def test_facts_are_amounts_and_lists_as_people_write_them() -> None:
    told = {"price": {"asset": "CREDIT", "units": "5"}, "of": ["a", "b"], "by": None, "x": {"a": 1}}
    assert facts(told) == ["price  0.000005 CREDIT", "of     a, b", "x a    1"]


def test_no_fact_is_shown_as_python_writes_it() -> None:
    """The verdict that `node confirm` printed was a dict in one line, with True and False."""
    verdict = {"joinable": True, "sellable": False, "failing": ["tpm_2_0", "ecc"], "waived": []}
    parts = [{"id": "a", "price": {"asset": "CREDIT", "units": "1"}}, {"id": "b"}]
    assert facts({"node_id": "node_1", "verdict": verdict, "parts": parts}) == [
        "node_id           node_1",
        "verdict joinable  yes",
        "verdict sellable  no",
        "verdict failing   tpm_2_0, ecc",
        "verdict waived    none",
        "parts 1 id        a",
        "parts 1 price     0.000001 CREDIT",
        "parts 2 id        b",
    ]


@pytest.fixture
def in_lagos(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine one hour ahead of UTC, in every season."""
    monkeypatch.setenv("TZ", "Africa/Lagos")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_lagos")
def test_people_read_the_times_of_their_own_zone_and_programs_utc(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = {"at": "2026-11-30T23:30:00.000000Z", "by": "2026-12-01T00:00:00.000001Z"}
    assert facts(told) == ["at  2026-12-01T00:30:00+01:00", "by  2026-12-01T01:00:00.000001+01:00"]
    assert columns([told], ("at",))[1] == "2026-12-01T00:30:00+01:00"
    assert with_local_times("Free from 2026-11-30 23:30 UTC.") == (
        "Free from 2026-12-01T00:30:00+01:00."
    )
    tell(told, facts(told), as_json=True)
    assert json.loads(capsys.readouterr().out) == told


@pytest.mark.usefixtures("in_lagos")
@pytest.mark.parametrize("at_us", [0, 1_795_000_000_000_000, 1_795_000_000_000_001])
def test_a_time_that_is_shown_is_read_as_the_same_moment(at_us: int) -> None:
    assert parse_moment(local_time(moment(at_us))) == at_us


@pytest.mark.usefixtures("in_lagos")
@pytest.mark.parametrize("text", ["9999-12-31T23:59:59.999999Z", "2026-12-01", "a 2026-12-01T"])
def test_what_is_no_moment_and_the_end_of_time_stay_as_they_are(text: str) -> None:
    assert local_time(text) == text


def test_a_machine_in_utc_shows_utc() -> None:
    assert local_time("2026-12-01T00:30:00.000000Z") == "2026-12-01T00:30:00Z"


def test_tables_keep_every_character() -> None:
    wide = "x" * 300
    assert columns([{"a": wide, "b": None}, {"a": "y", "b": [1, 2]}], ("a", "b")) == [
        "A" + " " * 299 + "  B",
        f"{wide}  -",
        "y" + " " * 299 + "  1,2",
    ]


def test_text_from_elsewhere_cannot_move_the_cursor() -> None:
    assert printable("a\x1b[2Jb") == "a\\x1b[2Jb"


def test_a_document_moves_no_cursor_and_reads_back_as_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = {"model": "H200\x1b[2J\x7f\x9b31m\u202e\u2028 \U0001f600\U000e0001 \u00e9"}
    tell(told, (), as_json=True)
    shown = capsys.readouterr().out
    assert shown.endswith("\n")
    assert shown[:-1].isprintable()
    assert "\u00e9" in shown
    assert json.loads(shown) == told
