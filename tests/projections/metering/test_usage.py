"""Reported time is added up as the reference parser reads it, whatever the columns look like."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.metering import report
from domain.metering.report import Device
from ledger.log.chain import stored_body
from ledger.log.usage import StoredReport
from projections import runner, tables
from projections.metering import usage
from projections.metering.usage import Hour
from tests.examples import examples
from tests.projections.reports import START_US, append, make_report
from tests.projections.story import Size, Writer, story


def _reference(bodies: list[bytes]) -> dict[tuple[str, int], Hour]:
    hours: dict[tuple[str, int], Hour] = {}
    for body in bodies:
        parsed = report.parse(body)
        for row in parsed.rows:
            end_us = row.wall_end_us + (parsed.clock_offset_us or 0)
            hour = hours.setdefault((parsed.node, (end_us - 1) // HOUR_US * HOUR_US), Hour())
            share = parsed.devices[row.device].share_ppm
            hour.rows += 1
            if row.lease is None:
                hour.idle_ppm_us += row.available_us * share
            else:
                hour.leased_ppm_us += row.available_us * share
            hour.unavailable_us += row.unavailable_us
            hour.unknown_us += row.unknown_us
            hour.busy_us += row.busy_us or 0
            hour.energy_mj += row.energy_mj or 0
            held = (row.throttle_power_ns, row.throttle_thermal_ns)
            if held != (None, None):
                longest = max(one or 0 for one in held) // 1_000
                hour.throttled_us += min(longest, row.len_us)
                hour.throttle_known_us += row.len_us
    return hours


def _stored(node: str, bodies: list[bytes]) -> list[StoredReport]:
    return [
        StoredReport(3, seq, node, seq, stored_body(body, "key", b"\0" * 64), 0, START_US)
        for seq, body in enumerate(bodies, 1)
    ]


_DEVICES = st.sampled_from(
    [
        (Device(id="GPU-1"),),
        (Device(id="GPU-1"), Device(id="GPU-2")),
        (Device(id="MIG-1", share_ppm=428_571), Device(id="GPU-2"), Device(id="GPU-3")),
    ]
)


@examples(150)
@given(
    rows=st.integers(0, 40),
    length_us=st.sampled_from([60_000_000, 500_000_000, HOUR_US // 2, HOUR_US]),
    start_us=st.sampled_from([START_US, START_US + HOUR_US // 2, START_US - 1]),
    devices=_DEVICES,
    lease=st.sampled_from([None, "lease_00000001"]),
    offset_us=st.sampled_from([None, 0, -1, 1, 250_000]),
)
def test_the_fast_sums_equal_the_reference(
    rows: int,
    length_us: int,
    start_us: int,
    devices: tuple[Device, ...],
    lease: str | None,
    offset_us: int | None,
) -> None:
    body = make_report(
        "node_00000001",
        1,
        rows=rows,
        length_us=length_us,
        start_us=start_us,
        devices=devices,
        lease=lease,
        offset_us=offset_us,
    )
    report.parse(body)
    assert usage.fold(_stored("node_00000001", [body])).hours == _reference([body])


def test_the_order_of_reports_changes_nothing() -> None:
    bodies = [make_report("node_00000001", s, start_us=START_US + s * 10**9) for s in range(1, 30)]
    stored = _stored("node_00000001", bodies)
    shuffled = random.Random(3).sample(stored, len(stored))
    assert usage.fold(shuffled) == usage.fold(stored)
    assert usage.fold(stored).hours == _reference(bodies)


def test_flagged_reports_are_counted_and_listed_and_earn_nothing(
    connection: psycopg.Connection[Any],
) -> None:
    node = "node_0000000a"
    append(connection, node, 1, make_report(node, 1))
    append(connection, node, 2, b'{"not":"a report"}', flags=1)
    append(connection, node, 3, make_report(node, 3))
    tables.step_all(connection, only=("usage",))
    reports = usage.read_node_reports(connection, node)
    assert reports is not None
    assert (reports.reports, reports.flagged, reports.last_seq) == (3, 1, 3)
    assert [each.node_seq for each in usage.read_flagged(connection, node)] == [2]
    hours = usage.read_node_hours(connection, node)
    assert [hour.rows for hour in hours] == [16]
    expected = _reference([make_report(node, 1), make_report(node, 3)])[(node, START_US)]
    assert hours[0].leased_ppm_us == expected.leased_ppm_us
    assert hours[0].leased_gpu_us == expected.leased_ppm_us // 10**6
    assert usage.read_node_hours(connection, node, after=START_US) == []


def test_a_valid_report_of_absurd_time_and_energy_stops_nobodys_sums(
    connection: psycopg.Connection[Any],
) -> None:
    """Signed and well-formed: a day on each of 64 devices for two leases, in one hour."""
    node, day_us = "node_0000000c", report.ROW_US_MAX
    body = report.encode(
        report.Report(
            node=node,
            seq=1,
            prev="00" * 32,
            boot="00000000-0000-4000-8000-000000000000",
            agent="test",
            mono_us=day_us,
            wall_us=START_US,
            devices=tuple(Device(id=f"GPU-{number}") for number in range(64)),
            leases=("lease_00000001", "lease_00000002"),
            rows=tuple(
                report.Row(
                    device=device,
                    lease=lease,
                    driver_epoch=1,
                    mono_start_us=0,
                    len_us=day_us,
                    wall_minus_mono_us=START_US - day_us,
                    wall_slew_us=0,
                    available_us=day_us,
                    unavailable_us=0,
                    unknown_us=0,
                    samples=1,
                    busy_us=day_us,
                    energy_mj=report.INT_MAX,
                )
                for device in range(64)
                for lease in (0, 1)
            ),
        )
    )
    report.parse(body)
    for seq in range(1, 18):
        append(connection, node, seq, body)
    append(connection, "node_0000000a", 1, make_report("node_0000000a", 1))
    tables.step_all(connection, only=("usage",))
    (hour,) = usage.read_node_hours(connection, node)
    assert (hour.rows, hour.leased_ppm_us, hour.energy_mj) == (17 * 128, 2**63 - 1, 2**63 - 1)
    assert (hour.idle_ppm_us, hour.busy_us) == (0, 17 * 128 * day_us)
    (sound,) = usage.read_node_hours(connection, "node_0000000a")
    assert sound.leased_ppm_us > 0
    assert tables.rebuild(connection, usage.USAGE).differing == ()


def test_a_report_that_is_not_flagged_and_does_not_parse_stops_the_lane(
    connection: psycopg.Connection[Any],
) -> None:
    tables.ensure(connection)
    append(connection, "node_0000000b", 1, b"nonsense")
    with pytest.raises(ValueError, match="malformed"):
        runner.step_lanes(connection, usage.USAGE)
    lane = report.lane_of("node_0000000b")
    assert tables.lane_position_of(connection, usage.USAGE, lane) == 0


def test_an_accrual_is_filed_under_its_lease_hour(connection: psycopg.Connection[Any]) -> None:
    size = Size(leases=4, hours=3)
    Writer(connection).write(story(size))
    tables.step_all(connection, only=("usage",))
    lease_id = f"lease_{1:032x}"
    lines = usage.read_accruals(connection, lease_id=lease_id)
    assert [line.hour_index for line in lines] == [0, 1, 2]
    assert [line.from_us - lines[0].from_us for line in lines] == [0, HOUR_US, 2 * HOUR_US]
    assert [line.refused_us for line in lines] == [0, 17, 0]
    assert [line.gpu_us for line in lines] == [HOUR_US] * 3
    by_lease = usage.read_usage(connection, by="lease_id")
    assert [row.group for row in by_lease] == [f"lease_{n:032x}" for n in range(4)]
    total = sum(row.charge for row in by_lease)
    assert total == sum(row.charge for row in usage.read_usage(connection, by="account_id"))
    hourly, after = [], ("", -1)
    while page := usage.read_usage(connection, by="node_id", hourly=True, after=after, limit=2):
        hourly += page
        after = (page[-1].group, page[-1].hour_us or 0)
    assert total == sum(row.charge for row in hourly)
    assert len({(row.group, row.hour_us) for row in hourly}) == len(hourly)
    mine = usage.read_accruals(connection, account_id="acct_cash", limit=500)
    assert {line.account_id for line in mine} == {"acct_cash"}
    both = usage.read_accruals(connection, account_id="acct_provider", limit=500)
    assert len(both) == 12
