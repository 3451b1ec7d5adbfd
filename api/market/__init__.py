"""What is for rent, and what would a request get? Offers, bids and demands go in; placements,
prices and explanations come out.
"""

__all__ = (
    "explanations",
    "lease_pricing",
    "matching",
    "next_free",
    "offers",
    "performance",
    "placing",
    "pricing",
    "registry",
    "unmatched",
)
