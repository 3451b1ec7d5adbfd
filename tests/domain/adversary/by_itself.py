"""Payments that start by themselves: a balance is topped up, and a lease is kept going."""

from __future__ import annotations

from domain.funds.payment import FailPayment
from domain.funds.top_up import CheckFunds, SetAutoTopUp, TopUpStarted
from domain.lease.lease import lease_of
from domain.leasing.top_up import refill_due
from domain.money import credit
from domain.refusal import Refused
from tests.domain.adversary.network import Network


def top_up_by_itself(
    network: Network, account: str, units: int, threshold: int, *, comes: bool
) -> None:
    """A card is saved with a payment, and used again whenever the balance is low: the money comes,
    or the card's bank refuses.
    """
    payment = network.card(account, units, saves=True)
    network.try_(
        SetAutoTopUp(
            account_id=account,
            threshold=credit(threshold),
            amount=credit(units),
            monthly_max=credit(units * 3),
            payment_id=payment,
            by="m",
            at_us=network.now_us,
        )
    )
    check(network, account, comes=comes)


def check(network: Network, account: str, *, comes: bool) -> None:
    """The timer looks at the balance; a payment that it starts comes, or fails."""
    at_us = network.now_us
    try:
        changes = network.do(CheckFunds(account_id=account, at_us=at_us))
    except Refused:
        return
    for started in [one.fact for one in changes if isinstance(one.fact, TopUpStarted)]:
        if comes:
            network.receive(started.payment_id, started.amount.units)
        else:
            network.try_(FailPayment(payment_id=started.payment_id, reason="declined", at_us=at_us))
    network.try_(CheckFunds(account_id=account, at_us=at_us))


def keep_going(network: Network, lease_id: str) -> None:
    """The timer prolongs a lease whose renter asked for it."""
    due = refill_due(lease_of(network, lease_id), lease_id, network.now_us)
    if due is not None:
        network.try_(due)
