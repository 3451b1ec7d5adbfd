"""What `authority` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.authority import governors, key_recoveries

    return (governors.resource, key_recoveries.resource)


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin. After `epochs`: a change waits for an epoch to be
    opened.
    """
    from api.authority.waiting_timer import run_governors, run_key_recovery

    return (
        Timer("governors", 60, 7_200, run_governors, turn=205),
        Timer("key_recovery", 60, 7_200, run_key_recovery, turn=206),
    )
