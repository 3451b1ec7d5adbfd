"""What a restore takes for a server that ended, and what it leaves when it is ended itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from api.backup import restoring
from api.backup.archive import Backup
from api.backup.programs import Programs

BACKUP = Backup("one", None, 1, 2, 180_000, "7", "0" * 24, 0, 0, "", "")


class _SlowStart(Programs):
    """A server whose `postmaster.pid` is not there yet, however often one asks."""

    def run(
        self,
        program: str,
        *arguments: object,
        check: bool = False,
        as_us: bool = False,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        del check, as_us, env
        return subprocess.CompletedProcess([program], 3 if "status" in arguments else 0, "", "")


class _Promoted:
    def __enter__(self) -> _Promoted:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def execute(self, _query: str) -> _Promoted:
        return self

    def fetchone(self) -> tuple[bool]:
        return (True,)


def test_a_server_that_is_not_there_yet_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def connect(**_how: str) -> _Promoted:
        asked.append(1)
        if len(asked) < 3:
            raise psycopg.OperationalError
        return _Promoted()

    monkeypatch.setattr(psycopg, "connect", connect)
    restoring._recover(tmp_path, BACKUP, _SlowStart(Path("/usr/bin"), durable=False))
    assert len(asked) == 3


def test_one_that_said_why_it_ended_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_how: str) -> None:
        raise psycopg.OperationalError

    monkeypatch.setattr(psycopg, "connect", refuse)
    monkeypatch.setattr(restoring, "START_SECONDS", 60.0)
    (tmp_path / "restore.log").write_text("LOG:  starting\nFATAL:  no disk\n")
    with pytest.raises(restoring.BackupUnusable, match="no disk"):
        restoring._recover(tmp_path, BACKUP, _SlowStart(Path("/usr/bin"), durable=False))
