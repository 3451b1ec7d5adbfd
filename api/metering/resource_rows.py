"""Which signed rows of a lease a meter has not judged yet, and which ones a charge was made of.

    sum(measured of the reports) == what the accrual added          asserted: it is computed again

A fact names the reports it read: those of the lease's node after one position of its lane up to
another. The rows are judged again by the rule that judged them then, so the answer is a proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import psycopg

from api.metering import accrual
from domain.lease.lease import Lease, lease_stream
from domain.leasing.other_resources import ROWS_MAX, Bill, ResourceAccrued, ResourceUsage, stream_of
from domain.metering.report import lane_of
from domain.metering.resources import MeteredRow
from domain.parties.account import AccountState, account_stream
from domain.record import dataclass
from ledger.log.handle import Ledger
from ledger.log.report_rows import used_by
from ledger.log.usage import StoredReport
from ledger.log.usage_reads import NodeReader


@dataclass(frozen=True, slots=True)
class ConsumedRows:
    """One report: how many rows of the lease's meter were judged, and what they came to."""

    report: StoredReport
    rows: int
    measured: int
    refused: int


def unjudged(
    reader: NodeReader, lease: Lease, lease_id: str, meter: str, through_position: int
) -> tuple[MeteredRow, ...]:
    """The rows of the first reports after a lane position, at most ROWS_MAX of them."""
    if lease.reserved is None:
        return ()
    node_id = lease.reserved.node_id
    after = first_position(reader, lease, through_position)
    found: list[MeteredRow] = []
    for report in reader.reports(node_id, after, reader.head(lane_of(node_id))):
        rows = list(rows_of(report, lease_id, meter))
        if len(found) + len(rows) > ROWS_MAX:
            # A report holds more rows of one lease than a fact can name: the node cut far too
            # often, and what is above the bound is nobody's.
            found += rows[:ROWS_MAX] if not found else []
            break
        found += rows
    return tuple(found)


def first_position(reader: NodeReader, lease: Lease, through_position: int) -> int:
    """The lane position after which reports are read: before the lease none can name it."""
    if through_position:
        return through_position
    assert lease.reserved is not None
    return accrual.first_position(reader, lease.reserved)


def rows_of(report: StoredReport, lease_id: str, meter: str) -> Iterator[MeteredRow]:
    """What a report tells of one meter of a lease, where it could be measured."""
    for used in used_by(report):
        row = used.metered(meter) if used.lease_id == lease_id else None
        if row is not None:
            yield row


def consumed(
    ledger: Ledger, connection: psycopg.Connection[Any], fact: ResourceAccrued, position: int
) -> tuple[ConsumedRows, ...]:
    """The reports behind the charge recorded at this market position, in lane order."""
    market, before = ledger.market, position - 1
    lease = market.load_as_of(lease_stream(fact.lease_id), before).state
    state = market.load_as_of(stream_of(fact.lease_id, fact.meter), before).state
    assert isinstance(lease, Lease)
    assert isinstance(state, ResourceUsage)
    reader = NodeReader(connection)
    after = first_position(reader, lease, fact.after_position)
    reports = {
        one.position: one for one in reader.reports(fact.node_id, after, fact.through_position)
    }
    rows = [row for one in reports.values() for row in rows_of(one, fact.lease_id, fact.meter)][
        : fact.rows
    ]
    account = market.load_as_of(account_stream(fact.account_id), before).state
    assert isinstance(account, AccountState)
    bill = Bill(lease, state, fact.meter, fact.rate, is_closed=account.is_closed)
    told = []
    for at, group in groupby(rows, key=lambda row: row.position):
        of_report = list(group)
        counted = sum(bill.judge(row) for row in of_report)
        lost = sum(row.quantity for row in of_report) - counted
        told.append(ConsumedRows(reports[at], len(of_report), counted, lost))
    assert bill.measured == fact.measured, position
    return tuple(told)
