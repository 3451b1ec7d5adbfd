"""Tariffs: everything that costs beside a GPU's price, as dated versions that never change.

    effective_from >= published at + notice of the version before       nobody is surprised
    shares of a split + its residual == 1,000,000                        every unit has an owner

A lease keeps the version it was reserved under, whatever is published later. How a charge is split
is in `domain/prices/charge_split.py`; here are only the numbers. Rows absent from a version cost
nothing. Source: design economics 3; rows C-20 to C-22, C-30, R-15, J-6, V-6.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from domain.frozen import replace
from domain.money import PPM, Amount, Asset, Big, MoneyReason, credit
from domain.parties.reasons import PartiesReason
from domain.prices import profit_bound
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True)
class UsageFee:
    """The usage fee of one accelerator class."""

    gpu_class: str
    per_gpu_hour: Amount


@dataclass(frozen=True, slots=True)
class SplitShare:
    """One bucket's part of what remains of a charge after the usage fee."""

    bucket: str  # "provider", "client", "platform" or "burn"
    share_ppm: int


@dataclass(frozen=True, slots=True)
class Split:
    """Who gets what remains after the usage fee, peeled in this order; `residual` gets the rest."""

    shares: tuple[SplitShare, ...]
    residual: str


@dataclass(frozen=True, slots=True)
class FederatedFees:
    """Fees per hour of jobs across projects, whatever the number of accelerators (C-21)."""

    inference_per_hour: Amount
    training_per_hour: Amount
    unit: str  # "worker": once per worker; "job": once per job


@dataclass(frozen=True, slots=True)
class MeterRate:
    """The price of another resource: floor(cumulative quantity x price / per) micro-credits."""

    meter: str  # PRICED
    price: Amount
    per: Big  # so many of the meter's own units cost `price`


@dataclass(frozen=True, slots=True)
class SlaTier:
    """Below this availability of the lease, this part of its charge comes back."""

    below_ppm: int
    credit_ppm: int


@dataclass(frozen=True, slots=True)
class SlaClass:
    """A promise of availability: tiers from the mildest breach to the worst."""

    name: str
    tiers: tuple[SlaTier, ...]


@dataclass(frozen=True, slots=True)
class FreeStart:
    """What of a start is free (`domain/lease/free_start.py`): so long at most, and nothing once an
    account has had so many failed starts in an hour.
    """

    at_most_us: int
    failed_per_hour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TariffPublished:
    """Stream `tariff:network`; versions count from 1. Without `split`: the provider's share, then
    the burn's share of what is left, and the platform owns the rest.
    """

    version: int
    usage_fees: tuple[UsageFee, ...]
    provider_share_ppm: int
    burn_share_ppm: int  # of what the provider does not get; collected in network:burn_due
    effective_from_us: int
    by: str
    at_us: int
    split: Split | None
    federated: FederatedFees | None
    device_fee_per_month: Amount | None  # edge devices, by the UTC day (C-22)
    storage_node_per_hour: Amount | None  # C-30
    meters: tuple[MeterRate, ...]
    sla: tuple[SlaClass, ...]
    notice_us: int  # how long before its start the next version is published
    free_start: FreeStart | None  # None: all time before a program's start succeeded is free


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishTariff:
    """A next version; it never touches a lease that is already reserved."""

    version: int
    usage_fees: tuple[UsageFee, ...]
    provider_share_ppm: int
    burn_share_ppm: int
    effective_from_us: int
    by: str
    at_us: int
    split: Split | None = None
    federated: FederatedFees | None = None
    device_fee_per_month: Amount | None = None
    storage_node_per_hour: Amount | None = None
    meters: tuple[MeterRate, ...] = ()
    sla: tuple[SlaClass, ...] = ()
    notice_us: int = 0
    free_start: FreeStart | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a tariff without version and date: a preset."""

    usage_fees: tuple[UsageFee, ...]
    provider_share_ppm: int
    burn_share_ppm: int
    split: Split | None = None
    federated: FederatedFees | None = None
    device_fee_per_month: Amount | None = None
    storage_node_per_hour: Amount | None = None
    meters: tuple[MeterRate, ...] = ()
    sla: tuple[SlaClass, ...] = ()
    notice_us: int = 0
    free_start: FreeStart | None = None


@dataclass(frozen=True, slots=True)
class MeterMax:
    """The most that a renter pays for one resource of one lease; what is not named is not paid."""

    meter: str
    amount: Amount


METERS = {"cpu": "core-second", "memory": "GB-second", "storage": "GB-second", "network": "byte"}
"""What a meter of a lease counts."""
VOLUME = "volume"
PRICED = {**METERS, VOLUME: "GB-second"}
"""What a tariff has a price for: meters of leases, and volumes, which no lease owns."""

CLOUDBENDER = Terms(
    usage_fees=(
        UsageFee("development", credit(50_000)),
        UsageFee("professional", credit(100_000)),
        UsageFee("datacenter", credit(250_000)),
    ),
    provider_share_ppm=500_000,
    burn_share_ppm=0,
    federated=FederatedFees(credit(1_850_000), credit(2_650_000), "worker"),
    device_fee_per_month=credit(15_000_000),
    storage_node_per_hour=credit(100_000),
)
"""The CloudBender preset: 0.05, 0.10 and 0.25 credits per GPU-hour, the rest shared in halves;
federated inference 1.85 and training 2.65 an hour and worker; 15 a month and device. Its source
names no price of a storage node: 0.10 an hour is ours.
"""

_MONTH_S = 30 * 86_400
RESOURCES = (
    MeterRate("cpu", credit(10_000), 3_600),
    MeterRate("memory", credit(2_000), 3_600),
    MeterRate("storage", credit(100_000), _MONTH_S),
    MeterRate("network", credit(10_000), 10**9),
    MeterRate(VOLUME, credit(100_000), _MONTH_S),
)
"""Credits for what is beside a GPU: 0.01 for a core and 0.002 for a GB of memory by the hour, 0.10
for a GB on a disk or a volume by 30 days, 0.01 for a GB that is moved. Our own numbers: the
published regimes name none.
"""
FREE_START = FreeStart(at_most_us=60_000_000, failed_per_hour=2)
"""A minute is free, until two starts of an account have failed in an hour. Of a new market, too."""
MARKETPLACE = replace(
    CLOUDBENDER,
    meters=RESOURCES,
    free_start=FREE_START,
    sla=(
        SlaClass("standard", (SlaTier(990_000, 100_000), SlaTier(950_000, 300_000))),
        SlaClass("assured", (SlaTier(999_000, 100_000), SlaTier(990_000, 300_000))),
    ),
)
"""The CloudBender preset with a price for everything else, in numbers of our own: RESOURCES, and a
tenth of the charge comes back below 99 % (99.9 % in the class `assured`), three tenths below 95 %
(99 %).
"""


def _burning(usage_fees: tuple[UsageFee, ...], platform_ppm: int, provider_ppm: int) -> Terms:
    shares = (SplitShare("platform", platform_ppm), SplitShare("provider", provider_ppm))
    split = Split(tuple(share for share in shares if share.share_ppm), "burn")
    return Terms(usage_fees, provider_ppm, 0, split)


_FREE = tuple(UsageFee(row.gpu_class, credit(0)) for row in CLOUDBENDER.usage_fees)
HOME = replace(
    CLOUDBENDER, usage_fees=(*CLOUDBENDER.usage_fees, UsageFee("unified", credit(20_000)))
)
"""The same for machines at home, with a fee for GPUs that share the host's memory (K-15)."""
PRESETS = {
    "cloudbender": CLOUDBENDER,
    "home": HOME,
    "marketplace": MARKETPLACE,
    "rnp_006": _burning(_FREE, 50_000, 0),
    "rnp_023_sce": _burning(_FREE, 50_000, 350_000),
    "rnp_023_sgs": _burning(_FREE, 50_000, 600_000),
}
"""Published regimes, so that each of them can be replayed (design economics 3)."""


def publish(
    terms: Terms, *, version: int, effective_from_us: int, by: str, at_us: int
) -> PublishTariff:
    """The command that publishes a preset."""
    return PublishTariff(
        version=version,
        effective_from_us=effective_from_us,
        by=by,
        at_us=at_us,
        **{row.name: getattr(terms, row.name) for row in fields(Terms)},
    )


FREE_START_US_MAX = 600_000_000
"""No more of a start is free than a node has to be ready."""
FAILED_STARTS_MAX = 100
NOTICE_US_MAX = 366 * 86_400_000_000
ROWS_MAX = 32
"""Rows of any one kind in a tariff."""
PER_MAX = 10**18
BUCKETS = ("provider", "client", "platform", "burn")
FEDERATED_UNITS = ("worker", "job")
FEE_UNITS_MAX = 10**12
"""No fee above what a price can be: a million credits per GPU-hour."""

# What we remember.


@dataclass(frozen=True, slots=True)
class TariffState:
    """Every version, in order: version n is `published[n - 1]`."""

    published: tuple[TariffPublished, ...] = ()


NETWORK: Stream[TariffState] = Stream("tariff", "network")


def evolve_tariff(state: TariffState, fact: TariffPublished) -> TariffState:
    return TariffState((*state.published, fact))


def tariff_of(world: World) -> TariffState:
    return world.state(NETWORK)


def tariff_in_force(world: World, at_us: int) -> TariffPublished:
    """The newest version in force at that moment. Raises Refused: TARIFF_UNKNOWN."""
    for tariff in reversed(tariff_of(world).published):
        if tariff.effective_from_us <= at_us:
            return tariff
    raise Refused(PricesReason.TARIFF_UNKNOWN, at_us=at_us)


def tariffs_from(world: World, at_us: int) -> tuple[TariffPublished, ...]:
    """The version in force at that moment and every later one."""
    published = tariff_of(world).published
    started = [one.version for one in published if one.effective_from_us <= at_us]
    return published[max(started, default=1) - 1 :]


def tariff_version(world: World, version: int) -> TariffPublished:
    """A version by its number. Raises Refused: TARIFF_UNKNOWN when there is none."""
    published = tariff_of(world).published
    if not 1 <= version <= len(published):
        raise Refused(PricesReason.TARIFF_UNKNOWN, version=version)
    return published[version - 1]


def meter_rate(tariff: TariffPublished, meter: str) -> MeterRate | None:
    """The price of another resource; None: it costs nothing under this version."""
    return next((row for row in tariff.meters if row.meter == meter), None)


def sla_class(tariff: TariffPublished, name: str) -> SlaClass:
    """The promise of a class. Raises Refused: SLA_CLASS_UNKNOWN."""
    for row in tariff.sla:
        if row.name == name:
            return row
    raise Refused(PricesReason.SLA_CLASS_UNKNOWN, sla_class=name)


def usage_fee(tariff: TariffPublished | Terms, gpu_class: str | None) -> Amount:
    """The usage fee per GPU-hour of a class. Raises Refused: GPU_CLASS_UNPRICED."""
    for row in tariff.usage_fees:
        if row.gpu_class == gpu_class:
            return row.per_gpu_hour
    raise Refused(PricesReason.GPU_CLASS_UNPRICED, gpu_class=gpu_class)


# How we decide.


def decide_publish(command: PublishTariff, world: World) -> list[Change]:
    """Raises Refused: TARIFF_VERSION, TARIFF_NOTICE, SHARE_OUT_OF_RANGE, DUPLICATE_ID,
    AMOUNT_OUT_OF_RANGE, COUNT_OUT_OF_RANGE, UNKNOWN_MODE, PROFIT_BOUND.
    """
    fact = TariffPublished(**{row.name: getattr(command, row.name) for row in fields(command)})
    published = tariff_of(world).published
    if 1 <= fact.version <= len(published) and _same(published[fact.version - 1], fact):
        return []
    _check_order(fact, published)
    _check_fees(fact)
    _check_split(fact)
    _check_meters(fact.meters)
    _check_sla(fact.sla)
    _check_free_start(fact.free_start)
    profit_bound.require_tariff(fact, world)
    return [Change(NETWORK, fact)]


def _same(one: TariffPublished, other: TariffPublished) -> bool:
    return replace(one, by="", at_us=0) == replace(other, by="", at_us=0)


def _check_order(fact: TariffPublished, published: tuple[TariffPublished, ...]) -> None:
    if fact.version != len(published) + 1:
        raise Refused(
            PricesReason.TARIFF_VERSION, version=fact.version, expected=len(published) + 1
        )
    if not 0 <= fact.notice_us <= NOTICE_US_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field="notice_us", at_most=NOTICE_US_MAX)
    if not published:
        return
    # Later versions start later and never in the past: what was in force then stays true.
    earliest = max(fact.at_us, published[-1].effective_from_us)
    if fact.effective_from_us < earliest:
        raise Refused(PricesReason.TARIFF_VERSION, effective_from_us=fact.effective_from_us)
    earliest = fact.at_us + published[-1].notice_us
    if fact.effective_from_us < earliest:
        raise Refused(PricesReason.TARIFF_NOTICE, earliest_us=earliest)


def _check_fees(fact: TariffPublished) -> None:
    _require_distinct([row.gpu_class for row in fact.usage_fees], "usage_fees")
    fees = [(row.gpu_class, row.per_gpu_hour) for row in fact.usage_fees]
    if fact.federated is not None:
        fees.append(("federated.inference", fact.federated.inference_per_hour))
        fees.append(("federated.training", fact.federated.training_per_hour))
        if fact.federated.unit not in FEDERATED_UNITS:
            raise Refused(
                PartiesReason.UNKNOWN_MODE,
                federated_unit=fact.federated.unit,
                allowed=FEDERATED_UNITS,
            )
    fixed = (
        ("device_fee_per_month", fact.device_fee_per_month),
        ("storage_node_per_hour", fact.storage_node_per_hour),
    )
    fees += [(row, fee) for row, fee in fixed if fee is not None]
    fees += [(row.meter, row.price) for row in fact.meters]
    for row, fee in fees:
        if fee.asset is not Asset.CREDIT or not 0 <= fee.units <= FEE_UNITS_MAX:
            raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, row=row)


def _check_split(fact: TariffPublished) -> None:
    for share_ppm in (fact.provider_share_ppm, fact.burn_share_ppm):
        if not 0 <= share_ppm <= PPM:
            raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, share_ppm=share_ppm)
    if fact.split is None:
        return
    shares = {row.bucket: row.share_ppm for row in fact.split.shares}
    _require_distinct([*(row.bucket for row in fact.split.shares), fact.split.residual], "split")
    if not {*shares, fact.split.residual} <= set(BUCKETS):
        raise Refused(
            PartiesReason.UNKNOWN_MODE,
            buckets=",".join(shares),
            residual=fact.split.residual,
            allowed=BUCKETS,
        )
    rest_ppm = PPM - sum(shares.values())
    if min(shares.values(), default=0) < 0 or rest_ppm < 0:
        raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, sum_ppm=PPM - rest_ppm)
    # The plain numbers tell no other story than the split that holds.
    provider_ppm = {**shares, fact.split.residual: rest_ppm}.get("provider", 0)
    if (fact.provider_share_ppm, fact.burn_share_ppm) != (provider_ppm, 0):
        raise Refused(
            PartiesReason.SHARE_OUT_OF_RANGE, provider_share_ppm=provider_ppm, burn_share_ppm=0
        )


def _check_free_start(row: FreeStart | None) -> None:
    if row is None:
        return
    bounds = {"at_most_us": FREE_START_US_MAX, "failed_per_hour": FAILED_STARTS_MAX}
    for name, most in bounds.items():
        if not 0 <= getattr(row, name) <= most:
            raise Refused(
                PartiesReason.COUNT_OUT_OF_RANGE, field=f"free_start.{name}", at_most=most
            )


def _check_meters(rows: tuple[MeterRate, ...]) -> None:
    _require_distinct([row.meter for row in rows], "meters")
    for row in rows:
        if row.meter not in PRICED:
            raise Refused(PartiesReason.UNKNOWN_MODE, meter=row.meter)
        if not 1 <= row.per <= PER_MAX:
            raise Refused(
                PartiesReason.COUNT_OUT_OF_RANGE, meter=row.meter, per=row.per, most=PER_MAX
            )


def _check_sla(rows: tuple[SlaClass, ...]) -> None:
    """A worse breach never earns less: availability falls from tier to tier, the credit rises."""
    _require_distinct([row.name for row in rows], "sla")
    for row in rows:
        below = [tier.below_ppm for tier in row.tiers]
        credits_ppm = [tier.credit_ppm for tier in row.tiers]
        is_ordered = below == sorted(set(below), reverse=True) and credits_ppm == sorted(
            set(credits_ppm)
        )
        if not 1 <= len(row.tiers) <= ROWS_MAX or not is_ordered:
            raise Refused(
                PartiesReason.COUNT_OUT_OF_RANGE, sla_class=row.name, tiers=len(row.tiers)
            )
        if not all(1 <= ppm <= PPM for ppm in (*below, *credits_ppm)):
            raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, sla_class=row.name)


def _require_distinct(names: list[str], rows: str) -> None:
    if len(names) > ROWS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, rows=rows, at_most=ROWS_MAX)
    if len(set(names)) != len(names):
        raise Refused(MoneyReason.DUPLICATE_ID, rows=rows)


STREAMS: dict[str, tuple[Any, Any]] = {"tariff": (TariffState(), evolve_tariff)}
DECIDERS: dict[type[Any], Any] = {PublishTariff: decide_publish}
