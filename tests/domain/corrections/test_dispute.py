"""Disputes: what waits, who rules, and where every unit goes for each outcome (economics 17)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.corrections.dispute import (
    OPEN_US_MAX,
    TIMEOUT_US,
    AnswerDispute,
    DisputeOpened,
    DisputeResolved,
    Evidence,
    TimeOutDispute,
)
from domain.corrections.reasons import CorrectionsReason
from domain.duration import HOUR_US
from domain.funds.draw import Drawn
from domain.income import cash_out
from domain.income.adjustment import AdjustmentBooked, corrections_of
from domain.income.maturity import EarningsMatured, EarningsReduced
from domain.income.reasons import IncomeReason
from domain.leasing.other_resources import ResourceAccrued
from domain.money import credit
from domain.parties.account import AccountClosed
from domain.parties.reasons import PartiesReason
from domain.prices.charge_split import Parts
from domain.refusal import Reason, Refused
from domain.stream import Change, Stream
from tests.domain.scenes import market
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.corrections import (
    EARNED,
    HOLDBACK,
    OWED,
    PAYABLE,
    RESERVE,
    accrue,
    billed,
    mature,
    no_window,
    open_dispute,
    rule,
    sweep,
)
from tests.domain.scenes.market import BURN_OFFER, NOON_US, OWNER, RENTER
from tests.examples import examples

CHARGE, PROVIDER, PLATFORM = 2_780_000, 1_265_000, 1_265_000
DAY_US = 24 * HOUR_US


def refused(world: Booked, command: object) -> Reason:
    with pytest.raises(Refused) as caught:
        world.do(command)
    return caught.value.reason


def signed(position: int = 7) -> tuple[Evidence, ...]:
    return (Evidence(kind="usage_report", lane=1, position=position, sha256=None, signed=True),)


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
        burn_promised=0,
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


def test_nothing_is_held_with_window_zero_and_a_resolution_debits_later_earnings() -> None:
    """CloudBender preset: payable, then earned, then owed."""
    world = billed(0)
    no_window(world)
    for hour in range(3):
        accrue(world, hour)
    lines = world.lines()
    mature(world, NOON_US + 4 * HOUR_US)
    sweep(world, NOON_US + 4 * HOUR_US)
    accrue(world, 3)
    mature(world, NOON_US + 5 * HOUR_US)
    assert (world.balance(PAYABLE), world.balance(EARNED)) == (PROVIDER, 3 * PROVIDER)
    world.balances[EARNED] -= 3 * PROVIDER - 1  # spent meanwhile
    world.do(open_dispute(lines[:2], at_us=NOON_US + 6 * HOUR_US))
    assert world.facts(DisputeOpened)[0].reserved.units == 0
    world.do(rule(world, 1_000_000))
    assert (world.balance(PAYABLE), world.balance(EARNED)) == (0, 0)
    assert world.balance(OWED) == PROVIDER - 1


def test_after_the_window_nothing_is_held_even_before_the_job_has_matured_it() -> None:
    world = billed(1)
    world.do(open_dispute(world.lines(), at_us=NOON_US + 74 * HOUR_US))
    assert world.facts(DisputeOpened)[0].reserved.units == 0
    world.do(rule(world, 1_000_000, at_us=NOON_US + 75 * HOUR_US))
    assert world.balance(HOLDBACK) == 0, "it had not matured, so it was still taken from there"
    assert world.balance(OWED) == 0


def test_what_is_disputed_and_no_longer_held_back_cannot_leave_as_cash_until_it_is_over() -> None:
    """Design economics 17: nothing leaves that is disputed, and nothing else is held for it."""
    world = billed(0)
    no_window(world)
    accrue(world, 0)
    accrue(world, 1)
    mature(world, NOON_US + 3 * HOUR_US)
    world.do(open_dispute(world.lines()[:1], claimed=CHARGE // 2))
    kept = cash_out.held_units(world, OWNER)
    assert 0 < kept <= PROVIDER
    assert world.balance(RESERVE) == 0
    world.do(rule(world, 0))
    assert cash_out.held_units(world, OWNER) == 0


def test_what_waits_in_a_disputes_reserve_holds_no_cash_out() -> None:
    world = billed(2)
    world.do(open_dispute(world.lines()[:1]))
    assert world.balance(RESERVE) == PROVIDER
    assert cash_out.held_units(world, OWNER) == 0


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
    world.do(rule(world, 1_000_000, burn_promised=2 * part))
    assert world.balance("network:burn_due") == 2 * part
    assert world.balance("network:revenue:take") == 2 * part - part - part


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


def test_a_charge_can_be_disputed_for_ninety_days() -> None:
    world = billed(1)
    line = world.lines()[0]
    late = open_dispute([line], at_us=line.posted_at_us + OPEN_US_MAX)
    assert refused(world, late) is CorrectionsReason.DISPUTE_TOO_LATE
    assert world.do(replace(late, at_us=late.at_us - 1))


@pytest.mark.parametrize(
    ("signers", "wins"),
    [((), RENTER), ((OWNER,), OWNER), ((RENTER,), RENTER), ((OWNER, RENTER), RENTER)],
)
def test_after_ninety_days_the_only_side_with_signed_evidence_wins_else_the_renter(
    signers: tuple[str, ...], wins: str
) -> None:
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
    assert (resolved.outcome, resolved.unfounded) == ("timed_out", wins == OWNER)
    assert world.balance(RESERVE) == 0
    back = CHARGE if wins == RENTER else 0
    assert world.balance(f"party:{RENTER}:cash") == before + back
    assert world.balance(PAYABLE) == (PROVIDER if wins == OWNER else 0)


def resources(world: Booked, cash: int, owed: int) -> None:
    """A charge for another resource of the lease: so much from the balance, so much as a debt."""
    charge = cash + owed
    parts = Parts(fee=0, provider=charge // 2, platform=charge - charge // 2, burn=0)
    drawn = (Drawn(RENTER, "cash", credit(cash)),)
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
        events=1,
        events_chain="00" * 32,
        log_position=1,
        log_chain="00" * 32,
        sources=(),
        quantity=1,
        quantity_new=1,
        rate=None,
        tariff_version=1,
        charge=credit(charge),
        charge_new=credit(charge),
        parts=parts,
        parts_new=parts,
        drawn=drawn,
        owed=credit(owed),
        refused=(),
        at_us=NOON_US + 3 * HOUR_US,
    )
    world._record(Change(Stream("resource", f"{market.LEASE}/egress"), fact))
    world._book(fact)


@pytest.mark.parametrize(("still_owed", "as_grant"), [(400, 0), (150, 250), (0, 400)])
def test_a_charge_of_another_resource_is_disputed_alike_and_takes_a_debt_off_first(
    still_owed: int, as_grant: int
) -> None:
    world, debt = billed(1), f"party:{RENTER}:owed"
    resources(world, cash=600, owed=400)
    world.balances[debt] = still_owed  # some of it was paid meanwhile
    cash = world.balance(f"party:{RENTER}:cash")
    line = world.lines()[-1]
    assert (line.charge, line.gpu_us) == (1_000, 0)
    world.do(open_dispute([line]))
    assert world.balance(RESERVE) == 500
    world.do(rule(world, 1_000_000))
    assert world.balance(debt) == 0
    assert world.balance(f"party:{RENTER}:grant") == as_grant
    assert world.balance(f"party:{RENTER}:cash") == cash + 600


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
    matured=st.booleans(),
)
def test_a_reserve_is_conserved_whatever_is_ruled(
    used_us: int,
    burn_share_ppm: int,
    provider_share_ppm: int,
    grant: int,
    card: int,
    claim_ppm: int,
    ruling: int | None,
    matured: bool,
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
    started = world.total()
    lines = world.lines()
    if matured:
        mature(world, NOON_US + 80 * HOUR_US)
    claimed = max(1, min(line.charge for line in lines) * claim_ppm // 1_000_000)
    paid_out = {name: world.balance(name) for name in (HOLDBACK, PAYABLE, OWED)}
    at_us = NOON_US + 81 * HOUR_US if matured else 0
    world.do(open_dispute(lines, claimed, at_us=at_us))
    reserved = world.facts(DisputeOpened)[0].reserved.units
    assert world.balance(RESERVE) == reserved == paid_out[HOLDBACK] - world.balance(HOLDBACK)
    world.do(timeout(world) if ruling is None else rule(world, ruling))
    assert world.balance(RESERVE) == 0
    resolved = world.facts(DisputeResolved)[0]
    returned = sum(one.returned for one in world.facts(AdjustmentBooked))
    assert returned == resolved.upheld.units <= resolved.claimed.units
    for line in lines:
        state = corrections_of(world, line.position)
        assert state.recovered <= state.returned <= line.charge
        moved = [
            part
            for one in world.facts(AdjustmentBooked)
            if one.corrects_position == line.position
            for part in one.lines
        ]
        for payee in line.payees:
            taken = sum(part.units for part in moved if part.account == payee.account)
            assert taken <= payee.units
        for payer in line.payers:
            given = -sum(part.units for part in moved if part.account == payer.account)
            assert 0 <= given <= payer.units
    assert world.total() == started
