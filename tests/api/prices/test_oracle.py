"""The price of a TOKEN over HTTP: sources, what they published, and snapshots to refer to."""

from __future__ import annotations

from typing import Any

import pytest

from api.door.moments import moment
from domain.duration import SECOND_US
from tests.scenes.server import Caller, Scene

SOURCES = {"sources": ["exchange-a", "exchange-b", "venue-c"]}


def seen(scene: Scene, source: str, price: int, age_s: int = 0, **more: Any) -> dict[str, Any]:
    published_at = moment(scene.clock.now_us() - age_s * SECOND_US)
    return {"source": source, "price_micro_usd": price, "published_at": published_at, **more}


def report(scene: Scene, *prices: tuple[str, int, int]) -> None:
    for price in prices:
        scene.operator.made("/v1/oracle/observations", seen(scene, *price))


def healthy(scene: Scene) -> None:
    scene.operator.made("/v1/oracle/sources", SOURCES)
    report(scene, ("exchange-a", 2_000_000, 30), ("exchange-b", 2_010_000, 20))
    report(scene, ("venue-c", 2_005_000, 10))


def test_nobody_has_a_price_before_there_are_sources(scene: Scene) -> None:
    told = scene.anybody.read("/v1/oracle")
    assert (told["health"], told["sources"]) == ("too_few_sources", [])
    assert "median_micro_usd" not in told
    answer = scene.operator.post("/v1/oracle/observations", seen(scene, "exchange-a", 2_000_000))
    assert (answer.status_code, answer.json()["code"]) == (404, "price_source_unknown")


def test_three_sources_make_a_price_that_everybody_reads(scene: Scene) -> None:
    healthy(scene)
    told = scene.anybody.read("/v1/oracle")
    assert (told["health"], told["median_micro_usd"]) == ("healthy", 2_005_000)
    assert told["deviation_bps"] == 50
    first = told["sources"][0]
    assert (first["source"], first["stale"], first["twap_micro_usd"]) == (
        "exchange-a",
        False,
        2_000_000,
    )
    assert first["published_at"] < first["observed_at"] == told["at"]
    assert (told["window_seconds"], told["max_age_seconds"]) == (1_800, 600)


def test_a_price_grows_old_by_its_own_time_however_late_it_is_told(scene: Scene) -> None:
    healthy(scene)
    scene.clock.advance(590 * SECOND_US)  # type: ignore[attr-defined]
    report(scene, ("exchange-a", 2_001_000, 0), ("exchange-b", 2_010_000, 601))
    told = scene.anybody.read("/v1/oracle")
    assert [one["stale"] for one in told["sources"]] == [False, True, False]
    assert (told["health"], "median_micro_usd" in told) == ("too_few_sources", False)


def test_a_snapshot_keeps_what_was_said_after_the_price_moved_on(scene: Scene) -> None:
    healthy(scene)
    taken = scene.operator.made("/v1/oracle/snapshots")
    assert (taken["snapshot"], taken["health"], taken["median_micro_usd"]) == (
        1,
        "healthy",
        2_005_000,
    )
    assert len(taken["sources"]) == 3
    scene.clock.advance(60 * SECOND_US)  # type: ignore[attr-defined]
    report(scene, ("venue-c", 3_000_000, 20))
    told = scene.anybody.read("/v1/oracle")
    assert told["health"] == "deviation"
    assert told["last_snapshot"]["median_micro_usd"] == 2_005_000
    dormant = scene.operator.made("/v1/oracle/snapshots")
    assert (dormant["snapshot"], dormant["health"]) == (2, "deviation")


def test_the_same_price_twice_is_recorded_once(scene: Scene) -> None:
    healthy(scene)
    body = seen(scene, "venue-c", 2_005_000, 10)
    before = scene.anybody.read("/v1/oracle")["position"]
    assert scene.operator.made("/v1/oracle/observations", body)["price_micro_usd"] == 2_005_000
    assert scene.anybody.read("/v1/oracle")["position"] == before


@pytest.mark.parametrize(
    ("price", "age_s", "more", "code"),
    [
        (2_000_000, -1, {}, "price_times"),
        (2_000_000, 0, {"observed_at": "2020-01-01T00:00:00Z"}, "price_times"),
        (999, 0, {}, "price_too_low"),
    ],
)
def test_what_no_source_can_have_said_is_refused(
    scene: Scene, price: int, age_s: int, more: dict[str, Any], code: str
) -> None:
    scene.operator.made("/v1/oracle/sources", SOURCES)
    body = seen(scene, "exchange-a", price, age_s, **more)
    answer = scene.operator.post("/v1/oracle/observations", body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_a_key_that_only_reports_prices_can_do_nothing_else(scene: Scene) -> None:
    scene.operator.made("/v1/oracle/sources", SOURCES)
    keys = f"/v1/accounts/{scene.operator.account_id}/api-keys"
    made = scene.operator.made(keys, {"scopes": ["oracle:write"]})
    feeder = Caller(scene.http, made["key"])
    assert feeder.made("/v1/oracle/observations", seen(scene, "venue-c", 2_000_000))
    assert feeder.made("/v1/oracle/snapshots")["by"] == made["member_id"]
    refused = feeder.post("/v1/oracle/sources", {"sources": ["mine"]})
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
    mine = f"/v1/accounts/{scene.renter.account_id}/api-keys"
    renters = scene.renter.post(mine, {"scopes": ["oracle:write"]})
    assert (renters.status_code, renters.json()["code"]) == (403, "not_permitted")


def test_every_snapshot_is_listed_in_order(scene: Scene) -> None:
    first = scene.operator.made("/v1/oracle/snapshots", {})
    healthy(scene)
    second = scene.operator.made("/v1/oracle/snapshots", {})
    told = scene.anybody.read("/v1/oracle/snapshots")["data"]
    assert [(one["snapshot"], one["health"]) for one in told] == [
        (1, "too_few_sources"),
        (2, "healthy"),
    ]
    assert [one["sources"] for one in told] == [first["sources"], second["sources"]]
    page = scene.anybody.read("/v1/oracle/snapshots", limit=1)
    rest = scene.anybody.read("/v1/oracle/snapshots", limit=1, cursor=page["next_cursor"])
    assert [one["snapshot"] for one in rest["data"]] == [2]
