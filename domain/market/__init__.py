"""What is offered, matched and bid? Offers, bids and the need of a request go in; the node that is
chosen, its price and the reasons against the others come out.
"""

__all__ = (
    "auction",
    "dimensions",
    "explanation",
    "free_room",
    "matching",
    "need",
    "offer",
    "offer_prices",
    "price_gate",
    "reasons",
    "registry",
    "sharing",
    "standing_bid",
    "unmatched",
)
