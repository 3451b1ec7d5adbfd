"""What the room `storage` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.storage import dataset, node_room, volume

FILES = (dataset, node_room, volume)
FACTS: dict[str, type[Any]] = {
    "node.room_taken.v1": node_room.NodeRoomTaken,
    "node.room_returned.v1": node_room.NodeRoomReturned,
    "volume.provisioned.v1": volume.VolumeProvisioned,
    "volume.attached.v1": volume.VolumeAttached,
    "volume.detached.v1": volume.VolumeDetached,
    "volume.charged.v1": volume.VolumeCharged,
    "volume.grace_started.v1": volume.VolumeGraceStarted,
    "volume.grace_ended.v1": volume.VolumeGraceEnded,
    "volume.deleted.v1": volume.VolumeDeleted,
    "volume.erased.v1": volume.VolumeErased,
    "dataset.placed.v1": dataset.DatasetPlaced,
    "dataset.removed.v1": dataset.DatasetRemoved,
}
