"""The register of governors: who may decide for the network, by which personal key.

    mode is `single` until three governors are enrolled at once, and `shared` for ever after
    shared  =>  governors >= 3 and 2 <= threshold <= governors
    set n + 1 == set n with one change

Governors are no members with a scope: each is a public key whose secret never passes the server.
Every set that was ever in force is kept, because a vote counts by the set in force before its
proposal. How a set changes is decided in `domain/authority/governors.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.authority.vote import NO, SHARED, SINGLE, YES, Subject, VoteCast, content_text, digest
from domain.frozen import replace
from domain.stream import Stream, World

ENROL, REMOVE, THRESHOLD = "enrol", "remove", "threshold"
ACTIONS = (ENROL, REMOVE, THRESHOLD)
KIND = "governors"
"""Of a vote on a change of the register itself."""
SHARED_FROM = 3
THRESHOLD_MIN = 2
GOVERNORS_MAX = 32
CHANGES_MAX = 20
"""Changes that are proposed or scheduled at one time."""

# Facts. Stream `governance:network`.


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorEnrolled:
    """`signature` is of the key itself over `enrolment_text(network, key, signed_version)`."""

    network: str
    governor_id: str
    key: str
    signature: str
    signed_version: int
    change: int  # 0: the first governor, whom the operator's word enrols
    version: int
    threshold: int
    mode: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorRemoved:
    governor_id: str
    change: int
    version: int
    threshold: int
    mode: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorThresholdSet:
    change: int
    version: int
    threshold: int
    mode: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorChangeProposed:
    """`governors`: the set in force before it, which votes on it."""

    number: int
    action: str  # ACTIONS
    governor_id: str | None
    key: str | None
    signature: str | None
    threshold: int | None
    governors: int
    mode: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorChangeScheduled:
    """Enough votes. It comes into force once `from_epoch` was opened; 0: at once."""

    number: int
    from_epoch: int
    open_epoch: int
    mode: str
    at_us: int


Fact: TypeAlias = (
    GovernorEnrolled
    | GovernorRemoved
    | GovernorThresholdSet
    | GovernorChangeProposed
    | GovernorChangeScheduled
    | VoteCast
)

# State.


@dataclass(frozen=True, slots=True)
class GovernorSet:
    """Who decides, and how many of them it takes."""

    version: int = 0
    members: tuple[str, ...] = ()
    threshold: int = 1
    mode: str = SINGLE


PROPOSED, SCHEDULED, APPLIED = "proposed", "scheduled", "applied"
REJECTED, CANCELLED = "rejected", "cancelled"
OPEN = frozenset({PROPOSED, SCHEDULED})


@dataclass(frozen=True, slots=True)
class GovernorChange:
    """A change of the register as far as its facts go."""

    proposed: GovernorChangeProposed
    status: str = PROPOSED
    votes: tuple[VoteCast, ...] = ()
    from_epoch: int | None = None

    @property
    def content(self) -> dict[str, Any]:
        """What is voted on."""
        one = self.proposed
        return {
            "action": one.action,
            "governor_id": one.governor_id,
            "key": one.key,
            "threshold": one.threshold,
        }

    @property
    def subject(self) -> Subject:
        number, governors = self.proposed.number, self.proposed.governors
        return Subject(KIND, str(number), 1, digest(content_text(self.content)), governors)


@dataclass(frozen=True, slots=True)
class Register:
    """Every set by its version, every key ever enrolled, every change ever proposed."""

    network: str = ""
    keys: dict[str, str] = field(default_factory=dict)  # governor -> public key
    sets: tuple[GovernorSet, ...] = (GovernorSet(),)
    changes: tuple[GovernorChange, ...] = ()  # number n is `changes[n - 1]`

    @property
    def now(self) -> GovernorSet:
        return self.sets[-1]

    def at(self, version: int) -> GovernorSet:
        return self.sets[version]


def evolve(state: Register, fact: Fact) -> Register:
    match fact:
        case GovernorEnrolled():
            members = (*state.now.members, fact.governor_id)
            keys = {**state.keys, fact.governor_id: fact.key}
            return _with_set(replace(state, network=fact.network, keys=keys), fact, members)
        case GovernorRemoved():
            members = tuple(one for one in state.now.members if one != fact.governor_id)
            return _with_set(state, fact, members)
        case GovernorThresholdSet():
            return _with_set(state, fact, state.now.members)
        case GovernorChangeProposed():
            return replace(state, changes=(*state.changes, GovernorChange(fact)))
        case GovernorChangeScheduled():
            return _with_change(state, fact.number, status=SCHEDULED, from_epoch=fact.from_epoch)
        case VoteCast():
            return _with_vote(state, fact)
        case _:
            assert_never(fact)


def _with_set(
    state: Register,
    fact: GovernorEnrolled | GovernorRemoved | GovernorThresholdSet,
    members: tuple[str, ...],
) -> Register:
    after = GovernorSet(fact.version, members, fact.threshold, fact.mode)
    assert after.version == len(state.sets), (after.version, len(state.sets))
    assert (after.mode == SHARED) >= (state.now.mode == SHARED), "shared is for ever"
    if after.mode == SHARED:
        assert len(members) >= SHARED_FROM, members
        assert THRESHOLD_MIN <= after.threshold <= len(members), after
    state = replace(state, sets=(*state.sets, after))
    return _with_change(state, fact.change, status=APPLIED) if fact.change else state


def _with_vote(state: Register, fact: VoteCast) -> Register:
    number = int(fact.subject)
    change = state.changes[number - 1]
    status = change.status
    if fact.carries and fact.choice != YES:
        status = REJECTED if fact.choice == NO else CANCELLED
    return _with_change(state, number, status=status, votes=(*change.votes, fact))


def _with_change(state: Register, number: int, **news: Any) -> Register:
    changes = list(state.changes)
    changes[number - 1] = replace(changes[number - 1], **news)
    return replace(state, changes=tuple(changes))


GOVERNORS: Stream[Register] = Stream("governance", "network")


def register_of(world: World) -> Register:
    return world.state(GOVERNORS)


STREAMS: dict[str, tuple[Any, Any]] = {"governance": (Register(), evolve)}
DECIDERS: dict[type[Any], Any] = {}
