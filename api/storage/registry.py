"""What `storage` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.storage import datasets, volumes

    return (volumes.resource, datasets.resource)


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin."""
    from api.storage.volume_timer import run_volumes

    return (Timer("volumes", 300, 7_200, run_volumes, turn=175),)
