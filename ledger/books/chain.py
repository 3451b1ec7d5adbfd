"""What the facts of `chain` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.chain.burn import BurnConfirmed
from domain.chain.payout_root import EpochMintConfirmed, PayoutConfirmed
from domain.money import Asset
from ledger.books.entry import Book, Entry, entry


def _mint(fact: EpochMintConfirmed) -> Iterable[Entry]:
    units = fact.amount.units
    return entry(Asset.TOKEN, ("chain:distributor", units), ("chain:mint_due", -units))


def _payout(fact: PayoutConfirmed) -> Iterable[Entry]:
    """What the treasury claims of grants is still theirs, and now in its wallet."""
    units, set_aside = fact.amount.units, fact.set_aside
    return entry(
        Asset.TOKEN,
        (f"party:{fact.account_id}:matured", units - set_aside),
        ("chain:treasury", set_aside),
        ("chain:distributor", -units),
    )


def _burn(fact: BurnConfirmed) -> Iterable[Entry]:
    credits, tokens = fact.credits.units, fact.tokens.units
    yield from entry(Asset.CREDIT, ("network:burn_due", credits), ("world:bank", -credits))
    yield from entry(Asset.TOKEN, ("recycle:authority", tokens), ("recycle:pool", -tokens))


BOOKS: dict[type[Any], Book] = {
    EpochMintConfirmed: _mint,
    PayoutConfirmed: _payout,
    BurnConfirmed: _burn,
}
