"""What `storage` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer
from api.storage import datasets, volumes
from api.storage.volume_timer import run_volumes

RESOURCES: tuple[Resource, ...] = (volumes.resource, datasets.resource)
TIMERS: tuple[Timer, ...] = (Timer("volumes", 300, 7_200, run_volumes, turn=175),)
