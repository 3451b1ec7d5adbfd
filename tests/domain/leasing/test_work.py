"""What a node answers about the work of a lease: the right work, taken up once, ended once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import rules
from domain.fleet.executor_key import IssueExecutorKey, RevokeExecutorKey
from domain.fleet.reasons import FleetReason
from domain.jobs.job import existing_job
from domain.jobs.reasons import JobsReason
from domain.lease.close_codes import SPEC_MISMATCH
from domain.lease.lease import (
    START_TIMEOUT_US,
    CloseLease,
    Lease,
    LeaseReady,
    ReadyLease,
    RequestLease,
)
from domain.lease.reasons import LeaseReason
from domain.lease.work_commands import (
    EXITED,
    LOST,
    START,
    STOP,
    LeaseCommandAcknowledged,
    LeaseWorkEnded,
)
from domain.leasing.work import AcknowledgeCommand, EndWork
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from domain.stream import Stream
from tests.domain.scenes.market import (
    JOB,
    LEASE,
    NODE,
    NOON_US,
    close,
    job,
    request,
    reserve,
    scene,
)
from tests.domain.scenes.market import ready as ready_at_noon
from tests.given import Scene

EXECUTOR = "e0" * 8
SECOND_US = 1_000_000


def reserved(asked: RequestLease | None = None) -> Scene:
    """A lease that waits for its node since noon."""
    return scene().after(job()).after(asked or request()).after(reserve())


def ready() -> ReadyLease:
    return replace(ready_at_noon, at_us=NOON_US + 2 * SECOND_US)


def named(**terms: str) -> RequestLease:
    return replace(request(), **terms)  # type: ignore[arg-type]


def acknowledge(on: Scene, command: str = START, **changes: Any) -> AcknowledgeCommand:
    found = AcknowledgeCommand(
        lease_id=LEASE,
        node_id=NODE,
        command=command,
        workload_sha256=existing_job(on, JOB).workload_sha256,
        executor=EXECUTOR,
        runner="process",
        at_us=NOON_US + SECOND_US,
    )
    return replace(found, **changes)


def end(**changes: Any) -> EndWork:
    found = EndWork(
        lease_id=LEASE,
        node_id=NODE,
        executor=EXECUTOR,
        outcome=EXITED,
        exit_code=3,
        at_us=NOON_US + 60 * SECOND_US,
    )
    return replace(found, **changes)


def lease_in(on: Scene) -> Lease:
    state = on.state(Stream("lease", LEASE))
    assert isinstance(state, Lease)
    return state


def test_the_start_of_a_lease_is_acknowledged_with_the_hash_of_its_job() -> None:
    waiting = reserved()
    command = acknowledge(waiting)
    waiting.when(command).then(
        (
            Stream("lease", LEASE),
            LeaseCommandAcknowledged(
                lease_id=LEASE,
                node_id=NODE,
                command="start",
                executor=EXECUTOR,
                workload_sha256=command.workload_sha256,
                runner="process",
                at_us=command.at_us,
                free_us=None,
            ),
        )
    )
    waiting.after(command).when(command).then_nothing()


def test_a_command_that_is_not_the_jobs_hash_is_refused_and_the_lease_given_back() -> None:
    waiting = reserved()
    waiting.when(acknowledge(waiting, workload_sha256="f" * 64)).then_refused(
        JobsReason.WORKLOAD_MISMATCH
    )
    given_back = CloseLease(
        lease_id=LEASE,
        closed_at_us=NOON_US + SECOND_US,
        party="provider",
        code=SPEC_MISMATCH,
        at_us=NOON_US + SECOND_US,
    )
    state = lease_in(waiting.after(given_back))
    assert state.closed is not None
    assert (state.closed.code, state.charge_units) == (10_006, 0)


def test_one_executor_has_the_work() -> None:
    waiting = reserved()
    taken = waiting.after(acknowledge(waiting))
    taken.when(acknowledge(waiting, executor="0" * 16)).then_refused(
        FleetReason.LEASE_STATE, rule="another executor has the work"
    )
    taken.when(end(executor="0" * 16)).then_refused(FleetReason.LEASE_STATE)


def test_only_the_node_of_the_lease_answers_and_only_in_time() -> None:
    waiting = reserved()
    waiting.when(acknowledge(waiting, node_id="node_other")).then_refused(LeaseReason.LEASE_UNKNOWN)
    late = acknowledge(waiting, at_us=NOON_US + START_TIMEOUT_US)
    waiting.when(late).then_refused(FleetReason.LEASE_STATE, ready_until_us=...)
    waiting.when(acknowledge(waiting, "pause")).then_refused(PartiesReason.UNKNOWN_MODE)
    waiting.when(acknowledge(waiting, runner="wish")).then_refused(PartiesReason.UNKNOWN_MODE)
    running = waiting.after(ready())
    running.when(acknowledge(waiting)).then_refused(
        FleetReason.LEASE_STATE, lease_id="lease_11111111", status="active"
    )


def test_work_ends_once_and_whoever_started_it_says_so() -> None:
    waiting = reserved()
    waiting.when(end()).then_refused(FleetReason.LEASE_STATE)
    running = waiting.after(acknowledge(waiting)).after(ready())
    running.when(end(exit_code=256)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    running.when(end(outcome="tired")).then_refused(PartiesReason.UNKNOWN_MODE)
    ended = running.after(end())
    assert isinstance(lease_in(ended).work.ended, LeaseWorkEnded)
    ended.when(end(outcome=LOST, exit_code=None)).then_nothing()


def test_a_stop_is_acknowledged_after_the_close_and_then_nothing_runs() -> None:
    waiting = reserved()
    running = waiting.after(acknowledge(waiting)).after(ready())
    running.when(acknowledge(waiting, STOP)).then_refused(FleetReason.LEASE_STATE)
    closed = running.after(close(60 * SECOND_US))
    assert lease_in(closed).work.may_run
    stopped = closed.after(acknowledge(waiting, STOP))
    assert not lease_in(stopped).work.may_run
    stopped.when(acknowledge(waiting, STOP)).then_nothing()
    stopped.when(end()).then_nothing()


def test_credentials_are_kept_as_ciphertext_for_a_key_the_renter_named() -> None:
    plain = replace(ready(), credentials="c2VhbGVk")
    reserved().when(plain).then_refused(LeaseReason.ENCRYPTION_KEY_UNKNOWN)
    sealed = reserved(named(encryption_key="ab" * 32))
    sealed.when(replace(plain, credentials="A" * 8_193)).then_refused(
        PricesReason.AMOUNT_OUT_OF_RANGE
    )
    facts = [change.fact for change in sealed.when(plain).changes()]
    (told,) = [fact for fact in facts if isinstance(fact, LeaseReady)]
    assert told.credentials == "c2VhbGVk"


def test_v_13_a_remoting_session_and_its_split_are_named_on_the_lease_and_cost_nothing() -> None:
    remote = named(remoting_session_id="session-7", split_label="tensorflow")
    asked = lease_in(reserved(remote)).requested
    assert asked is not None
    assert (asked.remoting_session_id, asked.split_label) == ("session-7", "tensorflow")
    with_it, without = lease_in(reserved(remote)).reserved, lease_in(reserved()).reserved
    assert with_it == without, "the same price, the same escrow"


@pytest.mark.parametrize(
    "broken",
    [{"encryption_key": "zz" * 32}, {"remoting_session_id": ""}, {"split_label": "x" * 129}],
)
def test_what_a_lease_names_about_remote_work_has_a_form(broken: dict[str, str]) -> None:
    command = named(**broken)
    reason: Reason = PricesReason.AMOUNT_OUT_OF_RANGE
    if "encryption_key" in broken:
        reason = PartiesReason.SIGNING_KEY_INVALID
    with pytest.raises(Refused) as caught:
        rules.decide(command, scene().after(job()))
    assert caught.value.reason is reason


ANSWERS = ("start", "start by another", "ready", "end", "close", "stop")


@given(st.lists(st.sampled_from(ANSWERS), max_size=12))
def test_whatever_a_node_says_in_whatever_order_the_work_is_started_and_ended_at_most_once(
    said: list[str],
) -> None:
    on = waiting = reserved()
    for number, word in enumerate(said, start=2):
        at_us = NOON_US + number * SECOND_US
        command: Any = {
            "start": acknowledge(waiting, at_us=at_us),
            "start by another": acknowledge(waiting, executor="0" * 16, at_us=at_us),
            "ready": replace(ready(), at_us=at_us),
            "end": end(at_us=at_us),
            "close": close(number * SECOND_US),
            "stop": acknowledge(waiting, STOP, at_us=at_us),
        }[word]
        try:
            on = on.after(command)
        except Refused:
            continue
    facts = [fact for _, fact in on.past]
    starts = [f for f in facts if isinstance(f, LeaseCommandAcknowledged) and f.command == START]
    stops = [f for f in facts if isinstance(f, LeaseCommandAcknowledged) and f.command == STOP]
    ends = [f for f in facts if isinstance(f, LeaseWorkEnded)]
    assert len(starts) <= 1
    assert len(stops) <= len(starts)
    assert len(ends) <= len(starts)
    assert not (stops and lease_in(on).closed is None)


def test_a_node_has_one_executor_key_at_a_time() -> None:
    at: dict[str, Any] = {"node_id": NODE, "by": "mem", "at_us": NOON_US}
    first = scene().after(IssueExecutorKey(key_sha256="1" * 64, **at))
    second = first.after(IssueExecutorKey(key_sha256="2" * 64, **at))
    assert second.state(Stream("executor", NODE)).key_sha256 == "2" * 64
    gone = second.after(RevokeExecutorKey(**at))
    assert gone.state(Stream("executor", NODE)).key_sha256 is None
    gone.when(RevokeExecutorKey(**at)).then_nothing()
    unknown = {**at, "node_id": "node_absent"}
    scene().when(IssueExecutorKey(key_sha256="1" * 64, **unknown)).then_refused(
        FleetReason.NODE_UNKNOWN
    )
