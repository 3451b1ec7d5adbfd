"""The names and bytes facts carry in the log, and nothing about where they are stored.

A name is a promise to every log ever written, so it is spelled out here and never derived from a
module path: code may move, stored names may not. A body is UTF-8 JSON, keys sorted, no spaces:

    decode(name, body) == fact   and   encode(fact, ...) == (name, body)     for every stored body

Money and everything marked `Big` is a decimal string, because other readers round JSON numbers;
what is None is left out. `command_id` and `blind` are in the body and not in the fact.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

from domain.chain import burn
from domain.chain import payout_root as payout
from domain.chain import transaction as chain_tx
from domain.corrections import dispute, sla
from domain.epochs import epoch, policy, reward_changes, reward_correction
from domain.fleet import (
    device,
    edge_device,
    executor_key,
    licence,
    maintenance,
    node,
    provider,
    revenue_share,
    storage_node,
)
from domain.fleet import keys as node_key
from domain.fleet import kinds as resource_kind
from domain.fleet import roles as node_role
from domain.fleet import verdicts as node_hardware
from domain.funds import (
    budget,
    card_money,
    debt,
    deposit,
    funding,
    payment,
    payment_terms,
    promotion,
    top_up,
)
from domain.governance import breakers, grant
from domain.governance import proposal as policy_proposal
from domain.income import adjustment, cash_out, invoice, maturity, region_pool, region_terms
from domain.income import cash_out_matching as payout_matching
from domain.jobs import gang, job, task_queue
from domain.lease import countersign, lease, reserved_term, shared_escrow
from domain.lease import turns as lease_turns
from domain.lease import work_commands as lease_command
from domain.leasing import other_resources as resource_usage
from domain.market import auction, offer, offer_prices, standing_bid
from domain.metering import pin
from domain.money import Amount, Asset
from domain.parties import account, counterparty, webhook
from domain.parties import client as compute_client
from domain.pools import group, pool, quota
from domain.pools import queue as pool_queue
from domain.prices import price_feed, tariff
from domain.trust import attribute, challenge
from domain.trust import record as trust_record

BODY_BYTES_MAX = 60_000
JSON_INT_MAX = 2**53 - 1

NAMES: dict[str, type[Any]] = {
    "account.opened.v1": account.AccountOpened,
    "account.member_added.v1": account.MemberAdded,
    "account.member_removed.v1": account.MemberRemoved,
    "account.api_key_issued.v1": account.ApiKeyIssued,
    "account.api_key_revoked.v1": account.ApiKeyRevoked,
    "account.wallet_linked.v1": account.WalletLinked,
    "account.signing_key_added.v1": countersign.SigningKeyAdded,
    "account.signing_key_revoked.v1": countersign.SigningKeyRevoked,
    "account.closed.v1": account.AccountClosed,
    "account.wallet_claimed.v1": account.WalletClaimed,
    "account.operator_bootstrapped.v1": account.OperatorBootstrapped,
    "budget.set.v1": budget.BudgetSet,
    "budget.held.v1": budget.BudgetHeld,
    "budget.released.v1": budget.BudgetReleased,
    "budget.alerted.v1": budget.BudgetAlerted,
    "adjustment.booked.v1": adjustment.AdjustmentBooked,
    "adjustment.line_disputed.v1": adjustment.LineDisputed,
    "auction.opened.v1": auction.AuctionOpened,
    "auction.bid_placed.v1": auction.BidPlaced,
    "auction.bid_withdrawn.v1": auction.BidWithdrawn,
    "auction.bid_lapsed.v1": auction.BidLapsed,
    "auction.awarded.v1": auction.AuctionAwarded,
    "auction.ended.v1": auction.AuctionEnded,
    "auction.deposit_returned.v1": auction.WinnerDepositReturned,
    "auction.deposit_forfeited.v1": auction.WinnerDepositForfeited,
    "burn.intended.v1": burn.BurnIntended,
    "burn.confirmed.v1": burn.BurnConfirmed,
    "burn.failed.v1": burn.BurnFailed,
    "card.money_moved.v1": card_money.CardMoneyMoved,
    "cash_out.minimum_set.v1": cash_out.CashOutMinimumSet,
    "cash_out.held.v1": cash_out.CashOutsHeld,
    "cash_out.released.v1": cash_out.CashOutsReleased,
    "cash_out.requested.v1": cash_out.CashOutRequested,
    "cash_out.started.v1": cash_out.CashOutStarted,
    "cash_out.sent.v1": cash_out.CashOutSent,
    "cash_out.paid.v1": cash_out.CashOutPaid,
    "cash_out.failed.v1": cash_out.CashOutFailed,
    "cash_out.cancelled.v1": cash_out.CashOutCancelled,
    "cash_out.returned.v1": cash_out.CashOutReturned,
    "chain_tx.intended.v1": chain_tx.ChainTxIntended,
    "chain_tx.signed.v1": chain_tx.ChainTxSigned,
    "chain_tx.broadcast.v1": chain_tx.ChainTxBroadcast,
    "chain_tx.mined.v1": chain_tx.ChainTxMined,
    "chain_tx.reorged.v1": chain_tx.ChainTxReorged,
    "chain_tx.finalized.v1": chain_tx.ChainTxFinalized,
    "chain_tx.failed.v1": chain_tx.ChainTxFailed,
    "compute_client.registered.v1": compute_client.ComputeClientRegistered,
    "compute_client.floor_set.v1": compute_client.ClientFloorSet,
    "compute_client.key_added.v1": compute_client.ClientKeyAdded,
    "compute_client.key_revoked.v1": compute_client.ClientKeyRevoked,
    "compute_client.suspended.v1": compute_client.ClientSuspended,
    "compute_client.resumed.v1": compute_client.ClientResumed,
    "counterparty.allowed.v1": counterparty.CounterpartyAllowed,
    "counterparty.denied.v1": counterparty.CounterpartyDenied,
    "counterparty.removed.v1": counterparty.CounterpartyRemoved,
    "debt.repaid.v1": debt.DebtRepaid,
    "debt.written_off.v1": debt.DebtWrittenOff,
    "deposit.confirmed.v1": deposit.DepositConfirmed,
    "deposit.credits_purchased.v1": deposit.CreditsPurchaseConfirmed,
    "device.registered.v1": device.DeviceRegistered,
    "device.reserved.v1": device.DeviceReserved,
    "device.released.v1": device.DeviceReleased,
    "device.capacity_accrued.v1": device.CapacityAccrued,
    "device.retired.v1": device.DeviceRetired,
    "device.reshaped.v1": device.DeviceReshaped,
    "edge_device.added.v1": edge_device.EdgeDeviceAdded,
    "edge_device.removed.v1": edge_device.EdgeDeviceRemoved,
    "edge_device.fee_charged.v1": edge_device.DeviceFeeCharged,
    "earnings.matured.v1": maturity.EarningsMatured,
    "earnings.reduced.v1": maturity.EarningsReduced,
    "earnings.swept.v1": maturity.EarningsSwept,
    "earnings.forgone.v1": maturity.EarningsForgone,
    "earnings.payment_mode_set.v1": maturity.PaymentModeSet,
    "dispute.opened.v1": dispute.DisputeOpened,
    "dispute.answered.v1": dispute.DisputeAnswered,
    "dispute.resolved.v1": dispute.DisputeResolved,
    "epoch.opened.v1": epoch.EpochOpened,
    "epoch.gate_overridden.v1": epoch.EpochGateOverridden,
    "epoch.closing.v1": epoch.EpochClosing,
    "epoch.sealed.v1": epoch.EpochSealed,
    "epoch.rewards_credited.v1": epoch.RewardsCredited,
    "epoch.rewards_matured.v1": epoch.RewardsMatured,
    "breaker.set.v1": breakers.BreakerSet,
    "breaker.passed.v1": breakers.BreakerPassed,
    "breaker.tripped.v1": breakers.BreakerTripped,
    "epoch.reward_slashed.v1": reward_changes.RewardSlashed,
    "epoch.reward_adjusted.v1": reward_changes.RewardAdjusted,
    "epoch.rewards_forfeited.v1": reward_changes.RewardsForfeited,
    "reward_correction.proposed.v1": reward_correction.RewardCorrectionProposed,
    "reward_correction.accepted.v1": reward_correction.RewardCorrectionAccepted,
    "epoch.mint_confirmed.v1": payout.EpochMintConfirmed,
    "invoice.numbered.v1": invoice.DocumentNumbered,
    "invoice.issued.v1": invoice.InvoiceIssued,
    "invoice.credit_note_issued.v1": invoice.CreditNoteIssued,
    "funding.payer_set.v1": funding.PayerSet,
    "funding.payer_ended.v1": funding.PayerEnded,
    "gang.requested.v1": gang.GangRequested,
    "gang.reserved.v1": gang.GangReserved,
    "gang.member_ready.v1": gang.GangMemberReady,
    "gang.opened.v1": gang.GangOpened,
    "gang.grown.v1": gang.GangGrown,
    "gang.closed.v1": gang.GangClosed,
    "grant.proposed.v1": grant.GrantProposed,
    "grant.opened.v1": grant.GrantOpened,
    "grant.clawback_proposed.v1": grant.ClawbackProposed,
    "grant.clawed_back.v1": grant.GrantClawedBack,
    "milestone.proposed.v1": grant.MilestoneProposed,
    "milestone.accepted.v1": grant.MilestoneAccepted,
    "funds.warnings_set.v1": top_up.BalanceWarningsSet,
    "funds.warned.v1": top_up.BalanceWarned,
    "funds.recovered.v1": top_up.BalanceRecovered,
    "funds.auto_top_up_set.v1": top_up.AutoTopUpSet,
    "funds.auto_top_up_stopped.v1": top_up.AutoTopUpStopped,
    "funds.top_up_started.v1": top_up.TopUpStarted,
    "funds.top_up_ended.v1": top_up.TopUpEnded,
    "group.created.v1": group.GroupCreated,
    "group.member_added.v1": group.GroupMemberAdded,
    "group.member_removed.v1": group.GroupMemberRemoved,
    "project.overflow_set.v1": group.ProjectOverflowSet,
    "quota.set.v1": quota.QuotaSet,
    "quota.held.v1": quota.QuotaHeld,
    "quota.released.v1": quota.QuotaReleased,
    "job.submitted.v1": job.JobSubmitted,
    "job.escrow_opened.v1": job.JobEscrowOpened,
    "job.cancelled.v1": job.JobCancelled,
    "job.completed.v1": job.JobCompleted,
    "job.federated_fee_carried.v1": job.FederatedFeeCarried,
    "job.failed.v1": job.JobFailed,
    "job.scaled.v1": job.JobScaled,
    "job.part_started.v1": job.JobPartStarted,
    "job.part_ended.v1": job.JobPartEnded,
    "job.run_started.v1": job.JobRunStarted,
    "job.tasks_pushed.v1": task_queue.TasksPushed,
    "job.task_taken.v1": task_queue.TaskTaken,
    "job.task_done.v1": task_queue.TaskDone,
    "escrow.funded.v1": shared_escrow.EscrowFunded,
    "escrow.member_told.v1": shared_escrow.EscrowMemberTold,
    "escrow.drawn.v1": shared_escrow.EscrowDrawn,
    "escrow.returned.v1": shared_escrow.EscrowReturned,
    "escrow.funds_taken.v1": shared_escrow.EscrowFundsTaken,
    "lease.requested.v1": lease.LeaseRequested,
    "lease.queued.v1": lease.LeaseQueued,
    "lease.match_decided.v1": lease.MatchDecided,
    "lease.reserved.v1": lease.LeaseReserved,
    "lease.ready.v1": lease.LeaseReady,
    "lease.opened.v1": lease.LeaseOpened,
    "lease.topped_up.v1": lease.LeaseToppedUp,
    "lease.usage_countersigned.v1": countersign.UsageCountersigned,
    "lease.usage_accrued.v1": lease.UsageAccrued,
    "lease.closed.v1": lease.LeaseClosed,
    "lease.settled.v1": lease.LeaseSettled,
    "lease.restarted.v1": lease.LeaseRestarted,
    "lease.command_acknowledged.v1": lease_command.LeaseCommandAcknowledged,
    "lease.work_ended.v1": lease_command.LeaseWorkEnded,
    "lease.term_ended_early.v1": reserved_term.TermEndedEarly,
    "lease.quoted.v1": lease_turns.LeaseQuoted,
    "lease.paused.v1": lease_turns.LeasePaused,
    "lease.resumed.v1": lease_turns.LeaseResumed,
    "lease.degraded.v1": lease_turns.LeaseDegraded,
    "lease.recovered.v1": lease_turns.LeaseRecovered,
    "lease.reclaim_started.v1": lease_turns.ReclaimStarted,
    "lease.reclaim_cancelled.v1": lease_turns.ReclaimCancelled,
    "lease.extended.v1": lease_turns.LeaseExtended,
    "lease.funds_moved.v1": lease_turns.LeaseFundsMoved,
    "lease.funds_taken.v1": lease_turns.LeaseFundsTaken,
    "lease.funds_end_warned.v1": lease_turns.FundsEndWarned,
    "lease.fault_revised.v1": lease_turns.FaultRevised,
    "lease.disputed.v1": lease_turns.LeaseDisputed,
    "lease.resolved.v1": lease_turns.LeaseResolved,
    "lease.archived.v1": lease_turns.LeaseArchived,
    "maturity.window_set.v1": maturity.MaturityWindowSet,
    "node.join_code_issued.v1": node.JoinCodeIssued,
    "node.join_code_used.v1": node.JoinCodeUsed,
    "node.join_requested.v1": node.NodeJoinRequested,
    "node.spec_reported.v1": node.NodeSpecReported,
    "node.key_confirmed.v1": node.NodeKeyConfirmed,
    "node.admitted.v1": node.NodeAdmitted,
    "node.activated.v1": node.NodeActivated,
    "node.maintenance_started.v1": node.NodeMaintenanceStarted,
    "node.spec_confirmed.v1": node.NodeSpecConfirmed,
    "node.drain_started.v1": node.NodeDrainStarted,
    "node.role_set.v1": node_role.NodeRoleSet,
    "node.maintenance_scheduled.v1": maintenance.MaintenanceScheduled,
    "node.maintenance_cancelled.v1": maintenance.MaintenanceCancelled,
    "attribute.stated.v1": attribute.AttributeStated,
    "attribute.revoked.v1": attribute.AttributeRevoked,
    "resource_kind.registered.v1": resource_kind.ResourceKindRegistered,
    "resource_kind.model_classed.v1": resource_kind.ModelClassed,
    "licence.granted.v1": licence.LicenceGranted,
    "licence.revoked.v1": licence.LicenceRevoked,
    "node.retired.v1": node.NodeRetired,
    "node.executor_key_issued.v1": executor_key.ExecutorKeyIssued,
    "node.executor_key_revoked.v1": executor_key.ExecutorKeyRevoked,
    "node.equivocated.v1": node.NodeEquivocated,
    "node.hardware_judged.v1": node_hardware.NodeHardwareJudged,
    "node.key_rotated.v1": node_key.NodeKeyRotated,
    "node.key_revoked.v1": node_key.NodeKeyRevoked,
    "node.old_key_revoked.v1": node_key.NodeOldKeyRevoked,
    "node.boots_alternated.v1": node_key.NodeBootsAlternated,
    "offer.published.v1": offer.OfferPublished,
    "offer.withdrawn.v1": offer.OfferWithdrawn,
    "offer.prices_set.v1": offer_prices.OfferPricesSet,
    "oracle.sources_set.v1": price_feed.PriceSourcesSet,
    "oracle.price_observed.v1": price_feed.PriceObserved,
    "oracle.snapshot_taken.v1": price_feed.PriceSnapshotTaken,
    "payment.started.v1": payment.PaymentStarted,
    "payment.offered.v1": payment.PaymentOffered,
    "payment.received.v1": payment.PaymentReceived,
    "payment.confirmed.v1": payment.PaymentConfirmed,
    "payment.failed.v1": payment.PaymentFailed,
    "payment.reversed.v1": payment.PaymentReversed,
    "payment.funds_taken.v1": payment.PaymentFundsTaken,
    "payment.reinstated.v1": payment.PaymentReinstated,
    "payment.refund_asked.v1": payment.PaymentRefundAsked,
    "payment.refunded.v1": payment.PaymentRefunded,
    "payment.refund_failed.v1": payment.PaymentRefundFailed,
    "payment.terms_published.v1": payment_terms.PaymentTermsPublished,
    "payout.difference_found.v1": payout_matching.PayoutDifferenceFound,
    "payout.difference_settled.v1": payout_matching.PayoutDifferenceSettled,
    "payout.root_built.v1": payout.PayoutRootBuilt,
    "payout.root_proposed.v1": payout.RootProposed,
    "payout.root_vetoed.v1": payout.RootVetoed,
    "payout.root_accepted.v1": payout.RootAccepted,
    "payout.confirmed.v1": payout.PayoutConfirmed,
    "policy.published.v1": policy.PolicyPublished,
    "policy_proposal.proposed.v1": policy_proposal.PolicyProposed,
    "policy_proposal.revised.v1": policy_proposal.PolicyProposalRevised,
    "policy_proposal.linted.v1": policy_proposal.PolicyProposalLinted,
    "policy_proposal.review_opened.v1": policy_proposal.PolicyReviewOpened,
    "policy_proposal.approved.v1": policy_proposal.PolicyProposalApproved,
    "policy_proposal.rejected.v1": policy_proposal.PolicyProposalRejected,
    "policy_proposal.withdrawn.v1": policy_proposal.PolicyProposalWithdrawn,
    "policy_proposal.scheduled.v1": policy_proposal.PolicyProposalScheduled,
    "pool.created.v1": pool.PoolCreated,
    "pool.policy_set.v1": pool.PoolPolicySet,
    "pool.node_added.v1": pool.PoolNodeAdded,
    "pool.node_removed.v1": pool.PoolNodeRemoved,
    "pool.request_queued.v1": pool_queue.RequestQueued,
    "pool.request_left.v1": pool_queue.RequestLeftQueue,
    "pool.schedule_decided.v1": pool_queue.ScheduleDecided,
    "promotion.opened.v1": promotion.PromotionOpened,
    "promotion.closed.v1": promotion.PromotionClosed,
    "promotion.granted.v1": funding.PromotionGranted,
    "promotion.expired.v1": funding.PromotionExpired,
    "provider.registered.v1": provider.ProviderRegistered,
    "region.opened.v1": provider.RegionOpened,
    "region.name_taken.v1": provider.RegionNameTaken,
    "region.hardware_set.v1": provider.RegionHardwareSet,
    "region.policy_set.v1": provider.RegionPolicySet,
    "region.terms_set.v1": region_terms.RegionTermsSet,
    "region.earnings_gathered.v1": region_pool.RegionEarningsGathered,
    "region.day_shared.v1": region_pool.RegionDayShared,
    "region.shares_paid.v1": region_pool.RegionSharesPaid,
    "node.revenue_shares_set.v1": revenue_share.RevenueSharesSet,
    "reserve.funded.v1": debt.ReserveFunded,
    "resource.accrued.v1": resource_usage.ResourceAccrued,
    "resource.storage_released.v1": resource_usage.StorageReleased,
    "sla.assessed.v1": sla.SlaAssessed,
    "sla.credited.v1": sla.SlaCredited,
    "standing_bid.set.v1": standing_bid.StandingBidSet,
    "storage_node.provisioned.v1": storage_node.StorageNodeProvisioned,
    "storage_node.ready.v1": storage_node.StorageNodeReady,
    "storage_node.charged.v1": storage_node.StorageNodeCharged,
    "storage_node.removed.v1": storage_node.StorageNodeRemoved,
    "tariff.published.v1": tariff.TariffPublished,
    "challenge.issued.v1": challenge.ChallengeIssued,
    "challenge.judged.v1": challenge.ChallengeJudged,
    "trust.library_known.v1": trust_record.DriverLibraryKnown,
    "trust.library_forgotten.v1": trust_record.DriverLibraryForgotten,
    "trust.device_twice.v1": trust_record.DeviceTwice,
    "trust.nonce_issued.v1": trust_record.NonceIssued,
    "trust.device_attested.v1": trust_record.DeviceAttested,
    "webhook.added.v1": webhook.WebhookAdded,
    "webhook.secret_rotated.v1": webhook.WebhookSecretRotated,
    "webhook.disabled.v1": webhook.WebhookDisabled,
    "webhook.enabled.v1": webhook.WebhookEnabled,
    "usage.pinned.v1": pin.UsagePinned,
}

Values = dict[str, Any]
Upcast = Callable[[Values], tuple[str, Values]]

UPCASTERS: dict[str, Upcast] = {}
"""Old name -> what its values are called and look like today. Bytes are never rewritten."""

NAME_OF: dict[type[Any], str] = {fact_type: name for name, fact_type in NAMES.items()}
assert len(NAME_OF) == len(NAMES), "a fact has two names"

_ASSETS = {asset.value: asset for asset in Asset}
_ENVELOPE = ("command_id", "blind")
_dumps = msgspec.json.Encoder(order="sorted").encode
_loads = msgspec.json.Decoder().decode


class NotStorable(ValueError):
    """These bytes are not what the log stores under this name."""


def blind(blinding_key: bytes, originator_id: UUID, version: int) -> str:
    """Keeps leaves unguessable: HMAC-SHA-256(blinding key, originator_id || version)[:16], hex."""
    message = originator_id.bytes + version.to_bytes(8, "big")
    return hmac.digest(blinding_key, message, hashlib.sha256)[:16].hex()


def encode(fact: Any, command_id: str, blind: str) -> tuple[str, bytes]:
    """The stored name and body of a fact.

    Asserts what the log relies on: at most 60,000 bytes, no NUL (PostgreSQL's JSON has none), and
    no JSON number above 2^53 - 1.
    """
    fact_type = type(fact)
    values = _encoder(fact_type, _json_int)(fact)
    assert command_id
    values["command_id"] = command_id
    values["blind"] = blind
    body = _dumps(values)
    assert len(body) <= BODY_BYTES_MAX, f"{NAME_OF[fact_type]}: {len(body)} bytes"
    assert b"\\u0000" not in body or not _has_nul(_loads(body)), "NUL in a fact"
    return NAME_OF[fact_type], body


def decode(name: str, body: bytes) -> Any:
    """The fact stored under this name, of today's shape.

    Raises NotStorable when the bytes do not have exactly that shape.
    """
    try:
        values = _loads(body)
    except ValueError as error:
        raise NotStorable(f"{name}: {error}") from error
    return decode_values(name, values)


def decode_values(name: str, values: Values) -> Any:
    """`decode` for a body that is parsed already. Raises NotStorable."""
    while name in UPCASTERS:
        name, values = UPCASTERS[name](values)
    fact_type = NAMES.get(name)
    if fact_type is None:
        raise NotStorable(f"{name}: no such fact")
    if not isinstance(values, dict):
        raise NotStorable(f"{name}: not an object")
    values = values.copy()
    for key in _ENVELOPE:
        if not isinstance(values.pop(key, None), str):
            raise NotStorable(f"{name}: {key} is missing")
    try:
        return _decoder(fact_type)(values)
    except NotStorable as error:
        raise NotStorable(f"{name}: {error}") from None


def encode_state(state: Any) -> bytes:
    """The bytes of a folded state: for snapshots only, in no hash, read by nobody else."""
    return _dumps(_encoder(type(state), _any_int)(state))


def decode_state(state_type: type[Any], body: bytes) -> Any:
    """The state that `encode_state` wrote. Raises NotStorable when it has another shape."""
    return _decoder(state_type)(_loads(body))


# From type hints to plain JSON values and back. One function per type, built once.

_Encode = Callable[[Any], Any]
_encoders: dict[tuple[Any, _Encode], _Encode] = {}
_decoders: dict[Any, Callable[[Any], Any]] = {}


def _encoder(kind: Any, plain_int: _Encode) -> _Encode:
    if (kind, plain_int) not in _encoders:
        _encoders[kind, plain_int] = _build_encoder(kind, plain_int)
    return _encoders[kind, plain_int]


def _decoder(kind: Any) -> Callable[[Any], Any]:
    if kind not in _decoders:
        _decoders[kind] = _build_decoder(kind)
    return _decoders[kind]


def _build_encoder(kind: Any, plain_int: _Encode) -> _Encode:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _big_to_text
    if kind is int:
        return plain_int
    if kind in (str, bool):
        return _as_it_is
    if kind is Amount:
        return lambda amount: {"asset": amount.asset, "units": str(amount.units)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda value: value.value
    if origin in (Union, UnionType):
        inner = _encoder(_without_none(arguments), plain_int)
        return lambda value: None if value is None else inner(value)
    if origin in (tuple, frozenset):
        return _sequence_encoder(origin, arguments, plain_int)
    if origin is dict:
        key, value = (_encoder(argument, plain_int) for argument in arguments)
        return lambda values: [[key(k), value(v)] for k, v in sorted(values.items())]
    assert is_dataclass(kind), f"{kind} has no stored form"
    return _object_encoder(kind, plain_int)


def _sequence_encoder(origin: Any, arguments: tuple[Any, ...], plain_int: _Encode) -> _Encode:
    if origin is tuple and arguments[-1] is not Ellipsis:
        parts = [_encoder(argument, plain_int) for argument in arguments]
        return lambda values: [part(v) for part, v in zip(parts, values, strict=True)]
    item = _encoder(arguments[0], plain_int)
    if origin is frozenset:
        return lambda values: [item(value) for value in sorted(values)]
    return lambda values: [item(value) for value in values]


def _object_encoder(kind: Any, plain_int: _Encode) -> _Encode:
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)]
    # What is absent is left out here, so nobody else has to look whether it is there.
    parts = [_encoder(_present(hints[name]), plain_int) for name in names]
    values_of = _values_of(names)

    def encode_object(value: Any) -> Values:
        assert type(value) is kind, f"{type(value).__name__} is not {kind.__name__}"
        return {
            name: plain if part is _as_it_is else part(plain)
            for name, part, plain in zip(names, parts, values_of(value), strict=True)
            if plain is not None
        }

    return encode_object


def _values_of(names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """Reads these attributes together; with one name the library's getter gives no tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: [getattr(value, name) for name in names]


def _present(hint: Any) -> Any:
    """The type of a value that is there."""
    return _without_none(get_args(hint)) if _is_optional(hint) else hint


def _as_it_is(value: Any) -> Any:
    return value


def _big_to_text(value: int) -> str:
    assert type(value) is int, value
    return str(value)


def _any_int(value: int) -> int:
    assert type(value) is int, value
    return value


def _json_int(value: int) -> int:
    assert type(value) is int, value
    assert -JSON_INT_MAX <= value <= JSON_INT_MAX, f"{value} would be rounded: mark it Big"
    return value


def _build_decoder(kind: Any) -> Callable[[Any], Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _big_from_text
    if kind in (int, str, bool):
        return _exactly(kind)
    if kind is Amount:
        return _amount
    if isinstance(kind, type) and issubclass(kind, Enum):
        members = {member.value: member for member in kind}
        return lambda value: members[value] if value in members else _wrong(value, kind.__name__)
    if origin in (Union, UnionType):
        inner = _decoder(_without_none(arguments))
        return lambda value: None if value is None else inner(value)
    if origin in (tuple, frozenset):
        return _sequence_decoder(origin, arguments)
    if origin is dict:
        key, value = map(_decoder, arguments)
        return lambda pairs: {key(k): value(v) for k, v in _exactly(list)(pairs)}
    assert is_dataclass(kind), f"{kind} has no stored form"
    return _object_decoder(kind)


def _sequence_decoder(origin: Any, arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    a_list = _exactly(list)
    if origin is tuple and arguments[-1] is not Ellipsis:
        parts = [_decoder(argument) for argument in arguments]
        return lambda values: tuple(
            part(value) for part, value in zip(parts, a_list(values), strict=True)
        )
    item = _decoder(arguments[0])
    make = origin
    return lambda values: make([item(value) for value in a_list(values)])


def _object_decoder(kind: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(kind, include_extras=True)
    parts = [
        (field.name, _decoder(hints[field.name]), _is_optional(hints[field.name]))
        for field in fields(kind)
        if field.init
    ]
    assert all(field.init or field.default is not MISSING for field in fields(kind))

    def decode_object(values: Any) -> Any:
        if type(values) is not dict:
            _wrong(values, kind.__name__)
        decoded = {}
        absent = 0
        for name, part, is_optional in parts:
            if name in values:
                decoded[name] = part(values[name])
            elif is_optional:
                decoded[name] = None
                absent += 1
            else:
                raise NotStorable(f"{kind.__name__}.{name} is missing")
        if len(values) + absent != len(parts):
            raise NotStorable(f"{kind.__name__} has no {sorted(values.keys() - decoded.keys())}")
        return kind(**decoded)

    return decode_object


def _exactly(kind: type[Any]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        return value if type(value) is kind else _wrong(value, kind.__name__)

    return check


def _big_from_text(value: Any) -> int:
    if type(value) is not str:
        _wrong(value, "decimal string")
    try:
        number = int(value)
    except ValueError:
        number = 0
    return number if str(number) == value else _wrong(value, "decimal string")


def _amount(value: Any) -> Amount:
    if type(value) is not dict or value.keys() != {"asset", "units"}:
        _wrong(value, "Amount")
    asset = _ASSETS.get(value["asset"]) or _wrong(value["asset"], "Asset")
    return Amount(asset, _big_from_text(value["units"]))


def _wrong(value: object, wanted: str) -> Any:
    raise NotStorable(f"{str(value)[:40]!r} is not a stored {wanted}")


def _without_none(arguments: tuple[Any, ...]) -> Any:
    kinds = [argument for argument in arguments if argument is not NoneType]
    assert len(kinds) == 1, f"{arguments}: a stored value has one type"
    return kinds[0]


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)


def _has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_nul(one) for one in [*value.keys(), *value.values()])
    if isinstance(value, list):
        return any(map(_has_nul, value))
    return isinstance(value, str) and "\0" in value
