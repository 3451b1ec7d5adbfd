"""What this room refuses: reports and the usage they tell.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class MeteringReason(Reason):
    """Why a command of this room was refused."""

    COUNTERSIGN_TIME = "countersign_time"
    COUNTERSIGN_FELL = "countersign_fell"
    ACCRUAL_NOT_DUE = "accrual_not_due"
    USAGE_POSITION_FELL = "usage_position_fell"
    USAGE_INCOMPLETE = "usage_incomplete"
    CUT_INCOMPLETE = "cut_incomplete"
    UNKNOWN_LOG = "unknown_log"
    WRONG_LANE = "wrong_lane"
    STREAM_MOVED = "stream_moved"


REASONS = tuple(MeteringReason)
STORED: frozenset[Reason] = frozenset({MeteringReason.COUNTERSIGN_FELL})
