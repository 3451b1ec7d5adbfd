"""What the room `funds` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.funds import (
    budget,
    card_money,
    debt,
    deposit,
    funding,
    payment,
    payment_terms,
    promotion,
    top_up,
)

FILES = (budget, card_money, debt, deposit, funding, payment, payment_terms, promotion, top_up)
FACTS: dict[str, type[Any]] = {
    "budget.set.v1": budget.BudgetSet,
    "budget.held.v1": budget.BudgetHeld,
    "budget.released.v1": budget.BudgetReleased,
    "budget.alerted.v1": budget.BudgetAlerted,
    "card.money_moved.v1": card_money.CardMoneyMoved,
    "debt.repaid.v1": debt.DebtRepaid,
    "debt.written_off.v1": debt.DebtWrittenOff,
    "deposit.confirmed.v1": deposit.DepositConfirmed,
    "deposit.credits_purchased.v1": deposit.CreditsPurchaseConfirmed,
    "funding.payer_set.v1": funding.PayerSet,
    "funding.payer_ended.v1": funding.PayerEnded,
    "funds.warnings_set.v1": top_up.BalanceWarningsSet,
    "funds.warned.v1": top_up.BalanceWarned,
    "funds.recovered.v1": top_up.BalanceRecovered,
    "funds.auto_top_up_set.v1": top_up.AutoTopUpSet,
    "funds.auto_top_up_stopped.v1": top_up.AutoTopUpStopped,
    "funds.top_up_started.v1": top_up.TopUpStarted,
    "funds.top_up_ended.v1": top_up.TopUpEnded,
    "payment.started.v1": payment.PaymentStarted,
    "payment.offered.v1": payment.PaymentOffered,
    "payment.received.v1": payment.PaymentReceived,
    "payment.confirmed.v1": payment.PaymentConfirmed,
    "payment.failed.v1": payment.PaymentFailed,
    "payment.reversed.v1": payment.PaymentReversed,
    "payment.funds_taken.v1": payment.PaymentFundsTaken,
    "payment.reinstated.v1": payment.PaymentReinstated,
    "payment.refund_asked.v1": payment.PaymentRefundAsked,
    "payment.refunded.v1": payment.PaymentRefunded,
    "payment.refund_failed.v1": payment.PaymentRefundFailed,
    "payment.terms_published.v1": payment_terms.PaymentTermsPublished,
    "promotion.opened.v1": promotion.PromotionOpened,
    "promotion.closed.v1": promotion.PromotionClosed,
    "promotion.granted.v1": funding.PromotionGranted,
    "promotion.expired.v1": funding.PromotionExpired,
    "reserve.funded.v1": debt.ReserveFunded,
}
