"""Streams what PostgreSQL writes into the folder of backups, while it runs.

    `--synchronous`  =>  an answered write lies in FOLDER/wal

`pg_receivewal --synchronous` confirms what it has on its disk, so it can be the synchronous standby
of a market that has no second server. The primary keeps what the stream has not read yet, in a slot
of the same name: a stream that stands still for long fills the primary's disk, and is told by
`pg_replication_slots`.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import psycopg

from api.backup.archive import Archive, BackupUnusable
from api.backup.programs import Programs, login
from ledger.log import durable

NAME = "tallystick_backup"
"""The application's name and the slot's."""
SUPERUSER = (
    "only a superuser of the database says for whom answers wait: run the command once with such a"
    " login, or as a superuser: ALTER SYSTEM SET synchronous_standby_names = '{}'; SELECT"
    " pg_reload_conf()"
)
PAUSE_SECONDS_MAX = 30.0
STOP_SECONDS = 10
LINES_SHOWN = 3
"""Of what a stream said before it ended: its last line alone is often "disconnected"."""


def follow(
    conninfo: str,
    archive: Archive,
    stop: threading.Event,
    told: Callable[[str], None],
    *,
    synchronous: bool | None = None,
) -> None:
    """Stream until `stop` is set; a lost database is waited for. `synchronous`: from now on every
    commit waits for this stream, or none does; None leaves it. Raises psycopg.Error when the
    database cannot be asked at the start, and BackupUnusable when it waits for another standby or
    another process streams into the folder.
    """
    archive.prepare()
    with _alone(archive) as lock:
        if synchronous is not None:
            _require_ours(conninfo)
        is_new = _make_slot(conninfo)
        if synchronous is not None:
            try:
                _wait_for_us(conninfo, NAME if synchronous else "")
            except psycopg.Error as error:
                if is_new:  # it would keep what is written, for nobody
                    _drop_slot(conninfo)
                if isinstance(error, psycopg.errors.InsufficientPrivilege):
                    raise BackupUnusable(SUPERUSER.format(NAME if synchronous else "")) from None
                raise
        told(f"streaming into {archive.wal}; stop it with Ctrl-C")
        _stream(conninfo, archive, lock, stop, told)
        if _is_waited_for(conninfo):
            told(
                "the market waits for this stream: no write is answered until `tallystick backup"
                f" {archive.folder} --follow` runs again; with --asynchronous it is waited for no"
                " more"
            )


@contextmanager
def _alone(archive: Archive) -> Generator[int, None, None]:
    """One stream writes into a folder, and who outlives us has the lock too. Raises
    BackupUnusable.
    """
    lock = os.open(archive.wal / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupUnusable(
                f"another `backup --follow` streams into {archive.wal}, and one is enough; where it"
                " was killed, its `pg_receivewal` goes on: end that first"
            ) from None
        yield lock
    finally:
        os.close(lock)


def _is_waited_for(conninfo: str) -> bool:
    """Whether commits wait for this stream. A database that ended waits for nothing."""
    try:
        with psycopg.connect(conninfo, autocommit=True, connect_timeout=STOP_SECONDS) as connection:
            return durable.setting(connection, "synchronous_standby_names") == NAME
    except psycopg.Error:
        return False


def _stream(
    conninfo: str, archive: Archive, lock: int, stop: threading.Event, told: Callable[[str], None]
) -> None:
    """`pg_receivewal`, again and again, until `stop` is set."""
    programs = Programs(durable=False)  # run as ourselves: they only copy
    address, env = login(conninfo, application_name=NAME)
    command = programs.command(
        *("pg_receivewal", "-D", archive.wal, "-d", address, "-S", NAME),
        *("--synchronous", "--no-loop"),
        as_us=True,
    )
    pause = 1.0
    while not stop.is_set():
        began = time.monotonic()
        process = subprocess.Popen(  # noqa: S603 - PostgreSQL's own binary, no shell
            command,
            env=env,
            cwd="/",
            stderr=subprocess.PIPE,
            text=True,
            umask=0o077,
            pass_fds=(lock,),
        )
        said = _wait(process, stop)
        if stop.is_set():
            return
        ran_well = time.monotonic() - began > PAUSE_SECONDS_MAX
        pause = 1.0 if ran_well else min(2 * pause, PAUSE_SECONDS_MAX)
        told(f"the stream ended, again in {pause:.0f} s: {said}")
        stop.wait(pause)
        with suppress(psycopg.Error):  # a promoted standby has no slot yet
            _make_slot(conninfo)


def _require_ours(conninfo: str) -> None:
    """A setting that names another standby is its operator's: without it, answers could be lost."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        now = durable.setting(connection, "synchronous_standby_names")
        if now not in ("", NAME):
            raise BackupUnusable(
                f"synchronous_standby_names is {now!r}, and that promise is not ended here:"
                " leave --synchronous and --asynchronous out, or change the setting yourself"
            )


def _wait_for_us(conninfo: str, name: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        if durable.setting(connection, "synchronous_standby_names") != name:
            durable.wait_for(connection, name)


def _make_slot(conninfo: str) -> bool:
    """Whether there was none."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        return durable.make_slot(connection, NAME)


def _drop_slot(conninfo: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        durable.drop_slot(connection, NAME)


def _wait(process: subprocess.Popen[str], stop: threading.Event) -> str:
    """Until it ends, or is ended; what it said at last."""
    while process.poll() is None:
        if stop.wait(0.1):
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
    assert process.stderr is not None
    with process.stderr as errors:
        said = errors.read().strip().splitlines()
    return "; ".join(said[-LINES_SHOWN:]) or "it said nothing"
