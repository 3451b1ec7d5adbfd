"""What `chain` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer, TimerOf


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.chain import payouts

    return (payouts.resource,)


def timers() -> tuple[Timer | TimerOf, ...]:
    """Its timers, imported when timers begin."""
    from api.chain.side_timer import chain_timer

    return (chain_timer,)
