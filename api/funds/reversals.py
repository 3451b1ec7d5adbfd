"""A reversed payment and the leases it may have funded: which to look at. Nothing is decided here.

    facts of one append <= FACTS_MAX of the ledger, whatever the account rents

The leases are found in views, so one that was opened a moment ago may be missing, and an append
holds only so much: the payments job looks at all of them, for as long as the account owes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from api.process.service import Service
from domain.corrections.reversal import TakeFundsBack, TakeIdleEscrow
from domain.funds.payment import ReversePayment, stream_of
from projections.lease import leases
from projections.lease.leases import LEASES, FundedLease
from projections.runner import Connection

LEASES_MAX = 32
"""Leases looked at in one append, and read at once; the payments job goes on with the others."""
DEVICES_MAX = 256
"""Devices that may end in one append, each with a fact of its own: the ledger takes 1,000."""


def reversing(service: Service, command: ReversePayment) -> list[Any]:
    """The reversal, and what takes its money back from leases, in one append."""
    payment = service.ledger.market.state_of(stream_of(command.payment_id))
    account_id = None if payment.received is None else payment.received.account_id
    if account_id is None:
        return [command]
    with service.connection() as connection:
        service.follow(connection, [LEASES])
        found = leases.read_funded_by(connection, account_id, LEASES_MAX)
        idle = leases.read_filled_escrows(connection, account_id)[:LEASES_MAX]
    return [
        command,
        *taking(command.payment_id, at_once(found), command.at_us),
        *taking_idle(command.payment_id, idle, command.at_us),
    ]


def at_once(found: Iterable[FundedLease]) -> list[FundedLease]:
    """The first of these, as far as they can all end in one append. A gang that has not begun ends
    as a whole, so it is left to the job.
    """
    some, devices = list[FundedLease](), 0
    for one in found:
        devices += one.devices or 0
        if one.devices is None or devices > DEVICES_MAX:
            break
        some.append(one)
    return some


def funded_by(connection: Connection, account_id: str) -> Iterator[list[FundedLease]]:
    """All leases that may hold money of an account, the latest first, so many at once."""
    before = None
    while found := leases.read_funded_by(connection, account_id, LEASES_MAX, before):
        yield found
        before = found[-1].reserved_position


def taking(payment_id: str, found: Iterable[FundedLease], at_us: int) -> list[TakeFundsBack]:
    """What takes the money of a reversed payment back from these leases, in order, each twice."""
    commands = [
        TakeFundsBack(payment_id=payment_id, lease_id=one.lease_id, at_us=at_us) for one in found
    ]
    # Those that share an escrow are closed once it is known what was taken from it.
    return [*commands, *commands]


def taking_idle(payment_id: str, job_ids: Iterable[str], at_us: int) -> list[TakeIdleEscrow]:
    """What takes it back from escrows of jobs that no lease draws on."""
    return [TakeIdleEscrow(payment_id=payment_id, job_id=job_id, at_us=at_us) for job_id in job_ids]
