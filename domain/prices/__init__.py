"""What do things cost? Tariffs, pricing modules and the readings of price sources go in; the price
of a GPU-hour, the split of a charge and the price of a TOKEN come out.
"""

__all__ = (
    "charge_split",
    "device_fee",
    "modules",
    "oracle",
    "price_feed",
    "profit_bound",
    "provider_kinds",
    "reasons",
    "registry",
    "tariff",
    "token_burn",
)
