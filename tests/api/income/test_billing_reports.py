"""Usage by group, earnings explained, forecasts: what a party reads about its money, over HTTP."""

from __future__ import annotations

from typing import Any

from api.door.moments import moment
from cli.commands import billing as cli_billing
from domain.duration import HOUR_US
from tests.scenes.server import NOW_US, Scene
from tests.scenes.work import hours_of_work, run


def test_usage_is_told_by_hour_day_project_user_and_model(scene: Scene) -> None:
    hours_of_work(scene, job=scene.job(project_id="p1", end_user_ref="u1"))
    path = "/v1/usage/summary"
    for by, key, group in (
        ("hour", "hour", "2026-11-20T08:00:00.000000Z"),
        ("day", "day", "2026-11-20T00:00:00.000000Z"),
        ("project_id", "project_id", "p1"),
        ("end_user_ref", "end_user_ref", "u1"),
        ("client_id", "client_id", "direct"),
        ("model", "model", "NVIDIA A100-PCIE-80GB"),
    ):
        (told,) = scene.renter.read(path, by=by)["data"]
        assert told[key] == group
        assert (told["gpu_us"], told["gpu_us_max"], told["accruals"]) == (
            str(HOUR_US),
            str(HOUR_US),
            1,
        )
        assert told["charge"]["units"] == told["charge_max"]["units"] == "2000000"
    (both,) = scene.renter.read(path, by="day,project_id,model")["data"]
    assert {"day", "project_id", "model"} <= both.keys()
    assert "client_id" not in both
    assert scene.renter.read(path, by="hour", project_id="p2")["data"] == []
    assert scene.renter.read(path, to="2026-11-20T07:00:00Z")["data"] == []
    assert scene.stranger.read(path)["data"] == []
    other = scene.stranger.get(path, account_id=scene.renter.account_id)
    assert other.json()["code"] == "account_unknown"
    assert scene.operator.read(path, account_id=scene.renter.account_id)["data"]
    long = scene.renter.get(f"{path}?from=2025-01-01T00:00:00Z")
    assert (long.status_code, long.json()["code"]) == (422, "invalid")
    assert long.json()["errors"][0]["pointer"] == "#/query/from"
    assert scene.renter.get(path, by="day,hour").json()["code"] == "invalid"


def test_earnings_are_told_by_hour_and_explained_step_by_step(scene: Scene) -> None:
    """C-23: the fee off the full price, then the provider's half; every number is shown."""
    lease = hours_of_work(scene)[0]
    (told,) = scene.owner.read("/v1/earnings", by="hour,lease_id")["data"]
    assert told["hour"] == "2026-11-20T08:00:00.000000Z"
    assert (told["lease_id"], told["provider"]["units"]) == (lease["lease_id"], "875000")
    assert scene.owner.read("/v1/earnings", by="hour", to="2026-11-20T08:00:00Z")["data"] == []
    base = f"/v1/accounts/{scene.owner.account_id}/statements"
    (line,) = scene.owner.read(base, kind="earning")["lines"]
    path = f"/v1/earnings/explain/{line['position']}"
    why = scene.owner.read(path)
    assert why["position"] == line["position"]
    steps = {step["name"]: step for step in why["steps"]}
    assert (why["tariff_version"], why["provider_share_ppm"]) == (1, 500_000)
    assert {name: step["new"] for name, step in steps.items()} == {
        "ppm_us": str(HOUR_US * 1_000_000),
        "gpu_us": str(HOUR_US),
        "charge": "2000000",
        "fee": "250000",
        "provider": "875000",
        "burn": "0",
        "platform": "875000",
    }
    assert steps["fee"]["given"] == {"fee_per_gpu_hour": "250000", "price_per_gpu_hour": "2000000"}
    for step in why["steps"]:
        assert int(step["after"]) - int(step["before"]) == int(step["new"])
    got = {one["name"]: one["movement"]["units"] for one in why["entry"]}
    assert got[f"party:{scene.owner.account_id}:holdback"] == "-875000"
    assert sum(map(int, got.values())) == 0
    printed = cli_billing._explained(why)
    assert [line.split()[:4] for line in printed if line.startswith("provider ")] == [
        ["provider", "0", "875000", "875000"]
    ]
    assert scene.rival.get(path).json()["code"] == "not_found"
    assert scene.renter.get(path).json()["code"] == "not_found", "a renter earned nothing by it"
    assert scene.auditor.read(path)["steps"] == why["steps"]
    assert scene.owner.get("/v1/earnings/explain/1").json()["code"] == "not_found"


def test_a_forecast_names_the_second_when_funds_end(scene: Scene) -> None:
    """Design economics 4: 10 CREDIT held; the account's balance would go on at the same rate."""
    path = f"/v1/accounts/{scene.renter.account_id}/forecast"
    idle = scene.renter.read(path)
    assert idle["leases"] == []
    assert all("lasts_until" not in one for one in idle["balances"])
    lease = scene.running(funds={"asset": "CREDIT", "units": "10000000"})
    told = scene.renter.read(path)
    (running,) = told["leases"]
    assert running["funds_end_at"] == running["ends_at"] == moment(NOW_US + 5 * HOUR_US)
    assert running["held"]["units"] == "10000000"
    cash = next(one for one in told["balances"] if one["settlement"] == "cash")
    assert (cash["spendable"]["units"], cash["charge_per_hour"]["units"]) == ("90000000", "2000000")
    assert cash["lasts_until"] == moment(NOW_US + (5 + 45) * HOUR_US)
    run(scene, lease, minutes=60)
    assert scene.renter.read(path)["leases"][0]["ends_at"] == running["ends_at"]
    term = scene.running(term_seconds=7_200)
    told = scene.renter.read(path)
    fixed = next(one for one in told["leases"] if one["lease_id"] == term["lease_id"])
    assert fixed["ends_at"] == fixed["term_end_at"] == moment(NOW_US + 3 * HOUR_US)
    cash = next(one for one in told["balances"] if one["settlement"] == "cash")
    assert (cash["spendable"]["units"], cash["leases"]) == ("86000000", 2)
    assert cash["lasts_until"] == moment(NOW_US + (5 + 43) * HOUR_US), "a term is paid in full"
    refused = scene.stranger.get(path)
    assert refused.json()["code"] == "account_unknown"


def test_reports_are_read_with_the_billing_scope_alone(scene: Scene) -> None:
    who: Any = scene.renter
    made = who.made(f"/v1/accounts/{who.account_id}/api-keys", {"scopes": ["billing:read"]})
    headers = {"Authorization": f"Bearer {made['key']}"}
    base = f"/v1/accounts/{who.account_id}"
    for path in ("/v1/usage/summary", f"{base}/forecast", f"{base}/statements"):
        assert scene.http.get(path, headers=headers).json() == who.read(path), path
    refused = scene.http.get("/v1/earnings", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
