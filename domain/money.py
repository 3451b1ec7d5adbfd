"""Money and other conserved quantities: whole units of one asset, and how to share them out.

    sum(shares) + carry == pool        for every pool and every set of weights

No float and no fraction ever stands for an amount. CREDIT has 6 decimals (1 credit = 1 US dollar
of compute), TOKEN has 8, GPU_MS counts milliseconds of one whole accelerator and SEAT_MS those of
one seat of a software licence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from domain.refusal import Reason, Refused


class MoneyReason(Reason):
    """Why amounts cannot be divided."""

    NEGATIVE_POOL = "negative_pool"
    DUPLICATE_ID = "duplicate_id"
    NEGATIVE_WEIGHT = "negative_weight"


PPM = 1_000_000

Big = Annotated[int, "decimal string"]
"""An integer that may pass 2^53 - 1: stored facts and JSON carry it as a decimal string."""


class Asset(StrEnum):
    """What an amount counts. The value is the name in stored facts and in the books."""

    CREDIT = "CREDIT"
    TOKEN = "TOKEN"  # noqa: S105 - an asset, not a secret
    GPU_MS = "GPU_MS"
    SEAT_MS = "SEAT_MS"


@dataclass(frozen=True, slots=True, order=True)
class Amount:
    """Units of one asset: micro-credits, 10^-8 tokens, GPU- or seat-milliseconds."""

    asset: Asset
    units: int

    def __add__(self, other: Amount) -> Amount:
        assert self.asset is other.asset, (self, other)
        return Amount(self.asset, self.units + other.units)

    def __sub__(self, other: Amount) -> Amount:
        assert self.asset is other.asset, (self, other)
        return Amount(self.asset, self.units - other.units)


def decimal(units: int, decimals: int, least: int = 2) -> str:
    """1234500000 with 6 decimals is 1,234.50: as many decimals as needed, `least` at least."""
    whole, part = divmod(abs(units), 10**decimals)
    digits = f"{part:0{decimals}d}".rstrip("0").ljust(least, "0")
    return f"{'-' if units < 0 else ''}{whole:,}{'.' + digits if digits else ''}"


def credit(units: int) -> Amount:
    """Micro-credits."""
    return Amount(Asset.CREDIT, units)


def token(units: int) -> Amount:
    """10^-8 TOKEN."""
    return Amount(Asset.TOKEN, units)


@dataclass(frozen=True, slots=True)
class Shares:
    """What each recipient gets, in the order asked, and what nobody gets yet."""

    by_id: dict[str, int]
    carry: int


def share_out(pool: int, weights: Sequence[tuple[str, int]]) -> Shares:
    """Split `pool` by weight: share = floor(pool x w / W); the rest is carried to the next round.

    Not the largest remainder: there equal weights can earn differently and a larger pool can
    lower a share. Rule: conformance suite `share_out`, mode `floor_carry`.

    Raises Refused: NEGATIVE_POOL, DUPLICATE_ID, NEGATIVE_WEIGHT.
    """
    _check_weights(pool, weights)
    whole = sum(weight for _, weight in weights)
    shares = {who: pool * weight // whole if whole else 0 for who, weight in weights}
    carry = pool - sum(shares.values())
    assert 0 <= carry <= pool
    return Shares(shares, carry)


def share_out_all(pool: int, weights: Sequence[tuple[str, int]]) -> Shares:
    """Split `pool` by largest remainder, ties by the bytes of the id; nothing is carried.

    For one-off splits only; rewards use `share_out`. Rule: suite `share_out`,
    mode `largest_remainder`. Raises like `share_out`.
    """
    floors = share_out(pool, weights)
    whole = sum(weight for _, weight in weights)
    if not whole:
        return floors
    by_remainder = sorted(weights, key=lambda w: (-(pool * w[1] % whole), w[0].encode()))
    shares = dict(floors.by_id)
    for who, _ in by_remainder[: floors.carry]:
        shares[who] += 1
    assert sum(shares.values()) == pool
    return Shares(shares, 0)


def _check_weights(pool: int, weights: Sequence[tuple[str, int]]) -> None:
    if pool < 0:
        raise Refused(MoneyReason.NEGATIVE_POOL, pool=pool)
    if len({who for who, _ in weights}) != len(weights):
        raise Refused(MoneyReason.DUPLICATE_ID)
    if any(weight < 0 for _, weight in weights):
        raise Refused(MoneyReason.NEGATIVE_WEIGHT)
