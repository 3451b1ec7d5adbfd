"""A payment was reversed: what leases hold of it goes back, and nobody who earned it loses it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.corrections.reversal import TakeFundsBack
from domain.duration import HOUR_US
from domain.funds.budget import PROJECT, SetBudget, budget_of
from domain.funds.payment import (
    PaymentFundsTaken,
    PaymentStarted,
    ReceivePayment,
    ReversePayment,
    payment_of,
)
from domain.funds.payment import stream_of as payment_stream
from domain.lease.lease import (
    AccrueUsage,
    Lease,
    LeaseClosed,
    LeaseSettled,
    TopUpLease,
    UsageAccrued,
)
from domain.lease.turns import LeaseFundsTaken
from domain.metering.counting import UsageRow
from domain.money import Asset, credit
from domain.parties.account import AccountOpened
from domain.stream import Stream
from tests.domain.scenes.market import (
    LEASE,
    NOON_US,
    OWNER,
    RENTER,
    close,
    job,
    lease_stream,
    ready,
    request,
    reserve,
    scene,
    settle,
    usage,
)
from tests.scenes.booked import Booked

MINUTE_US = 60_000_000
PRICE = 2_780_000
PAYMENT = "pay_1"


def world(
    paid: int,
    *,
    cash: int = 0,
    funds: int | None = None,
    term_us: int | None = None,
    runs: bool = True,
) -> Booked:
    """A lease that money by card funds, and cash where the card's is not enough."""
    made = Booked()
    for stream, fact in scene().past:
        made.record(stream, fact)
    made.books[f"party:{RENTER}:cash"] = cash
    made.books["world:bank"] = cash
    started = PaymentStarted(
        payment_id=PAYMENT,
        account_id=RENTER,
        method="card",
        processor="stripe",
        amount=credit(paid),
        cause="order",
        saved_method=None,
        chargeback_window_us=HOUR_US * 9_999,
        expires_at_us=NOON_US + HOUR_US,
        by="mem",
        at_us=NOON_US,
    )
    made.record(payment_stream(PAYMENT), started)
    made.do(
        ReceivePayment(
            payment_id=PAYMENT, amount=credit(paid), reference="pi_1", by="stripe", at_us=NOON_US
        )
    )
    made.do(job(), request(term_us, funds), reserve())
    if runs:
        made.do(ready)
    return made


def reverse(units: int, after_us: int, dispute: str = "dp_1") -> ReversePayment:
    return ReversePayment(
        payment_id=PAYMENT,
        reference=dispute,
        amount=credit(units),
        reason="fraudulent",
        at_us=NOON_US + after_us,
    )


def take(after_us: int) -> TakeFundsBack:
    return TakeFundsBack(payment_id=PAYMENT, lease_id=LEASE, at_us=NOON_US + after_us)


def lease_in(made: Booked) -> Lease:
    lease = made.state(lease_stream)
    assert isinstance(lease, Lease)
    return lease


def owed(made: Booked) -> int:
    return made.balance(f"party:{RENTER}:owed")


def accrue(hours: int) -> AccrueUsage:
    rows = (usage((hours - 1) * HOUR_US, hours * HOUR_US, position=hours),)
    return AccrueUsage(
        lease_id=LEASE, lane=1, usage_position=hours, rows=rows, at_us=NOON_US + hours * HOUR_US
    )


def test_a_lease_that_nothing_funds_any_more_closes_with_102_at_the_moment_of_the_reversal() -> (
    None
):
    made = world(10_000_000, funds=10_000_000)
    made.do(accrue(1))
    made.do(reverse(10_000_000, HOUR_US))
    assert owed(made) == 10_000_000
    taken, closed = made.do(take(HOUR_US))[:2]
    assert isinstance(taken, LeaseFundsTaken)
    assert sum(part.amount.units for part in taken.parts) == 10_000_000 - PRICE
    assert isinstance(closed, LeaseClosed)
    assert (closed.code, closed.party, closed.closed_at_us) == (102, "job", NOON_US + HOUR_US)
    assert owed(made) == PRICE, "what was used"
    assert made.do(take(HOUR_US)) == []


def test_what_was_used_and_not_charged_yet_is_paid_to_the_provider_and_owed() -> None:
    """Half an hour, nothing of it accrued: the escrow is empty, and the charge is the same."""
    made = world(10_000_000, funds=10_000_000)
    made.do(reverse(10_000_000, HOUR_US // 2), take(HOUR_US // 2))
    assert made.of(f"escrow:{LEASE}:") == {}
    made.do(settle(HOUR_US, (usage(0, HOUR_US // 2),)))
    (accrued,) = (fact for fact in made.facts if isinstance(fact, UsageAccrued))
    assert accrued.charge == credit(PRICE // 2)
    assert accrued.owed is not None
    assert (accrued.owed.account_id, accrued.owed.amount) == (RENTER, credit(PRICE // 2))
    assert owed(made) == PRICE // 2
    assert made.balance(f"party:{OWNER}:holdback") == accrued.parts.provider > 0


def test_a_lease_that_still_has_funds_goes_on_to_an_earlier_second() -> None:
    """Of 10 by card 4 go: what is left ends at the second that 6 credits pay."""
    made = world(10_000_000, funds=10_000_000)
    made.do(reverse(4_000_000, HOUR_US), take(HOUR_US))
    after = lease_in(made)
    assert (after.status, owed(made)) == ("active", 0)
    seconds = (after.window_end_us - NOON_US) // 1_000_000
    assert seconds * PRICE <= 6_000_000 * 3_600 < (seconds + 1) * PRICE
    assert made.do(reverse(4_000_000, HOUR_US), take(HOUR_US)) == []


def test_a_fixed_term_that_is_not_paid_for_any_more_ends() -> None:
    made = world(10_000_000, term_us=3 * HOUR_US)
    made.do(reverse(5_000_000, HOUR_US), take(HOUR_US))
    assert lease_in(made).status == "closing"
    made.do(settle(2 * HOUR_US, (usage(0, HOUR_US),)))
    assert owed(made) == 0
    assert made.balance(f"party:{RENTER}:card") == 5_000_000 - PRICE


def test_a_lease_that_has_not_begun_and_has_no_hour_left_gives_all_of_it_back() -> None:
    made = world(10_000_000, funds=10_000_000, runs=False)
    made.do(reverse(8_000_000, MINUTE_US), take(MINUTE_US))
    assert (lease_in(made).status, owed(made)) == ("settled", 0)
    assert made.balance(f"party:{RENTER}:card") == 2_000_000


def test_a_lease_that_has_not_begun_and_has_an_hour_left_goes_on() -> None:
    made = world(10_000_000, funds=10_000_000, runs=False)
    made.do(reverse(3_000_000, MINUTE_US), take(MINUTE_US), ready)
    assert (lease_in(made).status, owed(made)) == ("active", 0)
    seconds = (lease_in(made).window_end_us - NOON_US) // 1_000_000
    assert seconds * PRICE <= 7_000_000 * 3_600 < (seconds + 1) * PRICE


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("term_us", [None, 3 * HOUR_US])
def test_nobody_ends_a_strangers_lease_with_a_deposit_that_is_taken_back(
    runs: bool, term_us: int | None
) -> None:
    """What the renter put in pays for the lease: only the stranger's cents go again."""
    made = world(
        1_000_000, cash=10_000_000, term_us=term_us, runs=runs, funds=None if term_us else 9_000_000
    )
    before = None if lease_in(made).opened is None else lease_in(made).window_end_us
    _account(made, "acct_stranger", 10_000)
    made.do(
        TopUpLease(lease_id=LEASE, account_id="acct_stranger", amount=credit(10_000), at_us=NOON_US)
    )
    at_us = NOON_US + MINUTE_US
    made.do(
        ReversePayment(
            payment_id="pay_2",
            reference="dp_2",
            amount=credit(10_000),
            reason="fraudulent",
            at_us=at_us,
        )
    )
    made.do(TakeFundsBack(payment_id="pay_2", lease_id=LEASE, at_us=at_us))
    assert lease_in(made).status == ("active" if runs else "reserved")
    assert before is None or lease_in(made).window_end_us == before
    assert (made.balance("party:acct_stranger:owed"), owed(made)) == (0, 0)


def _account(made: Booked, account_id: str, paid: int) -> None:
    """Somebody else, with money by card."""
    opened = AccountOpened(account_id=account_id, kind="party", opened_by="op", at_us=0)
    made.record(Stream("account", account_id), opened)
    started = PaymentStarted(
        payment_id="pay_2",
        account_id=account_id,
        method="card",
        processor="stripe",
        amount=credit(paid),
        cause="order",
        saved_method=None,
        chargeback_window_us=HOUR_US * 9_999,
        expires_at_us=NOON_US + HOUR_US,
        by="mem",
        at_us=NOON_US,
    )
    made.record(payment_stream("pay_2"), started)
    made.do(
        ReceivePayment(
            payment_id="pay_2", amount=credit(paid), reference="pi_2", by="stripe", at_us=NOON_US
        )
    )


def test_money_of_another_sort_or_of_somebody_else_stays() -> None:
    """The lease is filled with cash; only what came by card is taken."""
    made = world(3_000_000, cash=20_000_000, funds=22_000_000)
    held = {part.source: part.amount.units for part in lease_in(made).held}
    assert held == {"cash": 20_000_000, "card": 2_000_000}
    made.do(reverse(3_000_000, HOUR_US), take(HOUR_US))
    assert {part.source for part in lease_in(made).held} == {"cash"}
    assert owed(made) == 0


def test_a_lease_reserved_after_the_reversal_was_paid_for_with_other_money() -> None:
    made = world(10_000_000, funds=10_000_000)
    early = replace(reverse(10_000_000, 0), at_us=NOON_US - 1)
    made.do(early)
    assert made.do(take(HOUR_US)) == []


@given(
    paid=st.integers(278, 3_000).map(lambda cents: cents * 10_000),
    cash=st.integers(0, 10_000_000),
    fund=st.integers(PRICE, 30_000_000),
    takings=st.lists(st.integers(1, 12_000_000), min_size=1, max_size=4),
    minutes=st.integers(0, 300),
    reported=st.integers(0, 300),
    more=st.integers(0, 3_000_000),
)
def test_no_unit_is_lost_whatever_is_taken_back_and_the_provider_is_paid_what_was_served(
    paid: int, cash: int, fund: int, takings: list[int], minutes: int, reported: int, more: int
) -> None:
    """card + cash put in == paid for usage + left + taken by the bank - owed, after every fact."""
    made = world(paid, cash=cash, funds=min(fund, paid + cash))
    start_us = lease_in(made).window_end_us
    at_us = min(minutes * MINUTE_US, start_us - NOON_US - 1)
    gone = 0
    for number, units in enumerate(takings):
        left = payment_of(made, PAYMENT).left
        if not left:
            break
        units = min(units, left)
        gone += units
        made.do(reverse(units, at_us, f"dp_{number}"), take(at_us))
        assert made.do(reverse(units, at_us, f"dp_{number}"), take(at_us)) == []
        assert made.total(Asset.CREDIT) == 0
        held = sum(made.of(f"escrow:{LEASE}:").values())
        assert held == sum(part.amount.units for part in lease_in(made).held)
    lease = lease_in(made)
    if lease.status == "active" and more and not owed(made):
        free = made.balance(f"party:{RENTER}:cash")
        if min(more, free):
            made.do(
                TopUpLease(
                    lease_id=LEASE,
                    account_id=RENTER,
                    at_us=NOON_US + at_us,
                    amount=credit(min(more, free)),
                )
            )
    if lease.status == "active":
        made.do(close(at_us))
    served_us = min(reported * MINUTE_US, lease_in(made).window_end_us - NOON_US)
    _settle(made, at_us, served_us)
    charge = lease_in(made).charge_units
    assert charge == served_us * PRICE // HOUR_US
    assert made.of(f"escrow:{LEASE}:") == {}
    mine = sum(made.balance(f"party:{RENTER}:{part}") for part in ("card", "cash"))
    assert paid + cash == charge + mine + gone - owed(made)


def _settle(made: Booked, at_us: int, served_us: int) -> None:
    """Hour by hour, and the rest with the settlement."""
    hour = 0
    closed_us = lease_in(made).window_end_us - NOON_US
    while (hour + 1) * HOUR_US < closed_us:
        hour += 1
        end_us = min(served_us, hour * HOUR_US)
        done = (usage((hour - 1) * HOUR_US, end_us, position=hour),)
        asked = AccrueUsage(
            lease_id=LEASE,
            lane=1,
            usage_position=hour,
            at_us=NOON_US + max(at_us, hour * HOUR_US),
            rows=done if end_us > (hour - 1) * HOUR_US else (),
        )
        made.do(asked)
    rows: tuple[UsageRow, ...] = ()
    if served_us > hour * HOUR_US:
        rows = (usage(hour * HOUR_US, served_us, position=hour + 1),)
    made.do(settle(at_us + 25 * HOUR_US, rows, position=hour + 1))
    assert any(isinstance(fact, LeaseSettled) for fact in made.facts)


def test_the_last_deposit_is_taken_first() -> None:
    made = world(20_000_000, funds=10_000_000)
    made.do(TopUpLease(lease_id=LEASE, account_id=RENTER, amount=credit(5_000_000), at_us=NOON_US))
    made.do(reverse(8_000_000, MINUTE_US))
    taken = next(fact for fact in made.do(take(MINUTE_US)) if isinstance(fact, LeaseFundsTaken))
    assert [(part.number, part.amount.units) for part in taken.parts] == [(2, 3_000_000)]


@pytest.mark.parametrize("minutes", [0, 1, 59, 60])
def test_the_close_is_never_before_what_was_counted(minutes: int) -> None:
    made = world(10_000_000, funds=10_000_000)
    at_us = minutes * MINUTE_US
    if minutes == 60:
        made.do(accrue(1))
    made.do(reverse(10_000_000, at_us), take(at_us))
    closed = lease_in(made).closed
    assert closed is not None
    assert closed.closed_at_us == NOON_US + at_us


def test_for_a_payment_that_never_came_nothing_is_taken() -> None:
    made = world(10_000_000, funds=10_000_000)
    made.books[f"party:{RENTER}:owed"] = 5_000_000
    for payment_id in (PAYMENT, "pay_x"):
        assert made.do(replace(take(HOUR_US), payment_id=payment_id)) == []
    assert lease_in(made).status == "active"


def test_no_more_is_taken_for_a_payment_than_was_spent_of_it_whatever_else_is_owed() -> None:
    """4 of 10 are taken; 3 that are owed for something else stay owed."""
    made = world(10_000_000, funds=10_000_000)
    made.do(reverse(4_000_000, MINUTE_US), take(MINUTE_US))
    assert (lease_in(made).held_units, owed(made)) == (6_000_000, 0)
    made.books[f"party:{RENTER}:owed"] = 3_000_000
    assert made.do(take(MINUTE_US)) == []
    made.do(reverse(1_000_000, 2 * MINUTE_US, "dp_2"), take(2 * MINUTE_US))
    assert (lease_in(made).held_units, owed(made)) == (5_000_000, 3_000_000)


def test_what_was_put_in_later_with_other_money_stays() -> None:
    """The latest deposit is taken first, but only where the payment's money is in it."""
    made = world(10_000_000, funds=10_000_000)
    made.books[f"party:{RENTER}:cash"] += 5_000_000
    made.books["world:bank"] += 5_000_000
    made.do(TopUpLease(lease_id=LEASE, account_id=RENTER, amount=credit(5_000_000), at_us=NOON_US))
    made.do(reverse(4_000_000, MINUTE_US))
    taken = next(fact for fact in made.do(take(MINUTE_US)) if isinstance(fact, LeaseFundsTaken))
    assert [(part.source, part.amount.units) for part in taken.parts] == [("card", 4_000_000)]
    held = {part.source: part.amount.units for part in lease_in(made).held}
    assert held == {"card": 6_000_000, "cash": 5_000_000}


def test_what_a_stranger_gets_back_of_a_lease_that_never_starts_repays_nobody_elses_debt() -> None:
    """The renter's 3 are taken, the stranger's 1 pays for no hour; half a credit stays owed."""
    made = world(3_000_000, funds=3_000_000, runs=False)
    _account(made, "acct_stranger", 1_000_000)
    made.do(
        TopUpLease(
            lease_id=LEASE, account_id="acct_stranger", amount=credit(1_000_000), at_us=NOON_US
        )
    )
    made.do(reverse(3_000_000, MINUTE_US))
    made.books[f"party:{RENTER}:owed"] += 500_000
    made.books["network:revenue:device"] += 500_000
    made.do(take(MINUTE_US))
    assert lease_in(made).status == "settled"
    assert owed(made) == 500_000
    assert made.balance(f"party:{RENTER}:card") == 0
    assert made.balance("party:acct_stranger:card") == 1_000_000
    assert made.total(Asset.CREDIT) == 0


def test_a_lease_that_has_not_begun_needs_a_whole_hour_to_go_on() -> None:
    """To the cent: what is left pays the hour, or a cent of it is missing."""
    for left, status in ((PRICE, "reserved"), (PRICE - 10_000, "settled")):
        made = world(10_000_000, funds=10_000_000, runs=False)
        made.do(reverse(10_000_000 - left, MINUTE_US), take(MINUTE_US))
        assert lease_in(made).status == status, left
        assert owed(made) == 0


def test_a_lease_that_runs_needs_a_second_beyond_this_one_to_go_on() -> None:
    """At 30 minutes 1.39 credits are used; a second more costs 772 units."""
    for left, status in ((1_400_000, "active"), (1_390_000, "closing")):
        made = world(10_000_000, funds=10_000_000)
        made.do(reverse(10_000_000 - left, HOUR_US // 2), take(HOUR_US // 2))
        assert lease_in(made).status == status, left


def test_what_a_closed_lease_cannot_use_any_more_was_given_back_and_the_rest_is_taken() -> None:
    """An hour ran and is not charged yet: it is paid to the provider, and owed."""
    made = world(10_000_000, funds=10_000_000)
    made.do(close(HOUR_US), reverse(10_000_000, 2 * HOUR_US))
    assert owed(made) == PRICE
    (taken, *_) = made.do(take(2 * HOUR_US))
    assert isinstance(taken, LeaseFundsTaken)
    assert (sum(part.amount.units for part in taken.parts), taken.funds_end_us) == (PRICE, None)
    assert (lease_in(made).held_units, owed(made)) == (0, 0)
    made.do(settle(3 * HOUR_US, (usage(0, HOUR_US),)))
    assert owed(made) == PRICE
    assert made.balance(f"party:{OWNER}:holdback") > 0


def test_a_single_unit_that_is_owed_is_taken() -> None:
    made = world(10_000_000, funds=10_000_000)
    made.do(reverse(4_000_000, MINUTE_US))
    made.books[f"party:{RENTER}:owed"] = 1
    facts = made.do(take(MINUTE_US))
    taken = next(fact for fact in facts if isinstance(fact, LeaseFundsTaken))
    assert [part.amount.units for part in taken.parts] == [1]
    assert [fact for fact in facts if isinstance(fact, PaymentFundsTaken)] == [
        PaymentFundsTaken(
            payment_id=PAYMENT,
            account_id=RENTER,
            lease_id=LEASE,
            amount=credit(1),
            at_us=NOON_US + MINUTE_US,
        )
    ]


def test_what_a_stranger_put_in_by_card_later_is_not_the_payments() -> None:
    made = world(10_000_000, funds=10_000_000)
    _account(made, "acct_stranger", 5_000_000)
    made.do(
        TopUpLease(
            lease_id=LEASE, account_id="acct_stranger", amount=credit(5_000_000), at_us=NOON_US
        )
    )
    made.do(reverse(4_000_000, MINUTE_US))
    taken = next(fact for fact in made.do(take(MINUTE_US)) if isinstance(fact, LeaseFundsTaken))
    assert [(part.account_id, part.amount.units) for part in taken.parts] == [(None, 4_000_000)]
    held = [(part.account_id, part.amount.units) for part in lease_in(made).held]
    assert held == [(None, 6_000_000), ("acct_stranger", 5_000_000)]


def test_a_term_goes_on_while_the_rest_of_it_is_paid_to_the_cent() -> None:
    """An hour of three is charged, and 1 credit more was put in than the term costs."""
    for taken, status in ((1_000_000, "active"), (1_010_000, "closing")):
        made = world(10_000_000, term_us=3 * HOUR_US)
        made.do(
            TopUpLease(lease_id=LEASE, account_id=RENTER, amount=credit(1_000_000), at_us=NOON_US),
            accrue(1),
        )
        assert lease_in(made).held_units == 2 * PRICE + 1_000_000
        unspent = made.balance(f"party:{RENTER}:card")
        made.do(reverse(unspent + taken, HOUR_US), take(HOUR_US))
        assert lease_in(made).status == status, taken
        assert owed(made) == 0
    made = world(10_000_000, term_us=3 * HOUR_US)
    made.do(TopUpLease(lease_id=LEASE, account_id=RENTER, amount=credit(1_000_000), at_us=NOON_US))
    made.do(reverse(made.balance(f"party:{RENTER}:card") + 500_000, HOUR_US))
    taken_back = next(fact for fact in made.do(take(HOUR_US)) if isinstance(fact, LeaseFundsTaken))
    seconds = (3 * PRICE + 500_000) * 3_600 // PRICE
    assert taken_back.funds_end_us == NOON_US + seconds * 1_000_000, "beyond the term"
    assert lease_in(made).window_end_us == NOON_US + 3 * HOUR_US


def _strangers(made: Booked, after_us: int) -> list[object]:
    """What is done once the payment of the stranger's 3 credits is reversed too."""
    at_us = NOON_US + after_us
    made.do(
        ReversePayment(
            payment_id="pay_2",
            reference="dp_2",
            amount=credit(3_000_000),
            reason="fraudulent",
            at_us=at_us,
        )
    )
    return made.do(TakeFundsBack(payment_id="pay_2", lease_id=LEASE, at_us=at_us))


@pytest.mark.parametrize(("units", "after_us"), [(6_000_000, 2 * HOUR_US), (1_000_000, MINUTE_US)])
def test_of_a_closed_lease_nobody_takes_over_what_another_one_owes_for_it(
    units: int, after_us: int
) -> None:
    """Two hours are 5.56: the renter's 6 are gone, the stranger's 3 pay of it. While the lease
    runs, both lose what they took back.
    """
    made = world(6_000_000, funds=6_000_000)
    _account(made, "acct_stranger", 3_000_000)
    made.do(
        TopUpLease(
            lease_id=LEASE, account_id="acct_stranger", amount=credit(3_000_000), at_us=NOON_US
        )
    )
    made.do(reverse(units, after_us), take(after_us))
    is_closed = lease_in(made).closed is not None
    assert is_closed == (units == 6_000_000)
    facts = _strangers(made, after_us)
    assert (facts == []) == is_closed
    left = 3_000_000 if is_closed else 5_000_000
    assert lease_in(made).held_units == left
    assert made.balance("party:acct_stranger:owed") == (3_000_000 if is_closed else 0)


def test_an_escrow_that_pays_the_charge_to_the_unit_owes_nothing() -> None:
    made = world(10_000_000, funds=10_000_000)
    made.do(reverse(10_000_000 - PRICE, HOUR_US), take(HOUR_US))
    made.do(settle(2 * HOUR_US, (usage(0, HOUR_US),)))
    (accrued,) = (fact for fact in made.facts if isinstance(fact, UsageAccrued))
    assert (accrued.charge, accrued.owed) == (credit(PRICE), None)
    assert (owed(made), lease_in(made).held_units) == (0, 0)


def test_what_is_taken_counts_in_no_budget_any_more_and_what_comes_back_later_neither() -> None:
    made = Booked()
    for stream, fact in scene().past:
        made.record(stream, fact)
    made.do(
        SetBudget(
            account_id=RENTER,
            scope=PROJECT,
            target="p",
            monthly=credit(10_000_000),
            by="m",
            at_us=NOON_US,
        )
    )
    paid = world(10_000_000, runs=False).facts
    for fact in paid:
        if isinstance(fact, PaymentStarted):
            made.record(payment_stream(PAYMENT), fact)
    made.do(
        ReceivePayment(
            payment_id=PAYMENT,
            amount=credit(10_000_000),
            reference="pi_1",
            by="stripe",
            at_us=NOON_US,
        ),
        job(),
        request(None, 10_000_000),
        reserve(),
        ready,
    )

    def used() -> int:
        return budget_of(made, RENTER, PROJECT, "p").used_in("2026-11")

    assert used() == 10_000_000
    made.do(reverse(4_000_000, MINUTE_US), take(MINUTE_US))
    assert used() == 6_000_000
    made.do(close(HOUR_US), settle(2 * HOUR_US, (usage(0, HOUR_US),)))
    assert used() == PRICE
