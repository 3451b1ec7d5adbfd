"""What an account may spend, in spend order (design economics 5)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.funds.budget import ACCOUNT, BudgetReleased, Claim, SetBudget, budget_of, hold, spend
from domain.funds.draw import draw
from domain.funds.funding import (
    BURN_SOURCES,
    CASH_SOURCES,
    GRANTS_MAX,
    EndPayer,
    Funding,
    PromotionGranted,
    SetPayer,
    Source,
    evolve,
    funding_of,
    sources_of,
    stream_of,
)
from domain.funds.reasons import FundsReason
from domain.money import credit
from domain.parties.account import AccountOpened
from domain.parties.reasons import PartiesReason
from domain.stream import Stream
from tests.domain.scenes.market import NOON_US, RENTER
from tests.given import Scene, refused
from tests.scenes.booked import Booked

held = st.dictionaries(
    st.sampled_from((*CASH_SOURCES, *BURN_SOURCES)), st.integers(0, 10**12), max_size=5
)


@given(held, st.sampled_from(("cash", "burn")))
def test_sources_are_spent_least_regretted_first_and_only_those_that_hold_something(
    balances: dict[str, int], settlement: str
) -> None:
    world = Scene().having({f"party:{RENTER}:{name}": units for name, units in balances.items()})
    names = CASH_SOURCES if settlement == "cash" else BURN_SOURCES
    assert sources_of(world, RENTER, settlement, NOON_US) == tuple(
        Source(RENTER, name, balances[name]) for name in names if balances.get(name)
    )


def test_a_program_that_grants_again_is_one_source_with_the_new_expiry() -> None:
    made = payers()
    made.books["grant:spring:fund"] = made.books["world:bank"] = 9
    first = PromotionGranted(
        account_id=RENTER,
        program="spring",
        amount=credit(4),
        priority=1,
        expires_at_us=NOON_US + 1,
        by="op",
        at_us=NOON_US,
    )
    made.record(stream_of(RENTER), first)
    made.record(stream_of(RENTER), replace(first, amount=credit(5), expires_at_us=NOON_US + 2))
    both = (Source(RENTER, "grant.spring", 9),)
    assert sources_of(made, RENTER, "cash", NOON_US) == both
    assert sources_of(made, RENTER, "cash", NOON_US + 1) == both, "by the new terms it is live"
    assert sources_of(made, RENTER, "cash", NOON_US + 2) == ()
    assert len(funding_of(made, RENTER).promotions) == 1


def test_of_two_grants_the_lower_number_goes_first_then_what_expires_first_then_the_name() -> None:
    grants = (("b", 1, 5), ("a", 1, 5), ("c", 1, 4), ("d", 1, None), ("e", 0, None), ("f", 2, 1))
    state = Funding()
    for program, priority, expires_us in grants:
        fact = PromotionGranted(
            account_id=RENTER,
            program=program,
            amount=credit(1),
            priority=priority,
            expires_at_us=expires_us,
            by="op",
            at_us=0,
        )
        state = evolve(state, fact)
    assert [one.program for one in state.promotions] == ["e", "c", "a", "b", "d", "f"]


def test_without_a_budget_nothing_is_counted_and_nothing_is_told() -> None:
    assert spend(payers(), Claim(RENTER, ACCOUNT, RENTER, 5), "device_fee/0", NOON_US) == []


# --- one payer for many accounts (C-25) -------------------------------------------------------

PAYER, DAY_US = "acct_payer", 86_400_000_000
setting = SetPayer(account_id=RENTER, payer_account_id=PAYER, by="m", at_us=NOON_US)
ending = EndPayer(account_id=RENTER, payer_account_id=PAYER, by="m", at_us=NOON_US)


def payers(**balances: int) -> Booked:
    """Two accounts; balances like `payer_cash=5`."""
    made = Booked()
    for who in (RENTER, PAYER, "acct_other"):
        opened = AccountOpened(account_id=who, kind="party", opened_by="op", at_us=NOON_US)
        made.record(Stream("account", who), opened)
    for name, units in balances.items():
        who, _, source = name.partition("_")
        made.books[f"party:acct_{who}:{source}"] = units
    return made


def test_a_payers_balances_are_spent_after_the_accounts_own() -> None:
    made = payers(renter_cash=5, payer_earned=7, payer_card=9, payer_burned=11)
    made.do(setting)
    assert sources_of(made, RENTER, "cash", NOON_US) == (
        Source(RENTER, "cash", 5),
        Source(PAYER, "earned", 7),
        Source(PAYER, "card", 9),
    )
    assert sources_of(made, RENTER, "burn", NOON_US) == (Source(PAYER, "burned", 11),)
    assert sources_of(made, PAYER, "cash", NOON_US) == (
        Source(PAYER, "earned", 7),
        Source(PAYER, "card", 9),
    ), "nobody pays for the payer"
    made.do(ending)
    assert sources_of(made, RENTER, "cash", NOON_US) == (Source(RENTER, "cash", 5),)


def test_a_payers_debt_stops_its_sources_and_not_the_accounts_own() -> None:
    made = payers(renter_cash=5, payer_cash=7, payer_owed=1)
    made.do(setting)
    assert sources_of(made, RENTER, "cash", NOON_US) == (Source(RENTER, "cash", 5),)


def test_an_account_has_one_payer_and_setting_and_ending_twice_is_once() -> None:
    made = payers()
    assert [len(made.do(setting)), len(made.do(setting))] == [1, 0]
    other = replace(setting, payer_account_id="acct_other")
    assert refused(made, other) is FundsReason.PAYER_EXISTS
    assert (
        refused(made, replace(ending, payer_account_id="acct_other")) is FundsReason.PAYER_UNKNOWN
    )
    assert [len(made.do(ending)), len(made.do(ending))] == [1, 0]
    assert len(made.do(other)) == 1
    himself = replace(setting, account_id=PAYER)
    assert refused(made, himself) is PartiesReason.NOT_PERMITTED
    for unknown in (
        replace(setting, account_id="acct_no"),
        replace(setting, payer_account_id="acct_no"),
        replace(ending, account_id="acct_no"),
    ):
        assert refused(made, unknown) is PartiesReason.ACCOUNT_UNKNOWN


@given(
    st.lists(st.integers(0, 60), min_size=3, max_size=3),
    st.one_of(st.none(), st.integers(0, 100)),
    st.integers(0, 100),
)
def test_a_payer_pays_at_most_what_is_left_of_its_monthly_cap(
    balances: list[int], cap: int | None, used: int
) -> None:
    earned, cash, card = balances
    made = payers(payer_earned=earned, payer_cash=cash, payer_card=card)
    made.do(setting)
    claim = Claim(PAYER, ACCOUNT, RENTER, used)
    if cap is not None:
        made.do(
            SetBudget(
                account_id=PAYER,
                scope=ACCOUNT,
                target=RENTER,
                monthly=credit(max(cap, used)),
                by="m",
                at_us=NOON_US,
            )
        )
        for change in hold(made, [claim], "lease_1", NOON_US):
            made.record(change.stream, change.fact)
        assert hold(made, [replace(claim, units=0)], "lease_2", NOON_US) == []
    left = sum(balances) if cap is None else max(cap, used) - used
    found = sources_of(made, RENTER, "cash", NOON_US)
    assert sum(one.units for one in found) == min(sum(balances), left)
    assert all(one.units > 0 for one in found)
    full = {"earned": earned, "cash": cash, "card": card}
    assert [one.units for one in found[:-1]] == [full[one.name] for one in found[:-1]]
    next_month = sources_of(made, RENTER, "cash", NOON_US + 15 * DAY_US)
    limit = sum(balances) if cap is None else max(cap, used)
    assert sum(one.units for one in next_month) == min(sum(balances), limit)


# --- charges without an escrow -----------------------------------------------------------------


def test_what_is_drawn_from_a_payer_counts_against_what_it_allows_the_account() -> None:
    made = payers(renter_cash=5, payer_cash=100)
    made.do(setting)
    allowed = SetBudget(
        account_id=PAYER, scope=ACCOUNT, target=RENTER, monthly=credit(30), by="m", at_us=NOON_US
    )
    made.do(allowed)
    owed = []
    for day, units in enumerate((20, 20, 20)):
        taken = draw(made, RENTER, units, NOON_US)
        owed.append(taken.owed.units)
        for one in taken.drawn:
            made.books[f"party:{one.account_id}:{one.source}"] -= one.amount.units
        for change in taken.counted(made, f"device_fee/{day}", NOON_US):
            made.record(change.stream, change.fact)
    assert owed == [0, 5, 20], "5 of its own and 30 of the payer's, and not a unit more"
    budget = budget_of(made, PAYER, ACCOUNT, RENTER)
    assert (budget.used, budget.holds) == ({"2026-11": 30}, ())
    assert draw(made, RENTER, 1, NOON_US + 15 * DAY_US).owed.units == 0, "another month"
    over = [fact for fact in made.facts if isinstance(fact, BudgetReleased)]
    assert {(one.account_id, one.scope, one.target) for one in over} == {(PAYER, ACCOUNT, RENTER)}
    assert [(one.lease_id, one.amount, one.is_final) for one in over] == [
        ("device_fee/0", credit(0), True),
        ("device_fee/1", credit(0), True),
    ]


def test_an_account_has_64_grants_at_most() -> None:
    assert GRANTS_MAX == 64
