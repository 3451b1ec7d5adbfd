"""Jobs with a plan, over HTTP and in PostgreSQL: chunks, members, schedules, queues, job groups.

The timer is called as its thread calls it; clock and nodes are the test's.
"""

from __future__ import annotations

from typing import Any

import pytest

from api.jobs.plan_timer import run_plans
from domain.duration import HOUR_US, MINUTE_US
from domain.jobs.job import JOB_KINDS, JobRunStarted, JobState
from domain.stream import Stream
from tests.scenes.server import NOW_US, Provider, Scene
from tests.scenes.work import accrue_now, reported, send

MONEY = {"asset": "CREDIT", "units": "5000000"}


def tick(scene: Scene, minutes: int = 0) -> int:
    """Let time pass, then do what the timer does."""
    clock: Any = scene.clock
    clock.advance(minutes * MINUTE_US)
    with scene.service.connect() as connection:
        return run_plans(scene.service, connection, scene.clock.now_us())


def planned(scene: Scene, **changes: Any) -> str:
    return str(scene.renter.made("/v1/jobs", scene.job(**changes))["job_id"])


def parts(scene: Scene, job_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scene.renter.read(f"/v1/jobs/{job_id}/parts")["data"]
    return found


def live(scene: Scene, job_id: str) -> list[dict[str, Any]]:
    return [one for one in parts(scene, job_id) if one["state"] in ("reserved", "active")]


def make_ready(scene: Scene, lease_id: str) -> dict[str, Any]:
    lease = scene.renter.read(f"/v1/leases/{lease_id}")
    on = _provider(scene, lease)
    on.node.made(f"/v1/nodes/{lease['node_id']}/assignments/{lease_id}/ready")
    return lease


def _provider(scene: Scene, lease: dict[str, Any]) -> Provider:
    return scene.provider if lease["node_id"] == scene.provider.node_id else scene.other


def end(scene: Scene, lease_id: str, code: int) -> None:
    """Close a lease with a code of the renter's range, or of the provider's."""
    lease = scene.renter.read(f"/v1/leases/{lease_id}")
    on = _provider(scene, lease)
    who = scene.renter if code < 10_000 else on.owner
    who.made(f"/v1/leases/{lease_id}/close", {"code": code})


def told_of(scene: Scene) -> set[tuple[int, int, int]]:
    """Part, parts and attempt of what the executor of the first node is to start."""
    path = f"/v1/nodes/{scene.provider.node_id}/assignments"
    pending = scene.provider.node.read(path)["pending"]
    return {(one["part"], one["parts"], one["attempt"]) for one in pending}


def test_a_job_is_complete_when_all_its_chunks_are_and_costs_what_its_leases_cost(
    scene: Scene,
) -> None:
    """R-4: a chunk that failed gets a new lease, the same number, attempt + 1."""
    job_id = planned(scene, plan={"chunks": 3}, models=["NVIDIA A100-PCIE-80GB"])
    assert tick(scene) == 2, "the node has two devices, so the third chunk waits"
    assert tick(scene) == 0
    first, second = parts(scene, job_id)
    assert told_of(scene) == {(0, 3, 1), (1, 3, 1)}
    for one in (first, second):
        make_ready(scene, one["lease_id"])
    clock: Any = scene.clock
    clock.advance(10 * MINUTE_US)
    leases = [scene.renter.read(f"/v1/leases/{one['lease_id']}") for one in (first, second)]
    assert send(scene, scene.provider, reported(scene.provider, *leases, minutes=10)).is_success
    end(scene, first["lease_id"], 0)
    end(scene, second["lease_id"], 10_000)
    assert tick(scene) == 2, "the second chunk again, and the third"
    assert told_of(scene) == {(1, 3, 2), (2, 3, 1)}, "what their programs are told"
    told = parts(scene, job_id)
    assert [(one["part"], one["attempt"]) for one in told] == [(0, 1), (1, 2), (2, 1)]
    assert scene.renter.read(f"/v1/jobs/{job_id}")["state"] == "open"
    later = [scene.renter.read(f"/v1/leases/{one['lease_id']}") for one in told[1:]]
    for lease in later:
        make_ready(scene, lease["lease_id"])
    clock.advance(7 * MINUTE_US)
    body = reported(scene.provider, *later, first=10, minutes=7)
    assert send(scene, scene.provider, body).is_success
    for lease in later:
        end(scene, lease["lease_id"], 0)
    assert scene.renter.read(f"/v1/jobs/{job_id}")["state"] == "completed"
    every = [lease["lease_id"] for lease in (*leases, *later)]
    for lease_id in every:
        accrue_now(scene, lease_id)
    charges = [
        int(scene.renter.read(f"/v1/leases/{lease_id}")["charge"]["units"]) for lease_id in every
    ]
    assert charges == [333_333, 333_333, 233_333, 233_333]
    cost = scene.renter.read(f"/v1/jobs/{job_id}/cost")
    assert (cost["charge"]["units"], cost["leases"]) == (str(sum(charges)), 4)
    assert tick(scene, 5) == 0, "nothing more is opened"
    refused = scene.renter.post("/v1/leases", {"job_id": job_id})
    assert refused.json()["code"] == "job_state"


def test_a_timer_that_runs_twice_opens_no_part_twice(scene: Scene) -> None:
    job_id = planned(scene, plan={"chunks": 2})
    assert [tick(scene), tick(scene), tick(scene)] == [2, 0, 0]
    assert len({one["lease_id"] for one in parts(scene, job_id)}) == 2
    by_hand = scene.renter.post("/v1/leases", {"job_id": job_id})
    assert (by_hand.status_code, by_hand.json()["code"]) == (409, "job_state")


def test_an_elastic_job_grows_and_shrinks_and_is_billed_to_the_second(scene: Scene) -> None:
    """R-6 and R-22: each member bills its own window."""
    plan = {"min_members": 1, "max_members": 2}
    job_id = planned(scene, plan=plan, models=["NVIDIA A100-PCIE-80GB"])
    assert tick(scene) == 1
    (first,) = parts(scene, job_id)
    one = make_ready(scene, first["lease_id"])
    scaled = scene.renter.made(f"/v1/jobs/{job_id}/scale", {"members": 2})
    assert scaled["closing"] == []
    assert tick(scene, 10) == 1
    second = parts(scene, job_id)[1]
    two = make_ready(scene, second["lease_id"])
    clock: Any = scene.clock
    clock.advance(10 * MINUTE_US)
    for first_minute, leases in ((0, [one]), (10, [one, two])):
        body = reported(scene.provider, *leases, first=first_minute, minutes=10)
        assert send(scene, scene.provider, body).is_success
    down = scene.renter.made(f"/v1/jobs/{job_id}/scale", {"members": 1})
    assert down["closing"] == [second["lease_id"]]
    told = scene.renter.read(f"/v1/leases/{second['lease_id']}")
    assert (told["close_code"], told["closed_by"]) == (4, "renter")
    assert told["closed_at"] > told["opened_at"]
    end(scene, first["lease_id"], 1)
    for each in (one, two):
        accrue_now(scene, each["lease_id"])
    charges = [
        scene.renter.read(f"/v1/leases/{each['lease_id']}")["charge"]["units"]
        for each in (one, two)
    ]
    assert charges == [str(2_000_000 * 20 // 60), str(2_000_000 * 10 // 60)]
    for members, code in ((3, "count_out_of_range"), (0, "count_out_of_range")):
        refused = scene.renter.post(f"/v1/jobs/{job_id}/scale", {"members": members})
        assert refused.json()["code"] == code


def test_an_endpoint_keeps_its_members_and_replaces_a_lost_one(scene: Scene) -> None:
    job_id = planned(scene, kind="endpoint", plan={"min_members": 2, "max_members": 2})
    assert tick(scene) == 2
    lost = parts(scene, job_id)[0]
    make_ready(scene, lost["lease_id"])
    end(scene, lost["lease_id"], 10_000)
    assert len(live(scene, job_id)) == 1
    assert tick(scene) == 0, "not at once: what fails at once is not tried without end"
    assert tick(scene, 1) == 1
    again = parts(scene, job_id)[0]
    assert (again["part"], again["attempt"], len(live(scene, job_id))) == (0, 2, 2)
    scene.renter.made(f"/v1/jobs/{job_id}/cancel")
    assert tick(scene) == 2, "its leases end with it"
    assert live(scene, job_id) == []
    assert tick(scene, 60) == 0


def test_a_scheduled_job_runs_once_at_each_due_time_and_a_late_timer_does_not_double(
    scene: Scene,
) -> None:
    """NOW is 2026-11-20 08:02 UTC."""
    plan = {"schedule": "*/15 * * * *", "run_seconds": 600}
    job_id = planned(scene, kind="scheduled", plan=plan)
    told = scene.renter.read(f"/v1/jobs/{job_id}/cost")
    due_us = NOW_US // (15 * MINUTE_US) * (15 * MINUTE_US) + 15 * MINUTE_US
    assert told["next_run_at"] == "2026-11-20T08:15:00.000000Z"
    assert tick(scene) == 0, "nothing is due before the first time after it was submitted"
    assert tick(scene, 13) == 1
    assert [tick(scene), tick(scene, 5)] == [0, 0]
    assert tick(scene, 60) == 1, "an hour late: one run, and those before it were missed"
    facts = scene.service.ledger.market.read_facts(0, 100_000)
    runs = [each.fact for each in facts if isinstance(each.fact, JobRunStarted)]
    assert [run.due_us for run in runs] == [due_us, due_us + HOUR_US]
    leases = scene.renter.read("/v1/leases", job_id=job_id)["data"]
    assert [one["run_due_at"] for one in leases] == [
        "2026-11-20T08:15:00.000000Z",
        "2026-11-20T09:15:00.000000Z",
    ]
    assert {one["term_seconds"] for one in leases} == {600}
    scene.renter.made(f"/v1/jobs/{job_id}/cancel")
    assert tick(scene, 60) == 0


def test_tasks_of_a_queue_are_pulled_by_its_leases_and_done_once(scene: Scene) -> None:
    plan = {"min_members": 0, "max_members": 2, "tasks_per_member": 2}
    job_id = planned(scene, kind="queue", plan=plan)
    path = f"/v1/jobs/{job_id}/tasks"
    assert tick(scene) == 0, "no tasks, no members"
    tasks = [{"task_id": f"t{number}", "payload": f"s3://in/{number}"} for number in range(3)]
    assert scene.renter.made(path, {"tasks": tasks})["waiting"] == 3
    assert scene.renter.made(path, {"tasks": tasks})["waiting"] == 3, "known ids are not added"
    assert tick(scene) == 3, "scaled to two, and two leases"
    first, second = (one["lease_id"] for one in parts(scene, job_id))
    lease = make_ready(scene, first)
    make_ready(scene, second)
    node = _provider(scene, lease).node
    taken = node.made(f"/v1/leases/{first}/tasks/take", {"hold_seconds": 60})
    assert (taken["task_id"], taken["payload"], taken["delivery"]) == ("t0", "s3://in/0", 1)
    other = scene.renter.made(f"/v1/leases/{second}/tasks/take", {})
    assert other["task_id"] == "t1"
    early = scene.renter.post(f"/v1/leases/{second}/tasks/t0/done")
    assert early.json()["code"] == "task_state", "it was never given to that lease"
    clock: Any = scene.clock
    clock.advance(61 * 1_000_000)
    again = scene.renter.made(f"/v1/leases/{second}/tasks/take", {})
    assert (again["task_id"], again["delivery"]) == ("t0", 2), "at least once"
    for lease_id in (second, first, first):
        scene.renter.made(f"/v1/leases/{lease_id}/tasks/t0/done")
    told = scene.renter.read(path)
    assert (told["waiting"], told["taken"], told["done"]) == (1, 1, 1)
    scene.renter.made(f"/v1/leases/{second}/tasks/t1/done")
    scene.renter.made(f"/v1/leases/{first}/tasks/take", {})
    scene.renter.made(f"/v1/leases/{first}/tasks/t2/done")
    assert "task_id" not in scene.renter.made(f"/v1/leases/{first}/tasks/take", {})
    assert tick(scene) == 3, "scaled to none, and both leases end"
    assert {one["close_code"] for one in parts(scene, job_id)} == {4}


def test_a_program_over_several_jobs_costs_what_its_leases_cost_and_none_counts_twice(
    scene: Scene,
) -> None:
    """V-17: one program partitioned by its tool."""
    top = planned(scene)
    children = [planned(scene, parent_job_id=top) for _ in range(2)]
    grandchild = planned(scene, parent_job_id=children[0])
    leases = [
        scene.renter.made("/v1/leases", {"job_id": job_id})
        for job_id in (top, *children, grandchild)
    ]
    for lease in leases:
        make_ready(scene, lease["lease_id"])
    clock: Any = scene.clock
    clock.advance(HOUR_US)
    for provider in (scene.provider, scene.other):
        mine = [lease for lease in leases if lease["node_id"] == provider.node_id]
        assert send(scene, provider, reported(provider, *mine)).is_success
    for lease in leases:
        scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
        accrue_now(scene, lease["lease_id"])
    cost = scene.renter.read(f"/v1/jobs/{top}/cost")
    assert (cost["charge"]["units"], cost["leases"]) == ("10000000", 4), "2 x 2.00 and 2 x 3.00"
    assert {one["job_id"] for one in cost["jobs"]} == {top, *children, grandchild}
    branch = scene.renter.read(f"/v1/jobs/{children[0]}/cost")
    assert branch["leases"] == 2
    foreign = scene.stranger.post("/v1/jobs", scene.job(parent_job_id=top))
    assert (foreign.status_code, foreign.json()["code"]) == (404, "job_unknown")


def test_what_a_plan_or_a_reference_cannot_mean_is_refused_with_the_rule(scene: Scene) -> None:
    def code(**changes: Any) -> tuple[str, dict[str, Any]]:
        told = scene.renter.post("/v1/jobs", scene.job(**changes)).json()
        return told["code"], told.get("facts", {})

    assert code(kind="notebook", plan={"chunks": 2})[0] == "plan_invalid"
    assert code(plan={"min_members": 1})[0] == "plan_invalid"
    assert code(plan={"min_members": 3, "max_members": 2})[0] == "count_out_of_range"
    assert code(kind="scheduled", plan={"schedule": "61 * * * *"})[0] == "schedule_invalid"
    assert code(kind="scheduled", plan={"schedule": "0 0 30 2 *"})[0] == "schedule_invalid"
    assert code(kind="batch", plan={"schedule": "0 * * * *"})[0] == "plan_invalid"
    assert code(kind="endpoint", work="training")[0] == "unknown_mode"
    secret = "sk-live-" + "a" * 24
    for name in (secret, "https://user:pw@host/x", "s3://bucket/x?X-Amz-Signature=1"):
        kind = "third_party_key" if name == secret else "dataset"
        found, facts = code(references=[{"kind": kind, "name": name}])
        assert found == "reference_invalid"
        assert name not in str(facts), "it may be a secret"
    good = [
        {"kind": "third_party_key", "name": "vault/hf-token"},
        {"kind": "checkpoint", "name": "hf://org/model@main"},
        {"kind": "dataset", "name": "s3://corpus/v3"},
    ]
    told = scene.renter.made("/v1/jobs", scene.job(references=good, work="training"))
    assert told["references"] == good
    assert scene.renter.read(f"/v1/jobs/{told['job_id']}")["references"] == good


def test_the_state_of_a_job_follows_from_its_stream(scene: Scene) -> None:
    job_id = planned(scene, plan={"chunks": 1})
    tick(scene)
    state = scene.service.ledger.market.load(Stream("job", job_id)).state
    assert isinstance(state, JobState)
    assert (state.parts[0].attempt, state.parts[0].is_live) == (1, True)
    (one,) = parts(scene, job_id)
    end(scene, one["lease_id"], 101)
    assert tick(scene) == 0
    assert tick(scene, 1) == 1
    assert parts(scene, job_id)[0]["attempt"] == 2


@pytest.mark.parametrize("kind", JOB_KINDS)
def test_every_kind_of_job_is_taken_and_leased(kind: str, shared: Scene) -> None:
    """R-21: without a plan, its leases are opened by hand."""
    job_id = planned(shared, kind=kind)
    assert shared.renter.read(f"/v1/jobs/{job_id}")["kind"] == kind
    lease = shared.renter.made("/v1/leases", {"job_id": job_id})
    shared.renter.made(f"/v1/leases/{lease['lease_id']}/close")
