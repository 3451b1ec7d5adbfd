"""Parts of a job: chunks that are all to be completed, members that are kept running, due runs.

    a part has one lease at a time;  attempts of a part are 1, 2, 3, ...        on the job's stream
    all chunks completed  =>  the job is, in the append that ends the last of them
    members(job) leases are wanted, parts 0 .. members - 1, min <= members <= max
    one lease for each due time that is started, and due times only rise

The lease of a part is opened and closed like any other; its start and its end are also facts of the
job, in the same append, so two timers can never open the same part, attempt or run. What is due is
a pure function of the job's state and the time. Not here: matching, money.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.jobs.cron import latest_due_us, parse
from domain.jobs.job import (
    JobCompleted,
    JobFailed,
    JobPartEnded,
    JobPartStarted,
    JobRunStarted,
    JobScaled,
    JobState,
    Part,
    ScaleJob,
    existing_job,
    job_of,
    job_stream,
)
from domain.jobs.plan import JobPlan
from domain.jobs.reasons import JobsReason
from domain.lease.close_codes import COMPLETED
from domain.lease.lease import LeaseRequested, RequestLease
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, World

ATTEMPTS_MAX = 10
"""Leases of one chunk; when the last one fails, the job does."""
PAUSE_US = 60_000_000
"""Between the starts of two leases of one part: what fails at once is not tried without end."""


@dataclass(frozen=True, slots=True)
class DuePart:
    part: int
    attempt: int


def plan_of(state: JobState) -> JobPlan:
    """The job's plan; an empty one where it has none."""
    submitted = state.submitted
    return JobPlan() if submitted is None or submitted.plan is None else submitted.plan


def wanted_of(state: JobState) -> int:
    """How many parts there are to be."""
    chunks = plan_of(state).chunks
    return state.members if chunks is None else chunks


def due_parts(state: JobState, now_us: int) -> Iterator[DuePart]:
    """The parts that need a lease now, the first one first."""
    if not state.is_open:
        return
    is_chunked = plan_of(state).chunks is not None
    for number in range(wanted_of(state)):
        part = state.parts.get(number)
        if part is None:
            yield DuePart(number, 1)
            continue
        is_done = part.is_live or (is_chunked and part.code == COMPLETED)
        if not is_done and now_us >= part.started_us + PAUSE_US:
            yield DuePart(number, part.attempt + 1)


def surplus(state: JobState) -> list[Part]:
    """The live parts that are too many: above the number that is wanted, or of a job that ended."""
    wanted = wanted_of(state) if state.is_open else 0
    return [
        part
        for number, part in sorted(state.parts.items(), reverse=True)
        if part.is_live and number >= wanted
    ]


def due_run(state: JobState, now_us: int) -> int | None:
    """The due time to start now: the latest one since the last that was started. Those before it
    were missed, and stay so.
    """
    schedule = plan_of(state).schedule
    if schedule is None or not state.is_open:
        return None
    return latest_due_us(parse(schedule), state.last_due_us, now_us)


def started(command: RequestLease, state: JobState) -> list[Change]:
    """What the job remembers of a lease that is asked for.

    Raises Refused: JOB_STATE, for a lease by hand where the plan opens them, and for a part or a
    run that is not due.
    """
    plan = plan_of(state)
    if plan.has_parts:
        return _part_started(command, state)
    if command.part is not None:
        raise Refused(JobsReason.JOB_STATE, job_id=command.job_id, part=command.part)
    if command.run_due_us is None:
        return []
    if command.run_due_us != due_run(state, command.at_us):
        raise Refused(JobsReason.JOB_STATE, job_id=command.job_id, run_due_us=command.run_due_us)
    run = JobRunStarted(
        job_id=command.job_id,
        lease_id=command.lease_id,
        due_us=command.run_due_us,
        at_us=command.at_us,
    )
    return [Change(job_stream(command.job_id), run)]


def _part_started(command: RequestLease, state: JobState) -> list[Change]:
    if command.part is None or command.attempt is None:
        raise Refused(
            JobsReason.JOB_STATE, job_id=command.job_id, rule="its leases are opened by its plan"
        )
    if DuePart(command.part, command.attempt) not in due_parts(state, command.at_us):
        raise Refused(
            JobsReason.JOB_STATE, job_id=command.job_id, part=command.part, attempt=command.attempt
        )
    fact = JobPartStarted(
        job_id=command.job_id,
        part=command.part,
        attempt=command.attempt,
        lease_id=command.lease_id,
        at_us=command.at_us,
    )
    return [Change(job_stream(command.job_id), fact)]


def ended(asked: LeaseRequested, code: int, at_us: int, world: World) -> list[Change]:
    """What the job remembers of the end of a lease, and whether it ends with it."""
    if asked.part is None or asked.attempt is None:
        return []
    stream, state = job_stream(asked.job_id), job_of(world, asked.job_id)
    fact = JobPartEnded(
        job_id=asked.job_id,
        part=asked.part,
        attempt=asked.attempt,
        lease_id=asked.lease_id,
        code=code,
        at_us=at_us,
    )
    chunks = plan_of(state).chunks
    if chunks is None or not state.is_open:
        return [Change(stream, fact)]
    done = {number for number, part in state.parts.items() if part.code == COMPLETED}
    if code == COMPLETED and len(done | {asked.part}) == chunks:
        completed = JobCompleted(job_id=asked.job_id, at_us=at_us)
        return [Change(stream, fact), Change(stream, completed)]
    if code != COMPLETED and asked.attempt >= ATTEMPTS_MAX:
        failed = JobFailed(
            job_id=asked.job_id, part=asked.part, attempts=asked.attempt, at_us=at_us
        )
        return [Change(stream, fact), Change(stream, failed)]
    return [Change(stream, fact)]


def decide_scale(command: ScaleJob, world: World) -> list[Change]:
    """Scaling to what it has already gives no fact.

    Raises Refused: JOB_UNKNOWN, JOB_STATE, COUNT_OUT_OF_RANGE.
    """
    existing_job(world, command.job_id)
    state = job_of(world, command.job_id)
    plan = plan_of(state)
    if not state.is_open or plan.max_members is None or plan.min_members is None:
        raise Refused(JobsReason.JOB_STATE, job_id=command.job_id, phase=state.phase)
    if not plan.min_members <= command.members <= plan.max_members:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE,
            members=command.members,
            at_least=plan.min_members,
            at_most=plan.max_members,
        )
    if command.members == state.members:
        return []
    fact = JobScaled(
        job_id=command.job_id,
        members=command.members,
        cause=command.cause,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(job_stream(command.job_id), fact)]


def members_for(plan: JobPlan, open_tasks: int) -> int | None:
    """How many members a queue of so many open tasks wants; None where they are set by hand."""
    if plan.tasks_per_member is None or plan.min_members is None or plan.max_members is None:
        return None
    wanted = -(-open_tasks // plan.tasks_per_member)
    return max(plan.min_members, min(plan.max_members, wanted))


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {ScaleJob: decide_scale}
