"""Charges as corrections need them: who paid a line, who got it, to the unit, by its log position.

    sum(payers) == sum(payees) == charge        read from the fact and from its posting in the books

A charge is usage in time or late, a resource, what is kept of a reserved term that its renter ended
early, or the disk of a volume. The log proves all of them but the last: nothing measures disks
(decision 0062). The books are the source of who got what, whatever rule split it; the fact says
whose balances paid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from domain.corrections.reasons import CorrectionsReason
from domain.income.adjustment import BURN_DUE, REVENUE, AdjustmentBooked, ChargedLine, Part
from domain.lease.funds import EscrowPart, for_purpose
from domain.lease.lease import UsageAccrued
from domain.lease.reserved_term import TermEndedEarly
from domain.leasing.other_resources import ResourceAccrued
from domain.money import Asset
from domain.refusal import Refused
from domain.storage.volume import VolumeCharged
from ledger.books.books import Books
from ledger.log.market import Market

FEDERATED_REVENUE = "network:revenue:federated"


Charge = UsageAccrued | ResourceAccrued | TermEndedEarly | AdjustmentBooked | VolumeCharged


def charge_of(fact: object) -> int:
    """What a fact charges, in micro-credits; 0 where it is no charge."""
    match fact:
        case UsageAccrued() | ResourceAccrued() | VolumeCharged():
            return fact.charge_new.units
        case TermEndedEarly():
            return fact.kept.units
        case AdjustmentBooked():
            return 0 if fact.late is None else fact.late.charge_new.units
        case _:
            return 0


def charged_line(market: Market, books: Books, position: int) -> ChargedLine:
    """The charge recorded at a market position. Raises Refused: LINE_UNKNOWN when none was."""
    found = market.read_facts(position - 1, 1)
    fact: Any = found[0].fact if found and found[0].position == position else None
    if not charge_of(fact):
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
        lease_id=None if isinstance(fact, VolumeCharged) else fact.lease_id,
        volume_id=fact.volume_id if isinstance(fact, VolumeCharged) else None,
        account_id=fact.account_id,
        provider_account_id=fact.provider_account_id,
        posted_at_us=fact.at_us,
        charge=sum(payee.units for payee in payees),
        gpu_us=_gpu_us(fact),
        payers=_payers(fact),
        payees=tuple(sorted(payees, key=_order)),
        proven=not isinstance(fact, VolumeCharged),
    )
    assert line.charge == charge_of(fact), line
    assert sum(payer.units for payer in line.payers) == line.charge, line
    return line


def _gpu_us(fact: Charge) -> int:
    """The GPU time that was charged for; what is kept of a term was never used."""
    match fact:
        case UsageAccrued():
            return fact.gpu_us_new
        case AdjustmentBooked():
            return 0 if fact.late is None else fact.late.gpu_us_new
        case ResourceAccrued() | TermEndedEarly() | VolumeCharged():
            return 0
        case _:
            assert_never(fact)


def _payers(fact: Charge) -> tuple[Part, ...]:
    """The balances that paid, in the order in which they were drawn; a balance stands once."""
    paid: list[tuple[str, int]] = []
    match fact:
        case UsageAccrued():
            paid += _from_escrow(fact.account_id, for_purpose(fact.drawn, None))
            if fact.owed is not None:
                paid.append((f"party:{fact.owed.account_id}:owed", fact.owed.amount.units))
        case TermEndedEarly():
            paid += _from_escrow(fact.account_id, fact.drawn)
        case ResourceAccrued():
            paid += _from_escrow(fact.account_id, fact.drawn)
        case VolumeCharged():
            paid += [
                (f"party:{one.account_id}:{one.source}", one.amount.units) for one in fact.drawn
            ]
            paid += _from_escrow(fact.account_id, fact.reserve_drawn)
        case AdjustmentBooked():
            paid += [(one.account, one.units) for one in fact.lines if one.units > 0]
        case _:
            assert_never(fact)
    sums: dict[str, int] = {}
    for book, units in paid:
        sums[book] = sums.get(book, 0) + units
    return tuple(Part(book, units) for book, units in sums.items() if units)


def _from_escrow(account_id: str, drawn: tuple[EscrowPart, ...]) -> list[tuple[str, int]]:
    """Which balances these credits had been put into the escrow from."""
    return [
        (f"party:{part.account_id or account_id}:{part.source}", part.amount.units)
        for part in drawn
    ]


def _order(payee: Part) -> tuple[int, str]:
    """By name, so that it is the same in every database; the owner of remainders last."""
    last = (BURN_DUE, REVENUE)
    return (1 + last.index(payee.account) if payee.account in last else 0, payee.account)
