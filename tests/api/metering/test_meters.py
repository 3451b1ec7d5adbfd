"""Meters over HTTP: events in, jobs, charges out; edge devices and storage nodes."""

from __future__ import annotations

import json
from collections.abc import Generator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from api.door.moments import moment
from api.metering import meter_events
from api.metering.meter_events import BATCH, ONE, TYPE
from api.metering.meter_timer import run_device_fees, run_resources, run_storage_nodes
from domain.calendar import day_of, day_start_us, day_text
from domain.duration import DAY_US, HOUR_US
from domain.leasing.other_resources import PATIENCE_US, chain_of
from domain.money import credit
from domain.prices.tariff import CLOUDBENDER, METERS, MeterRate, PublishTariff
from ledger.log import meter_log
from ledger.log.chain import lp4
from tests.scenes.server import NOW_US, Caller, Scene
from tests.scenes.serving import Market
from tests.scenes.work import accrue_now

MINUTE_US = 60_000_000


@pytest.fixture
def scene(founded_market: Market, tmp_path: Path) -> Generator[Scene]:
    """A market whose tariff prices CPU, storage and network, and storage nodes by the hour."""
    with founded_market.copied(tmp_path) as made:
        tariff = PublishTariff(
            version=2,
            usage_fees=CLOUDBENDER.usage_fees,
            provider_share_ppm=500_000,
            burn_share_ppm=0,
            effective_from_us=NOW_US,
            by="operator",
            at_us=NOW_US,
            device_fee_per_month=credit(15_000_000),
            storage_node_per_hour=credit(100_000),
            meters=(
                MeterRate("cpu", credit(36_000), 3_600),
                MeterRate("storage", credit(1), 10),
                MeterRate("network", credit(10_000), 10**9),
            ),
        )
        made.service.ledger.handle(tariff, key=None, now_us=NOW_US)
        yield made


def most(**units: int) -> list[dict[str, Any]]:
    return [
        {"meter": meter, "amount": {"asset": "CREDIT", "units": str(each)}}
        for meter, each in units.items()
    ]


def agreed(scene: Scene, **units: int) -> dict[str, Any]:
    """A lease that runs, whose renter agreed to so much for each resource."""
    maxima = most(**(units or {"cpu": 10_000, "storage": 10_000, "network": 10_000}))
    return scene.running(job=scene.job(meter_maxima=maxima))


def event(lease_id: str, name: str, **changes: Any) -> dict[str, Any]:
    """Four cores for one minute, the minute after the lease began unless told otherwise."""
    data = {
        "meter": "cpu",
        "quantity": "240",
        "unit": "core-second",
        "from": moment(NOW_US),
        "to": moment(NOW_US + MINUTE_US),
        **changes.pop("data", {}),
    }
    return {
        "specversion": "1.0",
        "id": name,
        "source": "/meter/1",
        "type": TYPE,
        "subject": lease_id,
        "time": data["to"],
        "data": data,
        **changes,
    }


def window(from_us: int, to_us: int, **data: Any) -> dict[str, Any]:
    return {"from": moment(NOW_US + from_us), "to": moment(NOW_US + to_us), **data}


def send(caller: Caller, *events: Any, media_type: str = BATCH, raw: bytes | None = None) -> Any:
    content = (
        raw
        if raw is not None
        else json.dumps(list(events) if media_type == BATCH else events[0]).encode()
    )
    headers = {**caller.headers, "Content-Type": media_type}
    return caller.http.post("/v1/usage/events", content=content, headers=headers)


def sent(caller: Caller, *events: Any) -> dict[str, Any]:
    response = send(caller, *events)
    assert response.status_code == 200, response.text
    told: dict[str, Any] = response.json()
    return told


def run(scene: Scene, job: Any) -> int:
    with scene.service.connect() as connection:
        done: int = job(scene.service, connection, scene.clock.now_us())
    return done


def units(money: dict[str, Any]) -> int:
    return int(money["units"])


def balance(scene: Scene, name: str) -> int:
    return scene.service.ledger.books.balance(name)


def test_a_batch_is_answered_event_by_event_and_sending_it_again_changes_nothing(
    scene: Scene,
) -> None:
    """R-7: CloudEvents of other resources, each stored once."""
    lease_id = agreed(scene)["lease_id"]
    good = event(lease_id, "one")
    batch = [
        good,
        good,
        event(lease_id, "two", data=window(0, 30_000_000)),
        {**good, "data": {**good["data"], "quantity": "9"}},
        event(lease_id, "gpu", data={"meter": "gpu", "unit": "gpu-second"}),
        event(lease_id, "unit", data={"unit": "GB-second"}),
        event(lease_id, "late", data=window(-36 * DAY_US, -36 * DAY_US + 1_000_000)),
        event(lease_id, "early", data=window(0, 3_600_000_000)),
        event(lease_id, "more", data={"quantity": "1000000000000"}),
        event(lease_id, "empty", data=window(5, 5)),
        event("nothing", "form"),
        "no object",
        event(lease_id, "field", surplus=1),
        event(lease_id, "number", data={"quantity": 5}),
        event(lease_id, "meter", data={"meter": "power", "unit": "joule"}),
    ]
    told = sent(scene.owner, *batch)
    assert (told["accepted"], told["duplicate"]) == (1, 1)
    assert [(one["index"], one["code"]) for one in told["rejected"]] == [
        (2, "window_overlaps"),
        (3, "id_reused"),
        (4, "gpu_time_refused"),
        (5, "unit_wrong"),
        (6, "time_out_of_range"),
        (7, "time_out_of_range"),
        (8, "quantity_out_of_range"),
        (9, "window_empty"),
        (10, "invalid"),
        (11, "invalid"),
        (12, "invalid"),
        (13, "invalid"),
        (14, "meter_unknown"),
    ]
    assert "#/subject" in told["rejected"][8]["detail"]
    scene.clock.advance(40 * DAY_US)  # type: ignore[attr-defined]
    again = send(scene.owner, dict(reversed(good.items())), media_type=ONE)
    assert again.json() == {"accepted": 0, "duplicate": 1, "rejected": []}


def test_a_request_that_is_no_batch_of_events_stores_nothing(scene: Scene) -> None:
    one = event("lease_1", "one")
    for response, status in (
        (send(scene.owner, one, media_type="application/json"), 415),
        (send(scene.owner, raw=b"{}"), 422),
        (send(scene.owner, raw=b"[]"), 422),
        (send(scene.owner, raw=b"[1"), 400),
        (send(scene.owner, *[one] * 1_001), 400),
        (send(scene.owner, raw=b" " * 1_048_577), 413),
    ):
        assert response.status_code == status, response.text
    with scene.service.connection() as connection:
        assert meter_log.head(connection).position == 0
    thousand = [event("lease_1", f"e{n}", data=window(n, n + 1, quantity="0")) for n in range(1000)]
    assert sent(scene.owner, *thousand)["accepted"] == 1_000


def test_a_lease_is_charged_for_what_was_metered_and_every_line_leads_to_its_events(
    scene: Scene,
) -> None:
    """R-7, J-6: metered, priced, drawn and shared; the renter recomputes it from what is told."""
    lease_id = agreed(scene)["lease_id"]
    before = balance(scene, f"party:{scene.renter.account_id}:cash")
    events = [
        event(lease_id, f"e{n}", data=window(n * MINUTE_US, (n + 1) * MINUTE_US)) for n in range(3)
    ]
    stranger = event(lease_id, "x", source="/other")
    assert sent(scene.owner, events[1], events[0])["accepted"] == 2
    assert sent(scene.stranger, stranger)["accepted"] == 1
    assert run(scene, run_resources) == 0, "their time is not over"
    scene.clock.advance(2 * MINUTE_US + PATIENCE_US)  # type: ignore[attr-defined]
    sent(scene.owner, events[2])
    assert run(scene, run_resources) == 1
    assert run(scene, run_resources) == 0, "a second run adds nothing"
    (told,) = scene.renter.read(f"/v1/leases/{lease_id}/resources")["resources"]
    assert (told["quantity"], told["unit"], units(told["charge"])) == ("480", "core-second", 4_800)
    assert (units(told["provider"]), units(told["platform"]), units(told["agreed"])) == (
        2_400,
        2_400,
        10_000,
    )
    assert balance(scene, f"party:{scene.renter.account_id}:cash") == before, "it was held"
    assert balance(scene, f"escrow:{lease_id}/cpu:2:cash") == 10_000 - 4_800
    assert balance(scene, f"party:{scene.owner.account_id}:holdback") == 2_400
    listed = scene.renter.read("/v1/usage/events", lease_id=lease_id)["data"]
    assert [(one["state"], one.get("reason")) for one in listed] == [
        ("posted", None),
        ("posted", None),
        ("accepted", "not_permitted"),
        ("accepted", "waiting"),
    ]
    (line,) = scene.renter.read(f"/v1/leases/{lease_id}/resources/cpu")["data"]
    chained, counted = "", 0
    for one in listed:
        body = one["event"].encode()
        known = json.loads(body)
        assert known in [*events, stranger]
        parts = (one["account_id"], known["source"], known["id"])
        leaf = sha256(b"\0" + b"".join(lp4(part.encode()) for part in parts) + lp4(body))
        assert leaf.hexdigest() == one["leaf"]
        if line["events_after"] < one["position"] <= line["events_through"]:
            chained = chain_of(chained, lease_id, "cpu", one["leaf"])
            counted += int(one["quantity"]) - int(one.get("refused", "0"))
    assert (line["events_chain"], line["quantity"]) == (chained, str(counted))
    assert counted * 36_000 // 3_600 == units(line["charge"])
    scene.sign_head()
    proof = scene.renter.get(f"/v1/audit/proofs/{line['position']}")
    assert proof.status_code == 200, proof.text
    assert scene.stranger.get(f"/v1/leases/{lease_id}/resources").status_code == 404
    assert scene.stranger.get(f"/v1/leases/{lease_id}/resources/cpu").status_code == 404
    foreign = scene.stranger.get("/v1/usage/events", lease_id=lease_id)
    assert foreign.status_code == 404


def test_a_provider_cannot_meter_a_renter_dry(scene: Scene) -> None:
    """The attack: 9.5 TB "in thirty seconds" of a lease with 3 credits took all of 100 credits past
    the budgets of its project and key, and "storage" of a lease that stored nothing took 45 more.
    """
    renter, clock = scene.renter.account_id, scene.clock
    cap = {"asset": "CREDIT", "units": "3010000"}
    budget = {"scope": "project", "target": "proj-1", "monthly": cap}
    scene.renter.made(f"/v1/accounts/{renter}/budgets", budget)
    funds = {"asset": "CREDIT", "units": "3000000"}
    job = scene.job(project_id="proj-1", meter_maxima=most(network=10_001))
    over = scene.renter.post("/v1/leases", {"job": job, "funds": funds})
    assert over.json()["code"] == "budget_exhausted"
    job = scene.job(project_id="proj-1", meter_maxima=most(network=10_000))
    lease_id = scene.running(job=job, funds=funds)["lease_id"]
    before = balance(scene, f"party:{renter}:cash")
    clock.advance(MINUTE_US)  # type: ignore[attr-defined]
    scene.renter.made(f"/v1/leases/{lease_id}/close")
    network = {"meter": "network", "unit": "byte"}
    stored = {"meter": "storage", "unit": "GB-second", "quantity": "6000"}
    sent(
        scene.owner,
        event(lease_id, "tb", data=window(0, 3 * 10**7, **network, quantity=str(9_500 * 10**9))),
        event(lease_id, "gb", data=window(3 * 10**7, 4 * 10**7, **network, quantity=str(10**9))),
        event(lease_id, "s", data=window(0, MINUTE_US, **stored)),
    )
    clock.advance(MINUTE_US + PATIENCE_US)  # type: ignore[attr-defined]
    run(scene, run_resources)
    refused = scene.owner.read("/v1/usage/unmatched")["data"]
    assert [one["reason"] for one in refused] == ["above_maximum", "not_agreed"]
    charged = scene.renter.read(f"/v1/leases/{lease_id}/resources")["resources"]
    assert [units(one["charge"]) for one in charged] == [10_000, 0]
    assert balance(scene, f"party:{renter}:cash") >= before
    assert balance(scene, f"party:{renter}:owed") == 0
    assert balance(scene, f"party:{scene.owner.account_id}:holdback") == 5_000


def test_what_a_lease_did_not_use_of_its_maxima_comes_back_a_day_after_it(scene: Scene) -> None:
    whole = balance(scene, f"party:{scene.renter.account_id}:cash")
    lease_id = agreed(scene)["lease_id"]
    clock: Any = scene.clock
    clock.advance(MINUTE_US)
    scene.renter.made(f"/v1/leases/{lease_id}/close")
    clock.advance(DAY_US - 1)
    accrue_now(scene, lease_id)
    assert run(scene, run_resources) == 0
    clock.advance(1)
    accrue_now(scene, lease_id)
    refused = scene.renter.post(f"/v1/accounts/{scene.renter.account_id}/close").json()
    assert refused["code"] == "account_not_empty", "what is held has an owner until it is back"
    assert {"lease_id": lease_id, "meter": "cpu"}.items() <= refused["facts"].items()
    assert run(scene, run_resources) == 3
    assert run(scene, run_resources) == 0
    assert balance(scene, f"party:{scene.renter.account_id}:cash") == whole
    assert scene.service.ledger.books.books_balanced()


def test_events_that_count_for_nothing_are_listed_with_their_reason(scene: Scene) -> None:
    lease_id = agreed(scene)["lease_id"]
    sent(
        scene.owner,
        event("lease_unknown", "u"),
        event(lease_id, "w"),
        event(lease_id, "f", source="/2", data={"meter": "memory", "unit": "GB-second"}),
    )
    sent(scene.stranger, event(lease_id, "s"))
    listed = scene.owner.read("/v1/usage/unmatched")["data"]
    assert [one["reason"] for one in listed] == ["lease_unknown", "waiting", "waiting"]
    scene.clock.advance(MINUTE_US + PATIENCE_US)  # type: ignore[attr-defined]
    assert run(scene, run_resources) == 2
    listed = scene.owner.read("/v1/usage/unmatched", limit=1)
    assert [one["reason"] for one in listed["data"]] == ["lease_unknown"]
    assert listed["has_more"] is False
    (refused,) = scene.stranger.read("/v1/usage/unmatched")["data"]
    assert (refused["reason"], refused["refused"]) == ("not_permitted", "240")
    everything = scene.operator.read("/v1/usage/unmatched")["data"]
    assert [one["reason"] for one in everything] == ["lease_unknown", "not_permitted"]
    free = scene.owner.read("/v1/usage/events", meter="memory")["data"]
    assert [one["state"] for one in free] == ["matched"], "it has no price"


def test_storage_of_a_stopped_lease_is_billed_until_it_is_released(scene: Scene) -> None:
    lease_id = agreed(scene)["lease_id"]
    path = f"/v1/leases/{lease_id}/storage/release"
    assert scene.renter.post(path).json()["code"] == "lease_state"
    scene.clock.advance(MINUTE_US)  # type: ignore[attr-defined]
    scene.renter.made(f"/v1/leases/{lease_id}/close")
    gb = {"meter": "storage", "unit": "GB-second", "quantity": "6000"}
    minutes = [
        event(lease_id, f"s{n}", data=window(n * MINUTE_US, (n + 1) * MINUTE_US, **gb))
        for n in range(4)
    ]
    scene.clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    assert scene.stranger.post(path).status_code == 404
    released = scene.renter.made(path)
    scene.clock.advance(1_000_000)  # type: ignore[attr-defined]
    assert scene.renter.made(path)["released_at"] == released["released_at"], "twice is once"
    scene.clock.advance(5 * MINUTE_US)  # type: ignore[attr-defined]
    sent(scene.owner, *minutes)
    run(scene, run_resources)
    (told,) = scene.renter.read(f"/v1/leases/{lease_id}/resources")["resources"]
    assert (told["quantity"], units(told["charge"])) == ("18000", 1_800)
    assert told["released_at"] == released["released_at"]


def test_network_bytes_are_added_up_by_route_and_by_dataset(scene: Scene) -> None:
    """R-24: transfer bytes with their dataset; J-10: by route; J-12: totals of what was moved."""
    lease_id = agreed(scene)["lease_id"]
    data = {"meter": "network", "unit": "byte"}
    batch = []
    for n, (bytes_, route, dataset) in enumerate(
        (
            (1_000, "vxlan-7", "cid-a"),
            (500, "vxlan-7", None),
            (300, None, None),
            (200, "vxlan-7", "cid-a"),
        )
    ):
        named = {"route": route, "dataset": dataset}
        more = {name: value for name, value in named.items() if value is not None}
        at = window(n * 1_000_000, (n + 1) * 1_000_000, **data, quantity=str(bytes_), **more)
        batch.append(event(lease_id, f"n{n}", data=at))
    sent(scene.owner, *batch)
    scene.clock.advance(MINUTE_US + PATIENCE_US)  # type: ignore[attr-defined]
    run(scene, run_resources)
    told = scene.renter.read(f"/v1/leases/{lease_id}/transfers")
    assert told["bytes"] == "2000"
    assert [(one.get("route"), one.get("dataset"), one["bytes"]) for one in told["transfers"]] == [
        ("vxlan-7", "cid-a", "1200"),
        ("vxlan-7", None, "500"),
        (None, None, "300"),
    ]
    of_route = scene.owner.read("/v1/usage/events", route="vxlan-7", dataset="cid-a")["data"]
    assert [one["quantity"] for one in of_route] == ["1000", "200"]
    assert scene.stranger.get(f"/v1/leases/{lease_id}/transfers").status_code == 404


def test_a_years_events_of_many_batches_make_one_fact_after_another(scene: Scene) -> None:
    """More events than one fact holds."""
    lease_id = agreed(scene)["lease_id"]
    step = 50_000
    sent(
        scene.owner,
        *(
            event(lease_id, f"b{n}", data=window(n * step, (n + 1) * step, quantity="0"))
            for n in range(900)
        ),
    )
    scene.clock.advance(MINUTE_US + PATIENCE_US)  # type: ignore[attr-defined]
    assert run(scene, run_resources) == 3
    charges = scene.renter.read(f"/v1/leases/{lease_id}/resources/cpu")["data"]
    assert [one["events"] for one in charges] == [400, 400, 100]


def test_edge_devices_are_charged_at_midnight_and_told_day_by_day(scene: Scene) -> None:
    """C-22, C-34: over HTTP."""
    region = scene.central_region()
    scene.owner.made(f"/v1/regions/{region}/storage-node/remove")
    body = {"region_id": region, "model": "jetson-orin-nx"}
    first = scene.owner.made("/v1/edge-devices", body)
    second = scene.owner.made("/v1/edge-devices", body)
    today = day_text(day_of(NOW_US))
    assert (first["first_day"], first["device_id"] != second["device_id"]) == (today, True)
    assert scene.rival.post("/v1/edge-devices", body).status_code == 404
    path = f"/v1/edge-devices/{second['device_id']}/remove"
    assert scene.rival.post(path).status_code == 404
    assert scene.owner.made(path)["last_day"] == today
    assert run(scene, run_device_fees) == 0
    ahead = day_start_us(day_of(NOW_US) + 2) - NOW_US
    scene.clock.advance(ahead)  # type: ignore[attr-defined]
    assert run(scene, run_device_fees) == 2
    assert run(scene, run_device_fees) == 0
    fees = scene.owner.read("/v1/device-fees")["data"]
    # The tariff with the fee came into force after the first day had begun; the one before it has
    # the same fee.
    assert [(fee["devices"], units(fee["charge"]), units(fee["owed"])) for fee in fees] == [
        (2, 1_000_000, 0),
        (1, 500_000, 500_000),
    ]
    owner = scene.owner.account_id
    assert balance(scene, f"party:{owner}:owed") == 500_000
    assert balance(scene, "network:revenue:device") == 1_500_000
    listed = scene.owner.read("/v1/edge-devices")["data"]
    assert [one.get("last_day") for one in listed] == [None, today]
    assert scene.rival.read("/v1/edge-devices")["data"] == []
    assert scene.rival.read("/v1/device-fees", account_id=owner)["data"] == []


def test_a_storage_node_costs_by_the_hour_over_http(scene: Scene) -> None:
    """C-30: provisioned, active, charged, replaced, removed. C-25: not without credits."""
    body = {
        "provider_id": scene.provider.provider_id,
        "name": "vault",
        "storage_mode": "central",
        "setting": "datacenter",
        "admission": "operator",
        "allow_public_jobs": True,
    }
    region = scene.owner.made("/v1/regions", body)["region_id"]
    path = f"/v1/regions/{region}/storage-node"
    body = {"storage_class": "pd-ssd"}
    assert scene.rival.post(path, body).status_code == 404
    refused = scene.owner.post(path, body)
    assert (refused.status_code, refused.json()["code"]) == (402, "credit_too_low")
    assert "positive balance" in refused.json()["detail"]
    local = f"/v1/regions/{scene.provider.region_id}/storage-node"
    assert scene.owner.post(local, body).json()["code"] == "region_not_suited"
    edge = {"region_id": scene.provider.region_id, "model": "jetson-orin-nano"}
    assert scene.owner.post("/v1/edge-devices", edge).json()["code"] == "region_not_suited"
    poor = scene.owner.post("/v1/edge-devices", {**edge, "region_id": region})
    assert poor.json()["code"] == "credit_too_low"
    scene.deposit(scene.owner, 50_000)
    assert scene.owner.made(path, body)["state"] == "provisioned"
    other = scene.owner.post(path, {"storage_class": "pd-standard"})
    assert (other.status_code, other.json()["code"]) == (409, "storage_node_state")
    assert scene.operator.post(f"{path}/ready").status_code == 404, "the machine itself says it"
    assert scene.owner.made(f"{path}/ready")["state"] == "active"
    scene.clock.advance(3 * HOUR_US // 2)  # type: ignore[attr-defined]
    assert run(scene, run_storage_nodes) == 1
    assert run(scene, run_storage_nodes) == 0
    (told,) = scene.owner.read(path)["storage_nodes"]
    assert (units(told["charge"]), units(told["owed"])) == (100_000, 50_000)
    replaced = scene.owner.post(f"{path}/replace", {"storage_class": "pd-standard"})
    assert replaced.json()["code"] == "unpaid_debt"
    assert scene.owner.made(f"{path}/remove")["state"] == "none"
    (told,) = scene.owner.read(path)["storage_nodes"]
    assert (units(told["charge"]), told["removed_at"] is not None) == (150_000, True)
    assert balance(scene, "network:revenue:storage") == 150_000
    assert scene.rival.get(path).status_code == 404


@pytest.mark.parametrize("kind", ["physical", "gcp"])
def test_a_central_region_takes_nodes_when_its_storage_is_active(scene: Scene, kind: str) -> None:
    """C-8, C-30: storage before compute nodes, and always on while there are any."""
    body = {"kind": kind, "payment_mode": "credits"}
    provider = scene.owner.made("/v1/providers", body)["provider_id"]
    terms: dict[str, Any] = {
        "provider_id": provider,
        "name": "cloud",
        "storage_mode": "central",
        "setting": "datacenter",
        "admission": "operator",
        "allow_public_jobs": True,
    }
    if kind == "gcp":
        unnamed = scene.owner.post("/v1/regions", terms)
        assert unnamed.json()["code"] == "cloud_region"
        terms["cloud_region"] = "us-central1"
    region = scene.owner.made("/v1/regions", terms)["region_id"]
    if kind == "gcp":
        twice = scene.owner.post("/v1/regions", {**terms, "name": "again"})
        assert (twice.status_code, twice.json()["code"]) == (409, "cloud_region")
    scene.deposit(scene.owner, 1_000_000)
    early = scene.owner.post("/v1/nodes/join-codes", {"region_id": region})
    assert (early.status_code, early.json()["code"]) == (409, "storage_node_state")
    path = f"/v1/regions/{region}/storage-node"
    scene.owner.made(path, {"storage_class": "pd-ssd"})
    unready = scene.owner.post("/v1/nodes/join-codes", {"region_id": region})
    assert unready.json()["code"] == "storage_node_state"
    scene.owner.made(f"{path}/ready")
    code = scene.owner.made("/v1/nodes/join-codes", {"region_id": region})["code"]
    joining = scene.provider.joining(code, "NVIDIA A100-PCIE-80GB", seed="c8" * 32)
    for number, device in enumerate(joining["devices"]):
        device["device_id"] = f"GPU-{kind}-{number}"
    node = scene.anybody.made("/v1/nodes/join", joining)["node_id"]
    scene.owner.made(f"/v1/nodes/{node}/confirm", {"key_id": joining["key_id"]})
    scene.operator.made(f"/v1/nodes/{node}/admit")
    refused = scene.owner.post(f"{path}/remove")
    assert (refused.status_code, refused.json()["code"]) == (409, "storage_node_state")
    assert "storage replace" in refused.json()["detail"]
    again = scene.owner.made(f"{path}/replace", {"storage_class": "pd-standard"})
    assert (again["sequence"], again["state"]) == (2, "provisioned")
    assert scene.owner.made(f"{path}/ready")["state"] == "active"
    scene.owner.made(f"/v1/nodes/{node}/retire")
    assert scene.owner.made(f"{path}/remove")["state"] == "none"


def test_the_rates_a_meter_may_claim_cover_every_meter_there_is() -> None:
    assert meter_events.RATES_MAX.keys() == METERS.keys()
