"""What `audit` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.audit import audit, solvency
from api.audit.tree_timer import pin_timer, run_trees
from api.door.operation import Resource
from api.process.timer import Timer, TimerOf

RESOURCES: tuple[Resource, ...] = (audit.resource, solvency.resource)
TIMERS: tuple[Timer | TimerOf, ...] = (pin_timer, Timer("tree", 2, 60, run_trees, turn=270))
