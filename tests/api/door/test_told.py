"""What is told quickly is told in the bytes of the plain way: moments, and the rows of a page."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.door.amounts import credits_
from api.door.models import AnswerModel
from api.door.moments import moment, parse_moment
from tests.examples import examples

LAST_US = 253_402_300_799_999_999


@given(st.integers(0, LAST_US))
@examples(60)
def test_a_moment_is_told_as_its_calendar_says(at_us: int) -> None:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)
    assert moment(at_us) == f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"
    assert parse_moment(moment(at_us)) == at_us


@pytest.mark.parametrize("at_us", [0, 1, 999_999, 1_000_000, LAST_US, LAST_US + 1, 2**62])
def test_a_moment_has_six_places_and_ends_with_year_9999(at_us: int) -> None:
    assert len(moment(at_us)) == 27
    assert parse_moment(moment(at_us)) == min(at_us, LAST_US)


class _RowAnswer(AnswerModel):
    text: str
    number: int
    truth: bool
    absent: str | None = None
    inner: list[dict[str, int]]
    charge: object


@given(st.text(), st.integers(-(2**63), 2**63), st.booleans())
@examples(60)
def test_a_row_of_a_page_has_the_bytes_of_its_values(text: str, number: int, truth: bool) -> None:
    row = _RowAnswer(
        text=text, number=number, truth=truth, inner=[{text: 1}], charge=credits_(abs(number))
    )
    plain = row.model_dump(mode="json", exclude_none=True)
    told = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    assert row.model_dump_json(exclude_none=True) == told
