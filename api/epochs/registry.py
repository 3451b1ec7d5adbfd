"""What `epochs` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.epochs import epochs, explanations, reward_corrections

    return (epochs.resource, explanations.resource, reward_corrections.resource)


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin."""
    from api.epochs.closing_timer import run_epochs

    return (Timer("epochs", 60, 900, run_epochs, turn=200),)
