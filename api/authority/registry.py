"""What `authority` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.authority import governors
from api.door.operation import Resource
from api.process.timer import Timer

RESOURCES: tuple[Resource, ...] = (governors.resource,)
TIMERS: tuple[Timer, ...] = (Timer("governors", 60, 7_200, governors.run_governors, turn=205),)
"""After `epochs`: a change waits for an epoch to be opened."""
