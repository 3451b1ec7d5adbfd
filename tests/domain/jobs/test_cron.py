"""Schedules: the five fields of cron, exact, against a count minute by minute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.calendar import day_named, days_in, first_day, month_of_day
from domain.duration import DAY_US, MINUTE_US
from domain.jobs.cron import latest_due_us, next_due_us, parse
from domain.jobs.reasons import JobsReason
from domain.refusal import Refused
from tests.domain.jobs.due_times import due_between
from tests.examples import examples

NOON_US = day_named("2026-11-20") * DAY_US + 12 * 60 * MINUTE_US


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", 1),  # minutes after noon of a Friday
        ("*/15 * * * *", 15),
        ("30 2 * * *", 14 * 60 + 30),
        ("0 0 * * 0", 36 * 60),  # Sunday
        ("0 0 * * 7", 36 * 60),
        ("0 9-17/4 * * 1-5", 60),
        ("0,45 12 * * *", 45),
        ("5/20 * * * *", 5),
        ("0 0 1 12 *", (11 * 24 - 12) * 60),
        ("0 0 13 * 5", (7 * 24 - 12) * 60),  # the 13th or a Friday, as cron has it
    ],
)
def test_the_next_due_time_is_that_of_cron(text: str, expected: int) -> None:
    assert next_due_us(parse(text), NOON_US) == NOON_US + expected * MINUTE_US


def test_the_29th_of_february_comes_again() -> None:
    due_us = next_due_us(parse("0 0 29 2 *"), NOON_US)
    assert due_us == day_named("2028-02-29") * DAY_US
    assert next_due_us(parse("0 0 29 2 */7"), due_us) > due_us, "on a Sunday, years later"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "a * * * *",
        "1,,2 * * * *",
        "-1 * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "*  * * * *",
        "٣ * * * *",
    ],
)
def test_what_is_no_schedule_or_never_comes_is_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(text)
    assert caught.value.reason is JobsReason.SCHEDULE_INVALID


FIELD = st.sampled_from(["*", "*/7", "*/2", "3", "1-4", "0,5", "1-5/2"])
DAYS = st.sampled_from(["*", "*/9", "1", "31", "28-31", "2,15"])
MONTHS = st.sampled_from(["*", "2", "1,7", "*/3", "11-12"])
SCHEDULES = st.builds(
    lambda minute, hour, day, month, weekday: f"{minute} {hour} {day} {month} {weekday}",
    FIELD,
    FIELD,
    DAYS,
    MONTHS,
    st.sampled_from(["*", "0", "1-5", "6,7"]),
)


def _by_hand(text: str, at_us: int) -> bool:
    """Whether a minute is due, spelled out: no code of the domain but its calendar."""
    minute, hour, day, month, weekday = text.split(" ")
    number = at_us // MINUTE_US
    today = number // 1440
    its_month = month_of_day(today)

    def fits(field: str, value: int, least: int, most: int) -> bool:
        for item in field.split(","):
            numbers, _, step = item.partition("/")
            first, _, last = numbers.partition("-")
            low = least if first == "*" else int(first)
            high = most if first == "*" else int(last or first)
            if low <= value <= high and (value - low) % int(step or 1) == 0:
                return True
        return False

    of_month = fits(day, today - first_day(its_month) + 1, 1, 31)
    on_weekday = any(fits(weekday, one, 0, 7) for one in {(today + 4) % 7, (today + 4) % 7 or 7})
    is_either = not day.startswith("*") and not weekday.startswith("*")
    matches = of_month or on_weekday if is_either else of_month and on_weekday
    return (
        matches
        and fits(month, its_month % 12 + 1, 1, 12)
        and fits(hour, number % 1440 // 60, 0, 23)
        and fits(minute, number % 60, 0, 59)
    )


@examples(60)
@given(SCHEDULES, st.integers(0, 20_000 * 1440), st.integers(1, 3 * 1440))
def test_due_times_are_the_minutes_that_match_and_no_others(
    text: str, start: int, minutes: int
) -> None:
    try:
        schedule = parse(text)
    except Refused:
        assert text.split(" ")[2] in ("31", "28-31"), text
        return
    from_us, until_us = start * MINUTE_US, (start + minutes) * MINUTE_US
    expected = [
        at for at in range(from_us + MINUTE_US, until_us + 1, MINUTE_US) if _by_hand(text, at)
    ]
    assert due_between(schedule, from_us, until_us, 10_000) == expected
    assert latest_due_us(schedule, from_us, until_us) == (expected[-1] if expected else None)


def test_months_are_as_long_as_the_calendar_says() -> None:
    schedule = parse("0 0 31 * *")
    found = due_between(schedule, 0, 370 * DAY_US, 50)
    assert len(found) == 7
    assert all(days_in(month_of_day(at // DAY_US)) == 31 for at in found)
