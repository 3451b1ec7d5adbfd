"""Charges as corrections need them: who paid a line, who got it, to the unit, by its log position.

    sum(payers) == sum(payees) == charge        read from the fact and from its posting in the books

The books are the source of who got what, whatever rule split the charge; the fact says whose
balances the escrow had been filled from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.corrections.reasons import CorrectionsReason
from domain.income.adjustment import BURN_DUE, REVENUE, ChargedLine, Part
from domain.lease.funds import for_purpose
from domain.lease.lease import UsageAccrued
from domain.leasing.other_resources import ResourceAccrued
from domain.money import Asset
from domain.refusal import Refused
from ledger.books.books import Books
from ledger.log.market import Market

FEDERATED_REVENUE = "network:revenue:federated"


Charge = UsageAccrued | ResourceAccrued


def charged_line(market: Market, books: Books, position: int) -> ChargedLine:
    """The charge recorded at a market position. Raises Refused: LINE_UNKNOWN when none was."""
    found = market.read_facts(position - 1, 1)
    fact: Any = found[0].fact if found and found[0].position == position else None
    if not isinstance(fact, UsageAccrued | ResourceAccrued) or not fact.charge_new.units:
        raise Refused(CorrectionsReason.LINE_UNKNOWN, position=position)
    return line_of(position, fact, books.postings(position).get(Asset.CREDIT, {}))


def line_of(position: int, fact: Charge, booked: Mapping[str, int]) -> ChargedLine:
    """A charge from its fact and what it booked (account -> units, debits above zero).

    The fee that a federated job's creator pays is another charge, on top of this one.
    """
    payees = [
        Part(account, -units)
        for account, units in booked.items()
        if units < 0 and account != FEDERATED_REVENUE
    ]
    line = ChargedLine(
        position=position,
        lease_id=fact.lease_id,
        account_id=fact.account_id,
        provider_account_id=fact.provider_account_id,
        posted_at_us=fact.at_us,
        charge=sum(payee.units for payee in payees),
        gpu_us=fact.gpu_us_new if isinstance(fact, UsageAccrued) else 0,
        payers=_payers(fact),
        payees=tuple(sorted(payees, key=_order)),
    )
    assert line.charge == fact.charge_new.units, line
    assert sum(payer.units for payer in line.payers) == line.charge, line
    return line


def _payers(fact: Charge) -> tuple[Part, ...]:
    """The balances that paid, in the order in which they were drawn; a balance stands once."""
    paid: dict[str, int] = {}
    if isinstance(fact, UsageAccrued):
        for part in for_purpose(fact.drawn, None):
            book = f"party:{part.account_id or fact.account_id}:{part.source}"
            paid[book] = paid.get(book, 0) + part.amount.units
        if fact.owed is not None:
            paid[f"party:{fact.owed.account_id}:owed"] = fact.owed.amount.units
    else:
        for one in fact.drawn:
            paid[f"party:{one.account_id}:{one.source}"] = one.amount.units
        if fact.owed.units:
            paid[f"party:{fact.account_id}:owed"] = fact.owed.units
    return tuple(Part(book, units) for book, units in paid.items())


def _order(payee: Part) -> tuple[int, str]:
    """By name, so that it is the same in every database; the owner of remainders last."""
    last = (BURN_DUE, REVENUE)
    return (1 + last.index(payee.account) if payee.account in last else 0, payee.account)
