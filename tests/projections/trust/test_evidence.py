"""The view of evidence holds the rows that the rule of the domain gives, whatever happened."""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import Any

import psycopg
import pytest

from domain.lease import lease
from domain.lease.close_codes import CLOSE_REASONS
from domain.trust.evidence import Row, weighed
from domain.trust.reputation_terms import KINDS, PERFORMANCE, REPUTATION_TERMS
from domain.trust.scores import rate, rate_for_client
from projections import runner, tables
from projections.trust import scores
from projections.trust.reputation import REPUTATION
from tests.projections.story import Writer
from tests.projections.trust.evidence_story import CLIENTS, FIRST_DAY, Book, Told, story

COLUMNS = ", ".join(field.name for field in fields(Row))
LAST_DAYS = (1, 4, 9, 40)


@pytest.fixture
def connection(database: str) -> Any:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def _followed(connection: Any, told: list[Told], facts_max: int) -> list[Row]:
    """What the view holds after these facts, read so many at a time."""
    Writer(connection).write(iter(told))
    tables.create(connection, REPUTATION)
    while runner.step(connection, REPUTATION, facts_max=facts_max):
        pass
    rows = connection.execute(f"SELECT {COLUMNS} FROM proj_reputation.evidence").fetchall()
    return [Row(*row) for row in rows]


def _read(told: list[Told]) -> Book:
    book = Book()
    for position, (_, fact) in enumerate(told, start=1):
        book.read(position, fact)
    return book


def _in_order(rows: list[Row]) -> list[tuple[Any, ...]]:
    return sorted((astuple(row) for row in rows), key=repr)


@pytest.mark.parametrize(("seed", "facts_max"), [(1, 11), (2, 60), (3, 2_000)])
def test_every_row_and_every_score_of_the_view_is_what_the_domain_says(
    connection: Any, seed: int, facts_max: int
) -> None:
    told = story(seed)
    book = _read(told)
    rows = book.rows()
    _require_everything_happened(book, rows, told)
    assert _in_order(_followed(connection, told, facts_max)) == _in_order(rows)
    for kind, subject in sorted({(row.kind, row.subject_id) for row in rows}):
        mine = [row for row in rows if (row.kind, row.subject_id) == (kind, subject)]
        for day in LAST_DAYS:
            _require_the_same_scores(connection, kind, subject, mine, FIRST_DAY + day)


def _require_the_same_scores(
    connection: Any, kind: str, subject: str, mine: list[Row], day: int
) -> None:
    for as_of in (None, mine[len(mine) // 2].position):
        known = [row for row in mine if as_of is None or row.position <= as_of]
        read = scores.read_rating(connection, kind, subject, day=day, as_of=as_of)
        assert read == rate(kind, weighed(known, day)), (kind, subject, day, as_of)
    for client in CLIENTS:
        seen = weighed([row for row in mine if row.client_id == client], day)
        others = weighed([row for row in mine if row.client_id != client], day)
        read = scores.read_rating(connection, kind, subject, day=day, client_id=client)
        assert read == rate_for_client(kind, seen, others), (kind, subject, day, client)


def _require_everything_happened(book: Book, rows: list[Row], told: list[Told]) -> None:
    """A story in which something is missing shows nothing about it."""
    inputs = {(kind, one.name) for kind in KINDS for one in REPUTATION_TERMS.weights_of(kind)}
    for sign in (1, -1, 0):
        found = {(row.kind, row.input) for row in rows if (row.total > 0) - (row.total < 0) == sign}
        least = {1: inputs, -1: {("node", PERFORMANCE), ("renter", "payment")}, 0: set()}[sign]
        assert found >= least, (sign, least - found)
    assert {fact.code for _, fact in told if isinstance(fact, lease.LeaseClosed)} == set(
        CLOSE_REASONS
    )
    assert book.refused_by_a_cap > 0
    assert any(row.carried and row.total < 0 for row in rows), "a device took what was taken back"
    assert any(row.input == "uptime" and row.good < 0 for row in rows), "silence"
    assert any(row.input == "completion" and row.total < 0 for row in rows), "revised"
    assert any(row.from_day > row.day + 1 for row in rows), "a fault that waits"
    assert any(row.carried for row in rows)
