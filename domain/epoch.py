"""Epochs: a stretch of time, the cut that ends it, and what it pays.

    open --EpochClosing + UsagePinned--> closing --EpochSealed--> sealed --RewardsCredited*-->
    --RewardsMatured*--> settled

    sum(pools) == emission;  sum(rewards) + carry == compute pool + carry before;  all to the unit

Settlement is a pure function of the cut. A sealed epoch never changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.money import Amount


@dataclass(frozen=True, slots=True)
class Reward:
    """What one account gets of one chunk."""

    account_id: str
    amount: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochOpened:
    """Stream `epoch:{n}`; n counts from 1. Covers [start_us, end_us)."""

    epoch: int
    start_us: int
    end_us: int
    policy_version: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochClosing:
    """Appended in one put with the `UsagePinned` that is its cut, and before it."""

    epoch: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochSealed:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardsCredited:
    epoch: int
    chunk: int  # from 1
    rewards: tuple[Reward, ...]  # at most 500
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardsMatured:
    epoch: int
    chunk: int
    rewards: tuple[Reward, ...]
    at_us: int
