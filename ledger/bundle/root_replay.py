"""The lifetime totals under every payout root of an export, from its facts alone.

    cut of a root == the later of the epoch's last credited chunk and its confirmed mint; without a
                     holdback what matures with that chunk is of the cut
    totals        == what had matured up to the cut, at the wallets in effect there

What is promised to whom is decided in `domain/chain/leaves.py`. Not here: trees and files, for they
are of the chain's side (`api/audit/replay.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, TypeAlias

from domain.chain.leaves import LeafBook
from domain.chain.payout_root import EpochMintConfirmed, PayoutRootBuilt
from domain.epochs.epoch import RewardsCredited, RewardsMatured
from domain.epochs.reward_changes import RewardsForfeited, RewardSlashed
from domain.epochs.settlement import TREASURY
from domain.parties.account import WalletLinked
from domain.record import dataclass

TREASURY_ADDRESS = "the treasury's address"
"""Stands for the address of the treasury's leaf, which only the payout files name."""


@dataclass(frozen=True, slots=True)
class RootCut:
    """Where a root was taken: a fact, its time, and the head of the log after it."""

    position: int
    at_us: int
    head: bytes


@dataclass(frozen=True, slots=True)
class RootDue:
    """A root that was built, and the totals that must be under it, by address."""

    position: int
    built: PayoutRootBuilt
    cut: RootCut
    totals: dict[str, int]


Told: TypeAlias = WalletLinked | RewardsMatured | RewardSlashed | RewardsForfeited


@dataclass(slots=True)
class RootReplay:
    """Give it the facts in order, with the head after each; it answers with the roots due."""

    holdback_of: Callable[[int], int]
    book: LeafBook = field(
        default_factory=lambda: LeafBook(wallets={TREASURY: [(TREASURY_ADDRESS, 0)]})
    )
    waiting: deque[tuple[int, Told]] = field(default_factory=deque)
    credited: dict[int, RootCut] = field(default_factory=dict)  # by epoch, the last so far
    minted: dict[int, RootCut] = field(default_factory=dict)
    taken: dict[int, RootDue] = field(default_factory=dict)

    def take(self, position: int, head: bytes, fact: Any) -> Iterator[RootDue | str]:
        """One fact. Yields the root it builds with its totals, or what is wrong with it."""
        match fact:
            case WalletLinked() | RewardSlashed() | RewardsForfeited():
                self.waiting.append((position, fact))
            case RewardsMatured():
                self.waiting.append((position, fact))
                if not self.holdback_of(fact.epoch):  # a chunk matures as it is credited
                    self.credited[fact.epoch] = RootCut(position, fact.at_us, head)
            case RewardsCredited():
                self.credited[fact.epoch] = RootCut(position, fact.at_us, head)
            case EpochMintConfirmed():
                self.minted[fact.epoch] = RootCut(position, fact.at_us, head)
            case PayoutRootBuilt():
                yield self._root(position, fact)

    def _root(self, position: int, built: PayoutRootBuilt) -> RootDue | str:
        credited, minted = self.credited.get(built.epoch), self.minted.get(built.epoch)
        if credited is None or minted is None:
            return f"epoch {built.epoch}: a root before it is credited and minted"
        cut = max(credited, minted, key=lambda one: one.position)
        before = self.taken.get(built.epoch)
        if before is None:  # built again after a veto, it is the same
            try:
                self._read_to(cut.position)
                self.book.take(cut.at_us)
            except AssertionError as error:
                return f"epoch {built.epoch}: a leaf falls: {error}"
            before = RootDue(position, built, cut, dict(self.book.totals))
            self.taken[built.epoch] = before
        return RootDue(position, built, before.cut, before.totals)

    def _read_to(self, position: int) -> None:
        while self.waiting and self.waiting[0][0] <= position:
            _, fact = self.waiting.popleft()
            match fact:
                case WalletLinked():
                    self.book.link(fact.account_id, fact.address, fact.effective_at_us)
                case RewardSlashed():
                    self.book.mature(TREASURY, fact.amount.units)
                case RewardsMatured():
                    for reward in fact.rewards:
                        self.book.mature(reward.account_id, reward.amount.units)
                case RewardsForfeited():
                    for reward in fact.rewards:
                        self.book.forfeit(reward.account_id, reward.amount.units)
