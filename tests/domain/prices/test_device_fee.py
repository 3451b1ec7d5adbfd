"""The device fee as a formula: any month, any changes, exact to the micro-credit (row C-22)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.calendar import days_in, month_named
from domain.prices.device_fee import DayChange, due_units, month_of_fees
from domain.prices.reasons import PricesReason
from domain.refusal import Refused

FEE = 15_000_000
months = st.integers(month_named("1970-01"), month_named("2400-12"))


@given(months, st.integers(0, 500), st.integers(0, 10**12))
def test_a_full_month_costs_exactly_the_fee_per_device_whatever_its_length(
    month: int, devices: int, fee: int
) -> None:
    """C-22: 15 a month in months of 28, 29, 30 and 31 days."""
    fees = month_of_fees(month, fee, devices, ())
    assert fees.total == fee * devices
    assert len(fees.daily) == days_in(month)


def test_months_of_28_29_30_and_31_days_all_cost_15() -> None:
    named = {"2025-02": 28, "2024-02": 29, "2025-06": 30, "2025-01": 31}
    for name, days in named.items():
        month = month_named(name)
        assert days_in(month) == days
        assert month_of_fees(month, FEE, 1, ()).total == FEE


def test_fifteen_devices_on_one_day_of_thirty_cost_seven_and_a_half() -> None:
    """C-22: 15 x 15 / 30 = 7.5."""
    june = month_named("2025-06")
    fees = month_of_fees(june, FEE, 10, (DayChange(12, adds=5, removes=5),))
    assert (fees.daily[10], fees.daily[11], fees.daily[12]) == (5_000_000, 7_500_000, 5_000_000)


@given(months, st.lists(st.integers(0, 1_000), min_size=28, max_size=28), st.integers(0, 10**9))
def test_the_days_add_up_to_the_floor_of_the_whole(month: int, uses: list[int], fee: int) -> None:
    days = days_in(month)
    due = [due_units(fee * sum(uses[:day]), days) for day in range(29)]
    assert due == sorted(due)
    assert due[-1] == fee * sum(uses) // days


def test_a_day_that_the_month_has_not_is_refused() -> None:
    february = month_named("2025-02")
    for day in (0, 29):
        with pytest.raises(Refused) as refused:
            month_of_fees(february, FEE, 1, (DayChange(day, adds=1, removes=0),))
        assert refused.value.reason is PricesReason.DAY_OUT_OF_MONTH
        assert refused.value.facts == {"day": day, "days": 28}
    for day in (1, 28):
        assert month_of_fees(february, FEE, 1, (DayChange(day, adds=1, removes=0),)).total > FEE
