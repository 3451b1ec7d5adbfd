"""How well the accelerators are used, over HTTP: everybody's sums, each owner's nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from api.process.clock import SimulatedClock
from api.timers import Timers
from cli.commands.pools import MARKS, bar
from domain.duration import HOUR_US
from tests.scenes.server import Scene


def test_a_leased_half_hour_is_half_of_the_device_and_sums_are_everybodys(scene: Scene) -> None:
    assert isinstance(scene.clock, SimulatedClock)
    start = scene.clock.now_us() // HOUR_US * HOUR_US + HOUR_US
    scene.clock.move_to(start)
    lease = scene.running(job=scene.job(share_ppm=500_000))
    scene.clock.advance(HOUR_US + 6 * 60_000_000)  # hours are booked five minutes late
    Timers(scene.service).run_once()
    told = scene.renter.read("/v1/utilisation", by="hour,model")["data"]
    hour = [row for row in told if row["hour"].startswith("2026") and int(row["leased"])]
    assert lease["device_ids"]
    assert sum(int(row["leased"]) for row in hour) == HOUR_US // 2_000
    for row in told:
        parts = ("leased", "idle", "mined", "stranded", "unavailable")
        assert sum(int(row[part]) for part in parts) == int(row["physical"])
    nodes = scene.owner.read("/v1/utilisation", by="node")["data"]
    assert [row["node"] for row in nodes] == [scene.provider.node_id]
    assert scene.stranger.read("/v1/utilisation", by="node")["data"] == []


def test_what_is_free_is_told_as_it_can_be_sold(scene: Scene) -> None:
    before = scene.renter.read("/v1/fragmentation", by="model")["data"]
    assert {row["room_2"] for row in before} == {1}
    scene.running(job=scene.job(share_ppm=300_000))
    after = scene.renter.read("/v1/fragmentation", by="model")["data"]
    cut = next(row for row in after if row["partly_free"])
    assert (cut["room_1"], cut["room_2"], cut["whole_free"]) == (1, 0, 1)
    assert cut["free_ppm"] == "1700000"
    assert cut["fragmented_ppm"] == 700_000 * 1_000_000 // 1_700_000


def test_a_grouping_that_there_is_not_is_refused(scene: Scene) -> None:
    for path, by in (("/v1/utilisation", "planet"), ("/v1/fragmentation", "node")):
        refused = scene.renter.get(path, by=by)
        assert refused.status_code == 422, path
        assert [one["pointer"] for one in refused.json()["errors"]] == ["#/query/by"], refused.text


@given(
    parts=st.lists(st.integers(0, 10**9), min_size=len(MARKS), max_size=len(MARKS)),
    width=st.integers(1, 80),
)
def test_a_bar_is_as_wide_as_asked_whatever_it_shows(parts: list[int], width: int) -> None:
    row = dict(zip(MARKS, parts, strict=True)) | {"physical": sum(parts)}
    assert len(bar(row, width)) == (width if sum(parts) else 0)
