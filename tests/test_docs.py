"""What the documents say exists, exists: files, tests, targets; and decisions keep their form.

What the code cites is there, too: sections of `docs/design/` and rows of the feature table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import pytest

from domain.prices.charge_split import peel
from domain.prices.tariff import CLOUDBENDER

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
            yield path.removeprefix("../"), label.strip("`")


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


def test_every_promise_that_is_kept_names_the_test_that_shows_it() -> None:
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    table = text.split("\n## Kept\n")[1].split("\n## ")[0]
    promises = [row for row in table.splitlines() if row.startswith("| ")][1:]
    assert len(promises) >= 27
    assert [row for row in promises if not list(_named_tests(row))] == []


def test_the_readme_is_one_page_with_a_door_for_each_reader() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    for reader in ("a renter", "a GPU owner", "an operator", "an auditor"):
        assert re.search(rf"^\| {reader} \|.*\]\(docs/howto/", text, re.MULTILINE), reader


def test_the_index_has_every_document() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {
        (index.parent / target).resolve()
        for _, target in _LINK.findall(index.read_text(encoding="utf-8"))
    }
    missing = set((ROOT / "docs").rglob("*.md")) - linked - {index}
    assert sorted(_name(path) for path in missing) == []


def test_what_is_marked_as_generated_is_there() -> None:
    lines = (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    marked = [line.split()[0] for line in lines if "linguist-generated" in line]
    assert len(marked) == 5
    assert [path for path in marked if not (ROOT / path).is_file()] == []


def test_the_owners_share_in_the_guide_is_what_the_first_tariff_pays() -> None:
    guide = (ROOT / "docs" / "howto" / "join-a-node.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ([0-9.]+) \| .* \| ([0-9.]+) \| ([0-9.]+) \| \*\*([0-9.]+)\*\* \| ([0-9.]+),",
        guide,
        re.MULTILINE,
    )
    assert len(rows) == len(CLOUDBENDER.usage_fees)
    for row in rows:
        asked, paid, fee, owner, platform = (int(Decimal(amount) * 10**6) for amount in row)
        assert fee in {one.per_gpu_hour.units for one in CLOUDBENDER.usage_fees}
        share, burn = CLOUDBENDER.provider_share_ppm, CLOUDBENDER.burn_share_ppm
        parts = peel(paid, asked, fee, share, burn, CLOUDBENDER.split)
        assert (parts.fee, parts.provider, parts.platform) == (fee, owner, platform)


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


ROOMS = DECISIONS[40]
LAYERS = ("domain", "ledger", "projections", "api", "node_reporter")


def test_every_folder_of_a_layer_is_a_room_of_the_decision() -> None:
    told = set(re.findall(r"`([a-z_]+)`", ROOMS.read_text(encoding="utf-8")))
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for layer in LAYERS
        for path in (ROOT / layer).glob("**/*/__init__.py")
    }
    assert folders
    assert sorted(folder for folder in folders if folder.rpartition("/")[2] not in told) == []


def test_the_linter_orders_the_rooms_as_the_decision_does() -> None:
    table = re.findall(r"^\| `([a-z]+)` \|", ROOMS.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(table) == len(set(table)) == 24
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in project["tool"]["importlinter"]["contracts"]:
        if "containers" in contract:
            layers = [room for layer in contract["layers"] for room in re.findall(r"\w+", layer)]
            ordered = [room for room in reversed(layers) if room in table]
            assert ordered == [room for room in table if room in ordered], contract["name"]


def test_the_first_guess_finds_the_file() -> None:
    """Layer, room and a word of the question are in the path, and the file holds what is named."""
    text = (ROOT / "docs" / "reference" / "find.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+)\? \| (.+) \| `(.+)` \| `(\w+)` \|$", text, re.MULTILINE)
    assert len({question for question, *_ in rows}) == 24
    for question, guess, path, name in rows:
        assert [word for word in guess.split(", ") if word not in path] == [], question
        told = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(
            rf"^(?:(?:async )?def|class) {name}\b|^{name}\b.* = ", told, re.MULTILINE
        ), question


CODE = sorted(
    path
    for folder in (*LAYERS, "contracts", "tests", "benchmarks", "cli", "tallystick_client")
    for suffix in ("py", "sol", "sql")
    for path in (ROOT / folder).rglob(f"*.{suffix}")
    if "node_modules" not in path.parts and path != Path(__file__)
)
DESIGN = "architecture|log|marketplace|economics|chain|metering|audit|api|reliability"
_NUMBERS = r"\d+(?:\.\d+)?"
_CITED = re.compile(
    rf"\b({DESIGN}) ({_NUMBERS}(?:(?:, | and | to |, and ){_NUMBERS})*)(?![\w.]*[\w])"
)
_ROW = re.compile(r"\b[RCKJV]-[0-9]+\b")


def _prose(path: Path) -> str:
    """The text of a file, its lines joined and the marks of comments left out."""
    return re.sub(r"\s*\n\s*(?:#+|--|//+|\*)?\s*", " ", path.read_text(encoding="utf-8"))


@lru_cache
def _sections(document: str) -> frozenset[str]:
    """The numbers of a design document's sections, and of the items of numbered sections."""
    found: set[str] = set()
    section = ""
    for line in (ROOT / "docs" / "design" / f"{document}.md").read_text("utf-8").splitlines():
        if heading := re.match(r"##+ (\d+(?:\.\d+)?) ", line):
            section = heading[1]
            found.add(section)
        elif item := re.match(r"(\d+)\. ", line):
            found.add(f"{section}.{item[1]}")
    return frozenset(found)


def _citations(text: str) -> Iterator[tuple[str, str]]:
    """Document and number. The words log, chain, audit and api are cited after `design` alone."""
    for design in re.finditer(r"\b[Dd]esign,? (.*?)(?=[;)\"]|\.\s|\.$)", text):
        for document, numbers in _CITED.findall(design[1]):
            yield from ((document, number) for number in re.findall(_NUMBERS, numbers))
    for document, numbers in _CITED.findall(text):
        if document in ("economics", "metering", "marketplace"):
            yield from ((document, number) for number in re.findall(_NUMBERS, numbers))


def test_every_section_of_the_design_that_the_code_cites_is_there() -> None:
    cited = [(path, *one) for path in CODE for one in set(_citations(_prose(path)))]
    assert len(cited) > 100
    lost = {
        f"{_name(path)}: design {document} {number}"
        for path, document, number in cited
        if number not in _sections(document)
    }
    assert sorted(lost) == []


def test_every_feature_row_that_is_cited_is_in_the_table() -> None:
    table = (ROOT / "docs" / "reference" / "features.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| ([RCKJV]-[0-9]+) \|", table, re.MULTILINE))
    cited = {(path, row) for path in (*CODE, *DOCUMENTS) for row in _ROW.findall(_prose(path))}
    assert len({row for _, row in cited}) > 70
    assert sorted(f"{_name(path)}: {row}" for path, row in cited if row not in rows) == []


def test_nothing_cites_what_a_reader_of_the_repository_cannot_open() -> None:
    """Parts of issues, and a design without the name of its document."""
    closed = re.compile(
        r"\b[Ii]ssue(?: \d+)? part|[Ii]ssue \d+, what|\b[Dd]esign: |[Dd]esign's [A-Z]|\bREST \d"
    )
    found = {f"{_name(path)}: {one}" for path in CODE for one in closed.findall(_prose(path))}
    assert sorted(found) == []


def _sentences(text: str) -> int:
    return len(re.findall(r"[.!?](?=\s|$)", text))


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_the_documents_name_their_subjects() -> None:
    """words.md, rule 2. Decisions are records of their day; names in code and titles stay."""
    vague = re.compile(r"\b(whoever|nobody|somebody)\b", re.IGNORECASE)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [
        (str(page.relative_to(ROOT)), line)
        for page in pages
        if "decisions" not in page.parts
        for line in page.read_text(encoding="utf-8").splitlines()
        if vague.search(re.sub(r"`[^`]*`|\[\d{4} .*", "", line))
    ]
    assert not found
