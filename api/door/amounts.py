"""Money on the wire: `{"asset": "CREDIT", "units": "1265000"}`, units as a decimal string.

JSON numbers lose digits above 2^53 - 1 in many clients; a string never does. No JSON number with a
fraction stands anywhere.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from domain.money import Amount, Asset

INTEGER_MAX = 9_007_199_254_740_991
"""2^53 - 1: the largest JSON integer everybody reads alike."""

Units = Annotated[
    str,
    Field(
        pattern=r"^(0|[1-9][0-9]{0,38})$",
        description="A whole number of the smallest unit, as a decimal string",
        examples=["1265000"],
    ),
]
"""Not negative; also for GPU-microseconds and whatever else may pass 2^53 - 1."""

SignedUnits = Annotated[
    str,
    Field(
        pattern=r"^(0|-?[1-9][0-9]{0,38})$",
        description="Debits above zero, credits below, as a decimal string",
        examples=["-1265000"],
    ),
]


class Money(BaseModel):
    """Units of one asset: micro-credits, 10^-8 TOKEN, GPU- or seat-milliseconds."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    asset: Literal["CREDIT", "TOKEN", "GPU_MS", "SEAT_MS"]
    units: Units

    def amount(self) -> Amount:
        """The amount as the domain knows it."""
        return Amount(Asset(self.asset), int(self.units))


class SignedMoney(BaseModel):
    """A movement: debits above zero, credits below."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    asset: Literal["CREDIT", "TOKEN", "GPU_MS", "SEAT_MS"]
    units: SignedUnits


def money(amount: Amount) -> Money:
    return Money(asset=amount.asset.value, units=str(amount.units))


def credits_(units: int) -> Money:
    """Micro-credits."""
    return Money(asset="CREDIT", units=str(units))


def credits_or_none(units: int | None) -> Money | None:
    return None if units is None else credits_(units)


def tokens(units: int) -> Money:
    """10^-8 TOKEN."""
    return Money(asset="TOKEN", units=str(units))


def tokens_or_none(units: int | None) -> Money | None:
    return None if units is None else tokens(units)
