"""Forfeits: what matured long ago for an account without a wallet goes back to the compute pool.

    matured, and `forfeit_epochs` epochs later still no wallet -> carry of the compute pool
    forfeited <= matured and unpaid;   an account that ever linked a wallet forfeits nothing

Nothing was promised: an account without a wallet has no payout leaf, and a wallet that is linked
later gets a leaf of what is left. A wallet linked at the same moment wins: the decision has read
the account, and is made again when that has moved. Source: design economics 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from domain.epochs.epoch import epoch_of, stream_of
from domain.epochs.policy import policy_version
from domain.epochs.reasons import EpochsReason
from domain.epochs.reward_changes import Reward, RewardsForfeited
from domain.epochs.reward_terms import NO_TERMS
from domain.epochs.settlement import TREASURY
from domain.money import Asset
from domain.parties.account import account_of
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, World

FORFEITS_MAX = 100
"""Accounts of one fact: all of them are read to decide it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForfeitRewards:
    """`after`: how many forfeits the open epoch had when the amounts were read."""

    epoch: int
    through_epoch: int
    after: int
    rewards: tuple[Reward, ...]  # by account
    at_us: int


def decide_forfeit(command: ForfeitRewards, world: World) -> list[Change]:
    """Raises Refused: EPOCH_UNKNOWN, EPOCH_STATE, FORFEIT_NOT_DUE, REWARDS_MISMATCH."""
    epoch = epoch_of(world, command.epoch)
    if epoch.status != "open" or epoch.changes.forfeits != command.after:
        raise Refused(EpochsReason.EPOCH_STATE, epoch=command.epoch, status=epoch.status)
    _check_due(command, world)
    _check_order(command.rewards)
    for reward in command.rewards:
        if reward.account_id == TREASURY or account_of(world, reward.account_id).wallets:
            raise Refused(
                EpochsReason.FORFEIT_NOT_DUE, account_id=reward.account_id, rule="has a wallet"
            )
        matured = world.balance(f"party:{reward.account_id}:matured")
        if reward.amount.asset is not Asset.TOKEN or not 0 < reward.amount.units <= matured:
            raise Refused(
                EpochsReason.REWARDS_MISMATCH, account_id=reward.account_id, matured=matured
            )
    fact = RewardsForfeited(
        epoch=command.epoch,
        through_epoch=command.through_epoch,
        rewards=command.rewards,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.epoch), fact)]


def due_us(world: World, open_epoch: int, through_epoch: int) -> int | None:
    """When what matured in `through_epoch` is forfeited, by the policy of the open epoch; None
    while it has not matured, or never.

    Raises Refused: EPOCH_UNKNOWN.
    """
    opened = epoch_of(world, open_epoch).opened
    assert opened is not None
    policy = policy_version(world, opened.policy_version)
    epochs = (policy.rewards or NO_TERMS).forfeit_epochs
    through = epoch_of(world, through_epoch)
    if epochs is None or through.status != "settled":
        return None
    return through.matured_at_us + epochs * policy.epoch_length_us


def _check_due(command: ForfeitRewards, world: World) -> None:
    at_us = due_us(world, command.epoch, command.through_epoch)
    if at_us is None or command.at_us < at_us:
        raise Refused(EpochsReason.FORFEIT_NOT_DUE, epoch=command.through_epoch, due_us=at_us)


def _check_order(rewards: Sequence[Reward]) -> None:
    ids = [reward.account_id for reward in rewards]
    if not 1 <= len(ids) <= FORFEITS_MAX or any(one >= two for one, two in pairwise(ids)):
        raise Refused(
            EpochsReason.REWARDS_MISMATCH, rule=f"each once, in order, 1 to {FORFEITS_MAX}"
        )


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {ForfeitRewards: decide_forfeit}
