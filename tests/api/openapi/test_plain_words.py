"""Public texts use the nouns of the field: the renter, the provider, a later command.

The check lists every who, whoever, nobody and somebody in the REST document, in the help of both
command lines and in error texts. The few that stay are chosen here, each with its reason.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from api.door import errors
from api.openapi.write import DOCUMENT
from api.refusals.words import SENTENCES
from cli.index import COMMANDS
from cli.main import opened

HOUSE = Path(__file__).parents[3]
VAGUE = re.compile(r"(?<![\w'])(who|whoever|nobody|somebody)\b", re.IGNORECASE)
CHOSEN = {
    "whom jobs run as when started as root, default nobody": "the name of a user of the machine"
}


def _of_rest(value: Any) -> Iterator[str]:
    """Summaries, descriptions and titles of the OpenAPI document."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("summary", "description", "title") and isinstance(inner, str):
                yield inner
            else:
                yield from _of_rest(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _of_rest(inner)


def _of_command_line(command: Any) -> Iterator[str]:
    """Help of a command, of its options and arguments, and of the commands below it."""
    yield command.help or ""
    yield getattr(command, "epilog", None) or ""
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""
    for inner in getattr(command, "commands", {}).values():
        yield from _of_command_line(inner)


def _of_every_command() -> Iterator[str]:
    for name in COMMANDS:
        yield from _of_command_line(opened(name))


def _of_errors() -> Iterator[str]:
    """Sentences of refusals, meanings of the door's codes, and texts that are given to calls."""
    for found in SENTENCES.values():
        yield from (case.template for case in (*found.cases, *found.advice))
    yield from (meaning for _, meaning in errors.DOOR.values())
    for room in ("api", "domain", "node_reporter"):
        for path in sorted((HOUSE / room).rglob("*.py")):
            yield from _given_to_calls(ast.parse(path.read_text()))


def _given_to_calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        for given in (*node.args, *(one.value for one in node.keywords)):
            for part in ast.walk(given):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def _vague(texts: Iterator[str]) -> set[str]:
    return {text for text in texts if VAGUE.search(text)} - CHOSEN.keys()


def test_rest_texts_name_the_party() -> None:
    found = list(_of_rest(json.loads(DOCUMENT.read_bytes())))
    assert len(found) > 1_000, "the walk finds the texts"
    assert not _vague(iter(found))


def test_command_line_texts_name_the_party() -> None:
    found = list(_of_every_command())
    assert len(found) > 1_000, "the walk finds the texts"
    assert not _vague(iter(found))


def test_error_texts_name_the_party() -> None:
    found = list(_of_errors())
    assert len(found) > 5_000, "the walk finds the texts"
    assert not _vague(iter(found))


def test_the_check_finds_what_it_looks_for() -> None:
    planted = [
        "Who waits.",
        "For whoever asks",
        "as nobody's",
        "somebody else",
        "the whole",
        "whose",
    ]
    assert _vague(iter(planted)) == set(planted[:4])


def test_every_chosen_text_is_still_there() -> None:
    there = set(_of_errors()) | set(_of_every_command())
    assert CHOSEN.keys() <= there
