"""What refusals say: checklists and quotas of clouds, capacity classes."""

from __future__ import annotations

from api.refusals.sentence import CONFLICT, INVALID, Sentence, sentence, when
from domain.cloud.reasons import CloudReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    CloudReason.NOT_A_CLOUD_PROVIDER: sentence(
        CONFLICT,
        "The provider[ {provider_id:text}] has machines of its own, so it has no cloud account. "
        "Register a provider of the kind gcp with `tallystick provider register`.",
    ),
    CloudReason.CHECKLIST_INVALID: sentence(
        INVALID,
        "A field of the checklist is wrong[: {field:text} takes {rule:text}]. `tallystick cloud "
        "checklist` shows the steps.",
    ),
    CloudReason.NOT_A_CLOUD_REGION: sentence(
        CONFLICT,
        "The region[ {region_id:text}] belongs to a provider with machines of its own, so no cloud "
        "limits it. Report quotas for a region of a cloud provider.",
    ),
    CloudReason.CLOUD_QUOTA_FULL: sentence(
        CONFLICT,
        "The cloud's quota of the region is too full for this lease[: {runnable_jobs:count} more "
        "jobs can start on {gpu:text}][, limited by {limited_by:text}]. Wait for a lease there to "
        "end, or ask for another region.",
    ),
    CloudReason.CAPACITY_CLASS: sentence(
        CONFLICT,
        when(
            "An offer on a preemptible node takes leases that may be paused. Publish it with "
            "`--interruptible`.",
            rule="interruptible",
        ),
        "Machines of a provider[ of the kind {kind:text}] are on demand only. Keep the class "
        "on_demand.",
    ),
}
