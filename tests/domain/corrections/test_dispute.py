"""Disputes: what waits, who rules, and where every unit goes for each outcome (economics 17)."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import rules
from domain.chain.burn import IntendBurn
from domain.chain.reasons import ChainReason
from domain.corrections.dispute import (
    TIMEOUT_US,
    AnswerDispute,
    DisputeOpened,
    DisputeResolved,
    Evidence,
    TimeOutDispute,
)
from domain.corrections.late_usage import BillLateUsage
from domain.corrections.reasons import CorrectionsReason
from domain.duration import HOUR_US
from domain.fleet.revenue_share import OwnerShare
from domain.funds.debt import RESERVE as RESERVE_OF_NETWORK
from domain.income.adjustment import (
    REVENUES,
    AdjustmentBooked,
    GrantGoodwill,
    PayOwed,
    Unburned,
    corrections_of,
)
from domain.income.maturity import (
    DEFAULT_WINDOW_US,
    EarningsMatured,
    EarningsReduced,
    SetPaymentMode,
)
from domain.income.reasons import IncomeReason
from domain.lease.funds import EscrowPart
from domain.lease.lease import LATE_WINDOW_US, PrepaidTerm, lease_of
from domain.lease.reserved_term import TermEndedEarly
from domain.lease.turns import LeaseResolved
from domain.leasing.other_resources import ResourceAccrued, ResourceHeld
from domain.money import PPM, credit
from domain.parties.account import AccountClosed, AccountOpened
from domain.parties.reasons import PartiesReason
from domain.prices.charge_split import Parts
from domain.prices.tariff import MeterRate
from domain.refusal import Reason, Refused
from domain.stream import Change, Stream
from tests.domain.scenes import market
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.corrections import (
    CASH,
    EARNED,
    HOLDBACK,
    PAYABLE,
    RESERVE,
    accrue,
    billed,
    mature,
    no_window,
    open_dispute,
    rule,
    sweep,
    unburned,
)
from tests.domain.scenes.market import BURN_OFFER, LEASE, NOON_US, OWNER, RENTER
from tests.examples import examples

CHARGE, PROVIDER, PLATFORM = 2_780_000, 1_265_000, 1_265_000
DAY_US = 24 * HOUR_US
PAYERS = [f"party:{RENTER}:{source}" for source in ("grant", "cash", "card")]


def refused(world: Booked, command: object) -> Reason:
    with pytest.raises(Refused) as caught:
        world.do(command)
    return caught.value.reason


def signed(position: int = 7) -> tuple[Evidence, ...]:
    return (Evidence(kind="usage_report", lane=1, position=position, sha256=None, signed=True),)


def countersigned() -> tuple[Evidence, ...]:
    return (Evidence(kind="market_fact", lane=None, position=9, sha256=None, signed=True),)


def answer(party: str, evidence: tuple[Evidence, ...] = ()) -> AnswerDispute:
    return AnswerDispute(
        dispute_id="dispute_1",
        party_account_id=party,
        statement_sha256="cd" * 32,
        evidence=evidence,
        by="member_2",
        at_us=NOON_US + 5 * HOUR_US,
    )


def timeout(world: Booked) -> TimeOutDispute:
    opened = world.facts(DisputeOpened)[0]
    return TimeOutDispute(
        dispute_id="dispute_1",
        lines=tuple(world.lines()),
        unburned=unburned(world),
        at_us=opened.expires_at_us,
    )


def test_opening_inside_the_window_moves_the_providers_part_out_of_holdback() -> None:
    world = billed(3)
    line = world.lines()[1]
    world.do(open_dispute([line]))
    opened = world.facts(DisputeOpened)[0]
    assert (opened.side, opened.claimed.units, opened.reserved.units) == (
        "renter",
        CHARGE,
        PROVIDER,
    )
    assert world.balance(RESERVE) == PROVIDER
    assert world.balance(HOLDBACK) == 2 * PROVIDER
    reduced = world.facts(EarningsReduced)
    assert [(one.position, one.units) for one in reduced] == [(line.position, PROVIDER)]
    mature(world, NOON_US + 200 * HOUR_US)
    assert world.facts(EarningsMatured)[0].amount.units == 2 * PROVIDER
    assert world.balance(HOLDBACK) == 0


def test_upheld_gives_the_charge_back_where_it_came_from_with_the_platforms_parts() -> None:
    world = billed(3)
    before = world.balance(f"party:{RENTER}:cash")
    line = world.lines()[0]
    world.do(open_dispute([line]))
    world.do(rule(world, 1_000_000))
    assert world.balance(f"party:{RENTER}:cash") == before + CHARGE
    assert world.balance(RESERVE) == 0
    assert world.balance("network:revenue:usage") == 2 * 250_000
    assert world.balance("network:revenue:take") == 2 * PLATFORM
    booked = world.facts(AdjustmentBooked)[0]
    assert (booked.corrects_position, booked.reason) == (line.position, "dispute")
    assert (booked.returned, booked.recovered) == (CHARGE, CHARGE)
    resolved = world.facts(DisputeResolved)[0]
    assert (resolved.outcome, resolved.unfounded, resolved.opened_by) == ("upheld", False, "renter")


def test_rejected_pays_the_provider_what_waited() -> None:
    world = billed(3)
    before = world.balance(f"party:{RENTER}:cash")
    world.do(open_dispute(world.lines()[:1]))
    world.do(rule(world, 0))
    assert world.balance(PAYABLE) == PROVIDER
    assert world.balance(RESERVE) == 0
    assert world.balance(f"party:{RENTER}:cash") == before
    assert world.facts(DisputeResolved)[0].unfounded


def test_split_by_ppm_leaves_the_remainder_with_the_provider_side() -> None:
    world = billed(1)
    before = world.balance(f"party:{RENTER}:cash")
    world.do(open_dispute(world.lines(), claimed=7))
    world.do(rule(world, 500_000))
    assert world.balance(f"party:{RENTER}:cash") == before + 3
    assert world.facts(DisputeResolved)[0].upheld.units == 3
    assert world.balance(RESERVE) == 0


def test_with_window_zero_no_charge_can_be_disputed() -> None:
    """CloudBender preset: what is earned is payable at once; there is only goodwill."""
    world = billed(0)
    no_window(world)
    accrue(world, 0)
    line = world.lines()[0]
    at_once = open_dispute([line], at_us=line.posted_at_us)
    assert refused(world, at_once) is CorrectionsReason.DISPUTE_TOO_LATE
    goodwill = GrantGoodwill(adjustment_id="adj_1", line=line, units=7, by="op", at_us=NOON_US)
    assert world.do(goodwill)


def test_a_charge_can_be_disputed_until_its_window_is_over_and_not_a_microsecond_longer() -> None:
    """H3: a dispute opened sixty days after the cash-out got back money that had left."""
    world = billed(1)
    line = world.lines()[0]
    late = open_dispute([line], at_us=line.posted_at_us + DEFAULT_WINDOW_US)
    with pytest.raises(Refused) as caught:
        world.do(late)
    assert caught.value.reason is CorrectionsReason.DISPUTE_TOO_LATE
    assert caught.value.facts["until_us"] == late.at_us
    assert world.do(replace(late, at_us=late.at_us - 1))


def test_what_has_matured_by_a_clock_that_is_ahead_is_disputed_no_more() -> None:
    world = billed(1)
    line = world.lines()[0]
    mature(world, line.posted_at_us + DEFAULT_WINDOW_US)
    early = open_dispute([line], at_us=line.posted_at_us + DEFAULT_WINDOW_US - 1)
    assert refused(world, early) is CorrectionsReason.DISPUTE_TOO_LATE


def test_owners_who_share_a_billing_account_do_not_share_what_is_held_for_a_dispute() -> None:
    """The attack: 100 and 7 disputed of two payees, and the account that gets both sweeps held
    back 7 of 107. Each payee's part of each charge waits in the dispute's account by itself, so
    whatever is swept to whom, nothing that is disputed can leave.
    """
    other = "acct_part_owner"
    opened = AccountOpened(account_id=other, kind="party", opened_by="op", at_us=0)
    world = billed(0)
    world._record(Change(Stream("account", other), opened))
    lease = Stream("lease", market.LEASE)
    reserved = replace(world.state(lease).reserved, owners=(OwnerShare(other, 70_000),))
    world._states[lease] = replace(world.state(lease), reserved=reserved)
    for hour in range(2):
        accrue(world, hour)
    mode = SetPaymentMode(
        account_id=other,
        mode="credits",
        billing_account_id=OWNER,
        destination=None,
        by="mem",
        at_us=NOON_US,
    )
    world.do(mode)
    lines = world.lines()
    world.do(open_dispute(lines))
    told = world.facts(DisputeOpened)[0]
    of_other = PROVIDER * 70_000 // 1_000_000
    for line in told.lines:
        held = {one.account_id: one.units for one in line.held}
        assert held == {other: of_other, OWNER: PROVIDER - of_other}
    mature(world, NOON_US + 200 * HOUR_US)
    sweep(world, NOON_US + 200 * HOUR_US)
    left = [world.balance(f"party:{other}:holdback"), world.balance(EARNED)]
    assert (left, world.balance(RESERVE)) == ([0, 0], 2 * PROVIDER)


def test_a_grants_part_restores_the_grant_never_cash() -> None:
    grant = f"party:{RENTER}:grant"
    world = billed(1, balances={grant: 1_000_000, f"party:{RENTER}:cash": 10_000_000})
    assert world.balance(grant) == 0
    world.do(open_dispute(world.lines()))
    world.do(rule(world, 1_000_000))
    assert world.balance(grant) == 1_000_000


def test_burned_credits_come_back_as_burned_credits() -> None:
    burned = f"party:{RENTER}:burned"
    world = billed(1, balances={burned: 10_000_000, "world:burned": 10_000_000}, offer=BURN_OFFER)
    assert world.balance("world:burned") == 10_000_000 - CHARGE
    world.do(open_dispute(world.lines()))
    world.do(rule(world, 1_000_000))
    assert world.balance("world:burned") == 10_000_000
    assert world.facts(AdjustmentBooked)[0].lines[0].account == burned


def test_a_part_that_a_burn_counts_on_is_given_by_the_networks_revenue() -> None:
    world = billed(2, burn_share_ppm=500_000)
    part = PLATFORM // 2
    assert world.balance("network:burn_due") == 2 * part
    world.do(open_dispute(world.lines()[:1]))
    world.do(rule(world, 1_000_000, read=Unburned(1, ())))
    assert world.balance("network:burn_due") == 2 * part
    assert all(line.units for fact in world.facts(AdjustmentBooked) for line in fact.lines)
    assert world.balance("network:revenue:take") == 2 * part - part - part


def test_a_refund_takes_of_the_pot_only_what_its_own_charge_is_to_burn() -> None:
    """E-C2: what other charges are to burn buys the rewards of other nodes."""
    world = billed(3, burn_share_ppm=500_000)
    part = PLATFORM // 2
    world.do(open_dispute(world.lines()[:1]))
    world.do(rule(world, 1_000_000))
    assert world.balance("network:burn_due") == 2 * part
    assert world.balance("network:revenue:take") == 2 * part


def test_a_burned_part_is_given_by_revenue_and_then_by_the_reserve() -> None:
    """E-C2: and where both are short the refund waits, instead of taking from others' burns."""
    world = billed(3, burn_share_ppm=PPM)
    assert world.balance("network:revenue:take") == 0
    usage, due = world.balance("network:revenue:usage"), world.balance("network:burn_due")
    world.do(open_dispute(world.lines()[:1]))
    for revenue in REVENUES:
        world.balances[revenue] = 0
    world.balances["network:revenue:usage"] = usage // 3
    world.balances[RESERVE_OF_NETWORK] = 1_000
    world.do(rule(world, 1_000_000, read=Unburned(1, ())))
    assert world.facts(AdjustmentBooked)[-1].owed == PLATFORM - 1_000
    assert all(line.units for fact in world.facts(AdjustmentBooked) for line in fact.lines)
    assert world.balance("network:burn_due") == due
    assert world.balance("network:revenue:usage") == world.balance(RESERVE_OF_NETWORK) == 0


def test_a_refund_is_decided_anew_when_a_burn_began_or_the_charge_was_corrected_meanwhile() -> None:
    world = billed(2, burn_share_ppm=500_000)
    world.do(open_dispute(world.lines()[:1]))
    known = unburned(world)
    stale = replace(known, charges=tuple(one._replace(corrections=1) for one in known.charges))
    assert refused(world, rule(world, 1_000_000, read=stale)) is ChainReason.BURN_STATE
    burn = IntendBurn(
        burn_id=1,
        first_position=1,
        last_position=len(world.log),
        credits=credit(PLATFORM),
        price_micro_usd=10**6,
        price_round=1,
        at_us=NOON_US,
    )
    world.balances["world:bank"] = 10**9
    world.do(burn)
    assert refused(world, rule(world, 1_000_000, read=known)) is ChainReason.BURN_STATE
    copy = deepcopy(world)
    for burns in (0, 1):
        world = deepcopy(copy)
        world.do(rule(world, 1_000_000, read=Unburned(burns, ())))
        assert world.facts(DisputeResolved), "where nothing was read as unburned, none is taken"


def test_a_line_is_disputed_once_and_together_never_for_more_than_was_charged() -> None:
    world = billed(2)
    first = world.lines()[0]
    assert refused(world, open_dispute([first], CHARGE + 1)) is IncomeReason.ADJUSTMENT_TOO_LARGE
    world.do(open_dispute([first], 1_000))
    again = replace(open_dispute([first], 1_000), dispute_id="dispute_2")
    assert refused(world, again) is IncomeReason.LINE_DISPUTED
    world.do(rule(world, 0))
    assert refused(world, again) is IncomeReason.LINE_DISPUTED, "a ruling is final"


def test_only_a_party_opens_and_answers_and_only_a_third_one_rules() -> None:
    world = billed(1)
    assert (
        refused(world, open_dispute(world.lines(), party="acct_x")) is PartiesReason.NOT_PERMITTED
    )
    world.do(open_dispute(world.lines(), party=OWNER))
    assert world.facts(DisputeOpened)[0].side == "provider"
    assert refused(world, answer("acct_x")) is PartiesReason.NOT_PERMITTED
    world.do(answer(RENTER))
    for party in (RENTER, OWNER):
        assert refused(world, rule(world, 0, by=party)) is PartiesReason.NOT_PERMITTED
    world.do(rule(world, 0))
    assert (
        refused(world, replace(answer(OWNER), statement_sha256="00"))
        is CorrectionsReason.DISPUTE_STATE
    )


def test_a_ruling_is_one_of_three() -> None:
    world = billed(2)
    world.do(open_dispute(world.lines()[:1]))
    told = replace(rule(world, 0), outcome="whim", upheld_ppm=1)
    assert refused(world, told) is PartiesReason.UNKNOWN_MODE


def test_the_same_request_twice_is_once_and_another_ruling_is_refused() -> None:
    world = billed(1)
    asked, told = open_dispute(world.lines()), answer(OWNER)
    assert world.do(asked)
    assert world.do(asked) == []
    assert world.do(told)
    assert world.do(told) == []
    assert world.do(rule(world, 400_000))
    assert world.do(rule(world, 400_000)) == []
    assert refused(world, rule(world, 0)) is CorrectionsReason.DISPUTE_STATE
    assert refused(world, replace(asked, claims=())) is CorrectionsReason.DISPUTE_STATE


@pytest.mark.parametrize("signers", [(), (OWNER,), (RENTER,), (OWNER, RENTER)])
def test_what_the_node_signed_is_not_won_by_silence_whoever_answers(
    signers: tuple[str, ...],
) -> None:
    """H3: the renter got everything back after 90 days in which nobody ruled."""
    world = billed(1)
    before = world.balance(f"party:{RENTER}:cash")
    world.do(open_dispute(world.lines()))
    for party in signers:
        world.do(answer(party, signed()))
    expired = timeout(world)
    assert expired.at_us == world.facts(DisputeOpened)[0].at_us + TIMEOUT_US
    too_soon = replace(expired, at_us=expired.at_us - 1)
    assert refused(world, too_soon) is CorrectionsReason.DISPUTE_STATE
    world.do(expired)
    assert world.do(expired) == []
    resolved = world.facts(DisputeResolved)[0]
    assert (resolved.outcome, resolved.unfounded) == ("timed_out", True)
    assert world.balance(f"party:{RENTER}:cash") == before
    assert (world.balance(RESERVE), world.balance(PAYABLE)) == (0, PROVIDER)


@pytest.mark.parametrize(
    ("side", "evidence", "wins"),
    [
        (None, (), RENTER),
        (OWNER, signed(), OWNER),
        (RENTER, signed(), OWNER),  # the node signed it, whoever names it
        (RENTER, countersigned(), RENTER),
    ],
)
def test_without_a_ruling_a_charge_that_nothing_proves_gives_back_what_is_reserved_and_no_more(
    side: str | None, evidence: tuple[Evidence, ...], wins: str
) -> None:
    world = billed(1)
    resources(world, 1_000)
    before, take = world.balance(f"party:{RENTER}:cash"), world.balance("network:revenue:take")
    unproven = replace(world.lines()[-1], proven=False)
    world.do(open_dispute([unproven]))
    if side is not None:
        world.do(answer(side, evidence))
    world.do(timeout(world))
    back = 500 if wins == RENTER else 0
    resolved = world.facts(DisputeResolved)[0]
    assert (resolved.upheld.units, resolved.upheld_ppm) == (back, back * 1_000)
    assert world.balance(f"party:{RENTER}:cash") == before + back
    assert world.balance("network:revenue:take") == take, "the network was not asked"
    assert (world.balance(RESERVE), world.balance(PAYABLE)) == (0, 500 - back)
    again = GrantGoodwill(
        adjustment_id="adj_1", line=world.lines()[-1], units=1_000 - back, by="op", at_us=NOON_US
    )
    assert world.do(again), "what nobody was asked for may be given as goodwill"


def test_a_ruling_that_the_network_cannot_pay_whole_pays_the_providers_part_and_owes_the_rest() -> (
    None
):
    """H3: a ruling was refused whole where the network's pot was empty, and an honest renter got
    nothing, not even the provider's part.
    """
    world = billed(2, burn_share_ppm=500_000)
    before = world.balance(f"party:{RENTER}:cash")
    world.balances["network:revenue:take"] = 10
    world.balances["network:revenue:usage"] = 0
    line = world.lines()[0]
    world.do(open_dispute([line]))
    world.do(rule(world, 1_000_000, read=Unburned(0, ())))
    booked = world.facts(AdjustmentBooked)[0]
    assert (booked.returned, booked.recovered) == (CHARGE, CHARGE)
    assert booked.owed == CHARGE - PROVIDER - 10
    assert world.balance(f"party:{RENTER}:cash") == before + PROVIDER + 10
    pay = PayOwed(adjustment_id="adj_a", line=line, at_us=NOON_US + DAY_US)
    assert world.do(pay) == [], "nothing is there yet"
    world.balances["network:revenue:take"] = 1_000
    world.do(pay)
    assert world.do(pay) == []
    assert world.facts(AdjustmentBooked)[-1].owed == -1_000
    world.balances["network:revenue:take"] = CHARGE
    world.do(replace(pay, adjustment_id="adj_b"))
    assert world.balance(f"party:{RENTER}:cash") == before + CHARGE
    assert corrections_of(world, line.position).owed == 0
    assert world.do(replace(pay, adjustment_id="adj_c")) == []


def prepaid() -> Booked:
    """A term of four hours that was paid beforehand; nothing of it goes back at an early end."""
    world = Booked.of(market.scene(dict(CASH)))
    world.do(market.job())
    world.do(market.request(term_us=4 * HOUR_US))
    world.do(market.reserve())
    lease = Stream("lease", market.LEASE)
    reserved = replace(world.state(lease).reserved, prepaid=PrepaidTerm(1, 0))
    world._states[lease] = replace(world.state(lease), reserved=reserved)
    world.do(market.ready)
    return world


def late(cash: int | None = None) -> Booked:
    """Two hours, of which the second was reported after the lease had been settled; the renter had
    so much cash then, and owes the rest.
    """
    world = billed(1)
    world.do(market.close(2 * HOUR_US))
    world.do(market.settle(2 * HOUR_US + LATE_WINDOW_US, position=9))
    if cash is not None:
        world.balances[f"party:{RENTER}:cash"] = cash
    world.do(
        BillLateUsage(
            adjustment_id="adj_late",
            lease_id=market.LEASE,
            settled_position=len(world.log),
            lane=1,
            usage_position=20,
            rows=(market.usage(HOUR_US, 2 * HOUR_US, position=20),),
            by="member_9",
            at_us=NOON_US + 40 * HOUR_US,
        )
    )
    return world


def test_what_is_kept_of_a_term_that_ended_early_is_disputed_and_given_back() -> None:
    """M7: 1,078.50 credits were kept, and the dispute of them was refused as no charge."""
    world = prepaid()
    world.do(market.close(HOUR_US))
    early = next(line for line in world.lines() if line.gpu_us == 0)
    kept = world.facts(TermEndedEarly)[0].kept.units
    assert (early.charge, early.proven) == (kept, True)
    cash = world.balance(f"party:{RENTER}:cash")
    world.do(open_dispute([early]))
    assert world.balance(RESERVE) == sum(
        part.units for part in early.payees if part.account == HOLDBACK
    )
    world.do(rule(world, 1_000_000))
    assert world.balance(f"party:{RENTER}:cash") == cash + kept


def test_usage_that_was_charged_late_is_disputed_like_usage_in_time() -> None:
    world = late()
    charged = next(line for line in world.lines() if line.posted_at_us > NOON_US + DAY_US)
    assert charged.gpu_us > 0
    cash = world.balance(f"party:{RENTER}:cash")
    world.do(open_dispute([charged]))
    assert world.balance(RESERVE) > 0
    world.do(rule(world, 1_000_000, at_us=charged.posted_at_us + DAY_US))
    assert world.balance(f"party:{RENTER}:cash") == cash + charged.charge


def resources(world: Booked, charge: int) -> None:
    """A charge for another resource of the lease."""
    parts = Parts(fee=0, provider=charge // 2, platform=charge - charge // 2, burn=0)
    drawn = (EscrowPart("cash", credit(charge)),)
    held = ResourceHeld(
        lease_id=market.LEASE, meter="egress", account_id=RENTER, parts=drawn, at_us=NOON_US
    )
    world._record(Change(Stream("resource", f"{market.LEASE}/egress"), held))
    world._book(held)
    fact = ResourceAccrued(
        lease_id=market.LEASE,
        meter="egress",
        unit="byte",
        node_id=market.NODE,
        account_id=RENTER,
        provider_account_id=OWNER,
        client_id="c",
        project_id="p",
        end_user_ref="u",
        after_position=0,
        through_position=1,
        client_account_id=None,
        owners=(),
        lane=0,
        rows=1,
        mark=None,
        told_us=0,
        time_us=1,
        measured=1,
        quantity=1,
        quantity_new=1,
        rate=MeterRate("network", credit(1), 1),
        tariff_version=1,
        charge=credit(charge),
        charge_new=credit(charge),
        parts=parts,
        parts_new=parts,
        drawn=drawn,
        refused=(),
        at_us=NOON_US + 3 * HOUR_US,
    )
    world._record(Change(Stream("resource", f"{market.LEASE}/egress"), fact))
    world._book(fact)


def test_a_charge_of_another_resource_is_disputed_alike() -> None:
    world = billed(1)
    resources(world, 1_000)
    cash = world.balance(f"party:{RENTER}:cash")
    line = world.lines()[-1]
    assert (line.charge, line.gpu_us) == (1_000, 0)
    world.do(open_dispute([line]))
    assert world.balance(RESERVE) == 500
    world.do(rule(world, 1_000_000))
    assert world.balance(f"party:{RENTER}:cash") == cash + 1_000


@pytest.mark.parametrize(("still_owed", "as_grant"), [(400, 0), (150, 250), (0, 400)])
def test_what_comes_back_of_a_charge_that_is_owed_takes_the_debt_off_first(
    still_owed: int, as_grant: int
) -> None:
    world, debt = late(cash=CHARGE - 400), f"party:{RENTER}:owed"
    assert world.balance(debt) == 400
    world.balances[debt] = still_owed  # some of it was paid meanwhile
    charged = next(line for line in world.lines() if line.posted_at_us > NOON_US + DAY_US)
    world.do(open_dispute([charged]))
    world.do(rule(world, 1_000_000, at_us=charged.posted_at_us + DAY_US))
    assert world.balance(debt) == 0
    assert world.balance(f"party:{RENTER}:grant") == as_grant
    assert world.balance(f"party:{RENTER}:cash") == CHARGE - 400


def test_what_belongs_to_a_closed_account_waits_in_suspense() -> None:
    world = billed(1)
    world.do(open_dispute(world.lines()))
    closed = AccountClosed(account_id=RENTER, by="op", at_us=NOON_US + DAY_US)
    world._record(Change(Stream("account", RENTER), closed))
    world.do(rule(world, 1_000_000))
    assert world.balance("network:suspense") == CHARGE


AMOUNTS = st.integers(0, 5_000_000)


@examples(60)
@given(
    used_us=st.integers(1_000_000, HOUR_US),
    burn_share_ppm=st.sampled_from([0, 333_333, 1_000_000]),
    provider_share_ppm=st.sampled_from([0, 142_857, 500_000, 1_000_000]),
    grant=AMOUNTS,
    card=AMOUNTS,
    claim_ppm=st.integers(1, 1_000_000),
    ruling=st.one_of(st.integers(0, 1_000_000), st.none()),
    take=st.integers(0, 3_000_000),
)
def test_a_reserve_is_conserved_whatever_is_ruled(
    used_us: int,
    burn_share_ppm: int,
    provider_share_ppm: int,
    grant: int,
    card: int,
    claim_ppm: int,
    ruling: int | None,
    take: int,
) -> None:
    """reserved == what the renter gets of it + what the provider gets; nobody gives more than the
    line paid them, and all that came back of a line is at most its charge.
    """
    balances = {
        f"party:{RENTER}:grant": grant,
        f"party:{RENTER}:cash": 10_000_000,
        f"party:{RENTER}:card": card,
    }
    world = billed(
        3,
        balances=balances,
        used_us=used_us,
        burn_share_ppm=burn_share_ppm,
        provider_share_ppm=provider_share_ppm,
    )
    lines = world.lines()
    for name in ("take", "usage"):  # the rest has been spent
        left = min(take, world.balance(f"network:revenue:{name}"))
        world.balances[f"network:revenue:{name}"] = left
    started = world.total()
    claimed = max(1, min(line.charge for line in lines) * claim_ppm // 1_000_000)
    held_back = world.balance(HOLDBACK)
    world.do(open_dispute(lines, claimed))
    reserved = world.facts(DisputeOpened)[0].reserved.units
    assert world.balance(RESERVE) == reserved == held_back - world.balance(HOLDBACK)
    world.do(timeout(world) if ruling is None else rule(world, ruling))
    assert world.balance(RESERVE) == 0
    resolved = world.facts(DisputeResolved)[0]
    returned = sum(one.returned for one in world.facts(AdjustmentBooked))
    assert returned == resolved.upheld.units <= resolved.claimed.units
    for line in lines:
        state = corrections_of(world, line.position)
        assert 0 <= state.owed <= state.returned <= line.charge
        assert state.recovered <= line.charge
        moved = [
            part
            for one in world.facts(AdjustmentBooked)
            if one.corrects_position == line.position
            for part in one.lines
        ]
        for payee in line.payees:
            taken = sum(part.units for part in moved if part.account == payee.account)
            assert taken <= payee.units or payee.account != HOLDBACK
        for payer in line.payers:
            given = -sum(part.units for part in moved if part.account == payer.account)
            assert 0 <= given <= payer.units
        assert state.given == sum(-part.units for part in moved if part.account in PAYERS)
    assert world.total() == started


def test_a_lease_is_told_that_it_is_disputed_and_that_it_is_over() -> None:
    world = billed(1)
    world.do(open_dispute(world.lines()))
    assert lease_of(world, LEASE).disputes == ("dispute_1",)
    world.do(rule(world, 400_000))
    assert lease_of(world, LEASE).disputes == ()
    (told,) = world.facts(LeaseResolved)
    assert (told.dispute_id, told.outcome) == ("dispute_1", "split")


def test_a_ruling_gives_all_nothing_or_a_part_as_it_says() -> None:
    world = billed(1)
    world.do(open_dispute(world.lines()))
    for outcome, ppm, is_within in (
        ("upheld", PPM, True),
        ("upheld", PPM - 1, False),
        ("rejected", 0, True),
        ("rejected", 1, False),
        ("split", 0, False),
        ("split", 1, True),
        ("split", PPM - 1, True),
        ("split", PPM, False),
    ):
        told = replace(rule(world, 0), outcome=outcome, upheld_ppm=ppm)
        if is_within:
            assert rules.decide(told, world)
        else:
            assert refused(world, told) is PartiesReason.SHARE_OUT_OF_RANGE, (outcome, ppm)


def test_an_answer_says_something_and_shows_twenty_things_at_most() -> None:
    world = billed(1)
    world.do(open_dispute(world.lines()))
    empty = replace(answer(OWNER), statement_sha256=None)
    assert refused(world, empty) is PartiesReason.COUNT_OUT_OF_RANGE
    for told in (answer(OWNER), replace(empty, evidence=signed()), answer(OWNER, signed() * 20)):
        assert rules.decide(told, world)
    assert refused(world, answer(OWNER, signed() * 21)) is PartiesReason.COUNT_OUT_OF_RANGE


def test_a_dispute_has_fifty_answers_at_most() -> None:
    world = billed(1)
    world.do(open_dispute(world.lines()))
    for number in range(50):
        assert world.do(replace(answer(OWNER), statement_sha256=f"{number:064x}"))
    assert refused(world, answer(RENTER)) is PartiesReason.COUNT_OUT_OF_RANGE


def test_time_is_up_at_the_end_of_the_90th_day_and_only_once() -> None:
    world = billed(1)
    asked = open_dispute(world.lines())
    world.do(asked)
    late = timeout(world)
    assert late.at_us == asked.at_us + 90 * DAY_US
    assert refused(world, replace(late, at_us=late.at_us - 1)) is CorrectionsReason.DISPUTE_STATE
    assert world.do(late)
    assert world.do(late) == []
    assert refused(world, answer(OWNER)) is CorrectionsReason.DISPUTE_STATE
