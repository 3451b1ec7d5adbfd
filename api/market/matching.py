"""The best node for a lease as the fleet stands now; the decision checks it again.

What a lease needs says `domain/market/need.py`, the same for every way of buying. Whether a node
meets it is decided by `domain/market/dimensions.py`, for the whole fleet at once by
`projections/market/match.py`. Here the two are brought together, with what the views tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from api.market.next_free import next_free_us
from api.process.lease_desk import Round
from api.process.service import Service
from domain.cloud.reasons import CloudReason
from domain.duration import DAY_US, SECOND_US
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.hardware.reasons import HardwareReason
from domain.jobs.job import JobSubmitted, SubmitJob, job_stream
from domain.lease.choice import Narrowed
from domain.lease.lease import LeaseRequested, RequestLease
from domain.lease.looked import NOT_LOOKED, Looked
from domain.leasing.bidding import Offered
from domain.leasing.request import asked_of
from domain.leasing.taking import Place
from domain.leasing.terms import rents_nothing
from domain.market.dimensions import Need, OfferedNode
from domain.market.explanation import Explanation, Relaxation
from domain.market.matching import Match, choose, ranked, rule_of
from domain.market.need import need_of, with_money, without_money
from domain.market.offer import PRICE_UNITS_MAX
from domain.market.reasons import MarketReason
from domain.pools.pool import pool_stream, ranked_by
from domain.pools.reasons import PoolsReason
from domain.refusal import Refused
from domain.trust.reputation_terms import RENTER
from projections.fleet.fleet import FLEET
from projections.market import feed as fleet_feed
from projections.market.columns import Columns
from projections.market.match import (
    Answer,
    Shortage,
    answer,
    best_lacking_room,
    node_with,
    shortage,
)
from projections.runner import Connection
from projections.trust import scores

T = TypeVar("T")

MATCH_AGAIN = frozenset(
    {
        HardwareReason.DEVICE_TAKEN,
        FleetReason.DEVICE_UNKNOWN,
        MarketReason.OFFER_WITHDRAWN,
        MarketReason.OFFER_MISMATCH,
        FleetReason.NODE_STATE,
        FleetReason.NODE_IN_MAINTENANCE,
        CloudReason.CLOUD_QUOTA_FULL,
    }
)
"""What was matched is gone: somebody else was faster. Look again."""
MISSING_ROOM = "room"

Spec = SubmitJob | JobSubmitted


@dataclass(frozen=True, slots=True)
class Wish:
    """A lease that is asked for, recorded already or about to be. `base_pool_id`: the pool that its
    job names, also where the lease is above its quota and goes elsewhere.
    """

    asked: LeaseRequested
    base_pool_id: str | None = None


def wish_of(request: RequestLease, spec: Spec, here: Round) -> Wish:
    """What a request of a job comes to."""
    return Wish(asked_of(request, spec, here.world), pool_of_spec(spec))


def wish_again(service: Service, asked: LeaseRequested) -> Wish:
    """What a recorded request comes to."""
    job = service.ledger.market.state_of(job_stream(asked.job_id))
    return Wish(asked, None if job.submitted is None else pool_of_spec(job.submitted))


def pool_of_spec(spec: Spec) -> str | None:
    """The pool a job names."""
    return None if spec.constraints is None else spec.constraints.pool_id


@dataclass(frozen=True, slots=True)
class Found:
    """What the fleet answered. `nodes` are the best, in order. `unpaid`: the match if only money
    was missing, for the decision to say how much. `looked`: at the node of either.
    """

    need: Need
    position: int
    nodes: tuple[OfferedNode, ...]
    match: Match | None
    unpaid: Match | None
    looked: Looked
    explanation: Explanation
    shortage: Shortage | None = None  # where no node meets the need
    is_elsewhere: bool = False  # only nodes meet it that the project may not rent
    unpaid_node: OfferedNode | None = None  # that of `unpaid`

    @property
    def rule(self) -> str:
        return rule_of(self.need)


def match(service: Service, wish: Wish, here: Round) -> Place:
    """The best node for a wish, on top of what the round has given away.

    Raises Refused: NO_MATCH, MATCH_IMPOSSIBLE, BASE_FULL.
    """
    found = look(service, wish, here)
    chosen, need = found.match or found.unpaid, found.need
    if chosen is None:
        free_us = room_of(service, found) if here.is_answered else None
        raise no_match(found, wish.asked.project_id, free_us)
    if found.match is not None:
        here.give(chosen.node_id, chosen.device_ids, need)
    return Place(
        match=chosen,
        rule=found.rule,
        looked=found.looked,
        position=found.position,
        weights=need.constraints.weights,
        narrowed=found.explanation.dimensions,
    )


def require_possible(service: Service, wish: Wish, here: Round) -> None:
    """A job that is pinned to a region by what it is attached to is refused at once where no
    machine of the region could ever run it: it would wait for ever (C-9).

    Raises Refused: MATCH_IMPOSSIBLE.
    """
    asked = wish.asked.constraints
    if asked is None or asked.pinned_region is None:
        return
    found = look(service, wish, here)
    if found.match is None and found.explanation.impossible is not None:
        raise no_match(found, wish.asked.project_id, None)


def look(service: Service, wish: Wish, here: Round) -> Found:
    """The match and its explanation, and nothing recorded."""
    with service.connection() as connection:
        if not here.has_followed:
            service.follow(connection, [FLEET])
        fees = _fees(connection, here)
        return asking(
            service,
            connection,
            wish,
            here,
            lambda columns, position, need: _look(columns, position, need, fees, here),
        )


def _look(columns: Columns, position: int, need: Need, fees: dict[str, int], here: Round) -> Found:
    standing = here.standings.of(columns, position, need, fees)
    best, found = standing.best(here.taken, here.given_of, here.rooms), standing.found
    if found.nodes:
        looked = _looked_at(need, found.nodes, best)
        at = standing.position
        return Found(need, at, found.nodes, best, None, looked, found.explanation)
    found = answer(columns, need, fees)
    best = _chosen(need, found)
    unpaid, nodes = None, found.nodes
    if not nodes and (need.price_max_funds or need.price_max_budget is not None):
        freely = without_money(need)
        could = answer(columns, freely, fees)
        unpaid, nodes = _chosen(freely, could), could.nodes
    looked = _looked_at(need, nodes, best or unpaid)
    short = None if found.nodes else shortage(columns, need, fees, 1)
    is_elsewhere = need.own_only and not nodes and bool(_anywhere(columns, need, fees).nodes)
    return Found(
        need,
        position,
        found.nodes,
        best,
        unpaid,
        looked,
        found.explanation,
        short,
        is_elsewhere,
        _node_of(nodes, unpaid),
    )


def _anywhere(columns: Columns, need: Need, fees: dict[str, int]) -> Answer:
    """What a need would find if its project rented where its base is full."""
    return answer(columns, replace(without_money(need), own_only=False), fees, limit=1)


def is_elsewhere(service: Service, wish: Wish, here: Round) -> bool:
    """Whether only nodes could serve a wish that its project may not rent, whatever they cost."""
    with service.connection() as connection:
        fees = _fees(connection, here)

        def ask(columns: Columns, _: int, need: Need) -> bool:
            freely = replace(need, price_max=PRICE_UNITS_MAX)
            return need.own_only and bool(_anywhere(columns, freely, fees).nodes)

        return asking(service, connection, wish, here, ask)


def asking(
    service: Service,
    connection: Connection,
    wish: Wish,
    here: Round,
    question: Callable[[Columns, int, Need], T],
) -> T:
    """What the fleet says to the need of a wish; the view of the fleet has been followed."""

    def ask(columns: Columns, position: int) -> T:
        need = _need(service, connection, columns, wish, here)
        return question(columns, position, need)

    found = service.fleet.ask(connection, ask, follow=not here.has_followed)
    here.has_followed = True
    return found


def _need(
    service: Service, connection: Connection, columns: Columns, wish: Wish, here: Round
) -> Need:
    """What the wish needs, with what the renter can pay and the score that its offers ask for."""
    world, asked, at_us = here.world, wish.asked, here.now_us
    looked = _renter(service, connection, columns, asked.account_id, at_us)
    need = need_of(world, asked, at_us, looked, base_pool_id=wish.base_pool_id)
    need = replace(need, own_only=need.has_base and rents_nothing(asked, world))
    pool_id = need.constraints.pool_id
    if pool_id is not None:
        policy = world.state(pool_stream(pool_id)).policy
        need = replace(need, constraints=ranked_by(policy, need.constraints))
    return with_money(need, world, asked)


def _renter(
    service: Service, connection: Connection, columns: Columns, account_id: str, at_us: int
) -> Looked:
    """The score of a renter, read where some offer asks for one."""
    ttl_us = service.settings.spec_ttl_s * SECOND_US
    has_base = columns.has_account(account_id)
    if not columns.numbers["min_renter"].any():
        return Looked(spec_ttl_us=ttl_us, has_base=has_base)
    known = scores.read_rating(connection, RENTER, account_id, day=at_us // DAY_US)
    renter_ppm = None if known.is_provisional else known.score_ppm
    return Looked(renter_ppm=renter_ppm, spec_ttl_us=ttl_us, has_base=has_base)


def room_of(service: Service, found: Found) -> int | None:
    """By when the next matching node has room, where nothing else is missing and it is known."""
    is_room = found.shortage is not None and found.shortage.is_room
    return next_free_us(service, found.need) if is_room else None


@dataclass(frozen=True, slots=True)
class Nearest:
    """A node that lacks one thing for a need: room, which others hold, or the renter's money."""

    node: OfferedNode
    missing: str


def nearest_of(service: Service, found: Found) -> Nearest | None:
    """The cheapest node that would do for a renter who can pay for it, once others let go of it;
    where a node meets the need, only if it costs less than that; where no node does, or the
    cheapest that would with more money. None: something else is missing too.
    """
    if found.unpaid_node is not None:
        return Nearest(found.unpaid_node, "money")
    if found.match is None and (found.shortage is None or not found.shortage.is_room):
        return None
    with service.connection() as connection:
        fees = fleet_feed.fees(connection, found.need.at_us)
        lacking = service.fleet.ask(
            connection, lambda columns, _: best_lacking_room(columns, found.need, fees)
        )
    if lacking is None:
        return None
    chosen = _node_of(found.nodes, found.match)
    is_nearer = chosen is None or lacking.price < chosen.price
    return Nearest(lacking, MISSING_ROOM) if is_nearer else None


def looked_at(need: Need, node: OfferedNode) -> Looked:
    """What the views tell of a node and of who needs it."""
    return Looked(
        node_ppm=node.reputation_ppm,
        renter_ppm=need.renter_ppm,
        attributes=node.attributes,
        spec_ttl_us=need.spec_ttl_us,
        has_base=need.has_base,
    )


def _looked_at(need: Need, nodes: tuple[OfferedNode, ...], chosen: Match | None) -> Looked:
    node = _node_of(nodes, chosen)
    return NOT_LOOKED if node is None else looked_at(need, node)


def _node_of(nodes: tuple[OfferedNode, ...], chosen: Match | None) -> OfferedNode | None:
    """The node of a match."""
    if chosen is None:
        return None
    place = (chosen.node_id, chosen.offer_id)
    return next((one for one in nodes if (one.node_id, one.offer_id) == place), None)


def offered(
    service: Service,
    connection: Connection,
    asked: LeaseRequested,
    places: dict[str, tuple[str, str, str]],
    now_us: int,
) -> dict[str, Offered]:
    """The nodes of places that were not chosen here, as they stand now; those that are gone are
    left out. A place is a node, an offer and one of the devices.
    """
    service.follow(connection, [FLEET])

    def ask(columns: Columns, position: int) -> dict[str, Offered]:
        renter = _renter(service, connection, columns, asked.account_id, now_us)
        found = {name: node_with(columns, *place) for name, place in places.items()}
        return {
            name: Offered(node, _of_node(renter, node), position)
            for name, node in found.items()
            if node is not None
        }

    return service.fleet.ask(connection, ask)


def _of_node(renter: Looked, node: OfferedNode) -> Looked:
    return replace(renter, node_ppm=node.reputation_ppm, attributes=node.attributes)


def looked_again(
    service: Service, asked: LeaseRequested, place: tuple[str, str, tuple[str, ...]], now_us: int
) -> Looked:
    """What the views tell of one place now: of a quote, a bid or a lease that goes on there."""
    node_id, offer_id, device_ids = place
    with service.connection() as connection:
        where = {"": (node_id, offer_id, device_ids[0] if device_ids else "")}
        found = offered(service, connection, asked, where, now_us)
    return found[""].looked if found else NOT_LOOKED


def _fees(connection: Connection, here: Round) -> dict[str, int]:
    """The usage fees in force, asked for once in a round."""
    if here.fees is None:
        here.fees = fleet_feed.fees(connection, here.now_us)
    return here.fees


def _chosen(need: Need, found: Answer) -> Match | None:
    """The columns have looked at every demand already."""
    chosen = choose(need, (), met=found.nodes)
    return None if chosen is None else replace(chosen, considered=found.considered)


def no_match(found: Found, project_id: str, free_us: int | None) -> Refused:
    """The refusal, with the demand that left nothing and the nearest single one to ease. `free_us`:
    when a matching node has room by the latest; None: not known.
    """
    if found.is_elsewhere:
        return Refused(PoolsReason.BASE_FULL, project_id=project_id, gpu_count=found.need.gpu_count)
    explained = found.explanation
    told = next(
        (one for one in explained.dimensions if not one.nodes_left), explained.dimensions[-1]
    )
    if explained.impossible is not None:
        last = [one for one in explained.dimensions if one.dimension == explained.impossible]
        required = last[0].required if last else None
        return Refused(
            MarketReason.MATCH_IMPOSSIBLE,
            dimension=explained.impossible,
            required=required,
            nodes=explained.nodes,
            pinned_region=found.need.constraints.pinned_region,
        )
    return Refused(
        MarketReason.NO_MATCH,
        dimension=told.dimension,
        required=told.required,
        best_offered=told.best_offered,
        nodes=explained.nodes,
        matching=told.nodes_left + told.nodes_refused,
        relaxation=eased_told(explained.relaxations[0]) if explained.relaxations else None,
        missing=missing_of(found.shortage),
        free_us=free_us,
        **ease_of(explained.relaxations),
    )


def ease_of(relaxations: Sequence[Relaxation]) -> dict[str, object]:
    """The nearest single demand to ease, as facts: which, to what, and how many then match."""
    if not relaxations:
        return {}
    nearest = relaxations[0]
    return {"ease": nearest.field, "ease_to": nearest.offered, "ease_nodes": nearest.nodes}


def missing_of(short: Shortage | None) -> str | None:
    """`MISSING_ROOM`, where only what others hold is missing: then a request is worth waiting."""
    return MISSING_ROOM if short is not None and short.is_room else None


def waits_for_room(refused: Refused) -> bool:
    """Whether a request was refused for nothing but what others hold now."""
    return refused.facts.get("missing") == MISSING_ROOM


def eased_told(one: Relaxation) -> str:
    """As people say it: "memory_mib 81920 -> 40960: 3 nodes"."""
    nodes = "1 node" if one.nodes == 1 else f"{one.nodes} nodes"
    return f"{one.field} {one.required} -> {one.offered}: {nodes}"


# --- where the members of a gang could go ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Places:
    """Nodes that fit one member, best first, with all their devices."""

    need: Need
    nodes: tuple[OfferedNode, ...]
    rule: str
    position: int
    narrowed: tuple[Narrowed, ...]

    def place(self, match: Match) -> Place:
        """One member's devices, as the command that takes them names them."""
        return Place(
            match=match,
            rule=self.rule,
            looked=_looked_at(self.need, self.nodes, match),
            position=self.position,
            weights=self.need.constraints.weights,
            narrowed=self.narrowed,
        )


def short_of(service: Service, need: Need, leases: int) -> Shortage:
    """Why so many leases of a need have no place."""
    with service.connection() as connection:
        fees = fleet_feed.fees(connection, need.at_us)
        return service.fleet.ask(
            connection, lambda columns, _: shortage(columns, need, fees, leases), follow=False
        )


def places(service: Service, wish: Wish, here: Round) -> Places:
    """The best nodes for as many leases of this wish as the round is for, and enough more to
    compare them with.
    """
    found = look(service, wish, here)
    narrowed = found.explanation.dimensions
    return Places(found.need, tuple(found.nodes), found.rule, found.position, narrowed)


@dataclass(frozen=True, slots=True)
class Fitting:
    """Nodes that meet a need, best first."""

    need: Need
    nodes: tuple[OfferedNode, ...]
    position: int


def fitting(
    service: Service,
    connection: Connection,
    wish: Wish,
    here: Round,
    limit: int,
    eased: Callable[[Need], Need] = without_money,
) -> Fitting:
    """The best nodes for a wish that is priced otherwise than by the offer; the fleet's view has
    been followed. `eased`: the need without what is asked of the price that it will have.
    """
    fees = _fees(connection, here)

    def ask(columns: Columns, position: int, need: Need) -> Fitting:
        loosely = eased(need)
        found = answer(columns, loosely, fees, limit=limit)
        return Fitting(need, tuple(ranked(loosely, found.nodes)), position)

    return asking(service, connection, wish, here, ask)
