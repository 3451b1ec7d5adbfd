"""Payments: what arrives, what is taken back, and who owns every unit of it in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import rules
from domain.authority.acts import LIMITS, ActRequest, ActSignature
from domain.authority.reasons import AuthorityReason
from domain.checked_acts import CheckedAct
from domain.duration import DAY_US
from domain.funds.card_money import CardMoney, CardMoneyMoved, TurnCardMoney, card_money_of
from domain.funds.debt import (
    DebtRepaid,
    DebtWrittenOff,
    FundReserve,
    Repaid,
    RepayDebt,
    WriteOffDebt,
)
from domain.funds.deposit import ConfirmDeposit
from domain.funds.payment import (
    PAYMENT_UNITS_MAX,
    TAKINGS_MAX,
    AskRefund,
    ConfirmPayment,
    ConfirmRefund,
    FailPayment,
    FailRefund,
    OfferPayment,
    Payment,
    PaymentConfirmed,
    PaymentReversed,
    ReceivePayment,
    ReinstatePayment,
    ReversePayment,
    StartPayment,
    payment_of,
    stream_of,
)
from domain.funds.payment_terms import CENT_UNITS, FIRST, PublishPaymentTerms, terms_at
from domain.funds.reasons import FundsReason
from domain.money import Asset, credit
from domain.parties.account import AccountClosed, AccountOpened
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from domain.stream import Stream
from ledger.books.chart import kind_of
from ledger.books.entry import entry
from ledger.books.postings import entries_for
from tests.domain.scenes.supply import ALICE, ALICE_STREAM, NOON_US, opened
from tests.given import Scene
from tests.scenes.governors import ANNA, BORIS, THREE, enrolled

WINDOW_US = 120 * DAY_US
BOB = "acct_bob"


class Booked:
    """A world with books: every fact is booked, and no account may fall below zero."""

    def __init__(self) -> None:
        self.states: dict[Stream[Any], Any] = {}
        self.balances: dict[str, int] = {}
        self.facts: list[Any] = []
        self.now_us = NOON_US
        self.tell(ALICE_STREAM, opened)
        bob = AccountOpened(account_id=BOB, kind="party", opened_by="op", at_us=NOON_US)
        self.tell(Stream("account", BOB), bob)

    def state(self, stream: Stream[Any]) -> Any:
        return self.states.get(stream, rules.initial(stream.kind))

    def balance(self, account: str) -> int:
        return self.balances.get(account, 0)

    def of(self, part: str, account_id: str = ALICE) -> int:
        return self.balance(f"party:{account_id}:{part}")

    def tell(self, stream: Stream[Any], fact: Any) -> None:
        self.states[stream] = rules.evolve(stream.kind, self.state(stream), fact)
        self.facts.append(fact)
        for each in entries_for(fact):
            self.move(*each.lines)

    def move(self, *lines: tuple[str, int]) -> None:
        for each in entry(Asset.CREDIT, *lines):
            for name, units in each.lines:
                self.balances[name] = self.balance(name) + kind_of(name).side * units
                assert self.balances[name] >= 0, (name, self.facts[-1])

    def do(self, command: Any) -> list[Any]:
        """The facts a command leads to, booked; the same command again leads to none."""
        changes = rules.decide(command, self)
        for change in changes:
            self.tell(change.stream, change.fact)
        return [change.fact for change in changes]

    def refused(self, command: Any) -> Reason:
        with pytest.raises(Refused) as caught:
            rules.decide(command, self)
        return caught.value.reason

    def paid(
        self, payment_id: str = "pay_1", units: int = 25_000_000, method: str = "card"
    ) -> None:
        self.do(start(payment_id, units, method, at_us=self.now_us))
        self.do(receive(payment_id, units, at_us=self.now_us))

    def spend(self, units: int, source: str = "card", account_id: str = ALICE) -> None:
        """What a lease does in the end: a provider earned it."""
        self.move((f"party:{account_id}:{source}", units), ("party:acct_owner:holdback", -units))

    def hold(self, units: int) -> None:
        self.move((f"party:{ALICE}:card", units), ("escrow:lease_1:1:card", -units))

    def give_back(self, units: int) -> None:
        self.move(("escrow:lease_1:1:card", units), (f"party:{ALICE}:card", -units))

    def status(self, payment_id: str = "pay_1") -> str:
        return payment_of(self, payment_id).status


def start(
    payment_id: str = "pay_1", units: int = 25_000_000, method: str = "card", at_us: int = NOON_US
) -> StartPayment:
    return StartPayment(
        payment_id=payment_id,
        account_id=ALICE,
        method=method,
        processor="stripe",
        amount=credit(units),
        by="mem_alice",
        at_us=at_us,
    )


def receive(
    payment_id: str = "pay_1", units: int = 25_000_000, at_us: int = NOON_US
) -> ReceivePayment:
    return ReceivePayment(
        payment_id=payment_id,
        amount=credit(units),
        reference=f"pi_{payment_id}",
        by="stripe",
        at_us=at_us,
    )


def confirm(payment_id: str = "pay_1", at_us: int = NOON_US + WINDOW_US) -> ConfirmPayment:
    return ConfirmPayment(payment_id=payment_id, at_us=at_us)


def take_back(
    units: int = 25_000_000, payment_id: str = "pay_1", dispute: str = "dp_1"
) -> ReversePayment:
    return ReversePayment(
        payment_id=payment_id,
        reference=dispute,
        amount=credit(units),
        reason="fraudulent",
        at_us=NOON_US + 1,
    )


# --- starting ----------------------------------------------------------------------------------


def test_a_purchase_is_of_25_credits_at_least_c_25() -> None:
    world = Booked()
    assert world.refused(start(units=24_990_000)) is FundsReason.PAYMENT_BELOW_MINIMUM
    assert world.do(start(units=25_000_000))


def test_what_moves_outside_is_positive_whole_cents_of_credits() -> None:
    world = Booked()
    assert world.refused(start(units=25_000_001)) is FundsReason.AMOUNT_NOT_CENTS
    assert world.refused(start(units=0)) is FundsReason.AMOUNT_NOT_POSITIVE
    assert world.refused(start(units=10**12 + CENT_UNITS)) is PricesReason.AMOUNT_OUT_OF_RANGE


def test_a_payment_is_of_an_account_that_is_open() -> None:
    world = Booked()
    assert world.refused(replace(start(), account_id="acct_no")) is PartiesReason.ACCOUNT_UNKNOWN
    world.tell(ALICE_STREAM, AccountClosed(account_id=ALICE, by="mem_alice", at_us=NOON_US))
    assert world.refused(start()) is PartiesReason.ACCOUNT_CLOSED


def test_the_same_payment_starts_once_and_another_under_its_id_is_refused() -> None:
    world = Booked()
    assert len(world.do(start())) == 1
    assert world.do(replace(start(), by="mem_eve", at_us=NOON_US + 1)) == []
    for other in (start(units=26_000_000), start(method="bank"), replace(start(), account_id=BOB)):
        assert world.refused(other) is FundsReason.PAYMENT_STATE


def test_a_payment_keeps_the_terms_it_was_started_under() -> None:
    world = Booked()
    world.do(start())
    shorter = PublishPaymentTerms(
        version=1,
        minimum=credit(10_000_000),
        chargeback_window_us=60 * DAY_US,
        effective_from_us=NOON_US + 5,
        by="op",
        at_us=NOON_US,
    )
    assert world.do(shorter)
    assert world.do(shorter) == []
    assert terms_at(world, NOON_US + 4) == FIRST
    assert terms_at(world, NOON_US + 5).minimum == credit(10_000_000)
    world.do(receive(at_us=NOON_US + 6))
    early = confirm(at_us=NOON_US + 6 + 60 * DAY_US)
    assert world.refused(early) is FundsReason.PAYMENT_NOT_DUE
    assert world.do(start("pay_2", 10_000_000, at_us=NOON_US + 6))
    world.do(receive("pay_2", 10_000_000, at_us=NOON_US + 6))
    assert world.do(replace(early, payment_id="pay_2"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 2}, FundsReason.PAYMENT_TERMS_VERSION),
        ({"version": 0}, FundsReason.PAYMENT_TERMS_VERSION),
        ({"effective_from_us": NOON_US - 1}, FundsReason.PAYMENT_TERMS_INVALID),
        ({"minimum": credit(25_000_001)}, FundsReason.PAYMENT_TERMS_INVALID),
        ({"minimum": credit(0)}, FundsReason.PAYMENT_TERMS_INVALID),
        ({"chargeback_window_us": -1}, FundsReason.PAYMENT_TERMS_INVALID),
    ],
)
def test_terms_that_break_a_rule_are_refused(changes: dict[str, Any], reason: Reason) -> None:
    good: dict[str, Any] = {
        "version": 1,
        "minimum": credit(25_000_000),
        "chargeback_window_us": DAY_US,
        "effective_from_us": NOON_US,
        "by": "op",
        "at_us": NOON_US,
    }
    assert Scene().when(PublishPaymentTerms(**good)).changes()
    Scene().when(PublishPaymentTerms(**good | changes)).then_refused(reason)


def test_nobody_pays_what_was_never_started() -> None:
    world = Booked()
    failed = FailPayment(payment_id="pay_1", reason="x", at_us=1)
    for command in (receive(), confirm(), take_back(), failed):
        assert world.refused(command) is FundsReason.PAYMENT_UNKNOWN


def test_a_payment_has_one_reference_at_the_processor() -> None:
    world = Booked()
    world.do(start())
    offer = OfferPayment(payment_id="pay_1", reference="cs_1", at_us=NOON_US)
    assert world.do(offer)
    assert world.do(offer) == []
    assert world.refused(replace(offer, reference="cs_2")) is FundsReason.PAYMENT_STATE


# --- arriving ----------------------------------------------------------------------------------


def test_card_money_is_spendable_at_once_and_confirmed_after_its_window() -> None:
    world = Booked()
    world.paid()
    assert (world.status(), world.of("card")) == ("pending", 25_000_000)
    assert (world.balance("world:card"), world.balance("world:bank")) == (25_000_000, 0)
    assert world.refused(confirm(at_us=NOON_US + WINDOW_US - 1)) is FundsReason.PAYMENT_NOT_DUE
    world.do(confirm())
    assert world.do(confirm()) == []
    assert (world.status(), world.of("card"), world.of("cash")) == ("confirmed", 0, 25_000_000)
    assert (world.balance("world:card"), world.balance("world:bank")) == (0, 25_000_000)


def test_bank_money_is_cash_at_once() -> None:
    world = Booked()
    world.paid(method="bank")
    assert (world.status(), world.of("cash")) == ("confirmed", 25_000_000)
    assert world.balance("world:bank") == 25_000_000
    assert world.do(confirm()) == []


def test_a_payment_counts_once_however_often_the_processor_tells_it() -> None:
    world = Booked()
    world.paid()
    assert world.do(receive(at_us=NOON_US + 7)) == []
    other = replace(receive(), reference="pi_other")
    assert world.refused(other) is FundsReason.PAYMENT_STATE
    assert world.of("card") == 25_000_000


def test_what_arrived_is_booked_whatever_was_asked_for() -> None:
    world = Booked()
    world.do(start(method="bank"))
    world.do(receive(units=24_000_000))
    assert world.of("cash") == 24_000_000


@pytest.mark.parametrize(("method", "days"), [("card", 1), ("bank", 14)])
def test_a_payment_that_nobody_pays_waits_its_days(method: str, days: int) -> None:
    world = Booked()
    (started, *_) = world.do(start(method=method))
    assert started.expires_at_us == NOON_US + days * 24 * 3_600_000_000


def test_money_that_arrives_late_is_taken_all_the_same() -> None:
    world = Booked()
    world.do(start())
    failed = FailPayment(payment_id="pay_1", reason="expired", at_us=NOON_US)
    assert world.do(failed)
    assert world.do(failed) == []
    assert world.status() == "failed"
    world.do(receive())
    assert (world.status(), world.of("card")) == ("pending", 25_000_000)
    assert world.refused(failed) is FundsReason.PAYMENT_STATE


def test_money_for_an_account_that_closed_waits_in_suspense_and_can_be_taken_back() -> None:
    world = Booked()
    world.do(start())
    world.tell(ALICE_STREAM, AccountClosed(account_id=ALICE, by="mem_alice", at_us=NOON_US))
    world.do(receive())
    assert (world.of("card"), world.balance("network:suspense")) == (0, 25_000_000)
    world.do(take_back(5_000_000))
    world.do(confirm())
    assert world.balance("network:suspense") == world.balance("world:bank") == 20_000_000
    ask = AskRefund(
        payment_id="pay_1", refund_id="ref_1", amount=credit(10_000), by="op", at_us=NOON_US
    )
    assert world.refused(ask) is FundsReason.PAYMENT_STATE


# --- unspent at the end of the window ----------------------------------------------------------


def test_money_for_an_account_that_closed_is_nobodys_card_money() -> None:
    world = Booked()
    world.do(start())
    world.tell(ALICE_STREAM, AccountClosed(account_id=ALICE, by="m", at_us=NOON_US))
    (told,) = world.do(receive())
    assert told.account_id is None


def test_card_money_is_spent_oldest_first_so_only_what_is_final_becomes_cash() -> None:
    """Else somebody would withdraw the confirmed half and reverse the spent one."""
    world = Booked()
    world.paid("pay_1")
    world.now_us += 100 * DAY_US
    world.paid("pay_2")
    world.spend(25_000_000)
    world.do(confirm("pay_1"))
    assert (world.of("card"), world.of("cash")) == (25_000_000, 0)
    assert card_money_of(world, ALICE) == CardMoney(exposed=25_000_000, settled=25_000_000)
    world.do(take_back(payment_id="pay_2"))
    assert (world.of("card"), world.of("owed")) == (0, 0), "the network lost nothing"


def test_what_is_unspent_beyond_newer_payments_becomes_cash() -> None:
    world = Booked()
    world.paid("pay_1", 40_000_000)
    world.now_us += DAY_US
    world.paid("pay_2")
    world.spend(10_000_000)
    world.do(confirm("pay_1"))
    assert (world.of("card"), world.of("cash")) == (25_000_000, 30_000_000)


def test_card_money_that_an_escrow_gives_back_after_its_window_becomes_cash() -> None:
    world = Booked()
    world.paid()
    world.hold(20_000_000)
    world.do(confirm())
    assert (world.of("card"), world.of("cash")) == (0, 5_000_000)
    turn = TurnCardMoney(account_id=ALICE, at_us=NOON_US)
    assert world.do(turn) == []
    world.give_back(12_000_000)
    (fact,) = world.do(turn)
    assert isinstance(fact, CardMoneyMoved)
    assert (world.of("card"), world.of("cash")) == (0, 17_000_000)
    assert world.do(turn) == []


def test_an_operators_card_deposit_stays_card_money() -> None:
    """No payment was started for it, so nobody knows when its window is over."""
    world = Booked()
    world.do(
        ConfirmDeposit(
            deposit_id="dep_1",
            account_id=ALICE,
            source="card",
            amount=credit(9),
            reference="r",
            confirmed_by="op",
            at_us=NOON_US,
        )
    )
    assert world.do(TurnCardMoney(account_id=ALICE, at_us=NOON_US)) == []
    world.paid()
    world.do(confirm())
    assert (world.of("card"), world.of("cash")) == (9, 25_000_000)


def test_a_payment_is_of_a_million_credits_and_a_hundred_takings_at_most() -> None:
    assert (PAYMENT_UNITS_MAX, TAKINGS_MAX) == (10**12, 100)


# --- taken back --------------------------------------------------------------------------------


def test_a_chargeback_before_the_money_is_spent_takes_it_back() -> None:
    """Design economics 20.5: before spend."""
    world = Booked()
    world.paid()
    (fact,) = [one for one in world.do(take_back()) if isinstance(one, PaymentReversed)]
    assert (fact.unspent, fact.spent) == (credit(25_000_000), credit(0))
    assert (world.of("card"), world.of("owed"), world.balance("world:card")) == (0, 0, 0)
    assert world.status() == "reversed"
    assert world.do(take_back()) == []
    assert world.refused(confirm()) is FundsReason.PAYMENT_STATE


def test_a_chargeback_after_the_money_was_spent_is_owed_and_providers_keep_their_earnings() -> None:
    """Design economics 20.5: after spend."""
    world = Booked()
    world.paid()
    world.spend(15_000_000)
    world.do(take_back())
    assert (world.of("card"), world.of("owed")) == (0, 15_000_000)
    assert world.of("holdback", "acct_owner") == 15_000_000
    assert world.balance("world:card") == 0


def test_a_chargeback_after_confirmation_is_taken_from_cash() -> None:
    world = Booked()
    world.paid()
    world.do(confirm())
    world.spend(5_000_000, "cash")
    facts = world.do(take_back())
    (told,) = [fact for fact in facts if isinstance(fact, PaymentReversed)]
    assert (told.is_final, told.unspent, told.spent) == (
        True,
        credit(20_000_000),
        credit(5_000_000),
    )
    assert (world.of("cash"), world.of("owed"), world.balance("world:bank")) == (0, 5_000_000, 0)


def test_what_is_taken_back_of_a_card_is_card_money_no_more_and_of_a_bank_never_was() -> None:
    for method, exposed in (("card", 15_000_000), ("bank", 0)):
        world = Booked()
        world.paid(method=method)
        facts = world.do(take_back(10_000_000))
        moved = [fact for fact in facts if isinstance(fact, CardMoneyMoved)]
        assert [fact.exposed.units for fact in moved] == ([15_000_000] if method == "card" else [])
        assert card_money_of(world, ALICE).exposed == exposed
        assert world.of("card" if method == "card" else "cash") == 15_000_000


def test_other_money_of_the_account_repays_what_was_reversed_at_once() -> None:
    world = Booked()
    world.paid()
    world.spend(25_000_000)
    world.paid("pay_2", 30_000_000, "bank")
    facts = world.do(take_back())
    assert (
        DebtRepaid(
            account_id=ALICE,
            paid=(Repaid("cash", credit(25_000_000)),),
            cause="pay_1",
            at_us=NOON_US + 1,
        )
        in facts
    )
    assert (world.of("cash"), world.of("owed")) == (5_000_000, 0)


def test_a_reversal_told_before_the_payment_is_refused_for_now() -> None:
    world = Booked()
    world.do(start())
    assert world.refused(take_back()) is FundsReason.PAYMENT_STATE


def test_no_more_is_taken_back_than_is_left() -> None:
    world = Booked()
    world.paid()
    world.do(take_back(20_000_000))
    assert world.status() == "pending"
    assert world.refused(take_back(5_010_000, dispute="dp_2")) is PricesReason.AMOUNT_OUT_OF_RANGE
    world.do(take_back(5_000_000, dispute="dp_2"))
    assert world.status() == "reversed"


def test_money_the_bank_does_not_hold_in_the_books_cannot_leave_it() -> None:
    world = Booked()
    world.paid(method="bank")
    world.move(("payout:in_flight", -25_000_000), ("party:acct_alice:cash", 25_000_000))
    world.move(("payout:in_flight", 25_000_000), ("world:bank", -25_000_000))
    assert world.refused(take_back()) is FundsReason.CREDIT_TOO_LOW


@pytest.mark.parametrize("is_late", [False, True])
def test_a_reversal_that_was_won_is_money_in_again(is_late: bool) -> None:
    world = Booked()
    world.paid()
    world.spend(15_000_000)
    world.do(take_back(20_000_000))
    assert (world.of("card"), world.of("owed")) == (0, 10_000_000)
    if is_late:
        world.do(confirm())
    won = ReinstatePayment(
        payment_id="pay_1", reference="dp_1", amount=credit(20_000_000), at_us=NOON_US + 9
    )
    world.do(won)
    assert world.do(won) == []
    assert (world.of("cash" if is_late else "card"), world.of("owed")) == (10_000_000, 0)
    world.do(confirm())
    assert world.of("cash") + world.of("card") == 10_000_000
    assert world.balance("world:bank") == 25_000_000
    assert world.refused(replace(won, reference="dp_2")) is FundsReason.PAYMENT_STATE


# --- debts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["card", "bank"])
def test_money_in_repays_the_debt_first(method: str) -> None:
    world = Booked()
    world.move(("party:acct_alice:owed", 10_000_000), ("network:revenue:device", -10_000_000))
    world.paid(method=method)
    assert (world.of("owed"), world.of("card") + world.of("cash")) == (0, 15_000_000)
    (repaid,) = [fact for fact in world.facts if isinstance(fact, DebtRepaid)]
    assert (repaid.cause, repaid.paid[0].amount) == ("pay_1", credit(10_000_000))


def test_an_operators_deposit_repays_the_debt_first() -> None:
    world = Booked()
    world.move(("party:acct_alice:owed", 7), ("network:revenue:device", -7))
    deposit = ConfirmDeposit(
        deposit_id="dep_1",
        account_id=ALICE,
        source="cash",
        amount=credit(5),
        reference="r",
        confirmed_by="op",
        at_us=NOON_US,
    )
    world.do(deposit)
    assert (world.of("owed"), world.of("cash")) == (2, 0)
    world.do(replace(deposit, deposit_id="dep_2"))
    assert (world.of("owed"), world.of("cash")) == (0, 3)


def test_credits_that_came_back_repay_a_debt_in_order_and_grants_never_do() -> None:
    world = Booked()
    world.move(("party:acct_alice:owed", 10), ("network:revenue:device", -10))
    for source, units in (("grant", 5), ("earned", 3), ("cash", 4), ("card", 9)):
        world.move(("world:bank", units), (f"party:acct_alice:{source}", -units))
    (fact,) = world.do(RepayDebt(account_id=ALICE, at_us=NOON_US))
    assert [(part.source, part.amount.units) for part in fact.paid] == [
        ("earned", 3),
        ("cash", 4),
        ("card", 3),
    ]
    assert (world.of("owed"), world.of("grant"), world.of("card")) == (0, 5, 6)
    assert world.do(RepayDebt(account_id=ALICE, at_us=NOON_US)) == []


def test_a_debt_nobody_pays_is_written_off_against_the_reserve() -> None:
    world = Booked()
    world.paid()
    world.spend(25_000_000)
    world.do(take_back())
    off = WriteOffDebt(
        account_id=ALICE, amount=credit(25_000_000), reason="gone", by="op", at_us=NOON_US
    )
    assert world.refused(off) is FundsReason.CREDIT_TOO_LOW
    fund = FundReserve(amount=credit(30_000_000), by="op", at_us=NOON_US)
    assert world.refused(fund) is FundsReason.CREDIT_TOO_LOW
    world.move(("world:bank", 30_000_000), ("network:revenue:take", -30_000_000))
    world.do(fund)
    world.do(off)
    assert world.of("owed") == 0
    assert world.balance("network:chargeback_reserve") == 5_000_000
    assert world.refused(off) is PricesReason.AMOUNT_OUT_OF_RANGE
    for bad in (credit(0), credit(-1)):
        assert world.refused(replace(off, amount=bad)) is FundsReason.AMOUNT_NOT_POSITIVE
        assert world.refused(replace(fund, amount=bad)) is FundsReason.AMOUNT_NOT_POSITIVE
    assert world.refused(replace(fund, amount=credit(10**16))) is PricesReason.AMOUNT_OUT_OF_RANGE


def test_a_large_debt_is_written_off_by_two_persons_alone() -> None:
    """Attack H7. Who signs is checked before; here it is that two are needed."""
    world = Booked()
    for stream, fact in enrolled(*THREE):
        world.tell(stream, fact)
    units = LIMITS.write_off + 1
    world.paid()
    world.move(("party:acct_alice:owed", units), ("network:revenue:device", -units))
    world.move(("world:bank", units), ("network:chargeback_reserve", -units))
    off = WriteOffDebt(
        account_id=ALICE, amount=credit(units), reason="gone", by="op", at_us=NOON_US
    )
    asked = ActRequest(
        request="k",
        content="{}",
        not_after_us=NOON_US + 1,
        governors=3,
        signed=(ActSignature(ANNA.governor_id, "0" * 128),),
        by="op",
        key_id="key_op",
        at_us=NOON_US,
    )
    assert world.refused(CheckedAct(command=off, asked=asked)) is AuthorityReason.CHECKER_NEEDED
    both = (*asked.signed, ActSignature(BORIS.governor_id, "1" * 128))
    taken, *_ = world.do(CheckedAct(command=off, asked=replace(asked, signed=both)))
    assert (taken.act, taken.units, taken.mode) == ("write_off", units, "shared")


# --- refunds -----------------------------------------------------------------------------------


def ask(units: int, refund_id: str = "ref_1") -> AskRefund:
    return AskRefund(
        payment_id="pay_1", refund_id=refund_id, amount=credit(units), by="op", at_us=NOON_US + 2
    )


def refunded(refund_id: str = "ref_1") -> ConfirmRefund:
    return ConfirmRefund(
        payment_id="pay_1", refund_id=refund_id, reference="re_1", at_us=NOON_US + 3
    )


@pytest.mark.parametrize("is_final", [False, True])
def test_a_refund_leaves_the_balance_before_the_processor_is_asked(is_final: bool) -> None:
    world = Booked()
    world.paid()
    if is_final:
        world.do(confirm())
    source, outside = ("cash", "world:bank") if is_final else ("card", "world:card")
    world.do(ask(10_000_000))
    assert world.do(ask(10_000_000)) == []
    assert (world.of(source), world.balance("payout:in_flight")) == (15_000_000, 10_000_000)
    assert world.balance(outside) == 25_000_000
    world.do(refunded())
    assert world.do(refunded()) == []
    assert (world.balance("payout:in_flight"), world.balance(outside)) == (0, 15_000_000)
    failed = FailRefund(payment_id="pay_1", refund_id="ref_1", reason="x", at_us=NOON_US)
    assert world.refused(failed) is FundsReason.PAYMENT_STATE


def test_a_refund_that_was_never_asked_for_is_neither_confirmed_nor_failed() -> None:
    world = Booked()
    world.paid()
    failed = FailRefund(payment_id="pay_1", refund_id="ref_1", reason="x", at_us=NOON_US)
    for told in (refunded(), failed):
        assert world.refused(told) is FundsReason.PAYMENT_STATE


def test_only_what_is_unspent_is_refunded() -> None:
    world = Booked()
    world.paid()
    world.spend(20_000_000)
    assert world.refused(ask(6_000_000)) is FundsReason.CREDIT_TOO_LOW
    assert world.refused(ask(25_010_000)) is PricesReason.AMOUNT_OUT_OF_RANGE
    assert world.refused(ask(1)) is FundsReason.AMOUNT_NOT_CENTS
    assert world.do(ask(5_000_000))


def test_a_payment_is_taken_back_in_a_hundred_parts_at_most() -> None:
    world = Booked()
    world.paid()
    for number in range(100):
        world.do(ask(10_000, f"ref_{number}"))
    assert world.refused(ask(10_000, "ref_100")) is FundsReason.PAYMENT_STATE
    assert world.of("card") == 24_000_000


def test_a_refund_that_does_not_arrive_is_spendable_again_and_confirmation_waits_for_it() -> None:
    world = Booked()
    world.paid()
    world.do(ask(25_000_000))
    assert world.refused(confirm()) is FundsReason.PAYMENT_STATE
    failed = FailRefund(
        payment_id="pay_1", refund_id="ref_1", reason="card_closed", at_us=NOON_US + 4
    )
    world.do(failed)
    assert world.do(failed) == []
    assert world.of("card") == 25_000_000
    assert world.refused(refunded()) is FundsReason.PAYMENT_STATE
    world.do(confirm())
    assert world.of("cash") == 25_000_000
    world.do(ask(25_000_000, "ref_2"))
    world.do(refunded("ref_2"))
    assert world.status() == "refunded"


# --- properties --------------------------------------------------------------------------------

PAYMENTS = ("pay_0", "pay_1", "pay_2")
cents = st.integers(2_500, 9_000).map(lambda number: number * CENT_UNITS)
some = st.integers(1, 9_000).map(lambda number: number * CENT_UNITS)
which = st.sampled_from(PAYMENTS)
steps = st.one_of(
    st.tuples(st.just("pay"), which, cents, st.sampled_from(("card", "bank"))),
    st.tuples(st.just("spend"), st.sampled_from(("card", "cash")), some),
    st.tuples(st.just("hold"), some),
    st.tuples(st.just("give back"), some),
    st.tuples(st.just("confirm"), which),
    st.tuples(st.just("reverse"), which, some, st.integers(0, 2)),
    st.tuples(st.just("reinstate"), which, st.integers(0, 2)),
    st.tuples(st.just("ask refund"), which, some, st.integers(3, 4)),
    st.tuples(st.just("refunded"), which, st.integers(3, 4)),
    st.tuples(st.just("refund failed"), which, st.integers(3, 4)),
    st.tuples(st.just("turn")),
    st.tuples(st.just("repay")),
)


def take(world: Booked, step: tuple[Any, ...]) -> None:
    """One step of somebody: refused where it cannot be, booked where it can."""
    name, *rest = step
    at = {"at_us": NOON_US + 1}
    commands: dict[str, Callable[[], list[Any]]] = {
        "pay": lambda: [start(rest[0], rest[1], rest[2]), receive(rest[0], rest[1])],
        "confirm": lambda: [confirm(rest[0])],
        "reverse": lambda: [take_back(rest[1], rest[0], f"dp_{rest[2]}")],
        "reinstate": lambda: [
            ReinstatePayment(
                payment_id=rest[0],
                reference=f"dp_{rest[1]}",
                amount=credit(_taken(world, rest[0], f"dp_{rest[1]}")),
                **at,
            )
        ],
        "ask refund": lambda: [
            AskRefund(
                payment_id=rest[0], refund_id=f"r{rest[2]}", amount=credit(rest[1]), by="op", **at
            )
        ],
        "refunded": lambda: [
            ConfirmRefund(payment_id=rest[0], refund_id=f"r{rest[1]}", reference="re", **at)
        ],
        "refund failed": lambda: [
            FailRefund(payment_id=rest[0], refund_id=f"r{rest[1]}", reason="no", **at)
        ],
        "turn": lambda: [TurnCardMoney(account_id=ALICE, **at)],
        "repay": lambda: [RepayDebt(account_id=ALICE, **at)],
    }
    if name == "spend":
        world.spend(min(rest[1], world.of(rest[0])), rest[0])
    elif name == "hold":
        world.hold(min(rest[0], world.of("card")))
    elif name == "give back":
        world.give_back(min(rest[0], world.balance("escrow:lease_1:1:card")))
    else:
        try:
            for command in commands[name]():
                world.do(command)
                assert world.do(command) == [], "told again, nothing happens"
        except Refused:
            return


def _taken(world: Booked, payment_id: str, key: str) -> int:
    taking = payment_of(world, payment_id).takings.get(key)
    return 0 if taking is None else taking.amount


def total(world: Booked, *kinds: type[Any]) -> int:
    return sum(fact.amount.units for fact in world.facts if isinstance(fact, kinds))


def check(world: Booked) -> None:
    """What must hold after every fact; that no account is below zero, `Booked` asserts."""
    payments: list[Payment] = [world.state(stream_of(one)) for one in PAYMENTS]
    pending = sum(one.left for one in payments if one.status == "pending")
    underway = [
        taking for one in payments for taking in one.takings.values() if taking.state == "refunding"
    ]
    on_card = sum(taking.amount for taking in underway if not taking.is_final)
    assert world.balance("world:card") == pending + on_card
    assert world.balance("payout:in_flight") == sum(taking.amount for taking in underway)
    card = card_money_of(world, ALICE)
    assert card.exposed == pending
    turned = sum(fact.to_cash.units for fact in world.facts if isinstance(fact, CardMoneyMoved))
    assert turned + card.settled <= total(world, PaymentConfirmed)
    for one in payments:
        if one.received is not None:
            gone = sum(
                taking.amount
                for taking in one.takings.values()
                if taking.state in ("reversed", "refunding", "refunded")
            )
            assert one.received.amount.units == one.left + gone
    owed = sum(fact.spent.units for fact in world.facts if isinstance(fact, PaymentReversed))
    repaid = sum(
        part.amount.units
        for fact in world.facts
        if isinstance(fact, DebtRepaid)
        for part in fact.paid
    )
    assert owed == world.of("owed") + repaid + total(world, DebtWrittenOff)


@given(st.lists(steps, max_size=30))
def test_every_unit_has_an_owner_whatever_is_paid_spent_and_taken_back_in_any_order(
    told: list[tuple[Any, ...]],
) -> None:
    """Design economics 20.5. What providers earned never falls."""
    world, earned = Booked(), 0
    for step in told:
        take(world, step)
        check(world)
        assert world.of("holdback", "acct_owner") >= earned
        earned = world.of("holdback", "acct_owner")


@given(st.lists(st.tuples(cents, st.integers(0, 9_000)), min_size=1, max_size=6))
def test_card_money_that_may_still_be_reversed_never_becomes_cash(
    told: list[tuple[int, int]],
) -> None:
    """Each round one more payment arrives and something is spent; then the oldest is confirmed."""
    world = Booked()
    spent = 0
    for number, (units, cost) in enumerate(told):
        world.paid(f"pay_{number}", units)
        cost = min(cost * CENT_UNITS, world.of("card"))
        world.spend(cost)
        spent += cost
    arrived = [units for units, _ in told]
    for number in range(len(told)):
        world.do(confirm(f"pay_{number}"))
        final = sum(arrived[: number + 1])
        assert world.of("cash") == max(0, final - spent), "oldest first, to the unit"
        assert world.of("cash") + world.of("card") == sum(arrived) - spent
