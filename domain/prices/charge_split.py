"""Where a charge goes: usage fee, then the buckets of the tariff, peeled one after the other.

    fee = floor(charge x fee_rate / price);   rest = charge - fee
    x_k = floor(rest x share_k / (10^6 - earlier shares));   rest -= x_k
    the residual bucket gets the last rest

    fee + provider + client + platform + burn == charge;   every part is monotone in the charge

Never floored side by side against time: there one part can fall while another rises, and a posting
would be negative. Hence parts are computed from the cumulative charge, and a posting is the
difference of two of them. Rule and numbers: conformance suite `earnings`.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.gpu_time import GPU_HOUR_US, charge_for, fee_for
from domain.money import PPM, Big
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.prices.tariff import Split
from domain.record import dataclass
from domain.refusal import Refused

FEDERATED_PER_HOUR: Mapping[str, int] = {"none": 0, "inference": 1_850_000, "training": 2_650_000}
"""Federated fee in micro-credits per hour, whatever the number of accelerators."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Where a charge goes, in its own units; the parts sum to the charge."""

    fee: Big
    provider: Big
    platform: Big
    burn: Big
    client: Big | None = None  # of the compute client that brought the job; None: it has no share

    @property
    def total(self) -> int:
        return self.fee + self.provider + self.platform + self.burn + (self.client or 0)

    def __sub__(self, before: Parts) -> Parts:
        """What is new since `before`; never negative, as every part is monotone."""
        return Parts(
            fee=self.fee - before.fee,
            provider=self.provider - before.provider,
            platform=self.platform - before.platform,
            burn=self.burn - before.burn,
            client=None if self.client is None else self.client - (before.client or 0),
        )


NOTHING = Parts(fee=0, provider=0, platform=0, burn=0)


def peel(
    charge: int,
    price: int,
    fee_rate: int,
    provider_share_ppm: int,
    burn_share_ppm: int,
    split: Split | None = None,
    *,
    has_client: bool = False,
) -> Parts:
    """Split a cumulative charge. `price` and `fee_rate` are per GPU-hour, `fee_rate` <= `price`.

    By the tariff's `split`, in its order; the share of a client that is not there falls to those
    after it. Without a split: the provider's share, then the burn's of what is left, and the
    platform owns every remainder. For the user's own hardware pass the fee as the price: the whole
    charge is fee then. Source: design economics 3, conformance suite `earnings`.
    """
    assert 0 <= fee_rate <= price, (fee_rate, price)
    assert 0 <= provider_share_ppm <= PPM, provider_share_ppm
    assert 0 <= burn_share_ppm <= PPM, burn_share_ppm
    assert charge == 0 or (charge > 0 and price > 0), (charge, price)
    fee = charge * fee_rate // price if price else 0
    rest = charge - fee
    if split is not None:
        return _peel_in_order(fee, rest, split, has_client=has_client)
    provider = rest * provider_share_ppm // PPM
    rest -= provider
    burn = rest * burn_share_ppm // PPM
    return Parts(fee=fee, provider=provider, platform=rest - burn, burn=burn)


def _peel_in_order(fee: int, rest: int, split: Split, *, has_client: bool) -> Parts:
    parts = {"provider": 0, "client": 0, "platform": 0, "burn": 0}
    left_ppm = PPM
    for share in split.shares:
        if share.bucket == "client" and not has_client:
            continue
        part = rest * share.share_ppm // left_ppm if left_ppm else 0
        parts[share.bucket] = part
        rest -= part
        left_ppm -= share.share_ppm
    assert rest >= 0, split
    owner = "platform" if split.residual == "client" and not has_client else split.residual
    parts[owner] += rest
    client = parts.pop("client")
    return Parts(fee=fee, **parts, client=client if has_client else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One lease member: `gpus` whole accelerators, available the whole time, and its terms.

    Prices and fees are micro-credits per GPU-hour; `federated_fee_per_hour` is for all units.
    """

    price_per_gpu_hour: int
    fee_per_gpu_hour: int
    gpus: int
    own: bool
    federated_fee_per_hour: int
    provider_share_ppm: int


@dataclass(frozen=True, slots=True)
class Earned:
    """customer_total + federated_fee == provider + platform; usage_fee is inside customer_total."""

    customer_total: int
    usage_fee: int
    federated_fee: int
    provider: int
    platform: int

    def __sub__(self, before: Earned) -> Earned:
        return Earned(
            customer_total=self.customer_total - before.customer_total,
            usage_fee=self.usage_fee - before.usage_fee,
            federated_fee=self.federated_fee - before.federated_fee,
            provider=self.provider - before.provider,
            platform=self.platform - before.platform,
        )


@dataclass(frozen=True, slots=True)
class Posting:
    """What became due in one lease hour, or in the last part of one, ending at `elapsed_us`."""

    elapsed_us: int
    new: Earned


def member(
    *,
    price_per_gpu_hour: int,
    usage_fees: Mapping[str, int],
    gpu_class: str,
    gpus: int,
    workers: int,
    own: bool,
    federated: str,
    federated_unit: str,
    provider_share_ppm: int,
) -> Member:
    """The terms of one lease member, checked.

    `federated_unit` "worker" counts the federated fee once per worker, "job" once. Raises Refused:
    UNKNOWN_GPU_CLASS, COUNT_OUT_OF_RANGE, SHARE_OUT_OF_RANGE, PRICE_BELOW_USAGE_FEE.
    """
    if gpu_class not in usage_fees:
        raise Refused(PricesReason.UNKNOWN_GPU_CLASS, gpu_class=gpu_class)
    if gpus < 1 or workers < 1:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, gpus=gpus, workers=workers)
    if not 0 <= provider_share_ppm <= PPM:
        raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, provider_share_ppm=provider_share_ppm)
    fee = usage_fees[gpu_class]
    if not own and price_per_gpu_hour < fee:
        raise Refused(PricesReason.PRICE_BELOW_USAGE_FEE, price=price_per_gpu_hour, fee=fee)
    units = {"worker": workers, "job": 1}[federated_unit]
    return Member(
        price_per_gpu_hour=fee if own else price_per_gpu_hour,
        fee_per_gpu_hour=fee,
        gpus=gpus,
        own=own,
        federated_fee_per_hour=FEDERATED_PER_HOUR[federated] * units,
        provider_share_ppm=provider_share_ppm,
    )


def earned_after(terms: Member, elapsed_us: int) -> Earned:
    """Cumulative amounts `elapsed_us` after the lease opened."""
    charge = charge_for(terms.gpus * elapsed_us, terms.price_per_gpu_hour)
    parts = peel(
        charge, terms.price_per_gpu_hour, terms.fee_per_gpu_hour, terms.provider_share_ppm, 0
    )
    federated = fee_for(elapsed_us, terms.federated_fee_per_hour)
    return Earned(
        customer_total=charge,
        usage_fee=parts.fee,
        federated_fee=federated,
        provider=parts.provider,
        platform=charge + federated - parts.provider,
    )


def postings(terms: Member, duration_us: int) -> list[Posting]:
    """One posting per lease hour and one at the end; a duration of k hours has exactly k."""
    made: list[Posting] = []
    before = earned_after(terms, 0)
    for at_us in [*range(GPU_HOUR_US, duration_us, GPU_HOUR_US), duration_us]:
        if at_us == 0:
            break
        now = earned_after(terms, at_us)
        made.append(Posting(at_us, now - before))
        before = now
    return made
