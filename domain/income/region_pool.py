"""What a region has gathered on a day, and what became of it when the day was shared out.

    matured --RegionEarningsGathered--> region:{id}:revenue --RegionDayShared--> infra, carry
                                                            --RegionSharesPaid--> :payable
    gathered == sum over (node, account) of what was taken there          per region and day
    balance(region:{id}:carry) == carry of the last day that was shared

Only what has matured is gathered, in the append that matured it: disputes and holdbacks are over by
then, and what is kept from maturing is kept from this, too. A day that was shared gathers no more;
what comes later belongs to the next day. Source: design economics 9; row K-2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.brought import Brought, ClientPart, added, apportioned, as_parts, by_client
from domain.calendar import day_of
from domain.frozen import replace
from domain.income.region_terms import may_gather, terms_of
from domain.money import Amount, Big, credit
from domain.stream import Change, Stream, World

PARTS_MAX = 500
"""Nodes in one fact."""

# Facts. Stream `region-day:{region_id}/{day}`.


@dataclass(frozen=True, slots=True)
class NodeEarned:
    """What one node earned for the account that it was taken from."""

    node_id: str
    units: Big


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionEarningsGathered:
    """In the append of `EarningsMatured`: the part of it that the region shares out."""

    region_id: str
    day: int  # UTC day that it is shared out with
    account_id: str
    through_position: int  # of the maturing
    nodes: tuple[NodeEarned, ...]
    amount: Amount  # payable to region:{id}:revenue
    at_us: int
    clients: tuple[ClientPart, ...]  # of `amount`: who brought the work


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionDayShared:
    """gathered + carry_before == infra + participation + usage + carry, all in credits."""

    region_id: str
    day: int
    terms_version: int
    gathered: Amount
    carry_before: Amount
    infra_due: Amount
    arrears_before: Amount
    infra: Amount  # to payable of the region's operator, or to `infra_book`
    infra_account_id: str
    arrears: Amount  # due from later days
    forgone: Amount  # above the arrears that terms allow
    participation: Amount  # paid for having been there, rounded down for each
    usage: Amount
    carry: Amount
    control_nodes: int
    ingress_nodes: int
    ingress_bytes: int  # through them on that day, as they reported
    nodes: int  # with a share, be it 0
    chunks: int  # of RegionSharesPaid in this append
    at_us: int
    infra_book: str | None  # where it waits if the operator's account was closed


@dataclass(frozen=True, slots=True)
class SharePart:
    """What one account gets of a node's share; `book`: where it waits if that one was closed."""

    account_id: str
    units: Big
    book: str | None = None


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What a node got and why. sum(parts) == participation + usage."""

    node_id: str
    available_us: Big  # attested GPU-microseconds at the tier that terms ask for, or above
    below_tier_us: Big  # attested, but not paid for
    revenue: Big  # gathered of this node's earnings
    participation: Big
    usage: Big
    parts: tuple[SharePart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionSharesPaid:
    """Nodes in the order of their ids, some of them in each chunk. Chunks count from 0."""

    region_id: str
    day: int
    chunk: int
    shares: tuple[NodeShare, ...]
    amount: Amount  # region:{id}:revenue to the owners' payable
    at_us: int


RegionDayFact: TypeAlias = RegionEarningsGathered | RegionDayShared | RegionSharesPaid

# What is remembered.


@dataclass(frozen=True, slots=True)
class RegionDay:
    """`gathered`: (node, account) -> micro-credits; `clients`: of the same, by who brought it."""

    gathered: dict[tuple[str, str], int] = field(default_factory=dict)
    clients: dict[str, int] = field(default_factory=dict)
    shared: RegionDayShared | None = None


def evolve(state: RegionDay, fact: RegionDayFact) -> RegionDay:
    match fact:
        case RegionEarningsGathered():
            gathered = dict(state.gathered)
            for one in fact.nodes:
                key = (one.node_id, fact.account_id)
                gathered[key] = gathered.get(key, 0) + one.units
            clients = added(state.clients, by_client(fact.clients))
            return replace(state, gathered=gathered, clients=clients)
        case RegionDayShared():
            return replace(state, shared=fact)
        case RegionSharesPaid():
            return state
        case _:
            assert_never(fact)


def stream_of(region_id: str, day: int) -> Stream[RegionDay]:
    return Stream("region-day", f"{region_id}/{day}")


def day_state(world: World, region_id: str, day: int) -> RegionDay:
    return world.state(stream_of(region_id, day))


# Gathering.


@dataclass(frozen=True, slots=True)
class RegionalEarning:
    """Of what an account matures: what a node earned it on a UTC day, without reductions."""

    region_id: str
    node_id: str
    day: int
    units: Big


def gather(
    world: World,
    account_id: str,
    earned: Sequence[RegionalEarning],
    through_position: int,
    at_us: int,
    brought: Brought,
) -> list[Change]:
    """What of an account's matured earnings its regions share out; the rest stays its own.
    `brought`: by which clients the earnings are.
    """
    changes: list[Change] = []
    for region_id in sorted({one.region_id for one in earned}):
        day = _open_day(world, region_id, day_of(at_us))
        nodes = _gathered_nodes(world, region_id, day, earned)
        told = sorted(nodes.items())
        for first in range(0, len(told), PARTS_MAX):
            part = told[first : first + PARTS_MAX]
            units = sum(earned_there for _, earned_there in part)
            fact = RegionEarningsGathered(
                region_id=region_id,
                day=day,
                account_id=account_id,
                through_position=through_position,
                nodes=tuple(NodeEarned(*one) for one in part),
                amount=credit(units),
                at_us=at_us,
                clients=as_parts(apportioned(units, brought)),
            )
            changes.append(Change(stream_of(region_id, day), fact))
    return changes


def _open_day(world: World, region_id: str, day: int) -> int:
    """The first day from this one on that has not been shared out."""
    while day_state(world, region_id, day).shared is not None:
        day += 1
    return day


def _gathered_nodes(
    world: World, region_id: str, day: int, earned: Sequence[RegionalEarning]
) -> dict[str, int]:
    versions = terms_of(world, region_id)
    nodes: dict[str, int] = {}
    for one in _of_region(earned, region_id):
        assert one.units >= 0, one
        if one.units and may_gather(versions, one.day, day):
            nodes[one.node_id] = nodes.get(one.node_id, 0) + one.units
    return nodes


def _of_region(earned: Sequence[RegionalEarning], region_id: str) -> Iterator[RegionalEarning]:
    return (one for one in earned if one.region_id == region_id)


STREAMS: dict[str, tuple[Any, Any]] = {"region-day": (RegionDay(), evolve)}
DECIDERS: dict[type[Any], Any] = {}
