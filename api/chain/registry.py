"""What `chain` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.chain import payouts
from api.chain.side_timer import chain_timer
from api.door.operation import Resource
from api.process.timer import Timer, TimerOf

RESOURCES: tuple[Resource, ...] = (payouts.resource,)
TIMERS: tuple[Timer | TimerOf, ...] = (chain_timer,)
