"""What kind of machine a job gets: kernel, network, what the node runs on, what it can run."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.api.scene import Scene

CAPABILITIES = ["docker", "cuda-remoting", "cudnn"]


def machine(scene: Scene, name: str, host: dict[str, Any], **terms: Any) -> str:
    """An active node of the owner's with this host, and an offer with these terms, at 1 credit."""
    code = scene.owner.made("/v1/nodes/join-codes", {"region_id": scene.provider.region_id})["code"]
    joining = scene.provider.joining(code, "A100", hashlib.sha256(name.encode()).hexdigest())
    devices = [{**one, "device_id": f"GPU-{name}-{at}", "model": "NVIDIA A100-PCIE-80GB"}
               for at, one in enumerate(joining["devices"])]  # fmt: skip
    told = {**joining, "devices": devices, "host": {**joining["host"], **host}}
    node_id = str(scene.anybody.made("/v1/nodes/join", told)["node_id"])
    path = f"/v1/nodes/{node_id}"
    scene.owner.made(f"{path}/confirm", {"key_id": told["key_id"]})
    scene.operator.made(f"{path}/admit")
    scene.owner.made(f"{path}/activate")
    body = {"provider_id": scene.provider.provider_id, "node_id": node_id, "fractions": True,
            "price_per_gpu_hour": {"asset": "CREDIT", "units": "1000000"}}  # fmt: skip
    scene.owner.made("/v1/offers", {**body, "terms": terms} if terms else body)
    return node_id


DEMANDS: list[dict[str, Any]] = [
    {"arch": "x86_64", "os": "linux", "min_kernel": "6.1"},
    {"network_class": "switched"},
    {"network_class": "local"},
    {"substrate": "esxi"},
    {"substrate": "kubernetes"},
    {"capabilities": ["docker", "cuda-remoting"]},
]


@pytest.mark.parametrize("demands", DEMANDS)
def test_kernel_network_substrate_and_capabilities_decide_where_a_job_goes(
    scene: Scene, demands: dict[str, Any]
) -> None:
    """The older machine is as cheap and would be taken; it lacks what is asked for."""
    machine(scene, "older", {"kernel": "5.4.0-150-generic", "substrate": ["bare_metal"]})
    recent = machine(
        scene, "recent", {"kernel": "6.1.0-13-amd64", "substrate": ["esxi", "kubernetes"]},
        network_class="switched", capabilities=CAPABILITIES,
    )  # fmt: skip
    lease = scene.lease(job=scene.job(constraints=demands))
    assert lease["node_id"] == recent
    job = scene.renter.read(f"/v1/jobs/{lease['job_id']}")
    assert job["constraints"] == demands
    found = scene.anybody.read(
        "/v1/offers",
        **{
            "capability" if name == "capabilities" else name: value[0]
            if isinstance(value, list)
            else value
            for name, value in demands.items()
        },
    )
    assert [one["node_id"] for one in found["data"]] == [recent]


def test_a_kernel_that_is_too_old_is_named_and_how_far_to_go_back(scene: Scene) -> None:
    machine(scene, "older", {"kernel": "5.4.0-150-generic"})
    quote = scene.renter.made("/v1/quotes", {"job": scene.job(constraints={"min_kernel": "5.10"})})
    assert "offered" not in quote
    kernel = next(one for one in quote["dimensions"] if one["dimension"] == "kernel")
    assert (kernel["required"], kernel["best_offered"]) == ("5.10.0", "5.4.0")
    eased = next(one for one in quote["relaxations"] if one["field"] == "min_kernel")
    assert (eased["offered"], eased["nodes"]) == ("5.4.0", 1)
    job = scene.job(constraints={"min_kernel": eased["offered"]})
    assert scene.renter.made("/v1/quotes", {"job": job})["offered"]


def test_after_an_upgrade_the_next_inventory_is_matched(scene: Scene) -> None:
    """What was impossible is possible when the machine tells that it has changed."""
    body = {"job": scene.job(constraints={"min_kernel": "6.1", "substrate": "bare_metal"})}
    refused = scene.renter.post("/v1/leases", body).json()
    assert (refused["code"], refused["facts"]["dimension"]) == ("match_impossible", "kernel")
    told = scene.provider.joining("", "NVIDIA A100-PCIE-80GB")
    host = {**told["host"], "kernel": "6.8.0-31-generic", "substrate": ["bare_metal"]}
    path = f"/v1/nodes/{scene.provider.node_id}/specs"
    scene.provider.node.made(path, {"devices": told["devices"], "host": host})
    assert scene.renter.made("/v1/leases", body)["node_id"] == scene.provider.node_id
