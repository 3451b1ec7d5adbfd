"""What the room `jobs` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.jobs import gang, job, parts, task_queue

FILES = (gang, job, parts, task_queue)
FACTS: dict[str, type[Any]] = {
    "gang.requested.v1": gang.GangRequested,
    "gang.reserved.v1": gang.GangReserved,
    "gang.member_ready.v1": gang.GangMemberReady,
    "gang.opened.v1": gang.GangOpened,
    "gang.grown.v1": gang.GangGrown,
    "gang.closed.v1": gang.GangClosed,
    "job.submitted.v1": job.JobSubmitted,
    "job.escrow_opened.v1": job.JobEscrowOpened,
    "job.cancelled.v1": job.JobCancelled,
    "job.completed.v1": job.JobCompleted,
    "job.federated_fee_carried.v1": job.FederatedFeeCarried,
    "job.failed.v1": job.JobFailed,
    "job.scaled.v1": job.JobScaled,
    "job.part_started.v1": job.JobPartStarted,
    "job.part_ended.v1": job.JobPartEnded,
    "job.volumes_set.v1": job.JobVolumesSet,
    "job.run_started.v1": job.JobRunStarted,
    "job.tasks_pushed.v1": task_queue.TasksPushed,
    "job.task_taken.v1": task_queue.TaskTaken,
    "job.task_done.v1": task_queue.TaskDone,
}
