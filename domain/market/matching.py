"""Which node gets a lease: of those that meet every demand, the cheapest or the best.

    lowest_cost   order = (own first, down-ranked last, price, score, stranded, served, ids)
    best_score    order = (own first, down-ranked last, score, price, stranded, served, ids)
    score         = floor(sum(weight x factor) / 10^6),  both in ppm, higher first

Ties go to the node that would strand the least capacity, then to the one that has served least, so
that a node without work is not penalised. The rule is total: the same inputs, in any order, give
the same node. `MatchDecided` stores the inputs, so anyone can `recompute` the choice. Source:
design marketplace 3, rows C-1, C-5 and R-5. What a node must meet is in
`domain/market/dimensions.py`; the factors are documented at `factors_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.frozen import replace
from domain.hardware.constraints import Weights, weights_of
from domain.lease.choice import Candidate
from domain.lease.lease import MatchDecided
from domain.market.dimensions import (
    BY_NAME,
    DIMENSIONS,
    PROVISIONAL_PPM,
    FreeDevice,
    Need,
    OfferedNode,
    device_fits,
    lease_memory_mib,
)
from domain.money import PPM

__all__ = [
    "FreeDevice",
    "Match",
    "Need",
    "OfferedNode",
    "choose",
    "fit",
    "less",
    "peers_of",
    "ranked",
    "recompute",
]

RULES = {"lowest_cost": "lowest_cost/2", "best_score": "best_score/1"}
PICKED = "renter_pick/1"
"""The renter chose one of the bids that stood: the record says which there were."""
DISPLACED = "lowest_bids/1"
"""Standing bids make room, the lowest first: the record says where that could be, and their bids.
"""
RULE = RULES["lowest_cost"]
"""Facts under `lowest_cost/1` were ranked alike, before there were scores."""
CANDIDATES_MAX = 20
"""How many candidates, best first, a recorded decision lists."""
NO_WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class Match:
    """The decision: a node, its devices, and the candidates it was chosen from, best first."""

    node_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    considered: int


def rule_of(need: Need) -> str:
    """The rule, with its version, that a need is ranked by."""
    return RULES[need.constraints.rank or "lowest_cost"]


def choose(
    need: Need, nodes: Iterable[OfferedNode], *, met: Iterable[OfferedNode] = ()
) -> Match | None:
    """The best node for `need`, or None when none meets every demand. `met`: more nodes, of which
    it is known already that they do.
    """
    found = [
        (candidate_of(need, node, fitted), fitted)
        for node in nodes
        if (fitted := fit(need, node)) is not None
    ]
    for node in met:
        fitted = given(need, node)
        found.append((candidate_of(need, node, fitted), fitted))
    if not found:
        return None
    found.sort(key=lambda one: order_of(rule_of(need), one[0]))
    best, (_, device_ids) = found[0]
    candidates = tuple(candidate for candidate, _ in found[:CANDIDATES_MAX])
    return Match(best.node_id, best.offer_id, device_ids, candidates, len(found))


def ranked(need: Need, nodes: Iterable[OfferedNode]) -> list[OfferedNode]:
    """Those that meet every demand, best first."""
    found = [(fitted, node) for node in nodes if (fitted := fit(need, node)) is not None]
    rule = rule_of(need)
    found.sort(key=lambda one: order_of(rule, candidate_of(need, one[1], one[0])))
    return [node for _, node in found]


Taken = Mapping[str, tuple[int, int, str]]
"""Device -> share and memory, in ppm, and the mode that they are held in."""


Rooms = Mapping[str, tuple[int, int]]
"""Node -> disk in GiB and network in Mbit/s that were taken of it."""
NO_ROOMS: Rooms = {}


def less(node: OfferedNode, taken: Taken, rooms: Rooms = NO_ROOMS) -> OfferedNode:
    """A node without what was taken of its devices, disk and network meanwhile. Of a device that a
    MIG instance was taken of no other is offered: where it begins is known when it is recorded.
    """
    storage, network = rooms.get(node.node_id, (0, 0))
    if storage or network:
        node = replace(
            node,
            held_storage_gib=node.held_storage_gib + storage,
            held_network_mbps=node.held_network_mbps + network,
        )
    if not any(device.device_id in taken for device in node.devices):
        return node
    return replace(node, devices=tuple(_less(device, taken) for device in node.devices))


def _less(device: FreeDevice, taken: Taken) -> FreeDevice:
    if device.device_id not in taken:
        return device
    share, mem, mode = taken[device.device_id]
    return replace(
        device,
        free_share_ppm=device.free_share_ppm - share,
        free_mem_ppm=device.free_mem_ppm - mem,
        mode=mode,
        profiles=(),
    )


def has_room(need: Need, node: OfferedNode) -> bool:
    """Whether a node has the disk and the network left that are demanded."""
    return all(BY_NAME[name].meets(need, node) for name in ("storage", "network"))


def fit(need: Need, node: OfferedNode) -> tuple[int, tuple[str, ...]] | None:
    """The devices a node would give, and the share left over on them; None if it cannot.

    Best fit: the fullest devices that still have room, so that whole devices stay whole.
    """
    if not all(dimension.meets(need, node) for dimension in DIMENSIONS):
        return None
    return given(need, node)


def given(need: Need, node: OfferedNode) -> tuple[int, tuple[str, ...]]:
    """`fit` of a node that meets every demand."""
    fitting = sorted(
        (device.free_share_ppm, device.device_id)
        for device in node.devices
        if device_fits(need, device)
    )[: need.gpu_count]
    stranded = sum(free - need.share_ppm for free, _ in fitting)
    return stranded, tuple(sorted(device_id for _, device_id in fitting))


def candidate_of(need: Need, node: OfferedNode, fitted: tuple[int, tuple[str, ...]]) -> Candidate:
    """Everything the ranking looks at."""
    factors = factors_of(need, node)
    return Candidate(
        node_id=node.node_id,
        offer_id=node.offer_id,
        price_per_gpu_hour=node.price,
        stranded_ppm=fitted[0],
        served_gpu_us=node.served_gpu_us,
        is_own=node.account_id == need.account_id,
        is_down_ranked=need.constraints.workload_class in node.down_ranked_workloads,
        score_ppm=score_of(factors, need.constraints.weights or NO_WEIGHTS),
        factors_ppm=factors,
    )


def order_of(rule: str, candidate: Candidate) -> tuple[object, ...]:
    """The sort key; the least is the best."""
    score = -(candidate.score_ppm or 0)
    price = candidate.price_per_gpu_hour
    money = (score, price) if rule == RULES["best_score"] else (price, score)
    return (
        not candidate.is_own,
        bool(candidate.is_down_ranked),
        *money,
        candidate.stranded_ppm,
        candidate.served_gpu_us,
        candidate.node_id,
        candidate.offer_id,
    )


def factors_of(need: Need, node: OfferedNode) -> tuple[int, ...]:
    """How well a node suits, in ppm, in the order of `Weights`:

    spec fit    half floor(10^6 x asked / offered) of memory, half of GPUs: none more than needed
    reputation  the node's; 500,000 while it has none
    locality    10^6 in a region of the data, half of that with a provider of one, else 0; of
                several things floor(sum / how many)
    free peers  floor(10^6 x devices that would be left / devices), of the node and of the others
                that are offered in its region: there whole free ones
    storage     floor(10^6 x (free - asked) / offered), at least 0
    price       floor(10^6 x (cap - price) / cap)
    """
    asked = need.constraints
    count = len(node.devices)
    offered_mib = lease_memory_mib(node.memory_mib, need.mem_ppm)
    memory = PPM if not asked.memory_mib else asked.memory_mib * PPM // max(1, offered_mib)
    fitting = sum(device_fits(need, device) for device in node.devices)
    storage, cap = node.terms.storage_gib or 0, need.price_max
    head = max(0, storage - node.held_storage_gib - (asked.storage_gib or 0))
    return (
        (memory + need.gpu_count * PPM // count) // 2,
        PROVISIONAL_PPM if node.reputation_ppm is None else node.reputation_ppm,
        locality_ppm(need, node.region_id, node.provider_id),
        (fitting - need.gpu_count + node.peers_free) * PPM // (count + node.peers_devices),
        head * PPM // storage if storage else 0,
        (cap - node.price) * PPM // cap if cap else 0,
    )


def peers_of(node: OfferedNode) -> tuple[int, int]:
    """Whole free devices, and all devices, that a node is as a peer of others: while it is offered
    and at work.
    """
    if not node.is_offered or node.phase != "active":
        return 0, 0
    whole = sum(one.free_share_ppm == one.free_mem_ppm == PPM for one in node.devices)
    return whole, len(node.devices)


def locality_ppm(need: Need, region_id: str, provider_id: str) -> int:
    each = (
        PPM if region_id in one.regions else PPM // 2 if provider_id in one.providers else 0
        for one in need.near
    )
    return sum(each) // len(need.near) if need.near else 0


def score_of(factors: Sequence[int], weights: Weights) -> int:
    """floor(sum(weight x factor) / 10^6)."""
    return sum(w * f for w, f in zip(weights_of(weights).values(), factors, strict=True)) // PPM


@dataclass(frozen=True, slots=True)
class Recomputed:
    """`differences` are empty when the recorded decision follows from its recorded inputs."""

    order: tuple[str, ...]  # node ids, best first
    runner_up: str | None
    deciding: str | None  # what put the first before the second
    differences: tuple[str, ...]


_DECIDING = {
    "lowest_cost": ("own", "workload", "price", "score", "stranded", "served", "node", "offer"),
    "best_score": ("own", "workload", "score", "price", "stranded", "served", "node", "offer"),
}


def recompute(fact: MatchDecided) -> Recomputed:
    """Rank the recorded inputs again, and say wherever the record does not follow from them."""
    if fact.pricing is not None and fact.rule in (PICKED, fact.pricing):
        return _recomputed_bids(fact)
    if fact.rule == DISPLACED:
        return _recomputed_rooms(fact)
    rule = RULES["best_score"] if fact.rule.startswith("best_score") else RULE
    weights = fact.weights or NO_WEIGHTS
    differences = _wrong_scores(fact, weights)
    # Before there were scores, own nodes were only told by their place at the head.
    keys = [
        (one.is_own is None and place, order_of(rule, one))
        for place, one in enumerate(fact.candidates)
    ]
    ranked = sorted(range(len(keys)), key=lambda place: keys[place])
    if ranked != list(range(len(keys))):
        differences.append("the candidates are not in the order of the rule")
    order = tuple(fact.candidates[place].node_id for place in ranked)
    if not order or (order[0], fact.candidates[ranked[0]].offer_id) != (
        fact.node_id,
        fact.offer_id,
    ):
        differences.append("the chosen node is not the first candidate")
    if not len(fact.candidates) <= fact.considered:
        differences.append("more candidates than were considered")
    runner_up = order[1] if len(order) > 1 else None
    return Recomputed(order, runner_up, _deciding(rule, fact.candidates), tuple(differences))


def _wrong_scores(fact: MatchDecided, weights: Weights) -> list[str]:
    return [
        f"{one.node_id}: score {one.score_ppm}, recomputed {score_of(one.factors_ppm, weights)}"
        for one in fact.candidates
        if one.factors_ppm is not None and one.score_ppm != score_of(one.factors_ppm, weights)
    ]


def _recomputed_bids(fact: MatchDecided) -> Recomputed:
    """The bids of an auction stand by price, the first to come before others at the same; the
    lowest wins, or the one that the renter picked.
    """
    bids = fact.candidates
    differences = _wrong_scores(fact, fact.weights or NO_WEIGHTS)
    prices = [one.price_per_gpu_hour for one in bids]
    if prices != sorted(prices):
        differences.append("the bids are not in the order of their prices")
    places = [
        place
        for place, one in enumerate(bids)
        if (one.node_id, one.offer_id) == (fact.node_id, fact.offer_id)
    ]
    if not places or (fact.rule != PICKED and places[0] != 0):
        differences.append("the chosen node is not the lowest bid")
    if len(bids) > fact.considered:
        differences.append("more candidates than were considered")
    order = tuple(one.node_id for one in bids)
    others = [one for place, one in enumerate(bids) if place not in places[:1]]
    deciding = None
    if others:
        tie = others[0].price_per_gpu_hour == prices[places[0]] if places else False
        deciding = "renter" if fact.rule == PICKED else "arrival" if tie else "price"
    runner_up = others[0].node_id if others else None
    return Recomputed(order, runner_up, deciding, tuple(differences))


def _recomputed_rooms(fact: MatchDecided) -> Recomputed:
    """Where standing bids could have made room: the lowest bid does, of equal ones the later."""
    rooms = fact.candidates
    differences = _wrong_scores(fact, fact.weights or NO_WEIGHTS)
    bids = [one.paused_bid for one in rooms]
    told = [bid for bid in bids if bid is not None]
    if told != sorted(told) or len(told) != len(bids):
        differences.append("the candidates are not in the order of the bids that make room")
    if not rooms or (rooms[0].node_id, rooms[0].offer_id) != (fact.node_id, fact.offer_id):
        differences.append("the chosen node is not where the lowest bid makes room")
    if len(rooms) > fact.considered:
        differences.append("more candidates than were considered")
    order = tuple(one.node_id for one in rooms)
    if len(rooms) < 2:
        return Recomputed(order, None, None, tuple(differences))
    deciding = "arrival" if bids[0] == bids[1] else "paused_bid"
    return Recomputed(order, order[1], deciding, tuple(differences))


def lost_by(fact: MatchDecided, node_id: str) -> tuple[str, Candidate]:
    """What told the winner of a match first from another of its candidates, and the winner."""
    found = (one for one in fact.candidates if one.node_id == fact.node_id)
    winner = next(found, fact.candidates[0])
    mine = next(one for one in fact.candidates if one.node_id == node_id)
    if fact.pricing is not None and fact.rule in (PICKED, fact.pricing):
        tie = mine.price_per_gpu_hour == winner.price_per_gpu_hour
        return "renter" if fact.rule == PICKED else "arrival" if tie else "price", winner
    if fact.rule == DISPLACED:
        return "arrival" if mine.paused_bid == winner.paused_bid else "paused_bid", winner
    rule = RULES["best_score"] if fact.rule.startswith("best_score") else RULE
    reason = _deciding(rule, (winner, mine))
    assert reason is not None, (fact, node_id)
    return reason, winner


def _deciding(rule: str, candidates: Sequence[Candidate]) -> str | None:
    if len(candidates) < 2:
        return None
    first, second = (order_of(rule, one) for one in candidates[:2])
    names = _DECIDING["best_score" if rule == RULES["best_score"] else "lowest_cost"]
    pairs = zip(names, first, second, strict=True)
    return next((name for name, one, other in pairs if one != other), None)
