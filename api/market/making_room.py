"""Room that a lease on demand, or a higher standing bid, takes from interruptible leases.

Everything here only proposes: the decision asks every stream again. A lease that makes room is
paused in the append that gives its devices to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from api.market.matching import Wish, asking, looked_at, offered
from api.process.lease_desk import Round
from api.process.service import Service
from domain.frozen import replace
from domain.lease.choice import Candidate
from domain.lease.lease import Lease, lease_stream
from domain.lease.looked import NOT_LOOKED
from domain.lease.turns import PauseLease, ResumeLease
from domain.leasing.taking import Place
from domain.market.dimensions import DIMENSIONS, FreeDevice, Need, OfferedNode
from domain.market.matching import CANDIDATES_MAX, DISPLACED, RULE, Match, candidate_of, has_room
from domain.market.need import need_of
from domain.market.offer import PRICE_UNITS_MAX
from domain.money import PPM
from domain.prices.modules import PriceOffer, PriceRequest, PricingPolicy, module_of
from domain.storage.node_room import NO_ROOM, room_stream
from domain.storage.node_room import Room as NodePart
from projections.fleet import fleet
from projections.fleet.fleet import FLEET
from projections.market import bids
from projections.market.bids import BIDS, Standing
from projections.market.columns import Columns
from projections.market.match import devices_meeting, node_with
from projections.runner import Connection

MATCHER = "matcher"
ALL_BUT_ROOM_AND_PRICE = tuple(
    one.name
    for one in DIMENSIONS
    if one.name not in ("free", "network", "usage_fee", "price", "budget", "funds")
)
"""What devices have to meet whose present holders would make room."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a lease needs, the devices that meet it whoever holds them, and the fleet's position."""

    need: Need
    device_ids: frozenset[str]
    position: int


@dataclass(frozen=True, slots=True)
class Room:
    """Devices of one node, and the interruptible leases that would be paused for them. `node`: as
    it will be once they are gone; None where it is gone itself.
    """

    node_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    victims: tuple[Standing, ...]
    wanted: Wanted
    node: OfferedNode | None = None
    others: tuple[Room, ...] = ()  # where room could be made instead, for a higher or a later bid

    @property
    def bid(self) -> int:
        """The lowest bid that makes room here."""
        return self.victims[0].price_units

    def pauses(self, now_us: int) -> list[PauseLease]:
        return [
            PauseLease(lease_id=one.lease_id, reason="outbid", by=MATCHER, at_us=now_us)
            for one in self.victims
        ]

    def place(self, price: int | None = None) -> Place:
        """The room as a place, chosen from all the rooms there are, each with its score and the
        bid that makes it. `price`: of a standing bid; None: the offer's.
        """
        need, node = self.wanted.need, self.node
        rooms = [one.candidate(price) for one in (self, *self.others)]
        return Place(
            match=Match(self.node_id, self.offer_id, self.device_ids, tuple(rooms), len(rooms)),
            rule=DISPLACED,
            looked=NOT_LOOKED if node is None else looked_at(need, node),
            position=self.wanted.position,
            weights=need.constraints.weights,
        )

    def candidate(self, price: int | None) -> Candidate:
        """The node as it will be, at that price; one that is gone has no score."""
        need, node = self.wanted.need, self.node
        if node is None:
            gone = Candidate(self.node_id, self.offer_id, price or 0, 0, 0)
            return replace(gone, paused_bid=self.bid)
        priced = node if price is None else replace(node, price=price)
        return replace(_candidate(need, priced, self.device_ids), paused_bid=self.bid)


def kept_place(service: Service, lease: Lease, price: int, now_us: int) -> Place | None:
    """The place of a lease that goes on where it is, at another price: the one node that it was
    chosen from, without what the lease itself holds of it. None: it holds no place.
    """
    asked, held = lease.requested, lease.reserved
    if asked is None or held is None:
        return None
    where = {"": (held.node_id, held.offer_id, held.device_ids[0])}
    with service.connection() as connection:
        seen = offered(service, connection, asked, where, now_us).get("")
    known = Candidate(held.node_id, held.offer_id, price, 0, 0)
    place = Match(held.node_id, held.offer_id, held.device_ids, (known,), 1)
    if seen is None:
        return Place(match=place, rule=asked.pricing or RULE)
    freed = dict.fromkeys(held.device_ids, (held.share_ppm, held.mem_ppm))
    devices = tuple(_without(one, freed) for one in seen.node.devices)
    own = _held_of(service, held.node_id, asked.lease_id)
    node = replace(
        seen.node,
        devices=devices,
        price=price,
        held_storage_gib=seen.node.held_storage_gib - own.storage_gib,
        held_network_mbps=seen.node.held_network_mbps - own.network_mbps,
    )
    need = need_of(service.ledger.world(), asked, now_us, seen.looked)
    return Place(
        match=replace(place, candidates=(_candidate(need, node, held.device_ids),)),
        rule=asked.pricing or RULE,
        looked=seen.looked,
        position=seen.position,
        weights=need.constraints.weights,
    )


def _candidate(need: Need, node: OfferedNode, device_ids: tuple[str, ...]) -> Candidate:
    left = [one.free_share_ppm for one in node.devices if one.device_id in device_ids]
    stranded = sum(max(0, share - need.share_ppm) for share in left)
    return candidate_of(need, node, (stranded, device_ids))


def rooms(
    service: Service,
    connection: Connection,
    wish: Wish,
    here: Round,
    *,
    bid: int | None,
    pricing: str,
    floors: Mapping[str, int] | None,
    takes: Callable[[Room], bool] = lambda _: True,
) -> list[Room]:
    """Where room could be made on nodes that meet the wish, the lowest bids first: by the pricing
    module. `bid` None: for a lease on demand, which outranks every bid. `floors`: offers that let
    at the bid; None: any. `takes`: whether the wish takes a room. At most as many as a decision
    lists; each knows those after it.
    """
    found = _rooms(service, connection, wish, here, bid=bid, pricing=pricing, floors=floors)
    taken = list(islice((one for one in found if takes(one)), CANDIDATES_MAX))
    taken.sort(key=lambda one: one.bid)  # of equal ones the later stays first
    return [replace(one, others=tuple(taken[at:])) for at, one in enumerate(taken, 1)]


def _rooms(
    service: Service,
    connection: Connection,
    wish: Wish,
    here: Round,
    *,
    bid: int | None,
    pricing: str,
    floors: Mapping[str, int] | None,
) -> Iterator[Room]:
    held = bids.read_holding(connection)
    by_node: dict[str, list[Standing]] = {}
    for one in held:
        if one.node_id is not None and (floors is None or one.offer_id in floors):
            by_node.setdefault(one.node_id, []).append(one)
    if not by_node:
        return
    wanted = asking(service, connection, wish, here, _devices_wanted)
    ranked = sorted(by_node.values(), key=lambda group: group[0].price_units)
    for group in ranked:
        room = _room(service, wanted, group, bid, pricing)
        if room is None:
            continue
        node = _cleared(service, connection, room)
        if node is None or has_room(wanted.need, node):
            yield replace(room, node=node)


def _devices_wanted(columns: Columns, position: int, need: Need) -> Wanted:
    """Devices that meet all but what others hold of them and what they cost."""
    return Wanted(need, devices_meeting(columns, need, ALL_BUT_ROOM_AND_PRICE), position)


def _room(
    service: Service, wanted: Wanted, group: Sequence[Standing], bid: int | None, pricing: str
) -> Room | None:
    """The fewest of the lowest bids of one node that give enough devices."""
    need = wanted.need
    active = [one for one in group if _lease(service, one).status == "active"]
    module, policy = module_of(pricing), PricingPolicy(slots=1)
    chosen: list[Standing] = []
    devices: list[str] = []
    offers = [
        PriceOffer(offer_id=one.lease_id, ask=1, arrived=-order, held_at=one.price_units)
        for order, one in enumerate(active)
    ]
    request = PriceRequest(
        request_id=need.account_id,
        cap=PRICE_UNITS_MAX if bid is None else bid,
        at_us=0,
        on_demand=bid is None,
    )
    beaten = {one.offer_id for one in module.quote(request, offers, policy)}
    for one in active:
        if one.lease_id not in beaten or len(devices) >= need.gpu_count:
            continue
        fitting = [each for each in one.device_ids or () if each in wanted.device_ids]
        if fitting:
            chosen.append(one)
            devices += fitting
    if len(devices) < need.gpu_count or not chosen:
        return None
    first = chosen[0]
    assert first.node_id is not None
    assert first.offer_id is not None
    taken = tuple(sorted(devices[: need.gpu_count]))
    return Room(first.node_id, first.offer_id, taken, tuple(chosen), wanted)


def _cleared(service: Service, connection: Connection, room: Room) -> OfferedNode | None:
    """The node without what those who make room hold of it."""
    freed: dict[str, tuple[int, int]] = {}
    for one in room.victims:
        reserved = _lease(service, one).reserved
        assert reserved is not None, "it is active"
        for device_id in reserved.device_ids:
            share, mem = freed.get(device_id, (0, 0))
            freed[device_id] = share + reserved.share_ppm, mem + reserved.mem_ppm
    node = service.fleet.ask(
        connection,
        lambda columns, _: node_with(columns, room.node_id, room.offer_id, room.device_ids[0]),
        follow=False,
    )
    if node is None:
        return None
    paused = [NO_ROOM, *(_held_of(service, room.node_id, one.lease_id) for one in room.victims)]
    network = sum(one.network_mbps for one in paused)
    devices = tuple(_without(one, freed) for one in node.devices)
    return replace(node, devices=devices, held_network_mbps=node.held_network_mbps - network)


def _held_of(service: Service, node_id: str, lease_id: str) -> NodePart:
    """The disk and network that a lease holds of its node."""
    state = service.ledger.market.state_of(room_stream(node_id))
    return state.holders.get(lease_id, NO_ROOM)


def _without(device: FreeDevice, freed: Mapping[str, tuple[int, int]]) -> FreeDevice:
    """The device with so much more of its share and memory, and in no mode once it is empty."""
    share, mem = freed.get(device.device_id, (0, 0))
    share, mem = device.free_share_ppm + share, device.free_mem_ppm + mem
    mode = None if share == mem == PPM else device.mode
    return replace(device, free_share_ppm=share, free_mem_ppm=mem, mode=mode)


def _lease(service: Service, one: Standing) -> Lease:
    return service.ledger.market.state_of(lease_stream(one.lease_id))


def room_on_demand(service: Service, wish: Wish, here: Round) -> Room | None:
    """Room for a lease at an offer's own price, which the decision asks for again."""
    with service.connection() as connection:
        service.follow(connection, [FLEET, BIDS])

        def takes(room: Room) -> bool:
            offer, need = fleet.read_offer(connection, room.offer_id), room.wanted.need
            is_payable = offer is not None and offer.pay_with in need.settlements
            return offer is not None and is_payable and offer.price_units <= need.price_max

        found = rooms(
            service,
            connection,
            wish,
            here,
            bid=None,
            pricing="continuous_bid",
            floors=None,
            takes=takes,
        )
    return found[0] if found else None


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
