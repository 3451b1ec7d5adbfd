"""What this room refuses: invoices, earnings, cash-outs and adjustments.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class IncomeReason(Reason):
    """Why a command of this room was refused."""

    MATURITY_WINDOW = "maturity_window"
    EARNING_MATURED = "earning_matured"
    EARNINGS_STATE = "earnings_state"
    PAYMENT_MODE = "payment_mode"
    CASH_OUT_UNKNOWN = "cash_out_unknown"
    CASH_OUT_HELD = "cash_out_held"
    CASH_OUT_STATE = "cash_out_state"
    CASH_OUT_TOO_SMALL = "cash_out_too_small"
    DIFFERENCE_UNKNOWN = "difference_unknown"
    INVOICE_KIND_UNKNOWN = "invoice_kind_unknown"
    PERIOD_NOT_OVER = "period_not_over"
    INVOICE_UNKNOWN = "invoice_unknown"
    INVOICE_EXISTS = "invoice_exists"
    NOTHING_TO_INVOICE = "nothing_to_invoice"
    CREDIT_NOTE_EXISTS = "credit_note_exists"
    INVOICE_LINE_UNKNOWN = "invoice_line_unknown"
    CREDIT_ABOVE_LINE = "credit_above_line"
    LINE_DISPUTED = "line_disputed"
    ADJUSTMENT_TOO_LARGE = "adjustment_too_large"


REASONS = tuple(IncomeReason)
STORED: frozenset[Reason] = frozenset(
    {
        IncomeReason.MATURITY_WINDOW,
        IncomeReason.EARNING_MATURED,
        IncomeReason.CASH_OUT_UNKNOWN,
        IncomeReason.CASH_OUT_HELD,
        IncomeReason.CASH_OUT_STATE,
        IncomeReason.DIFFERENCE_UNKNOWN,
        IncomeReason.INVOICE_UNKNOWN,
        IncomeReason.INVOICE_EXISTS,
        IncomeReason.NOTHING_TO_INVOICE,
        IncomeReason.CREDIT_NOTE_EXISTS,
        IncomeReason.CREDIT_ABOVE_LINE,
        IncomeReason.LINE_DISPUTED,
        IncomeReason.ADJUSTMENT_TOO_LARGE,
    }
)
