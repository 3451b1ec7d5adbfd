"""A payment was reversed: what it funded is taken back from its leases, as far as it is unspent.

    taken from leases for a payment <= what was spent of it when it was reversed, and <= owed
    held after == held before - taken;   charge == paid by the escrow + owed     to the unit

What the account has of other money pays first (`domain/funds/payment.py`), so work that can be
paid for goes on. What is still owed then is taken from the escrows that the same sort of money
fills, the latest lease first, its latest deposit first. A lease that is left with nothing beyond
this moment, and one whose fixed term is not paid for any more, closes with 102 payment_reversed;
any other goes on to its earlier end. What a closed lease has used until then is paid by what is
left and owed for the rest, so its provider keeps what it earned. Source: marketplace 2, economics
5; decision 0028.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from domain.frozen import replace
from domain.funds import debt
from domain.funds.payment import Payment, PaymentFundsTaken, payment_of
from domain.funds.payment import stream_of as payment_stream
from domain.gpu_time import charge_for, gpu_us
from domain.lease.budgets import uncount_budgets
from domain.lease.close_codes import PAYMENT_REVERSED
from domain.lease.escrow import pro_rata
from domain.lease.funds import EscrowPart, Held, for_purpose, take, total, without
from domain.lease.holding import funded_to_us
from domain.lease.lease import (
    MIN_RUNWAY_US,
    CloseLease,
    Lease,
    LeaseSettled,
    evolve,
    lease_of,
    lease_stream,
)
from domain.lease.shared_escrow import Allotted, Escrow, EscrowFundsTaken, end_of, escrow_of
from domain.lease.shared_escrow import stream_of as escrow_stream
from domain.lease.turns import LeaseFundsTaken
from domain.leasing.accrual import closing
from domain.leasing.escrow_sharing import moved_to, returned
from domain.leasing.gangs import decide_close_together
from domain.money import credit
from domain.stream import Change, World


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeFundsBack:
    """For a payment that was reversed: what is unspent of it in this lease."""

    payment_id: str
    lease_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeIdleEscrow:
    """For a payment that was reversed: what lies in the escrow of a job that no lease draws on."""

    payment_id: str
    job_id: str
    at_us: int


def decide_take(command: TakeFundsBack, world: World) -> list[Change]:
    """Nothing owed for the payment, or nothing of its sort in the escrow, is nothing done.

    Raises Refused: LEASE_UNKNOWN.
    """
    payment = payment_of(world, command.payment_id)
    account_id = None if payment.received is None else payment.received.account_id
    if account_id is None:
        return []
    units = min(debt.owed_by(world, account_id), payment.spent - payment.collected)
    lease = lease_of(world, command.lease_id)
    if lease.escrow_id is not None:
        return _from_shared(command, payment, account_id, lease, units, world)
    theirs = parts_of(lease, account_id, payment.reversed_sources)
    units = min(units, total(theirs))
    if units <= 0 or _is_later(lease, payment) or _is_anothers(lease, account_id):
        return []
    taken = take(tuple(reversed(theirs)), units)
    if lease.opened is None and not _is_paid(lease, without(lease.held, taken)):
        return _never_starts(command, account_id, world)
    done = PaymentFundsTaken(
        payment_id=command.payment_id,
        account_id=account_id,
        lease_id=command.lease_id,
        amount=credit(units),
        at_us=command.at_us,
    )
    changes = _taken(command, account_id, lease, taken, world)
    return [*changes, Change(payment_stream(command.payment_id), done)]


def decide_take_idle(command: TakeIdleEscrow, world: World) -> list[Change]:
    """It goes back to the balance, and pays what is owed. Nothing, while a lease draws on it."""
    payment = payment_of(world, command.payment_id)
    escrow = escrow_of(world, command.job_id)
    account_id = None if payment.received is None else payment.received.account_id
    if account_id is None or escrow.members:
        return []
    theirs = _theirs(escrow, account_id, payment)
    units = min(debt.owed_by(world, account_id), payment.spent - payment.collected, total(theirs))
    if units <= 0:
        return []
    parts = take(tuple(reversed(theirs)), units)
    moved: dict[str, int] = {}
    for part in parts:
        moved[part.source] = moved.get(part.source, 0) + part.amount.units
    back = returned(command.job_id, escrow, parts, command.at_us, world)
    return [
        *back,
        *debt.repayments(world, account_id, command.payment_id, command.at_us, moved=moved),
    ]


def _theirs(escrow: Escrow, account_id: str, payment: Payment) -> Held:
    """What an account put into a shared escrow from the sources of its reversed payment."""
    return tuple(
        part
        for part in escrow.held
        if part.source in payment.reversed_sources
        and (part.account_id or escrow.account_id) == account_id
    )


def _is_later(lease: Lease, payment: Payment) -> bool:
    """Whether it was reserved after the reversal, when the debt of it had been paid."""
    return lease.reserved is None or lease.reserved.at_us > payment.reversed_at_us


def _is_anothers(lease: Lease, account_id: str) -> bool:
    """Whether somebody else owes what a closed lease is short of: more taken would be theirs."""
    return lease.closed is not None and lease.short_of not in (None, account_id)


def _is_paid(lease: Lease, held: Held) -> bool:
    """Whether this much pays for all of a fixed term, or for an hour of an open end."""
    assert lease.reserved is not None
    ppm_us = lease.gpu_ppm_total * (lease.term_us or MIN_RUNWAY_US)
    whole = charge_for(gpu_us(ppm_us), lease.reserved.price_per_gpu_hour.units)
    return total(for_purpose(held, None)) >= whole - lease.charge_units


def _from_shared(
    command: TakeFundsBack,
    payment: Payment,
    account_id: str,
    lease: Lease,
    units: int,
    world: World,
) -> list[Change]:
    """What is taken from an escrow ends all of its leases earlier. Asked again for each of them, it
    closes those that can no longer be funded.
    """
    assert lease.escrow_id is not None
    escrow = escrow_of(world, lease.escrow_id)
    theirs = _theirs(escrow, account_id, payment)
    units = min(units, total(theirs))
    is_anothers = escrow.is_short and escrow.short_of != account_id
    if units <= 0 or _is_later(lease, payment) or is_anothers:
        return _close_shared(command, escrow, account_id, lease, world)
    taken = take(tuple(reversed(theirs)), units)
    fact = without_funds(escrow, lease.escrow_id, account_id, command, taken)
    done = PaymentFundsTaken(
        payment_id=command.payment_id,
        account_id=account_id,
        lease_id=command.lease_id,
        amount=credit(units),
        at_us=command.at_us,
    )
    moved = moved_to(lease.escrow_id, escrow, fact.ends_us, command.at_us)
    budgets = uncount_budgets(
        world, lease.escrow_id, escrow.counted, taken, command.at_us, is_final=False
    )
    change = Change(escrow_stream(lease.escrow_id), fact)
    return [change, *moved, *budgets, Change(payment_stream(command.payment_id), done)]


def without_funds(
    escrow: Escrow, escrow_id: str, account_id: str, command: TakeFundsBack, taken: Held
) -> EscrowFundsTaken:
    """The escrow less these parts: until when it lasts and, where it is short of what its leases
    have used by now, the share of each in what is left.
    """
    left = without(escrow.held, taken)
    now_us = command.at_us
    if escrow.running and escrow.ends_us is not None:
        now_us = min(now_us, escrow.ends_us)  # what has ended stays ended
    due = {
        lease_id: one.due(now_us)
        for lease_id, one in escrow.members.items()
        if one.opened_at_us is not None
    }
    is_short = sum(due.values()) > total(left)
    allotted = None
    if is_short:
        shares = pro_rata(due, total(left))
        allotted = tuple(Allotted(lease_id, units) for lease_id, units in shares.items())
    ends_us = None
    if escrow.running:
        after = replace(escrow, held=left)
        ends_us = now_us if is_short else end_of(after, now_us)
    return EscrowFundsTaken(
        escrow_id=escrow_id,
        account_id=account_id,
        payment_id=command.payment_id,
        parts=taken,
        allotted=allotted,
        ends_us=ends_us,
        at_us=command.at_us,
    )


def _close_shared(
    command: TakeFundsBack, escrow: Escrow, account_id: str, lease: Lease, world: World
) -> list[Change]:
    """Close a lease of an escrow that money was taken from, if nothing funds it any more."""
    if escrow.short_of != account_id or lease.closed is not None or lease.reserved is None:
        return []
    if lease.opened is None:
        alone = replace(escrow.members[command.lease_id], opened_at_us=command.at_us)
        used = sum(one.due(command.at_us) for one in escrow.members.values())
        if used + alone.due(command.at_us + MIN_RUNWAY_US) <= total(escrow.held):
            return []
        return decide_close_together(_close(command, command.at_us), world)
    if lease.window_end_us > command.at_us:
        return []
    closed_at_us = max(lease.counted_until_us, min(command.at_us, lease.window_end_us))
    return closing(lease, _close(command, closed_at_us), closed_at_us, world)


def parts_of(lease: Lease, account_id: str, sources: Iterable[str]) -> Held:
    """What an account put into the escrow of a lease from these sources, to pay for usage."""
    assert lease.requested is not None
    renter = lease.requested.account_id
    return tuple(
        part
        for part in for_purpose(lease.held, None)
        if part.source in sources and (part.account_id or renter) == account_id
    )


def _never_starts(command: TakeFundsBack, account_id: str, world: World) -> list[Change]:
    """A lease that has not opened has used nothing: all of it goes back, and pays what is owed."""
    changes = decide_close_together(_close(command, command.at_us), world)
    moved: dict[str, int] = {}
    for change in changes:
        if isinstance(change.fact, LeaseSettled):
            for part in change.fact.refund:
                if (part.account_id or change.fact.account_id) == account_id:
                    moved[part.source] = moved.get(part.source, 0) + part.amount.units
    repaid = debt.repayments(world, account_id, command.payment_id, command.at_us, moved=moved)
    return [*changes, *repaid]


def _taken(
    command: TakeFundsBack, account_id: str, lease: Lease, taken: Held, world: World
) -> list[Change]:
    runs = lease.opened is not None and lease.closed is None
    ends_us = _ends_us(lease, without(lease.held, taken), command.at_us) if runs else None
    fact = LeaseFundsTaken(
        lease_id=command.lease_id,
        account_id=account_id,
        payment_id=command.payment_id,
        parts=taken,
        funds_end_us=ends_us,
        at_us=command.at_us,
    )
    change = Change(lease_stream(command.lease_id), fact)
    if not runs or ends_us is not None:
        budgets = uncount_budgets(
            world, command.lease_id, lease.counted, taken, command.at_us, is_final=False
        )
        return [change, *budgets]
    closed_at_us = max(lease.counted_until_us, min(command.at_us, lease.window_end_us))
    closed = closing(
        evolve(lease, fact), _close(command, closed_at_us), closed_at_us, world, taken=taken
    )
    return [change, *closed]


def _ends_us(lease: Lease, held: tuple[EscrowPart, ...], at_us: int) -> int | None:
    """Until when what is left pays for the lease; None: it cannot be funded any longer."""
    assert lease.opened is not None
    ends_us = funded_to_us(lease, held, lease.opened.opened_at_us)
    if lease.term_end_us is not None:
        return max(ends_us, lease.term_end_us) if _is_paid(lease, held) else None
    used_until_us = at_us if lease.paused_at_us is None else lease.paused_at_us
    return ends_us if ends_us > used_until_us else None


def _close(command: TakeFundsBack, closed_at_us: int) -> CloseLease:
    return CloseLease(
        lease_id=command.lease_id,
        closed_at_us=closed_at_us,
        party="job",
        code=PAYMENT_REVERSED,
        at_us=command.at_us,
        by=command.payment_id,
    )


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {TakeFundsBack: decide_take, TakeIdleEscrow: decide_take_idle}
