"""Kinds of resources: what can be rented at all, as an open registry of dated facts.

    a kind of seats conserves SEAT-ms, every other one GPU-ms          never both, never neither

Vendor, kind and model are open text: a row says what a vendor's devices of a kind are made of, how
they divide and what is conserved. Of rows for the same kind and vendor the newest in force counts.
A device whose kind or model no row knows is listed and not priced (C-19), never guessed. Seeded
with what is common; the network registers more, with the notice of the tariff in force, so nobody
is surprised. Source: design marketplace 8, rows V-4 and K-15.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, assert_never

from domain.frozen import replace
from domain.hardware.classes import REGISTRY, ModelRow, class_of, words_of
from domain.money import Asset
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.prices.tariff import tariff_of
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKindRegistered:
    """Stream `resource-kind:network`."""

    kind: str  # open text: "gpu", "ipu", "seat"
    vendor: str  # open text, lower case
    dimensions: tuple[str, ...]  # DIMENSIONS: what one of them is rented by
    memory: str  # MEMORIES: "unified" is the host's own, not a second one beside it
    is_divisible: bool  # shares of one can be leased, or whole ones only
    capacity_asset: Asset  # what its time is counted in
    effective_from_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelClassed:
    """From a moment on, a maker's models with these words in their name pay this class's fee."""

    vendor: str  # open text, lower case
    model: str
    gpu_class: str  # a row of the tariff, which may be any name
    effective_from_us: int
    by: str
    at_us: int


KindFact = ResourceKindRegistered | ModelClassed

# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterResourceKind:
    kind: str
    vendor: str
    dimensions: tuple[str, ...]
    memory: str
    is_divisible: bool
    capacity_asset: Asset
    effective_from_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassModel:
    vendor: str
    model: str
    gpu_class: str
    effective_from_us: int
    by: str
    at_us: int


GPU, IPU, HPU, SEAT = "gpu", "ipu", "hpu", "seat"
DIMENSIONS = ("compute", "memory", "seats")
MEMORIES = ("dedicated", "unified", "none")
ASSETS = (Asset.GPU_MS, Asset.SEAT_MS)
ROWS_MAX = 1_000
"""Rows of either sort that the network registers at most."""
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}")
MODEL_LENGTH_MAX = 100


def _seed(
    kind: str, vendor: str, *, memory: str = "dedicated", is_divisible: bool = True
) -> ResourceKindRegistered:
    is_seat = kind == SEAT
    return ResourceKindRegistered(
        kind=kind,
        vendor=vendor,
        dimensions=("seats",) if is_seat else ("compute", "memory"),
        memory=memory,
        is_divisible=is_divisible,
        capacity_asset=Asset.SEAT_MS if is_seat else Asset.GPU_MS,
        effective_from_us=0,
        by="seed",
        at_us=0,
    )


SEED: tuple[ResourceKindRegistered, ...] = (
    _seed(GPU, "nvidia"),
    _seed(GPU, "amd"),
    _seed(GPU, "intel"),
    _seed(GPU, "apple", memory="unified"),
    _seed(HPU, "intel", is_divisible=False),
    _seed(IPU, "graphcore", is_divisible=False),
    _seed(SEAT, "thirdai", memory="none", is_divisible=False),
)
"""What every network knows from the start."""

# What is remembered.


@dataclass(frozen=True, slots=True)
class KindState:
    """Every row the network has registered, in order."""

    kinds: tuple[ResourceKindRegistered, ...] = ()
    models: tuple[ModelClassed, ...] = ()


NETWORK: Stream[KindState] = Stream("resource-kind", "network")


def evolve(state: KindState, fact: KindFact) -> KindState:
    match fact:
        case ResourceKindRegistered():
            return replace(state, kinds=(*state.kinds, fact))
        case ModelClassed():
            return replace(state, models=(*state.models, fact))
        case _:
            assert_never(fact)


def kinds_of(world: World) -> KindState:
    return world.state(NETWORK)


def kind_in_force(
    world: World, kind: str | None, vendor: str, at_us: int
) -> ResourceKindRegistered | None:
    """What is known of a vendor's devices of a kind at a moment; None: nothing.

    Without a kind a device is an accelerator with memory of its own, whoever made it: that is what
    every device was before there were kinds.
    """
    wanted = (kind or GPU, vendor.lower())
    rows = (*SEED, *kinds_of(world).kinds)
    known = [row for row in rows if row.effective_from_us <= at_us]
    found = [row for row in known if (row.kind, row.vendor) == wanted]
    return max(found, key=lambda row: row.effective_from_us, default=None)


def seeded_memory(kind: str | None, vendor: str) -> str:
    """Where a vendor's devices of a kind have their memory, as every network knows it."""
    wanted = (kind or GPU, vendor.lower())
    return next((row.memory for row in SEED if (row.kind, row.vendor) == wanted), "dedicated")


def class_in_force(world: World, vendor: str, model: str, at_us: int) -> str | None:
    """The class whose usage fee a maker's model pays; None: no row knows one class for it."""
    rows = tuple(
        ModelRow(row.vendor, words_of(row.model), row.gpu_class, row.effective_from_us)
        for row in kinds_of(world).models
    )
    return class_of(vendor, model, at_us, (*REGISTRY, *rows))


# How we decide.


def decide_register(command: RegisterResourceKind, world: World) -> list[Change]:
    """Raises Refused: UNKNOWN_MODE, COUNT_OUT_OF_RANGE, TARIFF_NOTICE."""
    fact = ResourceKindRegistered(
        kind=command.kind,
        vendor=command.vendor.lower(),
        dimensions=command.dimensions,
        memory=command.memory,
        is_divisible=command.is_divisible,
        capacity_asset=command.capacity_asset,
        effective_from_us=command.effective_from_us,
        by=command.by,
        at_us=command.at_us,
    )
    present = kinds_of(world).kinds
    if any(replace(fact, by=row.by, at_us=row.at_us) == row for row in present):
        return []
    _require_shape(fact)
    _require_room(len(present))
    _require_notice(world, command.effective_from_us, command.at_us)
    return [Change(NETWORK, fact)]


def decide_class(command: ClassModel, world: World) -> list[Change]:
    """Raises Refused: UNKNOWN_MODE, COUNT_OUT_OF_RANGE, TARIFF_NOTICE."""
    fact = ModelClassed(
        vendor=command.vendor.lower(),
        model=command.model,
        gpu_class=command.gpu_class,
        effective_from_us=command.effective_from_us,
        by=command.by,
        at_us=command.at_us,
    )
    present = kinds_of(world).models
    if any(replace(fact, by=row.by, at_us=row.at_us) == row for row in present):
        return []
    if not words_of(command.model) or len(command.model) > MODEL_LENGTH_MAX:
        raise Refused(PartiesReason.UNKNOWN_MODE, model=command.model[:MODEL_LENGTH_MAX])
    if not NAME.fullmatch(fact.gpu_class) or not NAME.fullmatch(fact.vendor):
        raise Refused(PartiesReason.UNKNOWN_MODE, gpu_class=fact.gpu_class, vendor=fact.vendor)
    _require_room(len(present))
    _require_notice(world, command.effective_from_us, command.at_us)
    return [Change(NETWORK, fact)]


def _require_shape(fact: ResourceKindRegistered) -> None:
    """Seats are counted in SEAT-ms and have no memory of their own; nothing else has seats."""
    if not NAME.fullmatch(fact.kind) or not NAME.fullmatch(fact.vendor):
        raise Refused(PartiesReason.UNKNOWN_MODE, kind=fact.kind, vendor=fact.vendor)
    dimensions = set(fact.dimensions)
    if not dimensions or not dimensions <= set(DIMENSIONS) or fact.memory not in MEMORIES:
        raise Refused(PartiesReason.UNKNOWN_MODE, dimensions=fact.dimensions, memory=fact.memory)
    has_seats = "seats" in dimensions
    is_seat_time = fact.capacity_asset is Asset.SEAT_MS
    if fact.capacity_asset not in ASSETS or has_seats != is_seat_time:
        raise Refused(PartiesReason.UNKNOWN_MODE, capacity_asset=fact.capacity_asset.value)
    if (fact.memory == "none") == ("memory" in dimensions):
        raise Refused(PartiesReason.UNKNOWN_MODE, dimensions=fact.dimensions, memory=fact.memory)


def _require_room(count: int) -> None:
    if count >= ROWS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, rows=count, at_most=ROWS_MAX)


def _require_notice(world: World, effective_from_us: int, at_us: int) -> None:
    """A row never starts in the past, and not before the notice of the tariff in force."""
    published = tariff_of(world).published
    notice_us = published[-1].notice_us if published else 0
    if effective_from_us < at_us + notice_us:
        raise Refused(PricesReason.TARIFF_NOTICE, earliest_us=at_us + notice_us)


STREAMS: dict[str, tuple[Any, Any]] = {"resource-kind": (KindState(), evolve)}
DECIDERS: dict[type[Any], Any] = {RegisterResourceKind: decide_register, ClassModel: decide_class}
