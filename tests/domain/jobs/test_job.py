"""What a renter needs run, and the hash that says it was that."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.funds.reasons import FundsReason
from domain.jobs.job import (
    GPU_COUNT_MAX,
    JOB_KINDS,
    WORK_BYTES_MAX,
    CancelJob,
    CompleteJob,
    JobCancelled,
    JobCompleted,
    JobSubmitted,
    SubmitJob,
    job_of,
    workload_hash,
)
from domain.jobs.reasons import JobsReason
from domain.money import PPM, credit, token
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.stream import Stream
from domain.trust.reasons import TrustReason
from ledger.log import codec
from tests.domain.scenes.supply import ALICE, NOON_US, with_account
from tests.given import Scene

JOB = "job_1"
JOB_STREAM = Stream("job", JOB)
COMMAND = ("python", "train.py")

submit = SubmitJob(
    job_id=JOB,
    account_id=ALICE,
    client_id="acct_client",
    project_id="proj_1",
    end_user_ref="user-7",
    kind="batch",
    image="registry/train:1",
    command=COMMAND,
    env_refs=("TOKEN=secret://hub",),
    gpu_count=2,
    share_ppm=PPM,
    mem_ppm=PPM,
    models=(),
    max_price_per_gpu_hour=credit(3_000_000),
    at_us=NOON_US,
)
submitted = JobSubmitted(
    attached=None,
    meter_maxima=(),
    volumes=(),
    job_id=JOB,
    account_id=ALICE,
    client_id="acct_client",
    project_id="proj_1",
    end_user_ref="user-7",
    kind="batch",
    image="registry/train:1",
    command=COMMAND,
    env_refs=("TOKEN=secret://hub",),
    workload_sha256=workload_hash("registry/train:1", COMMAND, ("TOKEN=secret://hub",)),
    gpu_count=2,
    share_ppm=PPM,
    mem_ppm=PPM,
    models=(),
    max_price_per_gpu_hour=credit(3_000_000),
    at_us=NOON_US,
    federated=None,
    participants=(),
    sla_class=None,
    auto_restart=False,
    constraints=None,
    work=None,
    references=(),
    plan=None,
    parent_job_id=None,
    instance_id=None,
    key_id=None,
)
cancel = CancelJob(job_id=JOB, by="mem_alice", at_us=NOON_US + 1)
cancelled = JobCancelled(job_id=JOB, by="mem_alice", at_us=NOON_US + 1)
complete = CompleteJob(job_id=JOB, at_us=NOON_US + 1)
completed = JobCompleted(job_id=JOB, at_us=NOON_US + 1)

with_job = with_account.given((JOB_STREAM, submitted))


def test_a_job_is_submitted_with_the_hash_of_its_work() -> None:
    with_account.when(submit).then((JOB_STREAM, submitted))
    assert job_of(with_job, JOB).is_open


def test_the_hash_is_of_the_work_as_sorted_json_without_spaces() -> None:
    text = '{"command":["a b","\\u00fc"],"env_refs":["E=1"],"image":null}'
    assert workload_hash(None, ("a b", "ü"), ("E=1",)) == hashlib.sha256(text.encode()).hexdigest()


def test_submitting_twice_is_once_and_other_work_needs_another_id() -> None:
    with_job.when(replace(submit, at_us=NOON_US + 9)).then_nothing()
    with_job.when(replace(submit, gpu_count=3)).then_refused(JobsReason.JOB_EXISTS)


def test_a_job_needs_an_account() -> None:
    Scene().when(submit).then_refused(PartiesReason.ACCOUNT_UNKNOWN)


def test_a_job_has_an_image_or_a_command() -> None:
    for image in (None, ""):
        with_account.when(replace(submit, image=image, command=())).then_refused(
            JobsReason.WORKLOAD_EMPTY
        )
    assert with_account.when(replace(submit, image=None)).changes()
    assert with_account.when(replace(submit, command=())).changes()


@pytest.mark.parametrize(
    "changed",
    [
        {"command": ("x" * 4_096,) * 10},
        {"env_refs": ("\x01" * 256,) * 40},
        {"models": ("\u00e9" * 256,) * 64},
    ],
)
def test_work_that_would_not_fit_into_a_fact_is_refused(changed: dict[str, Any]) -> None:
    with_account.when(replace(submit, **changed)).then_refused(PricesReason.AMOUNT_OUT_OF_RANGE)


def test_the_greatest_work_that_is_taken_can_be_stored() -> None:
    left = WORK_BYTES_MAX - 200
    (change,) = with_account.when(replace(submit, command=("\x01" * (left // 6),))).changes()
    _, body = codec.encode(change.fact, "c" * 60, "b" * 32)
    assert len(body) > left


@pytest.mark.parametrize("gpu_count", [-1, 0, GPU_COUNT_MAX + 1])
def test_a_lease_has_one_to_sixty_four_devices(gpu_count: int) -> None:
    with_account.when(replace(submit, gpu_count=gpu_count)).then_refused(
        PartiesReason.COUNT_OUT_OF_RANGE
    )


@pytest.mark.parametrize("ppm", [-1, 0, PPM + 1])
def test_a_share_is_above_nothing_and_at_most_the_whole(ppm: int) -> None:
    with_account.when(replace(submit, share_ppm=ppm)).then_refused(PartiesReason.SHARE_OUT_OF_RANGE)
    with_account.when(replace(submit, mem_ppm=ppm)).then_refused(PartiesReason.SHARE_OUT_OF_RANGE)


def test_a_share_of_several_devices_is_that_share_of_each() -> None:
    quarter_of_eight = replace(submit, gpu_count=8, share_ppm=250_000, mem_ppm=250_000)
    [change] = with_account.when(quarter_of_eight).changes()
    assert (change.fact.gpu_count, change.fact.share_ppm) == (8, 250_000)


def test_a_cap_price_is_a_positive_amount_of_credits() -> None:
    for price, reason in (
        (credit(0), FundsReason.AMOUNT_NOT_POSITIVE),
        (token(1), PricesReason.AMOUNT_OUT_OF_RANGE),
    ):
        with_account.when(replace(submit, max_price_per_gpu_hour=price)).then_refused(reason)


def test_a_job_is_of_a_known_kind() -> None:
    with_account.when(replace(submit, kind="mining")).then_refused(PartiesReason.UNKNOWN_MODE)
    for kind in JOB_KINDS:
        assert with_account.when(replace(submit, kind=kind)).changes()


def test_a_job_is_cancelled_once() -> None:
    with_job.when(cancel).then((JOB_STREAM, cancelled))
    over = with_job.after(cancel)
    over.when(cancel).then_nothing()
    assert not job_of(over, JOB).is_open


def test_a_job_is_completed_once() -> None:
    with_job.when(complete).then((JOB_STREAM, completed))
    over = with_job.after(complete)
    over.when(complete).then_nothing()
    assert not job_of(over, JOB).is_open


def test_a_job_has_one_end() -> None:
    with_job.after(cancel).when(complete).then_refused(JobsReason.JOB_STATE)
    with_job.after(complete).when(cancel).then_refused(JobsReason.JOB_STATE)


def test_an_unknown_job_has_no_end() -> None:
    with_account.when(cancel).then_refused(TrustReason.JOB_UNKNOWN)
    with_account.when(complete).then_refused(TrustReason.JOB_UNKNOWN)


works = st.tuples(
    st.none() | st.text(max_size=5),
    st.lists(st.text(max_size=3), max_size=3).map(tuple),
    st.lists(st.text(max_size=3), max_size=3).map(tuple),
)


@given(works, works)
def test_different_work_has_a_different_hash(
    one: tuple[str | None, tuple[str, ...], tuple[str, ...]],
    other: tuple[str | None, tuple[str, ...], tuple[str, ...]],
) -> None:
    assert (workload_hash(*one) == workload_hash(*other)) == (one == other)
