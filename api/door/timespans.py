"""How long a report may be: every list of hours or days is bounded."""

from __future__ import annotations

from api.door.errors import Problem
from domain.duration import DAY_US

SPAN_US_MAX = 366 * DAY_US
SPAN_US = 31 * DAY_US
"""What is told when nobody says from when."""


def bounded(from_us: int | None, to_us: int | None, now_us: int) -> tuple[int, int]:
    """[from, to), by default the 31 days before `to` or now. Raises Problem: 422 invalid."""
    ends_us = now_us if to_us is None else to_us
    begins_us = max(0, ends_us - SPAN_US) if from_us is None else from_us
    if ends_us - begins_us > SPAN_US_MAX:
        rule = "from and to are at most 366 days apart"
        where = {"pointer": "#/query/from", "detail": rule}
        raise Problem(422, "invalid", rule, errors=(where,))
    return begins_us, ends_us
