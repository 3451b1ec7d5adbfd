"""The timer of what was sealed for work, and of its results: both go when their time has come."""

from __future__ import annotations

from api.process.service import Service
from domain.lease.lease import lease_stream
from ledger.beside import lease_parcels
from projections.runner import Connection

BEFORE = ("requested", "quoted", "reserved", "gang_waiting")
"""States of a lease whose work has not begun."""


def run_lease_parcels(service: Service, connection: Connection, now_us: int) -> int:
    """Sealed variables go once the work has begun or the lease is over; results after a day."""
    state_of = service.ledger.market.state_of
    begun = [
        lease_id
        for lease_id in lease_parcels.sealed_leases(connection)
        if state_of(lease_stream(lease_id)).status not in BEFORE
    ]
    gone = lease_parcels.unseal(connection, begun) if begun else 0
    return gone + lease_parcels.forget(connection, now_us)
