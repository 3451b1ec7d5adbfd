"""The report's bytes and every rule of its form."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.metering import report
from domain.metering.report import ReportInvalid
from tests.scenes.usage_reports import STEP_US, a_report, rows

Change = Callable[[dict[str, Any]], Any]


def written() -> dict[str, Any]:
    """The JSON of a valid report, to be broken."""
    return dict(json.loads(report.encode(a_report())))


def rule_broken(body: bytes) -> str:
    with pytest.raises(ReportInvalid) as broken:
        report.parse(body)
    return broken.value.rule


def test_a_report_reads_back_as_it_was_written() -> None:
    assert report.parse(report.encode(a_report())) == a_report()


def test_a_report_without_rows_has_no_cols() -> None:
    empty = replace(a_report(), rows=())
    assert "cols" not in json.loads(report.encode(empty))
    assert report.parse(report.encode(empty)) == empty
    assert rule_broken(report.encode(empty)[:-1] + b',"cols":{}}') == "unknown_key"


def test_the_hash_is_over_the_pre_authentication_encoding() -> None:
    assert report.pae(b"{}") == b"DSSEv1 32 org.tallystick.usage.reported.v1 2 {}"
    assert report.report_hash(b"{}") == sha256(report.pae(b"{}")).digest()


def test_a_first_report_follows_from_node_and_key() -> None:
    wanted = sha256(b"tallystick/usage/genesis/v1node_x" + b"k" * 32).digest()
    assert report.genesis("node_x", b"k" * 32) == wanted


def test_equal_columns_are_written_as_their_one_value() -> None:
    cols = report.compact(rows(count=4))
    assert cols["len_us"] == STEP_US
    assert cols["device"] == [0, 1, 0, 1]
    assert cols["throttle_power_ns"] is None
    assert cols["step_us"] == [STEP_US, 113, STEP_US - 113, 113]


def test_a_single_row_is_written_without_any_list() -> None:
    assert not any(isinstance(value, list) for value in report.compact(rows(count=1)).values())


@st.composite
def some_rows(draw: st.DrawFn) -> tuple[report.Row, ...]:
    """Rows of one device after each other, with times that vary as they like."""
    found: list[report.Row] = []
    start = draw(st.integers(0, 10**12))
    for _ in range(draw(st.integers(1, 12))):
        start += draw(st.integers(0, 1_000))
        length = draw(st.integers(1, report.ROW_US_MAX))
        available = draw(st.integers(0, length))
        unavailable = draw(st.integers(0, length - available))
        found.append(
            report.Row(
                device=0,
                lease=draw(st.sampled_from([None, 0])),
                driver_epoch=draw(st.integers(0, 3)),
                mono_start_us=start,
                len_us=length,
                wall_minus_mono_us=10**15 + draw(st.integers(-1_000, 1_000)),
                wall_slew_us=draw(st.integers(-50, 50)),
                available_us=available,
                unavailable_us=unavailable,
                unknown_us=length - available - unavailable,
                samples=draw(st.integers(0, 60)),
                busy_us=draw(st.none() | st.integers(0, available)),
                energy_mj=draw(st.none() | st.integers(0, report.INT_MAX)),
                reason=draw(st.sampled_from(report.REASONS)),
            )
        )
        start += length
    return tuple(found)


@given(some_rows())
def test_every_report_that_can_be_written_reads_back_equal(some: tuple[report.Row, ...]) -> None:
    whole = replace(a_report(devices=1), rows=some, mono_us=some[-1].mono_end_us)
    assert report.parse(report.encode(whole)) == whole


def changed(change: Change) -> bytes:
    body = written()
    replacement = change(body)
    return json.dumps(body if replacement is None else replacement).encode()


def put(*path: Any) -> Change:
    """Set the value at a path: put("cols", "len_us", 5) sets cols.len_us to 5."""

    def change(body: dict[str, Any]) -> None:
        target: Any = body
        for step in path[:-2]:
            target = target[step]
        target[path[-2]] = path[-1]

    return change


def drop(*path: Any) -> Change:
    def change(body: dict[str, Any]) -> None:
        target: Any = body
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]

    return change


BROKEN: list[tuple[str, Change]] = [
    ("wrong_type", lambda _: [1]),
    ("unknown_key", put("more", 1)),
    ("unknown_key", put("cols", "more", 1)),
    ("unknown_key", put("devices", 0, "more", 1)),
    ("missing_key", drop("seq")),
    ("missing_key", drop("cols")),
    ("missing_key", drop("cols", "reason")),
    ("missing_key", drop("devices", 0, "parent")),
    ("out_of_range", put("v", 2)),
    ("wrong_form", put("node", "node_short")),
    ("wrong_form", put("node", "node_" + "a" * 32 + "\n")),
    ("wrong_form", put("node", "node_" + "ü" * 32)),
    ("wrong_type", put("seq", "1")),
    ("wrong_type", put("seq", True)),
    ("out_of_range", put("seq", 0)),
    ("out_of_range", put("seq", 2**53)),
    ("out_of_range", put("seq", 2**63)),
    ("not_an_integer", put("seq", 1.0)),
    ("not_an_integer", put("mono_us", float("nan"))),
    ("not_an_integer", put("mono_us", float("inf"))),
    ("wrong_form", put("prev", "A" * 64)),
    ("wrong_form", put("boot", "yesterday")),
    ("wrong_form", put("agent", "")),
    ("wrong_form", put("agent", "0\x000")),
    ("out_of_range", put("clock_rtt_us", 60_000_001)),
    ("out_of_range", put("wall_us", -1)),
    ("wrong_type", put("devices", {})),
    ("too_many", lambda body: body | {"devices": body["devices"] * 33}),
    ("wrong_form", put("devices", 0, "id", "")),
    ("wrong_form", put("devices", 0, "id", "x" * 97)),
    ("wrong_form", put("devices", 0, "shape", "half")),
    ("wrong_form", put("devices", 0, "shape", "mps:0")),
    ("wrong_form", put("devices", 0, "shape", "mps:101")),
    ("out_of_range", put("devices", 0, "share_ppm", 0)),
    ("out_of_range", put("devices", 0, "mem_ppm", 1_000_001)),
    ("out_of_range", put("devices", 0, "gi", -1)),
    ("wrong_form", put("devices", 0, "busy_source", "guess")),
    ("wrong_form", put("leases", 0, "lease_?")),
    ("duplicate_lease", lambda body: body | {"leases": [body["leases"][0]] * 2}),
    ("too_many", lambda body: body | {"leases": body["leases"] * 129}),
    ("out_of_range", put("n", 1_001)),
    ("out_of_range", put("n", -1)),
    ("unknown_key", put("n", 0)),
    ("wrong_length", put("n", 5)),
    ("wrong_length", put("cols", "device", [0, 1, 0])),
    ("wrong_length", put("cols", "device", [])),
    ("equal_values", put("cols", "samples", [60, 60, 60, 60])),
    ("out_of_range", put("cols", "device", [0, 1, 0, 2])),
    ("out_of_range", put("cols", "device", -1)),
    ("out_of_range", put("cols", "lease", [0, 1, 0, 2])),
    ("wrong_type", put("cols", "device", None)),
    ("out_of_range", put("cols", "driver_epoch", 2**31)),
    ("out_of_range", put("cols", "step_us", [STEP_US, 113, -1, 0])),
    ("out_of_range", put("cols", "len_us", 0)),
    ("out_of_range", put("cols", "len_us", 86_400_000_001)),
    ("bucket_sum", put("cols", "unknown_us", 1)),
    ("bucket_sum", put("cols", "unknown_us", [0, 0, 0, 1])),
    ("busy_above_available", put("cols", "busy_us", STEP_US + 1)),
    ("busy_above_available", put("cols", "busy_us", [0, None, 0, STEP_US + 1])),
    ("out_of_range", put("cols", "suspended_us", -1)),
    ("not_an_integer", put("cols", "energy_mj", [1, 2, 3, 4.5])),
    ("wrong_type", put("cols", "energy_mj", [1, 2, 3, True])),
    ("wrong_form", put("cols", "reason", "boredom")),
    ("wrong_form", put("cols", "reason", 0)),
    ("wrong_type", put("cols", "samples", {"0": 60})),
    ("ends_after_mono_us", put("mono_us", 3 * STEP_US + 112)),
    ("out_of_range", put("cols", "wall_minus_mono_us", -STEP_US - 1)),
    ("out_of_range", put("cols", "wall_minus_mono_us", 2**53 - 1)),
    ("out_of_range", put("cols", "wall_slew_us", 2**53 - 1)),
    ("rows_overlap", put("cols", "step_us", [STEP_US, 113, STEP_US - 114, 113])),
    ("rows_overlap", lambda body: body["cols"].update(device=0, lease=0)),
    ("wrong_type", put("events", None)),
    ("wrong_type", put("events", [1])),
]


@pytest.mark.parametrize(("rule", "change"), BROKEN)
def test_a_report_that_breaks_a_rule_is_refused_by_its_name(rule: str, change: Change) -> None:
    assert rule_broken(changed(change)) == rule


def test_a_key_twice_is_refused_wherever_it_stands() -> None:
    body = report.encode(a_report())
    twice = [
        body.replace(b'"v":1', b'"v":1,"v":1'),
        body.replace(b'"samples":60', b'"samples":60,"samples":60'),
        body.replace(b'"gi":null', b'"gi":null,"gi":null', 1),
        body.replace(b'"v":1', b'"v":1,"\\u0076":1'),
    ]
    assert [rule_broken(one) for one in twice] == ["duplicate_key"] * 4


def test_a_key_twice_among_thousands_is_found_at_once() -> None:
    """The node chooses the bytes, and every other node waits while they are read."""
    keys = [f'"{number:x}":1' for number in range(20_000)]
    began = time.monotonic()
    assert rule_broken(f"{{{','.join([*keys, *keys[-1:]])}}}".encode()) == "duplicate_key"
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        ("not_json", b""),
        ("not_json", b"{"),
        ("not_json", b"\xef\xbb\xbf{}"),
        ("not_json", b"[" * 100_000),
        ("not_utf8", b'{"v":"\xff"}'),
        ("too_large", b" " * 262_145),
        ("missing_key", b"{}"),
        ("wrong_type", b"null"),
        ("not_an_integer", b"NaN"),
        ("not_json", b'{"v":1}{}'),
        ("not_json", b"1" * 5_000),
    ],
)
def test_bytes_that_are_no_report_are_refused(rule: str, body: bytes) -> None:
    assert rule_broken(body) == rule


def test_rows_that_start_together_are_sorted_by_device_then_lease_null_last() -> None:
    one = rows(count=1)[0]
    both = (replace(one, device=0), replace(one, device=1))
    idle_last = (replace(one, lease=0), replace(one, lease=None))
    for right in (both, idle_last):
        whole = replace(a_report(), rows=right)
        assert report.parse(report.encode(whole)) == whole
        assert rule_broken(report.encode(replace(whole, rows=right[::-1]))) == "rows_unsorted"


def test_a_device_listed_twice_with_another_share_still_may_not_overlap_itself() -> None:
    device = a_report().devices[0]
    one = rows(count=1)[0]
    reshaped = replace(
        a_report(),
        devices=(device, replace(device, share_ppm=500_000)),
        rows=(one, replace(one, device=1, mono_start_us=one.mono_start_us + 1)),
    )
    assert rule_broken(report.encode(reshaped)) == "rows_overlap"


def an_event(**changes: Any) -> dict[str, Any]:
    plain = {"type": "device.xid", "mono_us": 1, "wall_us": 1, "device": 0, "lease": None}
    return (
        plain | {"data": {"xid": 79, "text": "GPU fell off", "fatal": True, "more": None}} | changes
    )


def test_events_are_read_with_their_flat_data() -> None:
    found = report.parse(changed(put("events", [an_event()])))
    assert found.events[0].data["xid"] == 79
    assert report.parse(report.encode(found)) == found


@pytest.mark.parametrize(
    ("rule", "event"),
    [
        ("wrong_form", an_event(type="device.exploded")),
        ("unknown_key", an_event(more=1)),
        ("out_of_range", an_event(device=2)),
        ("out_of_range", an_event(lease=2)),
        ("wrong_type", an_event(data=[])),
        ("wrong_type", an_event(data={"deep": {}})),
        ("not_an_integer", an_event(data={"x": 0.5})),
        ("out_of_range", an_event(data={"x": 2**53})),
        ("too_large", an_event(data={"x": "x" * 4_096})),
        ("wrong_form", an_event(data={"x": "a\0b"})),
        ("wrong_form", an_event(data={"a\0b": 1})),
        ("not_utf8", an_event(data={"x": "\ud800"})),
    ],
)
def test_an_event_that_breaks_a_rule_is_refused(rule: str, event: dict[str, Any]) -> None:
    assert rule_broken(changed(put("events", [event]))) == rule


def test_at_most_a_hundred_events_fit_in_a_report() -> None:
    assert rule_broken(changed(put("events", [an_event()] * 101))) == "too_many"
