"""What the facts of `market` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.market.auction import (
    AuctionAwarded,
    AuctionEnded,
    BidForfeited,
    BidLapsed,
    BidPlaced,
    BidWithdrawn,
    DepositBack,
    DepositPart,
    WinnerDepositForfeited,
    WinnerDepositReturned,
    deposit_book,
)
from domain.money import Asset
from ledger.books.entry import Book, Entry, entry


def _bid_lines(
    account_id: str, parts: tuple[DepositPart, ...], to_account_id: str, sign: int
) -> list[tuple[str, int]]:
    """A deposit aside (sign 1), or from there to whoever has it now, source by source (-1)."""
    lines: list[tuple[str, int]] = []
    for part in parts:
        units = sign * part.amount.units
        lines.append((f"party:{to_account_id}:{part.source}", units))
        lines.append((deposit_book(account_id, part.source), -units))
    return lines


def _bid_placed(fact: BidPlaced) -> Iterable[Entry]:
    return entry(Asset.CREDIT, *_bid_lines(fact.account_id, fact.deposit, fact.account_id, 1))


def _bid_back(fact: BidWithdrawn | BidLapsed) -> Iterable[Entry]:
    return entry(Asset.CREDIT, *_bid_lines(fact.account_id, fact.returned, fact.account_id, -1))


def _deposits_back(fact: AuctionAwarded | AuctionEnded | WinnerDepositReturned) -> Iterable[Entry]:
    returned = (fact.returned,) if isinstance(fact.returned, DepositBack) else fact.returned
    lines = [
        line
        for one in returned
        for line in _bid_lines(one.account_id, one.parts, one.account_id, -1)
    ]
    return entry(Asset.CREDIT, *lines)


def _deposit_forfeited(fact: WinnerDepositForfeited) -> Iterable[Entry]:
    """To the network."""
    return _to_network(fact.forfeited.account_id, fact.forfeited.parts)


def _bid_forfeited(fact: BidForfeited) -> Iterable[Entry]:
    return _to_network(fact.account_id, fact.forfeited)


def _to_network(account_id: str, parts: tuple[DepositPart, ...]) -> Iterable[Entry]:
    held = [(deposit_book(account_id, one.source), one.amount.units) for one in parts]
    return entry(Asset.CREDIT, *held, ("network:revenue:take", -sum(units for _, units in held)))


BOOKS: dict[type[Any], Book] = {
    BidPlaced: _bid_placed,
    BidWithdrawn: _bid_back,
    BidLapsed: _bid_back,
    BidForfeited: _bid_forfeited,
    AuctionAwarded: _deposits_back,
    AuctionEnded: _deposits_back,
    WinnerDepositReturned: _deposits_back,
    WinnerDepositForfeited: _deposit_forfeited,
}
