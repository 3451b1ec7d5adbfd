"""What this room refuses: disputes and late usage.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class CorrectionsReason(Reason):
    """Why a command of this room was refused."""

    LINE_UNKNOWN = "line_unknown"
    DISPUTE_UNKNOWN = "dispute_unknown"
    ADJUSTMENT_UNKNOWN = "adjustment_unknown"
    DISPUTE_STATE = "dispute_state"
    DISPUTE_TOO_LATE = "dispute_too_late"
    EVIDENCE_UNKNOWN = "evidence_unknown"
    NO_LATE_USAGE = "no_late_usage"


REASONS = tuple(CorrectionsReason)
STORED: frozenset[Reason] = frozenset(
    {
        CorrectionsReason.LINE_UNKNOWN,
        CorrectionsReason.DISPUTE_UNKNOWN,
        CorrectionsReason.DISPUTE_STATE,
        CorrectionsReason.DISPUTE_TOO_LATE,
        CorrectionsReason.NO_LATE_USAGE,
    }
)
