"""Depth is known before anybody parses."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.nesting import NESTING_MAX, is_too_deep

VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{}"\\ab'),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('[]{}"\\'), inner, max_size=3)
    ),
    max_leaves=30,
)


def depth_of(value: Any) -> int:
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 0


@given(VALUES, st.integers(0, 8))
def test_the_scan_agrees_with_the_parser(value: Any, most: int) -> None:
    assert is_too_deep(json.dumps(value), most) == (depth_of(value) > most)


@pytest.mark.parametrize("opening", ["[", '{"a":', '["\\"",'])
def test_a_body_of_brackets_is_too_deep_and_told_quickly(opening: str) -> None:
    assert is_too_deep(opening * 100_000)
    assert not is_too_deep(opening * NESTING_MAX)


def test_brackets_in_strings_do_not_nest() -> None:
    assert not is_too_deep(json.dumps(["[" * 10_000]))


@pytest.mark.parametrize(
    "text",
    [
        '"' + '\\"' * 500_000 + "[" * 201,
        '"' * 1_000_000 + "[" * 201,
        "[]" * 500_000,
        "[" * 201 + "\\" * 1_000_000,
        '"\\' * 500_000 + "[" * 201,
    ],
    ids=["escaped quotes", "quotes", "brackets", "backslashes", "open strings"],
)
def test_no_megabyte_takes_long_to_look_through(text: str) -> None:
    """Strangers choose the text, and everybody waits for the scan."""
    began = time.monotonic()
    is_too_deep(text)
    assert time.monotonic() - began < 2
