"""Row R-24 over HTTP under production's settings: a dataset has a place that the matcher counts."""

from __future__ import annotations

from typing import Any

from tests.scenes.server import Scene

NAME = "s3://corpus/v3"
USES = [{"kind": "dataset", "name": NAME}]


def placed(scene: Scene, *region_ids: str, **changes: Any) -> dict[str, Any]:
    body = {"name": NAME, "region_ids": list(region_ids), **changes}
    return scene.renter.made("/v1/datasets", body)


def chosen(scene: Scene, **job: Any) -> dict[str, Any]:
    """The recorded decision for a job that refers to the dataset."""
    lease = scene.lease(job=scene.job(references=USES, **job))
    (match,) = scene.renter.read(f"/v1/jobs/{lease['job_id']}/explain")["matches"]
    scene.renter.post(f"/v1/leases/{lease['lease_id']}/close", {})
    assert (match["recomputed"], match["differences"]) == (True, [])
    return dict(match)


def locality(match: dict[str, Any], node_id: str) -> int:
    one = next(each for each in match["candidates"] if each["node_id"] == node_id)
    return int(one["factors_ppm"]["locality"])


def test_among_equal_prices_the_node_near_the_data_wins(scene: Scene) -> None:
    """R-24: the same job, the same offers; only the place of the data decides."""
    scene.rival.made(f"/v1/offers/{scene.other.offer_id}/withdraw")
    offer = {
        "provider_id": scene.other.provider_id,
        "node_id": scene.other.node_id,
        "price_per_gpu_hour": {"asset": "CREDIT", "units": "2000000"},
        "fractions": True,
    }
    scene.rival.made("/v1/offers", offer)
    for near, far in ((scene.other, scene.provider), (scene.provider, scene.other)):
        placed(scene, near.region_id)
        match = chosen(scene)
        assert match["node_id"] == near.node_id
        assert match["deciding"] == "score"
        assert (locality(match, near.node_id), locality(match, far.node_id)) == (1_000_000, 0)


def test_a_cheaper_node_wins_where_the_renter_does_not_weigh_the_place(scene: Scene) -> None:
    """R-24, C-1: the lowest cost is first; a renter may let the place count before it."""
    placed(scene, scene.other.region_id)
    match = chosen(scene)
    assert (match["node_id"], match["deciding"]) == (scene.provider.node_id, "price")
    assert locality(match, scene.other.node_id) == 1_000_000
    weighed = {"rank": "best_score", "weights": {"locality": 1_000_000}}
    assert chosen(scene, constraints=weighed)["node_id"] == scene.other.node_id


def test_a_pinned_dataset_keeps_its_jobs_in_its_regions(scene: Scene) -> None:
    """R-24: a cheaper node elsewhere is no candidate."""
    placed(scene, scene.other.region_id, pinned=True)
    match = chosen(scene)
    assert match["node_id"] == scene.other.node_id
    assert [one["node_id"] for one in match["candidates"]] == [scene.other.node_id]
    away = scene.job(references=USES, constraints={"regions": [scene.provider.region_id]})
    refused = scene.renter.post("/v1/jobs", away)
    assert (refused.status_code, refused.json()["code"]) == (409, "volume_region")


def test_a_name_without_a_place_decides_nothing(scene: Scene) -> None:
    assert chosen(scene)["node_id"] == scene.provider.node_id
    made = placed(scene, scene.other.region_id, pinned=True)
    again = placed(scene, scene.other.region_id, pinned=True)
    assert again["dataset_id"] == made["dataset_id"]
    (listed,) = scene.renter.read("/v1/datasets")["data"]
    assert (listed["name"], listed["region_ids"]) == (NAME, [scene.other.region_id])
    assert scene.stranger.read("/v1/datasets")["data"] == []
    removing = f"/v1/datasets/{made['dataset_id']}/remove"
    assert scene.stranger.post(removing, {}).json()["code"] == "dataset_unknown"
    scene.renter.made(removing)
    assert scene.renter.read("/v1/datasets")["data"] == []
    assert chosen(scene)["node_id"] == scene.provider.node_id
    unknown = {"name": NAME, "region_ids": ["region_" + "0" * 32]}
    assert scene.renter.post("/v1/datasets", unknown).json()["code"] == "region_unknown"


def test_a_dataset_is_the_accounts_own_word(scene: Scene) -> None:
    """What another account says of the same name does not move one's jobs."""
    scene.deposit(scene.stranger, 1)
    body = {"name": NAME, "region_ids": [scene.other.region_id], "pinned": True}
    scene.stranger.made("/v1/datasets", body)
    assert chosen(scene)["node_id"] == scene.provider.node_id
