"""Parts of a job: which lease is due, what a close means, and tasks that are done once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import MINUTE_US
from domain.jobs.cron import parse
from domain.jobs.job import CancelJob, JobState, JobSubmitted, ScaleJob, job_of
from domain.jobs.parts import ATTEMPTS_MAX, PAUSE_US, due_parts, due_run, members_for, surplus
from domain.jobs.plan import JobPlan, Reference, require_references, require_work
from domain.jobs.reasons import JobsReason
from domain.jobs.task_queue import FinishTask, PushTasks, TakeTask, Task, queue_of
from domain.lease.close_codes import COMPLETED, NO_MATCH
from domain.lease.lease import CloseLease, RequestLease
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.trust.reasons import TrustReason
from tests.domain.jobs.due_times import due_between
from tests.domain.scenes.market import JOB, NOON_US, RENTER, job, ready, request, reserve, scene
from tests.examples import examples
from tests.given import Scene


def planned(kind: str = "batch", **plan: Any) -> Scene:
    return scene().after(job(kind=kind, plan=JobPlan(**plan)))


def asking(part: int, attempt: int, at_us: int) -> RequestLease:
    return replace(
        request(),
        lease_id=f"lease_{part}_{attempt}",
        part=part,
        attempt=attempt,
        at_us=at_us,
        by_timer=True,
    )


def closing(part: int, attempt: int, code: int, at_us: int) -> CloseLease:
    party = "job" if code == NO_MATCH else "renter"
    return CloseLease(
        lease_id=f"lease_{part}_{attempt}", closed_at_us=at_us, party=party, code=code, at_us=at_us
    )


def due(where: Scene, now_us: int) -> list[tuple[int, int]]:
    return [(one.part, one.attempt) for one in due_parts(job_of(where, JOB), now_us)]


def test_a_failed_chunk_is_due_again_after_a_pause_and_a_completed_one_never() -> None:
    where = planned(chunks=2)
    assert due(where, NOON_US) == [(0, 1), (1, 1)]
    for part in (0, 1):
        where = where.after(asking(part, 1, NOON_US))
    assert due(where, NOON_US + PAUSE_US) == []
    where = where.after(closing(0, 1, NO_MATCH, NOON_US + 1))
    assert due(where, NOON_US + PAUSE_US - 1) == []
    assert due(where, NOON_US + PAUSE_US) == [(0, 2)]
    where = where.after(closing(1, 1, COMPLETED, NOON_US + 2))
    assert job_of(where, JOB).phase == "submitted"
    where = where.after(asking(0, 2, NOON_US + PAUSE_US))
    where = where.after(closing(0, 2, COMPLETED, NOON_US + PAUSE_US + 1))
    assert job_of(where, JOB).phase == "completed", "in the append that ends its last chunk"
    assert due(where, NOON_US + 9 * PAUSE_US) == []


def test_a_part_that_is_not_due_or_has_a_lease_gets_no_other() -> None:
    where = planned(chunks=2).after(asking(0, 1, NOON_US))
    for part, attempt in ((0, 1), (0, 2), (1, 2), (2, 1)):
        again = replace(asking(part, attempt, NOON_US), lease_id="lease_another")
        where.when(again).then_refused(JobsReason.JOB_STATE, job_id="job_1", part=..., attempt=...)
    where.when(replace(request(), lease_id="lease_by_hand")).then_refused(
        JobsReason.JOB_STATE, job_id="job_1", rule="its leases are opened by its plan"
    )


def test_a_chunk_that_fails_too_often_fails_the_job_and_the_rest_is_surplus() -> None:
    where, now_us = planned(chunks=2), NOON_US
    where = where.after(asking(1, 1, now_us))
    for attempt in range(1, ATTEMPTS_MAX + 1):
        where = where.after(asking(0, attempt, now_us))
        where = where.after(closing(0, attempt, NO_MATCH, now_us + 1))
        now_us += PAUSE_US
    state = job_of(where, JOB)
    assert (state.phase, due(where, now_us)) == ("failed", [])
    assert [part.lease_id for part in surplus(state)] == ["lease_1_1"]


def test_scaling_keeps_to_the_plan_and_names_the_members_that_are_too_many() -> None:
    where = planned(min_members=1, max_members=3)
    scale = ScaleJob(job_id=JOB, members=3, cause="renter", by="mem", at_us=NOON_US)
    where = where.after(scale)
    where.when(scale).then_nothing()
    for part in range(3):
        where = where.after(asking(part, 1, NOON_US))
    down = where.after(replace(scale, members=1, at_us=NOON_US + 5))
    state = job_of(down, JOB)
    assert [part.lease_id for part in surplus(state)] == ["lease_2_1", "lease_1_1"]
    assert state.changed_us == NOON_US + 5
    for members in (0, 4):
        refused = replace(scale, members=members)
        where.when(refused).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    ended = where.after(CancelJob(job_id=JOB, by="mem", at_us=NOON_US))
    ended.when(replace(scale, members=2)).then_refused(JobsReason.JOB_STATE)
    assert len(surplus(job_of(ended, JOB))) == 3


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([COMPLETED, 1, NO_MATCH, -1])), max_size=30
)


@given(st.integers(1, 4), STEPS)
def test_a_job_is_complete_exactly_when_each_chunk_has_completed_once(
    chunks: int, steps: list[tuple[int, int]]
) -> None:
    where, now_us, completed = planned(chunks=chunks), NOON_US, set[int]()
    for part, code in steps:
        now_us += PAUSE_US
        for number, attempt in due(where, now_us):
            assert number not in completed
            where = where.after(asking(number, attempt, now_us))
        state = job_of(where, JOB)
        open_part = state.parts.get(part)
        if code >= 0 and open_part is not None and open_part.is_live:
            where = where.after(closing(part, open_part.attempt, code, now_us + 1))
            completed |= {part} if code == COMPLETED else set()
        assert (job_of(where, JOB).phase == "completed") == (len(completed) == chunks)
        live = [one for one in job_of(where, JOB).parts.values() if one.is_live]
        assert len({one.lease_id for one in live}) == len(live) <= chunks


def scheduled(text: str, last_due_us: int) -> JobState:
    submitted = JobSubmitted(
        attached=None,
        meter_maxima=(),
        volumes=(),
        job_id=JOB,
        account_id=RENTER,
        client_id="direct",
        project_id="",
        end_user_ref="",
        kind="scheduled",
        image="i",
        command=(),
        env_refs=(),
        workload_sha256="",
        gpu_count=1,
        share_ppm=1,
        mem_ppm=1,
        models=(),
        max_price_per_gpu_hour=job().max_price_per_gpu_hour,
        at_us=last_due_us,
        plan=JobPlan(schedule=text),
        federated=None,
        participants=(),
        sla_class=None,
        auto_restart=False,
        constraints=None,
        work=None,
        references=(),
        parent_job_id=None,
        instance_id=None,
        key_id=None,
    )
    return JobState(submitted, "submitted", last_due_us=last_due_us)


@examples(60)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=12))
def test_due_runs_only_rise_and_none_is_started_twice_however_late_the_timer(
    minutes: list[int],
) -> None:
    state, now_us, started = scheduled("*/10 * * * *", NOON_US), NOON_US, list[int]()
    for passed in minutes:
        now_us += passed * MINUTE_US
        while (found := due_run(state, now_us)) is not None:
            started.append(found)
            state = replace(state, last_due_us=found)
    every = due_between(parse("*/10 * * * *"), NOON_US, now_us, 10_000)
    assert sorted(set(started)) == started
    assert set(started) <= set(every)
    assert not every or started[-1] == every[-1], "the latest one is always started"


@pytest.mark.parametrize(
    ("open_tasks", "members"), [(0, 1), (1, 1), (4, 1), (5, 2), (12, 3), (999, 3)]
)
def test_the_members_of_a_queue_follow_its_tasks(open_tasks: int, members: int) -> None:
    plan = JobPlan(min_members=1, max_members=3, tasks_per_member=4)
    assert members_for(plan, open_tasks) == members


def test_an_endpoint_is_inference_and_a_federated_job_pays_for_what_it_does() -> None:
    """C-40: the kind of job settles the federated fee (C-21)."""
    require_work("endpoint", None, "inference")
    require_work("batch", "training", "training")
    for kind, work, federated in (
        ("endpoint", None, "training"),
        ("endpoint", "training", None),
        ("batch", "training", "inference"),
        ("batch", "sleeping", None),
    ):
        with pytest.raises(Refused) as caught:
            require_work(kind, work, federated)
        assert caught.value.reason is PartiesReason.UNKNOWN_MODE


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("third_party_key", "a b"),
        ("third_party_key", "AKIAABCDEFGHIJKLMNOP"),
        ("third_party_key", "hf_abcdefghijklmnopqrstuv"),
        ("dataset", "https://h/x?sig=1"),
        ("checkpoint", "s3://key:secret@bucket/x"),
        ("dataset", "s3://b/x#frag"),
        ("checkpoint", "-----BEGIN RSA PRIVATE KEY-----"),
        ("dataset", ""),
    ],
)
def test_a_reference_that_could_hold_a_secret_is_refused_and_not_repeated(
    kind: str, name: str
) -> None:
    with pytest.raises(Refused) as caught:
        require_references([Reference(kind, name)])
    assert caught.value.reason is TrustReason.REFERENCE_INVALID
    assert not name or name not in str(caught.value)


def test_the_workload_hash_is_untouched_by_a_plan() -> None:
    plain, with_plan = scene().after(job()), planned(chunks=1)
    first, second = job_of(plain, JOB).submitted, job_of(with_plan, JOB).submitted
    assert first is not None
    assert second is not None
    assert first.workload_sha256 == second.workload_sha256


# --- task queues -----------------------------------------------------------------------------


def queue(count: int) -> Scene:
    """A queue job with a lease that runs, and so many tasks."""
    where = scene().after(job(kind="queue")).after(request()).after(reserve()).after(ready)
    tasks = tuple(Task(f"t{number}", "") for number in range(count))
    return where.after(PushTasks(job_id=JOB, tasks=tasks, by="mem", at_us=NOON_US))


LEASE = request().lease_id


@examples(80)
@given(
    st.integers(1, 5),
    st.lists(
        st.tuples(st.sampled_from(["take", "done", "push", "wait"]), st.integers(0, 6)), max_size=30
    ),
)
def test_every_task_is_open_or_done_and_done_once(count: int, steps: list[tuple[str, int]]) -> None:
    where, now_us = queue(count), NOON_US
    pushed, done, held = {f"t{n}" for n in range(count)}, set[str](), dict[str, int]()
    for what, number in steps:
        task_id = f"t{number}"
        if what == "wait":
            now_us += number * 1_000_000
        elif what == "push":
            command = PushTasks(job_id=JOB, tasks=(Task(task_id, ""),), by="m", at_us=now_us)
            assert bool(where.when(command).changes()) == (task_id not in pushed)
            where, pushed = where.after(command), pushed | {task_id}
        elif what == "take":
            taken = where.when(TakeTask(lease_id=LEASE, hold_us=2_000_000, at_us=now_us)).changes()
            free = [one for one in queue_of(where, JOB).order if held.get(one, 0) <= now_us]
            assert [one.fact.task_id for one in taken] == free[:1], "pushed first, held by nobody"
            where = where.given(*((one.stream, one.fact) for one in taken))
            held |= {one.fact.task_id: one.fact.until_us for one in taken}
        elif task_id in held:
            finish = FinishTask(lease_id=LEASE, task_id=task_id, at_us=now_us)
            assert bool(where.when(finish).changes()) == (task_id not in done)
            where, done = where.after(finish), done | {task_id}
        state = queue_of(where, JOB)
        assert state.done == done
        assert set(state.waiting) == pushed - done == set(state.order)
