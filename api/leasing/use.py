"""What a running lease uses and costs now: by the reports that its node has signed so far.

charge == charge of the accruals so far + what accruing now would add       an estimate
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import Response

from api.door.amounts import Money, Units, credits_
from api.door.call import Caller, View
from api.door.models import AnswerModel, Count, LeaseId, LeaseInPath, Position, Told_at
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.leasing.leases import State
from api.leasing.work import PARTIES, party_of
from api.metering.unbilled import unbilled
from domain.lease.lease import Lease
from domain.lease.reasons import LeaseReason
from domain.metering.report import Row, parse
from domain.money import PPM
from ledger.log.usage_reads import latest_reports

resource = Resource("leases")

REPORTS_MAX = 8
RECENT_US = 60_000_000


class LeaseUseAnswer(AnswerModel):
    """`gpu_us` and `charge` are estimates while `is_final` is false: reports still under way add to
    them. `busy_ppm`: how busy the devices were over the last `busy_seconds` that the node reported;
    absent where that cannot be measured. `reported_until`: to where the node has told its use.
    """

    lease_id: LeaseId
    state: State
    opened_at: Told_at | None = None
    closed_at: Told_at | None = None
    gpu_us: Units
    charge: Money
    is_final: bool
    reported_until: Told_at | None = None
    busy_ppm: Count | None = None
    busy_seconds: Count | None = None
    position: Position | None = None


@resource.get(
    "/v1/leases/{lease_id}/use", PARTIES, LeaseUseAnswer, problems=[LeaseReason.LEASE_UNKNOWN]
)
def read_lease_use(lease_id: LeaseInPath, call: Caller) -> Response:
    """Returns what a lease has used so far, what that costs, and how busy its devices are."""
    lease = party_of(call, lease_id)
    state: Any = lease.status
    with call.read() as view:
        live = unbilled(call.service.ledger, view.connection, [lease_id], call.now_us)
        added = [(one.accrued.gpu_us_new, one.accrued.charge_new.units) for one in live]
        told = LeaseUseAnswer(
            lease_id=lease_id,
            state=state,
            opened_at=None if lease.opened is None else moment(lease.opened.opened_at_us),
            closed_at=None if lease.closed is None else moment(lease.closed.closed_at_us),
            gpu_us=str(lease.gpu_us + sum(used for used, _ in added)),
            charge=credits_(lease.charge_units + sum(cost for _, cost in added)),
            is_final=lease.is_over,
            **_busy(view, lease, lease_id),
        )
        return call.answer(view, told)


def _busy(view: View, lease: Lease, lease_id: str) -> dict[str, Any]:
    """Over the last minute that the node told of this lease."""
    if lease.reserved is None or lease.opened is None or lease.is_over:
        return {}
    rows = list(_rows(view, lease.reserved.node_id, lease_id))
    if not rows:
        return {}
    until_us = max(ends_us for ends_us, _ in rows)
    recent = [
        (row.busy_us, row.available_us)
        for ends_us, row in rows
        if ends_us > until_us - RECENT_US and row.busy_us is not None
    ]
    measured_us = sum(available_us for _, available_us in recent)
    told: dict[str, Any] = {"reported_until": moment_or_none(until_us)}
    if measured_us:
        told["busy_ppm"] = sum(busy_us or 0 for busy_us, _ in recent) * PPM // measured_us
        told["busy_seconds"] = -(-measured_us // 1_000_000)
    return told


def _rows(view: View, node_id: str, lease_id: str) -> Iterator[tuple[int, Row]]:
    """The lease's rows of the last reports, each with its end in server time."""
    for stored in latest_reports(view.connection, node_id, REPORTS_MAX):
        if stored.flags:  # what the door found broken may not be of the form
            continue
        report = parse(stored.signed)
        if lease_id not in report.leases:
            continue
        number = report.leases.index(lease_id)
        for row in report.rows:
            if row.lease == number:
                yield row.wall_end_us + (report.clock_offset_us or 0), row
