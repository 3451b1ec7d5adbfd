"""What this room refuses: governors, their votes, and what takes more than one of them.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class AuthorityReason(Reason):
    """Why a command of this room was refused."""

    NO_GOVERNORS = "no_governors"
    VOTE_MISMATCH = "vote_mismatch"
    GOVERNOR_UNKNOWN = "governor_unknown"
    VOTED_ALREADY = "voted_already"
    SECOND_PERSON_NEEDED = "second_person_needed"
    GOVERNORS_MOVED = "governors_moved"
    GOVERNOR_CHANGE_UNKNOWN = "governor_change_unknown"
    GOVERNOR_CHANGE_STATE = "governor_change_state"
    GOVERNOR_CHANGE_INVALID = "governor_change_invalid"
    EPOCH_MOVED = "epoch_moved"
    ACT_SIGNATURE_VOID = "act_signature_void"
    CHECKER_NEEDED = "checker_needed"
    KEY_RECOVERY_UNKNOWN = "key_recovery_unknown"
    KEY_RECOVERY_STATE = "key_recovery_state"
    LOG_KEY_STATE = "log_key_state"
    LOG_KEY_OVERLAP = "log_key_overlap"


REASONS = tuple(AuthorityReason)
STORED: frozenset[Reason] = frozenset(
    {
        AuthorityReason.EPOCH_MOVED,
        AuthorityReason.NO_GOVERNORS,
        AuthorityReason.VOTE_MISMATCH,
        AuthorityReason.GOVERNOR_UNKNOWN,
        AuthorityReason.VOTED_ALREADY,
        AuthorityReason.SECOND_PERSON_NEEDED,
        AuthorityReason.GOVERNORS_MOVED,
        AuthorityReason.GOVERNOR_CHANGE_UNKNOWN,
        AuthorityReason.GOVERNOR_CHANGE_STATE,
        AuthorityReason.KEY_RECOVERY_UNKNOWN,
        AuthorityReason.KEY_RECOVERY_STATE,
        AuthorityReason.LOG_KEY_STATE,
    }
)
