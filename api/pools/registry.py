"""What `pools` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer, TimerOf


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.pools import controllers, groups, health, pools

    return (pools.resource, controllers.resource, health.resource, groups.resource)


def timers() -> tuple[Timer | TimerOf, ...]:
    """Its timers, imported when timers begin."""
    from api.pools.controller_timer import controller_timer
    from api.pools.scheduling import run_schedule

    return (Timer("schedule", 2, 600, run_schedule, turn=30), controller_timer)
