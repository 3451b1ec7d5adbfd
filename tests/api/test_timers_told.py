"""`GET /v1/timers` and `tallystick timer list`: how each timer went, for the operator."""

from __future__ import annotations

from typing import Any

from ledger.beside import timer_runs
from tests.scenes.server import Scene
from tests.scenes.shell import tallystick_at


def test_the_operator_sees_last_run_duration_error_and_next_run(shared: Scene) -> None:
    now_us = shared.clock.now_us()
    with shared.service.connect() as connection:
        timer_runs.record(
            connection, "pin", now_us, 120_000_000, duration_us=250_000, next_us=now_us + 60_250_000
        )
        timer_runs.record(
            connection, "chain", now_us - 10, 600, "NodeFailed: http://x", duration_us=9
        )
    timers = {one["name"]: one for one in shared.operator.read("/v1/timers")["data"]}
    pin, chain = timers["pin"], timers["chain"]
    assert (pin["duration_us"], pin.get("error"), pin["late"]) == (250_000, None, False)
    assert pin["ran_at"] == pin["succeeded_at"] != pin["next_at"]
    assert (chain["error"], chain["late"]) == ("NodeFailed: http://x", True)
    assert "succeeded_at" not in chain
    told: Any = tallystick_at(shared.http, shared.operator.key, "timer", "list", "--json").document
    assert {one["name"]: one for one in told["data"]} == timers
    lines = tallystick_at(shared.http, shared.operator.key, "timer", "list").out
    assert "NodeFailed" in lines
    metrics = shared.http.get("/metrics").text
    assert 'tallystick_job_duration_microseconds{job="pin"} 250000' in metrics


def test_others_do_not_see_the_timers(shared: Scene) -> None:
    for caller in (shared.renter, shared.anybody):
        assert caller.get("/v1/timers").status_code in (401, 403)
