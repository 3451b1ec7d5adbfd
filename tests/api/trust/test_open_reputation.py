"""R-14: without a key anybody reads a score, the evidence behind it, and the file of an epoch."""

from __future__ import annotations

import hashlib
from datetime import date
from typing import Any

from domain.epochs.epoch_file import read_cut
from domain.trust.evidence import Row, weighed
from domain.trust.scores import rate
from tests.scenes.server import Scene
from tests.scenes.work import MINUTE_US, hours_of_work, seal_an_epoch_of_work

EPOCH = date(1970, 1, 1)


def day_of(text: str) -> int:
    return (date.fromisoformat(text) - EPOCH).days


def score_of(rows: list[dict[str, Any]], kind: str, day: int) -> int:
    """Computed by a reader who has nothing but the answers."""
    told = [
        Row(
            kind=kind,
            subject_id="",
            input=one["input"],
            origin=one["fact_position"],
            position=one["known_position"],
            since=0,
            ref="",
            client_id=one["client_id"],
            counterparty=None,
            day=day_of(one["day"]),
            from_day=day_of(one["counts_from"]),
            good=one["good"],
            total=one["total"],
        )
        for one in rows
    ]
    return rate(kind, weighed(told, day)).score_ppm


def listed(scene: Scene, path: str, **asked: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page = scene.anybody.read(f"{path}/evidence", limit=2, **asked)
    found += page["data"]
    while "next_cursor" in page:
        page = scene.anybody.read(f"{path}/evidence", limit=2, cursor=page["next_cursor"], **asked)
        found += page["data"]
    return found


def test_a_score_is_computed_again_from_the_evidence_that_is_listed(scene: Scene) -> None:
    lease, *_ = hours_of_work(scene)
    clock: Any = scene.clock
    clock.advance(MINUTE_US)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    before = scene.head()
    other = scene.running()
    scene.owner.made(f"/v1/leases/{other['lease_id']}/close", {"code": 10_000})
    subjects = (
        ("node", f"/v1/nodes/{lease['node_id']}/reputation"),
        ("provider", f"/v1/providers/{scene.provider.provider_id}/reputation"),
    )
    for kind, path in subjects:
        for asked in ({"as_of_position": before}, {}):
            told = scene.anybody.read(path, **asked)
            rows = listed(scene, path, **asked)
            assert rows, (kind, asked)
            assert score_of(rows, kind, day_of(told["day"])) == told["score_ppm"]
            known = [one["known_position"] for one in rows]
            assert max(known) <= told["as_of_position"]
        assert len(listed(scene, path, as_of_position=before)) <= len(listed(scene, path))
    assert "ref" not in rows[0], "whose lease it was is told by the fact, to those who may read it"
    unknown = scene.anybody.get(f"/v1/nodes/node_{'0' * 32}/reputation/evidence")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "node_unknown")


def test_the_file_of_a_sealed_epoch_is_served_and_has_the_hash_of_its_seal(scene: Scene) -> None:
    assert scene.anybody.get("/v1/epochs/1/epoch.json").status_code == 404
    seal_an_epoch_of_work(scene)
    response = scene.anybody.get("/v1/epochs/1/epoch.json")
    assert response.status_code == 200, response.text
    (sealed,) = [
        each.fact
        for each in scene.service.ledger.market.read_facts(0, 10_000)
        if type(each.fact).__name__ == "EpochSealed"
    ]
    assert hashlib.sha256(response.content).hexdigest() == sealed.file_sha256
    assert read_cut(response.content).nodes
    assert scene.anybody.get("/v1/epochs/2/epoch.json").status_code == 404
