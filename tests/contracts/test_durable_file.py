"""A file is there as a whole, whoever else writes it at the same time."""

from __future__ import annotations

import os
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from threading import Barrier, Thread

import pytest

from contracts.durable_file import TO_DISK_BYTES, drafted, sha256_of, write_durably


def test_a_file_that_two_draft_at_once_holds_what_the_last_one_wrote(tmp_path: Path) -> None:
    path, both, told = tmp_path / "7.json", Barrier(2), {}

    def write(mark: bytes) -> None:
        pieces = [mark * 100_000] * 20
        both.wait()
        for _ in range(20):
            with drafted(path) as draft:
                told[mark] = draft.take(pieces)
                draft.keep()
                assert draft.is_kept

    writers = [Thread(target=write, args=(mark,)) for mark in (b"a", b"b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert told.keys() == {b"a", b"b"}  # neither was stopped by the other
    assert sha256_of(path) in told.values()
    assert [one.name for one in tmp_path.iterdir()] == ["7.json"]


def test_what_a_draft_that_was_not_kept_has_left_is_in_no_file(tmp_path: Path) -> None:
    path = tmp_path / "7.json"
    path.with_suffix(".draft").write_bytes(b"what a process that died has left, longer than all")
    with drafted(path) as draft:
        assert draft.take([b"new"]) == sha256(b"new").hexdigest()
    assert list(tmp_path.iterdir()) == []
    path.with_suffix(".draft").write_bytes(b"left again")
    write_durably(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_large_file_goes_to_disk_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its end, all of it at once, commits of the database waited for it."""
    sizes, size = [0], 11 * 2**20

    def put(file: int) -> None:
        sizes.append(os.fstat(file).st_size)

    monkeypatch.setattr(os, "fdatasync", put)
    monkeypatch.setattr(os, "fsync", put)
    with drafted(tmp_path / "7.json") as draft:
        digest = draft.take([bytes([number]) * 2**20 for number in range(11)])
        draft.keep()
    assert sha256_of(tmp_path / "7.json") == digest
    of_file = sizes[: sizes.index(size) + 1]  # then its folder
    assert max(after - before for before, after in pairwise(of_file)) <= TO_DISK_BYTES
