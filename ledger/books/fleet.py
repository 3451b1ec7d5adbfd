"""What the facts of `fleet` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.fleet.device import CapacityAccrued
from domain.fleet.storage_node import StorageNodeCharged
from domain.money import Asset
from ledger.books.entry import Book, Entry, entry, taken


def _storage_node(fact: StorageNodeCharged) -> Iterable[Entry]:
    return entry(
        Asset.CREDIT,
        *taken(fact.account_id, fact.drawn, fact.owed),
        ("network:revenue:storage", -fact.charge_new.units),
    )


def _capacity(fact: CapacityAccrued) -> Iterable[Entry]:
    """Physical time starts as idle; what was leased, stranded, unavailable or mined leaves idle.

    A device leased twice at one instant would drive idle below zero, which PostgreSQL refuses.
    """
    asset = fact.physical.asset
    sort = "seat" if asset is Asset.SEAT_MS else "device"
    device = f"{sort}:{fact.device_id}"
    parts = ("leased", "stranded", "unavailable", "mined")
    units = {part: getattr(fact, part).units for part in parts}
    return entry(
        asset,
        (f"{device}:physical", -fact.physical.units),
        (f"{device}:idle", fact.physical.units - sum(units.values())),
        *((f"{device}:{part}", units[part]) for part in parts),
    )


BOOKS: dict[type[Any], Book] = {CapacityAccrued: _capacity, StorageNodeCharged: _storage_node}
