"""What the facts of `governance` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.governance.grant import TREASURY, GrantClawedBack, GrantOpened, MilestoneAccepted
from domain.money import Asset
from ledger.books.entry import Book, Entry, entry


def _grant_opened(fact: GrantOpened) -> Iterable[Entry]:
    """Set aside from what has matured to the treasury."""
    locked, unassigned = fact.locked.units, fact.unassigned.units
    return entry(
        Asset.TOKEN,
        (TREASURY, locked + unassigned),
        (f"grant:{fact.grant_id}:locked", -locked),
        (f"grant:{fact.grant_id}:unassigned", -unassigned),
    )


def _milestone_accepted(fact: MilestoneAccepted) -> Iterable[Entry]:
    units, whose = fact.amount.units, f"grant:{fact.grant_id}"
    return entry(Asset.TOKEN, (f"{whose}:locked", units), (f"{whose}:unlocked", -units))


def _grant_clawed_back(fact: GrantClawedBack) -> Iterable[Entry]:
    locked, unassigned = fact.locked.units, fact.unassigned.units
    return entry(
        Asset.TOKEN,
        (f"grant:{fact.grant_id}:locked", locked),
        (f"grant:{fact.grant_id}:unassigned", unassigned),
        (TREASURY, -locked - unassigned),
    )


BOOKS: dict[type[Any], Book] = {
    GrantOpened: _grant_opened,
    MilestoneAccepted: _milestone_accepted,
    GrantClawedBack: _grant_clawed_back,
}
