"""UTC days and months as whole numbers: no time zone, no leap second, no clock.

    day = floor(at_us / 86,400,000,000)     covers [day x length, (day + 1) x length), from 1970
    month = 12 x year + number - 1          months follow each other like days

Arithmetic of the proleptic Gregorian calendar, and nothing else of it: what billing counts by.
"""

from __future__ import annotations

import re

from domain.duration import DAY_US

_DAY = re.compile(r"([0-9]{4}-[0-9]{2})-([0-9]{2})", re.ASCII)
_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])", re.ASCII)


def day_of(at_us: int) -> int:
    """The UTC day a moment lies in; midnight belongs to the day that it begins."""
    return at_us // DAY_US


def day_start_us(day: int) -> int:
    """The first moment of a day."""
    return day * DAY_US


def month_of_day(day: int) -> int:
    """The month a day lies in."""
    # Years that begin in March end with the leap day, if there is one; 146,097 days are 400 years.
    shifted = day + 719_468
    era, day_of_era = divmod(shifted, 146_097)
    year = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    from_march = (5 * day_of_year + 2) // 153
    return (era * 400 + year) * 12 + from_march + 2


def first_day(month: int) -> int:
    """The first day of a month."""
    year, from_march = divmod(month - 2, 12)
    leap_days = year // 4 - year // 100 + year // 400
    return 365 * year + leap_days + (153 * from_march + 2) // 5 - 719_468


def days_in(month: int) -> int:
    """How many days a month has: 28, 29, 30 or 31."""
    return first_day(month + 1) - first_day(month)


def month_named(text: str) -> int:
    """The month written `YYYY-MM`. Raises ValueError."""
    found = _MONTH.fullmatch(text)
    if found is None:
        raise ValueError(f"not a month: {text[:20]!r}")
    return int(found[1]) * 12 + int(found[2]) - 1


def day_text(day: int) -> str:
    """`2026-11-20`."""
    month = month_of_day(day)
    return f"{month // 12:04d}-{month % 12 + 1:02d}-{day - first_day(month) + 1:02d}"


def day_named(text: str) -> int:
    """The day written `YYYY-MM-DD`. Raises ValueError."""
    found = _DAY.fullmatch(text)
    if found is not None:
        month, number = month_named(found[1]), int(found[2])
        if 1 <= number <= days_in(month):
            return first_day(month) + number - 1
    raise ValueError(f"not a day: {text[:20]!r}")
