"""The timer of folders that travelled with work: they go a day after no open work names them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from api.process.service import Service
from ledger.beside import workspaces
from projections.lease import leases
from projections.lease.leases import LEASES
from projections.pools import pools
from projections.pools.pools import POOLS
from projections.runner import Connection


def run_workspaces(service: Service, connection: Connection, now_us: int) -> int:
    """Forget what was kept for a day and is named by no open work."""
    service.follow(connection, (LEASES, POOLS), service.head(connection))
    return workspaces.forget(connection, now_us, partial(is_open, connection))


def is_open(connection: Connection, job_ids: Sequence[str]) -> bool:
    """Whether one of these jobs has work that is open, or a gang that waits for its first lease."""
    return leases.read_is_open(connection, job_ids) or pools.read_is_waiting(connection, job_ids)
