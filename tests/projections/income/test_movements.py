"""Bills: whatever moved for a party stands in one line, and closes with what the books say."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import psycopg
import pytest

from projections import tables
from projections.income import movements
from projections.income.movements import MOVEMENTS
from tests.conftest import Databases
from tests.projections.story import Size, story
from tests.projections.views import views

BOOKS_AT = """
    SELECT coalesce(e.party, split_part(a.name, ':', 2)) AS party,
        CASE WHEN e.party IS NULL THEN split_part(a.name, ':', 3)
            ELSE 'escrow.' || split_part(a.name, ':', 4) END AS part,
        sum(l.units)::bigint AS units
    FROM account a LEFT JOIN proj_movements.escrow e ON e.account = a.id
    CROSS JOIN LATERAL (
        SELECT p.balances_after[array_position(p.accounts, a.id)] AS units FROM posting p
        WHERE a.id = ANY(p.accounts) AND p.position <= %s ORDER BY p.position DESC LIMIT 1) l
    WHERE a.name LIKE 'party:%%' OR a.name LIKE 'escrow:%%' GROUP BY 1, 2
"""
"""Balances of a past position straight from the postings, which PostgreSQL itself computed."""


@pytest.fixture(scope="module")
def connection(postgres: Databases, template: str) -> Any:
    with views(postgres, template, story(Size(leases=6, hours=3))) as connection:
        yield connection


def _parties(connection: psycopg.Connection[Any]) -> list[str]:
    rows = connection.execute("SELECT DISTINCT party FROM proj_movements.book ORDER BY party")
    return [row[0] for row in rows]


def _balances(connection: psycopg.Connection[Any], at: int) -> dict[tuple[str, str], int]:
    return {
        (party, each.part): each.units
        for party in _parties(connection)
        for each in movements.read_part_balances(connection, party, at)
    }


def test_closing_balances_are_those_of_the_books_at_every_position(
    connection: psycopg.Connection[Any],
) -> None:
    head = tables.position_of(connection, MOVEMENTS)
    for at in range(head + 1):
        books = {(row[0], row[1]): row[2] for row in connection.execute(BOOKS_AT, (at,))}
        assert _balances(connection, at) == books, at
    present = connection.execute(
        "SELECT split_part(name, ':', 2), split_part(name, ':', 3), units FROM account"
        " WHERE name LIKE 'party:%'"
    )
    at_head = _balances(connection, head)
    assert {(row[0], row[1]): row[2] for row in present}.items() <= at_head.items()


def _boundaries(head: int) -> list[tuple[int, int]]:
    """Every seventh position begins an empty, a short, a middling and the longest window; every
    eleventh ends one that begins with the log.
    """
    ends = [(0, last) for last in range(0, head + 1, 11)]
    for first in range(0, head + 1, 7):
        lasts = range(first, head + 1, 11)
        chosen = (lasts[0], lasts[min(1, len(lasts) - 1)], lasts[len(lasts) // 2], lasts[-1])
        ends += ((first, last) for last in chosen)
    return sorted(set(ends))


def _all_windows(head: int) -> list[tuple[int, int]]:
    """From every seventh position to every eleventh after it."""
    return [(f, last) for f in range(0, head + 1, 7) for last in range(f, head + 1, 11)]


@pytest.mark.parametrize(
    "windows", [_boundaries, pytest.param(_all_windows, marks=pytest.mark.long)]
)
def test_closing_is_opening_and_the_sum_of_lines_between_any_two_positions(
    connection: psycopg.Connection[Any], windows: Callable[[int], list[tuple[int, int]]]
) -> None:
    """All windows took 28 s of two processes in turn, the boundaries take 5."""
    head = tables.position_of(connection, MOVEMENTS)
    parties, balances = _parties(connection), cache(partial(_balances, connection))
    for first, last in windows(head):
        opening, closing = balances(first), balances(last)
        for party in parties:
            sums = movements.read_kind_sums(connection, party, first, last)
            lines = movements.read_movements(connection, party, first=first, last=last, limit=500)
            for part in {each.part for each in lines}:
                moved = [one.change for one in lines if one.part == part]
                key = (party, part)
                assert closing[key] == opening.get(key, 0) + sum(moved)
                assert sum(s.change for s in sums if s.part == part) == sum(moved)
            assert sum(each.lines for each in sums) == len(lines)


def test_every_unit_that_moved_for_a_party_is_in_exactly_one_line(
    connection: psycopg.Connection[Any],
) -> None:
    head = tables.position_of(connection, MOVEMENTS)
    told = {
        (line.position, party, line.part): line.change
        for party in _parties(connection)
        for line in movements.read_movements(connection, party, last=head, limit=500)
    }
    moved = connection.execute(
        "SELECT p.position, coalesce(e.party, split_part(a.name, ':', 2)),"
        " CASE WHEN e.party IS NULL THEN split_part(a.name, ':', 3)"
        " ELSE 'escrow.' || split_part(a.name, ':', 4) END, sum(a.side * l.units)::bigint"
        " FROM posting p, unnest(p.accounts, p.units) l(id, units) JOIN account a ON a.id = l.id"
        " LEFT JOIN proj_movements.escrow e ON e.account = a.id"
        " WHERE a.name LIKE 'party:%' OR a.name LIKE 'escrow:%' GROUP BY 1, 2, 3"
    )
    assert told == {(row[0], row[1], row[2]): row[3] for row in moved}


def test_lines_say_what_they_were_for_and_come_in_pages(
    connection: psycopg.Connection[Any],
) -> None:
    head = tables.position_of(connection, MOVEMENTS)
    whole = movements.read_movements(connection, "acct_cash", last=head, limit=500)
    kinds = {(line.topic, line.part, line.kind) for line in whole}
    assert kinds >= {
        ("deposit.confirmed.v1", "cash", "deposit"),
        ("lease.reserved.v1", "cash", "hold"),
        ("lease.reserved.v1", "escrow.cash", "hold"),
        ("lease.usage_accrued.v1", "escrow.cash", "usage"),
        ("lease.settled.v1", "cash", "refund"),
        ("lease.settled.v1", "escrow.cash", "refund"),
    }
    assert movements.OTHER not in {kind for _, _, kind in kinds}
    paged, key = [], (0, "")
    while page := movements.read_movements(connection, "acct_cash", last=head, after=key, limit=3):
        paged += page
        key = (page[-1].position, page[-1].part)
    assert paged == whole
    usage = movements.read_movements(connection, "acct_cash", last=head, kind="usage", limit=500)
    assert usage == [line for line in whole if line.kind == "usage"]
    mine = movements.read_movements(
        connection, "acct_cash", last=head, client_id="client_1", project_id="prj", limit=500
    )
    assert mine == usage
    assert {line.end_user_ref for line in usage} == {"u1"}
    assert movements.read_movements(connection, "acct_cash", last=head, project_id="another") == []
    earned = movements.read_movements(connection, "acct_provider", last=head, limit=500)
    assert {line.kind for line in earned if line.topic == "lease.usage_accrued.v1"} == {"earning"}
