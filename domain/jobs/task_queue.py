"""Task queues: work items of a queue job, pulled by its leases, each at least once.

    open(queue) + done(queue) == every task that was ever pushed            each id once, for ever
    a task is given out  <=>  it is not done, and nobody holds it or its time is over

Whoever takes a task has it until a moment; then another lease may take it again, so a task can be
worked on twice and is done once: the first `done` counts, from any lease it was given to. Ids are
the renter's: what was pushed once is not pushed again. A queue holds at most `TASKS_MAX` ids in its
life, because every one of them is remembered; a longer one is another job.

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.jobs.job import existing_job, job_of
from domain.jobs.reasons import JobsReason
from domain.lease.lease import lease_of
from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts. Stream `task_queue:{job_id}`.


@dataclass(frozen=True, slots=True)
class Task:
    """`payload`: what it is, or where: a short text. References only, never secrets."""

    task_id: str
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksPushed:
    job_id: str
    tasks: tuple[Task, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTaken:
    job_id: str
    task_id: str
    lease_id: str
    delivery: int  # 1, and one more each time it is given out
    until_us: int  # then it may be given to another one
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDone:
    job_id: str
    task_id: str
    lease_id: str
    at_us: int


Fact: TypeAlias = TasksPushed | TaskTaken | TaskDone

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTasks:
    job_id: str
    tasks: tuple[Task, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeTask:
    """The next task for a lease, if there is one."""

    lease_id: str
    hold_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishTask:
    lease_id: str
    task_id: str
    at_us: int


TASKS_MAX = 10_000
PUSH_MAX = 100
PAYLOAD_MAX = 400
TASK_ID_MAX = 100
HOLD_US = (1_000_000, 24 * 3_600_000_000)

# State.


@dataclass(frozen=True, slots=True)
class OpenTask:
    payload: str
    delivery: int = 0
    until_us: int = 0
    holders: tuple[str, ...] = ()  # leases it was given to

    def is_free(self, at_us: int) -> bool:
        return self.until_us <= at_us


@dataclass(frozen=True, slots=True)
class Queue:
    """`waiting`: not done yet, in the order they were pushed."""

    waiting: dict[str, OpenTask] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    done: frozenset[str] = frozenset()

    def next_free(self, at_us: int) -> str | None:
        """The one that nobody has, pushed first."""
        return next((one for one in self.order if self.waiting[one].is_free(at_us)), None)


def evolve(queue: Queue, fact: Fact) -> Queue:
    match fact:
        case TasksPushed():
            new = {one.task_id: OpenTask(one.payload) for one in fact.tasks}
            return replace(queue, waiting={**queue.waiting, **new}, order=(*queue.order, *new))
        case TaskTaken():
            task = queue.waiting[fact.task_id]
            taken = OpenTask(
                task.payload,
                fact.delivery,
                fact.until_us,
                tuple(dict.fromkeys((*task.holders, fact.lease_id))),
            )
            return replace(queue, waiting={**queue.waiting, fact.task_id: taken})
        case TaskDone():
            waiting = {who: one for who, one in queue.waiting.items() if who != fact.task_id}
            order = tuple(one for one in queue.order if one != fact.task_id)
            return Queue(waiting, order, queue.done | {fact.task_id})
        case _:
            assert_never(fact)


# Decisions.


def task_queue_stream(job_id: str) -> Stream[Queue]:
    return Stream("task_queue", job_id)


def queue_of(world: World, job_id: str) -> Queue:
    return world.state(task_queue_stream(job_id))


def decide_push(command: PushTasks, world: World) -> list[Change]:
    """Ids that are known are left out, so a push that is repeated adds nothing.

    Raises Refused: JOB_UNKNOWN, JOB_STATE, COUNT_OUT_OF_RANGE, AMOUNT_OUT_OF_RANGE, DUPLICATE_ID.
    """
    job = existing_job(world, command.job_id)
    state = job_of(world, command.job_id)
    if job.kind != "queue" or not state.is_open:
        raise Refused(JobsReason.JOB_STATE, job_id=command.job_id, kind=job.kind, phase=state.phase)
    ids = [one.task_id for one in command.tasks]
    if not 1 <= len(ids) <= PUSH_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, tasks=len(ids), at_most=PUSH_MAX)
    if len(set(ids)) != len(ids):
        raise Refused(MoneyReason.DUPLICATE_ID, rule="each task once")
    if any(not 1 <= len(one) <= TASK_ID_MAX for one in ids) or any(
        len(one.payload.encode()) > PAYLOAD_MAX for one in command.tasks
    ):
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, payload_bytes_max=PAYLOAD_MAX)
    queue = queue_of(world, command.job_id)
    known = queue.done | queue.waiting.keys()
    new = tuple(one for one in command.tasks if one.task_id not in known)
    if not new:
        return []
    if len(known) + len(new) > TASKS_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, tasks=len(known) + len(new), at_most=TASKS_MAX
        )
    pushed = TasksPushed(job_id=command.job_id, tasks=new, by=command.by, at_us=command.at_us)
    return [Change(task_queue_stream(command.job_id), pushed)]


def decide_take(command: TakeTask, world: World) -> list[Change]:
    """The task pushed first that nobody has; nothing when there is none.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE, JOB_STATE, AMOUNT_OUT_OF_RANGE.
    """
    job_id = _job_of_running(world, command.lease_id)
    if not HOLD_US[0] <= command.hold_us <= HOLD_US[1]:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field="hold_us", hold_us=command.hold_us)
    queue = queue_of(world, job_id)
    task_id = queue.next_free(command.at_us)
    if task_id is None:
        return []
    taken = TaskTaken(
        job_id=job_id,
        task_id=task_id,
        lease_id=command.lease_id,
        delivery=queue.waiting[task_id].delivery + 1,
        until_us=command.at_us + command.hold_us,
        at_us=command.at_us,
    )
    return [Change(task_queue_stream(job_id), taken)]


def decide_finish(command: FinishTask, world: World) -> list[Change]:
    """Done once, by the first lease that says so of those it was given to; later ones change
    nothing.

    Raises Refused: LEASE_UNKNOWN, TASK_UNKNOWN, TASK_STATE for a lease it was never given to.
    """
    asked = lease_of(world, command.lease_id).requested
    assert asked is not None
    queue = queue_of(world, asked.job_id)
    if command.task_id in queue.done:
        return []
    task = queue.waiting.get(command.task_id)
    if task is None:
        raise Refused(JobsReason.TASK_UNKNOWN, task_id=command.task_id)
    if command.lease_id not in task.holders:
        raise Refused(JobsReason.TASK_STATE, task_id=command.task_id, lease_id=command.lease_id)
    done = TaskDone(
        job_id=asked.job_id, task_id=command.task_id, lease_id=command.lease_id, at_us=command.at_us
    )
    return [Change(task_queue_stream(asked.job_id), done)]


def _job_of_running(world: World, lease_id: str) -> str:
    """The queue job of an active lease. Raises Refused: LEASE_UNKNOWN, LEASE_STATE, JOB_STATE."""
    lease = lease_of(world, lease_id)
    assert lease.requested is not None
    if lease.opened is None or not lease.is_live:
        raise Refused(FleetReason.LEASE_STATE, lease_id=lease_id, status=lease.status)
    job = existing_job(world, lease.requested.job_id)
    if job.kind != "queue":
        raise Refused(JobsReason.JOB_STATE, job_id=job.job_id, kind=job.kind)
    return job.job_id


STREAMS: dict[str, tuple[Any, Any]] = {"task_queue": (Queue(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    PushTasks: decide_push,
    TakeTask: decide_take,
    FinishTask: decide_finish,
}
