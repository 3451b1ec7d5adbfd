"""What `market` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.market import bids, contests, offers, pricing, unmatched

    return (offers.resource, bids.resource, pricing.resource, unmatched.resource, contests.resource)


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin."""
    from api.market.bid_timer import run_bids

    return (Timer("bids", 2, 60, run_bids, turn=50),)
