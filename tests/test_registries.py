"""A fact is added in its room: the central lists merge what the rooms name, and name nothing."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from domain.reasons import REASONS
from domain.refusal import Reason
from domain.rules import DECIDERS, FACTS
from ledger.books import postings
from ledger.log import codec

ROOT = Path(__file__).parent.parent
CENTRAL = (
    "domain/rules.py",
    "domain/reasons.py",
    "domain/refusal.py",
    "ledger/log/codec.py",
    "ledger/books/postings.py",
)
ROOMS = sorted(path.parent.name for path in (ROOT / "domain").glob("*/__init__.py"))
BOOKS = sorted(
    path.stem for path in (ROOT / "ledger" / "books").glob("*.py") if path.stem in {*ROOMS}
)
LISTS = {"STREAMS", "DECIDERS"}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def words(tree: ast.Module) -> Iterator[str]:
    """Every name and every text that a file uses, and what it imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Name():
                yield node.id
            case ast.Attribute():
                yield node.attr
            case ast.alias():
                yield node.name
            case ast.Constant(value=str(text)):
                yield text


def assigned(tree: ast.Module) -> set[str]:
    """The names that a module gives a value at its top."""
    targets = [
        target
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def room_of(kind: type[Any]) -> str:
    return kind.__module__.split(".")[1]


@pytest.mark.parametrize("path", CENTRAL)
def test_a_central_list_names_no_fact_no_decider_and_no_reason(path: str) -> None:
    named = {
        *FACTS,
        *(fact.__name__ for fact in FACTS.values()),
        *(command.__name__ for command in DECIDERS),
        *(decide.__name__ for decide in DECIDERS.values()),
        *REASONS,
        *(reason.name for reason in REASONS.values()),
    }
    assert named.isdisjoint(words(tree_of(ROOT / path)))


@pytest.mark.parametrize("path", CENTRAL)
def test_a_central_list_imports_no_file_of_a_room_but_what_the_room_lists(path: str) -> None:
    for node in ast.walk(tree_of(ROOT / path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("domain."):
            assert node.module is not None
            of_room = node.module.split(".")[1] in ROOMS
            listed = {alias.name for alias in node.names} <= {"registry", "reasons"}
            assert listed or not of_room, node.module


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_of_a_room_with_streams_or_deciders_is_listed_once(room: str) -> None:
    found = [
        path.stem
        for path in sorted((ROOT / "domain" / room).glob("*.py"))
        if assigned(tree_of(path)) & LISTS
    ]
    registry = import_module(f"domain.{room}.registry")
    assert sorted(file.__name__ for file in registry.FILES) == [
        f"domain.{room}.{stem}" for stem in found
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_names_its_own_facts_and_no_others(room: str) -> None:
    facts = import_module(f"domain.{room}.registry").FACTS
    assert {room_of(fact) for fact in facts.values()} <= {room}
    assert max(Counter(facts.values()).values(), default=1) == 1, "a fact has one stored name"
    assert facts.items() <= codec.NAMES.items()


@pytest.mark.parametrize("room", BOOKS)
def test_a_room_books_its_own_facts_and_no_others(room: str) -> None:
    books = import_module(f"ledger.books.{room}").BOOKS
    assert books
    assert {room_of(fact) for fact in books} == {room}
    assert books.items() <= postings._BOOKS.items()
    assert books.keys() <= set(FACTS.values())


@pytest.mark.parametrize(
    "kind", sorted(Reason.__subclasses__(), key=repr), ids=lambda kind: kind.__name__
)
def test_the_reasons_of_a_room_are_merged(kind: type[Reason]) -> None:
    home = {"domain.money"} | {f"domain.{room}.reasons" for room in ROOMS}
    assert kind.__module__ in home
    assert [REASONS[reason.value] for reason in kind] == list(kind)


def test_the_base_of_all_reasons_has_no_member_of_its_own() -> None:
    assert not list(Reason)
