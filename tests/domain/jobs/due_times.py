"""Every due moment of a schedule in a span: what tests compare the latest one with."""

from __future__ import annotations

from domain.jobs.cron import Schedule, next_due_us


def due_between(schedule: Schedule, after_us: int, until_us: int, count_max: int) -> list[int]:
    """Due moments in (after, until], the earliest first, at most so many."""
    found: list[int] = []
    at_us = after_us
    while len(found) < count_max and (at_us := next_due_us(schedule, at_us)) <= until_us:
        found.append(at_us)
    return found
