"""How a region grows: its phase, how few and how many workers it has, and which go together.

    open            <=  it was opened, and had `workers_min` workers once
    workers         <=  workers_max                       at every admission
    workers of two ingress nodes differ by at most 1     while nodes only join, as the server deals

    waitlisted -> opening -> open <-> draining -> closed

Nodes join while a region is opening or open; other accounts lease there only while it is open. A
region without terms of growth is open from the start, mixed and without a cap. Every admitted node
of a region is a member of it, with its role: only workers count, and only workers are leased. The
server gives each new worker the ingress node with the fewest workers.

Source: design marketplace 8; rows K-5, K-7, K-12, K-13. Not who joins: `domain/fleet/node.py`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, assert_never

from domain.fleet.provider import existing_region
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.money import PPM
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# What can happen.


@dataclass(frozen=True, slots=True)
class GrowthTerms:
    """What a region asks of the nodes that join it."""

    workers_min: int = 0  # it opens with so many
    workers_max: int | None = None  # no more join; None: no cap
    homogeneous: bool = False  # every worker has GPUs of one model
    cpu_and_gpu: bool = True  # nodes of GPUs beside nodes of processors alone
    owner_share_ppm: int = PPM  # of what a node earns: its owner's, who joined by a check-in


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionGrowthSet:
    """Stream `region-growth:{region_id}`."""

    region_id: str
    terms: GrowthTerms
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPhaseSet:
    region_id: str
    phase: str  # PHASES
    cause: str  # "hand", "wait_list", "first_user" or "workers"
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionMemberSet:
    """A node of the region, as it is from now on."""

    region_id: str
    node_id: str
    role: str  # ROLES
    ingress_node_id: str | None  # of a worker: the node it is reached through
    models: tuple[str, ...]  # of its GPUs, each once
    has_seats: bool  # software that runs on its processors
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionMemberLeft:
    region_id: str
    node_id: str
    at_us: int


# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRegionGrowth:
    """`waitlisted`: for a region that nobody joined yet, which waits for people first."""

    region_id: str
    terms: GrowthTerms
    waitlisted: bool
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRegionPhase:
    region_id: str
    phase: str
    by: str
    at_us: int


WAITLISTED, OPENING, OPEN, DRAINING, CLOSED = "waitlisted", "opening", "open", "draining", "closed"
PHASES = (WAITLISTED, OPENING, OPEN, DRAINING, CLOSED)
HAND, WAIT_LIST, FIRST_USER, WORKERS = "hand", "wait_list", "first_user", "workers"
"""Why a region is in its phase: someone said so, its wait list, its first user, or its workers."""
STEPS = {
    WAITLISTED: (OPENING, CLOSED),
    OPENING: (OPEN, DRAINING),
    OPEN: (DRAINING,),
    DRAINING: (OPEN, CLOSED),
    CLOSED: (),
}
"""From each phase to the phases that a hand can set."""
ROLES = WORKER, INGRESS, CONTROL = ("worker", "ingress", "control")
WORKERS_MAX = 10_000
"""Of one region, whatever its terms say."""

# What is remembered.


@dataclass(frozen=True, slots=True)
class Member:
    """One admitted node."""

    node_id: str
    role: str
    ingress_node_id: str | None
    models: tuple[str, ...]
    has_seats: bool


@dataclass(frozen=True, slots=True)
class Growth:
    """`members` in the order in which they were admitted."""

    terms: GrowthTerms | None = None
    phase: str = OPEN
    members: tuple[Member, ...] = ()

    @property
    def asked(self) -> GrowthTerms:
        return self.terms or GrowthTerms()

    @property
    def workers(self) -> tuple[Member, ...]:
        return tuple(one for one in self.members if one.role == WORKER)

    def member(self, node_id: str) -> Member | None:
        return next((one for one in self.members if one.node_id == node_id), None)


GrowthFact = RegionGrowthSet | RegionPhaseSet | RegionMemberSet | RegionMemberLeft


def evolve(state: Growth, fact: GrowthFact) -> Growth:
    match fact:
        case RegionGrowthSet():
            return replace(state, terms=fact.terms)
        case RegionPhaseSet():
            return replace(state, phase=fact.phase)
        case RegionMemberSet():
            told = _member(fact)
            if state.member(fact.node_id) is None:
                return replace(state, members=(*state.members, told))
            known = (told if one.node_id == fact.node_id else one for one in state.members)
            return replace(state, members=tuple(known))
        case RegionMemberLeft():
            rest = (one for one in state.members if one.node_id != fact.node_id)
            return replace(state, members=tuple(rest))
        case _:
            assert_never(fact)


def _member(fact: RegionMemberSet) -> Member:
    return Member(fact.node_id, fact.role, fact.ingress_node_id, fact.models, fact.has_seats)


def growth_stream(region_id: str) -> Stream[Growth]:
    return Stream("region-growth", region_id)


def growth_of(world: World, region_id: str) -> Growth:
    return world.state(growth_stream(region_id))


# How we decide.


def decide_growth(command: SetRegionGrowth, world: World) -> list[Change]:
    """Terms that its present workers already break are refused; a cap below their number is not:
    then no more join.

    Raises Refused: REGION_UNKNOWN, COUNT_OUT_OF_RANGE, SHARE_OUT_OF_RANGE, REGION_PHASE,
    REGION_MIX.
    """
    existing_region(world, command.region_id)
    state, terms = growth_of(world, command.region_id), command.terms
    _require_bounds(terms)
    for place, member in enumerate(state.workers):
        _require_mix(terms, command.region_id, member, state.workers[:place])
    changes = []
    if terms != state.terms:
        told = RegionGrowthSet(
            region_id=command.region_id, terms=terms, by=command.by, at_us=command.at_us
        )
        changes.append(Change(growth_stream(command.region_id), told))
    phase = _phase_under(command, state)
    if phase != state.phase:
        changes.append(phase_change(command.region_id, phase, HAND, command.by, command.at_us))
    return changes


def _require_bounds(terms: GrowthTerms) -> None:
    most = WORKERS_MAX if terms.workers_max is None else terms.workers_max
    if not (0 <= terms.workers_min <= most and 1 <= most <= WORKERS_MAX):
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE,
            workers_min=terms.workers_min,
            workers_max=most,
            at_most=WORKERS_MAX,
        )
    if not 0 <= terms.owner_share_ppm <= PPM:
        raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, owner_share_ppm=terms.owner_share_ppm)


def _phase_under(command: SetRegionGrowth, state: Growth) -> str:
    """A region in which nobody has worked yet begins anew; others keep their phase."""
    if command.waitlisted:
        if state.members or state.phase not in (WAITLISTED, OPENING, OPEN):
            raise Refused(
                FleetReason.REGION_PHASE,
                region_id=command.region_id,
                phase=state.phase,
                rule="only a region without nodes is waitlisted",
            )
        return WAITLISTED
    few = len(state.workers) < command.terms.workers_min
    if state.phase == OPENING:
        return OPENING if few else OPEN
    is_new = state.terms is None and state.phase == OPEN and not state.members
    return OPENING if is_new and few else state.phase


def decide_phase(command: SetRegionPhase, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN, UNKNOWN_MODE, REGION_PHASE."""
    existing_region(world, command.region_id)
    state = growth_of(world, command.region_id)
    if command.phase not in PHASES:
        raise Refused(PartiesReason.UNKNOWN_MODE, phase=command.phase)
    phase = command.phase
    if phase == state.phase:
        return []
    if phase not in STEPS[state.phase]:
        raise _no_step(command, state, "no_such_step")
    few = len(state.workers) < state.asked.workers_min
    if phase == OPEN and state.phase == OPENING and few:
        raise _no_step(command, state, "workers_min")
    if phase == CLOSED and state.members:
        raise _no_step(command, state, "nodes_left")
    if phase == OPENING and not few:
        phase = OPEN
    return [phase_change(command.region_id, phase, HAND, command.by, command.at_us)]


def _no_step(command: SetRegionPhase, state: Growth, rule: str) -> Refused:
    return Refused(
        FleetReason.REGION_PHASE,
        region_id=command.region_id,
        phase=state.phase,
        asked=command.phase,
        rule=rule,
        workers=len(state.workers),
        workers_min=state.asked.workers_min,
    )


def phase_change(region_id: str, phase: str, cause: str, by: str, at_us: int) -> Change:
    fact = RegionPhaseSet(region_id=region_id, phase=phase, cause=cause, by=by, at_us=at_us)
    return Change(growth_stream(region_id), fact)


def opening_changes(
    world: World, region_id: str, cause: str, by: str, at_us: int
) -> tuple[Change, ...]:
    """What lets nodes into a region that waited for people."""
    state = growth_of(world, region_id)
    if state.phase != WAITLISTED:
        return ()
    phase = OPENING if state.asked.workers_min else OPEN
    return (phase_change(region_id, phase, cause, by, at_us),)


# --- who joins, who leaves: asked by the decisions about nodes -------------------------------


def require_joinable(world: World, region_id: str) -> None:
    """Raises Refused: REGION_PHASE, REGION_FULL."""
    state = growth_of(world, region_id)
    if state.phase not in (OPENING, OPEN):
        raise Refused(
            FleetReason.REGION_PHASE, region_id=region_id, phase=state.phase, rule="joins"
        )
    _require_room(state, region_id)


def require_company(world: World, region_id: str, joining: Member) -> None:
    """Whether a node may join those that are there. Raises Refused: REGION_MIX."""
    state = growth_of(world, region_id)
    _require_mix(state.asked, region_id, joining, state.workers)


def _require_room(state: Growth, region_id: str) -> None:
    most = WORKERS_MAX if state.asked.workers_max is None else state.asked.workers_max
    if len(state.workers) >= most:
        raise Refused(
            FleetReason.REGION_FULL, region_id=region_id, workers=len(state.workers), at_most=most
        )


def _require_mix(
    terms: GrowthTerms, region_id: str, joining: Member, workers: tuple[Member, ...]
) -> None:
    others = [one for one in workers if one.node_id != joining.node_id]
    if terms.homogeneous:
        models = {model for one in (*others, joining) for model in one.models}
        if len(models) > 1:
            present = sorted({model for one in others for model in one.models})
            raise Refused(
                FleetReason.REGION_MIX,
                region_id=region_id,
                rule="one_model",
                models=joining.models,
                present=tuple(present),
            )
    if not terms.cpu_and_gpu:
        sorts = {bool(one.models) for one in (*others, joining)}
        if len(sorts) > 1 or any(one.models and one.has_seats for one in (*others, joining)):
            raise Refused(FleetReason.REGION_MIX, region_id=region_id, rule="cpu_or_gpu")


def member_changes(
    world: World, region_id: str, told: Member, *, is_new: bool, by: str, at_us: int
) -> list[Change]:
    """What an admission, another inventory or another role changes about a region's members. A
    worker without an ingress gets the one with the fewest workers; the workers of a node that is
    no ingress any more get others.

    Raises Refused: REGION_PHASE, REGION_FULL, REGION_MIX.
    """
    state = growth_of(world, region_id)
    before = state.member(told.node_id)
    if is_new:
        require_joinable(world, region_id)
    if told.role == WORKER:
        if before is None or before.role != WORKER:
            _require_room(state, region_id)
        _require_mix(state.asked, region_id, told, state.workers)
        if told.ingress_node_id is None:
            told = replace(told, ingress_node_id=_least_loaded(state, told.node_id))
    facts: list[GrowthFact] = []
    if told != before:
        facts.append(_set(region_id, told, at_us))
    after = evolve(state, facts[0]) if facts else state
    if before is not None and before.role == INGRESS != told.role:
        facts += _moved(after, region_id, told.node_id, at_us)
    if told.role == INGRESS and (before is None or before.role != INGRESS):
        facts += _taken(after, region_id, at_us)
    changes = [Change(growth_stream(region_id), fact) for fact in facts]
    enough = len(after.workers) >= state.asked.workers_min
    if state.phase == OPENING and told.role == WORKER and enough:
        changes.append(phase_change(region_id, OPEN, WORKERS, by, at_us))
    return changes


def leaving_changes(world: World, region_id: str, node_id: str, at_us: int) -> list[Change]:
    """What a node's leaving changes: the workers behind it are reached through others."""
    state = growth_of(world, region_id)
    if state.member(node_id) is None:
        return []
    left = RegionMemberLeft(region_id=region_id, node_id=node_id, at_us=at_us)
    facts: list[GrowthFact] = [left, *_moved(evolve(state, left), region_id, node_id, at_us)]
    return [Change(growth_stream(region_id), fact) for fact in facts]


def _least_loaded(state: Growth, but: str) -> str | None:
    """The ingress with the fewest workers, of equals the first by id; None without an ingress."""
    load = Counter(one.ingress_node_id for one in state.workers if one.node_id != but)
    nodes = [one.node_id for one in state.members if one.role == INGRESS and one.node_id != but]
    return min(nodes, key=lambda node_id: (load[node_id], node_id), default=None)


def _moved(state: Growth, region_id: str, ingress: str, at_us: int) -> list[GrowthFact]:
    """The workers of an ingress that is one no more, each to the least loaded of the others."""
    return _dealt(state, region_id, ingress, at_us)


def _taken(state: Growth, region_id: str, at_us: int) -> list[GrowthFact]:
    """The workers that had no ingress, now that there is one."""
    return _dealt(state, region_id, None, at_us)


def _dealt(state: Growth, region_id: str, was: str | None, at_us: int) -> list[GrowthFact]:
    facts: list[GrowthFact] = []
    for worker in [one for one in state.workers if one.ingress_node_id == was]:
        found = _least_loaded(state, worker.node_id)
        if found == was:
            continue
        fact = _set(region_id, replace(worker, ingress_node_id=found), at_us)
        state = evolve(state, fact)
        facts.append(fact)
    return facts


def _set(region_id: str, told: Member, at_us: int) -> RegionMemberSet:
    return RegionMemberSet(
        region_id=region_id,
        node_id=told.node_id,
        role=told.role,
        ingress_node_id=told.ingress_node_id,
        models=told.models,
        has_seats=told.has_seats,
        at_us=at_us,
    )


STREAMS: dict[str, tuple[Any, Any]] = {"region-growth": (Growth(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetRegionGrowth: decide_growth, SetRegionPhase: decide_phase}
