"""Do the books follow from the facts? Every entry is made again from its fact, and compared.

    postings of a position == entries_for(fact), in this order, with the balances after it
    account                == name, asset, side and sum of the entries made again; no other account

    balance at the first line of a range == balance after the last line before it

PostgreSQL's constraints and the sums in `ledger/books/books.py` see that books balance, and not
that they are those of the facts: two postings that change places still balance.

Ranges of the log are booked apart, by any process: what an account held before a range is what its
first posting there says, and `joined` holds that against the range before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psycopg

from ledger.books.chart import kind_of
from ledger.books.postings import entries_for, is_booked
from ledger.log import codec

Connection = psycopg.Connection[Any]
ROWS = 10_000
"""Rows fetched together."""
FAULTS_MAX = 20
BEFORE_ALL = -(2**63)
"""Below every position: what is booked before the first fact is booked by none."""

_FACTS = """
    SELECT notification_id, topic, state FROM market_events
    WHERE topic = ANY(%s) AND notification_id > %s AND notification_id <= %s
    ORDER BY notification_id
"""
_POSTINGS = """
    SELECT position, asset, accounts, units, balances_after FROM posting
    WHERE position > %s AND position <= %s ORDER BY position, asset
"""
_LAST = """
    SELECT greatest(pos, (SELECT max(position) FROM posting)) FROM market_events_head
"""
_ACCOUNTS = "SELECT id, name, asset, side, units FROM account ORDER BY name"

Posting = tuple[int, str, list[str], list[int], list[int]]
"""Position, asset, and of each line its account, its units and what the account holds after it, on
its normal side."""


class Booked(NamedTuple):
    """A range of the log, booked anew: its faults, and by account what it held before the range,
    as the first posting there says, and what it holds after it.
    """

    faults: list[str]
    before: dict[str, int]
    after: dict[str, int]


def faults(conn: Connection) -> list[str]:
    """Where the books are not those of the facts, in words; `conn` outside a transaction."""
    return joined(conn, [between(conn, 0, last(conn))])


def last(conn: Connection) -> int:
    """The last position of facts and of postings: what is to be booked ends there."""
    (found,) = conn.execute(_LAST).fetchone() or (0,)
    return int(found)


def between(conn: Connection, first: int, last: int) -> Booked:
    """Book the facts first < position <= last anew; `conn` outside a transaction."""
    books = _Books(is_first=first == 0)
    found: list[str] = []
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for fault in _faults(conn, books, first, last):
            found.append(fault)
            if len(found) == FAULTS_MAX:
                break
    return Booked(found, books.before, books.after)


def joined(conn: Connection, ranges: Sequence[Booked]) -> list[str]:
    """The faults of all ranges, in their order, of their seams and of the accounts."""
    found: list[str] = []
    for fault in _all_faults(conn, ranges):
        found.append(fault)
        if len(found) == FAULTS_MAX:
            found.append("books: and more")
            break
    return found


def _all_faults(conn: Connection, ranges: Sequence[Booked]) -> Iterator[str]:
    balances: dict[str, int] = {}
    for each in ranges:
        for name, held in each.before.items():
            if balances.get(name, 0) != held:
                yield f"books: {name} holds {balances.get(name, 0)} and then begins with {held}"
        balances.update(each.after)
        yield from each.faults
    told = [row[1:] for row in conn.execute(_ACCOUNTS).fetchall()]
    wanted = [
        (name, kind_of(name).asset.value, kind_of(name).side, units)
        for name, units in balances.items()
    ]
    for one in sorted(set(told) ^ set(wanted)):
        yield f"books: {one[0]} holds {one[3]} {one[1]} here or by the facts, not in both"
    if len(told) != len(set(told)):
        yield "books: an account is there twice"


class _Books:
    """Balances of a range as its entries move them."""

    def __init__(self, *, is_first: bool) -> None:
        self.before: dict[str, int] = {}
        self.after: dict[str, int] = {}
        self._is_first = is_first
        self._sides: dict[str, int] = {}

    def move(self, account: str, units: int, told: int | None) -> int:
        """What the account holds after it. `told`: what the books say of it, if anything."""
        side = self._sides.get(account)
        if side is None:
            side = self._sides[account] = kind_of(account).side
        held = self.after.get(account)
        if held is None:
            held = 0
            if not self._is_first:
                held = self.before[account] = (told or 0) - side * units
        held += side * units
        self.after[account] = held
        return held


def _faults(conn: Connection, books: _Books, first: int, last: int) -> Iterator[str]:
    names = {number: name for number, name, *_ in conn.execute(_ACCOUNTS).fetchall()}
    stored = _stored(conn, names, first, last)
    due = next(stored, None)
    for position, asset, lines in _made(conn, first, last):
        while due is not None and due[:2] < (position, asset):
            yield f"books: position {due[0]} books {due[1]}, its fact does not"
            due = next(stored, None)
        is_due = due is not None and due[:2] == (position, asset)
        told = dict(zip(due[2], due[4], strict=False)) if due is not None and is_due else {}
        accounts = [account for account, _ in lines]
        after = [books.move(account, units, told.get(account)) for account, units in lines]
        if due is None or not is_due:
            yield f"books: position {position} does not book {asset}, its fact does"
            continue
        if due[2:] != (accounts, [units for _, units in lines], after):
            yield f"books: position {position} books {asset} otherwise than its fact"
        due = next(stored, None)
    while due is not None:
        yield f"books: position {due[0]} books {due[1]}, its fact does not"
        due = next(stored, None)


def _made(
    conn: Connection, first: int, last: int
) -> Iterator[tuple[int, str, tuple[tuple[str, int], ...]]]:
    """Position, asset and lines of the entries of all facts, made again."""
    with conn.cursor("facts_booked", binary=True) as cursor:
        cursor.itersize = ROWS
        for position, name, body in cursor.execute(_FACTS, (names_booked(), first, last)):
            fact_type, fact = codec.reading(name, body)
            entries = entries_for(fact, fact_type)
            if len(entries) > 1:
                entries = tuple(sorted(entries, key=lambda entry: entry.asset.value))
            for entry in entries:
                yield position, entry.asset.value, entry.lines


def _stored(conn: Connection, names: dict[int, str], first: int, last: int) -> Iterator[Posting]:
    with conn.cursor("postings", binary=True) as cursor:
        cursor.itersize = ROWS
        span = (first or BEFORE_ALL, last)
        for position, asset, accounts, units, after in cursor.execute(_POSTINGS, span):
            yield position, asset, [names.get(account, "?") for account in accounts], units, after


def names_booked() -> list[str]:
    """The stored names of all facts that can move something, and those of older versions."""
    return [*codec.UPCASTERS, *(name for name, kind in codec.NAMES.items() if is_booked(kind))]
