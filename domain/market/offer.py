"""Offers: what a provider rents out, at which price.

A price below the usage fee of the device's class is refused: the provider's part could not be
paid. A later price touches no open lease, because a lease locks its price.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, assert_never

from domain.cloud.reasons import CloudReason
from domain.fleet.device import device_of
from domain.fleet.node import NodeState, existing_node
from domain.fleet.provider import existing_provider
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.funds.reasons import FundsReason
from domain.hardware.constraints import (
    ISOLATIONS,
    PREEMPTIBLE,
    QUANTITY_MAX,
    RECLAIM_WINDOW_US,
    SECURITY_TIER_MAX,
    Rule,
    anything,
    between,
    each_of,
    one_of,
    require_field,
    word,
    words,
)
from domain.hardware.host_kind import NETWORK_CLASSES
from domain.hardware.sharing import SHARING_MODES, WHOLE
from domain.market.reasons import MarketReason
from domain.money import PPM, Amount, Asset
from domain.parties.reasons import PartiesReason
from domain.prices.provider_kinds import cost_of_kind
from domain.prices.reasons import PricesReason
from domain.prices.tariff import tariff_in_force, usage_fee
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferTerms:
    """What else the provider promises about the node. Absent: nothing is promised, and of
    `sla_class` whatever the tariff promises; of `modes` what the device can do.
    """

    modes: tuple[str, ...] | None = None  # of sharing, no other
    isolation: str | None = None  # of tenants from each other; absent: "process"
    capabilities: tuple[str, ...] | None = None  # "docker", "cudnn", "pytorch", "kubernetes", ...
    reclaim_window_us: int | None = None  # notice before the provider closes; absent: none
    sla_class: str | None = None  # the best that its leases can have
    interruptible: bool | None = None  # also takes leases that may be paused
    security_tier: int | None = None
    storage_gib: int | None = None
    network_mbps: int | None = None
    min_renter_ppm: int | None = None  # the least reputation of a renter
    network_class: str | None = None  # how the node is reached; absent: over the internet


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPublished:
    """Stream `offer:{offer_id}`. One offer covers the devices of one node."""

    offer_id: str
    provider_id: str
    node_id: str
    price_per_gpu_hour: Amount
    pay_with: str  # "cash": provider and platform share it; "burn": retired at use, paid in TOKEN
    fractions: bool  # shares of a device, or whole devices only
    available_until_us: int | None
    at_us: int
    terms: OfferTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferWithdrawn:
    offer_id: str
    by: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOffer:
    offer_id: str
    provider_id: str
    node_id: str
    price_per_gpu_hour: Amount
    pay_with: str
    fractions: bool
    available_until_us: int | None
    at_us: int
    terms: OfferTerms | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawOffer:
    offer_id: str
    by: str
    at_us: int


SETTLEMENTS = ("cash", "burn")

PRICE_UNITS_MAX = 10**12
"""A million credits per GPU-hour."""

_TERMS: dict[str, Rule] = {
    "modes": each_of(SHARING_MODES),
    "isolation": one_of(ISOLATIONS),
    "capabilities": words(),
    "reclaim_window_us": between(*RECLAIM_WINDOW_US),
    "sla_class": word,
    "interruptible": anything,
    "security_tier": between(0, SECURITY_TIER_MAX),
    "storage_gib": between(1, QUANTITY_MAX),
    "network_mbps": between(1, QUANTITY_MAX),
    "min_renter_ppm": between(0, PPM),
    "network_class": one_of(NETWORK_CLASSES),
}
assert set(_TERMS) == {field.name for field in fields(OfferTerms)}

# State.


@dataclass(frozen=True, slots=True)
class OfferState:
    published: OfferPublished | None = None
    is_withdrawn: bool = False

    @property
    def exists(self) -> bool:
        return self.published is not None

    @property
    def is_open(self) -> bool:
        """Whether new leases may be taken from it, as far as `available_until_us` allows."""
        return self.exists and not self.is_withdrawn


def evolve(state: OfferState, fact: OfferPublished | OfferWithdrawn) -> OfferState:
    match fact:
        case OfferPublished():
            return OfferState(fact)
        case OfferWithdrawn():
            return replace(state, is_withdrawn=True)
        case _:
            assert_never(fact)


# Decisions.


def offer_stream(offer_id: str) -> Stream[OfferState]:
    return Stream("offer", offer_id)


def offer_of(world: World, offer_id: str) -> OfferState:
    return world.state(offer_stream(offer_id))


def existing_offer(world: World, offer_id: str) -> OfferPublished:
    """What was published. Raises Refused: OFFER_UNKNOWN."""
    published = offer_of(world, offer_id).published
    if published is None:
        raise Refused(MarketReason.OFFER_UNKNOWN, offer_id=offer_id)
    return published


def modes_of(offer: OfferPublished) -> tuple[str, ...]:
    """The modes of sharing in which leases may hold its devices, where these can do them."""
    if offer.terms.modes is not None:
        return offer.terms.modes
    return SHARING_MODES if offer.fractions else (WHOLE,)


def require_price(price_per_gpu_hour: Amount) -> None:
    """Raises Refused: AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE."""
    asset, units = price_per_gpu_hour.asset, price_per_gpu_hour.units
    if units <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, units=units)
    if asset is not Asset.CREDIT or units > PRICE_UNITS_MAX:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, asset=asset.value, units=units)


def require_terms(terms: OfferTerms | None, *, fractions: bool) -> None:
    """Raises Refused: CONSTRAINT_INVALID with the field and the rule that it breaks."""
    if terms is None:
        return
    for field in fields(terms):
        value = getattr(terms, field.name)
        if value is not None:
            require_field(field.name, value, _TERMS[field.name])
    if terms.modes is not None and not fractions and terms.modes != ("whole",):
        rule = "an offer without fractions has the mode whole alone"
        require_field("modes", terms.modes, lambda _value: rule)


def require_covers_fee(world: World, node_id: str, price: Amount, at_us: int) -> None:
    """Raises Refused: GPU_CLASS_UNPRICED, TARIFF_UNKNOWN, PRICE_BELOW_USAGE_FEE."""
    _require_covers(world, existing_node(world, node_id), price, at_us)


def decide_publish(command: PublishOffer, world: World) -> list[Change]:
    """Offer an admitted node of one's own, at no less than its usage fee in the tariff in force.

    Raises Refused: PROVIDER_UNKNOWN, NODE_UNKNOWN, NODE_STATE, OFFER_EXISTS, GPU_CLASS_UNPRICED,
    TARIFF_UNKNOWN, AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE, PRICE_BELOW_USAGE_FEE, UNKNOWN_MODE,
    CONSTRAINT_INVALID, CAPACITY_CLASS.
    """
    existing_provider(world, command.provider_id)
    node = existing_node(world, command.node_id)
    assert node.joined is not None
    if node.joined.provider_id != command.provider_id:
        raise Refused(FleetReason.NODE_UNKNOWN, node_id=command.node_id)
    published = _published(command)
    present = offer_of(world, command.offer_id).published
    if present is not None and replace(published, at_us=present.at_us) == present:
        return []
    if not node.is_admitted or node.is_quarantined:
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=node.phase)
    if present is not None:
        raise Refused(MarketReason.OFFER_EXISTS, offer_id=command.offer_id)
    _usage_fee(node, command.at_us, world)
    require_price(command.price_per_gpu_hour)
    _require_covers(world, node, command.price_per_gpu_hour, command.at_us)
    if command.pay_with not in SETTLEMENTS:
        raise Refused(PartiesReason.UNKNOWN_MODE, settlement=command.pay_with)
    require_terms(command.terms, fractions=command.fractions)
    if node.capacity_class == PREEMPTIBLE and not published.terms.interruptible:
        raise Refused(CloudReason.CAPACITY_CLASS, rule="interruptible", node_id=command.node_id)
    return [Change(offer_stream(command.offer_id), published)]


def decide_withdraw(command: WithdrawOffer, world: World) -> list[Change]:
    """No new leases from it. Open leases keep their locked price. Twice is once."""
    existing_offer(world, command.offer_id)
    if offer_of(world, command.offer_id).is_withdrawn:
        return []
    withdrawn = OfferWithdrawn(offer_id=command.offer_id, by=command.by, at_us=command.at_us)
    return [Change(offer_stream(command.offer_id), withdrawn)]


def _published(command: PublishOffer) -> OfferPublished:
    return OfferPublished(
        offer_id=command.offer_id,
        provider_id=command.provider_id,
        node_id=command.node_id,
        price_per_gpu_hour=command.price_per_gpu_hour,
        pay_with=command.pay_with,
        fractions=command.fractions,
        available_until_us=command.available_until_us,
        at_us=command.at_us,
        terms=command.terms or OfferTerms(),
    )


def _usage_fee(node: NodeState, at_us: int, world: World) -> Amount:
    """The highest usage fee of the node's devices. One device without a class prices none."""
    devices = (device_of(world, device_id) for device_id in node.device_ids)
    classes = {device.gpu_class for device in devices if device.is_live}
    if not classes or None in classes:
        raise Refused(PricesReason.GPU_CLASS_UNPRICED)
    tariff = tariff_in_force(world, at_us)
    return max(usage_fee(tariff, gpu_class) for gpu_class in classes)


def _require_covers(world: World, node: NodeState, price: Amount, at_us: int) -> None:
    """A price is no less than the usage fee and what a GPU-hour costs on the provider's kind."""
    fee = _usage_fee(node, at_us, world)
    if price < fee:
        raise Refused(PricesReason.PRICE_BELOW_USAGE_FEE, usage_fee=fee.units)
    assert node.joined is not None
    kind = existing_provider(world, node.joined.provider_id).kind
    cost = fee.units + cost_of_kind(world, kind, at_us).units
    if price.units < cost:
        raise Refused(PricesReason.PRICE_BELOW_USAGE_FEE, cost=cost)


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"offer": (OfferState(), evolve)}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    PublishOffer: decide_publish,
    WithdrawOffer: decide_withdraw,
}
