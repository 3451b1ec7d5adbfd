"""An owner sees why time earned nothing: report by report and row by row, with the cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.metering import report
from projections import tables
from tests.scenes.server import HOUR_US, NOW_US, Scene
from tests.scenes.work import MINUTE_US, accrue_now, reported, send


def row(start_us: int, end_us: int, available_us: int | None = None) -> report.Row:
    """A row of the first device under the lease, in the server's time."""
    length_us = end_us - start_us
    available_us = length_us if available_us is None else available_us
    return report.Row(
        device=0,
        lease=0,
        driver_epoch=1,
        mono_start_us=start_us - NOW_US + HOUR_US,
        len_us=length_us,
        wall_minus_mono_us=NOW_US - HOUR_US,
        available_us=available_us,
        unavailable_us=length_us - available_us,
        unknown_us=0,
        samples=60,
    )


def sent(scene: Scene, lease: dict[str, Any], *rows: report.Row, **changes: Any) -> None:
    body = reported(
        scene.provider,
        lease,
        rows=rows,
        mono_us=9 * HOUR_US,
        wall_us=NOW_US + 8 * HOUR_US,
        **changes,
    )
    answer = send(scene, scene.provider, body)
    assert answer.status_code == 200, answer.text


def usage(scene: Scene, **query: Any) -> dict[str, Any]:
    with scene.service.connect() as connection:
        tables.step_all(connection)
    told: dict[str, Any] = scene.owner.read(f"/v1/nodes/{scene.provider.node_id}/usage", **query)
    return told


def on_the_first(scene: Scene) -> dict[str, Any]:
    lease = scene.running(job=scene.job(models=["NVIDIA A100-PCIE-80GB"]))
    assert lease["device_ids"] == [scene.provider.device_ids[0]]
    return lease


def test_every_refused_row_is_told_with_its_rule_its_report_and_its_time(scene: Scene) -> None:
    clock: Any = scene.clock
    lease = on_the_first(scene)
    clock.advance(30 * MINUTE_US)
    half_us = NOW_US + 30 * MINUTE_US
    sent(scene, lease, row(NOW_US - 10 * MINUTE_US, half_us))  # begins before the lease does
    sent(scene, lease, row(half_us - 5 * MINUTE_US, half_us))  # counted already
    clock.advance(31 * MINUTE_US)
    sent(scene, lease, row(half_us, NOW_US + HOUR_US))
    accrue_now(scene, lease["lease_id"])
    told = {one["rule"]: one for one in usage(scene)["refused"]}
    assert set(told) == {"outside_window", "overlap"}
    cost = {rule: int(one["microseconds"]) for rule, one in told.items()}
    assert cost == {"outside_window": 10 * MINUTE_US, "overlap": 5 * MINUTE_US}
    for rule, one in told.items():
        assert sum(int(each["microseconds"]) for each in one["rows"]) == cost[rule]
    (outside,) = told["outside_window"]["rows"]
    assert (outside["usage_position"], outside["device_id"]) == (1, lease["device_ids"][0])
    (overlap,) = told["overlap"]["rows"]
    assert overlap["usage_position"] == 2
    assert (overlap["start"], overlap["end"]) == (
        "2026-11-20T08:27:00.000000Z",
        "2026-11-20T08:32:00.000000Z",
    )


def test_time_faster_than_the_clock_and_ahead_of_its_receipt_is_told_at_settlement(
    scene: Scene,
) -> None:
    clock: Any = scene.clock
    lease = on_the_first(scene)
    clock.advance(10 * MINUTE_US)
    ten_us = NOW_US + 10 * MINUTE_US
    sent(scene, lease, row(ten_us - MINUTE_US, ten_us + MINUTE_US))  # ends after its receipt
    # Twenty minutes of the node's clock in ten of the server's.
    fast = report.Row(
        device=0,
        lease=0,
        driver_epoch=1,
        mono_start_us=0,
        len_us=20 * MINUTE_US,
        wall_minus_mono_us=NOW_US,
        wall_slew_us=-10 * MINUTE_US,
        available_us=20 * MINUTE_US,
        unavailable_us=0,
        unknown_us=0,
        samples=60,
    )
    sent(scene, lease, fast)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    clock.advance(25 * HOUR_US)
    accrue_now(scene, lease["lease_id"])
    told = {one["rule"]: one for one in usage(scene)["refused"]}
    assert {rule: int(one["microseconds"]) for rule, one in told.items()} == {
        "ahead_of_receipt": 2 * MINUTE_US,
        "faster_than_time": 10 * MINUTE_US,
    }
    assert [each["usage_position"] for each in told["faster_than_time"]["rows"]] == [2]
    assert [each["usage_position"] for each in told["ahead_of_receipt"]["rows"]] == [1]
    body = reported(
        scene.provider,
        devices=(report.Device(id="GPU-beside"),),
        rows=(replace(row(NOW_US, NOW_US + MINUTE_US), lease=None),),
        mono_us=9 * HOUR_US,
        wall_us=NOW_US + 8 * HOUR_US,
    )
    assert send(scene, scene.provider, body).status_code == 200
    with scene.service.connect() as connection:
        tables.step_all(connection)
    devices = scene.owner.read(f"/v1/nodes/{scene.provider.node_id}/trust")["devices"]
    rules = {one["device_id"]: {each["rule"] for each in one["findings"]} for one in devices}
    (leased,) = set(rules) - {"GPU-beside"}
    assert "faster_than_time" in rules[leased]
    assert "faster_than_time" not in rules["GPU-beside"], "another device of the same node"


def test_a_flagged_report_is_told_with_its_rule_and_the_time_it_claims(scene: Scene) -> None:
    lease = on_the_first(scene)
    good = row(NOW_US, NOW_US + MINUTE_US)
    sent(scene, lease, good, agent="a name that is much too long for an agent")
    sent(scene, lease, row(NOW_US + MINUTE_US, NOW_US + 3 * MINUTE_US), boot="no boot id")
    sent(scene, lease, row(NOW_US + 3 * MINUTE_US, NOW_US + 4 * MINUTE_US))
    told = usage(scene)
    assert (told["reports"], told["reports_flagged"]) == (3, 2), "the chain goes on"
    assert [(one["seq"], one["rule"], one["claimed_us"]) for one in told["flagged"]] == [
        (1, "wrong_form", MINUTE_US),
        (2, "wrong_form", 2 * MINUTE_US),
    ]
    assert "a-f" in told["flagged"][1]["detail"]
    assert [one["seq"] for one in usage(scene, after_seq=1)["flagged"]] == [2]
