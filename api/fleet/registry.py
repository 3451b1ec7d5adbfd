"""What `fleet` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.fleet import (
        devices,
        growth,
        joining,
        kinds,
        maintenance,
        node_rotation,
        nodes,
        providers,
        revenue_shares,
        storage_nodes,
    )

    return (
        providers.resource,
        growth.resource,
        joining.resource,
        nodes.resource,
        revenue_shares.resource,
        node_rotation.resource,
        devices.resource,
        kinds.resource,
        maintenance.resource,
        storage_nodes.resource,
    )


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin."""
    from api.fleet.equivocation_timer import run_equivocation

    return (Timer("equivocation", 5, 60, run_equivocation, turn=10),)
