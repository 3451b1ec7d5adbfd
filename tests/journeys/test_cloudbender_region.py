"""A region as CloudBender has it, from the request of its first machine to the payout: a site with
central storage, a followed admission, a store and a port of one's own, a foreign job, a fee, an
earning. REST and commands, under production's settings.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from domain.duration import HOUR_US
from domain.income.maturity import DEFAULT_WINDOW_US
from tests.scenes.desk import Desk
from tests.scenes.server import JOIN, Provider, Scene
from tests.scenes.work import accrue_now, reported, send

MODEL = "NVIDIA A100-PCIE-80GB"
PRICE = 2_780_000
FIRMWARE = ["tpm_cleared", "csm_off", "secure_boot_off"]
EARNED, TAKEN = 1_265_000, 1_515_000
"""Of a foreign A100 hour at 2.78: (2.78 - 0.25) / 2 for the provider, the rest for the platform."""
FEE = 250_000
"""Of an hour on an A100 of one's own."""


def site(desk: Desk) -> str:
    """A place of the provider's with central storage: the storage node comes first."""
    owner, provider = desk.scene.owner, desk.scene.provider
    words = ("--name", "site-1", "--storage", "central", "--admission", "approved")
    region: str = desk.told(owner, "region", "open", provider.provider_id, *words)["region_id"]
    poor = desk.run(owner, "storage", "provision", region, "nvme")
    assert (poor.code, "credit" in poor.err) == (1, True), "nothing is provisioned without credits"
    desk.scene.deposit(owner, 20_000_000)
    desk.told(owner, "storage", "provision", region, "nvme")
    assert desk.told(owner, "storage", "ready", region)["state"] == "active"
    return region


def admitted(desk: Desk, region: str) -> Provider:
    """A machine, from the request to active, each step by the one whose step it is."""
    scene, owner, operator = desk.scene, desk.scene.owner, desk.scene.operator
    asking = ("admission", "request", region, "--vendor", "nvidia", "--model", MODEL, "--gpus", 2)
    asked = desk.told(owner, *asking)
    admission = asked["admission_id"]
    assert (asked["state"], asked["steps_left"]) == ("requested", FIRMWARE)
    assert desk.told(operator, "admission", "validate", admission)["state"] == "validated"
    desk.told(operator, "admission", "ship", admission, "1Z999")
    for step in FIRMWARE:
        desk.told(owner, "admission", "step", admission, step)
    desk.told(owner, "admission", "installed", admission, "minion-4f21")
    code = desk.told(owner, "admission", "code", admission)["code"]

    rig = copy.copy(scene.provider)
    rig.region_id = region
    rig.machine("rig")
    joining = rig.joining(code, MODEL)
    rig.joined(scene.anybody.made(JOIN, joining))
    shown = desk.told(owner, "node", "show", rig.node_id)
    assert shown["minion_id"] == "minion-4f21"
    desk.told(owner, "node", "confirm", rig.node_id, "--fingerprint", shown["fingerprint"])
    assert desk.told(operator, "node", "admit", rig.node_id)["phase"] == "provisioning"
    specs = {name: joining[name] for name in ("devices", "host", "hardware")}
    assert rig.node.made(f"/v1/nodes/{rig.node_id}/specs", specs)["phase"] == "maintenance"
    assert desk.told(owner, "node", "activate", rig.node_id)["phase"] == "active"
    rig.offer(PRICE)
    return rig


def attached(desk: Desk, region: str) -> tuple[str, ...]:
    """What a lease of the owner's says to have its store and its port; they take the plan team."""
    scene, owner = desk.scene, desk.scene.owner
    adding = ("datastore", "add", region, "--name", "renders", "--address", "10.0.0.5")
    refused = desk.run(owner, *adding, "--root", "/dir2")
    assert (refused.code, "plan team" in refused.err) == (1, True), refused.err
    scene.operator.made(f"/v1/accounts/{owner.account_id}/plan", {"plan": "team"})
    store = desk.told(owner, *adding, "--root", "/dir2")["datastore_id"]
    words = ("--name", "viewer", "--host", "viewer", "--port", 8_888)
    port = desk.told(owner, "reservation", "add", region, *words)["reservation_id"]
    return ("--mount", f"{store}:/subdir2:input", "--reservation", port)


def lines(desk: Desk, who: Any, kind: str) -> list[int]:
    """What a statement's lines of this kind moved, in micro-credits."""
    told = desk.told(who, "statement", "--kind", kind)["lines"]
    return [int(one["movement"]["units"]) for one in told]


def test_a_cloudbender_region_from_its_request_to_the_payout(scene: Scene, tmp_path: Path) -> None:
    desk, owner, renter = Desk(scene, tmp_path), scene.owner, scene.renter
    region = site(desk)
    rig = admitted(desk, region)
    node = f"/v1/nodes/{rig.node_id}/assignments"

    # The owner's own job mounts its store, keeps its port, and so runs here and nowhere else.
    words = ("--command", "python train.py", "--max-price", "3", "--project", "lab")
    own = desk.told(owner, "lease", "create", *words, *attached(desk, region))
    assert own["node_id"] == rig.node_id, "although the other node of this owner costs less"
    (port,) = desk.told(owner, "reservation", "list")["data"]
    assert port["lease_id"] == own["lease_id"]
    (pending,) = rig.node.read(node)["pending"]
    assert [one["path"] for one in pending["work"]["mounts"]] == ["/dir2/subdir2"]

    # Spare capacity serves another account, at the price of the offer.
    job = scene.job(models=[MODEL], constraints={"regions": [region]}, project_id="thesis")
    foreign = scene.lease(job=job)
    assert (foreign["node_id"], foreign["price_per_gpu_hour"]["units"]) == (rig.node_id, str(PRICE))
    for lease in (own, foreign):
        rig.node.made(f"{node}/{lease['lease_id']}/ready")
    desk.pass_time(HOUR_US)
    assert send(scene, rig, reported(rig, own, foreign)).status_code == 200
    desk.told(owner, "lease", "close", own["lease_id"])
    desk.told(renter, "lease", "close", foreign["lease_id"])
    for lease in (own, foreign):
        accrue_now(scene, lease["lease_id"])
    desk.timers("storage_nodes")

    # The bills: what each paid and for what.
    assert lines(desk, renter, "usage") == [-PRICE]
    assert lines(desk, owner, "usage") == [-FEE]
    assert lines(desk, owner, "storage_node") == [-100_000], "an hour of the storage node"
    (charge,) = owner.read(f"/v1/leases/{foreign['lease_id']}/charges")["data"]
    parts = {name: int(charge[name]["units"]) for name in ("fee", "provider", "platform", "burn")}
    assert parts == {"fee": FEE, "provider": EARNED, "platform": TAKEN - FEE, "burn": 0}
    (port,) = desk.told(owner, "reservation", "list")["data"]
    assert "lease_id" not in port, "it is free for the next work, under the same name"

    # The earning matures and is swept: every 24 hours, whole, without a fee, spendable at once.
    maturity = f"/v1/accounts/{owner.account_id}/maturity"
    assert owner.read(maturity)["held_back"]["units"] == str(EARNED)
    desk.pass_time(DEFAULT_WINDOW_US)
    assert desk.timers("maturity", "sweep") == {"maturity": 1, "sweep": 1}
    paid = owner.read(maturity)
    assert (paid["held_back"]["units"], paid["payable"]["units"]) == ("0", "0")
    assert paid["earned"]["units"] == str(EARNED)
    assert lines(desk, owner, "sweep") == [-EARNED, EARNED], "from payable to earned; newest first"
    assert desk.timers("maturity", "sweep") == {"maturity": 0, "sweep": 0}, "once in 24 hours"
    desk.timers("storage_nodes")
    assert owner.read(maturity)["earned"]["units"] == "0", "its own fees are paid of it first"
    assert desk.audited()["verified"]
