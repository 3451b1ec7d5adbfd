"""Promotions: programs with a fund, grants with priority and expiry, and what becomes of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.account_closing import CloseAccount
from domain.funds.deposit import ConfirmDeposit
from domain.funds.funding import GRANTS_MAX, PromotionExpired, sources_of
from domain.funds.promotion import ClosePromotion, ExpirePromotion, GrantPromotion, OpenPromotion
from domain.funds.reasons import FundsReason
from domain.money import Asset, credit
from domain.parties.account import SIGN_UP, AccountOpened
from domain.parties.reasons import PartiesReason
from domain.parties.sign_up import VerifyAccount
from domain.refusal import Refused
from domain.stream import Stream
from tests.given import refused
from tests.scenes.booked import Booked

NOON_US = 1_795_176_000_000_000
DAY_US = 86_400_000_000
SPONSOR, RENTER = "acct_operator", "acct_renter"

opening = OpenPromotion(
    program="spring", sponsor_account_id=SPONSOR, amount=credit(1_000), by="op", at_us=NOON_US
)
granting = GrantPromotion(
    program="spring",
    account_id=RENTER,
    amount=credit(100),
    priority=10,
    expires_at_us=NOON_US + DAY_US,
    by="op",
    at_us=NOON_US,
)
expiring = ExpirePromotion(program="spring", account_id=RENTER, at_us=NOON_US + DAY_US)


def world(fund: int = 10_000) -> Booked:
    """A sponsor with cash, a renter without."""
    made = Booked()
    for who in (SPONSOR, RENTER):
        opened = AccountOpened(account_id=who, kind="party", opened_by="op", at_us=NOON_US)
        made.record(Stream("account", who), opened)
    made.do(
        ConfirmDeposit(
            deposit_id="d",
            account_id=SPONSOR,
            source="cash",
            amount=credit(fund),
            reference="r",
            confirmed_by="op",
            at_us=NOON_US,
        )
    )
    return made


def test_a_program_is_paid_for_by_its_sponsor_and_gives_back_what_it_did_not_grant() -> None:
    made = world()
    made.do(opening, granting)
    assert made.of("party:") == {
        f"party:{SPONSOR}:cash": 9_000,
        f"party:{RENTER}:grant.spring": 100,
    }
    assert made.of("grant:") == {"grant:spring:fund": 900}
    made.do(ClosePromotion(program="spring", by="op", at_us=NOON_US))
    assert made.balance(f"party:{SPONSOR}:cash") == 9_900
    assert made.of("grant:") == {}
    assert made.do(ClosePromotion(program="spring", by="op", at_us=NOON_US)) == []
    assert refused(made, granting) is FundsReason.PROMOTION_ENDED


def test_an_account_that_signed_itself_up_gets_a_promotion_once_the_operator_verified_it() -> None:
    made = world()
    stranger = "acct_stranger"
    opened = AccountOpened(account_id=stranger, kind="party", opened_by=SIGN_UP, at_us=NOON_US)
    made.record(Stream("account", stranger), opened)
    made.do(opening)
    to_stranger = replace(granting, account_id=stranger)
    assert refused(made, to_stranger) is PartiesReason.ACCOUNT_UNVERIFIED
    made.do(VerifyAccount(account_id=stranger, by="op", at_us=NOON_US), to_stranger)
    assert made.balance(f"party:{stranger}:grant.spring") == 100


def test_a_grant_expires_into_breakage_and_what_comes_back_later_does_too() -> None:
    made = world()
    made.do(opening, granting)
    assert made.do(replace(expiring, at_us=expiring.at_us - 1)) == [], "not a moment too early"
    (expired,) = made.do(expiring)
    assert isinstance(expired, PromotionExpired)
    assert made.of("network:") == {"network:breakage": 100}
    assert made.do(expiring) == [], "nothing is left to expire"
    # An escrow gives 30 back after the expiry: first to the grant, then to breakage; never to cash.
    made.books["network:breakage"] -= 30
    made.books[f"party:{RENTER}:grant.spring"] += 30
    assert sources_of(made, RENTER, "cash", expiring.at_us) == (), "expired before it is booked"
    made.do(expiring)
    assert made.of("network:") == {"network:breakage": 100}
    assert made.of(f"party:{RENTER}") == {}


def test_each_rule_of_programs_and_grants_refuses_by_its_name() -> None:
    made = world()
    assert refused(made, granting) is FundsReason.PROMOTION_UNKNOWN
    assert refused(made, replace(opening, amount=credit(10_001))) is FundsReason.CREDIT_TOO_LOW
    assert refused(made, replace(opening, amount=credit(0))) is FundsReason.AMOUNT_NOT_POSITIVE
    assert refused(made, replace(opening, program="a:b")) is FundsReason.BAD_PROGRAM
    made.do(opening, granting)
    assert refused(made, opening) is FundsReason.PROMOTION_EXISTS
    assert refused(made, replace(granting, priority=11)) is FundsReason.PROMOTION_TERMS
    assert refused(made, replace(granting, expires_at_us=None)) is FundsReason.PROMOTION_TERMS
    assert refused(made, replace(granting, account_id="x")) is PartiesReason.ACCOUNT_UNKNOWN
    assert refused(made, replace(granting, amount=credit(901))) is FundsReason.PROMOTION_FUND_SHORT
    assert refused(made, replace(granting, amount=credit(-1))) is FundsReason.AMOUNT_NOT_POSITIVE
    assert refused(made, replace(granting, at_us=expiring.at_us)) is FundsReason.PROMOTION_ENDED
    late = replace(granting, account_id=SPONSOR, expires_at_us=NOON_US)
    assert refused(made, late) is FundsReason.PROMOTION_ENDED
    asked = replace(granting, account_id=SPONSOR, priority=-1)
    assert refused(made, asked) is PartiesReason.COUNT_OUT_OF_RANGE


def test_an_account_holds_so_many_programs_and_no_more() -> None:
    made = world()
    for number in range(GRANTS_MAX):
        program = f"p{number}"
        made.do(
            replace(opening, program=program, amount=credit(1)),
            replace(granting, program=program, amount=credit(1)),
        )
    made.do(replace(opening, program="last"))
    assert refused(made, replace(granting, program="last")) is PartiesReason.COUNT_OUT_OF_RANGE


def test_a_closed_account_forfeits_its_grants_and_keeps_nothing_back() -> None:
    made = world()
    made.do(opening, granting)
    closing = CloseAccount(account_id=RENTER, lease_ids=(), node_ids=(), by="op", at_us=NOON_US)
    made.do(closing)
    assert made.of(f"party:{RENTER}") == {}
    assert made.balance("network:breakage") == 100


terms = st.tuples(
    st.integers(0, 3), st.sampled_from((None, 1, 2, 5)), st.integers(1, 50), st.integers(0, 6)
)


@given(st.lists(terms, max_size=8), st.integers(0, 4), st.integers(0, 50))
def test_grants_are_spent_by_priority_then_earliest_expiry_then_program_and_before_any_money(
    granted: list[tuple[int, int | None, int, int]], day: int, cash: int
) -> None:
    made, at_us = world(), NOON_US + day * DAY_US
    made.books[f"party:{RENTER}:cash"] = made.books[f"party:{RENTER}:earned"] = cash
    for number, (priority, days, units, _) in enumerate(granted):
        expires_at_us = None if days is None else NOON_US + days * DAY_US
        made.do(
            replace(opening, program=f"p{number}", amount=credit(100)),
            replace(
                granting,
                program=f"p{number}",
                priority=priority,
                amount=credit(units),
                expires_at_us=expires_at_us,
            ),
        )
    live = [
        (priority, days or 10**6, f"grant.p{number}", units)
        for number, (priority, days, units, _) in enumerate(granted)
        if days is None or days > day
    ]
    expected = [(name, units) for _, _, name, units in sorted(live)]
    expected += [(name, cash) for name in ("earned", "cash") if cash]
    found = [(one.name, one.units) for one in sources_of(made, RENTER, "cash", at_us)]
    assert found == expected
    assert sources_of(made, RENTER, "burn", at_us) == (), "a grant buys no burned credits"


steps = st.lists(
    st.tuples(st.sampled_from(("grant", "spend", "back", "expire", "close")), st.integers(1, 400)),
    max_size=30,
)


@given(steps)
def test_a_programs_fund_is_what_is_left_granted_held_spent_and_broken_to_the_unit(
    story: list[tuple[str, int]],
) -> None:
    """opened == fund + unspent + held + breakage + returned, after every step."""
    made, now_us = world(), NOON_US
    made.do(opening)
    grant, held, returned = f"party:{RENTER}:grant.spring", "escrow:l:1:grant.spring", 0
    for step, units in story:
        now_us += DAY_US // 10
        if step == "spend" and sources_of(made, RENTER, "cash", now_us):
            moved = min(units, made.balance(grant))
            made.books[grant] -= moved
            made.books[held] += moved
        elif step == "back":
            moved = min(units, made.balance(held))
            made.books[held] -= moved
            made.books[grant] += moved
        elif step == "grant":
            with suppress(Refused):  # the fund is short, or the program or the grant has ended
                made.do(replace(granting, amount=credit(units), at_us=now_us))
        elif step == "expire":
            made.do(replace(expiring, at_us=now_us))
        elif step == "close":
            made.do(ClosePromotion(program="spring", by="op", at_us=now_us))
        returned = made.balance(f"party:{SPONSOR}:cash") - 9_000
        parts = ("grant:spring:fund", grant, held, "network:breakage")
        assert sum(made.balance(part) for part in parts) + returned == 1_000
        assert made.total(Asset.CREDIT) == 0
