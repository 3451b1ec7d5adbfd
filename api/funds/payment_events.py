"""What a processor's event, or its answer, means for the log: commands, and nothing decided here.

An event names the charge it is about by the processor's reference, so the payment is looked up in
the view, which has been brought to the head of the log first. What cannot be recorded yet (a
reversal told before its payment) is refused, and the processor tells it again.
"""

from __future__ import annotations

import logging
from typing import Any

from api.funds.reversals import reversing
from api.process.service import Service
from api.processors.seam import (
    ChargeFailed,
    ChargePaid,
    ChargeRefunded,
    ChargeReinstated,
    ChargeReversed,
    Event,
    PayoutTakenBack,
    RefundFailed,
)
from domain.funds.payment import (
    ConfirmRefund,
    FailPayment,
    FailRefund,
    ReceivePayment,
    ReinstatePayment,
    ReversePayment,
    stream_of,
)
from domain.funds.reasons import FundsReason
from domain.income import cash_out
from domain.refusal import Refused
from projections.funds import payments
from projections.funds.payments import PAYMENTS

logger = logging.getLogger(__name__)


def commands_of(service: Service, processor: str, event: Event, now_us: int) -> list[Any]:
    """What to record; nothing for what the matching of payouts finds by itself.

    Raises Refused: PAYMENT_UNKNOWN.
    """
    match event:
        case ChargePaid():
            _of(service, processor, event.payment_id)
            return [
                ReceivePayment(
                    payment_id=event.payment_id,
                    amount=event.amount,
                    reference=event.reference,
                    saved_method=event.saved_method,
                    by=processor,
                    at_us=now_us,
                )
            ]
        case ChargeFailed():
            _of(service, processor, event.payment_id)
            failed = FailPayment(payment_id=event.payment_id, reason=event.reason, at_us=now_us)
            return [failed]
        case ChargeReversed():
            reversed_ = ReversePayment(
                payment_id=_payment_of(service, processor, event.charge),
                amount=event.amount,
                reference=event.dispute,
                reason=event.reason,
                at_us=now_us,
            )
            return reversing(service, reversed_)
        case ChargeReinstated():
            return [
                ReinstatePayment(
                    payment_id=_payment_of(service, processor, event.charge),
                    amount=event.amount,
                    reference=event.dispute,
                    at_us=now_us,
                )
            ]
        case ChargeRefunded() | RefundFailed():
            return _refund(service, processor, event, now_us)
        case PayoutTakenBack():
            return _payout_back(service, processor, event, now_us)


def _refund(
    service: Service, processor: str, event: ChargeRefunded | RefundFailed, now_us: int
) -> list[Any]:
    """One of ours ends; one made by hand at the processor is money taken back like a dispute."""
    payment_id = _payment_of(service, processor, event.charge)
    taking: dict[str, Any] = {
        "payment_id": payment_id,
        "reference": event.reference,
        "at_us": now_us,
    }
    if isinstance(event, ChargeRefunded):
        if event.refund_id is not None:
            return [ConfirmRefund(refund_id=event.refund_id, **taking)]
        by_hand = ReversePayment(amount=event.amount, reason="refunded_at_processor", **taking)
        return reversing(service, by_hand)
    if event.refund_id is not None:
        return [
            FailRefund(
                payment_id=payment_id, refund_id=event.refund_id, reason=event.reason, at_us=now_us
            )
        ]
    return [ReinstatePayment(amount=event.amount, **taking)]


def _payout_back(
    service: Service, processor: str, event: PayoutTakenBack, now_us: int
) -> list[Any]:
    """Of a cash-out of ours that was paid; what is none, the matching of payouts names."""
    if event.payout_id is not None:
        state = service.ledger.market.state_of(cash_out.stream_of(event.payout_id))
        if state.status == "paid" and state.processor == processor:
            return [
                cash_out.ReturnCashOut(
                    cash_out_id=event.payout_id,
                    returned=event.taken_back,
                    reason=event.reason,
                    at_us=now_us,
                )
            ]
    logger.warning("payout %s came back: %s", event.payout_id, event.reference)
    return []


def _of(service: Service, processor: str, payment_id: str) -> None:
    """A processor speaks of its own payments only."""
    state = service.ledger.market.state_of(stream_of(payment_id))
    if state.started is None or state.started.processor != processor:
        raise Refused(FundsReason.PAYMENT_UNKNOWN, payment_id=payment_id)


def _payment_of(service: Service, processor: str, charge: str) -> str:
    with service.connection() as connection:
        service.follow(connection, [PAYMENTS])
        found = payments.read_payment_of_charge(connection, processor, charge)
    if found is None:
        raise Refused(FundsReason.PAYMENT_UNKNOWN, charge=charge)
    return found.payment_id
