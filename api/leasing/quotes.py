"""Quotes: what a request would get, and why, before anybody submits it. Nothing is recorded."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Response
from pydantic import Field, model_validator

from api.door.amounts import Money
from api.door.auth import with_scope
from api.door.call import Call, Caller
from api.door.models import TERM_SECONDS_MAX, JobId, RequestModel, with_examples
from api.door.operation import Resource
from api.jobs.jobs import EXAMPLE, JobRequest, own_job
from api.market.explanations import JobQuoteAnswer, quote_told
from api.market.matching import look, nearest_of, room_of, wish_of
from api.market.performance import performance_of_match
from domain.duration import SECOND_US
from domain.hardware.constraints import require_constraints
from domain.hardware.reasons import HardwareReason
from domain.jobs.job import JobSubmitted, SubmitJob, require_shape
from domain.lease.lease import RequestLease
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.trust.reasons import TrustReason
from projections.fleet.fleet import FLEET
from projections.metering.usage import USAGE
from projections.trust import reputation
from projections.trust.reputation import REPUTATION

resource = Resource("quotes")

UNNAMED = "job_0"


class JobQuoteRequest(RequestModel):
    """A job of yours, or a new one that is not submitted. `term_seconds`: a fixed term; else what
    an hour costs, or `funds`, is what the balance must hold.
    """

    job_id: JobId | None = None
    job: JobRequest | None = None
    term_seconds: Annotated[int, Field(ge=1, le=TERM_SECONDS_MAX)] | None = None
    funds: Money | None = None
    settlement: Literal["cash", "burn"] | None = None

    model_config = with_examples({"job": EXAMPLE}, {"job": EXAMPLE, "term_seconds": 3600})

    @model_validator(mode="after")
    def _one_of_each(self) -> JobQuoteRequest:
        if (self.job_id is None) == (self.job is None):
            raise ValueError("job_id or job, one of them")
        if self.term_seconds is not None and self.funds is not None:
            raise ValueError("a fixed term names no funds: it holds the largest possible charge")
        return self


@resource.post(
    "/v1/quotes",
    with_scope("renter", "client"),
    JobQuoteAnswer,
    records=False,
    problems=[
        TrustReason.JOB_UNKNOWN,
        HardwareReason.CONSTRAINT_INVALID,
        PartiesReason.SHARE_OUT_OF_RANGE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PricesReason.TARIFF_UNKNOWN,
    ],
)
def quote_job(body: JobQuoteRequest, call: Caller) -> Response:
    """Returns the node that a job would get now, why that one, and if none, which demand to
    ease.
    """
    spec = _spec(body, call)
    request = RequestLease(
        lease_id="",
        job_id=spec.job_id,
        account_id=call.principal.account_id,
        term_us=None if body.term_seconds is None else body.term_seconds * SECOND_US,
        funds=None if body.funds is None else body.funds.amount(),
        at_us=call.now_us,
        pay_with=body.settlement,
        key_id=call.principal.key_id,
    )
    here = call.round()
    found = look(call.service, wish_of(request, spec, here), here)
    with call.read(FLEET, REPUTATION, USAGE) as view:
        known = {one.setting: one for one in reputation.read_settings(view.connection)}
        performance = performance_of_match(view.connection, found, call.now_us)
        free_us, nearest = room_of(call.service, found), nearest_of(call.service, found)
        return call.answer(view, quote_told(found, known, performance, free_us, nearest))


def _spec(body: JobQuoteRequest, call: Call) -> SubmitJob | JobSubmitted:
    """What is asked for. Raises Refused: JOB_UNKNOWN, CONSTRAINT_INVALID, SHARE_OUT_OF_RANGE,
    COUNT_OUT_OF_RANGE.
    """
    if body.job is not None:
        spec = body.job.submit(call, UNNAMED)
        require_shape(spec.gpu_count, spec.share_ppm, spec.mem_ppm)
        if spec.constraints is not None:
            require_constraints(spec.constraints)
        return spec
    assert body.job_id is not None
    submitted = own_job(call, body.job_id, as_participant=True).submitted
    assert submitted is not None
    return submitted
