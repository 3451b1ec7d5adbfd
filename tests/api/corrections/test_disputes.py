"""Disputes and adjustments over HTTP: who may do what, what is held, and who sees it."""

from __future__ import annotations

from typing import Any

from domain.duration import HOUR_US
from domain.metering.report import lane_of
from tests.api.corrections.test_countersign import added, half
from tests.scenes.server import Scene
from tests.scenes.work import hours_of_work

CLAIM = "The container never answered."


def charge_of(scene: Scene, lease: dict[str, Any]) -> dict[str, Any]:
    charges: list[dict[str, Any]] = scene.renter.read(f"/v1/leases/{lease['lease_id']}/charges")[
        "data"
    ]
    return charges[0]


def contested(scene: Scene, lease: dict[str, Any], **changes: Any) -> dict[str, Any]:
    line = charge_of(scene, lease)["position"]
    body = {
        "lease_id": lease["lease_id"],
        "lines": [{"position": line}],
        "claim_code": "not_running",
        "claim": CLAIM,
        **changes,
    }
    return scene.renter.made("/v1/disputes", body)


def part(scene: Scene, account: str) -> int:
    return scene.service.ledger.books.balance(account)


def report_of(scene: Scene) -> dict[str, Any]:
    """The evidence a provider has: the signed report of its node."""
    return {"kind": "usage_report", "lane": lane_of(scene.provider.node_id), "position": 1}


def test_a_dispute_from_the_claim_to_the_money_back(scene: Scene) -> None:
    """Open, answer with signed evidence, rule: each party its part, every unit accounted for."""
    (lease,) = hours_of_work(scene)
    holdback = f"party:{scene.owner.account_id}:holdback"
    cash = part(scene, f"party:{scene.renter.account_id}:cash")
    dispute = contested(scene, lease)
    path = f"/v1/disputes/{dispute['dispute_id']}"
    assert (dispute["state"], dispute["claimed"]["units"]) == ("opened", "2000000")
    assert dispute["reserved"]["units"] == "875000"
    assert part(scene, holdback) == 0
    assert part(scene, f"dispute:{dispute['dispute_id']}") == 875_000
    told = {"statement": "It ran: see the report.", "evidence": [report_of(scene)]}
    assert scene.owner.made(f"{path}/answer", told)["state"] == "answered"
    ruling = {"outcome": "split", "upheld_ppm": 250_000, "reason": "A quarter was lost."}
    ruled = scene.operator.made(f"{path}/rule", ruling)
    assert (ruled["state"], ruled["upheld"]["units"], ruled["unfounded"]) == (
        "split",
        "500000",
        False,
    )
    assert part(scene, f"party:{scene.renter.account_id}:cash") == cash + 500_000
    assert part(scene, f"party:{scene.owner.account_id}:payable") == 875_000 - 218_750
    assert scene.service.ledger.books.books_balanced()
    whole = scene.renter.read(path)
    assert [one["side"] for one in whole["statements"]] == ["renter", "provider", "arbiter"]
    assert [one["text"] for one in whole["statements"]] == [
        CLAIM,
        told["statement"],
        ruling["reason"],
    ]
    assert whole["statements"][1]["evidence"][0]["signed"] is True
    (line,) = whole["lines"]
    booked = scene.renter.read(f"/v1/adjustments/{line['adjustment_id']}")
    assert booked["corrects_position"] == line["position"]
    (listed,) = scene.renter.read("/v1/adjustments")["data"]
    assert booked["position"] == listed["position"]
    assert sum(int(one["movement"]["units"]) for one in booked["lines"]) == 0


def test_another_partys_dispute_is_not_there_and_only_governance_rules(scene: Scene) -> None:
    (lease,) = hours_of_work(scene)
    dispute = contested(scene, lease)
    path = f"/v1/disputes/{dispute['dispute_id']}"
    for caller in (scene.stranger, scene.rival):
        assert caller.get(path).status_code == 404
        assert caller.read("/v1/disputes")["data"] == []
        assert caller.post(f"{path}/answer", {"statement": "me"}).status_code == 404
    for caller in (scene.renter, scene.owner):
        refused = caller.post(f"{path}/rule", {"outcome": "rejected"})
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
    body = {"lease_id": lease["lease_id"], "lines": [{"position": 1}], "claim_code": "other"}
    assert scene.stranger.post("/v1/disputes", body).json()["code"] == "lease_unknown"
    assert scene.renter.post("/v1/disputes", body).json()["code"] == "line_unknown"
    assert scene.auditor.read("/v1/disputes", state="open")["data"][0]["state"] == "opened"


def test_evidence_that_is_not_about_the_lease_is_refused(scene: Scene) -> None:
    (lease,) = hours_of_work(scene)
    dispute = contested(scene, lease)
    path = f"/v1/disputes/{dispute['dispute_id']}/answer"
    for wrong in (
        {**report_of(scene), "position": 9},
        {**report_of(scene), "lane": (lane_of(scene.provider.node_id) + 1) % 64},
        {"kind": "market_fact", "position": 1},
    ):
        refused = scene.owner.post(path, {"evidence": [wrong]})
        assert refused.json()["code"] == "evidence_unknown", refused.text
    line = charge_of(scene, lease)["position"]
    scene.renter.made(path, {"evidence": [{"kind": "market_fact", "position": line}]})
    signed = f"/v1/leases/{lease['lease_id']}/countersign"
    half_of_it = half(lease["lease_id"], added(scene), HOUR_US // 2)
    countersigned = scene.renter.made(signed, half_of_it)["position"]
    scene.renter.made(path, {"evidence": [{"kind": "market_fact", "position": countersigned}]})
    said = scene.owner.read(f"/v1/disputes/{dispute['dispute_id']}")["statements"]
    assert [[one["signed"] for one in each["evidence"]] for each in said] == [[], [False], [True]]


def test_goodwill_is_the_operators_and_both_parties_see_it(scene: Scene) -> None:
    (lease,) = hours_of_work(scene)
    position = charge_of(scene, lease)["position"]
    body = {"corrects_position": position, "amount": {"asset": "CREDIT", "units": "1000"}}
    assert scene.owner.post("/v1/adjustments", body).status_code == 403
    made = scene.operator.made("/v1/adjustments", body)
    assert (made["reason"], made["returned"]["units"]) == ("goodwill", "1000")
    for caller in (scene.renter, scene.owner):
        listed = caller.read("/v1/adjustments", lease_id=lease["lease_id"])["data"]
        assert [one["adjustment_id"] for one in listed] == [made["adjustment_id"]]
    assert scene.stranger.read("/v1/adjustments")["data"] == []
    too_much = {**body, "amount": {"asset": "CREDIT", "units": "2000000"}}
    refused = scene.operator.post("/v1/adjustments", too_much)
    assert (refused.status_code, refused.json()["code"]) == (409, "adjustment_too_large")
