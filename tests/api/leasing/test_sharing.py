"""Leases that share a device, over HTTP: what each is told, what it costs, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from api.metering.capacity_timer import PROOF_WAIT_US, run_capacity
from domain.duration import HOUR_US
from domain.metering import report
from tests.scenes.server import NOW_US, Scene
from tests.scenes.work import accrue_now, present, reported, send

SECOND_US = 1_000_000
HOUR_NEXT_US = (NOW_US // HOUR_US + 1) * HOUR_US


def asking(scene: Scene, mode: str, profile: str | None = None, **job: Any) -> dict[str, Any]:
    constraints = {"mode": mode} if profile is None else {"mode": mode, "mig_profile": profile}
    models = {"models": ["NVIDIA A100-PCIE-80GB"]}
    return {"job": scene.job(constraints=constraints, **{**models, **job})}


def device_of(scene: Scene, lease: dict[str, Any]) -> dict[str, Any]:
    return scene.owner.read(f"/v1/devices/{lease['device_ids'][0]}")


# What everybody is told.


def test_mig_leases_say_their_profile_and_start_to_renter_provider_and_node(scene: Scene) -> None:
    three = scene.renter.made("/v1/leases", asking(scene, "mig", "3g.40gb"))
    four = scene.renter.made("/v1/leases", asking(scene, "mig", "4g.40gb"))
    assert (three["mode"], three["mig_profile"], three["mig_starts"]) == ("mig", "3g.40gb", [4])
    assert (four["mode"], four["mig_profile"], four["mig_starts"]) == ("mig", "4g.40gb", [0])
    assert four["device_ids"] == three["device_ids"]
    assert (three["share_ppm"], three["mem_ppm"]) == (428_571, 500_000)
    told = scene.renter.read(f"/v1/leases/{three['lease_id']}")
    assert (told["mode"], told["mig_profile"], told["mig_starts"]) == ("mig", "3g.40gb", [4])
    device = device_of(scene, three)
    assert device["mode"] == "mig"
    assert {(one["mig_profile"], one["mig_start"]) for one in device["holdings"]} == {
        ("3g.40gb", 4),
        ("4g.40gb", 0),
    }
    assert device["partition"]["possible"] == []
    assert device["stranded_ppm"] == 1
    path = f"/v1/nodes/{scene.provider.node_id}/assignments"
    pending = {one["lease_id"]: one for one in scene.provider.node.read(path)["pending"]}
    assert pending[four["lease_id"]]["mig_starts"] == [0]
    scene.provider.node.made(f"{path}/{four['lease_id']}/ready")
    (row,) = scene.provider.node.read(path)["data"]
    assert (row["mode"], row["mig_profile"], row["mig_start"]) == ("mig", "4g.40gb", 0)


def test_a_free_gpu_shows_every_instance_that_it_could_be_cut_into(scene: Scene) -> None:
    device = scene.owner.read(f"/v1/devices/{scene.provider.device_ids[0]}")
    partition = device["partition"]
    assert "mode" not in device
    assert (partition["model"], partition["compute_slices"]) == ("A100-80GB", 7)
    assert sum(len(one["starts"]) for one in partition["possible"]) == 25
    first = {one["mig_profile"]: one["starts"][0] for one in partition["possible"]}
    assert (first["3g.40gb"], first["1g.10gb"], first["4g.40gb"]) == (4, 6, 0)


@pytest.mark.parametrize(
    ("mode", "job"),
    [
        ("whole", {}),
        ("mps", {"share_ppm": 370_000, "mem_ppm": 250_000}),
        ("time_slice", {"share_ppm": 333_333}),
        ("memory", {"share_ppm": 370_000}),
    ],
)
def test_the_mode_is_on_every_lease_and_on_its_device(
    scene: Scene, mode: str, job: dict[str, Any]
) -> None:
    lease = scene.renter.made("/v1/leases", asking(scene, mode, **job))
    share = job.get("share_ppm", 1_000_000)
    assert (lease["mode"], lease["share_ppm"]) == (mode, share)
    assert lease["mem_ppm"] == job.get("mem_ppm", share)
    assert "mig_profile" not in lease
    device = device_of(scene, lease)
    assert (device["mode"], device["holdings"][0]["mode"]) == (mode, mode)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    assert "mode" not in device_of(scene, lease)


def test_a_lease_without_a_mode_has_the_whole_device_or_a_part_of_its_memory(scene: Scene) -> None:
    assert scene.lease()["mode"] == "whole"
    assert scene.lease(job=scene.job(share_ppm=370_000))["mode"] == "memory"


def test_an_instance_goes_to_the_gpu_where_it_can_still_be_placed(scene: Scene) -> None:
    """Share enough is left on the first one, and no place: the match knows placements."""
    first, second = (
        scene.renter.made("/v1/leases", asking(scene, "mig", "2g.20gb")) for _ in range(2)
    )
    assert (first["device_ids"], first["mig_starts"]) == (second["device_ids"], [4])
    assert second["mig_starts"] == [2]
    three = scene.renter.made("/v1/leases", asking(scene, "mig", "3g.40gb"))
    assert three["device_ids"] != first["device_ids"]
    assert three["mig_starts"] == [4]


# One after the other, and side by side.


def second_of_work(scene: Scene, lease: dict[str, Any], second: int) -> bytes:
    """The node's report of one second of a lease."""
    row = report.Row(
        device=scene.provider.device_ids.index(lease["device_ids"][0]),
        lease=0,
        driver_epoch=1,
        mono_start_us=second * SECOND_US,
        len_us=SECOND_US,
        wall_minus_mono_us=NOW_US,
        available_us=SECOND_US,
        unavailable_us=0,
        unknown_us=0,
        samples=1,
    )
    ends_us = (second + 1) * SECOND_US
    return reported(scene.provider, lease, rows=(row,), mono_us=ends_us, wall_us=NOW_US + ends_us)


def test_leases_of_one_second_follow_each_other_on_one_gpu_and_are_billed_by_the_second(
    scene: Scene,
) -> None:
    """V-1, V-2: allocated and freed at once, no minimum hour, nothing between two renters."""
    clock: Any = scene.clock
    scene.deposit(scene.stranger, 1_000_000)
    # The other device is held, so that all of them have to follow each other on one.
    scene.lease(job=scene.job(models=["NVIDIA A100-PCIE-80GB"]))
    leases = []
    for second in range(6):
        renter = (scene.renter, scene.stranger)[second % 2]
        body = asking(scene, "whole") | {"term_seconds": 1}
        lease = renter.made("/v1/leases", body)
        assert lease["held"]["units"] == "555"
        path = f"/v1/nodes/{scene.provider.node_id}/assignments/{lease['lease_id']}/ready"
        scene.provider.node.made(path)
        clock.advance(SECOND_US)
        assert send(scene, scene.provider, second_of_work(scene, lease, second)).status_code == 200
        renter.made(f"/v1/leases/{lease['lease_id']}/close")
        leases.append((renter, lease))
    assert len({lease["device_ids"][0] for _, lease in leases}) == 1
    ends = []
    for renter, lease in leases:
        accrue_now(scene, lease["lease_id"])
        told = renter.read(f"/v1/leases/{lease['lease_id']}")
        assert (told["gpu_us"], told["charge"]["units"]) == ("1000000", "555")
        ends.append((told["opened_at"], told["closed_at"]))
    assert [end for _, end in ends[:-1]] == [start for start, _ in ends[1:]]
    assert capacity(scene, leases[0][1]["device_ids"][0])["leased"] == 6_000


def test_two_programs_share_one_gpu_by_memory_and_never_more_than_there_is(scene: Scene) -> None:
    """V-2, V-11: 0.37 and 0.63 of one device; a third part goes elsewhere, and then nowhere."""
    first = scene.renter.made("/v1/leases", asking(scene, "memory", share_ppm=370_000))
    second = scene.renter.made("/v1/leases", asking(scene, "memory", share_ppm=630_000))
    assert first["device_ids"] == second["device_ids"]
    device = device_of(scene, first)
    assert (device["mem_free_ppm"], device["share_free_ppm"]) == (0, 0)
    third = scene.renter.made("/v1/leases", asking(scene, "memory", share_ppm=1))
    assert third["device_ids"] != first["device_ids"]
    full = scene.renter.post("/v1/leases", asking(scene, "memory", share_ppm=1_000_000))
    assert (full.status_code, full.json()["code"]) == (409, "no_match")
    scene.renter.made(f"/v1/leases/{first['lease_id']}/close")
    assert device_of(scene, first)["mem_free_ppm"] == 370_000


def test_modes_are_not_mixed_on_one_device(scene: Scene) -> None:
    memory = scene.renter.made("/v1/leases", asking(scene, "memory", share_ppm=100_000))
    sliced = scene.renter.made("/v1/leases", asking(scene, "time_slice", share_ppm=100_000))
    assert memory["device_ids"] != sliced["device_ids"]
    none = scene.renter.post("/v1/leases", asking(scene, "mps", share_ppm=100_000))
    assert (none.status_code, none.json()["code"]) == (409, "no_match")


# What it costs.


def test_an_instance_costs_its_larger_dimension_and_its_time_is_its_compute_share(
    scene: Scene,
) -> None:
    clock: Any = scene.clock
    body = asking(scene, "mig", "3g.40gb") | {"term_seconds": 3600}
    lease = scene.renter.made("/v1/leases", body)
    # Half the memory of a device for 2.00 an hour: 1.00, although compute is three sevenths.
    assert lease["price_per_gpu_hour"]["units"] == "2333336"
    assert lease["held"]["units"] == "1000000"
    path = f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready"
    scene.provider.node.made(path)
    clock.advance(HOUR_US)
    row: dict[str, Any] = {"share_ppm": 428_571, "mem_ppm": 500_000, "shape": "mig:3g.40gb"}
    devices = tuple(report.Device(id=each, **row) for each in scene.provider.device_ids)
    body_of = reported(scene.provider, lease, devices=devices)
    assert send(scene, scene.provider, body_of).status_code == 200
    accrue_now(scene, lease["lease_id"])
    told = scene.renter.read(f"/v1/leases/{lease['lease_id']}")
    assert (told["gpu_us"], told["charge"]["units"]) == ("1542855600", "1000000")


def test_the_price_of_an_instance_is_what_the_renters_cap_is_compared_with(scene: Scene) -> None:
    cap = {"asset": "CREDIT", "units": "2333335"}
    body = asking(scene, "mig", "3g.40gb", max_price_per_gpu_hour=cap)
    refused = scene.renter.post("/v1/leases", body)
    assert refused.status_code == 409
    assert refused.json()["code"] in ("price_above_cap", "no_match")


# A partition that is gone.


def test_a_lease_whose_instance_is_gone_ends_by_the_providers_fault_and_the_others_go_on(
    scene: Scene,
) -> None:
    leases = [
        scene.renter.made("/v1/leases", asking(scene, "mig", name))
        for name in ("3g.40gb", "2g.20gb")
    ]
    assignments = f"/v1/nodes/{scene.provider.node_id}/assignments"
    for lease in leases:
        scene.provider.node.made(f"{assignments}/{lease['lease_id']}/ready")
    gone, stays = leases
    path = f"/v1/devices/{gone['device_ids'][0]}/reshape"
    body = {"lease_ids": [gone["lease_id"]]}
    for other in (scene.rival, scene.other.node, scene.renter):
        assert other.post(path, body).json()["code"] == "device_unknown"
    told = scene.provider.node.made(path, body)
    assert (told["closed"], told["node_id"]) == ([gone["lease_id"]], scene.provider.node_id)
    ended = scene.renter.read(f"/v1/leases/{gone['lease_id']}")
    assert (ended["state"], ended["close_code"]) == ("closing", 10_005)
    assert scene.renter.read(f"/v1/leases/{stays['lease_id']}")["state"] == "active"
    device = device_of(scene, gone)
    assert [one["lease_id"] for one in device["holdings"]] == [stays["lease_id"]]
    again = scene.owner.post(path, body)
    assert (again.status_code, again.json()["code"]) == (409, "lease_state")


# Where the time went, in the books.


def capacity(scene: Scene, device_id: str) -> dict[str, int]:
    """GPU-milliseconds of the device after the next full hour's booking; its node was there."""
    clock: Any = scene.clock
    clock.advance(HOUR_NEXT_US - clock.now_us())
    for provider in (scene.provider, scene.other):
        present(scene, provider, HOUR_NEXT_US)
    clock.advance(PROOF_WAIT_US)
    with scene.service.connect() as connection:
        run_capacity(scene.service, connection, clock.now_us())
    parts = ("physical", "leased", "idle", "stranded", "unavailable")
    books = scene.service.ledger.books
    found = {part: books.balance(f"device:{device_id}:{part}") for part in parts}
    assert found["physical"] == sum(found[part] for part in parts[1:])
    assert min(found[part] for part in parts[1:]) >= 0
    return found


@pytest.mark.parametrize(
    ("mode", "profile", "share_ppm", "count", "leased_ppm", "stranded_ppm"),
    [
        ("whole", None, 1_000_000, 1, 1_000_000, 0),
        ("mig", "3g.40gb", None, 2, 857_142, 142_858),
        ("mps", None, 250_000, 4, 1_000_000, 0),
        ("time_slice", None, 333_333, 3, 999_999, 1),
        ("memory", None, 400_000, 2, 800_000, 0),
    ],
)
def test_what_nobody_can_lease_is_the_nodes_own_in_the_books_of_every_mode(
    scene: Scene,
    mode: str,
    profile: str | None,
    share_ppm: int | None,
    count: int,
    leased_ppm: int,
    stranded_ppm: int,
) -> None:
    shares = {} if share_ppm is None else {"share_ppm": share_ppm}
    leases = [
        scene.renter.made("/v1/leases", asking(scene, mode, profile, **shares))
        for _ in range(count)
    ]
    assert len({lease["device_ids"][0] for lease in leases}) == 1
    found = capacity(scene, leases[0]["device_ids"][0])
    ms = (HOUR_NEXT_US - NOW_US) // 1_000
    assert found["leased"] == ms * leased_ppm // 1_000_000
    assert found["stranded"] == ms * stranded_ppm // 1_000_000
    assert found["physical"] == ms


def test_what_nobody_holds_while_a_node_takes_no_leases_is_unavailable_and_not_idle(
    scene: Scene,
) -> None:
    """Half an hour of maintenance: what is leased stays leased, the rest could not be sold."""
    clock: Any = scene.clock
    lease = scene.renter.made("/v1/leases", asking(scene, "memory", share_ppm=250_000))
    path = f"/v1/nodes/{scene.provider.node_id}"
    clock.advance(600 * SECOND_US)
    scene.owner.made(f"{path}/maintenance")
    clock.advance(1_800 * SECOND_US)
    scene.owner.made(f"{path}/activate")
    found = capacity(scene, lease["device_ids"][0])
    assert found["unavailable"] == 1_800_000 * 3 // 4
    assert found["leased"] == found["physical"] // 4
    assert found["stranded"] == 0
    still = scene.service.ledger.books.balance(f"device:{scene.other.device_ids[0]}:unavailable")
    assert still == 0


# What is refused, by the rule's name.


@pytest.mark.parametrize(
    ("job", "code", "rule"),
    [
        ({"constraints": {"mode": "mig"}}, "unknown_profile", "mig_profile"),
        ({"constraints": {"mode": "mig", "mig_profile": "5g.40gb"}}, "unknown_profile", None),
        (
            {
                "constraints": {"mode": "mig", "mig_profile": "3g.40gb"},
                "models": ["Tesla V100-SXM2-16GB"],
            },
            "mode_not_supported",
            "mig_not_on_this_model",
        ),
        (
            {"constraints": {"mode": "mig", "mig_profile": "3g.40gb"}, "share_ppm": 500_000},
            "share_out_of_range",
            "mig_3g.40gb_is_428571_and_500000_ppm",
        ),
        (
            {"constraints": {"mode": "time_slice"}, "share_ppm": 370_000},
            "share_out_of_range",
            "time_slice_one_of_n",
        ),
        (
            {"constraints": {"mode": "mps"}, "share_ppm": 375_000},
            "share_out_of_range",
            "mps_whole_percent",
        ),
        (
            {"constraints": {"mode": "whole"}, "share_ppm": 500_000},
            "share_out_of_range",
            "whole_is_1000000_ppm",
        ),
    ],
)
def test_a_job_and_a_lease_that_no_device_can_give_are_refused_by_name(
    shared: Scene, job: dict[str, Any], code: str, rule: str | None
) -> None:
    before = shared.head()
    for path, body in (("/v1/jobs", shared.job(**job)), ("/v1/leases", {"job": shared.job(**job)})):
        refused = shared.renter.post(path, body)
        assert (refused.status_code, refused.json()["code"]) == (422, code), refused.text
        assert refused.json()["facts"].get("rule") == rule
    assert shared.head() == before


@pytest.mark.parametrize("share_ppm", [0, -1, 1_000_001, 0.37, "370000"])
@pytest.mark.parametrize("field", ["share_ppm", "mem_ppm"])
def test_a_share_is_a_whole_number_from_1_to_1000000(
    shared: Scene, field: str, share_ppm: object
) -> None:
    refused = shared.renter.post("/v1/jobs", shared.job(**{field: share_ppm}))
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert refused.json()["errors"][0]["pointer"] == f"#/{field}"


def test_a_mode_there_is_not_is_refused_with_the_ones_there_are(shared: Scene) -> None:
    refused = shared.renter.post("/v1/jobs", shared.job(constraints={"mode": "vgpu"}))
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert "time_slice" in refused.json()["errors"][0]["detail"]
