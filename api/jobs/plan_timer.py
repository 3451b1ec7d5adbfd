"""What the server does for the plan of a job: parts opened, replaced and closed, runs started.

    one lease per part and attempt, one per due time          whoever asks, and however often

A timer goes through the jobs that have a plan; ids of leases follow from job, part and attempt (or
due time), and the job's own stream remembers each, so a timer that runs twice, or late, opens
nothing twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from api.market.matching import MATCH_AGAIN
from api.market.placing import placed
from api.process.lease_desk import Round
from api.process.one_by_one import OneByOne
from api.process.service import Service
from domain.jobs.job import JobState, Part, ScaleJob, job_stream
from domain.jobs.parts import due_parts, due_run, members_for, plan_of, surplus
from domain.jobs.task_queue import Queue, task_queue_stream
from domain.lease.close_codes import CANCELLED_BEFORE_START, RENTER_CLOSED, SCALED_DOWN
from domain.lease.lease import CloseLease, RequestLease, lease_stream
from domain.refusal import Refused
from domain.stream import derive_id
from ledger.log.handle import JOB_ACCOUNT, StreamMoved
from projections import tables
from projections.lease import leases
from projections.runner import Connection

logger = logging.getLogger(__name__)

PLANNED_MAX = 200
"""Jobs looked at together; a round goes through all of them."""
OPENED_MAX = 500
"""Leases one round opens: what is left over waits for the next one."""


class PlansStopped(Exception):
    """Some jobs could not go on for a reason that is no refusal; the others did."""


def run_plans(service: Service, connection: Connection, now_us: int) -> int:
    """Open, replace and close the leases of jobs with a plan; start the runs that are due."""
    tables.step_all(connection, only=("leases", "fleet"))
    plans = OneByOne(logger, "the plan of %s stops")
    for job_id in _planned(connection):
        plans.take(job_id, _go_on, service, job_id, now_us, OPENED_MAX - plans.done)
    return plans.end(PlansStopped)


def _planned(connection: Connection) -> Iterator[str]:
    after = 0
    while rows := leases.read_planned(connection, after=after, limit=PLANNED_MAX):
        yield from (row.job_id for row in rows)
        after = rows[-1].position


def _go_on(service: Service, job_id: str, now_us: int, opened_max: int) -> int:
    """What one job's plan wants now; how many leases were closed and opened."""
    done = _follow_queue(service, job_id, now_us)
    state = job_of(service, job_id)
    done += sum(_closed(service, part, state, now_us) for part in surplus(state))
    due_us = due_run(state, now_us)
    if due_us is not None:
        done += _opened(service, job_id, now_us, run_due_us=due_us)
    for due in list(due_parts(state, now_us))[: max(0, opened_max)]:
        if not _opened(service, job_id, now_us, part=due.part, attempt=due.attempt):
            break  # the parts are alike: what is refused to one, is to all
        done += 1
    return done


def _follow_queue(service: Service, job_id: str, now_us: int) -> int:
    """Scale the members of a queue job with the tasks that are not done."""
    state = job_of(service, job_id)
    wanted = members_for(plan_of(state), len(queue_of(service, job_id).waiting))
    if wanted is None or wanted == state.members or not state.is_open:
        return 0
    scale = ScaleJob(job_id=job_id, members=wanted, cause="tasks", by="job", at_us=now_us)
    return len(service.ledger.handle(scale, key=None, now_us=now_us).changes)


def _closed(service: Service, part: Part, state: JobState, now_us: int) -> int:
    """Close a part that is too many, at the moment since when it is."""
    lease = service.ledger.market.state_of(lease_stream(part.lease_id))
    unopened = RENTER_CLOSED if lease.opened is not None else CANCELLED_BEFORE_START
    code = SCALED_DOWN if state.is_open else unopened
    command = closing("job", part, code, state.changed_us, now_us)
    return bool(service.ledger.handle(command, key=None, now_us=now_us).changes)


def closing(party: str, part: Part, code: int, closed_at_us: int, now_us: int) -> CloseLease:
    return CloseLease(
        lease_id=part.lease_id, closed_at_us=closed_at_us, party=party, code=code, at_us=now_us
    )


def _opened(
    service: Service,
    job_id: str,
    now_us: int,
    *,
    part: int | None = None,
    attempt: int | None = None,
    run_due_us: int | None = None,
) -> bool:
    """Open one lease of a plan, if it can be; a refusal waits for the next round."""
    what = f"run/{job_id}/{run_due_us}" if part is None else f"part/{job_id}/{part}/{attempt}"
    lease_id = derive_id("lease", JOB_ACCOUNT, what)

    def commands() -> list[Any]:
        state = job_of(service, job_id)
        spec, plan = state.submitted, plan_of(state)
        assert spec is not None
        request = RequestLease(
            lease_id=lease_id,
            job_id=job_id,
            account_id=spec.account_id,
            term_us=plan.run_us,
            funds=None,
            at_us=now_us,
            refill=plan.run_us is None,
            key_id=spec.key_id,
            part=part,
            attempt=attempt,
            run_due_us=run_due_us,
            by_timer=True,
        )
        here = Round.of_one(service.ledger.world(), now_us)
        return placed(service, request, spec, here)

    try:
        service.ledger.handle(commands, key=None, now_us=now_us, again_on=MATCH_AGAIN)
    except (Refused, StreamMoved) as no:
        logger.info("%s is not opened yet: %s", what, no)
        return False
    return True


def job_of(service: Service, job_id: str) -> JobState:
    return service.ledger.market.state_of(job_stream(job_id))


def queue_of(service: Service, job_id: str) -> Queue:
    return service.ledger.market.state_of(task_queue_stream(job_id))
