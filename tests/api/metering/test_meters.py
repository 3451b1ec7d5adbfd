"""Meters over HTTP: signed rows in, charges out; edge devices and storage nodes."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from api.metering.capacity_timer import run_capacity
from api.metering.meter_timer import run_device_fees, run_resources, run_storage_nodes
from domain.calendar import day_of, day_start_us, day_text
from domain.duration import DAY_US, HOUR_US
from domain.jobs.job import workload_hash
from domain.leasing.other_resources import PATIENCE_US
from domain.money import credit
from domain.prices.tariff import CLOUDBENDER, MeterRate, PublishTariff
from domain.trust.evidence import SLACK_US
from tests.api.leasing.test_work import executor_of
from tests.scenes.holdings import edge_device
from tests.scenes.server import CLOUD_ACCOUNT, NOW_US, Scene
from tests.scenes.serving import Market
from tests.scenes.work import MINUTE_US, accrue_now, pin_and_sign, present, reported, send, used

GB = 10**9


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


def taken_up(scene: Scene, **most_units: int) -> dict[str, Any]:
    """The same, whose work the node's executor took up before it ran."""
    lease = scene.lease(job=scene.job(meter_maxima=most(**most_units)))
    path = f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}"
    asked = {
        "command": "start",
        "executor": "e0" * 8,
        "runner": "process",
        "workload_sha256": workload_hash("work", (), ()),
    }
    answer = executor_of(scene, scene.provider).post(f"{path}/acknowledge", asked)
    assert answer.status_code == 200, answer.text
    scene.provider.node.made(f"{path}/ready")
    return lease


def signed(scene: Scene, lease: dict[str, Any], **told: Any) -> None:
    """The lease's node signs a report of what the lease used."""
    sent = send(scene, scene.provider, used(scene.provider, lease, **told))
    assert sent.status_code == 200, sent.text
    assert sent.json()["results"][0]["receipt"]["flags"] == 0, sent.text


def run(scene: Scene, job: Any) -> int:
    with scene.service.connect() as connection:
        done: int = job(scene.service, connection, scene.clock.now_us())
    return done


def units(money: dict[str, Any]) -> int:
    return int(money["units"])


def balance(scene: Scene, name: str) -> int:
    return scene.service.ledger.books.balance(name)


FOUR_CORES = {"cpu_us": 4 * MINUTE_US}
ALL = {
    "cpu_us": 4 * MINUTE_US,
    "memory_byte_s": 60 * 8 * GB,
    "storage_byte_s": 60 * GB,
    "received_bytes": GB,
    "sent_bytes": GB // 2,
}


def test_a_lease_is_charged_for_what_its_node_signed_and_every_line_leads_to_the_reports(
    scene: Scene,
) -> None:
    """R-7, J-6: metered by the node, signed in the same report as the GPU's time, priced, drawn and
    shared; the renter takes the line down to the signed bytes and adds them up.
    """
    lease = agreed(scene)
    lease_id, clock = lease["lease_id"], scene.clock
    before = balance(scene, f"party:{scene.renter.account_id}:cash")
    clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    signed(scene, lease, minutes=2, **ALL)
    assert run(scene, run_resources) == 0, "a lease that runs is charged by the hour"
    clock.advance(HOUR_US)  # type: ignore[attr-defined]
    assert run(scene, run_resources) == 3
    assert run(scene, run_resources) == 0, "a second run adds nothing"
    told = scene.renter.read(f"/v1/leases/{lease_id}/resources")
    by_meter = {one["meter"]: one for one in told["resources"]}
    cpu = by_meter["cpu"]
    assert (cpu["quantity"], cpu["unit"], units(cpu["charge"])) == ("480", "core-second", 4_800)
    assert (units(cpu["provider"]), units(cpu["platform"]), units(cpu["agreed"])) == (
        2_400,
        2_400,
        10_000,
    )
    assert by_meter["storage"]["quantity"] == "120"
    assert by_meter["storage"]["measured"] == str(120 * GB)
    assert units(by_meter["storage"]["charge"]) == 12
    assert "memory" not in by_meter, "it has no price: it is told and costs nothing"
    assert told["used"]["memory_byte_s"] == str(2 * 60 * 8 * GB)
    network = by_meter["network"]
    assert (network["quantity"], units(network["charge"])) == ("0", 0), "a minute costs 15,000"
    assert balance(scene, f"party:{scene.renter.account_id}:cash") == before, "it was held"
    assert balance(scene, f"escrow:{lease_id}/cpu:2:cash") == 10_000 - 4_800
    assert balance(scene, f"party:{scene.owner.account_id}:holdback") == 2_400 + 6
    (charge,) = scene.renter.read(f"/v1/leases/{lease_id}/resources/network")["data"]
    assert [(one["rule"], one["amount"]) for one in charge["refused"]] == [
        ("above_maximum", str(3 * GB))
    ]
    rows = scene.renter.read(f"/v1/leases/{lease_id}/resource-rows", limit=1)
    assert (len(rows["data"]), rows["has_more"]) == (1, True)
    rest = scene.renter.read(
        f"/v1/leases/{lease_id}/resource-rows", cursor=rows["next_cursor"], limit=5
    )
    assert (len(rest["data"]), rest["has_more"]) == (1, False)
    first, second = rows["data"][0], rest["data"][0]
    assert (first["to"], first["source"], first["seq"]) == (second["from"], "cgroup2", 1)
    assert first["cpu_us"] == str(4 * MINUTE_US)
    for path in ("resources", "resources/cpu", "resource-rows", "transfers"):
        assert scene.stranger.get(f"/v1/leases/{lease_id}/{path}").status_code == 404
    lines = scene.renter.read(f"/v1/accounts/{scene.renter.account_id}/statements")["lines"]
    charged = {one["position"] for one in lines if one["kind"] == "resources"}
    assert cpu["accrued_position"] in charged
    pin_and_sign(scene)
    lines_at = f"/v1/accounts/{scene.renter.account_id}/statements/lines"
    at = f"{lines_at}/{cpu['accrued_position']}"
    (one,) = scene.renter.read(f"{at}/reports")["data"]
    assert (one["rows"], one["measured"], one["refused"]) == (2, str(8 * MINUTE_US), "0")
    assert scene.renter.get(f"{at}/proof").status_code == 200
    proof = scene.renter.get(f"{at}/reports/{one['usage_position']}/proof")
    assert proof.status_code == 200, proof.text
    steps = {step["name"]: step["after"] for step in scene.renter.read(at)["arithmetic"]}
    assert steps == {"quantity": "480", "charge": "4800"}
    (lost,) = scene.renter.read(f"{lines_at}/{by_meter['storage']['accrued_position']}/reports")[
        "data"
    ]
    assert lost["measured"] == str(120 * GB)


def test_r_7_a_node_that_sells_a_resource_and_does_not_meter_it_is_known_for_it(
    scene: Scene,
) -> None:
    """R-7: the stream that bills also feeds reputation. Of three leases whose work an executor took
    up the node meters one, claims of the second what no machine uses, and leaves out the third: it
    is paid for the first alone, and the time of the other two is missing from what it promised.
    """
    clock: Any = scene.clock
    node = f"/v1/nodes/{scene.provider.node_id}/reputation"

    def metered(**told: Any) -> tuple[str, int, list[int]]:
        """A lease of an hour, ended for a day: its id, what it paid, and what was taken."""
        first = (clock.now_us() - NOW_US) // MINUTE_US
        lease = taken_up(scene, cpu=10_000_000)
        clock.advance(HOUR_US)
        row_of = {"first": first, "minutes": 60}
        if told:
            signed(scene, lease, **row_of, **told)
        else:
            body = reported(scene.provider, lease, **row_of)
            assert send(scene, scene.provider, body).status_code == 200
        scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
        clock.advance(DAY_US)
        accrue_now(scene, lease["lease_id"])
        present(scene, scene.provider, clock.now_us(), clock.now_us() - 3 * HOUR_US)
        clock.advance(HOUR_US)
        run(scene, run_capacity)
        before = scene.anybody.read(node)["score_ppm"]
        head = scene.head()
        run(scene, run_resources)
        told_of = [
            one
            for one in scene.anybody.read(f"{node}/evidence", limit=200)["data"]
            if one["known_position"] > head
        ]
        paid = scene.renter.read(f"/v1/leases/{lease['lease_id']}/resources")["resources"]
        score = scene.anybody.read(node)["score_ppm"]
        assert (score < before) == bool(told_of), "what is taken lowers the score"
        assert all(one["input"] == "uptime" and one["total"] == 0 for one in told_of)
        return (
            lease["lease_id"],
            sum(units(one["charge"]) for one in paid),
            [one["good"] for one in told_of],
        )

    _, paid, taken = metered(**FOUR_CORES)
    assert (paid, taken) == (144_000, [])
    devices = len(scene.provider.device_ids)
    lost = -((HOUR_US - SLACK_US) // devices)
    _, paid, taken = metered(cpu_us=10**15)
    assert (paid, taken) == (0, [lost])
    _, paid, taken = metered()
    assert (paid, taken) == (0, [lost])


def test_a_provider_cannot_meter_a_renter_dry(scene: Scene) -> None:
    """The attack: 9.5 TB "in thirty seconds" of a lease with 3 credits took all of 100 credits past
    the budgets of its project and key, and "storage" of a lease that stored nothing took 45 more.
    A node may sign what it likes: no more is drawn than its renter agreed to.
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
    lease = scene.running(job=job, funds=funds)
    lease_id = lease["lease_id"]
    before = balance(scene, f"party:{renter}:cash")
    clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    scene.renter.made(f"/v1/leases/{lease_id}/close")
    huge = {"received_bytes": 9_500 * GB, "storage_byte_s": 6_000 * GB}
    signed(scene, lease, sent_bytes=0, **huge)
    signed(scene, lease, first=1, received_bytes=GB, sent_bytes=0)
    clock.advance(PATIENCE_US)  # type: ignore[attr-defined]
    assert run(scene, run_resources) == 1
    (charge,) = scene.owner.read(f"/v1/leases/{lease_id}/resources/network")["data"]
    assert [one["rule"] for one in charge["refused"]] == ["above_maximum"]
    told = scene.renter.read(f"/v1/leases/{lease_id}/resources")
    assert [(one["meter"], units(one["charge"])) for one in told["resources"]] == [
        ("network", 10_000)
    ]
    assert told["used"]["storage_byte_s"] == str(6_000 * GB), "told, and charged nothing"
    assert balance(scene, f"party:{renter}:cash") >= before
    assert balance(scene, f"party:{renter}:owed") == 0
    assert balance(scene, f"party:{scene.owner.account_id}:holdback") == 5_000


def test_nobody_but_the_node_of_a_lease_meters_it(scene: Scene) -> None:
    """A report that another node signs, or nobody, moves nothing; there is no other way in."""
    lease = agreed(scene)
    scene.clock.advance(MINUTE_US)  # type: ignore[attr-defined]
    other = scene.other
    body = used(other, {**lease, "device_ids": other.device_ids}, **FOUR_CORES)
    assert send(scene, other, body).status_code == 200, "it is that node's own report"
    scene.clock.advance(HOUR_US)  # type: ignore[attr-defined]
    assert run(scene, run_resources) == 0
    told = scene.renter.read(f"/v1/leases/{lease['lease_id']}/resources")
    assert (told["resources"], told.get("used")) == ([], None)
    forged = scene.provider.signing.envelope(used(scene.provider, lease, **FOUR_CORES))
    forged["signature"] = "A" * 86 + "=="
    path = f"/v1/nodes/{scene.provider.node_id}/usage"
    answer = scene.http.post(
        path, json=[forged], headers={"Content-Type": "application/cloudevents-batch+json"}
    )
    assert answer.json()["code"] == "bad_signature"
    assert scene.owner.post("/v1/usage/events", {}).status_code in (404, 405)


def test_a_report_whose_resource_rows_break_a_rule_earns_nothing_at_all(scene: Scene) -> None:
    lease = agreed(scene)
    scene.clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    body = json.loads(used(scene.provider, lease, minutes=2, **FOUR_CORES))
    body["resources"]["step_us"] = [0, MINUTE_US - 1]
    sent = send(scene, scene.provider, json.dumps(body).encode())
    assert sent.json()["results"][0]["receipt"]["flags"] == 1
    (flagged,) = scene.owner.read(f"/v1/nodes/{scene.provider.node_id}/usage")["flagged"]
    assert flagged["rule"] == "rows_overlap"
    scene.clock.advance(HOUR_US)  # type: ignore[attr-defined]
    assert run(scene, run_resources) == 0


def test_what_could_not_be_measured_is_told_so_and_costs_nothing(scene: Scene) -> None:
    """Decision 0008: half of a network's bytes are no measurement of its bytes."""
    lease = agreed(scene)
    scene.clock.advance(MINUTE_US)  # type: ignore[attr-defined]
    signed(scene, lease, received_bytes=GB, sent_bytes=None, **FOUR_CORES)
    scene.clock.advance(HOUR_US)  # type: ignore[attr-defined]
    assert run(scene, run_resources) == 1, "the processor alone"
    told = scene.renter.read(f"/v1/leases/{lease['lease_id']}/resources")
    assert told["used"]["known"] == {
        "cpu_us": str(MINUTE_US),
        "memory_us": "0",
        "storage_us": "0",
        "network_us": "0",
    }
    (row,) = scene.renter.read(f"/v1/leases/{lease['lease_id']}/resource-rows")["data"]
    assert "sent_bytes" not in row
    assert row["received_bytes"] == str(GB)


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


def test_use_is_summed_by_kind_of_job_node_and_lease_for_those_who_schedule(scene: Scene) -> None:
    """R-7: scheduling data, per job and node; GPU and other resources of one stream."""
    lease = scene.running()
    scene.clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    signed(scene, lease, minutes=2, **ALL)
    (batch,) = scene.renter.read("/v1/usage/resources", by="kind")["data"]
    assert (batch["group"], batch["leases"], batch["time_us"]) == ("batch", 1, str(2 * MINUTE_US))
    assert batch["cpu_us"] == str(8 * MINUTE_US)
    mine = {"by": "node_id", "as_provider": "true"}
    (node,) = scene.owner.read("/v1/usage/resources", **mine)["data"]
    assert (node["group"], node["received_bytes"]) == (scene.provider.node_id, str(2 * GB))
    (one,) = scene.operator.read("/v1/usage/resources", by="lease_id")["data"]
    assert one["group"] == lease["lease_id"]
    assert scene.stranger.read("/v1/usage/resources")["data"] == []
    assert scene.owner.read("/v1/usage/resources")["data"] == []
    assert scene.renter.read("/v1/usage/resources", kind="endpoint")["data"] == []
    foreign = scene.stranger.get("/v1/usage/resources", account_id=scene.renter.account_id)
    assert foreign.json()["code"] == "account_unknown"


def test_j_10_a_lease_names_its_route_and_its_bytes_are_summed_by_it(scene: Scene) -> None:
    """VxLAN routes across clusters: the route is on the lease and told to its node, and the bytes
    that the node signed are those of the route.
    """
    job = scene.job(meter_maxima=most(network=20_000))
    lease = scene.lease(job=job, route_id="vxlan-7/eu-us")
    lease_id, node_id = lease["lease_id"], lease["node_id"]
    waiting = scene.provider.node.read(f"/v1/nodes/{node_id}/assignments")
    assert [one["route_id"] for one in waiting["pending"]] == ["vxlan-7/eu-us"]
    scene.provider.node.made(f"/v1/nodes/{node_id}/assignments/{lease_id}/ready")
    other = scene.running(job=scene.job())
    scene.clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    signed(scene, lease, minutes=2, received_bytes=GB // 2, sent_bytes=GB // 4)
    told = scene.renter.read(f"/v1/leases/{lease_id}")
    assert told["route_id"] == "vxlan-7/eu-us"
    assert "route_id" not in scene.renter.read(f"/v1/leases/{other['lease_id']}")
    moved = scene.renter.read(f"/v1/leases/{lease_id}/transfers")
    assert (moved["route_id"], moved["bytes"]) == ("vxlan-7/eu-us", str(3 * GB // 2))
    (route,) = scene.renter.read("/v1/usage/resources", by="route_id")["data"]
    assert (route["group"], route["leases"]) == ("vxlan-7/eu-us", 1)
    assert (route["received_bytes"], route["sent_bytes"]) == (str(GB), str(GB // 2))
    long = scene.renter.post("/v1/leases", {"job": job, "route_id": "x" * 129})
    assert long.status_code == 422


def test_data_that_moves_is_totalled_and_priced_to_and_from_a_node_that_has_rdma(
    scene: Scene,
) -> None:
    """J-12: a data set by its IPFS CID, GPUDirect RDMA as a capability that the match demands,
    totals of what was transferred, and a tariff for storage and network.
    """
    cid = "ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
    demands = {"capabilities": ["gpudirect-rdma"]}
    job = scene.job(
        references=[{"kind": "dataset", "name": cid}],
        constraints=demands,
        meter_maxima=most(network=20_000, storage=20_000),
    )
    refused = scene.renter.post("/v1/leases", {"job": job}).json()
    assert refused["code"] == "no_match", refused
    scene.owner.made(
        "/v1/offers",
        {
            "provider_id": scene.provider.provider_id,
            "node_id": scene.provider.node_id,
            "price_per_gpu_hour": {"asset": "CREDIT", "units": "4000000"},
            "terms": demands,
        },
    )
    tariffs = scene.anybody.read("/v1/tariffs")["data"]
    tariff = next(one for one in tariffs if one["version"] == 2)
    prices = {one["meter"]: (one["price"]["units"], one["per"]) for one in tariff["meters"]}
    assert (prices["network"], prices["storage"]) == (("10000", str(GB)), ("1", "10"))
    lease = scene.running(job=job)
    assert lease["price_per_gpu_hour"]["units"] == "4000000", "the offer that promises it"
    scene.clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    moved = {"received_bytes": GB // 2, "sent_bytes": GB // 4, "storage_byte_s": 60 * GB}
    signed(scene, lease, minutes=2, **moved)
    told = scene.renter.read(f"/v1/leases/{lease['lease_id']}/transfers")
    assert (told["received_bytes"], told["sent_bytes"]) == (str(GB), str(GB // 2))
    assert (told["bytes"], told["measured_us"]) == (str(3 * GB // 2), str(2 * MINUTE_US))
    assert told["datasets"] == [cid]
    scene.clock.advance(HOUR_US)  # type: ignore[attr-defined]
    assert run(scene, run_resources) == 2
    charged = scene.renter.read(f"/v1/leases/{lease['lease_id']}/resources")["resources"]
    assert {one["meter"]: units(one["charge"]) for one in charged} == {
        "network": 15_000,
        "storage": 12,
    }


def test_edge_devices_are_charged_at_midnight_and_told_day_by_day(scene: Scene) -> None:
    """C-22, C-34: over HTTP."""
    region = scene.central_region()
    scene.owner.made(f"/v1/regions/{region}/storage-node/remove")
    body = {**edge_device(region), "model": "jetson-orin-nx"}
    first = scene.owner.made("/v1/edge-devices", body)
    second = scene.owner.made("/v1/edge-devices", {**edge_device(region), "model": body["model"]})
    today = day_text(day_of(NOW_US))
    assert (first["first_day"], first["device_id"] != second["device_id"]) == (today, True)
    assert scene.rival.post("/v1/edge-devices", body).status_code == 404
    told = f"/v1/edge-devices/{first['device_id']}/report"
    assert scene.rival.post(told).status_code == 404
    assert (first["state"], scene.owner.made(told)["state"]) == ("added", "active")
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
    assert [one["state"] for one in listed] == ["active", "removed"]
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
    edge = edge_device(scene.provider.region_id)
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
        scene.owner.made(f"/v1/providers/{provider}/cloud-account", CLOUD_ACCOUNT)
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
