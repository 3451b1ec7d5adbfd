"""What the room `income` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.income import (
    adjustment,
    cash_out,
    cash_out_matching,
    invoice,
    maturity,
    region_pool,
    region_sharing,
    region_terms,
)

FILES = (
    adjustment,
    cash_out,
    cash_out_matching,
    invoice,
    maturity,
    region_pool,
    region_sharing,
    region_terms,
)
FACTS: dict[str, type[Any]] = {
    "adjustment.booked.v1": adjustment.AdjustmentBooked,
    "adjustment.line_disputed.v1": adjustment.LineDisputed,
    "cash_out.minimum_set.v1": cash_out.CashOutMinimumSet,
    "cash_out.held.v1": cash_out.CashOutsHeld,
    "cash_out.released.v1": cash_out.CashOutsReleased,
    "cash_out.requested.v1": cash_out.CashOutRequested,
    "cash_out.started.v1": cash_out.CashOutStarted,
    "cash_out.sent.v1": cash_out.CashOutSent,
    "cash_out.paid.v1": cash_out.CashOutPaid,
    "cash_out.failed.v1": cash_out.CashOutFailed,
    "cash_out.cancelled.v1": cash_out.CashOutCancelled,
    "cash_out.returned.v1": cash_out.CashOutReturned,
    "earnings.matured.v1": maturity.EarningsMatured,
    "earnings.reduced.v1": maturity.EarningsReduced,
    "earnings.swept.v1": maturity.EarningsSwept,
    "earnings.brought.v1": maturity.EarningsBrought,
    "earnings.forgone.v1": maturity.EarningsForgone,
    "earnings.payment_mode_set.v1": maturity.PaymentModeSet,
    "invoice.numbered.v1": invoice.DocumentNumbered,
    "invoice.issued.v1": invoice.InvoiceIssued,
    "invoice.credit_note_issued.v1": invoice.CreditNoteIssued,
    "maturity.window_set.v1": maturity.MaturityWindowSet,
    "payout.difference_found.v1": cash_out_matching.PayoutDifferenceFound,
    "payout.difference_settled.v1": cash_out_matching.PayoutDifferenceSettled,
    "region.terms_set.v1": region_terms.RegionTermsSet,
    "region.earnings_gathered.v1": region_pool.RegionEarningsGathered,
    "region.day_shared.v1": region_pool.RegionDayShared,
    "region.shares_paid.v1": region_pool.RegionSharesPaid,
}
