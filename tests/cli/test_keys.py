"""The keys of a server: those of its log or none, carried in an encrypted file (users A10)."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from nacl.signing import SigningKey

from api.audit.tree_timer import run_trees
from api.backup import proof
from api.backup.archive import Backup
from api.process import key_export, secret_files
from api.process.service import Service
from api.settings import Settings
from cli import audit
from domain.authority.log_key import RotateLogKey, rotation_text
from ledger.tree import trees
from ledger.tree.checkpoint import NoteInvalid, VerifierKey, parse_verifier_key, sign_note
from ledger.tree.log_keys import Rotation, later, open_by_any
from tests.scenes import shell
from tests.scenes.server import Scene
from tests.scenes.shell import tallystick, tallystick_at

PASSPHRASE = "correct horse battery"


class Machine(shell.Machine):
    """Its keys can be lost and brought back."""

    @property
    def keys(self) -> Path:
        return self.folder / "keys"

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


def test_a_file_that_the_signer_refuses_is_no_match(machine: Machine) -> None:
    heads = machine.keys / "signed-heads"
    heads.write_text(heads.read_text() + "999 AAAA\n")
    checked = machine.run("keys", "check")
    assert (checked.code, "signed-heads is damaged" in checked.out) == (1, True), checked
    refused = machine.run("jobs", "--once")
    assert (refused.code, "signed-heads differs" in refused.err) == (1, True), refused


@pytest.mark.parametrize(
    "command",
    [
        ("keys", "check"),
        ("migrate", "--plan"),
        ("backup", "BACKUPS"),
        ("backup", "--follow", "BACKUPS"),
    ],
)
def test_a_command_that_reads_a_database_makes_none(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    words = [tmp_path / "backups" if each == "BACKUPS" else each for each in command]
    ran = tallystick(*words, DATA_DIR=data)
    assert (ran.code, "there is no database" in ran.err) == (1, True), ran
    assert not list(data.iterdir())


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


def test_a_later_head_is_remembered_after_a_line_that_a_crash_cut(
    machine: Machine, tmp_path: Path, passphrase: Path
) -> None:
    file, heads = tmp_path / "keys.sealed", machine.keys / "signed-heads"
    machine.run("keys", "export", file, "--passphrase-file", passphrase)
    later_head = heads.read_text().splitlines()[-1]
    heads.write_text(f"1 {'A' * 43}=\n2 AAA")
    ran = machine.run("keys", "import", file, "--passphrase-file", passphrase, "--json")
    assert ran.document["files"]["signed-heads"] == "later", ran
    assert heads.read_text().splitlines()[1:] == ["2 AAA void", later_head]
    assert machine.run("jobs", "--once").code == 0


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
    (tmp_path / "bad").write_text(json.dumps({**whole, "format": "tallystick-governor-key-v1"}))
    ran = machine.run("keys", "import", tmp_path / "bad", "--passphrase-file", passphrase)
    assert (ran.code, "another kind of file" in ran.err) == (2, True)
    passphrase.write_text("\n")
    ran = machine.run("keys", "import", file, "--passphrase-file", passphrase)
    assert (ran.code, "its first line is empty" in ran.err) == (2, True)
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


def test_a_file_that_another_process_makes_meanwhile_is_not_told_as_written(
    machine: Machine, tmp_path: Path, passphrase: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, given = tmp_path / "keys.sealed", ("--passphrase-file", passphrase)
    assert machine.run("keys", "export", file, *given).code == 0
    link = os.link

    def second(draft: Path, path: Path) -> None:
        path.write_text("theirs")
        link(draft, path)

    monkeypatch.setattr(os, "link", second)
    for command in (("make", "server.key"), ("import", file, *given)):
        (machine.keys / "server.key").unlink()
        ran = machine.run("keys", *command)
        assert (ran.code, "server.key is there" in ran.err) == (1, True), ran
        assert (machine.keys / "server.key").read_text() == "theirs"


def test_no_file_is_made_while_a_server_signs(machine: Machine) -> None:
    settings = Settings(data_dir=machine.folder, database_url=machine.database)
    with Service.open(settings) as service:
        assert service.signer.verifier_key
        (machine.keys / "server.key").unlink()
        ran = machine.run("keys", "make", "server.key")
    assert (ran.code, "stop `tallystick serve`" in ran.err) == (1, True), ran
    assert not (machine.keys / "server.key").exists()


# --- rotation of the key that signs the log ----------------------------------------------------


def log_key(machine: Machine, folder: Path) -> str:
    """Export under a fresh head; the verifier key it is signed with."""
    ran = machine.run("audit", "export", folder, "--json")
    assert ran.code == 0, ran
    return str(ran.document["log_key"])


def verified(folder: Path, key: str | None = None, root: Path | None = None) -> tuple[bool, str]:
    flags = [*(("--key", key) if key else ()), *(("--root", root) if root else ())]
    ran = tallystick("audit", "verify", folder, *flags, "--json")
    return ran.document["verified"], "; ".join(ran.document["problems"])


def test_a_rotation_is_in_the_log_and_old_keys_and_old_heads_stay_verifiable(
    machine: Machine, tmp_path: Path
) -> None:
    first = log_key(machine, tmp_path / "one")
    ran = machine.run("keys", "rotate", "--overlap-days", 91, "--json")
    assert (ran.code, ran.document["refused"]) == (1, "log_key_overlap"), ran
    assert not (machine.keys / "signer-next.key").exists(), "whoever copies the keys knows no next"
    ran = machine.run("keys", "rotate", "--json")
    assert ran.code == 0, ran
    second = ran.document["verifier_key"]
    assert (ran.document["rotation"], ran.document["replaces"]) == (1, first)
    assert second != first
    assert machine.run("keys", "check").code == 0, "before a head is signed by the new key"
    assert log_key(machine, tmp_path / "two") == second
    head = (tmp_path / "two" / "checkpoint").read_text()
    assert head.count("\n\N{EM DASH} ") == 2, "for two weeks both keys sign"
    assert machine.run("keys", "rotate", "--overlap-days", 0, "--json").code == 0
    third = log_key(machine, tmp_path / "three")
    assert (tmp_path / "three" / "checkpoint").read_text().count("\n\N{EM DASH} ") == 1
    kept = tmp_path / "one" / "checkpoint"
    for key in (None, third, second, first):
        assert verified(tmp_path / "three", key, kept) == (True, ""), key
    stranger = first.split("+")[0]
    other = str(VerifierKey(stranger, bytes(SigningKey(bytes(32)).verify_key)))
    is_well, why = verified(tmp_path / "three", other)
    assert (is_well, "not signed by a known key" in why) == (False, True)
    assert not verified(tmp_path / "one", third)[0], "an export of before does not know the new key"


def test_a_head_of_before_a_rotation_is_one_of_a_restored_market(
    machine: Machine, tmp_path: Path
) -> None:
    first = log_key(machine, tmp_path / "one")
    note = (tmp_path / "one" / "checkpoint").read_text()
    assert machine.run("keys", "rotate").code == 0
    second = log_key(machine, tmp_path / "two")
    backup = Backup("b", None, 0, 0, 0, "", "", 0, 0, note, second, "tallystick")
    other = str(VerifierKey(first.split("+")[0], bytes(SigningKey(bytes(32)).verify_key)))
    head = proof.head_of_note(note)
    for key, is_well in ((second, True), (first, True), (other, False)):
        for given in (note, None):
            found = proof.prove(
                machine.database,
                backup,
                [head],
                note=given,
                key=parse_verifier_key(key),
                with_views=False,
            )
            assert found.ok == is_well, (key, given)
            assert all("cannot be used" in problem for problem in found.problems), found


def test_a_key_that_was_stolen_signs_no_head_after_its_rotation(
    machine: Machine, tmp_path: Path
) -> None:
    first = log_key(machine, tmp_path / "one")
    stolen = SigningKey(bytes.fromhex((machine.keys / "signer.key").read_text()))
    assert machine.run("keys", "rotate", "--overlap-days", 0).code == 0
    log_key(machine, tmp_path / "two")
    text = (tmp_path / "two" / "checkpoint").read_text().partition("\n\n")[0] + "\n"
    forged = tmp_path / "forged"
    forged.write_text(sign_note(text, text.split("\n", 1)[0], stolen))
    assert verified(tmp_path / "two", first) == (True, "")
    for key in (None, first):
        is_well, why = verified(tmp_path / "two", key, forged)
        assert (is_well, "published root" in why) == (False, True), key


def test_the_name_of_a_key_is_on_disk_before_the_log_depends_on_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, passphrase: Path
) -> None:
    """What the folder held each time that it was brought to disk."""
    synced: list[set[str]] = []

    def sync(handle: int, really: Callable[[int], None] = os.fsync) -> None:
        if os.path.samestat(os.fstat(handle), machine.keys.stat()):
            synced.append(set(os.listdir(handle)))
            recorded.append(facts(machine))
        really(handle)

    recorded: list[object] = []
    before = facts(machine)
    monkeypatch.setattr(os, "fsync", sync)
    (machine.keys / "server.key").unlink()
    assert machine.run("keys", "make", "server.key").code == 0
    assert "server.key" in synced.pop()
    file, given = machine.keys / "sealed", ("--passphrase-file", passphrase)
    assert machine.run("keys", "export", file, *given).code == 0
    assert file.name in synced.pop()
    recorded.clear()
    assert machine.run("keys", "rotate").code == 0
    assert "signer-next.key" in synced[0]
    assert recorded[0] == before, "before the log names it"
    assert {"signer.key", "signer-old.key", "signer-next.key"} <= synced[-2]
    assert "signer-next.key" not in synced[-1]


def test_a_signer_that_began_before_the_rotation_signs_no_further_head(
    machine: Machine, tmp_path: Path
) -> None:
    """A second machine with the same keys, forgotten when the keys were rotated."""
    forgotten = tmp_path / "second"
    shutil.copytree(machine.folder, forgotten)
    settings = Settings(data_dir=forgotten, database_url=machine.database)
    with Service.open(settings) as service, service.connect() as connection:
        assert service.signer.verifier_key
        assert machine.run("keys", "rotate").code == 0
        signed = trees.latest_checkpoint(connection)
        for sign in (
            lambda: run_trees(service, connection, service.clock.now_us()),
            lambda: audit._sign_head(service),
        ):
            with pytest.raises(trees.KeyReplaced, match="another key than the one held here"):
                sign()
        assert trees.latest_checkpoint(connection) == signed
    assert machine.run("jobs", "--once").code == 0


def test_jobs_of_a_server_that_records_nothing_are_refused_and_make_no_key(
    machine: Machine, tmp_path: Path
) -> None:
    folder = tmp_path / "reader"
    ran = tallystick(
        *("jobs", "--once"), DATA_DIR=folder, DATABASE_URL=machine.database, READ_ONLY="true"
    )
    assert (ran.code, "TALLYSTICK_READ_ONLY" in ran.err) == (2, True), ran
    settings = Settings(data_dir=folder, database_url=machine.database, read_only=True)
    with Service.open(settings) as service, pytest.raises(secret_files.KeyNotHere):
        _ = service.signer
    assert not list(folder.glob("keys/*"))


OLD, NEW = SigningKey(b"o" * 32), SigningKey(b"n" * 32)


def announced(until_us: int) -> dict[str, Any]:
    """A fact that replaces the one key by the other."""
    keys = [bytes(key.verify_key).hex() for key in (OLD, NEW)]
    text = rotation_text("a/log", 1, keys[0], keys[1], until_us).encode()
    return {
        "number": 1,
        "origin": "a/log",
        "old_key": keys[0],
        "new_key": keys[1],
        "until_us": until_us,
        "old_signature": OLD.sign(text).signature.hex(),
        "new_signature": NEW.sign(text).signature.hex(),
        "at_us": 5,
    }


def test_a_head_of_a_stolen_key_is_refused_whichever_key_the_auditor_holds() -> None:
    for until_us, accepted in ((5, [9]), (6, [9, 10, 50])):
        one = Rotation.of(10, announced(until_us))
        for held in (one.old, one.new):
            for size in (9, 10, 50):
                head = f"a/log\n{size}\n{'A' * 43}=\n"
                assert open_by_any(sign_note(head, "a/log", NEW), held, [one])[1] == one.new
                forged = sign_note(head, "a/log", OLD)
                if size in accepted:
                    assert open_by_any(forged, held, [one])[1] == one.old
                else:
                    with pytest.raises(NoteInvalid, match="replaced at once"):
                        open_by_any(forged, held, [one])


def test_a_forged_announcement_is_found_offline() -> None:
    body = announced(5)
    assert Rotation.of(9, body).fault is None
    for name, value in (
        ("old_signature", body["new_signature"]),
        ("new_signature", body["old_signature"]),
        ("until_us", 6),
        ("number", 2),
        ("origin", "b/log"),
    ):
        one = Rotation.of(9, {**body, name: value})
        assert one.fault is not None, name
        assert later(one.old, [one]) == []
    assert later(Rotation.of(9, body).old, [Rotation.of(9, {**body, "old_signature": None})]) == []


def test_an_interrupted_rotation_is_told_and_ended_by_the_next_run(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, passphrase: Path
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", _killed)
        with pytest.raises(SystemError):
            machine.run("keys", "rotate")
    refused = machine.run("jobs", "--once")
    assert (refused.code, "tallystick keys rotate" in refused.err) == (1, True)
    file, given = tmp_path / "keys.sealed", ("--passphrase-file", passphrase)
    assert machine.run("keys", "export", file, *given).code == 0
    shutil.rmtree(machine.keys)
    assert machine.run("keys", "import", file, *given).code == 0, "the log's present key is in it"
    ended = machine.run("keys", "rotate", "--json")
    assert (ended.code, ended.document["rotation"]) == (0, 1), ended
    assert machine.run("keys", "check").code == 0
    assert machine.run("jobs", "--once").code == 0


def test_who_brings_an_export_from_before_a_rotation_is_told_which_one_is_needed(
    machine: Machine, tmp_path: Path, passphrase: Path
) -> None:
    old, new, given = tmp_path / "old", tmp_path / "new", ("--passphrase-file", passphrase)
    assert machine.run("keys", "export", old, *given).code == 0
    assert machine.run("keys", "rotate").code == 0
    assert machine.run("keys", "export", new, *given).code == 0
    shutil.rmtree(machine.keys)
    assert machine.run("keys", "import", old, *given).code == 0
    ran = machine.run("keys", "check")
    assert ran.code == 1
    assert "from before the last `tallystick keys rotate`" in ran.err
    (machine.keys / "signer.key").rename(tmp_path / "signer.old")
    assert machine.run("keys", "import", new, *given).code == 0
    assert machine.run("keys", "check").code == 0


def _killed(*_paths: object) -> None:
    raise SystemError("killed here")


def test_a_lost_key_is_replaced_and_an_auditor_must_be_told_the_new_one(
    machine: Machine, tmp_path: Path
) -> None:
    first = log_key(machine, tmp_path / "one")
    (machine.keys / "signer.key").unlink()
    other = str(VerifierKey(first.split("+")[0], bytes(SigningKey(bytes(32)).verify_key)))
    assert machine.run("keys", "rotate").code == 2
    assert machine.run("keys", "rotate", "--lost", other).code == 1, "no head is signed by it"
    assert not (machine.keys / "signer-next.key").exists()
    ran = machine.run("keys", "rotate", "--lost", first, "--json")
    assert (ran.code, ran.document["old_key_signed"]) == (0, False), ran
    second = log_key(machine, tmp_path / "two")
    assert verified(tmp_path / "two", second)[0]
    is_well, why = verified(tmp_path / "two", first)
    assert (is_well, "replaced without the old one" in why) == (False, True)


def test_everybody_sees_the_rotations(scene: Scene) -> None:
    first = scene.anybody.read("/v1/audit/log/key")
    assert first["rotations"] == []
    signer = scene.service.settings.data_dir / "keys" / "signer.key"
    old, new = SigningKey(bytes.fromhex(signer.read_text())), SigningKey(b"n" * 32)
    keys, at_us = [bytes(key.verify_key).hex() for key in (old, new)], scene.clock.now_us()
    origin = scene.service.settings.log_origin
    text = rotation_text(origin, 1, keys[0], keys[1], at_us).encode()
    command = RotateLogKey(
        number=1,
        origin=origin,
        old_key=keys[0],
        new_key=keys[1],
        until_us=at_us,
        old_signature=old.sign(text).signature.hex(),
        new_signature=new.sign(text).signature.hex(),
        at_us=at_us,
    )
    scene.service.ledger.handle(command, key=None, now_us=at_us)
    signer.write_text((b"n" * 32).hex() + "\n")
    with scene.service.connect() as connection:
        trees.follow_all(connection)
        trees.publish_checkpoint(connection, scene.service.signer, at_us)
    told = scene.anybody.read("/v1/audit/log/key")
    (one,) = told["rotations"]
    assert (one["old"], one["new"]) == (first["verifier_key"], told["verifier_key"])
    assert one["old_key_signed"]
    ran = tallystick_at(scene.http, None, "keys", "announced", "--json")
    assert ran.document["rotations"] == told["rotations"]
    for key in (first["verifier_key"], told["verifier_key"]):
        url = "http://127.0.0.1:1"
        ran = tallystick_at(scene.http, None, "audit", "verify", url, "--key", key, "--json")
        assert ran.document["verified"] is True, ran
