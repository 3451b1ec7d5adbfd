"""What this room refuses: transactions, burns and payouts.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class ChainReason(Reason):
    """Why a command of this room was refused."""

    PAYOUT_STATE = "payout_state"
    PAYOUT_EXISTS = "payout_exists"
    CHAIN_TX_STATE = "chain_tx_state"
    BURN_STATE = "burn_state"
    EMPTY_TREE = "empty_tree"
    DUPLICATE_LEAF = "duplicate_leaf"


REASONS = tuple(ChainReason)
STORED: frozenset[Reason] = frozenset({ChainReason.PAYOUT_STATE})
