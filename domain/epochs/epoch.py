"""Epochs: a stretch of time, the cut that ends it, and what it pays.

    open --EpochClosing + UsagePinned--> closing --EpochSealed--> sealed --RewardsCredited*-->
    credited --RewardsMatured*--> settled

    minted == emission + release - returned;   emission <= emission:unissued
    rewards + carries after == minted + carries before;   all to the unit
    matured of a chunk == credited - slashed

What an epoch pays is a pure function of its cut (`domain/epochs/settlement.py`): the same nodes in
any order give the same bytes. A sealed epoch never changes. The carries live in the chain of epochs
itself: epoch n starts from what the seal of epoch n - 1 left, so it is sealed after it. Lifetime
totals are in the books (`party:{id}:matured` and what was paid), not here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from itertools import pairwise
from typing import Any, assert_never

from domain.epochs.policy import policy_for, policy_version
from domain.epochs.reasons import EpochsReason
from domain.epochs.reward_changes import (
    UNCHANGED,
    Reward,
    RewardAdjusted,
    RewardChange,
    RewardChanges,
    RewardsForfeited,
    RewardSlashed,
    evolve_changes,
)
from domain.epochs.settlement import CutHead, Openings, Outcome, is_sound
from domain.frozen import replace
from domain.metering.pin import UsagePinned, last_pin, pinned
from domain.metering.reasons import MeteringReason
from domain.money import Amount, Big, token
from domain.prices.price_feed import require_recent
from domain.refusal import Refused
from domain.stream import Change, Stream, World

CHUNK_MAX = 500
"""Recipients of one `RewardsCredited`: a fact stays small whatever the network's size."""
MISSING_MAX = 100
"""Names of one override's fact; the rest is counted."""

# Facts.


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What an account is still to be given (> 0), or to give back (< 0), in TOKEN units."""

    account_id: str
    delta: Big


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochOpened:
    """Stream `epoch:{n}`; n counts from 1. Covers [start_us, end_us)."""

    epoch: int
    start_us: int
    end_us: int
    policy_version: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochGateOverridden:
    """An operator closed the epoch although its gate still waited: the only way round the gate.

    Appended in one put with `EpochClosing`, and right before it.
    """

    epoch: int
    missing: tuple[str, ...]  # the first of what the gate still waited for, in words
    missing_count: int
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochClosing:
    """Appended in one put with the `UsagePinned` that is its cut, and before it."""

    epoch: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochSealed:
    """The totals of a settlement."""

    epoch: int
    cut_position: int  # market-log position of the cut's UsagePinned
    policy_version: int
    emission: Amount
    compute_pool: Amount  # this epoch's part, without the carry
    availability_pool: Amount
    treasury_pool: Amount
    compute_carry_before: Amount
    rewards: Amount  # total of all recipients, treasury included
    compute_carry: Amount  # left for the next epoch
    recipients: int
    chunks: int
    file_sha256: str  # of the canonical epoch file
    at_us: int
    unissued: Amount  # what the hard cap had left
    recyclable: Amount  # burned TOKEN that could come back, at the cut
    release: Amount  # of it, minted again
    returned: Amount  # of emission and release together, never minted
    returned_release: Amount  # of `returned`, the part that the burned TOKEN keep
    availability_carry_before: Amount
    availability_carry: Amount
    compute_weight: Big  # of all nodes together
    availability_weight: Big
    availability_tier_2_weight: Big  # of tier 2 and above, where they have a part of their own
    adjustments_open: tuple[Adjustment, ...]  # that this epoch could not settle
    price_snapshot: int | None  # told, where there was a price; no reward depends on it
    clients_sha256: str | None  # of whose work the rewards pay for (`domain/epochs/clients.py`)

    @property
    def minted(self) -> int:
        """TOKEN units that this epoch brings into being."""
        return self.emission.units + self.release.units - self.returned.units


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardsCredited:
    epoch: int
    chunk: int  # from 1
    rewards: tuple[Reward, ...]  # at most 500
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardsMatured:
    """A credited chunk less what was slashed of it."""

    epoch: int
    chunk: int
    rewards: tuple[Reward, ...]
    at_us: int


EpochFact = (
    EpochOpened
    | EpochGateOverridden
    | EpochClosing
    | EpochSealed
    | RewardsCredited
    | RewardsMatured
    | RewardChange
)

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEpoch:
    """The first epoch, by hand; each next one opens when the one before closes."""

    epoch: int
    start_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseEpoch:
    """End an epoch at a pin. `missing` names what the closing gate still waits for, and `override`
    is an operator's reason to close all the same.
    """

    epoch: int
    pin: UsagePinned
    by: str
    at_us: int
    missing: tuple[str, ...] = ()
    override: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SealEpoch:
    """Record what the nodes of the cut come to. `file_sha256` is of the canonical epoch file: of
    the nodes themselves, which may be a million, nothing else is told.
    """

    outcome: Outcome
    file_sha256: str
    at_us: int
    price_snapshot: int | None = None  # of the price feed
    clients_sha256: str | None = None  # of the companion file by compute client; told

    @property
    def epoch(self) -> int:
        return self.outcome.epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditRewards:
    """One chunk of a sealed epoch's rewards, as `chunks_of` cuts them."""

    epoch: int
    chunk: int
    rewards: tuple[Reward, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatureRewards:
    """One credited chunk, after the policy's holdback."""

    epoch: int
    chunk: int
    rewards: tuple[Reward, ...]
    at_us: int


# The shape of rewards.


def rewards_of(settled: Outcome) -> tuple[Reward, ...]:
    """What is credited, by the bytes of the account's id."""
    return as_rewards(settled.rewards)


def as_rewards(told: Iterable[tuple[str, int]]) -> tuple[Reward, ...]:
    """The same of (account, TOKEN units)."""
    return tuple(Reward(who, token(units)) for who, units in told)


def chunks_of(rewards: Sequence[Reward]) -> tuple[tuple[Reward, ...], ...]:
    """The rewards cut into chunks, in order; every chunk but the last is full."""
    return tuple(tuple(rewards[i : i + CHUNK_MAX]) for i in range(0, len(rewards), CHUNK_MAX))


def chunk_of(settled: Outcome, chunk: int) -> tuple[Reward, ...]:
    """One chunk of the rewards; the first is 1."""
    return as_rewards(settled.rewards[(chunk - 1) * CHUNK_MAX : chunk * CHUNK_MAX])


# What we remember.


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch so far. Of credited chunks it keeps their hashes, not their rewards."""

    opened: EpochOpened | None = None
    closing: EpochClosing | None = None
    sealed: EpochSealed | None = None
    chunk_hashes: tuple[str, ...] = ()
    matured_count: int = 0
    credited_units: int = 0
    credited_count: int = 0
    last_account_id: str = ""
    matured_at_us: int = 0  # of the last chunk that matured
    changes: RewardChanges = UNCHANGED

    @property
    def status(self) -> str:
        if self.sealed is not None:
            if len(self.chunk_hashes) < self.sealed.chunks:
                return "sealed"
            return "settled" if self.matured_count == self.sealed.chunks else "credited"
        if self.closing is not None:
            return "closing"
        return "unknown" if self.opened is None else "open"


def stream_of(epoch: int) -> Stream[Epoch]:
    return Stream("epoch", str(epoch))


def evolve_epoch(epoch: Epoch, fact: EpochFact) -> Epoch:
    match fact:
        case EpochOpened():
            return replace(epoch, opened=fact)
        case EpochGateOverridden():
            return epoch
        case EpochClosing():
            return replace(epoch, closing=fact)
        case EpochSealed():
            return replace(epoch, sealed=fact)
        case RewardsCredited():
            return replace(
                epoch,
                chunk_hashes=(*epoch.chunk_hashes, _chunk_hash(fact.rewards)),
                credited_units=epoch.credited_units + _units(fact.rewards),
                credited_count=epoch.credited_count + len(fact.rewards),
                last_account_id=fact.rewards[-1].account_id,
            )
        case RewardsMatured():
            return replace(epoch, matured_count=epoch.matured_count + 1, matured_at_us=fact.at_us)
        case RewardSlashed() | RewardAdjusted() | RewardsForfeited():
            return replace(epoch, changes=evolve_changes(epoch.changes, fact))
        case _:
            assert_never(fact)


def epoch_of(world: World, epoch: int) -> Epoch:
    """The state of an epoch. Raises Refused: EPOCH_UNKNOWN when it was never opened."""
    state = _state(world, epoch)
    if state.opened is None:
        raise Refused(EpochsReason.EPOCH_UNKNOWN, epoch=epoch)
    return state


def head_of(world: World, epoch: int, cut_position: int, recyclable: int) -> CutHead:
    """What the world gives to the cut of an epoch that is sealed now: policy, carries and cap.

    Raises Refused: EPOCH_UNKNOWN, EPOCH_OUT_OF_ORDER.
    """
    state = epoch_of(world, epoch)
    opened = state.opened
    assert opened is not None
    return CutHead(
        epoch=epoch,
        cut_position=cut_position,
        policy=policy_version(world, opened.policy_version),
        openings=openings(
            _sealed_before(world, epoch),
            world.balance("emission:unissued"),
            recyclable,
            state.changes,
        ),
    )


def openings(
    before: EpochSealed | None, unissued: int, recyclable: int, changes: RewardChanges = UNCHANGED
) -> Openings:
    """What the seal of the epoch before leaves to this one (None for the first), and what happened
    to rewards while this one was open.
    """
    adjusted = dict(changes.adjusted)
    if before is None:
        carry = idle_carry = 0
    else:
        carry, idle_carry = before.compute_carry.units, before.availability_carry.units
        for one in before.adjustments_open:
            adjusted[one.account_id] = adjusted.get(one.account_id, 0) + one.delta
    return Openings(
        unissued=unissued,
        recyclable=recyclable,
        compute_carry=carry + changes.forfeited,
        availability_carry=idle_carry,
        adjustments=tuple((who, delta) for who, delta in sorted(adjusted.items()) if delta),
    )


def open_adjustments(world: World, epoch: int) -> set[str]:
    """Accounts with an adjustment that no seal has settled, as of the open epoch."""
    accounts: set[str] = set()
    for number in range(epoch, 0, -1):
        state = _state(world, number)
        if state.sealed is not None:
            return accounts | {one.account_id for one in state.sealed.adjustments_open}
        accounts |= state.changes.adjusted.keys()
    return accounts


def _state(world: World, epoch: int) -> Epoch:
    return world.state(stream_of(epoch))


def _sealed_before(world: World, epoch: int) -> EpochSealed | None:
    if epoch == 1:
        return None
    sealed = _state(world, epoch - 1).sealed
    if sealed is None:
        raise Refused(
            EpochsReason.EPOCH_OUT_OF_ORDER, epoch=epoch, rule="the one before is not sealed"
        )
    return sealed


def _units(rewards: Sequence[Reward]) -> int:
    return sum(reward.amount.units for reward in rewards)


def _chunk_hash(rewards: Sequence[Reward]) -> str:
    rows = [[reward.account_id, str(reward.amount.units)] for reward in rewards]
    return sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()


# How we decide.


def decide_open(command: OpenEpoch, world: World) -> list[Change]:
    """Raises Refused: POLICY_VERSION, EPOCH_STATE, EPOCH_OUT_OF_ORDER."""
    known = _state(world, command.epoch).opened
    if known is not None:
        if known.start_us == command.start_us:
            return []
        raise Refused(EpochsReason.EPOCH_STATE, epoch=command.epoch, start_us=known.start_us)
    if command.epoch != 1:
        raise Refused(EpochsReason.EPOCH_OUT_OF_ORDER, epoch=command.epoch)
    return [_opening(world, command.epoch, command.start_us, command.at_us)]


def _opening(world: World, epoch: int, start_us: int, at_us: int) -> Change:
    policy = policy_for(world, epoch)
    fact = EpochOpened(
        epoch=epoch,
        start_us=start_us,
        end_us=start_us + policy.epoch_length_us,
        policy_version=policy.version,
        at_us=at_us,
    )
    return Change(stream_of(epoch), fact)


def decide_close(command: CloseEpoch, world: World) -> list[Change]:
    """The end of the epoch, its cut right after it, and the next epoch, in one append.

    Raises Refused: EPOCH_UNKNOWN, EPOCH_STATE, EPOCH_NOT_OVER, CUT_INCOMPLETE,
    USAGE_POSITION_FELL.
    """
    epoch = epoch_of(world, command.epoch)
    assert epoch.opened is not None
    if epoch.closing is not None:
        if epoch.closing.by == command.by and last_pin(world) == command.pin:
            return []
        raise Refused(EpochsReason.EPOCH_STATE, epoch=command.epoch, status=epoch.status)
    if command.at_us < epoch.opened.end_us:
        raise Refused(EpochsReason.EPOCH_NOT_OVER, epoch=command.epoch, end_us=epoch.opened.end_us)
    if command.missing and command.override is None:
        missing = command.missing[:MISSING_MAX]
        raise Refused(MeteringReason.CUT_INCOMPLETE, epoch=command.epoch, missing=missing)
    closing = EpochClosing(epoch=command.epoch, by=command.by, at_us=command.at_us)
    return [
        *_overriding(command),
        Change(stream_of(command.epoch), closing),
        pinned(command.pin, world),
        _opening(world, command.epoch + 1, epoch.opened.end_us, command.at_us),
    ]


def _overriding(command: CloseEpoch) -> list[Change]:
    """Who went round the gate, why, and past what; nothing when nothing was missing."""
    if not command.missing:
        return []
    assert command.override is not None
    fact = EpochGateOverridden(
        epoch=command.epoch,
        missing=command.missing[:MISSING_MAX],
        missing_count=len(command.missing),
        reason=command.override,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.epoch), fact)]


def decide_seal(command: SealEpoch, world: World) -> list[Change]:
    """What the nodes come to is settled before, beside the log; that it is the outcome of this very
    epoch, policy and carries is decided here.

    Raises Refused: EPOCH_UNKNOWN, EPOCH_STATE, EPOCH_OUT_OF_ORDER, REWARDS_MISMATCH (the outcome is
    of another cut, or does not add up), PRICE_SNAPSHOT.
    """
    epoch = epoch_of(world, command.epoch)
    if epoch.sealed is not None and _same_seal(epoch.sealed, command):
        return []
    if epoch.status != "closing":
        raise Refused(EpochsReason.EPOCH_STATE, epoch=command.epoch, status=epoch.status)
    told = command.outcome.cut.head()
    head = head_of(world, command.epoch, told.cut_position, told.openings.recyclable)
    if told != head or not is_sound(command.outcome):
        raise Refused(EpochsReason.REWARDS_MISMATCH, epoch=command.epoch, file=command.file_sha256)
    _check_snapshot(command, world)
    fact = sealed_fact(command.outcome, command.at_us, command.file_sha256)
    fact = replace(
        fact, price_snapshot=command.price_snapshot, clients_sha256=command.clients_sha256
    )
    return [Change(stream_of(command.epoch), fact)]


def _check_snapshot(command: SealEpoch, world: World) -> None:
    """A snapshot that is told has a price and is recent; it decides nothing, so it need not be the
    last: whoever takes another one in between stops no seal.
    """
    if command.price_snapshot is not None:
        require_recent(world, command.price_snapshot, command.at_us)


def sealed_fact(settled: Outcome, at_us: int, file_hash: str) -> EpochSealed:
    """The totals of a settlement, as sealed. `file_hash`: of its file."""
    s, opening = settled, settled.cut.openings
    return EpochSealed(
        epoch=s.epoch,
        cut_position=s.cut.cut_position,
        policy_version=s.cut.policy.version,
        emission=token(s.emission),
        compute_pool=token(s.compute_pool),
        availability_pool=token(s.availability_pool),
        treasury_pool=token(s.treasury_pool),
        compute_carry_before=token(opening.compute_carry),
        rewards=token(s.total),
        compute_carry=token(s.compute_carry),
        recipients=len(s.rewards),
        chunks=-(-len(s.rewards) // CHUNK_MAX),
        file_sha256=file_hash,
        at_us=at_us,
        unissued=token(opening.unissued),
        recyclable=token(opening.recyclable),
        release=token(s.release),
        returned=token(s.returned_emission + s.returned_release),
        returned_release=token(s.returned_release),
        availability_carry_before=token(opening.availability_carry),
        availability_carry=token(s.availability_carry),
        compute_weight=s.compute_weight,
        availability_weight=s.availability_weight,
        availability_tier_2_weight=s.availability_tier_2_weight,
        adjustments_open=tuple(Adjustment(who, delta) for who, delta in s.adjustments),
        price_snapshot=None,
        clients_sha256=None,
    )


def _same_seal(sealed: EpochSealed, command: SealEpoch) -> bool:
    """The hash covers cut, weights and rewards: equal hashes are equal seals."""
    told = (command.file_sha256, command.outcome.cut.cut_position)
    return (sealed.file_sha256, sealed.cut_position) == told


def decide_credit(command: CreditRewards, world: World) -> list[Change]:
    """Raises Refused: EPOCH_UNKNOWN, EPOCH_STATE, CHUNK_OUT_OF_ORDER, REWARDS_MISMATCH."""
    epoch = epoch_of(world, command.epoch)
    if epoch.sealed is None:
        raise Refused(EpochsReason.EPOCH_STATE, epoch=command.epoch, status=epoch.status)
    if has_credited(epoch, command.chunk, command.rewards):
        return []
    if command.chunk != len(epoch.chunk_hashes) + 1 or command.chunk > epoch.sealed.chunks:
        raise Refused(EpochsReason.CHUNK_OUT_OF_ORDER, epoch=command.epoch, chunk=command.chunk)
    _check_chunk(command, epoch, epoch.sealed)
    stream = stream_of(command.epoch)
    credited = RewardsCredited(**_chunk(command))
    if policy_version(world, epoch.sealed.policy_version).holdback_epochs:
        return [Change(stream, credited)]
    return [Change(stream, credited), Change(stream, RewardsMatured(**_chunk(command)))]


def _chunk(command: CreditRewards | MatureRewards) -> dict[str, Any]:
    return {field.name: getattr(command, field.name) for field in fields(command)}


def has_credited(epoch: Epoch, chunk: int, rewards: Sequence[Reward]) -> bool:
    known = 1 <= chunk <= len(epoch.chunk_hashes)
    return known and epoch.chunk_hashes[chunk - 1] == _chunk_hash(rewards)


def less_slashed(changes: RewardChanges, rewards: Sequence[Reward]) -> tuple[Reward, ...]:
    """What matures of a credited chunk; an account that has nothing left of it is not among it."""
    slashed = changes.slashed
    left = [
        Reward(one.account_id, token(one.amount.units - slashed.get(one.account_id, 0)))
        for one in rewards
    ]
    assert all(one.amount.units >= 0 for one in left), left
    return tuple(one for one in left if one.amount.units)


def _check_chunk(command: CreditRewards, epoch: Epoch, sealed: EpochSealed) -> None:
    """Together the chunks are exactly what was sealed: as many recipients, each once, same sum."""
    ids = [epoch.last_account_id.encode(), *(r.account_id.encode() for r in command.rewards)]
    units_left = sealed.rewards.units - epoch.credited_units - _units(command.rewards)
    count_left = sealed.recipients - epoch.credited_count - len(command.rewards)
    is_last = command.chunk == sealed.chunks
    sound = (
        len(command.rewards) == min(CHUNK_MAX, sealed.recipients - epoch.credited_count)
        and all(reward.amount == token(max(reward.amount.units, 1)) for reward in command.rewards)
        and all(one < following for one, following in pairwise(ids))
        and (units_left == 0 and count_left == 0 if is_last else units_left >= count_left)
    )
    if not sound:
        raise Refused(EpochsReason.REWARDS_MISMATCH, epoch=command.epoch, chunk=command.chunk)


def decide_mature(command: MatureRewards, world: World) -> list[Change]:
    """Only with a holdback; without one a chunk matures as it is credited.

    Raises Refused: EPOCH_UNKNOWN, EPOCH_STATE, EPOCH_NOT_OVER, CHUNK_OUT_OF_ORDER,
    REWARDS_MISMATCH.
    """
    epoch = epoch_of(world, command.epoch)
    if epoch.sealed is None or epoch.opened is None:
        raise Refused(EpochsReason.EPOCH_STATE, epoch=command.epoch, status=epoch.status)
    policy = policy_version(world, epoch.sealed.policy_version)
    due_us = epoch.opened.end_us + policy.holdback_epochs * policy.epoch_length_us
    if command.at_us < due_us:
        raise Refused(EpochsReason.EPOCH_NOT_OVER, epoch=command.epoch, due_us=due_us)
    if command.chunk > min(len(epoch.chunk_hashes), epoch.matured_count + 1):
        raise Refused(EpochsReason.CHUNK_OUT_OF_ORDER, epoch=command.epoch, chunk=command.chunk)
    if not has_credited(epoch, command.chunk, command.rewards):
        raise Refused(EpochsReason.REWARDS_MISMATCH, epoch=command.epoch, chunk=command.chunk)
    if command.chunk <= epoch.matured_count:
        return []
    fact = RewardsMatured(
        **{**_chunk(command), "rewards": less_slashed(epoch.changes, command.rewards)}
    )
    return [Change(stream_of(command.epoch), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {"epoch": (Epoch(), evolve_epoch)}
DECIDERS: dict[type[Any], Any] = {
    OpenEpoch: decide_open,
    CloseEpoch: decide_close,
    SealEpoch: decide_seal,
    CreditRewards: decide_credit,
    MatureRewards: decide_mature,
}
