"""The timer of leases that go on: those of jobs with `auto_restart` that are funded again."""

from __future__ import annotations

import logging
from typing import Any

from api.market.matching import MATCH_AGAIN
from api.market.placing import placed
from api.process.lease_desk import Round
from api.process.one_by_one import OneByOne
from api.process.service import Service
from domain.frozen import replace
from domain.funds.funding import sources_of
from domain.gpu_time import charge_for
from domain.jobs.job import JobSubmitted, SubmitJob, job_stream
from domain.lease.lease import MIN_RUNWAY_US, Lease, RequestLease, lease_stream
from domain.leasing.request import asked_again
from domain.money import PPM, credit
from domain.refusal import Refused
from domain.stream import derive_id
from ledger.log.handle import JOB_ACCOUNT, StreamMoved
from projections import tables
from projections.lease import leases
from projections.runner import Connection

logger = logging.getLogger(__name__)

ENDED_MAX = 200
"""Leases looked at together; a round of the timer goes through all of them."""


def going_on(
    service: Service, before: Lease, lease_id: str, key_id: str | None, now_us: int
) -> list[Any]:
    """The commands that open a lease for what an ended one asked for. Raises Refused: NO_MATCH."""
    request, spec = again_of(service, before, lease_id, key_id, now_us)
    return placed(service, request, spec, Round.of_one(service.ledger.world(), now_us))


Again = tuple[RequestLease, SubmitJob | JobSubmitted]


def again_of(
    service: Service, before: Lease, lease_id: str, key_id: str | None, now_us: int
) -> Again:
    """The request for what an ended lease asked for, and its job."""
    asked = before.requested
    assert asked is not None
    job = service.ledger.market.state_of(job_stream(asked.job_id))
    assert job.submitted is not None
    funds = asked.funds
    if funds is not None:
        funds = credit(max(1, min(funds.units, _available(service, before, now_us))))
    request = replace(
        asked_again(asked, lease_id, now_us),
        term_us=None,
        funds=funds,
        key_id=key_id,
        pricing=None,
        overflow=False,
    )
    return request, job.submitted


def run_restarts(service: Service, connection: Connection, now_us: int) -> int:
    """Leases of jobs with `auto_restart` whose funds ended and are there again."""
    tables.step_all(connection, only=("leases", "fleet"))
    after, goings_on = 0, OneByOne(logger, "the restart of %s stops")
    while ended := leases.read_funds_ended(
        connection, auto_only=True, after=after, limit=ENDED_MAX
    ):
        after = ended[-1].position
        for row in ended:
            goings_on.take(row.lease_id, _restart, service, row.lease_id, now_us)
    return goings_on.end(RestartsStopped)


class RestartsStopped(Exception):
    """Some leases could not go on for a reason that is no refusal; the others did."""


def _restart(service: Service, lease_id: str, now_us: int) -> int:
    """Go on with one lease, if its balance funds an hour; a refusal waits for the next round."""
    before = lease_of(service, lease_id)
    if _available(service, before, now_us) < _hour_of(before):
        return 0
    asked = before.requested
    assert asked is not None
    as_lease_id = derive_id("lease", JOB_ACCOUNT, f"restart/{lease_id}")
    try:
        service.ledger.handle(
            lambda: going_on(service, before, as_lease_id, asked.key_id, now_us),
            key=None,
            now_us=now_us,
            again_on=MATCH_AGAIN,
        )
    except (Refused, StreamMoved) as no:
        logger.info("%s does not go on yet: %s", lease_id, no)
        return 0
    return 1


def lease_of(service: Service, lease_id: str) -> Lease:
    return service.ledger.market.state_of(lease_stream(lease_id))


def _available(service: Service, before: Lease, now_us: int) -> int:
    """What the account and its payer could put into an escrow of the same kind now."""
    assert before.requested is not None
    assert before.reserved is not None
    way = before.reserved.pay_with
    world, account_id = service.ledger.world(), before.requested.account_id
    return sum(one.units for one in sources_of(world, account_id, way, now_us))


def _hour_of(before: Lease) -> int:
    """An hour at the price the lease had."""
    assert before.reserved is not None
    hour_us = before.gpu_ppm_total * MIN_RUNWAY_US // PPM
    return charge_for(hour_us, before.reserved.price_per_gpu_hour.units)
