"""What `metering` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.metering import meters, node_usage, usage_breakdown, usage_summary, utilisation

    return (
        node_usage.resource,
        usage_summary.resource,
        utilisation.resource,
        meters.resource,
        usage_breakdown.resource,
    )


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin."""
    from api.metering.accrual import run_accrual
    from api.metering.capacity_timer import run_capacity
    from api.metering.meter_timer import run_device_fees, run_resources, run_storage_nodes

    return (
        Timer("accrual", 5, 7_200, run_accrual, turn=20),
        Timer("capacity", 300, 7_200, run_capacity, turn=60),
        Timer("device_fees", 600, 93_600, run_device_fees, turn=160),
        Timer("storage_nodes", 300, 7_200, run_storage_nodes, turn=170),
        Timer("resources", 60, 7_200, run_resources, turn=180),
    )
