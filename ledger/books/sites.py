"""What the facts of `sites` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.money import Asset
from domain.sites.edge_device import DeviceFeeCharged
from ledger.books.entry import Book, Entry, entry, taken


def _device_fee(fact: DeviceFeeCharged) -> Iterable[Entry]:
    return entry(
        Asset.CREDIT,
        *taken(fact.account_id, fact.drawn, fact.owed),
        ("network:revenue:device", -fact.charge.units),
    )


BOOKS: dict[type[Any], Book] = {DeviceFeeCharged: _device_fee}
