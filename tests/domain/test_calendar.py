"""Days and months, against the calendar of the standard library."""

from __future__ import annotations

from calendar import monthrange
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.calendar import (
    day_named,
    day_of,
    day_text,
    days_in,
    first_day,
    month_named,
    month_of_day,
)
from domain.duration import DAY_US

EPOCH = date(1970, 1, 1).toordinal()


@given(st.dates(min_value=date(1970, 1, 1)))
def test_every_day_has_the_name_and_the_month_the_calendar_gives_it(one: date) -> None:
    day = one.toordinal() - EPOCH
    month = month_of_day(day)
    assert day_text(day) == one.isoformat()
    assert day_named(one.isoformat()) == day
    assert month == month_named(one.isoformat()[:7])
    assert first_day(month) == one.replace(day=1).toordinal() - EPOCH
    assert days_in(month) == monthrange(one.year, one.month)[1]


def test_midnight_belongs_to_the_day_that_it_begins() -> None:
    assert (day_of(DAY_US - 1), day_of(DAY_US)) == (0, 1)


@pytest.mark.parametrize("text", ["2026-13", "2026-00", "26-01", "2026-1", "2026-01-01", ""])
def test_what_is_no_month_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="not a month"):
        month_named(text)


@pytest.mark.parametrize("text", ["2026-02-29", "2026-01-00", "2026-01-32", "2026-1-1"])
def test_what_is_no_day_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        day_named(text)
