"""Quotes before buying, explanations before and after, and searches, over HTTP."""

from __future__ import annotations

from dataclasses import replace

from domain.market.matching import recompute
from ledger.log import codec
from tests.scenes.server import Scene

POOR = {"asset": "CREDIT", "units": "1500000"}


def test_a_quote_tells_the_node_and_why_and_records_nothing(scene: Scene) -> None:
    before = scene.service.head_now()
    told = scene.renter.made("/v1/quotes", {"job": scene.job()})
    assert scene.service.head_now() == before
    offered = told["offered"]
    assert (offered["node_id"], told["considered"]) == (scene.provider.node_id, 2)
    assert (told["runner_up"], told["deciding"]) == (scene.other.node_id, "price")
    assert offered["setting"] == "datacenter"
    assert not offered["higher_offline_odds"]
    by_name = {one["dimension"]: one for one in told["dimensions"]}
    assert by_name["node"] == {
        "dimension": "node",
        "required": "active",
        "best_offered": "active",
        "nodes_left": 2,
        "nodes_refused": 0,
    }
    lease = scene.lease()
    assert lease["node_id"] == offered["node_id"], "what was quoted is what is got"


def test_no_match_names_the_nearest_single_relaxation_before_and_at_the_refusal(
    scene: Scene,
) -> None:
    job = scene.job(max_price_per_gpu_hour=POOR)
    told = scene.renter.made("/v1/quotes", {"job": job})
    assert "offered" not in told
    assert told["relaxations"][0] == {
        "field": "max_price_per_gpu_hour",
        "required": "1500000",
        "offered": "2000000",
        "nodes": 1,
        "distance_ppm": 333_333,
    }
    refused = scene.renter.post("/v1/leases", {"job": job}).json()
    assert refused["code"] == "no_match"
    assert refused["facts"]["relaxation"] == "max_price_per_gpu_hour 1500000 -> 2000000: 1 node"
    eased = {**job, "max_price_per_gpu_hour": {"asset": "CREDIT", "units": "2000000"}}
    assert scene.lease(job=eased)["node_id"] == scene.provider.node_id


def test_what_no_registered_node_could_ever_meet_is_refused_at_once(scene: Scene) -> None:
    huge = scene.job(constraints={"memory_mib": 10_000_000})
    refused = scene.renter.post("/v1/leases", {"job": huge}).json()
    assert (refused["code"], refused["facts"]["dimension"]) == ("match_impossible", "memory")
    assert scene.renter.made("/v1/quotes", {"job": huge})["impossible"] == "memory"


def test_a_job_without_a_lease_is_explained_as_things_stand(scene: Scene) -> None:
    job = scene.renter.made("/v1/jobs", scene.job(max_price_per_gpu_hour=POOR))
    told = scene.renter.read(f"/v1/jobs/{job['job_id']}/explain")
    assert told["matches"] == []
    assert told["now"]["relaxations"][0]["offered"] == "2000000"
    lease = scene.lease()
    after = scene.renter.read(f"/v1/jobs/{lease['job_id']}/explain")
    assert "now" not in after
    match = after["matches"][0]
    assert (match["recomputed"], match["differences"], match["rank"]) == (True, [], 1)
    assert match["dimensions"][0]["dimension"] == "offer"


def test_a_changed_record_is_found_by_recomputing(scene: Scene) -> None:
    lease = scene.lease()
    history = scene.service.connect()
    with history:
        rows = history.execute(
            "SELECT topic, state FROM public.market_events WHERE topic = 'lease.match_decided.v1'"
        ).fetchall()
    fact = codec.decode(rows[-1][0], bytes(rows[-1][1]))
    assert fact.lease_id == lease["lease_id"]
    assert recompute(fact).differences == ()
    assert recompute(replace(fact, candidates=fact.candidates[::-1])).differences


def test_demands_of_a_job_decide_where_it_goes_and_are_kept_with_it(scene: Scene) -> None:
    scene.owner.made(
        "/v1/offers",
        {
            "provider_id": scene.provider.provider_id,
            "node_id": scene.provider.node_id,
            "price_per_gpu_hour": {"asset": "CREDIT", "units": "4000000"},
            "fractions": True,
            "terms": {"isolation": "vm", "capabilities": ["cudnn"], "storage_gib": 100},
        },
    )
    demands = {"isolation": "container", "capabilities": ["cudnn"], "storage_gib": 50}
    lease = scene.lease(job=scene.job(constraints=demands))
    assert lease["price_per_gpu_hour"]["units"] == "4000000", "the dearer offer alone promises it"
    assert scene.renter.read(f"/v1/jobs/{lease['job_id']}")["constraints"] == demands
    found = scene.anybody.read("/v1/offers", capability="cudnn", storage_gib=50)["data"]
    assert [one["price_per_gpu_hour"]["units"] for one in found] == ["4000000"]
    assert scene.anybody.read("/v1/offers", capability="cudnn", storage_gib=101)["data"] == []
    assert len(scene.anybody.read("/v1/offers", gpu_count=2)["data"]) == 3


def test_a_demand_that_means_nothing_is_refused_with_its_field_and_rule(scene: Scene) -> None:
    job = scene.job(constraints={"rank": "best_score"})
    refused = scene.renter.post("/v1/jobs", job).json()
    assert (refused["code"], refused["facts"]["field"]) == ("constraint_invalid", "weights")


def test_an_accepted_quote_records_what_it_was_chosen_from(scene: Scene) -> None:
    """It recorded no candidates, so that its choice followed from nothing."""
    quoted = scene.renter.made("/v1/lease-quotes", {"job": scene.job()})
    body = {"quote_id": quoted["quote_id"]}
    taken = scene.renter.made(f"/v1/leases/{quoted['lease_id']}/accept", body)
    assert taken["node_id"] == quoted["node_id"]
    told = scene.renter.read(f"/v1/jobs/{quoted['job_id']}/explain")["matches"][0]
    assert (told["rule"], told["considered"], told["rank"]) == ("lowest_cost/2", 2, 1)
    nodes = [one["node_id"] for one in told["candidates"]]
    assert nodes == [scene.provider.node_id, scene.other.node_id]
    assert all(one["score_ppm"] is not None for one in told["candidates"])
    assert told["fleet_position"] > 0
    assert told["dimensions"][0]["dimension"] == "offer"
    assert (told["recomputed"], told["differences"]) == (True, [])


def test_a_refusal_for_want_of_room_tells_when_the_next_gpu_is_free(scene: Scene) -> None:
    """words.md: "The next one is free at 21:45"."""
    asked = {"job": scene.job(max_price_per_gpu_hour={"asset": "CREDIT", "units": "2000000"})}
    funds = {"asset": "CREDIT", "units": "3000000"}
    first = scene.renter.made("/v1/leases", {**asked, "term_seconds": 10_800})
    second = scene.renter.made("/v1/leases", {**asked, "funds": funds})
    path = "/v1/leases"
    unknown = scene.renter.post(path, asked).json()
    assert unknown["code"] == "no_match"
    assert "the end of their leases is not known" in unknown["detail"], "neither has started"
    assert "free_us" not in unknown["facts"]
    assert "free_by" not in scene.renter.made("/v1/quotes", asked)
    for lease in (first, second):
        node = f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}"
        scene.provider.node.made(f"{node}/ready")
    ends = [scene.renter.read(f"{path}/{one['lease_id']}") for one in (first, second)]
    assert ends[0]["term_end_at"] == "2026-11-20T11:02:00.000000Z"
    by = ends[1]["funds_end_at"]
    assert by < ends[0]["term_end_at"], "90 minutes for 3.00 CREDIT"
    told = scene.renter.post(path, asked).json()
    assert told["detail"].startswith(
        "All matching GPUs (1 node) are busy now. The next is free by 2026-11-20 09:32 UTC, unless"
    ), told["detail"]
    assert scene.renter.made("/v1/quotes", asked)["free_by"] == by
    assert scene.renter.post("/v1/lease-quotes", asked).json()["facts"] == told["facts"]
    gang = scene.renter.post("/v1/gangs", {**asked, "members": 2}).json()
    assert gang["code"] == "no_match"
    assert "There is room for all of them by 2026-11-20 11:02 UTC" in gang["detail"]
    pair = {"job": {**asked["job"], "gpu_count": 2}}
    assert scene.renter.made("/v1/quotes", pair)["free_by"] == ends[0]["term_end_at"]
    scene.renter.made(f"{path}/{second['lease_id']}/close")
    assert scene.renter.made("/v1/quotes", asked)["offered"]["node_id"] == first["node_id"]
