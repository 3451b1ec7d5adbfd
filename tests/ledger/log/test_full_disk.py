"""S-L14: a disk that takes nothing is told, by the log and to whoever asks whether all is ready."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import psycopg
import pytest
from eventsourcing.persistence import OperationalError

from ledger.log import full_disk
from ledger.log.full_disk import FULL_SECONDS, FullDisk


def refused(name: str) -> OperationalError:
    """As the log raises it: what PostgreSQL said is the cause."""
    error = OperationalError("append")
    error.__cause__ = getattr(psycopg.errors, name)("could not extend file")
    return error


def test_s_l14_a_refused_write_is_told_once_a_minute_and_counts_for_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = [0.0]
    disk = FullDisk(lambda: now_s[0])
    with caplog.at_level(logging.ERROR):
        assert not disk.notice(refused("LockNotAvailable"))
        assert not disk.is_full(None)
        for _ in range(3):
            assert disk.notice(refused("DiskFull"))
        now_s[0] = FULL_SECONDS - 1
        assert disk.is_full(None)
        now_s[0] = FULL_SECONDS
        assert not disk.is_full(None)
        assert disk.notice(OSError(errno.ENOSPC, "No space left on device"))
    assert [record.message for record in caplog.records] == [
        "the disk of the database is full: nothing is recorded until it has room"
    ] * 2


def test_a_folder_without_room_is_full_before_a_write_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk()
    assert not disk.is_full(tmp_path)
    monkeypatch.setattr(full_disk, "WAL_BYTES_MIN", 1 << 62)
    assert disk.is_full(tmp_path)
