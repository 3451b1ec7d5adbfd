"""Charges as corrections need them: who paid a line, who got it, to the unit, by its log position.

    sum(payers) == sum(payees) == charge        read from the fact and from its posting in the books

The books are the source of who got what, whatever rule split the charge; the fact says whose
balances the escrow had been filled from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.adjustment import BURN_DUE, REVENUE, ChargedLine, Part
from domain.lease import UsageAccrued
from domain.money import Asset
from domain.refusal import Reason, Refused
from ledger.books import Books
from ledger.market import Market


def charged_line(market: Market, books: Books, position: int) -> ChargedLine:
    """The charge recorded at a market position. Raises Refused: LINE_UNKNOWN when none was."""
    found = market.read_facts(position - 1, 1)
    fact: Any = found[0].fact if found and found[0].position == position else None
    if not isinstance(fact, UsageAccrued) or not fact.charge_new.units:
        raise Refused(Reason.LINE_UNKNOWN, position=position)
    return line_of(position, fact, books.postings(position).get(Asset.CREDIT, {}))


def line_of(position: int, fact: UsageAccrued, booked: Mapping[str, int]) -> ChargedLine:
    """A charge from its fact and what it booked (account -> units, debits above zero)."""
    payees = [Part(account, -units) for account, units in booked.items() if units < 0]
    line = ChargedLine(
        position=position,
        lease_id=fact.lease_id,
        account_id=fact.account_id,
        provider_account_id=fact.provider_account_id,
        posted_at_us=fact.at_us,
        charge=sum(payee.units for payee in payees),
        gpu_us=fact.gpu_us_new,
        payers=tuple(
            Part(f"party:{fact.account_id}:{part.source}", part.amount.units) for part in fact.drawn
        ),
        payees=tuple(sorted(payees, key=_order)),
    )
    assert line.charge == fact.charge_new.units, line
    assert sum(payer.units for payer in line.payers) == line.charge, line
    return line


def _order(payee: Part) -> tuple[int, str]:
    """By name, so that it is the same in every database; the owner of remainders last."""
    last = (BURN_DUE, REVENUE)
    return (1 + last.index(payee.account) if payee.account in last else 0, payee.account)
