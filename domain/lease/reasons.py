"""What this room refuses: the state of a lease.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class LeaseReason(Reason):
    """Why a command of this room was refused."""

    LEASE_UNKNOWN = "lease_unknown"
    LEASE_EXISTS = "lease_exists"
    LEASE_NOT_OPEN = "lease_not_open"
    LEASE_NOT_DUE = "lease_not_due"
    CLOSE_CODE_PARTY = "close_code_party"
    ENCRYPTION_KEY_UNKNOWN = "encryption_key_unknown"


REASONS = tuple(LeaseReason)
STORED: frozenset[Reason] = frozenset(
    {LeaseReason.LEASE_UNKNOWN, LeaseReason.LEASE_EXISTS, LeaseReason.LEASE_NOT_OPEN}
)
