"""What this room refuses: volumes, where they are mounted, and datasets.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class StorageReason(Reason):
    """Why a command of this room was refused."""

    VOLUME_UNKNOWN = "volume_unknown"
    VOLUME_EXISTS = "volume_exists"
    VOLUME_STATE = "volume_state"
    VOLUME_REGION = "volume_region"
    VOLUME_ATTACHED = "volume_attached"
    MOUNT_INVALID = "mount_invalid"
    DATASET_UNKNOWN = "dataset_unknown"
    DATASET_INVALID = "dataset_invalid"


NOT_MOUNTABLE: frozenset[Reason] = frozenset(
    {StorageReason.VOLUME_UNKNOWN, StorageReason.VOLUME_STATE, StorageReason.VOLUME_REGION}
)
"""Why a lease cannot have the volumes of its job."""
REASONS = tuple(StorageReason)
STORED: frozenset[Reason] = frozenset(
    {
        StorageReason.VOLUME_UNKNOWN,
        StorageReason.VOLUME_EXISTS,
        StorageReason.VOLUME_STATE,
        StorageReason.VOLUME_REGION,
        StorageReason.VOLUME_ATTACHED,
        StorageReason.DATASET_UNKNOWN,
    }
)
