"""SLA credits (V-6): a breach of the promised availability makes an automatic, exact credit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.corrections.reasons import CorrectionsReason
from domain.corrections.sla import (
    CreditSla,
    SlaAssessed,
    SlaCredited,
    availability,
    promised_gpu_us,
    sla_of,
    tier_of,
)
from domain.duration import HOUR_US
from domain.fleet.maintenance import MaintenanceScheduled, MaintenanceState, Window
from domain.fleet.reasons import FleetReason
from domain.income.adjustment import AdjustmentBooked, GrantGoodwill, corrections_of
from domain.income.maturity import EarningsReduced
from domain.income.reasons import IncomeReason
from domain.lease.close_codes import RENTER_CLOSED, UNREACHABLE
from domain.lease.lease import LeaseReserved, SettleLease
from domain.prices.tariff import SlaClass, SlaTier, TariffState
from domain.refusal import Refused
from domain.stream import Stream, derive_id
from tests.domain.scenes import market
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.corrections import (
    EARNED,
    HOLDBACK,
    OWED,
    PAYABLE,
    billed,
    mature,
    open_dispute,
    rule,
    sweep,
    unburned,
)
from tests.domain.scenes.market import LEASE, NOON_US, OWNER, RENTER
from tests.examples import examples

STANDARD = SlaClass(
    "standard", (SlaTier(990_000, 100_000), SlaTier(950_000, 250_000), SlaTier(900_000, 1_000_000))
)
CASH = f"party:{RENTER}:cash"


def settled(hours: int = 4, used_us: int = HOUR_US, *, promised: bool = True) -> Booked:
    """A lease of class `standard`, closed after whole hours and settled."""
    world = billed(hours - 1, used_us=used_us)
    tariff = world.state(Stream("tariff", "network")).published[-1]
    world._states[Stream("tariff", "network")] = TariffState((replace(tariff, sla=(STANDARD,)),))
    stream = Stream("lease", LEASE)
    reserved: LeaseReserved = world.state(stream).reserved
    if promised:
        world._states[stream] = replace(
            world.state(stream), reserved=replace(reserved, sla_class="standard")
        )
    end_us = hours * HOUR_US
    world.do(market.close(end_us))
    row = market.usage(end_us - HOUR_US, end_us, position=hours)
    world.do(
        SettleLease(
            lease_id=LEASE,
            lane=1,
            usage_position=hours,
            rows=(replace(row, available_us=used_us),),
            at_us=NOON_US + end_us + 2_000_000,
        )
    )
    return world


def credit_sla(world: Booked, *, newest: int | None = None, is_last: bool = True) -> CreditSla:
    lines = world.lines()[::-1]
    return CreditSla(
        lease_id=LEASE,
        lines=tuple(lines[:newest]),
        is_last=is_last,
        unburned=unburned(world),
        at_us=NOON_US + 10 * HOUR_US,
    )


@pytest.mark.parametrize(
    ("metered", "promised", "ppm", "credit_ppm"),
    [
        (990_000, 1_000_000, 990_000, 0),  # at the bound the promise is kept
        (989_999, 1_000_000, 989_999, 100_000),
        (1_979_999, 2_000_000, 989_999, 100_000),  # floored: 989,999.5
        (950_000, 1_000_000, 950_000, 100_000),
        (949_999, 1_000_000, 949_999, 250_000),
        (899_999, 1_000_000, 899_999, 1_000_000),
        (0, 1_000_000, 0, 1_000_000),
        (0, 0, 1_000_000, 0),
    ],
)
def test_v_6_the_worst_tier_the_availability_is_below_counts(
    metered: int, promised: int, ppm: int, credit_ppm: int
) -> None:
    assert availability(metered, promised) == ppm
    tier = tier_of(STANDARD.tiers, ppm)
    assert (0 if tier is None else tier.credit_ppm) == credit_ppm


def test_v_6_a_breach_credits_the_renter_by_itself_from_both_parts_pro_rata() -> None:
    """Four hours at 57 of 60 minutes: 950,000 ppm, below 990,000, so 10 % of 10.564 come back."""
    world = settled(4, used_us=57 * 60_000_000)
    before, held = world.balance(CASH), world.balance(HOLDBACK)
    fees = world.balance("network:revenue:usage") + world.balance("network:revenue:take")
    world.do(credit_sla(world))
    assessed = world.facts(SlaAssessed)[0]
    assert (assessed.metered_gpu_us, assessed.promised_gpu_us) == (13_680_000_000, 14_400_000_000)
    assert (assessed.availability_ppm, assessed.below_ppm) == (950_000, 990_000)
    assert (assessed.charge.units, assessed.credit.units) == (10_564_000, 1_056_400)
    assert world.balance(CASH) == before + 1_056_400
    assert held - world.balance(HOLDBACK) == 480_700
    after = world.balance("network:revenue:usage") + world.balance("network:revenue:take")
    assert fees - after == 1_056_400 - 480_700
    booked = world.facts(AdjustmentBooked)
    assert [one.reason for one in booked] == ["sla"]
    assert booked[0].corrects_position == world.lines()[-1].position
    assert world.do(credit_sla(world)) == [], "once per lease"


def announce(world: Booked, us: int) -> None:
    """Maintenance of the node an hour after noon."""
    told = MaintenanceScheduled(
        maintenance_id="maint_1",
        node_id=market.NODE,
        kind="planned",
        from_us=NOON_US + HOUR_US,
        until_us=NOON_US + HOUR_US + us,
        keep_leases=True,
        by="o",
        at_us=NOON_US,
    )
    world._states[Stream("maintenance", market.NODE)] = MaintenanceState((Window(told),))


@pytest.mark.parametrize(
    ("announced_us", "excused_us", "ppm"),
    [
        (HOUR_US, HOUR_US, 1_000_000),
        (HOUR_US // 2, HOUR_US // 2, 857_142),
        (0, 0, 750_000),
        (2 * HOUR_US, HOUR_US, 1_000_000),
    ],
)
def test_v_8_announced_maintenance_counts_only_beyond_its_announced_length(
    announced_us: int, excused_us: int, ppm: int
) -> None:
    """Four hours at 45 of 60 minutes miss an hour: what was announced of it is excused."""
    world = settled(4, used_us=HOUR_US * 3 // 4)
    announce(world, announced_us)
    world.do(credit_sla(world))
    assessed = world.facts(SlaAssessed)[0]
    assert assessed.excused_gpu_us == excused_us
    assert assessed.promised_gpu_us == 4 * HOUR_US - excused_us
    assert assessed.availability_ppm == ppm


def test_what_was_served_although_maintenance_was_announced_is_not_excused_as_well() -> None:
    world = settled(2)
    announce(world, HOUR_US // 2)
    world.do(credit_sla(world))
    assessed = world.facts(SlaAssessed)[0]
    assert (assessed.excused_gpu_us, assessed.promised_gpu_us) == (0, 2 * HOUR_US)
    assert assessed.availability_ppm == 1_000_000


def test_a_lease_that_never_opened_or_is_not_closed_promised_nothing() -> None:
    world = settled(2)
    lease = world.state(Stream("lease", LEASE))
    assert promised_gpu_us(lease, lease.reserved) == 2 * HOUR_US
    for never in (replace(lease, opened=None), replace(lease, closed=None)):
        assert promised_gpu_us(never, lease.reserved) == 0


def test_a_promise_that_was_kept_is_assessed_and_costs_nothing() -> None:
    world = settled(2)
    world.do(credit_sla(world))
    assert world.facts(SlaAssessed)[0].credit.units == 0
    assert world.facts(AdjustmentBooked) == []
    assert sla_of(world, LEASE).is_done


def test_a_credit_of_everything_is_spread_over_all_charges_page_by_page() -> None:
    world = settled(4, used_us=HOUR_US // 2)
    charge = sum(line.charge for line in world.lines())
    before = world.balance(CASH)
    first = credit_sla(world, newest=2, is_last=False)
    world.do(first)
    assert not sla_of(world, LEASE).is_done
    world.do(credit_sla(world))
    assert world.balance(CASH) == before + charge
    assert sla_of(world, LEASE).is_done
    assert [one.is_last for one in world.facts(SlaCredited)] == [False, True]
    assert world.balance(HOLDBACK) == 0


def test_what_has_matured_is_taken_from_payable_then_earned_then_owed() -> None:
    world = settled(1, used_us=HOUR_US // 2)
    mature(world, NOON_US + 90 * HOUR_US)
    part = world.balance(PAYABLE)
    world.balances[PAYABLE], world.balances[EARNED] = 10, part - 15
    world.do(credit_sla(world))
    assert (world.balance(PAYABLE), world.balance(EARNED)) == (0, 0)
    assert world.balance(OWED) == 5


def test_what_a_dispute_freezes_waits_for_the_ruling() -> None:
    world = settled(2, used_us=HOUR_US // 2)
    first, second = world.lines()
    world.do(open_dispute([second]))
    world.do(credit_sla(world))
    assert not sla_of(world, LEASE).is_done
    assert corrections_of(world, second.position).returned == 0
    world.do(rule(world, 500_000))
    world.do(credit_sla(world))
    assert sla_of(world, LEASE).is_done
    for line in (first, second):
        assert corrections_of(world, line.position).returned == line.charge


def test_a_lease_without_a_class_or_not_settled_is_not_assessed() -> None:
    for world in (settled(1, promised=False), billed(1)):
        with pytest.raises(Refused) as caught:
            world.do(credit_sla(world))
        assert caught.value.reason is FleetReason.LEASE_STATE


@examples(60)
@given(used_us=st.integers(0, HOUR_US), goodwill=st.integers(0, 5_000_000), pages=st.integers(1, 4))
def test_what_is_credited_is_the_formula_and_never_more_than_is_left_of_the_charges(
    used_us: int, goodwill: int, pages: int
) -> None:
    world = settled(3, used_us=used_us)
    world.balances["network:revenue:take"] = 10**9  # what it has earned elsewhere
    started, lines = world.total(), world.lines()
    if goodwill and lines:
        world.do(
            GrantGoodwill(
                adjustment_id="adj_g",
                line=lines[-1],
                units=min(goodwill, lines[-1].charge),
                by="m",
                at_us=NOON_US,
            )
        )
    left = sum(line.charge - corrections_of(world, line.position).returned for line in lines)
    before = world.balance(CASH)
    for count in range(1, pages + 1):
        world.do(credit_sla(world, newest=count, is_last=False))
    world.do(credit_sla(world))
    assessed = world.facts(SlaAssessed)[0]
    tier = tier_of(STANDARD.tiers, used_us * 10**6 // HOUR_US)
    owed = assessed.charge.units * (0 if tier is None else tier.credit_ppm) // 10**6
    assert assessed.credit.units == owed
    assert world.balance(CASH) - before == min(owed, left)
    assert sla_of(world, LEASE).is_done
    for line in lines:
        assert corrections_of(world, line.position).returned <= line.charge
    assert world.total() == started
    assert world.balance(f"party:{OWNER}:owed") == 0


@examples(80)
@given(
    steps=st.permutations(["goodwill", "dispute", "rule", "sla", "mature", "sweep", "sla"]),
    used_us=st.integers(1_000_000, HOUR_US),
    ppm=st.integers(0, 1_000_000),
    part=st.integers(1, 1_000_000),
)
def test_corrections_in_any_order_never_move_more_than_a_charge_did(
    steps: list[str], used_us: int, ppm: int, part: int
) -> None:
    """Goodwill, a dispute and its ruling, SLA credits, maturity between them: per charge, what
    comes back is at most the charge, and nobody gives more than they got of it.
    """
    world = settled(3, used_us=used_us)
    world.balances["network:revenue:take"] = 10**9
    started, lines = world.total(), world.lines()
    claimed = max(1, lines[0].charge * part // 1_000_000)
    late_us = NOON_US + 80 * HOUR_US
    for step in steps:
        try:
            if step == "goodwill":
                units = max(1, claimed // 3)
                world.do(
                    GrantGoodwill(
                        adjustment_id="adj_g", line=lines[0], units=units, by="m", at_us=NOON_US
                    )
                )
            elif step == "dispute":
                world.do(open_dispute(lines[:1], claimed))
            elif step == "rule":
                world.do(rule(world, ppm))
            elif step == "sla":
                world.do(credit_sla(world))
            elif step == "mature":
                mature(world, late_us)
            else:
                sweep(world, late_us)
        except Refused as refused:
            assert refused.reason in (  # noqa: PT017
                CorrectionsReason.DISPUTE_UNKNOWN,
                CorrectionsReason.DISPUTE_TOO_LATE,
                IncomeReason.LINE_DISPUTED,
                IncomeReason.ADJUSTMENT_TOO_LARGE,
            )
    assert world.total() == started
    booked = world.facts(AdjustmentBooked)
    for line in lines:
        state = corrections_of(world, line.position)
        assert 0 <= state.owed <= state.returned <= line.charge
        assert state.recovered <= line.charge
        mine = [one for one in booked if one.corrects_position == line.position]
        assert sum(one.returned for one in mine) == state.returned
        back = [-part.units for one in mine for part in one.lines if part.account == CASH]
        assert sum(back) == state.given
    earned = sum(p.units for line in lines for p in line.payees if p.account == HOLDBACK)
    reduced = sum(one.units for one in world.facts(EarningsReduced))
    assert reduced <= earned


def test_a_lease_that_was_over_before_it_had_a_node_is_not_assessed() -> None:
    world = Booked.of(market.scene({CASH: 100_000_000}))
    world.do(market.job())
    world.do(market.request(funds=90_000_000))
    world.do(market.close(0, "renter", 101))
    lease = world.state(Stream("lease", LEASE))
    assert (lease.is_over, lease.reserved) == (True, None)
    with pytest.raises(Refused) as caught:
        world.do(credit_sla(world))
    assert caught.value.reason is FleetReason.LEASE_STATE


def test_a_term_that_the_provider_ended_early_was_promised_to_its_end() -> None:
    """Closed after two hours; what is missing of the term counts for nobody else's fault."""
    lease = settled(2).state(Stream("lease", LEASE))
    end_us = lease.closed.closed_at_us
    assert end_us == NOON_US + 2 * HOUR_US
    for code, term_end_us, promised_us in (
        (UNREACHABLE, None, 2 * HOUR_US),
        (UNREACHABLE, end_us, 2 * HOUR_US),
        (UNREACHABLE, end_us - 7, 2 * HOUR_US),
        (UNREACHABLE, end_us + 1, 2 * HOUR_US + 1),
        (UNREACHABLE, end_us + HOUR_US, 3 * HOUR_US),
        (RENTER_CLOSED, end_us + HOUR_US, 2 * HOUR_US),
    ):
        closed = replace(lease.closed, code=code)
        ended = replace(lease, closed=closed, term_end_us=term_end_us)
        assert promised_gpu_us(ended, lease.reserved) == promised_us, (code, term_end_us)
    shared = replace(lease.reserved, share_ppm=500_000, device_ids=("a", "b", "c"))
    assert promised_gpu_us(lease, shared) == 3 * HOUR_US


def test_a_lease_of_ones_own_hardware_is_promised_nothing_and_credited_nothing() -> None:
    world = settled(2, used_us=HOUR_US // 2)
    stream = Stream("lease", LEASE)
    lease = world.state(stream)
    world._states[stream] = replace(lease, reserved=replace(lease.reserved, own=True))
    world.do(replace(credit_sla(world), lines=()))
    (assessed,) = world.facts(SlaAssessed)
    assert (assessed.below_ppm, assessed.credit_ppm, assessed.credit.units) == (None, 0, 0)
    assert assessed.availability_ppm == 500_000


def test_each_charge_of_a_credit_has_an_adjustment_of_its_own_name() -> None:
    world = settled(2, used_us=HOUR_US // 2)
    world.do(credit_sla(world))
    booked = world.facts(AdjustmentBooked)
    assert {(one.corrects_position, one.adjustment_id) for one in booked} == {
        (line.position, derive_id("adj", f"sla-{LEASE}", str(line.position)))
        for line in world.lines()
    }
    assert all(one.adjustment_id.startswith("adj_") for one in booked)
    assert {(one.reason, one.cause, one.by) for one in booked} == {("sla", f"sla:{LEASE}", "job")}


def test_without_charges_a_lease_is_assessed_and_credited_later() -> None:
    world = settled(2, used_us=HOUR_US // 2)
    world.do(replace(credit_sla(world), lines=()))
    assert (len(world.facts(SlaAssessed)), world.facts(SlaCredited)) == (1, [])
    assert not sla_of(world, LEASE).is_done
    world.do(credit_sla(world))
    assert (len(world.facts(SlaAssessed)), len(world.facts(SlaCredited))) == (1, 1)
    assert world.do(credit_sla(world)) == [], "credited once"


def test_a_credit_that_the_newest_charges_pay_is_done_without_the_older_ones() -> None:
    """A tenth of two hours: the second hour's charge is more than that."""
    world = settled(2, used_us=HOUR_US * 96 // 100)
    world.do(credit_sla(world, newest=1, is_last=False))
    (credited,) = world.facts(SlaCredited)
    assert (credited.is_last, credited.credited) == (True, world.facts(SlaAssessed)[0].credit)
    assert credited.credited.units > 0
    assert sla_of(world, LEASE).is_done
