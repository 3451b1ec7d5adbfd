"""What this room refuses: epochs, rewards and policies.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class EpochsReason(Reason):
    """Why a command of this room was refused."""

    POLICY_VERSION = "policy_version"
    PROPOSAL_NEEDED = "proposal_needed"
    EPOCH_UNKNOWN = "epoch_unknown"
    EPOCH_STATE = "epoch_state"
    EPOCH_NOT_OVER = "epoch_not_over"
    EPOCH_OUT_OF_ORDER = "epoch_out_of_order"
    CHUNK_OUT_OF_ORDER = "chunk_out_of_order"
    REWARDS_MISMATCH = "rewards_mismatch"
    REWARD_CORRECTION_UNKNOWN = "reward_correction_unknown"
    REWARD_CORRECTION_STATE = "reward_correction_state"
    NOTHING_UNMATURED = "nothing_unmatured"
    FORFEIT_NOT_DUE = "forfeit_not_due"
    BAD_SEGMENT = "bad_segment"
    SEGMENTS_OVERLAP = "segments_overlap"
    BAD_EPOCH = "bad_epoch"
    BAD_TAU = "bad_tau"
    NEGATIVE_BURN = "negative_burn"


REASONS = tuple(EpochsReason)
STORED: frozenset[Reason] = frozenset(
    {
        EpochsReason.POLICY_VERSION,
        EpochsReason.EPOCH_UNKNOWN,
        EpochsReason.EPOCH_STATE,
        EpochsReason.REWARDS_MISMATCH,
        EpochsReason.REWARD_CORRECTION_UNKNOWN,
        EpochsReason.REWARD_CORRECTION_STATE,
        EpochsReason.NOTHING_UNMATURED,
    }
)
