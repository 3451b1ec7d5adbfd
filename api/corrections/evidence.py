"""Evidence in disputes: what is named by a position is looked up, and has to be about the lease.

    signed  =>  the lease's node signed a report with rows of this lease, or the renter how much it
                used of it: the signature was checked when that was recorded

A hash is taken as it is: it proves that somebody had a text at that moment, and no more.
"""

from __future__ import annotations

from typing import Any

from domain.corrections.dispute import Evidence
from domain.corrections.reasons import CorrectionsReason
from domain.lease.countersign import UsageCountersigned
from domain.lease.lease import Lease
from domain.metering.report import lane_of
from domain.refusal import Refused
from ledger.log.market import Market
from ledger.log.report_rows import lease_rows
from ledger.log.usage_reads import report_at
from projections.runner import Connection


def checked(
    connection: Connection,
    market: Market,
    lease: Lease,
    kind: str,
    lane: int | None,
    position: int | None,
    sha256: str | None,
) -> Evidence:
    """The evidence as a fact holds it. Raises Refused: EVIDENCE_UNKNOWN."""
    assert lease.reserved is not None
    lease_id = lease.reserved.lease_id
    signed = False
    if kind == "usage_report":
        signed = _is_report_of(connection, lease, lane, position)
        is_known = signed
    elif kind == "market_fact":
        fact = None if position is None else _fact_at(market, position)
        is_known = getattr(fact, "lease_id", None) == lease_id
        signed = is_known and isinstance(fact, UsageCountersigned)
    else:
        is_known = sha256 is not None
    if not is_known:
        raise Refused(CorrectionsReason.EVIDENCE_UNKNOWN, kind=kind, lane=lane, position=position)
    return Evidence(kind=kind, lane=lane, position=position, sha256=sha256, signed=signed)


def _is_report_of(
    connection: Connection, lease: Lease, lane: int | None, position: int | None
) -> bool:
    """Whether there is such a report of the lease's node, unflagged, with rows of the lease. Its
    signature was checked when it came in.
    """
    assert lease.reserved is not None
    node_id = lease.reserved.node_id
    if lane != lane_of(node_id) or position is None:
        return False
    found = report_at(connection, lane, position)
    if found is None or found.node_id != node_id:
        return False
    return lease.reserved.lease_id in lease_rows(found).rows


def _fact_at(market: Market, position: int) -> Any:
    found = market.read_facts(position - 1, 1)
    return found[0].fact if found and found[0].position == position else None
