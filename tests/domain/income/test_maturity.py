"""Earnings mature posting by posting, and are swept once a day: C-23, C-24, economics 20 item 6."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.brought import CLIENTS_MAX, NO_CLIENT, ClientPart
from domain.duration import DAY_US, HOUR_US
from domain.funds import debt
from domain.income import maturity
from domain.income.cash_out import RequestCashOut
from domain.income.maturity import (
    DEFAULT_WINDOW_US,
    NETWORK,
    EarningsBrought,
    EarningsForgone,
    EarningsMatured,
    EarningsReduced,
    EarningsSwept,
    ForgoDust,
    MatureEarnings,
    MaturityWindowSet,
    PaymentModeSet,
    SetMaturityWindow,
    SetPaymentMode,
    SweepEarnings,
    due_at_us,
    due_until_us,
    earnings_of,
    stream_of,
    window_at,
)
from domain.income.reasons import IncomeReason
from domain.money import credit
from domain.parties.account import AccountClosed, AccountOpened
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Stream
from ledger.books.chart import kind_of
from ledger.books.postings import entries_for
from tests.given import Scene

DAY_ZERO_US = 20_777 * DAY_US
OWNER, BILLING = "acct_owner", "acct_billing"
EARNED = stream_of(OWNER)


def window(version: int, window_us: int, from_us: int) -> MaturityWindowSet:
    return MaturityWindowSet(
        version=version, window_us=window_us, effective_from_us=from_us, by="op", at_us=from_us
    )


def scene(*windows: MaturityWindowSet) -> Scene:
    opened = (
        (
            Stream("account", who),
            AccountOpened(account_id=who, kind="party", opened_by="op", at_us=0),
        )
        for who in (OWNER, BILLING)
    )
    return Scene().given(*opened, *((NETWORK, each) for each in windows))


at_once = window(1, 0, 1)


def mature(after: int, through: int, gross: int, at_us: int = DAY_ZERO_US) -> MatureEarnings:
    return MatureEarnings(
        account_id=OWNER,
        after_position=after,
        through_position=through,
        through_us=at_us,
        gross=gross,
        at_us=at_us,
    )


def nobodys(units: int) -> tuple[ClientPart, ...]:
    """What no client is known of."""
    return (ClientPart(NO_CLIENT, units),) if units else ()


def matured(
    after: int, through: int, gross: int, reduced: int = 0, before: int = 0
) -> tuple[Stream[Any], Any]:
    return EARNED, EarningsMatured(
        account_id=OWNER,
        after_position=after,
        through_position=through,
        gross=credit(gross),
        reduced=credit(reduced),
        amount=credit(gross - reduced),
        at_us=DAY_ZERO_US,
        clients=nobodys(gross - reduced),
        before=before,
    )


def sweep(at_us: int = DAY_ZERO_US) -> SweepEarnings:
    return SweepEarnings(account_id=OWNER, at_us=at_us)


def mode(**changes: Any) -> SetPaymentMode:
    asked = SetPaymentMode(
        account_id=OWNER,
        mode="credits",
        billing_account_id=BILLING,
        destination=None,
        by="mem",
        at_us=DAY_ZERO_US,
    )
    return replace(asked, **changes)


# --- maturing -----------------------------------------------------------------------------------


def test_what_is_due_matures_and_the_next_range_begins_where_it_ended() -> None:
    first = scene(at_once).when(mature(0, 7, 100))
    first.then(matured(0, 7, 100))
    after = scene(at_once).after(mature(0, 7, 100))
    after.when(mature(7, 9, 5)).then(matured(7, 9, 5))


def test_the_same_range_again_changes_nothing_and_another_start_is_refused() -> None:
    after = scene(at_once).after(mature(0, 7, 100))
    after.when(mature(0, 7, 100)).then_nothing()
    after.when(mature(0, 9, 105)).then_refused(
        IncomeReason.EARNINGS_STATE, after_position=0, expected=7
    )
    after.when(mature(8, 9, 5)).then_refused(
        IncomeReason.EARNINGS_STATE, after_position=8, expected=7
    )


def test_nothing_earned_makes_no_fact_and_the_range_stays_open() -> None:
    after = scene(at_once).after(mature(0, 7, 0))
    after.when(mature(0, 9, 5)).then(matured(0, 9, 5))


def test_nothing_matures_before_its_window_is_over() -> None:
    early = replace(mature(0, 7, 100), at_us=DAY_ZERO_US + DEFAULT_WINDOW_US - 1)
    scene().when(early).then_refused(IncomeReason.EARNINGS_STATE, through_us=..., due_until_us=...)
    on_time = replace(early, at_us=DAY_ZERO_US + DEFAULT_WINDOW_US)
    assert scene().when(on_time).changes()


def test_what_was_taken_before_it_matured_does_not_mature() -> None:
    taken = maturity.reduce(scene(), OWNER, 6, 30, "dispute:d1", DAY_ZERO_US)
    assert taken.fact == EarningsReduced(
        account_id=OWNER, position=6, units=30, cause="dispute:d1", at_us=DAY_ZERO_US
    )
    later = maturity.reduce(scene(), OWNER, 8, 1, "dispute:d2", DAY_ZERO_US)
    world = scene(at_once).given((taken.stream, taken.fact), (later.stream, later.fact))
    world.when(mature(0, 7, 100)).then(matured(0, 7, 100, reduced=30))
    after = world.after(mature(0, 7, 100))
    assert earnings_of(after, OWNER).reductions == {8: 1}, "the one of position 8 still waits"
    after.when(mature(7, 9, 1)).then(matured(7, 9, 1, reduced=1))


def test_what_has_matured_cannot_be_reduced() -> None:
    after = scene(at_once).after(mature(0, 7, 100))
    with pytest.raises(Refused) as caught:
        maturity.reduce(after, OWNER, 7, 1, "dispute:d1", DAY_ZERO_US)
    assert caught.value.reason is IncomeReason.EARNING_MATURED
    assert maturity.reduce(after, OWNER, 8, 1, "dispute:d1", DAY_ZERO_US)


def test_more_taken_than_was_earned_is_a_bug_and_matures_nothing() -> None:
    taken = maturity.reduce(scene(), OWNER, 6, 101, "dispute:d1", DAY_ZERO_US)
    with pytest.raises(AssertionError):
        scene(at_once).given((taken.stream, taken.fact)).when(mature(0, 7, 100)).changes()


# --- windows ------------------------------------------------------------------------------------


def test_a_window_holds_for_what_is_posted_from_then_on() -> None:
    command = SetMaturityWindow(
        version=1, window_us=0, effective_from_us=DAY_ZERO_US, by="op", at_us=DAY_ZERO_US
    )
    fact = MaturityWindowSet(
        version=1, window_us=0, effective_from_us=DAY_ZERO_US, by="op", at_us=DAY_ZERO_US
    )
    scene().when(command).then((NETWORK, fact))
    world = scene().after(command)
    world.when(replace(command, by="another")).then_nothing()
    world.when(replace(command, window_us=1)).then_refused(
        IncomeReason.MATURITY_WINDOW, version=1, expected=2
    )
    world.when(replace(command, version=3)).then_refused(
        IncomeReason.MATURITY_WINDOW, version=3, expected=2
    )
    world.when(replace(command, version=2)).then_refused(
        IncomeReason.MATURITY_WINDOW, effective_from_us=...
    )
    past = replace(command, effective_from_us=DAY_ZERO_US - 1)
    scene().when(past).then_refused(IncomeReason.MATURITY_WINDOW, effective_from_us=...)
    world.when(replace(past, version=2)).then_refused(
        IncomeReason.MATURITY_WINDOW, effective_from_us=...
    )
    scene().when(replace(command, window_us=-1)).then_refused(
        IncomeReason.MATURITY_WINDOW, window_us=-1, most=...
    )
    windows = (fact,)
    assert window_at(windows, DAY_ZERO_US) == 0
    assert window_at(windows, DAY_ZERO_US - 1) == DEFAULT_WINDOW_US == 72 * HOUR_US


window_lists = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 30)), max_size=4, unique_by=lambda each: each[1]
).map(
    lambda pairs: [
        window(index, length * HOUR_US, start * HOUR_US)
        for index, (length, start) in enumerate(sorted(pairs, key=lambda pair: pair[1]), start=1)
    ]
)


@given(
    windows=window_lists, posted=st.integers(0, 150 * HOUR_US), now=st.integers(0, 300 * HOUR_US)
)
def test_all_that_is_due_was_posted_its_own_window_ago_and_nothing_due_is_left(
    windows: list[MaturityWindowSet], posted: int, now: int
) -> None:
    until_us = due_until_us(windows, now)
    if posted <= until_us:
        assert posted + window_at(windows, posted) <= now
    moments = {0, posted, *(each.effective_from_us - 1 for each in windows)}
    blockers = [at for at in moments if at <= posted and at + window_at(windows, at) > now]
    assert (posted <= until_us) == (not blockers), "it waits for its own window, or an earlier one"


def test_of_three_windows_each_ends_where_the_next_one_begins() -> None:
    """72 hours at first, 10 for what is posted from hour 100, none from hour 130."""
    windows = [window(1, 10 * HOUR_US, 100 * HOUR_US), window(2, 0, 130 * HOUR_US)]
    due = {now: due_until_us(windows, now * HOUR_US) for now in (120, 171, 172, 175, 180)}
    last_us = 100 * HOUR_US - 1
    assert due == {
        120: 48 * HOUR_US,
        171: 99 * HOUR_US,
        172: 172 * HOUR_US,  # what was posted before hour 100 is due, and so is all that waited
        175: 175 * HOUR_US,
        180: 180 * HOUR_US,
    }
    assert due_until_us(windows, 172 * HOUR_US - 2) == last_us - 1
    early = [windows[0], window(2, 0, 101 * HOUR_US)]
    assert due_until_us(early, 172 * HOUR_US) == 172 * HOUR_US
    longer = [window(1, 90 * HOUR_US, 100 * HOUR_US), window(2, 0, 130 * HOUR_US)]
    assert due_until_us(longer, 180 * HOUR_US) == last_us
    assert due_until_us(longer, 195 * HOUR_US) == 105 * HOUR_US


@given(windows=window_lists, posted=st.integers(0, 150 * HOUR_US))
def test_the_moment_told_is_the_first_at_which_it_is_due(
    windows: list[MaturityWindowSet], posted: int
) -> None:
    at_us = due_at_us(windows, posted)
    assert due_until_us(windows, at_us) >= posted > due_until_us(windows, at_us - 1)


# --- sweeping -----------------------------------------------------------------------------------


def test_all_that_is_payable_is_swept_and_a_second_run_on_the_day_does_nothing() -> None:
    """C-24: every 24 h, no fee."""
    payable = scene().having({f"party:{OWNER}:payable": 700})
    swept = EarningsSwept(
        account_id=OWNER,
        day=20_777,
        amount=credit(700),
        to_account_id=OWNER,
        at_us=DAY_ZERO_US,
        clients=nobodys(700),
        before=0,
    )
    payable.when(sweep()).then((EARNED, swept))
    after = payable.after(sweep())
    after.when(sweep(DAY_ZERO_US + DAY_US - 1)).then_nothing()
    after.when(sweep(DAY_ZERO_US - 1)).then_nothing()
    assert after.when(sweep(DAY_ZERO_US + DAY_US)).changes()


def test_nothing_payable_is_no_sweep_and_does_not_use_the_day_up() -> None:
    scene().when(sweep()).then_nothing()


def test_a_sweep_goes_to_the_billing_account_while_that_is_open() -> None:
    billed = scene().having({f"party:{OWNER}:payable": 700}).after(mode())
    change, brought = billed.when(sweep()).changes()
    assert change.fact.to_account_id == BILLING
    assert brought.fact == EarningsBrought(
        account_id=BILLING,
        source=f"earnings:{OWNER}",
        book="earned",
        amount=credit(700),
        clients=nobodys(700),
        before=0,
        at_us=DAY_ZERO_US,
    )
    closed = AccountClosed(account_id=BILLING, by="mem", at_us=DAY_ZERO_US)
    (change,) = billed.given((Stream("account", BILLING), closed)).when(sweep()).changes()
    assert change.fact.to_account_id == OWNER


def test_a_payment_mode_names_an_open_account_and_cash_its_destination() -> None:
    fact = PaymentModeSet(
        account_id=OWNER,
        mode="credits",
        billing_account_id=BILLING,
        destination=None,
        by="mem",
        at_us=DAY_ZERO_US,
        destination_from_us=None,
    )
    scene().when(mode()).then((EARNED, fact))
    scene().after(mode()).when(mode()).then_nothing()
    assert earnings_of(scene().after(mode()), OWNER).destination_from_us == 0
    scene().when(mode(mode="gold")).then_refused(IncomeReason.PAYMENT_MODE, mode="gold")
    scene().when(mode(mode="cash")).then_refused(
        IncomeReason.PAYMENT_MODE, mode="cash", rule="cash needs a destination"
    )
    cash = mode(mode="cash", destination="acct_1")
    scene().when(cash).then_refused(
        IncomeReason.PAYMENT_MODE, mode="cash", rule="cash is paid to its own account"
    )
    assert scene().when(replace(cash, billing_account_id=OWNER)).changes()
    scene().when(mode(billing_account_id="acct_none")).then_refused(PartiesReason.ACCOUNT_UNKNOWN)


def test_the_first_destination_waits_as_a_changed_one_does() -> None:
    """The attack: a stolen key names a destination where there is none, and is paid at once."""
    first = scene().after(mode(destination="acct_1"))
    from_us = DAY_ZERO_US + maturity.DESTINATION_DELAY_US
    assert earnings_of(first, OWNER).destination_from_us == from_us
    kept = first.after(mode(billing_account_id=OWNER))
    assert earnings_of(kept, OWNER).destination == "acct_1", "None keeps it"
    changed = kept.after(mode(destination="acct_2"))
    state = earnings_of(changed, OWNER)
    assert (state.destination, state.destination_from_us) == (
        "acct_2",
        DAY_ZERO_US + maturity.DESTINATION_DELAY_US,
    )
    changed.when(mode(destination="acct_2")).then_nothing()


def test_what_the_billing_account_owes_is_repaid_by_the_sweep_itself() -> None:
    owing = scene().having({f"party:{OWNER}:payable": 700, f"party:{OWNER}:owed": 500})
    swept, repaid = owing.when(sweep()).changes()
    assert swept.fact.amount == credit(700)
    assert repaid.fact.paid == (debt.Repaid("earned", credit(500)),)


def test_less_than_a_cent_of_earnings_can_be_given_up_and_more_cannot() -> None:
    forgo = ForgoDust(account_id=OWNER, by="mem", at_us=DAY_ZERO_US)
    given_up = EarningsForgone(account_id=OWNER, amount=credit(9_999), by="mem", at_us=DAY_ZERO_US)
    scene().having({f"party:{OWNER}:earned": 9_999}).when(forgo).then((EARNED, given_up))
    scene().when(forgo).then_nothing()
    rich = scene().having({f"party:{OWNER}:earned": 10_000})
    rich.when(forgo).then_refused(PricesReason.AMOUNT_OUT_OF_RANGE)


# --- the whole of it ----------------------------------------------------------------------------

steps = st.lists(
    st.one_of(
        st.tuples(st.just("earn"), st.integers(1, 10**6)),
        st.tuples(st.just("reduce"), st.integers(0, 10**6)),
        st.tuples(st.just("mature"), st.integers(0, 40)),
        st.tuples(st.just("sweep"), st.integers(0, 40)),
        st.tuples(st.just("wait"), st.integers(1, 30)),
    ),
    max_size=40,
)


class Run:
    """An account whose books are kept by hand: postings by position, and what each was moved."""

    def __init__(self, windows: list[MaturityWindowSet]) -> None:
        self.world = scene(*windows)
        self.windows = windows
        self.now_us = DAY_ZERO_US
        self.earned: dict[int, tuple[int, int]] = {}  # position -> units, when
        self.reduced: dict[int, int] = {}
        self.times_matured: dict[int, int] = {}
        self.sweeps: list[int] = []
        self.head = 0

    def book(self, *lines: tuple[str, int]) -> None:
        moved = dict(self.world.balances)
        for name, units in lines:
            moved[name] = moved.get(name, 0) + kind_of(name).side * units
            assert moved[name] >= 0, name
        self.world = self.world.having(moved)

    def earn(self, units: int) -> None:
        self.head += 1
        self.earned[self.head] = (units, self.now_us)
        self.book((f"party:{OWNER}:holdback", -units))

    def reduce(self, pick: int) -> None:
        through = earnings_of(self.world, OWNER).matured_through
        open_ones = [at for at in self.earned if at > through]
        if not open_ones:
            return
        position = open_ones[pick % len(open_ones)]
        left = self.earned[position][0] - self.reduced.get(position, 0)
        if not left:
            return
        units = 1 + pick % left
        change = maturity.reduce(self.world, OWNER, position, units, "dispute:d", self.now_us)
        self.world = self.world.given((change.stream, change.fact))
        self.reduced[position] = self.reduced.get(position, 0) + units
        self.book((f"party:{OWNER}:holdback", units))

    def mature(self, back: int) -> None:
        """A run whose look at the log ended `back` positions ago, as a late one's may."""
        state = earnings_of(self.world, OWNER)
        due_us = due_until_us(self.windows, self.now_us)
        due = [at for at, (_, posted) in self.earned.items() if posted <= due_us]
        through = max(0, len(due) - back % 3)
        if not through:
            return
        inside = [at for at in self.earned if state.matured_through < at <= through]
        command = MatureEarnings(
            account_id=OWNER,
            after_position=state.matured_through,
            through_position=through,
            through_us=self.earned[through][1],
            gross=sum(self.earned[at][0] for at in inside),
            at_us=self.now_us,
        )
        for change in self.world.when(command).changes():
            for at in inside:
                self.times_matured[at] = self.times_matured.get(at, 0) + 1
            self.take(change.fact)
        self.world.when(command).then_nothing()

    def sweep(self, _: int) -> None:
        for change in self.world.when(sweep(self.now_us)).changes():
            self.sweeps.append(change.fact.day)
            self.take(change.fact)
            assert self.world.balance(f"party:{OWNER}:payable") == 0, "balance after = 0"
        self.world.when(sweep(self.now_us)).then_nothing()

    def wait(self, hours: int) -> None:
        self.now_us += hours * HOUR_US

    def take(self, fact: Any) -> None:
        self.world = self.world.given((EARNED, fact))
        for entry in entries_for(fact):
            self.book(*entry.lines)


@given(steps=steps, windows=window_lists)
def test_credited_is_held_back_plus_matured_plus_reduced_and_each_accrual_matures_once(
    steps: list[tuple[str, int]], windows: list[MaturityWindowSet]
) -> None:
    """Whatever the times of the runs: C-23, C-24."""
    windows = [
        replace(each, effective_from_us=each.effective_from_us + DAY_ZERO_US) for each in windows
    ]
    run = Run(windows)
    for name, number in steps:
        getattr(run, name)(number)
    for _ in range(2):
        run.wait(24 * 10)
        run.mature(0)
        run.sweep(0)
    credited = sum(units for units, _ in run.earned.values())
    facts = [fact for _, fact in run.world.past if isinstance(fact, EarningsMatured)]
    amount = sum(fact.amount.units for fact in facts)
    reduced = sum(run.reduced.values())
    assert sum(fact.gross.units for fact in facts) == credited
    assert credited == run.world.balance(f"party:{OWNER}:holdback") + amount + reduced
    assert set(run.times_matured.values()) <= {1}
    assert run.times_matured.keys() == run.earned.keys()
    assert run.world.balance(f"party:{OWNER}:holdback") == 0
    assert run.world.balance(f"party:{OWNER}:earned") == amount
    assert sorted(set(run.sweeps)) == run.sweeps, "once per UTC day"


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "a", "b", "c"]), st.integers(1, 10**12)),
        min_size=1,
        max_size=4,
        unique_by=lambda one: one[0],
    )
)
def test_what_matures_is_told_by_client_to_the_unit(clients: list[tuple[str, int]]) -> None:
    """R-1: a payout carries the clients whose work it is for."""
    gross = sum(units for _, units in clients)
    command = replace(mature(0, 9, gross), clients=tuple(clients))
    (change,) = scene(at_once).when(command).changes()
    told = {one.client_id: one.units for one in change.fact.clients}
    assert told == dict(clients)
    assert sum(told.values()) == change.fact.gross.units


def test_more_clients_than_a_fact_names_are_told_together() -> None:
    clients = tuple((f"c{number:03d}", 2) for number in range(CLIENTS_MAX + 5))
    command = replace(mature(0, 9, 2 * len(clients)), clients=clients)
    (change,) = scene(at_once).when(command).changes()
    assert len(change.fact.clients) == CLIENTS_MAX + 1
    assert change.fact.clients[-1] == ClientPart(NO_CLIENT, 10)


def told(fact: Any) -> dict[str, int]:
    assert sum(one.units for one in fact.clients) == fact.amount.units, fact
    return {one.client_id: one.units for one in fact.clients}


def test_clients_go_along_from_maturing_through_sweeps_to_the_cash_out() -> None:
    """R-1: what left the book in between took of each client in proportion."""
    payable, earned = f"party:{OWNER}:payable", f"party:{OWNER}:earned"
    cash = mode(mode="cash", billing_account_id=OWNER, destination="acct_x", at_us=0)
    first = replace(mature(0, 5, 40_000_000), clients=(("acct_c", 30_000_000), ("d", 10_000_000)))
    world = scene(at_once).after(cash).after(first)
    world = world.having({payable: 40_000_000})
    (swept,) = world.when(sweep()).changes()
    assert told(swept.fact) == {"acct_c": 30_000_000, "d": 10_000_000}
    # Half of it is spent, and then as much is earned again, all of one client.
    later = DAY_ZERO_US + DAY_US
    world = world.after(sweep()).having({payable: 0, earned: 20_000_000})
    second = replace(mature(5, 9, 20_000_000, later), clients=(("d", 20_000_000),))
    world = world.after(second).having({payable: 20_000_000}).after(sweep(later))
    world = world.having({payable: 0, earned: 40_000_000, "world:bank": 10**9})
    asked = RequestCashOut(
        cash_out_id="cashout_a", account_id=OWNER, amount=None, by="mem", at_us=later + 9 * DAY_US
    )
    (change,) = world.when(asked).changes()
    assert told(change.fact) == {"acct_c": 15_000_000, "d": 25_000_000}


def test_a_reduction_is_taken_of_the_clients_that_are_left_when_it_matures() -> None:
    taken = EarningsReduced(account_id=OWNER, position=3, units=40, cause="dispute:d", at_us=0)
    known = replace(mature(0, 9, 100), clients=(("a", 60),))
    (change,) = scene(at_once).given((EARNED, taken)).when(known).changes()
    assert told(change.fact) == {"a": 60}
    stale = replace(mature(0, 9, 100), clients=(("a", 60), ("b", 40)))
    (change,) = scene(at_once).given((EARNED, taken)).when(stale).changes()
    assert told(change.fact) == {"a": 36, "b": 24}, "of each in proportion, where more is told"


def test_the_windows_of_income_in_numbers() -> None:
    """Design economics 5: 72 hours at first, 90 days at most; a new destination waits 72 hours."""
    hour_us = 3_600_000_000
    assert 72 * hour_us == maturity.DEFAULT_WINDOW_US
    assert 90 * 24 * hour_us == maturity.WINDOW_US_MAX
    assert maturity.CAUSE_LENGTH_MAX == 200
    assert 72 * hour_us == maturity.DESTINATION_DELAY_US


def test_a_position_that_matured_keeps_no_reduction_and_a_later_one_does() -> None:
    state = maturity.Earnings(reductions={6: 1, 7: 2, 8: 3})
    _, fact = matured(0, 7, 100)
    after = maturity.evolve_earnings(state, fact)
    assert (after.matured_through, after.reductions) == (7, {8: 3})


def test_what_is_due_ends_where_the_next_window_begins_and_waits_there_for_its_length() -> None:
    """72 hours at first, then 10 us, then 40: by the length of a window, or all before the next."""
    whole_us = DEFAULT_WINDOW_US
    windows = [window(1, 10, whole_us), window(2, 40, 2 * whole_us)]
    for now_us, due_us in (
        (whole_us - 1, -1),
        (whole_us, 0),
        (2 * whole_us - 2, whole_us - 2),
        (2 * whole_us - 1, 2 * whole_us - 11),  # all before the second window is due
        (2 * whole_us + 8, 2 * whole_us - 2),
        (2 * whole_us + 9, 2 * whole_us - 1),
        (2 * whole_us + 39, 2 * whole_us - 1),
        (2 * whole_us + 40, 2 * whole_us),
        (9 * whole_us, 9 * whole_us - 40),
    ):
        assert due_until_us(windows, now_us) == due_us, now_us
    assert [due_until_us([], us) for us in (0, whole_us, whole_us + 5)] == [-1, 0, 5]
