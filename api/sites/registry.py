"""What `sites` adds to the server: its resources."""

from __future__ import annotations

from api.door.operation import Resource


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.sites import datastores, device_configs, edge_devices, inference, reservations

    return (
        edge_devices.resource,
        device_configs.resource,
        inference.resource,
        datastores.resource,
        reservations.resource,
    )
