"""Budgets: monthly caps on what goes into escrow, whatever the order of holds and releases."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.funds.budget import (
    Budget,
    BudgetAlerted,
    Claim,
    SetBudget,
    budget_of,
    hold,
    left_this_month,
    month_at,
    release,
    target_of,
)
from domain.lease.budgets import LeaseParty, left_of
from domain.money import credit, token
from domain.parties.account import AccountOpened, ApiKeyIssued
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream
from tests.scenes.booked import Booked

NOON_US = 1_795_176_000_000_000  # 2026-11-20
DAY_US = 86_400_000_000
WHO = "acct_renter"


def world(limit: int | None = 1_000) -> Booked:
    made = Booked()
    stream = Stream("account", WHO)
    at: dict[str, Any] = {"account_id": WHO, "at_us": NOON_US}
    made.record(stream, AccountOpened(kind="party", opened_by="op", **at))
    made.record(
        stream,
        ApiKeyIssued(
            key_id="key00001",
            key_sha256="00",
            member_id="m",
            scopes=(),
            expires_at_us=None,
            by_key_id=None,
            succeeds=None,
            **at,
        ),
    )
    if limit is not None:
        made.do(setting(limit))
    return made


def setting(limit: int | None, scope: str = "project", target: str = "p") -> SetBudget:
    monthly = None if limit is None else credit(limit)
    return SetBudget(
        account_id=WHO, scope=scope, target=target, monthly=monthly, by="m", at_us=NOON_US
    )


def claim(units: int, scope: str = "project", target: str = "p") -> Claim:
    return Claim(WHO, scope, target, units)


def budget(made: Booked) -> Budget:
    return budget_of(made, WHO, "project", "p")


def record(made: Booked, changes: list[Change]) -> list[Any]:
    for change in changes:
        made.record(change.stream, change.fact)
    return [change.fact for change in changes]


def test_a_rotated_key_shares_the_cap_and_what_was_used_of_it() -> None:
    """The attack: rotate a capped key, and its successor spends as if there were no cap."""
    made = world(limit=None)
    made.do(setting(1_000, "key", "key00001"))
    record(made, hold(made, [claim(600, "key", "key00001")], "lease_1", NOON_US))
    stream = Stream("account", WHO)
    for old, new in (("key00001", "key00002"), ("key00002", "key00003")):
        made.record(
            stream,
            ApiKeyIssued(
                account_id=WHO,
                key_id=new,
                key_sha256="00",
                member_id="m",
                scopes=(),
                expires_at_us=None,
                by_key_id=old,
                succeeds=old,
                at_us=NOON_US,
            ),
        )
    assert target_of(made, WHO, "key", "key00003") == "key00001"
    asked = LeaseParty("lease_2", WHO, "", "key00003")
    assert left_of(made, asked, 5_000, NOON_US) == 400
    (lowered,) = made.do(setting(500, "key", "key00003"))
    assert lowered.target == "key00001", "a cap set on the successor is the same cap"
    assert left_of(made, asked, 5_000, NOON_US) == 0


def test_a_cap_counts_what_goes_into_escrow_less_what_comes_back() -> None:
    made = world()
    record(made, hold(made, [claim(600)], "lease_1", NOON_US))
    with pytest.raises(Refused) as caught:
        hold(made, [claim(401)], "lease_2", NOON_US)
    assert caught.value.reason is PartiesReason.BUDGET_EXHAUSTED
    assert caught.value.facts == {
        "scope": "project",
        "target": "p",
        "month": "2026-11",
        "limit": 1_000,
        "used": 600,
        "asked": 401,
    }
    record(made, release(made, [claim(1)], "lease_1", NOON_US, is_final=False))
    record(made, hold(made, [claim(401)], "lease_2", NOON_US))
    assert budget(made).used_in("2026-11") == 1_000


def test_without_a_cap_nothing_is_recorded_and_nothing_refused() -> None:
    made = world(limit=None)
    claims = [claim(10**12), claim(10**12, "key", "key00001")]
    assert hold(made, claims, "lease_1", NOON_US) == []
    assert release(made, claims, "lease_1", NOON_US, is_final=True) == []


def test_what_comes_back_in_a_later_month_is_taken_off_the_month_it_was_held_in() -> None:
    made = world()
    december = NOON_US + 15 * DAY_US
    assert (month_at(NOON_US), month_at(december)) == ("2026-11", "2026-12")
    record(made, hold(made, [claim(600)], "lease_1", NOON_US))
    record(made, hold(made, [claim(900)], "lease_1", december))
    record(made, release(made, [claim(1_000)], "lease_1", december, is_final=False))
    assert (budget(made).used_in("2026-11"), budget(made).used_in("2026-12")) == (500, 0)
    record(made, release(made, [claim(0)], "lease_1", december, is_final=True))
    assert budget(made).holds == (), "a settled lease is forgotten"


def test_each_threshold_is_told_once_a_month_and_again_under_a_new_cap() -> None:
    made = world()

    def told(units: int, lease: str, at_us: int = NOON_US) -> list[int]:
        facts = record(made, hold(made, [claim(units)], lease, at_us))
        return [fact.percent for fact in facts if isinstance(fact, BudgetAlerted)]

    assert told(799, "a") == []
    assert told(1, "b") == [80]
    assert told(100, "c") == []
    record(made, release(made, [claim(800)], "a", NOON_US, is_final=True))
    assert told(700, "d") == [], "told already this month"
    assert told(199, "e") == [100]
    made.do(setting(2_000))
    assert told(600, "f") == [80]
    assert told(2_000, "g", NOON_US + 15 * DAY_US) == [80, 100]


def test_a_cap_is_set_for_what_there_is_and_setting_it_again_is_nothing() -> None:
    made = world()
    assert made.do(setting(1_000)) == []
    assert [len(made.do(setting(None))), len(made.do(setting(None)))] == [1, 0]
    made.do(setting(5, "key", "key00001"))
    refusals = {
        PartiesReason.API_KEY_UNKNOWN: setting(5, "key", "key00002"),
        PartiesReason.UNKNOWN_MODE: setting(5, "team"),
        PricesReason.AMOUNT_OUT_OF_RANGE: setting(-1),
    }
    for reason, command in refusals.items():
        with pytest.raises(Refused) as caught:
            made.do(command)
        assert caught.value.reason is reason
    with pytest.raises(Refused):
        made.do(
            SetBudget(
                account_id=WHO, scope="project", target="p", monthly=token(5), by="m", at_us=NOON_US
            )
        )


moves = st.lists(
    st.tuples(
        st.sampled_from(("hold", "back", "settle", "cap")),
        st.integers(0, 4),
        st.integers(1, 700),
        st.integers(0, 3),
    ),
    max_size=40,
)


@given(moves)
def test_a_month_never_holds_more_than_its_cap_under_any_order_of_holds_and_releases(
    story: list[tuple[str, int, int, int]],
) -> None:
    """used(month) == held in it - come back of it, and no hold ever takes it above the limit."""
    made, limit, day = world(), 1_000, 0
    # (lease, month) -> held and not come back; what settled leases kept, by month
    open_: dict[tuple[str, str], int] = {}
    spent: dict[str, int] = {}
    for move, number, units, days in story:
        day += days
        at_us, lease = NOON_US + day * DAY_US, f"lease_{number}"
        month = month_at(at_us)
        if move == "cap":
            limit = units
            made.do(setting(limit))
        elif move == "hold":
            with suppress(Refused):
                record(made, hold(made, [claim(units)], lease, at_us))
                open_[lease, month] = open_.get((lease, month), 0) + units
                assert budget(made).used_in(month) <= limit
        else:
            mine = sorted((m for one, m in open_ if one == lease), reverse=True)
            back = min(units, sum(open_[lease, m] for m in mine))
            is_final = move == "settle"
            record(made, release(made, [claim(back)], lease, at_us, is_final=is_final))
            for m in mine:  # the latest hold first
                here = min(back, open_[lease, m])
                back -= here
                open_[lease, m] -= here
                if is_final:
                    spent[m] = spent.get(m, 0) + open_.pop((lease, m))
        used = spent.get(month, 0) + sum(held for (_, m), held in open_.items() if m == month)
        assert budget(made).used_in(month) == used
        left = left_this_month(made, WHO, "project", "p", at_us)
        assert left == max(0, limit - used)


def test_what_one_lease_gives_back_leaves_what_others_hold() -> None:
    """Lease b held before and after a; each has what it held and did not get back."""
    made = world()
    for lease, units in (("b", 100), ("a", 200), ("b", 50), ("a", 30)):
        record(made, hold(made, [claim(units)], lease, NOON_US))
    record(made, release(made, [claim(210)], "a", NOON_US, is_final=False))
    assert budget(made).used_in("2026-11") == 170
    assert [(one.lease_id, one.units) for one in budget(made).holds] == [
        ("b", 100),
        ("a", 20),
        ("b", 50),
    ]
    record(made, release(made, [claim(5)], "a", NOON_US, is_final=True))
    assert budget(made).used_in("2026-11") == 165
    assert [one.lease_id for one in budget(made).holds] == ["b", "b"]
    assert release(made, [claim(9)], "a", NOON_US, is_final=True) == [], "it holds nothing more"


def test_a_month_without_holds_is_forgotten_with_what_was_told_of_it() -> None:
    made, december = world(), NOON_US + 15 * DAY_US
    record(made, hold(made, [claim(900)], "a", NOON_US))
    record(made, hold(made, [claim(1)], "b", december))
    assert (budget(made).used, budget(made).alerted) == (
        {"2026-11": 900, "2026-12": 1},
        {"2026-11": 80},
    )
    record(made, release(made, [claim(0)], "a", december, is_final=True))
    record(made, hold(made, [claim(1)], "b", december))
    assert (budget(made).used, budget(made).alerted) == ({"2026-12": 2}, {})


def test_a_cap_is_of_credits_and_between_nothing_and_a_billion_of_them() -> None:
    made = world(limit=None)
    for units in (0, 10**15):
        (fact,) = made.do(setting(units))
        assert fact.monthly == credit(units)
    for wrong in (setting(10**15 + 1), setting(-1), replace(setting(5), monthly=token(5))):
        with pytest.raises(Refused) as caught:
            made.do(wrong)
        assert caught.value.reason is PricesReason.AMOUNT_OUT_OF_RANGE
    with pytest.raises(Refused) as caught:
        made.do(replace(setting(5), account_id="acct_x"))
    assert caught.value.reason is PartiesReason.ACCOUNT_UNKNOWN


def test_of_a_cap_that_was_lowered_below_what_is_used_nothing_is_left() -> None:
    made = world()
    record(made, hold(made, [claim(600)], "a", NOON_US))
    assert left_this_month(made, WHO, "project", "p", NOON_US) == 400
    made.do(setting(599))
    assert left_this_month(made, WHO, "project", "p", NOON_US) == 0
    made.do(setting(600))
    with pytest.raises(Refused):
        hold(made, [claim(1)], "b", NOON_US)
    assert hold(made, [claim(0)], "b", NOON_US) == []
