"""What the documents say exists, exists: files, tests, targets; and decisions keep their form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PARTS = ["Context", "Decision", "Consequences", "Instead of", "Kept by"]
WRITTEN_BY_COMMANDS = {"benchmarks/results/latest.json"}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)[^)]*\)")
_PATH = re.compile(r"`((?:[a-z_]+/)+[A-Za-z0-9_.-]+\.[a-z]+)(?:::([a-z0-9_]+))?`")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _defines(file: Path, test: str) -> bool:
    return (
        re.search(rf"^(?:async )?def {test}\(", file.read_text(encoding="utf-8"), re.MULTILINE)
        is not None
    )


def _named_tests(text: str) -> Iterator[tuple[str, str]]:
    for path, test in _PATH.findall(text):
        if test:
            yield path, test
    for label, path in _LINK.findall(text):
        if re.fullmatch(r"`test_[a-z0-9_]+`", label):
            yield path, label.strip("`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_what_a_document_links_to_is_there(document: Path) -> None:
    for _, target in _LINK.findall(document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_what_a_document_names_is_there(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for path, _ in _PATH.findall(text):
        is_ours = (ROOT / path.split("/")[0]).is_dir() and path not in WRITTEN_BY_COMMANDS
        assert not is_ours or (ROOT / path).is_file(), path
    for path, test in _named_tests(text):
        assert _defines(ROOT / path, test), f"{path}::{test}"


def test_every_promise_of_the_readme_names_the_test_that_shows_it() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("## What it promises")[1].split("\n## ")[0]
    promises = [row for row in table.splitlines() if row.startswith("| ")][1:]
    assert len(promises) >= 6
    assert [row for row in promises if not list(_named_tests(row))] == []


def test_every_make_target_a_document_names_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for document in DOCUMENTS:
        named = re.findall(
            r"(?:`|^    )make ([a-z-]+)", document.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert set(named) <= targets, document


@pytest.mark.parametrize("decision", DECISIONS, ids=_name)
def test_a_decision_has_its_parts_and_a_test_that_keeps_it(decision: Path) -> None:
    text = decision.read_text(encoding="utf-8")
    head, *parts = re.split(r"\n\n\*\*", text)
    number = decision.name[:4]
    assert re.fullmatch(
        rf"# {number} .+\n\nStatus: (?:accepted|replaced by \d{{4}})\. Date: \d{{4}}-\d\d-\d\d\.",
        head,
    )
    assert [part.split(".**")[0] for part in parts] == PARTS
    context, decided, _, _, kept = (part.split(".** ", 1)[1].strip() for part in parts)
    assert 2 <= _sentences(context) <= 4, context
    assert _sentences(decided) == 1, decided
    assert list(_named_tests(kept)), kept


def _sentences(text: str) -> int:
    return len(re.findall(r"[.!?](?=\s|$)", text))


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
