"""What `pools` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.pools import controllers, groups, health, pools
from api.pools.controller_timer import controller_timer
from api.pools.scheduling import run_schedule
from api.process.timer import Timer, TimerOf

RESOURCES: tuple[Resource, ...] = (
    pools.resource,
    controllers.resource,
    health.resource,
    groups.resource,
)
TIMERS: tuple[Timer | TimerOf, ...] = (
    Timer("schedule", 2, 600, run_schedule, turn=30),
    controller_timer,
)
