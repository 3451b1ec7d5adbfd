"""What a renter demands of a node and what a provider promises, as they are asked and told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from api.door.models import RegionId
from domain.hardware import constraints as domain
from domain.hardware.constraints import Constraints, RequiredAttribute, Weights
from domain.market.offer import OfferTerms
from domain.money import PPM

_HOUR, _LONGEST = (bound // 1_000_000 for bound in domain.RECLAIM_WINDOW_US)

Word = Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z_.+:@/ -]{0,99}$")]
Words = Annotated[list[Word], Field(min_length=1, max_length=domain.WORDS_MAX)]
Quantity = Annotated[int, Field(ge=1, le=domain.QUANTITY_MAX)]
PpmOrZero = Annotated[int, Field(ge=0, le=PPM)]
Tier = Annotated[int, Field(ge=0, le=domain.SECURITY_TIER_MAX)]
Window = Annotated[
    int, Field(ge=_HOUR, le=_LONGEST, description="Notice before a reclaim takes effect")
]
Mode = Literal["whole", "mig", "mps", "time_slice", "memory"]
MigStart = Annotated[int, Field(ge=0, le=7, description="Memory slice where the instance begins")]
Isolation = Literal["process", "container", "vm", "machine"]
Setting = Literal["edge", "datacenter"]
CapacityClass = Literal["on_demand", "preemptible", "committed"]
NetworkClass = Literal["internet", "local", "switched"]
Kernel = Annotated[
    str,
    Field(pattern=r"^[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?$", description="Like 5.10: at least"),
]


class _Form(BaseModel):
    """Asked and told alike; what is absent is left out."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RequiredAttributeForm(_Form):
    """`value` absent: any. `signers`: one of these must have signed it; absent: any signer."""

    name: Word
    value: Word | None = None
    signers: Annotated[list[Word], Field(min_length=1, max_length=domain.SIGNERS_MAX)] | None = None


class MatchWeightsForm(_Form):
    """In ppm; together exactly 1,000,000."""

    spec_fit: PpmOrZero = 0
    reputation: PpmOrZero = 0
    locality: PpmOrZero = 0
    free_peers: PpmOrZero = 0
    storage: PpmOrZero = 0
    price: PpmOrZero = 0


class NodeDemandsForm(_Form):
    """What a node must be and have; every field is one dimension of the match, absent: anything.

    `memory_mib`: what the lease gets on each device. `isolation`: this level or a stronger one.
    `regions`: only there; `near_region` only ranks. `accept_provisional`: nodes without a
    reputation yet; absent: yes, unless `min_reputation_ppm` is given. Your own nodes are exempt
    from reputation. `network_class`: this one or a better one. `substrate`: what the node runs on,
    like bare_metal, esxi or kubernetes. `capacity_classes`: absent, on demand and committed, and
    for an interruptible lease preemptible too. `rank`: lowest_cost, or best_score with `weights`.
    """

    kinds: Words | None = None
    vendors: Words | None = None
    mode: Mode | None = None
    mig_profile: Word | None = None
    memory_mib: Quantity | None = None
    isolation: Isolation | None = None
    cpu_cores: Quantity | None = None
    ram_mib: Quantity | None = None
    storage_gib: Quantity | None = None
    network_mbps: Quantity | None = None
    arch: Word | None = None
    os: Word | None = None
    capabilities: Words | None = None
    setting: Setting | None = None
    workload_class: Word | None = None
    security_tier: Tier | None = None
    min_reputation_ppm: PpmOrZero | None = None
    accept_provisional: bool | None = None
    regions: Annotated[list[RegionId], Field(min_length=1, max_length=32)] | None = None
    near_region: RegionId | None = None
    attributes: (
        Annotated[
            list[RequiredAttributeForm], Field(min_length=1, max_length=domain.ATTRIBUTES_MAX)
        ]
        | None
    ) = None
    pool_id: Word | None = None
    reclaim_window_seconds: Window | None = None
    interruptible: bool | None = None
    rank: Literal["lowest_cost", "best_score"] | None = None
    weights: MatchWeightsForm | None = None
    min_kernel: Kernel | None = None
    network_class: NetworkClass | None = None
    substrate: Word | None = None
    capacity_classes: Annotated[list[CapacityClass], Field(min_length=1, max_length=3)] | None = (
        None
    )

    def constraints(self) -> Constraints:
        """As the domain knows them."""
        told = self.model_dump(exclude={"reclaim_window_seconds", "attributes", "weights"})
        lists = {name: tuple(value) for name, value in told.items() if isinstance(value, list)}
        return Constraints(
            **{**told, **lists},
            attributes=None if self.attributes is None else tuple(map(_attribute, self.attributes)),
            reclaim_window_us=_to_us(self.reclaim_window_seconds),
            weights=None if self.weights is None else Weights(**self.weights.model_dump()),
        )


class OfferPromisesForm(_Form):
    """What else an offer promises. `modes` absent: what its devices can do; `sla_class` absent:
    whatever the tariff has; `reclaim_window_seconds` absent: it may be closed without notice.
    """

    modes: Annotated[list[Mode], Field(min_length=1, max_length=5)] | None = None
    isolation: Isolation | None = None
    capabilities: Words | None = None
    reclaim_window_seconds: Window | None = None
    sla_class: Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,32}$")] | None = None
    interruptible: bool | None = None
    security_tier: Tier | None = None
    storage_gib: Quantity | None = None
    network_mbps: Quantity | None = None
    min_renter_ppm: PpmOrZero | None = None
    network_class: NetworkClass | None = None

    @model_validator(mode="after")
    def _once(self) -> OfferPromisesForm:
        for name in ("modes", "capabilities"):
            value = getattr(self, name)
            if value is not None and len(set(value)) != len(value):
                raise ValueError(f"{name}: each of them once")
        return self

    def terms(self) -> OfferTerms:
        """As the domain knows them."""
        told = self.model_dump(exclude={"reclaim_window_seconds"})
        lists = {name: tuple(value) for name, value in told.items() if isinstance(value, list)}
        return OfferTerms(
            **{**told, **lists}, reclaim_window_us=_to_us(self.reclaim_window_seconds)
        )


def demands_told(stored: dict[str, Any] | None) -> NodeDemandsForm | None:
    """From a projection's JSON, which is the fact's own."""
    if stored is None:
        return None
    # What a job is attached to pins it: told with what it is attached to, not as a demand.
    asked = {name: value for name, value in stored.items() if name != "pinned_region"}
    return NodeDemandsForm(**_seconds(asked))


def promises_told(stored: dict[str, Any] | None) -> OfferPromisesForm | None:
    return None if stored is None else OfferPromisesForm(**_seconds(stored))


def _seconds(stored: dict[str, Any]) -> dict[str, Any]:
    """A window that is no whole second was not asked for here; it is told as what it holds at
    least.
    """
    told = dict(stored)
    window_us = told.pop("reclaim_window_us", None)
    if window_us is not None:
        told["reclaim_window_seconds"] = window_us // 1_000_000
    return told


def _attribute(asked: RequiredAttributeForm) -> RequiredAttribute:
    signers = None if asked.signers is None else tuple(asked.signers)
    return RequiredAttribute(asked.name, asked.value, signers)


def _to_us(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * 1_000_000
