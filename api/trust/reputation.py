"""Reputation: what nodes, owners and renters are known by, input by input, and what a setting is
worth.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from fastapi import Query, Response

from api.door.auth import everybody, with_scope
from api.door.call import Call, Caller, View
from api.door.models import (
    AccountInPath,
    AnswerModel,
    Count,
    NodeInPath,
    Position,
    ProviderInPath,
    SignedCount,
    page_of,
)
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.door.positions import ReadAsOf
from api.parties.accounts import visible
from domain.calendar import day_text
from domain.duration import DAY_US
from domain.epochs.policy import NETWORK
from domain.epochs.reward_terms import NO_TERMS, bonus_ppm
from domain.fleet.reasons import FleetReason
from domain.money import PPM
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.trust.reputation_terms import (
    COMPLETION,
    LEASES_OF,
    PROVIDER,
    RENTER,
    REPUTATION_TERMS,
    UPTIME,
    TierCriteria,
)
from domain.trust.reputation_tier import CRITERIA, Shown, missing, tier_of
from domain.trust.scores import OBSERVATION, InputScore, Rating, lesser
from projections.fleet import fleet
from projections.fleet.fleet import FLEET
from projections.governance import policies
from projections.governance.policies import POLICIES
from projections.trust import reputation, scores
from projections.trust.reputation import REPUTATION

resource = Resource("reputation")

InputName = Literal[
    "completion", "uptime", "performance", "responsiveness", "payment", "conduct", "disputes"
]
ClientQuery = Annotated[str | None, Query(pattern=r"^[0-9A-Za-z_.-]{1,100}$")]


class FaultsByPartyAnswer(AnswerModel):
    """How many closed leases ended through the fault of each party. Faults of the network and of a
    client count against no other party.
    """

    none: Count
    renter: Count
    provider: Count
    network: Count
    client: Count


class ReputationInputAnswer(AnswerModel):
    """One input of a score, in micro-observations. `good` of `total` were counted; `g` of `n` is
    what is left of them after decay. `mean_ppm` is the mean with the start (`prior_ppm`) in it,
    `lower_bound_ppm` what may be relied on, and the score is the sum of `weight_ppm` x
    `lower_bound_ppm`.
    """

    name: InputName
    weight_ppm: Count
    good: SignedCount
    total: SignedCount
    g: Count
    n: Count
    prior_ppm: Count
    mean_ppm: Count
    lower_bound_ppm: Count


class ReputationTierAnswer(AnswerModel):
    """What a tier demands, and which of it is missing."""

    tier: Count
    leases: Count
    age_days: Count
    completion_ppm: Count
    uptime_ppm: Count
    score_ppm: Count
    missing: list[Literal["leases", "age_days", "completion_ppm", "uptime_ppm", "score_ppm"]]


class ReputationStandingAnswer(AnswerModel):
    """Tier (0: none) and what every tier demands, of nodes and owners. `bonus_ppm`, of a node: what
    its compute weight is multiplied with under the policy of the newest epoch, by the lesser of
    its own and its owner's score.
    """

    tier: Count
    age_days: Count
    uptime_ppm: Count | None = None
    owner_score_ppm: Count | None = None
    bonus_ppm: Count | None = None
    tiers: list[ReputationTierAnswer]


class ReputationAnswer(AnswerModel):
    """`good` of `total` leases that count. `score_ppm`: the weighted lower bounds of all inputs on
    `day`, with evidence halved every 30 days; provisional below ten leases. `client_id`: leases
    through one client, whose score starts from the experience of all others. The same facts give
    the same answer: it depends on `as_of_position` and `day` alone.
    """

    kind: Literal["node", "provider", "renter"]
    subject_id: str
    client_id: str | None = None
    good: SignedCount
    total: SignedCount
    completion_ppm: Count | None = None
    score_ppm: Count
    provisional: bool
    inputs: list[ReputationInputAnswer]
    standing: ReputationStandingAnswer | None = None
    closed_by_fault: FaultsByPartyAnswer
    as_of_position: Position
    day: str
    position: Position


class RegionSettingAnswer(AnswerModel):
    """What leases of other accounts got on nodes of this setting so far. `availability_ppm`: served
    of the time promised, over settled leases. `offline_ppm`: leases that ended because their node
    was silent for too long, of all that closed.
    """

    setting: Literal["edge", "datacenter"]
    leases: Count
    availability_ppm: Count | None = None
    offline_ppm: Count | None = None


class RegionSettingsAnswer(AnswerModel):
    data: list[RegionSettingAnswer]
    position: Position


class ReputationEvidenceAnswer(AnswerModel):
    """What the fact at `fact_position` said for one input, known since `known_position`: `good` of
    `total` micro-observations, or microseconds of uptime; below zero where it takes back what was
    counted, or takes time away. It counts from `counts_from` on. The sums by input, day, first day
    and client, each floored and `good` not below zero, give the score again.
    """

    input: InputName
    fact_position: Count
    known_position: Count
    client_id: str
    day: str
    counts_from: str
    good: SignedCount
    total: SignedCount


@resource.get(
    "/v1/nodes/{node_id}/reputation",
    everybody(),
    ReputationAnswer,
    problems=[FleetReason.NODE_UNKNOWN],
)
def read_node_reputation(
    node_id: NodeInPath, call: Caller, as_of: ReadAsOf, client_id: ClientQuery = None
) -> Response:
    """Returns the reputation of a node and its devices, now or as of `as_of_position`."""
    with call.read(FLEET, POLICIES, REPUTATION, as_of=as_of) as view:
        if fleet.read_node(view.connection, node_id) is None:
            raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)
        return _answer(call, view, "node", node_id, client_id)


@resource.get(
    "/v1/providers/{provider_id}/reputation",
    everybody(),
    ReputationAnswer,
    problems=[FleetReason.PROVIDER_UNKNOWN],
)
def read_provider_reputation(
    provider_id: ProviderInPath, call: Caller, as_of: ReadAsOf, client_id: ClientQuery = None
) -> Response:
    """Returns the reputation of all nodes of a provider together."""
    with call.read(FLEET, POLICIES, REPUTATION, as_of=as_of) as view:
        if fleet.read_provider(view.connection, provider_id) is None:
            raise Refused(FleetReason.PROVIDER_UNKNOWN, provider_id=provider_id)
        return _answer(call, view, "provider", provider_id, client_id)


@resource.get(
    "/v1/nodes/{node_id}/reputation/evidence",
    everybody(),
    page_of(ReputationEvidenceAnswer),
    problems=[FleetReason.NODE_UNKNOWN, "cursor_invalid"],
)
def list_node_evidence(
    node_id: NodeInPath,
    call: Caller,
    as_of: ReadAsOf,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the evidence behind the score of a node, now or as of `as_of_position`."""
    with call.read(FLEET, REPUTATION, as_of=as_of) as view:
        if fleet.read_node(view.connection, node_id) is None:
            raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)
        return _evidence(call, view, "node", node_id, limit, cursor)


@resource.get(
    "/v1/providers/{provider_id}/reputation/evidence",
    everybody(),
    page_of(ReputationEvidenceAnswer),
    problems=[FleetReason.PROVIDER_UNKNOWN, "cursor_invalid"],
)
def list_provider_evidence(
    provider_id: ProviderInPath,
    call: Caller,
    as_of: ReadAsOf,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the evidence behind the score of a provider, over all of its nodes."""
    with call.read(FLEET, REPUTATION, as_of=as_of) as view:
        if fleet.read_provider(view.connection, provider_id) is None:
            raise Refused(FleetReason.PROVIDER_UNKNOWN, provider_id=provider_id)
        return _evidence(call, view, "provider", provider_id, limit, cursor)


def _evidence(
    call: Call, view: View, kind: str, subject_id: str, limit: int, cursor: str | None
) -> Response:
    place = call.place(cursor, [0, ""])
    rows = reputation.read_evidence(
        view.connection,
        kind,
        subject_id,
        as_of=view.as_of,
        day=_day(call, view),
        after=(place.after[0], place.after[1]),
        limit=limit + 1,
    )
    return call.page(view, place, rows, limit, lambda row: [row.origin, row.input], _observed)


def _observed(row: reputation.EvidenceRow) -> ReputationEvidenceAnswer:
    name: Any = row.input
    return ReputationEvidenceAnswer(
        input=name,
        fact_position=row.origin,
        known_position=row.position,
        client_id=row.client_id,
        day=day_text(row.day),
        counts_from=day_text(row.from_day),
        good=row.good,
        total=row.total,
    )


@resource.get(
    "/v1/accounts/{account_id}/renter-reputation",
    with_scope("account", "provider", "operator", "audit:read"),
    ReputationAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def read_renter_reputation(
    account_id: AccountInPath, call: Caller, as_of: ReadAsOf, client_id: ClientQuery = None
) -> Response:
    """Returns the reputation of a renter, to the renter and to providers that rented to it."""
    with call.read(FLEET, REPUTATION, as_of=as_of) as view:
        mine = call.principal.account_id
        if not reputation.has_rented_to(view.connection, mine, account_id):
            visible(call.principal, account_id)
        return _answer(call, view, "renter", account_id, client_id)


def _answer(call: Call, view: View, kind: Any, subject_id: str, client_id: str | None) -> Response:
    connection, as_of, day = view.connection, view.as_of, _day(call, view)
    rating = scores.read_rating(
        connection, kind, subject_id, day=day, as_of=as_of, client_id=client_id
    )
    leases = next(one.evidence for one in rating.inputs if one.name == LEASES_OF[kind])
    parties = reputation.read_parties(
        connection, kind, subject_id, client_id=client_id, as_of=as_of
    )
    standing = None
    if kind != RENTER and client_id is None:
        standing = _standing(call, view, kind, subject_id, rating, day)
    told = ReputationAnswer(
        kind=kind,
        subject_id=subject_id,
        client_id=client_id,
        good=leases.good // OBSERVATION,
        total=rating.leases,
        completion_ppm=rating.ratio_ppm(LEASES_OF[kind]),
        score_ppm=rating.score_ppm,
        provisional=rating.is_provisional,
        inputs=[_input(one) for one in rating.inputs],
        standing=standing,
        closed_by_fault=FaultsByPartyAnswer(**parties),
        as_of_position=view.position if as_of is None else as_of,
        day=day_text(day),
        position=view.position,
    )
    return call.answer(view, told)


def _day(call: Call, view: View) -> int:
    """The UTC day on which evidence is weighed: today, or that of the position asked for."""
    if view.as_of is None:
        return call.service.clock.now_us() // DAY_US
    return scores.day_at(view.connection, view.as_of)


def _input(one: InputScore) -> ReputationInputAnswer:
    seen, name = one.evidence, cast(Any, one.name)
    return ReputationInputAnswer(
        name=name,
        weight_ppm=one.weight_ppm,
        good=seen.good,
        total=seen.total,
        g=seen.g,
        n=seen.n,
        prior_ppm=one.prior_ppm,
        mean_ppm=one.mean_ppm,
        lower_bound_ppm=one.bound_ppm,
    )


def _standing(
    call: Call, view: View, kind: str, subject_id: str, rating: Rating, day: int
) -> ReputationStandingAnswer:
    connection, as_of = view.connection, view.as_of
    subject = scores.read_subject(connection, kind, subject_id)
    assert subject is not None, subject_id
    shown = Shown(
        leases=rating.leases,
        age_days=max(0, day - subject.since_us // DAY_US),
        completion_ppm=rating.ratio_ppm(COMPLETION),
        uptime_ppm=rating.ratio_ppm(UPTIME),
        score_ppm=rating.score_ppm,
    )
    owner = None
    if subject.owner_id is not None:
        owner = scores.read_rating(connection, PROVIDER, subject.owner_id, day=day, as_of=as_of)
    return ReputationStandingAnswer(
        tier=tier_of(shown),
        age_days=shown.age_days,
        uptime_ppm=shown.uptime_ppm,
        owner_score_ppm=None if owner is None else owner.score_ppm,
        bonus_ppm=None if owner is None else _bonus(call, view, rating, owner),
        tiers=[_tier(criteria, shown) for criteria in REPUTATION_TERMS.tiers],
    )


def _bonus(call: Call, view: View, node: Rating, owner: Rating) -> int | None:
    """By the policy of the newest epoch, as its settlement counts; None before there is one."""
    newest = policies.read_newest_epoch(view.connection, view.as_of)
    if newest is None:
        return None
    policy = call.service.ledger.market.state_of(NETWORK).published[newest.policy_version - 1]
    is_provisional = node.is_provisional or owner.is_provisional
    score_ppm = lesser(node.score_ppm, owner.score_ppm, is_provisional=is_provisional)
    return bonus_ppm(policy.rewards or NO_TERMS, score_ppm)


def _tier(criteria: TierCriteria, shown: Shown) -> ReputationTierAnswer:
    demands = {name: getattr(criteria, name) for name in CRITERIA}
    lacks = cast(Any, list(missing(criteria, shown)))
    return ReputationTierAnswer(tier=criteria.tier, **demands, missing=lacks)


@resource.get("/v1/settings", everybody(), RegionSettingsAnswer)
def list_settings(call: Caller) -> Response:
    """Lists what to expect of edge and of datacenter nodes, in numbers where known (K-4)."""
    with call.read(REPUTATION) as view:
        known = {row.setting: row for row in reputation.read_settings(view.connection)}
        data = [setting_told(name, known.get(name)) for name in ("edge", "datacenter")]
        return call.answer(view, RegionSettingsAnswer(data=data, position=view.position))


def setting_told(name: Any, row: reputation.Setting | None) -> RegionSettingAnswer:
    """A setting in numbers; absent: nothing has been measured."""
    if row is None:
        return RegionSettingAnswer(setting=name, leases=0)
    promised = row.promised_gpu_us
    return RegionSettingAnswer(
        setting=name,
        leases=row.leases,
        availability_ppm=row.served_gpu_us * PPM // promised if promised else None,
        offline_ppm=row.unreachable * PPM // row.leases if row.leases else None,
    )
