"""What `market` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.market import bids, contests, offers, pricing, unmatched
from api.market.bid_timer import run_bids
from api.process.timer import Timer

RESOURCES: tuple[Resource, ...] = (
    offers.resource,
    bids.resource,
    pricing.resource,
    unmatched.resource,
    contests.resource,
)
TIMERS: tuple[Timer, ...] = (Timer("bids", 2, 60, run_bids, turn=50),)
