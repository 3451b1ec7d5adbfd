"""What this room refuses: tariffs, charges and the price of a TOKEN.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class PricesReason(Reason):
    """Why a command of this room was refused."""

    GPU_CLASS_UNPRICED = "gpu_class_unpriced"
    SLA_CLASS_UNKNOWN = "sla_class_unknown"
    PRICING_UNKNOWN = "pricing_unknown"
    PRICING_NOT_OFFERED = "pricing_not_offered"
    TERM_NOT_OFFERED = "term_not_offered"
    PRICE_ABOVE_CAP = "price_above_cap"
    TARIFF_UNKNOWN = "tariff_unknown"
    TARIFF_VERSION = "tariff_version"
    TARIFF_NOTICE = "tariff_notice"
    PROFIT_BOUND = "profit_bound"
    PRICE_SOURCES_INVALID = "price_sources_invalid"
    PRICE_SOURCE_UNKNOWN = "price_source_unknown"
    PRICE_SOURCE_FOREIGN = "price_source_foreign"
    PRICE_TIMES = "price_times"
    PRICE_KNOWN = "price_known"
    PRICE_SNAPSHOT = "price_snapshot"
    ORACLE_DORMANT = "oracle_dormant"
    AMOUNT_OUT_OF_RANGE = "amount_out_of_range"
    UNKNOWN_GPU_CLASS = "unknown_gpu_class"
    PROVIDER_KIND_COST = "provider_kind_cost"
    PRICE_BELOW_USAGE_FEE = "price_below_usage_fee"
    DAY_OUT_OF_MONTH = "day_out_of_month"
    REMOVED_MORE_THAN_CONFIGURED = "removed_more_than_configured"
    ZERO_AMOUNT = "zero_amount"
    PRICE_TOO_LOW = "price_too_low"
    FEE_OUT_OF_RANGE = "fee_out_of_range"
    BAD_WINDOW = "bad_window"
    BAD_MIN_SOURCES = "bad_min_sources"


REASONS = tuple(PricesReason)
STORED: frozenset[Reason] = frozenset(
    {
        PricesReason.PRICE_KNOWN,
        PricesReason.PRICE_ABOVE_CAP,
        PricesReason.TARIFF_UNKNOWN,
        PricesReason.TARIFF_VERSION,
        PricesReason.TARIFF_NOTICE,
        PricesReason.PROFIT_BOUND,
        PricesReason.PROVIDER_KIND_COST,
        PricesReason.PRICE_SOURCE_UNKNOWN,
    }
)
