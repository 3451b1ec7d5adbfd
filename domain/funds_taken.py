"""A payment was reversed: what it funded is taken back from its leases, as far as it is unspent.

    taken from leases for a payment <= what was spent of it when it was reversed, and <= owed
    held after == held before - taken;   charge == paid by the escrow + owed     to the unit

What the account has of other money pays first (`domain/payment.py`), so work that can be paid for
goes on. What is still owed then is taken from the escrows that the same sort of money fills, the
latest lease first, its latest deposit first. A lease that is left with nothing beyond this moment,
and one whose fixed term is not paid for any more, closes with 102 payment_reversed; any other goes
on to its earlier end. What a closed lease has used until then is paid by what is left and owed for
the rest, so its provider keeps what it earned. Source: marketplace 2, economics 5; decision 0028.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from domain import debt
from domain.close_reason import PAYMENT_REVERSED
from domain.gang_life import decide_close_together
from domain.lease import CloseLease, Lease, LeaseSettled, evolve, lease_of
from domain.lease_accrual import closing
from domain.lease_budget import uncount_budgets
from domain.lease_escrow import funded_to_us
from domain.lease_funds import EscrowPart, Held, for_purpose, take, total, without
from domain.lease_turns import LeaseFundsTaken
from domain.money import credit
from domain.payment import Payment, PaymentFundsTaken, payment_of
from domain.payment import stream_of as payment_stream
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeFundsBack:
    """For a payment that was reversed: what is unspent of it in this lease."""

    payment_id: str
    lease_id: str
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
    theirs = parts_of(lease, account_id, payment.reversed_sources)
    units = min(units, total(theirs))
    if units <= 0 or _is_later(lease, payment):
        return []
    if lease.opened is None:
        return _never_starts(command, account_id, world)
    taken = take(tuple(reversed(theirs)), units)
    done = PaymentFundsTaken(
        payment_id=command.payment_id, account_id=account_id, lease_id=command.lease_id,
        amount=credit(units), at_us=command.at_us,
    )  # fmt: skip
    changes = _taken(command, account_id, lease, taken, world)
    return [*changes, Change(payment_stream(command.payment_id), done)]


def _is_later(lease: Lease, payment: Payment) -> bool:
    """Whether it was reserved after the reversal, when the debt of it had been paid."""
    return lease.reserved is None or lease.reserved.at_us > payment.reversed_at_us


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
    ends_us = _ends_us(lease, without(lease.held, taken), command.at_us)
    is_over = lease.closed is not None or ends_us is None
    fact = LeaseFundsTaken(
        lease_id=command.lease_id, account_id=account_id, payment_id=command.payment_id,
        parts=taken, funds_end_us=None if is_over else ends_us, at_us=command.at_us,
    )  # fmt: skip
    change = Change(Stream("lease", command.lease_id), fact)
    if lease.closed is not None or ends_us is not None:
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
    if lease.term_us is not None:
        return None
    ends_us = funded_to_us(lease, held, lease.opened.opened_at_us)
    used_until_us = at_us if lease.paused_at_us is None else lease.paused_at_us
    return ends_us if ends_us > used_until_us else None


def _close(command: TakeFundsBack, closed_at_us: int) -> CloseLease:
    return CloseLease(
        lease_id=command.lease_id, closed_at_us=closed_at_us, party="job", code=PAYMENT_REVERSED,
        at_us=command.at_us, by=command.payment_id,
    )  # fmt: skip


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {TakeFundsBack: decide_take}
