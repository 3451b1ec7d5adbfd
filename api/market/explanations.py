"""Why this node, why none: matches and explanations as they are told, before buying and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from api.door.amounts import Money, Units, credits_
from api.door.models import (
    AnswerModel,
    Count,
    DeviceId,
    LeaseId,
    NodeId,
    OfferId,
    Position,
    RegionId,
    Told_at,
)
from api.door.moments import moment as told_at
from api.fleet.constraints import MatchWeightsForm
from api.market.matching import Found, Nearest
from api.market.performance import NodePerformanceAnswer
from domain.hardware.constraints import weights_of
from domain.lease.choice import Candidate, Narrowed
from domain.lease.lease import MatchDecided
from domain.market.dimensions import OfferedNode
from domain.market.explanation import Relaxation
from domain.market.matching import recompute
from domain.money import PPM
from projections.trust.reputation import Setting

SettingName = Literal["edge", "datacenter"]
PpmTold = Annotated[int, Field(ge=0, le=PPM)]


class MatchFactorsAnswer(AnswerModel):
    """Each in ppm; the formulas are on the page about matching."""

    spec_fit: int
    reputation: int
    locality: int
    free_peers: int
    storage: int
    price: int


class MatchCandidateAnswer(AnswerModel):
    """`served_gpu_us`: this epoch; ties go to the node that served least. `score_ppm` is the sum of
    weight x factor. `paused_bid`: the lowest standing bid that would make room there.
    """

    node_id: NodeId
    offer_id: OfferId
    price_per_gpu_hour: Money
    stranded_ppm: Count
    served_gpu_us: Units
    own_node: bool | None = None
    down_ranked: bool | None = None
    score_ppm: int | None = None
    factors_ppm: MatchFactorsAnswer | None = None
    paused_bid: Money | None = None


class MatchDimensionAnswer(AnswerModel):
    """One demand, in the order of asking: what it left of the nodes before it, and the best that
    those had to offer.
    """

    dimension: str
    required: str
    best_offered: str | None = None
    nodes_left: Count
    nodes_refused: Count


class MatchRelaxationAnswer(AnswerModel):
    """Easing this one field of the request gives a match on so many nodes. Nearest first:
    `distance_ppm` is how far a number moves, in parts per million of it; words count as a whole.
    """

    field: str
    required: str
    offered: str
    nodes: Count
    distance_ppm: Count


class LeaseMatchAnswer(AnswerModel):
    """Why this node: the candidates, best first, by the rule. `deciding` is what put the first
    before the second. `recomputed`: the recorded choice follows from the recorded inputs.
    """

    lease_id: LeaseId
    rule: str
    fleet_position: Position
    considered: Count
    node_id: NodeId
    offer_id: OfferId
    device_ids: list[DeviceId]
    rank: Count
    runner_up: NodeId | None = None
    deciding: str | None = None
    weights: MatchWeightsForm | None = None
    candidates: list[MatchCandidateAnswer]
    dimensions: list[MatchDimensionAnswer] | None = None
    recomputed: bool
    differences: list[str]
    decided_at: Told_at


class SettingExpectationAnswer(AnswerModel):
    """What leases of other accounts got on nodes of this setting so far (K-4): how many ended
    because the node went silent, and how much of the promised time was served. Absent before there
    was any.
    """

    leases: Count
    unreachable_ppm: PpmTold
    served_ppm: PpmTold | None = None


class QuotedPlacementAnswer(AnswerModel):
    """Where a lease would go now. An `edge` node stands in a home or an office: expect lower
    performance and that it goes offline more often than one in a `datacenter`. `performance`: what
    is known of this machine's speed, each value with its source.
    """

    node_id: NodeId
    offer_id: OfferId
    region_id: RegionId
    model: str
    memory_mib: Count
    devices: Count
    price_per_gpu_hour: Money
    own_node: bool
    setting: SettingName
    lower_performance: bool
    higher_offline_odds: bool
    expected: SettingExpectationAnswer | None = None
    performance: list[NodePerformanceAnswer]


class QuoteNearestAnswer(AnswerModel):
    """A node that lacks one thing: room, which others hold now, or the renter's money."""

    node_id: NodeId
    offer_id: OfferId
    model: str
    memory_mib: Count
    price_per_gpu_hour: Money
    missing: Literal["room", "money"]


class JobQuoteAnswer(AnswerModel):
    """What a request would get now; nothing is recorded and nothing is held. `impossible` names
    the demand that no registered node could ever meet. `free_by`: all matching GPUs are leased, and
    the next is free by then, unless its lease is extended. `nearest`: where nothing is offered, the
    cheapest node that lacks only room or money; beside an offer one that lacks only room and costs
    less.
    """

    rule: str
    fleet_position: Position
    nodes: Count
    considered: Count
    offered: QuotedPlacementAnswer | None = None
    nearest: QuoteNearestAnswer | None = None
    runner_up: NodeId | None = None
    deciding: str | None = None
    candidates: list[MatchCandidateAnswer]
    dimensions: list[MatchDimensionAnswer]
    relaxations: list[MatchRelaxationAnswer]
    impossible: str | None = None
    free_by: Told_at | None = None
    position: Position


def match_told(fact: MatchDecided) -> LeaseMatchAnswer:
    """From the recorded decision, ranked again."""
    again = recompute(fact)
    dimensions = list(map(dimension_told, fact.narrowed)) or None
    return LeaseMatchAnswer(
        lease_id=fact.lease_id,
        rule=fact.rule,
        fleet_position=fact.fleet_position,
        considered=fact.considered,
        node_id=fact.node_id,
        offer_id=fact.offer_id,
        device_ids=list(fact.device_ids),
        decided_at=told_at(fact.at_us),
        rank=1 + again.order.index(fact.node_id) if fact.node_id in again.order else 0,
        runner_up=again.runner_up,
        deciding=again.deciding,
        weights=None if fact.weights is None else MatchWeightsForm(**weights_of(fact.weights)),
        candidates=list(map(candidate_told, fact.candidates)),
        dimensions=dimensions,
        recomputed=not again.differences,
        differences=list(again.differences),
    )


def candidate_told(one: Candidate) -> MatchCandidateAnswer:
    factors = one.factors_ppm
    names = tuple(MatchFactorsAnswer.model_fields)
    return MatchCandidateAnswer(
        node_id=one.node_id,
        offer_id=one.offer_id,
        price_per_gpu_hour=credits_(one.price_per_gpu_hour),
        stranded_ppm=one.stranded_ppm,
        served_gpu_us=str(one.served_gpu_us),
        own_node=one.is_own,
        down_ranked=one.is_down_ranked,
        score_ppm=one.score_ppm,
        factors_ppm=(
            None
            if factors is None
            else MatchFactorsAnswer(**dict(zip(names, factors, strict=True)))
        ),
        paused_bid=None if one.paused_bid is None else credits_(one.paused_bid),
    )


def dimension_told(one: Narrowed) -> MatchDimensionAnswer:
    return MatchDimensionAnswer(
        dimension=one.dimension,
        required=one.required,
        best_offered=one.best_offered,
        nodes_left=one.nodes_left,
        nodes_refused=one.nodes_refused,
    )


def relaxation_told(one: Relaxation) -> MatchRelaxationAnswer:
    return MatchRelaxationAnswer(
        field=one.field,
        required=one.required,
        offered=one.offered,
        nodes=one.nodes,
        distance_ppm=one.distance_ppm,
    )


def quote_told(
    found: Found,
    settings: Mapping[str, Setting],
    performance: list[NodePerformanceAnswer],
    free_us: int | None,
    nearest: Nearest | None = None,
) -> JobQuoteAnswer:
    """What the fleet answered, with what its setting was worth to others so far. `free_us`: when
    the next matching node has room by the latest; None: not known, or not what is missing.
    """
    explained, match = found.explanation, found.match
    ranked = () if match is None else match.candidates
    offered, runner_up, deciding = None, None, None
    if match is not None:
        node = next(
            one
            for one in found.nodes
            if (one.node_id, one.offer_id) == (match.node_id, match.offer_id)
        )
        offered = _offered_told(node, found.need.account_id, settings, performance)
        again = recompute(_as_fact(found, match.candidates))
        runner_up, deciding = again.runner_up, again.deciding
    return JobQuoteAnswer(
        rule=found.rule,
        fleet_position=found.position,
        position=found.position,
        nodes=explained.nodes,
        considered=0 if match is None else match.considered,
        offered=offered,
        nearest=None if nearest is None else _nearest_told(nearest),
        runner_up=runner_up,
        deciding=deciding,
        candidates=list(map(candidate_told, ranked)),
        dimensions=list(map(dimension_told, explained.dimensions)),
        relaxations=list(map(relaxation_told, explained.relaxations)),
        impossible=explained.impossible,
        free_by=None if free_us is None else told_at(free_us),
    )


def _nearest_told(nearest: Nearest) -> QuoteNearestAnswer:
    node = nearest.node
    missing: Any = nearest.missing
    return QuoteNearestAnswer(
        node_id=node.node_id,
        offer_id=node.offer_id,
        model=node.device_model,
        memory_mib=node.memory_mib,
        price_per_gpu_hour=credits_(node.price),
        missing=missing,
    )


def _as_fact(found: Found, candidates: tuple[Candidate, ...]) -> MatchDecided:
    """The decision as it would be recorded."""
    match: Any = found.match
    return MatchDecided(
        lease_id="",
        rule=found.rule,
        fleet_position=found.position,
        candidates=candidates,
        considered=match.considered,
        node_id=match.node_id,
        offer_id=match.offer_id,
        device_ids=match.device_ids,
        at_us=found.need.at_us,
        weights=found.need.constraints.weights,
        pricing=None,
        narrowed=(),
    )


def _offered_told(
    node: OfferedNode,
    renter: str,
    settings: Mapping[str, Setting],
    performance: list[NodePerformanceAnswer],
) -> QuotedPlacementAnswer:
    setting: Any = node.setting
    is_edge = node.setting == "edge"
    return QuotedPlacementAnswer(
        node_id=node.node_id,
        offer_id=node.offer_id,
        region_id=node.region_id,
        model=node.device_model,
        memory_mib=node.memory_mib,
        devices=len(node.devices),
        price_per_gpu_hour=credits_(node.price),
        own_node=node.account_id == renter,
        setting=setting,
        lower_performance=is_edge,
        higher_offline_odds=is_edge,
        expected=_expected(settings.get(node.setting)),
        performance=performance,
    )


def _expected(known: Setting | None) -> SettingExpectationAnswer | None:
    if known is None or not known.leases:
        return None
    promised = known.promised_gpu_us
    return SettingExpectationAnswer(
        leases=known.leases,
        unreachable_ppm=known.unreachable * PPM // known.leases,
        served_ppm=known.served_gpu_us * PPM // promised if promised else None,
    )
