"""Quotes before buying, explanations before and after, and searches, over HTTP."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from domain.fleet.condition import OFFLINE_AFTER_US
from domain.market.matching import recompute
from domain.market.unmatched import WINDOW_US
from ledger.log import codec
from tests.scenes.server import Scene
from tests.scenes.serving import Market
from tests.scenes.shell import tallystick_at

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


def test_a_quote_without_a_node_names_the_nearest_that_lacks_only_room_or_money(
    scene: Scene,
) -> None:
    price = scene.job()["max_price_per_gpu_hour"]
    assert "nearest" not in scene.renter.made("/v1/quotes", {"job": scene.job()})
    poor = scene.account()
    told = poor.made("/v1/quotes", {"job": scene.job(max_price_per_gpu_hour=price)})
    assert (told["nearest"]["missing"], told["nearest"]["offer_id"]) == (
        "money",
        scene.provider.offer_id,
    )
    while scene.renter.made("/v1/quotes", {"job": scene.job()}).get("offered"):
        scene.lease()
    nearest = scene.renter.made("/v1/quotes", {"job": scene.job()})["nearest"]
    assert (nearest["missing"], nearest["node_id"]) == ("room", scene.provider.node_id)
    assert nearest["price_per_gpu_hour"] == {"asset": "CREDIT", "units": "2000000"}
    assert nearest["memory_mib"] > 0
    other = scene.renter.made("/v1/quotes", {"job": scene.job(models=["NVIDIA Z9"])})
    assert "nearest" not in other, "more than that is missing"


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
    assert_kept(scene, job, told)
    eased = {**job, "max_price_per_gpu_hour": {"asset": "CREDIT", "units": "2000000"}}
    assert scene.lease(job=eased)["node_id"] == scene.provider.node_id


def test_each_factor_decides_where_a_job_goes_and_is_recorded_with_the_lease(scene: Scene) -> None:
    """R-5: two nodes alike but in one thing at a time; the first is the cheaper one."""
    near, far = scene.provider.node_id, scene.other.node_id

    def chosen(**demands: Any) -> tuple[str, dict[str, int]]:
        lease = scene.lease(job=scene.job(constraints=demands))
        (match,) = scene.renter.read(f"/v1/jobs/{lease['job_id']}/explain")["matches"]
        assert (match["recomputed"], match["differences"]) == (True, [])
        weighed = next(iter(demands.get("weights", {"price": 0})))
        factors = {one["node_id"]: one["factors_ppm"][weighed] for one in match["candidates"]}
        scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
        return match["node_id"], factors

    def by(name: str, **demands: Any) -> tuple[str, dict[str, int]]:
        return chosen(rank="best_score", weights={name: 1_000_000}, **demands)

    assert chosen()[0] == near, "nothing but the price"
    assert by("locality", near_region=scene.other.region_id) == (far, {near: 0, far: 1_000_000})
    assert by("free_peers") == (near, {near: 500_000, far: 500_000}), "alike, and cheaper"
    beside = copy(scene.other)
    beside.join(scene, "beside", "NVIDIA H100 PCIe", 4_000_000)
    winner, factors = by("free_peers")
    assert factors == {near: 500_000, far: 750_000, beside.node_id: 750_000}
    assert winner == far, "one of its two is left, and two of two on the node beside it"
    scene.rival.made(f"/v1/offers/{scene.other.offer_id}/withdraw")
    terms = {"storage_gib": 100}
    price = {"asset": "CREDIT", "units": "3000000"}
    scene.rival.made(
        "/v1/offers",
        {
            "provider_id": scene.other.provider_id,
            "node_id": far,
            "price_per_gpu_hour": price,
            "fractions": True,
            "terms": terms,
        },
    )
    winner, factors = by("storage")
    assert (winner, factors[near], factors[far]) == (far, 0, 1_000_000)


def test_a_gang_records_what_each_member_was_chosen_from(scene: Scene) -> None:
    """R-5: with the weights, by which the scores are computed again."""
    weighed = {"rank": "best_score", "weights": {"reputation": 1_000_000}}
    job = scene.job(constraints=weighed)
    told = scene.renter.made("/v1/gangs", {"job": job, "members": 2})
    matches = scene.renter.read(f"/v1/jobs/{told['job_id']}/explain")["matches"]
    assert {one["lease_id"] for one in matches} == set(told["lease_ids"])
    for match in matches:
        assert (match["recomputed"], match["differences"]) == (True, [])
        assert match["weights"]["reputation"] == 1_000_000
        assert match["candidates"][0]["score_ppm"] == 500_000
        assert match["dimensions"]


def assert_kept(scene: Scene, job: dict[str, Any], quoted: dict[str, Any]) -> None:
    """R-5: what a refusal was decided from is recorded once in ten minutes for each need, whichever
    way of asking; of others it is not to be seen.
    """
    path, clock = "/v1/unmatched-requests", scene.clock
    (kept,) = scene.renter.read(path)["data"]
    assert (kept["code"], kept["times"], kept["members"]) == ("no_match", 1, 1)
    assert kept["dimensions"] == quoted["dimensions"]
    assert kept["eased"] == quoted["relaxations"][0]
    assert kept["fleet_position"] <= kept["recorded_position"] == scene.head()
    assert scene.rival.read(path)["data"] == []
    assert scene.operator.read(path)["data"] == [kept]
    head = scene.head()
    asks: list[tuple[str, dict[str, Any]]] = [
        ("/v1/leases", {"job": {**job, "end_user_ref": "another"}}),
        ("/v1/lease-quotes", {"job": job}),
    ]
    for way, body in asks:
        assert scene.renter.post(way, body).json()["code"] == "no_match"
    assert scene.head() == head, "the same need"
    gang = {"job": job, "members": 2}
    assert scene.renter.post("/v1/gangs", gang).json()["code"] == "no_match"
    assert scene.renter.read(path)["data"][0]["members"] == 2, "another need"
    clock.advance(WINDOW_US)  # type: ignore[attr-defined]
    poor = scene.account()
    head = scene.head()
    assert poor.post("/v1/leases", {"job": job}).json()["code"] == "no_match"
    assert scene.head() == head, "an account without credits fills no log"
    assert scene.renter.post("/v1/lease-quotes", {"job": job}).json()["code"] == "no_match"
    told = scene.renter.read(path)["data"][0]
    assert (told["members"], told["times"]) == (1, 3), "two more than were recorded"
    ran = tallystick_at(scene.http, scene.renter.key, "offer", "unmatched", "--json")
    assert ran.document["data"][0] == told


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


def test_free_in_a_list_of_offers_is_what_the_matcher_gives(
    founded_market: Market, tmp_path: Path
) -> None:
    """A node that is silent for five minutes was listed as not free, and leased all the same."""
    with founded_market.copied(tmp_path, spec_ttl_s=900) as scene:
        mine, clock = scene.provider.node_id, scene.clock
        asked: Any = {"job": scene.job()}

        def is_free() -> bool:
            (found,) = scene.anybody.read(f"/v1/offers?node_id={mine}")["data"]
            alone = scene.anybody.read(f"/v1/offers/{found['offer_id']}")
            assert alone["devices_free"] == found["devices_free"]
            quoted = scene.renter.made("/v1/quotes", asked).get("offered", {}).get("node_id")
            free = int(found["devices_free"]) > 0
            assert free == (quoted == mine), "what is free is what a quote finds"
            return free

        assert is_free()
        advanced: Any = clock
        advanced.advance(OFFLINE_AFTER_US)
        assert scene.owner.read(f"/v1/nodes/{mine}")["state"] == "offline"
        assert is_free()
        advanced.advance(900_000_001 - OFFLINE_AFTER_US)
        assert not is_free()


def test_strangers_are_not_told_what_befell_the_node_of_an_offer(scene: Scene) -> None:
    """Only whether it is there to lease: its devices are free or not."""
    path = f"/v1/nodes/{scene.provider.node_id}"
    scene.owner.made(f"{path}/drain", {"keep_leases": True})
    assert scene.owner.read(path)["state"] == "maintenance", "its owner reads the word there"
    (found,) = scene.anybody.read(f"/v1/offers?node_id={scene.provider.node_id}")["data"]
    assert found["devices_free"] == 0
    assert "maintenance" not in str(found)
    assert "node_state" not in found
    ran = tallystick_at(scene.http, scene.renter.key, "offer", "list")
    assert "maintenance" not in ran.out


def test_a_quote_with_a_node_names_a_cheaper_one_that_only_lacks_room(scene: Scene) -> None:
    asked = {"job": scene.job()}
    while True:
        told = scene.renter.made("/v1/quotes", asked)
        if told["offered"]["node_id"] == scene.other.node_id:
            break
        assert "nearest" not in told, "what is offered is the cheapest"
        scene.lease()
    assert told["nearest"]["node_id"] == scene.provider.node_id
    assert told["nearest"]["missing"] == "room"
    price = told["nearest"]["price_per_gpu_hour"]
    assert int(price["units"]) < int(told["offered"]["price_per_gpu_hour"]["units"])
    capped = scene.renter.made("/v1/quotes", {"job": scene.job(max_price_per_gpu_hour=price)})
    assert ("offered" in capped, capped["nearest"]["missing"]) == (False, "room")
    refused = scene.renter.post("/v1/leases", {"job": scene.job(max_price_per_gpu_hour=price)})
    assert refused.json()["facts"]["missing"] == "room", "which `run --wait-for-gpu` waits for"


def test_a_quote_tells_prices_and_parts_as_people_write_them(scene: Scene) -> None:
    """They were told in millionths of a credit."""
    ran = tallystick_at(scene.http, scene.renter.key, "quote", "--max-price", "1.5")
    lines = [line.split("  ") for line in ran.out.splitlines()]
    rows = {line[0]: [cell.strip() for cell in line[1:] if cell] for line in lines if line[0]}
    assert rows["max_price_per_gpu_hour"][:2] == ["1.500000 CREDIT", "2.000000 CREDIT"]
    assert rows["price"][:2] == ["1.500000 CREDIT", "2.000000 CREDIT"]
    assert rows["renter"][:2] == ["0.5", "0"]
    scene.renter.post("/v1/leases", {"job": scene.job(max_price_per_gpu_hour=POOR)})
    unmatched = tallystick_at(scene.http, scene.renter.key, "offer", "unmatched")
    assert "max_price_per_gpu_hour 1.500000 CREDIT -> 2.000000 CREDIT" in unmatched.out
