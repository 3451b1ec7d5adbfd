"""An auditor's own copy of a market: loaded by the command, it answers as the operator's server."""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psycopg
import pytest

from api.audit import loading
from api.audit.loading import CopyUnfit, load_bundle
from api.door.auth import KEY, OF_A_COPY
from api.main import create_app
from api.process import key_files, secret_files
from api.process.clock import SimulatedClock
from api.process.leading import keeping_out
from api.process.secret_files import SecretUnreadable
from api.process.service import NotReady, Service
from api.settings import Settings
from domain.parties.account import READ_SCOPES
from ledger import advisory, migrate
from ledger.beside import loaded_log
from ledger.bundle import load
from ledger.bundle.shape import LoadRefused
from ledger.bundle.verify import verify_bundle
from ledger.tree import trees
from ledger.tree.checkpoint import Checkpoint
from projections import tables
from tests.conftest import Databases, fresh
from tests.e2e.test_tutorial import SECONDS_MAX, blocks, empty_folder, run
from tests.in_process import InProcess
from tests.processes import free_port
from tests.scenes.server import Caller, Scene
from tests.scenes.shell import Machine, Ran
from tests.scenes.work import hours_of_work, pin_and_sign

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "load-an-export.md"
__all__ = ["empty_folder"]


@dataclass(frozen=True)
class Copied:
    """The operator's market, its export, and the machine of an auditor who loaded it."""

    scene: Scene
    bundle: Path
    auditor: Machine
    loaded: Ran
    log_key: str


@pytest.fixture(scope="module")
def copied(
    shared: Scene,
    postgres: Databases,
    template_without_views: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Copied, None, None]:
    hours_of_work(shared)
    pin_and_sign(shared)
    folder = tmp_path_factory.mktemp("auditor")
    settings = shared.service.settings
    assert settings.database_url is not None
    operator = Machine(settings.data_dir, settings.database_url)
    assert operator.run("audit", "export", folder / "bundle").code == 0
    key = shared.anybody.read("/v1/audit/log/key")["verifier_key"]
    with fresh(postgres, template_without_views) as address:
        auditor = Machine(folder / "copy", address)
        loaded = auditor.run("audit", "load", folder / "bundle", "--key", key, "--json")
        yield Copied(shared, folder / "bundle", auditor, loaded, key)


def read(caller: Caller, path: str) -> dict[str, Any]:
    """Without the cursor, which each server seals with a key of its own."""
    told = caller.read(path)
    return {name: value for name, value in told.items() if name != "next_cursor"}


@contextmanager
def answering(copied: Copied) -> Generator[InProcess, None, None]:
    """A server that reads the copy, at the time of the operator's."""
    settings = Settings(
        data_dir=copied.auditor.folder, database_url=copied.auditor.database, read_only=True
    )
    clock = SimulatedClock(copied.scene.clock.now_us())
    with Service.open(settings, clock=clock) as service:
        app: Any = create_app(service)
        with InProcess(app) as http:
            yield http


def test_the_copy_answers_bills_earnings_and_reputation_as_the_operator_does(
    copied: Copied,
) -> None:
    scene = copied.scene
    assert copied.loaded.code == 0, copied.loaded
    told = copied.loaded.document
    assert (told["loaded"], told["facts"], told["key_given"]) == (True, scene.head(), True)
    renter, owner, node = scene.renter, scene.owner, scene.provider.node_id
    asked = [
        (renter, f"/v1/accounts/{renter.account_id}/statements"),
        (renter, f"/v1/accounts/{renter.account_id}/statements/2026-11"),
        (renter, "/v1/leases"),
        (renter, f"/v1/accounts/{renter.account_id}/balances"),
        (owner, "/v1/earnings"),
        (owner, f"/v1/nodes/{node}/usage"),
        (owner, f"/v1/nodes/{node}/reputation"),
        (owner, f"/v1/providers/{scene.provider.provider_id}/reputation"),
        (scene.operator, "/v1/audit/events"),
        (scene.anybody, "/v1/solvency"),
        (scene.anybody, "/v1/epochs"),
        (scene.anybody, "/v1/audit/log/key"),
    ]
    with answering(copied) as http:
        own = (copied.auditor.folder / "keys" / "auditor.key").read_text().strip()
        auditor = Caller(http, own)
        for caller, path in asked:
            wanted = read(caller, path)
            assert read(Caller(http, caller.key), path) == wanted, path
            if caller is renter and "accounts" in path:
                assert read(auditor, path) == wanted, path
        lines = renter.read(asked[0][1], kind="usage")["lines"]
        assert lines, "a bill without a line shows nothing"
        position = lines[0]["position"]
        for text in ("/v1/audit/log/checkpoint", f"/v1/audit/proofs/{position}"):
            assert auditor.get(text).text == scene.operator.get(text).text
        refused = auditor.post("/v1/leases", {"job": scene.job()})
        assert (refused.status_code, refused.json()["code"]) == (503, "read_only")
        refused = Caller(http, renter.key).post("/v1/leases", {"job": scene.job()})
        assert (refused.status_code, refused.json()["code"]) == (503, "read_only")


def test_the_key_of_a_copy_opens_no_other_server(copied: Copied) -> None:
    own = (copied.auditor.folder / "keys" / "auditor.key").read_text().strip()
    assert Caller(copied.scene.http, own).get("/v1/leases").status_code == 401


def test_the_key_of_a_copy_reads_and_does_nothing_else() -> None:
    assert OF_A_COPY.scopes == READ_SCOPES
    assert (OF_A_COPY.kind, OF_A_COPY.account_id) == (KEY, "")
    assert OF_A_COPY.sees_all
    assert not OF_A_COPY.is_operator


def test_a_key_of_a_copy_that_others_can_read_is_refused(copied: Copied) -> None:
    path = copied.auditor.folder / "keys" / "auditor.key"
    path.chmod(0o640)
    try:
        with pytest.raises(SecretUnreadable, match="can be read by others"), answering(copied):
            pass
    finally:
        path.chmod(0o600)


def test_with_a_copy_nothing_is_recorded_signed_or_paid_whatever_keys_lie_there(
    copied: Copied, tmp_path: Path
) -> None:
    folder = tmp_path / "with_keys"
    shutil.copytree(copied.auditor.folder, folder)
    for words in (("serve",), ("jobs", "--once"), ("audit", "export", tmp_path / "again")):
        ran = copied.auditor.run(*words)
        assert (ran.code, "nothing is recorded, signed or paid with it" in ran.err) == (1, True)
    assert {path.name for path in (copied.auditor.folder / "keys").iterdir()} == {"auditor.key"}
    keys = copied.scene.service.settings.data_dir / "keys"
    shutil.copytree(keys, folder / "keys", dirs_exist_ok=True)
    with pytest.raises(NotReady, match=r"is a copy of the log localhost/v1/audit/log.*--root from"):
        Service.open(Settings(data_dir=folder, database_url=copied.auditor.database))
    ran = Machine(folder, copied.auditor.database).run("audit", "load", copied.bundle)
    assert (ran.code, "holds the keys of a server" in ran.err) == (1, True)


def test_a_copy_that_only_reads_exports_what_it_was_loaded_from(
    copied: Copied, tmp_path: Path
) -> None:
    ran = copied.auditor.run("audit", "export", tmp_path / "again", READ_ONLY="true")
    assert ran.code == 0, ran
    manifest = "manifest.json"
    assert (tmp_path / "again" / manifest).read_bytes() == (copied.bundle / manifest).read_bytes()


def test_a_load_that_has_not_ended_is_answered_from_by_no_server_and_ends_when_said_again(
    copied: Copied,
) -> None:
    before = copied.loaded.document
    with psycopg.connect(copied.auditor.database, autocommit=True) as connection:
        with pytest.raises(
            LoadRefused, match="is a copy of the log localhost/v1/audit/log, and the"
        ):
            loaded_log.begin(connection, "another.log", "")
        loaded_log.begin(connection, before["origin"], "as a load begins")
    with (
        pytest.raises(NotReady, match="is not whole: its load was ended or failed"),
        answering(copied),
    ):
        pass
    again = copied.auditor.run("audit", "load", copied.bundle, "--json").document
    assert (again["facts_before"], again["facts"]) == (before["facts"], before["facts"])
    assert again["auditor_key"] == before["auditor_key"]
    with answering(copied):
        pass


def test_an_export_with_a_flipped_byte_is_not_loaded(
    postgres: Databases, template_without_views: str, copied: Copied, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(copied.bundle, bundle)
    file = next((bundle / "log").glob("market-*"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with fresh(postgres, template_without_views) as address:
        ran = Machine(tmp_path / "copy", address).run("audit", "load", bundle, "--json")
        assert (ran.code, ran.document["loaded"], ran.document["verified"]) == (1, False, False)
        assert not (tmp_path / "copy").exists(), "nothing was made"


@pytest.mark.guides(
    "::test_the_copy_answers_bills_earnings_and_reputation_as_the_operator_does",
    "tests/cli/test_guides.py::test_every_command_of_a_guide_is_there_with_all_that_it_is_given",
)
@pytest.mark.timeout(SECONDS_MAX)
def test_an_auditor_loads_an_export_by_the_commands_of_the_page(
    copied: Copied, empty_folder: Path
) -> None:
    """With a PostgreSQL of the folder's own."""
    shutil.copytree(copied.bundle, empty_folder / "bundle")
    shutil.copy(copied.bundle / "checkpoint", empty_folder / "head.txt")
    script = "\n".join(blocks(PAGE, "sh load")).replace("8430", str(free_port()))
    out = run(f"LOG_KEY='{copied.log_key}'\n{script}", empty_folder)
    assert "held equals claimed" in out
    assert re.search(r"^keys +ok +a copy of the log localhost", out, re.MULTILINE), out
    assert (empty_folder / "copy" / "pg" / "PG_VERSION").is_file()


def test_a_folder_with_a_market_of_its_own_takes_no_export(copied: Copied) -> None:
    settings = copied.scene.service.settings
    assert settings.database_url is not None
    ran = Machine(settings.data_dir, settings.database_url).run("audit", "load", copied.bundle)
    assert (ran.code, "holds the keys of a server" in ran.err) == (1, True)
    elsewhere = Machine(copied.auditor.folder, settings.database_url)
    ran = elsewhere.run("audit", "load", copied.bundle)
    assert (ran.code, "has a log of its own" in ran.err) == (1, True)


# --- its own log and a copy exclude each other ------------------------------------------------

_KEYS = "INSERT INTO key_set VALUES (true, 'm', 'f', sha256(''), sha256(''))"
_FACTS = "UPDATE market_events_head SET pos = 1"


@pytest.mark.parametrize(("version", "has"), [(13, _KEYS), (12, _KEYS), (5, _FACTS)])
def test_a_database_of_an_earlier_version_that_has_a_log_is_refused_and_not_migrated(
    copied: Copied,
    empty_database: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    version: int,
    has: str,
) -> None:
    shipped = migrate.shipped()
    monkeypatch.setattr(migrate, "shipped", lambda: shipped[:version])
    migrate.migrate(empty_database)
    monkeypatch.undo()
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(has.encode())
        ran = Machine(tmp_path / "copy", empty_database).run("audit", "load", copied.bundle)
        assert (ran.code, "has a log of its own" in ran.err) == (1, True), ran
        found = connection.execute("SELECT max(number) FROM migration").fetchone()
    assert found == (version,)


def test_a_row_that_was_written_past_the_schema_stops_and_changes_no_operators_server(
    postgres: Databases, template_without_views: str, tmp_path: Path
) -> None:
    with fresh(postgres, template_without_views) as address:
        settings = Settings(data_dir=tmp_path, database_url=address)
        with Service.open(settings) as service:
            key = service.verifier_key
        secret_files.keep_auditor_key(tmp_path, "ts_planted")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute(
                "INSERT INTO loaded_log VALUES (true, 'forged', 'forged', true, true, 0)"
            )
        for read_only in (False, True):
            asked = Settings(data_dir=tmp_path, database_url=address, read_only=read_only)
            with Service.open(asked) as service:
                assert (service.loaded, service.auditor_sha256) == (None, None)
                assert service.verifier_key == key
        told = Machine(tmp_path, address).run("doctor", "--json").document
        (keys,) = [one for one in told["checks"] if one["name"] == "keys"]
        assert keys["state"] == "failed", keys


def test_a_server_that_waited_while_a_database_became_a_copy_makes_no_key(
    copied: Copied, tmp_path: Path
) -> None:
    with (
        psycopg.connect(copied.auditor.database, autocommit=True) as connection,
        pytest.raises(key_files.KeysDiffer, match="is a copy of the log localhost"),
    ):
        key_files.open_log(connection, tmp_path, "own.log")
    assert not list(tmp_path.iterdir())


def test_a_load_begins_while_no_server_makes_keys(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advisory, "SECONDS_MAX", 0.1)
    with (
        psycopg.connect(database, autocommit=True) as server,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        with keeping_out(server, key_files.MAKING), pytest.raises(advisory.LockHeld):
            loading._begin(connection, "log", "key")
        assert loaded_log.read(connection) is None


# --- how a load ends --------------------------------------------------------------------------


MOVED = "UPDATE proj_statements.position SET position = position + %s WHERE source = 'market'"


class Killed(BaseException):
    """As a process is ended: nothing is caught."""


def test_a_load_that_is_killed_anywhere_goes_on_under_one_lock(
    postgres: Databases,
    template_without_views: str,
    copied: Copied,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    report = verify_bundle(copied.bundle, key=copied.log_key)
    places: list[tuple[Any, str]] = [
        (trees, "keep_note"),
        (loading, "_copy_files"),
        (secret_files, "keep_auditor_key"),
        (tables, "step_all"),
        (loading, "_end"),
    ]
    with (
        fresh(postgres, template_without_views) as address,
        psycopg.connect(address, autocommit=True) as other,
    ):

        def dying(*_: Any, **__: Any) -> None:
            assert not advisory.try_lock(other, load._LOADING), "another load would begin now"
            raise Killed

        for place, name in places:
            with monkeypatch.context() as patched:
                patched.setattr(place, name, dying)
                with pytest.raises(Killed):
                    load_bundle(address, tmp_path, copied.bundle, report)
            told = loaded_log.read(other)
            assert told is not None
            assert told.facts is None, "no server answers from it"
        other.execute(MOVED, (-1,))
        with monkeypatch.context() as patched:
            patched.setattr(tables, "step_all", lambda *_: 0)
            with pytest.raises(CopyUnfit, match="views that lack"):
                load_bundle(address, tmp_path, copied.bundle, report)
            other.execute(MOVED, (1,))
            patched.setattr(tables, "step_all", Mock(side_effect=KeyError("month")))
            with pytest.raises(CopyUnfit, match=r"view .*: KeyError: 'month'"):
                load_bundle(address, tmp_path, copied.bundle, report)
        loaded, _ = load_bundle(address, tmp_path, copied.bundle, report)
        told = loaded_log.read(other)
        assert told is not None
        assert told.facts == loaded.facts == copied.scene.head()
        assert (told.key_given, told.root_given) == (True, False)


def test_what_a_load_was_not_given_is_told_by_doctor(copied: Copied) -> None:
    def keys(*more: object) -> dict[str, Any]:
        assert copied.auditor.run("audit", "load", copied.bundle, *more).code == 0
        told = copied.auditor.run("doctor", "--json", READ_ONLY="true").document
        (found,) = [one for one in told["checks"] if one["name"] == "keys"]
        return dict(found)

    none = keys()
    assert (none["state"], "without --key and --root from" in none["said"]) == ("warn", True)
    root = copied.bundle / "checkpoint"
    assert keys("--key", copied.log_key, "--root", root)["state"] == "ok"
    only_key = keys("--key", copied.log_key)
    assert (only_key["state"], "without --root from" in only_key["said"]) == ("warn", True)


@pytest.mark.parametrize("folder", ["epochs", "clients", "payouts"])
def test_files_are_kept_that_the_facts_commit_to_and_no_others(tmp_path: Path, folder: str) -> None:
    """As if they had been changed after the verification."""
    told = load.Loaded(
        *(Checkpoint("log", 0, bytes(32)), "key", 0, 0, 0, 0, ""),
        epochs={1: ("00" * 32, "00" * 32)},
        roots={1: "00"},
    )
    (tmp_path / "bundle" / folder).mkdir(parents=True)
    (tmp_path / "bundle" / folder / "2.json").write_bytes(b"no fact names it")
    data = tmp_path / "data"
    data.mkdir()
    loading._copy_files(tmp_path / "bundle", data, told)
    (tmp_path / "bundle" / folder / "1.json").write_bytes(b"{}")
    with pytest.raises(CopyUnfit, match=rf"{folder}/1\.json"):
        loading._copy_files(tmp_path / "bundle", data, told)
    assert not list(data.rglob("*.json"))
