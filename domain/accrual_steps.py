"""How an accrual's amounts came about, one formula after the other, with every number in it.

    step.after == its formula over the totals after the accrual;   new == after - before
    the last values == what the fact says                          asserted

Everything is computed on cumulative totals and booked as a difference: rounding once on the whole
sum, so that no cutting into hours changes a total. Source: design economics 3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from domain.gpu_time import GPU_HOUR_US, charge_for
from domain.lease import Lease, UsageAccrued
from domain.money import PPM


@dataclass(frozen=True, slots=True)
class Step:
    """One quantity: its formula, the numbers that do not change, and it before and after."""

    name: str
    formula: str
    given: Mapping[str, int]
    before: int
    after: int

    @property
    def new(self) -> int:
        return self.after - self.before


def steps(lease: Lease, fact: UsageAccrued) -> list[Step]:
    """The steps of the accrual that followed on `lease` as it stood before it."""
    found = list(_steps(lease, fact))
    values = {step.name: (step.before, step.after) for step in found}
    assert values["charge"] == (lease.charge_units, fact.charge.units), fact
    for name in ("fee", "provider", "burn", "platform"):
        assert values[name] == (getattr(lease.parts, name), getattr(fact.parts, name)), fact
    return found


def _steps(lease: Lease, fact: UsageAccrued) -> Iterator[Step]:
    reserved, opened = lease.reserved, lease.opened
    assert reserved is not None
    assert opened is not None
    price, fee_rate = opened.price_per_gpu_hour.units, reserved.fee_per_gpu_hour.units
    yield Step("ppm_us", "sum(share_ppm x us) of all rows so far", {}, lease.ppm_us, fact.ppm_us)
    yield Step("gpu_us", "floor(ppm_us / 1000000)", {}, lease.ppm_us // PPM, fact.ppm_us // PPM)

    def step(name: str, formula: str, given: Mapping[str, int], of: Callable[[int], int]) -> Step:
        return Step(name, formula, given, of(lease.ppm_us // PPM), of(fact.ppm_us // PPM))

    def charge(gpu_us: int) -> int:
        return charge_for(gpu_us, price)

    yield step(
        "charge", f"floor(gpu_us x price_per_gpu_hour / {GPU_HOUR_US})",
        {"price_per_gpu_hour": price}, charge,
    )  # fmt: skip
    if reserved.settlement == "burn":
        # Credits bought by burning are retired whole.
        yield from _nothing("fee", "provider", "platform")
        yield step("burn", "charge", {}, charge)
        return
    if reserved.own:
        yield step("fee", "charge: the renter's own node", {}, charge)
        yield from _nothing("provider", "burn", "platform")
        return

    def fee(gpu_us: int) -> int:
        return charge(gpu_us) * fee_rate // price if price else 0

    def provider(gpu_us: int) -> int:
        return (charge(gpu_us) - fee(gpu_us)) * reserved.provider_share_ppm // PPM

    def burn(gpu_us: int) -> int:
        rest = charge(gpu_us) - fee(gpu_us) - provider(gpu_us)
        return rest * reserved.burn_share_ppm // PPM

    yield step(
        "fee", "floor(charge x fee_per_gpu_hour / price_per_gpu_hour)",
        {"fee_per_gpu_hour": fee_rate, "price_per_gpu_hour": price}, fee,
    )  # fmt: skip
    yield step(
        "provider", "floor((charge - fee) x provider_share_ppm / 1000000)",
        {"provider_share_ppm": reserved.provider_share_ppm}, provider,
    )  # fmt: skip
    yield step(
        "burn", "floor((charge - fee - provider) x burn_share_ppm / 1000000)",
        {"burn_share_ppm": reserved.burn_share_ppm}, burn,
    )  # fmt: skip
    yield step(
        "platform", "charge - fee - provider - burn", {},
        lambda gpu_us: charge(gpu_us) - fee(gpu_us) - provider(gpu_us) - burn(gpu_us),
    )  # fmt: skip


def _nothing(*names: str) -> Iterator[Step]:
    for name in names:
        yield Step(name, "0", {}, 0, 0)
