"""What the facts of `leasing` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.leasing.other_resources import ResourceAccrued
from domain.money import Asset
from ledger.books.entry import Book, Entry, entry, taken


def _resource(fact: ResourceAccrued) -> Iterable[Entry]:
    """Balances to provider and platform; credits bought by burning are retired at use."""
    new = fact.parts_new
    burned = sum(one.amount.units for one in fact.drawn if one.source == "burned")
    assert 0 <= burned <= new.burn, fact
    return entry(
        Asset.CREDIT,
        *taken(fact.account_id, fact.drawn, fact.owed),
        ("network:revenue:usage", -new.fee),
        (f"party:{fact.provider_account_id}:holdback", -new.provider),
        ("network:revenue:take", -new.platform),
        ("world:burned", -burned),
        ("network:burn_due", burned - new.burn),
    )


BOOKS: dict[type[Any], Book] = {ResourceAccrued: _resource}
