"""Milestone grants: TOKEN of the treasury, set aside for somebody and unlocked as work is accepted.

    proposed --GrantOpened--> open --MilestoneAccepted*, GrantClawedBack--> open | ended

    amount_i = floor(total x S_i / 10^6) - floor(total x S_(i-1) / 10^6)     S_i: first i shares
    total == sum(amounts) + unassigned                                        at the opening
    total == locked + unlocked + unassigned + clawed back                     always
    unlocked == sum of the amounts of accepted milestones                     never more

Shares need not make 100 %: what has no milestone is `unassigned`, is told, and can only go back.
Every step is proposed, and done by the vote of governors that carries it
(`domain/authority/ballot.py`): opening, each milestone, clawback. A vote names the hash of what was
proposed, so what was proposed instead meanwhile is not accepted by it. The tokens
are set aside from what has matured to the treasury (`party:treasury:matured`), where they are
final and no longer await an epoch's slashing. Their leaf is still the treasury's: what its claim
takes of them is set aside in its wallet (`domain/chain/payout_root.py`). Unlocked is what the
network owes the grantee: the payment on the chain is not here.
Source: design economics 15, conformance suite `grant`, row R-11 (RNP-005).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, assert_never

from domain.authority import ballot
from domain.authority.vote import SignedVote, Subject, VoteCast, content_text, digest
from domain.frozen import replace
from domain.funds.reasons import FundsReason
from domain.governance.reasons import GovernanceReason
from domain.money import PPM, Amount, Asset, Big, token
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts. Stream `grant:{grant_id}`.


@dataclass(frozen=True, slots=True)
class Milestone:
    """A piece of work and its share of the total."""

    milestone_id: str
    share_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantProposed:
    """Nothing is set aside yet."""

    grant_id: str
    account_id: str  # whose the unlocked part will be
    total: Amount
    milestones: tuple[Milestone, ...]
    governors: int  # the set that votes on it
    by: str
    at_us: int
    stated_micro_usd: Big | None  # what the total is said to be worth; decides nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantOpened:
    """`locked` waits for milestones, `unassigned` has none."""

    grant_id: str
    locked: Amount
    unassigned: Amount
    proposed_by: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MilestoneProposed:
    """Somebody says that a piece of work is done, and where that can be seen."""

    grant_id: str
    milestone_id: str
    revision: int  # how often it was proposed; votes are on the newest
    evidence: str
    governors: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MilestoneAccepted:
    """Unlocked, once and for all."""

    grant_id: str
    milestone_id: str
    amount: Amount
    proposed_by: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClawbackProposed:
    grant_id: str
    revision: int  # how often one was proposed; votes are on the newest
    scope: str  # CLAWBACKS
    reason: str
    governors: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantClawedBack:
    """Back to the treasury: what has no milestone, or with `unearned` all that is not unlocked."""

    grant_id: str
    scope: str
    locked: Amount
    unassigned: Amount
    proposed_by: str
    by: str
    at_us: int


Fact: TypeAlias = (
    GrantProposed
    | GrantOpened
    | MilestoneProposed
    | MilestoneAccepted
    | ClawbackProposed
    | GrantClawedBack
    | VoteCast
)

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeGrant:
    grant_id: str
    account_id: str
    total: Amount
    milestones: tuple[Milestone, ...]
    by: str
    at_us: int
    stated_micro_usd: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGrant:
    """A governor's yes; the last one needed opens it."""

    grant_id: str
    vote: SignedVote
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeMilestone:
    grant_id: str
    milestone_id: str
    evidence: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptMilestone:
    """A governor's yes; the last one needed unlocks it."""

    grant_id: str
    milestone_id: str
    vote: SignedVote
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeClawback:
    grant_id: str
    scope: str
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptClawback:
    """A governor's yes; the last one needed takes it back."""

    grant_id: str
    vote: SignedVote
    key_id: str
    by: str
    at_us: int


UNASSIGNED, UNEARNED = "unassigned", "unearned"
CLAWBACKS = (UNASSIGNED, UNEARNED)
TREASURY = "party:treasury:matured"
MILESTONES_MAX = 100
TOTAL_MAX = 2**63 - 1
STATED_MAX = 10**18
"""Micro-dollars: a trillion dollars."""
TOKEN_UNITS = 10**8
TEXT_MAX = 1_000
MILESTONE_ID = r"[a-z0-9][a-z0-9-]{0,59}"
_MILESTONE_ID = re.compile(MILESTONE_ID, re.ASCII)

# The formula.


@dataclass(frozen=True, slots=True)
class Parts:
    """A total split by shares: what each milestone unlocks, and what has none."""

    amounts: dict[str, int]
    unlocked: int
    locked: int
    unassigned: int


def split(total: int, milestones: Sequence[Milestone], completed: Iterable[str] = ()) -> Parts:
    """Cumulative floors in the order of the list, so shares of 100 % give exactly the total.

    Rule: conformance suite `grant`. Repeated ids of `completed` count once. Raises Refused:
    DUPLICATE_MILESTONE, BAD_SHARE, OVER_ASSIGNED, UNKNOWN_MILESTONE.
    """
    names = [one.milestone_id for one in milestones]
    if len(set(names)) != len(names):
        raise Refused(GovernanceReason.DUPLICATE_MILESTONE)
    for one in milestones:
        if one.share_ppm < 0:
            raise Refused(
                GovernanceReason.BAD_SHARE, milestone_id=one.milestone_id, share_ppm=one.share_ppm
            )
    shares = sum(one.share_ppm for one in milestones)
    if shares > PPM:
        raise Refused(GovernanceReason.OVER_ASSIGNED, shares_ppm=shares)
    done = set(completed)
    for name in sorted(done - set(names)):
        raise Refused(GovernanceReason.UNKNOWN_MILESTONE, milestone_id=name)
    amounts, before = dict[str, int](), 0
    for one in milestones:
        after = before + one.share_ppm
        amounts[one.milestone_id] = total * after // PPM - total * before // PPM
        before = after
    unlocked = sum(units for name, units in amounts.items() if name in done)
    assigned = sum(amounts.values())
    assert 0 <= assigned <= total
    return Parts(amounts, unlocked, assigned - unlocked, total - assigned)


# State.


OPENING, MILESTONE, CLAWBACK = "grant", "milestone", "clawback"
"""Kinds of votes."""


@dataclass(frozen=True, slots=True)
class WaitingMilestone:
    """A milestone that waits for votes, with those it has."""

    proposed: MilestoneProposed
    votes: tuple[VoteCast, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingClawback:
    """A clawback that waits for votes, with those it has."""

    proposed: ClawbackProposed
    votes: tuple[VoteCast, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant as far as its facts go; `waiting` are milestones proposed and not accepted."""

    proposed: GrantProposed | None = None
    votes: tuple[VoteCast, ...] = ()  # on the opening
    status: str = "unknown"  # "proposed", "open", "ended"
    waiting: dict[str, WaitingMilestone] = field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    clawback: WaitingClawback | None = None
    clawbacks: int = 0  # ever proposed
    locked: Big = 0
    unlocked: Big = 0
    unassigned: Big = 0
    clawed_back: Big = 0

    @property
    def parts(self) -> Parts:
        """What each milestone is worth."""
        assert self.proposed is not None
        return split(self.proposed.total.units, self.proposed.milestones, self.accepted)

    @property
    def implied_micro_usd(self) -> int | None:
        """What one TOKEN is worth by the value that was stated: floor(value / total)."""
        assert self.proposed is not None
        stated = self.proposed.stated_micro_usd
        return None if stated is None else stated * TOKEN_UNITS // self.proposed.total.units

    def ballots(self) -> list[tuple[Subject, dict[str, Any], tuple[VoteCast, ...]]]:
        """What is voted on now: the subject, its content, and its votes."""
        assert self.proposed is not None
        found = []
        if self.status == "proposed":
            found.append((*opening_of(self.proposed), self.votes))
        found += [(*milestone_of(self, one.proposed), one.votes) for one in self.waiting.values()]
        if self.clawback is not None:
            found.append((*clawback_of(self.clawback.proposed), self.clawback.votes))
        return found


def opening_of(proposed: GrantProposed) -> tuple[Subject, dict[str, Any]]:
    """What a vote on an opening is on."""
    content: dict[str, Any] = {
        "grant_id": proposed.grant_id,
        "account_id": proposed.account_id,
        "total": str(proposed.total.units),
        "milestones": [
            {"milestone_id": one.milestone_id, "share_ppm": one.share_ppm}
            for one in proposed.milestones
        ],
    }
    if proposed.stated_micro_usd is not None:
        content["stated_micro_usd"] = str(proposed.stated_micro_usd)
    return _subject(OPENING, proposed.grant_id, 1, content, proposed.governors), content


def milestone_of(grant: Grant, proposed: Any) -> tuple[Subject, dict[str, Any]]:
    """What a vote on a milestone is on."""
    content = {
        "grant_id": proposed.grant_id,
        "milestone_id": proposed.milestone_id,
        "amount": str(grant.parts.amounts[proposed.milestone_id]),
        "evidence": proposed.evidence,
    }
    name = f"{proposed.grant_id}/{proposed.milestone_id}"
    return _subject(MILESTONE, name, proposed.revision, content, proposed.governors), content


def clawback_of(proposed: Any) -> tuple[Subject, dict[str, Any]]:
    """What a vote on a clawback is on."""
    content = {"grant_id": proposed.grant_id, "scope": proposed.scope, "reason": proposed.reason}
    subject = _subject(CLAWBACK, proposed.grant_id, proposed.revision, content, proposed.governors)
    return subject, content


def _subject(
    kind: str, name: str, revision: int, content: dict[str, Any], governors: int
) -> Subject:
    return Subject(kind, name, revision, digest(content_text(content)), governors)


def evolve(grant: Grant, fact: Fact) -> Grant:
    match fact:
        case GrantProposed():
            return replace(grant, proposed=fact, status="proposed")
        case GrantOpened():
            return replace(
                grant, status="open", locked=fact.locked.units, unassigned=fact.unassigned.units
            )
        case MilestoneProposed():
            return replace(
                grant, waiting={**grant.waiting, fact.milestone_id: WaitingMilestone(fact)}
            )
        case MilestoneAccepted():
            waiting = {k: one for k, one in grant.waiting.items() if k != fact.milestone_id}
            return replace(
                grant,
                waiting=waiting,
                accepted=(*grant.accepted, fact.milestone_id),
                locked=grant.locked - fact.amount.units,
                unlocked=grant.unlocked + fact.amount.units,
            )
        case ClawbackProposed():
            return replace(grant, clawback=WaitingClawback(fact), clawbacks=fact.revision)
        case GrantClawedBack():
            return replace(
                grant,
                status="ended" if fact.scope == UNEARNED else grant.status,
                clawback=None,
                locked=grant.locked - fact.locked.units,
                unassigned=grant.unassigned - fact.unassigned.units,
                clawed_back=grant.clawed_back + fact.locked.units + fact.unassigned.units,
            )
        case VoteCast():
            return _with_vote(grant, fact)
        case _:
            assert_never(fact)


def _with_vote(grant: Grant, fact: VoteCast) -> Grant:
    if fact.kind == OPENING:
        return replace(grant, votes=(*grant.votes, fact))
    if fact.kind == CLAWBACK:
        assert grant.clawback is not None
        return replace(grant, clawback=_voted(grant.clawback, fact))
    name = fact.subject.partition("/")[2]
    waiting = {**grant.waiting, name: _voted(grant.waiting[name], fact)}
    return replace(grant, waiting=waiting)


_Waiting = TypeVar("_Waiting", WaitingMilestone, WaitingClawback)


def _voted(waiting: _Waiting, fact: VoteCast) -> _Waiting:
    return replace(waiting, votes=(*waiting.votes, fact))


def stream_of(grant_id: str) -> Stream[Grant]:
    return Stream("grant", grant_id)


def existing_grant(world: World, grant_id: str) -> tuple[Grant, GrantProposed]:
    """Raises Refused: GRANT_UNKNOWN."""
    state = world.state(stream_of(grant_id))
    if state.proposed is None:
        raise Refused(GovernanceReason.GRANT_UNKNOWN, grant_id=grant_id)
    return state, state.proposed


# How we decide.


def decide_propose(command: ProposeGrant, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, GRANT_EXISTS, AMOUNT_NOT_POSITIVE,
    AMOUNT_OUT_OF_RANGE, COUNT_OUT_OF_RANGE, BAD_MILESTONE, NO_GOVERNORS, and those of `split`.
    """
    open_account(world, command.account_id)
    state = world.state(stream_of(command.grant_id))
    if state.proposed is not None:
        raise Refused(GovernanceReason.GRANT_EXISTS, grant_id=command.grant_id)
    if command.total.units <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, field="total")
    if command.total.asset is not Asset.TOKEN or command.total.units > TOTAL_MAX:
        raise Refused(
            PricesReason.AMOUNT_OUT_OF_RANGE, field="total", asset=command.total.asset.value
        )
    stated = command.stated_micro_usd
    if stated is not None and not 0 < stated <= STATED_MAX:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field="stated_value", most=STATED_MAX)
    if not 1 <= len(command.milestones) <= MILESTONES_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field="milestones", at_most=MILESTONES_MAX)
    for one in command.milestones:
        if _MILESTONE_ID.fullmatch(one.milestone_id) is None:
            raise Refused(GovernanceReason.BAD_MILESTONE, milestone_id=one.milestone_id)
    split(command.total.units, command.milestones)
    fact = GrantProposed(
        grant_id=command.grant_id,
        account_id=command.account_id,
        total=command.total,
        milestones=command.milestones,
        governors=ballot.present_set(world),
        by=command.by,
        at_us=command.at_us,
        stated_micro_usd=stated,
    )
    return [Change(stream_of(command.grant_id), fact)]


def decide_open(command: OpenGrant, world: World) -> list[Change]:
    """Set the tokens aside. Raises Refused: GRANT_UNKNOWN, GRANT_STATE, ACCOUNT_CLOSED,
    TREASURY_SHORT, and those of `ballot.cast`.
    """
    grant, proposed = existing_grant(world, command.grant_id)
    if grant.status != "proposed":
        raise Refused(GovernanceReason.GRANT_STATE, grant_id=command.grant_id, status=grant.status)
    open_account(world, proposed.account_id)
    total, there = proposed.total.units, world.balance(TREASURY)
    if total > there:
        raise Refused(GovernanceReason.TREASURY_SHORT, needed=total, matured=there)
    voted = _cast(world, command, opening_of(proposed)[0], grant.votes)
    if not voted.fact.carries:
        return [voted]
    parts = grant.parts
    fact = GrantOpened(
        grant_id=command.grant_id,
        locked=token(parts.locked),
        unassigned=token(parts.unassigned),
        proposed_by=proposed.by,
        by=command.by,
        at_us=command.at_us,
    )
    return [voted, Change(stream_of(command.grant_id), fact)]


def decide_propose_milestone(command: ProposeMilestone, world: World) -> list[Change]:
    """Proposing it again begins its votes anew. Raises Refused: GRANT_UNKNOWN, GRANT_STATE,
    UNKNOWN_MILESTONE, MILESTONE_STATE, AMOUNT_OUT_OF_RANGE, NO_GOVERNORS.
    """
    grant = _open_with(world, command.grant_id, command.milestone_id)
    _require_text(command.evidence, "evidence")
    waiting = grant.waiting.get(command.milestone_id)
    before: Any = None if waiting is None else waiting.proposed
    fact = MilestoneProposed(
        grant_id=command.grant_id,
        milestone_id=command.milestone_id,
        revision=1 if before is None else before.revision + 1,
        evidence=command.evidence,
        governors=ballot.present_set(world),
        by=command.by,
        at_us=command.at_us,
    )
    if _same(before, fact):
        return []
    return [Change(stream_of(command.grant_id), fact)]


def decide_accept_milestone(command: AcceptMilestone, world: World) -> list[Change]:
    """Unlock what the milestone is worth, exactly once.

    Raises Refused: GRANT_UNKNOWN, GRANT_STATE, UNKNOWN_MILESTONE, MILESTONE_STATE, and those of
    `ballot.cast`.
    """
    grant = _open_with(world, command.grant_id, command.milestone_id)
    waiting = grant.waiting.get(command.milestone_id)
    if waiting is None:
        raise Refused(
            GovernanceReason.MILESTONE_STATE, milestone_id=command.milestone_id, rule="not proposed"
        )
    voted = _cast(world, command, milestone_of(grant, waiting.proposed)[0], waiting.votes)
    if not voted.fact.carries:
        return [voted]
    fact = MilestoneAccepted(
        grant_id=command.grant_id,
        milestone_id=command.milestone_id,
        amount=token(grant.parts.amounts[command.milestone_id]),
        proposed_by=waiting.proposed.by,
        by=command.by,
        at_us=command.at_us,
    )
    return [voted, Change(stream_of(command.grant_id), fact)]


def decide_propose_clawback(command: ProposeClawback, world: World) -> list[Change]:
    """Proposing another begins the votes anew. Raises Refused: GRANT_UNKNOWN, GRANT_STATE,
    UNKNOWN_MODE, AMOUNT_OUT_OF_RANGE, NO_GOVERNORS.
    """
    grant = _open(world, command.grant_id)
    if command.scope not in CLAWBACKS:
        raise Refused(PartiesReason.UNKNOWN_MODE, scope=command.scope, allowed=CLAWBACKS)
    _require_text(command.reason, "reason")
    fact = ClawbackProposed(
        grant_id=command.grant_id,
        revision=grant.clawbacks + 1,
        scope=command.scope,
        reason=command.reason,
        governors=ballot.present_set(world),
        by=command.by,
        at_us=command.at_us,
    )
    if grant.clawback is not None and _same(grant.clawback.proposed, fact):
        return []
    return [Change(stream_of(command.grant_id), fact)]


def decide_accept_clawback(command: AcceptClawback, world: World) -> list[Change]:
    """What was unlocked stays unlocked. Raises Refused: GRANT_UNKNOWN, GRANT_STATE, and those of
    `ballot.cast`.
    """
    grant = _open(world, command.grant_id)
    if grant.clawback is None:
        raise Refused(GovernanceReason.GRANT_STATE, grant_id=command.grant_id, rule="not proposed")
    proposed: Any = grant.clawback.proposed
    voted = _cast(world, command, clawback_of(proposed)[0], grant.clawback.votes)
    if not voted.fact.carries:
        return [voted]
    scope = proposed.scope
    fact = GrantClawedBack(
        grant_id=command.grant_id,
        scope=scope,
        locked=token(grant.locked if scope == UNEARNED else 0),
        unassigned=token(grant.unassigned),
        proposed_by=proposed.by,
        by=command.by,
        at_us=command.at_us,
    )
    return [voted, Change(stream_of(command.grant_id), fact)]


def _open(world: World, grant_id: str) -> Grant:
    """Raises Refused: GRANT_UNKNOWN, GRANT_STATE."""
    grant, _ = existing_grant(world, grant_id)
    if grant.status != "open":
        raise Refused(GovernanceReason.GRANT_STATE, grant_id=grant_id, status=grant.status)
    return grant


def _open_with(world: World, grant_id: str, milestone_id: str) -> Grant:
    """Raises Refused: GRANT_UNKNOWN, GRANT_STATE, UNKNOWN_MILESTONE, MILESTONE_STATE."""
    grant = _open(world, grant_id)
    if milestone_id not in grant.parts.amounts:
        raise Refused(GovernanceReason.UNKNOWN_MILESTONE, milestone_id=milestone_id)
    if milestone_id in grant.accepted:
        raise Refused(
            GovernanceReason.MILESTONE_STATE, milestone_id=milestone_id, rule="accepted already"
        )
    return grant


def _cast(
    world: World,
    command: OpenGrant | AcceptMilestone | AcceptClawback,
    subject: Subject,
    votes: tuple[VoteCast, ...],
) -> Change:
    """Raises Refused: those of `ballot.cast`."""
    fact = ballot.cast(
        world,
        subject,
        votes,
        command.vote,
        key_id=command.key_id,
        by=command.by,
        at_us=command.at_us,
    )
    return Change(stream_of(command.grant_id), fact)


def _same(before: Any, fact: MilestoneProposed | ClawbackProposed) -> bool:
    """Whether nothing but the moment and the count is new."""
    return before is not None and replace(before, at_us=0, revision=0) == replace(
        fact, at_us=0, revision=0
    )


def _require_text(text: str, name: str) -> None:
    if not 1 <= len(text) <= TEXT_MAX:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field=name, length_max=TEXT_MAX)


STREAMS: dict[str, tuple[Any, Any]] = {"grant": (Grant(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    ProposeGrant: decide_propose,
    OpenGrant: decide_open,
    ProposeMilestone: decide_propose_milestone,
    AcceptMilestone: decide_accept_milestone,
    ProposeClawback: decide_propose_clawback,
    AcceptClawback: decide_accept_clawback,
}
