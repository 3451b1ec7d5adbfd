"""What lies where in the story: disk and network that leases hold of a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.storage import node_room
from domain.stream import Stream

Told = tuple[Stream[Any], Any]
NODE = "node_1"


def stored(at: int) -> Iterator[Told]:
    """A lease takes disk and network of a node; later it gives back its network."""
    yield from _room(at)


def _room(at: int) -> Iterator[Told]:
    stream, held = node_room.room_stream(NODE), {"node_id": NODE, "lease_id": "lease_disk"}
    yield (
        stream,
        node_room.NodeRoomTaken(
            **held,
            storage_gib=60,
            network_mbps=400,
            storage_of_gib=100,
            network_of_mbps=1_000,
            at_us=at,
        ),
    )
    yield (
        stream,
        node_room.NodeRoomReturned(**held, storage_gib=0, network_mbps=400, at_us=at + 1),
    )
