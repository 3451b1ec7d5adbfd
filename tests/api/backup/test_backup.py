"""Backup, restore and drill by the commands, on a market that goes on meanwhile.

One market for the file: its data folder, a folder of backups with a full and an incremental one,
and the WAL that was streamed after them.
"""

from __future__ import annotations

import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from api.backup import following, restoring
from api.backup.archive import Archive
from api.backup.programs import Programs
from api.door.moments import moment
from api.process import secret_files
from api.process.embedded_postgres import EmbeddedPostgres
from api.process.service import Service
from api.settings import Settings
from domain.funds.deposit import ConfirmDeposit
from domain.money import credit
from ledger.tree import trees
from ledger.tree.checkpoint import Signer, SigningRefused
from projections import tables
from tests.processes import until
from tests.scenes.running_market import RENTER, START_US, Market
from tests.scenes.shell import Ran, tallystick
from tests.servers.standby import folder

pytestmark = pytest.mark.timeout(300)


@dataclass
class Kept:
    """A market that was backed up twice and streamed after that; its database is gone now."""

    root: Path
    data: Path
    backups: Path
    full: dict[str, Any]
    incremental: dict[str, Any]
    between_us: int
    facts_between: int
    facts: int
    note: str

    def run(self, command: str, *arguments: object, backups: Path | None = None) -> Ran:
        # Of many small files, each is to be on the disk: in memory that takes no time.
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(tempfile, "tempdir", str(self.root))
            return self._run(command, *arguments, backups=backups)

    def _run(self, command: str, *arguments: object, backups: Path | None) -> Ran:
        where = arguments if "--data-dir" in arguments else (*arguments, "--data-dir", self.data)
        return tallystick(command, backups or self.backups, *where, "--json")

    def copy(self, name: str) -> Path:
        """Of the folder of backups, to be damaged."""
        copied = self.root / name
        shutil.copytree(self.backups, copied)
        return copied


@pytest.fixture(scope="module")
def kept() -> Generator[Kept, None, None]:
    with folder() as root:
        data, backups = root / "data", root / "backups"
        with EmbeddedPostgres(data, durable=False):
            made = _backed_up(root, data, backups)
        shutil.rmtree(data / "pg")  # the disk is gone; the keys lay elsewhere
        yield made


def _backed_up(root: Path, data: Path, backups: Path) -> Kept:
    with Service.open(Settings(data_dir=data)) as service, service.connect() as connection:
        market = Market(service.ledger, connection)
        market.found("north", at_us=START_US)
        _sign(service)
        (data / "epochs").mkdir()
        (data / "epochs" / "1.json").write_text("{}")
        stop, said = threading.Event(), list[str]()
        stream = threading.Thread(
            target=following.follow, args=(service.conninfo, Archive(backups), stop, said.append)
        )
        stream.start()
        try:
            until(lambda: _streams(service.conninfo))
            full = tallystick("backup", backups, "--data-dir", data, "--json")
            assert full.code == 0, full.err
            _deposit(market, "second")
            incremental = tallystick("backup", backups, "--data-dir", data, "--json")
            assert incremental.code == 0, incremental.err
            _deposit(market, "third")
            facts_between = market.head
            time.sleep(0.02)
            between_us = time.time_ns() // 1_000
            time.sleep(0.02)
            _deposit(market, "fourth")
            note = _sign(service)
            facts = market.head
            until(lambda: _is_streamed(service.conninfo))
        finally:
            stop.set()
            stream.join()
        assert len(said) == 1, said
        return Kept(
            root,
            data,
            backups,
            full.document,
            incremental.document,
            between_us,
            facts_between,
            facts,
            note,
        )


def _deposit(market: Market, name: str) -> None:
    market.do(
        START_US,
        ConfirmDeposit(
            deposit_id=f"deposit_{name}",
            account_id=RENTER,
            source="cash",
            amount=credit(7),
            reference=name,
            confirmed_by="operator",
            at_us=START_US,
        ),
    )


def _sign(service: Service) -> str:
    with service.connect() as connection:
        trees.follow_all(connection)
        return trees.publish_checkpoint(connection, service.signer, START_US)


def _streams(conninfo: str) -> bool:
    return _ask(conninfo, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") > 0


def _is_streamed(conninfo: str) -> bool:
    query = (
        "SELECT count(*) FROM pg_stat_replication WHERE flush_lsn = pg_current_wal_flush_lsn()"
        f" AND application_name = '{following.NAME}'"
    )
    return _ask(conninfo, query) > 0


def _ask(conninfo: str, query: str) -> int:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])


@pytest.mark.slow("::test_a_lost_disk_comes_back_with_every_fact_that_was_answered")
def test_the_second_backup_holds_only_what_changed_and_others_can_read_neither(kept: Kept) -> None:
    assert kept.full["kind"] == "full"
    assert (kept.incremental["kind"], kept.incremental["needs"]) == (
        "incremental",
        kept.full["backup"],
    )
    assert kept.incremental["bytes"] < kept.full["bytes"] * 3 / 4
    for path in (kept.backups, *kept.backups.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, f"{path} {stat.filemode(path.stat().st_mode)}"
    names = {path.name for path in kept.backups.rglob("*")}
    assert "signed-heads" in names
    assert not {"signer.key", "blinding.key", "sealing.key", "server.key"} & names


def test_a_check_finds_all_whole(kept: Kept) -> None:
    checked = kept.run("backup", "--check")
    assert checked.code == 0, checked.out + checked.err
    assert checked.document["whole"]
    assert [one["kind"] for one in checked.document["backups"]] == ["full", "incremental"]


def test_a_lost_disk_comes_back_with_every_fact_that_was_answered(kept: Kept) -> None:
    head = kept.root / "head.txt"
    head.write_text(kept.note)
    new = kept.root / "new"
    restored = kept.run("restore", "--root", head, "--data-dir", new)
    assert restored.code == 0, restored.out + restored.err
    told = restored.document
    assert told["whole"]
    assert (told["facts"], told["missing_facts"]) == (kept.facts, 0)
    assert told["signed_facts"] == kept.facts
    assert told["views_compared"] == len(tables.PROJECTIONS)
    assert (new / "epochs" / "1.json").read_text() == "{}"
    assert (new / "pg").stat().st_mode & 0o077 == 0
    assert not (new / "restoring-wal").exists()
    # It goes on: with the keys put back, the next head is signed on the old ones.
    shutil.copytree(kept.data / "keys", new / "keys", dirs_exist_ok=True)
    with Service.open(Settings(data_dir=new)) as service, service.connect() as connection:
        _deposit(Market(service.ledger, connection), "fifth")
        assert f"\n{kept.facts + 1}\n" in _sign(service)


@pytest.mark.long
def test_a_drill_up_to_a_moment_has_what_was_committed_by_then_and_the_signer_refuses_it(
    kept: Kept,
) -> None:
    early = kept.root / "early"
    told = kept.run("restore", "--until", moment(kept.between_us), "--data-dir", early)
    assert told.code == 0, told.out + told.err
    assert told.document["facts"] == kept.facts_between
    assert "for looking only" in told.err
    # Facts that were signed are not in it: a head of it would be a fork.
    shutil.rmtree(early / "keys", ignore_errors=True)
    shutil.copytree(kept.data / "keys", early / "keys")
    with EmbeddedPostgres(early) as server, psycopg.connect(server.uri, autocommit=True) as conn:
        trees.follow_all(conn)
        seed = secret_files.read_or_make(early / "keys" / "signer.key")
        origin = Settings().log_origin
        with (
            Signer(early / "keys" / "signed-heads", origin, seed) as signer,
            pytest.raises(SigningRefused, match="were signed before"),
        ):
            trees.publish_checkpoint(conn, signer, START_US)
    drilled = kept.run("drill", "--until", moment(kept.between_us), "--no-views")
    assert drilled.code == 0, drilled.out + drilled.err
    # Compared with the head that another person kept, the same is not whole.
    head = kept.root / "later.txt"
    head.write_text(kept.note)
    short = kept.run("drill", "--until", moment(kept.between_us), "--root", head, "--no-views")
    assert short.code == 1
    assert short.document["missing_facts"] == kept.facts - kept.facts_between
    assert "were signed before" in short.document["problems"][0]


def test_a_drill_without_the_stream_misses_what_the_signer_remembers(kept: Kept) -> None:
    copied = kept.copy("no-stream")
    shutil.rmtree(copied / "wal")
    drilled = kept.run("drill", "--no-views", backups=copied)
    assert drilled.code == 1
    assert drilled.document["missing_facts"] == kept.facts - kept.incremental["facts"]
    assert not drilled.document["whole"]


@pytest.mark.long
def test_a_restore_without_the_stream_misses_it_too_where_the_keys_lie_there(kept: Kept) -> None:
    copied = kept.copy("no-stream-again")
    shutil.rmtree(copied / "wal")
    new = kept.root / "remembers"
    shutil.copytree(kept.data / "keys", new / "keys")
    restored = kept.run("restore", "--no-views", "--data-dir", new, backups=copied)
    assert restored.code == 1
    assert restored.document["missing_facts"] == kept.facts - kept.incremental["facts"]


def test_a_head_that_cannot_be_read_is_told_before_anything_is_restored(kept: Kept) -> None:
    no_head, new = kept.root / "no-head.txt", kept.root / "nothing"
    no_head.write_text("no head")
    for given in (("--root", no_head), ("--root", kept.root / "typo.txt")):
        refused = kept.run("restore", *given, "--data-dir", new)
        assert refused.code != 0
        assert not new.exists()


@pytest.mark.parametrize(
    "which",
    [
        "base/*/pg/base/*/1259",
        pytest.param("base/*/pg/pg_wal/0*", marks=pytest.mark.long),
        pytest.param("base/*/files.tar", marks=pytest.mark.long),
        pytest.param("base/*/SHA256SUMS", marks=pytest.mark.long),
    ],
)
def test_a_flipped_bit_of_a_backup_is_found_and_nothing_is_restored(
    kept: Kept, which: str, tmp_path: Path
) -> None:
    copied = kept.copy(f"flipped-{abs(hash(which))}")
    target = min(copied.glob(which))
    content = bytearray(target.read_bytes())
    content[len(content) // 2] ^= 1
    target.write_bytes(content)
    assert kept.run("backup", "--check", backups=copied).code == 1
    new = tmp_path / "new"
    refused = kept.run("restore", "--data-dir", new, backups=copied)
    assert refused.code == 1
    assert not (new / "pg").exists()
    shutil.rmtree(copied)


@pytest.mark.long
def test_a_flipped_bit_of_the_stream_and_a_missing_segment_are_found(kept: Kept) -> None:
    copied = kept.copy("stream")
    last = max((copied / "wal").iterdir())
    content = bytearray(last.read_bytes())
    used = len(bytes(content).rstrip(b"\0"))
    content[used // 2] ^= 1
    last.write_bytes(content)
    damaged = kept.run("backup", "--check", backups=copied)
    assert damaged.code == 1
    assert damaged.document["problems"][0].startswith("wal: ")
    after = sorted((copied / "wal").iterdir())
    last.rename(copied / "wal" / f"{int(last.name[:24], 16) + 2:024X}.partial")
    missing = kept.run("backup", "--check", backups=copied)
    assert missing.code == 1, after
    assert any("segments are missing" in one for one in missing.document["problems"]), after


def test_a_check_finds_that_a_backup_needs_one_that_was_deleted(kept: Kept) -> None:
    copied = kept.copy("orphaned")
    shutil.rmtree(copied / "base" / kept.full["backup"])
    checked = kept.run("backup", "--check", backups=copied)
    assert (checked.code, checked.document["whole"]) == (1, False)
    (problem,) = checked.document["problems"]
    assert f"cannot be restored, {kept.full['backup']} is not there any more" in problem
    refused = kept.run("drill", backups=copied)
    assert refused.code == 1
    assert "is not there any more" in refused.document["failed"]


def test_a_restore_overwrites_nothing_and_says_so(kept: Kept, tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "pg").mkdir(parents=True)
    refused = kept.run("restore", "--data-dir", there)
    assert refused.code == 1
    assert "overwrites nothing" in refused.err
    assert list(there.iterdir()) == [there / "pg"]


def test_no_server_can_be_opened_on_a_restore_that_was_ended_in_the_middle(kept: Kept) -> None:
    archive, new, seen = Archive(kept.backups), kept.root / "ended", dict[str, set[str]]()

    def look(stage: str) -> None:
        seen[stage] = {path.name for path in new.iterdir()}
        if stage == "copying the files":
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        restoring.restore(
            archive,
            archive.chain(),
            new,
            programs=Programs(durable=False),
            durable=False,
            stage=look,
        )
    half_made = {"pg.new", "restoring-wal"}
    assert list(seen.values()) == [set(), half_made, half_made]
    assert list(new.iterdir()) == []


@pytest.mark.long
def test_a_time_before_the_first_backup_and_one_after_the_last_write_are_refused(
    kept: Kept,
) -> None:
    for when, why in (
        ("2020-01-01T00:00:00Z", "no complete backup"),
        ("2099-01-01T00:00:00Z", "ends before that time"),
        ("yesterday", "RFC 3339"),
    ):
        refused = kept.run("restore", "--until", when, "--data-dir", kept.root / "never")
        assert refused.code in (1, 2)
        assert why in refused.err
        assert not (kept.root / "never" / "pg").exists()


@pytest.mark.long
def test_a_folder_that_others_can_read_is_refused(tmp_path: Path) -> None:
    open_one = tmp_path / "open"
    open_one.mkdir(mode=0o755)
    with folder() as root, EmbeddedPostgres(root / "data", durable=False):
        refused = tallystick("backup", open_one, "--data-dir", root / "data")
    assert refused.code == 1
    assert "chmod 700" in refused.err


def test_zeros_are_the_end_of_the_stream_only_where_nothing_follows(kept: Kept) -> None:
    copied = kept.copy("zeros")
    last = max((copied / "wal").iterdir())
    full = copied / "wal" / f"{int(last.name[:24], 16) - 1:024X}"
    assert last.name.endswith(".partial")
    for path, at, new in (
        (full, 40, bytes(8192)),  # its records, in a full segment
        (last, 8 << 20, b"something"),  # behind zeros of the unfinished one
    ):
        content = path.read_bytes()
        path.write_bytes(content[:at] + new + content[at + len(new) :])
        assert path.read_bytes() != content
        checked = kept.run("backup", "--check", backups=copied)
        assert (checked.code, checked.document["whole"]) == (1, False), path.name
        path.write_bytes(content)


@pytest.mark.long
def test_a_market_on_postgres_15_is_backed_up_and_restored_by_its_own_programs() -> None:
    """Before 17 no program combines backups: each is a full one, copied as it is."""
    programs = Path("/usr/lib/postgresql/15/bin")
    if not (programs / "postgres").exists():
        pytest.skip("no PostgreSQL 15: apt-get install postgresql-15")
    with folder() as root:
        data, backups, new = root / "data", root / "backups", root / "new"
        data.mkdir()
        with EmbeddedPostgres(root / "15", durable=False, binaries=programs) as server:
            address = server.create_database("market")
            settings = Settings(data_dir=data, database_url=address)
            with Service.open(settings) as service, service.connect() as connection:
                market = Market(service.ledger, connection)
                market.found("north", at_us=START_US)
                _sign(service)
                facts = market.head
            for _ in range(2):
                took = tallystick(
                    "backup", backups, "--data-dir", data, "--json", DATABASE_URL=address
                )
                assert took.code == 0, took.err
        restored = tallystick(
            "restore", backups, "--data-dir", new, "--postgres", programs, "--no-views", "--json"
        )
        assert restored.code == 0, (restored.err, restored.document)
        assert restored.document["facts"] == facts
