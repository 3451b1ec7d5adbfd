"""Public texts use the nouns of the field: the renter, the provider, a later command.

The check lists every who, whoever, nobody and somebody in the REST document, in the help of both
command lines and in error texts. The few that stay are chosen here, each with its reason.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
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


@cache
def _of_every_command() -> tuple[str, ...]:
    return tuple(text for name in COMMANDS for text in _of_command_line(opened(name)))


@cache
def _of_errors() -> tuple[str, ...]:
    """Sentences of refusals, meanings of the door's codes, and texts that are given to calls."""
    told = [case.template for found in SENTENCES.values() for case in (*found.cases, *found.advice)]
    told += (meaning for _, meaning in errors.DOOR.values())
    for room in ("api", "domain", "node_reporter"):
        for path in sorted((HOUSE / room).rglob("*.py")):
            _add_given_to_calls(ast.parse(path.read_bytes()), is_given=False, to=told)
    return tuple(told)


def _add_given_to_calls(node: ast.AST, *, is_given: bool, to: list[str]) -> None:
    """Each string that stands somewhere in what a call is given, once."""
    if is_given and isinstance(node, ast.Constant) and isinstance(node.value, str):
        to.append(node.value)
    for name, inner in ast.iter_fields(node):
        given = is_given or (isinstance(node, ast.Call) and name != "func")
        for one in inner if isinstance(inner, list) else (inner,):
            if isinstance(one, ast.AST):
                _add_given_to_calls(one, is_given=given, to=to)


def _vague(texts: Iterable[str]) -> set[str]:
    return {text for text in texts if VAGUE.search(text)} - CHOSEN.keys()


def test_rest_texts_name_the_party() -> None:
    found = list(_of_rest(json.loads(DOCUMENT.read_bytes())))
    assert len(found) > 1_000, "the walk finds the texts"
    assert not _vague(found)


def test_command_line_texts_name_the_party() -> None:
    assert len(_of_every_command()) > 1_000, "the walk finds the texts"
    assert not _vague(_of_every_command())


def test_error_texts_name_the_party() -> None:
    assert len(_of_errors()) > 5_000, "the walk finds the texts"
    assert not _vague(_of_errors())


def test_the_check_finds_what_it_looks_for() -> None:
    planted = [
        "Who waits.",
        "For whoever asks",
        "as nobody's",
        "somebody else",
        "the whole",
        "whose",
    ]
    assert _vague(planted) == set(planted[:4])


def test_every_chosen_text_is_still_there() -> None:
    there = set(_of_errors()) | set(_of_every_command())
    assert CHOSEN.keys() <= there
