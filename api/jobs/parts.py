"""The parts of a job over HTTP: the calls that scale it, tell its parts and cost, and its queue.

What a timer does for the plan of a job is `plan_timer.py`'s.
"""

from __future__ import annotations

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
from api.jobs.plan_timer import closing, job_of, queue_of
from domain.duration import SECOND_US
from domain.fleet.reasons import FleetReason
from domain.jobs.cron import next_due_us, parse
from domain.jobs.job import Part, ScaleJob
from domain.jobs.parts import plan_of
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
from domain.lease.close_codes import SCALED_DOWN
from domain.lease.lease import lease_stream
from domain.lease.reasons import LeaseReason
from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.trust.reasons import TrustReason
from projections.lease import leases
from projections.lease.leases import LEASES
from projections.runner import Connection

resource = Resource("jobs")

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
            closing("renter", part, SCALED_DOWN, call.now_us, call.now_us) for part in chosen
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
    state = job_of(call.service, job_id)
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
        return call.answer(view, _queue_told(job_id, queue_of(call.service, job_id), call.now_us))


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
