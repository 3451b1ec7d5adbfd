"""A lease paid by grants, payers and under budgets: what it holds, counts and gives back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.fleet.reasons import FleetReason
from domain.funds.budget import ACCOUNT, KEY, PROJECT, BudgetReleased, SetBudget, budget_of
from domain.funds.funding import PayerSet, PromotionGranted, SetPayer, Source, stream_of
from domain.funds.reasons import FundsReason
from domain.gpu_time import fee_for
from domain.lease.close_codes import FUNDS_ENDED
from domain.lease.escrow import TIME_MAX_US
from domain.lease.funds import EscrowPart, fee_funds_end_us, less
from domain.lease.lease import LeaseRestarted, TopUpLease, lease_of
from domain.lease.reasons import LeaseReason
from domain.leasing.request import asked_again
from domain.money import Asset, credit
from domain.parties.account import AccountOpened, ApiKeyIssued
from domain.parties.reasons import PartiesReason
from domain.stream import Stream
from tests.domain.scenes.market import (
    LEASE,
    NOON_US,
    RENTER,
    close,
    job,
    ready,
    request,
    reserve,
    scene,
    settle,
    usage,
)
from tests.given import refused
from tests.scenes.booked import Booked

PAYER = "acct_payer"
PRICE = 2_780_000


def world(**balances: int) -> Booked:
    """The market at noon, with a payer; balances like `renter_cash=5`."""
    made = Booked()
    for stream, fact in scene({}).past:
        made.record(stream, fact)
    opened = AccountOpened(account_id=PAYER, kind="party", opened_by="op", at_us=NOON_US)
    made.record(Stream("account", PAYER), opened)
    key = ApiKeyIssued(
        account_id=RENTER,
        key_id="key00001",
        key_sha256="00",
        member_id="m",
        scopes=(),
        expires_at_us=None,
        by_key_id=None,
        succeeds=None,
        at_us=NOON_US,
    )
    made.record(Stream("account", RENTER), key)
    for name, units in balances.items():
        who, _, source = name.partition("_")
        made.books[f"party:acct_{who}:{source}"] = units
        side = "world:burned" if source == "burned" else "world:bank"
        made.books[side] += units
    return made


def capped(scope: str, target: str, units: int, account: str = RENTER) -> SetBudget:
    return SetBudget(
        account_id=account, scope=scope, target=target, monthly=credit(units), by="m", at_us=NOON_US
    )


def used(made: Booked, scope: str, target: str, account: str = RENTER) -> int:
    return budget_of(made, account, scope, target).used_in("2026-11")


def opening(funds: int, key_id: str | None = None) -> list[Any]:
    return [job(), replace(request(funds=funds), key_id=key_id), reserve()]


def held(made: Booked) -> list[tuple[int, str, str | None, int]]:
    parts = lease_of(made, LEASE).held
    return [(part.number, part.source, part.account_id, part.amount.units) for part in parts]


def test_an_escrow_takes_the_accounts_own_credits_first_then_its_payers() -> None:
    """C-25: one payer for many accounts; what is not used goes back to whose it was."""
    made = world(renter_cash=1_000_000, payer_earned=500_000, payer_cash=9_000_000)
    made.do(SetPayer(account_id=RENTER, payer_account_id=PAYER, by="m", at_us=NOON_US))
    made.do(*opening(4_000_000))
    assert held(made) == [
        (1, "cash", None, 1_000_000),
        (2, "earned", PAYER, 500_000),
        (2, "cash", PAYER, 2_500_000),
    ]
    made.do(ready, close(HOUR_US // 2), settle(HOUR_US, (usage(0, HOUR_US // 2),)))
    assert made.of(f"party:{RENTER}") == {}
    spent = PRICE // 2 - 1_000_000
    assert made.of(f"party:{PAYER}") == {
        f"party:{PAYER}:earned": 500_000 - spent,
        f"party:{PAYER}:cash": 9_000_000,
    }
    assert made.total(Asset.CREDIT) == 0


def test_a_grants_rest_restores_the_grant_and_never_becomes_cash() -> None:
    made = world(renter_cash=5_000_000)
    granted = PromotionGranted(
        account_id=RENTER,
        program="spring",
        amount=credit(3_000_000),
        priority=1,
        expires_at_us=None,
        by="op",
        at_us=NOON_US,
    )
    made.books["grant:spring:fund"] = made.books["world:bank"] = 3_000_000
    made.books["world:bank"] += 5_000_000
    made.record(stream_of(RENTER), granted)
    made.do(*opening(4_000_000), ready)
    assert held(made) == [(1, "grant.spring", None, 3_000_000), (1, "cash", None, 1_000_000)]
    made.do(close(HOUR_US // 2), settle(HOUR_US, (usage(0, HOUR_US // 2),)))
    assert made.of(f"party:{RENTER}") == {
        f"party:{RENTER}:grant.spring": 3_000_000 - PRICE // 2,
        f"party:{RENTER}:cash": 5_000_000,
    }


def test_a_lease_counts_against_its_project_its_key_and_its_payers_cap() -> None:
    made = world(renter_cash=1_000_000, payer_cash=9_000_000)
    made.do(SetPayer(account_id=RENTER, payer_account_id=PAYER, by="m", at_us=NOON_US))
    made.do(capped(PROJECT, "p", 10_000_000), capped(KEY, "key00001", 4_000_000))
    made.do(capped(ACCOUNT, RENTER, 3_000_000, PAYER))
    made.do(*opening(4_000_000, "key00001"))
    caps = ((PROJECT, "p", RENTER), (KEY, "key00001", RENTER), (ACCOUNT, RENTER, PAYER))
    assert [used(made, *cap) for cap in caps] == [4_000_000, 4_000_000, 3_000_000]
    made.do(ready, close(HOUR_US // 2), settle(HOUR_US, (usage(0, HOUR_US // 2),)))
    spent = PRICE // 2
    assert [used(made, *cap) for cap in caps] == [spent, spent, spent - 1_000_000]
    assert budget_of(made, RENTER, PROJECT, "p").holds == ()


def test_a_budget_refuses_what_would_pass_it_and_nothing_is_held() -> None:
    made = world(renter_cash=9_000_000)
    made.do(capped(PROJECT, "p", 4_000_000))
    made.do(job(), request(funds=4_000_001))
    assert refused(made, reserve()) is PartiesReason.BUDGET_EXHAUSTED
    assert made.balance(f"party:{RENTER}:cash") == 9_000_000
    other = world(renter_cash=9_000_000)
    other.do(capped(KEY, "key00001", 3_000_000), *opening(4_000_000, "key00002"))
    assert used(other, KEY, "key00001") == 0, "another key's lease"


def test_a_cancelled_lease_gives_its_budgets_everything_back() -> None:
    made = world(renter_cash=9_000_000)
    made.do(capped(PROJECT, "p", 4_000_000), *opening(4_000_000), close(0))
    assert used(made, PROJECT, "p") == 0
    assert made.balance(f"party:{RENTER}:cash") == 9_000_000


def test_a_top_up_counts_where_its_depositor_has_a_cap_and_a_refill_takes_what_is_left() -> None:
    made = world(renter_cash=9_000_000, payer_cash=9_000_000)
    made.do(capped(PROJECT, "p", 5_000_000), *opening(4_000_000), ready)
    more = TopUpLease(lease_id=LEASE, account_id=RENTER, amount=credit(2_000_000), at_us=NOON_US)
    assert refused(made, more) is PartiesReason.BUDGET_EXHAUSTED
    made.do(replace(more, account_id=PAYER))
    assert used(made, PROJECT, "p") == 4_000_000, "a stranger's top-up is no money of the project's"
    made.do(replace(more, at_most=True))
    assert used(made, PROJECT, "p") == 5_000_000
    made.do(close(HOUR_US // 2), settle(HOUR_US, (usage(0, HOUR_US // 2),)))
    assert used(made, PROJECT, "p") == PRICE // 2
    assert made.balance(f"party:{PAYER}:cash") == 9_000_000
    released = [fact for fact in made.facts if isinstance(fact, BudgetReleased)]
    assert [fact.is_final for fact in released] == [False, True]


def test_a_cap_set_while_a_lease_runs_does_not_count_what_was_held_before() -> None:
    made = world(renter_cash=9_000_000)
    made.do(*opening(4_000_000), ready, capped(PROJECT, "p", 1))
    made.do(close(HOUR_US // 2), settle(HOUR_US, (usage(0, HOUR_US // 2),)))
    assert used(made, PROJECT, "p") == 0


@given(
    own=st.integers(0, 6_000_000),
    payers=st.integers(0, 6_000_000),
    cap=st.integers(0, 8_000_000),
    minutes=st.integers(1, 59),
)
def test_whatever_pays_the_lease_every_unit_comes_back_to_whose_it_was_or_was_charged(
    own: int, payers: int, cap: int, minutes: int
) -> None:
    made = world(renter_cash=own, payer_cash=payers)
    link = PayerSet(account_id=RENTER, payer_account_id=PAYER, by="m", at_us=NOON_US)
    made.record(stream_of(RENTER), link)
    made.do(capped(ACCOUNT, RENTER, cap, PAYER), job(), request(funds=4_000_000))
    if own + min(payers, cap) < 4_000_000:
        assert refused(made, reserve()) is FundsReason.CREDIT_TOO_LOW
        return
    made.do(reserve(), ready)
    us = minutes * 60_000_000
    made.do(close(us), settle(HOUR_US, (usage(0, us),)))
    charge = PRICE * us // HOUR_US
    paid = own - made.balance(f"party:{RENTER}:cash")
    paid_by_payer = payers - made.balance(f"party:{PAYER}:cash")
    assert paid + paid_by_payer == charge
    assert paid == min(own, charge), "the account's own credits go first"
    assert used(made, ACCOUNT, RENTER, PAYER) == paid_by_payer <= cap
    assert made.of("escrow:") == {}


# --- restart after top-up (C-25) ---------------------------------------------------------------

AGAIN = "lease_22222222"
again = replace(request(funds=PRICE), lease_id=AGAIN, restart_of=LEASE, at_us=NOON_US + HOUR_US)


def test_a_lease_whose_funds_ended_goes_on_as_another_one_exactly_once() -> None:
    made = world(renter_cash=PRICE)
    made.do(*opening(PRICE), ready)
    assert refused(made, again) is FleetReason.LEASE_STATE, "it still runs"
    made.do(close(HOUR_US, "job", FUNDS_ENDED))
    requested, link = reversed(made.do(again))
    assert link == LeaseRestarted(lease_id=LEASE, as_lease_id=AGAIN, at_us=again.at_us)
    assert requested.restart_of == LEASE
    assert lease_of(made, LEASE).restarted_as == AGAIN
    assert refused(made, replace(again, lease_id="lease_3")) is FleetReason.LEASE_STATE
    made.do(settle(HOUR_US, (usage(0, HOUR_US),)))
    assert lease_of(made, LEASE).status == "settled"


def test_the_lease_that_goes_on_is_asked_for_as_the_first_one_was() -> None:
    first = replace(
        request(funds=PRICE),
        project_id="p",
        refill=True,
        encryption_key="ab" * 32,
        remoting_session_id="r-1",
        split_label="decoder",
        pay_with="cash",
    )
    asked = lease_of(scene().after(job()).after(first), LEASE).requested
    assert asked is not None
    once_more = asked_again(asked, AGAIN, again.at_us)
    assert once_more == replace(first, lease_id=AGAIN, restart_of=LEASE, at_us=again.at_us)


def test_only_a_lease_whose_funds_ended_is_restarted_and_only_for_its_job() -> None:
    made = world(renter_cash=PRICE)
    made.do(*opening(PRICE), ready, close(HOUR_US // 2))
    assert refused(made, again) is FleetReason.LEASE_STATE, "the renter closed it"
    other = job(job_id="job_2")
    assert refused(made, other, replace(again, job_id="job_2")) is LeaseReason.LEASE_UNKNOWN
    assert refused(made, replace(again, restart_of="lease_no")) is LeaseReason.LEASE_UNKNOWN


def test_what_one_hold_takes_is_not_there_for_the_next_whoever_pays() -> None:
    sources = (Source(RENTER, "cash", 5), Source(PAYER, "cash", 7), Source(PAYER, "card", 1))
    taken = (
        EscrowPart("cash", credit(2)),
        EscrowPart("cash", credit(3), deposit=2, account_id=PAYER),
        EscrowPart("card", credit(1), deposit=2, account_id=PAYER),
    )
    left = (Source(RENTER, "cash", 3), Source(PAYER, "cash", 4))
    assert less(sources, taken, RENTER) == left
    assert less(sources, (), RENTER) == sources


def test_a_fee_of_nothing_lasts_as_long_as_the_calendar() -> None:
    assert TIME_MAX_US - 1_000_000 < fee_funds_end_us(NOON_US, 0, 0) <= TIME_MAX_US
    assert fee_funds_end_us(NOON_US, 0, 3_600) == NOON_US, "one a second"
    assert fee_funds_end_us(NOON_US, 7, 3_600) == NOON_US + 7_000_000


@given(st.integers(0, 10**12), st.integers(1, 10**9))
def test_a_fee_by_time_lasts_to_the_last_whole_second_that_is_paid_for(
    units: int, fee: int
) -> None:
    end_us = fee_funds_end_us(NOON_US, units, fee)
    assert fee_for(end_us - NOON_US, fee) <= units
    is_calendars_end = end_us + 1_000_000 > TIME_MAX_US
    assert is_calendars_end or fee_for(end_us - NOON_US + 1_000_000, fee) > units
    assert (end_us - NOON_US) % 1_000_000 == 0


@pytest.mark.parametrize(
    ("units", "fee", "seconds"),
    [
        (0, 1, 3_599),  # the 3,600th second is the first that costs a unit
        (1, 1, 7_199),
        (0, 3_599, 1),
        (0, 3_600, 0),
        (3_599, 3_600, 3_599),
        (7, 1_800, 15),  # a half a second: 7.5
        (1_850_000, 1_850_000, 3_600),
    ],
)
def test_the_last_second_of_a_fee_by_time_to_the_unit(units: int, fee: int, seconds: int) -> None:
    assert fee_funds_end_us(NOON_US, units, fee) == NOON_US + seconds * 1_000_000
