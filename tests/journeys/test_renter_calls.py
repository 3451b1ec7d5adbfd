"""J-5: everything a renter asks for, over HTTP: request, release, manage, monitor."""

from __future__ import annotations

import base64
from typing import Any

from domain.lease.lease import LeaseReserved
from domain.stream import Stream
from tests.api.jobs.test_plans import make_ready, parts, tick
from tests.api.leasing.test_events import told as events_of
from tests.api.leasing.test_turns import interruptible
from tests.api.leasing.test_work import EXECUTOR, executor_of
from tests.scenes.server import HOUR_US, Caller, Scene
from tests.scenes.work import accrue_now, reported, run, send


def credits_of(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def test_j_5_a_lease_is_requested_managed_monitored_and_released_by_its_renter(
    scene: Scene,
) -> None:
    """One lease from its quote to its last line, by the calls of the renter alone."""
    renter = scene.renter
    mine = f"/v1/accounts/{renter.account_id}"

    # Request: what there is, what it would cost, what may be spent; then a lease.
    budget = {"scope": "project", "target": "walk", "monthly": credits_of(50_000_000)}
    assert renter.made(f"{mine}/budgets", budget)["left"] == credits_of(50_000_000)
    job = scene.job(project_id="walk", constraints={"interruptible": True})
    lease = interruptible(scene, job=job)
    quoted = renter.made("/v1/quotes", {"job": job})["offered"]
    assert quoted["price_per_gpu_hour"] == lease["price_per_gpu_hour"], "as the lease is"
    path = f"/v1/leases/{lease['lease_id']}"
    assert renter.read(path)["state"] == "active"

    # Monitor: the forecast, what a stranger may not see, and what it printed.
    (running,) = renter.read(f"{mine}/forecast")["leases"]
    assert running["funds_end_at"] == renter.read(path)["funds_end_at"]
    assert scene.stranger.get(path).json()["code"] == "lease_unknown"

    # Manage: more money, a pause and an end to it, in which nothing is charged.
    topped = renter.made(f"{path}/top-up", {"amount": credits_of(3_600_000)})
    assert topped["funds_end_at"] > running["funds_end_at"]
    run(scene, lease, minutes=30)
    assert renter.made(f"{path}/pause")["state"] == "paused"
    clock: Any = scene.clock
    clock.advance(HOUR_US)
    assert renter.made(f"{path}/resume")["state"] == "active"
    clock.advance(HOUR_US // 2)
    sent = send(scene, scene.provider, reported(scene.provider, lease, first=90, minutes=30))
    assert sent.is_success

    # Release: it ends now, only what was proven is charged, and the rest comes back.
    closed = renter.made(f"{path}/close")
    assert (closed["state"], closed["close_code"]) == ("closing", 1)
    accrue_now(scene, lease["lease_id"])
    told = renter.read(path)
    assert (told["state"], told["charge"]) == ("settled", credits_of(3_600_000)), "one hour of two"
    balances = renter.read(f"{mine}/balances")["data"]
    cash = next(one["balance"] for one in balances if one["part"] == "cash")
    assert cash == credits_of(96_400_000), "of a hundred credits"

    # Monitor, afterwards: every fact once, each hour, each line, and what is left to spend.
    events = [one["event"] for one in events_of(renter, after=0, lease_id=lease["lease_id"])]
    turned = [name for name in events if name.split(".")[1] in ("paused", "resumed", "closed")]
    assert turned == ["lease.paused.v1", "lease.resumed.v1", "lease.closed.v1"]
    assert [one["type"] for one in renter.read(f"{path}/history")["data"]] == events
    assert len(renter.read(f"{path}/events")["data"]) == len(events)
    assert sum(int(hour["gpu_us"]) for hour in renter.read(f"{path}/usage")["data"]) == HOUR_US
    charges = [int(line["charge"]["units"]) for line in renter.read(f"{path}/charges")["data"]]
    assert sum(charges) == 3_600_000
    (row,) = renter.read(f"{mine}/budgets")["data"]
    assert row["used"] == credits_of(3_600_000)


def test_who_reserved_a_lease_is_recorded_with_it(scene: Scene) -> None:
    """By a call its member; by the plan of a job nobody but the timer."""
    asked = scene.lease()
    quoted = scene.renter.made("/v1/lease-quotes", {"job": scene.job()})
    path = f"/v1/leases/{quoted['lease_id']}/accept"
    accepted = scene.renter.made(path, {"quote_id": quoted["quote_id"]})
    by_call = [_reserved(scene, one["lease_id"]).by for one in (asked, accepted)]
    assert by_call[0] is not None
    assert by_call[0] == by_call[1], "the renter's member"
    job_id = scene.renter.made("/v1/jobs", scene.job(plan={"chunks": 1}))["job_id"]
    assert tick(scene) == 1
    assert _reserved(scene, parts(scene, job_id)[0]["lease_id"]).by is None


def _reserved(scene: Scene, lease_id: str) -> LeaseReserved:
    lease: Any = scene.service.ledger.market.load(Stream("lease", lease_id)).state
    assert lease.reserved is not None
    return lease.reserved  # type: ignore[no-any-return]


def test_j_5_a_job_is_scaled_extended_and_told_apart_by_its_renter(scene: Scene) -> None:
    """What is managed by the job: members come and go; and a fixed term is made longer."""
    plan = {"min_members": 1, "max_members": 2}
    job_id = scene.renter.made("/v1/jobs", scene.job(plan=plan))["job_id"]
    assert tick(scene) == 1
    make_ready(scene, parts(scene, job_id)[0]["lease_id"])
    assert scene.renter.made(f"/v1/jobs/{job_id}/scale", {"members": 2})["closing"] == []
    assert tick(scene) == 1
    fewer = scene.renter.made(f"/v1/jobs/{job_id}/scale", {"members": 1})
    assert len(fewer["closing"]) == 1
    cost = scene.renter.read(f"/v1/jobs/{job_id}/cost")
    assert cost["leases"] == 2
    assert scene.renter.made(f"/v1/jobs/{job_id}/cancel")["state"] == "cancelled"
    fixed = scene.running(term_seconds=600)
    path = f"/v1/leases/{fixed['lease_id']}"
    before = scene.renter.read(path)["term_end_at"]
    assert scene.renter.made(f"{path}/extend", {"seconds": 600})["term_end_at"] > before


def test_j_5_what_work_prints_and_how_it_ended_is_read_by_its_renter_alone(scene: Scene) -> None:
    lease = scene.lease()
    path = f"/v1/leases/{lease['lease_id']}"
    executor: Caller = executor_of(scene, scene.provider)
    at = f"/v1/nodes/{scene.provider.node_id}/assignments/{lease['lease_id']}"
    (pending,) = executor.read(f"/v1/nodes/{scene.provider.node_id}/assignments")["pending"]
    sha256 = pending["work"]["workload_sha256"]
    start = {
        "command": "start",
        "executor": EXECUTOR,
        "runner": "docker",
        "workload_sha256": sha256,
    }
    executor.made(f"{at}/acknowledge", start)
    executor.made(f"{at}/ready", {"endpoint": "http://10.0.0.7:9000"})
    said = base64.b64encode(b"epoch 1\n").decode()
    executor.made(
        f"{at}/log", {"seq": 0, "left_out": 0, "data": [{"stream": "stdout", "body": said}]}
    )
    (piece,) = scene.renter.read(f"{path}/log")["data"]
    assert base64.b64decode(piece["body"]) == b"epoch 1\n"
    assert scene.renter.read(f"{path}/work")["endpoint"] == "http://10.0.0.7:9000"
    for what in ("log", "work", "usage", "charges", "history"):
        assert scene.stranger.get(f"{path}/{what}").json()["code"] == "lease_unknown"
        assert scene.anybody.get(f"{path}/{what}").status_code == 401
    executor.made(f"{at}/ended", {"executor": EXECUTOR, "outcome": "exited", "exit_code": 0})
    assert scene.renter.read(f"{path}/work")["outcome"] == "exited"
    assert scene.renter.read(path)["close_code"] == 0
