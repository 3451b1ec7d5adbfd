"""What `sites` adds to the server: its resources."""

from __future__ import annotations

from api.door.operation import Resource
from api.sites import datastores, device_configs, edge_devices, inference, reservations

RESOURCES: tuple[Resource, ...] = (
    edge_devices.resource,
    device_configs.resource,
    inference.resource,
    datastores.resource,
    reservations.resource,
)
