"""What `epochs` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.epochs import epochs, explanations, reward_corrections
from api.epochs.closing_timer import run_epochs
from api.process.timer import Timer

RESOURCES: tuple[Resource, ...] = (
    epochs.resource,
    explanations.resource,
    reward_corrections.resource,
)
TIMERS: tuple[Timer, ...] = (Timer("epochs", 60, 900, run_epochs, turn=200),)
