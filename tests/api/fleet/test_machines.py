"""What kind of machine a job gets: kernel, network, what the node runs on, what it can run."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from nacl.signing import SigningKey

from api.door.moments import moment
from domain.fleet.node import NodeJoinRequested
from domain.metering import report
from domain.trust.attribute import message_for
from tests.api.jobs.test_plans import parts, tick
from tests.scenes.server import NOW_US, Scene
from tests.scenes.work import MINUTE_US, reported, send

CAPABILITIES = ["docker", "cuda-remoting", "cudnn"]


def machine(scene: Scene, name: str, host: dict[str, Any], **terms: Any) -> str:
    """An active node of the owner's with this host, and an offer with these terms, at 1 credit."""
    code = scene.owner.made("/v1/nodes/join-codes", {"region_id": scene.provider.region_id})["code"]
    joining = scene.provider.joining(code, "A100", hashlib.sha256(name.encode()).hexdigest())
    devices = [
        {**one, "device_id": f"GPU-{name}-{at}", "model": "NVIDIA A100-PCIE-80GB"}
        for at, one in enumerate(joining["devices"])
    ]
    told = {**joining, "devices": devices, "host": {**joining["host"], **host}}
    node_id = str(scene.anybody.made("/v1/nodes/join", told)["node_id"])
    path = f"/v1/nodes/{node_id}"
    scene.owner.made(f"{path}/confirm", {"key_id": told["key_id"]})
    scene.operator.made(f"{path}/admit")
    scene.owner.made(f"{path}/activate")
    body = {
        "provider_id": scene.provider.provider_id,
        "node_id": node_id,
        "fractions": True,
        "price_per_gpu_hour": {"asset": "CREDIT", "units": "1000000"},
    }
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
        scene,
        "recent",
        {"kernel": "6.1.0-13-amd64", "substrate": ["esxi", "kubernetes"]},
        network_class="switched",
        capabilities=CAPABILITIES,
    )
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
    specs = {name: told[name] for name in ("devices", "hardware")}
    scene.provider.node.made(path, {**specs, "host": host})
    assert scene.renter.made("/v1/leases", body)["node_id"] == scene.provider.node_id


def test_v_17_a_program_that_a_tool_parts_is_several_leases_of_one_job(scene: Scene) -> None:
    """One program, one remoting session, a lease for each part; their costs are the job's."""
    under = machine(
        scene, "under", {"substrate": ["esxi", "kubernetes"]}, capabilities=CAPABILITIES
    )
    demands = {"substrate": "kubernetes", "capabilities": ["cuda-remoting"]}
    job_id = scene.renter.made("/v1/jobs", scene.job(constraints=demands))["job_id"]
    node = scene.provider.node
    leases = []
    for part in ("tensorflow", "rest of the program"):
        body = {"job_id": job_id, "remoting_session_id": "session-7", "split_label": part}
        leases.append(scene.renter.made("/v1/leases", body))
    assert {lease["node_id"] for lease in leases} == {under}
    assert len({lease["lease_id"] for lease in leases}) == 2
    told = [scene.renter.read(f"/v1/leases/{lease['lease_id']}") for lease in leases]
    assert {one["job_id"] for one in told} == {job_id}
    health = scene.renter.read(f"/v1/leases/{leases[0]['lease_id']}/health")
    assert health["acceptor"]["substrate"] == ["esxi", "kubernetes"]
    assert scene.renter.read(f"/v1/jobs/{job_id}/cost")["leases"] == 2
    assert node.get(f"/v1/nodes/{under}/assignments").status_code == 404, "another node's"


@pytest.mark.parametrize("kind", ["batch", "queue"])
def test_j_9_containers_in_batches_run_where_docker_is_and_each_is_done_once(
    scene: Scene, kind: str
) -> None:
    """Nobody names a machine: chunks of an image, or tasks that its members pull."""
    able = machine(scene, "able", {}, capabilities=["docker"])
    plan = (
        {"chunks": 2}
        if kind == "batch"
        else {"min_members": 0, "max_members": 2, "tasks_per_member": 1}
    )
    job = scene.job(
        kind=kind, image="registry/score:1", plan=plan, constraints={"capabilities": ["docker"]}
    )
    job_id = scene.renter.made("/v1/jobs", job)["job_id"]
    if kind == "queue":
        tasks = [{"task_id": f"t{number}", "payload": f"s3://in/{number}"} for number in range(2)]
        scene.renter.made(f"/v1/jobs/{job_id}/tasks", {"tasks": tasks})
    while tick(scene):
        pass
    found = parts(scene, job_id)
    leases = [scene.renter.read(f"/v1/leases/{one['lease_id']}") for one in found]
    assert [lease["node_id"] for lease in leases] == [able, able]
    pending = scene.owner.read(f"/v1/nodes/{able}/assignments")["pending"]
    assert {one["work"]["image"] for one in pending} == {"registry/score:1"}


def test_r_18_a_device_that_joins_through_two_agents_is_counted_once(scene: Scene) -> None:
    """Each agent has a key and a client of its own; the hardware's identity is one."""
    devices = scene.provider.joining("", "NVIDIA A100-PCIE-80GB")["devices"]
    before = len(scene.operator.read("/v1/devices")["data"])
    code = scene.owner.made("/v1/nodes/join-codes", {"region_id": scene.provider.region_id})["code"]
    client = scene.client()
    second = scene.provider.joining(code, "", hashlib.sha256(b"second agent").hexdigest())
    body = {**second, "devices": devices, "client_id": client.account_id}
    head = scene.head()
    unknown = scene.anybody.post("/v1/nodes/join", {**body, "client_id": scene.renter.account_id})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "client_unknown")
    scene.operator.made(f"/v1/clients/{client.account_id}/suspend")
    suspended = scene.anybody.post("/v1/nodes/join", body)
    assert (suspended.status_code, suspended.json()["code"]) == (403, "client_not_authorised")
    scene.operator.made(f"/v1/clients/{client.account_id}/resume")
    assert scene.head() == head + 2, "a join that is refused leaves nothing, and uses no code"
    node_id = scene.anybody.made("/v1/nodes/join", body)["node_id"]
    joined = [
        fact
        for fact in facts_of(scene, NodeJoinRequested)
        if fact.node_id in (node_id, scene.provider.node_id)
    ]
    assert [fact.client_id for fact in joined] == [None, client.account_id], "each by its client"
    told = [scene.owner.read(f"/v1/nodes/{one.node_id}") for one in joined]
    assert [one.get("client_id") for one in told] == [None, client.account_id]
    scene.owner.made(f"/v1/nodes/{node_id}/confirm", {"key_id": second["key_id"]})
    refused = scene.operator.post(f"/v1/nodes/{node_id}/admit").json()
    assert refused["code"] == "device_elsewhere"
    assert len(scene.operator.read("/v1/devices")["data"]) == before, "counted once"


def facts_of(scene: Scene, kind: type[Any]) -> list[Any]:
    """Every fact of a kind, in order."""
    found, after = [], 0
    while page := scene.service.ledger.market.read_facts(after, 500):
        found += [one.fact for one in page if isinstance(one.fact, kind)]
        after = page[-1].position
    return found


def test_k_4_what_is_known_of_a_machines_speed_is_told_before_buying_with_who_says_it(
    scene: Scene,
) -> None:
    """A class, a link, a promise, a measurement and a third party's word: each by its source."""
    clock: Any = scene.clock
    signed = _stated(scene)
    scene.owner.made("/v1/attributes", signed)
    told = scene.provider.joining("", "NVIDIA A100-PCIE-80GB")
    devices = [
        {**one, "pcie_gen": 4, "pcie_lanes": lanes}
        for one, lanes in zip(told["devices"], (16, 8), strict=True)
    ]
    specs = {"devices": devices, "host": told["host"], "hardware": told["hardware"]}
    scene.provider.node.made(f"/v1/nodes/{scene.provider.node_id}/specs", specs)
    clock.advance(MINUTE_US)
    rows = tuple(
        report.Row(
            device=index,
            lease=None,
            driver_epoch=1,
            mono_start_us=0,
            len_us=MINUTE_US,
            wall_minus_mono_us=NOW_US,
            available_us=MINUTE_US,
            unavailable_us=0,
            unknown_us=0,
            samples=60,
            throttle_power_ns=index * 15_000_000_000,
            throttle_thermal_ns=0,
        )
        for index in range(2)
    )
    both = tuple(report.Device(id=each) for each in scene.provider.device_ids)
    body = reported(
        scene.provider, devices=both, rows=rows, mono_us=MINUTE_US, wall_us=NOW_US + MINUTE_US
    )
    assert send(scene, scene.provider, body).is_success
    expected = [
        {"name": "gpu_class", "value": "datacenter", "source": "registry"},
        {"name": "pcie_megatransfers", "value": str(8 * 16_000), "source": "inventory"},
        {"name": "throttled_ppm", "value": "125000", "source": "reports"},
        {
            "name": "benchmark.resnet50",
            "value": "1410",
            "source": "statement",
            "signer_account_id": scene.stranger.account_id,
        },
    ]
    offer = scene.anybody.read(f"/v1/offers/{scene.provider.offer_id}")
    assert offer["supply"]["performance"] == expected
    quote = scene.renter.made("/v1/quotes", {"job": scene.job()})["offered"]
    assert quote["performance"] == expected
    other = scene.anybody.read(f"/v1/offers/{scene.other.offer_id}")["supply"]["performance"]
    assert [one["source"] for one in other] == ["registry", "inventory"], (
        "what nobody says is left out"
    )


def _stated(scene: Scene) -> dict[str, Any]:
    """A benchmark of the provider's node, signed by the stranger."""
    node_id, name, value = scene.provider.node_id, "benchmark.resnet50", "1410"
    key = SigningKey(hashlib.sha256(b"a lab").digest())
    message, told_at = message_for(node_id, name, value, NOW_US, None), moment(NOW_US)
    path = f"/v1/accounts/{scene.stranger.account_id}/signing-keys"
    key_id = scene.stranger.made(path, {"public_key": bytes(key.verify_key).hex()})["key_id"]
    return {
        "subject_id": node_id,
        "name": name,
        "value": value,
        "key_id": key_id,
        "signer_account_id": scene.stranger.account_id,
        "signature": key.sign(message).signature.hex(),
        "stated_at": told_at,
    }
