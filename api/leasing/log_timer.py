"""Which words about leases are a week old? They are forgotten."""

from __future__ import annotations

from api.process.service import Service
from ledger.beside import lease_halves, lease_logs
from projections.runner import Connection


def run_lease_logs(_service: Service, connection: Connection, now_us: int) -> int:
    """What work printed, and how its halves were, is forgotten a week after the last word."""
    return lease_logs.forget(connection, now_us) + lease_halves.forget(connection, now_us)
