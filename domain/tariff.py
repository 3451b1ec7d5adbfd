"""Tariffs: what using an accelerator costs beside its price, as dated versions that never change.

A lease keeps the tariff it was opened under. The charge is peeled, never floored side by side:

    fee = floor(charge x fee_rate / price);  provider = floor((charge - fee) x share / 10^6)
    platform = charge - fee - provider        so the parts always sum to the charge, to the unit
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from domain.money import PPM, Amount, Asset, credit
from domain.refusal import Reason, Refused
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True)
class UsageFee:
    """The usage fee of one accelerator class."""

    gpu_class: str
    per_gpu_hour: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class TariffPublished:
    """Stream `tariff:network`; versions count from 1."""

    version: int
    usage_fees: tuple[UsageFee, ...]
    provider_share_ppm: int
    burn_share_ppm: int  # of what the provider does not get; collected in network:burn_due
    effective_from_us: int
    by: str
    at_us: int


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


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a tariff without version and date: a preset."""

    usage_fees: tuple[UsageFee, ...]
    provider_share_ppm: int
    burn_share_ppm: int


CLOUDBENDER = Terms(
    usage_fees=(
        UsageFee("development", credit(50_000)),
        UsageFee("professional", credit(100_000)),
        UsageFee("datacenter", credit(250_000)),
    ),
    provider_share_ppm=500_000,
    burn_share_ppm=0,
)
"""The CloudBender preset: 0.05, 0.10 and 0.25 credits per GPU-hour, the rest shared in halves."""


def publish(
    terms: Terms, *, version: int, effective_from_us: int, by: str, at_us: int
) -> PublishTariff:
    """The command that publishes a preset."""
    return PublishTariff(
        version=version,
        usage_fees=terms.usage_fees,
        provider_share_ppm=terms.provider_share_ppm,
        burn_share_ppm=terms.burn_share_ppm,
        effective_from_us=effective_from_us,
        by=by,
        at_us=at_us,
    )


FEE_UNITS_MAX = 10**12
"""No fee above what a price can be: a million credits per GPU-hour."""

# What we remember.


@dataclass(frozen=True, slots=True)
class TariffState:
    """Every version, in order: version n is `published[n - 1]`."""

    published: tuple[TariffPublished, ...] = ()


NETWORK = Stream("tariff", "network")


def evolve_tariff(state: TariffState, fact: TariffPublished) -> TariffState:
    return TariffState((*state.published, fact))


def tariff_of(world: World) -> TariffState:
    state = world.state(NETWORK)
    assert isinstance(state, TariffState)
    return state


def tariff_in_force(world: World, at_us: int) -> TariffPublished:
    """The newest version in force at that moment. Raises Refused: TARIFF_UNKNOWN."""
    for tariff in reversed(tariff_of(world).published):
        if tariff.effective_from_us <= at_us:
            return tariff
    raise Refused(Reason.TARIFF_UNKNOWN, at_us=at_us)


def usage_fee(tariff: TariffPublished | Terms, gpu_class: str | None) -> Amount:
    """The usage fee per GPU-hour of a class. Raises Refused: GPU_CLASS_UNPRICED."""
    for row in tariff.usage_fees:
        if row.gpu_class == gpu_class:
            return row.per_gpu_hour
    raise Refused(Reason.GPU_CLASS_UNPRICED, gpu_class=gpu_class)


# How we decide.


def decide_publish(command: PublishTariff, world: World) -> list[Change]:
    """Raises Refused: TARIFF_VERSION, SHARE_OUT_OF_RANGE, DUPLICATE_ID, AMOUNT_OUT_OF_RANGE."""
    fact = TariffPublished(
        version=command.version,
        usage_fees=command.usage_fees,
        provider_share_ppm=command.provider_share_ppm,
        burn_share_ppm=command.burn_share_ppm,
        effective_from_us=command.effective_from_us,
        by=command.by,
        at_us=command.at_us,
    )
    published = tariff_of(world).published
    if 1 <= fact.version <= len(published) and _same(published[fact.version - 1], fact):
        return []
    _check_order(fact, published)
    _check_terms(fact)
    return [Change(NETWORK, fact)]


def _same(one: TariffPublished, other: TariffPublished) -> bool:
    return replace(one, by="", at_us=0) == replace(other, by="", at_us=0)


def _check_order(fact: TariffPublished, published: tuple[TariffPublished, ...]) -> None:
    if fact.version != len(published) + 1:
        raise Refused(Reason.TARIFF_VERSION, version=fact.version, expected=len(published) + 1)
    if not published:
        return
    # Later versions start later and never in the past: what was in force then stays true.
    earliest = max(fact.at_us, published[-1].effective_from_us)
    if fact.effective_from_us < earliest:
        raise Refused(Reason.TARIFF_VERSION, effective_from_us=fact.effective_from_us)


def _check_terms(fact: TariffPublished) -> None:
    for share_ppm in (fact.provider_share_ppm, fact.burn_share_ppm):
        if not 0 <= share_ppm <= PPM:
            raise Refused(Reason.SHARE_OUT_OF_RANGE, share_ppm=share_ppm)
    if len({row.gpu_class for row in fact.usage_fees}) != len(fact.usage_fees):
        raise Refused(Reason.DUPLICATE_ID)
    for row in fact.usage_fees:
        fee = row.per_gpu_hour
        if fee.asset is not Asset.CREDIT or not 0 <= fee.units <= FEE_UNITS_MAX:
            raise Refused(Reason.AMOUNT_OUT_OF_RANGE, gpu_class=row.gpu_class)


STREAMS: dict[str, tuple[Any, Any]] = {"tariff": (TariffState(), evolve_tariff)}
DECIDERS: dict[type[Any], Any] = {PublishTariff: decide_publish}
