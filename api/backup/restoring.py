"""Makes a data folder of a backup, up to a moment, and never over anything that is there.

    the folder holds all that was committed up to the moment  or  no `pg` in it at all

Until it does, what is made is called `pg.new`, which no server opens; whoever kills a restore
deletes it and begins again.

PostgreSQL itself puts the backups together (`pg_combinebackup`) and applies the WAL. What comes out
is a folder for `tallystick serve`: the server listens on its own socket alone, whatever the source
listened on; the source's settings lie beside, as `postgresql.conf.source` and `pg_hba.conf.source`.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg

from api.backup import sums
from api.backup.archive import Archive, Backup, BackupUnusable
from api.backup.programs import Programs
from api.backup.taking import BESIDE, FILES, WAL
from api.door.moments import moment
from api.process import secret_files
from api.process.embedded_postgres import BEGIN_AGAIN, UNFINISHED, EmbeddedPostgres, make_data_dir
from api.process.key_files import HEADS
from contracts.durable_file import entry_to_disk

WAIT_SECONDS = 86_400
PAUSE_SECONDS = 0.2
START_SECONDS = 10.0
"""So long a server that is not there yet, and complains of nothing, may still be starting."""
CONF = "include_if_exists 'tallystick.conf'\n"
HBA = "local all all trust\nlocal replication all trust\n"
RECOVERY = """\
listen_addresses = ''
port = 5432
unix_socket_directories = '{pg}'
unix_socket_permissions = 0700
hot_standby = off
archive_mode = off
max_wal_size = 2GB
shared_buffers = 256MB
log_min_messages = warning
restore_command = 'cp "{wal}/%f" "%p"'
recovery_target_action = 'promote'
recovery_target_timeline = 'latest'
"""
"""Nobody reads until it is over: a standby would need the settings that its source had."""
TOO_LATE = "recovery ended before configured recovery target was reached"


def restore(
    archive: Archive,
    chain: Sequence[Backup],
    data_dir: Path,
    *,
    until_us: int | None = None,
    programs: Programs,
    durable: bool = True,
    stage: Callable[[str], None] = lambda _stage: None,
) -> None:
    """Fill an empty data folder. The chain was checked. Without `durable` nothing is flushed to the
    disk: for a folder that is looked at and removed. Raises BackupUnusable, ProgramFailed."""
    pg, last = data_dir / UNFINISHED, chain[-1]
    require_room(data_dir)
    EmbeddedPostgres(data_dir)  # refuses a path that is too long for its socket
    _require_version(last, programs)
    make_data_dir(data_dir)
    try:
        stage(f"putting {len(chain)} backups together" if chain[1:] else "copying the backup")
        folders = [archive.data_of(one) for one in chain]
        how = () if durable else ("--no-sync",)
        if chain[1:]:
            programs.run("pg_combinebackup", *how, *folders, "-o", pg, check=True, as_us=True)
        else:  # as it is; before PostgreSQL 17 there is no such program, and nothing to combine
            shutil.copytree(folders[0], pg, symlinks=True)
        _own_settings(pg, until_us, data_dir / WAL, durable=durable)
        _copy_wal(archive, last, data_dir / WAL)
        for path in (pg, data_dir / WAL):
            programs.give(path)
        stage("applying what was written since")
        recover(pg, last, programs)
        stage("copying the files")
        put_files(archive.base / last.label, data_dir)
        shutil.rmtree(data_dir / WAL)
        if durable:
            sums.to_disk(data_dir)
        pg.rename(data_dir / "pg")
        if durable:
            entry_to_disk(data_dir)
    except BaseException:
        programs.run("pg_ctl", "-D", pg, "-m", "immediate", "-w", "stop")
        shutil.rmtree(pg, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(data_dir / WAL, ignore_errors=True)


def require_room(data_dir: Path) -> None:
    """Raises BackupUnusable when something lies where the restored data go."""
    if data_dir.exists() and not data_dir.is_dir():
        raise BackupUnusable(f"{data_dir} is no folder")
    there = {path.name for path in data_dir.iterdir()} if data_dir.exists() else set[str]()
    if UNFINISHED in there:
        raise BackupUnusable(
            f"{data_dir / UNFINISHED} is of a restore that was killed: {BEGIN_AGAIN}"
        )
    if in_the_way := sorted(there - {"keys"}):
        raise BackupUnusable(
            f"{data_dir} holds {in_the_way[0]} already, and a restore overwrites nothing: name an"
            " empty folder (`keys` alone may be in it)"
        )


def _require_version(backup: Backup, programs: Programs) -> None:
    said = programs.run("postgres", "--version", as_us=True).stdout
    found = re.search(r"\) (\d+)", said)
    here, there = int(found[1]) if found else 0, backup.server_version // 10_000
    if here != there:
        raise BackupUnusable(
            f"the backup is of PostgreSQL {there}, and the programs here are of {here}: name those"
            f" of {there} with --postgres, such as /usr/lib/postgresql/{there}/bin"
        )


def _own_settings(pg: Path, until_us: int | None, wal: Path, *, durable: bool) -> None:
    for name, content in (("postgresql.conf", CONF), ("pg_hba.conf", HBA)):
        if (pg / name).exists():
            (pg / name).rename(pg / f"{name}.source")
        (pg / name).write_text(content, encoding="utf-8")
    settings = RECOVERY.format(pg=str(pg).replace("'", "''"), wal=str(wal).replace("'", "''"))
    if not durable:
        settings += "fsync = off\nfull_page_writes = off\n"
    if until_us is not None:
        # Names of time zones, and so a Z, are not known yet when this is read.
        at = moment(until_us).removesuffix("Z") + "+00"
        settings += f"recovery_target_time = '{at}'\n"
    # The next start of the embedded server writes this file anew.
    (pg / "tallystick.conf").write_text(settings, encoding="utf-8")
    (pg / "postgresql.auto.conf").write_text("", encoding="utf-8")
    for name in ("standby.signal", "postmaster.pid"):
        (pg / name).unlink(missing_ok=True)
    for lock in pg.glob(".s.PGSQL.*"):  # of the embedded server that was copied, and may run
        lock.unlink()
    (pg / "recovery.signal").touch(mode=0o600)
    for path in pg.iterdir():
        if path.is_file():
            path.chmod(0o600)
    pg.chmod(0o700)


def _copy_wal(archive: Archive, last: Backup, folder: Path) -> None:
    """Where the server's user can read it. An unfinished segment counts: its end is zeros."""
    folder.mkdir(mode=0o700)
    for name in archive.wal_after(last):
        shutil.copyfile(archive.wal / name, folder / name.removesuffix(".partial"))
    for path in archive.wal.glob("*.history") if archive.wal.is_dir() else ():
        shutil.copyfile(path, folder / path.name)


def is_promoted(pg: Path, programs: Programs) -> bool | None:
    """Whether recovery is over: True, not yet: None; False when no server is running."""
    try:
        with psycopg.connect(host=str(pg), user="postgres", dbname="postgres") as connection:
            row = connection.execute("SELECT NOT pg_is_in_recovery()").fetchone()
        return row == (True,) or None
    except psycopg.OperationalError:
        is_running = programs.run("pg_ctl", "-D", pg, "status").returncode == 0
        return None if is_running else False


def recover(
    pg: Path,
    backup: Backup,
    programs: Programs,
    is_over: Callable[[Path, Programs], bool | None] = is_promoted,
) -> None:
    """Apply the WAL until it `is_over`, and end the server again. Raises BackupUnusable."""
    log = pg / "restore.log"
    started = programs.run("pg_ctl", "-D", pg, "-W", "-l", log, "start")
    if not _comes_up(log, lambda: is_over(pg, programs)):
        said = _said(log)
        if TOO_LATE in said:
            raise BackupUnusable(
                f"what is here ends before that time: leave --until out to restore {backup.label}"
                " and all the WAL after it"
            )
        raise BackupUnusable(
            f"PostgreSQL could not apply the WAL: {_fatal(said or started.stderr)}"
        )
    programs.run("pg_ctl", "-D", pg, "-m", "fast", "-w", "-t", WAIT_SECONDS, "stop", check=True)


def _comes_up(log: Path, is_over: Callable[[], bool | None]) -> bool:
    """Waits until recovery is over; False when the server ended instead. `pg_ctl -W start` comes
    back before there is a server to ask for.
    """
    began = time.monotonic()
    while (is_up := is_over()) is not True:
        had_time = time.monotonic() - began > START_SECONDS
        if is_up is False and (had_time or _complaints(_said(log))):
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def _said(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def _complaints(log: str) -> list[str]:
    return [line for line in log.splitlines() if "FATAL" in line or "PANIC" in line]


def _fatal(log: str) -> str:
    return (_complaints(log) or log.splitlines() or ["it said nothing"])[-1]


def _require_file(member: tarfile.TarInfo, data_dir: Path) -> None:
    """No file of a backup may become a key, or part of the database, whatever its name."""
    inside = os.path.relpath((data_dir / member.name).resolve(), data_dir.resolve())
    if inside.split("/")[0] in BESIDE:
        raise BackupUnusable(f"{FILES} holds {member.name}, which no backup holds")


def put_files(backup: Path, data_dir: Path) -> None:
    """The files of a backup into a data folder. Raises BackupUnusable when one is no file of it."""
    with tarfile.open(backup / FILES) as tar:
        for member in tar:
            _require_file(member, data_dir)
            tar.extract(member, data_dir, filter="data")
    heads, keys = backup / HEADS, secret_files.folder_of(data_dir)
    if heads.exists() and not (keys / HEADS).exists():
        keys.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(heads, keys / HEADS)
        (keys / HEADS).chmod(0o600)
