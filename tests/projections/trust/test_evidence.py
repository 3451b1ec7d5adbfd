"""The view of evidence holds the rows that the rule of the domain gives, whatever happened."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, fields, replace
from typing import Any

import pytest

from domain.lease import lease
from domain.lease.close_codes import CLOSE_REASONS
from domain.stream import Stream
from domain.trust import attribute
from domain.trust.evidence import LEASES_MAX, MEASURED_MAX, Row, weighed
from domain.trust.reputation_terms import (
    COMPLETION,
    CONDUCT,
    KINDS,
    PAYMENT,
    PERFORMANCE,
    REPUTATION_TERMS,
    UPTIME,
)
from domain.trust.scores import rate, rate_for_client
from projections import runner, tables
from projections.trust import scores
from projections.trust.reputation import REPUTATION
from tests.projections.story import Writer
from tests.projections.trust.evidence_story import CLIENTS, FIRST_DAY, Book, Told, story
from tests.scenes.samples import sample

COLUMNS = ", ".join(field.name for field in fields(Row))
LAST_DAYS = (1, 4, 9, 40)


def _followed(connection: Any, told: list[Told], facts_max: int) -> list[Row]:
    """What the view holds after these facts, read so many at a time."""
    Writer(connection).write(iter(told))
    tables.ensure(connection, [REPUTATION])
    while runner.step(connection, REPUTATION, facts_max=facts_max):
        pass
    rows = connection.execute(f"SELECT {COLUMNS} FROM proj_reputation.evidence").fetchall()
    return [Row(*row) for row in rows]


def _read(told: list[Told]) -> Book:
    book = Book()
    for position, (_, fact) in enumerate(told, start=1):
        book.read(position, fact)
    return book


def _rented(renter: str) -> list[Told]:
    """A lease of a node by this renter, reserved and opened."""
    stream: Stream[Any] = Stream("lease", f"lease_{renter}")
    reserved = replace(
        sample(lease.LeaseReserved, leave_out_optional=True),
        lease_id=stream.id,
        node_id="node_a",
        provider_id="prov_1",
        account_id=renter,
        own=False,
        escrow=(),
    )
    opened = replace(sample(lease.LeaseOpened, leave_out_optional=True), lease_id=stream.id)
    return [(stream, reserved), (stream, opened)]


def _said(number: int, signer: str) -> Told:
    stated = replace(
        sample(attribute.AttributeStated, leave_out_optional=True),
        statement_id=f"st_{number}",
        subject_id="node_a",
        name="benchmark.resnet50",
        value="1/2",
        signer_account_id=signer,
    )
    return Stream("attribute", stated.statement_id), stated


def _in_order(rows: list[Row]) -> list[tuple[Any, ...]]:
    return sorted((astuple(row) for row in rows), key=repr)


WHOLE = pytest.mark.slow("::test_every_row_and_every_score_of_the_view_is_what_the_domain_says")


@pytest.mark.parametrize(
    ("seed", "facts_max"),
    [(1, 11), pytest.param(2, 60, marks=WHOLE), pytest.param(3, 2_000, marks=WHOLE)],
)
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
    counted = {(row.kind, row.input) for row in rows if row.total > 0}
    uncounted = {(row.kind, row.input) for row in rows if row.total < 0}
    assert counted == inputs
    assert uncounted >= {("node", COMPLETION), ("node", PERFORMANCE), ("renter", PAYMENT)}
    assert ("renter", CONDUCT) in uncounted
    closes = {fact.code for _, fact in told if isinstance(fact, lease.LeaseClosed)}
    assert closes == set(CLOSE_REASONS)
    assert book.leases_capped > 0
    assert book.measurements_capped > 0
    assert book.unmetered > 4, "a node sold a resource and did not meter it"
    assert any(row.input == UPTIME and row.good < 0 for row in rows), "a node was silent"
    assert any(row.carried and row.total > 0 for row in rows), "a device moved"
    assert len({row.from_day - row.day for row in rows}) > 2, "faults waited, by two windows"


@pytest.mark.parametrize("facts_max", [1, 2_000])
def test_what_one_signer_says_too_often_takes_nobody_elses_place(
    connection: Any, facts_max: int
) -> None:
    told = [*_rented("acct_r"), *_rented("acct_s")]
    told += [_said(number, "acct_r") for number in range(MEASURED_MAX)]
    told += [_said(MEASURED_MAX + number, "acct_s") for number in range(LEASES_MAX)]
    book = _read(told)
    found = _followed(connection, told, facts_max)
    assert _in_order(found) == _in_order(book.rows())
    of_signer = Counter(row.counterparty for row in found if row.kind == "node")
    assert of_signer == {"acct_r": LEASES_MAX, "acct_s": LEASES_MAX}
