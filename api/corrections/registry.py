"""What `corrections` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.corrections import adjustments, countersign, disputes
from api.corrections.corrections_timer import run_corrections
from api.door.operation import Resource
from api.process.timer import Timer

RESOURCES: tuple[Resource, ...] = (disputes.resource, adjustments.resource, countersign.resource)
TIMERS: tuple[Timer, ...] = (Timer("corrections", 60, 7_200, run_corrections, turn=190),)
