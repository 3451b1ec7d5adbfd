"""The straight way through, over HTTP: from an account to a closed lease."""

from __future__ import annotations

import threading
from typing import Any

from domain.duration import HOUR_US
from tests.scenes.server import Caller, Scene


def test_a_lease_is_matched_reserved_started_and_closed(scene: Scene) -> None:
    lease = scene.lease()
    assert lease["state"] == "reserved"
    assert lease["node_id"] == scene.provider.node_id
    assert lease["held"]["units"] == "2000000"
    pending = scene.provider.node.read(f"/v1/nodes/{lease['node_id']}/assignments")["pending"]
    assert [one["lease_id"] for one in pending] == [lease["lease_id"]]
    ready = scene.provider.node.made(
        f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready"
    )
    assert ready["state"] == "active"
    data = scene.provider.node.read(f"/v1/nodes/{lease['node_id']}/assignments")["data"]
    assert data[0]["until_us"] - data[0]["from_us"] == HOUR_US
    scene.clock.advance(60_000_000)  # type: ignore[attr-defined]
    closed = scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    assert (closed["state"], closed["closed_by"], closed["close_code"]) == ("closing", "renter", 1)
    read = scene.renter.read(f"/v1/leases/{lease['lease_id']}")
    assert read["state"] == "closing"
    assert read["position"] >= closed["position"]


def test_eight_renters_at_once_get_each_device_once(scene: Scene) -> None:
    """Four devices: four leases on four devices, and a typed refusal for everybody else."""
    renters = [scene.account() for _ in range(8)]
    for renter in renters:
        scene.deposit(renter, 10_000_000)
    answers: list[Any] = []
    start = threading.Barrier(len(renters))

    def ask(renter: Caller) -> None:
        start.wait()
        answers.append(renter.post("/v1/leases", {"job": scene.job()}))

    threads = [threading.Thread(target=ask, args=(renter,)) for renter in renters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = [answer.json() for answer in answers if answer.status_code == 201]
    lost = {(a.status_code, a.json()["code"]) for a in answers if a.status_code != 201}
    assert sorted(device for lease in won for device in lease["device_ids"]) == sorted(
        scene.provider.device_ids + scene.other.device_ids
    )
    assert lost <= {(409, "no_match"), (409, "device_taken"), (503, "busy")}


def test_shares_of_a_device_are_leased_until_it_is_full(scene: Scene) -> None:
    half = scene.job(share_ppm=500_000, models=["NVIDIA H100 PCIe"])
    leases = [scene.lease(job=half) for _ in range(4)]
    assert sorted(lease["device_ids"][0] for lease in leases) == sorted(scene.other.device_ids * 2)
    full = scene.renter.post("/v1/leases", {"job": {**half, "share_ppm": 1}})
    assert (full.status_code, full.json()["code"]) == (409, "no_match")
    device = scene.rival.read(f"/v1/devices/{scene.other.device_ids[0]}")
    assert (device["share_free_ppm"], len(device["holdings"])) == (0, 2)


def test_own_nodes_come_first_and_cost_the_usage_fee(scene: Scene) -> None:
    scene.deposit(scene.rival, 10_000_000)
    lease = scene.lease(scene.rival)
    assert lease["node_id"] == scene.other.node_id
    assert lease["price_per_gpu_hour"] == lease["usage_fee_per_gpu_hour"]


def test_why_a_job_runs_where_it_does_can_be_asked(scene: Scene) -> None:
    lease = scene.lease()
    told = scene.renter.read(f"/v1/jobs/{lease['job_id']}/explain")["matches"][0]
    assert (told["node_id"], told["rule"], told["considered"]) == (
        scene.provider.node_id,
        "lowest_cost/2",
        2,
    )
    prices = [int(one["price_per_gpu_hour"]["units"]) for one in told["candidates"]]
    assert prices == [2_000_000, 3_000_000]


def test_a_fixed_term_holds_its_whole_price_and_ends_by_itself(scene: Scene) -> None:
    lease = scene.lease(term_seconds=7_200)
    assert lease["held"]["units"] == "4000000"
    path = f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready"
    ready = scene.owner.made(path, {"endpoint": "https://10.0.0.7:8888"})
    assert ready["term_end_at"] == "2026-11-20T10:02:00.000000Z"
    assert scene.renter.read(f"/v1/leases/{lease['lease_id']}")["endpoint"].endswith(":8888")


def test_provider_and_operator_close_with_their_own_codes(scene: Scene) -> None:
    for caller, party, code in (
        (scene.owner, "provider", 10_002),
        (scene.operator, "operator", 20_002),
    ):
        lease = scene.running()
        told = caller.made(f"/v1/leases/{lease['lease_id']}/close")
        assert (told["closed_by"], told["close_code"]) == (party, code)
