"""Do the nodes of one region reach each other on private addresses? (row C-3)

    reached(a, b)   <=>  in its last report a hands in what b's key signed for a's challenge,
                         which a got over TCP from a private address
    a region is     single        fewer than two nodes
                    disconnected  some pair was tried and not reached
                    unknown       some pair was not tried, or longer than FRESH_US ago
                    connected     reached(a, b) and reached(b, a) for every two nodes
    a node is       the same, by the pairs that it is in

In a region of more than PEERS_MAX + 1 nodes not all pairs are tried but drawn ones (`is_tried`),
about PAIRS of each node; a quarter of them changes every six hours. There `connected` asks for
ENOUGH reached pairs of every node and for none that was missed. With k nodes apart from n - k
others about k x (n - k) x PAIRS / n of the drawn pairs are missed: a place that is cut off shows at
once, two nodes that only miss each other on the day on which they are drawn.

Asked of regions of machines of one's own, from the confirmed key on, so it is known before a node
is admitted. The reporter tells its addresses of RFC 1918 and what it reached, signed by the node's
key; a claim without the other's signature is refused. A peer at another place with the same private
address is none: it has no such key. Who relays TCP between two places has connected them. Not
believed: that a node which was not reached is at fault, and not the one that tried.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from domain.duration import DAY_US, HOUR_US, MINUTE_US
from domain.fleet.node import NodeState, existing_node, node_of
from domain.fleet.provider import existing_region
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.regions.neighbour_proofs import (
    ADDRESSES_MAX,
    CHALLENGE_US,
    PEERS_MAX,
    Tried,
    private_address,
)
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNeighboursTried:
    """Stream `neighbours:{node_id}`; the latest counts, with all that was tried."""

    node_id: str
    region_id: str
    challenge: int  # a moment of the server, microseconds
    addresses: tuple[str, ...]  # its own, of RFC 1918, with the port it answers on
    tried: tuple[Tried, ...]
    key_id: str
    signature: str  # hex, over `statement`
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TellNeighbours:
    """Proofs and signature were checked against the nodes' keys."""

    node_id: str
    challenge: int
    addresses: tuple[str, ...]
    tried: tuple[Tried, ...]
    signature: str
    at_us: int


PAIRS, ENOUGH = 32, 8
"""Of each node of a larger region: so many pairs are drawn, about; so many have to be reached. What
it tells is four facts a day of 7 kB.
"""
TOLD_EVERY_US = 6 * HOUR_US
"""What has not changed is recorded again after so long."""
CHANGED_EVERY_US = 5 * MINUTE_US
FRESH_US = DAY_US

CONNECTED, DISCONNECTED, UNKNOWN, SINGLE = VERDICTS = (
    "connected",
    "disconnected",
    "unknown",
    "single",
)


# What is remembered.


@dataclass(frozen=True, slots=True)
class Neighbours:
    told: NodeNeighboursTried | None = None


def evolve(state: Neighbours, fact: NodeNeighboursTried) -> Neighbours:
    return replace(state, told=fact)


def neighbours_stream(node_id: str) -> Stream[Neighbours]:
    return Stream("neighbours", node_id)


# How we decide.


def is_tried(node_id: str, peer: str, nodes: int, now_us: int) -> bool:
    """Whether two nodes of a region of so many try each other now; the same for both of them."""
    if nodes - 1 <= PEERS_MAX:
        return True
    pair = " ".join(sorted((node_id, peer)))
    quarter = sha256(pair.encode()).digest()[0] % (DAY_US // TOLD_EVERY_US)
    day = (now_us // TOLD_EVERY_US + quarter) // (DAY_US // TOLD_EVERY_US)
    drawn = int.from_bytes(sha256(f"{pair} {day}".encode()).digest()[:8])
    return drawn * (nodes - 1) < PAIRS << 64


def may_tell(node: NodeState) -> bool:
    """From the confirmed key on, until it is retired or in quarantine."""
    return node.accepts_usage and node.phase != "retired"


def decide_neighbours(command: TellNeighbours, world: World) -> list[Change]:
    """No fact for what was recorded already, or sooner than CHANGED_EVERY_US after the last one.

    Raises Refused: NODE_UNKNOWN, NODE_STATE, REGION_NOT_SUITED, COUNT_OUT_OF_RANGE, UNKNOWN_MODE,
    BAD_PERIOD.
    """
    node = existing_node(world, command.node_id)
    assert node.joined is not None
    region_id = node.joined.region_id
    if not may_tell(node):
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=node.phase)
    if existing_region(world, region_id).cloud_region is not None:
        raise Refused(
            FleetReason.REGION_NOT_SUITED,
            region_id=region_id,
            rule="private addresses are tried between machines of one's own",
        )
    _require_form(command)
    for one in command.tried:
        peer = node_of(world, one.node_id).joined
        if peer is None or peer.region_id != region_id or one.node_id == command.node_id:
            raise Refused(FleetReason.NODE_UNKNOWN, node_id=one.node_id, region_id=region_id)
    told = world.state(neighbours_stream(command.node_id)).told
    fact = NodeNeighboursTried(
        node_id=command.node_id,
        region_id=region_id,
        challenge=command.challenge,
        addresses=command.addresses,
        tried=command.tried,
        key_id=node.key_id,
        signature=command.signature,
        at_us=command.at_us,
    )
    if told is not None:
        wait_us = TOLD_EVERY_US if _is_same(fact, told) else CHANGED_EVERY_US
        if command.at_us < told.at_us + wait_us:
            return []
    return [Change(neighbours_stream(command.node_id), fact)]


def require_recent(challenge: int, now_us: int) -> None:
    """Raises Refused: BAD_PERIOD."""
    if not now_us - CHALLENGE_US <= challenge <= now_us:
        raise Refused(FleetReason.BAD_PERIOD, from_us=challenge, until_us=now_us)


def _require_form(command: TellNeighbours) -> None:
    require_recent(command.challenge, command.at_us)
    addresses, peers = command.addresses, [one.node_id for one in command.tried]
    if not len(set(addresses)) == len(addresses) <= ADDRESSES_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field="addresses", at_most=ADDRESSES_MAX)
    if not len(set(peers)) == len(peers) <= PEERS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field="tried", at_most=PEERS_MAX)
    for one in addresses:
        if private_address(one) is None:
            raise Refused(PartiesReason.UNKNOWN_MODE, address=one[:100], allowed="RFC 1918")


def _is_same(fact: NodeNeighboursTried, told: NodeNeighboursTried) -> bool:
    def said(one: NodeNeighboursTried) -> tuple[Any, ...]:
        reached = {(peer.node_id, bool(peer.proof)) for peer in one.tried}
        return one.region_id, set(one.addresses), reached

    return said(fact) == said(told)


# What it comes to.


@dataclass(frozen=True, slots=True)
class Told:
    """What one node of a region told last, and when."""

    told_us: int
    reached: frozenset[str]
    missed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Seen:
    """One node among the others of its region, by their ids."""

    verdict: str  # VERDICTS
    reached: frozenset[str]  # both ways
    missed: frozenset[str]  # one of the two tried and did not reach the other
    others: int

    @property
    def untried(self) -> int:
        return self.others - len(self.reached) - len(self.missed)


def see(told: Mapping[str, Told | None], now_us: int, others: int | None = None) -> dict[str, Seen]:
    """Of each node of one region: `told` names them all, or where `others` counts them one node and
    all that it told of or that told of it, and only that one is seen right.

    len(reached) + len(missed) + untried == others
    """
    fresh = {
        node_id: one
        for node_id, one in told.items()
        if one is not None and now_us < one.told_us + FRESH_US
    }
    nothing = Told(0, frozenset(), frozenset())
    missed_by: dict[str, set[str]] = {node_id: set() for node_id in told}
    reached_by: dict[str, set[str]] = {node_id: set() for node_id in told}
    for node_id, one in fresh.items():
        for peer in one.missed & told.keys():
            missed_by[peer].add(node_id)
        for peer in one.reached & told.keys():
            reached_by[peer].add(node_id)
    found, others = {}, len(told) - 1 if others is None else others
    for node_id in told:
        mine = fresh.get(node_id, nothing)
        missed = frozenset((mine.missed & told.keys()) | missed_by[node_id]) - {node_id}
        reached = frozenset(mine.reached & reached_by[node_id]) - missed - {node_id}
        assert len(missed) + len(reached) <= others
        verdict = _verdict(others, bool(missed), len(reached) >= _enough(others))
        found[node_id] = Seen(verdict, reached, missed, others)
    return found


def verdict_of(nodes: Collection[Seen]) -> str:
    """Of a region, from all of its nodes."""
    is_known = all(one.verdict == CONNECTED for one in nodes)
    return _verdict(len(nodes) - 1, any(one.missed for one in nodes), is_known)


def _enough(others: int) -> int:
    return others if others <= PEERS_MAX else ENOUGH


def _verdict(others: int, is_missed: bool, is_known: bool) -> str:
    if others < 1:
        return SINGLE
    if is_missed:
        return DISCONNECTED
    return CONNECTED if is_known else UNKNOWN


STREAMS: dict[str, tuple[Any, Any]] = {"neighbours": (Neighbours(), evolve)}
DECIDERS: dict[type[Any], Any] = {TellNeighbours: decide_neighbours}
