"""Revenue of a node that several people own: what its provider earns is split among them.

    sum(owners' shares) <= 1,000,000          the provider's own account owns the rest

A lease keeps the shares that stood when it was reserved. Parts are peeled from the provider's
cumulative part one after the other, so every owner's total is monotone and they sum to the unit.
An owner leaves by itself, without the provider: its share is the provider's from the next lease on.
Row K-1: all earnings reach one provider, the ledger splits them among the owners of the workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.fleet.node import existing_node
from domain.fleet.provider import existing_provider
from domain.fleet.reasons import FleetReason
from domain.money import PPM, Big, MoneyReason
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True)
class OwnerShare:
    """One owner's part of what a node's provider earns."""

    account_id: str
    share_ppm: int


@dataclass(frozen=True, slots=True)
class OwnerPart:
    """What one account got of an accrual: cumulative, and new."""

    account_id: str
    units: Big
    units_new: Big


@dataclass(frozen=True, slots=True, kw_only=True)
class RevenueSharesSet:
    """Stream `revenue:{node_id}`: the shares of leases that are reserved from now on."""

    node_id: str
    shares: tuple[OwnerShare, ...]  # empty: the provider keeps everything
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRevenueShares:
    node_id: str
    account_id: str  # who asks: the provider's account
    shares: tuple[OwnerShare, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveRevenueShares:
    """An owner gives up its share, for leases that are reserved from now on."""

    node_id: str
    account_id: str  # who asks: the owner that leaves
    by: str
    at_us: int


OWNERS_MAX = 32


@dataclass(frozen=True, slots=True)
class RevenueState:
    shares: tuple[OwnerShare, ...] = ()


def evolve(_state: RevenueState, fact: RevenueSharesSet) -> RevenueState:
    return RevenueState(fact.shares)


def revenue_stream(node_id: str) -> Stream[RevenueState]:
    return Stream("revenue", node_id)


def shares_of(world: World, node_id: str) -> tuple[OwnerShare, ...]:
    """Who owns what of a node's revenue, in the order it is peeled."""
    state = world.state(revenue_stream(node_id))
    return state.shares


def split_among(
    units: int, shares: tuple[OwnerShare, ...], provider_account_id: str
) -> tuple[tuple[str, int], ...]:
    """(account, part) for every owner and last for the provider's account, which owns the rest."""
    assert units >= 0, units
    parts, rest, left_ppm = [], units, PPM
    for share in shares:
        part = rest * share.share_ppm // left_ppm if left_ppm else 0
        parts.append((share.account_id, part))
        rest -= part
        left_ppm -= share.share_ppm
    assert rest >= 0, (units, shares)
    return (*parts, (provider_account_id, rest))


def decide_set(command: SetRevenueShares, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, DUPLICATE_ID,
    SHARE_OUT_OF_RANGE, COUNT_OUT_OF_RANGE.
    """
    node = existing_node(world, command.node_id)
    assert node.joined is not None
    provider = existing_provider(world, node.joined.provider_id)
    if provider.account_id != command.account_id:
        raise Refused(FleetReason.NODE_UNKNOWN, node_id=command.node_id)
    owners = [share.account_id for share in command.shares]
    if len(owners) > OWNERS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, owners=len(owners), at_most=OWNERS_MAX)
    if len({*owners, provider.account_id}) != len(owners) + 1:
        raise Refused(MoneyReason.DUPLICATE_ID, rule="each owner once; the provider owns the rest")
    for account_id in owners:
        open_account(world, account_id)
    shares_ppm = [share.share_ppm for share in command.shares]
    if min(shares_ppm, default=1) < 1 or sum(shares_ppm) > PPM:
        raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, sum_ppm=sum(shares_ppm))
    if command.shares == shares_of(world, command.node_id):
        return []
    fact = RevenueSharesSet(
        node_id=command.node_id, shares=command.shares, by=command.by, at_us=command.at_us
    )
    return [Change(revenue_stream(command.node_id), fact)]


def decide_leave(command: LeaveRevenueShares, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN for whoever owns nothing of it."""
    shares = shares_of(world, command.node_id)
    left = tuple(one for one in shares if one.account_id != command.account_id)
    if left == shares:
        raise Refused(FleetReason.NODE_UNKNOWN, node_id=command.node_id)
    fact = RevenueSharesSet(
        node_id=command.node_id, shares=left, by=command.by, at_us=command.at_us
    )
    return [Change(revenue_stream(command.node_id), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {"revenue": (RevenueState(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetRevenueShares: decide_set, LeaveRevenueShares: decide_leave}
