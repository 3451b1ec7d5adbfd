"""What the room `authority` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.authority import acts, governors, key_recovery, log_key, register, vote

FILES = (acts, governors, key_recovery, log_key, register)
FACTS: dict[str, type[Any]] = {
    "governor.enrolled.v1": register.GovernorEnrolled,
    "governor.removed.v1": register.GovernorRemoved,
    "governor.threshold_set.v1": register.GovernorThresholdSet,
    "governor.change_proposed.v1": register.GovernorChangeProposed,
    "governor.change_scheduled.v1": register.GovernorChangeScheduled,
    "vote.cast.v1": vote.VoteCast,
    "act.taken.v1": acts.ActTaken,
    "key_recovery.announced.v1": key_recovery.KeyRecoveryAnnounced,
    "key_recovery.cancelled.v1": key_recovery.KeyRecoveryCancelled,
    "key_recovery.ended.v1": key_recovery.KeyRecoveryEnded,
    log_key.FACT: log_key.LogKeyRotated,
}
