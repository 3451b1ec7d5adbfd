"""Rows end where money depends on it, and nothing is lost or doubled at the cut."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.metering import report
from node_reporter.clock import ClockOffset
from node_reporter.gpus.seam import Device
from node_reporter.meter import rows
from node_reporter.meter.leases import AssignmentsUnreadable, Window, edges, parse_windows
from node_reporter.meter.meter import Bucket, Step
from node_reporter.meter.rows import Stretch, rows_of
from tests.examples import examples

HOUR_US = 3_600_000_000
MINUTE_US = 60_000_000
DEVICE = Device(id="GPU-1", name="X", busy_source="util", energy_scope="device")
WALL_US = 1_795_161_600_000_000
"""A full UTC hour: where the monotonic clock of these tests starts."""


def minutes(count: int, first: int = 0) -> list[Step]:
    return [
        Step(
            start_us=minute * MINUTE_US,
            end_us=(minute + 1) * MINUTE_US,
            bucket=Bucket.AVAILABLE,
            driver_epoch=1,
            wall_from_us=WALL_US,
            wall_to_us=WALL_US,
            samples=1,
            busy_us=MINUTE_US // 2,
            energy_mj=1_000,
        )
        for minute in range(first, first + count)
    ]


def lease(number: int, from_minute: int, until_minute: int | None, share_ppm: int) -> Window:
    return Window(
        lease_id=f"lease_{number:032d}",
        device_id="GPU-1",
        from_us=WALL_US + from_minute * MINUTE_US,
        until_us=None if until_minute is None else WALL_US + until_minute * MINUTE_US,
        share_ppm=share_ppm,
    )


def spans(stretches: list[Stretch]) -> list[tuple[int, int, str | None, str]]:
    return [
        (s.row.mono_start_us // MINUTE_US, s.row.mono_end_us // MINUTE_US, s.lease, s.row.reason)
        for s in stretches
    ]


def test_idle_time_is_cut_at_full_utc_hours_only() -> None:
    found = rows_of(DEVICE, minutes(130), [], None, "tick")
    assert spans(found) == [
        (0, 60, None, "hour"),
        (60, 120, None, "hour"),
        (120, 130, None, "tick"),
    ]


def test_rows_are_cut_at_the_edges_of_a_lease_and_at_its_own_hours() -> None:
    window = lease(1, 10, 100, report.PPM)
    name = window.lease_id
    assert spans(rows_of(DEVICE, minutes(110), [window], None, "tick")) == [
        (0, 10, None, "lease"),
        (10, 60, name, "hour"),
        (60, 70, name, "hour"),
        (70, 100, name, "lease"),
        (100, 110, None, "tick"),
    ]


def test_a_lease_is_matched_in_server_time_not_in_the_nodes() -> None:
    window = lease(1, 10, 20, report.PPM)
    ahead = ClockOffset(offset_us=5 * MINUTE_US, rtt_us=0)
    found = rows_of(DEVICE, minutes(30), [window], ahead, "tick")
    assert [span[:2] for span in spans(found) if span[2]] == [(5, 15)]


def test_a_step_across_an_edge_is_cut_inside() -> None:
    long = minutes(1)[0]
    window = Window(lease_id="lease_12345678", device_id="GPU-1", from_us=WALL_US + 20_000_000)
    found = rows_of(DEVICE, [long], [window], None, "tick")
    assert [(s.lease, s.row.len_us, s.row.samples) for s in found] == [
        (None, 20_000_000, 0),
        ("lease_12345678", 40_000_000, 1),
    ]


@pytest.mark.parametrize("early_us", [0, 200_000, 449_999])
def test_an_edge_over_which_the_wall_clock_leapt_ends_a_row(early_us: int) -> None:
    """By less than ends a row of itself: the lease's time would stand in a row that began idle."""
    leap_us = 450_000
    first, *rest = minutes(10, first=1)
    steps = [replace(first, wall_to_us=WALL_US + leap_us)]
    steps += [
        replace(step, wall_from_us=WALL_US + leap_us, wall_to_us=WALL_US + leap_us) for step in rest
    ]
    window = replace(lease(1, 2, 5, report.PPM), from_us=WALL_US + 2 * MINUTE_US - early_us)
    found = rows_of(DEVICE, steps, [window], ClockOffset(offset_us=-leap_us, rtt_us=0), "tick")
    assert spans(found) == [
        (1, 2, None, "lease"),
        (2, 5, window.lease_id, "lease"),
        (5, 11, None, "tick"),
    ]


def test_leases_that_share_a_device_each_get_a_row_at_their_share() -> None:
    windows = [lease(1, 0, None, 250_000), lease(2, 0, None, 500_000)]
    found = rows_of(DEVICE, minutes(1), windows, None, "tick")
    assert [(s.device.share_ppm, s.device.shape, s.row.energy_mj) for s in found] == [
        (250_000, "ts:25000/100000", 250),
        (500_000, "ts:50000/100000", 500),
    ]
    assert all(s.row.busy_us is None and s.device.energy_scope == "board_share" for s in found)


@pytest.mark.parametrize(
    ("mode", "profile", "share_ppm", "shape"),
    [
        ("whole", None, report.PPM, "whole"),
        ("mig", "3g.40gb", 428_571, "mig:3g.40gb"),
        ("mig", "7g.80gb", report.PPM, "mig:7g.80gb"),
        ("mps", None, 370_000, "mps:37"),
        ("mps", None, report.PPM, "whole"),
        ("time_slice", None, 333_333, "ts:1/3"),
        ("memory", None, 370_000, "ts:37000/100000"),
        (None, None, 5, "ts:1/100000"),
        ("time_slice", None, 1, "ts:1/999999"),
    ],
)
def test_a_row_says_how_its_lease_shares_the_board(
    mode: str | None, profile: str | None, share_ppm: int, shape: str
) -> None:
    told = {
        "lease_id": "lease_12345678",
        "device_id": "GPU-1",
        "from_us": WALL_US,
        "mode": mode,
        "mig_profile": profile,
        "share_ppm": share_ppm,
    }
    (found,) = rows_of(DEVICE, minutes(1), parse_windows({"data": [told]}), None, "tick")
    assert (found.device.shape, found.device.share_ppm) == (shape, share_ppm)
    assert re.fullmatch(report.SHAPE_PATTERN, shape)


def test_a_gap_says_so_in_every_row_it_is_cut_into() -> None:
    gap = Step(
        start_us=0,
        end_us=2 * HOUR_US + 1,
        bucket=Bucket.UNKNOWN,
        driver_epoch=1,
        wall_from_us=WALL_US,
        wall_to_us=WALL_US,
        closes="gap",
    )
    found = rows_of(DEVICE, [gap, *minutes(1, 120)][:1], [], None, "tick")
    assert [s.row.reason for s in found] == ["gap"] * 3
    assert all(s.row.unknown_us == s.row.len_us for s in found)


def test_merging_adds_up_and_never_crosses_an_edge() -> None:
    a, b = (rows_of(DEVICE, minutes(1, first), [], None, "tick")[0] for first in (0, 1))
    joined = rows.merge(a, b)
    assert joined is not None
    assert (joined.row.len_us, joined.row.samples, joined.row.energy_mj) == (120_000_000, 2, 2_000)
    hour = rows_of(DEVICE, minutes(1, 59), [], None, "tick")[0]
    assert rows.merge(hour, rows_of(DEVICE, minutes(1, 60), [], None, "tick")[0]) is None
    assert rows.merge(a, rows_of(DEVICE, minutes(1, 2), [], None, "tick")[0]) is None


def test_an_unreadable_list_of_assignments_is_refused_whole() -> None:
    good = {"lease_id": "lease_12345678", "device_id": "GPU-1", "from_us": 5}
    assert parse_windows({"data": [good, good]})[0].until_us is None
    assert len(parse_windows({"data": [good, good]})) == 1
    unreadable: list[object] = [
        {},
        {"data": [{}]},
        {"data": [good | {"lease_id": "x"}]},
        {"data": 7},
    ]
    for bad in unreadable:
        with pytest.raises(AssignmentsUnreadable):
            parse_windows(bad)
    with pytest.raises(AssignmentsUnreadable):
        parse_windows({"data": [good | {"share_ppm": 0}]})
    for name in ("mode", "mig_profile"):
        for bad_word in (7, "", "3G 40", "x" * 33):
            with pytest.raises(AssignmentsUnreadable):
                parse_windows({"data": [good | {name: bad_word}]})


def test_edges_lie_inside_and_name_every_hour_of_a_lease() -> None:
    window = lease(1, 30, 200, report.PPM)
    inside = edges([window], WALL_US + 1, WALL_US + 3 * HOUR_US)
    assert [(edge - WALL_US) // MINUTE_US for edge in inside] == [30, 60, 90, 120, 150]


windows = st.lists(
    st.builds(
        lease,
        number=st.integers(1, 5),
        from_minute=st.integers(-100, 200),
        until_minute=st.none() | st.integers(-50, 300),
        share_ppm=st.sampled_from([report.PPM, 500_000, 333_333]),
    ),
    max_size=5,
    unique_by=lambda window: window.lease_id,
)


@examples(150)
@given(windows, st.lists(st.integers(1, 7_000_000_000), min_size=1, max_size=12), st.data())
def test_rows_tile_the_time_of_every_lease_and_parse(
    held: list[Window], lengths: list[int], data: st.DataObject
) -> None:
    steps: list[Step] = []
    start = 10**9
    for length in lengths:
        bucket = data.draw(st.sampled_from(Bucket))
        steps.append(
            Step(
                start_us=start,
                end_us=start + length,
                bucket=bucket,
                driver_epoch=1,
                wall_from_us=WALL_US,
                wall_to_us=WALL_US,
                samples=1,
                busy_us=length if bucket is Bucket.AVAILABLE else None,
                closes=data.draw(st.sampled_from([None, None, "fault", "gap"])),
            )
        )
        start += length
    found = rows_of(DEVICE, steps, held, None, "tick")
    elapsed_us = steps[-1].end_us - steps[0].start_us
    covered = sorted({(s.row.mono_start_us, s.row.mono_end_us) for s in found})
    assert covered[0][0] == steps[0].start_us
    assert covered[-1][1] == steps[-1].end_us
    assert all(a[1] == b[0] for a, b in pairwise(covered))
    assert sum(b - a for a, b in covered) == elapsed_us
    for window in held:
        until_us = window.until_us if window.until_us is not None else 2**60
        begin = max(window.from_us, steps[0].start_us + WALL_US)
        end = min(until_us, steps[-1].end_us + WALL_US)
        own = [s.row.len_us for s in found if s.lease == window.lease_id]
        assert sum(own) == max(0, end - begin)
    devices, leases, placed = rows.place(found)
    whole = report.Report(
        node="node_12345678",
        seq=1,
        prev="0" * 64,
        boot="00000000-0000-4000-8000-000000000000",
        agent="0.1.0",
        mono_us=start,
        wall_us=start,
        devices=devices,
        leases=leases,
        rows=placed,
    )
    assert report.parse(report.encode(whole)) == whole
