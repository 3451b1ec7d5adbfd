"""Refusals are kept with the key of their request, so that a retry gets the same answer, and then
they go: what was recorded is kept for ever, and what was refused need not be.
"""

from __future__ import annotations

from api.process.service import Service
from domain.duration import DAY_US
from projections.runner import Connection

REFUSALS_US = 30 * DAY_US
"""So long a refused request gets the same answer when it is sent again."""
BATCHES_MAX = 100
"""Of one round, each of some thousands: what is left is for the next."""


def run_refusals(service: Service, _connection: Connection, now_us: int) -> int:
    """Delete refusals that were stored 30 days ago; how many."""
    gone = 0
    for _ in range(BATCHES_MAX):
        batch = service.ledger.forget_refusals(now_us - REFUSALS_US)
        gone += batch
        if not batch:
            break
    return gone
