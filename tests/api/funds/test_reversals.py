"""How much of an account's leases one append takes money back from: never more than it can hold."""

from __future__ import annotations

from api.funds.reversals import DEVICES_MAX, at_once, taking
from projections.lease.leases import FundedLease


def lease(number: int, devices: int | None) -> FundedLease:
    return FundedLease(f"lease_{number:032x}", 1_000 - number, devices)


def test_leases_of_many_devices_end_a_few_at_a_time_the_latest_first() -> None:
    """Twenty leases of 64 devices: closing them all would tell 1,280 devices in one append."""
    found = [lease(number, 64) for number in range(20)]
    some = at_once(found)
    assert some == found[:4]
    assert sum(one.devices or 0 for one in some) <= DEVICES_MAX
    assert [one.lease_id for one in taking("pay_1", some, 0)] == 2 * [
        one.lease_id for one in found[:4]
    ]


def test_a_gang_that_has_not_begun_and_what_is_earlier_are_left_to_the_job() -> None:
    """It ends as a whole, and one can have 800 devices."""
    found = [lease(1, 8), lease(2, None), lease(3, 8)]
    assert at_once(found) == found[:1]
