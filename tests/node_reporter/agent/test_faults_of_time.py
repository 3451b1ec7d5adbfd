"""Suspended machines, clocks that are set, slewed or lie, and reboots: where their time ends.

The node's clocks are the test's, the server's is always right. What a lease is credited with is
counted by the server's own accrual from the stored reports.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from nacl.signing import SigningKey

from domain.duration import DAY_US, MINUTE_US
from domain.metering import counting as accrual
from domain.metering import report
from node_reporter.clock import ClockOffset, Moment, SystemClock
from node_reporter.reports.reports import ReportChain
from tests.node_reporter.reporter_scene import BEGIN_US, TICK_US, WALL_US, Scene

HOUR_US = 3_600_000_000


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def leased(scene: Scene) -> str:
    """A lease from now on, known to the node."""
    lease_id = scene.lease(1, 0, scene.true_clock.now().wall_us)
    scene.reporter.flush()
    return lease_id


def credited(scene: Scene, lease_id: str, *, until_us: int | None = None) -> int:
    end_us = until_us or scene.true_clock.now().wall_us
    return sum(scene.credited_us(lease_id, WALL_US, end_us).values())


@pytest.mark.parametrize("by_us", [DAY_US, -DAY_US, HOUR_US, -HOUR_US])
@pytest.mark.parametrize("is_away", [False, True], ids=["online", "while the server is away"])
def test_a_wall_clock_that_is_set_costs_a_lease_one_step_at_most(
    scene: Scene, by_us: int, *, is_away: bool
) -> None:
    lease_id = leased(scene)
    scene.run(7)
    scene.wire.down = is_away
    scene.run(1)
    for _ in range(3):  # in the middle of a report's interval
        scene.clock.advance(TICK_US)
        scene.reporter.poll()
        scene.reporter.turn()
    scene.clock.advance(TICK_US // 2)
    scene.clock.advance(TICK_US // 2, wall_step_us=by_us)
    scene.reporter.poll()
    scene.run(8)
    scene.finish()
    metered_us = scene.clock.now().mono_us - BEGIN_US
    available, unavailable, _ = scene.device_us()
    assert (sum(scene.device_us()), unavailable) == (metered_us, 0)
    assert available - TICK_US <= credited(scene, lease_id) <= available
    assert scene.server.alerts == []
    for one in scene.server.reports():
        walls = [row.wall_minus_mono_us for row in one.rows]
        assert not walls or max(walls) - min(walls) < 1_000_000, "one offset fits a whole report"


def test_a_wall_clock_that_was_set_is_known_at_the_next_report_not_after_eight(
    scene: Scene,
) -> None:
    scene.run(20)
    scene.clock.advance(TICK_US, wall_step_us=DAY_US)
    scene.reporter.poll()
    scene.run(1)
    assert scene.server.reports()[-1].clock_offset_us == -DAY_US


def test_a_suspended_machine_is_paid_for_the_time_it_was_awake(scene: Scene) -> None:
    lease_id = leased(scene)
    scene.run(5)
    scene.clock.advance(TICK_US, suspended_us=3 * HOUR_US)
    scene.reporter.poll()
    scene.run(5)
    scene.finish()
    rows = [row for _, _, row in scene.server.rows()]
    assert sum(row.suspended_us for row in rows) == 3 * HOUR_US
    metered_us = scene.clock.now().mono_us - BEGIN_US
    assert sum(scene.device_us()) == metered_us
    awake_us = scene.device_us()[0]
    assert awake_us - TICK_US <= credited(scene, lease_id) <= awake_us
    assert scene.true_clock.now().wall_us - WALL_US == metered_us + 3 * HOUR_US


def test_a_lease_that_ended_while_the_machine_slept_is_not_paid_for_what_came_after(
    scene: Scene,
) -> None:
    lease_id = leased(scene)
    scene.run(5)
    scene.clock.advance(TICK_US, suspended_us=HOUR_US)
    scene.reporter.poll()
    end_us = scene.true_clock.now().wall_us - HOUR_US // 2
    scene.server.windows[0]["until_us"] = end_us
    scene.run(5)
    scene.finish()
    assert credited(scene, lease_id, until_us=end_us) <= 5 * MINUTE_US


def test_a_clock_slewed_by_500_ppm_is_followed_and_costs_milliseconds(scene: Scene) -> None:
    lease_id = leased(scene)
    for _ in range(HOUR_US // TICK_US):
        scene.clock.advance(TICK_US, wall_step_us=TICK_US // 2_000)
        scene.reporter.poll()
        scene.reporter.turn()
    scene.reporter.flush()
    assert scene.device_us() == (HOUR_US, 0, 0)
    assert HOUR_US - credited(scene, lease_id) < 100_000
    rows = [row for _, _, row in scene.server.rows()]
    assert sum(row.wall_slew_us for row in rows) == HOUR_US // 2_000
    assert all(a.wall_end_us == b.wall_start_us for a, b in pairwise(rows))


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "UTC"])
def test_summer_time_moves_no_clock_of_ours(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    before = clock.now()
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        after = clock.now()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert after.mono_us - before.mono_us < 10_000_000
    assert abs((after.wall_us - after.mono_us) - (before.wall_us - before.mono_us)) < 10_000_000


def test_a_reboot_leaves_a_hole_nobody_pays_for_and_reports_of_one_boot_each(scene: Scene) -> None:
    lease_id = leased(scene)
    scene.run(10)
    scene.wire.down = True
    scene.run(3)
    scene.reboot(20 * MINUTE_US)
    scene.run(10)
    scene.finish()
    reports = scene.server.reports()
    boots = list(dict.fromkeys(one.boot for one in reports))
    assert len(boots) == 2
    first = [row for one in reports if one.boot == boots[0] for row in one.rows]
    second = [row for one in reports if one.boot == boots[1] for row in one.rows]
    assert sum(row.len_us for row in first) == 13 * MINUTE_US
    assert all(row.reason != "gap" for row in second), (
        "monotonic clocks of two boots do not compare"
    )
    assert second[0].mono_start_us == 30_000_000
    last_of_first = [one for one in reports if one.boot == boots[0]][-1]
    assert last_of_first.mono_us == first[-1].mono_end_us
    available_us = sum(row.available_us for row in (*first, *second))
    assert credited(scene, lease_id) == available_us


@pytest.mark.parametrize("wall_step_us", [3 * HOUR_US, -3 * HOUR_US])
def test_rows_of_an_earlier_boot_are_dated_by_the_clock_of_that_boot(
    scene: Scene, wall_step_us: int
) -> None:
    """The wall clock is another after the reboot; the offset measured now is not theirs."""
    lease_id = leased(scene)
    scene.run(10)
    scene.wire.down = True
    scene.run(3)
    scene.reboot(20 * MINUTE_US, wall_step_us=wall_step_us)
    scene.run(2)
    scene.finish()
    late = [one for one in scene.server.reports() if one.boot == scene.server.reports()[0].boot]
    assert abs(late[-1].clock_offset_us or 0) < MINUTE_US, "the present one is three hours"
    available_us = sum(row.available_us for _, lease, row in scene.server.rows() if lease)
    assert credited(scene, lease_id) == available_us


def test_rows_of_a_boot_that_never_met_the_server_stand_by_their_own_clock(scene: Scene) -> None:
    scene.wire.down = True
    scene.crash()
    scene.run(3)
    scene.reboot(MINUTE_US, wall_step_us=HOUR_US)
    scene.finish()
    assert scene.server.reports()[0].clock_offset_us is None
    assert scene.server.reports()[-1].clock_offset_us is not None


def test_time_while_the_process_was_away_is_unknown_and_its_sleep_is_told(scene: Scene) -> None:
    scene.run(2)
    scene.clock.advance(3 * MINUTE_US, suspended_us=HOUR_US)
    scene.crash()
    scene.run(1)
    scene.finish()
    gap = next(row for _, _, row in scene.server.rows() if row.reason == "gap")
    assert (gap.unknown_us, gap.suspended_us) == (gap.len_us, HOUR_US)


# --- an offset that lies ---------------------------------------------------------------------


@pytest.mark.parametrize("lie_us", [HOUR_US, -HOUR_US, DAY_US, 2**50])
def test_a_lying_offset_earns_no_time_beyond_the_leases_own(lie_us: int) -> None:
    """Idle time of the hour before, moved into the lease's window by the offset of the report."""
    key = SigningKey(b"l" * 32)
    chain = ReportChain("node_12345678", key)
    opened_us, received_us = WALL_US + HOUR_US, WALL_US + HOUR_US + 5 * MINUTE_US
    row = report.Row(
        device=0,
        lease=0,
        driver_epoch=1,
        mono_start_us=0,
        len_us=HOUR_US,
        wall_minus_mono_us=WALL_US,
        available_us=HOUR_US,
        unavailable_us=0,
        unknown_us=0,
        samples=1,
    )
    signed = chain.sign(
        [row],
        [report.Device(id="GPU-1")],
        ["lease_12345678"],
        mono_us=HOUR_US,
        wall_us=WALL_US + HOUR_US,
        boot="00000000-0000-4000-8000-00000000000a",
        clock=ClockOffset(offset_us=lie_us, rtt_us=0),
    )
    one = report.parse(signed.body)
    start_us = row.wall_start_us + (one.clock_offset_us or 0)
    told = accrual.UsageRow(
        position=1,
        device_id="GPU-1",
        boot=one.boot,
        mono_start_us=0,
        mono_end_us=HOUR_US,
        wall_start_us=start_us,
        wall_end_us=start_us + HOUR_US,
        available_us=HOUR_US,
        share_ppm=1_000_000,
        received_us=received_us,
    )
    window = accrual.Window(opened_us, opened_us + DAY_US, ("GPU-1",), 1_000_000)
    counted = accrual.count([told], window, {})
    assert counted.ppm_us <= (received_us - opened_us) * 1_000_000
    assert sum(refused.us for refused in counted.refused) >= HOUR_US - 5 * MINUTE_US


def test_a_server_that_lies_about_the_time_costs_nothing_once_it_is_right_again(
    scene: Scene,
) -> None:
    lease_id = leased(scene)
    scene.run(5)
    scene.wire.down = True
    scene.run(5)
    scene.wire.down = False
    honest, scene.server.clock = scene.server.clock, _Ahead(scene)
    scene.reporter.flush()
    scene.server.clock = honest
    scene.run(10)
    scene.finish()
    available_us = scene.device_us()[0]
    lied_about_us = 6 * MINUTE_US
    assert credited(scene, lease_id) >= available_us - lied_about_us
    assert sum(scene.device_us()) == scene.clock.now().mono_us - BEGIN_US


class _Ahead:
    """The server's clock, three hours ahead."""

    boot_id = ""

    def __init__(self, scene: Scene) -> None:
        self._true = scene.true_clock

    def now(self) -> Moment:
        at = self._true.now()
        return Moment(at.mono_us, at.boot_us, at.wall_us + 3 * HOUR_US)
