"""Why a node got what it got: over HTTP and from the shell, from a sealed epoch of real work."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from cli.terminal import amount
from domain.duration import HOUR_US
from tests.scenes.server import Scene
from tests.scenes.shell import tallystick_at
from tests.scenes.work import accrue_now, reported, seal_an_epoch_of_work, send


@pytest.fixture(scope="module")
def sealed(shared: Scene) -> Scene:
    """Epoch 1 with one lease hour, closed and sealed; epoch 2 is open."""
    seal_an_epoch_of_work(shared)
    return shared


def test_an_owner_reads_the_way_from_gpu_seconds_to_tokens(sealed: Scene) -> None:
    node_id = sealed.provider.node_id
    told = sealed.anybody.read(f"/v1/epochs/1/explain/{node_id}")
    epoch = sealed.anybody.read("/v1/epochs/1")
    compute = told["compute"]
    assert told["uses"] == [
        {"source": "cash", "burned": "0", "gpu_us": str(HOUR_US), "weight_ppm": 1_000_000}
    ]
    assert compute["weight"] == compute["all_weight"] == str(HOUR_US)
    assert compute["pool"] == compute["share"] == compute["paid"] == told["paid"]
    assert compute["paid"] == epoch["compute_pool"]
    assert (told["file_sha256"], told["cut_position"]) == (
        epoch["file_sha256"],
        epoch["cut_position"],
    )
    (rewarded,) = [
        one
        for one in sealed.anybody.read("/v1/epochs/1/rewards")["data"]
        if one["account_id"] == told["account_id"]
    ]
    assert rewarded["credited"] == told["paid"]
    assert any(reason.startswith("availability: ") for reason in told["reasons"])
    assert told["signals"] == {
        "concentration_ppm": 1_000_000,
        "related_ppm": 0,
        "raised": [],  # in its first weeks a node has the customers it has (users B19)
    }
    parts = {
        "gpu_us": str(HOUR_US),
        "counterparties": 1,
        "largest_ppm": 1_000_000,
        "related_ppm": 0,
        "raised": [],  # in its first weeks a node has the customers it has (users B19)
    }
    signals = sealed.anybody.read("/v1/epochs/1/signals")["data"]
    assert signals == [{"subject_id": node_id, **parts}]
    renters = sealed.operator.read("/v1/epochs/1/renter-signals")["data"]
    assert renters == [{"subject_id": sealed.renter.account_id, **parts}]
    assert sealed.renter.read("/v1/epochs/1/renter-signals")["data"] == renters
    assert sealed.stranger.read("/v1/epochs/1/renter-signals")["data"] == [], "S-M8"
    assert sealed.anybody.get("/v1/epochs/1/renter-signals").status_code == 401
    assert json.dumps(told).count(sealed.renter.account_id) == 0, "customers are not named"


def test_r_8_two_nodes_are_paid_in_the_proportion_of_what_was_metered(scene: Scene) -> None:
    """One hour, and half of one on another node; what nobody gets is told, to the unit."""
    clock: Any = scene.clock

    def elsewhere() -> None:
        scene.owner.made(f"/v1/nodes/{scene.provider.node_id}/maintenance")
        lease = scene.running()
        assert lease["node_id"] == scene.other.node_id
        clock.advance(HOUR_US)
        sent = send(scene, scene.other, reported(scene.other, lease, first=60, minutes=30))
        assert sent.status_code == 200, sent.text
        scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
        clock.advance(25 * HOUR_US)
        accrue_now(scene, lease["lease_id"])

    seal_an_epoch_of_work(scene, more=elsewhere)
    told = scene.anybody.read("/v1/epochs/1")
    epoch = {name: int(one["units"]) for name, one in told.items() if isinstance(one, dict)}
    pool, paid = epoch["compute_pool"], []
    for node, gpu_us in ((scene.provider, HOUR_US), (scene.other, HOUR_US // 2)):
        compute = scene.anybody.read(f"/v1/epochs/1/explain/{node.node_id}")["compute"]
        paid.append(int(compute["paid"]["units"]))
        assert (compute["weight"], compute["all_weight"]) == (str(gpu_us), str(3 * HOUR_US // 2))
        assert paid[-1] == pool * gpu_us // (3 * HOUR_US // 2)
    assert sum(paid) + epoch["compute_carry"] == pool
    kept = epoch["compute_carry"] + epoch["availability_carry"]
    assert epoch["rewards"] + kept == epoch["emission"]
    assert epoch["rewards"] == sum(paid) + epoch["treasury_pool"]


def test_what_cannot_be_explained_says_why(sealed: Scene) -> None:
    node_id = sealed.provider.node_id
    answers = {
        f"/v1/epochs/2/explain/{node_id}": (409, "epoch_state"),
        f"/v1/epochs/9/explain/{node_id}": (404, "epoch_unknown"),
        "/v1/epochs/1/explain/node_0": (404, "not_found"),
        "/v1/epochs/9/signals": (404, "epoch_unknown"),
    }
    for path, (status, code) in answers.items():
        response = sealed.anybody.get(path)
        assert (response.status_code, response.json()["code"]) == (status, code), path


def test_rewards_name_the_compute_client_whose_work_they_pay_for(scene: Scene) -> None:
    """R-1: beside the leaves of the payout tree, to the unit, by a hash that the seal tells."""
    client = scene.client()
    scene.deposit(client, 10_000_000)
    seal_an_epoch_of_work(scene, client)
    epoch = scene.anybody.read("/v1/epochs/1")
    answer = scene.anybody.get("/v1/epochs/1/clients.json")
    told = answer.json()
    assert sha256(answer.content).hexdigest() == epoch["clients_sha256"]
    assert told["epoch_file_sha256"] == epoch["file_sha256"]
    rewards = {one["account_id"]: one for one in scene.anybody.read("/v1/epochs/1/rewards")["data"]}
    assert {who for who, _, _ in told["rewards"]} == rewards.keys()
    for who, units, clients in told["rewards"]:
        assert rewards[who]["credited"]["units"] == units
        assert sum(int(part) for _, part in clients) == int(units)
    explained = scene.anybody.read(f"/v1/epochs/1/explain/{scene.provider.node_id}")
    assert explained["clients"] == [
        {"client_id": client.account_id, "reward": explained["compute"]["paid"]}
    ]
    shown = tallystick_at(scene.http, None, "epoch", "explain", 1, scene.provider.node_id).out
    row = next(line for line in shown.splitlines() if line.startswith("compute "))
    for name in ("pool", "share", "paid"):
        assert str(amount(explained["compute"][name])) in row, "B20 of the findings: dashes"
    assert "GPU_US" not in shown
    (owners,) = [row for row in told["rewards"] if row[0] == scene.owner.account_id]
    assert owners[2][0] == [client.account_id, explained["compute"]["paid"]["units"]]
    ran = tallystick_at(scene.http, None, "epoch", "clients", 1, "--json")
    assert ran.document["rewards"] == told["rewards"]
    assert client.account_id in tallystick_at(scene.http, None, "epoch", "clients", 1).out
    for path, code in (("2", "not_found"), ("9", "epoch_unknown")):
        refused = scene.anybody.get(f"/v1/epochs/{path}/clients.json")
        assert (refused.status_code, refused.json()["code"]) == (404, code)
