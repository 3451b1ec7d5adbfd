"""Supply over HTTP: accelerators of any kind in one place, settings told before buying, statements
of third parties, maintenance, and what becomes of a reputation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from domain.duration import HOUR_US
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import first_policy
from domain.fleet.device import AccrueCapacity
from domain.prices.tariff import CLOUDBENDER, UsageFee, publish
from domain.trust.attribute import message_for
from projections.fleet import supply
from tests.scenes.server import NOW_US, Caller, Scene
from tests.scenes.serving import Market

DAY_US = 24 * HOUR_US


@pytest.fixture
def wide(scene: Scene) -> Scene:
    """A market whose tariff prices accelerators that are no GPUs, and seats."""
    from dataclasses import replace

    from domain.money import credit

    fees = (
        *CLOUDBENDER.usage_fees,
        UsageFee("accelerator", credit(80_000)),
        UsageFee("software", credit(10_000)),
        UsageFee("unified", credit(20_000)),
    )
    now_us = scene.clock.now_us()
    command = publish(
        replace(CLOUDBENDER, usage_fees=fees),
        version=2,
        effective_from_us=now_us,
        by="operator",
        at_us=now_us,
    )
    scene.service.ledger.handle([command], key=None, now_us=now_us)
    return scene


def device(name: str, kind: str | None, vendor: str, model: str, mib: int = 65_536) -> Any:
    return {
        "device_id": name,
        "vendor": vendor,
        "model": model,
        "memory_mib": mib,
        "connection": "pcie",
        "pcie_gen": 4,
        "pcie_lanes": 16,
        "kind": kind,
    }


def join(
    scene: Scene, name: str, devices: list[Any], region_id: str | None = None, **host: str
) -> str:
    """A node of the owner's, admitted and active; `host` is what is other than usual about it."""
    region = {"region_id": region_id or scene.provider.region_id}
    code = scene.owner.made("/v1/nodes/join-codes", region)["code"]
    public = hashlib.sha256(name.encode()).hexdigest()
    joining = {**scene.provider.joining(code, "any", public), "devices": devices}
    joining["host"] = joining["host"] | host
    node_id = str(scene.anybody.made("/v1/nodes/join", joining)["node_id"])
    path = f"/v1/nodes/{node_id}"
    scene.owner.made(f"{path}/confirm", {"key_id": joining["key_id"]})
    scene.operator.made(f"{path}/admit")
    scene.owner.made(f"{path}/activate")
    return node_id


def offer(scene: Scene, node_id: str, units: int) -> str:
    price = {"asset": "CREDIT", "units": str(units)}
    body = {
        "provider_id": scene.provider.provider_id,
        "node_id": node_id,
        "price_per_gpu_hour": price,
        "fractions": False,
    }
    return str(scene.owner.made("/v1/offers", body)["offer_id"])


def licence(scene: Scene, seats: int) -> str:
    body = {
        "provider_id": scene.provider.provider_id,
        "vendor": "thirdai",
        "model": "ThirdAI Bolt",
        "seats": seats,
        "terms_sha256": "0a" * 32,
        "from": "2026-11-20T00:00:00Z",
    }
    return str(scene.owner.made("/v1/licences", body)["licence_id"])


# --- accelerators of any kind ----------------------------------------------------------------


def test_v_4_nvidia_amd_ipus_and_software_seats_are_leased_in_one_pool(wide: Scene) -> None:
    """One pool, one call to lease: whatever the accelerator, by the same books."""
    licence_id = licence(wide, 4)
    amd = join(wide, "amd", [device("AMD-1", "gpu", "amd", "AMD Instinct MI300X")])
    ipu = join(wide, "ipu", [device("IPU-1", "ipu", "graphcore", "Graphcore Bow IPU")])
    seats = [
        device(f"{licence_id}:{number}", "seat", "thirdai", "ThirdAI Bolt", 0)
        for number in (1, 2, 3)
    ]
    cpu = join(wide, "cpu", seats)
    for node_id, units in ((amd, 1_500_000), (ipu, 900_000), (cpu, 50_000)):
        offer(wide, node_id, units)
    pool_id = wide.operator.made("/v1/pools", {"name": "all sorts", "policy": {}})["pool_id"]
    for node_id in (wide.provider.node_id, amd, ipu, cpu):
        wide.owner.made(f"/v1/pools/{pool_id}/nodes", {"node_id": node_id})
    wanted = {
        "NVIDIA A100-PCIE-80GB": (wide.provider.node_id, 1, 2_000_000),
        "AMD Instinct MI300X": (amd, 1, 1_500_000),
        "Graphcore Bow IPU": (ipu, 1, 900_000),
        "ThirdAI Bolt": (cpu, 2, 50_000),
    }
    for model, (node_id, count, units) in wanted.items():
        demands = {"pool_id": pool_id}
        job = wide.job(models=[model], gpu_count=count, constraints=demands)
        lease = wide.lease(job=job)
        assert lease["node_id"] == node_id, model
        assert lease["price_per_gpu_hour"]["units"] == str(units)
        assert len(lease["device_ids"]) == count
    pooled = wide.operator.read(f"/v1/pools/{pool_id}/nodes")["data"]
    assert {amd, ipu, cpu, wide.provider.node_id} == {row["node_id"] for row in pooled}
    _accrue(wide, ["AMD-1", f"{licence_id}:1", f"{licence_id}:2", f"{licence_id}:3"])
    books = _books(wide)
    assert books["device:AMD-1:leased"] == ("GPU_MS", HOUR_US // 1_000)
    for number, where in ((1, "leased"), (2, "leased"), (3, "idle")):
        assert books[f"seat:{licence_id}:{number}:{where}"] == ("SEAT_MS", HOUR_US // 1_000)


def test_k_15_a_spark_a_mac_and_an_amd_desktop_are_leased_by_architecture_and_memory_is_told(
    wide: Scene,
) -> None:
    """Unified memory is no second memory: the device says that it is the host's."""
    machines = {
        "spark": ("aarch64", "linux", "nvidia", "NVIDIA GB10", "unified"),
        "mac": ("arm64", "darwin", "apple", "Apple M3 Max", None),
        "desktop": ("x86_64", "linux", "amd", "AMD Radeon RX 7900 XTX", None),
    }
    nodes = {}
    for name, (arch, system, vendor, model, memory) in machines.items():
        one = device(f"DEV-{name}", "gpu", vendor, model) | {"memory": memory}
        nodes[arch] = join(wide, name, [one], arch=arch, os=system)
        offer(wide, nodes[arch], 1_000_000)
    models = [model for _, _, _, model, _ in machines.values()]
    for name, (arch, _, vendor, _, _) in machines.items():
        job = wide.job(models=models, constraints={"arch": arch})
        assert wide.lease(job=job)["node_id"] == nodes[arch]
        told = wide.owner.read(f"/v1/devices/DEV-{name}")
        expected = "dedicated" if vendor == "amd" else "unified"
        assert (told["memory"], told["vendor"]) == (expected, vendor)


def _accrue(scene: Scene, device_ids: list[str]) -> None:
    """An hour goes by, and the time of these devices is booked."""
    start_us = scene.clock.now_us()
    scene.clock.advance(HOUR_US)  # type: ignore[attr-defined]
    ledger = scene.service.ledger
    commands = [
        AccrueCapacity(
            device_id=name, to_us=start_us + HOUR_US, unavailable=(), at_us=start_us + HOUR_US
        )
        for name in device_ids
    ]
    ledger.handle(commands, key=None, now_us=start_us + HOUR_US)


def _books(scene: Scene) -> dict[str, tuple[str, int]]:
    with scene.service.connection() as connection:
        rows = connection.execute("SELECT name, asset, abs(units) FROM account").fetchall()
    return {str(name): (str(asset), int(units)) for name, asset, units in rows}


def test_v_12_every_kind_there_is_can_be_read_and_a_new_one_is_registered(wide: Scene) -> None:
    known = {(row["kind"], row["vendor"]): row for row in _kinds(wide)["data"]}
    assert known["gpu", "apple"]["memory"] == "unified"
    assert known["seat", "thirdai"]["capacity_asset"] == "SEAT_MS"
    assert {"nvidia", "amd", "intel", "graphcore"} <= {vendor for _, vendor in known}
    later = "2026-12-01T00:00:00Z"
    kind = {
        "kind": "npu",
        "vendor": "acme",
        "dimensions": ["compute", "memory"],
        "memory": "dedicated",
        "divisible": False,
        "capacity_asset": "GPU_MS",
        "effective_from": later,
    }
    wide.operator.made("/v1/resource-kinds", kind)
    classed = {"vendor": "acme", "model": "Acme One", "gpu_class": "accelerator"}
    classed["effective_from"] = later
    wide.operator.made("/v1/resource-kinds/models", classed)
    npu = join(wide, "npu", [device("NPU-1", "npu", "acme", "Acme One")])
    told = wide.owner.read(f"/v1/devices/{'NPU-1'}")
    assert (told["kind"], told.get("gpu_class")) == ("npu", None), "listed, and not priced"
    price = {"asset": "CREDIT", "units": "900000"}
    body = {"provider_id": wide.provider.provider_id, "node_id": npu, "price_per_gpu_hour": price}
    assert wide.owner.post("/v1/offers", body).json()["code"] == "gpu_class_unpriced"
    wide.clock.advance(12 * DAY_US)  # type: ignore[attr-defined]
    wide.operator.made(f"/v1/nodes/{npu}/admit")
    assert wide.owner.read("/v1/devices/NPU-1")["gpu_class"] == "accelerator"
    offer(wide, npu, 900_000)
    assert [row["vendor"] for row in _kinds(wide)["data"]].count("acme") == 1


def _kinds(scene: Scene) -> dict[str, Any]:
    return scene.anybody.read("/v1/resource-kinds")


def test_a_node_with_more_seats_than_its_licence_does_not_join(wide: Scene) -> None:
    licence_id = licence(wide, 1)
    code = wide.owner.made("/v1/nodes/join-codes", {"region_id": wide.provider.region_id})["code"]
    public = hashlib.sha256(b"greedy").hexdigest()
    seats = [device(f"{licence_id}:{n}", "seat", "thirdai", "ThirdAI Bolt", 0) for n in (1, 2)]
    joining = {**wide.provider.joining(code, "any", public), "devices": seats}
    node_id = wide.anybody.made("/v1/nodes/join", joining)["node_id"]
    wide.owner.made(f"/v1/nodes/{node_id}/confirm", {"key_id": joining["key_id"]})
    refused = wide.operator.post(f"/v1/nodes/{node_id}/admit").json()
    assert (refused["code"], refused["facts"]["failing"]) == (
        "node_not_joinable",
        "('licensed_seats',)",
    )
    (mine,) = wide.owner.read("/v1/licences")["data"]
    assert mine["seats"] == 1
    assert wide.rival.read("/v1/licences")["data"] == []
    wide.owner.made(f"/v1/licences/{licence_id}/revoke")
    assert "revoked_at" in wide.owner.read("/v1/licences")["data"][0]


# --- edge and datacenter ---------------------------------------------------------------------


def test_k_8_an_edge_region_starts_with_a_policy_and_its_owner_changes_it(scene: Scene) -> None:
    region = {
        "provider_id": scene.provider.provider_id,
        "name": "homes",
        "storage_mode": "local",
        "setting": "edge",
        "admission": "operator",
        "allow_public_jobs": True,
    }
    path = f"/v1/regions/{scene.owner.made('/v1/regions', region)['region_id']}"
    told = scene.owner.read(path)
    assert (told["refused_workloads"], told["down_ranked_workloads"], told["security_tier"]) == (
        ["ip_lease"],
        ["large_storage"],
        0,
    )
    policy = {
        "allow_public_jobs": True,
        "refused_workloads": ["ip_lease", "large_storage"],
        "down_ranked_workloads": [],
        "security_tier": 2,
    }
    made = scene.owner.made(f"{path}/policy", policy)
    assert made["refused_workloads"] == ["ip_lease", "large_storage"]
    scene.owner.made(f"{path}/policy", {"allow_public_jobs": False})
    told = scene.owner.read(path)
    assert (told["refused_workloads"], told["down_ranked_workloads"], told["security_tier"]) == (
        ["ip_lease", "large_storage"],
        [],
        2,
    )
    assert not told["allow_public_jobs"]
    datacenter = scene.owner.read(f"/v1/regions/{scene.provider.region_id}")
    assert datacenter["refused_workloads"] == datacenter["down_ranked_workloads"] == []
    both = {**policy, "down_ranked_workloads": ["ip_lease"]}
    assert scene.owner.post(f"{path}/policy", both).status_code == 422


def test_k_8_edge_machines_are_left_out_or_come_last_by_the_class_of_the_work(scene: Scene) -> None:
    """A cheaper machine at home: not for IP leases, after all others for large storage."""
    region = {
        "provider_id": scene.provider.provider_id,
        "name": "homes",
        "storage_mode": "local",
        "setting": "edge",
        "admission": "operator",
        "allow_public_jobs": True,
    }
    region_id = scene.owner.made("/v1/regions", region)["region_id"]
    model = "NVIDIA A100-PCIE-80GB"
    home = join(scene, "home", [device("GPU-home", None, "nvidia", model)], region_id)
    offer(scene, home, 1_000_000)

    def placed(**changes: Any) -> Any:
        job = scene.job(models=[model], **changes)
        response = scene.renter.post("/v1/leases", {"job": job})
        told = response.json()
        return told.get("node_id", told.get("code"))

    datacenter = scene.provider.node_id
    assert placed(constraints={"workload_class": "ip_lease"}) == datacenter
    assert placed(constraints={"workload_class": "large_storage"}) == datacenter
    cheap = {"asset": "CREDIT", "units": "1500000"}
    refused = placed(constraints={"workload_class": "ip_lease"}, max_price_per_gpu_hour=cheap)
    assert refused == "no_match"
    assert placed(constraints={"workload_class": "large_storage"}) == home, "the last one left"
    assert placed(constraints={"setting": "datacenter"}) == "no_match"


def test_k_4_what_a_setting_is_worth_is_told_in_numbers_before_buying(scene: Scene) -> None:
    edge, datacenter = scene.anybody.read("/v1/settings")["data"]
    assert (edge, datacenter["leases"]) == ({"setting": "edge", "leases": 0}, 0)
    lease_id = scene.running()["lease_id"]
    scene.clock.advance(60_000_000)  # type: ignore[attr-defined]
    scene.renter.made(f"/v1/leases/{lease_id}/close")
    told = scene.anybody.read("/v1/settings")["data"][1]
    assert (told["setting"], told["leases"], told["offline_ppm"]) == ("datacenter", 1, 0)


def test_k_4_an_offer_says_where_its_machine_stands_and_is_found_by_it(wide: Scene) -> None:
    """Edge or datacenter, what that was worth so far, who says what, and when it is worked on."""
    region = {
        "provider_id": wide.provider.provider_id,
        "name": "homes",
        "storage_mode": "local",
        "setting": "edge",
        "admission": "operator",
        "allow_public_jobs": True,
    }
    region_id = wide.owner.made("/v1/regions", region)["region_id"]
    at_home = join(wide, "home", [device("IPU-9", "ipu", "graphcore", "Bow IPU")], region_id)
    offer(wide, at_home, 900_000)
    path = f"/v1/nodes/{at_home}/maintenances"
    span = _span(NOW_US + HOUR_US, NOW_US + 2 * HOUR_US)
    wide.owner.made(path, {"kind": "planned", **span})
    wide.owner.made("/v1/attributes", _stated(wide))
    (edge,) = wide.anybody.read("/v1/offers", setting="edge")["data"]
    known = edge["supply"]
    assert (edge["node_id"], known["setting"], known["kinds"]) == (at_home, "edge", ["ipu"])
    assert known["expect"] == {"setting": "edge", "leases": 0}, "nothing measured, no numbers"
    assert (known["refused_workloads"], known["provisional"]) == (["ip_lease"], True)
    assert known["next_maintenance_from"] == _moment(NOW_US + HOUR_US)
    found = wide.anybody.read("/v1/offers", setting="datacenter")["data"]
    assert {row["node_id"] for row in found} == {wide.provider.node_id, wide.other.node_id}
    mine = wide.anybody.read(f"/v1/offers/{wide.provider.offer_id}")["supply"]
    assert mine["statements"] == [
        {"name": "location", "value": "DE-BE", "signer_account_id": wide.stranger.account_id}
    ]
    (ipu,) = wide.anybody.read("/v1/offers", kind="ipu")["data"]
    assert ipu["node_id"] == at_home


# --- statements of third parties -------------------------------------------------------------

SIGNER = SigningKey(hashlib.sha256(b"a lab").digest())


def _stated(
    scene: Scene,
    value: str = "DE-BE",
    expires_us: int | None = None,
    name: str = "location",
    who: Caller | None = None,
    signer: SigningKey = SIGNER,
) -> dict[str, Any]:
    """A statement about the provider's node, signed by a key of the stranger's or another's."""
    who = who or scene.stranger
    node_id, stated_us = scene.provider.node_id, NOW_US
    message = message_for(node_id, name, value, stated_us, expires_us)
    key = {"public_key": bytes(signer.verify_key).hex()}
    told = who.made(f"/v1/accounts/{who.account_id}/signing-keys", key)
    body = {
        "subject_id": node_id,
        "name": name,
        "value": value,
        "signer_account_id": who.account_id,
        "key_id": told["key_id"],
        "signature": signer.sign(message).signature.hex(),
        "stated_at": _moment(stated_us),
    }
    return body if expires_us is None else {**body, "expires_at": _moment(expires_us)}


def _moment(at_us: int) -> str:
    from api.door.moments import moment

    return str(moment(at_us))


def test_a_signed_statement_is_checked_kept_shown_and_taken_back(scene: Scene) -> None:
    body = _stated(scene, expires_us=NOW_US + DAY_US)
    made = scene.owner.made("/v1/attributes", body)
    assert (made["valid"], made["signer_account_id"]) == (True, scene.stranger.account_id)
    again = scene.stranger.made("/v1/attributes", body)
    assert again["statement_id"] == made["statement_id"]
    (told,) = scene.anybody.read("/v1/attributes", subject_id=scene.provider.node_id)["data"]
    assert {**told, "position": 0} == {**made, "position": 0}
    path = f"/v1/attributes/{made['statement_id']}/revoke"
    assert scene.owner.post(path).json()["code"] == "attribute_unknown"
    scene.stranger.made(path)
    (told,) = scene.anybody.read("/v1/attributes", account_id=scene.stranger.account_id)["data"]
    assert (told["valid"], "revoked_at" in told) == (False, True)
    assert scene.owner.post("/v1/attributes", body).json()["code"] == "attribute_revoked"


def test_one_who_states_much_hides_nothing_that_others_say(scene: Scene) -> None:
    """What is over does not count either: each had a place among 500 that a page had for all."""
    lab = SigningKey(hashlib.sha256(b"another lab").digest())
    benchmark = _stated(scene, "8", name="benchmark.hpl", who=scene.renter, signer=lab)
    over = [_stated(scene, f"over-{n}", NOW_US + DAY_US) for n in range(supply.OF_SIGNER_MAX)]
    for body in (*over, benchmark):
        scene.owner.made("/v1/attributes", body)
    scene.clock.advance(DAY_US)  # type: ignore[attr-defined]
    for number in range(supply.OF_SIGNER_MAX + 2):
        scene.owner.made("/v1/attributes", _stated(scene, f"place-{number}"))
    (told,) = scene.anybody.read("/v1/offers", node_id=scene.provider.node_id)["data"]
    said = [one["value"] for one in told["supply"]["statements"]]
    assert said == ["8", *(f"place-{n}" for n in range(2, supply.OF_SIGNER_MAX + 2))]
    sources = [(one["name"], one["source"]) for one in told["supply"]["performance"]]
    assert ("benchmark.hpl", "statement") in sources


def test_a_statement_expires_by_itself(scene: Scene) -> None:
    scene.owner.made("/v1/attributes", _stated(scene, expires_us=NOW_US + DAY_US))
    scene.clock.advance(DAY_US)  # type: ignore[attr-defined]
    (told,) = scene.anybody.read("/v1/attributes", name="location")["data"]
    assert not told["valid"]


@pytest.mark.parametrize("changed", ["value", "name", "stated_at", "subject_id"])
def test_a_statement_with_another_word_than_was_signed_is_refused(
    scene: Scene, changed: str
) -> None:
    other = {
        "value": "DE-BY",
        "name": "site",
        "stated_at": _moment(NOW_US - 1),
        "subject_id": scene.provider.provider_id,
    }
    body = {**_stated(scene), changed: other[changed]}
    refused = scene.owner.post("/v1/attributes", body)
    assert (refused.status_code, refused.json()["code"]) == (422, "signature_invalid")
    assert scene.anybody.read("/v1/attributes")["data"] == []


# --- maintenance -----------------------------------------------------------------------------


def _span(from_us: int, until_us: int) -> dict[str, str]:
    return {"from": _moment(from_us), "until": _moment(until_us)}


def test_a_fixed_term_goes_where_nothing_is_planned(scene: Scene) -> None:
    path = f"/v1/nodes/{scene.provider.node_id}/maintenances"
    span = _span(NOW_US + HOUR_US, NOW_US + 2 * HOUR_US)
    made = scene.owner.made(path, {"kind": "planned", **span, "keep_leases": True})
    assert made["status"] == "scheduled"
    (seen,) = scene.renter.read(path)["data"]
    assert seen["maintenance_id"] == made["maintenance_id"]
    long = scene.lease(term_seconds=7_200)
    assert long["node_id"] == scene.other.node_id, "dearer, and not worked on"
    short = scene.lease(term_seconds=1_800)
    assert short["node_id"] == scene.provider.node_id
    cancelled = scene.owner.made(f"{path}/{made['maintenance_id']}/cancel")
    assert cancelled["status"] == "cancelled"
    assert scene.lease(term_seconds=7_200)["node_id"] == scene.provider.node_id


def test_a_window_that_is_too_long_names_its_rule(scene: Scene) -> None:
    path = f"/v1/nodes/{scene.provider.node_id}/maintenances"
    span = _span(NOW_US + HOUR_US, NOW_US + HOUR_US + 8 * DAY_US)
    refused = scene.owner.post(path, {"kind": "security", **span}).json()
    assert (refused["code"], refused["facts"]["rule"]) == ("maintenance_window", "length")


def test_a_drained_node_is_left_out_until_it_is_activated(scene: Scene) -> None:
    path = f"/v1/nodes/{scene.provider.node_id}"
    assert scene.owner.made(f"{path}/drain", {"keep_leases": True})["phase"] == "draining"
    assert scene.owner.read(path)["phase"] == "draining"
    assert scene.lease()["node_id"] == scene.other.node_id
    scene.owner.made(f"{path}/activate")
    assert scene.lease()["node_id"] == scene.provider.node_id


def test_r_19_a_node_that_has_not_told_its_inventory_for_too_long_is_not_matched(
    founded_market: Market, tmp_path: Path
) -> None:
    with founded_market.copied(tmp_path, spec_ttl_s=900) as scene:
        scene.clock.advance(901_000_000)  # type: ignore[attr-defined]
        refused = scene.renter.post("/v1/leases", {"job": scene.job()})
        assert refused.json()["code"] == "no_match"
        joining = scene.provider.joining("ZZZZZZZZ", "NVIDIA A100-PCIE-80GB")
        specs = {name: joining[name] for name in ("devices", "host", "hardware")}
        scene.provider.node.made(f"/v1/nodes/{scene.provider.node_id}/specs", specs)
        assert scene.lease()["node_id"] == scene.provider.node_id


def test_what_a_machine_is_built_of_is_kept_as_it_told_it(scene: Scene) -> None:
    joining = scene.provider.joining("ZZZZZZZZ", "NVIDIA A100-PCIE-80GB")
    path = f"/v1/nodes/{scene.provider.node_id}"
    specs = {"devices": joining["devices"], "host": joining["host"]}
    assert scene.owner.read(path)["specs"]["hardware"] == joining["hardware"], "as it joined"
    scene.provider.node.made(f"{path}/specs", specs)
    assert scene.owner.read(path)["specs"].get("hardware") is None, "it told none"
    hardware = {
        "nvme_drives_gb": [1_000, 2_000],
        "sata_drives": [{"size_gb": 2_000, "kind": "hdd", "rpm": 7_200}],
        "tpm_2_0": True,
        "ram_gb": 320,
        "cpu_cores": 16,
        "ethernet_mbps": 10_000,
    }
    scene.provider.node.made(f"{path}/specs", {**specs, "hardware": hardware})
    assert scene.owner.read(path)["specs"]["hardware"] == hardware
    bad = {**hardware, "sata_drives": [{"size_gb": 2_000, "kind": "tape"}]}
    refused = scene.provider.node.post(f"{path}/specs", {**specs, "hardware": bad})
    assert refused.status_code == 422


# --- reputation ------------------------------------------------------------------------------


def _closed(scene: Scene, who: Caller, code: int, count: int = 1) -> Iterator[str]:
    for _ in range(count):
        lease_id = str(scene.running()["lease_id"])
        who.made(f"/v1/leases/{lease_id}/close", {"code": code})
        yield lease_id


def test_reputation_follows_from_facts_decays_and_can_be_read_as_it_was(scene: Scene) -> None:
    node = f"/v1/nodes/{scene.provider.node_id}/reputation"
    fresh = scene.renter.read(node)
    assert (fresh["score_ppm"], fresh["provisional"], fresh["total"]) == (540_768, True, 0)
    assert "bonus_ppm" not in fresh["standing"], "no epoch, no policy that has a bonus"
    policy = first_policy(by="op", at_us=NOW_US)
    opened = OpenEpoch(epoch=1, start_us=NOW_US, at_us=NOW_US)
    scene.service.ledger.handle([policy, opened], key=None, now_us=NOW_US)
    assert fresh["standing"]["tiers"][0]["missing"] == [
        "leases",
        "age_days",
        "completion_ppm",
        "uptime_ppm",
        "score_ppm",
    ]
    list(_closed(scene, scene.renter, 1, 6))
    assert scene.renter.read(node)["total"] == 5, "of one renter and day five leases count"
    scene.clock.advance(DAY_US)  # type: ignore[attr-defined]
    list(_closed(scene, scene.renter, 1, 5))
    good = scene.renter.read(node)
    assert (good["good"], good["total"], good["completion_ppm"]) == (10, 10, 1_000_000)
    assert (good["provisional"], good["score_ppm"] > fresh["score_ppm"]) == (False, True)
    assert (
        sum(one["weight_ppm"] * one["lower_bound_ppm"] for one in good["inputs"]) // 10**6
        == good["score_ppm"]
    )
    completion, _, _, answers = good["inputs"]
    assert (completion["good"], answers["good"]) == (10_000_000, 11_000_000)
    assert completion["g"] == (5 * 10**6 * 2**32 + 5 * 10**6 * 4_196_870_107) >> 32
    before = scene.head()
    scene.clock.advance(DAY_US)  # type: ignore[attr-defined]
    list(_closed(scene, scene.owner, 10_000))
    assert scene.renter.read(node)["total"] == 10, "a fault waits for 72 hours"
    scene.clock.advance(3 * DAY_US)  # type: ignore[attr-defined]
    bad = scene.renter.read(node)
    assert (bad["good"], bad["total"]) == (10, 11)
    assert bad["score_ppm"] < good["score_ppm"]
    assert bad["closed_by_fault"]["provider"] == 1
    then = scene.renter.read(node, as_of_position=before)
    assert {**then, "position": 0} == {**good, "position": 0, "as_of_position": before}
    owner = scene.renter.read(f"/v1/providers/{scene.provider.provider_id}/reputation")
    assert (owner["good"], owner["total"]) == (10, 11)
    assert bad["standing"]["owner_score_ppm"] == owner["score_ppm"]
    assert (bad["standing"]["bonus_ppm"], bad["standing"]["tier"]) == (10**6, 0)
    assert "score_ppm" not in bad["standing"]["tiers"][0]["missing"]
    renter = f"/v1/accounts/{scene.renter.account_id}/renter-reputation"
    told = scene.owner.read(renter)
    assert (told["good"], told.get("standing")) == (scene.renter.read(renter)["good"], None)
    assert [one["name"] for one in told["inputs"]][:2] == ["payment", "conduct"]
    assert scene.rival.get(renter).status_code == 404, "it has never rented to them"
