"""What may happen to a reward after its seal: taken while it is held back, made up for, forfeited.

    slashed of an account and an epoch <= what the epoch credited to it, and only while unmatured
    carry that epoch n starts from == carry that n - 1 left + forfeited while n was open

The facts, and what an epoch remembers of them; a sealed epoch itself never changes. Decided in
`domain/epochs/reward_correction.py` and `domain/epochs/forfeit.py`. Source: design economics 8 and
10.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from domain.frozen import replace
from domain.money import Amount, Big


@dataclass(frozen=True, slots=True)
class Reward:
    """What one account gets."""

    account_id: str
    amount: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSlashed:
    """Stream `epoch:{n}`, of the reward's epoch: so much less matures, the treasury has it."""

    epoch: int
    correction_id: str
    account_id: str
    amount: Amount
    reason: str
    evidence_position: int | None  # of the market log
    proposed_by: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardAdjusted:
    """Stream `epoch:{n}` of the open epoch, whose settlement gives (> 0) or takes (< 0) it."""

    epoch: int
    original_epoch: int
    correction_id: str
    account_id: str
    delta: Big  # TOKEN units
    reason: str
    proposed_by: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardsForfeited:
    """Stream `epoch:{n}` of the open epoch: matured by `through_epoch`, and no wallet since."""

    epoch: int
    through_epoch: int
    rewards: tuple[Reward, ...]
    at_us: int


RewardChange: TypeAlias = RewardSlashed | RewardAdjusted | RewardsForfeited


@dataclass(frozen=True, slots=True)
class RewardChanges:
    """What is remembered of them in one epoch's stream, in TOKEN units."""

    slashed: dict[str, Big] = field(default_factory=dict)  # of this epoch's rewards, by account
    adjusted: dict[str, Big] = field(default_factory=dict)  # for this epoch to settle, by account
    forfeited: Big = 0
    forfeits: int = 0  # how many facts

    @property
    def adjustments(self) -> tuple[tuple[str, int], ...]:
        """What is to be given (> 0) or taken (< 0), by account; none of zero."""
        return tuple((who, delta) for who, delta in sorted(self.adjusted.items()) if delta)


UNCHANGED = RewardChanges()


def evolve_changes(changes: RewardChanges, fact: RewardChange) -> RewardChanges:
    match fact:
        case RewardSlashed():
            units = changes.slashed.get(fact.account_id, 0) + fact.amount.units
            return replace(changes, slashed={**changes.slashed, fact.account_id: units})
        case RewardAdjusted():
            delta = changes.adjusted.get(fact.account_id, 0) + fact.delta
            return replace(changes, adjusted={**changes.adjusted, fact.account_id: delta})
        case RewardsForfeited():
            units = changes.forfeited + sum(one.amount.units for one in fact.rewards)
            return replace(changes, forfeited=units, forfeits=changes.forfeits + 1)
        case _:
            assert_never(fact)
