"""What `monitoring` adds to the server: its resource, its timer and its page."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI

from api.door.operation import Resource
from api.monitoring import alerts_held, exposition, timer_runs
from api.monitoring.timer import run_alerts
from api.process.timer import Timer, TimerOf

RESOURCES: tuple[Resource, ...] = (timer_runs.resource, alerts_held.resource)
TIMERS: tuple[Timer | TimerOf, ...] = (Timer("alerts", 60, 600, run_alerts, turn=280),)
PAGES: tuple[Callable[[FastAPI], None], ...] = (exposition.add,)
