"""The chart of accounts: which accounts can exist, what they count, and which side is theirs.

    units on the normal side >= 0                  for every account, after every fact

An account is opened by its first posting and by nothing else; a name that matches no row of the
chart is a bug. Source: design economics 2. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from domain.account_closing import books_of
from domain.funds.reasons import FundsReason
from domain.lease.lease import LeaseReserved, LeaseToppedUp
from domain.lease.shared_escrow import EscrowFunded
from domain.money import Asset
from domain.parties.account import AccountClosed
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Reason

DEBIT, CREDIT = 1, -1

_SOURCE = r"(?:grant(?:\.[^:]+)?|burned|earned|cash|card)"

_ROWS: tuple[tuple[Asset, int, str], ...] = (
    (Asset.CREDIT, DEBIT, r"world:(?:bank|card|burned)"),
    (Asset.CREDIT, CREDIT, rf"party:[^:]+:{_SOURCE}"),
    (Asset.CREDIT, CREDIT, rf"escrow:[^:]+:[0-9]+:{_SOURCE}"),
    (Asset.CREDIT, CREDIT, r"party:[^:]+:(?:holdback|payable)"),
    (Asset.CREDIT, CREDIT, r"party:[^:]+:bid\.(?:earned|cash)"),
    (Asset.CREDIT, DEBIT, r"party:[^:]+:owed"),
    (Asset.CREDIT, CREDIT, r"network:revenue:(?:usage|federated|device|storage|take)"),
    (Asset.CREDIT, CREDIT, r"network:(?:burn_due|suspense|chargeback_reserve|breakage)"),
    (Asset.CREDIT, CREDIT, r"payout:in_flight"),
    (Asset.CREDIT, CREDIT, r"dispute:[^:]+"),
    (Asset.CREDIT, CREDIT, r"grant:[^:]+:fund"),
    (Asset.CREDIT, CREDIT, r"region:[^:]+:(?:revenue|carry)"),
    (Asset.TOKEN, DEBIT, r"(?:emission|recycle):authority"),
    (Asset.TOKEN, CREDIT, r"emission:unissued|recycle:pool"),
    (Asset.TOKEN, DEBIT, r"chain:(?:mint_due|distributor|treasury)"),
    (Asset.TOKEN, CREDIT, r"pool:(?:compute|availability)(?::carry)?"),
    (Asset.TOKEN, CREDIT, r"epoch:[0-9]+:unmatured"),
    (Asset.TOKEN, CREDIT, r"party:[^:]+:(?:unmatured|matured|bond)"),
    (Asset.TOKEN, CREDIT, r"grant:[^:]+:(?:locked|unassigned|unlocked)"),
    (Asset.GPU_MS, CREDIT, r"device:.+:physical"),
    (Asset.GPU_MS, DEBIT, r"device:.+:(?:leased|idle|mined|stranded|unavailable)"),
    (Asset.SEAT_MS, CREDIT, r"seat:.+:physical"),
    (Asset.SEAT_MS, DEBIT, r"seat:.+:(?:leased|idle|mined|stranded|unavailable)"),
)
_CHART = tuple((asset, side, re.compile(pattern)) for asset, side, pattern in _ROWS)


@dataclass(frozen=True, slots=True)
class Kind:
    """What an account counts, and its normal side: 1 where debits raise it, -1 where credits do."""

    asset: Asset
    side: int


@lru_cache(maxsize=65_536)
def kind_of(name: str) -> Kind:
    """The kind of an account by its name."""
    found = [Kind(asset, side) for asset, side, row in _CHART if row.fullmatch(name)]
    assert len(found) == 1, f"{name} is in {len(found)} rows of the chart"
    return found[0]


def guards_for(fact: Any) -> tuple[str, ...]:
    """Accounts that must hold nothing when this fact is recorded: who owes opens no lease, and
    nothing is left in an account that is closed.
    """
    match fact:
        case LeaseReserved() | LeaseToppedUp() | EscrowFunded():
            return tuple(f"party:{account_id}:owed" for account_id in dict.fromkeys(_debtors(fact)))
        case AccountClosed():
            return books_of(fact.account_id)
        case _:
            return ()


def _debtors(fact: LeaseReserved | LeaseToppedUp | EscrowFunded) -> Iterable[str]:
    """Who must owe nothing: whoever opens a lease, and everybody whose credits it takes."""
    if isinstance(fact, LeaseReserved):
        yield fact.account_id
    parts = fact.escrow if isinstance(fact, LeaseReserved) else fact.parts
    for part in parts:
        yield fact.account_id if part.account_id is None else part.account_id


def refusal_of_guards(facts: Iterable[Any]) -> Reason:
    """What it means that a guarded account of one of these facts holds something."""
    is_closing = any(isinstance(fact, AccountClosed) for fact in facts)
    return PartiesReason.ACCOUNT_NOT_EMPTY if is_closing else FundsReason.UNPAID_DEBT
