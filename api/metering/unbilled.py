"""What has run since the last accrual: the domain's own formula over the reports received so far.

    charge so far + unbilled == charge of the accruals to come      if no further report arrives
    estimate == charge so far + unbilled                            of one lease

Nothing is recorded and nothing is promised: reports still under way add to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import psycopg
from pydantic import Field

from api.door.amounts import Money, Units, credits_
from api.door.models import AnswerModel, Count, LeaseId, Told_at
from api.door.moments import moment
from api.metering.accrual import first_unread, look_up, unread
from domain.lease.lease import Lease, UsageAccrued, lease_stream
from domain.leasing.accrual import accrued_so_far
from ledger.log.handle import Ledger
from ledger.log.usage_reads import NodeReader
from projections.lease import leases

AT_ONCE = 200
"""Leases whose last reports are read together."""
LISTED_MAX = 200
"""Leases that a sum names one by one."""
SUMMED_MAX = 5_000
"""More running leases of one account than that are left out of the sum, and counted."""


class LeaseEstimateAnswer(AnswerModel):
    """What a lease has used and costs so far: what is billed, and what the reports received since
    would add. An estimate until the lease is settled; `until` is the last moment it covers.
    """

    gpu_us: Units
    charge: Money
    until: Told_at


class UnbilledLeaseAnswer(AnswerModel):
    """What accruing one lease now would charge, from the reports received so far."""

    lease_id: LeaseId
    accrued_until: Told_at
    until: Told_at
    gpu_us: Units
    charge: Money
    lane: Annotated[int, Field(ge=0, le=63)]
    usage_position: Count


class UnbilledUsageAnswer(AnswerModel):
    """Used but not accrued yet. An estimate: reports that are still under way add to it. `charge`
    and `gpu_us` are of all running leases but `leases_left_out`; `leases` names the first of them.
    """

    charge: Money
    gpu_us: Units
    leases: list[UnbilledLeaseAnswer]
    leases_left_out: Count


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
    found = ledger.market.load_many([lease_stream(one) for one in lease_ids])
    states: list[tuple[str, Lease]] = [(one, found[lease_stream(one)].state) for one in lease_ids]
    live = [one for one in states if one[1].opened is not None and not one[1].is_over]
    look_up(reader, [lease for _, lease in live])
    after: dict[str, int] = {}
    for _, lease in live:
        assert lease.reserved is not None
        node_id, position = lease.reserved.node_id, first_unread(lease, reader)
        after[node_id] = min(position, after.get(node_id, position))
    reader.read_ahead(after)
    return [
        Unbilled(lease, accrued_so_far(lease, unread(lease, lease_id, reader, now_us)))
        for lease_id, lease in live
    ]


def in_parts(
    ledger: Ledger, connection: psycopg.Connection[Any], lease_ids: Sequence[str], now_us: int
) -> Iterator[Unbilled]:
    """The same of any number of leases, so many at once: their reports are let go of in between."""
    for at in range(0, len(lease_ids), AT_ONCE):
        yield from unbilled(ledger, connection, lease_ids[at : at + AT_ONCE], now_us)


def estimates(
    ledger: Ledger, connection: psycopg.Connection[Any], lease_ids: Sequence[str], now_us: int
) -> dict[str, LeaseEstimateAnswer]:
    """By lease, for those of one page that run or wait for their last reports."""
    return {
        one.accrued.lease_id: LeaseEstimateAnswer(
            gpu_us=str(one.lease.gpu_us + one.accrued.gpu_us_new),
            charge=credits_(one.lease.charge_units + one.accrued.charge_new.units),
            until=moment(one.accrued.until_us),
        )
        for one in in_parts(ledger, connection, lease_ids, now_us)
    }


def not_billed(
    ledger: Ledger, connection: psycopg.Connection[Any], account_id: str, now_us: int
) -> UnbilledUsageAnswer:
    """What all running leases of a renter have used and is not billed yet."""
    ids = leases.read_live_leases(connection, account_id)
    charge = gpu_us = 0
    found: list[Unbilled] = []
    for one in in_parts(ledger, connection, ids[:SUMMED_MAX], now_us):
        charge += one.accrued.charge_new.units
        gpu_us += one.accrued.gpu_us_new
        if len(found) < LISTED_MAX:
            found.append(one)
    return UnbilledUsageAnswer(
        charge=credits_(charge),
        gpu_us=str(gpu_us),
        leases=[
            UnbilledLeaseAnswer(
                lease_id=each.accrued.lease_id,
                accrued_until=moment(each.lease.accrued_until_us),
                until=moment(each.accrued.until_us),
                gpu_us=str(each.accrued.gpu_us_new),
                charge=credits_(each.accrued.charge_new.units),
                lane=each.accrued.lane,
                usage_position=each.accrued.usage_position,
            )
            for each in found
        ],
        leases_left_out=max(0, len(ids) - SUMMED_MAX),
    )
