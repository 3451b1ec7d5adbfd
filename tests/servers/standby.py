"""A primary and its synchronous standby, two real servers of the embedded binaries on this machine.

Both listen on a port of 127.0.0.1, so that one libpq address names both. The standby is made by
`pg_basebackup`, as an operator makes it. Without fsync: what is killed here are processes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from api.backup.programs import Programs
from tests.processes import free_port, kill_with_children, memory, until

NAME = "standby"
"""By this name the primary waits for it."""
CONF = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
max_connections = 100
shared_buffers = 32MB
fsync = off
wal_level = replica
summarize_wal = on
wal_keep_size = 128MB
jit = off
timezone = 'UTC'
"""


@dataclass
class Server:
    """One server in a folder, on a port; `programs` run it as the user who owns the folder."""

    folder: Path
    port: int = field(default_factory=free_port)
    programs: Programs = field(default_factory=lambda: Programs(durable=False))

    @property
    def uri(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        return int((self.folder / "postmaster.pid").read_text().split("\n", 1)[0])

    def initialise(self) -> None:
        self.folder.mkdir(mode=0o700)
        self.programs.give(self.folder)
        self._do("initdb", "-D", self.folder, "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8")

    def configure(self, more: str = "") -> None:
        with (self.folder / "postgresql.auto.conf").open("a") as file:
            file.write(CONF.format(port=self.port) + more)

    def start(self) -> None:
        log = str(self.folder) + ".log"
        self._do("pg_ctl", "-D", self.folder, "-w", "-t", "60", "-l", log, "start")

    def stop(self) -> None:
        if (self.folder / "postmaster.pid").exists():
            self.programs.run("pg_ctl", "-D", self.folder, "-m", "immediate", "-w", "stop")

    def kill(self) -> None:
        """SIGKILL to the server and all of its children: nobody tidies up."""
        kill_with_children(self.pid)

    def promote(self) -> None:
        self._do("pg_ctl", "-D", self.folder, "-w", "promote")

    def ask(self, query: str) -> tuple[object, ...]:
        with psycopg.connect(self.uri, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchone() or ()

    def tell(self, *statements: str) -> None:
        with psycopg.connect(self.uri, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def copy_of(self, other: Server, name: str = NAME) -> None:
        """Become a standby of another server; the folder must not be there."""
        self.programs.run(
            *("pg_basebackup", "-D", self.folder, "-d", other.uri, "-R", "-X", "stream"),
            *("-c", "fast", "--no-sync"),
            check=True,
        )
        self.configure(f"cluster_name = '{name}'\nsynchronous_standby_names = ''\n")
        self.programs.give(self.folder)

    def _do(self, program: str, *arguments: object) -> None:
        self.programs.run(program, *arguments, check=True)


@dataclass
class Pair:
    primary: Server
    standby: Server

    @property
    def pid(self) -> int:
        return self.primary.pid

    def ensure_running(self) -> None:
        """Nobody starts a killed primary again: the standby takes its place."""

    @property
    def uri(self) -> str:
        """The libpq address of both: whichever is the primary answers."""
        ports = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        options = "target_session_attrs=read-write&connect_timeout=2"
        return f"postgresql://postgres@{ports}/postgres?{options}"

    def fail_over(self) -> None:
        """Kill the primary, and let the standby take its place."""
        self.primary.kill()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def restore_standby(self) -> None:
        """The folder of the killed one is lost: make it again, as a standby that is waited for."""
        shutil.rmtree(self.standby.folder)
        self.standby.copy_of(self.primary)
        self.standby.start()
        self.wait_for_standby()

    def wait_for_standby(self, name: str = NAME) -> None:
        """The primary waits for the standby's confirmation from here on."""
        self.primary.tell(
            f"ALTER SYSTEM SET synchronous_standby_names = '{name}'", "SELECT pg_reload_conf()"
        )
        until(
            lambda: self.primary.ask("SELECT max(sync_state) FROM pg_stat_replication") == ("sync",)
        )


@contextmanager
def pair() -> Generator[Pair, None, None]:
    """A primary with nothing in it, and its synchronous standby."""
    with folder() as root:
        primary, standby = Server(root / "primary"), Server(root / "standby")
        try:
            primary.initialise()
            primary.configure()
            primary.start()
            standby.copy_of(primary)
            standby.start()
            made = Pair(primary, standby)
            made.wait_for_standby()
            yield made
        finally:
            for server in (standby, primary):
                server.stop()


@contextmanager
def folder() -> Generator[Path, None, None]:
    """A folder that another user may enter: PostgreSQL does not run as root."""
    with tempfile.TemporaryDirectory(prefix="tally", dir=memory()) as name:
        root = Path(name)
        root.chmod(0o755)
        if os.geteuid() == 0:
            Programs(durable=False).give(root)
        yield root
