"""Schedules: the five fields of cron, in UTC, as whole numbers. Exact, and with no clock.

    due(schedule) == the minutes whose minute, hour, month and day all match

Fields are minute, hour, day of the month, month and day of the week (0 and 7 are Sunday), each `*`
or a list of numbers and ranges with steps: `*/15`, `1-5`, `8-18/2`, `0,30`. Where both day fields
are restricted, a day matches either of them, as in cron (IEEE Std 1003.1, `crontab`). No names, no
time zones and no summer time: a day has 1,440 minutes.
"""

from __future__ import annotations

import re

from domain.calendar import day_of, days_in, first_day, month_of_day
from domain.duration import DAY_US, MINUTE_US
from domain.jobs.reasons import JobsReason
from domain.record import dataclass
from domain.refusal import Refused

DAYS_AHEAD_MAX = 41 * 366
"""Every date on every day of the week comes again within forty years, the 29th of February too."""
TEXT_MAX = 200
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_ITEM = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A parsed schedule. `either_day`: both day fields are restricted, and one match is enough."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    either_day: bool

    def is_day(self, day: int) -> bool:
        """Whether anything is due on a day (days since 1970)."""
        month = month_of_day(day)
        if month % 12 + 1 not in self.months:
            return False
        number = day - first_day(month) + 1
        weekday = (day + 4) % 7  # 1970-01-01 was a Thursday
        found = (number in self.days, weekday in self.weekdays)
        return any(found) if self.either_day else all(found)


def parse(text: str) -> Schedule:
    """Raises Refused: SCHEDULE_INVALID, with the field; also for a date that never comes."""
    words = text.split(" ")
    if len(words) != len(_FIELDS) or len(text) > TEXT_MAX:
        raise Refused(JobsReason.SCHEDULE_INVALID, rule="five fields with one space between them")
    sets = [_numbers(word, *field) for word, field in zip(words, _FIELDS, strict=True)]
    weekdays = frozenset(number % 7 for number in sets[4])
    is_restricted = [not word.startswith("*") for word in (words[2], words[4])]
    found = Schedule(sets[0], sets[1], sets[2], sets[3], weekdays, all(is_restricted))
    longest = {month: 29 if month == 2 else days_in(month - 1) for month in range(1, 13)}
    if not found.either_day and all(min(found.days) > longest[one] for one in found.months):
        raise Refused(JobsReason.SCHEDULE_INVALID, field="day", rule="there is no such date")
    return found


def _numbers(word: str, name: str, least: int, most: int) -> frozenset[int]:
    numbers: set[int] = set()
    for item in word.split(","):
        form = _ITEM.fullmatch(item)
        if form is None:
            raise Refused(JobsReason.SCHEDULE_INVALID, field=name, rule="numbers, ranges and steps")
        first = least if form[1] is None else int(form[1])
        last = most if form[1] is None else first if form[2] is None else int(form[2])
        if form[1] is not None and form[2] is None and form[3] is not None:
            last = most  # `5/15` is `5-59/15`
        step = 1 if form[3] is None else int(form[3])
        if not least <= first <= last <= most or not step:
            raise Refused(JobsReason.SCHEDULE_INVALID, field=name, rule=f"from {least} to {most}")
        numbers.update(range(first, last + 1, step))
    return frozenset(numbers)


def next_due_us(schedule: Schedule, after_us: int) -> int:
    """The first due moment later than this one."""
    minute_us = after_us // MINUTE_US * MINUTE_US + MINUTE_US
    for day in range(day_of(minute_us), day_of(minute_us) + DAYS_AHEAD_MAX):
        if schedule.is_day(day):
            found = [one for one in _moments(schedule, day) if one >= minute_us]
            if found:
                return found[0]
    raise AssertionError("a schedule that was accepted comes again")


def latest_due_us(schedule: Schedule, after_us: int, until_us: int) -> int | None:
    """The last due moment in (after, until]; None when there is none."""
    for day in range(day_of(until_us), max(day_of(until_us) - DAYS_AHEAD_MAX, -1), -1):
        if (day + 1) * DAY_US <= after_us:
            return None
        if schedule.is_day(day):
            moments = [one for one in _moments(schedule, day) if after_us < one <= until_us]
            if moments:
                return moments[-1]
    return None


def _moments(schedule: Schedule, day: int) -> list[int]:
    return [
        day * DAY_US + (hour * 60 + minute) * MINUTE_US
        for hour in sorted(schedule.hours)
        for minute in sorted(schedule.minutes)
    ]
