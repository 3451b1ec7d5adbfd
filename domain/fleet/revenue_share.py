"""Revenue of a node that several people own: what its provider earns is split among them.

    sum(owners' shares) <= 1,000,000          the provider's own account owns the rest

A lease keeps the shares that stood when it was reserved. Parts are peeled from the provider's
cumulative part one after the other, so every owner's total is monotone and they sum to the unit.
An owner leaves by itself, without the provider: its share is the provider's from the next lease on.
It transfers its part to another account in two steps, each signed for by one of them; no lease
holds the node then, so what was earned before the instant stays the old owner's, to the unit.
Row K-1: all earnings reach one provider, the ledger splits them among the owners of the workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.duration import DAY_US
from domain.fleet.node import NodeState, existing_node, require_idle
from domain.fleet.provider import existing_provider
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
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
class NodeTransferOffered:
    """An owner offers its whole part of a node to another account, which may accept until then."""

    node_id: str
    from_account_id: str
    to_account_id: str
    expires_at_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOwnershipTransferred:
    """From `at_us` on the part is the new owner's. What was earned before stays the old one's."""

    node_id: str
    from_account_id: str
    to_account_id: str
    share_ppm: int
    shares: tuple[OwnerShare, ...]  # all of them, from now on
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferNodeTransfer:
    node_id: str
    account_id: str  # who asks: the owner, or the provider for what is its own
    to_account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptNodeTransfer:
    node_id: str
    account_id: str  # who asks: the new owner
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
TRANSFER_LIFE_US = 7 * DAY_US
VERSIONS_KEPT = 64


@dataclass(frozen=True, slots=True)
class SharesFrom:
    """The owners from a moment on."""

    from_us: int
    shares: tuple[OwnerShare, ...]


@dataclass(frozen=True, slots=True)
class RevenueState:
    """`versions`: the newest ones, the present one last. `transferred_us`: when a part was handed
    on last.
    """

    shares: tuple[OwnerShare, ...] = ()
    offered: NodeTransferOffered | None = None
    versions: tuple[SharesFrom, ...] = ()
    transferred_us: int = 0


RevenueFact = RevenueSharesSet | NodeTransferOffered | NodeOwnershipTransferred


def evolve(state: RevenueState, fact: RevenueFact) -> RevenueState:
    if isinstance(fact, NodeTransferOffered):
        return replace(state, offered=fact)
    versions = (*state.versions, SharesFrom(fact.at_us, fact.shares))[-VERSIONS_KEPT:]
    is_transfer = isinstance(fact, NodeOwnershipTransferred)
    transferred_us = fact.at_us if is_transfer else state.transferred_us
    return RevenueState(fact.shares, None, versions, transferred_us)


def revenue_stream(node_id: str) -> Stream[RevenueState]:
    return Stream("revenue", node_id)


def shares_of(world: World, node_id: str) -> tuple[OwnerShare, ...]:
    """Who owns what of a node's revenue, in the order it is peeled."""
    state = world.state(revenue_stream(node_id))
    return state.shares


def handed_on_since(world: World, node_id: str, at_us: int) -> bool:
    """Whether a part of the node has another owner than at that moment."""
    return world.state(revenue_stream(node_id)).transferred_us > at_us


def shares_before(world: World, node_id: str, before_us: int) -> tuple[OwnerShare, ...]:
    """Who owned what of a node's revenue in the moment before this one: a later transfer does not
    reach back.
    """
    state = world.state(revenue_stream(node_id))
    known = [one for one in state.versions if one.from_us < before_us]
    return known[-1].shares if known else ()


def split_among(
    units: int, shares: tuple[OwnerShare, ...], provider_account_id: str
) -> tuple[tuple[str, int], ...]:
    """(account, part) for every owner and for the provider's account, which owns the rest: each
    account once, also one that stands there twice.
    """
    assert units >= 0, units
    parts: dict[str, int] = {}
    rest, left_ppm = units, PPM
    for share in shares:
        part = rest * share.share_ppm // left_ppm if left_ppm else 0
        parts[share.account_id] = parts.get(share.account_id, 0) + part
        rest -= part
        left_ppm -= share.share_ppm
    assert rest >= 0, (units, shares)
    parts[provider_account_id] = parts.get(provider_account_id, 0) + rest
    assert sum(parts.values()) == units, (units, shares)
    return tuple(parts.items())


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


def decide_offer_transfer(command: OfferNodeTransfer, world: World) -> list[Change]:
    """The last offer counts. Raises Refused: NODE_UNKNOWN, NODE_STATE, ACCOUNT_UNKNOWN,
    ACCOUNT_CLOSED, DUPLICATE_ID.
    """
    node = existing_node(world, command.node_id)
    if _part_of(command.account_id, node, world) == 0:
        raise Refused(FleetReason.NODE_UNKNOWN, node_id=command.node_id)
    if node.phase == "retired":
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=node.phase)
    open_account(world, command.to_account_id)
    if command.to_account_id == command.account_id:
        raise Refused(MoneyReason.DUPLICATE_ID, rule="a transfer goes to another account")
    known = world.state(revenue_stream(command.node_id)).offered
    if (
        known is not None
        and (known.from_account_id, known.to_account_id)
        == (command.account_id, command.to_account_id)
        and command.at_us < known.expires_at_us
    ):
        return []
    fact = NodeTransferOffered(
        node_id=command.node_id,
        from_account_id=command.account_id,
        to_account_id=command.to_account_id,
        expires_at_us=command.at_us + TRANSFER_LIFE_US,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(revenue_stream(command.node_id), fact)]


def decide_accept_transfer(command: AcceptNodeTransfer, world: World) -> list[Change]:
    """No lease holds the node at that instant, so that no charge spans it: drain it first.

    Raises Refused: NODE_UNKNOWN, NODE_BUSY, TRANSFER_UNKNOWN.
    """
    state = _revenue(world, command.node_id)
    offered = state.offered
    if offered is None or offered.to_account_id != command.account_id:
        raise Refused(FleetReason.TRANSFER_UNKNOWN, node_id=command.node_id)
    node = existing_node(world, command.node_id)
    part = _part_of(offered.from_account_id, node, world)
    if command.at_us >= offered.expires_at_us or part == 0:
        raise Refused(
            FleetReason.TRANSFER_UNKNOWN,
            node_id=command.node_id,
            expires_at_us=offered.expires_at_us,
        )
    require_idle(command.node_id, node, world)
    fact = NodeOwnershipTransferred(
        node_id=command.node_id,
        from_account_id=offered.from_account_id,
        to_account_id=command.account_id,
        share_ppm=part,
        shares=_after(state.shares, offered, part, _provider_of(node, world)),
        by=command.by,
        at_us=command.at_us,
    )
    assert sum(one.share_ppm for one in fact.shares) <= PPM, fact
    return [Change(revenue_stream(command.node_id), fact)]


def _after(
    shares: tuple[OwnerShare, ...], offered: NodeTransferOffered, part: int, provider: str
) -> tuple[OwnerShare, ...]:
    """Everybody else's part stays; the provider's own is what is left."""
    rest = [one for one in shares if one.account_id != offered.from_account_id]
    if offered.to_account_id == provider:
        return tuple(rest)
    held = sum(one.share_ppm for one in rest if one.account_id == offered.to_account_id)
    rest = [one for one in rest if one.account_id != offered.to_account_id]
    return (*rest, OwnerShare(offered.to_account_id, held + part))


def _part_of(account_id: str, node: NodeState, world: World) -> int:
    """What an account owns of a node's revenue; of the provider what no other owns."""
    assert node.joined is not None
    shares = shares_of(world, node.joined.node_id)
    if account_id == _provider_of(node, world):
        return PPM - sum(one.share_ppm for one in shares)
    return sum(one.share_ppm for one in shares if one.account_id == account_id)


def _provider_of(node: NodeState, world: World) -> str:
    assert node.joined is not None
    return existing_provider(world, node.joined.provider_id).account_id


def _revenue(world: World, node_id: str) -> RevenueState:
    return world.state(revenue_stream(node_id))


STREAMS: dict[str, tuple[Any, Any]] = {"revenue": (RevenueState(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    SetRevenueShares: decide_set,
    LeaveRevenueShares: decide_leave,
    OfferNodeTransfer: decide_offer_transfer,
    AcceptNodeTransfer: decide_accept_transfer,
}
