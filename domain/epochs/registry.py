"""What the room `epochs` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.epochs import epoch, forfeit, policy, reward_changes, reward_correction

FILES = (epoch, forfeit, policy, reward_correction)
FACTS: dict[str, type[Any]] = {
    "epoch.opened.v1": epoch.EpochOpened,
    "epoch.gate_overridden.v1": epoch.EpochGateOverridden,
    "epoch.closing.v1": epoch.EpochClosing,
    "epoch.sealed.v1": epoch.EpochSealed,
    "epoch.rewards_credited.v1": epoch.RewardsCredited,
    "epoch.rewards_matured.v1": epoch.RewardsMatured,
    "epoch.reward_slashed.v1": reward_changes.RewardSlashed,
    "epoch.reward_adjusted.v1": reward_changes.RewardAdjusted,
    "epoch.rewards_forfeited.v1": reward_changes.RewardsForfeited,
    "reward_correction.proposed.v1": reward_correction.RewardCorrectionProposed,
    "reward_correction.accepted.v1": reward_correction.RewardCorrectionAccepted,
    "policy.published.v1": policy.PolicyPublished,
    "policy.cancelled.v1": policy.PolicyCancelled,
}
