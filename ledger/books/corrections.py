"""What the facts of `corrections` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.corrections.dispute import DisputeOpened
from domain.money import Asset
from ledger.books.entry import Book, Entry, entry


def _disputed(fact: DisputeOpened) -> Iterable[Entry]:
    """What the claim would take from owners' holdback waits until somebody rules."""
    held = [one for line in fact.lines for one in line.held]
    return entry(
        Asset.CREDIT,
        *((f"party:{one.account_id}:holdback", one.units) for one in held),
        (f"dispute:{fact.dispute_id}", -sum(one.units for one in held)),
    )


BOOKS: dict[type[Any], Book] = {DisputeOpened: _disputed}
