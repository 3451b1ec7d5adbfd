"""A reversed payment and the leases it may have funded: which to look at. Nothing is decided here.

The leases are found in views, so one that was opened a moment ago may be missing: the payments job
looks again, for as long as the account owes.
"""

from __future__ import annotations

from typing import Any

from api.service import Service
from domain.funds_taken import TakeFundsBack
from domain.payment import Payment, ReversePayment, stream_of
from projections import leases
from projections.leases import LEASES
from projections.runner import Connection

LEASES_MAX = 32
"""Leases looked at in one append; the payments job goes on with the others."""


def reversing(service: Service, command: ReversePayment) -> list[Any]:
    """The reversal, and what takes its money back from leases, in one append."""
    payment = service.ledger.market.load(stream_of(command.payment_id)).state
    assert isinstance(payment, Payment)
    account_id = None if payment.received is None else payment.received.account_id
    if account_id is None:
        return [command]
    with service.connection() as connection:
        service.follow(connection, [LEASES])
        found = taking(connection, command.payment_id, account_id, command.at_us)
    return [command, *found]


def taking(
    connection: Connection, payment_id: str, account_id: str, at_us: int
) -> list[TakeFundsBack]:
    """What takes the money of a reversed payment back, the latest lease first, each twice."""
    found = [
        TakeFundsBack(payment_id=payment_id, lease_id=lease_id, at_us=at_us)
        for lease_id in leases.read_funded_by(connection, account_id, LEASES_MAX)
    ]
    # Those that share an escrow are closed once it is known what was taken from it.
    return [*found, *found]
