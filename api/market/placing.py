"""The one way to place a lease: what is recorded for a request, however it is bought.

    placed  ==  its request, and what the fleet, its price and its pool make of it now

Plain leases, parts of plans and restarts go to the best free node at its offer's price; where
nothing is free the lowest standing bids make room, and a pool that keeps a queue lets the request
wait. Auctions and standing bids only ask; whole months and the modules of plug-ins are placed at
once. All of them need the same (`domain/market/need.py`), and the decision asks every stream again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.market.making_room import Room, room_on_demand
from api.market.matching import (
    Fitting,
    Spec,
    Wish,
    fitting,
    is_elsewhere,
    looked_at,
    match,
    pool_of_spec,
    require_possible,
    wish_of,
)
from api.market.pricing import LeasePricingRequest
from api.process.lease_desk import Round
from api.process.service import Service
from domain.duration import SECOND_US
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.jobs.job import JobSubmitted, SubmitJob
from domain.lease.lease import RequestLease
from domain.lease.reasons import LeaseReason
from domain.leasing.taking import Place, quoting, reserving
from domain.market.auction import OpenAuction
from domain.market.dimensions import Need, OfferedNode
from domain.market.matching import RULE, choose
from domain.market.need import without_money
from domain.market.offer import PRICE_UNITS_MAX
from domain.market.reasons import MarketReason
from domain.market.standing_bid import SetStandingBid
from domain.money import credit
from domain.pools.group import Holder, must_overflow
from domain.pools.pool import pool_stream
from domain.pools.queue import QueueRequest, stream_of
from domain.pools.reasons import PoolsReason
from domain.pools.scheduling import CPU_CORES, GPU, GPU_MEMORY, RAM_MIB, quantities
from domain.prices.modules import (
    AUCTION,
    POSTED,
    STANDING,
    TERM,
    PriceOffer,
    PriceRequest,
    PricingPolicy,
    label,
    module_for,
)
from domain.prices.modules import Pricing as Module
from domain.refusal import Refused
from domain.stream import World, derive_id
from projections.fleet.fleet import FLEET
from projections.market import bids
from projections.market.bids import BIDS
from projections.runner import Connection

NODES_MAX = 500
"""Nodes that are looked at for one request of a priced kind."""
QUOTE_US = 60_000_000
IN_ONE_APPEND = (LeaseReason.LEASE_UNKNOWN, FleetReason.LEASE_STATE, LeaseReason.LEASE_NOT_DUE)
"""A lease that is asked for in the same append is there, and waits for its place."""
BID_FOR = (MarketReason.AUCTION_STATE, MarketReason.BID_UNKNOWN, MarketReason.BID_STATE)
"""What only a lease that was bid for is refused for."""


def placed(
    service: Service,
    request: RequestLease,
    spec: Spec,
    here: Round,
    *,
    pricing: LeasePricingRequest | None = None,
    waits: bool = False,
    by: str | None = None,
) -> list[Any]:
    """The request of a job and what follows on it. `pricing` None: at the offer's price. `waits`:
    in the queue of the pool that the job names, where that keeps one. `by`: the member who asks.

    Raises Refused: QUOTA_EXHAUSTED, POOL_UNKNOWN, QUEUE_MOVED in a round of several, NO_MATCH,
    MATCH_IMPOSSIBLE, BASE_FULL.
    """
    request = within_quotas(here.world, request, spec)
    wish = wish_of(request, spec, here)
    require_possible(service, wish, here)
    if pricing is not None:
        return [request, *_priced(service, wish, pricing, here)]
    pool_id = None if request.overflow else pool_of_spec(spec)
    may_wait = waits and keeps_queue(service, pool_id)
    if may_wait and here.is_shared:
        raise Refused(PoolsReason.QUEUE_MOVED, pool_id=pool_id)
    if may_wait and pool_id is not None and has_waiting(service, pool_id):
        return [request, _wait(request, spec)]
    try:
        return [request, *at_once(service, wish, here, waits=may_wait, by=by)]
    except _NoRoom:
        return [request, _wait(request, spec)]


class _NoRoom(Exception):
    """Nothing is free now, and the request may wait."""


def at_once(
    service: Service, wish: Wish, here: Round, *, waits: bool = False, by: str | None = None
) -> list[Any]:
    """What reserves the best node for a wish, or pauses the lowest standing bids for it.

    Raises Refused: NO_MATCH, MATCH_IMPOSSIBLE, BASE_FULL.
    """
    lease_id, now_us = wish.asked.lease_id, here.now_us
    try:
        place = match(service, wish, here)
    except Refused as refused:
        if refused.reason not in (MarketReason.NO_MATCH, PoolsReason.BASE_FULL):
            raise
        if waits:
            raise _NoRoom from refused
        room = room_on_demand(service, wish, here)
        if room is None:
            raise
        return [*room.pauses(now_us), reserving(lease_id, room.place(), now_us, by=by)]
    return [reserving(lease_id, place, wish.asked.at_us, by=by)]


# --- quotas -----------------------------------------------------------------------------------


def within_quotas(
    world: World, request: RequestLease, spec: Spec, *, leases: int = 1
) -> RequestLease:
    """The request, marked where its quotas are too full for so many leases of it: then it is rented
    elsewhere, where its project says so. The reservation asks again, in the quotas' own streams.

    Raises Refused: QUOTA_EXHAUSTED, where the project's policy is to be refused.
    """
    holder = Holder(
        account_id=request.account_id,
        client_id=spec.client_id,
        project_id=request.project_id or spec.project_id,
        key_id=request.key_id,
        pool_id=pool_of_spec(spec),
    )
    if not must_overflow(world, holder, leases * spec.gpu_count * spec.share_ppm):
        return request
    return replace(request, overflow=True)


# --- priced otherwise than by the offer -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Placed:
    """A place at a price, in micro-credits per GPU-hour."""

    place: Place
    price: int


def _priced(service: Service, wish: Wish, pricing: LeasePricingRequest, here: Round) -> list[Any]:
    """What is recorded right after a priced request.

    Raises Refused: NO_MATCH, BASE_FULL where it has to be placed at once and cannot.
    """
    asked, module = wish.asked, module_for(pricing.module, None)
    lease_id, now_us = asked.lease_id, asked.at_us
    if module.kind == AUCTION:
        return [
            OpenAuction(
                lease_id=lease_id,
                pricing=module.name,
                at_us=now_us,
                bids_max=pricing.bids_max,
                closes_at_us=now_us + pricing.closes_in_seconds * SECOND_US,
                pick=pricing.pick,
                deposit=None if pricing.deposit is None else pricing.deposit.amount(),
            )
        ]
    if module.kind == STANDING:
        assert pricing.bid is not None
        price = pricing.bid.amount()
        return [SetStandingBid(lease_id=lease_id, price_per_gpu_hour=price, at_us=now_us)]
    if module.kind == TERM:
        assert pricing.months is not None
        found = _term_place(service, wish, pricing.months, here)
    else:
        assert module.kind == POSTED
        found = _posted_place(service, wish, module, here)
    if found is None and is_elsewhere(service, wish, here):
        raise Refused(PoolsReason.BASE_FULL, project_id=asked.project_id, gpu_count=asked.gpu_count)
    if found is None:
        raise Refused(
            MarketReason.NO_MATCH,
            gpu_count=asked.gpu_count,
            pricing=label(module),
            price_max=asked.max_price_per_gpu_hour.units,
            months=pricing.months,
        )
    return taking(lease_id, label(module), found, now_us)


def taking(lease_id: str, pricing: str, found: Placed, now_us: int) -> list[Any]:
    """The commands that quote a place at its price and take it."""
    what = f"{found.place.match.offer_id}/{found.price}/{now_us}"
    quote_id = derive_id("quote", lease_id, what)
    quote = quoting(
        lease_id,
        quote_id,
        found.place,
        now_us,
        pricing=pricing,
        price=credit(found.price),
        expires_at_us=now_us + QUOTE_US,
    )
    return [quote, reserving(lease_id, found.place, now_us, quote_id=quote_id)]


def outbidding(lease_id: str, pricing: str, room: Room, bid: int, now_us: int) -> list[Any]:
    """Pause those who make room for a standing bid, and take it at the bid."""
    return [*room.pauses(now_us), *taking(lease_id, pricing, Placed(room.place(bid), bid), now_us)]


def _term_place(service: Service, wish: Wish, months: int, here: Round) -> Placed | None:
    """The cheapest free node whose list has a price for so many months."""
    with service.connection() as connection:
        service.follow(connection, [FLEET, BIDS])
        prices = {
            one.offer_id: int(line["price_per_gpu_hour"]["units"])
            for one in bids.read_price_lists(connection, months=months)
            for line in one.reserved
            if line["months"] == months
        }
        return _listed_place(service, connection, wish, prices, here)


def standing_place(
    service: Service, connection: Connection, wish: Wish, bid: int, here: Round
) -> Placed | None:
    """A free node that lets interruptible leases at this bid; each pays its own bid."""
    prices = dict.fromkeys(floors_below(connection, bid), bid)
    return _listed_place(service, connection, wish, prices, here, price_max=bid)


def floors_below(connection: Connection, bid: int) -> dict[str, int]:
    """Offers that let interruptible leases at a bid, with the least that they take."""
    return {
        one.offer_id: one.floor_units
        for one in bids.read_price_lists(connection)
        if one.floor_units is not None and one.floor_units <= bid
    }


def _listed_place(
    service: Service,
    connection: Connection,
    wish: Wish,
    prices: Mapping[str, int],
    here: Round,
    price_max: int | None = None,
) -> Placed | None:
    """The best node at these prices of offers; the renter's own node costs the usage fee."""
    found = fitting(service, connection, wish, here, NODES_MAX, eased=_at_any_price)
    need = found.need if price_max is None else replace(found.need, price_max=price_max)
    priced = [
        node if node.account_id == need.account_id else replace(node, price=prices[node.offer_id])
        for node in found.nodes
        if node.offer_id in prices
    ]
    return _best(need, priced, found.position)


def _at_any_price(need: Need) -> Need:
    return replace(without_money(need), price_max=PRICE_UNITS_MAX)


def _posted_place(service: Service, wish: Wish, module: Module, here: Round) -> Placed | None:
    """The node that a module of a plug-in chooses among the free ones, and its price: among those
    that the renter can pay, if there are any.
    """
    with service.connection() as connection:
        service.follow(connection, [FLEET])
        found = fitting(service, connection, wish, here, NODES_MAX, eased=lambda need: need)
        if not found.nodes:
            found = fitting(service, connection, wish, here, NODES_MAX)
    return _quoted_place(found, module, here)


def _quoted_place(found: Fitting, module: Module, here: Round) -> Placed | None:
    offers = [
        PriceOffer(offer_id=node.offer_id, ask=node.price, arrived=number)
        for number, node in enumerate(found.nodes)
    ]
    need, policy = found.need, PricingPolicy()
    request = PriceRequest(request_id=need.account_id, cap=need.price_max, at_us=here.now_us)
    trades = module.choose(module.quote(request, offers, policy), policy)
    chosen = [node for node in found.nodes if trades and node.offer_id == trades[0].offer_id]
    best = _best(need, chosen, found.position)
    return None if best is None else replace(best, price=trades[0].price)


def _best(need: Need, nodes: list[OfferedNode], position: int) -> Placed | None:
    """The best of these nodes; one that the renter cannot pay where there is no other, for the
    decision to say how much is missing.
    """
    best = choose(need, nodes) or choose(without_money(need), nodes)
    if best is None:
        return None
    node = next(one for one in nodes if one.offer_id == best.offer_id)
    place = Place(
        match=best,
        rule=RULE,
        looked=looked_at(need, node),
        position=position,
        weights=need.constraints.weights,
    )
    return Placed(place, node.price)


# --- pools that keep a queue ------------------------------------------------------------------


def keeps_queue(service: Service, pool_id: str | None) -> bool:
    """Whether a request for this pool may wait. Raises Refused: POOL_UNKNOWN."""
    if pool_id is None:
        return False
    pool = service.ledger.market.state_of(pool_stream(pool_id))
    if pool.created is None:
        raise Refused(PoolsReason.POOL_UNKNOWN, pool_id=pool_id)
    return pool.queues_requests


def has_waiting(service: Service, pool_id: str) -> bool:
    """Whether somebody waits already: then nobody is placed without a decision."""
    queue = service.ledger.market.state_of(stream_of(pool_id))
    return bool(queue.waiting)


def _wait(request: RequestLease, spec: Spec) -> QueueRequest:
    return wait(
        spec, request.lease_id, request.account_id, request.at_us, project_id=request.project_id
    )


def wait(
    spec: SubmitJob | JobSubmitted,
    request_id: str,
    account_id: str,
    now_us: int,
    *,
    project_id: str | None = None,
    members: int | None = None,
) -> QueueRequest:
    """The command that lets a request wait for the pool its job names; `members`: of a gang."""
    pool_id = pool_of_spec(spec)
    assert pool_id is not None
    assert spec.constraints is not None
    times = members or 1
    return QueueRequest(
        pool_id=pool_id,
        request_id=request_id,
        account_id=account_id,
        project_id=project_id or spec.project_id,
        is_gang=members is not None,
        demand=quantities(
            {
                GPU: times * spec.gpu_count * spec.share_ppm,
                GPU_MEMORY: times * spec.gpu_count * spec.mem_ppm,
                CPU_CORES: times * (spec.constraints.cpu_cores or 0),
                RAM_MIB: times * (spec.constraints.ram_mib or 0),
            }
        ),
        at_us=now_us,
    )
