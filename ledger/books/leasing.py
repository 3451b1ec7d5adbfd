"""What the facts of `leasing` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.lease.funds import Held
from domain.leasing.other_resources import ResourceAccrued, ResourceHeld, ResourceReturned
from domain.money import Asset
from ledger.books.entry import Book, Entry, entry


def _escrow(lease_id: str, meter: str, parts: Held) -> list[tuple[str, int]]:
    """What is held for a resource of a lease, as debits of its own escrow accounts."""
    return [
        (f"escrow:{lease_id}/{meter}:{part.number}:{part.source}", part.amount.units)
        for part in parts
    ]


def _held(fact: ResourceHeld | ResourceReturned) -> Iterable[Entry]:
    """Credits into the hold, or back to whoever put them there."""
    sign = 1 if isinstance(fact, ResourceHeld) else -1
    whose = [
        (f"party:{part.account_id or fact.account_id}:{part.source}", sign * part.amount.units)
        for part in fact.parts
    ]
    held = _escrow(fact.lease_id, fact.meter, fact.parts)
    return entry(Asset.CREDIT, *whose, *((name, -sign * units) for name, units in held))


def _resource(fact: ResourceAccrued) -> Iterable[Entry]:
    """The hold to provider and platform; credits bought by burning are retired at use."""
    new = fact.parts_new
    burned = sum(one.amount.units for one in fact.drawn if one.source == "burned")
    assert 0 <= burned <= new.burn, fact
    return entry(
        Asset.CREDIT,
        *_escrow(fact.lease_id, fact.meter, fact.drawn),
        ("network:revenue:usage", -new.fee),
        (f"party:{fact.provider_account_id}:holdback", -new.provider),
        ("network:revenue:take", -new.platform),
        ("world:burned", -burned),
        ("network:burn_due", burned - new.burn),
    )


BOOKS: dict[type[Any], Book] = {
    ResourceHeld: _held,
    ResourceReturned: _held,
    ResourceAccrued: _resource,
}
