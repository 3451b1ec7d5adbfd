"""Rules of hardware over HTTP: who joins, who sells, and what the owner is told of it."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from nacl.signing import SigningKey

from tests.scenes.server import Caller, Scene, _machines

ALL = [
    "nvme_count",
    "nvme_size",
    "tpm_2_0",
    "sata_drives",
    "ethernet",
    "ram",
    "pcie_lanes",
    "cpu_cores",
]
GOOD: dict[str, Any] = {
    "nvme_drives_gb": [1_000, 1_000],
    "tpm_2_0": True,
    "ram_gb": 320,
    "cpu_cores": 16,
    "sata_drives": [{"size_gb": 2_000, "kind": "ssd", "rpm": 0}] * 3,
    "ethernet_mbps": 1_000,
}


def machine(name: str, hardware: dict[str, Any] | None, **changed: Any) -> dict[str, Any]:
    """Four A100 of 40 GB, as the reference lists them; `hardware` None: nobody looked."""
    key = SigningKey(hashlib.sha256(name.encode()).digest())
    public = bytes(key.verify_key)
    _machines[public.hex()] = key
    device = {
        "vendor": "nvidia",
        "model": "NVIDIA A100-PCIE-40GB",
        "memory_mib": 40_960,
        "connection": "pcie",
        "pcie_gen": 4,
        "pcie_lanes": 16,
        **changed,
    }
    return {
        "public_key": public.hex(),
        "key_id": hashlib.sha256(public).hexdigest()[:16],
        "agent": "0.1.0",
        "hardware": hardware,
        "devices": [{"device_id": f"GPU-{name}-{index}", **device} for index in range(4)],
        "host": {"arch": "x86_64", "os": "linux", "cpu_cores": 64, "ram_mib": None},
    }


def joined(scene: Scene, name: str, hardware: dict[str, Any] | None) -> tuple[str, Caller]:
    """A confirmed node in the region of the first provider, and its own key."""
    told = machine(name, hardware)
    code = scene.owner.made("/v1/nodes/join-codes", {"region_id": scene.provider.region_id})["code"]
    answer = scene.anybody.made("/v1/nodes/join", {**told, "code": code})
    node_id = answer["node_id"]
    scene.owner.made(f"/v1/nodes/{node_id}/confirm", {"key_id": told["key_id"]})
    return node_id, Caller(scene.http, answer["node_key"])


def insist(scene: Scene, *rules: str) -> None:
    path = f"/v1/regions/{scene.provider.region_id}/hardware-rules"
    assert scene.operator.made(path, {"rules": list(rules)})["hardware_rules"] == list(rules)


def test_both_failing_rules_are_named_to_whoever_admits_the_node(shared: Scene) -> None:
    insist(shared, *ALL)
    node_id, _ = joined(shared, "c18", {**GOOD, "tpm_2_0": False, "ram_gb": 319})
    told = shared.owner.read(f"/v1/nodes/{node_id}")["verdict"]
    assert told == {
        "joinable": False,
        "sellable": False,
        "failing": ["tpm_2_0", "ram"],
        "waived": [],
    }
    refused = shared.operator.post(f"/v1/nodes/{node_id}/admit", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "node_not_joinable")
    assert "tpm_2_0" in refused.json()["facts"]["failing"]
    assert "ram" in refused.json()["facts"]["failing"]


def test_what_a_node_did_not_tell_fails_by_name(shared: Scene) -> None:
    insist(shared, *ALL)
    node_id, _ = joined(shared, "blind", None)
    failing = shared.owner.read(f"/v1/nodes/{node_id}")["verdict"]["failing"]
    assert failing == ["nvme_count", "nvme_size", "tpm_2_0", "sata_drives", "ram", "cpu_cores"]


def test_c_11_a_machine_of_two_models_does_not_join_whatever_is_waived(shared: Scene) -> None:
    insist(shared)
    for name, second, is_joined in (
        ("two-models", "NVIDIA GeForce RTX 3090", False),
        ("one-model", "NVIDIA A100-PCIE-40GB", True),
    ):
        told = machine(name, GOOD)
        told["devices"][1]["model"] = second
        asked = {"region_id": shared.provider.region_id}
        code = shared.owner.made("/v1/nodes/join-codes", asked)["code"]
        node_id = shared.anybody.made("/v1/nodes/join", {**told, "code": code})["node_id"]
        path = f"/v1/nodes/{node_id}"
        shared.owner.made(f"{path}/confirm", {"key_id": told["key_id"]})
        assert shared.owner.read(path)["verdict"]["joinable"] is is_joined
        refused = shared.operator.post(f"{path}/admit", {"waive": ["same_gpu_model"]})
        assert refused.status_code in (409, 422), "nobody waives it"
        admitted = shared.operator.post(f"{path}/admit", {})
        if is_joined:
            assert admitted.status_code == 200, admitted.text
            continue
        assert (admitted.status_code, admitted.json()["code"]) == (409, "node_not_joinable")
        assert "same_gpu_model" in admitted.json()["facts"]["failing"]


@pytest.mark.parametrize(
    ("vendor", "model", "gpu_class"),
    [
        ("nvidia", "NVIDIA GeForce RTX 3090", "development"),
        ("amd", "AMD Radeon RX 7900 XTX", "development"),
        ("nvidia", "Quadro RTX 8000", "professional"),
        ("nvidia", "NVIDIA RTX A6000", "professional"),
        ("amd", "AMD Radeon Pro W6800", "professional"),
        ("nvidia", "Tesla V100-PCIE-16GB", "datacenter"),
        ("amd", "AMD Radeon Instinct MI50", "datacenter"),
        ("acme", "Acme G2", None),
        ("acme", "Tesla T4", None),
        ("nvidia", "NVIDIA Quantum A2x", None),
        ("nvidia", "Toaster", None),
    ],
)
def test_c_19_a_known_model_has_its_class_and_an_unknown_one_is_listed_without_a_price(
    shared: Scene, vendor: str, model: str, gpu_class: str | None
) -> None:
    insist(shared)
    told = machine(f"c19-{vendor}-{model}".replace(" ", "-"), GOOD, vendor=vendor, model=model)
    code = shared.owner.made("/v1/nodes/join-codes", {"region_id": shared.provider.region_id})
    joining = {**told, "code": code["code"]}
    node_id = shared.anybody.made("/v1/nodes/join", joining)["node_id"]
    shared.owner.made(f"/v1/nodes/{node_id}/confirm", {"key_id": told["key_id"]})
    shared.operator.made(f"/v1/nodes/{node_id}/admit", {})
    listed = shared.owner.read(f"/v1/devices/{told['devices'][0]['device_id']}")
    assert (listed["model"], listed.get("gpu_class")) == (model, gpu_class)
    offer = {
        "provider_id": shared.provider.provider_id,
        "node_id": node_id,
        "settlement": "cash",
        "price_per_gpu_hour": {"asset": "CREDIT", "units": "4000000"},
    }
    answer = shared.owner.post("/v1/offers", offer)
    if gpu_class is None:
        assert (answer.status_code, answer.json()["code"]) == (422, "gpu_class_unpriced")
    else:
        assert answer.status_code == 201, answer.text


def test_the_operator_waives_a_rule_and_the_verdict_still_names_it(shared: Scene) -> None:
    insist(shared, *ALL)
    node_id, _ = joined(shared, "waived", {**GOOD, "tpm_2_0": None})
    path = f"/v1/nodes/{node_id}/admit"
    assert shared.operator.post(path, {"waive": ["ram"]}).status_code == 409
    told = shared.operator.made(path, {"waive": ["tpm_2_0"]})["verdict"]
    assert told == {
        "joinable": True,
        "sellable": True,
        "failing": ["tpm_2_0"],
        "waived": ["tpm_2_0"],
    }
    assert shared.operator.made(path, {})["verdict"] == told, "it stays waived"


def test_only_the_operator_relaxes_rules(shared: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/v1/regions/{shared.provider.region_id}/hardware-rules"
    assert shared.owner.post(path, {"rules": []}).status_code == 403
    region = shared.owner.made(
        "/v1/regions",
        {
            "provider_id": shared.provider.provider_id,
            "name": "open",
            "storage_mode": "local",
            "setting": "datacenter",
            "admission": "permissionless",
            "allow_public_jobs": True,
        },
    )
    assert region["hardware_rules"] == ALL
    rules = f"/v1/regions/{region['region_id']}/hardware-rules"
    assert shared.owner.post(rules, {"rules": []}).status_code == 403
    assert shared.operator.made(rules, {"rules": []})["hardware_rules"] == []
    monkeypatch.setattr(shared.provider, "region_id", region["region_id"])
    node_id, _ = joined(shared, "own", GOOD)
    refused = shared.owner.post(f"/v1/nodes/{node_id}/admit", {"waive": ["ram"]})
    assert (refused.status_code, refused.json()["code"]) == (403, "not_permitted")
    assert shared.owner.made(f"/v1/nodes/{node_id}/admit", {})["phase"] == "maintenance"


def test_a_node_that_may_not_sell_runs_its_owners_jobs_and_nobody_elses(shared: Scene) -> None:
    insist(shared, *ALL)
    node_id, node = joined(shared, "c14", {**GOOD, "ram_gb": 319})
    admitted = shared.operator.made(f"/v1/nodes/{node_id}/admit", {})
    assert admitted["verdict"]["failing"] == ["ram"]
    assert (admitted["verdict"]["joinable"], admitted["verdict"]["sellable"]) == (True, False)
    shared.owner.made(f"/v1/nodes/{node_id}/activate")
    shared.owner.made(
        "/v1/offers",
        {
            "provider_id": shared.provider.provider_id,
            "node_id": node_id,
            "settlement": "cash",
            "price_per_gpu_hour": {"asset": "CREDIT", "units": "1000000"},
            "fractions": True,
        },
    )
    only_there = shared.job(models=["NVIDIA A100-PCIE-40GB"])
    refused = shared.renter.post("/v1/leases", {"job": only_there})
    assert refused.status_code == 409, refused.text
    shared.deposit(shared.owner, 10_000_000)
    own = shared.owner.made("/v1/leases", {"job": only_there})
    assert own["node_id"] == node_id

    # More memory was built in: the node tells it, and sells from then on.
    told = machine("c14", GOOD)
    body = {name: told[name] for name in ("devices", "host", "hardware")}
    assert node.made(f"/v1/nodes/{node_id}/specs", body)["verdict"]["sellable"] is True
    assert shared.renter.made("/v1/leases", {"job": only_there})["node_id"] == node_id


def test_a_region_opened_in_production_insists_on_every_rule(shared: Scene) -> None:
    region = shared.owner.made(
        "/v1/regions",
        {
            "provider_id": shared.provider.provider_id,
            "name": "real",
            "storage_mode": "local",
            "setting": "datacenter",
            "admission": "operator",
            "allow_public_jobs": True,
        },
    )
    assert region["hardware_rules"] == ALL
    assert shared.owner.read(f"/v1/regions/{region['region_id']}")["hardware_rules"] == ALL


@pytest.mark.parametrize("driver", ["simulated", "580.159.04-fake"])
def test_a_driver_that_says_it_is_none_stays_outside_where_money_is_real(
    shared: Scene, driver: str
) -> None:
    body = machine(driver, GOOD)
    body["host"] = {**body["host"], "driver": driver}
    code = shared.owner.made("/v1/nodes/join-codes", {"region_id": shared.provider.region_id})[
        "code"
    ]
    refused = shared.anybody.post("/v1/nodes/join", {**body, "code": code})
    assert (refused.status_code, refused.json()["code"]) == (409, "node_not_joinable")
    assert "real_driver" in refused.json()["facts"]["failing"]
    specs = {name: body[name] for name in ("devices", "host", "hardware")}
    told = shared.provider.node.post(f"/v1/nodes/{shared.provider.node_id}/specs", specs)
    assert (told.status_code, told.json()["code"]) == (409, "node_not_joinable")
    body["host"]["driver"] = "580.159.04"
    assert shared.anybody.post("/v1/nodes/join", {**body, "code": code}).status_code == 201
