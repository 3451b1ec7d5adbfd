"""From nothing to a node that reports: the owner's command line, the operator's, and a real
`tallystick-node` process, all against one running server.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.door.moments import moment
from domain.money import credit
from domain.prices.tariff import CLOUDBENDER, UsageFee, publish
from node_reporter.gpus import simulated
from node_reporter.identity import key_id, load_key, public_key
from node_reporter.reports.reports import AGENT
from tests.cli.test_remote import Server
from tests.cli.test_remote import development_server as server
from tests.processes import WITH_STACKS, ended, until
from tests.scenes.server import Scene
from tests.scenes.work import hours_of_work

__all__ = ["server"]

ROOT = Path(__file__).parents[2]
MODEL = "NVIDIA A100-PCIE-80GB"


def node(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `tallystick-node` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "node_reporter", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@dataclass
class Owner:
    """Who has a region and machines to put into it."""

    server: Server
    key: str
    provider_id: str
    region_id: str

    @classmethod
    def of(cls, server: Server, *region: str) -> Owner:
        _, key = server.account()
        provider = server.run(
            "provider", "register", "--payment-mode", "credits", "--json", key=key
        ).document["provider_id"]
        words = ("region", "open", provider, "--name", "home", *region, "--json")
        return cls(server, key, provider, server.run(*words, key=key).document["region_id"])

    def joined(self, state: Path, *sim: object) -> dict[str, Any]:
        """A machine that asked to join: what it printed."""
        code = self.server.run("node", "code", self.region_id, "--json", key=self.key).document
        where = (self.server.url, code["code"], "--state", state)
        done = node("join", *where, "--backend", "sim", *sim, "--json")
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def confirmed(self, state: Path, *sim: object) -> str:
        """A machine whose key the owner has compared."""
        told = self.joined(state, *sim)
        words = ("node", "confirm", told["node_id"], "--fingerprint", told["fingerprint"], "--json")
        assert self.server.run(*words, key=self.key).document["phase"] == "confirmed"
        return str(told["node_id"])

    def active(self, state: Path, *sim: object) -> str:
        node_id = self.confirmed(state, *sim)
        self.server.run("node", "admit", node_id)
        self.server.run("node", "activate", node_id, key=self.key)
        return node_id

    def reports(self, node_id: str) -> int:
        """How many reports of the node the log holds."""
        return int(read(self.server, f"/v1/nodes/{node_id}/usage")["reports"])


def read(server: Server, path: str) -> dict[str, Any]:
    """What the operator sees there."""
    headers = {"Authorization": f"Bearer {server.operator_key}"}
    answer = httpx.get(f"{server.url}{path}", headers=headers)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def run(state: Path, *more: str, cwd: Path = ROOT) -> subprocess.Popen[str]:
    command = [*WITH_STACKS, "-m", "node_reporter", "run", "--state", str(state)]
    command += ["--backend", "sim", "--tick", "100", "--interval", "1", *more]
    return subprocess.Popen(command, cwd=cwd, stderr=subprocess.PIPE, text=True)


def stop(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGTERM)
    return str(ended(process)[1])


def test_a_machine_joins_is_compared_confirmed_admitted_and_reports(
    server: Server, tmp_path: Path
) -> None:
    owner = Owner.of(server)
    told = owner.joined(tmp_path)
    node_id = told["node_id"]
    shown = server.run("node", "show", node_id, "--json", key=owner.key).document
    assert shown["fingerprint"] == told["fingerprint"]
    assert [one["model"] for one in shown["specs"]["devices"]] == ["NVIDIA H200"]
    wrong = ("node", "confirm", node_id, "--fingerprint", "0" * 32)
    assert server.run(*wrong, key=owner.key).code == 1
    assert server.run("node", "admit", node_id).code == 1, "nobody compared the key yet"
    early = run(tmp_path)
    lines = early.stderr
    assert lines is not None
    until(
        lambda: (
            f"not confirmed yet: compare the fingerprint, then `tallystick node confirm"
            f" {node_id}" in lines.readline()
        )
    )
    stop(early)
    right = ("node", "confirm", node_id, "--fingerprint", told["fingerprint"])
    assert server.run(*right, key=owner.key).code == 0
    assert server.run("node", "admit", node_id, key=owner.key).code == 1, "not the owner's to say"
    assert server.run("node", "admit", node_id).code == 0
    running = run(tmp_path)
    until(lambda: owner.reports(node_id) > 0)
    stop(running)
    assert running.returncode == 0
    again = node("join", server.url, "AAAAAAAA", "--state", tmp_path, "--backend", "sim")
    assert again.returncode == 1, "a folder holds one node"


@pytest.mark.slow("::test_a_machine_joins_is_compared_confirmed_admitted_and_reports")
def test_a_node_changes_its_key_and_goes_on_in_the_same_chain(
    server: Server, tmp_path: Path
) -> None:
    owner = Owner.of(server)
    node_id = owner.active(tmp_path)
    before = key_id(public_key(load_key(tmp_path / "signing.key")))
    running = run(tmp_path)
    until(lambda: owner.reports(node_id) > 0)
    busy = node("rotate", "--state", tmp_path)
    assert busy.returncode == 1, "the agent that runs signs with the key it has"
    stop(running)
    done = node("rotate", "--state", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    after = key_id(public_key(load_key(tmp_path / "signing.key")))
    assert (told["key_id"], told["told"]) == (after, True)
    assert not (tmp_path / "signing.key.next").exists()
    count = owner.reports(node_id)
    running = run(tmp_path)
    until(lambda: owner.reports(node_id) > count)
    stop(running)
    shown = server.run("node", "show", node_id, "--json", key=owner.key).document
    assert shown["key_id"] == after != before
    assert read(server, f"/v1/nodes/{node_id}/usage")["reports_flagged"] == 0
    keys = read(server, f"/v1/nodes/{node_id}/keys")["data"]
    assert [key["key_id"] for key in keys] == [before, after]


def test_a_node_whose_key_was_taken_back_keeps_its_spool_and_says_so(
    server: Server, tmp_path: Path
) -> None:
    owner = Owner.of(server)
    node_id = owner.active(tmp_path)
    assert server.run("node", "revoke", node_id, "--json", key=owner.key).code == 0
    running = run(tmp_path)
    assert running.stderr is not None
    line = ""
    while "revoked" not in line:
        line = running.stderr.readline()
        assert line, "it ended without a word"
    running.send_signal(signal.SIGTERM)
    ended(running)
    assert running.returncode == 0
    assert owner.reports(node_id) == 0
    refused = node("rotate", "--state", tmp_path)
    assert (refused.returncode, "does not take" in refused.stderr) == (1, True)


def test_r_18_a_device_that_joins_through_two_agents_is_counted_once(
    server: Server, tmp_path: Path
) -> None:
    """Two agents on one machine, each with a key of its own, tell of the same two GPUs."""
    owner = Owner.of(server)
    sim = ("--sim-gpus", 2, "--sim-seed", "one-machine")
    first = owner.active(tmp_path / "one", *sim)
    second = owner.confirmed(tmp_path / "two", *sim)
    refused = server.run("node", "admit", second, "--json")
    assert (refused.code, refused.document["code"]) == (1, "device_elsewhere")
    assert refused.document["facts"]["device_id"] == simulated.device_uuid("one-machine", 0)
    devices = read(server, "/v1/devices")["data"]
    ids = [simulated.device_uuid("one-machine", index) for index in range(2)]
    assert {one["device_id"]: one["node_id"] for one in devices} == dict.fromkeys(ids, first)
    assert len(devices) == 2


@pytest.mark.slow(
    "::test_a_machine_joins_is_compared_confirmed_admitted_and_reports",
    "tests/node_reporter/programs/test_program.py::test_doctor_tells_what_a_gpu_can_and_cannot_say",
    "tests/node_reporter/agent/test_doctor.py::test_what_the_server_says_comes_with_what_to_do",
)
def test_doctor_says_of_each_step_of_joining_what_comes_next(
    server: Server, tmp_path: Path
) -> None:
    def doctored() -> tuple[int, dict[str, dict[str, str]], dict[str, Any]]:
        done = node("doctor", "--state", state, "--backend", "sim", "--json")
        told = json.loads(done.stdout)
        return done.returncode, {check["name"]: check for check in told["checks"]}, told

    state = tmp_path / "node"
    owner = Owner.of(server)
    assert doctored()[1]["joined"]["todo"] == "tallystick-node join URL CODE"
    told = owner.joined(state)
    _, checks, _ = doctored()
    assert (checks["joined"]["said"], checks["server"]["state"]) == ("joining", "ok")
    assert f"node confirm {told['node_id']} --fingerprint" in checks["joined"]["todo"]
    assert told["fingerprint"] in checks["key"]["said"]
    words = ("node", "confirm", told["node_id"], "--fingerprint", told["fingerprint"])
    server.run(*words, key=owner.key)
    assert doctored()[1]["joined"]["said"] == "confirmed"
    server.run("node", "admit", told["node_id"])
    server.run("node", "activate", told["node_id"], key=owner.key)
    code, checks, result = doctored()
    assert (code, checks["joined"]["state"], checks["clock"]["state"]) == (0, "ok", "ok")
    shown = server.run("node", "show", told["node_id"], "--json", key=owner.key).document
    assert result["verdict"]["joinable"] is True
    assert result["verdict"]["failing"] == shown["verdict"]["failing"]
    assert f" active  {AGENT}" in server.run("node", "list", key=owner.key).out
    server.run("node", "revoke", told["node_id"], key=owner.key)
    assert f" revoked  {AGENT}" in server.run("node", "list", key=owner.key).out
    code, checks, _ = doctored()
    assert (code, checks["server"]["state"]) == (1, "failed")
    assert "join anew" in checks["server"]["todo"]


def test_k_14_the_version_of_a_nodes_client_is_told_at_joining_and_after_every_upgrade(
    scene: Scene,
) -> None:
    provider = scene.provider
    path = f"/v1/nodes/{provider.node_id}"
    joined = scene.owner.read(path)
    specs = {name: joined["specs"][name] for name in ("devices", "host", "hardware")}
    assert joined["agent"], "the node said it with its first contact"
    provider.node.made(f"{path}/specs", {**specs, "agent": "0.2.0"})
    assert scene.operator.read(path)["agent"] == "0.2.0"
    facts = scene.head()
    provider.node.made(f"{path}/specs", {**specs, "agent": "0.2.0"})
    provider.node.made(f"{path}/specs", specs)
    assert scene.head() == facts, "the same again is nothing new"
    assert scene.owner.read(path)["agent"] == "0.2.0"


def test_a_node_is_told_what_it_earned_today_and_of_no_other_node(scene: Scene) -> None:
    hours_of_work(scene)
    path = f"/v1/nodes/{scene.provider.node_id}/earnings/today"
    told = scene.provider.node.read(path)
    assert told["day"].startswith("2026-11-20")
    assert told["earned"] == {"asset": "CREDIT", "units": "875000"}
    assert told["gpu_us"] == str(3_600_000_000)
    assert scene.owner.read(path)["earned"] == told["earned"]
    assert scene.other.node.get(path).status_code == 404
    scene.clock.advance(24 * 3_600_000_000)  # type: ignore[attr-defined]
    assert scene.provider.node.read(path)["earned"]["units"] == "0"


def test_k_6_who_lets_a_machine_in_is_the_regions_to_say_and_so_is_how_safe_it_is(
    scene: Scene,
) -> None:
    """Two regions of one owner; the one that is open to everybody promises more."""

    def region(name: str, admission: str, tier: int) -> str:
        body = {
            "provider_id": scene.provider.provider_id,
            "name": name,
            "storage_mode": "local",
            "setting": "edge",
            "admission": admission,
            "allow_public_jobs": True,
        }
        region_id = str(scene.owner.made("/v1/regions", body)["region_id"])
        policy = {"allow_public_jobs": True, "security_tier": tier}
        scene.owner.made(f"/v1/regions/{region_id}/policy", policy)
        return region_id

    def confirmed(name: str, region_id: str) -> str:
        code = scene.owner.made("/v1/nodes/join-codes", {"region_id": region_id})["code"]
        told = scene.provider.joining(code, MODEL, sha256(name.encode()).hexdigest())
        told["devices"] = [{**told["devices"][0], "device_id": f"GPU-{name}"}]
        node_id = str(scene.anybody.made("/v1/nodes/join", told)["node_id"])
        scene.owner.made(f"/v1/nodes/{node_id}/confirm", {"key_id": told["key_id"]})
        return node_id

    closed = confirmed("closed", region("closed", "operator", 0))
    free = confirmed("free", region("free", "permissionless", 3))
    refused = scene.owner.post(f"/v1/nodes/{closed}/admit")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_permitted")
    scene.owner.made(f"/v1/nodes/{free}/admit")
    scene.operator.made(f"/v1/nodes/{closed}/admit")
    for node_id in (closed, free):
        scene.owner.made(f"/v1/nodes/{node_id}/activate")
        body = {
            "provider_id": scene.provider.provider_id,
            "node_id": node_id,
            "price_per_gpu_hour": {"asset": "CREDIT", "units": "1000000"},
        }
        scene.owner.made("/v1/offers", body)
    lease = scene.lease(job=scene.job(constraints={"security_tier": 2}))
    assert lease["node_id"] == free
    more = {"job": scene.job(constraints={"security_tier": 4})}
    assert scene.renter.post("/v1/leases", more).json()["code"] == "no_match"


MACHINES = (
    ("spark", "nvidia", "NVIDIA GB10", "unified", "aarch64"),
    ("studio", "apple", "Apple M3 Max", "unified", "arm64"),
    ("desktop", "amd", "AMD Radeon RX 7900 XTX", "dedicated", "x86_64"),
)


def test_k_15_small_machines_of_any_processor_join_and_unified_memory_is_no_second_memory(
    scene: Scene,
) -> None:
    """A DGX Spark, an Apple and an AMD desktop: each is found by its processor and rented."""
    _price_small_machines(scene)
    nodes = {name: _small(scene, name, *what) for name, *what in MACHINES}
    for name, vendor, model, memory, arch in MACHINES:
        told = scene.owner.read(f"/v1/devices/GPU-{name}")
        assert (told["vendor"], told["model"], told["memory"]) == (vendor, model, memory)
        assert scene.owner.read(f"/v1/nodes/{nodes[name]}")["specs"]["host"]["arch"] == arch
        job = scene.job(models=[model], constraints={"arch": arch})
        assert scene.lease(job=job)["node_id"] == nodes[name]
    elsewhere = scene.job(models=["Apple M3 Max"], constraints={"arch": "x86_64"})
    refused = scene.renter.post("/v1/leases", {"job": elsewhere})
    assert refused.json()["code"] in ("match_impossible", "no_match")


def _price_small_machines(scene: Scene) -> None:
    now_us = scene.clock.now_us()
    fees = (*CLOUDBENDER.usage_fees, UsageFee("unified", credit(20_000)))
    command = publish(
        replace(CLOUDBENDER, usage_fees=fees),
        version=2,
        effective_from_us=now_us,
        by="operator",
        at_us=now_us,
    )
    scene.service.ledger.handle([command], key=None, now_us=now_us)
    soon = moment(now_us + 1_000_000)
    classed = (("nvidia", "GB10", "unified"), ("amd", "Radeon RX 7900 XTX", "development"))
    for vendor, model, gpu_class in classed:
        body = {"vendor": vendor, "model": model, "gpu_class": gpu_class, "effective_from": soon}
        scene.operator.made("/v1/resource-kinds/models", body)
    scene.clock.advance(2_000_000)  # type: ignore[attr-defined]


def _small(scene: Scene, name: str, vendor: str, model: str, memory: str, arch: str) -> str:
    """A machine with one accelerator and a processor of its own kind, offered."""
    region = {"region_id": scene.provider.region_id}
    code = scene.owner.made("/v1/nodes/join-codes", region)["code"]
    told = scene.provider.joining(code, model, sha256(name.encode()).hexdigest())
    shared = {"memory": memory} if memory == "unified" else {}
    told["devices"] = [
        {
            **told["devices"][0],
            "device_id": f"GPU-{name}",
            "vendor": vendor,
            "memory_mib": 24_576,
            **shared,
        }
    ]
    told["host"] = {**told["host"], "arch": arch}
    node_id = str(scene.anybody.made("/v1/nodes/join", told)["node_id"])
    scene.owner.made(f"/v1/nodes/{node_id}/confirm", {"key_id": told["key_id"]})
    scene.operator.made(f"/v1/nodes/{node_id}/admit")
    scene.owner.made(f"/v1/nodes/{node_id}/activate")
    body = {
        "provider_id": scene.provider.provider_id,
        "node_id": node_id,
        "price_per_gpu_hour": {"asset": "CREDIT", "units": "1000000"},
    }
    scene.owner.made("/v1/offers", body)
    return node_id
