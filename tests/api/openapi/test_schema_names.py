"""Names of the API's forms: one name in Python and in the document, a suffix that says what a form
is for, and in front of it a noun of the field.

    sent: ...Request      answered: ...Answer      part of both: ...Form      one page: ...Page
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from api.main import operations
from api.openapi import write

STANDARD = {"Money", "SignedMoney", "Problem", "FieldError"}
"""An amount, and the two forms of RFC 9457."""
NOUNS = frozenset(
    {
        "Account", "Adjustment", "Admission", "Assignment", "Assignments", "Attestation",
        "Attribute", "Auction", "Balance", "Balances", "Ballot", "Bid", "Breaker", "Breakers",
        "Budget", "Counterparty", "Countersignature", "Dataset", "Datastore", "Deposit", "Device",
        "Dispute", "Earning", "Empty", "Epoch", "Fragmentation", "Fragmentations", "Gang",
        "Governor", "Governors", "Hardware", "Host", "Invitation", "Invitations", "Invoice", "Job",
        "Lease", "Licence", "Node", "Offer", "Payment", "Pool", "Project", "Projects", "Promotion",
        "Provider", "Region", "Reputation", "Reservation", "Tariff", "Tariffs", "Utilisation",
        "Volume", "Vote", "Wallet", "Wallets", "Webhook",
    }
)  # fmt: skip
"""Nouns of the glossary that are clear alone. Every other form has two words or more."""
DOCUMENT: dict[str, Any] = json.loads(write.DOCUMENT.read_bytes())
"""The committed one; tests/api/openapi/test_document.py keeps it current."""
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
SUFFIX = re.compile(r"(Request|Answer|Form|Page)$")


def _refers_to(value: Any) -> Iterator[str]:
    """Names of the schemas that something refers to, not through another schema."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rsplit("/", 1)[-1]
        for inner in value.values():
            yield from _refers_to(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _refers_to(inner)


def _reached(part: str) -> set[str]:
    """Schemas that requests (`requestBody`) or answers (`responses`) are made of."""
    operations = [one for methods in DOCUMENT["paths"].values() for one in methods.values()]
    shared = DOCUMENT["components"].get("responses", {}) if part == "responses" else {}
    waiting = [*_refers_to([one.get(part, {}) for one in operations]), *_refers_to(shared)]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in SCHEMAS and name not in found:
            found.add(name)
            waiting += _refers_to(SCHEMAS[name])
    return found


SENT, ANSWERED = _reached("requestBody"), _reached("responses")


def test_the_walk_finds_the_forms() -> None:
    assert len(SENT) > 100
    assert len(ANSWERED) > 200
    assert len(SCHEMAS) > 400


def test_the_suffix_says_what_a_form_is_for() -> None:
    wrong = {}
    for name in SCHEMAS.keys() - STANDARD:
        is_sent, is_answered = name in SENT, name in ANSWERED
        suffixes = (
            {"Form"} if is_sent and is_answered else {"Request"} if is_sent else {"Answer", "Page"}
        )
        if not name.endswith(tuple(suffixes)):
            wrong[name] = suffixes
    assert not wrong


def test_no_form_has_a_single_vague_word_for_a_name() -> None:
    vague = set()
    for name in SCHEMAS.keys() - STANDARD:
        stem = SUFFIX.sub("", name)
        words = re.findall(r"[A-Z][a-z0-9]*", stem)
        if len(words) < 2 and stem not in NOUNS:
            vague.add(name)
    assert not vague


def test_every_noun_that_stands_alone_is_used() -> None:
    stems = {SUFFIX.sub("", name) for name in SCHEMAS}
    assert stems >= NOUNS


def test_a_form_has_one_name() -> None:
    """The name of the class is the name in the document: nothing is cut off or put before it."""
    assert operations(), "their forms are imported with them"
    classes = {one.__name__ for one in _below(BaseModel)}
    assert SCHEMAS.keys() - STANDARD <= classes


def _below(base: type[Any]) -> Iterator[type[Any]]:
    for one in base.__subclasses__():
        yield one
        yield from _below(one)


def test_the_glossary_says_the_rule() -> None:
    glossary = Path(__file__).parents[3] / "docs" / "reference" / "glossary.md"
    text = glossary.read_text()
    for suffix in ("Request", "Answer", "Form", "Page"):
        assert f"`...{suffix}`" in text
