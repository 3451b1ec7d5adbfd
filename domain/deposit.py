"""Money in: confirmed deposits, and credits bought by burning tokens. One stream per deposit,
so the same deposit can never count twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.money import Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class DepositConfirmed:
    """Stream `deposit:{deposit_id}`."""

    deposit_id: str
    account_id: str
    source: str  # "cash" or "card"
    amount: Amount
    reference: str  # the payment's own number, for reconciliation
    confirmed_by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditsPurchaseConfirmed:
    """A final `CreditsPurchased` on chain. Stream `purchase:{burner}/{purchase_id}`."""

    burner: str
    purchase_id: int  # dense from 1
    account_id: str | None  # absent: nobody we know, the credits wait in suspense
    payer: str
    tokens_burned: Amount
    credits: Amount
    price_round: int
    tx_hash: str
    log_index: int
    block_number: int
    at_us: int
