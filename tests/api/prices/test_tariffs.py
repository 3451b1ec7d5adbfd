"""Tariffs over HTTP: everybody reads them, governance publishes the next one."""

from __future__ import annotations

from typing import Any

from tests.scenes.server import Scene

NEXT: dict[str, Any] = {
    "version": 2,
    "usage_fees": [
        {"gpu_class": "datacenter", "per_gpu_hour": {"asset": "CREDIT", "units": "300000"}}
    ],
    "provider_share_ppm": 350_000,
    "effective_from": "2027-01-01T00:00:00Z",
    "split": {
        "shares": [
            {"bucket": "platform", "share_ppm": 150_000},
            {"bucket": "provider", "share_ppm": 350_000},
        ],
        "residual": "burn",
    },
    "federated": {
        "inference_per_hour": {"asset": "CREDIT", "units": "1850000"},
        "training_per_hour": {"asset": "CREDIT", "units": "2650000"},
        "unit": "job",
    },
    "meters": [{"meter": "cpu", "price": {"asset": "CREDIT", "units": "36000"}, "per": "3600"}],
    "sla": [{"name": "gold", "tiers": [{"below_ppm": 990_000, "credit_ppm": 100_000}]}],
    "notice_seconds": 60 * 86_400,
}


def test_the_next_tariff_is_published_once_and_read_back_whole(scene: Scene) -> None:
    assert [row["version"] for row in scene.anybody.read("/v1/tariffs")["data"]] == [1]
    told = scene.operator.made("/v1/tariffs", NEXT)
    first, second = scene.anybody.read("/v1/tariffs")["data"]
    assert (first["in_force"], second["in_force"]) == (True, False)
    for name, asked in NEXT.items():
        if name != "effective_from":
            assert second[name] == asked == told[name], name
    assert second["effective_from"] == "2027-01-01T00:00:00.000000Z"
    again = scene.operator.post("/v1/tariffs", {**NEXT, "notice_seconds": 1})
    assert (again.status_code, again.json()["code"]) == (409, "tariff_version")
    early = {**NEXT, "version": 3, "effective_from": "2027-01-01T00:00:00Z"}
    early_again = scene.operator.post("/v1/tariffs", early)
    assert (early_again.status_code, early_again.json()["code"]) == (409, "tariff_notice")
    scene.operator.made("/v1/tariffs", {**early, "effective_from": "2027-06-01T00:00:00Z"})


def test_only_governance_publishes(scene: Scene) -> None:
    answer = scene.renter.post("/v1/tariffs", NEXT)
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
    assert len(scene.anybody.read("/v1/tariffs")["data"]) == 1


def test_e_h8_a_tariff_that_returns_everything_to_a_washer_is_refused(scene: Scene) -> None:
    """E-H8: provider 500,000, the rest burned and rewarded, no usage fee: 201 with one key."""
    shares = [{"bucket": "provider", "share_ppm": 500_000}]
    everything = {**NEXT, "provider_share_ppm": 500_000, "sla": []}
    answer = scene.operator.post(
        "/v1/tariffs", {**everything, "split": {"shares": shares, "residual": "burn"}}
    )
    told = answer.json()
    assert (answer.status_code, told["code"]) == (409, "profit_bound")
    assert "would get 100 % of a charge back by `split`" in told["detail"]
    assert "at most 95 % may come back" in told["detail"]


def test_e_c2_a_refund_on_top_of_a_reward_that_stays_is_refused(scene: Scene) -> None:
    """E-C2: 10 % back below 99 % under 35 % for the provider and 60 % burned."""
    shares = [NEXT["split"]["shares"][0] | {"share_ppm": 50_000}, NEXT["split"]["shares"][1]]
    washing = {**NEXT, "split": {"shares": shares, "residual": "burn"}}
    answer = scene.operator.post("/v1/tariffs", washing)
    assert (answer.status_code, answer.json()["code"]) == (409, "profit_bound")
    assert "SLA class at `sla.0`" in answer.json()["detail"]
    scene.operator.made("/v1/tariffs", {**washing, "sla": []})
