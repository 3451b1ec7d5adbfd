"""What `monitoring` adds to the server: its resource, its timer and its page."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI

from api.door.operation import Resource
from api.process.timer import Timer, TimerOf


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.monitoring import alerts_held, timer_runs

    return (timer_runs.resource, alerts_held.resource)


def timers() -> tuple[Timer | TimerOf, ...]:
    """Its timers, imported when timers begin."""
    from api.monitoring.timer import run_alerts

    return (Timer("alerts", 60, 600, run_alerts, turn=280, rests_on_log=False),)


def pages() -> tuple[Callable[[FastAPI], None], ...]:
    """What is no operation of the API."""
    from api.monitoring import exposition

    return (exposition.add,)
