"""What has run since the last accrual: the domain's own formula over the reports received so far.

    charge so far + unbilled == charge of the accruals to come      if no further report arrives

Nothing is recorded and nothing is promised: reports still under way add to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from api.metering.accrual import unread
from domain.lease.lease import Lease, UsageAccrued, lease_stream
from domain.leasing.accrual import accrued_so_far
from domain.record import dataclass
from ledger.log.handle import Ledger
from ledger.log.usage_reads import NodeReader


@dataclass(frozen=True, slots=True)
class Unbilled:
    """A live lease, and what accruing it now would add."""

    lease: Lease
    accrued: UsageAccrued


def unbilled(
    ledger: Ledger, connection: psycopg.Connection[Any], lease_ids: Sequence[str], now_us: int
) -> list[Unbilled]:
    """One row per lease that is running or waits for its last reports, in the order given."""
    reader = NodeReader(connection)
    found = []
    for lease_id in lease_ids:
        lease = ledger.market.state_of(lease_stream(lease_id))
        if lease.opened is not None and not lease.is_over:
            command = unread(lease, lease_id, reader, now_us)
            found.append(Unbilled(lease, accrued_so_far(lease, command)))
    return found
