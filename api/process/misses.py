"""How often an account was refused for the same, since that was last recorded. In memory only."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

MISSES_MAX = 10_000
"""Needs that a process counts; what was refused longest ago is forgotten first."""


class Misses:
    """Refusals by account and need."""

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._lock = Lock()

    def count(self, account_id: str, need: str) -> int:
        """One more, and how many that makes."""
        with self._lock:
            times = self._counts.pop((account_id, need), 0) + 1
            self._counts[account_id, need] = times
            if len(self._counts) > MISSES_MAX:
                self._counts.popitem(last=False)
        return times

    def recorded(self, account_id: str, need: str) -> None:
        """Count from none again."""
        with self._lock:
            self._counts.pop((account_id, need), None)
