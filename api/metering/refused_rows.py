"""Why reported time earned nothing, row by row: what accrual refused, judged again from the logs.

    sum(us of the rows, by rule) == what the accrual's fact says it refused      for every accrual

Nothing is remembered of a row: the lease as it stood before the accrual and the reports it read are
in the logs, so the owner sees exactly what was decided. Flagged reports are read again by the
reference parser, for the rule they break and the time they claimed.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from api.metering.accrual import first_unread
from domain.lease.lease import Lease, UsageAccrued, lease_stream
from domain.leasing.accrual import window_of
from domain.metering.counting import REFUSED_US_MAX, Reach, RefusedRow, due, refusals
from domain.record import dataclass
from ledger.log.market import Market
from ledger.log.report_rows import lease_rows
from ledger.log.usage import StoredReport, flagged_of_node
from ledger.log.usage_reads import NodeReader
from projections.runner import Connection

ROWS_MAX = 200
"""Rows told of one accrual; what they cost together is in its fact."""
CLAIMED_US_MAX = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Broken:
    """A flagged report: the rule it breaks, and the time its rows claim, where they can be read."""

    stored: StoredReport
    rule: str
    detail: str
    claimed_us: int | None


def broken_reports(
    connection: Connection, node_id: str, after_position: int, limit: int
) -> list[Broken]:
    """A node's flagged reports after a position of its lane, each with what it cost."""
    return [
        Broken(stored, broken.rule, broken.detail, _claimed_us(stored.signed))
        for stored, broken in flagged_of_node(connection, node_id, after_position, limit)
    ]


def _claimed_us(signed: bytes) -> int | None:
    """Available time of all rows, of a body that may break any rule."""
    try:
        body = json.loads(signed)
        column, count = body["cols"]["available_us"], body["n"]
        values = column if isinstance(column, list) else [column] * min(count, 1_000)
        if not all(type(value) is int and value >= 0 for value in values):
            return None
        return min(sum(values), CLAIMED_US_MAX)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def rows_of_accrual(
    market: Market, connection: Connection, fact: UsageAccrued, position: int
) -> list[RefusedRow]:
    """The rows that this accrual refused, in the order of the lane. Empty when the reports that it
    read do not give what it recorded: then nothing is told rather than something wrong.
    """
    before = market.load_as_of(lease_stream(fact.lease_id), position - 1).state
    assert isinstance(before, Lease)
    reader = NodeReader(connection)
    read = reader.reports(fact.node_id, first_unread(before, reader), fact.usage_position)
    rows = [row for one in read for row in lease_rows(one).rows.get(fact.lease_id, ())]
    reached = Reach(before.usage_position, before.accrued_until_us)
    marks = {mark.device_id: mark for mark in before.marks}
    told = {refused.rule: refused.us for refused in fact.refused}
    for until_us in (fact.until_us, None):  # an hour, or all that was left when the lease ended
        found = refusals(due(rows, reached, until_us).rows, window_of(before), marks)
        if _by_rule(found) == told:
            return found
    return []


def _by_rule(found: list[RefusedRow]) -> dict[str, Any]:
    counted: Counter[str] = Counter()
    for one in found:
        counted[one.rule] += one.us
    return {rule: min(us, REFUSED_US_MAX) for rule, us in counted.items() if us}
