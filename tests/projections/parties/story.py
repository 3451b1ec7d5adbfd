"""Clients and their keys, groups that are joined and left, quotas, lists, jobs with a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.jobs import job, task_queue
from domain.jobs.plan import JobPlan, Reference
from domain.money import credit
from domain.parties import client as compute_client
from domain.parties import counterparty
from domain.pools import group, quota
from domain.stream import Stream

CLIENT, RENTER, OTHER = "acct_client", "acct_cash", "acct_provider"
GROUP, INNER = "group_outer", "group_inner"


def demanding(at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    """Every fact of the demand side, most of them more than once."""
    by: dict[str, Any] = {"by": "mem_a", "at_us": at_us}
    yield from _clients(by)
    yield from _groups(by)
    lists = Stream("counterparty", RENTER)
    told: dict[str, Any] = {"account_id": RENTER, "counterparty_id": OTHER, **by}
    yield lists, counterparty.CounterpartyAllowed(**told)
    yield lists, counterparty.CounterpartyRemoved(**told)
    yield lists, counterparty.CounterpartyDenied(**told)
    yield lists, counterparty.CounterpartyAllowed(**{**told, "counterparty_id": CLIENT})
    for overflow in ("rent", "refuse", "rent"):
        yield (
            Stream("project", f"{RENTER}|p"),
            group.ProjectOverflowSet(account_id=RENTER, project_id="p", overflow=overflow, **by),
        )
    yield from _planned(at_us)


def _clients(by: dict[str, Any]) -> Iterator[tuple[Stream[Any], Any]]:
    stream = Stream("compute_client", CLIENT)
    told: dict[str, Any] = {"client_id": CLIENT, **by}
    yield stream, compute_client.ComputeClientRegistered(min_reputation_ppm=None, **told)
    for floor in (1, 2):
        yield stream, compute_client.ClientFloorSet(min_reputation_ppm=floor, **told)
    for key_id in ("key00001", "key00002"):
        yield stream, compute_client.ClientKeyAdded(instance_id="eu", key_id=key_id, **told)
    yield stream, compute_client.ClientKeyRevoked(instance_id="eu", key_id="key00001", **told)
    yield stream, compute_client.ClientKeyAdded(instance_id="us", key_id="key00001", **told)
    yield stream, compute_client.ClientKeyRevoked(instance_id="eu", key_id="key00002", **told)
    yield stream, compute_client.ClientSuspended(**told)
    yield stream, compute_client.ClientResumed(**told)


def _groups(by: dict[str, Any]) -> Iterator[tuple[Stream[Any], Any]]:
    for group_id, parent_id in ((GROUP, None), (INNER, GROUP)):
        yield (
            Stream("group", group_id),
            group.GroupCreated(
                group_id=group_id, account_id=RENTER, pool_id=None, parent_id=parent_id, **by
            ),
        )
        for most in (None, 4_000_000):
            yield (
                quota.stream_of(group_id),
                quota.QuotaSet(quota_id=group_id, gpu_ppm_max=most, **by),
            )
    quota_id, at = quota.client_quota(CLIENT), by["at_us"]
    yield quota.stream_of(quota_id), quota.QuotaSet(quota_id=quota_id, gpu_ppm_max=5, **by)
    for where, fact in ((GROUP, quota.QuotaHeld), (GROUP, quota.QuotaReleased)):
        yield (
            quota.stream_of(where),
            fact(
                quota_id=where,
                lease_id="lease_a",
                gpu_ppm=1_000_000,
                used_ppm=1_000_000 if fact is quota.QuotaHeld else 0,
                at_us=at,
            ),
        )
    for target, facts in (("p", 1), ("q", 2), ("r", 3)):
        stream = Stream("group_member", f"{RENTER}|project|{target}")
        told: dict[str, Any] = {"scope": RENTER, "kind": "project", "target": target, **by}
        for number in range(facts):
            kind = group.GroupMemberRemoved if number == 1 else group.GroupMemberAdded
            yield stream, kind(group_id=INNER, **told)


def _planned(at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    """A queue job that is scaled and a chunked one that fails; one is a part of the other."""
    plans = (JobPlan(min_members=1, max_members=2, tasks_per_member=4), JobPlan(chunks=1))
    for index, plan in enumerate(plans):
        job_id = f"job_plan{index}"
        stream = Stream("job", job_id)
        told: dict[str, Any] = {"job_id": job_id, "at_us": at_us}
        yield (
            stream,
            job.JobSubmitted(
                attached=None,
                meter_maxima=(),
                volumes=(),
                account_id=RENTER,
                client_id=CLIENT,
                project_id="p",
                end_user_ref="u",
                kind="queue" if index == 0 else "batch",
                image="img",
                command=(),
                env_refs=(),
                workload_sha256="00" * 32,
                gpu_count=1,
                share_ppm=5,
                mem_ppm=5,
                models=(),
                max_price_per_gpu_hour=credit(5),
                work="inference",
                plan=plan,
                references=(Reference("dataset", "s3://a/b"),),
                instance_id="eu",
                key_id="key00001",
                parent_job_id=None if index == 0 else "job_plan0",
                **told,
                federated=None,
                participants=(),
                sla_class=None,
                auto_restart=False,
                constraints=None,
            ),
        )
        lease: dict[str, Any] = {"part": 0, "attempt": 1, "lease_id": f"lease_plan{index}"}
        yield stream, job.JobPartStarted(**lease, **told)
        yield stream, job.JobPartEnded(code=10_004, **lease, **told)
        if index == 0:
            yield stream, job.JobScaled(members=2, cause="tasks", by="job", **told)
            yield from _tasks(job_id, at_us)
        else:
            yield stream, job.JobFailed(part=0, attempts=1, **told)


def _tasks(job_id: str, at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    stream = Stream("task_queue", job_id)
    told: dict[str, Any] = {"job_id": job_id, "at_us": at_us}
    tasks = (task_queue.Task("one", "s3://in/1"), task_queue.Task("two", ""))
    taken: dict[str, Any] = {"task_id": "one", "lease_id": "lease_plan0"}
    yield stream, task_queue.TasksPushed(tasks=tasks, by="mem_a", **told)
    yield stream, task_queue.TaskTaken(delivery=1, until_us=at_us + 1, **taken, **told)
    yield stream, task_queue.TaskDone(**taken, **told)
