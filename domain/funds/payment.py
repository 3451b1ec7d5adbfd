"""A payment: from the wish to pay to money that nobody can take back any more.

    started --paid--> pending (card) --window over--> confirmed --> reversed, refunded
            --paid--> confirmed (bank)
            --not paid--> failed;   money that arrives all the same is taken all the same

    amount received == left + reversed + refunded + refunds on their way        always
    one reference of the processor == one fact, however often it is told

Card money is spendable at once (`party:{id}:card`) and inside its chargeback window until the terms
it was started under say it is over; then `world:card` becomes `world:bank`, and what is unspent
becomes cash (`domain/funds/card_money.py`). Bank money is cash at once. Money taken back by the
payer's bank is taken from what is unspent of it; what was spent is owed (`domain/funds/debt.py`),
and the providers keep what they earned. Money for a closed account waits in suspense. Amounts
outside are whole cents. Money that no payment was started for is an operator's
`domain/funds/deposit.py`. Source: design economics 5 and 20.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.duration import DAY_US
from domain.frozen import replace
from domain.funds import card_money, debt
from domain.funds.payment_terms import CENT_UNITS, terms_at
from domain.funds.reasons import FundsReason
from domain.money import Amount, Asset, Big, credit
from domain.parties.account import account_of, open_account
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

METHODS = ("card", "bank")
WAITS_US = {"card": DAY_US, "bank": 14 * DAY_US}
"""How long a payment that was started may still be paid."""
PAYMENT_UNITS_MAX = 10**12
"""A million credits at once."""
TAKINGS_MAX = 100
"""Reversals and refunds of one payment."""

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentStarted:
    """Stream `payment:{payment_id}`, as all that follow."""

    payment_id: str
    account_id: str
    method: str  # METHODS
    processor: str
    amount: Amount
    cause: str  # "order", or "top_up": by itself, with the saved method
    saved_method: str | None
    chargeback_window_us: int
    expires_at_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentOffered:
    """The processor knows of it, by this reference."""

    payment_id: str
    reference: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentReceived:
    """The money is there; `amount` is what arrived, whatever was asked for."""

    payment_id: str
    account_id: str | None  # absent: the account was closed, the money waits in suspense
    method: str
    amount: Amount
    reference: str  # of the charge, or of the line on the bank's statement
    saved_method: str | None
    confirm_at_us: int | None  # end of the chargeback window; absent: final at once
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentConfirmed:
    """The chargeback window is over for what is left of it."""

    payment_id: str
    account_id: str | None
    amount: Amount
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentFailed:
    payment_id: str
    reason: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentReversed:
    """Money was taken back outside. unspent + spent == amount; what was spent is owed."""

    payment_id: str
    account_id: str | None
    reference: str  # of the dispute, or of a refund made at the processor by hand
    amount: Amount
    unspent: Amount  # taken from the account's card credits, or from cash if it was final
    spent: Amount
    is_final: bool  # whether it had been confirmed: it leaves the bank, not the card money
    reason: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentFundsTaken:
    """Money that was spent on a lease and not used yet pays what is owed for a reversal."""

    payment_id: str
    account_id: str
    lease_id: str
    amount: Amount
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentReinstated:
    """A reversal was won: its money is back, and counts as money in."""

    payment_id: str
    account_id: str | None
    reference: str
    amount: Amount
    is_final: bool
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentRefundAsked:
    """Unspent money leaves the balance, before the processor is asked to give it back."""

    payment_id: str
    account_id: str
    refund_id: str
    amount: Amount
    is_final: bool
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentRefunded:
    payment_id: str
    account_id: str
    refund_id: str
    reference: str
    amount: Amount
    is_final: bool
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentRefundFailed:
    """It did not reach whoever paid: the money is in the balance again."""

    payment_id: str
    account_id: str
    refund_id: str
    amount: Amount
    is_final: bool
    reason: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPayment:
    payment_id: str
    account_id: str
    method: str
    processor: str
    amount: Amount
    by: str
    at_us: int
    cause: str = "order"
    saved_method: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPayment:
    payment_id: str
    reference: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivePayment:
    payment_id: str
    amount: Amount
    reference: str
    by: str
    at_us: int
    saved_method: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmPayment:
    payment_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailPayment:
    payment_id: str
    reason: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversePayment:
    payment_id: str
    reference: str
    amount: Amount
    reason: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReinstatePayment:
    payment_id: str
    reference: str
    amount: Amount
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRefund:
    payment_id: str
    refund_id: str
    amount: Amount
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmRefund:
    payment_id: str
    refund_id: str
    reference: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailRefund:
    payment_id: str
    refund_id: str
    reason: str
    at_us: int


# State.


@dataclass(frozen=True, slots=True)
class Taking:
    """Money of a payment that went back, or is going. `state`: reversed, reinstated, refunding,
    refunded, refund_failed.
    """

    amount: Big
    state: str
    is_final: bool


@dataclass(frozen=True, slots=True)
class Payment:
    started: PaymentStarted | None = None
    reference: str | None = None
    received: PaymentReceived | None = None
    failed: PaymentFailed | None = None
    is_confirmed: bool = False
    left: Big = 0  # of what was received, not taken back
    takings: dict[str, Taking] = field(default_factory=dict)  # by dispute or refund id
    spent: Big = 0  # of what was reversed, and not won back
    collected: Big = 0  # of that, taken from leases
    reversed_at_us: int = 0  # the last time

    @property
    def status(self) -> str:
        """unknown, started, failed, pending, confirmed, reversed or refunded (all of it)."""
        if self.started is None:
            return "unknown"
        if self.received is None:
            return "started" if self.failed is None else "failed"
        if not self.left:
            reversed_ = any(taking.state == "reversed" for taking in self.takings.values())
            return "reversed" if reversed_ else "refunded"
        return "confirmed" if self.is_confirmed else "pending"

    @property
    def is_refunding(self) -> bool:
        return any(taking.state == "refunding" for taking in self.takings.values())

    @property
    def reversed_sources(self) -> frozenset[str]:
        """What the credits were that were reversed: inside the chargeback window, or final."""
        reversed_ = (one for one in self.takings.values() if one.state == "reversed")
        return frozenset("cash" if one.is_final else "card" for one in reversed_)

    def taking(self, key: str, amount: int, state: str, is_final: bool, left: int) -> Payment:
        takings = {**self.takings, key: Taking(amount, state, is_final)}
        return replace(self, takings=takings, left=left)


Fact: TypeAlias = (
    PaymentStarted
    | PaymentOffered
    | PaymentReceived
    | PaymentConfirmed
    | PaymentFailed
    | PaymentReversed
    | PaymentFundsTaken
    | PaymentReinstated
    | PaymentRefundAsked
    | PaymentRefunded
    | PaymentRefundFailed
)


def evolve(state: Payment, fact: Fact) -> Payment:
    match fact:
        case PaymentStarted():
            return replace(state, started=fact)
        case PaymentOffered():
            return replace(state, reference=fact.reference)
        case PaymentReceived():
            final = fact.confirm_at_us is None
            return replace(state, received=fact, is_confirmed=final, left=fact.amount.units)
        case PaymentConfirmed():
            return replace(state, is_confirmed=True)
        case PaymentFailed():
            return replace(state, failed=fact)
        case PaymentReversed():
            units = fact.amount.units
            left = state.left - units
            state = replace(state, spent=state.spent + fact.spent.units, reversed_at_us=fact.at_us)
            return state.taking(fact.reference, units, "reversed", fact.is_final, left)
        case PaymentFundsTaken():
            return replace(state, collected=state.collected + fact.amount.units)
        case PaymentReinstated():
            units = fact.amount.units
            left = state.left + units
            # What is won back repays a debt first, so the leases are left alone.
            state = replace(state, spent=max(state.collected, state.spent - units))
            return state.taking(fact.reference, units, "reinstated", fact.is_final, left)
        case PaymentRefundAsked():
            units = fact.amount.units
            left = state.left - units
            return state.taking(fact.refund_id, units, "refunding", fact.is_final, left)
        case PaymentRefunded():
            units = fact.amount.units
            return state.taking(fact.refund_id, units, "refunded", fact.is_final, state.left)
        case PaymentRefundFailed():
            units = fact.amount.units
            left = state.left + units
            return state.taking(fact.refund_id, units, "refund_failed", fact.is_final, left)
        case _:
            assert_never(fact)


# Decisions.


def stream_of(payment_id: str) -> Stream[Payment]:
    return Stream("payment", payment_id)


def payment_of(world: World, payment_id: str) -> Payment:
    return world.state(stream_of(payment_id))


def _known(world: World, payment_id: str) -> Payment:
    state = payment_of(world, payment_id)
    if state.started is None:
        raise Refused(FundsReason.PAYMENT_UNKNOWN, payment_id=payment_id)
    return state


def _received(world: World, payment_id: str) -> tuple[Payment, PaymentReceived]:
    state = _known(world, payment_id)
    if state.received is None:
        raise _not_now(payment_id, state)
    return state, state.received


def _not_now(payment_id: str, state: Payment, **facts: object) -> Refused:
    return Refused(FundsReason.PAYMENT_STATE, payment_id=payment_id, status=state.status, **facts)


def decide_start(command: StartPayment, world: World) -> list[Change]:
    """The same payment again changes nothing. Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED,
    PAYMENT_STATE (another under its id), AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE,
    AMOUNT_NOT_CENTS, PAYMENT_BELOW_MINIMUM (row C-25).
    """
    present = payment_of(world, command.payment_id)
    if present.started is not None:
        told = present.started
        same = (told.account_id, told.method, told.amount, told.processor) == (
            command.account_id,
            command.method,
            command.amount,
            command.processor,
        )
        if same:
            return []
        raise _not_now(command.payment_id, present)
    open_account(world, command.account_id)
    assert command.method in METHODS, command
    _whole_cents(command.amount)
    terms = terms_at(world, command.at_us)
    if command.amount.units < terms.minimum.units:
        raise Refused(
            FundsReason.PAYMENT_BELOW_MINIMUM,
            units=command.amount.units,
            minimum=terms.minimum.units,
        )
    started = PaymentStarted(
        payment_id=command.payment_id,
        account_id=command.account_id,
        method=command.method,
        processor=command.processor,
        amount=command.amount,
        cause=command.cause,
        saved_method=command.saved_method,
        chargeback_window_us=terms.chargeback_window_us,
        expires_at_us=command.at_us + WAITS_US[command.method],
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.payment_id), started)]


def decide_offer(command: OfferPayment, world: World) -> list[Change]:
    """Raises Refused: PAYMENT_UNKNOWN, PAYMENT_STATE (another reference)."""
    state = _known(world, command.payment_id)
    if state.reference == command.reference:
        return []
    if state.reference is not None:
        raise _not_now(command.payment_id, state, reference=state.reference)
    offered = PaymentOffered(
        payment_id=command.payment_id, reference=command.reference, at_us=command.at_us
    )
    return [Change(stream_of(command.payment_id), offered)]


def decide_receive(command: ReceivePayment, world: World) -> list[Change]:
    """Money that arrived is taken, also late and also for a closed account; its debt comes first.

    Raises Refused: PAYMENT_UNKNOWN, PAYMENT_STATE (received before, under another reference),
    AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE, AMOUNT_NOT_CENTS.
    """
    state = _known(world, command.payment_id)
    started = state.started
    assert started is not None
    if state.received is not None:
        if state.received.reference == command.reference:
            return []
        raise _not_now(command.payment_id, state, reference=state.received.reference)
    _whole_cents(command.amount)
    is_card = started.method == "card"
    account_id = started.account_id if account_of(world, started.account_id).is_open else None
    received = PaymentReceived(
        payment_id=command.payment_id,
        account_id=account_id,
        method=started.method,
        amount=command.amount,
        reference=command.reference,
        saved_method=command.saved_method,
        confirm_at_us=command.at_us + started.chargeback_window_us if is_card else None,
        by=command.by,
        at_us=command.at_us,
    )
    change = Change(stream_of(command.payment_id), received)
    return [change, *_money_in(world, command, account_id, command.amount.units, is_card)]


def _money_in(
    world: World, command: Any, account_id: str | None, units: int, is_card: bool
) -> list[Change]:
    if account_id is None:
        return []
    cause, at_us = command.payment_id, command.at_us
    moved = {"card" if is_card else "cash": units}
    return [
        *(card_money.came_in(world, account_id, units, cause, at_us) if is_card else ()),
        *debt.repayments(world, account_id, cause, at_us, moved=moved),
    ]


def decide_confirm(command: ConfirmPayment, world: World) -> list[Change]:
    """Raises Refused: PAYMENT_UNKNOWN, PAYMENT_STATE (also while a refund is on its way),
    PAYMENT_NOT_DUE.
    """
    state, received = _received(world, command.payment_id)
    if state.is_confirmed:
        return []
    if not state.left or state.is_refunding:
        raise _not_now(command.payment_id, state)
    due_us = received.confirm_at_us
    assert due_us is not None, received
    if command.at_us < due_us:
        raise Refused(FundsReason.PAYMENT_NOT_DUE, payment_id=command.payment_id, due_us=due_us)
    fact = PaymentConfirmed(
        payment_id=command.payment_id,
        account_id=received.account_id,
        amount=credit(state.left),
        at_us=command.at_us,
    )
    changes = [Change(stream_of(command.payment_id), fact)]
    if received.account_id is not None:
        changes += card_money.confirmed(
            world, received.account_id, state.left, command.payment_id, command.at_us
        )
    return changes


def decide_fail(command: FailPayment, world: World) -> list[Change]:
    """Raises Refused: PAYMENT_UNKNOWN, PAYMENT_STATE (the money is there)."""
    state = _known(world, command.payment_id)
    if state.received is not None:
        raise _not_now(command.payment_id, state)
    if state.failed is not None:
        return []
    failed = PaymentFailed(
        payment_id=command.payment_id, reason=command.reason, at_us=command.at_us
    )
    return [Change(stream_of(command.payment_id), failed)]


def decide_reverse(command: ReversePayment, world: World) -> list[Change]:
    """The payer's bank took money back. What is unspent of it goes, the rest is owed, and what the
    account has of other money repays that at once.

    Raises Refused: PAYMENT_UNKNOWN, PAYMENT_STATE (not there yet: told again later),
    AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE (more than is left of it), CREDIT_TOO_LOW (the bank's
    account in the books does not hold it).
    """
    state, received = _received(world, command.payment_id)
    if command.reference in state.takings:
        return []
    units = _to_take(command.payment_id, state, command.amount)
    is_final, account_id = state.is_confirmed, received.account_id
    _require_bank(world, units, is_final)
    unspent = units
    if account_id is not None:
        source = "cash" if is_final else "card"
        unspent = min(units, world.balance(f"party:{account_id}:{source}"))
    fact = PaymentReversed(
        payment_id=command.payment_id,
        account_id=account_id,
        reference=command.reference,
        amount=command.amount,
        unspent=credit(unspent),
        spent=credit(units - unspent),
        is_final=is_final,
        reason=command.reason,
        at_us=command.at_us,
    )
    changes = [Change(stream_of(command.payment_id), fact)]
    if account_id is None:
        return changes
    if received.method == "card":
        changes += card_money.taken_back(
            world, account_id, units, command.payment_id, command.at_us, is_final=is_final
        )
    moved = {"cash" if is_final else "card": -unspent}
    return changes + debt.repayments(
        world, account_id, command.payment_id, command.at_us, moved=moved, owed_more=units - unspent
    )


def decide_reinstate(command: ReinstatePayment, world: World) -> list[Change]:
    """Raises Refused: PAYMENT_UNKNOWN, PAYMENT_STATE (this was not reversed, or not so much)."""
    state, received = _received(world, command.payment_id)
    taking = state.takings.get(command.reference)
    if taking is not None and taking.state == "reinstated":
        return []
    if taking is None or taking.state != "reversed" or taking.amount != command.amount.units:
        raise _not_now(command.payment_id, state, reference=command.reference)
    fact = PaymentReinstated(
        payment_id=command.payment_id,
        account_id=received.account_id,
        reference=command.reference,
        amount=command.amount,
        is_final=state.is_confirmed,  # what was left may have been confirmed meanwhile
        at_us=command.at_us,
    )
    return [
        Change(stream_of(command.payment_id), fact),
        *_money_in(world, command, received.account_id, taking.amount, not state.is_confirmed),
    ]


def decide_ask_refund(command: AskRefund, world: World) -> list[Change]:
    """Only what is unspent goes back, the way it came.

    Raises Refused: PAYMENT_UNKNOWN, PAYMENT_STATE, AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE,
    AMOUNT_NOT_CENTS, CREDIT_TOO_LOW (it was spent).
    """
    state, received = _received(world, command.payment_id)
    if command.refund_id in state.takings:
        return []
    account_id = received.account_id
    if account_id is None:
        raise _not_now(command.payment_id, state)
    _whole_cents(command.amount)
    units = _to_take(command.payment_id, state, command.amount)
    source = "cash" if state.is_confirmed else "card"
    unspent = world.balance(f"party:{account_id}:{source}")
    if units > unspent:
        raise Refused(FundsReason.CREDIT_TOO_LOW, needed=units, available=unspent)
    fact = PaymentRefundAsked(
        payment_id=command.payment_id,
        account_id=account_id,
        refund_id=command.refund_id,
        amount=command.amount,
        is_final=state.is_confirmed,
        by=command.by,
        at_us=command.at_us,
    )
    changes = [Change(stream_of(command.payment_id), fact)]
    if received.method == "card":
        changes += card_money.taken_back(
            world, account_id, units, command.refund_id, command.at_us, is_final=state.is_confirmed
        )
    return changes


def _refunding(world: World, payment_id: str, refund_id: str) -> tuple[Payment, str, Taking]:
    state, received = _received(world, payment_id)
    taking = state.takings.get(refund_id)
    if taking is None or received.account_id is None:
        raise _not_now(payment_id, state, refund_id=refund_id)
    return state, received.account_id, taking


def decide_confirm_refund(command: ConfirmRefund, world: World) -> list[Change]:
    """Raises Refused: PAYMENT_UNKNOWN, PAYMENT_STATE, CREDIT_TOO_LOW (of the bank's account)."""
    state, account_id, taking = _refunding(world, command.payment_id, command.refund_id)
    if taking.state == "refunded":
        return []
    if taking.state != "refunding":
        raise _not_now(command.payment_id, state, refund_id=command.refund_id)
    _require_bank(world, taking.amount, taking.is_final)
    fact = PaymentRefunded(
        payment_id=command.payment_id,
        account_id=account_id,
        refund_id=command.refund_id,
        reference=command.reference,
        amount=credit(taking.amount),
        is_final=taking.is_final,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.payment_id), fact)]


def decide_fail_refund(command: FailRefund, world: World) -> list[Change]:
    """The money is spendable again, after the account's debt.

    Raises Refused: PAYMENT_UNKNOWN, PAYMENT_STATE (it arrived).
    """
    state, account_id, taking = _refunding(world, command.payment_id, command.refund_id)
    if taking.state == "refund_failed":
        return []
    if taking.state != "refunding":
        raise _not_now(command.payment_id, state, refund_id=command.refund_id)
    fact = PaymentRefundFailed(
        payment_id=command.payment_id,
        account_id=account_id,
        refund_id=command.refund_id,
        amount=credit(taking.amount),
        is_final=taking.is_final,
        reason=command.reason,
        at_us=command.at_us,
    )
    return [
        Change(stream_of(command.payment_id), fact),
        *_money_in(world, command, account_id, taking.amount, not taking.is_final),
    ]


def _to_take(payment_id: str, state: Payment, amount: Amount) -> int:
    """Units to take back of what is left.

    Raises Refused: AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE.
    """
    units = _credits(amount)
    if units > state.left:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, units=units, left=state.left)
    if len(state.takings) >= TAKINGS_MAX:
        raise _not_now(payment_id, state, takings=len(state.takings))
    return units


def _require_bank(world: World, units: int, is_final: bool) -> None:
    """Money leaves the bank's account only if the books have it there."""
    bank = world.balance("world:bank")
    if is_final and units > bank:
        raise Refused(FundsReason.CREDIT_TOO_LOW, needed=units, bank=bank)


def _credits(amount: Amount) -> int:
    if amount.units <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, units=amount.units)
    if amount.asset is not Asset.CREDIT or amount.units > PAYMENT_UNITS_MAX:
        raise Refused(
            PricesReason.AMOUNT_OUT_OF_RANGE, asset=amount.asset.value, units=amount.units
        )
    return amount.units


def _whole_cents(amount: Amount) -> int:
    units = _credits(amount)
    if units % CENT_UNITS:
        raise Refused(FundsReason.AMOUNT_NOT_CENTS, units=units, cent=CENT_UNITS)
    return units


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"payment": (Payment(), evolve)}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    StartPayment: decide_start,
    OfferPayment: decide_offer,
    ReceivePayment: decide_receive,
    ConfirmPayment: decide_confirm,
    FailPayment: decide_fail,
    ReversePayment: decide_reverse,
    ReinstatePayment: decide_reinstate,
    AskRefund: decide_ask_refund,
    ConfirmRefund: decide_confirm_refund,
    FailRefund: decide_fail_refund,
}
