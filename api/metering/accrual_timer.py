"""Which leases are due for accrual now? All are charged; a lease that fails stops alone.

The view lists leases by `domain/leasing/due.py`; `accrual.py` says what there is to do for each.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from api.metering.accrual import accrue
from api.process.service import Service
from projections import tables
from projections.lease import leases
from projections.runner import Connection

logger = logging.getLogger(__name__)

LEASES_MAX = 1_000
"""Leases listed together; a run of the timer goes through all of them."""

_OPEN_COUNT = """
    SELECT count(*) FROM proj_leases.lease WHERE settled_position IS NULL
"""


def run_accrual(service: Service, connection: Connection, now_us: int) -> int:
    """Start timeouts, finished lease hours, ends of funds and terms, settlements."""
    tables.step_all(connection, only=("leases",))
    stopped: list[str] = []

    def on_stopped(lease_id: str, error: Exception) -> None:
        logger.error("accrual of %s stops: %s", lease_id, error)
        stopped.append(lease_id)

    _make_room(service, connection)
    due = due_leases(connection, now_us)
    done = accrue(service.ledger, connection, due, now_us, on_stopped=on_stopped)
    if stopped:
        raise AccrualStopped(f"{len(stopped)} leases stop, the first is {stopped[0]}")
    return done


def _make_room(service: Service, connection: Connection) -> None:
    """For the states of all open leases, and half as many other streams."""
    row = connection.execute(_OPEN_COUNT).fetchone()
    assert row is not None
    service.ledger.market.make_room(row[0] * 3 // 2)


def due_leases(connection: Connection, now_us: int) -> Iterator[str]:
    """Leases that are due by `domain/leasing/due.py`: what there is to do for each says
    `due_commands`.

    By node, so that a report is read once for all the leases it names.
    """
    node_id, after = "", -1
    while rows := leases.read_due(connection, now_us, node_id, after, LEASES_MAX):
        yield from (lease_id for lease_id, _, _ in rows)
        _, node_id, after = rows[-1]


class AccrualStopped(Exception):
    """Some leases could not be accrued; the others were. Their epoch cannot close."""
