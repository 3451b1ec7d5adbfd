"""Cash-outs through a processor that crashes, refuses and pays by hand: paid once, matched once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from api.funds.payment_events import commands_of
from api.income.cash_out_timer import PayoutsDiffer
from api.income.maturing_timer import MoneyOutStopped
from api.processors.seam import (
    Bank,
    Event,
    NewCharge,
    NewPayout,
    NewRefund,
    PayoutMade,
    PayoutSeen,
    PayoutTakenBack,
    ProcessorAway,
    ProcessorRefused,
    SavedCharge,
)
from domain.account_closing import CloseAccount, books_of
from domain.duration import DAY_US
from domain.fleet.node import RetireNode, StartMaintenance
from domain.governance.breakers import BreakerTripped, SetBreaker
from domain.income.cash_out import (
    CashOutFailed,
    CashOutPaid,
    CashOutRequested,
    CashOutReturned,
    CashOutSent,
    CashOutStarted,
    ConfirmCashOutPaid,
    HoldCashOuts,
    ReleaseCashOuts,
    RequestCashOut,
    turn_of,
)
from domain.income.cash_out_matching import (
    MISSING_AFTER_US,
    PayoutDifferenceFound,
    SettleDifference,
)
from domain.income.maturity import DESTINATION_DELAY_US, EarningsForgone, ForgoDust, SetPaymentMode
from domain.income.reasons import IncomeReason
from domain.money import credit
from domain.parties.account import OpenAccount
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Stream
from ledger.beside import timer_runs as job_runs
from tests.scenes.paying import EARNED_AN_HOUR, MIDNIGHT_US, Paying, paying
from tests.scenes.running_market import OWNER

__all__ = ["paying"]

EARNED = 24 * EARNED_AN_HOUR  # 30.36: more than the minimum of 25
BANK = "world:bank"


class Crashed(Exception):
    """The process is gone: nothing after this line happened."""


@dataclass
class Till:
    """A processor that keeps to the seam: one id of ours, one movement. It can be made to fail."""

    moved: dict[str, PayoutSeen] = field(default_factory=dict)
    calls: int = 0
    crash_before: int = 0
    crash_after: int = 0
    refuses: str | None = None
    away: bool = False
    now_us: int = MIDNIGHT_US + DAY_US
    extra: list[PayoutSeen] = field(default_factory=list)
    is_pending: bool = False

    @property
    def name(self) -> str:
        return "till"

    @property
    def signature_header(self) -> str | None:
        return None

    @property
    def lists_payouts(self) -> bool:
        return True

    def pay_out(self, payout: NewPayout) -> PayoutMade:
        self.calls += 1
        if self.away:
            raise ProcessorAway
        if self.crash_before:
            self.crash_before -= 1
            raise Crashed
        if self.refuses is not None:
            raise ProcessorRefused(self.refuses)
        made = self.moved.setdefault(
            payout.payout_id,
            PayoutSeen(
                payout_id=payout.payout_id,
                reference=f"po_{len(self.moved) + 1}",
                destination=payout.destination,
                amount=payout.amount,
                taken_back=credit(0),
                at_us=self.now_us,
            ),
        )
        if self.crash_after:
            self.crash_after -= 1
            raise Crashed
        return PayoutMade(reference=made.reference, state="pending" if self.is_pending else "paid")

    def payouts_since(self, since_us: int) -> Sequence[PayoutSeen]:
        return [each for each in (*self.moved.values(), *self.extra) if each.at_us >= since_us]

    def start_charge(self, charge: NewCharge) -> Any:
        raise ProcessorRefused("out_only", charge.payment_id)

    def charge_saved(self, charge: SavedCharge) -> Any:
        raise ProcessorRefused("out_only", charge.payment_id)

    def refund(self, refund: NewRefund) -> Any:
        raise ProcessorRefused("out_only", refund.refund_id)

    def read_event(self, body: bytes, signature: str | None, now_us: int) -> Event | None:
        del body, signature, now_us
        return None


def earn(paying: Paying, mode: str = "cash") -> Till:
    """A day has been earned and swept; the owner is paid so; the processor is a till."""
    till = Till()
    paying.service.payout_processor = till
    paying.set_window(0)
    at_us = paying.clock.now_us()
    paying.market.do(
        at_us,
        SetPaymentMode(
            account_id=OWNER,
            mode=mode,
            billing_account_id=OWNER,
            destination="acct_x",
            by="mem",
            at_us=at_us - DESTINATION_DELAY_US,  # it has waited
        ),
    )
    paying.open(30)
    paying.live(MIDNIGHT_US, MIDNIGHT_US + DAY_US)
    paying.run()
    return till


def request(paying: Paying, name: str = "cashout_1", amount: int | None = None) -> None:
    at_us = paying.clock.now_us()
    asked = None if amount is None else credit(amount)
    paying.market.do(
        at_us,
        RequestCashOut(cash_out_id=name, account_id=OWNER, amount=asked, by="mem", at_us=at_us),
    )


def test_in_mode_cash_the_sweep_is_followed_by_a_cash_out_every_day(paying: Paying) -> None:
    """C-24: automatic cash through the processor, once per UTC day, each payout matched."""
    till, bank = earn(paying), paying.market.balance(BANK)
    for day in range(1, 4):
        for _ in range(2):
            paying.run(jobs="maturity sweep cash_out payout_match")
        assert len(till.moved) == day
        assert paying.market.balance(BANK) == bank - day * EARNED
        assert paying.books() == (0, 0, 0)
        opens_us = MIDNIGHT_US + day * DAY_US
        paying.live(opens_us, opens_us + DAY_US)
        till.now_us = opens_us + DAY_US
        paying.run(jobs="accrual")
    asked = paying.market.facts(CashOutRequested)
    assert [fact.by for fact in asked] == ["job"] * 3
    assert {fact.amount for fact in asked} == {credit(EARNED)}
    assert paying.market.balance("payout:in_flight") == 0
    assert paying.market.ledger.books.books_balanced()


def test_cash_outs_that_nobody_asked_for_are_sent_in_the_order_of_the_days_draw(
    paying: Paying,
) -> None:
    """By account ids the same accounts would be served first whenever the bank is short."""
    till, payees = earn(paying, mode="credits"), ["acct_p1", "acct_p2", "acct_p3"]
    for number, payee in enumerate(payees, 1):
        opens_us = MIDNIGHT_US + number * DAY_US
        at_us = paying.clock.now_us()
        paying.market.do(
            at_us,
            OpenAccount(
                account_id=payee,
                kind="party",
                opened_by="op",
                owner_member_id=f"{payee}_m",
                first_key=None,
                at_us=at_us,
            ),
            SetPaymentMode(
                account_id=payee,
                mode="cash",
                billing_account_id=payee,
                destination="acct_x",
                by="mem",
                at_us=at_us - DESTINATION_DELAY_US,
            ),
            SetPaymentMode(
                account_id=OWNER,
                mode="credits",
                billing_account_id=payee,
                destination=None,
                by="mem",
                at_us=at_us,
            ),
        )
        paying.live(opens_us, opens_us + DAY_US)
        paying.run()
    day = paying.clock.now_us() // DAY_US
    drawn = sorted(payees, key=lambda one: turn_of(one, day))
    assert drawn != payees, "a day on which the draw and the ids agree shows nothing"
    paying.run(jobs="cash_out")
    asked = [fact.account_id for fact in paying.market.facts(CashOutRequested)]
    assert asked == drawn
    whose = {one.cash_out_id: one.account_id for one in paying.market.facts(CashOutRequested)}
    assert [whose[one] for one in till.moved] == drawn


def test_below_the_minimum_earnings_add_up_until_they_are_enough(paying: Paying) -> None:
    till = earn(paying)
    paying.run(jobs="cash_out")
    hours = 12
    for half in range(2, 4):
        opens_us = MIDNIGHT_US + DAY_US * (half - 1)
        paying.live(opens_us, opens_us + hours * 3_600_000_000)
        paying.clock.move_to(opens_us + DAY_US)
        paying.run()
        paying.run(jobs="cash_out")
        wanted = 1 if half == 2 else 2
        assert len(till.moved) == wanted, "12 hours are 15.18 credits, 24 are enough"
    assert paying.books()[2] == 0


def test_a_breaker_holds_a_cash_out_until_its_limit_is_raised(paying: Paying) -> None:
    till = earn(paying)
    limit = SetBreaker(
        breaker="cash_out",
        limit=EARNED - 1,
        window_us=DAY_US,
        reason="a test",
        by="mem",
        at_us=paying.clock.now_us(),
    )
    paying.market.do(limit.at_us, limit)
    for _ in range(2):
        paying.run(jobs="maturity sweep cash_out")
    assert till.moved == {}
    (tripped,) = paying.market.facts(BreakerTripped)
    assert (tripped.amount, tripped.reason) == (EARNED, "breaker_limit")
    paying.market.do(limit.at_us, replace(limit, limit=EARNED))
    paying.run(jobs="cash_out")
    assert len(till.moved) == 1


@pytest.mark.parametrize("crash", ["crash_before", "crash_after"])
def test_a_crash_between_the_call_and_its_fact_never_pays_twice(paying: Paying, crash: str) -> None:
    till, bank = earn(paying, "credits"), paying.market.balance(BANK)
    request(paying)
    setattr(till, crash, 2)
    for _ in range(2):
        with pytest.raises(MoneyOutStopped):
            paying.run(jobs="cash_out")
    assert len(paying.market.facts(CashOutStarted)) == 1, "the intent was stored before the call"
    assert not paying.market.facts(CashOutSent)
    assert paying.run(jobs="cash_out") == {"cash_out": 1}
    assert paying.run(jobs="cash_out") == {"cash_out": 0}
    assert till.calls == 3
    assert [each.amount for each in till.moved.values()] == [credit(EARNED)]
    assert len(paying.market.facts(CashOutPaid)) == 1
    assert paying.market.balance(BANK) == bank - EARNED
    assert paying.run(jobs="payout_match") == {"payout_match": 0}


def test_a_lost_answer_is_found_in_the_processors_list(paying: Paying) -> None:
    till = earn(paying, "credits")
    request(paying)
    till.crash_after = 1
    with pytest.raises(MoneyOutStopped):
        paying.run(jobs="cash_out")
    assert paying.run(jobs="payout_match") == {"payout_match": 2}
    (sent,) = paying.market.facts(CashOutSent)
    assert sent.reference == "po_1"
    assert paying.run(jobs="cash_out") == {"cash_out": 0}
    assert till.calls == 1


def test_what_the_processor_refuses_comes_back_with_its_reason(paying: Paying) -> None:
    till = earn(paying, "credits")
    request(paying)
    assert paying.books()[2] == 0
    till.refuses = "account_closed"
    assert paying.run(jobs="cash_out") == {"cash_out": 1}
    (failed,) = paying.market.facts(CashOutFailed)
    assert failed.reason == "account_closed"
    assert paying.books()[2] == EARNED
    assert paying.market.balance("payout:in_flight") == 0


def test_a_processor_that_is_away_stops_the_job_and_nothing_is_lost(paying: Paying) -> None:
    till = earn(paying, "credits")
    request(paying)
    till.away = True
    with pytest.raises(ProcessorAway):
        paying.run(jobs="cash_out")
    till.away = False
    assert paying.run(jobs="cash_out") == {"cash_out": 1}


def test_nothing_held_leaves_and_nothing_held_is_a_failure(paying: Paying) -> None:
    """Operators and disputes hold; what waits is no alarm."""
    till, at_us = earn(paying), paying.clock.now_us()
    held = HoldCashOuts(account_id=OWNER, hold_id="dispute:d1", reason="open", by="op", at_us=at_us)
    paying.market.do(at_us, held)
    assert paying.run(jobs="cash_out") == {"cash_out": 0}
    with pytest.raises(Refused) as caught:
        request(paying)
    assert caught.value.reason is IncomeReason.CASH_OUT_HELD
    paying.market.do(
        at_us, ReleaseCashOuts(account_id=OWNER, hold_id="dispute:d1", by="op", at_us=at_us)
    )
    assert paying.run(jobs="cash_out") == {"cash_out": 2}
    assert len(till.moved) == 1


def test_a_bank_transfer_waits_for_a_person_to_say_that_it_was_made(paying: Paying) -> None:
    earn(paying, "credits")
    paying.service.payout_processor = Bank("")
    request(paying)
    paying.run(jobs="cash_out payout_match")
    (sent,) = paying.market.facts(CashOutSent)
    assert sent.instructions is not None
    assert "30.36 USD to acct_x" in sent.instructions
    assert paying.market.balance("payout:in_flight") == EARNED
    at_us = paying.clock.now_us()
    paying.market.do(at_us, ConfirmCashOutPaid(cash_out_id="cashout_1", by="operator", at_us=at_us))
    assert paying.market.balance("payout:in_flight") == 0


def _seen(till: Till, **changes: Any) -> PayoutSeen:
    told: dict[str, Any] = {
        "payout_id": None,
        "reference": "po_hand",
        "destination": "acct_x",
        "amount": credit(10_000),
        "taken_back": credit(0),
        "at_us": till.now_us,
        **changes,
    }
    return PayoutSeen(**told)


@pytest.mark.parametrize("kind", ["unknown", "twice", "amount", "missing"])
def test_a_difference_is_recorded_once_and_alarms_until_it_is_settled(
    paying: Paying, kind: str
) -> None:
    """Row C-24: the processor's payouts matched, differences alarmed."""
    till = earn(paying, "credits")
    till.is_pending = True
    request(paying)
    paying.run(jobs="cash_out")
    if kind == "unknown":
        till.extra = [_seen(till)]
    elif kind == "twice":
        till.extra = [_seen(till, payout_id="cashout_1", amount=credit(EARNED))]
    elif kind == "amount":
        till.moved["cashout_1"] = _seen(till, payout_id="cashout_1", reference="po_1")
    else:
        till.moved.clear()
        paying.clock.advance(MISSING_AFTER_US + 1)
    for _ in range(2):
        with pytest.raises(PayoutsDiffer, match=kind):
            paying.run(jobs="payout_match")
    (found,) = paying.market.facts(PayoutDifferenceFound)
    assert found.kind == kind
    with paying.service.connect() as connection:
        (run,) = [each for each in job_runs.read(connection) if each.name == "payout_match"]
    assert run.error is not None, "/readyz shows it"
    assert kind in run.error
    at_us = paying.clock.now_us()
    settle = SettleDifference(
        difference_id=found.difference_id, note="explained", by="op", at_us=at_us
    )
    paying.market.do(at_us, settle)
    paying.run(jobs="payout_match")
    paid = paying.market.facts(CashOutPaid)
    assert len(paid) == (1 if kind in ("unknown", "twice") else 0), "what agrees is confirmed"


def test_what_was_missing_is_settled_by_its_appearance(paying: Paying) -> None:
    till = earn(paying, "credits")
    till.is_pending = True
    request(paying)
    paying.run(jobs="cash_out")
    listed = dict(till.moved)
    till.moved.clear()
    paying.clock.advance(MISSING_AFTER_US + 1)
    with pytest.raises(PayoutsDiffer, match="missing"):
        paying.run(jobs="payout_match")
    till.moved.update(listed)
    assert paying.run(jobs="payout_match") == {"payout_match": 2}
    assert paying.run(jobs="payout_match") == {"payout_match": 0}


def test_what_the_processor_took_back_is_earned_again_once(paying: Paying) -> None:
    till = earn(paying, "credits")
    request(paying)
    paying.run(jobs="cash_out")
    till.moved["cashout_1"] = _seen(
        till,
        payout_id="cashout_1",
        reference="po_1",
        amount=credit(EARNED),
        taken_back=credit(10_000),
    )
    for _ in range(2):
        paying.run(jobs="payout_match")
    (returned,) = paying.market.facts(CashOutReturned)
    assert returned.amount == credit(10_000)
    assert paying.books()[2] == 10_000


def test_a_return_that_the_processor_tells_is_earned_again_once(paying: Paying) -> None:
    till = earn(paying, "credits")
    request(paying)
    paying.run(jobs="cash_out")
    at_us = paying.clock.now_us()
    told = PayoutTakenBack(
        payout_id="cashout_1",
        reference="po_1",
        taken_back=credit(20_000),
        reason="reversed",
        at_us=at_us,
    )
    for _ in range(2):
        paying.market.do(at_us, *commands_of(paying.service, till.name, told, at_us))
    assert paying.books()[2] == 20_000
    assert commands_of(paying.service, "another", told, at_us) == []
    stranger = replace(told, payout_id="cashout_9")
    assert commands_of(paying.service, till.name, stranger, at_us) == []


def test_an_account_that_earned_can_be_closed_once_all_is_swept_and_cashed_out(
    paying: Paying,
) -> None:
    till = earn(paying, "credits")
    second_us, market = 1_000_000, paying.market
    paying.live(MIDNIGHT_US + DAY_US, MIDNIGHT_US + DAY_US + second_us)
    market.close(paying.lease, paying.clock.now_us())
    now_us = paying.clock.move_to(MIDNIGHT_US + 2 * DAY_US)
    paying.run()
    assert paying.books() == (0, 0, EARNED + 351), "and a second more, which is no whole cent"
    node_id = market.nodes["one"].id
    by: dict[str, Any] = {"node_id": node_id, "by": "mem", "at_us": now_us}
    market.do(now_us, StartMaintenance(**by), RetireNode(**by))

    def close(*cash_outs: str) -> None:
        command = CloseAccount(
            account_id=OWNER,
            lease_ids=(paying.lease,),
            node_ids=(node_id,),
            by="mem",
            at_us=now_us,
            cash_out_ids=cash_outs,
        )
        market.do(now_us, command)

    for step in ("earned", "in flight"):
        with pytest.raises(Refused) as caught:
            close(*(["cashout_1"] if step == "in flight" else []))
        assert caught.value.reason is PartiesReason.ACCOUNT_NOT_EMPTY, step
        if step == "earned":
            request(paying)
            till.is_pending = True
            paying.run(jobs="cash_out")
    paying.run(jobs="payout_match")
    state = market.ledger.market.load(Stream("cash_out", "cashout_1")).state
    assert state.status == "paid"
    market.do(now_us, ForgoDust(account_id=OWNER, by="mem", at_us=now_us))
    close("cashout_1")
    assert all(market.balance(book) == 0 for book in books_of(OWNER))
    (forgone,) = market.facts(EarningsForgone)
    assert forgone.amount == credit(351)
    assert market.ledger.books.books_balanced()
