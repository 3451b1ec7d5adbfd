"""Restart after top-up: a lease whose funds ended goes on as a new one when money is back (C-25).

    one lease whose funds ended -> at most one that goes on        by a fact on the first one

`POST /v1/jobs/{id}/restart` asks for it; of a job with `auto_restart` the timer does, as soon as
the balance funds an hour at the price of before. The new lease is matched anew, asks for what the
old one asked for, and holds as much of it as there is.
"""

from __future__ import annotations

from typing import Any

from fastapi import Response

from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.errors import Problem
from api.door.models import AnswerModel, EmptyRequest, JobInPath, LeaseId, with_examples
from api.door.operation import Resource
from api.jobs.jobs import own_job
from api.leasing.leases import LeaseOpenedAnswer, opened_told
from api.leasing.restart_timer import Again, again_of, lease_of
from api.market.matching import MATCH_AGAIN
from api.market.placing import BID_FOR, placed
from api.market.unmatched import keep_unmatched
from api.process.lease_desk import Round
from domain.fleet.reasons import FleetReason
from domain.lease.lease import Lease, RequestLease, ReserveLease, lease_stream
from domain.lease.reasons import LeaseReason
from domain.market.reasons import MarketReason
from domain.refusal import Refused
from domain.rules import refused_by
from projections.lease import leases
from projections.lease.leases import LEASES

resource = Resource("jobs")


class JobRestartedAnswer(LeaseOpenedAnswer):
    """`restart_of`: the lease whose funds ended."""

    restart_of: LeaseId


class JobRestartRequest(EmptyRequest):
    """No fields: `{}`."""

    model_config = with_examples({})


@resource.post(
    "/v1/jobs/{job_id}/restart",
    with_scope("renter", "client"),
    JobRestartedAnswer,
    status=201,
    problems=[
        *refused_by(RequestLease, ReserveLease, never=(LeaseReason.LEASE_NOT_DUE, *BID_FOR)),
        MarketReason.NO_MATCH,
        MarketReason.MATCH_IMPOSSIBLE,
    ],
)
def restart_job(job_id: JobInPath, body: JobRestartRequest, call: Caller) -> Response:
    """Restarts a job whose last lease ended with its funds: a new lease, matched again."""
    del body
    lease_id = call.id("lease")

    def asked() -> Again:
        before = _ended(call, job_id)
        return again_of(call.service, before, lease_id, call.principal.key_id, call.now_us)

    def commands() -> list[Any]:
        here = Round.of_one(call.service.ledger.world(), call.now_us)
        return placed(call.service, *asked(), here)

    def told(after: After) -> AnswerModel:
        lease = after.state(lease_stream(lease_id))
        assert lease.requested is not None
        opened = opened_told(lease).model_dump()
        return JobRestartedAnswer(**opened, restart_of=lease.requested.restart_of or "")

    try:
        return call.record(commands, told, again_on=MATCH_AGAIN)
    except Problem as problem:
        keep_unmatched(call, problem, asked)
        raise


def _ended(call: Call, job_id: str) -> Lease:
    """The last lease of a job whose funds ended. Raises Refused: JOB_UNKNOWN, LEASE_STATE."""
    own_job(call, job_id, as_participant=True)
    with call.read(LEASES) as view:
        found = leases.read_funds_ended(
            view.connection, job_id=job_id, account_id=call.principal.account_id
        )
    if not found:
        raise Refused(FleetReason.LEASE_STATE, job_id=job_id, rule="no lease of it ended with 100")
    return lease_of(call.service, found[-1].lease_id)
