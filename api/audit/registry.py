"""What `audit` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer, TimerOf


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.audit import audit, solvency

    return (audit.resource, solvency.resource)


def timers() -> tuple[Timer | TimerOf, ...]:
    """Its timers, imported when timers begin."""
    from api.audit.tree_timer import pin_timer, run_trees

    return (pin_timer, Timer("tree", 2, 60, run_trees, turn=270))
