"""A renter as Radium has it: two programs share one GPU, each remoted from the renter's machine,
and give it back the moment they end. REST and commands, under production's settings.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from domain.duration import HOUR_US
from domain.prices.tariff import MARKETPLACE, publish
from tests.api.leasing.test_work import executor_of
from tests.scenes.desk import Desk
from tests.scenes.server import NOW_US, Caller, Scene
from tests.scenes.work import MINUTE_US, accrue_now, reported, send

PRICE = 2_000_000
WHOLE_MIB = 81_559
AMD = "AMD Instinct MI300X"
PROGRAMS = {
    "train.py": {"share": "0.37", "split": "library functions"},
    "infer.py": {"share": "0.63", "split": "all of TensorFlow"},
}
ON_THIS_SIDE = {
    "machine": "desk-1",
    "well": True,
    "arch": "x86_64",
    "os": "linux",
    "kernel": "6.8.0",
}


def leased(desk: Desk, renter: Caller, program: str) -> dict[str, Any]:
    """One call, as the program starts: the part of a GPU that its user asked for."""
    told = PROGRAMS[program]
    words = ("--share", told["share"], "--mode", "memory", "--split", told["split"])
    asked = ("--command", f"python {program}", "--max-price", "2", "--session", program)
    lease: dict[str, Any] = desk.told(renter, "lease", "create", *asked, *words)
    return lease


def test_a_radium_renter_shares_one_gpu_between_two_programs(scene: Scene, tmp_path: Path) -> None:
    desk, renter = Desk(scene, tmp_path), scene.renter
    executor = executor_of(scene, scene.provider)
    node = f"/v1/nodes/{scene.provider.node_id}/assignments"

    # Both programs are on one device; its memory is divided and never more than there is.
    train, infer = (leased(desk, renter, program) for program in PROGRAMS)
    assert train["device_ids"] == infer["device_ids"]
    assert {one["mode"] for one in (train, infer)} == {"memory"}
    device = scene.owner.read(f"/v1/devices/{train['device_ids'][0]}")
    assert (device["share_free_ppm"], device["mem_free_ppm"]) == (0, 0)
    pending = {one["lease_id"]: one for one in executor.read(node)["pending"]}
    memory = [pending[one["lease_id"]]["memory_mib"] for one in (train, infer)]
    assert memory == [WHOLE_MIB * 37 // 100, WHOLE_MIB * 63 // 100]
    assert sum(memory) <= WHOLE_MIB
    for lease, program in zip((train, infer), PROGRAMS, strict=True):
        told = desk.told(renter, "lease", "show", lease["lease_id"])
        assert told["remoting_session_id"] == program
        assert told["split_label"] == PROGRAMS[program]["split"]
        assert pending[lease["lease_id"]]["work"]["command"] == ["python", program]
        executor.made(f"{node}/{lease['lease_id']}/ready")

    # Each half of a session says how it is: the renter's machine, and the node by its reports.
    desk.pass_time(30 * MINUTE_US)
    body = reported(scene.provider, train, infer, minutes=30)
    assert send(scene, scene.provider, body).status_code == 200
    renter.made(f"/v1/leases/{train['lease_id']}/check-in", ON_THIS_SIDE)
    halves = desk.told(renter, "lease", "health", train["lease_id"])
    assert (halves["initiator"]["health"], halves["acceptor"]["health"]) == ("well", "well")

    # One ends: what it had is free at once, and the renter's next program has it.
    desk.told(renter, "lease", "close", infer["lease_id"])
    device = scene.owner.read(f"/v1/devices/{train['device_ids'][0]}")
    assert (device["share_free_ppm"], device["mem_free_ppm"]) == (630_000, 630_000)
    again = leased(desk, renter, "infer.py")
    assert again["device_ids"] == train["device_ids"]
    desk.told(renter, "lease", "close", again["lease_id"])

    # The other runs on for half an hour more; each pays its share of the time that it had.
    desk.pass_time(30 * MINUTE_US)
    body = reported(scene.provider, train, first=30, minutes=30)
    assert send(scene, scene.provider, body).status_code == 200
    desk.told(renter, "lease", "close", train["lease_id"])
    paid = {}
    for lease in (train, infer, again):
        accrue_now(scene, lease["lease_id"])
        told = desk.told(renter, "lease", "show", lease["lease_id"])
        paid[lease["lease_id"]] = (int(told["gpu_us"]), int(told["charge"]["units"]))
    assert paid == {
        train["lease_id"]: (HOUR_US * 37 // 100, PRICE * 37 // 100),
        infer["lease_id"]: (HOUR_US // 2 * 63 // 100, PRICE // 2 * 63 // 100),
        again["lease_id"]: (0, 0),
    }
    spent = sum(charge for _, charge in paid.values())
    balance = scene.service.ledger.books.balance
    assert balance(f"party:{renter.account_id}:cash") == 100_000_000 - spent
    assert 0 < balance(f"party:{scene.owner.account_id}:holdback") <= spent // 2
    device = scene.owner.read(f"/v1/devices/{train['device_ids'][0]}")
    assert (device["share_free_ppm"], "mode" in device) == (1_000_000, False)
    assert desk.audited()["verified"]


def test_any_accelerator_is_had_for_seconds_and_a_broken_promise_is_credited(
    scene: Scene, tmp_path: Path
) -> None:
    """An AMD device, asked for by its model, held for three minutes of which two were there: those
    two are paid, and three tenths of them come back by themselves, for the class had promised more.
    """
    desk, renter = Desk(scene, tmp_path), scene.renter
    tariff = publish(MARKETPLACE, version=2, effective_from_us=NOW_US, by="op", at_us=NOW_US)
    scene.service.ledger.handle(tariff, key=None, now_us=NOW_US)
    amd = copy.copy(scene.provider)
    amd.vendor = "amd"
    amd.join(scene, "amd", AMD, PRICE)
    found = desk.told(renter, "offer", "search", "--vendor", "amd")["data"]
    assert [one["node_id"] for one in found] == [amd.node_id]
    lease = scene.lease(job=scene.job(models=[AMD], sla_class="standard"))
    assert (lease["state"], lease["device_ids"]) == ("reserved", ["GPU-amd-0"]), "at once"
    amd.node.made(f"/v1/nodes/{amd.node_id}/assignments/{lease['lease_id']}/ready")
    for first in (0, 2):
        desk.pass_time((first or 1) * MINUTE_US)
        body = reported(amd, lease, first=first, minutes=1)
        assert send(scene, amd, body).status_code == 200
    desk.told(renter, "lease", "close", lease["lease_id"])
    accrue_now(scene, lease["lease_id"])
    charge = PRICE * 2 // 60
    told = desk.told(renter, "lease", "show", lease["lease_id"])
    assert (told["gpu_us"], told["charge"]["units"]) == ("120000000", str(charge))
    assert desk.timers("corrections") == {"corrections": 1}
    (back,) = renter.read("/v1/adjustments", lease_id=lease["lease_id"])["data"]
    assert (back["reason"], int(back["returned"]["units"])) == ("sla", charge * 3 // 10)
    bill = desk.told(renter, "statement")["kinds"]
    moved = {one["kind"]: int(one["movement"]["units"]) for one in bill if one["part"] == "cash"}
    assert moved["hold"] + moved["refund"] == -charge
    assert moved["adjustment"] == charge * 3 // 10
    assert desk.audited()["verified"]
