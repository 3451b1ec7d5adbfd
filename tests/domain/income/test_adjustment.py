"""Adjustments: exact, bounded by what they correct, and only over the accounts they may move."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.funds.reasons import FundsReason
from domain.income.adjustment import (
    BURN_DUE,
    NOTHING_UNBURNED,
    AdjustmentBooked,
    BookLine,
    Corrections,
    GrantGoodwill,
    Part,
    Taking,
    Unburned,
    UnburnedCharge,
    book,
    corrections_of,
    evolve,
    peel,
    peel_between,
)
from domain.income.reasons import IncomeReason
from domain.refusal import Reason, Refused
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.corrections import billed, open_dispute, rule
from tests.domain.scenes.market import NOON_US, RENTER
from tests.scenes.samples import sample

CASH = f"party:{RENTER}:cash"
PARTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=8)


def refused(world: Booked, command: object) -> Reason:
    with pytest.raises(Refused) as caught:
        world.do(command)
    return caught.value.reason


def goodwill(world: Booked, units: int, name: str = "adj_1", line: int = 0) -> GrantGoodwill:
    return GrantGoodwill(
        adjustment_id=name, line=world.lines()[line], units=units, by="member_9", at_us=NOON_US
    )


@given(units=PARTS, steps=st.lists(st.integers(0, 10**9), max_size=6))
def test_each_part_of_a_peel_is_monotone_and_they_sum_to_the_whole(
    units: list[int], steps: list[int]
) -> None:
    """Any way of giving back a charge in steps takes from each part what one step would."""
    parts = [Part(f"network:{index}", one) for index, one in enumerate(units)]
    whole, done = sum(units), 0
    taken = [0] * len(parts)
    for step in [*steps, whole]:
        after = min(whole, done + step)
        shares = peel_between(parts, done, after)
        assert sum(shares) == after - done
        taken = [before + share for before, share in zip(taken, shares, strict=True)]
        assert all(got <= part.units for got, part in zip(taken, parts, strict=True))
        assert tuple(taken) == peel(parts, after)
        done = after
    assert taken == units


def test_goodwill_is_given_by_the_network_alone_and_points_at_the_charge() -> None:
    world = billed(2)
    before, take = world.balance(CASH), world.balance("network:revenue:take")
    world.do(goodwill(world, 1_000))
    assert world.balance(CASH) == before + 1_000
    assert world.balance("network:revenue:take") == take - 1_000
    fact = world.facts(AdjustmentBooked)[0]
    assert (fact.reason, fact.corrects_position) == ("goodwill", world.lines()[0].position)
    assert (fact.returned, fact.recovered) == (1_000, 0)


def test_the_same_goodwill_twice_is_once() -> None:
    world = billed(1)
    assert world.do(goodwill(world, 1_000))
    assert world.do(goodwill(world, 1_000)) == []
    assert world.do(goodwill(world, 1_000, "adj_2"))


def test_corrections_of_one_charge_never_exceed_it_whoever_made_them() -> None:
    world = billed(3)
    charge = world.lines()[0].charge
    world.do(goodwill(world, 1_500_000))
    assert refused(world, goodwill(world, 1_500_000, "adj_2")) is IncomeReason.ADJUSTMENT_TOO_LARGE
    too_much = open_dispute(world.lines()[:1], charge - 1_500_000 + 1)
    assert refused(world, too_much) is IncomeReason.ADJUSTMENT_TOO_LARGE
    world.do(open_dispute(world.lines()[:1], charge - 1_500_000))
    assert refused(world, goodwill(world, 1, "adj_3")) is IncomeReason.LINE_DISPUTED
    world.do(rule(world, 1_000_000))
    state = corrections_of(world, world.lines()[0].position)
    assert (state.returned, state.recovered) == (charge, charge - 1_500_000)
    assert refused(world, goodwill(world, 1, "adj_3")) is IncomeReason.ADJUSTMENT_TOO_LARGE
    assert refused(world, goodwill(world, 0, "adj_3")) is FundsReason.AMOUNT_NOT_POSITIVE


def test_a_charge_has_a_bounded_number_of_corrections() -> None:
    world = billed(1)
    for number in range(100):
        world.do(goodwill(world, 1, f"adj_{number}"))
    assert refused(world, goodwill(world, 1, "adj_more")) is IncomeReason.ADJUSTMENT_TOO_LARGE


def test_the_network_gives_no_more_than_it_has_earned() -> None:
    world = billed(2)
    world.balances["network:revenue:take"] = 10
    world.balances["network:revenue:usage"] = 5
    assert refused(world, goodwill(world, 16)) is FundsReason.CREDIT_TOO_LOW
    world.do(goodwill(world, 15))
    assert world.balance("network:revenue:take") == world.balance("network:revenue:usage") == 0


@pytest.mark.parametrize(
    ("reason", "debit", "credit"),
    [
        ("goodwill", "party:acct_owner:holdback", "party:acct_renter:cash"),
        ("sla", "dispute:d", "party:acct_renter:cash"),
        ("dispute", "party:acct_renter:cash", "party:acct_owner:payable"),
        ("late_usage", "party:acct_owner:holdback", "network:revenue:take"),
        ("late_usage", "party:acct_renter:cash", "party:acct_owner:payable"),
    ],
)
def test_no_reason_moves_an_account_that_is_not_its_own(
    reason: str, debit: str, credit: str
) -> None:
    with pytest.raises(AssertionError):
        book(
            billed(1).lines()[0],
            [BookLine(debit, 1), BookLine(credit, -1)],
            adjustment_id="adj_1",
            reason=reason,
            cause="x",
            returned=1,
            recovered=1,
            by="m",
            at_us=NOON_US,
        )


def test_where_nothing_is_taken_of_a_payee_nothing_is_booked() -> None:
    world = billed(1)
    line = world.lines()[0]
    for account in ("party:acct_owner:holdback", "world:burned", BURN_DUE, "network:revenue:take"):
        taking = Taking(world, NOON_US)
        assert taking.take(Part(account, 5), 0, line, "x") == []
        assert (taking.changes, taking.owed) == ([], 0)


def test_what_no_burn_covers_is_that_of_the_charge_and_of_another_one_nothing() -> None:
    known = Unburned(3, (UnburnedCharge(5, 70, 1), UnburnedCharge(8, 90, 0)))
    assert known.of(5) == UnburnedCharge(5, 70, 1)
    assert known.of(8) == UnburnedCharge(8, 90, 0)
    assert known.of(6) == UnburnedCharge(6, 0, 0)
    assert NOTHING_UNBURNED.burns == 0
    assert NOTHING_UNBURNED.of(5) == UnburnedCharge(5, 0, 0)


def test_credits_that_were_retired_at_use_come_back_whole() -> None:
    world = billed(1)
    taking = Taking(world, NOON_US)
    line = world.lines()[0]
    assert taking.take(Part("world:burned", 9), 4, line, "x") == [BookLine("world:burned", 4)]
    assert (taking.changes, taking.owed) == ([], 0)


def test_what_was_charged_late_stays_known_when_the_charge_is_corrected_again() -> None:
    first = sample(AdjustmentBooked)
    second = replace(first, late=None, adjustment_id="adj_2")
    third = replace(first, late=replace(first.late, ppm_us=7), adjustment_id="adj_3")
    state = Corrections()
    for fact, late in (
        (second, None),
        (first, first.late),
        (second, first.late),
        (third, third.late),
    ):
        state = evolve(state, fact)
        assert state.late == late
    assert state.returned == 4 * first.returned
    assert (state.recovered, state.owed) == (4 * first.recovered, 4 * first.owed)
    assert state.booked.keys() == {first.adjustment_id, "adj_2", "adj_3"}
