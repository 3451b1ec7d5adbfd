"""What this room refuses: offers, matches, auctions and bids.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class MarketReason(Reason):
    """Why a command of this room was refused."""

    OFFER_UNKNOWN = "offer_unknown"
    OFFER_EXISTS = "offer_exists"
    OFFER_WITHDRAWN = "offer_withdrawn"
    NO_MATCH = "no_match"
    MATCH_IMPOSSIBLE = "match_impossible"
    OFFER_MISMATCH = "offer_mismatch"
    AUCTION_TERMS = "auction_terms"
    AUCTION_STATE = "auction_state"
    BID_UNKNOWN = "bid_unknown"
    BID_EXISTS = "bid_exists"
    BIDS_FULL = "bids_full"
    BID_STATE = "bid_state"


REASONS = tuple(MarketReason)
STORED: frozenset[Reason] = frozenset(
    {
        MarketReason.OFFER_UNKNOWN,
        MarketReason.OFFER_EXISTS,
        MarketReason.OFFER_WITHDRAWN,
        MarketReason.NO_MATCH,
        MarketReason.MATCH_IMPOSSIBLE,
        MarketReason.OFFER_MISMATCH,
        MarketReason.AUCTION_STATE,
        MarketReason.BID_UNKNOWN,
        MarketReason.BID_EXISTS,
        MarketReason.BIDS_FULL,
        MarketReason.BID_STATE,
    }
)
