"""The best node for a lease as the fleet stands now; the decision checks it again.

Here a request becomes a `Need`: what the renter can pay, whom it deals with, until when. Whether a
node meets it is decided by `domain/match_dimensions.py`, for the whole fleet at once by
`projections/fleet_match.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from api.lease_desk import Round
from api.service import Service
from domain.compute_client import floor_of
from domain.constraints import NOTHING
from domain.duration import DAY_US, SECOND_US
from domain.escrow_sharing import draws_on_escrow
from domain.funding import sources_of
from domain.gpu_time import GPU_HOUR_US
from domain.job import JobSubmitted, SubmitJob
from domain.lease import MIN_RUNWAY_US, RequestLease, ReserveLease
from domain.lease_budget import LeaseParty, left_of
from domain.lease_funds import total
from domain.match_dimensions import Need, OfferedNode
from domain.match_explain import Explanation, Relaxation
from domain.matching import CANDIDATES_MAX, Match, choose, ranked, rule_of
from domain.money import PPM, Amount
from domain.offer import PRICE_UNITS_MAX, SETTLEMENTS
from domain.refusal import Reason, Refused
from domain.reputation_terms import RENTER
from domain.shared_escrow import escrow_of
from domain.stream import World
from domain.tariff import SlaClass, tariff_in_force
from projections import fleet, fleet_feed, scores
from projections.fleet import FLEET
from projections.fleet_columns import Columns
from projections.fleet_match import Answer, Shortage, answer, shortage
from projections.runner import Connection

MATCH_AGAIN = frozenset(
    {
        Reason.DEVICE_TAKEN, Reason.DEVICE_UNKNOWN, Reason.OFFER_WITHDRAWN, Reason.OFFER_MISMATCH,
        Reason.NODE_STATE,
        Reason.NODE_IN_MAINTENANCE,
    }
)  # fmt: skip
"""What was matched is gone: somebody else was faster. Look again."""
DIRECT = "direct"
"""The client of a job that its renter submits without one."""
BUDGET_PROBE = 2**62
MISSING_ROOM = "room"


@dataclass(frozen=True, slots=True)
class Wish:
    """Who wants what, for how long and with which money."""

    account_id: str
    spec: SubmitJob | JobSubmitted
    term_us: int | None = None
    settlement: str | None = None
    funds: Amount | None = None
    key_id: str | None = None
    overflow: bool = False  # above a quota: rented elsewhere, and not of what one owns
    base_pool_id: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What the fleet answered. `nodes` are the best, in order. `unpaid`: the match if only money
    was missing, for the decision to say how much.
    """

    need: Need
    position: int
    nodes: tuple[OfferedNode, ...]
    match: Match | None
    unpaid: Match | None
    explanation: Explanation
    shortage: Shortage | None = None  # where no node meets the need

    @property
    def rule(self) -> str:
        return rule_of(self.need)


def match(
    service: Service,
    account_id: str,
    lease_id: str,
    spec: SubmitJob | JobSubmitted,
    term_us: int | None,
    settlement: str | None,
    now_us: int,
    here: Round | None = None,
    *,
    funds: Amount | None = None,
    key_id: str | None = None,
    overflow: bool = False,
    base_pool_id: str | None = None,
) -> ReserveLease:
    """The command that reserves the best node for this account, on top of what a round has given
    away. `overflow`: above a quota, so neither on own nodes nor in the pool of the quota. Raises
    Refused: NO_MATCH, MATCH_IMPOSSIBLE.
    """
    wish = Wish(account_id, spec, term_us, settlement, funds, key_id, overflow, base_pool_id)
    found = look(service, wish, now_us, here)
    chosen, need = found.match or found.unpaid, found.need
    if chosen is None:
        raise no_match(found)
    if here is not None and found.match is not None:
        here.give(chosen.node_id, chosen.device_ids, need.share_ppm, need.mem_ppm, need.mode)
    return ReserveLease(
        lease_id=lease_id, rule=found.rule, fleet_position=found.position,
        candidates=chosen.candidates, considered=chosen.considered, node_id=chosen.node_id,
        offer_id=chosen.offer_id, device_ids=chosen.device_ids, at_us=now_us,
        weights=need.constraints.weights, narrowed=found.explanation.dimensions,
    )  # fmt: skip


def look(
    service: Service,
    wish: Wish,
    now_us: int,
    here: Round | None = None,
    *,
    nodes_max: int = CANDIDATES_MAX,
) -> Found:
    """The match and its explanation, and nothing recorded."""
    world = service.ledger.world() if here is None else here.world
    has_followed = here is not None and here.has_followed
    # A round looks at one moment, so that who asks the same is answered alike.
    at_us = now_us if here is None else here.now_us
    ttl_us = service.settings.spec_ttl_s * SECOND_US

    def ask(columns: Columns, position: int) -> Found:
        need = _need(connection, columns, world, wish, at_us, ttl_us)
        if here is not None:
            standing = here.standings.of(columns, position, need, fees)
            best, found = standing.best(here.taken, here.given_of), standing.found
            if found.nodes:
                at = standing.position
                return Found(need, at, found.nodes, best, None, found.explanation)
        found = answer(columns, need, fees, limit=nodes_max)
        unpaid = None
        if not found.nodes and (need.price_max_funds or need.price_max_budget is not None):
            freely = replace(need, price_max_funds=None, price_max_budget=None)
            unpaid = _chosen(freely, answer(columns, freely, fees))
        short = None if found.nodes else shortage(columns, need, fees, 1)
        return Found(
            need, position, found.nodes, _chosen(need, found), unpaid, found.explanation, short
        )  # fmt: skip

    with service.connection() as connection:
        if not has_followed:
            service.follow(connection, [FLEET])
        fees = _fees(connection, here, now_us)
        found = service.fleet.ask(connection, ask, follow=not has_followed)
    if here is not None:
        here.has_followed = True
    return found


def _fees(connection: Connection, here: Round | None, now_us: int) -> dict[str, int]:
    """The usage fees in force, asked for once in a round."""
    if here is None:
        return fleet_feed.fees(connection, now_us)
    if here.fees is None:
        here.fees = fleet_feed.fees(connection, now_us)
    return here.fees


def _chosen(need: Need, found: Answer) -> Match | None:
    """The columns have looked at every demand already."""
    chosen = choose(need, (), met=found.nodes)
    return None if chosen is None else replace(chosen, considered=found.considered)


def no_match(found: Found) -> Refused:
    """The refusal, with the demand that left nothing and the nearest single one to ease."""
    explained = found.explanation
    told = next(
        (one for one in explained.dimensions if not one.nodes_left), explained.dimensions[-1]
    )
    if explained.impossible is not None:
        last = [one for one in explained.dimensions if one.dimension == explained.impossible]
        required = last[0].required if last else None
        return Refused(
            Reason.MATCH_IMPOSSIBLE, dimension=explained.impossible, required=required,
            nodes=explained.nodes,
        )  # fmt: skip
    return Refused(
        Reason.NO_MATCH, dimension=told.dimension, required=told.required,
        best_offered=told.best_offered, nodes=explained.nodes,
        matching=told.nodes_left + told.nodes_refused,
        relaxation=eased_told(explained.relaxations[0]) if explained.relaxations else None,
        missing=missing_of(found.shortage), **ease_of(explained.relaxations),
    )  # fmt: skip


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


def short_of(service: Service, need: Need, leases: int) -> Shortage:
    """Why so many leases of a need have no place."""
    with service.connection() as connection:
        fees = fleet_feed.fees(connection, need.at_us)
        return service.fleet.ask(
            connection, lambda columns, _: shortage(columns, need, fees, leases), follow=False
        )


def places(
    service: Service,
    account_id: str,
    spec: SubmitJob | JobSubmitted,
    term_us: int | None,
    settlement: str | None,
    now_us: int,
    nodes_max: int,
) -> Places:
    """The best `nodes_max` nodes for leases of this job, and enough more to compare them with."""
    wish = Wish(account_id, spec, term_us, settlement)
    found = look(service, wish, now_us, nodes_max=nodes_max + CANDIDATES_MAX)
    return Places(found.need, tuple(found.nodes), found.rule, found.position)


@dataclass(frozen=True, slots=True)
class Fitting:
    """Nodes that meet a need, best first."""

    nodes: tuple[OfferedNode, ...]
    position: int


def fitting(
    service: Service, connection: Connection, need: Need, now_us: int, until_us: int, limit: int
) -> Fitting:
    """The best nodes for a need, whoever prices them; the fleet's view has been followed."""
    ttl_us = service.settings.spec_ttl_s * SECOND_US
    need = replace(need, at_us=now_us, until_us=until_us, spec_ttl_us=ttl_us)
    fees = fleet_feed.fees(connection, now_us)

    def ask(columns: Columns, position: int) -> Fitting:
        found = answer(columns, need, fees, limit=limit)
        return Fitting(tuple(ranked(need, found.nodes)), position)

    return service.fleet.ask(connection, ask)


# --- from a request to what a node must meet --------------------------------------------------


def _need(
    connection: Connection, columns: Columns, world: World, wish: Wish, now_us: int, ttl_us: int
) -> Need:
    spec, asked = wish.spec, wish.spec.constraints or NOTHING
    client_id = None if spec.client_id == DIRECT else spec.client_id
    if client_id is not None:
        floor = floor_of(world, client_id, asked.min_reputation_ppm)
        asked = replace(asked, min_reputation_ppm=floor)
    allowed, denied = _lists(columns, wish.account_id, client_id)
    ways = _payable(world, wish.account_id, now_us)
    shares = _shares(wish, world)
    if shares:
        wish = replace(wish, settlement="cash")
        ways = {"cash": total(escrow_of(world, spec.job_id).held)}
    funds, budget = _bounds(world, wish, ways, now_us)
    need = Need(
        gpu_count=spec.gpu_count, share_ppm=spec.share_ppm, mem_ppm=spec.mem_ppm,
        models=spec.models, price_max=spec.max_price_per_gpu_hour.units,
        account_id=wish.account_id, constraints=asked, spec_ttl_us=ttl_us,
        rents_only=wish.overflow, base_pool_id=wish.base_pool_id, price_max_funds=funds,
        # What the job's escrow holds was counted against the budgets when it was put there.
        price_max_budget=None if shares else budget,
        settlements=(wish.settlement,) if wish.settlement else tuple(ways) or SETTLEMENTS,
        at_us=now_us, until_us=now_us + (wish.term_us or MIN_RUNWAY_US),
        is_fixed_term=wish.term_us is not None, client_id=client_id,
        allowed=allowed, denied=denied, sla_classes=_sla_classes(world, spec.sla_class, now_us),
    )  # fmt: skip
    if columns.numbers["min_renter"].any():
        known = scores.read_rating(connection, RENTER, wish.account_id, day=now_us // DAY_US)
        need = replace(need, renter_ppm=None if known.is_provisional else known.score_ppm)
    if asked.near_region is not None:
        near = fleet.read_regions(connection, region_id=asked.near_region)
        need = replace(need, data_provider_id=near[0].provider_id if near else None)
    return need


def _lists(
    columns: Columns, account_id: str, client_id: str | None
) -> tuple[frozenset[str], frozenset[str]]:
    """Whom the renter and its client deal with: denied by one is denied, allowed is by both."""
    nobody: frozenset[str] = frozenset()
    mine, theirs = (
        columns.lists.get(one or "", (nobody, nobody)) for one in (account_id, client_id)
    )
    allowed = mine[0] & theirs[0] if mine[0] and theirs[0] else mine[0] | theirs[0]
    if mine[0] and theirs[0] and not allowed:
        allowed = frozenset({""})  # both allow somebody, and nobody the same
    return allowed, mine[1] | theirs[1]


def _payable(world: World, account_id: str, now_us: int) -> dict[str, int]:
    """What the account and its payer have, by the ways they can pay with it; empty: nothing."""
    units = {
        way: sum(one.units for one in sources_of(world, account_id, way, now_us))
        for way in SETTLEMENTS
    }
    return {way: held for way, held in units.items() if held}


def _shares(wish: Wish, world: World) -> bool:
    """Whether the lease will draw on its job's escrow, whatever the balance holds."""
    if not isinstance(wish.spec, JobSubmitted):
        return False
    asked = RequestLease(
        lease_id="", job_id=wish.spec.job_id, account_id=wish.account_id, term_us=wish.term_us,
        funds=wish.funds, at_us=0, settlement=wish.settlement,
    )  # fmt: skip
    return draws_on_escrow(asked, wish.spec, world)


def _sla_classes(world: World, name: str | None, now_us: int) -> tuple[str, ...] | None:
    """Classes of the tariff in force that promise at least what this one does."""
    if name is None:
        return None
    classes = tariff_in_force(world, now_us).sla or ()
    asked = next((_promise(one) for one in classes if one.name == name), None)
    if asked is None:
        return (name,)
    return tuple(one.name for one in classes if _promise(one) >= asked)


def _promise(one: SlaClass) -> int:
    """Availability in ppm below which its mildest breach begins."""
    return max((tier.below_ppm for tier in one.tiers), default=0)


def _bounds(
    world: World, wish: Wish, ways: dict[str, int], now_us: int
) -> tuple[tuple[tuple[str, int], ...], int | None]:
    """The dearest prices that balance and budgets carry, for the least that is held."""
    spec = wish.spec
    gpu_us = spec.gpu_count * spec.share_ppm * (wish.term_us or MIN_RUNWAY_US) // PPM
    open_funds = None if wish.term_us is not None or wish.funds is None else wish.funds.units
    party = LeaseParty("", wish.account_id, spec.project_id, wish.key_id)
    budget = left_of(world, party, BUDGET_PROBE, now_us)
    funds = []
    for way in SETTLEMENTS:
        held = ways.get(way, 0)
        if open_funds is not None:
            held = open_funds if open_funds <= held else -1
        funds.append((way, dearest(held, gpu_us)))
    return tuple(funds), None if budget == BUDGET_PROBE else dearest(budget, gpu_us)


def dearest(units: int, gpu_us: int) -> int:
    """The highest price at which so much GPU time is charged at most `units`: from
    floor(gpu_us x price / 3_600_000_000) <= units. -1 where there is none.
    """
    if units < 0:
        return -1
    return min(PRICE_UNITS_MAX, ((units + 1) * GPU_HOUR_US - 1) // max(1, gpu_us))
