"""Usage reported after settlement: unbilled, until an adjustment charges exactly what it adds."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.corrections.late_usage import BillLateUsage
from domain.corrections.reasons import CorrectionsReason
from domain.duration import HOUR_US
from domain.fleet.reasons import FleetReason
from domain.income.adjustment import AdjustmentBooked, corrections_of
from domain.lease.lease import LATE_WINDOW_US, LeaseSettled, UsageAccrued
from domain.metering.counting import UsageRow
from domain.metering.reasons import MeteringReason
from domain.refusal import Refused
from tests.domain.scenes import market
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.corrections import HOLDBACK, billed
from tests.domain.scenes.market import BURN_OFFER, LEASE, NOON_US, RENTER
from tests.examples import examples
from tests.given import refused

CASH, OWED_BY_RENTER = f"party:{RENTER}:cash", f"party:{RENTER}:owed"
END_US = 2 * HOUR_US
MINUTE_US = 60_000_000


def settled(**how: object) -> Booked:
    """Two hours, of which only the first was reported before the lease was settled."""
    world = billed(1, **how)  # type: ignore[arg-type]
    world.do(market.close(END_US))
    world.do(market.settle(END_US + LATE_WINDOW_US, position=9))
    return world


def settled_position(world: Booked) -> int:
    return next(
        position
        for position, change in enumerate(world.log, 1)
        if isinstance(change.fact, LeaseSettled)
    )


def bill(world: Booked, *rows: UsageRow, position: int = 20, name: str = "adj_1") -> BillLateUsage:
    return BillLateUsage(
        adjustment_id=name,
        lease_id=LEASE,
        settled_position=settled_position(world),
        lane=1,
        usage_position=position,
        rows=rows,
        by="member_9",
        at_us=NOON_US + 40 * HOUR_US,
    )


def late_row(from_us: int, to_us: int, position: int = 15) -> UsageRow:
    row = market.usage(from_us, to_us, position=position)
    return replace(row, received_us=NOON_US + 35 * HOUR_US)


def test_late_usage_is_charged_as_it_would_have_been_in_time() -> None:
    world, before = settled(), {}
    assert world.facts(LeaseSettled)[0].charge.units == 2_780_000, "recorded, unbilled"
    started = world.total()
    for name in (CASH, HOLDBACK, "network:revenue:usage", "network:revenue:take"):
        before[name] = world.balance(name)
    world.do(bill(world, late_row(HOUR_US, END_US)))
    fact = world.facts(AdjustmentBooked)[0]
    assert (fact.reason, fact.corrects_position) == ("late_usage", settled_position(world))
    assert fact.late is not None
    assert (fact.late.gpu_us_new, fact.late.charge_new.units) == (HOUR_US, 2_780_000)
    assert before[CASH] - world.balance(CASH) == 2_780_000
    assert world.balance(HOLDBACK) - before[HOLDBACK] == 1_265_000
    assert world.balance("network:revenue:usage") - before["network:revenue:usage"] == 250_000
    assert world.balance("network:revenue:take") - before["network:revenue:take"] == 1_265_000
    assert world.total() == started


def test_the_same_reports_are_never_charged_twice() -> None:
    world = settled()
    row = late_row(HOUR_US, END_US)
    asked = bill(world, row)
    assert world.do(asked)
    assert world.do(asked) == []
    assert refused(world, bill(world, row, name="adj_2")) is CorrectionsReason.NO_LATE_USAGE
    overlapping = late_row(HOUR_US, END_US, position=25)
    again = bill(world, overlapping, position=30, name="adj_2")
    assert refused(world, again) is CorrectionsReason.NO_LATE_USAGE, "that time has been counted"
    fell = bill(world, position=3, name="adj_2")
    assert refused(world, fell) is MeteringReason.USAGE_POSITION_FELL


def test_usage_outside_the_lease_is_not_charged_late_either() -> None:
    world = settled()
    assert (
        refused(world, bill(world, late_row(END_US, END_US + HOUR_US)))
        is CorrectionsReason.NO_LATE_USAGE
    )
    running = billed(1)
    with pytest.raises(Refused) as caught:
        running.do(replace(bill(world), settled_position=1))
    assert caught.value.reason is FleetReason.LEASE_STATE


def test_what_the_balance_lacks_is_owed() -> None:
    world = settled()
    world.balances[CASH] = 780_000
    world.do(bill(world, late_row(HOUR_US, END_US)))
    assert (world.balance(CASH), world.balance(OWED_BY_RENTER)) == (0, 2_000_000)
    assert world.balance(HOLDBACK) == 2 * 1_265_000


def test_a_burn_lease_retires_burned_credits_and_the_rest_waits_to_be_burned() -> None:
    burned = f"party:{RENTER}:burned"
    world = settled(balances={burned: 10_000_000, "world:burned": 10_000_000}, offer=BURN_OFFER)
    world.balances[burned] = 2_000_000
    world.balances["world:burned"] = 2_000_000
    world.do(bill(world, late_row(HOUR_US, END_US)))
    assert (world.balance(burned), world.balance("world:burned")) == (0, 0)
    assert world.balance("network:burn_due") == world.balance(OWED_BY_RENTER) == 780_000


@examples(60)
@given(
    cuts=st.lists(st.integers(1, 59), max_size=4, unique=True).map(sorted),
    share=st.sampled_from([0, 142_857, 500_000]),
    burn=st.sampled_from([0, 333_333]),
)
def test_in_how_many_pieces_it_is_billed_makes_no_difference(
    cuts: list[int], share: int, burn: int
) -> None:
    """Cumulative differences: every part is what one whole count gives, to the unit."""
    how = {"provider_share_ppm": share, "burn_share_ppm": burn}
    whole, pieces = settled(**how), settled(**how)
    whole.do(bill(whole, late_row(HOUR_US, END_US)))
    marks = [0, *cuts, 60]
    for number, (start, end) in enumerate(itertools.pairwise(marks)):
        row = late_row(HOUR_US + start * MINUTE_US, HOUR_US + end * MINUTE_US, 15 + number)
        pieces.do(bill(pieces, row, position=15 + number, name=f"adj_{number}"))
    assert whole.balances == pieces.balances
    late = corrections_of(pieces, settled_position(pieces)).late
    assert late is not None
    assert late.charge.units == 2 * 2_780_000
    assert len(pieces.facts(UsageAccrued)) == len(whole.facts(UsageAccrued))
