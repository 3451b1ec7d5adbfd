"""How much disk and network of a node is taken, and by which leases.

    sum(storage_gib of holders)  <= storage_of_gib   of the offer that each was placed by
    sum(network_mbps of holders) <= network_of_mbps  when it was placed
    given back == taken                              of every lease, once, when it is over

An offer promises GiB and Mbit/s of its node; a lease that demands some holds them together with its
devices, in the same append, whichever way it was bought. Leases of all offers of a node count,
because they share its disk. A paused lease keeps its disk, where its data are, and gives back its
network. An offer that promises less afterwards takes nothing from a lease that runs. Row J-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, assert_never

from domain.frozen import replace
from domain.stream import Change, Stream, World

# Facts. Stream `node-room:{node_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoomTaken:
    """More disk and network of a node for a lease; together with what others hold of it, no more
    than was promised.
    """

    node_id: str
    lease_id: str
    storage_gib: int
    network_mbps: int
    storage_of_gib: int  # promised by the offer that the lease is placed by
    network_of_mbps: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoomReturned:
    """So much of what the lease held is free again."""

    node_id: str
    lease_id: str
    storage_gib: int
    network_mbps: int
    at_us: int


Fact = NodeRoomTaken | NodeRoomReturned


@dataclass(frozen=True, slots=True)
class Room:
    """Disk in GiB and network in Mbit/s."""

    storage_gib: int = 0
    network_mbps: int = 0

    def __add__(self, other: Room) -> Room:
        return Room(self.storage_gib + other.storage_gib, self.network_mbps + other.network_mbps)

    def __sub__(self, other: Room) -> Room:
        return Room(self.storage_gib - other.storage_gib, self.network_mbps - other.network_mbps)

    def __bool__(self) -> bool:
        return bool(self.storage_gib or self.network_mbps)

    def within(self, most: Room) -> bool:
        """Whether neither of the two is more than there is."""
        return self.storage_gib <= most.storage_gib and self.network_mbps <= most.network_mbps


NO_ROOM = Room()

# What is remembered.


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """Who holds how much of one node."""

    holders: dict[str, Room] = field(default_factory=dict)

    @property
    def held(self) -> Room:
        return sum(self.holders.values(), NO_ROOM)


def evolve(state: NodeRoom, fact: Fact) -> NodeRoom:
    """Who holds what after one more fact."""
    before = state.holders.get(fact.lease_id, NO_ROOM)
    part = Room(fact.storage_gib, fact.network_mbps)
    match fact:
        case NodeRoomTaken():
            after = before + part
        case NodeRoomReturned():
            after = before - part
        case _:
            assert_never(fact)
    holders = {**state.holders, fact.lease_id: after}
    return replace(state, holders={who: room for who, room in holders.items() if room})


def room_stream(node_id: str) -> Stream[NodeRoom]:
    return Stream("node-room", node_id)


def room_of(world: World, node_id: str) -> NodeRoom:
    return world.state(room_stream(node_id))


# How it is taken and given back.


def fits(world: World, node_id: str, more: Room, most: Room) -> bool:
    """Whether a node has room for more, beside what is held of what an offer promises."""
    held = room_of(world, node_id).held
    of_storage = not more.storage_gib or held.storage_gib + more.storage_gib <= most.storage_gib
    return of_storage and (
        not more.network_mbps or held.network_mbps + more.network_mbps <= most.network_mbps
    )


def take(
    world: World, node_id: str, lease_id: str, more: Room, most: Room, at_us: int
) -> list[Change]:
    """What gives a lease its room; nothing where it demands none. It `fits`."""
    if not more:
        return []
    assert fits(world, node_id, more, most), (node_id, lease_id, more, most)
    taken = NodeRoomTaken(
        node_id=node_id,
        lease_id=lease_id,
        storage_gib=more.storage_gib,
        network_mbps=more.network_mbps,
        storage_of_gib=most.storage_gib,
        network_of_mbps=most.network_mbps,
        at_us=at_us,
    )
    return [Change(room_stream(node_id), taken)]


def give_back(
    world: World, node_id: str, lease_id: str, at_us: int, *, keeps_storage: bool = False
) -> list[Change]:
    """What frees the room of a lease, all of it or its network alone; nothing twice."""
    held = room_of(world, node_id).holders.get(lease_id, NO_ROOM)
    if keeps_storage:
        held = replace(held, storage_gib=0)
    if not held:
        return []
    returned = NodeRoomReturned(
        node_id=node_id,
        lease_id=lease_id,
        storage_gib=held.storage_gib,
        network_mbps=held.network_mbps,
        at_us=at_us,
    )
    return [Change(room_stream(node_id), returned)]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"node-room": (NodeRoom(), evolve)}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {}
