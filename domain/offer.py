"""Offers: what a provider rents out, at which price.

A price below the usage fee of the device's class is refused: the provider's part could not be
paid. A later price touches no open lease, because a lease locks its price.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.money import Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPublished:
    """Stream `offer:{offer_id}`. One offer covers the devices of one node."""

    offer_id: str
    provider_id: str
    node_id: str
    price_per_gpu_hour: Amount
    settlement: str  # "cash": provider and platform share it; "burn": retired at use, paid in TOKEN
    fractions: bool  # shares of a device, or whole devices only
    available_until_us: int | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferWithdrawn:
    offer_id: str
    by: str
    at_us: int
