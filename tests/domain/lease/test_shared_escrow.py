"""One escrow for all leases of a job: they end at the same second, and nobody overdraws it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.corrections.reversal import TakeFundsBack, TakeIdleEscrow
from domain.fleet.reasons import FleetReason
from domain.funds.budget import PROJECT, SetBudget, budget_of
from domain.funds.debt import DebtRepaid
from domain.funds.payment import PaymentFundsTaken, PaymentStarted, ReceivePayment, ReversePayment
from domain.funds.payment import stream_of as payment_stream
from domain.funds.payment_terms import CENT_UNITS
from domain.funds.reasons import FundsReason
from domain.gpu_time import charge_for
from domain.hardware.constraints import Constraints
from domain.jobs.job import CancelJob, JobEscrowOpened
from domain.jobs.reasons import JobsReason
from domain.lease.escrow import TIME_MAX_US, Deposit, Rate
from domain.lease.escrow import settle as settled_escrow
from domain.lease.funds import EscrowPart
from domain.lease.lease import AccrueUsage, CloseLease, Lease, SettleLease, TopUpLease, UsageAccrued
from domain.lease.shared_escrow import (
    Escrow,
    EscrowDrawn,
    EscrowFundsTaken,
    EscrowMemberTold,
    EscrowReturned,
    Member,
    end_of,
    escrow_of,
    evolve,
    shared_end_us,
)
from domain.lease.turns import LeaseFundsMoved
from domain.leasing.accrual import accrued_so_far
from domain.leasing.escrow_sharing import FundEscrow, ReturnEscrow, draws_on_escrow, returned
from domain.metering.counting import UsageRow
from domain.money import PPM, Amount, Asset, credit, token
from domain.parties.account import AccountOpened
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Stream
from domain.trust.reasons import TrustReason
from tests.domain.scenes.market import (
    DEVICES,
    HOUR_US,
    JOB,
    NOON_US,
    OWNER,
    RENTER,
    job,
    ready,
    request,
    reserve,
    scene,
    usage,
)
from tests.examples import examples
from tests.scenes.booked import Booked

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
PRICE = 2_780_000
FRIEND = "acct_friend"


def lease_id(number: int) -> str:
    return f"lease_{number:032x}"


def market(cash: int = 100_000_000) -> Booked:
    made = Booked()
    for stream, fact in scene().past:
        made.record(stream, fact)
    made.books["world:bank"] = made.books[f"party:{RENTER}:cash"] = cash
    made.do(job())
    return made


def fund(units: int, after_us: int = 0, who: str = RENTER) -> FundEscrow:
    return FundEscrow(job_id=JOB, account_id=who, amount=credit(units), at_us=NOON_US + after_us)


def joined(made: Booked, number: int, after_us: int = 0, *, runs: bool = True) -> None:
    """One more lease of the job, on a device of its own."""
    at_us, name = NOON_US + after_us, lease_id(number)
    made.do(replace(request(), lease_id=name, at_us=at_us))
    made.do(replace(reserve(), lease_id=name, device_ids=(DEVICES[number],), at_us=at_us))
    if runs:
        made.do(replace(ready, lease_id=name, at_us=at_us))


def running(escrow: int, *after_us: int) -> Booked:
    made = market(200_000_000)
    made.do(fund(escrow))
    for number, moment_us in enumerate(after_us):
        joined(made, number, moment_us)
    return made


def lease_in(made: Booked, number: int) -> Lease:
    state = made.state(Stream("lease", lease_id(number)))
    assert isinstance(state, Lease)
    return state


def escrow_in(made: Booked) -> Escrow:
    return escrow_of(made, JOB)


def ends(made: Booked) -> set[int]:
    """The ends of all leases that run, in seconds after noon."""
    return {
        (lease_in(made, number).window_end_us - NOON_US) // SECOND_US
        for number in range(len(DEVICES))
        if lease_in(made, number).is_running
    }


def close(made: Booked, number: int, after_us: int, party: str = "renter", code: int = 1) -> None:
    at_us = NOON_US + after_us
    made.do(
        CloseLease(
            lease_id=lease_id(number), closed_at_us=at_us, party=party, code=code, at_us=at_us
        )
    )


def settle(made: Booked, number: int, after_us: int, served_us: int | None = None) -> None:
    """Accrue every hour of a closed lease and settle it; `served_us` of its time was reported."""
    lease = lease_in(made, number)
    assert lease.closed is not None
    assert lease.opened is not None
    opened_us = lease.opened.opened_at_us - NOON_US
    end_us = lease.closed.closed_at_us - NOON_US
    until_us = end_us if served_us is None else min(end_us, opened_us + served_us)
    hour = lease.hours_accrued
    name = lease_id(number)
    while opened_us + (hour + 1) * HOUR_US < end_us:
        hour += 1
        rows = _rows(
            number,
            opened_us + (hour - 1) * HOUR_US,
            min(until_us, opened_us + hour * HOUR_US),
            hour,
        )
        at_us = NOON_US + max(after_us, opened_us + hour * HOUR_US)
        made.do(AccrueUsage(lease_id=name, lane=1, usage_position=hour, rows=rows, at_us=at_us))
    rows = _rows(number, opened_us + hour * HOUR_US, until_us, hour + 1)
    at_us = NOON_US + after_us + 25 * HOUR_US
    made.do(SettleLease(lease_id=name, lane=1, usage_position=hour + 1, rows=rows, at_us=at_us))


def _rows(number: int, from_us: int, to_us: int, position: int) -> tuple[UsageRow, ...]:
    if to_us <= from_us:
        return ()
    return (usage(from_us, to_us, DEVICES[number], position),)


def consistent(made: Booked) -> None:
    """Books and state say the same, and what is held pays all that may still be charged."""
    escrow = escrow_in(made)
    held = sum(part.amount.units for part in escrow.held)
    assert held == sum(made.of(f"escrow:{JOB}:").values())
    assert made.total(Asset.CREDIT) == 0
    if escrow.ends_us is not None and escrow.running:
        assert sum(one.due(escrow.ends_us) for one in escrow.members.values()) <= held
        assert {
            lease_in(made, n).window_end_us for n in range(4) if lease_in(made, n).is_running
        } == {escrow.ends_us}


# --- the second ---------------------------------------------------------------------------------

VECTORS = ((100, (10, 10)), (200, (10, 10)), (100, (1, 2)), (10, (1,)), (7, (2, 3)), (100, (7,)))


@pytest.mark.parametrize(("escrow", "rates"), VECTORS)
def test_the_end_is_that_of_the_conformance_suite_and_pays_by_the_rates(
    escrow: int, rates: tuple[int, ...]
) -> None:
    """100 with rates 10 and 10 per second ends at t = 5, paid 50 and 50."""
    members = [Member(PPM, rate * 3_600, opened_at_us=0) for rate in rates]
    told = settled_escrow(
        [Deposit("a", escrow)], [Rate(str(n), rate) for n, rate in enumerate(rates)], 10**6
    )
    end_us = shared_end_us(0, members, escrow, 0)
    assert end_us == (told.end_second or 0) * SECOND_US
    assert [one.most(end_us) for one in members] == list(told.paid.values())


@given(
    units=st.integers(0, 10**9),
    members=st.lists(
        st.tuples(st.integers(10**5, 8 * PPM), st.integers(10**5, 10**7), st.integers(0, 10**10)),
        min_size=1,
        max_size=6,
    ),
)
def test_one_second_more_is_always_too_much(
    units: int, members: list[tuple[int, int, int]]
) -> None:
    """sum(charges at the end) <= escrow < sum(charges one second later); nothing is rounded."""
    some = [Member(ppm, price, opened_at_us=opened) for ppm, price, opened in members]
    first = min(opened for _, _, opened in members)
    end_us = shared_end_us(first, some, units, first)
    assert (end_us - first) % SECOND_US == 0
    assert sum(one.due(end_us) for one in some) <= units
    assert sum(one.due(end_us + SECOND_US) for one in some) > units


def test_a_member_is_remembered_with_its_part_of_devices_and_its_price() -> None:
    member = escrow_in(running(2 * PRICE, 0)).members[lease_id(0)]
    assert (member.gpu_ppm, member.price, member.opened_at_us) == (PPM, PRICE, NOON_US)


def test_members_end_together_and_each_pays_its_own_time() -> None:
    made = running(3 * PRICE, 0, HOUR_US)
    assert ends(made) == {2 * 3_600}, "an hour alone, an hour of both: three hours are paid"
    for number in (0, 1):
        close(made, number, 2 * HOUR_US, "job", 100)
    for number in (0, 1):
        settle(made, number, 2 * HOUR_US)
    charges = [lease_in(made, number).charge_units for number in (0, 1)]
    assert charges == [2 * PRICE, PRICE]
    assert made.of(f"escrow:{JOB}:") == {}
    assert made.balance(f"party:{RENTER}:cash") == 200_000_000 - 3 * PRICE
    consistent(made)


def test_who_joins_brings_the_end_nearer_who_leaves_moves_it_on_and_everybody_is_told() -> None:
    made = running(40 * PRICE, 0)
    assert ends(made) == {40 * 3_600}
    joined(made, 1, HOUR_US)
    assert ends(made) == {3_600 + 39 * 1_800}
    close(made, 1, 2 * HOUR_US)
    assert ends(made) == {39 * 3_600}, "the hour of the other one is kept for it"
    told = [fact for fact in made.facts if isinstance(fact, LeaseFundsMoved)]
    assert [fact.lease_id for fact in told] == [lease_id(0), lease_id(0)]
    settle(made, 1, 2 * HOUR_US, served_us=HOUR_US // 2)
    assert ends(made) == {39 * 3_600 + 1_800}, "half of its hour was never proven"
    consistent(made)


def test_a_top_up_moves_the_end_of_all_through_the_job_or_any_of_its_leases() -> None:
    made = running(4 * PRICE, 0, 0)
    assert ends(made) == {7_200}
    made.do(fund(2 * PRICE, HOUR_US))
    assert ends(made) == {10_800}
    made.do(
        TopUpLease(
            lease_id=lease_id(1),
            account_id=RENTER,
            amount=credit(2 * PRICE),
            at_us=NOON_US + HOUR_US,
        )
    )
    assert ends(made) == {14_400}
    consistent(made)


def test_what_has_ended_stays_ended_and_a_late_timer_still_closes_at_the_second() -> None:
    made = running(2 * PRICE, 0, 0)
    late_us = 5 * HOUR_US
    close(made, 0, late_us, "job", 100)
    closed = lease_in(made, 0).closed
    assert closed is not None
    assert closed.closed_at_us == NOON_US + HOUR_US
    assert ends(made) == {3_600}, "the other one has ended as well, though no timer said so"
    with pytest.raises(Refused) as refused:
        made.do(
            TopUpLease(
                lease_id=lease_id(1),
                account_id=RENTER,
                amount=credit(PRICE),
                at_us=NOON_US + late_us,
            )
        )
    assert refused.value.reason is FleetReason.LEASE_STATE
    close(made, 1, late_us, "job", 100)
    consistent(made)


def test_what_is_paid_in_after_the_end_moves_no_end() -> None:
    made = running(2 * PRICE, 0, 0)
    made.do(fund(2 * PRICE, 5 * HOUR_US))
    assert ends(made) == {3_600}
    assert escrow_in(made).ends_us == NOON_US + HOUR_US


def test_where_the_end_stays_in_the_same_second_no_lease_is_told() -> None:
    """A second of two leases costs 1,544 units."""
    made = running(4 * PRICE, 0, 0)
    told = len(made.facts)
    (funded,) = made.do(fund(1))
    assert (len(made.facts), funded.ends_us) == (told + 1, NOON_US + 2 * HOUR_US)
    facts = made.do(fund(1_544))
    assert [type(fact).__name__ for fact in facts] == [
        "EscrowFunded",
        "LeaseFundsMoved",
        "LeaseFundsMoved",
    ]
    assert ends(made) == {7_201}


def test_nothing_that_runs_has_no_end_and_what_has_ended_keeps_it() -> None:
    """Members that wait or are closed have none; the end of others is forecast anew until it is
    there.
    """
    waiting, open_ = Member(PPM, 3_600), Member(PPM, 3_600, opened_at_us=0)
    closed = replace(open_, until_us=5 * SECOND_US)
    held = (EscrowPart("cash", credit(10)),)
    of = Escrow(held=held, first_us=0)
    for members in ((), (waiting,), (closed,), (waiting, closed)):
        named = {str(number): one for number, one in enumerate(members)}
        for first_us in (None, 0):
            assert end_of(replace(of, members=named, first_us=first_us), 0) is None
    runs = replace(of, members={"a": open_})
    for at_us in (0, 3 * SECOND_US, 10 * SECOND_US):
        assert end_of(runs, at_us) == 10 * SECOND_US
    assert end_of(runs, 11 * SECOND_US) == 11 * SECOND_US, "not before now"
    for ends_us, at_us, end_us in ((4, 3, 10), (4, 4, 4), (4, 9, 4)):
        ended = replace(runs, ends_us=ends_us * SECOND_US)
        assert end_of(ended, at_us * SECOND_US) == end_us * SECOND_US
    with_closed = replace(runs, members={"a": open_, "b": closed})
    assert end_of(with_closed, 0) == 5 * SECOND_US, "5 of 10 are kept for the closed one"


def test_one_more_lease_needs_its_hour_beside_all_that_others_used_and_their_next_one() -> None:
    """One runs for an hour that is not charged yet: two hours of it and one of the other."""
    for units, is_taken in ((3 * PRICE, True), (3 * PRICE - 1, False)):
        made = running(units, 0)
        if is_taken:
            joined(made, 1, HOUR_US, runs=False)
            continue
        with pytest.raises(Refused) as refused:
            joined(made, 1, HOUR_US, runs=False)
        assert refused.value.reason is FundsReason.CREDIT_TOO_LOW
        assert refused.value.facts == {"needed": 3 * PRICE, "available": units}


def test_nothing_is_put_into_an_escrow_of_a_job_that_is_over() -> None:
    made = market()
    made.do(fund(PRICE), CancelJob(job_id=JOB, by="mem", at_us=NOON_US))
    with pytest.raises(Refused) as refused:
        made.do(fund(PRICE))
    assert refused.value.reason is JobsReason.JOB_STATE


def test_an_escrow_of_an_open_job_goes_back_where_its_owner_asks() -> None:
    made = market()
    back = ReturnEscrow(job_id=JOB, at_us=NOON_US)
    assert made.do(back) == [], "there is none"
    made.do(fund(PRICE))
    with pytest.raises(Refused) as refused:
        made.do(back)
    assert refused.value.reason is JobsReason.JOB_STATE
    assert made.do(replace(back, by_owner=True))
    assert made.do(back) == [], "it is empty"
    assert made.balance(f"party:{RENTER}:cash") == 100_000_000


def test_what_goes_back_of_an_escrow_counts_in_no_budget_any_more() -> None:
    made = market()
    cap = SetBudget(
        account_id=RENTER,
        scope=PROJECT,
        target="p",
        monthly=credit(2 * PRICE),
        by="m",
        at_us=NOON_US,
    )
    made.do(cap, fund(2 * PRICE))
    with pytest.raises(Refused) as refused:
        made.do(fund(1))
    assert refused.value.reason is PartiesReason.BUDGET_EXHAUSTED
    made.do(ReturnEscrow(job_id=JOB, at_us=NOON_US, by_owner=True), fund(2 * PRICE))
    assert budget_of(made, RENTER, PROJECT, "p").used_in("2026-11") == 2 * PRICE


def test_a_job_with_constraints_draws_on_its_escrow_unless_it_may_be_interrupted() -> None:
    for interruptible, draws in ((None, True), (False, True), (True, False)):
        made = Booked()
        for stream, fact in scene().past:
            made.record(stream, fact)
        made.books["world:bank"] = made.books[f"party:{RENTER}:cash"] = 10 * PRICE
        made.do(job(constraints=Constraints(interruptible=interruptible)), fund(5 * PRICE))
        spec = made.state(Stream("job", JOB)).submitted
        assert draws_on_escrow(request(), spec, made) == draws, interruptible
        for changes in (
            {"term_us": HOUR_US},
            {"funds": credit(PRICE)},
            {"months": 1},
            {"pay_with": "burn"},
            {"account_id": FRIEND},
        ):
            own = replace(request(), **changes)
            assert not draws_on_escrow(own, spec, made)
        assert draws_on_escrow(replace(request(), pay_with="cash"), spec, made) == draws


def test_a_member_owes_for_its_time_floored_and_nothing_before_it_opened() -> None:
    """A unit for each GPU-microsecond."""
    member = Member(PPM, HOUR_US, opened_at_us=10)
    for one, until_us, most in (
        (replace(member, opened_at_us=None), 99, 0),
        (member, 9, 0),
        (member, 10, 0),
        (member, 11, 1),
        (replace(member, gpu_ppm=PPM - 1), 12, 1),  # 1.999998
        (replace(member, gpu_ppm=PPM + 1), 12, 2),
        (replace(member, until_us=15), 99, 5),
        (replace(member, until_us=15), 12, 5),
        (replace(member, until_us=9), 99, 0),
    ):
        assert one.most(until_us) == most, (one, until_us)
    for charged, allotted, due in ((0, None, 5), (3, None, 2), (6, None, 0), (0, 4, 4), (3, 4, 2)):
        assert replace(member, charged=charged, allotted=allotted).due(15) == due
    assert shared_end_us(0, [Member(PPM, 3_600, opened_at_us=0)], 0, 0) == 0


def test_the_first_deposit_opens_the_escrow_and_each_has_the_next_number() -> None:
    made = market()
    opened, funded = made.do(fund(5))
    assert opened == JobEscrowOpened(job_id=JOB, at_us=NOON_US)
    assert [part.number for part in funded.parts] == [1]
    made.do(ReturnEscrow(job_id=JOB, at_us=NOON_US, by_owner=True))
    for number in (2, 3):
        (funded,) = made.do(fund(5))
        assert [part.number for part in funded.parts] == [number]
        assert escrow_in(made).deposits == number
        assert funded.put_in == credit(5 * number)


def test_funds_that_ran_out_are_told_so() -> None:
    made = running(2 * PRICE, 0, 0)
    close(made, 0, HOUR_US, "job", 100)
    closed = lease_in(made, 0).closed
    assert closed is not None
    assert closed.code == 100


def test_what_a_lease_has_used_so_far_is_told_whichever_deposits_will_pay_it() -> None:
    made = running(PRICE // 4 * 4, 0)
    rows = _rows(0, 0, HOUR_US // 2, 1)
    asked = AccrueUsage(
        lease_id=lease_id(0), lane=1, usage_position=1, rows=rows, at_us=NOON_US + HOUR_US // 2
    )
    told = accrued_so_far(lease_in(made, 0), asked)
    assert told.charge == credit(PRICE // 2)
    assert {part.source for part in told.drawn} == {"late"}


def test_seconds_are_counted_from_the_next_opening_once_nothing_draws_any_more() -> None:
    made = running(5 * PRICE, 7)
    assert escrow_in(made).first_us == NOON_US + 7
    close(made, 0, HOUR_US + 7)
    assert (escrow_in(made).first_us, escrow_in(made).ends_us) == (NOON_US + 7, None)
    settle(made, 0, HOUR_US + 7)
    assert (escrow_in(made).first_us, escrow_in(made).ends_us) == (None, None)
    joined(made, 1, 30 * HOUR_US + 11)
    assert escrow_in(made).first_us == NOON_US + 30 * HOUR_US + 11
    assert escrow_in(made).ends_us == NOON_US + 34 * HOUR_US + 11
    over = EscrowMemberTold(
        escrow_id=JOB,
        lease_id=lease_id(1),
        phase="over",
        gpu_ppm=PPM,
        price_per_gpu_hour=credit(PRICE),
        opened_at_us=None,
        until_us=None,
        ends_us=NOON_US,
        at_us=NOON_US,
    )
    after = evolve(escrow_in(made), over)
    assert (after.members, after.first_us, after.ends_us) == ({}, None, None)


def test_only_an_open_account_pays_in_and_only_a_job_that_is_there_gives_back() -> None:
    made = market()
    made.do(fund(PRICE))
    with pytest.raises(Refused) as refused:
        made.do(fund(PRICE, who="acct_none"))
    assert refused.value.reason is PartiesReason.ACCOUNT_UNKNOWN
    with pytest.raises(Refused) as refused:
        made.do(ReturnEscrow(job_id="job_none", at_us=NOON_US))
    assert refused.value.reason is TrustReason.JOB_UNKNOWN
    made.do(CancelJob(job_id=JOB, by="mem", at_us=NOON_US))
    made.do(ReturnEscrow(job_id=JOB, at_us=NOON_US))
    assert made.balance(f"party:{RENTER}:cash") == 100_000_000, "nobody has to ask for it then"


def test_what_begins_with_the_calendars_end_ends_with_it() -> None:
    assert shared_end_us(TIME_MAX_US, (), 0, 0) == TIME_MAX_US


def test_128_leases_draw_on_one_escrow_at_most() -> None:
    for members, is_taken in ((127, True), (128, False)):
        made = running(2 * PRICE)
        full = replace(
            escrow_in(made), members={f"m{number}": Member(PPM, 0) for number in range(members)}
        )
        made._states[Stream("escrow", JOB)] = full
        if is_taken:
            joined(made, 0, runs=False)
            continue
        with pytest.raises(Refused) as refused:
            joined(made, 0, runs=False)
        assert refused.value.reason is PartiesReason.COUNT_OUT_OF_RANGE
        assert refused.value.facts == {"leases": 128, "at_most": 128}


def test_no_more_goes_into_an_escrow_than_the_account_has() -> None:
    made = market(5)
    with pytest.raises(Refused) as refused:
        made.do(fund(6))
    assert refused.value.reason is FundsReason.CREDIT_TOO_LOW
    assert refused.value.facts == {"needed": 6, "available": 5}
    assert made.do(fund(5))


def test_all_that_are_reserved_must_run_an_hour_together() -> None:
    made = running(2 * PRICE, 0)
    joined(made, 1, 0, runs=False)
    with pytest.raises(Refused) as refused:
        joined(made, 2)
    assert refused.value.reason is FundsReason.CREDIT_TOO_LOW


def test_deposits_are_drained_in_order_of_arrival_whoever_draws() -> None:
    made = market()
    made.books[f"party:{FRIEND}:cash"] = 10 * PRICE
    made.books["world:bank"] += 10 * PRICE
    _account(made, FRIEND)
    made.do(fund(2 * PRICE))
    for number in (0, 1):
        joined(made, number)
    made.do(fund(4 * PRICE, MINUTE_US, FRIEND))
    for number in (0, 1):
        close(made, number, 2 * HOUR_US)
        settle(made, number, 2 * HOUR_US)
    drawn = [part for fact in made.facts if isinstance(fact, UsageAccrued) for part in fact.drawn]
    assert [part.account_id for part in drawn] == [None, None, FRIEND, FRIEND]
    made.do(ReturnEscrow(job_id=JOB, at_us=NOON_US + 60 * HOUR_US, by_owner=True))
    assert made.balance(f"party:{FRIEND}:cash") == 8 * PRICE, "the first deposit paid first"
    assert made.balance(f"party:{RENTER}:cash") == 100_000_000 - 2 * PRICE


def test_what_is_funded_for_ever_ends_with_the_calendar_and_not_a_second_after() -> None:
    for first_us in (NOON_US, NOON_US + 1, NOON_US + 999_999):
        end_us = shared_end_us(first_us, (), 0, NOON_US)
        assert TIME_MAX_US - SECOND_US < end_us <= TIME_MAX_US
        assert (end_us - first_us) % SECOND_US == 0


def test_who_owes_pays_nothing_in_and_the_first_deposit_is_the_owners() -> None:
    made = market()
    _account(made, FRIEND)
    made.books[f"party:{FRIEND}:cash"] = 10
    with pytest.raises(Refused) as refused:
        made.do(fund(1, who=FRIEND))
    assert refused.value.reason is TrustReason.JOB_UNKNOWN
    made.books[f"party:{RENTER}:owed"] = 1
    with pytest.raises(Refused) as refused:
        made.do(fund(1))
    assert refused.value.reason is FundsReason.UNPAID_DEBT
    made.books[f"party:{RENTER}:owed"] = 0
    made.do(fund(1))
    assert [type(one).__name__ for one in made.do(fund(1, who=FRIEND))] == ["EscrowFunded"]


@pytest.mark.parametrize("amount", [credit(0), credit(-1), token(PRICE)])
def test_only_credits_and_more_than_none_go_into_an_escrow(amount: Amount) -> None:
    made = market()
    made.books[f"party:{RENTER}:earned"] = made.books["world:bank"] = PRICE
    with pytest.raises(Refused) as refused:
        made.do(replace(fund(PRICE), amount=amount))
    assert refused.value.reason is FundsReason.AMOUNT_NOT_POSITIVE
    assert refused.value.facts == {"field": "amount"}
    assert made.do(fund(1)), "one unit is enough"


def test_an_escrow_has_64_deposits_of_its_owner_at_most_and_32_with_which_others_may_join() -> None:
    made = market()
    _account(made, FRIEND)
    made.books[f"party:{FRIEND}:cash"] = 10
    made.books["world:bank"] += 10

    def full(who: str) -> Mapping[str, object]:
        with pytest.raises(Refused) as refused:
            made.do(fund(1, who=who))
        assert refused.value.reason is PartiesReason.COUNT_OUT_OF_RANGE
        return refused.value.facts

    for _ in range(31):
        made.do(fund(1))
    made.do(fund(1, who=FRIEND))
    assert full(FRIEND) == {"deposits": 32, "at_most": 32}
    for _ in range(32):
        made.do(fund(1))
    assert full(RENTER) == {"deposits": 64, "at_most": 64}
    assert len(escrow_in(made).held) == 64


def _account(made: Booked, account_id: str) -> None:
    opened = AccountOpened(account_id=account_id, kind="party", opened_by="op", at_us=0)
    made.record(Stream("account", account_id), opened)


def test_the_rest_waits_for_the_jobs_next_lease_and_goes_back_when_the_job_ends() -> None:
    made = running(5 * PRICE, 0)
    close(made, 0, HOUR_US)
    settle(made, 0, HOUR_US)
    assert sum(made.of(f"escrow:{JOB}:").values()) == 4 * PRICE
    joined(made, 1, 2 * HOUR_US)
    with pytest.raises(Refused) as refused:
        made.do(ReturnEscrow(job_id=JOB, at_us=NOON_US + 2 * HOUR_US, by_owner=True))
    assert refused.value.reason is JobsReason.JOB_STATE
    made.do(CancelJob(job_id=JOB, by="mem", at_us=NOON_US + 3 * HOUR_US))
    close(made, 1, 3 * HOUR_US)
    settle(made, 1, 3 * HOUR_US)
    (back,) = [fact for fact in made.facts if isinstance(fact, EscrowReturned)]
    assert sum(part.amount.units for part in back.parts) == 3 * PRICE
    assert made.balance(f"party:{RENTER}:cash") == 200_000_000 - 2 * PRICE


def test_a_lease_with_a_term_or_funds_of_its_own_has_its_own_escrow() -> None:
    made = market()
    made.do(fund(5 * PRICE))
    for number, changes in ((0, {"term_us": HOUR_US}), (1, {"funds": credit(PRICE)})):
        name = lease_id(number)
        made.do(replace(request(), lease_id=name, **changes))
        made.do(replace(reserve(), lease_id=name, device_ids=(DEVICES[number],)))
        assert lease_in(made, number).escrow_id is None
        assert lease_in(made, number).held_units == PRICE


# --- a payment is reversed ----------------------------------------------------------------------


def by_card(paid: int, *after_us: int) -> Booked:
    """Leases on an escrow that a card payment fills."""
    made = market(cash=0)
    started = PaymentStarted(
        payment_id="pay_1",
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
    made.record(payment_stream("pay_1"), started)
    made.do(
        ReceivePayment(
            payment_id="pay_1", amount=credit(paid), reference="pi", by="stripe", at_us=NOON_US
        )
    )
    made.do(fund(paid))
    for number, moment_us in enumerate(after_us):
        joined(made, number, moment_us)
    return made


def reverse(made: Booked, units: int, after_us: int, *numbers: int) -> None:
    """The reversal and what takes it back, as the server asks for it: every lease twice."""
    at_us = NOON_US + after_us
    made.do(
        ReversePayment(
            payment_id="pay_1",
            reference=f"dp_{after_us}",
            amount=credit(units),
            reason="fraudulent",
            at_us=at_us,
        )
    )
    for number in (*numbers, *numbers):
        made.do(TakeFundsBack(payment_id="pay_1", lease_id=lease_id(number), at_us=at_us))


def owed(made: Booked) -> int:
    return made.balance(f"party:{RENTER}:owed")


def test_a_shortfall_is_shared_by_what_each_has_used_and_the_units_left_over_go_back() -> None:
    """Of 20 paid by card 4 are left when two leases have used 1.5 and 1 hours, 6.95 credits."""
    made = by_card(20_000_000, 0, HOUR_US // 2)
    at_us = 3 * HOUR_US // 2
    reverse(made, 16_000_000, at_us, 0, 1)
    allotted = [one.allotted for one in escrow_in(made).members.values()]
    due = [charge_for(3 * HOUR_US // 2, PRICE), charge_for(HOUR_US, PRICE)]
    assert allotted == [4_000_000 * each // sum(due) for each in due]
    for number in (0, 1):
        closed = lease_in(made, number).closed
        assert closed is not None
        assert (closed.code, closed.closed_at_us) == (102, NOON_US + at_us)
    for number in (0, 1):
        settle(made, number, at_us)
    assert [lease_in(made, number).charge_units for number in (0, 1)] == due
    left_over = 4_000_000 - sum(each for each in allotted if each is not None)
    assert made.balance(f"party:{RENTER}:card") == left_over
    assert owed(made) == sum(due) - 4_000_000 + left_over
    earned = made.balance(f"party:{OWNER}:holdback")
    parts = [fact.parts for fact in made.facts if isinstance(fact, UsageAccrued)]
    assert earned == sum(max(p.provider for p in parts if p.total == each) for each in due)
    assert made.of(f"escrow:{JOB}:") == {}
    consistent(made)


def test_each_lease_draws_its_own_share_of_a_shortfall_and_no_unit_of_anothers() -> None:
    """Of 4 credits that are left, one lease has used 90 minutes and the other 50: 9 and 5 of 14."""
    made = by_card(20_000_000, 0, 40 * MINUTE_US)
    at_us = 90 * MINUTE_US
    reverse(made, 16_000_000, at_us, 0, 1)
    shares = [4_000_000 * 9 // 14, 4_000_000 * 5 // 14]
    assert [one.allotted for one in escrow_in(made).members.values()] == shares
    hour = AccrueUsage(
        lease_id=lease_id(0),
        lane=1,
        usage_position=1,
        rows=_rows(0, 0, HOUR_US, 1),
        at_us=NOON_US + at_us,
    )
    made.do(hour)
    member = escrow_in(made).members[lease_id(0)]
    assert (member.charged, member.allotted) == (PRICE, max(0, shares[0] - PRICE))
    for number in (0, 1):
        settle(made, number, at_us)
    drawn = dict.fromkeys((lease_id(0), lease_id(1)), 0)
    for fact in made.facts:
        if isinstance(fact, EscrowDrawn):
            drawn[fact.lease_id] += sum(part.amount.units for part in fact.parts)
    assert list(drawn.values()) == shares
    assert made.balance(f"party:{RENTER}:card") == 1, "the unit left over"
    consistent(made)


def test_a_part_taken_back_ends_all_of_them_earlier_at_one_second() -> None:
    made = by_card(40_000_000, 0, 0)
    before = ends(made)
    reverse(made, 10_000_000, HOUR_US, 0, 1)
    assert owed(made) == 0
    (after,) = ends(made)
    assert after < min(before)
    assert after * 2 * PRICE <= 30_000_000 * 3_600 < (after + 1) * 2 * PRICE
    reverse(made, 10_000_000, HOUR_US, 0, 1)
    assert ends(made) == {after}, "told again, nothing happens"
    consistent(made)


def test_leases_that_wait_for_their_node_close_when_nothing_is_left_for_them() -> None:
    made = by_card(20_000_000)
    joined(made, 0, 0, runs=False)
    reverse(made, 20_000_000, MINUTE_US, 0)
    assert lease_in(made, 0).status == "settled"
    assert owed(made) == 0
    assert made.of(f"escrow:{JOB}:") == {}


@pytest.mark.parametrize("looked_at", [(0,), (0, 1)])
def test_a_lease_that_waits_while_the_escrow_falls_short_never_runs_on_nothing(
    looked_at: tuple[int, ...],
) -> None:
    """Two hours are used and 4 credits are left for them: none of it is the waiting lease's."""
    made = by_card(20_000_000, 0)
    joined(made, 1, 2 * HOUR_US - MINUTE_US, runs=False)
    reverse(made, 16_000_000, 2 * HOUR_US, *looked_at)
    if 1 not in looked_at:
        made.do(replace(ready, lease_id=lease_id(1), at_us=NOON_US + 2 * HOUR_US))
        assert ends(made) == {7_200}, "it is over with the second at which it opens"
    else:
        assert lease_in(made, 1).status == "settled"
    consistent(made)


def test_no_lease_opens_in_the_moment_in_which_the_funds_of_the_others_ended() -> None:
    """The one that runs is not closed yet; with what is left it ran until now."""
    made = by_card(20_000_000, 0)
    joined(made, 1, 2 * HOUR_US - MINUTE_US, runs=False)
    reverse(made, 16_000_000, 2 * HOUR_US)
    made.do(TakeFundsBack(payment_id="pay_1", lease_id=lease_id(0), at_us=NOON_US + 2 * HOUR_US))
    assert lease_in(made, 0).is_running
    with pytest.raises(Refused) as refused:
        made.do(replace(ready, lease_id=lease_id(1), at_us=NOON_US + 2 * HOUR_US))
    assert refused.value.reason is FleetReason.LEASE_STATE
    assert refused.value.facts == {"escrow": JOB, "ended_at_us": NOON_US + 2 * HOUR_US}


def friend_by_card(made: Booked, paid: int) -> None:
    _account(made, FRIEND)
    started = PaymentStarted(
        payment_id="pay_2",
        account_id=FRIEND,
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
            payment_id="pay_2", amount=credit(paid), reference="pi2", by="stripe", at_us=NOON_US
        )
    )


def test_nobody_takes_over_what_another_one_owes_by_taking_back_a_payment_too() -> None:
    """The renter's 20 are gone and 5.56 are used; the friend's 3 pay of it, and that is all."""
    made = by_card(20_000_000, 0)
    friend_by_card(made, 3_000_000)
    made.do(fund(3_000_000, 0, FRIEND))
    at_us = 2 * HOUR_US
    reverse(made, 20_000_000, at_us, 0)
    made.do(
        ReversePayment(
            payment_id="pay_2",
            reference="dp_f",
            amount=credit(3_000_000),
            reason="fraudulent",
            at_us=NOON_US + at_us,
        )
    )
    made.do(TakeFundsBack(payment_id="pay_2", lease_id=lease_id(0), at_us=NOON_US + at_us))
    settle(made, 0, at_us)
    assert made.balance(f"party:{FRIEND}:owed") == 3_000_000
    assert owed(made) == 2 * PRICE - 3_000_000
    consistent(made)


def test_the_timer_of_a_lease_that_was_not_looked_at_says_that_a_payment_was_reversed() -> None:
    made = by_card(20_000_000, 0, 0)
    reverse(made, 20_000_000, HOUR_US, 0)
    close(made, 1, HOUR_US, "job", 100)
    codes = [closed.code for n in (0, 1) if (closed := lease_in(made, n).closed) is not None]
    assert codes == [102, 102]


def test_what_a_renter_ends_of_a_short_escrow_is_ended_by_the_renter() -> None:
    made = by_card(20_000_000, 0, 0)
    reverse(made, 20_000_000, HOUR_US, 0)
    close(made, 1, HOUR_US, "renter", 1)
    closed = lease_in(made, 1).closed
    assert closed is not None
    assert (closed.code, closed.party) == (1, "renter")


def test_what_another_one_put_into_a_shared_escrow_stays() -> None:
    """The friend's card money is the latest of it, and no money of the payment."""
    made = by_card(10_000_000, 0)
    friend_by_card(made, 3_000_000)
    made.do(fund(3_000_000, 0, FRIEND))
    reverse(made, 10_000_000, MINUTE_US, 0)
    held = [(part.account_id, part.amount.units) for part in escrow_in(made).held]
    assert held == [(FRIEND, 3_000_000)]
    assert (owed(made), made.balance(f"party:{FRIEND}:owed")) == (0, 0)
    assert lease_in(made, 0).is_running
    consistent(made)


def test_what_the_same_account_put_into_a_shared_escrow_with_other_money_stays() -> None:
    made = by_card(10_000_000, 0)
    made.books[f"party:{RENTER}:cash"] += 5_000_000
    made.books["world:bank"] += 5_000_000
    made.do(fund(5_000_000))
    reverse(made, 4_000_000, MINUTE_US, 0)
    held = [(part.source, part.amount.units) for part in escrow_in(made).held]
    assert held == [("card", 6_000_000), ("cash", 5_000_000)]


def test_what_is_taken_back_after_the_end_is_shared_by_what_was_used_until_it() -> None:
    """Ended after 105 minutes, which no timer said; the reversal is told two hours later."""
    made = by_card(3 * PRICE, 0, HOUR_US // 2)
    (seconds,) = ends(made)
    reverse(made, PRICE, 4 * HOUR_US, 0, 1)
    due = [
        charge_for(us, PRICE) for us in (seconds * SECOND_US, seconds * SECOND_US - HOUR_US // 2)
    ]
    left = sum(part.amount.units for part in escrow_in(made).held)
    assert left < sum(due)
    assert [one.allotted for one in escrow_in(made).members.values()] == [
        left * each // sum(due) for each in due
    ]
    for number in (0, 1):
        closed = lease_in(made, number).closed
        assert closed is not None
        assert closed.closed_at_us == NOON_US + seconds * SECOND_US
    consistent(made)


def test_an_escrow_on_which_nothing_runs_has_no_end_however_short_it_is() -> None:
    made = by_card(20_000_000, 0)
    close(made, 0, HOUR_US)
    reverse(made, 19_000_000, 2 * HOUR_US, 0)
    (taken,) = [fact for fact in made.facts if isinstance(fact, EscrowFundsTaken)]
    assert (taken.ends_us, escrow_in(made).is_short) == (None, True)
    settle(made, 0, HOUR_US)
    assert owed(made) == PRICE - 1_000_000
    consistent(made)


def test_a_lease_that_waits_on_a_short_escrow_needs_its_hour_to_the_cent() -> None:
    for left, status in ((PRICE, "reserved"), (PRICE - CENT_UNITS, "settled")):
        made = by_card(20_000_000)
        joined(made, 0, 0, runs=False)
        reverse(made, 20_000_000 - left, MINUTE_US, 0)
        assert lease_in(made, 0).status == status
        assert owed(made) == 0


def test_a_lease_reserved_after_the_reversal_is_no_reason_to_take_anything() -> None:
    """When it was reserved, what was owed then had been paid."""
    made = by_card(20_000_000)
    early = ReversePayment(
        payment_id="pay_1",
        reference="dp",
        amount=credit(5_000_000),
        reason="fraudulent",
        at_us=NOON_US,
    )
    made.do(early)
    made.books[f"party:{RENTER}:owed"] = 0
    joined(made, 0, MINUTE_US)
    made.books[f"party:{RENTER}:owed"] = 5_000_000
    asked = TakeFundsBack(payment_id="pay_1", lease_id=lease_id(0), at_us=NOON_US + MINUTE_US)
    assert made.do(asked) == []


def test_a_lease_that_waits_is_not_closed_for_a_payment_that_nothing_was_taken_for() -> None:
    """Late, what is left pays no hour of it any more; that is the timers' to see."""
    made = by_card(2 * PRICE, 0)
    joined(made, 1, 0, runs=False)
    at_us = NOON_US + 3 * HOUR_US // 2
    assert made.do(TakeFundsBack(payment_id="pay_1", lease_id=lease_id(1), at_us=at_us)) == []


def test_what_is_taken_is_told_of_the_payment_the_account_and_the_lease() -> None:
    made = by_card(20_000_000, 0)
    reverse(made, 5_000_000, MINUTE_US, 0)
    (told,) = [fact for fact in made.facts if isinstance(fact, PaymentFundsTaken)]
    assert told == PaymentFundsTaken(
        payment_id="pay_1",
        account_id=RENTER,
        lease_id=lease_id(0),
        amount=credit(5_000_000),
        at_us=NOON_US + MINUTE_US,
    )


def test_an_escrow_that_still_pays_what_was_used_to_the_unit_is_not_short() -> None:
    made = by_card(20_000_000, 0)
    reverse(made, 20_000_000 - PRICE, HOUR_US, 0)
    assert sum(part.amount.units for part in escrow_in(made).held) == PRICE
    assert not escrow_in(made).is_short
    short = by_card(20_000_000, 0)
    reverse(short, 20_000_000 - PRICE + CENT_UNITS, HOUR_US, 0)
    assert escrow_in(short).is_short


def test_of_a_larger_debt_what_lies_idle_pays_no_unit_more_than_it_is() -> None:
    made = by_card(20_000_000)
    reverse(made, 15_000_000, MINUTE_US)
    made.books[f"party:{RENTER}:owed"] += 5_000_000
    made.do(TakeIdleEscrow(payment_id="pay_1", job_id=JOB, at_us=NOON_US + MINUTE_US))
    assert owed(made) == 5_000_000
    assert made.balance(f"party:{RENTER}:card") == 0


def test_where_nothing_goes_back_nothing_is_told() -> None:
    made = by_card(20_000_000)
    assert returned(JOB, escrow_in(made), (), NOON_US, made) == []


def test_what_lies_idle_in_the_escrow_of_a_job_pays_what_is_owed_too() -> None:
    made = by_card(20_000_000)
    idle = TakeIdleEscrow(payment_id="pay_1", job_id=JOB, at_us=NOON_US + MINUTE_US)
    reverse(made, 15_000_000, MINUTE_US)
    assert owed(made) == 15_000_000
    back, repaid = made.do(idle)
    assert isinstance(back, EscrowReturned)
    assert [(part.source, part.amount.units) for part in back.parts] == [("card", 15_000_000)]
    assert isinstance(repaid, DebtRepaid)
    assert [(one.source, one.amount.units) for one in repaid.paid] == [("card", 15_000_000)]
    assert owed(made) == 0
    assert made.of(f"escrow:{JOB}:") == {f"escrow:{JOB}:1:card": 5_000_000}
    assert made.do(idle) == [], "taken once"
    consistent(made)


def test_an_escrow_in_which_nothing_is_of_the_payment_repays_nothing() -> None:
    """Also where the account could pay by something else: that is not asked for here."""
    made = by_card(20_000_000)
    made.books[f"party:{RENTER}:owed"], made.books[f"party:{RENTER}:cash"] = 5, 9
    for payment_id in ("pay_1", "pay_x"):
        idle = TakeIdleEscrow(payment_id=payment_id, job_id=JOB, at_us=NOON_US)
        assert made.do(idle) == []
    other = by_card(20_000_000, 0)
    other.books[f"party:{RENTER}:owed"] = 5
    for at_us in (NOON_US, NOON_US + 99 * HOUR_US):
        asked = TakeFundsBack(payment_id="pay_x", lease_id=lease_id(0), at_us=at_us)
        assert other.do(asked) == []
    assert lease_in(other, 0).is_running


def test_no_more_lies_idle_for_a_payment_than_was_spent_of_it() -> None:
    """Half of it was taken for the payment already; what else is owed is not its."""
    made = by_card(20_000_000)
    reverse(made, 5_000_000, MINUTE_US)
    made.books[f"party:{RENTER}:owed"] += 4_000_000
    idle = TakeIdleEscrow(payment_id="pay_1", job_id=JOB, at_us=NOON_US + MINUTE_US)
    made.do(idle)
    assert owed(made) == 4_000_000
    assert sum(part.amount.units for part in escrow_in(made).held) == 15_000_000


def test_what_was_taken_from_leases_is_not_taken_again_of_what_lies_idle() -> None:
    made = by_card(20_000_000, 0)
    reverse(made, 5_000_000, MINUTE_US, 0)
    close(made, 0, HOUR_US)
    settle(made, 0, HOUR_US)
    made.books[f"party:{RENTER}:owed"] = 4_000_000
    idle = TakeIdleEscrow(payment_id="pay_1", job_id=JOB, at_us=NOON_US + 2 * HOUR_US)
    assert made.do(idle) == []


def test_a_single_unit_that_is_owed_is_taken_of_what_lies_idle() -> None:
    made = by_card(20_000_000)
    reverse(made, 5_000_000, MINUTE_US)
    made.books[f"party:{RENTER}:owed"] = 1
    back, _ = made.do(TakeIdleEscrow(payment_id="pay_1", job_id=JOB, at_us=NOON_US + MINUTE_US))
    assert [part.amount.units for part in back.parts] == [1]


def test_of_an_escrow_that_is_short_the_same_account_loses_what_is_reversed_later_too() -> None:
    made = by_card(20_000_000, 0)
    reverse(made, 16_000_000, 2 * HOUR_US, 0)
    assert escrow_in(made).is_short
    reverse(made, 2_000_000, 2 * HOUR_US + 1, 0)
    assert sum(part.amount.units for part in escrow_in(made).held) == 2_000_000
    assert [one.allotted for one in escrow_in(made).members.values()] == [2_000_000]


def test_what_leases_draw_on_is_not_idle() -> None:
    made = by_card(20_000_000, 0)
    reverse(made, 15_000_000, MINUTE_US)
    idle = TakeIdleEscrow(payment_id="pay_1", job_id=JOB, at_us=NOON_US + MINUTE_US)
    assert made.do(idle) == []


@examples(60)
@given(data=st.data())
def test_no_order_of_joining_leaving_paying_and_taking_back_overdraws_it_or_loses_a_unit(
    data: st.DataObject,
) -> None:
    """Every posting is booked with limits. card in == used + left + taken back - owed."""
    paid = data.draw(st.integers(2_000, 6_000)) * 10_000
    made, us, next_number, back = by_card(paid), 0, 0, 0
    for _ in range(data.draw(st.integers(1, 12))):
        us += data.draw(st.integers(1, 90)) * MINUTE_US
        live = [n for n in range(next_number) if lease_in(made, n).is_running]
        waiting = [n for n in range(next_number) if lease_in(made, n).status == "closing"]
        step = data.draw(st.sampled_from(("join", "leave", "end", "settle", "take", "more")))
        try:
            if step == "join" and next_number < len(DEVICES):
                joined(made, next_number, us)
                next_number += 1
            elif step == "leave" and live:
                close(made, data.draw(st.sampled_from(live)), us)
            elif step == "end":
                for number in live:
                    if lease_in(made, number).window_end_us <= NOON_US + us:
                        close(made, number, us, "job", 100)
            elif step == "settle" and waiting:
                number = data.draw(st.sampled_from(waiting))
                settle(made, number, us, data.draw(st.integers(0, 600)) * MINUTE_US)
            elif step == "take":
                units = min(data.draw(st.integers(1, 2_000)) * 10_000, paid - back)
                if units:
                    reverse(made, units, us, *range(next_number))
                    back += units
            elif step == "more":
                made.do(fund(data.draw(st.integers(1, 5_000_000)), us))
        except Refused:
            if step == "join" and lease_in(made, next_number).requested is not None:
                next_number += 1
        consistent(made)
    for number in range(next_number):
        if lease_in(made, number).is_running:
            close(made, number, us)
        elif lease_in(made, number).status in ("requested", "reserved"):
            close(made, number, us, "renter", 101)
        if lease_in(made, number).status == "closing":
            settle(made, number, us, data.draw(st.integers(0, 600)) * MINUTE_US)
        consistent(made)
    made.do(ReturnEscrow(job_id=JOB, at_us=NOON_US + us + 99 * HOUR_US, by_owner=True))
    assert made.of("escrow:") == {}
    used = sum(lease_in(made, number).charge_units for number in range(next_number))
    mine = sum(made.balance(f"party:{RENTER}:{part}") for part in ("card", "cash"))
    assert paid == used + mine + back - owed(made)
