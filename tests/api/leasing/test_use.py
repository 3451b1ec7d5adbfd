"""What a running lease uses and costs, before its first hour is billed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.metering import report
from tests.scenes.server import NOW_US, Scene
from tests.scenes.work import MINUTE_US, accrue_now, reported, send


def test_a9_a_lease_in_its_first_hour_shows_what_it_used_and_costs_and_how_busy_it_is(
    scene: Scene,
) -> None:
    clock: Any = scene.clock
    lease = scene.running()
    at = f"/v1/leases/{lease['lease_id']}/use"
    before = scene.renter.read(at)
    assert (before["gpu_us"], before["charge"]["units"], before["is_final"]) == ("0", "0", False)
    assert "busy_ppm" not in before
    told = report.parse(reported(scene.provider, lease, minutes=2))
    busy = [MINUTE_US // 4, MINUTE_US // 2]
    rows = tuple(replace(row, busy_us=us) for row, us in zip(told.rows, busy, strict=True))
    clock.advance(2 * MINUTE_US)
    devices = tuple(replace(one, busy_source="util") for one in told.devices)
    send(scene, scene.provider, report.encode(replace(told, rows=rows, devices=devices)))
    found = scene.renter.read(at)
    assert int(found["gpu_us"]) == 2 * MINUTE_US
    assert int(found["charge"]["units"]) == 2_000_000 * 2 // 60
    assert (found["busy_ppm"], found["busy_seconds"]) == (500_000, 60), "of the last minute"
    assert scene.owner.read(at)["gpu_us"] == found["gpu_us"], "its provider sees it as well"
    assert scene.stranger.get(at).status_code == 404
    assert scene.renter.read(f"/v1/leases/{lease['lease_id']}")["charge"]["units"] == "0"
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    accrue_now(scene, lease["lease_id"])
    final = scene.renter.read(at)
    assert final["charge"] == scene.renter.read(f"/v1/leases/{lease['lease_id']}")["charge"]
    assert final["is_final"] == (final["state"] == "settled")
    assert scene.clock.now_us() > NOW_US
