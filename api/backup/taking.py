"""Takes one backup while the market runs: the database first, then the files beside it.

    a backup lies under its name  =>  every byte was read back and is in SHA256SUMS

In this order a file that a fact names is there: it was written before the fact. The folder `keys`
is not copied but for `signed-heads`, which is no secret: a thief of the backup must not get the
signer. `tallystick keys export` takes the keys along, sealed, to another place. Incremental where
the server keeps summaries of its WAL (`summarize_wal = on`, from PostgreSQL 17) and an earlier
backup of the same server is there.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from api.backup import sums
from api.backup.archive import Archive, Backup, BackupUnusable
from api.backup.programs import ProgramFailed, Programs, login
from api.process import secret_files
from api.process.embedded_postgres import UNFINISHED
from api.process.key_files import HEADS, SIGNER
from contracts.durable_file import entry_to_disk
from ledger.log import durable, lane_store, market, usage_reads
from ledger.log.lane_map import ranges
from ledger.tree import trees
from ledger.tree.checkpoint import verifier_of

FILES = "files.tar"
WAL = "restoring-wal"
BESIDE = frozenset({"pg", UNFINISHED, WAL, "keys", "start", "users"})
"""What of a data folder is no file to keep: the database itself, secrets, locks."""
PASSING = frozenset({".draft", ".parts"})
"""How the names of files and folders end that are gone when what makes them is done."""
OLDEST_INCREMENTAL = 170_000


@dataclass(frozen=True, slots=True)
class Source:
    """What is backed up: a database by its libpq address, and the files of a data folder."""

    conninfo: str
    data_dir: Path
    log_origin: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the server says of itself."""

    now_us: int
    version: int
    system: str
    summarizes: bool
    facts: int
    reports: int
    head: str
    database: str


def require_whole(conninfo: str) -> None:
    """That all usage lanes lie in this database: a copy of it would lack the others. Raises
    BackupUnusable.
    """
    with psycopg.connect(conninfo, autocommit=True) as connection:
        if lanes := lane_store.lanes_elsewhere(connection):
            raise BackupUnusable(
                f"usage lanes {ranges(lanes)} lie on other servers, and this command copies one"
                " database. Keep each server with PostgreSQL's own means, as docs/howto/lanes.md"
                " says"
            )


def take(
    source: Source,
    archive: Archive,
    *,
    full: bool = False,
    stage: Callable[[str], None] = lambda _stage: None,
) -> Backup:
    """Add one backup to the archive. Raises BackupUnusable, ProgramFailed, psycopg errors."""
    programs = Programs(durable=False)  # run as ourselves: they only copy
    if archive.folder.resolve().is_relative_to(source.data_dir.resolve()):
        raise BackupUnusable(
            f"{archive.folder} lies in the data folder, and each backup would hold all before it:"
            " name a folder outside, on another disk"
        )
    archive.prepare()
    seen = _see(source.conninfo)
    before = [] if full else archive.backups()
    needs = before[-1] if before and _is_base(before[-1], seen) else None
    label = f"{datetime.fromtimestamp(seen.now_us / 1e6, UTC):%Y%m%dT%H%M%S%fZ}"
    part = archive.base / f".{label}.part"
    with archive.alone():
        part.mkdir(mode=0o700)
        if needs is not None:
            stage(f"copying the database, what changed since {needs.label}")
            try:
                _copy_database(source, part / "pg", label, programs, archive.data_of(needs))
            except ProgramFailed:  # after a restore the server has no summaries of what came before
                stage("what changed since then is not known here: copying all of it")
                shutil.rmtree(part / "pg", ignore_errors=True)
                needs = None
        if needs is None:
            stage("copying the database")
            _copy_database(source, part / "pg", label, programs)
        stage("comparing with what PostgreSQL read")
        if problems := sums.manifest_faults(part / "pg"):
            raise BackupUnusable(f"the copy is not what was read: {problems[0]}")
        stage("copying the files")
        _copy_files(source.data_dir, part)
        after = _see(source.conninfo)
        made = Backup(
            label=label,
            needs=None if needs is None else needs.label,
            began_us=seen.now_us,
            ended_us=after.now_us,
            server_version=seen.version,
            system=seen.system,
            end_segment=_last_segment(part / "pg"),
            facts=seen.facts,
            reports=seen.reports,
            head=seen.head,
            log_key=_log_key(source) if seen.head else "",
            database=seen.database,
        )
        made.write(part)
        stage("writing the sums")
        sums.write(part)
        part.rename(archive.base / label)
        entry_to_disk(archive.base)
    return made


def _copy_database(
    source: Source, target: Path, label: str, programs: Programs, before: Path | None = None
) -> None:
    """All of it, or what changed since an earlier copy. Raises ProgramFailed."""
    how = () if before is None else ("-i", before / sums.MANIFEST)
    address, env = login(source.conninfo)
    programs.run(
        *("pg_basebackup", "-D", target, "-d", address, "-X", "stream"),
        *("-c", "fast", "--manifest-checksums=SHA256", "--label", label, "--no-sync", *how),
        check=True,
        as_us=True,
        env=env,
    )


def _is_base(before: Backup, seen: _Seen) -> bool:
    """Whether an incremental backup can be taken on an earlier one."""
    same = (
        before.system == seen.system and before.server_version // 10_000 == seen.version // 10_000
    )
    return same and seen.summarizes


def _see(conninfo: str) -> _Seen:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        version = connection.info.server_version
        has_summaries = version >= OLDEST_INCREMENTAL
        now_us, facts = durable.clock_us(connection), market.head(connection)
        row = connection.execute(
            "SELECT system_identifier::text, current_database() FROM pg_control_system()"
        ).fetchone()
        assert row is not None
        signed = trees.latest_checkpoint(connection)
        return _Seen(
            now_us=now_us,
            version=version,
            system=row[0],
            summarizes=has_summaries and durable.setting(connection, "summarize_wal") == "on",
            facts=facts,
            reports=usage_reads.stored_count(connection),
            head="" if signed is None else signed[1],
            database=row[1],
        )


def _copy_files(data_dir: Path, part: Path) -> None:
    """What lies in the data folder beside database and keys, and which heads were signed."""
    path = part / FILES
    with tarfile.open(path, "w") as tar:
        for entry in sorted(data_dir.iterdir()) if data_dir.is_dir() else ():
            if entry.name not in BESIDE and not entry.is_symlink() and not entry.is_socket():
                _add(tar, entry, entry.name)
    path.chmod(0o600)
    heads = secret_files.folder_of(data_dir) / HEADS
    if heads.exists():
        copied = part / HEADS
        copied.write_bytes(heads.read_bytes())
        copied.chmod(0o600)


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """A file, or a folder with all in it but for what may go meanwhile, as a seal's parts do."""
    tar.add(path, name, recursive=False)
    if path.is_dir() and not path.is_symlink():
        for entry in sorted(path.iterdir()):
            if entry.suffix not in PASSING:
                _add(tar, entry, f"{name}/{entry.name}")


def _last_segment(pg: Path) -> str:
    """The segment in which the backup ends: recovery goes on with it."""
    names = sorted(name for name in os.listdir(pg / "pg_wal") if len(name) == 24 and name.isalnum())
    if not names:
        raise BackupUnusable("PostgreSQL copied no WAL: take the backup again")
    return names[-1]


def _log_key(source: Source) -> str:
    """What the log's heads are checked with; nothing where this machine does not sign."""
    path = secret_files.folder_of(source.data_dir) / SIGNER
    return str(verifier_of(secret_files.read(path), source.log_origin)) if path.exists() else ""
