"""Corrections of rewards: a slash takes what is not mature, an adjustment settles with an epoch.

    proposed --votes--> accepted: RewardSlashed, and for the rest RewardAdjusted

    slashed == min(asked, unmatured of the epoch)        slashed - adjusted == what was asked for
    accounts with an open adjustment <= 500              a slash leaves nothing to adjust

A sealed epoch is never edited. What is taken comes from its unmatured reward first, and then from
what the account earns in the open epoch and after it; what is given is paid by the treasury then.
What has matured is never taken, so no payout leaf falls. Not how it is settled: that is
`domain/epochs/settlement.py`; nor how votes count: that is `domain/authority/ballot.py`.
Source: design economics 10 and 17.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.authority import ballot
from domain.authority.vote import SignedVote, Subject, VoteCast, content_text, digest
from domain.epochs.epoch import Epoch, epoch_of, has_credited, open_adjustments, stream_of
from domain.epochs.reasons import EpochsReason
from domain.epochs.reward_changes import Reward, RewardAdjusted, RewardSlashed
from domain.frozen import replace
from domain.money import Big, token
from domain.parties.account import account_of
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

SLASH, ADJUSTMENT = "slash", "adjustment"
KINDS = (SLASH, ADJUSTMENT)
ADJUSTED_MAX = 500
"""Accounts that have an adjustment which no seal has settled: a seal stays a small fact."""
UNITS_MAX = 2**63 - 1
TEXT_MAX = 1_000

# Facts. Stream `reward_correction:{correction_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardCorrectionProposed:
    """Nothing has moved yet."""

    correction_id: str
    kind: str  # KINDS
    epoch: int  # whose reward was wrong
    account_id: str
    delta: Big  # TOKEN units to give (> 0) or to take (< 0)
    reason: str
    evidence_position: int | None  # of the market log
    governors: int  # the set that votes on it
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardCorrectionAccepted:
    """What came of it, beside the facts that moved it."""

    correction_id: str
    slashed: Big
    adjusted: Big
    adjusted_epoch: int | None  # the open epoch that settles `adjusted`
    proposed_by: str
    by: str
    at_us: int


Fact: TypeAlias = RewardCorrectionProposed | VoteCast | RewardCorrectionAccepted

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeRewardCorrection:
    correction_id: str
    kind: str
    epoch: int
    account_id: str
    delta: int
    reason: str
    evidence_position: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptRewardCorrection:
    """A governor's yes; the last one needed does it. `chunk` and `rewards`: the credited chunk that
    holds the account's reward; 0 and nothing where the epoch credited it none.
    """

    correction_id: str
    open_epoch: int
    chunk: int
    rewards: tuple[Reward, ...]
    vote: SignedVote
    key_id: str
    by: str
    at_us: int


# State.


@dataclass(frozen=True, slots=True)
class RewardCorrection:
    proposed: RewardCorrectionProposed | None = None
    votes: tuple[VoteCast, ...] = ()
    accepted: RewardCorrectionAccepted | None = None

    def ballot(self) -> tuple[Subject, dict[str, Any]]:
        """What a vote is on, and its content."""
        asked = self.proposed
        assert asked is not None
        content = {
            "correction_id": asked.correction_id,
            "kind": asked.kind,
            "epoch": asked.epoch,
            "account_id": asked.account_id,
            "delta": str(asked.delta),
            "reason": asked.reason,
            "evidence_position": asked.evidence_position,
        }
        text = digest(content_text(content))
        return Subject(asked.kind, asked.correction_id, 1, text, asked.governors), content


def evolve(correction: RewardCorrection, fact: Fact) -> RewardCorrection:
    match fact:
        case RewardCorrectionProposed():
            return replace(correction, proposed=fact)
        case VoteCast():
            return replace(correction, votes=(*correction.votes, fact))
        case RewardCorrectionAccepted():
            return replace(correction, accepted=fact)
        case _:
            assert_never(fact)


def correction_stream(correction_id: str) -> Stream[RewardCorrection]:
    return Stream("reward_correction", correction_id)


def correction_of(world: World, correction_id: str) -> RewardCorrection:
    """Raises Refused: REWARD_CORRECTION_UNKNOWN."""
    state = world.state(correction_stream(correction_id))
    if state.proposed is None:
        raise Refused(EpochsReason.REWARD_CORRECTION_UNKNOWN, correction_id=correction_id)
    return state


def unmatured_of(epoch: Epoch, account_id: str, chunk: int, rewards: Sequence[Reward]) -> int:
    """What a slash of this account could take of the epoch's reward at most, in TOKEN units.

    Raises Refused: REWARDS_MISMATCH when the chunk is not the one that was credited.
    """
    if not chunk:
        return 0
    if not has_credited(epoch, chunk, rewards):
        raise Refused(EpochsReason.REWARDS_MISMATCH, chunk=chunk, rule="not the credited chunk")
    if chunk <= epoch.matured_count:
        return 0
    credited = sum(one.amount.units for one in rewards if one.account_id == account_id)
    left = credited - epoch.changes.slashed.get(account_id, 0)
    assert left >= 0, (account_id, credited, left)
    return left


# How we decide.


def decide_propose(command: ProposeRewardCorrection, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN (the treasury has no account: it cannot be corrected),
    EPOCH_UNKNOWN, EPOCH_STATE, UNKNOWN_MODE, AMOUNT_OUT_OF_RANGE, REWARD_CORRECTION_STATE,
    NO_GOVERNORS.
    """
    state = world.state(correction_stream(command.correction_id))
    fact = RewardCorrectionProposed(
        correction_id=command.correction_id,
        kind=command.kind,
        epoch=command.epoch,
        account_id=command.account_id,
        delta=command.delta,
        reason=command.reason,
        evidence_position=command.evidence_position,
        governors=ballot.present_set(world),
        by=command.by,
        at_us=command.at_us,
    )
    if state.proposed is not None:
        if replace(state.proposed, at_us=command.at_us, governors=fact.governors) == fact:
            return []
        raise Refused(EpochsReason.REWARD_CORRECTION_STATE, correction_id=command.correction_id)
    if not account_of(world, command.account_id).exists:
        raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=command.account_id)
    epoch = epoch_of(world, command.epoch)
    if epoch.sealed is None:
        raise Refused(EpochsReason.EPOCH_STATE, epoch=command.epoch, status=epoch.status)
    if command.kind not in KINDS:
        raise Refused(PartiesReason.UNKNOWN_MODE, kind=command.kind, allowed=KINDS)
    least, most = -UNITS_MAX, -1 if command.kind == SLASH else UNITS_MAX
    if not least <= command.delta <= most or not command.delta:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field="delta", delta=command.delta)
    if not 1 <= len(command.reason) <= TEXT_MAX:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field="reason", length_max=TEXT_MAX)
    return [Change(correction_stream(command.correction_id), fact)]


def decide_accept(command: AcceptRewardCorrection, world: World) -> list[Change]:
    """Accepting again changes nothing.

    Raises Refused: REWARD_CORRECTION_UNKNOWN, REWARDS_MISMATCH, NOTHING_UNMATURED, EPOCH_UNKNOWN,
    EPOCH_STATE, COUNT_OUT_OF_RANGE, and those of `ballot.cast`.
    """
    correction = correction_of(world, command.correction_id)
    proposed = correction.proposed
    assert proposed is not None
    if correction.accepted is not None:
        return []
    epoch = epoch_of(world, proposed.epoch)
    unmatured = unmatured_of(epoch, proposed.account_id, command.chunk, command.rewards)
    slashed = min(max(-proposed.delta, 0), unmatured)
    adjusted = 0 if proposed.kind == SLASH else proposed.delta + slashed
    if proposed.kind == SLASH and not slashed:
        raise Refused(EpochsReason.NOTHING_UNMATURED, epoch=proposed.epoch)
    if adjusted:
        _check_open(world, command.open_epoch, proposed.account_id)
    stream = correction_stream(command.correction_id)
    vote = ballot.cast(
        world,
        correction.ballot()[0],
        correction.votes,
        command.vote,
        key_id=command.key_id,
        by=command.by,
        at_us=command.at_us,
    )
    if not vote.carries:
        return [Change(stream, vote)]
    accepted = RewardCorrectionAccepted(
        correction_id=command.correction_id,
        slashed=slashed,
        adjusted=adjusted,
        adjusted_epoch=command.open_epoch if adjusted else None,
        proposed_by=proposed.by,
        by=command.by,
        at_us=command.at_us,
    )
    return [
        Change(stream, vote),
        Change(stream, accepted),
        *_slashing(proposed, slashed, command),
        *_adjusting(proposed, adjusted, command),
    ]


def _check_open(world: World, open_epoch: int, account_id: str) -> None:
    epoch = epoch_of(world, open_epoch)
    if epoch.status != "open":
        raise Refused(EpochsReason.EPOCH_STATE, epoch=open_epoch, status=epoch.status)
    accounts = open_adjustments(world, open_epoch) | {account_id}
    if len(accounts) > ADJUSTED_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field="adjustments", at_most=ADJUSTED_MAX)


def _slashing(
    proposed: RewardCorrectionProposed, units: int, command: AcceptRewardCorrection
) -> list[Change]:
    if not units:
        return []
    fact = RewardSlashed(
        epoch=proposed.epoch,
        correction_id=proposed.correction_id,
        account_id=proposed.account_id,
        amount=token(units),
        reason=proposed.reason,
        evidence_position=proposed.evidence_position,
        proposed_by=proposed.by,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(proposed.epoch), fact)]


def _adjusting(
    proposed: RewardCorrectionProposed, delta: int, command: AcceptRewardCorrection
) -> list[Change]:
    if not delta:
        return []
    fact = RewardAdjusted(
        epoch=command.open_epoch,
        original_epoch=proposed.epoch,
        correction_id=proposed.correction_id,
        account_id=proposed.account_id,
        delta=delta,
        reason=proposed.reason,
        proposed_by=proposed.by,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.open_epoch), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {"reward_correction": (RewardCorrection(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    ProposeRewardCorrection: decide_propose,
    AcceptRewardCorrection: decide_accept,
}
