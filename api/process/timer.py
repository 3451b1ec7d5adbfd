"""What a timer is: a name, how often it runs, and what it does in one round.

A room lists its timers in `timers` of its `registry.py`; `api/timers.py` runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from api.process.service import Service
from projections.runner import Connection


@dataclass(frozen=True, slots=True)
class Timer:
    """One timer: `run` does what is due at a moment and returns how much that was.

    `turn` is its place in a round of all timers, the lowest first; no two have the same.
    """

    name: str
    every_s: float
    alarm_s: int  # older than this without success, and a person should look
    run: Callable[[Service, Connection, int], int]
    turn: int = 0
    rests_on_log: bool = True  # it begins when the standbys have what was recorded
    close: Callable[[], None] = lambda: None


TimerOf = Callable[[Service], Timer | None]
"""A timer that depends on the settings of the service; None where they do not want it."""
