"""Resource rows: what a lease used beside the GPU adds up, never overlaps and counts once (R-7)."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.metering import report
from domain.metering.report import ReportInvalid
from domain.metering.resources import AMOUNTS, AMOUNTS_OF, SCALE_OF, ResourceRow, amount_of, split
from domain.prices.tariff import METERS
from tests.scenes.usage_reports import STEP_US, a_report, resource_rows

amounts = st.none() | st.integers(0, 10**15)
some_rows = st.builds(
    ResourceRow,
    lease=st.just(0),
    mono_start_us=st.integers(0, 10**12),
    len_us=st.integers(2, 10**10),
    wall_minus_mono_us=st.just(10**15),
    **dict.fromkeys(AMOUNTS, amounts),
)


@given(some_rows, st.lists(st.integers(0, 10**6), max_size=5))
def test_rows_that_were_cut_add_up_to_the_whole_and_adjoin(
    row: ResourceRow, cuts: list[int]
) -> None:
    """sum(parts) == whole, in every amount, and unknown stays unknown."""
    ends = {row.mono_start_us + 1 + cut * (row.len_us - 2) // 10**6 for cut in cuts}
    parts, rest = [], row
    for end_us in sorted(ends):
        first, rest = split(rest, end_us)
        parts.append(first)
    parts.append(rest)
    assert all(a.mono_end_us == b.mono_start_us for a, b in pairwise(parts))
    assert sum(part.len_us for part in parts) == row.len_us
    assert parts[-1].wall_end_us == row.wall_end_us
    for name in AMOUNTS:
        told = [getattr(part, name) for part in parts]
        whole = getattr(row, name)
        assert (None if None in told else sum(told)) == whole
        assert whole is None or all(one >= 0 for one in told)


def test_a_meter_counts_what_could_be_measured_and_half_of_it_is_no_measurement() -> None:
    known: dict[str, int | None] = dict.fromkeys(AMOUNTS, 7)
    assert amount_of("network", known) == 14
    assert amount_of("network", known | {"sent_bytes": None}) is None
    assert amount_of("cpu", known | {"cpu_us": None}) is None
    assert METERS.keys() == AMOUNTS_OF.keys() == SCALE_OF.keys()


def test_resource_rows_are_signed_in_the_same_report_and_read_back() -> None:
    told = replace(a_report(), resources=resource_rows(5))
    assert report.parse(report.encode(told)) == told
    assert json.loads(report.encode(told))["resources"]["n"] == 5
    assert b"resources" not in report.encode(a_report()), "other reports are the same bytes as ever"
    alone = replace(told, rows=())
    assert report.parse(report.encode(alone)) == alone


def test_a_thousand_resource_rows_fit_beside_a_thousand_rows() -> None:
    many = tuple(
        replace(row, memory_byte_s=row.mono_start_us * 977, storage_byte_s=None)
        for row in resource_rows(report.ROWS_MAX)
    )
    told = replace(a_report(), resources=many, mono_us=10**12)
    assert len(report.encode(told)) < report.BODY_BYTES_MAX // 4


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("wrong_type", {"n": None}),
    ("out_of_range", {"n": 0}),
    ("out_of_range", {"n": 1_001}),
    ("wrong_length", {"n": 3}),
    ("unknown_key", {"gpu_us": 1}),
    ("out_of_range", {"lease": 2}),
    ("wrong_type", {"lease": None}),
    ("out_of_range", {"cpu_us": -1}),
    ("wrong_form", {"source": "guess"}),
    ("rows_overlap", {"lease": 0}),
    ("ends_after_mono_us", {"len_us": 200 * STEP_US}),
    ("rows_unsorted", {"step_us": [STEP_US, 0], "lease": [1, 0]}),
    ("out_of_range", {"wall_minus_mono_us": 2**53 - 1}),
]


@pytest.mark.parametrize(("rule", "change"), BROKEN)
def test_resource_rows_that_break_a_rule_are_refused_by_its_name(
    rule: str, change: dict[str, Any]
) -> None:
    body = json.loads(report.encode(replace(a_report(), resources=resource_rows(2))))
    body["resources"] |= change
    with pytest.raises(ReportInvalid) as broken:
        report.parse(json.dumps(body).encode())
    assert broken.value.rule == rule
