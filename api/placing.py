"""Devices for leases that are not priced by the offer alone: whole months, standing bids, and room
that a lease on demand takes from interruptible ones.

Everything here only proposes: the decision asks every stream again. A lease that makes room is
paused in the append that gives its devices to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.matching import fitting
from api.service import Service
from domain.constraints import NOTHING
from domain.duration import SECOND_US
from domain.lease import MIN_RUNWAY_US, LeaseRequested, ReserveLease, lease_stream
from domain.lease_turns import PauseLease, QuoteLease, ResumeLease
from domain.match_dimensions import DIMENSIONS
from domain.matching import RULE, Match, Need, choose
from domain.money import credit
from domain.offer import PRICE_UNITS_MAX, SETTLEMENTS
from domain.pricing import (
    PriceOffer,
    PriceRequest,
    Pricing,
    PricingPolicy,
    module_of,
)
from domain.stream import derive_id
from projections import bids, fleet
from projections.bids import BIDS, Standing
from projections.fleet import FLEET
from projections.fleet_match import devices_meeting
from projections.runner import Connection

NODES_MAX = 500
"""Nodes that are looked at for one request of a priced kind."""
QUOTE_US = 60_000_000
MATCHER = "matcher"
ALL_BUT_ROOM_AND_PRICE = tuple(
    one.name for one in DIMENSIONS
    if one.name not in ("free", "usage_fee", "price", "budget", "funds")
)  # fmt: skip
"""What devices have to meet whose present holders would make room."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A node's devices for a lease at a price, and from which inputs they were chosen."""

    match: Match
    price: int
    position: int


def need_of(asked: LeaseRequested, price_max: int) -> Need:
    """What a request asks of one node."""
    return Need(
        gpu_count=asked.gpu_count, share_ppm=asked.share_ppm, mem_ppm=asked.mem_ppm,
        models=asked.models, price_max=price_max, account_id=asked.account_id,
        settlements=SETTLEMENTS if asked.settlement is None else (asked.settlement,),
        constraints=asked.constraints or NOTHING, is_fixed_term=asked.term_us is not None,
    )  # fmt: skip


def term_place(
    service: Service, need: Need, months: int, term_us: int, now_us: int
) -> Placed | None:
    """The cheapest free node whose list has a price for so many months."""
    with service.connection() as connection:
        service.follow(connection, [FLEET, BIDS])
        lists = bids.read_price_lists(connection, months=months)
        prices = {
            one.offer_id: int(line["price_per_gpu_hour"]["units"])
            for one in lists
            for line in one.reserved
            if line["months"] == months
        }
        return _place(service, connection, need, prices, now_us, now_us + term_us)


def standing_place(
    service: Service, connection: Connection, asked: LeaseRequested, bid: int, now_us: int
) -> Placed | None:
    """A free node that lets interruptible leases at this bid; each pays its own bid."""
    floors = {
        one.offer_id: one.floor_units
        for one in bids.read_price_lists(connection)
        if one.floor_units is not None and one.floor_units <= bid
    }
    prices = dict.fromkeys(floors, bid)
    until_us = now_us + (asked.term_us or MIN_RUNWAY_US)
    return _place(service, connection, need_of(asked, bid), prices, now_us, until_us)


def posted_place(
    service: Service, need: Need, module: Pricing, now_us: int, until_us: int
) -> Placed | None:
    """The node that a module of a plug-in chooses among the free ones, and its price."""
    with service.connection() as connection:
        service.follow(connection, [FLEET])
        found = fitting(service, connection, need, now_us, until_us, NODES_MAX)
    offers = [
        PriceOffer(offer_id=node.offer_id, ask=node.price, arrived=number)
        for number, node in enumerate(found.nodes)
    ]
    request = PriceRequest(request_id=need.account_id, cap=need.price_max, at_us=now_us)
    policy = PricingPolicy()
    trades = module.choose(module.quote(request, offers, policy), policy)
    chosen = [node for node in found.nodes if trades and node.offer_id == trades[0].offer_id]
    match = choose(_at(need, now_us, until_us), chosen)
    return None if match is None else Placed(match, trades[0].price, found.position)


def _place(
    service: Service,
    connection: Connection,
    need: Need,
    prices: Mapping[str, int],
    now_us: int,
    until_us: int,
) -> Placed | None:
    anywhere = replace(need, price_max=PRICE_UNITS_MAX)
    found = fitting(service, connection, anywhere, now_us, until_us, NODES_MAX)
    priced = [
        replace(node, price=node.price if _is_own(node, need) else prices[node.offer_id])
        for node in found.nodes
        if node.offer_id in prices
    ]
    match = choose(_at(need, now_us, until_us), priced)
    if match is None:
        return None
    price = next(one.price for one in priced if one.offer_id == match.offer_id)
    return Placed(match, price, found.position)


def _at(need: Need, now_us: int, until_us: int) -> Need:
    return replace(need, at_us=now_us, until_us=until_us)


def _is_own(node: Any, need: Need) -> bool:
    return bool(node.account_id == need.account_id)


def taking(lease_id: str, pricing: str, placed: Placed, now_us: int) -> list[Any]:
    """The commands that quote a place at its price and take it."""
    match = placed.match
    quote_id = derive_id("quote", lease_id, f"{match.offer_id}/{placed.price}/{now_us}")
    quote = QuoteLease(
        lease_id=lease_id, quote_id=quote_id, rule=pricing, node_id=match.node_id,
        offer_id=match.offer_id, device_ids=match.device_ids,
        price_per_gpu_hour=credit(placed.price), expires_at_us=now_us + QUOTE_US, at_us=now_us,
    )  # fmt: skip
    reserve = ReserveLease(
        lease_id=lease_id, rule=RULE, fleet_position=placed.position,
        candidates=match.candidates, considered=match.considered, node_id=match.node_id,
        offer_id=match.offer_id, device_ids=match.device_ids, at_us=now_us, quote_id=quote_id,
    )  # fmt: skip
    return [quote, reserve]


# --- making room -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Room:
    """Devices of one node, and the interruptible leases that would be paused for them."""

    node_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    victims: tuple[Standing, ...]

    def pauses(self, now_us: int) -> list[PauseLease]:
        return [
            PauseLease(lease_id=one.lease_id, reason="outbid", by=MATCHER, at_us=now_us)
            for one in self.victims
        ]


def rooms(
    service: Service,
    connection: Connection,
    need: Need,
    now_us: int,
    *,
    bid: int | None,
    pricing: str,
    floors: Mapping[str, int] | None,
) -> Iterator[Room]:
    """Where room could be made on nodes that meet the need, the lowest bids first: by the pricing
    module. `bid` None: for a lease on demand, which outranks every bid. `floors`: offers that let
    at the bid; None: any.
    """
    held = bids.read_holding(connection)
    by_node: dict[str, list[Standing]] = {}
    for one in held:
        if one.node_id is not None and (floors is None or one.offer_id in floors):
            by_node.setdefault(one.node_id, []).append(one)
    if not by_node:
        return
    wanted = _devices_wanted(service, connection, need, now_us)
    ranked = sorted(by_node.values(), key=lambda group: group[0].price_units)
    for group in ranked:
        room = _room(service, need, group, bid, pricing, wanted)
        if room is not None:
            yield room


def _devices_wanted(
    service: Service, connection: Connection, need: Need, now_us: int
) -> frozenset[str]:
    """Devices that meet all but what others hold of them and what they cost."""
    ttl_us = service.settings.spec_ttl_s * SECOND_US
    need = replace(need, at_us=now_us, until_us=now_us + MIN_RUNWAY_US, spec_ttl_us=ttl_us)
    return service.fleet.ask(
        connection, lambda columns, _: devices_meeting(columns, need, ALL_BUT_ROOM_AND_PRICE)
    )


def _room(
    service: Service,
    need: Need,
    group: Sequence[Standing],
    bid: int | None,
    pricing: str,
    wanted: frozenset[str],
) -> Room | None:
    """The fewest of the lowest bids of one node that give enough devices."""
    active = [one for one in group if _can_pause(service, one)]
    module, policy = module_of(pricing), PricingPolicy(slots=1)
    chosen: list[Standing] = []
    devices: list[str] = []
    offers = [
        PriceOffer(offer_id=one.lease_id, ask=1, arrived=-order, held_at=one.price_units)
        for order, one in enumerate(active)
    ]
    request = PriceRequest(
        request_id=need.account_id, cap=PRICE_UNITS_MAX if bid is None else bid, at_us=0,
        on_demand=bid is None,
    )  # fmt: skip
    beaten = {one.offer_id for one in module.quote(request, offers, policy)}
    for one in active:
        if one.lease_id not in beaten or len(devices) >= need.gpu_count:
            continue
        fitting = [each for each in one.device_ids or () if each in wanted]
        if fitting:
            chosen.append(one)
            devices += fitting
    if len(devices) < need.gpu_count or not chosen:
        return None
    first = chosen[0]
    assert first.node_id is not None
    assert first.offer_id is not None
    return Room(
        first.node_id, first.offer_id, tuple(sorted(devices[: need.gpu_count])), tuple(chosen)
    )


def _can_pause(service: Service, one: Standing) -> bool:
    lease = service.ledger.market.state_of(lease_stream(one.lease_id))
    return lease.status == "active"


def room_on_demand(service: Service, need: Need, now_us: int) -> Room | None:
    """Room for a lease at an offer's own price, which the decision asks for again."""
    with service.connection() as connection:
        service.follow(connection, [FLEET, BIDS])
        for room in rooms(
            service, connection, need, now_us, bid=None, pricing="continuous_bid", floors=None
        ):
            offer = fleet.read_offer(connection, room.offer_id)
            is_payable = offer is not None and offer.settlement in need.settlements
            if offer is not None and is_payable and offer.price_units <= need.price_max:
                return room
    return None


def reserving(lease_id: str, room: Room, price: int | None, pricing: str, now_us: int) -> list[Any]:
    """Pause whoever makes room and take it; `price`: of a standing bid, which is quoted first."""
    match = Match(room.node_id, room.offer_id, room.device_ids, (), 1)
    pauses: list[Any] = [*room.pauses(now_us)]
    if price is not None:
        return [*pauses, *taking(lease_id, pricing, Placed(match, price, 0), now_us)]
    reserve = ReserveLease(
        lease_id=lease_id, rule=RULE, fleet_position=0, candidates=(), considered=1,
        node_id=room.node_id, offer_id=room.offer_id, device_ids=room.device_ids, at_us=now_us,
    )  # fmt: skip
    return [*pauses, reserve]


def resuming(one: Standing, holding: Iterable[Standing], now_us: int) -> Iterator[list[Any]]:
    """Ways to go on with a paused lease: on its devices as they are, or by outbidding who has
    them.
    """
    resume = ResumeLease(lease_id=one.lease_id, by=MATCHER, at_us=now_us)
    yield [resume]
    wanted = set(one.device_ids or ())
    victims = [
        other
        for other in holding
        if wanted & set(other.device_ids or ()) and other.price_units < one.price_units
    ]
    if victims:
        pauses = [
            PauseLease(lease_id=other.lease_id, reason="outbid", by=MATCHER, at_us=now_us)
            for other in victims
        ]
        yield [*pauses, resume]
