"""A machine from its request to active, and what is told of its condition, in production."""

from __future__ import annotations

from typing import Any

import pytest

from api.door.moments import moment
from api.metering.capacity_timer import PROOF_WAIT_US, run_capacity
from domain.parties.account import WALLET_DELAY_US
from tests.api.fleet.test_hardware_admission import GOOD, machine
from tests.scenes.server import Caller, Scene
from tests.scenes.wallets import link
from tests.scenes.work import present

HOUR_US = 3_600_000_000


def in_work(scene: Scene, name: str, lifetime: str = "permanent") -> tuple[str, Caller]:
    """An active node of the owner, and its own key."""
    asked = {"region_id": scene.provider.region_id, "lifetime": lifetime}
    code = scene.owner.made("/v1/nodes/join-codes", asked)["code"]
    told = machine(name, GOOD)
    joined = scene.anybody.made("/v1/nodes/join", {**told, "code": code})
    node_id: str = joined["node_id"]
    scene.owner.made(f"/v1/nodes/{node_id}/confirm", {"key_id": told["key_id"]})
    scene.operator.made(f"/v1/nodes/{node_id}/admit")
    scene.owner.made(f"/v1/nodes/{node_id}/activate")
    return node_id, Caller(scene.http, joined["node_key"])


def test_a_machine_is_requested_validated_shipped_installed_joined_and_activated(
    scene: Scene,
) -> None:
    """C-6, C-32: the whole procedure, with every actor's own key."""
    place = scene.region("approved", admission="approved")
    early = scene.owner.post("/v1/nodes/join-codes", {"region_id": place})
    assert (early.status_code, early.json()["code"]) == (409, "admission_state")
    described = {"vendor": "nvidia", "model": "NVIDIA A100-PCIE-40GB", "gpus": 4}
    body = {"region_id": place, **described}
    assert scene.rival.post("/v1/admissions", body).status_code == 404
    asked = scene.owner.made("/v1/admissions", body)
    path = f"/v1/admissions/{asked['admission_id']}"
    assert (asked["state"], asked["steps_left"]) == (
        "requested",
        ["tpm_cleared", "csm_off", "secure_boot_off"],
    )
    assert scene.owner.post(f"{path}/validate").status_code == 403
    assert scene.operator.post(f"{path}/ship", {"tracking": "1Z"}).status_code == 409
    assert scene.operator.made(f"{path}/validate")["state"] == "validated"
    assert scene.operator.made(f"{path}/ship", {"tracking": "1Z"})["tracking"] == "1Z"
    minion = {"minion_id": "minion-4f21"}
    unready = scene.owner.post(f"{path}/installed", minion).json()
    assert unready["code"] == "admission_state"
    assert "firmware" in unready["detail"]
    for step in asked["steps_left"]:
        told = scene.owner.made(f"{path}/firmware", {"step": step})
    assert (told["steps_done"], told["steps_left"]) == (asked["steps_left"], [])
    assert scene.owner.post(f"{path}/join-codes").json()["code"] == "admission_state"
    assert scene.owner.made(f"{path}/installed", minion)["state"] == "installed"
    code = scene.owner.made(f"{path}/join-codes")["code"]

    told = machine("c6", GOOD)
    joined = scene.anybody.made("/v1/nodes/join", {**told, "code": code})
    node = f"/v1/nodes/{joined['node_id']}"
    assert scene.owner.read(node)["minion_id"] == "minion-4f21"
    scene.owner.made(f"{node}/confirm", {"key_id": told["key_id"]})
    assert scene.operator.made(f"{node}/admit")["phase"] == "provisioning"
    assert scene.owner.post(f"{node}/activate").json()["code"] == "node_state"
    specs = {name: told[name] for name in ("devices", "host", "hardware")}
    itself = Caller(scene.http, joined["node_key"])
    assert itself.made(f"{node}/specs", specs)["phase"] == "maintenance"
    assert scene.owner.made(f"{node}/activate")["phase"] == "active"
    assert scene.owner.read(node)["state"] == "active"
    listed = scene.owner.read("/v1/admissions")["data"]
    assert [one["admission_id"] for one in listed] == [asked["admission_id"]]
    assert scene.rival.read("/v1/admissions")["data"] == []
    assert scene.rival.get(path).status_code == 404
    assert scene.operator.read(path)["minion_id"] == "minion-4f21"


def test_every_state_of_a_node_is_told_wherever_it_is_listed(scene: Scene) -> None:
    """C-7: active, maintenance, offline, stopped, errored, failed, archived."""
    node_id, itself = in_work(scene, "c7")
    path = f"/v1/nodes/{node_id}"

    def states() -> set[str]:
        listed = scene.owner.read("/v1/nodes", region_id=scene.provider.region_id)["data"]
        here = scene.owner.read(f"/v1/regions/{scene.provider.region_id}/nodes")["data"]
        rows = [*listed, *here, scene.owner.read(path)]
        return {row["state"] for row in rows if row["node_id"] == node_id}

    assert states() == {"active"}
    scene.clock.advance(300_000_000)  # type: ignore[attr-defined]
    assert states() == {"offline"}
    told = machine("c7", GOOD)
    itself.made(f"{path}/specs", {name: told[name] for name in ("devices", "host", "hardware")})
    assert states() == {"active"}, "heard again"
    assert itself.made(f"{path}/error", {"error": "Xid 79"})["phase"] == "errored"
    assert states() == {"errored"}
    assert scene.owner.read(path)["error"] == "Xid 79"
    assert scene.owner.post(f"{path}/error", {"error": "x"}).status_code == 403
    assert scene.owner.post(f"{path}/activate").json()["code"] == "node_state"
    scene.owner.made(f"{path}/maintenance")
    assert states() == {"maintenance"}
    scene.operator.made(f"{path}/fail", {"error": "fan broken"})
    assert states() == {"failed"}
    assert scene.owner.read(f"{path}/condition")["error"] == "fan broken"
    scene.owner.made(f"{path}/maintenance")
    scene.owner.made(f"{path}/stop")
    assert states() == {"stopped"}
    scene.owner.made(f"{path}/retire")
    assert states() == {"archived"}
    assert scene.rival.get(f"{path}/condition").status_code == 404


def test_an_ephemeral_node_ends_with_its_job(scene: Scene) -> None:
    """C-31: and a permanent one stays."""
    node_id, itself = in_work(scene, "c31", "ephemeral")
    assert scene.owner.read(f"/v1/nodes/{node_id}")["lifetime"] == "ephemeral"
    offer = {
        "provider_id": scene.provider.provider_id,
        "node_id": node_id,
        "settlement": "cash",
        "price_per_gpu_hour": {"asset": "CREDIT", "units": "1000000"},
    }
    scene.owner.made("/v1/offers", offer)
    first, second = scene.lease(), scene.lease()
    assert {first["node_id"], second["node_id"]} == {node_id}, "the cheapest"
    for lease in (first, second):
        itself.made(f"/v1/nodes/{node_id}/assignments/{lease['lease_id']}/ready")
    scene.clock.advance(60_000_000)  # type: ignore[attr-defined]
    scene.renter.made(f"/v1/leases/{first['lease_id']}/close")
    assert scene.owner.read(f"/v1/nodes/{node_id}")["state"] == "active"
    scene.renter.made(f"/v1/leases/{second['lease_id']}/close")
    assert scene.owner.read(f"/v1/nodes/{node_id}")["state"] == "archived"
    permanent = scene.running()
    scene.renter.made(f"/v1/leases/{permanent['lease_id']}/close")
    assert scene.owner.read(f"/v1/nodes/{permanent['node_id']}")["state"] == "active"


@pytest.mark.parametrize(
    ("uplink", "upnp"), [("corporate_firewall", False), ("internet_provider", True)]
)
def test_what_an_owner_states_of_a_machine_is_told_as_stated(
    shared: Scene, uplink: str, upnp: bool
) -> None:
    """C-32: exclusive access; C-33: UPnP; C-10: no idle mining without a wallet that is paid."""
    path = f"/v1/nodes/{shared.provider.node_id}"
    body = {"uplink": uplink, "upnp": upnp, "exclusive_access": True}
    told = shared.owner.made(f"{path}/setup", body)
    assert {name: told[name] for name in body} == body
    assert told["upnp_advised"] is upnp
    assert set(told["stated"]) == {"uplink", "upnp", "exclusive_access", "idle_mining"}
    assert shared.owner.read(f"{path}/condition")["exclusive_access"] is True
    refused = shared.owner.post(f"{path}/idle-mining", {"enabled": True})
    assert (refused.status_code, refused.json()["code"]) == (409, "wallet_needed")
    assert "wallet" in refused.json()["detail"]


def test_mined_time_is_told_apart_from_idle_and_is_no_usage_of_a_lease(scene: Scene) -> None:
    """C-10: on at a quarter past with a wallet that is paid, and one GPU leased at half past."""
    clock: Any = scene.clock
    link(scene.owner, 0)
    path = f"/v1/nodes/{scene.provider.node_id}/idle-mining"
    assert scene.owner.post(path, {"enabled": True}).json()["code"] == "wallet_needed", "it waits"
    clock.advance(WALLET_DELAY_US)
    begins_us = (clock.now_us() // HOUR_US + 1) * HOUR_US
    quarter_ms = HOUR_US // 4_000
    clock.move_to(begins_us + PROOF_WAIT_US)
    _book(scene)
    clock.move_to(begins_us + HOUR_US // 4)
    assert scene.rival.post(path, {"enabled": True}).json()["code"] == "node_unknown"
    assert scene.owner.made(path, {"enabled": True})["idle_mining"] is True
    clock.move_to(begins_us + HOUR_US // 2)
    lease = scene.running()
    assert lease["node_id"] == scene.provider.node_id, "a lease comes first"
    clock.move_to(begins_us + HOUR_US)
    assert scene.owner.made(path, {"enabled": False})["idle_mining"] is False
    for hour in (1, 2):
        ends_us = begins_us + hour * HOUR_US
        clock.move_to(ends_us + PROOF_WAIT_US)
        present(scene, scene.provider, ends_us, ends_us - HOUR_US)
        _book(scene)
    rows = scene.owner.read(
        "/v1/utilisation", by="hour,node", **{"from": moment(begins_us)}, limit=500
    )["data"]
    mined_hour, idle_hour = (row for row in rows if row["node"] == scene.provider.node_id)
    parts = ("physical", "leased", "idle", "mined", "stranded", "unavailable")
    quarters = dict(zip(parts, (8, 2, 2, 4, 0, 0), strict=True))
    assert {part: int(mined_hour[part]) for part in parts} == {
        part: n * quarter_ms for part, n in quarters.items()
    }
    assert [int(idle_hour[part]) for part in ("leased", "idle", "mined")] == [
        4 * quarter_ms,
        4 * quarter_ms,
        0,
    ]
    for row in (mined_hour, idle_hour):
        assert sum(int(row[part]) for part in parts[1:]) == int(row["physical"])
    books, devices = scene.service.ledger.books, scene.provider.device_ids
    found = {part: [books.balance(f"device:{one}:{part}") for one in devices] for part in parts}
    assert sorted(found["mined"]) == [quarter_ms, 3 * quarter_ms], "the leased one less"
    for one in range(len(devices)):
        assert found["physical"][one] == sum(found[part][one] for part in parts[1:])


def _book(scene: Scene) -> None:
    with scene.service.connect() as connection:
        run_capacity(scene.service, connection, scene.clock.now_us())
