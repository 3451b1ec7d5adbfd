"""PostgreSQL's own programs for backups: found, and run as the user whom a server runs as.

The embedded wheel has all of them; an operator's own PostgreSQL is asked with them over its
address. Pages and WAL are copied by `pg_basebackup`, `pg_combinebackup` and `pg_receivewal` alone.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from api.process import embedded_postgres


class ProgramFailed(Exception):
    """A program of PostgreSQL ended with an error; the message is what it said."""


class Programs:
    """The programs of one PostgreSQL: of the embedded one, or of a folder that is named.

    `durable` False: what they make is looked at and removed, so any user may run a server of it.
    """

    def __init__(self, folder: Path | None = None, *, durable: bool = True) -> None:
        self._user = embedded_postgres.user_to_run_as(durable=durable)
        self.folder = folder or embedded_postgres.binaries(copy_for_others=self._user is not None)

    def run(
        self,
        program: str,
        *arguments: object,
        check: bool = False,
        as_us: bool = False,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end, as the server's user, or with `as_us` as the present one.

        Raises ProgramFailed with `check`.
        """
        done = subprocess.run(  # noqa: S603 - PostgreSQL's own binary, no shell
            self.command(program, *arguments, as_us=as_us),
            env=environment() if env is None else env,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            said = (done.stderr or done.stdout).strip()
            raise ProgramFailed(f"{program}: {said or f'ended with {done.returncode}'}")
        return done

    def command(self, program: str, *arguments: object, as_us: bool = False) -> list[str]:
        """The command line."""
        command = [str(self.folder / program), *map(str, arguments)]
        return command if as_us else self.as_user(command)

    def as_user(self, command: list[str]) -> list[str]:
        """Any command line, as the user who runs servers."""
        return embedded_postgres.as_user(self._user, command)

    def give(self, path: Path) -> None:
        """Make a file or a whole folder the server's user's, where that is another than ours."""
        if self._user is None:
            return
        for folder, _, files in os.walk(path):
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)
            for file in files:
                os.lchown(Path(folder, file), self._user.pw_uid, self._user.pw_gid)
        os.chown(path, self._user.pw_uid, self._user.pw_gid)


def login(conninfo: str, **more: str) -> tuple[str, dict[str, str]]:
    """An address for a command line, which every user of the machine can read, and the environment
    that has its password instead.
    """
    parts = conninfo_to_dict(conninfo, **more)
    password = parts.pop("password", None)
    secret = {} if password is None else {"PGPASSWORD": str(password)}
    return make_conninfo("", **parts), environment() | secret


def environment() -> dict[str, str]:
    """Of the caller's only what libpq needs to log in: a locale or PGDATA must not reach them."""
    kept = {name: os.environ[name] for name in ("PGPASSFILE", "HOME") if name in os.environ}
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", **kept}
