"""How an accrual's amounts came about, one formula after the other, with every number in it.

    step.after == its formula over the totals after the accrual;   new == after - before
    the last values == what the fact says                          asserted

Everything is computed on cumulative totals and booked as a difference: rounding once on the whole
sum, so that no cutting into hours changes a total. Source: design economics 3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from domain.fleet.revenue_share import split_among
from domain.gpu_time import GPU_HOUR_US, charge_for, fee_for
from domain.lease.lease import Lease, LeaseReserved, UsageAccrued
from domain.money import PPM
from domain.record import dataclass


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


Pair = tuple[int, int]
"""A total before and after the accrual."""

OWNER = "provider of "


def steps(lease: Lease, fact: UsageAccrued) -> list[Step]:
    """The steps of the accrual that followed on `lease` as it stood before it."""
    found = list(_steps(lease, fact))
    values = {step.name: (step.before, step.after) for step in found}
    assert values["charge"] == (lease.charge_units, fact.charge.units), fact
    for name in ("fee", "provider", "client", "burn", "platform"):
        told = getattr(lease.parts, name) or 0, getattr(fact.parts, name) or 0
        assert values.get(name, (0, 0)) == told, (name, fact)
    owners = [step.after for step in found if step.name.startswith(OWNER)]
    assert owners == [part.units for part in fact.owners], fact
    if fact.federated is not None:
        assert values["federated_fee"][1] == fact.federated.total.units, fact
    return found


def _steps(lease: Lease, fact: UsageAccrued) -> Iterator[Step]:
    reserved, opened = lease.reserved, lease.opened
    assert reserved is not None
    assert opened is not None
    ppm_us = (lease.ppm_us, fact.ppm_us)
    gpu_us = _both(ppm_us, lambda value: value // PPM)
    price = opened.price_per_gpu_hour.units
    charge = _both(gpu_us, lambda value: charge_for(value, price))
    yield Step("ppm_us", "sum(share_ppm x us) of all rows so far", {}, *ppm_us)
    yield Step("gpu_us", "floor(ppm_us / 1000000)", {}, *gpu_us)
    yield Step(
        "charge",
        f"floor(gpu_us x price_per_gpu_hour / {GPU_HOUR_US})",
        {"price_per_gpu_hour": price},
        *charge,
    )
    if reserved.pay_with == "burn":
        yield Step("burn", "charge: credits bought by burning are retired whole", {}, *charge)
    elif reserved.own:
        yield Step("fee", "charge: the renter's own node", {}, *charge)
    else:
        yield from _peeled(reserved, price, charge)
    if reserved.federated is not None:
        rate = reserved.federated.fee_per_hour.units
        total = lease.gpu_ppm_total
        yield Step(
            "federated_fee",
            f"floor(floor(ppm_us / gpu_ppm_total) x fee_per_hour / {GPU_HOUR_US}), beside the"
            " charge, paid by the job's creator",
            {"gpu_ppm_total": total, "fee_per_hour": rate},
            *_both(ppm_us, lambda value: fee_for(value // total, rate)),
        )


def _peeled(reserved: LeaseReserved, price: int, charge: Pair) -> Iterator[Step]:
    """Fee, then share after share of what is left, in the order of the tariff."""
    fee_rate = reserved.fee_per_gpu_hour.units
    fee = _both(charge, lambda value: value * fee_rate // price if price else 0)
    yield Step(
        "fee",
        "floor(charge x fee_per_gpu_hour / price_per_gpu_hour)",
        {"fee_per_gpu_hour": fee_rate, "price_per_gpu_hour": price},
        *fee,
    )
    left, names, residual = (charge[0] - fee[0], charge[1] - fee[1]), ["fee"], _residual(reserved)
    own: Pair = (0, 0)
    for bucket, share_ppm, of_ppm in _shares(reserved):
        part = _both(left, lambda value: value * share_ppm // of_ppm if of_ppm else 0)  # noqa: B023
        name = f"{bucket} by its share" if bucket == residual else bucket
        yield Step(
            name,
            f"floor((charge - {' - '.join(names)}) x share_ppm / of_ppm)",
            {"share_ppm": share_ppm, "of_ppm": of_ppm},
            *part,
        )
        left = (left[0] - part[0], left[1] - part[1])
        names.append(name)
        own = part if bucket == residual else own
        if name == "provider":
            yield from _owners(reserved, part)
    # A client that is not there leaves the residual to the platform, which may have a share too.
    rest = (left[0] + own[0], left[1] + own[1])
    others = [name for name in names if not name.startswith(residual)]
    yield Step(residual, f"charge - {' - '.join(others)}", {}, *rest)
    if residual == "provider":
        yield from _owners(reserved, rest)


def _shares(reserved: LeaseReserved) -> Iterator[tuple[str, int, int]]:
    """Bucket, its share, and the parts per million the earlier ones have left."""
    if reserved.split is None:
        yield "provider", reserved.provider_share_ppm, PPM
        yield "burn", reserved.burn_share_ppm, PPM  # of what is left: the older tariffs' rule
        return
    of_ppm = PPM
    for share in reserved.split.shares:
        if share.bucket == "client" and reserved.client_account_id is None:
            continue
        yield share.bucket, share.share_ppm, of_ppm
        of_ppm -= share.share_ppm


def _residual(reserved: LeaseReserved) -> str:
    if reserved.split is None:
        return "platform"
    residual = reserved.split.residual
    absent = residual == "client" and reserved.client_account_id is None
    return "platform" if absent else residual


def _owners(reserved: LeaseReserved, provider: Pair) -> Iterator[Step]:
    """The provider's part among the owners of the node (row K-1)."""
    if not reserved.owners:
        return
    before, after = (
        split_among(units, reserved.owners, reserved.provider_account_id) for units in provider
    )
    for (account_id, was), (_, now) in zip(before, after, strict=True):
        yield Step(f"{OWNER}{account_id}", "peeled from provider by the shares", {}, was, now)


def _both(totals: Pair, formula: Callable[[int], int]) -> Pair:
    return formula(totals[0]), formula(totals[1])
