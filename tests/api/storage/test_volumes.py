"""Row R-20 over HTTP under production's settings: a volume's whole life, and who may touch it."""

from __future__ import annotations

import copy
from collections.abc import Generator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from api.corrections.corrections_timer import correct_due
from api.storage.volume_timer import run_volumes
from domain.duration import HOUR_US
from domain.income.invoice import period_bounds_us
from domain.metering.report import lane_of
from domain.prices.tariff import PRESETS, publish
from domain.storage.node_room import room_stream
from domain.storage.volume import GRACE_US, cost_units, reserve_units
from tests.api.income.test_focus import must_be_valid, read_csv
from tests.api.leasing.test_work import executor_of
from tests.scenes.server import NOW_US, Caller, Provider, Scene
from tests.scenes.serving import Market
from tests.scenes.work import run

SIZE = 100
PRESET = PRESETS["marketplace"]
RATE = next(row for row in PRESET.meters if row.meter == "volume")
HOUR = cost_units(SIZE, HOUR_US, RATE)
RESERVE = reserve_units(SIZE, RATE)


@pytest.fixture
def scene(founded_market: Market, tmp_path: Path) -> Generator[Scene]:
    """A market under the preset that prices volumes."""
    with founded_market.copied(tmp_path) as made:
        assert made.service.settings.environment == "production"
        tariff = publish(PRESET, version=2, effective_from_us=NOW_US, by="operator", at_us=NOW_US)
        made.service.ledger.handle(tariff, key=None, now_us=NOW_US)
        yield made


def created(scene: Scene, who: Caller | None = None, **changes: Any) -> dict[str, Any]:
    body = {"name": "checkpoints", "region_id": scene.provider.region_id, "size_gib": SIZE}
    return (who or scene.renter).made("/v1/volumes", {**body, **changes})


def mounting(volume: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    return [{"volume_id": volume["volume_id"], "path": "/vol/data", **changes}]


def later(scene: Scene, us: int) -> int:
    clock: Any = scene.clock
    clock.advance(us)
    with scene.service.connect() as connection:
        return run_volumes(scene.service, connection, clock.now_us())


def cash(scene: Scene) -> int:
    return scene.service.ledger.books.balance(f"party:{scene.renter.account_id}:cash")


def units(money: dict[str, Any]) -> int:
    return int(money["units"])


def test_a_volume_is_attached_to_many_jobs_at_once_reattached_and_billed_once(scene: Scene) -> None:
    """R-20: provisioned, attached (many at once), detached, reattached, deleted, erased."""
    before = cash(scene)
    volume = created(scene)
    path = f"/v1/volumes/{volume['volume_id']}"
    assert (volume["state"], units(volume["reserve"])) == ("detached", RESERVE)
    assert cash(scene) == before - RESERVE
    # Two leases have it at once; both run where it is, though the other region has room too.
    leases = [
        scene.lease(job=scene.job(volumes=mounting(volume, read_only=bool(number))))
        for number in range(2)
    ]
    assert {one["node_id"] for one in leases} == {scene.provider.node_id}
    shown = scene.renter.read(path)
    assert (shown["state"], shown["leases"]) == ("attached", 2)
    assert {one["lease_id"] for one in shown["attachments"]} == {one["lease_id"] for one in leases}
    # The node is told what to mount, where, and how much may lie in it.
    told = scene.provider.node.read(f"/v1/nodes/{scene.provider.node_id}/assignments")
    mounts = {one["lease_id"]: one["volumes"] for one in told["pending"]}
    assert mounts[leases[0]["lease_id"]] == [
        {
            "volume_id": volume["volume_id"],
            "path": "/vol/data",
            "read_only": False,
            "size_gib": SIZE,
        }
    ]
    assert mounts[leases[1]["lease_id"]][0]["read_only"] is True
    # Nothing is deleted that something has attached.
    refused = scene.renter.post(f"{path}/delete", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "volume_attached")
    # Two hours cost two hours of the volume, not of its attachments, and no run charges twice.
    for lease in leases:
        scene.renter.post(f"/v1/leases/{lease['lease_id']}/close", {})
    paid = cash(scene)
    assert later(scene, 2 * HOUR_US) == 1
    assert later(scene, 0) == 0
    shown = scene.renter.read(path)
    assert units(shown["charge"]) == cost_units(SIZE, 2 * HOUR_US, RATE) == paid - cash(scene)
    assert shown["gb_seconds"] == SIZE * 2**30 * 7_200 // 10**9
    assert (shown["state"], shown["leases"]) == ("detached", 0)
    # A later job attaches it again, by a command on the job.
    job = scene.renter.made("/v1/jobs", scene.job())
    scene.renter.made(f"{path}/attach", {"job_id": job["job_id"], "path": "/vol/again"})
    again = scene.renter.made("/v1/leases", {"job_id": job["job_id"]})
    assert scene.renter.read(path)["attachments"][0]["path"] == "/vol/again"
    told = scene.renter.read(f"/v1/jobs/{job['job_id']}")
    assert told["volumes"][0]["path"] == "/vol/again"
    scene.renter.made(f"{path}/detach", {"job_id": job["job_id"]})
    assert "volumes" not in scene.renter.read(f"/v1/jobs/{job['job_id']}")
    assert scene.renter.read(path)["leases"] == 1, "a lease that has it keeps it"
    scene.renter.post(f"/v1/leases/{again['lease_id']}/close", {})
    # Deleted: the reserve is back, the node is told to erase it, and says that it did, once.
    gone = scene.renter.made(f"{path}/delete")
    assert (gone["state"], gone["deleted_because"], units(gone["reserve"])) == (
        "deleted",
        "owner",
        0,
    )
    assert gone["nodes_left"] == 1
    assert cash(scene) == before - units(gone["charge"])
    assert scene.renter.made(f"{path}/delete")["charge"] == gone["charge"], "twice is once"
    node = f"/v1/nodes/{scene.provider.node_id}"
    executor = executor_of(scene, scene.provider)
    assert executor.read(f"{node}/assignments")["to_erase"] == [volume["volume_id"]]
    elsewhere = f"/v1/nodes/{scene.other.node_id}"
    assert scene.other.node.read(f"{elsewhere}/assignments")["to_erase"] == []
    refused = scene.other.node.post(f"{elsewhere}{path.removeprefix('/v1')}/erased", {})
    assert refused.json()["code"] == "volume_unknown"
    erased = executor.made(f"{node}{path.removeprefix('/v1')}/erased")
    assert erased["state"] == "erased"
    assert executor.read(f"{node}/assignments")["to_erase"] == []
    assert scene.renter.read(path)["state"] == "erased"


def test_every_node_that_had_a_volume_erases_its_own_folder(scene: Scene) -> None:
    """Nodes of a region may keep volumes apart: what one erased says nothing of the others."""
    first, second = copy.copy(scene.provider), scene.provider
    second.join(scene, "alpha-2", "NVIDIA A100-PCIE-80GB", 2_000_000)
    volume = created(scene)
    path = f"/v1/volumes/{volume['volume_id']}"
    for _ in range(len(first.device_ids) + 1):  # one more than the first node has
        scene.lease(job=scene.job(volumes=mounting(volume)))
    leases = scene.renter.read("/v1/leases")["data"]
    assert {one["node_id"] for one in leases} == {first.node_id, second.node_id}
    for lease in leases:
        scene.renter.post(f"/v1/leases/{lease['lease_id']}/close", {})
    assert scene.renter.made(f"{path}/delete")["nodes_left"] == 2

    def erased(node: Provider) -> dict[str, Any]:
        told = node.node.read(f"/v1/nodes/{node.node_id}/assignments")["to_erase"]
        assert told == [volume["volume_id"]]
        gone = f"/v1/nodes/{node.node_id}/volumes/{volume['volume_id']}/erased"
        node.node.made(gone)
        assert node.node.read(f"/v1/nodes/{node.node_id}/assignments")["to_erase"] == []
        return node.node.made(gone)

    assert erased(first)["state"] == "deleted"
    told = scene.renter.read(path)
    assert (told["state"], told["nodes_left"], "erased_at" in told) == ("deleted", 1, False)
    assert erased(second)["state"] == "erased"
    told = scene.renter.read(path)
    assert (told["state"], told["nodes_left"], "erased_at" in told) == ("erased", 0, True)


def test_what_a_volume_costs_is_on_every_paper_and_its_disk_is_paid(scene: Scene) -> None:
    """Statement, line, invoice, FOCUS, and the provider's share as other resources are shared."""
    volume = created(scene, project_id="p")
    later(scene, 3 * HOUR_US)
    charge = cost_units(SIZE, 3 * HOUR_US, RATE)
    books, owner = scene.service.ledger.books, scene.provider.owner.account_id
    assert books.balance(f"party:{owner}:holdback") == charge // 2
    assert books.balance("network:revenue:take") == charge - charge // 2
    earned = scene.owner.read("/v1/earnings", by="node_id,epoch")["data"]
    (told,) = [one for one in earned if "node_id" not in one]
    assert (units(told["charge"]), units(told["earned"])) == (charge, charge // 2)

    account = f"/v1/accounts/{scene.renter.account_id}"
    (line,) = scene.renter.read(f"{account}/statements", kind="volume")["lines"]
    assert (int(line["movement"]["units"]), line["part"]) == (-charge, "cash")
    assert (line["volume_id"], line["project_id"]) == (volume["volume_id"], "p")
    detail = scene.renter.read(f"{account}/statements/lines/{line['position']}")
    assert [(one["name"], one["after"]) for one in detail["arithmetic"]] == [
        ("gb_seconds", str(SIZE * 2**30 * 3 * 3_600 // 10**9)),
        ("charge", str(charge)),
    ]
    scene.renter.made(f"/v1/volumes/{volume['volume_id']}/delete")
    clock: Any = scene.clock
    clock.advance(period_bounds_us("2026-11")[1] + 2 * HOUR_US - clock.now_us())
    issued = scene.operator.made(f"{account}/invoices", {"period": "2026-11", "kind": "charges"})
    (paid,) = scene.renter.read(f"{account}/invoices/{issued['written_number']}")["lines"]
    assert (paid["what"], units(paid["amount"])) == ("volume", charge)
    (row,) = read_csv(scene.renter.get(f"{account}/statements/2026-11.csv").content)
    must_be_valid([row])
    assert (row["ResourceId"], row["ServiceCategory"]) == (volume["volume_id"], "Storage")
    assert int(Decimal(row["BilledCost"]) * 1_000_000) == charge
    assert row["SubAccountId"] == "p"


def test_what_a_volume_costs_is_disputed_ruled_on_and_given_back(scene: Scene) -> None:
    """E-M7: by the route, the rule and the papers of every other charge."""
    volume = created(scene)
    later(scene, HOUR_US)
    later(scene, HOUR_US)
    account = f"/v1/accounts/{scene.renter.account_id}"
    lines = scene.renter.read(f"{account}/statements", kind="volume")["lines"]
    positions = [one["position"] for one in lines]
    assert len(positions) == 2
    body = {
        "volume_id": volume["volume_id"],
        "lines": [{"position": positions[0]}],
        "claim_code": "unreachable",
    }
    for wrong in ({**body, "lease_id": "lease_" + "1" * 32}, {**body, "volume_id": None}):
        refused = scene.renter.post("/v1/disputes", wrong)
        assert (refused.status_code, "one of them" in refused.text) == (422, True), refused.text
    for caller, who in ((scene.stranger, "volume_unknown"), (scene.rival, "volume_unknown")):
        assert caller.post("/v1/disputes", body).json()["code"] == who
    elsewhere = {**body, "volume_id": created(scene)["volume_id"]}
    assert scene.renter.post("/v1/disputes", elsewhere).json()["code"] == "line_unknown"

    books, before = scene.service.ledger.books, cash(scene)
    charge = units(lines[0]["movement"]) * -1
    holdback = f"party:{scene.owner.account_id}:holdback"
    held = books.balance(holdback)
    dispute = scene.renter.made("/v1/disputes", body)
    assert dispute["volume_id"] == volume["volume_id"]
    assert "lease_id" not in dispute
    assert held - books.balance(holdback) == units(dispute["reserved"]) == charge // 2
    path = f"/v1/disputes/{dispute['dispute_id']}"
    for caller in (scene.renter, scene.owner):
        listed = caller.read("/v1/disputes", volume_id=volume["volume_id"])["data"]
        assert [one["dispute_id"] for one in listed] == [dispute["dispute_id"]]
        other = caller.read("/v1/disputes", volume_id=elsewhere["volume_id"])["data"]
        assert other == []
    ruled = scene.operator.made(f"{path}/rule", {"outcome": "split", "upheld_ppm": 400_000})
    given = charge * 400_000 // 1_000_000
    assert (ruled["state"], units(ruled["upheld"])) == ("split", given)
    assert cash(scene) == before + given
    (line,) = scene.renter.read(path)["lines"]
    booked = scene.renter.read(f"/v1/adjustments/{line['adjustment_id']}")
    assert (booked["volume_id"], booked["corrects_position"]) == (volume["volume_id"], positions[0])
    (listed,) = scene.owner.read("/v1/adjustments", volume_id=volume["volume_id"])["data"]
    assert listed["adjustment_id"] == line["adjustment_id"]
    assert books.books_balanced()
    clock: Any = scene.clock
    clock.advance(period_bounds_us("2026-11")[1] + 2 * HOUR_US - clock.now_us())
    corrections = [
        one
        for one in read_csv(scene.renter.get(f"{account}/statements/2026-11.csv").content)
        if one["ChargeCategory"] == "Adjustment"
    ]
    assert [
        (one["ResourceId"], one["ServiceCategory"], int(Decimal(one["BilledCost"]) * 1_000_000))
        for one in corrections
    ] == [(volume["volume_id"], "Storage", -given)]
    must_be_valid(corrections)


def test_a_program_that_mounted_a_volume_later_shows_that_its_disk_was_there(scene: Scene) -> None:
    """The report of a lease that mounts the volume is evidence for what was charged before it, and
    for nothing that was charged from then on. Silence gives the rest back.
    """
    volume = created(scene)
    lease = scene.running(job=scene.job(volumes=mounting(volume)))
    run(scene, lease, minutes=60)
    later(scene, 0)
    later(scene, HOUR_US)
    account = f"/v1/accounts/{scene.renter.account_id}"
    lines = scene.renter.read(f"{account}/statements", kind="volume")["lines"]
    report = {"kind": "usage_report", "lane": lane_of(scene.provider.node_id), "position": 1}
    disputes = []
    for line in lines:
        body = {
            "volume_id": volume["volume_id"],
            "lines": [{"position": line["position"]}],
            "claim_code": "unreachable",
        }
        disputes.append(scene.renter.made("/v1/disputes", body)["dispute_id"])
    shown, not_shown = (f"/v1/disputes/{one}" for one in disputes)
    assert scene.owner.made(f"{shown}/answer", {"evidence": [report]})["state"] == "answered"
    refused = scene.owner.post(f"{not_shown}/answer", {"evidence": [report]})
    assert (refused.status_code, refused.json()["code"]) == (422, "evidence_unknown")
    fact = {"kind": "market_fact", "position": lines[0]["position"]}
    scene.renter.made(f"{shown}/answer", {"evidence": [fact]})
    said = scene.renter.read(shown)["statements"]
    assert [[one["signed"] for one in each["evidence"]] for each in said] == [[], [True], [False]]

    clock: Any = scene.clock
    clock.advance(91 * 24 * HOUR_US)
    with scene.service.connect() as connection:
        correct_due(scene.service.ledger, connection, clock.now_us())
    first, second = (scene.renter.read(path) for path in (shown, not_shown))
    assert (first["state"], units(first["upheld"]), first["unfounded"]) == ("timed_out", 0, True)
    assert units(second["upheld"]) == units(second["reserved"]) > 0
    assert scene.service.ledger.books.books_balanced()


def test_a_volume_pins_the_region_of_its_jobs(scene: Scene) -> None:
    """R-20: it lies with the dearer provider, so the lease runs there."""
    volume = created(scene, region_id=scene.other.region_id)
    lease = scene.lease(job=scene.job(volumes=mounting(volume)))
    assert lease["node_id"] == scene.other.node_id
    away = {"regions": [scene.provider.region_id]}
    job = scene.job(volumes=mounting(volume), constraints=away)
    refused = scene.renter.post("/v1/jobs", job)
    assert (refused.status_code, refused.json()["code"]) == (409, "volume_region")


def test_a_region_without_a_node_sells_no_volume(scene: Scene) -> None:
    empty = scene.region("empty")
    body = {"name": "x", "region_id": empty, "size_gib": SIZE}
    refused = scene.renter.post("/v1/volumes", body)
    assert (refused.status_code, refused.json()["code"]) == (409, "volume_region")
    assert f"No machine that runs jobs has joined the region {empty}" in refused.json()["detail"]
    assert scene.renter.read("/v1/volumes")["data"] == []


def test_a_volume_needs_a_positive_balance(scene: Scene) -> None:
    """R-20, C-25: a refusal tells how much is missing and makes nothing."""
    poor = scene.account()
    body = {"name": "x", "region_id": scene.provider.region_id, "size_gib": SIZE}
    refused = poor.post("/v1/volumes", body)
    assert refused.json()["code"] == "credit_too_low"
    scene.deposit(poor, RESERVE + HOUR - 1)
    assert poor.post("/v1/volumes", body).json()["code"] == "credit_too_low"
    assert poor.read("/v1/volumes")["data"] == []
    scene.deposit(poor, 1)
    created(scene, poor)


def test_when_funds_end_a_volume_is_kept_for_72_hours_and_then_deleted(scene: Scene) -> None:
    """R-20: announced with the moment; the reserve pays; credits in time keep it."""
    renter = scene.account()
    scene.deposit(renter, RESERVE + HOUR)
    volume = created(scene, renter)
    path = f"/v1/volumes/{volume['volume_id']}"
    later(scene, 2 * HOUR_US)
    told = renter.read(path)
    assert told["state"] == "grace"
    assert told["deletes_at"] == _moment(NOW_US + HOUR_US + GRACE_US)
    refused = renter.post("/v1/jobs", scene.job(volumes=mounting(volume)))
    assert refused.json()["code"] == "volume_state"
    scene.deposit(renter, 3 * HOUR)
    later(scene, 0)
    assert renter.read(path)["state"] == "detached"
    later(scene, 100 * HOUR_US)
    later(scene, 2 * GRACE_US)
    told = renter.read(path)
    assert (told["state"], told["deleted_because"]) == ("erased", "funds_ended")
    books = scene.service.ledger.books
    assert books.balance(f"party:{renter.account_id}:owed") == 0, "nothing is owed for a volume"
    assert not any(books.balances(f"escrow:{volume['volume_id']}:").values())
    bill = renter.read(f"/v1/accounts/{renter.account_id}/balances")
    assert bill, "the account goes on"


def _moment(us: int) -> str:
    from api.door.moments import moment

    return moment(us)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/vol/../etc", ".."),
        ("/vol/a/../../etc", ".."),
        ("/etc", "/vol/"),
        ("volumes/a", "/vol/"),
        ("/vol/", "bytes"),
        ("/vol//a", "empty"),
        ("/vol/./a", "."),
        ("/vol/a\n", "control"),
        ("/vol/a\\b", "backslash"),
        ("/vol/" + "a" * 256, "255"),
    ],
)
def test_no_mount_leaves_the_folder_of_mounts(scene: Scene, path: str, rule: str) -> None:
    """A path that is no way in is a clear error, and the job is not there."""
    volume = created(scene)
    answer = scene.renter.post("/v1/jobs", scene.job(volumes=mounting(volume, path=path)))
    assert (answer.status_code, answer.json()["code"]) == (422, "mount_invalid"), answer.text
    assert rule in answer.json()["detail"]
    assert scene.renter.read("/v1/jobs")["data"] == []


def test_a_volume_is_for_its_account_alone(scene: Scene) -> None:
    volume = created(scene)
    path = f"/v1/volumes/{volume['volume_id']}"
    stranger = scene.stranger
    scene.deposit(stranger, 10**9)
    job = stranger.made("/v1/jobs", scene.job())
    mine = scene.renter.made("/v1/jobs", scene.job())
    attach = {"job_id": job["job_id"], "path": "/vol/a"}
    assert stranger.get(path).status_code == 404
    assert stranger.read("/v1/volumes")["data"] == []
    assert stranger.post(f"{path}/attach", attach).json()["code"] == "volume_unknown"
    assert stranger.post(f"{path}/delete", {}).json()["code"] == "volume_unknown"
    assert stranger.post("/v1/jobs", scene.job(volumes=mounting(volume))).status_code == 404
    attach = {"job_id": mine["job_id"], "path": "/vol/a"}
    assert stranger.post(f"{path}/attach", attach).json()["code"] == "job_unknown"
    assert [one["volume_id"] for one in scene.operator.read("/v1/volumes")["data"]] == [
        volume["volume_id"]
    ]
    refused = scene.renter.post(f"/v1/accounts/{scene.renter.account_id}/close", {})
    assert refused.json()["code"] == "account_not_empty"


def test_gpu_disk_and_network_are_taken_together_at_a_presets_prices(scene: Scene) -> None:
    """J-6: a lease gets all three or nothing, and each has its price in a published preset."""
    offer = {
        "provider_id": scene.provider.provider_id,
        "node_id": scene.provider.node_id,
        "price_per_gpu_hour": {"asset": "CREDIT", "units": "2000000"},
        "fractions": True,
        "terms": {"storage_gib": 100, "network_mbps": 1_000},
    }
    scene.owner.made(f"/v1/offers/{scene.provider.offer_id}/withdraw")
    scene.owner.made("/v1/offers", offer)
    demands = {"storage_gib": 100, "network_mbps": 600}
    maxima = [
        {"meter": meter, "amount": {"asset": "CREDIT", "units": "5000"}}
        for meter in ("storage", "network")
    ]
    job = scene.job(constraints=demands, meter_maxima=maxima)
    lease = scene.lease(job=job)
    room = scene.service.ledger.market.state_of(room_stream(scene.provider.node_id))
    held = room.holders[lease["lease_id"]]
    assert (held.storage_gib, held.network_mbps) == (100, 600)
    books = scene.service.ledger.books
    for meter in ("storage", "network"):
        priced = books.balances(f"escrow:{lease['lease_id']}/{meter}:")
        assert list(priced.values()) == [5_000], "what has no price holds nothing"
    refused = scene.renter.post("/v1/leases", {"job": job})
    assert (refused.status_code, refused.json()["code"]) == (409, "no_match")
    facts = refused.json()["facts"]
    assert (facts["dimension"], facts["best_offered"]) == ("storage", "0")
    assert len(scene.renter.read("/v1/leases")["data"]) == 1, "no GPU without its disk"
    scene.renter.post(f"/v1/leases/{lease['lease_id']}/close", {})
    scene.lease(job=job)
