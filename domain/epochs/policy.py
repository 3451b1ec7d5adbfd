"""Network policy: the numbers that decide rewards, as dated versions that never change.

    compute_ppm + availability_ppm + treasury_ppm == 1,000,000;   the treasury takes the remainder
    sum of all emission, over every version and every epoch, <= hard cap

Not the formulas (`domain/epochs/emission.py`, `domain/epochs/epoch.py`), only their numbers. An
epoch keeps the version it was opened under.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from domain.authority.acts import ActLimits
from domain.duration import SECOND_US
from domain.epochs.emission import EmissionSegment, check_segments, scheduled_through
from domain.epochs.reasons import EpochsReason
from domain.epochs.reward_terms import REWARD_TERMS, RewardTerms, check_terms
from domain.frozen import replace
from domain.money import PPM, Amount, Asset, token
from domain.refusal import Refused
from domain.stream import Change, Stream, World
from domain.trust.reasons import TrustReason

COMPUTE_BASES = ("burned_value", "gpu_time")

UNITS_MAX = 2**63 - 1
"""What an account of the books can hold."""
EPOCH_US_MAX = 366 * 86_400 * SECOND_US
EPOCHS_MAX = 1_000_000
"""No policy plans for a later epoch."""
SEGMENTS_MAX = 500
"""More would not fit into a fact."""

APPROVALS_MIN, APPROVALS_MAX = 2, 16
"""So many governors: an approval of one would be the word of one."""
NOTICE_EPOCHS_MAX = 1_000

# Facts.


@dataclass(frozen=True, slots=True)
class PolicyGovernance:
    """How the next version comes to be: so many approvals, and so many epochs ahead. Changed like
    everything else of a policy, so nobody can lower the bar alone. `alone`: what one person may
    move in a day without a second one.
    """

    approvals: int
    notice_epochs: int
    alone: ActLimits | None = None  # None: the default


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPublished:
    """Stream `policy:network`; versions count from 1."""

    version: int
    epoch_length_us: int
    segments: tuple[EmissionSegment, ...]
    hard_cap: Amount  # TOKEN; opens emission:authority and emission:unissued (version 1 only)
    compute_ppm: int
    availability_ppm: int
    treasury_ppm: int  # declared residual: takes the remainder
    compute_base: str  # "burned_value" or "gpu_time"
    holdback_epochs: int
    effective_from_epoch: int
    by: str
    at_us: int
    rewards: RewardTerms | None  # None: NO_TERMS
    governance: PolicyGovernance | None  # None: the default
    proposal: int | None  # its number; None: published at the start, by an operator


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCancelled:
    """A scheduled version that governors stopped before its first epoch: no epoch gets it."""

    version: int
    proposal: int
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPolicy:
    """The first version, for epoch 1. Later ones come of approved proposals alone
    (`domain/governance/vote.py`), which name themselves in `proposal`.
    """

    version: int
    epoch_length_us: int
    segments: tuple[EmissionSegment, ...]
    hard_cap: Amount
    compute_ppm: int
    availability_ppm: int
    treasury_ppm: int
    compute_base: str
    holdback_epochs: int
    effective_from_epoch: int
    by: str
    at_us: int
    rewards: RewardTerms | None = None
    governance: PolicyGovernance | None = None
    proposal: int | None = None


GOVERNANCE = PolicyGovernance(approvals=2, notice_epochs=4)
"""Where a policy says nothing: design economics 12, design api 3."""
EPOCH_LENGTH_US = 604_800_000_000
FIRST_EMISSION = EmissionSegment(start_epoch=1, n_epochs=52, total=590_558_000_000_000)
"""A year of weekly epochs, as in RNP-023: 5,905,580 TOKEN."""


def first_policy(by: str, at_us: int) -> PublishPolicy:
    """The terms a new network starts with: weekly epochs, 70 % compute, 20 % availability, the
    rest to the treasury, weight by burned value, rewards held back for four epochs, and the
    reward terms of `domain/epochs/reward_terms.py`.
    """
    return PublishPolicy(
        version=1,
        epoch_length_us=EPOCH_LENGTH_US,
        segments=(FIRST_EMISSION,),
        hard_cap=token(FIRST_EMISSION.total),
        compute_ppm=700_000,
        availability_ppm=200_000,
        treasury_ppm=100_000,
        compute_base="burned_value",
        holdback_epochs=4,
        effective_from_epoch=1,
        by=by,
        at_us=at_us,
        rewards=REWARD_TERMS,
    )


# What we remember.


@dataclass(frozen=True, slots=True)
class PolicyState:
    """Every version, in order: version n is `published[n - 1]`."""

    published: tuple[PolicyPublished, ...] = ()
    cancelled: tuple[int, ...] = ()

    @property
    def standing(self) -> tuple[PolicyPublished, ...]:
        """The versions that were not cancelled."""
        return tuple(one for one in self.published if one.version not in self.cancelled)


NETWORK: Stream[PolicyState] = Stream("policy", "network")


def evolve_policy(state: PolicyState, fact: PolicyPublished | PolicyCancelled) -> PolicyState:
    if isinstance(fact, PolicyCancelled):
        return replace(state, cancelled=(*state.cancelled, fact.version))
    return replace(state, published=(*state.published, fact))


def policies_of(world: World) -> tuple[PolicyPublished, ...]:
    """Every version, also the cancelled ones."""
    return world.state(NETWORK).published


def standing_policies(world: World) -> tuple[PolicyPublished, ...]:
    """Every version that was not cancelled."""
    return world.state(NETWORK).standing


def policy_for(world: World, epoch: int) -> PolicyPublished:
    """The version in force for an epoch. Raises Refused: POLICY_VERSION when there is none."""
    for policy in reversed(standing_policies(world)):
        if policy.effective_from_epoch <= epoch:
            return policy
    raise Refused(EpochsReason.POLICY_VERSION, epoch=epoch)


def policy_version(world: World, version: int) -> PolicyPublished:
    """A version by its number. Raises Refused: POLICY_VERSION when there is none."""
    published = policies_of(world)
    if not 1 <= version <= len(published):
        raise Refused(EpochsReason.POLICY_VERSION, version=version)
    return published[version - 1]


# How we decide.


def decide_publish(command: PublishPolicy, world: World) -> list[Change]:
    """The first version, by an operator. Raises Refused: POLICY_VERSION, PROPOSAL_NEEDED,
    POLICY_INVALID, BAD_SEGMENT, SEGMENTS_OVERLAP.
    """
    published = policies_of(world)
    fact = _fact(command)
    if 1 <= fact.version <= len(published) and _same(published[fact.version - 1], fact):
        return []
    if published and fact.version == len(published) + 1:
        raise Refused(EpochsReason.PROPOSAL_NEEDED, version=fact.version)
    return [next_version(command, world)]


def next_version(command: PublishPolicy, world: World) -> Change:
    """The next version, all its numbers checked; who may publish it is checked elsewhere.

    Raises Refused: POLICY_VERSION, POLICY_INVALID, BAD_SEGMENT, SEGMENTS_OVERLAP.
    """
    published = policies_of(world)
    fact = _fact(command)
    if fact.version != len(published) + 1:
        raise Refused(
            EpochsReason.POLICY_VERSION, version=fact.version, expected=len(published) + 1
        )
    _check_start(fact, standing_policies(world), world)
    check_version(command, world)
    return Change(NETWORK, fact)


def check_version(command: PublishPolicy, world: World) -> None:
    """All that can be said of a next version's numbers before it is known when it is published.

    Raises Refused: POLICY_INVALID, BAD_SEGMENT, SEGMENTS_OVERLAP.
    """
    published = standing_policies(world)
    fact = _fact(command)
    _check_numbers(fact)
    if published:
        _check_constants(fact, published[0])
    check_segments(fact.segments)
    _check_cap((*published, fact))


def cancel_version(version: int, proposal: int, at_us: int, world: World) -> Change:
    """Take a version back that no epoch was opened under; who may do so is checked elsewhere.

    Raises Refused: POLICY_INVALID where the versions beside it need it for the hard cap.
    """
    _check_cap(tuple(one for one in standing_policies(world) if one.version != version))
    return Change(NETWORK, PolicyCancelled(version=version, proposal=proposal, at_us=at_us))


def governance_of(policy: PolicyPublished) -> PolicyGovernance:
    """What a version says about how the next one comes to be."""
    return policy.governance or GOVERNANCE


def _fact(command: PublishPolicy) -> PolicyPublished:
    return PolicyPublished(**{one.name: getattr(command, one.name) for one in fields(command)})


def _same(one: PolicyPublished, other: PolicyPublished) -> bool:
    return replace(one, by="", at_us=0) == replace(other, by="", at_us=0)


def _invalid(rule: str, **facts: object) -> Refused:
    return Refused(TrustReason.POLICY_INVALID, rule=rule, **facts)


def _check_start(
    fact: PolicyPublished, published: tuple[PolicyPublished, ...], world: World
) -> None:
    """In force from the first epoch on, and after that only for epochs nobody works in yet."""
    start = fact.effective_from_epoch
    if not published:
        if start != 1:
            raise _invalid("the first version starts with epoch 1", effective_from_epoch=start)
        return
    if start <= published[-1].effective_from_epoch:
        raise _invalid("a version starts after the one before", effective_from_epoch=start)
    first: Stream[Any] = Stream("epoch", str(start))  # its file imports this one
    if world.state(first).opened is not None:
        raise _invalid("the epoch has begun", effective_from_epoch=start)


def _check_numbers(fact: PolicyPublished) -> None:
    length_us = fact.epoch_length_us
    if not 0 < length_us <= EPOCH_US_MAX or length_us % SECOND_US:
        raise _invalid("an epoch is whole seconds, at most 366 days", epoch_length_us=length_us)
    if fact.hard_cap.asset is not Asset.TOKEN or not 0 <= fact.hard_cap.units <= UNITS_MAX:
        raise _invalid("the hard cap is an amount of TOKEN that an account can hold")
    shares = (fact.compute_ppm, fact.availability_ppm, fact.treasury_ppm)
    if min(shares) < 0 or sum(shares) != PPM:
        raise _invalid("pool shares sum to exactly 100 %", sum_ppm=sum(shares))
    if fact.compute_base not in COMPUTE_BASES:
        raise _invalid("compute base", compute_base=fact.compute_base)
    if not 0 <= fact.holdback_epochs <= EPOCHS_MAX:
        raise _invalid("holdback in epochs", holdback_epochs=fact.holdback_epochs)
    if not 1 <= fact.effective_from_epoch <= EPOCHS_MAX:
        raise _invalid("first epoch", effective_from_epoch=fact.effective_from_epoch)
    if fact.rewards is not None:
        check_terms(fact.rewards)
    rules = governance_of(fact)
    if not APPROVALS_MIN <= rules.approvals <= APPROVALS_MAX:
        raise _invalid("2 to 16 approvals", approvals=rules.approvals)
    if not 1 <= rules.notice_epochs <= NOTICE_EPOCHS_MAX:
        raise _invalid("notice of 1 to 1000 epochs", notice_epochs=rules.notice_epochs)
    if rules.alone is not None and not rules.alone.is_valid:
        raise _invalid("what one person may do alone is above zero, and ends")
    ends = [segment.start_epoch + segment.n_epochs - 1 for segment in fact.segments]
    if len(ends) > SEGMENTS_MAX or max(ends, default=0) > EPOCHS_MAX:
        raise _invalid("too many segments, or too far away", segments=len(ends))
    if any(segment.start_epoch < 1 for segment in fact.segments):
        raise Refused(EpochsReason.BAD_SEGMENT, rule="epochs count from 1")


def _check_constants(fact: PolicyPublished, first: PolicyPublished) -> None:
    """What the contracts were deployed with cannot change by a vote of ours."""
    if fact.hard_cap != first.hard_cap:
        raise _invalid("the hard cap never changes")
    if fact.epoch_length_us != first.epoch_length_us:
        raise _invalid("the epoch length never changes")


def _check_cap(versions: tuple[PolicyPublished, ...]) -> None:
    planned = sum(
        scheduled_through(one.segments, following.effective_from_epoch - 1)
        - scheduled_through(one.segments, one.effective_from_epoch - 1)
        for one, following in pairwise(versions)
    )
    last = versions[-1]
    planned += sum(segment.total for segment in last.segments)
    planned -= scheduled_through(last.segments, last.effective_from_epoch - 1)
    if planned > last.hard_cap.units:
        raise _invalid("emission stays within the hard cap", planned=planned)


STREAMS: dict[str, tuple[Any, Any]] = {"policy": (PolicyState(), evolve_policy)}
DECIDERS: dict[type[Any], Any] = {PublishPolicy: decide_publish}
