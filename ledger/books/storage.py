"""What the facts of `storage` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.lease.funds import Held, total
from domain.money import Asset, credit
from domain.storage.volume import VolumeCharged, VolumeDeleted, VolumeGraceEnded, VolumeProvisioned
from ledger.books.entry import Book, Entry, entry, taken


def _reserve(volume_id: str, parts: Held, sign: int) -> list[tuple[str, int]]:
    """The reserve of a volume, as debits (sign 1) or credits of its own escrow accounts."""
    return [
        (f"escrow:{volume_id}:{part.number}:{part.source}", sign * part.amount.units)
        for part in parts
    ]


def _held(account_id: str, volume_id: str, parts: Held, sign: int) -> Iterable[Entry]:
    """Credits into the reserve (sign 1), or back to its account (sign -1)."""
    whose = [
        (f"party:{part.account_id or account_id}:{part.source}", sign * part.amount.units)
        for part in parts
    ]
    return entry(Asset.CREDIT, *whose, *_reserve(volume_id, parts, -sign))


def _provisioned(fact: VolumeProvisioned) -> Iterable[Entry]:
    return _held(fact.account_id, fact.volume_id, fact.reserve, 1)


def _grace_ended(fact: VolumeGraceEnded) -> Iterable[Entry]:
    return _held(fact.account_id, fact.volume_id, fact.refilled, 1)


def _deleted(fact: VolumeDeleted) -> Iterable[Entry]:
    return _held(fact.account_id, fact.volume_id, fact.refund, -1)


def _charged(fact: VolumeCharged) -> Iterable[Entry]:
    """Of the balance and of the reserve, to provider and platform: nothing is owed."""
    drawn = sum(one.amount.units for one in fact.drawn) + total(fact.reserve_drawn)
    new = fact.parts_new
    assert drawn == fact.charge_new.units == new.total, fact
    return entry(
        Asset.CREDIT,
        *taken(fact.account_id, fact.drawn, credit(0)),
        *_reserve(fact.volume_id, fact.reserve_drawn, 1),
        (f"party:{fact.provider_account_id}:holdback", -new.provider),
        ("network:revenue:take", -new.platform),
        ("network:burn_due", -new.burn),
    )


BOOKS: dict[type[Any], Book] = {
    VolumeProvisioned: _provisioned,
    VolumeGraceEnded: _grace_ended,
    VolumeDeleted: _deleted,
    VolumeCharged: _charged,
}
