"""Milestone grants: TOKEN of the treasury, set aside for somebody and unlocked as work is accepted.

    proposed --GrantOpened--> open --MilestoneAccepted*, GrantClawedBack--> open | ended

    amount_i = floor(total x S_i / 10^6) - floor(total x S_(i-1) / 10^6)     S_i: first i shares
    total == sum(amounts) + unassigned                                        at the opening
    total == locked + unlocked + unassigned + clawed back                     always
    unlocked == sum of the amounts of accepted milestones                     never more

Shares need not make 100 %: what has no milestone is `unassigned`, is told, and can only go back.
Every step takes two people: one proposes it, another one of the governance accepts it. The tokens
are set aside from what has matured to the treasury (`party:treasury:matured`), where they are
final and no longer await an epoch's slashing. Their leaf is still the treasury's: what its claim
takes of them is set aside in its wallet (`domain/chain/payout_root.py`). Unlocked is what the
network owes the grantee: the payment on the chain is not here.
Source: design economics 15, conformance suite `grant`, row R-11 (RNP-005).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, assert_never

from domain.epochs.reasons import EpochsReason
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
    by: str
    at_us: int


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
    evidence: str
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
    scope: str  # CLAWBACKS
    reason: str
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGrant:
    """The second person's yes."""

    grant_id: str
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
    """The second person's yes."""

    grant_id: str
    milestone_id: str
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
    """The second person's yes."""

    grant_id: str
    by: str
    at_us: int


UNASSIGNED, UNEARNED = "unassigned", "unearned"
CLAWBACKS = (UNASSIGNED, UNEARNED)
TREASURY = "party:treasury:matured"
MILESTONES_MAX = 100
TOTAL_MAX = 2**63 - 1
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


@dataclass(frozen=True, slots=True)
class Clawback:
    """A clawback that waits for its second person."""

    scope: str
    by: str


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant as far as its facts go; `waiting` are milestones proposed and not accepted."""

    proposed: GrantProposed | None = None
    status: str = "unknown"  # "proposed", "open", "ended"
    waiting: dict[str, str] = field(default_factory=dict)  # milestone -> who proposed
    accepted: tuple[str, ...] = ()
    clawback: Clawback | None = None
    locked: Big = 0
    unlocked: Big = 0
    unassigned: Big = 0
    clawed_back: Big = 0

    @property
    def parts(self) -> Parts:
        """What each milestone is worth."""
        assert self.proposed is not None
        return split(self.proposed.total.units, self.proposed.milestones, self.accepted)


def evolve(grant: Grant, fact: Fact) -> Grant:
    match fact:
        case GrantProposed():
            return replace(grant, proposed=fact, status="proposed")
        case GrantOpened():
            return replace(
                grant, status="open", locked=fact.locked.units, unassigned=fact.unassigned.units
            )
        case MilestoneProposed():
            return replace(grant, waiting={**grant.waiting, fact.milestone_id: fact.by})
        case MilestoneAccepted():
            waiting = {k: who for k, who in grant.waiting.items() if k != fact.milestone_id}
            return replace(
                grant,
                waiting=waiting,
                accepted=(*grant.accepted, fact.milestone_id),
                locked=grant.locked - fact.amount.units,
                unlocked=grant.unlocked + fact.amount.units,
            )
        case ClawbackProposed():
            return replace(grant, clawback=Clawback(fact.scope, fact.by))
        case GrantClawedBack():
            return replace(
                grant,
                status="ended" if fact.scope == UNEARNED else grant.status,
                clawback=None,
                locked=grant.locked - fact.locked.units,
                unassigned=grant.unassigned - fact.unassigned.units,
                clawed_back=grant.clawed_back + fact.locked.units + fact.unassigned.units,
            )
        case _:
            assert_never(fact)


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
    AMOUNT_OUT_OF_RANGE, COUNT_OUT_OF_RANGE, BAD_MILESTONE, and those of `split`.
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
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.grant_id), fact)]


def decide_open(command: OpenGrant, world: World) -> list[Change]:
    """Set the tokens aside. Raises Refused: GRANT_UNKNOWN, GRANT_STATE, SECOND_PERSON_NEEDED,
    ACCOUNT_CLOSED, TREASURY_SHORT.
    """
    grant, proposed = existing_grant(world, command.grant_id)
    if grant.status != "proposed":
        raise Refused(GovernanceReason.GRANT_STATE, grant_id=command.grant_id, status=grant.status)
    _require_second(proposed.by, command.by)
    open_account(world, proposed.account_id)
    total, there = proposed.total.units, world.balance(TREASURY)
    if total > there:
        raise Refused(GovernanceReason.TREASURY_SHORT, needed=total, matured=there)
    parts = grant.parts
    fact = GrantOpened(
        grant_id=command.grant_id,
        locked=token(parts.locked),
        unassigned=token(parts.unassigned),
        proposed_by=proposed.by,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.grant_id), fact)]


def decide_propose_milestone(command: ProposeMilestone, world: World) -> list[Change]:
    """Proposing it again names a new proposer. Raises Refused: GRANT_UNKNOWN, GRANT_STATE,
    UNKNOWN_MILESTONE, MILESTONE_STATE, AMOUNT_OUT_OF_RANGE.
    """
    grant = _open_with(world, command.grant_id, command.milestone_id)
    _require_text(command.evidence, "evidence")
    if grant.waiting.get(command.milestone_id) == command.by:
        return []
    fact = MilestoneProposed(
        grant_id=command.grant_id,
        milestone_id=command.milestone_id,
        evidence=command.evidence,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.grant_id), fact)]


def decide_accept_milestone(command: AcceptMilestone, world: World) -> list[Change]:
    """Unlock what the milestone is worth, exactly once.

    Raises Refused: GRANT_UNKNOWN, GRANT_STATE, UNKNOWN_MILESTONE, MILESTONE_STATE,
    SECOND_PERSON_NEEDED.
    """
    grant = _open_with(world, command.grant_id, command.milestone_id)
    proposed_by = grant.waiting.get(command.milestone_id)
    if proposed_by is None:
        raise Refused(
            GovernanceReason.MILESTONE_STATE, milestone_id=command.milestone_id, rule="not proposed"
        )
    _require_second(proposed_by, command.by)
    fact = MilestoneAccepted(
        grant_id=command.grant_id,
        milestone_id=command.milestone_id,
        amount=token(grant.parts.amounts[command.milestone_id]),
        proposed_by=proposed_by,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.grant_id), fact)]


def decide_propose_clawback(command: ProposeClawback, world: World) -> list[Change]:
    """Raises Refused: GRANT_UNKNOWN, GRANT_STATE, UNKNOWN_MODE, AMOUNT_OUT_OF_RANGE."""
    grant = _open(world, command.grant_id)
    if command.scope not in CLAWBACKS:
        raise Refused(PartiesReason.UNKNOWN_MODE, scope=command.scope)
    _require_text(command.reason, "reason")
    if grant.clawback == Clawback(command.scope, command.by):
        return []
    fact = ClawbackProposed(
        grant_id=command.grant_id,
        scope=command.scope,
        reason=command.reason,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.grant_id), fact)]


def decide_accept_clawback(command: AcceptClawback, world: World) -> list[Change]:
    """What was unlocked stays unlocked. Raises Refused: GRANT_UNKNOWN, GRANT_STATE,
    SECOND_PERSON_NEEDED.
    """
    grant = _open(world, command.grant_id)
    if grant.clawback is None:
        raise Refused(GovernanceReason.GRANT_STATE, grant_id=command.grant_id, rule="not proposed")
    _require_second(grant.clawback.by, command.by)
    scope = grant.clawback.scope
    fact = GrantClawedBack(
        grant_id=command.grant_id,
        scope=scope,
        locked=token(grant.locked if scope == UNEARNED else 0),
        unassigned=token(grant.unassigned),
        proposed_by=grant.clawback.by,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.grant_id), fact)]


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


def _require_second(proposed_by: str, by: str) -> None:
    """Raises Refused: SECOND_PERSON_NEEDED."""
    if proposed_by == by:
        raise Refused(EpochsReason.SECOND_PERSON_NEEDED, proposed_by=proposed_by)


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
