"""A region of machines at home, from its wait list to what their owners see: production's rules.

Everything goes through the API but the tariff and the places of addresses, which an operator sets
when the server starts.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from api.metering.capacity_timer import PROOF_WAIT_US, run_capacity
from api.process.geography import GeographyUnreadable, PlacesFile
from domain.duration import DAY_US, HOUR_US
from domain.fleet import keys as node_key
from domain.money import PPM
from domain.prices.tariff import HOME, publish
from tests.in_process import InProcess
from tests.scenes.server import Caller, Provider, Scene, _machines
from tests.scenes.work import accrue_now, present, reported, send

PLACES = """network,country,state,city,latitude,longitude
203.0.113.0/24,DE,BE,Berlin,52.52,13.405
198.51.100.0/24,FR,IDF,Paris,48.8534,2.3488
"""
BERLIN, PARIS, LAN = "203.0.113.7", "198.51.100.9", "192.168.1.4"
SPARK = {"vendor": "nvidia", "model": "NVIDIA GB10", "memory_mib": 122_502, "memory": "unified"}
MAC = {"vendor": "apple", "model": "Apple M2 Max", "memory_mib": 65_536}
DESKTOP = {
    "vendor": "amd",
    "model": "AMD Radeon RX 7900 XTX",
    "memory_mib": 24_560,
    "pcie_gen": 4,
    "pcie_lanes": 16,
}
AT_HOME = {
    "nvme_drives_gb": [1_000],
    "tpm_2_0": None,
    "ram_gb": 128,
    "cpu_cores": 12,
    "sata_drives": [],
    "ethernet_mbps": 1_000,
}


@dataclass
class Machine:
    """A machine that joined: its key signs what its reporter tells."""

    node_id: str
    caller: Caller
    key: SigningKey

    def signed(self, path: str, body: dict[str, Any], payload_type: str) -> Any:
        raw = json.dumps(body).encode()
        signature = self.key.sign(node_key.envelope(payload_type, raw)).signature
        named = {
            **self.caller.headers,
            "Idempotency-Key": hashlib.sha256(raw).hexdigest()[:32],
            "Node-Signature": base64.b64encode(signature).decode(),
            "Content-Type": "application/json",
        }
        return self.caller.http.post(path, content=raw, headers=named)


def from_address(scene: Scene, caller: Caller, address: str) -> Caller:
    """The same key, used from a machine with this address."""
    http = InProcess(scene.http.app, client=(address, 50_000))
    return Caller(http, caller.key, caller.account_id)


def region(scene: Scene, name: str, **growth: Any) -> str:
    """A permissionless region of homes of the first provider."""
    told = scene.owner.made(
        "/v1/regions",
        {
            "provider_id": scene.provider.provider_id,
            "name": name,
            "storage_mode": "local",
            "setting": "edge",
            "admission": "permissionless",
            "allow_public_jobs": True,
        },
    )
    region_id: str = told["region_id"]
    if growth:
        scene.owner.made(f"/v1/regions/{region_id}/growth", growth)
    return region_id


def joined(
    scene: Scene, code: str, name: str, device: dict[str, Any], hardware: dict[str, Any] = AT_HOME
) -> Any:
    """What the server answers to a machine that joins with this code."""
    key = SigningKey(hashlib.sha256(name.encode()).digest())
    public = bytes(key.verify_key)
    _machines[public.hex()] = key
    body = {
        "code": code,
        "public_key": public.hex(),
        "key_id": hashlib.sha256(public).hexdigest()[:16],
        "agent": "0.1.0",
        "devices": [{"device_id": f"GPU-{name}", **device}],
        "host": {"arch": "aarch64", "os": "linux", "cpu_cores": 20, "ram_mib": None},
        "hardware": hardware,
    }
    return scene.anybody.post("/v1/nodes/join", body)


def at_work(scene: Scene, owner: Caller, code: str, name: str, device: dict[str, Any]) -> Machine:
    """A machine that its owner joined, confirmed, admitted and activated."""
    answer = joined(scene, code, name, device)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    key = SigningKey(hashlib.sha256(name.encode()).digest())
    key_id = hashlib.sha256(bytes(key.verify_key)).hexdigest()[:16]
    node_id = told["node_id"]
    owner.made(f"/v1/nodes/{node_id}/confirm", {"key_id": key_id})
    admitted = owner.made(f"/v1/nodes/{node_id}/admit", {})
    assert admitted["verdict"]["sellable"] is True, admitted
    owner.made(f"/v1/nodes/{node_id}/activate")
    return Machine(node_id, Caller(scene.http, told["node_key"]), key)


def offer(scene: Scene, node_id: str, **terms: Any) -> str:
    told = scene.owner.made(
        "/v1/offers",
        {
            "provider_id": scene.provider.provider_id,
            "node_id": node_id,
            "settlement": "cash",
            "price_per_gpu_hour": {"asset": "CREDIT", "units": "1000000"},
            "fractions": False,
            **({"terms": terms} if terms else {}),
        },
    )
    return str(told["offer_id"])


def code_for(scene: Scene, region_id: str, owner: Caller | None = None) -> str:
    body: dict[str, Any] = {"region_id": region_id}
    if owner is not None:
        body["owner_account_id"] = owner.account_id
    return str(scene.owner.made("/v1/nodes/join-codes", body)["code"])


def job_in(scene: Scene, *region_ids: str, **demands: Any) -> dict[str, Any]:
    return scene.job(constraints={"regions": list(region_ids), **demands})


@pytest.fixture
def market(scene: Scene, tmp_path: Path) -> Scene:
    """With prices for machines at home, and a server that knows where addresses are."""
    now_us = scene.clock.now_us()
    told = publish(HOME, version=2, effective_from_us=now_us, by="operator", at_us=now_us)
    scene.service.ledger.handle([told], key=None, now_us=now_us)
    path = tmp_path / "places.csv"
    path.write_text(PLACES, encoding="utf-8")
    scene.service.geography = PlacesFile.read(path)
    return scene


def test_k_5_k_15_k_16_from_the_wait_list_to_a_lease_on_a_machine_at_home(market: Scene) -> None:
    homes = region(
        market, "berlin", waitlisted=True, workers_min=2, workers_max=2, owner_share_ppm=900_000
    )
    market.owner.made(
        f"/v1/regions/{homes}/place",
        {
            "boundaries": [{"kind": "state", "value": "DE-BE"}],
            "address": "berlin.example:8420",
            "latitude_e6": 52_520_000,
            "longitude_e6": 13_405_000,
        },
    )
    market.owner.made(f"/v1/wait-lists/{homes}/terms", {"threshold": 2})
    ann, ben, zoe = (market.account() for _ in range(3))

    # Nothing is open yet: the first two wait, and the second one starts the region.
    told = from_address(market, ann, BERLIN).made("/v1/check-ins", {"country": "FR"})
    assert (told["send_to"], told["list_id"], told["number"]) == ("wait_list", homes, 1)
    assert (told["place_by"], told["state"]) == ("address", "DE-BE"), "the address outweighs"
    refused = market.owner.post("/v1/nodes/join-codes", {"region_id": homes})
    assert (refused.status_code, refused.json()["code"]) == (409, "region_phase")
    from_address(market, ben, BERLIN).made("/v1/check-ins", {})
    growth = market.owner.read(f"/v1/regions/{homes}/growth")
    assert (growth["phase"], growth["cause"]) == ("opening", "wait_list")
    lists = ann.read("/v1/wait-lists")["data"]
    assert [(one["list_id"], one["waiting"], one["number"]) for one in lists] == [(homes, 2, 1)]
    assert lists[0]["reached_at"]

    # Now a check-in sends the machine there, with a code; its owner lets it in.
    told = from_address(market, ann, BERLIN).made("/v1/check-ins", {})
    assert (told["send_to"], told["region"]["region_id"]) == ("region", homes)
    assert told["region"]["address"] == "berlin.example:8420"
    spark = at_work(market, ann, told["code"], "spark", SPARK)
    offer(market, spark.node_id)
    wanted = job_in(market, homes)
    refused = market.renter.post("/v1/leases", {"job": wanted})
    assert refused.status_code == 409, "one worker of two: the region is not open"
    told = from_address(market, ben, BERLIN).made("/v1/check-ins", {})
    at_work(market, ben, told["code"], "mac", MAC)
    assert market.owner.read(f"/v1/regions/{homes}/growth")["phase"] == "open"
    assert market.renter.made("/v1/leases", {"job": wanted})["node_id"] == spark.node_id

    # It is full: the next one waits for a region of its state.
    told = from_address(market, zoe, BERLIN).made("/v1/check-ins", {})
    assert (told["send_to"], told["list_id"]) == ("wait_list", "place_DE-BE")
    assert zoe.made("/v1/wait-lists/place_DE-BE/leave")["waiting"] == 0
    told = from_address(market, zoe, LAN).made("/v1/check-ins", {})
    assert told["send_to"] == "nowhere"
    told = from_address(market, zoe, LAN).made("/v1/check-ins", {"country": "FR"})
    assert (told["list_id"], told["place_by"]) == ("place_FR", "stated")


def test_k_3_a_worker_s_owner_sees_its_machine_and_hands_it_on(market: Scene) -> None:
    ann, ben = market.account(), market.account()
    homes = region(market, "dashboard", owner_share_ppm=900_000)
    machine = at_work(market, ann, code_for(market, homes, ann), "handed", DESKTOP)
    node = f"/v1/nodes/{machine.node_id}"
    shares = ann.read(f"{node}/revenue-shares")
    assert shares["shares"] == [{"account_id": ann.account_id, "share_ppm": 900_000}]
    assert ann.read(node)["phase"] == "active"
    assert ann.read(f"{node}/usage")["reports"] == 0
    assert ann.read(f"{node}/trust")["devices"] is not None
    assert [one["node_id"] for one in ann.read("/v1/nodes")["data"]] == [machine.node_id]
    assert [one["device_id"] for one in ann.read("/v1/devices")["data"]] == ["GPU-handed"]
    earner = Caller(market.http, ann.key, ann.account_id)
    assert earner.read(f"{node}/earnings/today")["earned"]["units"] == "0"
    assert ann.get(f"{node}/assignments").status_code == 404, "whose work runs is not told"
    assert ben.get(node).status_code == 404

    offer(market, machine.node_id)
    lease = market.renter.made("/v1/leases", {"job": job_in(market, homes)})
    told = ann.made(f"{node}/transfer", {"account_id": ben.account_id})
    assert told["transferred"] is False
    refused = ben.post(f"{node}/transfer/accept", {})
    assert refused.json()["code"] == "node_busy", "no lease spans the instant"
    market.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    assert ben.post(f"{node}/transfer/accept", {}).status_code == 200
    shares = ben.read(f"{node}/revenue-shares")
    assert shares["shares"] == [{"account_id": ben.account_id, "share_ppm": 900_000}]
    assert ann.post(f"{node}/transfer", {"account_id": ben.account_id}).status_code == 404
    assert ben.post(f"{node}/transfer/accept", {}).json()["code"] == "transfer_unknown"
    assert ben.made(f"{node}/retire")["phase"] == "retired", "the new owner takes it out"


def test_k_3_an_owner_sees_rewards_over_time_a_map_and_its_part_until_the_hand_over(
    market: Scene,
) -> None:
    """What the machine earned before the instant stays with the owner before it."""
    ann, ben = market.account(), market.account()
    homes = region(market, "rewards", owner_share_ppm=900_000)
    dot = {"boundaries": [], "latitude_e6": 52_520_000, "longitude_e6": 13_405_000}
    market.owner.made(f"/v1/regions/{homes}/place", dot)
    machine = at_work(market, ann, code_for(market, homes, ann), "earns", DESKTOP)
    node = f"/v1/nodes/{machine.node_id}"
    offer(market, machine.node_id)
    works = reporter(market, machine, "earns")
    earned = []
    for hour, owner in enumerate((ann, ben)):
        lease = market.lease(job=job_in(market, homes))
        machine.caller.made(f"{node}/assignments/{lease['lease_id']}/ready")
        clock: Any = market.clock
        clock.advance(HOUR_US)
        report = reported(works, lease, first=hour * 60)
        assert send(market, works, report).status_code == 200
        market.renter.made(f"/v1/leases/{lease['lease_id']}/close")
        accrue_now(market, lease["lease_id"])
        if owner is ann:
            ann.made(f"{node}/transfer", {"account_id": ben.account_id})
            ben.made(f"{node}/transfer/accept")
        charge = market.owner.read(f"/v1/leases/{lease['lease_id']}/charges")["data"][0]
        earned.append(int(charge["provider"]["units"]) * 9 // 10)
        hours = owner.read("/v1/earnings", by="node_id,hour")["data"]
        assert [(one["node_id"], int(one["earned"]["units"])) for one in hours] == [
            (machine.node_id, earned[hour])
        ]
    assert earned[0] == earned[1] > 0
    kept = ann.read("/v1/earnings", by="node_id")["data"]
    assert [int(one["earned"]["units"]) for one in kept] == earned[:1]
    assert ben.read(f"{node}/usage")["reports"] == 2
    assert ann.get(f"{node}/usage").status_code == 404
    dots = ben.read("/v1/where-next/map")["features"]
    mine = [one for one in dots if one["properties"]["kind"] == "node"]
    assert [(one["properties"]["node_id"], one["geometry"]["coordinates"]) for one in mine] == [
        (machine.node_id, [13.405, 52.52])
    ]
    assert {one["properties"]["kind"] for one in ann.read("/v1/where-next/map")["features"]} == {
        "region"
    }


def test_k_3_a_paused_lease_does_not_go_on_for_the_owner_before(market: Scene) -> None:
    """Its terms name who was the owner then: the new one's machine would earn for another."""
    ann, ben = market.account(), market.account()
    homes = region(market, "paused", owner_share_ppm=900_000)
    machine = at_work(market, ann, code_for(market, homes, ann), "paused", DESKTOP)
    node = f"/v1/nodes/{machine.node_id}"
    offer(market, machine.node_id, interruptible=True)
    job = job_in(market, homes, interruptible=True)
    lease = market.lease(job=job)
    path = f"/v1/leases/{lease['lease_id']}"
    machine.caller.made(f"{node}/assignments/{lease['lease_id']}/ready")
    for _ in range(2):
        assert market.renter.made(f"{path}/pause")["state"] == "paused"
        assert market.renter.made(f"{path}/resume")["state"] == "active"
    market.renter.made(f"{path}/pause")
    ann.made(f"{node}/transfer", {"account_id": ben.account_id})
    market.clock.advance(HOUR_US)  # type: ignore[attr-defined]
    ben.made(f"{node}/transfer/accept")
    refused = market.renter.post(f"{path}/resume")
    assert (refused.status_code, refused.json()["code"]) == (409, "lease_state")
    assert "handed on" in refused.json()["detail"]
    market.renter.made(f"{path}/close")
    assert market.lease(job=job)["node_id"] == machine.node_id


def reporter(scene: Scene, machine: Machine, name: str) -> Provider:
    """The machine as one that signs reports."""
    made = copy.copy(scene.provider)
    made.machine(name)
    made.device_ids = [f"GPU-{name}"]
    made.joined({"node_id": machine.node_id, "node_key": machine.caller.key})
    return made


def test_k_10_k_16_an_administrator_sees_and_manages_the_nodes_of_its_region(market: Scene) -> None:
    ann, admin = market.account(), market.account()
    homes = region(market, "administered")
    machine = at_work(market, ann, code_for(market, homes, ann), "administered", DESKTOP)
    path = f"/v1/regions/{homes}"
    assert admin.get(path).status_code == 404
    grant = {"account_id": admin.account_id}
    assert market.stranger.post(f"{path}/admins", grant).status_code == 404
    assert market.owner.made(f"{path}/admins", grant)["account_ids"] == [admin.account_id]
    assert admin.read(f"{path}/admins")["data"][0]["cause"] == "hand"
    assert [one["node_id"] for one in admin.read(f"{path}/nodes")["data"]] == [machine.node_id]
    assert len(admin.read("/v1/devices", region_id=homes)["data"]) == 1
    assert admin.read("/v1/edge-devices", region_id=homes)["data"] == []
    node = f"/v1/nodes/{machine.node_id}"
    assert admin.made(f"{node}/maintenance")["phase"] == "maintenance"
    assert admin.made(f"{node}/activate")["phase"] == "active"
    assert admin.made(f"{node}/drain", {})["phase"] == "draining"
    assert admin.made(f"{node}/role", {"role": "control"})["role"] == "control"
    assert admin.made(f"{path}/phase", {"phase": "draining"})["phase"] == "draining"
    assert admin.post(f"{node}/revenue-shares", {"shares": []}).status_code == 404
    assert admin.post(f"{path}/admins", grant).status_code == 404, "it grants nobody"
    told = market.owner.made(f"{path}/admins/{admin.account_id}/revoke")
    assert told["account_ids"] == []
    assert admin.get(path).status_code == 404
    assert admin.post(f"{node}/activate").status_code == 404


def test_k_16_the_first_user_of_a_region_becomes_its_administrator(market: Scene) -> None:
    ann = market.account()
    homes = region(market, "paris", waitlisted=True, workers_min=1)
    market.owner.made(
        f"/v1/regions/{homes}/place", {"boundaries": [{"kind": "city", "value": "FR/Paris"}]}
    )
    market.owner.made(
        f"/v1/wait-lists/{homes}/terms", {"threshold": 9, "first_user_administers": True}
    )
    from_address(market, ann, PARIS).made("/v1/check-ins", {})
    growth = ann.read(f"/v1/regions/{homes}/growth")
    assert (growth["phase"], growth["cause"]) == ("opening", "first_user")
    assert ann.read(f"/v1/regions/{homes}/admins")["data"][0]["cause"] == "first_user"


def test_k_7_a_region_takes_one_model_or_gpus_alone_when_it_says_so(market: Scene) -> None:
    ann = market.account()
    same = region(market, "same", homogeneous=True)
    at_work(market, ann, code_for(market, same, ann), "same-1", DESKTOP)
    refused = joined(market, code_for(market, same, ann), "same-2", MAC)
    assert (refused.status_code, refused.json()["code"]) == (409, "region_mix")
    mixed = region(market, "mixed", cpu_and_gpu=True)
    at_work(market, ann, code_for(market, mixed, ann), "mixed-1", DESKTOP)
    at_work(market, ann, code_for(market, mixed, ann), "mixed-2", MAC)
    gpus = region(market, "gpus", cpu_and_gpu=False)
    at_work(market, ann, code_for(market, gpus, ann), "gpus-1", DESKTOP)
    seat = {"vendor": "thirdai", "model": "ThirdAI", "memory_mib": 0, "kind": "seat"}
    refused = joined(market, code_for(market, gpus, ann), "gpus-2", seat)
    assert (refused.status_code, refused.json()["code"]) == (409, "region_mix")


def test_k_12_roles_decide_what_is_leased_and_bytes_are_signed(market: Scene) -> None:
    ann = market.account()
    homes = region(market, "roles")
    ingress = at_work(market, ann, code_for(market, homes, ann), "roles-in", DESKTOP)
    offer(market, ingress.node_id)
    role = {"role": "ingress", "address": "in.example:51820"}
    market.owner.made(f"/v1/nodes/{ingress.node_id}/role", role)
    wanted = job_in(market, homes)
    assert market.renter.post("/v1/leases", {"job": wanted}).status_code == 409
    worker = at_work(market, ann, code_for(market, homes, ann), "roles-w", DESKTOP)
    offer_id = offer(market, worker.node_id, security_tier=9)
    told = worker.caller.read(f"/v1/nodes/{worker.node_id}/targets")
    assert told["role"] == "worker"
    assert told["data"][1] == {
        "target": "ingress",
        "node_id": ingress.node_id,
        "address": "in.example:51820",
    }

    # What the reporters tell: latency of the worker, bytes of the ingress, signed by its key.
    ways = [{"target": "ingress", "rtt_us": 12_000, "samples": 5}]
    worker.caller.made(f"/v1/nodes/{worker.node_id}/latency", {"ways": ways})
    found = market.anybody.read("/v1/offers", region_id=homes, max_latency_ms=12)["data"]
    assert [one["offer_id"] for one in found] == [offer_id]
    assert found[0]["supply"]["latency"][0]["rtt_us"] == 12_000
    assert market.anybody.read("/v1/offers", region_id=homes, max_latency_ms=11)["data"] == []
    path = f"/v1/nodes/{ingress.node_id}/ingress-bytes"
    now_us = market.clock.now_us()
    span = {"bytes_in": 3 * 2**30, "bytes_out": 2**30, **interval(now_us)}
    assert ingress.signed(path, span, "another.type").status_code == 401
    assert ingress.signed(path, span, node_key.INGRESS_BYTES_TYPE).status_code == 200
    days = market.owner.read(f"/v1/regions/{homes}/ingress-bytes")["data"]
    assert [(one["node_id"], one["bytes_in"], one["bytes_out"]) for one in days] == [
        (ingress.node_id, 3 * 2**30, 2**30)
    ]
    own = f"/v1/nodes/{worker.node_id}/ingress-bytes"
    assert worker.signed(own, span, node_key.INGRESS_BYTES_TYPE).json()["code"] == "node_role"

    # The offer's word lifts no machine above its region (K-6).
    assert market.anybody.read("/v1/offers", region_id=homes, security_tier=1)["data"] == []
    told = market.owner.made(
        f"/v1/regions/{homes}/policy", {"allow_public_jobs": True, "security_tier": 2}
    )
    assert told["security_tier"] == 2
    found = market.anybody.read("/v1/offers", region_id=homes, security_tier=2)["data"]
    assert found[0]["supply"]["security_tier"] == 2
    safe = job_in(market, homes, security_tier=3)
    assert market.renter.post("/v1/leases", {"job": safe}).status_code == 409
    safe = job_in(market, homes, security_tier=2)
    assert market.renter.made("/v1/leases", {"job": safe})["node_id"] == worker.node_id


def interval(now_us: int) -> dict[str, str]:
    from api.door.moments import moment

    return {"from": moment(now_us - 60_000_000), "until": moment(now_us)}


def test_k_11_where_next_shows_people_demand_and_use_together(market: Scene) -> None:
    ann = market.account()
    from_address(market, ann, PARIS).made("/v1/check-ins", {})
    homes = region(market, "wanted")
    market.owner.made(
        f"/v1/regions/{homes}/place",
        {"boundaries": [], "latitude_e6": 52_520_000, "longitude_e6": 13_405_000},
    )
    told = market.operator.read("/v1/where-next")
    assert told["places"] == [
        {"place": "FR-IDF", "waiting_people": 1, "threshold": 10, "reached": False}
    ]
    rows = {row["region_id"]: row for row in told["regions"]}
    assert (rows[homes]["phase"], rows[homes]["workers"]) == ("open", 0)
    assert rows[market.provider.region_id]["workers"] == 1
    dots = market.operator.read("/v1/where-next/map")
    assert dots["type"] == "FeatureCollection"
    assert [one["properties"]["kind"] for one in dots["features"]] == ["region", "waiting"]
    assert dots["features"][1]["geometry"] == {"type": "Point", "coordinates": [2.3488, 48.8534]}


def test_k_11_demand_that_no_node_met_and_use_are_told_by_region(market: Scene) -> None:
    """Refused at once or waiting in a queue; of a region, or of any."""
    homes, here = region(market, "asked"), market.provider.region_id

    def next_() -> tuple[dict[str, Any], dict[str, Any]]:
        told = market.owner.read("/v1/where-next")
        return {row["region_id"]: row for row in told["regions"]}, told["demand"]

    def refused(who: Caller, gpus: int, *region_ids: str) -> None:
        asked = {"job": {**job_in(market, *region_ids), "gpu_count": gpus}}
        assert who.post("/v1/leases", asked).json()["code"] == "no_match"

    refused(market.renter, 2, homes)
    refused(market.renter, 2, homes)
    refused(market.renter, 1, homes)
    other = market.account()
    market.deposit(other, 10_000_000)
    refused(other, 1, homes)
    refused(market.stranger, 1, homes)
    rows, anywhere = next_()
    nothing = {"waiting_gpus": 0, "given_up_gpus": 0, "refused_gpus": 0}
    assert rows[homes]["demand"] == {**nothing, "refused_gpus": 3}, "its largest, of each account"
    assert rows[here]["demand"] == anywhere == nothing

    pool = market.operator.made("/v1/pools", {"name": "queue", "policy": {}})["pool_id"]
    market.owner.made(f"/v1/pools/{pool}/nodes", {"node_id": market.provider.node_id})
    for count in (2, 1):
        market.lease(job={**job_in(market, here, pool_id=pool), "gpu_count": count})
    assert next_()[0][here]["demand"]["waiting_gpus"] == 1

    clock: Any = market.clock
    begins_us = (clock.now_us() // HOUR_US + 1) * HOUR_US
    for moment_us in (begins_us, begins_us + HOUR_US):
        clock.move_to(moment_us + PROOF_WAIT_US)
        if moment_us > begins_us:
            present(market, market.provider, moment_us, begins_us)
        with market.service.connect() as connection:
            run_capacity(market.service, connection, clock.now_us())
    assert next_()[0][here]["leased_ppm"] == PPM, "both of its devices, for the hour"
    assert "leased_ppm" not in next_()[0][homes]
    clock.advance(7 * DAY_US)
    assert next_()[0][homes]["demand"] == nothing


def test_a_file_of_places_is_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "places.csv"
    path.write_text(PLACES, encoding="utf-8")
    places = PlacesFile.read(path)
    found = places.place(f"::ffff:{BERLIN}")
    assert (found.state, found.city, found.latitude_e6) == ("DE-BE", "Berlin", 52_520_000)
    assert places.place(LAN).country is None
    assert places.place("nobody").address is None
    for wrong in ("network,country\n203.0.113.0/24,DE\n", f"{PLACES}nowhere,DE,BE,Berlin,1,2\n"):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(GeographyUnreadable):
            PlacesFile.read(path)
    with pytest.raises(GeographyUnreadable):
        PlacesFile.read(tmp_path / "missing.csv")
