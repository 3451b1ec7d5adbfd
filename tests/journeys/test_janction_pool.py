"""A pool as Janction has it, from its contract to the release: REST, commands, a real EVM, under
production's settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contracts import pool_controller
from domain.duration import HOUR_US
from domain.prices.tariff import MARKETPLACE, publish
from tests.scenes.desk import Desk
from tests.scenes.server import NOW_US, Scene
from tests.scenes.work import MINUTE_US, accrue_now, send, used

GB = 10**9
DISK = {"storage_gib": 100, "network_mbps": 600}
HALF_AN_HOUR = 30


def priced(scene: Scene) -> None:
    """The preset that prices disk and bytes; and an offer that promises both."""
    tariff = publish(MARKETPLACE, version=2, effective_from_us=NOW_US, by="operator", at_us=NOW_US)
    scene.service.ledger.handle(tariff, key=None, now_us=NOW_US)
    scene.owner.made(f"/v1/offers/{scene.provider.offer_id}/withdraw")
    body = {
        "provider_id": scene.provider.provider_id,
        "node_id": scene.provider.node_id,
        "price_per_gpu_hour": {"asset": "CREDIT", "units": "2000000"},
        "fractions": True,
        "terms": {"storage_gib": 100, "network_mbps": 1_000},
    }
    scene.owner.made("/v1/offers", body)


def asking(scene: Scene, pool_id: str, **demands: Any) -> dict[str, Any]:
    """Half of the compute of a GPU and a quarter of its memory."""
    maxima = [
        {"meter": meter, "amount": {"asset": "CREDIT", "units": "1000000"}}
        for meter in ("storage", "network")
    ]
    constraints = {"pool_id": pool_id, "mode": "mps", **demands}
    half = {"share_ppm": 500_000, "mem_ppm": 250_000}
    return {"job": scene.job(constraints=constraints, meter_maxima=maxima, **half)}


def test_a_janction_pool_from_its_contract_to_the_release(scene: Scene, tmp_path: Path) -> None:
    desk, owner, renter = Desk.beside(scene, tmp_path), scene.owner, scene.renter
    waits_for_it = scene.stranger
    scene.deposit(waits_for_it, 10_000_000)
    priced(scene)
    cash = scene.service.ledger.books.balance

    # A contract is deployed, and the pool names it; nobody else's pool can.
    deployed = desk.told(owner, "pool", "deploy-controller", on_chain=True)
    naming = ("pool", "create", "render", "--scheduler", "first_come", "--controller")
    pool_id = desk.told(owner, *naming, deployed["address"])["pool_id"]
    mine = {"name": "mine", "controller_address": deployed["address"]}
    assert scene.rival.post("/v1/pools", mine).json()["code"] == "controller_taken"
    gateway = desk.told(owner, "pool", "add-component", pool_id, "gateway", "gateway-1")
    desk.told(owner, "pool", "add-component", pool_id, "storage", "nfs-1")
    desk.told(owner, "pool", "set-metadata", pool_id, "region=eu-west")
    desk.told(owner, "pool", "add", pool_id, scene.provider.node_id)
    sent = desk.told(owner, "pool", "publish", pool_id, on_chain=True)["sent"]
    assert [one["act"].split()[0] for one in sent] == ["register", "register", "set", "anchor"]
    desk.check()
    assert desk.told(owner, "pool", "controller", pool_id)["checked"]["agrees"]

    # Request: GPU, disk and network together, or none of them; the next one waits in the queue.
    asked = {**asking(scene, pool_id, **DISK), "route_id": "vxlan-7"}
    lease = renter.made("/v1/leases", asked)
    lease_id = lease["lease_id"]
    assert (lease["state"], lease["node_id"]) == ("reserved", scene.provider.node_id)
    (pending,) = scene.provider.node.read(f"/v1/nodes/{scene.provider.node_id}/assignments")[
        "pending"
    ]
    assert pending["route_id"] == "vxlan-7"
    second = waits_for_it.made("/v1/leases", asking(scene, pool_id, storage_gib=1))
    assert (second["state"], second["waits_for"]) == ("requested", pool_id), "no disk is left"
    assert desk.timers("schedule") == {"schedule": 0}

    # Manage and monitor: it runs, its node signs what it uses, and the pool says how it is.
    at_node = f"/v1/nodes/{scene.provider.node_id}/assignments/{lease_id}/ready"
    scene.provider.node.made(at_node)
    desk.pass_time(HALF_AN_HOUR * MINUTE_US)
    amounts = {"storage_byte_s": 60 * 80 * GB, "received_bytes": GB, "sent_bytes": GB}
    report = used(scene.provider, lease, minutes=HALF_AN_HOUR, **amounts)
    assert send(scene, scene.provider, report).status_code == 200
    desk.told(owner, "pool", "report-health", pool_id, gateway["component_id"], "well")
    seen = desk.told(renter, "pool", "health", pool_id)
    assert {one["health"]: one["count"] for one in seen["nodes"]} == {"well": 1}
    assert {one["health"]: one["count"] for one in seen["components"]} == {"unknown": 1, "well": 1}
    assert (seen["waiting"], seen["degraded_leases"]) == (1, 0)
    assert desk.told(renter, "lease", "show", lease_id)["state"] == "active"

    # Release: everything is free in that moment, and the one that waited has its turn.
    desk.told(renter, "lease", "close", lease_id)
    assert desk.timers("schedule") == {"schedule": 1}
    assert waits_for_it.read(f"/v1/leases/{second['lease_id']}")["state"] == "reserved"
    (decision,) = desk.told(renter, "pool", "decisions", pool_id)["data"]
    assert (decision["chosen"], decision["rule"]) == (second["lease_id"], "first_come/1")

    # The pool's owner sets another scheduler, and the next decision is by that one.
    desk.told(owner, "pool", "set-policy", pool_id, "--scheduler", "drf")
    third = waits_for_it.made("/v1/leases", asking(scene, pool_id, storage_gib=100))
    assert third["state"] == "requested", "one GiB is taken"
    desk.told(waits_for_it, "lease", "close", second["lease_id"])
    assert desk.timers("schedule") == {"schedule": 1}
    rules = {
        one["chosen"]: one["rule"]
        for one in desk.told(renter, "pool", "decisions", pool_id)["data"]
    }
    assert rules == {second["lease_id"]: "first_come/1", third["lease_id"]: "drf/1"}

    # Metered and priced, all three: to the unit what the renter paid and the provider got.
    accrue_now(scene, lease_id)
    desk.pass_time(HOUR_US)
    assert desk.timers("resources")["resources"] >= 2
    gpu = int(renter.read(f"/v1/leases/{lease_id}")["charge"]["units"])
    told = renter.read(f"/v1/leases/{lease_id}/resources")["resources"]
    charges = {one["meter"]: int(one["charge"]["units"]) for one in told}
    seconds = HALF_AN_HOUR * 60
    assert gpu == 2_000_000 * seconds // 3_600 // 2, "half of a GPU"
    assert charges == {
        "storage": 80 * seconds * 100_000 // 2_592_000,
        "network": 2 * HALF_AN_HOUR * 10_000,
    }
    desk.pass_time(25 * HOUR_US)
    desk.timers("resources")
    assert cash(f"party:{renter.account_id}:cash") == 100_000_000 - gpu - sum(charges.values())
    fee = int(renter.read(f"/v1/leases/{lease_id}/charges")["data"][0]["fee"]["units"])
    parts = [gpu - fee, *charges.values()]
    assert cash(f"party:{owner.account_id}:holdback") == sum(part // 2 for part in parts)

    # The contract anchors the two allocations and the release, as anybody with the log computes.
    sent = desk.told(owner, "pool", "publish", pool_id, on_chain=True)["sent"]
    assert [one["act"].split()[0] for one in sent] == ["anchor"]
    desk.check()
    controller = desk.told(owner, "pool", "controller", pool_id)
    assert controller["checked"]["agrees"]
    there = desk.on_chain(lambda chain, _: pool_controller.read(chain, deployed["address"]))
    assert there.heads.allocation.hex() == controller["heads"]["allocation_head"]
    assert len(there.components) == 2
    assert desk.audited()["verified"]
