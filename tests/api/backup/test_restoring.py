"""What a restore takes for a server that ended, and what it leaves when it is ended itself."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from api.backup import proof, restoring
from api.backup.archive import Backup, BackupUnusable
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


def test_a_server_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    answers = [True, False, False]
    server = _SlowStart(Path("/usr/bin"), durable=False)
    restoring.recover(tmp_path, BACKUP, server, lambda *_: answers.pop())
    assert answers == []


def test_one_that_said_why_it_ended_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "START_SECONDS", 60.0)
    (tmp_path / "restore.log").write_text("LOG:  starting\nFATAL:  no disk\n")
    with pytest.raises(BackupUnusable, match="no disk"):
        restoring.recover(tmp_path, BACKUP, _SlowStart(Path("/usr/bin"), durable=False))


@pytest.mark.parametrize(
    "name",
    ["keys/server.key", "./keys/server.key", "a/../keys/server.key", "link/server.key", "pg"],
)
def test_no_file_of_a_backup_becomes_a_key_or_part_of_the_database(
    tmp_path: Path, name: str
) -> None:
    backup, data = tmp_path / "backup", tmp_path / "data"
    for folder in (backup, data, data / "keys"):
        folder.mkdir()
    with tarfile.open(backup / "files.tar", "w") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "keys"
        for member in (link, tarfile.TarInfo(name)):
            tar.addfile(member, io.BytesIO())
    with pytest.raises(BackupUnusable, match="which no backup holds"):
        restoring.put_files(backup, data)
    assert list((data / "keys").iterdir()) == []


def test_a_head_that_a_crash_cut_is_no_damage(tmp_path: Path) -> None:
    path, root = tmp_path / "signed-heads", "A" * 43 + "="
    path.write_text(f"4 {root}\n5 {root[:9]} void\n7 {root}\n8 {root[:20]}")
    found = proof.heads_of_signer(path, "example.com/log")
    assert [head.size for head in found] == [7, 4]
    path.write_text(f"4 {root}\n8 {root[:20]}\n")
    with pytest.raises(BackupUnusable, match="is damaged"):
        proof.heads_of_signer(path, "example.com/log")
