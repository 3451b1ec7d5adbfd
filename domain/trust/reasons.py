"""What this room refuses: attributes, challenges and their jobs.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class TrustReason(Reason):
    """Why a command of this room was refused."""

    JOB_UNKNOWN = "job_unknown"
    REFERENCE_INVALID = "reference_invalid"
    POLICY_INVALID = "policy_invalid"


REASONS = tuple(TrustReason)
STORED: frozenset[Reason] = frozenset({TrustReason.JOB_UNKNOWN})
