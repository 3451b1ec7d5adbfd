"""Cloud providers over HTTP, under production's settings: set up, limited by quotas, held how."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.jobs.parts import run_plans
from domain.cloud.onboarding import STEPS
from tests.api.pools.test_pools import run
from tests.scenes.server import CLOUD_ACCOUNT, Provider, Scene

GCP = {"kind": "gcp", "payment_mode": "credits"}
REGION = {
    "name": "iowa",
    "cloud_region": "us-central1",
    "storage_mode": "central",
    "setting": "datacenter",
    "admission": "operator",
    "allow_public_jobs": True,
}
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----\n"
KEY_FILE = json.dumps(
    {"type": "service_account", "private_key": KEY, "client_email": "a@b.example"}
)
EMAIL = "market@render-farm-7.iam.gserviceaccount.com"
MODEL = "NVIDIA A100-SXM4-80GB"
JOB: dict[str, Any] = {"models": [MODEL]}


def _free(limit: int) -> dict[str, int]:
    return {"limit": limit, "used": 0}


def _quotas(gpus: int) -> dict[str, Any]:
    return {
        "gpus": [{"gpu": "A100", **_free(gpus)}],
        "cpus": _free(96),
        "local_ssd_gb": _free(3_000),
    }


@pytest.fixture
def cloud(scene: Scene) -> Provider:
    """A region of Google Cloud with a node of two A100."""
    scene.deposit(scene.owner, 50_000_000)
    return Provider(scene, scene.owner, "cloud", MODEL, 1_000_000, kind="gcp")


# --- C-27 ------------------------------------------------------------------------------------


def test_c_27_a_cloud_provider_is_set_up_step_by_step_and_opens_no_region_before(
    scene: Scene,
) -> None:
    provider = scene.owner.made("/v1/providers", GCP)["provider_id"]
    path = f"/v1/providers/{provider}/cloud-account"
    told = scene.owner.read(path)
    assert (told["ready"], [one["step"] for one in told["steps"]]) == (
        False,
        [step.name for step in STEPS],
    )
    opening = {"provider_id": provider, **REGION}
    for lacking in (*CLOUD_ACCOUNT["done"], "token_creator"):
        done = [step for step in CLOUD_ACCOUNT["done"] if step != lacking]
        made_on = "2021-04-07" if lacking == "token_creator" else "2021-04-08"
        scene.owner.made(path, {**CLOUD_ACCOUNT, "project_made_on": made_on, "done": done})
        early = scene.owner.post("/v1/regions", opening)
        assert (early.status_code, early.json()["code"]) == (409, "provider_not_ready")
        assert lacking in early.json()["detail"]
    scene.owner.made(path, {**CLOUD_ACCOUNT, "service_account": EMAIL})
    told = scene.owner.read(path)
    assert told["ready"]
    assert (told["project_id"], told["service_account"]) == ("render-farm-7", EMAIL)
    assert scene.owner.made("/v1/regions", opening)["region_id"]
    assert scene.rival.get(path).status_code == 404
    assert scene.rival.post(path, CLOUD_ACCOUNT).status_code == 404
    physical = f"/v1/providers/{scene.provider.provider_id}/cloud-account"
    assert scene.owner.post(physical, CLOUD_ACCOUNT).json()["code"] == "not_a_cloud_provider"
    # The address is data, and in no log.
    with scene.service.connect() as connection:
        held = connection.execute(
            "SELECT count(*) FROM market_events WHERE convert_from(state, 'UTF8') LIKE %s",
            (f"%{EMAIL}%",),
        ).fetchone()
    assert held == (0,)


def test_c_27_a_report_that_is_refused_changes_no_address(scene: Scene) -> None:
    provider = scene.owner.made("/v1/providers", GCP)["provider_id"]
    path = f"/v1/providers/{provider}/cloud-account"
    scene.owner.made(path, {**CLOUD_ACCOUNT, "service_account": EMAIL})
    wrong = {"service_account": f"other-{EMAIL}", "project_made_on": "2099-01-01"}
    refused = scene.owner.post(path, {**CLOUD_ACCOUNT, **wrong})
    assert (refused.status_code, refused.json()["code"]) == (422, "checklist_invalid")
    assert scene.owner.read(path)["service_account"] == EMAIL


def test_c_27_a_key_file_is_refused_wherever_it_is_pasted(scene: Scene) -> None:
    provider = scene.owner.made("/v1/providers", GCP)["provider_id"]
    path = f"/v1/providers/{provider}/cloud-account"
    head = scene.head()
    sent: list[tuple[str, Any]] = [
        (path, json.loads(KEY_FILE)),
        (path, {**CLOUD_ACCOUNT, "service_account": KEY_FILE}),
        (path, {**CLOUD_ACCOUNT, "project_id": KEY}),
        (path, {**CLOUD_ACCOUNT, "done": [KEY]}),
        (path, {**CLOUD_ACCOUNT, "key": json.loads(KEY_FILE)}),
        ("/v1/jobs", scene.job(command=["run", "--key", KEY])),
        ("/v1/jobs", scene.job(env_refs=[KEY_FILE])),
        ("/v1/regions", {"provider_id": provider, **REGION, "name": KEY}),
    ]
    for where, body in sent:
        caller = scene.renter if where == "/v1/jobs" else scene.owner
        refused = caller.post(where, body)
        assert (refused.status_code, refused.json()["code"]) == (422, "private_key_sent"), where
        assert "MIIEvQ" not in refused.text
    assert scene.head() == head, "nothing was recorded"


# --- C-28 ------------------------------------------------------------------------------------


def test_c_28_there_are_ten_regions_and_quotas_are_shown_as_limit_and_used(
    scene: Scene, cloud: Provider
) -> None:
    listed = scene.owner.read("/v1/cloud-regions")
    names = {one["name"] for one in listed["data"]}
    assert (len(listed["data"]), len(names), listed["from_day"]) == (10, 10, "2023-01-01")
    other = {**REGION, "provider_id": cloud.provider_id, "name": "n", "cloud_region": "us-south1"}
    refused = scene.owner.post("/v1/regions", other)
    assert (refused.status_code, refused.json()["code"]) == (409, "cloud_region")
    assert "`tallystick cloud regions`" in refused.json()["detail"]
    path = f"/v1/regions/{cloud.region_id}/cloud-quotas"
    scene.owner.made(path, _quotas(8))
    lease = scene.lease(job=scene.job(gpu_count=2, **JOB))
    assert lease["node_id"] == cloud.node_id
    told = scene.owner.read(path)
    (row,) = told["gpus"]
    assert (row["limit"], row["used"], row["runnable_jobs"]) == (8, 2, 6)
    assert (told["cpus"]["used"], told["local_ssd_gb"]["used"]) == (24, 750)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    assert scene.owner.read(path)["gpus"][0]["used"] == 0


def test_c_28_a_lease_is_refused_by_the_quota_and_starts_when_another_one_ends(
    scene: Scene, cloud: Provider
) -> None:
    """C-26 as a constraint of the match: of the GPUs, the CPUs and the disk."""
    path = f"/v1/regions/{cloud.region_id}/cloud-quotas"
    body = {"job": scene.job(**JOB)}
    none = scene.renter.post("/v1/leases", body)
    assert (none.status_code, none.json()["code"]) == (409, "no_match"), "nothing was reported"
    assert "cloud quotas" in none.json()["detail"]
    for quotas in (
        _quotas(0),
        {**_quotas(8), "cpus": _free(11)},
        {**_quotas(8), "local_ssd_gb": _free(374)},
        {**_quotas(8), "gpus": [{"gpu": "V100", **_free(8)}]},
    ):
        scene.owner.made(path, quotas)
        told = scene.renter.made("/v1/quotes", body)
        refusing = [one for one in told["dimensions"] if one["dimension"] == "cloud_quota"]
        assert refusing[0]["nodes_left"] == 0
        assert scene.renter.post("/v1/leases", body).status_code == 409
    scene.owner.made(path, _quotas(1))
    first = scene.lease(job=scene.job(**JOB))
    full = scene.renter.post("/v1/leases", body)
    assert (full.status_code, full.json()["facts"]["dimension"]) == (409, "cloud_quota")
    scene.renter.made(f"/v1/leases/{first['lease_id']}/close")
    assert scene.lease(job=scene.job(**JOB))["node_id"] == cloud.node_id


def test_c_28_a_request_waits_for_the_quota_in_a_pool_that_keeps_a_queue(
    scene: Scene, cloud: Provider
) -> None:
    policy = {"scheduler": "drf"}
    pool = scene.owner.made("/v1/pools", {"name": "clouds", "policy": policy})["pool_id"]
    scene.owner.made(f"/v1/pools/{pool}/nodes", {"node_id": cloud.node_id})
    scene.owner.made(f"/v1/regions/{cloud.region_id}/cloud-quotas", _quotas(1))
    asked = scene.job(**JOB, constraints={"pool_id": pool})
    first, second = scene.lease(job=asked), scene.lease(job=asked)
    assert (first["state"], second["state"]) == ("reserved", "requested"), "the second waits"
    assert len(scene.renter.read(f"/v1/pools/{pool}/queue")["data"]) == 1
    run(scene)
    assert len(scene.renter.read(f"/v1/pools/{pool}/queue")["data"]) == 1, "still full"
    scene.renter.made(f"/v1/leases/{first['lease_id']}/close")
    run(scene)
    assert scene.renter.read(f"/v1/leases/{second['lease_id']}")["state"] == "reserved"


# --- C-39 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["lease", "gang", "quote", "month", "plan"])
@pytest.mark.parametrize("overflow", ["refuse", "rent"])
def test_c_39_where_the_cloud_quota_is_full_the_project_says_whether_a_job_runs_elsewhere(
    scene: Scene, cloud: Provider, overflow: str, how: str
) -> None:
    owner = scene.owner
    policies = f"/v1/accounts/{owner.account_id}/projects"
    owner.made(policies, {"project_id": "burst", "overflow": overflow})
    owner.made(f"/v1/regions/{cloud.region_id}/cloud-quotas", _quotas(1))
    elsewhere = Provider(scene, scene.rival, "elsewhere", MODEL, 2_000_000)
    job = scene.job(**JOB, project_id="burst")
    assert scene.lease(owner, job=job)["node_id"] == cloud.node_id
    path = "/v1/leases"
    asked: dict[str, Any] = {"job": job}
    if how == "gang":
        path, asked = "/v1/gangs", {"job": job, "members": 2}
    elif how == "quote":
        path = "/v1/lease-quotes"
    elif how == "month":
        asked["pricing"] = {"module": "reserved", "months": 1}
        scene.deposit(owner, 5_000_000_000)
        price = {"asset": "CREDIT", "units": "2000000"}
        line = {"months": 1, "price_per_gpu_hour": price, "refund_ppm": 0}
        for provider in (cloud, elsewhere):
            listed = f"/v1/offers/{provider.offer_id}/prices"
            provider.owner.made(listed, {"reserved": [line]})
    elif how == "plan":
        owner.made("/v1/jobs", {**job, "plan": {"chunks": 1}})
        with scene.service.connect() as connection:
            run_plans(scene.service, connection, scene.clock.now_us())
        nodes = {one["node_id"] for one in owner.read("/v1/leases")["data"] if "node_id" in one}
        is_elsewhere = elsewhere.node_id in nodes
        assert is_elsewhere is (overflow == "rent"), nodes
        return
    second = owner.post(path, asked)
    if overflow == "refuse":
        assert (second.status_code, second.json()["code"]) == (409, "base_full")
        return
    if how == "quote":
        assert second.json()["node_id"] == elsewhere.node_id
        return
    leases = second.json()["lease_ids"] if how == "gang" else [second.json()["lease_id"]]
    nodes = {owner.read(f"/v1/leases/{one}")["node_id"] for one in leases}
    assert nodes == {elsewhere.node_id}


# --- C-29 ------------------------------------------------------------------------------------


def test_c_29_capacity_classes_are_set_matched_priced_searched_and_told(scene: Scene) -> None:
    node, owner = scene.provider.node_id, scene.owner
    path = f"/v1/nodes/{node}/capacity-class"
    assert owner.read(f"/v1/nodes/{node}")["capacity_class"] == "on_demand"
    owner.made(path, {"capacity_class": "preemptible"})
    assert owner.read(f"/v1/nodes/{node}")["capacity_class"] == "preemptible"
    shown = scene.anybody.read(f"/v1/offers/{scene.provider.offer_id}")
    assert shown["supply"]["capacity_class"] == "preemptible"
    # A lease that does not say so never gets it, although it is the cheapest.
    assert scene.lease()["node_id"] == scene.other.node_id
    # Its price is an interruptible offer's: an offer that takes no pauses is refused.
    price = {"asset": "CREDIT", "units": "500000"}
    offer = {"provider_id": scene.provider.provider_id, "node_id": node}
    plain = owner.post("/v1/offers", {**offer, "price_per_gpu_hour": price})
    assert (plain.status_code, plain.json()["code"]) == (409, "capacity_class")
    terms = {"interruptible": True}
    owner.made("/v1/offers", {**offer, "price_per_gpu_hour": price, "terms": terms})
    demands = {"capacity_classes": ["preemptible"], "interruptible": True}
    spot = scene.lease(job=scene.job(constraints=demands))
    assert (spot["node_id"], spot["price_per_gpu_hour"]) == (node, price)
    ready = f"/v1/nodes/{node}/assignments/{spot['lease_id']}/ready"
    scene.provider.node.made(ready)
    assert scene.renter.made(f"/v1/leases/{spot['lease_id']}/pause")["state"] == "paused"
    bare = scene.renter.post(
        "/v1/leases", {"job": scene.job(constraints={"capacity_classes": ["preemptible"]})}
    )
    assert (bare.status_code, bare.json()["code"]) == (422, "constraint_invalid")
    # Searched.
    found = scene.anybody.read("/v1/offers", capacity_class="preemptible")["data"]
    assert {one["node_id"] for one in found} == {node}
    found = scene.anybody.read("/v1/offers", capacity_class="committed")["data"]
    assert found == []
    # Committed is there to stay: it takes plain leases, and those that ask for it.
    committed = f"/v1/nodes/{scene.other.node_id}/capacity-class"
    scene.rival.made(committed, {"capacity_class": "committed"})
    assert scene.lease()["node_id"] == scene.other.node_id
    asked = scene.job(constraints={"capacity_classes": ["on_demand"]})
    none = scene.renter.post("/v1/leases", {"job": asked})
    assert none.json()["facts"]["dimension"] == "capacity"


def test_c_29_machines_of_google_cloud_are_on_demand_only(scene: Scene, cloud: Provider) -> None:
    path = f"/v1/nodes/{cloud.node_id}/capacity-class"
    for name in ("preemptible", "committed"):
        refused = scene.owner.post(path, {"capacity_class": name})
        assert (refused.status_code, refused.json()["code"]) == (409, "capacity_class")
    assert scene.rival.post(path, {"capacity_class": "committed"}).status_code == 404
    scene.owner.made(path, {"capacity_class": "on_demand"})


def test_a_gang_takes_no_more_than_the_quota_of_a_cloud_and_the_rest_goes_elsewhere(
    scene: Scene, cloud: Provider
) -> None:
    scene.owner.made(f"/v1/regions/{cloud.region_id}/cloud-quotas", _quotas(1))
    elsewhere = Provider(scene, scene.rival, "elsewhere", MODEL, 2_000_000)
    gang = scene.renter.made("/v1/gangs", {"job": scene.job(**JOB), "members": 2})
    nodes = [scene.renter.read(f"/v1/leases/{one}")["node_id"] for one in gang["lease_ids"]]
    assert sorted(nodes) == sorted([cloud.node_id, elsewhere.node_id])
