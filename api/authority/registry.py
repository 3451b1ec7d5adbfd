"""What `authority` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.authority import governors, key_recoveries
from api.door.operation import Resource
from api.process.timer import Timer

RESOURCES: tuple[Resource, ...] = (governors.resource, key_recoveries.resource)
TIMERS: tuple[Timer, ...] = (
    Timer("governors", 60, 7_200, governors.run_governors, turn=205),
    Timer("key_recovery", 60, 7_200, key_recoveries.run_key_recovery, turn=206),
)
"""After `epochs`: a change waits for an epoch to be opened."""
