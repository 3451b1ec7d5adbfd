"""The one reader of stored reports sees what the reference parser sees, in every column."""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from domain.duration import HOUR_US
from domain.hardware.capacity import Span
from domain.metering import report
from domain.metering.counting import CLOCK_TOLERANCE_US
from domain.metering.row_times import row_times
from domain.money import PPM
from ledger.log import report_rows
from ledger.log.chain import stored_body
from ledger.log.report_rows import (
    column,
    each,
    each_known,
    events_of,
    last_until_us,
    lease_rows,
    nullable,
    proven_by,
    until_bounds_us,
)
from ledger.log.usage import StoredReport
from tests.scenes.running_market import START_US

ALWAYS = (
    "device",
    "driver_epoch",
    "len_us",
    "wall_minus_mono_us",
    "wall_slew_us",
    "available_us",
    "unavailable_us",
    "unknown_us",
    "suspended_us",
    "samples",
    "energy_gaps",
)
PERHAPS = (
    "lease",
    "busy_us",
    "mem_byte_s",
    "energy_mj",
    "throttle_power_ns",
    "throttle_thermal_ns",
)

us = st.integers(0, 10**9)
measured = st.none() | st.integers(0, 10**9)
devices = st.lists(
    st.builds(
        report.Device,
        id=st.sampled_from(("GPU-0", "GPU-1", "MIG-2", "MIG-3")),
        parent=st.sampled_from((None, "GPU-0")),
        share_ppm=st.integers(1, PPM),
    ),
    min_size=1,
    max_size=3,
)


@st.composite
def reports(draw: st.DrawFn) -> report.Report:
    """Rows of a few devices that follow one another, some idle, some with slewing clocks."""
    listed, start_us = draw(devices), draw(us)
    rows = []
    for _ in range(draw(st.integers(0, 8))):
        length = draw(st.integers(1, 10**9))
        away = draw(st.integers(0, length))
        rows.append(
            report.Row(
                device=draw(st.integers(0, len(listed) - 1)),
                lease=draw(st.sampled_from((None, 0, 1))),
                driver_epoch=draw(st.integers(1, 2)),
                mono_start_us=start_us,
                len_us=length,
                wall_minus_mono_us=START_US + draw(st.integers(-5, 5)),
                wall_slew_us=draw(st.integers(-5, 5)),
                available_us=length - away,
                unavailable_us=away,
                unknown_us=0,
                suspended_us=draw(us),
                samples=draw(st.integers(0, 60)),
                busy_us=draw(st.none() | st.integers(0, length - away)),
                mem_byte_s=draw(measured),
                energy_mj=draw(measured),
                energy_gaps=draw(st.integers(0, 1)),
                throttle_power_ns=draw(measured),
                throttle_thermal_ns=draw(measured),
            )
        )
        start_us += length + draw(st.integers(0, 1))
    events = [
        report.Event(type="device.inventory", mono_us=0, wall_us=0, device=0, data={"name": "A"}),
        report.Event(type="agent.started", mono_us=0, wall_us=0, device=None, data={}),
    ]
    return report.Report(
        node="node_" + "0" * 32,
        seq=1,
        prev="00" * 32,
        boot="00000000-0000-4000-8000-000000000000",
        agent="test",
        mono_us=start_us,
        wall_us=START_US,
        clock_offset_us=draw(st.sampled_from((None, -120, 250))),
        devices=tuple(listed),
        leases=("lease_00000001", "lease_00000002"),
        rows=tuple(rows),
        events=tuple(draw(st.lists(st.sampled_from(events), max_size=2))),
    )


def stored(signed: bytes, flags: int = 0) -> StoredReport:
    body = stored_body(signed, "key", bytes(64))
    return StoredReport(1, 7, "node_" + "0" * 32, 1, body, flags, START_US + HOUR_US)


def times_of(told: report.Report) -> list[tuple[int, int, int]]:
    """As the reference says: a wall clock, and what the server's was ahead of it."""
    offset_us = told.clock_offset_us or 0
    return [
        (row.mono_start_us, row.wall_start_us + offset_us, row.wall_end_us + offset_us)
        for row in told.rows
    ]


@given(reports())
def test_every_column_is_the_one_that_the_reference_parser_reads(told: report.Report) -> None:
    signed = report.encode(told)
    reference, found = report.parse(signed), report_rows.read(stored(signed).body)
    assert (found.boot, found.mono_us) == (reference.boot, reference.mono_us)
    assert found.leases == list(reference.leases)
    assert [(one.id, one.parent, one.share_ppm) for one in found.devices] == [
        (one.id, one.parent, one.share_ppm) for one in reference.devices
    ]
    for kind in ("device.inventory", "agent.started"):
        assert [(one.device, one.data) for one in events_of(found, kind)] == [
            (one.device, one.data) for one in reference.events if one.type == kind
        ]
    cols, n = found.cols, found.n
    if cols is None:
        assert reference.rows == ()
        return
    assert n == len(reference.rows)
    for name in ALWAYS:
        told_column = getattr(cols, name)
        known = column(told_column) if isinstance(told_column, Raw) else told_column
        assert list(each(known, n)) == [getattr(row, name) for row in reference.rows]
    for name in PERHAPS:
        told_column = getattr(cols, name)
        perhaps = nullable(told_column) if isinstance(told_column, Raw) else told_column
        assert list(each_known(perhaps, n)) == [getattr(row, name) for row in reference.rows]
    assert {*ALWAYS, *PERHAPS, "mono_start_us", "reason"} == {
        field.name for field in fields(report.Row)
    }, "no column of a row is left out here"


@given(reports())
def test_the_servers_times_of_rows_are_the_reference_parsers(told: report.Report) -> None:
    signed = report.encode(told)
    found, wanted = report_rows.read(stored(signed).body), times_of(told)
    if found.cols is None:
        assert wanted == []
        return
    of = (found.cols, found.n, found.offset_us)
    assert list(zip(*report_rows.times_of(*of), strict=True)) == wanted
    assert last_until_us(*of) == wanted[-1][2]
    low_us, high_us = until_bounds_us(*of)
    assert all(low_us <= until_us <= high_us for _, _, until_us in wanted)


@given(reports())
def test_leases_earn_by_the_rows_that_the_reference_parser_sees(told: report.Report) -> None:
    wanted: dict[str, list[tuple[Any, ...]]] = {}
    passed: dict[str, int] = {}
    proven: list[tuple[str, Span]] = []
    for row, (start_us, from_us, until_us) in zip(told.rows, times_of(told), strict=True):
        device = told.devices[row.device]
        if row.lease is not None:
            wanted.setdefault(told.leases[row.lease], []).append(
                (
                    7,
                    device.parent or device.id,
                    told.boot,
                    start_us,
                    row.mono_end_us,
                    from_us,
                    until_us,
                    row.available_us,
                    device.share_ppm,
                    START_US + HOUR_US,
                )
            )
        passed[f"{row.device}"] = until_us if row.lease is None else from_us
        known_us = min(from_us + row.available_us, START_US + HOUR_US)
        proven += [(device.id, Span(from_us, known_us))] if from_us < known_us else []
    report_ = stored(report.encode(told))
    found = lease_rows(report_)
    assert {lease: [astuple(row) for row in rows] for lease, rows in found.rows.items()} == wanted
    assert found.passed == {
        told.devices[int(index)].id: at_us
        for index, at_us in passed.items()
        if told.devices[int(index)].parent is None
        and at_us <= START_US + HOUR_US + CLOCK_TOLERANCE_US
    }
    assert list(proven_by(report_)) == proven


@given(reports())
def test_a_flagged_report_tells_nothing_that_anybody_earns_by(told: report.Report) -> None:
    flagged = stored(report.encode(told), flags=1)
    assert (lease_rows(flagged).rows, lease_rows(flagged).passed) == ({}, {})
    assert list(proven_by(flagged)) == []


def test_a_row_begins_where_its_steps_and_the_two_clocks_put_it() -> None:
    starts, begins, ends = row_times((5, 60, 60), (60, 60, 50), (1_000, 1_000, 990), (0, -10, 3), 7)
    assert starts == [5, 65, 125]
    assert begins == [1_012, 1_072, 1_122]
    assert ends == [1_072, 1_122, 1_175]


def test_columns_and_kinds_of_rows_that_a_later_version_adds_disturb_nobody() -> None:
    row = report.Row(
        device=0,
        lease=None,
        driver_epoch=1,
        mono_start_us=0,
        len_us=9,
        wall_minus_mono_us=START_US,
        available_us=9,
        unavailable_us=0,
        unknown_us=0,
        samples=1,
    )
    told = report.Report(
        node="node_" + "0" * 32,
        seq=1,
        prev="00" * 32,
        agent="test",
        mono_us=9,
        wall_us=START_US,
        boot="00000000-0000-4000-8000-000000000000",
        clock_offset_us=None,
        devices=(report.Device(id="GPU-0"),),
        leases=(),
        rows=(row,),
    )
    later = report.encode(told).replace(b'"cols":{', b'"cpu":{"n":1},"cols":{"fan_rpm":1200,', 1)
    found = report_rows.read(stored(later).body)
    assert found.cols is not None
    times = report_rows.times_of(found.cols, found.n, found.offset_us)
    assert times == ([0], [START_US], [START_US + 9])
    assert nullable(found.cols.busy_us) is None, "nothing was measured"
