"""How many tokens a charge in credits burns at a price.

    fee = floor(gross x fee_bps / 10,000);   burn = gross - fee
    tokens = ceil(burn x 10^8 / price);      burn <= value(tokens) < burn + one unit's value

The fee's fraction goes to the burn, and the token's fraction is burned on top: rounding never
gives credits away. Not the record of a burn: that is `domain/chain/burn.py`. Rule: conformance
suite `burn`.
"""

from __future__ import annotations

from domain.prices.reasons import PricesReason
from domain.record import dataclass
from domain.refusal import Refused

TOKEN_UNITS = 10**8
"""Units of one whole TOKEN."""
PRICE_MIN = 1_000
"""Micro-dollars per whole TOKEN; below it a price is too coarse to burn at."""
BPS = 10_000


@dataclass(frozen=True, slots=True)
class TokenBurn:
    """fee + burn == gross, in micro-credits; `tokens` in 10^-8 TOKEN."""

    fee: int
    burn: int
    tokens: int


def check_price(price_micro_usd: int) -> None:
    """Raises Refused: PRICE_TOO_LOW."""
    if price_micro_usd < PRICE_MIN:
        raise Refused(PricesReason.PRICE_TOO_LOW, price_micro_usd=price_micro_usd, lowest=PRICE_MIN)


def tokens_for(credit_units: int, price_micro_usd: int) -> int:
    """Token units that are worth at least `credit_units` micro-credits, and less than one unit
    more. At least 1 for any charge. Raises Refused: PRICE_TOO_LOW.
    """
    assert credit_units >= 0, credit_units
    check_price(price_micro_usd)
    return -(-credit_units * TOKEN_UNITS // price_micro_usd)


def burn_for(gross_units: int, price_micro_usd: int, fee_bps: int) -> TokenBurn:
    """Fee, burn and tokens of a gross charge in micro-credits.

    Raises Refused: ZERO_AMOUNT, PRICE_TOO_LOW, FEE_OUT_OF_RANGE.
    """
    if gross_units <= 0:
        raise Refused(PricesReason.ZERO_AMOUNT, gross=gross_units)
    check_price(price_micro_usd)
    if not 0 <= fee_bps <= BPS:
        raise Refused(PricesReason.FEE_OUT_OF_RANGE, fee_bps=fee_bps)
    fee = gross_units * fee_bps // BPS
    burn = gross_units - fee
    return TokenBurn(fee, burn, tokens_for(burn, price_micro_usd))
