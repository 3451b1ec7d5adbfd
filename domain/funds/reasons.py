"""What this room refuses: amounts, deposits, payments, escrows, promotions and payers.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class FundsReason(Reason):
    """Why a command of this room was refused."""

    UNPAID_DEBT = "unpaid_debt"
    CREDIT_TOO_LOW = "credit_too_low"
    DEPOSIT_EXISTS = "deposit_exists"
    DEPOSIT_SOURCE_UNKNOWN = "deposit_source_unknown"
    PURCHASE_EXISTS = "purchase_exists"
    PAYMENT_UNKNOWN = "payment_unknown"
    PAYMENT_STATE = "payment_state"
    PAYMENT_NOT_DUE = "payment_not_due"
    PAYMENT_BELOW_MINIMUM = "payment_below_minimum"
    PAYMENT_TERMS_VERSION = "payment_terms_version"
    PAYMENT_TERMS_INVALID = "payment_terms_invalid"
    PROMOTION_UNKNOWN = "promotion_unknown"
    PROMOTION_EXISTS = "promotion_exists"
    PROMOTION_ENDED = "promotion_ended"
    PROMOTION_TERMS = "promotion_terms"
    PROMOTION_FUND_SHORT = "promotion_fund_short"
    BAD_PROGRAM = "bad_program"
    PAYER_UNKNOWN = "payer_unknown"
    PAYER_EXISTS = "payer_exists"
    TOP_UP_INVALID = "top_up_invalid"
    AMOUNT_NOT_POSITIVE = "amount_not_positive"
    AMOUNT_NOT_CENTS = "amount_not_cents"
    BAD_DEPOSIT = "bad_deposit"
    DUPLICATE_PAYEE = "duplicate_payee"
    BAD_RATE = "bad_rate"
    NEGATIVE_ELAPSED = "negative_elapsed"


REASONS = tuple(FundsReason)
STORED: frozenset[Reason] = frozenset(
    {
        FundsReason.UNPAID_DEBT,
        FundsReason.CREDIT_TOO_LOW,
        FundsReason.DEPOSIT_EXISTS,
        FundsReason.PAYMENT_UNKNOWN,
        FundsReason.PAYMENT_STATE,
        FundsReason.PAYMENT_TERMS_VERSION,
        FundsReason.PROMOTION_UNKNOWN,
        FundsReason.PROMOTION_EXISTS,
        FundsReason.PROMOTION_ENDED,
        FundsReason.PROMOTION_TERMS,
        FundsReason.PROMOTION_FUND_SHORT,
        FundsReason.PAYER_UNKNOWN,
        FundsReason.PAYER_EXISTS,
    }
)
