"""The fingerprint covers every file in every folder of the domain: no old snapshot is believed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import domain
from ledger.fan_out.fingerprint import fingerprint_of
from ledger.log.market import domain_fingerprint

DOMAIN = Path(domain.__file__).parent


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DOMAIN, tmp_path / "domain"))


def test_the_fingerprint_is_that_of_the_folder_of_the_domain() -> None:
    assert domain_fingerprint() == fingerprint_of(DOMAIN)


def test_a_copy_has_the_same_fingerprint(copied: Path) -> None:
    assert fingerprint_of(copied) == fingerprint_of(DOMAIN)


@pytest.mark.parametrize(
    "every",
    [
        pytest.param(
            1,
            marks=pytest.mark.slow(
                "::test_one_changed_byte_in_any_file_of_any_folder_changes_the_fingerprint"
            ),
        ),
        16,
    ],
)
def test_one_changed_byte_in_any_file_of_any_folder_changes_the_fingerprint(
    copied: Path, every: int
) -> None:
    (copied / "room" / "closet").mkdir(parents=True)
    deep = copied / "room" / "closet" / "rule.py"
    deep.write_text("RATE = 1\n")
    files = sorted(copied.rglob("*.py"))
    assert len(files) > 100
    changed, found = {deep, *files[::every]}, {fingerprint_of(copied)}
    for file in changed:
        kept = file.read_bytes()
        file.write_bytes(kept + b"#")
        found.add(fingerprint_of(copied))
        file.write_bytes(kept)
    assert len(found) == len(changed) + 1


def test_a_file_that_moves_to_another_folder_changes_the_fingerprint(copied: Path) -> None:
    before = fingerprint_of(copied)
    (copied / "room").mkdir()
    (copied / "money.py").rename(copied / "room" / "money.py")
    assert fingerprint_of(copied) != before


def test_a_byte_that_moves_from_one_file_to_the_next_changes_the_fingerprint(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_bytes(b"1")
    (tmp_path / "b.py").write_bytes(b"2")
    before = fingerprint_of(tmp_path)
    (tmp_path / "a.py").write_bytes(b"")
    (tmp_path / "b.py").write_bytes(b"12")
    assert fingerprint_of(tmp_path) != before
