"""What the facts of `epochs` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.epochs.epoch import EpochSealed, RewardsCredited, RewardsMatured
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_changes import RewardsForfeited, RewardSlashed
from domain.governance.grant import TREASURY
from domain.money import Asset
from ledger.books.entry import Book, Entry, entry


def _policy(fact: PolicyPublished) -> Iterable[Entry]:
    """The hard cap is an account limit: every token ever minted is drawn from it."""
    cap = fact.hard_cap.units if fact.version == 1 else 0
    return entry(Asset.TOKEN, ("emission:authority", cap), ("emission:unissued", -cap))


def _sealed(fact: EpochSealed) -> Iterable[Entry]:
    """Minted is drawn from what was never issued and from what was burned; what the seal returned
    is never drawn. The pools keep their carries.
    """
    rewards, returned_release = fact.rewards.units, fact.returned_release.units
    emission = fact.emission.units - (fact.returned.units - returned_release)
    released = fact.release.units - returned_release
    kept = fact.compute_carry.units - fact.compute_carry_before.units
    kept_idle = fact.availability_carry.units - fact.availability_carry_before.units
    assert emission + released == fact.minted == rewards + kept + kept_idle, fact
    yield from entry(
        Asset.TOKEN,
        ("emission:unissued", emission),
        ("emission:authority", -emission),
        ("recycle:pool", released),
        ("recycle:authority", -released),
        ("chain:mint_due", emission + released),
        ("pool:availability:carry", -kept_idle),
        ("pool:compute:carry", -kept),
        (f"epoch:{fact.epoch}:unmatured", -rewards),
    )


def _credited(fact: RewardsCredited) -> Iterable[Entry]:
    lines = [(f"party:{r.account_id}:unmatured", -r.amount.units) for r in fact.rewards]
    total = sum(reward.amount.units for reward in fact.rewards)
    return entry(Asset.TOKEN, (f"epoch:{fact.epoch}:unmatured", total), *lines)


def _matured(fact: RewardsMatured) -> Iterable[Entry]:
    lines: list[tuple[str, int]] = []
    for reward in fact.rewards:
        lines.append((f"party:{reward.account_id}:unmatured", reward.amount.units))
        lines.append((f"party:{reward.account_id}:matured", -reward.amount.units))
    return entry(Asset.TOKEN, *lines)


def _slashed(fact: RewardSlashed) -> Iterable[Entry]:
    units = fact.amount.units
    unmatured = f"party:{fact.account_id}:unmatured"
    return entry(Asset.TOKEN, (unmatured, units), (TREASURY, -units))


def _forfeited(fact: RewardsForfeited) -> Iterable[Entry]:
    lines = [(f"party:{r.account_id}:matured", r.amount.units) for r in fact.rewards]
    total = sum(reward.amount.units for reward in fact.rewards)
    return entry(Asset.TOKEN, *lines, ("pool:compute:carry", -total))


BOOKS: dict[type[Any], Book] = {
    PolicyPublished: _policy,
    EpochSealed: _sealed,
    RewardsCredited: _credited,
    RewardsMatured: _matured,
    RewardSlashed: _slashed,
    RewardsForfeited: _forfeited,
}
