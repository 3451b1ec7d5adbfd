"""Resources beside the GPU: every signed row counts once, whatever way it comes (R-7, J-6)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.funds.budget import SetBudget, budget_of
from domain.funds.reasons import FundsReason
from domain.jobs.job import METER_MAX_UNITS
from domain.lease.lease import LATE_WINDOW_US
from domain.lease.reasons import LeaseReason
from domain.leasing.other_resources import (
    CHARGE_UNITS_MAX,
    PATIENCE_US,
    AccrueResource,
    Mark,
    ResourceAccrued,
    stream_of,
    usage_of,
)
from domain.metering.reasons import MeteringReason
from domain.metering.resources import SCALE_OF, MeteredRow
from domain.money import Amount, Asset, credit
from domain.parties.account import AccountClosed
from domain.parties.reasons import PartiesReason
from domain.prices.charge_split import Parts
from domain.prices.reasons import PricesReason
from domain.prices.tariff import MeterMax, MeterRate
from domain.refusal import Reason
from domain.stream import Stream
from tests.domain.scenes import market
from tests.domain.scenes.market import LEASE, NOON_US, OWNER, RENTER
from tests.domain.scenes.metered import MOST, RATES, agreed, with_meters
from tests.examples import examples
from tests.given import Scene

running = agreed()


def row(
    position: int,
    units: int,
    from_s: int = 0,
    to_s: int = 3_600,
    *,
    meter: str = "cpu",
    **changes: Any,
) -> MeteredRow:
    """Of the lease's node, so many units of the meter, in seconds after noon."""
    from_us, to_us = NOON_US + from_s * 1_000_000, NOON_US + to_s * 1_000_000
    made = MeteredRow(
        position=position,
        boot="b",
        mono_start_us=from_us,
        mono_end_us=to_us,
        from_us=from_us,
        to_us=to_us,
        received_us=to_us,
        quantity=units * SCALE_OF[meter],
    )
    return replace(made, **changes)


def accrue(*rows: MeteredRow, meter: str = "cpu", at_us: int | None = None) -> AccrueResource:
    ends = [one.to_us for one in rows]
    at_us = max(ends, default=0) + PATIENCE_US if at_us is None else at_us
    return AccrueResource(lease_id=LEASE, meter=meter, rows=rows, at_us=at_us)


def told(scene: Scene, command: AccrueResource) -> ResourceAccrued:
    (change,) = scene.when(command).changes()
    assert change.stream == stream_of(LEASE, command.meter)
    assert isinstance(change.fact, ResourceAccrued)
    return change.fact


def test_an_hour_of_four_cores_is_priced_by_the_leases_tariff_split_and_drawn() -> None:
    """R-7: CPU is billed by the core-second; J-6: priced beside the GPU."""
    fact = told(running, accrue(row(3, 14_400)))
    assert (fact.quantity, fact.unit, fact.rate, fact.tariff_version) == (
        14_400,
        "core-second",
        RATES[0],
        1,
    )
    assert fact.charge == fact.charge_new == credit(144_000)
    assert fact.parts == Parts(fee=0, provider=72_000, platform=72_000, burn=0)
    assert paid(fact) == [("cash", 144_000)]
    assert (fact.after_position, fact.through_position, fact.rows) == (0, 3, 1)
    assert (fact.measured, fact.time_us) == (14_400_000_000, HOUR_US)
    assert fact.mark == Mark("b", NOON_US + HOUR_US, NOON_US + HOUR_US)
    assert fact.refused == ()


def paid(fact: ResourceAccrued) -> list[tuple[str, int]]:
    return [(part.source, part.amount.units) for part in fact.drawn]


def test_nothing_is_charged_above_the_maximum_that_the_renter_agreed_to() -> None:
    """The attack: a provider metered 20 of 25 credits out of a renter in two seconds."""
    scene = agreed({"network": 15_000})
    net: dict[str, Any] = {"meter": "network"}
    rows = (row(1, 10**9, 0, 1, **net), row(2, 10**9, 1, 2, **net), row(3, 5 * 10**8, 2, 3, **net))
    fact = told(scene, accrue(*rows, meter="network"))
    assert (fact.charge, paid(fact)) == (credit(15_000), [("cash", 15_000)])
    assert [(one.position, one.rule) for one in fact.refused] == [(2, "above_maximum")]
    after = scene.after(accrue(*rows, meter="network"))
    later = told(after, accrue(row(4, 10**9, 3, 4, **net), meter="network"))
    assert (later.charge_new, later.refused[0].rule) == (credit(0), "above_maximum")


@pytest.mark.parametrize("meter", ["cpu", "storage"])
def test_nothing_is_charged_for_a_resource_that_the_renter_did_not_agree_to(meter: str) -> None:
    """The attack: "storage" of a lease that never stored anything took 45 credits."""
    agreed({"network": MOST}).when(accrue(row(1, 14_400), meter=meter)).then_nothing()


def capped(units: int) -> SetBudget:
    return SetBudget(
        account_id=RENTER, scope="project", target="p", monthly=credit(units), by="m", at_us=NOON_US
    )


def test_a_maximum_is_held_when_the_lease_is_reserved_and_counts_against_its_budgets() -> None:
    asked = (MeterMax("cpu", credit(300)), MeterMax("network", credit(50)))
    scene = with_meters(market.scene({f"party:{RENTER}:cash": 10**9}))
    scene = scene.after(capped(2_780_349))
    scene = scene.after(market.job(meter_maxima=asked)).after(market.request(funds=2_780_000))
    scene.when(market.reserve()).then_refused(PartiesReason.BUDGET_EXHAUSTED)
    wide = scene.after(capped(2_780_350))
    reserved = wide.after(market.reserve())
    held = usage_of(reserved, LEASE, "cpu").held
    assert [(one.source, one.amount.units) for one in held] == [("cash", 300)]
    assert budget_of(reserved, RENTER, "project", "p").used_in("2026-11") == 2_780_350
    poor = wide.having({f"party:{RENTER}:cash": 2_780_349})
    poor.when(market.reserve()).then_refused(FundsReason.CREDIT_TOO_LOW)


def test_what_is_left_of_a_hold_comes_back_a_day_after_the_lease_and_to_its_budgets() -> None:
    asked = (MeterMax("cpu", credit(300)), MeterMax("storage", credit(5_000)))
    scene = with_meters(market.scene({f"party:{RENTER}:cash": 10**9}))
    scene = scene.after(capped(10**9))
    scene = scene.after(market.job(meter_maxima=asked)).after(market.request(funds=2_780_000))
    scene = scene.after(market.reserve()).after(market.ready).after(accrue(row(1, 10)))
    scene = scene.after(accrue(row(2, 7, meter="storage"), meter="storage"))
    scene = scene.after(market.close(HOUR_US)).after(market.settle(HOUR_US + LATE_WINDOW_US))
    over_us = NOON_US + HOUR_US + LATE_WINDOW_US
    scene.when(accrue(at_us=over_us - 1)).then_nothing()
    back = scene.after(accrue(at_us=over_us))
    assert usage_of(back, LEASE, "cpu").is_returned
    late = told(back, accrue(row(9, 10), at_us=over_us))
    assert late.refused[0].rule == "too_late"
    last = back.after(accrue(meter="storage", at_us=over_us))
    assert usage_of(last, LEASE, "storage").held == ()
    assert budget_of(last, RENTER, "project", "p").used_in("2026-11") == 100 + 1_000
    assert budget_of(last, RENTER, "project", "p").holds == ()


def test_what_was_held_for_a_lease_that_never_ran_comes_back() -> None:
    asked = (MeterMax("cpu", credit(300)),)
    scene = with_meters(market.scene({f"party:{RENTER}:cash": 10**9}))
    scene = scene.after(market.job(meter_maxima=asked)).after(market.request(funds=2_780_000))
    scene = scene.after(market.reserve())
    scene.when(accrue(at_us=NOON_US + 10**12)).then_nothing()
    gone = scene.after(replace(market.close(60), code=101))
    assert usage_of(gone.after(accrue(at_us=NOON_US + 60)), LEASE, "cpu").is_returned


@pytest.mark.parametrize(
    ("maxima", "reason"),
    [
        ((MeterMax("gpu", credit(1)),), PartiesReason.UNKNOWN_MODE),
        ((MeterMax("cpu", credit(0)),), FundsReason.AMOUNT_NOT_POSITIVE),
        ((MeterMax("cpu", credit(METER_MAX_UNITS + 1)),), PricesReason.AMOUNT_OUT_OF_RANGE),
        ((MeterMax("cpu", Amount(Asset.TOKEN, 1)),), PricesReason.AMOUNT_OUT_OF_RANGE),
        (
            (MeterMax("cpu", credit(1)), MeterMax("cpu", credit(2))),
            PartiesReason.COUNT_OUT_OF_RANGE,
        ),
    ],
)
def test_a_maximum_is_of_a_meter_there_is_and_of_each_once(
    maxima: tuple[MeterMax, ...], reason: Reason
) -> None:
    market.scene().when(market.job(meter_maxima=maxima)).then_refused(reason)


def test_what_costs_nothing_makes_no_fact() -> None:
    """A resource without a price, and one's own: nothing is held for it, so nothing is drawn."""
    free = agreed({"memory": MOST})
    free.when(accrue(row(1, 500, meter="memory"), meter="memory")).then_nothing()
    agreed(account=OWNER).when(accrue(row(1, 14_400))).then_nothing()


def test_burned_credits_of_a_burning_lease_are_retired_whole() -> None:
    burning = agreed(offer=market.BURN_OFFER, source="burned")
    fact = told(burning, accrue(row(1, 14_400)))
    assert fact.parts == Parts(fee=0, provider=0, platform=0, burn=144_000)
    assert paid(fact) == [("burned", 144_000)]


def test_a_row_counts_by_the_part_of_its_time_inside_the_lease() -> None:
    fact = told(running, accrue(row(7, 90, -30, 60)))
    assert (fact.quantity, fact.measured, fact.time_us) == (60, 60_000_000, 60_000_000)
    assert [(one.position, one.rule, one.quantity) for one in fact.refused] == [
        (7, "outside_window", 30_000_000)
    ]


def test_nothing_is_lost_between_rows_that_are_no_whole_units() -> None:
    """Each row is a millisecond short of a core-second; 300 of them are 299.7."""
    rows = [row(n + 1, 0, n, n + 1, quantity=999_000) for n in range(300)]
    fact = told(running, accrue(*rows))
    assert (fact.measured, fact.quantity) == (299_700_000, 299)


@pytest.mark.parametrize("meter", ["cpu", "network", "storage"])
def test_nothing_is_billed_after_the_close(meter: str) -> None:
    closed = running.after(market.close(HOUR_US // 2))
    rows = (row(1, 3_600, meter=meter), row(2, 3_600, 3_600, 7_200, meter=meter))
    assert told(closed, accrue(*rows, meter=meter)).quantity == 1_800


def test_a_row_waits_until_its_time_is_over_and_what_comes_after_it_waits_too() -> None:
    early, late = row(1, 5, 0, 60), row(2, 5, 60, 120)
    at_us = late.to_us + PATIENCE_US - 1
    assert told(running, accrue(early, late, at_us=at_us)).through_position == 1
    running.when(accrue(late, replace(early, position=3), at_us=at_us)).then_nothing()
    of_one_report = (replace(early, position=2), late)
    running.when(accrue(*of_one_report, at_us=at_us)).then_nothing()


def test_nothing_is_judged_before_it_is_known_whether_the_lease_runs() -> None:
    asked = (MeterMax("cpu", credit(MOST)),)
    waiting = with_meters(market.scene({f"party:{RENTER}:cash": 10**18}))
    waiting = waiting.after(market.job(meter_maxima=asked)).after(market.request(funds=10**7))
    waiting.when(accrue(row(1, 5))).then_nothing()
    reserved = waiting.after(market.reserve())
    reserved.when(accrue(row(1, 5))).then_nothing()
    cancelled = reserved.after(replace(market.close(60), code=101))
    fact = told(cancelled, accrue(row(1, 5)))
    assert [(one.rule, one.quantity) for one in fact.refused] == [("lease_never_ran", 5_000_000)]
    Scene().when(accrue(row(1, 5))).then_refused(LeaseReason.LEASE_UNKNOWN)
    running.when(accrue(row(1, 5), meter="gpu")).then_refused(PartiesReason.UNKNOWN_MODE)


def rules(fact: ResourceAccrued) -> list[tuple[int, str]]:
    return [(one.position, one.rule) for one in fact.refused]


def test_no_time_counts_twice_whatever_boot_or_report_tells_it() -> None:
    """By monotonic time within a boot, by the server's across boots."""
    again = row(2, 5, 30, 90)
    fact = told(running, accrue(row(1, 5, 0, 60), again, row(3, 5, 60, 120)))
    assert (fact.quantity, rules(fact)) == (10, [(2, "overlap")])
    moved = replace(again, mono_start_us=0, mono_end_us=60_000_000, boot="c")
    assert rules(told(running, accrue(row(1, 5, 0, 60), moved))) == [(2, "overlap")]


def test_a_node_cannot_tell_more_time_than_has_passed() -> None:
    """The attack: rows whose monotonic times follow one another, all of the same minute."""
    rows = [
        replace(row(n + 1, 60, 0, 60), mono_start_us=n * 10**8, mono_end_us=(n + 1) * 10**8)
        for n in range(3)
    ]
    fact = told(running, accrue(*rows))
    assert (fact.quantity, rules(fact)) == (60, [(2, "faster_than_time"), (3, "faster_than_time")])


def test_a_row_ahead_of_its_receipt_counts_for_nothing_and_stops_none_behind_it() -> None:
    ahead = replace(row(1, 5, 0, 9_000), received_us=NOON_US + 60_000_000)
    fact = told(running, accrue(ahead, row(2, 5, 0, 60), at_us=NOON_US + 120_000_000))
    assert (fact.quantity, rules(fact)) == (5, [(1, "ahead_of_receipt")])


def test_a_row_that_no_machine_can_use_counts_for_nothing() -> None:
    fact = told(running, accrue(row(1, 4_096 * 60 + 1, 0, 60), row(2, 4_096 * 60, 60, 120)))
    assert (fact.quantity, rules(fact)) == (4_096 * 60, [(1, "out_of_range")])


def test_a_closed_account_is_charged_no_more() -> None:
    closed = AccountClosed(account_id=RENTER, by="mem", at_us=NOON_US)
    scene = running.given((Stream("account", RENTER), closed))
    fact = told(scene, accrue(row(1, 5, meter="storage"), meter="storage"))
    assert (fact.charge, fact.refused[0].rule) == (credit(0), "account_closed")


def test_no_meter_charges_more_than_there_can_be() -> None:
    dear = agreed({"cpu": METER_MAX_UNITS}, (MeterRate("cpu", credit(CHARGE_UNITS_MAX), 1),))
    fact = told(dear, accrue(row(1, 1, 0, 60), row(2, 1, 60, 120)))
    assert (fact.charge.units, fact.refused[0].rule) == (CHARGE_UNITS_MAX, "out_of_range")


def test_rows_judged_before_are_refused() -> None:
    after = running.after(accrue(row(5, 1)))
    after.when(accrue(row(5, 1))).then_refused(MeteringReason.USAGE_POSITION_FELL)
    after.when(accrue()).then_nothing()


quantities = st.lists(st.integers(0, 10**6), min_size=1, max_size=12)


@examples(40)
@given(
    quantities=quantities,
    cuts=st.sets(st.integers(1, 11)),
    delay_s=st.integers(0, 10_000),
    closed_s=st.none() | st.integers(1, 900),
)
def test_no_batching_or_delay_of_rows_changes_a_total(
    quantities: list[int], cuts: set[int], delay_s: int, closed_s: int | None
) -> None:
    """Duplicates never reach this point: the log stores a report once (`ledger/log/usage.py`)."""
    rows = [
        row(n + 1, 0, 90 * n - 30, 90 * n + 60, quantity=q * 997) for n, q in enumerate(quantities)
    ]
    rows = [replace(one, received_us=one.received_us + delay_s * 1_000_000) for one in rows]
    scene = running if closed_s is None else running.after(market.close(closed_s * 1_000_000))
    at_us = NOON_US + 2 * HOUR_US
    facts: dict[str, list[ResourceAccrued]] = {"storage": [], "cpu": []}
    whole, parts = scene, scene
    bounds = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    for meter, of_meter in facts.items():
        whole = whole.after(accrue(*rows, meter=meter, at_us=at_us))
        for first, last in pairwise(bounds):
            command = accrue(*rows[first:last], meter=meter, at_us=at_us)
            of_meter.append(told(parts, command))
            parts = parts.after(command)
        a, b = usage_of(whole, LEASE, meter), usage_of(parts, LEASE, meter)
        assert (a.measured, a.quantity, a.charge_units, a.parts, a.time_us) == (
            b.measured,
            b.quantity,
            b.charge_units,
            b.parts,
            b.time_us,
        )
        for fact in of_meter:
            assert sum(one.amount.units for one in fact.drawn) == fact.charge_new.units
            assert fact.parts_new.total == fact.charge_new.units
        assert sum(fact.charge_new.units for fact in of_meter) == of_meter[-1].charge.units
        counted = sum(one.quantity for one in rows) - sum(
            one.quantity for fact in of_meter for one in fact.refused
        )
        assert a.measured == counted, "counted + refused == reported"
        assert a.time_us <= 2 * HOUR_US
    stored = usage_of(whole, LEASE, "storage").quantity
    assert stored * 1_000 // 7 == usage_of(whole, LEASE, "storage").charge_units
