"""What `leasing` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.leasing import (
        assignments,
        escrows,
        events,
        halves,
        leases,
        parcels,
        quotes,
        restarts,
        turns,
        use,
        work,
    )

    return (
        assignments.resource,
        quotes.resource,
        events.resource,
        halves.resource,
        turns.resource,
        leases.resource,
        escrows.resource,
        restarts.resource,
        work.resource,
        parcels.resource,
        use.resource,
    )


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin."""
    from api.leasing.log_timer import run_lease_logs
    from api.leasing.parcel_timer import run_lease_parcels
    from api.leasing.restart_timer import run_restarts
    from api.leasing.watch_timer import run_watch

    return (
        Timer("lease_watch", 15, 600, run_watch, turn=40),
        Timer("restarts", 60, 7_200, run_restarts, turn=120),
        Timer("lease_parcels", 15, 7_200, run_lease_parcels, turn=235),
        Timer("lease_logs", 600, 93_600, run_lease_logs, turn=240),
    )
