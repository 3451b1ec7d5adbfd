"""What this room refuses: proposals, votes, breakers and grants.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class GovernanceReason(Reason):
    """Why a command of this room was refused."""

    GRANT_UNKNOWN = "grant_unknown"
    GRANT_EXISTS = "grant_exists"
    GRANT_STATE = "grant_state"
    MILESTONE_STATE = "milestone_state"
    TREASURY_SHORT = "treasury_short"
    BAD_MILESTONE = "bad_milestone"
    DUPLICATE_MILESTONE = "duplicate_milestone"
    BAD_SHARE = "bad_share"
    OVER_ASSIGNED = "over_assigned"
    UNKNOWN_MILESTONE = "unknown_milestone"
    PROPOSAL_UNKNOWN = "proposal_unknown"
    PROPOSAL_EXISTS = "proposal_exists"
    PROPOSAL_MOVED = "proposal_moved"
    PROPOSAL_STATE = "proposal_state"
    PROPOSAL_INVALID = "proposal_invalid"
    PROPOSAL_LINT = "proposal_lint"
    PROPOSAL_WITHOUT_TERMS = "proposal_without_terms"
    PROPOSAL_NOTICE = "proposal_notice"
    BREAKER_LIMIT = "breaker_limit"


REASONS = tuple(GovernanceReason)
STORED: frozenset[Reason] = frozenset(
    {
        GovernanceReason.GRANT_UNKNOWN,
        GovernanceReason.GRANT_EXISTS,
        GovernanceReason.GRANT_STATE,
        GovernanceReason.MILESTONE_STATE,
        GovernanceReason.TREASURY_SHORT,
        GovernanceReason.PROPOSAL_UNKNOWN,
        GovernanceReason.PROPOSAL_EXISTS,
        GovernanceReason.PROPOSAL_STATE,
        GovernanceReason.PROPOSAL_LINT,
        GovernanceReason.PROPOSAL_WITHOUT_TERMS,
        GovernanceReason.PROPOSAL_NOTICE,
    }
)
