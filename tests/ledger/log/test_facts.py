"""The shape of facts: one says everything itself, and what may be absent from it has a reason."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest

from ledger.log.codec import NAMES

MAY_BE_ABSENT = {
    "it has no end, or none is known yet": (
        "ApiKeyIssued.expires_at_us",
        "MemberInvited.key_expires_at_us",
        "AttributeStated.expires_at_us",
        "EscrowFunded.ends_us",
        "EscrowFundsTaken.ends_us",
        "EscrowMemberTold.ends_us",
        "EscrowMemberTold.opened_at_us",
        "EscrowMemberTold.until_us",
        "GangRequested.term_us",
        "LeaseExtended.funds_end_us",
        "LeaseExtended.term_end_us",
        "LeaseFundsTaken.funds_end_us",
        "LeaseOpened.term_end_us",
        "LeaseRequested.months",
        "LeaseRequested.term_us",
        "LeaseToppedUp.funds_end_us",
        "LicenceGranted.until_us",
        "OfferPublished.available_until_us",
        "PaymentModeSet.destination_from_us",
        "PaymentReceived.confirm_at_us",
        "PromotionGranted.expires_at_us",
        "TopUpEnded.retry_at_us",
    ),
    "there is no limit, or no floor": (
        "ActTaken.limit",
        "ActTaken.units",
        "BreakerSet.limit",
        "BudgetSet.monthly",
        "ClientFloorSet.min_reputation_ppm",
        "ComputeClientRegistered.min_reputation_ppm",
        "LeaseDegraded.kept_until_us",
        "LeaseQuoted.reclaim_window_us",
        "LeaseReserved.reclaim_window_us",
        "OfferPricesSet.interruptible_floor",
        "QuotaSet.gpu_ppm_max",
    ),
    "the tariff or the policy has no such rule": (
        "DeviceFeeCharged.tariff_version",
        "LeaseCommandAcknowledged.free_us",
        "LeaseReserved.split",
        "PolicyPublished.governance",
        "PolicyPublished.rewards",
        "ResourceAccrued.client_account_id",
        "ResourceAccrued.mark",
        "TariffPublished.device_fee_per_month",
        "TariffPublished.federated",
        "TariffPublished.free_start",
        "TariffPublished.split",
        "TariffPublished.storage_node_per_hour",
        "VolumeCharged.rate",
        "VolumeProvisioned.rate",
    ),
    "it was not asked for": (
        "RequestUnmatched.constraints",
        "RequestUnmatched.pricing",
        "ActTaken.content",
        "ActTaken.content_sha256",
        "GangRequested.funds",
        "GangRequested.pay_with",
        "JobSubmitted.attached",
        "JobSubmitted.constraints",
        "JobSubmitted.federated",
        "JobSubmitted.image",
        "JobSubmitted.plan",
        "JobSubmitted.sla_class",
        "JobSubmitted.work",
        "LeaseRequested.constraints",
        "LeaseRequested.encryption_key",
        "LeaseRequested.funds",
        "LeaseRequested.pricing",
        "LeaseRequested.remoting_session_id",
        "LeaseRequested.pay_with",
        "LeaseRequested.route_id",
        "LeaseRequested.sla_class",
        "LeaseRequested.split_label",
        "LeaseRequested.start_timeout_us",
        "LeaseReserved.prepaid",
        "LeaseReserved.sla_class",
        "MatchDecided.pricing",
        "MatchDecided.weights",
        "PaymentModeSet.destination",
        "PaymentReceived.saved_method",
        "PaymentStarted.saved_method",
    ),
    "it belongs to no such thing": (
        "AdjustmentBooked.lease_id",
        "AdjustmentBooked.volume_id",
        "DisputeOpened.lease_id",
        "DisputeOpened.volume_id",
        "DisputeResolved.lease_id",
        "DisputeResolved.volume_id",
        "CapacityAccrued.lane",
        "CapacityAccrued.usage_position",
        "DeviceRegistered.gpu_class",
        "DeviceReserved.mig",
        "EpochSealed.price_snapshot",
        "EpochSealed.clients_sha256",
        "BurnIntended.price_snapshot",
        "GangRequested.key_id",
        "GangRequested.pool_id",
        "GroupCreated.parent_id",
        "GroupCreated.pool_id",
        "JobSubmitted.instance_id",
        "JobSubmitted.key_id",
        "JobSubmitted.parent_job_id",
        "ComponentRegistered.endpoint",
        "ComponentRegistered.licence_id",
        "IdleMiningSet.wallet",
        "JoinTermsStated.minion_id",
        "LeaseQuoted.bid_id",
        "LeaseQuoted.choice",
        "LeaseRequested.attempt",
        "LeaseRequested.escrow_id",
        "LeaseRequested.gang_id",
        "LeaseRequested.key_id",
        "LeaseRequested.part",
        "LeaseRequested.restart_of",
        "LeaseRequested.run_due_us",
        "LeaseReserved.client_account_id",
        "LeaseReserved.federated",
        "LeaseReserved.gang_id",
        "LeaseReserved.mig",
        "LeaseReserved.pool_id",
        "LeaseReserved.quote_id",
        "NodeJoinRequested.client_id",
        "NodeTermsStated.minion_id",
        "RegionOpened.cloud_region",
        "VolumeCharged.project_id",
        "VolumeProvisioned.project_id",
        "JoinCodeIssued.owner_account_id",
        "NodeJoinRequested.owner_account_id",
        "NodeRoleSet.address",
        "RegionMemberSet.ingress_node_id",
        "RegionPlaceSet.address",
        "RegionPlaceSet.latitude_e6",
        "RegionPlaceSet.longitude_e6",
        "RegionWaitlistJoined.latitude_e6",
        "RegionWaitlistJoined.longitude_e6",
        "PolicyPublished.proposal",
        "PoolCreated.controller_address",
        "TermEndedEarly.client_account_id",
        "UsageAccrued.client_account_id",
        "UsageAccrued.escrow_id",
        "UsageAccrued.federated",
    ),
    "no earlier key stands behind it: it is the first, or follows none": (
        "ApiKeyIssued.by_key_id",
        "ApiKeyIssued.succeeds",
    ),
    "a timer did it, and no person": ("LeaseClosed.by", "LeaseReserved.by", "VolumeDeleted.by"),
    "the account is closed or not known: the money waits in suspense": (
        "CashOutCancelled.account_id",
        "CashOutFailed.account_id",
        "CashOutReturned.account_id",
        "CreditsPurchaseConfirmed.account_id",
        "PaymentConfirmed.account_id",
        "PaymentReceived.account_id",
        "PaymentReinstated.account_id",
        "PaymentReversed.account_id",
        "RegionDayShared.infra_book",
    ),
    "it was not said, or cannot be known": (
        "ExecutorKeyIssued.sealing_key",
        "ExecutorKeyIssued.sealing_signature",
        "ExecutorKeyIssued.sealing_signed_by",
        "CashOutSent.instructions",
        "ChallengeJudged.took_us",
        "DisputeAnswered.statement_sha256",
        "DisputeOpened.claim_sha256",
        "DisputeResolved.arbiter_account_id",
        "DisputeResolved.reason_sha256",
        "LeaseClosed.evidence",
        "LeaseReady.credentials",
        "LeaseReady.endpoint",
        "LeaseWorkEnded.exit_code",
        "InferenceReported.exit_code",
        "NodeKeyRotated.sealed_token",
        "NodeKeyRotated.token_sha256",
        "NodeSetupStated.uplink",
        "NodeSetupStated.upnp",
        "NodeSpecReported.hardware",
        "PayoutDifferenceFound.cash_out_id",
        "PayoutDifferenceFound.expected",
        "PayoutDifferenceFound.found",
        "PayoutDifferenceFound.reference",
        "PriceSnapshotTaken.deviation_bps",
        "PriceSnapshotTaken.held_to",
        "PriceSnapshotTaken.max_move_bps",
        "PriceSnapshotTaken.median_micro_usd",
        "RewardCorrectionProposed.evidence_position",
        "RegionOpened.site",
        "RewardSlashed.evidence_position",
        "TopUpEnded.reason",
    ),
    "there is nothing of it: no breach, no debt, no change": (
        "RequestUnmatched.eased",
        "AdjustmentBooked.late",
        "GrantProposed.stated_micro_usd",
        "ChallengeJudged.rule",
        "EscrowFundsTaken.allotted",
        "LeaseDisputed.status",
        "LeaseResolved.status",
        "RewardCorrectionAccepted.adjusted_epoch",
        "GovernorChangeProposed.governor_id",
        "GovernorChangeProposed.key",
        "GovernorChangeProposed.signature",
        "GovernorChangeProposed.threshold",
        "KeyRecoveryCancelled.by",
        "LogKeyRotated.old_signature",
        "VoteCast.reason",
        "VoteCast.rehearsal_sha256",
        "SlaAssessed.below_ppm",
        "UsageAccrued.owed",
    ),
}
"""Why a fact can lack it -> which fields. A new name here needs a reason that a reader accepts:
what is empty is an empty tuple, what is not is False, and what goes together is one record.
"""


def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


@pytest.mark.parametrize("kind", NAMES.values(), ids=lambda kind: kind.__name__)
def test_a_fact_says_everything_itself(kind: type[Any]) -> None:
    """A default would be what older facts meant, and there are none."""
    assert is_dataclass(kind)
    with_default = [field.name for field in fields(kind) if field.default is not MISSING]
    assert not with_default


def test_what_may_be_absent_from_a_fact_has_a_reason() -> None:
    optional = {
        f"{kind.__name__}.{name}"
        for kind in NAMES.values()
        for name, hint in _hints(kind).items()
        if NoneType in get_args(hint)
    }
    listed = [name for names in MAY_BE_ABSENT.values() for name in names]
    assert len(set(listed)) == len(listed)
    assert set(listed) == optional


def test_what_may_be_absent_is_no_list_and_no_yes_or_no() -> None:
    """Empty and False say it already."""
    twofold = [
        f"{kind.__name__}.{name}"
        for kind in NAMES.values()
        for name, hint in _hints(kind).items()
        if NoneType in get_args(hint) and ("tuple[" in str(hint) or bool in get_args(hint))
    ]
    # `allotted` empty: it is short, and no lease has anything. `upnp` False: it was said to be off.
    assert sorted(twofold) == ["EscrowFundsTaken.allotted", "NodeSetupStated.upnp"]
