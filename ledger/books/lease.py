"""What the facts of `lease` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.lease.funds import EscrowPart
from domain.lease.lease import LeaseClosed, LeaseReserved, LeaseSettled, LeaseToppedUp, UsageAccrued
from domain.lease.reserved_term import TermEndedEarly
from domain.lease.shared_escrow import EscrowFunded, EscrowFundsTaken, EscrowReturned
from domain.lease.turns import LeaseExtended, LeaseFundsTaken
from domain.money import Asset
from ledger.books.entry import Book, Entry, entry


def _escrow(escrow_id: str, part: EscrowPart) -> str:
    """The escrow account of one deposit and source."""
    return f"escrow:{escrow_id}:{part.number}:{part.source}"


def _deposited(
    owner_account_id: str, escrow_id: str, parts: tuple[EscrowPart, ...], sign: int
) -> Iterable[Entry]:
    """Credits into the escrow (sign 1), or back to whoever put them there (sign -1)."""
    lines: list[tuple[str, int]] = []
    for part in parts:
        units = sign * part.amount.units
        lines.append((f"party:{part.account_id or owner_account_id}:{part.source}", units))
        lines.append((_escrow(escrow_id, part), -units))
    return entry(Asset.CREDIT, *lines)


def _reserved(fact: LeaseReserved) -> Iterable[Entry]:
    return _deposited(fact.account_id, fact.lease_id, fact.escrow, 1)


def _topped_up(fact: LeaseToppedUp | LeaseExtended) -> Iterable[Entry]:
    return _deposited(fact.account_id, fact.lease_id, fact.parts, 1)


def _closed(fact: LeaseClosed | LeaseSettled) -> Iterable[Entry]:
    return _deposited(fact.account_id, fact.lease_id, fact.refund, -1)


def _funds_taken(fact: LeaseFundsTaken) -> Iterable[Entry]:
    """What was held for work that is not done any more pays the debt of a reversed payment."""
    taken = [(_escrow(fact.lease_id, part), part.amount.units) for part in fact.parts]
    owed = f"party:{fact.account_id}:owed"
    return entry(Asset.CREDIT, *taken, (owed, -sum(units for _, units in taken)))


def _escrow_funded(fact: EscrowFunded) -> Iterable[Entry]:
    return _deposited(fact.account_id, fact.escrow_id, fact.parts, 1)


def _escrow_returned(fact: EscrowReturned) -> Iterable[Entry]:
    return _deposited(fact.account_id, fact.escrow_id, fact.parts, -1)


def _escrow_taken(fact: EscrowFundsTaken) -> Iterable[Entry]:
    taken = [(_escrow(fact.escrow_id, part), part.amount.units) for part in fact.parts]
    owed = f"party:{fact.account_id}:owed"
    return entry(Asset.CREDIT, *taken, (owed, -sum(units for _, units in taken)))


def _accrued(fact: UsageAccrued) -> Iterable[Entry]:
    """Escrow to the owners, the client and the platform; burned credits are retired at use. What
    the escrow is short of is owed, and whoever earned it is paid all the same.
    """
    new, escrow_id = fact.parts_new, fact.escrow_id or fact.lease_id
    drawn = [(_escrow(escrow_id, part), part.amount.units) for part in fact.drawn]
    burned = sum(part.amount.units for part in fact.drawn if part.source == "burned")
    assert burned in (0, new.burn), fact
    if fact.owed is not None:
        drawn.append((f"party:{fact.owed.account_id}:owed", fact.owed.amount.units))
    federated = 0 if fact.federated is None else fact.federated.new.units
    owners = [(fact.provider_account_id, new.provider)]
    if fact.owners:
        owners = [(part.account_id, part.units_new) for part in fact.owners]
    assert sum(units for _, units in owners) == new.provider, fact
    if new.client:
        assert fact.client_account_id is not None, fact
        owners.append((fact.client_account_id, new.client))
    return entry(
        Asset.CREDIT,
        *drawn,
        ("network:revenue:usage", -new.fee),
        ("network:revenue:federated", -federated),
        *((f"party:{account_id}:holdback", -units) for account_id, units in owners),
        ("network:revenue:take", -new.platform),
        ("world:burned", -burned),
        ("network:burn_due", burned - new.burn),
    )


def _term_ended_early(fact: TermEndedEarly) -> Iterable[Entry]:
    """What is kept of a prepaid term goes where a charge goes."""
    parts = fact.parts
    drawn = [(_escrow(fact.lease_id, part), part.amount.units) for part in fact.drawn]
    burned = sum(part.amount.units for part in fact.drawn if part.source == "burned")
    assert burned in (0, parts.burn), fact
    owners = [(fact.provider_account_id, parts.provider)]
    if fact.owners:
        owners = [(part.account_id, part.units_new) for part in fact.owners]
    assert sum(units for _, units in owners) == parts.provider, fact
    if parts.client:
        assert fact.client_account_id is not None, fact
        owners.append((fact.client_account_id, parts.client))
    return entry(
        Asset.CREDIT,
        *drawn,
        ("network:revenue:usage", -parts.fee),
        *((f"party:{account_id}:holdback", -units) for account_id, units in owners),
        ("network:revenue:take", -parts.platform),
        ("world:burned", -burned),
        ("network:burn_due", burned - parts.burn),
    )


BOOKS: dict[type[Any], Book] = {
    LeaseReserved: _reserved,
    LeaseToppedUp: _topped_up,
    LeaseExtended: _topped_up,
    LeaseFundsTaken: _funds_taken,
    LeaseClosed: _closed,
    LeaseSettled: _closed,
    UsageAccrued: _accrued,
    EscrowFunded: _escrow_funded,
    EscrowReturned: _escrow_returned,
    EscrowFundsTaken: _escrow_taken,
    TermEndedEarly: _term_ended_early,
}
