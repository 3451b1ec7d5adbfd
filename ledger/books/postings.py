"""From facts to double entry: one fact, at most one entry per asset, and each sums to zero.

    sum(units of an entry) == 0            debits are positive, credits negative

Pure. The append writes these entries in its own transaction, and PostgreSQL itself refuses an
entry that does not balance or that would take an account below zero. The table of accounts and of
postings is in design economics 2.
"""

from __future__ import annotations

from typing import Any

from ledger.books import (
    chain,
    corrections,
    epochs,
    fleet,
    funds,
    governance,
    income,
    lease,
    leasing,
    market,
    sites,
    storage,
)
from ledger.books.entry import Book, Entry

_ROOMS = (
    funds,
    fleet,
    sites,
    lease,
    storage,
    epochs,
    governance,
    chain,
    market,
    leasing,
    income,
    corrections,
)
_BOOKS: dict[type[Any], Book] = {fact: book for room in _ROOMS for fact, book in room.BOOKS.items()}
assert len(_BOOKS) == sum(len(room.BOOKS) for room in _ROOMS), "a fact is booked in one room"


def entries_for(fact: Any, fact_type: type[Any] | None = None) -> tuple[Entry, ...]:
    """The entries a fact books; most facts move nothing. `fact_type`: of a reading of a fact, which
    has a type of its own.
    """
    book = _BOOKS.get(fact_type or type(fact))
    return () if book is None else tuple(book(fact))


def is_booked(fact_type: type[Any]) -> bool:
    """Whether such a fact can move anything."""
    return fact_type in _BOOKS
