"""What `sites` adds to the server: its resources."""

from __future__ import annotations

from api.door.operation import Resource
from api.sites import datastores, edge_devices, reservations

RESOURCES: tuple[Resource, ...] = (
    edge_devices.resource,
    datastores.resource,
    reservations.resource,
)
