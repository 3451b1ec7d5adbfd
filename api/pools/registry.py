"""What `pools` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.pools import groups, pools
from api.pools.scheduling import run_schedule
from api.process.timer import Timer

RESOURCES: tuple[Resource, ...] = (pools.resource, groups.resource)
TIMERS: tuple[Timer, ...] = (Timer("schedule", 2, 600, run_schedule, turn=30),)
