"""What the facts of `income` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.income.adjustment import AdjustmentBooked
from domain.income.cash_out import (
    CashOutCancelled,
    CashOutFailed,
    CashOutPaid,
    CashOutRequested,
    CashOutReturned,
)
from domain.income.maturity import EarningsForgone, EarningsMatured, EarningsSwept
from domain.income.region_pool import RegionDayShared, RegionEarningsGathered, RegionSharesPaid
from domain.money import Asset
from ledger.books.entry import Book, Entry, entry


def _named(
    fact: EarningsMatured | EarningsSwept | RegionEarningsGathered | CashOutRequested | CashOutPaid,
) -> int:
    """The amount; its parts by compute client are all of it (row R-1)."""
    units = fact.amount.units
    assert sum(part.units for part in fact.clients) == units, fact
    return units


def _earnings_matured(fact: EarningsMatured) -> Iterable[Entry]:
    units = _named(fact)
    party = f"party:{fact.account_id}"
    return entry(Asset.CREDIT, (f"{party}:holdback", units), (f"{party}:payable", -units))


def _earnings_swept(fact: EarningsSwept) -> Iterable[Entry]:
    units = _named(fact)
    swept, earned = f"party:{fact.account_id}:payable", f"party:{fact.to_account_id}:earned"
    return entry(Asset.CREDIT, (swept, units), (earned, -units))


def _region_gathered(fact: RegionEarningsGathered) -> Iterable[Entry]:
    units, payable = _named(fact), f"party:{fact.account_id}:payable"
    lines = ((payable, units), (f"region:{fact.region_id}:revenue", -units))
    return entry(Asset.CREDIT, *lines)


def _region_day(fact: RegionDayShared) -> Iterable[Entry]:
    """The operator's part, and the new carry for the old; the shares leave with their chunks."""
    region, infra = f"region:{fact.region_id}", fact.infra.units
    shares = fact.participation.units + fact.usage.units
    operator = fact.infra_book or f"party:{fact.infra_account_id}:payable"
    return entry(
        Asset.CREDIT,
        (f"{region}:revenue", fact.gathered.units - shares),
        (f"{region}:carry", fact.carry_before.units - fact.carry.units),
        (operator, -infra),
    )


def _region_shares(fact: RegionSharesPaid) -> Iterable[Entry]:
    paid = [
        (part.book or f"party:{part.account_id}:payable", -part.units)
        for share in fact.shares
        for part in share.parts
    ]
    return entry(Asset.CREDIT, (f"region:{fact.region_id}:revenue", fact.amount.units), *paid)


def _earnings_forgone(fact: EarningsForgone) -> Iterable[Entry]:
    units, earned = fact.amount.units, f"party:{fact.account_id}:earned"
    return entry(Asset.CREDIT, (earned, units), ("network:revenue:take", -units))


def _cash_out_requested(fact: CashOutRequested) -> Iterable[Entry]:
    units, earned = _named(fact), f"party:{fact.account_id}:earned"
    return entry(Asset.CREDIT, (earned, units), ("payout:in_flight", -units))


def _cash_out_paid(fact: CashOutPaid) -> Iterable[Entry]:
    units = _named(fact)
    return entry(Asset.CREDIT, ("payout:in_flight", units), ("world:bank", -units))


def _cash_out_back(fact: CashOutFailed | CashOutCancelled | CashOutReturned) -> Iterable[Entry]:
    """To whoever had earned it; to suspense when that account was closed meanwhile."""
    units, closed = fact.amount.units, fact.account_id is None
    source = "world:bank" if isinstance(fact, CashOutReturned) else "payout:in_flight"
    back = "network:suspense" if closed else f"party:{fact.account_id}:earned"
    return entry(Asset.CREDIT, (source, units), (back, -units))


def _adjusted(fact: AdjustmentBooked) -> Iterable[Entry]:
    """An adjustment says itself what it moves: which accounts it may, its domain asserts."""
    return entry(Asset.CREDIT, *((line.account, line.units) for line in fact.lines))


BOOKS: dict[type[Any], Book] = {
    EarningsMatured: _earnings_matured,
    EarningsSwept: _earnings_swept,
    EarningsForgone: _earnings_forgone,
    CashOutRequested: _cash_out_requested,
    CashOutPaid: _cash_out_paid,
    CashOutFailed: _cash_out_back,
    CashOutCancelled: _cash_out_back,
    CashOutReturned: _cash_out_back,
    RegionEarningsGathered: _region_gathered,
    RegionDayShared: _region_day,
    RegionSharesPaid: _region_shares,
    AdjustmentBooked: _adjusted,
}
