"""What this room refuses: checklists and quotas of clouds, capacity classes.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class CloudReason(Reason):
    """Why a command of this room was refused."""

    NOT_A_CLOUD_PROVIDER = "not_a_cloud_provider"
    CHECKLIST_INVALID = "checklist_invalid"
    NOT_A_CLOUD_REGION = "not_a_cloud_region"
    CLOUD_QUOTA_FULL = "cloud_quota_full"
    CAPACITY_CLASS = "capacity_class"


REASONS = tuple(CloudReason)
STORED: frozenset[Reason] = frozenset(
    {
        CloudReason.NOT_A_CLOUD_PROVIDER,
        CloudReason.NOT_A_CLOUD_REGION,
        CloudReason.CLOUD_QUOTA_FULL,
        CloudReason.CAPACITY_CLASS,
    }
)
