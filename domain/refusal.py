"""The expected "no": every rule that can refuse, named once.

The order inside a group is the order of checking; the first that applies wins. `api/door/errors.py`
maps every member to a status. A broken invariant is not a refusal: that is an `assert`.
"""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """Why a command was refused. The value is the stable code of the problem document."""

    # Who asks, and for what.
    NOT_PERMITTED = "not_permitted"
    ACCOUNT_UNKNOWN = "account_unknown"
    ACCOUNT_EXISTS = "account_exists"
    ACCOUNT_CLOSED = "account_closed"
    ACCOUNT_NOT_EMPTY = "account_not_empty"
    MEMBER_UNKNOWN = "member_unknown"
    MEMBER_EXISTS = "member_exists"
    ROLE_UNKNOWN = "role_unknown"
    LAST_OWNER = "last_owner"
    API_KEY_UNKNOWN = "api_key_unknown"
    API_KEY_REVOKED = "api_key_revoked"
    SCOPE_UNKNOWN = "scope_unknown"
    OPERATOR_EXISTS = "operator_exists"
    WALLET_UNKNOWN = "wallet_unknown"
    WALLET_TAKEN = "wallet_taken"
    # Supply.
    PROVIDER_UNKNOWN = "provider_unknown"
    PROVIDER_EXISTS = "provider_exists"
    PROVIDER_KIND_UNKNOWN = "provider_kind_unknown"
    REGION_UNKNOWN = "region_unknown"
    REGION_EXISTS = "region_exists"
    REGION_TERMS = "region_terms"
    REGION_DAY = "region_day"
    STORAGE_MODE_UNKNOWN = "storage_mode_unknown"
    STORAGE_NODE_STATE = "storage_node_state"
    JOIN_CODE_UNKNOWN = "join_code_unknown"
    JOIN_CODE_USED = "join_code_used"
    JOIN_CODE_EXPIRED = "join_code_expired"
    NODE_UNKNOWN = "node_unknown"
    NODE_EXISTS = "node_exists"
    NODE_STATE = "node_state"
    NODE_KEY_MISMATCH = "node_key_mismatch"
    NODE_KEY_USED = "node_key_used"
    NODE_SPECS_MISSING = "node_specs_missing"
    NODE_NOT_JOINABLE = "node_not_joinable"
    NODE_BUSY = "node_busy"
    NODE_IN_MAINTENANCE = "node_in_maintenance"
    NODE_ROLE = "node_role"
    MAINTENANCE_UNKNOWN = "maintenance_unknown"
    MAINTENANCE_WINDOW = "maintenance_window"
    LICENCE_UNKNOWN = "licence_unknown"
    LICENCE_EXISTS = "licence_exists"
    ATTRIBUTE_UNKNOWN = "attribute_unknown"
    ATTRIBUTE_REVOKED = "attribute_revoked"
    DEVICE_UNKNOWN = "device_unknown"
    DEVICE_ELSEWHERE = "device_elsewhere"
    DEVICE_TAKEN = "device_taken"
    DEVICE_INTERVAL = "device_interval"
    MODE_NOT_SUPPORTED = "mode_not_supported"
    OFFER_UNKNOWN = "offer_unknown"
    OFFER_EXISTS = "offer_exists"
    OFFER_WITHDRAWN = "offer_withdrawn"
    GPU_CLASS_UNPRICED = "gpu_class_unpriced"
    SLA_CLASS_UNKNOWN = "sla_class_unknown"
    POOL_UNKNOWN = "pool_unknown"
    POOL_EXISTS = "pool_exists"
    POOL_POLICY_INVALID = "pool_policy_invalid"
    NODE_POOLED = "node_pooled"
    # Demand.
    JOB_UNKNOWN = "job_unknown"
    JOB_EXISTS = "job_exists"
    JOB_STATE = "job_state"
    WORKLOAD_EMPTY = "workload_empty"
    CONSTRAINT_INVALID = "constraint_invalid"
    LEASE_UNKNOWN = "lease_unknown"
    LEASE_EXISTS = "lease_exists"
    LEASE_NOT_OPEN = "lease_not_open"
    LEASE_STATE = "lease_state"
    LEASE_NOT_DUE = "lease_not_due"
    GANG_UNKNOWN = "gang_unknown"
    GANG_EXISTS = "gang_exists"
    GANG_STATE = "gang_state"
    GANG_TOO_LARGE = "gang_too_large"
    QUEUE_FULL = "queue_full"
    QUEUE_MOVED = "queue_moved"
    NO_MATCH = "no_match"
    MATCH_IMPOSSIBLE = "match_impossible"
    OFFER_MISMATCH = "offer_mismatch"
    PRICING_UNKNOWN = "pricing_unknown"
    PRICING_NOT_OFFERED = "pricing_not_offered"
    TERM_NOT_OFFERED = "term_not_offered"
    AUCTION_TERMS = "auction_terms"
    AUCTION_STATE = "auction_state"
    BID_UNKNOWN = "bid_unknown"
    BID_EXISTS = "bid_exists"
    BIDS_FULL = "bids_full"
    BID_STATE = "bid_state"
    PRICE_ABOVE_CAP = "price_above_cap"
    UNPAID_DEBT = "unpaid_debt"
    CREDIT_TOO_LOW = "credit_too_low"
    BUDGET_EXHAUSTED = "budget_exhausted"
    QUOTA_EXHAUSTED = "quota_exhausted"
    COUNTERPARTY_DENIED = "counterparty_denied"
    GROUP_UNKNOWN = "group_unknown"
    GROUP_EXISTS = "group_exists"
    CLIENT_UNKNOWN = "client_unknown"
    CLIENT_NOT_AUTHORISED = "client_not_authorised"
    PLAN_INVALID = "plan_invalid"
    SCHEDULE_INVALID = "schedule_invalid"
    REFERENCE_INVALID = "reference_invalid"
    TASK_UNKNOWN = "task_unknown"
    TASK_STATE = "task_state"
    CLOSE_CODE_PARTY = "close_code_party"
    WORKLOAD_MISMATCH = "workload_mismatch"
    ENCRYPTION_KEY_UNKNOWN = "encryption_key_unknown"
    SIGNING_KEY_UNKNOWN = "signing_key_unknown"
    SIGNING_KEY_INVALID = "signing_key_invalid"
    SIGNING_KEY_REVOKED = "signing_key_revoked"
    COUNTERSIGN_TIME = "countersign_time"
    COUNTERSIGN_FELL = "countersign_fell"
    WEBHOOK_UNKNOWN = "webhook_unknown"
    WEBHOOK_URL = "webhook_url"
    # Usage and accrual.
    ACCRUAL_NOT_DUE = "accrual_not_due"
    USAGE_POSITION_FELL = "usage_position_fell"
    USAGE_INCOMPLETE = "usage_incomplete"
    # Money in.
    DEPOSIT_EXISTS = "deposit_exists"
    DEPOSIT_SOURCE_UNKNOWN = "deposit_source_unknown"
    PURCHASE_EXISTS = "purchase_exists"
    # Money out.
    MATURITY_WINDOW = "maturity_window"
    EARNING_MATURED = "earning_matured"
    EARNINGS_STATE = "earnings_state"
    PAYMENT_MODE = "payment_mode"
    CASH_OUT_UNKNOWN = "cash_out_unknown"
    CASH_OUT_HELD = "cash_out_held"
    CASH_OUT_STATE = "cash_out_state"
    CASH_OUT_TOO_SMALL = "cash_out_too_small"
    DIFFERENCE_UNKNOWN = "difference_unknown"
    PAYMENT_UNKNOWN = "payment_unknown"
    PAYMENT_STATE = "payment_state"
    PAYMENT_NOT_DUE = "payment_not_due"
    PAYMENT_BELOW_MINIMUM = "payment_below_minimum"
    PAYMENT_TERMS_VERSION = "payment_terms_version"
    PAYMENT_TERMS_INVALID = "payment_terms_invalid"
    # Invoices.
    INVOICE_KIND_UNKNOWN = "invoice_kind_unknown"
    BAD_PERIOD = "bad_period"
    PERIOD_NOT_OVER = "period_not_over"
    INVOICE_UNKNOWN = "invoice_unknown"
    INVOICE_EXISTS = "invoice_exists"
    NOTHING_TO_INVOICE = "nothing_to_invoice"
    CREDIT_NOTE_EXISTS = "credit_note_exists"
    INVOICE_LINE_UNKNOWN = "invoice_line_unknown"
    CREDIT_ABOVE_LINE = "credit_above_line"
    # Milestone grants; the formula's own as in the vectors.
    GRANT_UNKNOWN = "grant_unknown"
    GRANT_EXISTS = "grant_exists"
    GRANT_STATE = "grant_state"
    MILESTONE_STATE = "milestone_state"
    SECOND_PERSON_NEEDED = "second_person_needed"
    TREASURY_SHORT = "treasury_short"
    BAD_MILESTONE = "bad_milestone"
    DUPLICATE_MILESTONE = "duplicate_milestone"
    BAD_SHARE = "bad_share"
    OVER_ASSIGNED = "over_assigned"
    UNKNOWN_MILESTONE = "unknown_milestone"
    # Promotions, and who pays for whom.
    PROMOTION_UNKNOWN = "promotion_unknown"
    PROMOTION_EXISTS = "promotion_exists"
    PROMOTION_ENDED = "promotion_ended"
    PROMOTION_TERMS = "promotion_terms"
    PROMOTION_FUND_SHORT = "promotion_fund_short"
    BAD_PROGRAM = "bad_program"
    PAYER_UNKNOWN = "payer_unknown"
    PAYER_EXISTS = "payer_exists"
    TOP_UP_INVALID = "top_up_invalid"
    # Corrections.
    LINE_UNKNOWN = "line_unknown"
    DISPUTE_UNKNOWN = "dispute_unknown"
    ADJUSTMENT_UNKNOWN = "adjustment_unknown"
    DISPUTE_STATE = "dispute_state"
    LINE_DISPUTED = "line_disputed"
    DISPUTE_TOO_LATE = "dispute_too_late"
    ADJUSTMENT_TOO_LARGE = "adjustment_too_large"
    EVIDENCE_UNKNOWN = "evidence_unknown"
    NO_LATE_USAGE = "no_late_usage"
    # Epochs, policy, payouts.
    TARIFF_UNKNOWN = "tariff_unknown"
    TARIFF_VERSION = "tariff_version"
    TARIFF_NOTICE = "tariff_notice"
    POLICY_VERSION = "policy_version"
    POLICY_INVALID = "policy_invalid"
    PROPOSAL_NEEDED = "proposal_needed"
    PROPOSAL_UNKNOWN = "proposal_unknown"
    PROPOSAL_EXISTS = "proposal_exists"
    PROPOSAL_MOVED = "proposal_moved"
    PROPOSAL_STATE = "proposal_state"
    PROPOSAL_INVALID = "proposal_invalid"
    VOTED_ALREADY = "voted_already"
    PROPOSAL_LINT = "proposal_lint"
    PROPOSAL_WITHOUT_TERMS = "proposal_without_terms"
    PROPOSAL_NOTICE = "proposal_notice"
    EPOCH_UNKNOWN = "epoch_unknown"
    EPOCH_STATE = "epoch_state"
    EPOCH_NOT_OVER = "epoch_not_over"
    EPOCH_OUT_OF_ORDER = "epoch_out_of_order"
    CUT_INCOMPLETE = "cut_incomplete"
    CHUNK_OUT_OF_ORDER = "chunk_out_of_order"
    REWARDS_MISMATCH = "rewards_mismatch"
    REWARD_CORRECTION_UNKNOWN = "reward_correction_unknown"
    REWARD_CORRECTION_STATE = "reward_correction_state"
    NOTHING_UNMATURED = "nothing_unmatured"
    FORFEIT_NOT_DUE = "forfeit_not_due"
    PAYOUT_STATE = "payout_state"
    PAYOUT_EXISTS = "payout_exists"
    CHAIN_TX_STATE = "chain_tx_state"
    BURN_STATE = "burn_state"
    BREAKER_LIMIT = "breaker_limit"
    # The price of a TOKEN.
    PRICE_SOURCES_INVALID = "price_sources_invalid"
    PRICE_SOURCE_UNKNOWN = "price_source_unknown"
    PRICE_TIMES = "price_times"
    PRICE_SNAPSHOT = "price_snapshot"
    ORACLE_DORMANT = "oracle_dormant"
    # Amounts.
    AMOUNT_NOT_POSITIVE = "amount_not_positive"
    AMOUNT_OUT_OF_RANGE = "amount_out_of_range"
    AMOUNT_NOT_CENTS = "amount_not_cents"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    # Formulas (conformance suites; values as in the vectors).
    UNKNOWN_GPU_CLASS = "unknown_gpu_class"
    COUNT_OUT_OF_RANGE = "count_out_of_range"
    SHARE_OUT_OF_RANGE = "share_out_of_range"
    PRICE_BELOW_USAGE_FEE = "price_below_usage_fee"
    UNKNOWN_MODE = "unknown_mode"
    NEGATIVE_POOL = "negative_pool"
    DUPLICATE_ID = "duplicate_id"
    NEGATIVE_WEIGHT = "negative_weight"
    DAY_OUT_OF_MONTH = "day_out_of_month"
    REMOVED_MORE_THAN_CONFIGURED = "removed_more_than_configured"
    ZERO_AMOUNT = "zero_amount"
    PRICE_TOO_LOW = "price_too_low"
    FEE_OUT_OF_RANGE = "fee_out_of_range"
    BAD_SEGMENT = "bad_segment"
    SEGMENTS_OVERLAP = "segments_overlap"
    BAD_EPOCH = "bad_epoch"
    BAD_TAU = "bad_tau"
    NEGATIVE_BURN = "negative_burn"
    BAD_WINDOW = "bad_window"
    BAD_MIN_SOURCES = "bad_min_sources"
    BAD_DEPOSIT = "bad_deposit"
    DUPLICATE_PAYEE = "duplicate_payee"
    BAD_RATE = "bad_rate"
    NEGATIVE_ELAPSED = "negative_elapsed"
    DUPLICATE_USER = "duplicate_user"
    UNKNOWN_RESOURCE = "unknown_resource"
    EMPTY_DEMAND = "empty_demand"
    BAD_WEIGHT = "bad_weight"
    BAD_TIE_ORDER = "bad_tie_order"
    EMPTY_TREE = "empty_tree"
    BAD_ADDRESS = "bad_address"
    DUPLICATE_LEAF = "duplicate_leaf"
    UNKNOWN_LOG = "unknown_log"
    WRONG_LANE = "wrong_lane"
    STREAM_MOVED = "stream_moved"
    BAD_INTERVAL = "bad_interval"
    OVER_ALLOCATED = "over_allocated"
    UNKNOWN_MODEL = "unknown_model"
    BAD_INITIAL_STATE = "bad_initial_state"
    UNKNOWN_ID = "unknown_id"
    UNKNOWN_PROFILE = "unknown_profile"
    ID_IN_USE = "id_in_use"
    PROFILE_LIMIT = "profile_limit"
    COMPUTE_FULL = "compute_full"
    NO_PLACEMENT = "no_placement"


STORED_REFUSALS = frozenset(
    {
        # Who asks, and for what.
        Reason.ACCOUNT_UNKNOWN,
        Reason.ACCOUNT_EXISTS,
        Reason.ACCOUNT_CLOSED,
        Reason.ACCOUNT_NOT_EMPTY,
        Reason.MEMBER_UNKNOWN,
        Reason.MEMBER_EXISTS,
        Reason.LAST_OWNER,
        Reason.API_KEY_UNKNOWN,
        Reason.API_KEY_REVOKED,
        Reason.WALLET_TAKEN,
        # Supply. Not the three of join codes: strangers ask, and must not leave rows behind; and
        # what such a code is answered once, it is answered for ever.
        Reason.PROVIDER_UNKNOWN,
        Reason.PROVIDER_EXISTS,
        Reason.REGION_UNKNOWN,
        Reason.REGION_TERMS,
        Reason.REGION_EXISTS,
        Reason.STORAGE_NODE_STATE,
        Reason.NODE_UNKNOWN,
        Reason.NODE_EXISTS,
        Reason.NODE_STATE,
        Reason.NODE_KEY_MISMATCH,
        Reason.NODE_KEY_USED,
        Reason.NODE_SPECS_MISSING,
        Reason.NODE_NOT_JOINABLE,
        Reason.NODE_IN_MAINTENANCE,
        Reason.MAINTENANCE_UNKNOWN,
        Reason.LICENCE_UNKNOWN,
        Reason.LICENCE_EXISTS,
        Reason.ATTRIBUTE_UNKNOWN,
        Reason.ATTRIBUTE_REVOKED,
        Reason.NODE_BUSY,
        Reason.DEVICE_UNKNOWN,
        Reason.DEVICE_ELSEWHERE,
        Reason.DEVICE_TAKEN,
        Reason.OFFER_UNKNOWN,
        Reason.OFFER_EXISTS,
        Reason.OFFER_WITHDRAWN,
        Reason.TARIFF_UNKNOWN,
        Reason.POOL_UNKNOWN,
        Reason.POOL_EXISTS,
        Reason.NODE_POOLED,
        # Demand.
        Reason.GANG_UNKNOWN,
        Reason.GANG_EXISTS,
        Reason.GANG_STATE,
        Reason.GANG_TOO_LARGE,
        Reason.QUEUE_FULL,
        Reason.QUEUE_MOVED,
        Reason.JOB_UNKNOWN,
        Reason.JOB_EXISTS,
        Reason.JOB_STATE,
        Reason.LEASE_UNKNOWN,
        Reason.LEASE_EXISTS,
        Reason.LEASE_NOT_OPEN,
        Reason.LEASE_STATE,
        Reason.NO_MATCH,
        Reason.MATCH_IMPOSSIBLE,
        Reason.OFFER_MISMATCH,
        Reason.PRICE_ABOVE_CAP,
        Reason.AUCTION_STATE,
        Reason.BID_UNKNOWN,
        Reason.BID_EXISTS,
        Reason.BIDS_FULL,
        Reason.BID_STATE,
        Reason.UNPAID_DEBT,
        Reason.CREDIT_TOO_LOW,
        # Invoices.
        Reason.INVOICE_UNKNOWN,
        Reason.INVOICE_EXISTS,
        Reason.NOTHING_TO_INVOICE,
        Reason.CREDIT_NOTE_EXISTS,
        Reason.CREDIT_ABOVE_LINE,
        Reason.BUDGET_EXHAUSTED,
        Reason.QUOTA_EXHAUSTED,
        Reason.COUNTERPARTY_DENIED,
        Reason.GROUP_UNKNOWN,
        Reason.GROUP_EXISTS,
        Reason.CLIENT_UNKNOWN,
        Reason.TASK_UNKNOWN,
        Reason.TASK_STATE,
        # Milestone grants.
        Reason.GRANT_UNKNOWN,
        Reason.GRANT_EXISTS,
        Reason.GRANT_STATE,
        Reason.MILESTONE_STATE,
        Reason.SECOND_PERSON_NEEDED,
        Reason.TREASURY_SHORT,
        # Promotions, and who pays for whom.
        Reason.PROMOTION_UNKNOWN,
        Reason.PROMOTION_EXISTS,
        Reason.PROMOTION_ENDED,
        Reason.PROMOTION_TERMS,
        Reason.PROMOTION_FUND_SHORT,
        Reason.PAYER_UNKNOWN,
        Reason.PAYER_EXISTS,
        # Corrections.
        Reason.LINE_UNKNOWN,
        Reason.DISPUTE_UNKNOWN,
        Reason.DISPUTE_STATE,
        Reason.LINE_DISPUTED,
        Reason.DISPUTE_TOO_LATE,
        Reason.ADJUSTMENT_TOO_LARGE,
        Reason.NO_LATE_USAGE,
        Reason.SIGNING_KEY_UNKNOWN,
        Reason.SIGNING_KEY_REVOKED,
        Reason.COUNTERSIGN_FELL,
        Reason.WEBHOOK_UNKNOWN,
        Reason.REWARD_CORRECTION_UNKNOWN,
        Reason.REWARD_CORRECTION_STATE,
        Reason.NOTHING_UNMATURED,
        # Money in, epochs, payouts.
        Reason.DEPOSIT_EXISTS,
        Reason.PAYMENT_UNKNOWN,
        Reason.PAYMENT_STATE,
        Reason.PAYMENT_TERMS_VERSION,
        Reason.EPOCH_STATE,
        Reason.PAYOUT_STATE,
        Reason.EPOCH_UNKNOWN,
        Reason.POLICY_VERSION,
        Reason.REWARDS_MISMATCH,
        Reason.PROPOSAL_UNKNOWN,
        Reason.PROPOSAL_EXISTS,
        Reason.PROPOSAL_STATE,
        Reason.VOTED_ALREADY,
        Reason.PROPOSAL_LINT,
        Reason.PROPOSAL_WITHOUT_TERMS,
        Reason.PROPOSAL_NOTICE,
        Reason.TARIFF_VERSION,
        Reason.TARIFF_NOTICE,
        Reason.PRICE_SOURCE_UNKNOWN,
        # Money out.
        Reason.MATURITY_WINDOW,
        Reason.EARNING_MATURED,
        Reason.CASH_OUT_UNKNOWN,
        Reason.CASH_OUT_HELD,
        Reason.CASH_OUT_STATE,
        Reason.DIFFERENCE_UNKNOWN,
    }
)
"""Refusals by state (402, 404, 409): kept with the idempotency key, so a retry never changes the
outcome. Refusals that only wait for time or for usage are not among them: jobs ask again.
"""


class Refused(Exception):
    """The command was understood and refused by a rule; nothing was recorded."""

    def __init__(self, reason: Reason, **facts: object) -> None:
        super().__init__(reason.value, facts)
        self.reason = reason
        self.facts = facts

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value}" for name, value in self.facts.items())
        return f"{self.reason.value}({told})"
