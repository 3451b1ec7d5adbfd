"""Do the books follow from the facts? Every entry is made again from its fact, and compared.

    postings of a position == entries_for(fact), in this order, with the balances after it
    account                == name, asset, side and sum of the entries made again; no other account

PostgreSQL's constraints and the sums in `ledger/books/books.py` see that books balance, and not
that they are those of the facts: two postings that change places still balance.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import psycopg

from ledger.books.chart import kind_of
from ledger.books.postings import entries_for, is_booked
from ledger.log import codec

Connection = psycopg.Connection[Any]
ROWS = 10_000
"""Rows fetched together."""
FAULTS_MAX = 20

_FACTS = """
    SELECT notification_id, topic, state FROM market_events
    WHERE topic = ANY(%s) ORDER BY notification_id
"""
_POSTINGS = """
    SELECT position, asset, accounts, units, balances_after FROM posting ORDER BY position, asset
"""
_ACCOUNTS = "SELECT id, name, asset, side, units FROM account ORDER BY name"


class Line(NamedTuple):
    """One line of a posting, and what its account holds after it, on its normal side."""

    account: str
    units: int
    after: int


class Posting(NamedTuple):
    position: int
    asset: str
    lines: tuple[Line, ...]


def faults(conn: Connection) -> list[str]:
    """Where the books are not those of the facts, in words; `conn` outside a transaction."""
    found: list[str] = []
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for fault in _faults(conn):
            found.append(fault)
            if len(found) == FAULTS_MAX:
                found.append("books: and more")
                break
    return found


def _faults(conn: Connection) -> Iterator[str]:
    accounts = conn.execute(_ACCOUNTS).fetchall()
    names = {number: name for number, name, _, _, _ in accounts}
    balances: dict[str, int] = {}
    stored = _stored(conn, names)
    due = next(stored, None)
    for made in _made(conn, balances):
        while due is not None and due[:2] < made[:2]:
            yield f"books: position {due.position} books {due.asset}, its fact does not"
            due = next(stored, None)
        if due is None or due[:2] != made[:2]:
            yield f"books: position {made.position} does not book {made.asset}, its fact does"
            continue
        if due != made:
            yield f"books: position {due.position} books {due.asset} otherwise than its fact"
        due = next(stored, None)
    while due is not None:
        yield f"books: position {due.position} books {due.asset}, its fact does not"
        due = next(stored, None)
    told = [(name, asset, side, units) for _, name, asset, side, units in accounts]
    wanted = [
        (name, kind_of(name).asset.value, kind_of(name).side, units)
        for name, units in balances.items()
    ]
    for one in sorted(set(told) ^ set(wanted)):
        yield f"books: {one[0]} holds {one[3]} {one[1]} here or by the facts, not in both"
    if len(told) != len(set(told)):
        yield "books: an account is there twice"


def _made(conn: Connection, balances: dict[str, int]) -> Iterator[Posting]:
    """The postings of all facts, made again; `balances` are those after the last one."""
    with conn.cursor("facts_booked", binary=True) as cursor:
        cursor.itersize = ROWS
        for position, name, body in cursor.execute(_FACTS, (_names_booked(),)):
            fact = codec.decode(name, bytes(body))
            entries = sorted(entries_for(fact), key=lambda entry: entry.asset.value)
            for entry in entries:
                lines = []
                for account, units in entry.lines:
                    after = balances.get(account, 0) + kind_of(account).side * units
                    balances[account] = after
                    lines.append(Line(account, units, after))
                yield Posting(position, entry.asset.value, tuple(lines))


def _stored(conn: Connection, names: dict[int, str]) -> Iterator[Posting]:
    with conn.cursor("postings", binary=True) as cursor:
        cursor.itersize = ROWS
        for position, asset, accounts, units, afters in cursor.execute(_POSTINGS):
            # Where one is longer than the others, its rest is in no line of a fact.
            lines = tuple(
                Line(names.get(account, "?"), moved, after)
                for account, moved, after in zip_longest(accounts, units, afters)
            )
            yield Posting(position, asset, lines)


def _names_booked() -> list[str]:
    """The stored names of all facts that can move something, and those of older versions."""
    return [*codec.UPCASTERS, *(name for name, kind in codec.NAMES.items() if is_booked(kind))]
