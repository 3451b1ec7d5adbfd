"""What the server does for the plan of a job: parts opened, replaced and closed, runs started.

    one lease per part and attempt, one per due time          whoever asks, and however often

A timer goes through the jobs that have a plan; ids of leases follow from job, part and attempt (or
due time), and the job's own stream remembers each, so a timer that runs twice, or late, opens
nothing twice. Here are also the calls that scale a job, tell its parts and cost, and its queue.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door.amounts import Money, Units, credits_
from api.door.auth import nodes_or_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    EmptyRequest,
    JobId,
    JobInPath,
    LeaseId,
    LeaseInPath,
    NodeId,
    Position,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, ByNumber, Cursor, Limit
from api.jobs.jobs import READ, WRITE, own_job
from api.market.matching import MATCH_AGAIN
from api.market.placing import placed
from api.process.lease_desk import Round
from api.process.one_by_one import OneByOne
from api.process.service import Service
from domain.duration import SECOND_US
from domain.fleet.reasons import FleetReason
from domain.jobs.cron import next_due_us, parse
from domain.jobs.job import JobState, Part, ScaleJob, job_stream
from domain.jobs.parts import due_parts, due_run, members_for, plan_of, surplus
from domain.jobs.plan import MEMBERS_MAX
from domain.jobs.reasons import JobsReason
from domain.jobs.task_queue import (
    HOLD_US,
    PAYLOAD_MAX,
    PUSH_MAX,
    TASK_ID_MAX,
    FinishTask,
    PushTasks,
    Queue,
    TakeTask,
    Task,
    TaskTaken,
    task_queue_stream,
)
from domain.lease.close_codes import CANCELLED_BEFORE_START, RENTER_CLOSED, SCALED_DOWN
from domain.lease.lease import CloseLease, RequestLease, lease_stream
from domain.lease.reasons import LeaseReason
from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import derive_id
from domain.trust.reasons import TrustReason
from ledger.log.handle import JOB_ACCOUNT, StreamMoved
from projections import tables
from projections.lease import leases
from projections.lease.leases import LEASES
from projections.runner import Connection

logger = logging.getLogger(__name__)

resource = Resource("jobs")

PLANNED_MAX = 200
"""Jobs looked at together; a round goes through all of them."""
OPENED_MAX = 500
"""Leases one round opens: what is left over waits for the next one."""
TOGETHER_MAX = 20
"""Leases that are closed in the append that scales a job; the rest follow, at the same moment."""

PartState = Literal[
    "requested",
    "quoted",
    "reserved",
    "gang_waiting",
    "active",
    "paused",
    "degraded",
    "reclaiming",
    "closing",
    "settled",
    "disputed",
    "resolved",
    "archived",
]
TaskInPath = Annotated[str, Path(pattern=r"^[0-9A-Za-z_.:-]{1,100}$")]
TaskId = Annotated[str, Field(pattern=rf"^[0-9A-Za-z_.:-]{{1,{TASK_ID_MAX}}}$")]


class JobScaleRequest(RequestModel):
    """Within `min_members` and `max_members` of the job's plan."""

    members: Annotated[int, Field(ge=0, le=MEMBERS_MAX)]

    model_config = with_examples({"members": 3})


class JobScaledAnswer(AnswerModel):
    """`closing`: leases that end with this, billed up to now. Those to be added follow."""

    job_id: JobId
    members: Count
    closing: list[LeaseId]
    position: Position | None = None


class JobPartAnswer(AnswerModel):
    """A chunk or a member by its latest lease. `charge`: of all its leases, as accrued."""

    part: Count
    attempt: Count
    lease_id: LeaseId
    node_id: NodeId | None = None
    state: PartState
    close_code: Count | None = None
    charge: Money


class JobCostAnswer(AnswerModel):
    """What the leases of one job came to; each lease is in exactly one job."""

    job_id: JobId
    parent_job_id: JobId | None = None
    kind: str
    state: str
    leases: Count
    open_leases: Count
    gpu_us: Units
    charge: Money


class JobTreeCostAnswer(AnswerModel):
    """A job with all that is part of it: `charge` is the sum over their leases, as accrued."""

    job_id: JobId
    leases: Count
    open_leases: Count
    gpu_us: Units
    charge: Money
    jobs: list[JobCostAnswer]
    next_run_at: Told_at | None = None
    position: Position | None = None


class QueueTaskRequest(RequestModel):
    """`payload`: what to do, or where it is described. No secrets."""

    task_id: TaskId
    payload: Annotated[str, Field(max_length=PAYLOAD_MAX)] = ""


class QueueTasksRequest(RequestModel):
    """Tasks whose ids are known already are left out."""

    tasks: Annotated[list[QueueTaskRequest], Field(min_length=1, max_length=PUSH_MAX)]

    model_config = with_examples({"tasks": [{"task_id": "shard-1", "payload": "s3://in/1"}]})


class TaskQueueAnswer(AnswerModel):
    """`waiting`: tasks that no lease holds. `taken`: tasks that a lease holds for now."""

    job_id: JobId
    waiting: Count
    taken: Count
    done: Count
    position: Position | None = None


class QueueTaskTakeRequest(RequestModel):
    """For how long the task is held; then another lease may take it."""

    hold_seconds: Annotated[int, Field(ge=1, le=HOLD_US[1] // SECOND_US)] = 600

    model_config = with_examples({}, {"hold_seconds": 60})


class QueueTaskAnswer(AnswerModel):
    """No `task_id`: there is nothing to do now. `delivery` above 1: a lease held it before."""

    task_id: TaskId | None = None
    payload: str | None = None
    delivery: Count | None = None
    held_until: Told_at | None = None
    position: Position | None = None


class QueueTaskDoneAnswer(AnswerModel):
    task_id: TaskId
    position: Position | None = None


# --- scaling, parts, cost --------------------------------------------------------------------


@resource.post(
    "/v1/jobs/{job_id}/scale",
    WRITE,
    JobScaledAnswer,
    problems=[TrustReason.JOB_UNKNOWN, JobsReason.JOB_STATE, PartiesReason.COUNT_OUT_OF_RANGE],
)
def scale_job(job_id: JobInPath, body: JobScaleRequest, call: Caller) -> Response:
    """Changes how many members a job has: leases are closed now, or added as nodes are found."""
    chosen: list[Part] = []

    def commands() -> list[Any]:
        state = own_job(call, job_id)
        chosen[:] = [
            part
            for number, part in sorted(state.parts.items(), reverse=True)
            if part.is_live and number >= body.members
        ][:TOGETHER_MAX]
        scale = ScaleJob(
            job_id=job_id,
            members=body.members,
            cause="renter",
            by=call.principal.member_id,
            at_us=call.now_us,
        )
        by_renter = [
            _close("renter", part, SCALED_DOWN, call.now_us, call.now_us) for part in chosen
        ]
        return [scale, *by_renter]

    def told(_after: After) -> AnswerModel:
        closing = [part.lease_id for part in chosen]
        return JobScaledAnswer(job_id=job_id, members=body.members, closing=closing)

    return call.record(commands, told)


@resource.get(
    "/v1/jobs/{job_id}/parts",
    READ,
    page_of(JobPartAnswer),
    problems=[TrustReason.JOB_UNKNOWN, "cursor_invalid"],
)
def list_job_parts(
    job_id: JobInPath,
    call: Caller,
    order: ByNumber,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the chunks or members of a job by number, each with its latest lease."""
    place = call.place(cursor, [-1], order)
    with call.read(LEASES) as view:
        _require_visible(call, view.connection, job_id)
        rows = leases.read_parts(
            view.connection, job_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.part], _part)


@resource.get("/v1/jobs/{job_id}/cost", READ, JobTreeCostAnswer, problems=[TrustReason.JOB_UNKNOWN])
def read_job_cost(job_id: JobInPath, call: Caller) -> Response:
    """Returns the cost of a job and of everything that is part of it, each lease counted once."""
    with call.read(LEASES) as view:
        _require_visible(call, view.connection, job_id)
        rows = leases.read_job_costs(view.connection, job_id)
        told = JobTreeCostAnswer(
            job_id=job_id,
            leases=sum(row.leases for row in rows),
            open_leases=sum(row.open_leases for row in rows),
            gpu_us=str(sum(row.gpu_us for row in rows)),
            charge=credits_(sum(row.charge_units for row in rows)),
            jobs=[_cost(row) for row in rows],
            next_run_at=_next_run(call, job_id),
        )
        return call.answer(view, told)


def _require_visible(call: Call, connection: Connection, job_id: str) -> None:
    """Raises Refused: JOB_UNKNOWN."""
    if leases.read_job(connection, job_id, account_id=call.principal.only) is None:
        raise Refused(TrustReason.JOB_UNKNOWN, job_id=job_id)


def _next_run(call: Call, job_id: str) -> str | None:
    """When a scheduled job runs next."""
    state = _job(call.service, job_id)
    schedule = plan_of(state).schedule
    if schedule is None or not state.is_open:
        return None
    return moment_or_none(next_due_us(parse(schedule), call.now_us))


def _part(row: leases.PartRow) -> JobPartAnswer:
    told: Any = row
    return JobPartAnswer(
        part=row.part,
        attempt=row.attempt,
        lease_id=row.lease_id,
        node_id=row.node_id,
        state=told.state,
        close_code=row.close_code,
        charge=credits_(row.charge_units),
    )


def _cost(row: leases.JobCost) -> JobCostAnswer:
    return JobCostAnswer(
        job_id=row.job_id,
        parent_job_id=row.parent_job_id,
        kind=row.kind,
        state=row.state,
        leases=row.leases,
        open_leases=row.open_leases,
        gpu_us=str(row.gpu_us),
        charge=credits_(row.charge_units),
    )


# --- task queues -----------------------------------------------------------------------------


@resource.post(
    "/v1/jobs/{job_id}/tasks",
    WRITE,
    TaskQueueAnswer,
    status=201,
    problems=[
        TrustReason.JOB_UNKNOWN,
        JobsReason.JOB_STATE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        MoneyReason.DUPLICATE_ID,
        PricesReason.AMOUNT_OUT_OF_RANGE,
    ],
)
def push_tasks(job_id: JobInPath, body: QueueTasksRequest, call: Caller) -> Response:
    """Adds tasks to the queue of a job. An id that was ever there is not added again."""

    def command() -> PushTasks:
        own_job(call, job_id)
        return PushTasks(
            job_id=job_id,
            tasks=tuple(Task(one.task_id, one.payload) for one in body.tasks),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        return _queue_told(job_id, after.state(task_queue_stream(job_id)), call.now_us)

    return call.record(command, told)


@resource.get("/v1/jobs/{job_id}/tasks", READ, TaskQueueAnswer, problems=[TrustReason.JOB_UNKNOWN])
def read_task_queue(job_id: JobInPath, call: Caller) -> Response:
    """Returns how many tasks a queue holds."""
    with call.read(LEASES) as view:
        _require_visible(call, view.connection, job_id)
        return call.answer(view, _queue_told(job_id, _queue(call.service, job_id), call.now_us))


@resource.post(
    "/v1/leases/{lease_id}/tasks/take",
    nodes_or_scope("renter", "client"),
    QueueTaskAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN, FleetReason.LEASE_STATE, JobsReason.JOB_STATE],
)
def take_task(lease_id: LeaseInPath, body: QueueTaskTakeRequest, call: Caller) -> Response:
    """Hands the next task to a lease of a queue job, held for a while. Its node or renter asks."""

    def command() -> TakeTask:
        _require_worker(call, lease_id)
        return TakeTask(lease_id=lease_id, hold_us=body.hold_seconds * SECOND_US, at_us=call.now_us)

    def told(after: After) -> AnswerModel:
        for change in after.changes:
            if isinstance(change.fact, TaskTaken):
                fact = change.fact
                queue = after.state(task_queue_stream(fact.job_id))
                return QueueTaskAnswer(
                    task_id=fact.task_id,
                    payload=queue.waiting[fact.task_id].payload,
                    delivery=fact.delivery,
                    held_until=moment(fact.until_us),
                )
        return QueueTaskAnswer()

    return call.record(command, told)


@resource.post(
    "/v1/leases/{lease_id}/tasks/{task_id}/done",
    nodes_or_scope("renter", "client"),
    QueueTaskDoneAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN, JobsReason.TASK_UNKNOWN, JobsReason.TASK_STATE],
)
def finish_task(
    lease_id: LeaseInPath, task_id: TaskInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Marks a task as done. A second report of it, by the same lease or another, changes
    nothing.
    """
    del body

    def command() -> FinishTask:
        _require_worker(call, lease_id)
        return FinishTask(lease_id=lease_id, task_id=task_id, at_us=call.now_us)

    return call.record(command, lambda _after: QueueTaskDoneAnswer(task_id=task_id))


def _require_worker(call: Call, lease_id: str) -> None:
    """The lease's renter, or the node it runs on. Raises Refused: LEASE_UNKNOWN."""
    lease = call.service.ledger.market.state_of(lease_stream(lease_id))
    if lease.requested is not None:
        if call.principal.owns(lease.requested.account_id):
            return
        if lease.reserved is not None and call.node_of_caller(lease.reserved.node_id):
            return
    raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)


def _queue_told(job_id: str, queue: Queue, now_us: int) -> TaskQueueAnswer:
    waiting = sum(task.is_free(now_us) for task in queue.waiting.values())
    return TaskQueueAnswer(
        job_id=job_id, waiting=waiting, taken=len(queue.waiting) - waiting, done=len(queue.done)
    )


# --- the timer -------------------------------------------------------------------------------


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
    state = _job(service, job_id)
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
    state = _job(service, job_id)
    wanted = members_for(plan_of(state), len(_queue(service, job_id).waiting))
    if wanted is None or wanted == state.members or not state.is_open:
        return 0
    scale = ScaleJob(job_id=job_id, members=wanted, cause="tasks", by="job", at_us=now_us)
    return len(service.ledger.handle(scale, key=None, now_us=now_us).changes)


def _closed(service: Service, part: Part, state: JobState, now_us: int) -> int:
    """Close a part that is too many, at the moment since when it is."""
    lease = service.ledger.market.state_of(lease_stream(part.lease_id))
    unopened = RENTER_CLOSED if lease.opened is not None else CANCELLED_BEFORE_START
    code = SCALED_DOWN if state.is_open else unopened
    command = _close("job", part, code, state.changed_us, now_us)
    return bool(service.ledger.handle(command, key=None, now_us=now_us).changes)


def _close(party: str, part: Part, code: int, closed_at_us: int, now_us: int) -> CloseLease:
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
        state = _job(service, job_id)
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


def _job(service: Service, job_id: str) -> JobState:
    return service.ledger.market.state_of(job_stream(job_id))


def _queue(service: Service, job_id: str) -> Queue:
    return service.ledger.market.state_of(task_queue_stream(job_id))
