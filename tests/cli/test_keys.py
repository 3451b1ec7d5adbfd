"""The keys of a server: those of its log or none, carried in an encrypted file (users A10)."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import psycopg
import pytest

from api.process import key_export
from tests.scenes.shell import Ran, tallystick

PASSPHRASE = "correct horse battery"


class Machine:
    """One data folder on a database; the keys can be lost and brought back."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.database = folder, database
        self.keys = folder / "keys"

    def run(self, *arguments: object) -> Ran:
        return tallystick(*arguments, DATA_DIR=self.folder, DATABASE_URL=self.database)

    def states(self) -> dict[str, str]:
        told = self.run("keys", "check", "--json").out
        return {each["file"]: each["state"] for each in json.loads(told)["files"]}


@pytest.fixture
def machine(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A log with a founder and one signed head."""
    monkeypatch.setattr(key_export, "COST", 4)
    made = Machine(tmp_path / "data", database)
    assert made.run("admin", "bootstrap", "--json").code == 0
    assert made.run("audit", "export", tmp_path / "first").code == 0
    return made


@pytest.fixture
def passphrase(tmp_path: Path) -> Path:
    path = tmp_path / "passphrase"
    path.write_text(f"{PASSPHRASE}\n")
    return path


def facts(machine: Machine) -> object:
    with psycopg.connect(machine.database) as connection:
        return connection.execute("SELECT pos FROM market_events_head").fetchone()


def test_a_server_on_an_empty_folder_names_every_missing_file_and_makes_none(
    machine: Machine, tmp_path: Path
) -> None:
    elsewhere, before = Machine(tmp_path / "other", machine.database), facts(machine)
    for command in (("serve",), ("jobs", "--once"), ("admin", "recover-key")):
        ran = elsewhere.run(*command)
        assert ran.code == 1, ran
        for name in ("blinding.key", "signer.key", "signed-heads", "server.key"):
            assert f"{name} missing" in ran.err
        assert "sealing.key" not in ran.err, "nothing was sealed yet"
        assert "tallystick keys import" in ran.err
        assert "Traceback" not in ran.err
    assert not list(elsewhere.keys.iterdir())
    assert facts(machine) == before


@pytest.mark.parametrize(
    ("name", "why"),
    [("blinding.key", "blinded with another key"), ("signer.key", "signed with another key")],
)
def test_another_key_is_refused_by_name(machine: Machine, name: str, why: str) -> None:
    (machine.keys / name).write_text("ab" * 32 + "\n")
    ran = machine.run("jobs", "--once")
    assert (ran.code, f"{name} differs" in ran.err, why in ran.err) == (1, True, True), ran
    checked = machine.run("keys", "check", "--json")
    assert checked.code == 1
    assert machine.states()[name] == "differs"


def test_another_name_of_the_log_is_told_as_such(machine: Machine) -> None:
    ran = tallystick(
        "keys",
        "check",
        DATA_DIR=machine.folder,
        DATABASE_URL=machine.database,
        LOG_ORIGIN="other/log",
    )
    assert ran.code == 1
    assert "TALLYSTICK_LOG_ORIGIN is other/log" in ran.out


def test_a_signer_that_signed_more_than_the_database_has_is_told(machine: Machine) -> None:
    with (machine.keys / "signed-heads").open("a") as heads:
        heads.write(f"999999 {'A' * 43}=\n")
    ran = machine.run("keys", "check")
    assert ran.code == 1
    assert "the signer signed 999999 facts" in ran.out


def test_keys_that_belong_to_the_log_are_well(machine: Machine) -> None:
    assert machine.run("keys", "check").code == 0
    assert set(machine.states().values()) == {"matches"}
    fresh = Machine(machine.folder / "none", machine.database)
    assert fresh.run("keys", "check").code == 1
    assert not fresh.keys.exists(), "a check makes nothing"


def test_exported_keys_come_back_after_the_folder_is_lost(
    machine: Machine, tmp_path: Path, passphrase: Path
) -> None:
    file = tmp_path / "keys.sealed"
    given = ("--passphrase-file", passphrase)
    made = machine.run("keys", "export", file, *given, "--json")
    assert made.code == 0, made
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    secret = (machine.keys / "signer.key").read_text().strip()
    assert secret not in file.read_text()
    kept = {path.name: path.read_text() for path in machine.keys.iterdir()}
    shutil.rmtree(machine.keys)
    assert machine.run("jobs", "--once").code == 1
    brought = machine.run("keys", "import", file, *given, "--json")
    assert brought.code == 0, brought
    assert set(brought.document["files"].values()) == {"written"}
    assert {path.name: path.read_text() for path in machine.keys.iterdir()} == kept
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in machine.keys.iterdir())
    assert machine.run("keys", "check").code == 0
    again = machine.run("keys", "import", file, *given, "--json")
    assert set(again.document["files"].values()) == {"there"}


def test_an_import_never_replaces_another_key_and_then_writes_nothing(
    machine: Machine, tmp_path: Path, passphrase: Path
) -> None:
    file, given = tmp_path / "keys.sealed", ("--passphrase-file", passphrase)
    machine.run("keys", "export", file, *given)
    (machine.keys / "server.key").unlink()
    (machine.keys / "signer.key").write_text("cd" * 32 + "\n")
    ran = machine.run("keys", "import", file, *given, "--json")
    assert ran.code == 1
    assert ran.document["facts"] == {"files": "signer.key"}
    assert not (machine.keys / "server.key").exists()


def test_a_changed_export_and_another_passphrase_are_refused(
    machine: Machine, tmp_path: Path, passphrase: Path
) -> None:
    file = tmp_path / "keys.sealed"
    machine.run("keys", "export", file, "--passphrase-file", passphrase)
    whole = json.loads(file.read_text())
    for name, value in (("origin", "evil/log"), ("made_at", "2020"), ("box", whole["box"][::-1])):
        (tmp_path / "bad").write_text(json.dumps({**whole, name: value}))
        ran = machine.run("keys", "import", tmp_path / "bad", "--passphrase-file", passphrase)
        assert (ran.code, "Traceback" in ran.err) == (2, False), (name, ran)
    (tmp_path / "bad").write_text(json.dumps({**whole, "format": "tallystick-keys-v2"}))
    ran = machine.run("keys", "import", tmp_path / "bad", "--passphrase-file", passphrase)
    assert (ran.code, "another version" in ran.err) == (2, True)
    passphrase.write_text("another passphrase\n")
    ran = machine.run("keys", "import", file, "--passphrase-file", passphrase)
    assert (ran.code, "another passphrase" in ran.err) == (2, True)
    passphrase.write_text("short\n")
    ran = machine.run("keys", "export", tmp_path / "new", "--passphrase-file", passphrase)
    assert (ran.code, (tmp_path / "new").exists()) == (2, False)


def test_keys_of_another_log_are_not_imported(
    machine: Machine, tmp_path: Path, passphrase: Path
) -> None:
    file = tmp_path / "keys.sealed"
    machine.run("keys", "export", file, "--passphrase-file", passphrase)
    ran = tallystick(
        "keys",
        "import",
        file,
        "--passphrase-file",
        passphrase,
        DATA_DIR=tmp_path / "new",
        DATABASE_URL=machine.database,
        LOG_ORIGIN="other/log",
    )
    assert (ran.code, "TALLYSTICK_LOG_ORIGIN" in ran.err) == (1, True)
    assert not list((tmp_path / "new" / "keys").glob("*"))


def test_a_lost_file_is_made_anew_only_by_name_and_the_logs_own_keys_never(
    machine: Machine,
) -> None:
    (machine.keys / "server.key").unlink()
    (machine.keys / "signed-heads").unlink()
    assert machine.states()["server.key"] == "missing"
    assert machine.states()["signed-heads"] == "missing"
    for name in ("server.key", "signed-heads"):
        assert machine.run("keys", "make", name).code == 0
        assert machine.run("keys", "make", name).code == 1, "what is there stays"
    assert machine.run("keys", "check").code == 0
    assert machine.run("jobs", "--once").code == 0
    for name in ("signer.key", "blinding.key"):
        (machine.keys / name).unlink()
        assert machine.run("keys", "make", name).code == 2
