"""The price of a TOKEN over HTTP: sources, what they published, and snapshots to refer to."""

from __future__ import annotations

from typing import Any

import pytest

from api.door.moments import moment
from domain.duration import SECOND_US
from tests.scenes.server import Caller, Scene

SOURCES = ("exchange-a", "exchange-b", "venue-c")


def feeder(scene: Scene) -> tuple[str, Caller]:
    """A member of the operator's account whose key reports prices and does nothing else."""
    member = scene.member(scene.operator, "member", ["oracle:write"])
    return str(member.member_id), member


def fed(scene: Scene) -> dict[str, Caller]:
    """Three sources, each with a feeder of its own."""
    found = {source: feeder(scene) for source in SOURCES}
    body = [{"source": source, "member_id": member} for source, (member, _) in found.items()]
    scene.operator.made("/v1/oracle/sources", {"sources": body})
    return {source: caller for source, (_, caller) in found.items()}


def seen(scene: Scene, source: str, price: int, age_s: int = 0, **more: Any) -> dict[str, Any]:
    published_at = moment(scene.clock.now_us() - age_s * SECOND_US)
    return {"source": source, "price_micro_usd": price, "published_at": published_at, **more}


def report(scene: Scene, feeders: dict[str, Caller], *prices: tuple[str, int, int]) -> None:
    for price in prices:
        feeders[price[0]].made("/v1/oracle/observations", seen(scene, *price))


def healthy(scene: Scene) -> dict[str, Caller]:
    feeders = fed(scene)
    report(scene, feeders, ("exchange-a", 2_000_000, 30), ("exchange-b", 2_010_000, 20))
    report(scene, feeders, ("venue-c", 2_005_000, 10))
    return feeders


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
    feeders = healthy(scene)
    scene.clock.advance(530 * SECOND_US)  # type: ignore[attr-defined]
    report(scene, feeders, ("exchange-a", 2_001_000, 60), ("venue-c", 2_005_000, 0))
    scene.clock.advance(51 * SECOND_US)  # type: ignore[attr-defined]
    told = scene.anybody.read("/v1/oracle")
    assert [one["stale"] for one in told["sources"]] == [False, True, False]
    assert (told["health"], "median_micro_usd" in told) == ("too_few_sources", False)


def test_a_snapshot_keeps_what_was_said_after_the_price_moved_on(scene: Scene) -> None:
    feeders = healthy(scene)
    taken = scene.operator.made("/v1/oracle/snapshots")
    assert (taken["snapshot"], taken["health"], taken["median_micro_usd"]) == (
        1,
        "healthy",
        2_005_000,
    )
    assert len(taken["sources"]) == 3
    scene.clock.advance(60 * SECOND_US)  # type: ignore[attr-defined]
    report(scene, feeders, ("venue-c", 3_000_000, 20))
    told = scene.anybody.read("/v1/oracle")
    assert told["health"] == "deviation"
    assert told["last_snapshot"]["median_micro_usd"] == 2_005_000
    dormant = scene.operator.made("/v1/oracle/snapshots")
    assert (dormant["snapshot"], dormant["health"]) == (2, "deviation")


def test_the_same_price_twice_is_recorded_once(scene: Scene) -> None:
    feeders = healthy(scene)
    body = seen(scene, "venue-c", 2_005_000, 10)
    before = scene.anybody.read("/v1/oracle")["position"]
    assert feeders["venue-c"].made("/v1/oracle/observations", body)["price_micro_usd"] == 2_005_000
    assert scene.anybody.read("/v1/oracle")["position"] == before


@pytest.mark.parametrize(
    ("price", "age_s", "more", "code"),
    [
        (2_000_000, -1, {}, "price_times"),
        (2_000_000, 61, {}, "price_times"),
        (2_000_000, 0, {"observed_at": "2020-01-01T00:00:00Z"}, "price_times"),
        (999, 0, {}, "price_too_low"),
    ],
)
def test_what_no_source_can_have_said_is_refused(
    shared: Scene, price: int, age_s: int, more: dict[str, Any], code: str
) -> None:
    feeders = fed(shared)
    body = seen(shared, "exchange-a", price, age_s, **more)
    answer = feeders["exchange-a"].post("/v1/oracle/observations", body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_a_stolen_feeder_key_is_neither_every_source_nor_a_second_price_of_the_past(
    scene: Scene,
) -> None:
    """Economics M1: `healthy 1870000` became `healthy 1000` by one key within the same second."""
    feeders = fed(scene)
    for _ in range(6):
        report(scene, feeders, *((source, 1_870_000, 0) for source in SOURCES))
        scene.clock.advance(300 * SECOND_US)  # type: ignore[attr-defined]
    thief = feeders["venue-c"]
    for age_s in range(1_800, 0, -300):
        for source in SOURCES:
            answer = thief.post("/v1/oracle/observations", seen(scene, source, 1_000, age_s))
            own = source == "venue-c"
            assert answer.status_code == (422 if own else 403), answer.text
            assert answer.json()["code"] == ("price_times" if own else "price_source_foreign")
    told = scene.anybody.read("/v1/oracle")
    assert (told["health"], told["median_micro_usd"]) == ("healthy", 1_870_000)
    report(scene, feeders, ("venue-c", 1_870_000, 10))
    again = thief.post("/v1/oracle/observations", seen(scene, "venue-c", 1_000, 10))
    assert (again.status_code, again.json()["code"]) == (409, "price_known")


def test_a_key_that_only_reports_prices_can_do_nothing_else(scene: Scene) -> None:
    reporter = fed(scene)["venue-c"]
    assert reporter.made("/v1/oracle/observations", seen(scene, "venue-c", 2_000_000))
    assert reporter.made("/v1/oracle/snapshots")["health"] == "too_few_sources"
    refused = reporter.post("/v1/oracle/sources", {"sources": []})
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
