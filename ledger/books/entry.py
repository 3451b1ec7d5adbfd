"""What postings of several rooms share: the entry, and a charge that has no escrow.

    sum(units of an entry) == 0            debits are positive, credits negative

Every account stands once in an entry, and what is zero is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from domain.funds.draw import Drawn
from domain.money import Amount, Asset
from domain.record import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One balanced entry: (account name, units), each account once."""

    asset: Asset
    lines: tuple[tuple[str, int], ...]


Book = Callable[[Any], Iterable[Entry]]
"""What a fact books."""


def entry(asset: Asset, *lines: tuple[str, int]) -> Iterable[Entry]:
    """An entry without its zero lines, accounts that occur twice added up; nothing if empty."""
    sums: dict[str, int] = {}
    for account, units in lines:
        sums[account] = sums.get(account, 0) + units
    kept = tuple((account, units) for account, units in sums.items() if units)
    assert sum(units for _, units in kept) == 0, lines
    if kept:
        yield Entry(asset, kept)


def taken(account_id: str, drawn: tuple[Drawn, ...], owed: Amount) -> list[tuple[str, int]]:
    """The debits of a charge without an escrow: what was there, and the rest as a debt."""
    paid = [(f"party:{one.account_id}:{one.source}", one.amount.units) for one in drawn]
    return [*paid, (f"party:{account_id}:owed", owed.units)]
