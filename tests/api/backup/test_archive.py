"""The folder of backups, without a database."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tarfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from api.backup import sums, taking
from api.backup.archive import RECORD, Archive, Backup, BackupUnusable

BACKUP = Backup("20261125T231500Z", None, 1, 2, 180_000, "7", "0" * 24, 0, 0, "", "")


def _archive(folder: Path) -> Archive:
    archive = Archive(folder / "backups")
    archive.prepare()
    return archive


def test_one_backup_at_a_time_and_what_a_killed_one_left_is_removed(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    left = archive.base / ".20261125T231500Z.part"
    (left / "pg").mkdir(parents=True)
    with archive.alone():
        assert not left.exists()
        left.mkdir()
        with pytest.raises(BackupUnusable, match="another backup is being taken"), archive.alone():
            pytest.fail("two at a time")
        assert left.exists()
    assert not left.exists()
    with archive.alone():  # it was given back
        pass


def test_a_backup_whose_base_was_deleted_is_told_and_so_is_what_stands_on_it(
    tmp_path: Path,
) -> None:
    archive, labels = _archive(tmp_path), [f"2026112{n}T000000Z" for n in range(4)]
    for needs, label in pairwise([None, *labels]):
        (archive.base / str(label)).mkdir()
        replace(BACKUP, label=str(label), needs=needs).write(archive.base / str(label))
    assert archive.orphans() == []
    shutil.rmtree(archive.base / labels[1])
    assert archive.orphans() == [
        f"{label}: cannot be restored, {labels[1]} is not there any more" for label in labels[2:]
    ]
    assert [one.label for one in archive.chain(labels[0])] == labels[:1]
    with pytest.raises(BackupUnusable, match=f"needs {labels[1]}, which is not there any more"):
        archive.chain()


def test_segments_that_an_older_backup_needs_are_missed(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    for number in (1, 2, 5, 6):
        (archive.wal / f"{1:08X}{0:08X}{number:08X}").touch()
    old, new = (replace(BACKUP, end_segment=f"{1:08X}{0:08X}{number:08X}") for number in (1, 5))
    assert archive.gaps_after(new) == []
    assert archive.gaps_after(old) == ["wal: 2 segments are missing after number 2"]


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("nowhere", "is no folder"),
        ("", "is no folder of backups"),
        ("backups", "holds no complete backup"),
    ],
)
def test_where_there_is_no_backup_it_is_said_why(tmp_path: Path, place: str, why: str) -> None:
    _archive(tmp_path)
    with pytest.raises(BackupUnusable, match=why):
        Archive(tmp_path / place).chain()


def test_a_folder_of_backups_within_the_data_folder_is_refused(tmp_path: Path) -> None:
    source = taking.Source("host=nowhere.invalid", tmp_path, "example.com/log")
    with pytest.raises(BackupUnusable, match="lies in the data folder"):
        taking.take(source, Archive(tmp_path / "mine" / "backups"))
    assert list(tmp_path.iterdir()) == []


def test_what_a_seal_leaves_for_itself_is_in_no_backup_and_stops_none_by_going(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs, part = tmp_path / "data" / "epochs", tmp_path / "part"
    (epochs / "2.parts").mkdir(parents=True)
    part.mkdir()
    for name in ("1.json", "1.clients.json", "2.draft", "2.parts/rows-0.json"):
        (epochs / name).write_text("{}")
    real = tarfile.TarFile.add

    def sealing(tar: tarfile.TarFile, *told: Any, **named: Any) -> None:
        (epochs / "2.parts" / "rows-0.json").unlink(missing_ok=True)
        real(tar, *told, **named)

    monkeypatch.setattr(tarfile.TarFile, "add", sealing)
    taking._copy_files(tmp_path / "data", part)
    with tarfile.open(part / taking.FILES) as tar:
        assert tar.getnames() == ["epochs", "epochs/1.clients.json", "epochs/1.json"]


def test_the_names_in_a_backup_are_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pg" / "base").mkdir(parents=True)
    (tmp_path / "pg" / "base" / "1").write_text("1")
    flushed = set[int]()

    def note(handle: int) -> None:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            flushed.add(found.st_ino)

    monkeypatch.setattr(os, "fsync", note)
    sums.write(tmp_path)
    folders = (tmp_path, tmp_path / "pg", tmp_path / "pg" / "base")
    assert flushed == {folder.stat().st_ino for folder in folders}


def test_a_backup_of_another_format_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    folder = archive.base / BACKUP.label
    folder.mkdir()
    BACKUP.write(folder)
    assert archive.backups() == [BACKUP]
    told = json.loads((folder / RECORD).read_text())
    for changed, why in (
        ({**told, "format": 2}, "is of format 2, this version reads 1"),
        ({**told, "format": 2, "new": 1}, "is of format 2, this version reads 1"),
        ({**told, "new": 1}, "is damaged"),
        ({}, "is damaged"),
        ([], "is damaged"),
    ):
        (folder / RECORD).write_text(json.dumps(changed))
        with pytest.raises(BackupUnusable, match=why):
            archive.backups()
