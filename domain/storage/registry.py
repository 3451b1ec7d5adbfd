"""What the room `storage` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.storage import node_room

FILES = (node_room,)
FACTS: dict[str, type[Any]] = {
    "node.room_taken.v1": node_room.NodeRoomTaken,
    "node.room_returned.v1": node_room.NodeRoomReturned,
}
