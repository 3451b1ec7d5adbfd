"""Burns of the network's own: credits charged by burning tariffs are turned into burned tokens.

    tokens = max(1, ceil(credits x 10^8 / price))

Each intent covers one contiguous range of market positions, so each charge is in exactly one burn.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.money import Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnIntended:
    """Stream `burn:{burn_id}`; ids count from 1."""

    burn_id: int
    first_position: int
    last_position: int
    credits: Amount
    price_micro_usd: int  # per whole TOKEN
    price_round: int
    tokens: Amount
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnConfirmed:
    burn_id: int
    credits: Amount
    tokens: Amount
    tx_hash: str
    block_number: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnFailed:
    burn_id: int
    reason: str
    at_us: int
