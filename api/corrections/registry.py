"""What `corrections` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.corrections import adjustments, countersign, disputes

    return (disputes.resource, adjustments.resource, countersign.resource)


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin."""
    from api.corrections.corrections_timer import run_corrections

    return (Timer("corrections", 60, 7_200, run_corrections, turn=190),)
