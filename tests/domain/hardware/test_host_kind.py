"""Versions of kernels compare as numbers; what is no version is not known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.hardware.host_kind import kernel_number, kernel_version, version_rule

part = st.integers(0, 999)


@given(part, part, part)
def test_a_version_that_is_told_reads_back_as_its_number(
    major: int, minor: int, patch: int
) -> None:
    number = kernel_number(f"{major}.{minor}.{patch}-generic")
    assert number is not None
    told = kernel_version(number)
    assert kernel_number(told) == number
    assert version_rule(told) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [("5.4.0", "5.10"), ("5.15.0-91-generic", "6.1"), ("6.1", "6.1.1"), ("6.9.9", "6.10")],
)
def test_ten_is_more_than_nine(older: str, newer: str) -> None:
    assert (kernel_number(older) or 0) < (kernel_number(newer) or 0)


@pytest.mark.parametrize("release", [None, "", "6", "unknown", "1000.1", "6.1234"])
def test_what_is_no_version_is_not_known(release: str | None) -> None:
    assert kernel_number(release) is None
