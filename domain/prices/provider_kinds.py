"""Kinds of providers: whose machines, how their regions look, and what a GPU-hour costs there.

    cost of a GPU-hour = usage fee of its class + cost of the kind
    cost of the kind physical < cost of every other kind, at every moment     physical is cheapest

An open registry of dated facts, with two rows that every network knows: machines of one's own, and
Google Cloud. The cost of a kind is what its cheapest GPU-hour costs the owner beside the usage fee:
nothing in one's own rack, the cloud's price in a cloud. No offer asks for less than the cost. Of
rows of the same kind the newest in force counts; a row starts after the notice of the tariff in
force. Source: row C-2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from domain.frozen import replace
from domain.money import Amount, Asset, credit
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.prices.tariff import FEE_UNITS_MAX, tariff_of
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKindRegistered:
    """Stream `provider-kind:network`."""

    kind: str  # open text: "physical", "gcp"
    is_cloud: bool  # its regions are regions of a cloud, each used once
    cost_per_gpu_hour: Amount  # of its cheapest GPU, beside the usage fee
    effective_from_us: int
    by: str
    at_us: int


# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterProviderKind:
    kind: str
    is_cloud: bool
    cost_per_gpu_hour: Amount
    effective_from_us: int
    by: str
    at_us: int


PHYSICAL, GCP = "physical", "gcp"
KINDS_MAX = 1_000
"""Rows that the network registers at most."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


def _seed(kind: str, *, is_cloud: bool, cost_units: int) -> ProviderKindRegistered:
    return ProviderKindRegistered(
        kind=kind,
        is_cloud=is_cloud,
        cost_per_gpu_hour=credit(cost_units),
        effective_from_us=0,
        by="seed",
        at_us=0,
    )


SEED: tuple[ProviderKindRegistered, ...] = (
    _seed(PHYSICAL, is_cloud=False, cost_units=0),
    _seed(GCP, is_cloud=True, cost_units=350_000),
)
"""What every network knows from the start. Google lists a T4, its cheapest GPU, at 0.35 US dollars
an hour on demand; a later row says so when that changes.
"""

# What is remembered.


@dataclass(frozen=True, slots=True)
class ProviderKinds:
    """Every row the network has registered, in order."""

    rows: tuple[ProviderKindRegistered, ...] = ()


NETWORK: Stream[ProviderKinds] = Stream("provider-kind", "network")


def evolve(state: ProviderKinds, fact: ProviderKindRegistered) -> ProviderKinds:
    return ProviderKinds((*state.rows, fact))


def provider_kinds_of(world: World) -> tuple[ProviderKindRegistered, ...]:
    """The seeded rows and those the network registered."""
    return (*SEED, *world.state(NETWORK).rows)


def provider_kind_in_force(world: World, kind: str, at_us: int) -> ProviderKindRegistered | None:
    """What is known of a kind at a moment; None: nothing."""
    known = [row for row in provider_kinds_of(world) if row.effective_from_us <= at_us]
    rows = [row for row in known if row.kind == kind]
    return max(rows, key=lambda row: row.effective_from_us, default=None)


def is_cloud(world: World, kind: str, at_us: int) -> bool:
    """Whether the regions of this kind are regions of a cloud."""
    known = provider_kind_in_force(world, kind, at_us)
    return known is not None and known.is_cloud


def cost_of_kind(world: World, kind: str, at_us: int) -> Amount:
    """What a GPU-hour costs its owner on this kind of provider, beside the usage fee."""
    known = provider_kind_in_force(world, kind, at_us)
    return credit(0) if known is None else known.cost_per_gpu_hour


# How we decide.


def decide_register(command: RegisterProviderKind, world: World) -> list[Change]:
    """Raises Refused: UNKNOWN_MODE, AMOUNT_OUT_OF_RANGE, PROVIDER_KIND_COST, COUNT_OUT_OF_RANGE,
    TARIFF_NOTICE.
    """
    fact = ProviderKindRegistered(
        kind=command.kind,
        is_cloud=command.is_cloud,
        cost_per_gpu_hour=command.cost_per_gpu_hour,
        effective_from_us=command.effective_from_us,
        by=command.by,
        at_us=command.at_us,
    )
    present = provider_kinds_of(world)
    if any(replace(fact, by=row.by, at_us=row.at_us) == row for row in present):
        return []
    if not NAME.fullmatch(fact.kind):
        raise Refused(PartiesReason.UNKNOWN_MODE, kind=fact.kind)
    if any(row.kind == fact.kind and row.is_cloud != fact.is_cloud for row in present):
        # Regions that are open would change what they are.
        raise Refused(PartiesReason.UNKNOWN_MODE, kind=fact.kind, is_cloud=fact.is_cloud)
    _require_cost(fact, present)
    if len(present) >= KINDS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, rows=len(present), at_most=KINDS_MAX)
    published = tariff_of(world).published
    earliest_us = command.at_us + (published[-1].notice_us if published else 0)
    if command.effective_from_us < earliest_us:
        raise Refused(PricesReason.TARIFF_NOTICE, earliest_us=earliest_us)
    return [Change(NETWORK, fact)]


def _require_cost(
    fact: ProviderKindRegistered, present: tuple[ProviderKindRegistered, ...]
) -> None:
    """Whenever rows begin, physical costs less than every other kind: each of its rows does."""
    cost = fact.cost_per_gpu_hour
    if cost.asset is not Asset.CREDIT or not 0 <= cost.units <= FEE_UNITS_MAX:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, row="cost_per_gpu_hour")
    physical = [row.cost_per_gpu_hour.units for row in present if row.kind == PHYSICAL]
    others = [row.cost_per_gpu_hour.units for row in present if row.kind != PHYSICAL]
    if fact.kind == PHYSICAL and cost.units >= min(others):
        raise Refused(PricesReason.PROVIDER_KIND_COST, kind=fact.kind, below=min(others))
    if fact.kind != PHYSICAL and cost.units <= max(physical):
        raise Refused(PricesReason.PROVIDER_KIND_COST, kind=fact.kind, above=max(physical))


STREAMS: dict[str, tuple[Any, Any]] = {"provider-kind": (ProviderKinds(), evolve)}
DECIDERS: dict[type[Any], Any] = {RegisterProviderKind: decide_register}
