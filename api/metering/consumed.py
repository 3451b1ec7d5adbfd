"""Which signed reports an accrual read, and what each of them was worth.

    sum(ppm_us of the reports) == what the accrual added          asserted: it is computed again

The fact names how far it read; the lease as it stood before it says from where. The rows are judged
again by the rule that judged them then, so the answer is a proof and no record.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import psycopg

from api.metering.accrual import first_unread
from domain.lease.lease import Lease, UsageAccrued, lease_stream
from domain.leasing.accrual import window_of
from domain.metering.counting import Reach, UsageRow, count, due
from domain.record import dataclass
from ledger.log.handle import Ledger
from ledger.log.report_rows import lease_rows
from ledger.log.usage import StoredReport
from ledger.log.usage_reads import NodeReader


@dataclass(frozen=True, slots=True)
class Consumed:
    """One report: how many rows of the lease were judged, and what they came to."""

    report: StoredReport
    rows: int
    ppm_us: int
    refused_us: int


@dataclass(frozen=True, slots=True)
class Reading:
    """An accrual, the lease as it stood before, and the reports it read rows from."""

    lease: Lease
    fact: UsageAccrued
    reports: tuple[Consumed, ...]


def lease_before(ledger: Ledger, fact: UsageAccrued, position: int) -> Lease:
    """The lease as it stood when the fact at this position was decided."""
    state = ledger.market.load_as_of(lease_stream(fact.lease_id), position - 1).state
    assert isinstance(state, Lease)
    return state


def read(
    ledger: Ledger, connection: psycopg.Connection[Any], fact: UsageAccrued, position: int
) -> Reading:
    """The reports behind the accrual recorded at this market position, in lane order."""
    lease = lease_before(ledger, fact, position)
    assert lease.reserved is not None
    assert lease.opened is not None
    reader = NodeReader(connection)
    after = first_unread(lease, reader)
    found = reader.reports(fact.node_id, after, fact.usage_position)
    stored = {one.position: one for one in found}
    rows = [row for one in stored.values() for row in lease_rows(one).rows.get(fact.lease_id, ())]
    is_last = lease.closed is not None and fact.until_us >= lease.closed.closed_at_us
    reach = Reach(lease.usage_position, lease.accrued_until_us)
    fresh = due(rows, reach, None if is_last else fact.until_us)
    reports = tuple(_judged(lease, stored, fresh.rows))
    assert lease.ppm_us + sum(one.ppm_us for one in reports) == fact.ppm_us, position
    return Reading(lease, fact, reports)


def _judged(
    lease: Lease, stored: dict[int, StoredReport], rows: tuple[UsageRow, ...]
) -> Iterator[Consumed]:
    assert lease.reserved is not None
    assert lease.opened is not None
    window = window_of(lease)
    marks = {mark.device_id: mark for mark in lease.marks}
    for position, group in groupby(rows, key=lambda row: row.position):
        of_report = list(group)
        counted = count(of_report, window, marks)
        marks = {mark.device_id: mark for mark in counted.watermarks}
        yield Consumed(
            stored[position], len(of_report), counted.ppm_us, sum(one.us for one in counted.refused)
        )
