"""The fee for edge devices: so much a month for each, charged every UTC day.

    due(d) = floor((fee_1 x U_1 + ... + fee_d x U_d) / D);   charge(d) = due(d) - due(d - 1)

U_d is the number of distinct devices configured at any time of day d, D the number of days of the
month. The fraction is carried to the next day and starts at 0 with the month, so a device held all
month costs exactly the fee, whatever the month's length. A removal counts from the next day; every
add is a new device; who is offline pays. Rule: conformance suite `device_fee`, row C-22, design
economics 3. Which devices there are is not known here (`domain/sites/edge_device.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.calendar import days_in
from domain.prices.reasons import PricesReason
from domain.record import dataclass
from domain.refusal import Refused


def due_units(fee_days: int, days: int) -> int:
    """Micro-credits due for the first days of a month of `days` days.

    `fee_days` is the sum of fee x devices over those days, never rounded.
    """
    assert fee_days >= 0, fee_days
    return fee_days // days


@dataclass(frozen=True, slots=True)
class DayChange:
    """What happened on one day of the month, counted from 1."""

    day: int
    adds: int
    removes: int


@dataclass(frozen=True, slots=True)
class MonthOfFees:
    """One month: U_d and charge of every day, their sum, and the devices left after it."""

    unique_per_day: tuple[int, ...]
    daily: tuple[int, ...]
    devices_after: int

    @property
    def total(self) -> int:
        return sum(self.daily)


def month_of_fees(
    month: int, monthly_fee: int, devices_before: int, changes: Sequence[DayChange]
) -> MonthOfFees:
    """What one month costs (`month` as in `domain/calendar.py`), one change a day at most.

    Raises Refused: DAY_OUT_OF_MONTH, REMOVED_MORE_THAN_CONFIGURED.
    """
    days = days_in(month)
    by_day = {change.day: change for change in changes}
    assert len(by_day) == len(changes), "a day is changed once"
    for day in by_day:
        if not 1 <= day <= days:
            raise Refused(PricesReason.DAY_OUT_OF_MONTH, day=day, days=days)
    devices, fee_days, charged = devices_before, 0, 0
    unique_per_day: list[int] = []
    daily: list[int] = []
    for day in range(1, days + 1):
        change = by_day.get(day, DayChange(day, 0, 0))
        unique = devices + change.adds
        if change.removes > unique:
            raise Refused(PricesReason.REMOVED_MORE_THAN_CONFIGURED, day=day, configured=unique)
        fee_days += monthly_fee * unique
        due = due_units(fee_days, days)
        unique_per_day.append(unique)
        daily.append(due - charged)
        charged, devices = due, unique - change.removes
    return MonthOfFees(tuple(unique_per_day), tuple(daily), devices)
