"""Payments over HTTP, against the double of Stripe: from the wish to pay to cash, and back."""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from api.funds.payment_timer import PaymentsStopped, run_payments
from domain.duration import DAY_US
from domain.funds.top_up import BalanceWarned
from tests.scenes.server import Caller
from tests.scenes.server import Scene as Market
from tests.scenes.serving import Market as Founded
from tests.scenes.stripe_double import NOW_S, SECRET_KEY, WEBHOOK_SECRET, Double, running, signed
from tests.scenes.work import accrue_now, run

CREDIT = 1_000_000


def amount(credits: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(credits * CREDIT)}


class Paying:
    """A market whose cards go through the double."""

    def __init__(self, market: Market, double: Double) -> None:
        self.market = market
        self.double = double
        self.owner = market.account()
        self.path = f"/v1/accounts/{self.owner.account_id}"

    def event(self, body: bytes, **headers: str) -> Any:
        at_s = self.market.clock.now_us() // 1_000_000
        named = {
            "Content-Type": "application/json; charset=utf-8",
            "Stripe-Signature": signed(body, at_s),
            **headers,
        }
        return self.market.http.post("/v1/payments/events/stripe", content=body, headers=named)

    def start(self, credits: int = 25, method: str = "card", **more: Any) -> dict[str, Any]:
        body = {"method": method, "amount": amount(credits), **more}
        return self.owner.made(f"{self.path}/payments", body)

    def paid(self, credits: int = 25, **more: Any) -> dict[str, Any]:
        """A card payment that was paid on its page and told."""
        told = self.start(credits, **more)
        body = self.double.pay(told["pay_at"].rpartition("/")[2])
        assert self.event(body).json()["recorded"] is True
        return self.read(told["payment_id"])

    def read(self, payment_id: str) -> dict[str, Any]:
        return self.owner.read(f"/v1/payments/{payment_id}")

    def balances(self, who: Caller | None = None) -> dict[str, int]:
        who = who or self.owner
        rows = who.read(f"/v1/accounts/{who.account_id}/balances")["data"]
        return {
            row["part"]: int(row["balance"]["units"])
            for row in rows
            if row["balance"]["units"] != "0"
        }

    def jobs(self) -> int:
        with self.market.service.connect() as connection:
            return run_payments(self.market.service, connection, self.market.clock.now_us())

    def wait(self, us: int) -> None:
        self.market.clock.advance(us)  # type: ignore[attr-defined]


@pytest.fixture
def paying(founded_in_development: Founded, tmp_path: Path) -> Generator[Paying, None, None]:
    with (
        running() as (double, url),
        founded_in_development.copied(
            tmp_path,
            environment="development",  # the stand-in for Stripe speaks http
            stripe_secret_key=SECRET_KEY,
            stripe_webhook_secret=WEBHOOK_SECRET,
            stripe_url=url,
            payment_return_url="https://ours.example/paid",
        ) as market,
    ):
        assert market.clock.now_us() == NOW_S * 1_000_000
        yield Paying(market, double)


def test_a_card_payment_from_its_page_to_cash_and_a_told_twice_event_counts_once(
    paying: Paying,
) -> None:
    started = paying.start()
    assert (started["state"], started["amount"]) == ("started", amount(25))
    assert started["pay_at"].startswith("https://checkout.stripe.test/cs_")
    body = paying.double.pay(started["pay_at"].rpartition("/")[2])
    first, again = paying.event(body), paying.event(body)
    assert (first.json()["recorded"], again.json()["recorded"]) == (True, False)
    assert again.status_code == 200
    pending = paying.read(started["payment_id"])
    assert (pending["state"], pending["left"]) == ("pending", amount(25))
    assert paying.balances() == {"card": 25 * CREDIT}
    paying.wait(120 * DAY_US - 1)
    assert paying.jobs() == 0
    paying.wait(1)
    assert paying.jobs() == 2, "confirmed, and cash"
    assert paying.jobs() == 0
    assert paying.read(started["payment_id"])["state"] == "confirmed"
    assert paying.balances() == {"cash": 25 * CREDIT}
    assert not paying.market.service.ledger.books.faults()


def test_the_same_request_is_answered_with_the_same_page_also_after_a_lost_answer(
    paying: Paying,
) -> None:
    body, path = {"method": "card", "amount": amount(30)}, f"{paying.path}/payments"
    paying.double.loses_answers = 1
    lost = paying.owner.post(path, body, key="mine")
    assert (lost.status_code, lost.json()["code"], lost.json()["retryable"]) == (
        503,
        "processor_away",
        True,
    )
    first = paying.owner.post(path, body, key="mine")
    again = paying.owner.post(path, body, key="mine")
    assert first.status_code == 201, first.text
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()
    assert len(paying.double.objects["checkout/sessions"]) == 1
    assert len(paying.owner.read(path)["data"]) == 1


def test_refusals_of_a_payment_name_the_rule_c_25(paying: Paying) -> None:
    path, stranger = f"{paying.path}/payments", paying.market.stranger
    for body, code in (
        ({"method": "card", "amount": amount(24)}, "payment_below_minimum"),
        (
            {"method": "card", "amount": {"asset": "CREDIT", "units": "25000001"}},
            "amount_not_cents",
        ),
        ({"method": "cash", "amount": amount(25)}, "invalid"),
    ):
        assert paying.owner.post(path, body).json()["code"] == code
    mine = paying.start()["payment_id"]
    asked = stranger.post(path, {"method": "card", "amount": amount(25)})
    assert (asked.status_code, asked.json()["code"]) == (404, "account_unknown")
    assert stranger.get(f"/v1/payments/{mine}").status_code == 404
    assert stranger.get(path).status_code == 404
    none = paying.owner.post(f"/v1/payments/{mine}/confirm", {"reference": "x"})
    assert none.json()["code"] == "scope_missing"
    by_hand = paying.market.operator.post(f"/v1/payments/{mine}/confirm", {"reference": "x"})
    assert (by_hand.status_code, by_hand.json()["code"]) == (403, "not_permitted")


def test_events_are_believed_for_their_signature_alone(paying: Paying) -> None:
    body = paying.double.pay(paying.start()["pay_at"].rpartition("/")[2])
    before = paying.market.head()
    for headers in (
        {"Stripe-Signature": signed(body, secret="whsec_other")},
        {"Stripe-Signature": signed(body, NOW_S - 301)},
        {"Stripe-Signature": signed(body + b" ")},
        {"Stripe-Signature": ""},
    ):
        forged = paying.event(body, **headers)
        assert (forged.status_code, forged.json()["code"]) == (400, "event_forged")
    unknown = paying.event(paying.double.event("customer.created", {"id": "cus_1"}))
    assert (unknown.status_code, unknown.json()["recorded"]) == (200, False)
    post = paying.market.http.post
    elsewhere = post("/v1/payments/events/nobody", json={})
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (404, "not_found")
    bank = post("/v1/payments/events/bank", json={})
    assert (bank.status_code, bank.json()["code"]) == (400, "event_forged")
    huge = paying.event(b'{"a":"' + b"x" * 70_000 + b'"}')
    assert (huge.status_code, huge.json()["code"]) == (413, "too_large")
    stray = paying.event(paying.double.dispute("pi_none", 100, "dp_1", "funds_withdrawn"))
    assert (stray.status_code, stray.json()["code"]) == (404, "payment_unknown")
    assert paying.market.head() == before, "nothing was recorded"


def test_a_chargeback_takes_back_what_leases_hold_and_leaves_other_money_alone(
    paying: Paying,
) -> None:
    """Economics 5: of 25 paid by card 20 are held by a lease that has not begun. It ends, and
    nothing is owed: who waits for its node has used nothing.
    """
    payment = paying.paid()
    lease = paying.owner.made("/v1/leases", {"job": paying.market.job(), "funds": amount(20)})
    intent = paying.double.last_intent()["id"]
    body = paying.double.dispute(intent, 2_500, "dp_1", "funds_withdrawn")
    assert paying.event(body).json()["recorded"] is True
    assert paying.event(body).json()["recorded"] is False, "told again, nothing happens"
    assert paying.balances() == {}
    reversed_ = paying.read(payment["payment_id"])
    assert (reversed_["state"], reversed_["left"]) == ("reversed", amount(0))
    assert reversed_["takings"][0]["reason"] == "fraudulent"
    ended = paying.owner.read(f"/v1/leases/{lease['lease_id']}")
    assert (ended["state"], ended["close_code"], ended["closed_by"]) == ("settled", 102, "job")
    assert ended["charge"] == amount(0)
    assert not paying.market.service.ledger.books.faults()


def working(paying: Paying, minutes: int) -> dict[str, Any]:
    """A lease at 2 credits an hour that 20 of 25 credits by card fund, reported so far."""
    paying.paid()
    market = paying.market
    lease = paying.owner.made("/v1/leases", {"job": market.job(), "funds": amount(20)})
    ready = f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready"
    market.provider.node.made(ready)
    run(market, lease, minutes=minutes)
    accrue_now(market, lease["lease_id"])
    return lease


def charge_back(paying: Paying, cents: int) -> dict[str, Any]:
    """What the processor tells of a chargeback, twice."""
    intent = paying.double.last_intent()["id"]
    body = paying.double.dispute(intent, cents, "dp_1", "funds_withdrawn")
    first, again = paying.event(body).json(), paying.event(body).json()
    assert (first["recorded"], again["recorded"]) == (True, False)
    return dict(first)


def minutes_between(first: str, last: str) -> float:
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds() / 60


def test_a_chargeback_ends_a_running_lease_and_its_provider_keeps_what_it_earned(
    paying: Paying,
) -> None:
    """After an hour and a half all is taken back: 18 are left in escrow and go, the hour that was
    charged and the half that was not are owed, and earned.
    """
    lease = working(paying, 90)
    charge_back(paying, 2_500)
    path = f"/v1/leases/{lease['lease_id']}"
    closing = paying.owner.read(path)
    assert (closing["state"], closing["close_code"]) == ("closing", 102)
    assert paying.balances() == {"owed": 2 * CREDIT}, "the hour that was charged"
    accrue_now(paying.market, lease["lease_id"])
    settled = paying.owner.read(path)
    assert (settled["state"], settled["charge"]) == ("settled", amount(3))
    assert paying.balances() == {"owed": 3 * CREDIT}
    earned = paying.balances(paying.market.provider.owner)["holdback"]
    assert earned == (3 * CREDIT - 375_000) // 2, "half of what is left above the usage fee"
    blocked = paying.owner.post("/v1/leases", {"job": paying.market.job(), "funds": amount(3)})
    assert (blocked.status_code, blocked.json()["code"]) == (409, "unpaid_debt")
    assert paying.jobs() == 0, "there is nothing more to take"
    paying.market.deposit(paying.owner, 4 * CREDIT)
    assert paying.balances() == {"cash": 1 * CREDIT}, "the next money repays it"
    assert not paying.market.service.ledger.books.faults()


def test_a_chargeback_of_a_part_leaves_a_lease_that_ends_earlier(paying: Paying) -> None:
    """5 are unspent, 5 more leave the escrow: what is left pays until 7 hours and a half."""
    lease = working(paying, 60)
    path = f"/v1/leases/{lease['lease_id']}"
    before = paying.owner.read(path)
    charge_back(paying, 1_000)
    after = paying.owner.read(path)
    assert after["state"] == "active"
    spans = [minutes_between(one["opened_at"], one["funds_end_at"]) for one in (before, after)]
    assert spans == [600, 450], "minutes"
    assert paying.balances() == {}
    events = paying.owner.read(f"{path}/events")["data"]
    taken = next(one for one in events if one["type"] == "lease.funds_taken.v1")
    assert {line["account"].split(":")[-1]: line["units"] for line in taken["money"]} == {
        "card": str(5 * CREDIT),
        "owed": str(-5 * CREDIT),
    }
    as_of = paying.owner.read(path, as_of_position=taken["position"] - 1)
    assert as_of["funds_end_at"] == before["funds_end_at"]
    assert not paying.market.service.ledger.books.faults()


def test_a_chargeback_of_a_shared_escrow_closes_all_of_its_leases_and_shares_the_shortfall(
    paying: Paying,
) -> None:
    """25 by card fund two leases at 2 an hour each. After an hour and a half 24 are taken back:
    each has half of what is left, and both have served 3.
    """
    paying.paid()
    market = paying.market
    asked = market.job(models=["NVIDIA A100-PCIE-80GB"])
    job_id = paying.owner.made("/v1/jobs", asked)["job_id"]
    path = f"/v1/jobs/{job_id}/escrow"
    paying.owner.made(path, {"amount": amount(25)})
    leases = [paying.owner.made("/v1/leases", {"job_id": job_id}) for _ in range(2)]
    for lease in leases:
        at = f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready"
        market.provider.node.made(at)
    run(market, *leases, minutes=90)
    charge_back(paying, 2_400)
    for lease in leases:
        told = paying.owner.read(f"/v1/leases/{lease['lease_id']}")
        assert (told["state"], told["close_code"]) == ("closing", 102)
    assert "owed" not in paying.balances(), "24 were in the escrow"
    for lease in leases:
        accrue_now(market, lease["lease_id"])
        told = paying.owner.read(f"/v1/leases/{lease['lease_id']}")
        assert (told["state"], told["charge"]) == ("settled", amount(3))
        (drawn,) = paying.owner.read(f"/v1/leases/{lease['lease_id']}/charges")["data"][0]["drawn"]
        assert drawn["amount"]["units"] == str(CREDIT // 2)
    assert paying.balances() == {"owed": 5 * CREDIT}
    earned = paying.balances(market.provider.owner)["holdback"]
    assert earned == 2 * ((3 * CREDIT - 375_000) // 2)
    assert paying.owner.read(path)["held"] == amount(0)
    assert not market.service.ledger.books.faults()


def test_a_chargeback_takes_what_lies_idle_in_the_escrow_of_a_job(paying: Paying) -> None:
    paying.paid()
    job_id = paying.owner.made("/v1/jobs", paying.market.job())["job_id"]
    path = f"/v1/jobs/{job_id}/escrow"
    paying.owner.made(path, {"amount": amount(20)})
    charge_back(paying, 2_400)
    assert paying.balances() == {}
    assert paying.owner.read(path)["held"] == amount(1)


def test_a_gang_that_waits_is_ended_by_the_job_when_its_payment_was_reversed(
    paying: Paying,
) -> None:
    """It ends as a whole, which one append may not hold beside the reversal."""
    paying.paid()
    gang = paying.owner.made("/v1/gangs", {"job": paying.market.job(), "members": 2})
    charge_back(paying, 2_500)
    assert paying.balances()["owed"] > 0
    paying.jobs()
    ended = paying.owner.read(f"/v1/gangs/{gang['gang_id']}")
    assert (ended["state"], paying.balances()) == ("closed", {})
    assert not paying.market.service.ledger.books.faults()


def test_other_money_of_the_account_pays_before_a_lease_is_touched(paying: Paying) -> None:
    lease = working(paying, 60)
    paying.market.deposit(paying.owner, 30 * CREDIT)
    charge_back(paying, 2_500)
    assert paying.owner.read(f"/v1/leases/{lease['lease_id']}")["state"] == "active"
    assert paying.balances() == {"cash": 10 * CREDIT}


def test_a_dispute_that_was_won_gives_the_money_back(paying: Paying) -> None:
    paying.paid()
    intent = paying.double.last_intent()["id"]
    for kind, state in (("funds_withdrawn", {}), ("funds_reinstated", {"card": 25 * CREDIT})):
        assert paying.event(paying.double.dispute(intent, 2_500, "dp_1", kind)).json()["recorded"]
        assert paying.balances() == state


def test_a_bank_transfer_is_cash_when_the_operator_confirms_it(paying: Paying) -> None:
    started = paying.start(40, method="bank")
    assert "pay_at" not in started
    assert "40.00 USD" in started["instructions"]
    assert started["payment_id"] in started["instructions"]
    path, operator = f"/v1/payments/{started['payment_id']}", paying.market.operator
    told = operator.made(f"{path}/confirm", {"reference": "statement 17", "amount": amount(39)})
    assert (told["state"], told["received"]) == ("confirmed", amount(39))
    assert paying.balances() == {"cash": 39 * CREDIT}
    operator.made(f"{path}/confirm", {"reference": "statement 17", "amount": amount(39)})
    assert paying.balances() == {"cash": 39 * CREDIT}
    other = operator.post(f"{path}/confirm", {"reference": "statement 18"})
    assert (other.status_code, other.json()["code"]) == (409, "payment_state")
    refund = operator.made(f"{path}/refunds", {"amount": amount(9)})
    assert paying.jobs() == 0, "a person transfers it"
    done = f"{path}/refunds/{refund['refund_id']}/confirm"
    assert operator.made(done, {"reference": "out 3"})["left"] == amount(30)
    reversal = {"amount": amount(30), "reference": "statement 44", "reason": "recalled"}
    assert operator.made(f"{path}/reversals", reversal)["state"] == "reversed"
    assert paying.balances() == {}


def test_a_refund_goes_back_to_the_card_once(paying: Paying) -> None:
    payment = paying.paid()
    path = f"/v1/payments/{payment['payment_id']}/refunds"
    refund = paying.market.operator.made(path, {"amount": amount(5)})
    assert paying.balances() == {"card": 20 * CREDIT}, "it cannot be spent any more"
    paying.double.loses_answers = 1
    with pytest.raises(PaymentsStopped):
        paying.jobs()
    assert paying.jobs() == 1
    assert len(paying.double.objects["refunds"]) == 1
    taking = paying.read(payment["payment_id"])["takings"][0]
    assert (taking["id"], taking["state"]) == (refund["refund_id"], "refunded")
    (told,) = paying.double.objects["refunds"].values()
    assert paying.event(paying.double.event("refund.updated", told)).json()["recorded"] is False
    too_much = paying.market.operator.post(path, {"amount": amount(21)})
    assert too_much.json()["code"] in ("credit_too_low", "amount_out_of_range")
    by_hand = {**told, "id": "re_by_hand", "metadata": {}}
    assert paying.event(paying.double.event("refund.created", by_hand)).json()["recorded"] is True
    assert paying.balances() == {"card": 15 * CREDIT}


def test_what_nobody_pays_ends_and_money_that_comes_late_counts(paying: Paying) -> None:
    started = paying.start()
    paying.wait(DAY_US + 3_600_000_000)
    assert paying.jobs() == 1
    assert paying.read(started["payment_id"])["failed_reason"] == "expired"
    assert paying.event(paying.double.pay(started["pay_at"].rpartition("/")[2])).json()["recorded"]
    assert paying.read(started["payment_id"])["state"] == "pending"


def test_auto_top_up_pays_by_itself_waits_after_a_failure_and_pays_once_c_25(
    paying: Paying,
) -> None:
    payment = paying.paid(save_method=True)
    assert payment["has_saved_method"] is True
    paying.owner.made(f"{paying.path}/funds/warnings", {"thresholds": [amount(20)]})
    told = paying.owner.made(
        f"{paying.path}/funds/auto-top-up",
        {
            "threshold": amount(10),
            "amount": amount(30),
            "monthly_max": amount(60),
            "payment_id": payment["payment_id"],
        },
    )
    assert told["auto_top_up"]["amount"] == amount(30)
    assert paying.jobs() == 0
    paying.owner.made("/v1/leases", {"job": paying.market.job(), "funds": amount(16)})
    paying.double.declines = "insufficient_funds"
    assert paying.jobs() == 4, "warned, started, and declined"
    assert paying.jobs() == 1, "the top-up has failed"
    funds = paying.owner.read(f"{paying.path}/funds")
    assert (funds["failures"], funds["below"]) == (1, [amount(20)])
    assert paying.jobs() == 0, "it waits"
    paying.double.declines, paying.double.loses_answers = None, 1
    paying.wait(3_600_000_000)
    with pytest.raises(PaymentsStopped):
        paying.jobs()
    assert paying.jobs() == 3, "offered, received, card money"
    assert paying.balances()["card"] == 39 * CREDIT
    assert paying.jobs() == 2, "ended, and recovered"
    assert paying.jobs() == 0
    charged = [one["amount"] for one in paying.double.objects["payment_intents"].values()]
    assert charged == [2_500, 3_000], "once, though the answer was lost"
    recorded = paying.market.service.ledger.market.read_facts(0, 1_000)
    (warned,) = [one.fact for one in recorded if isinstance(one.fact, BalanceWarned)]
    assert (warned.threshold.units, warned.balance.units) == (20 * CREDIT, 9 * CREDIT)
    stopped = paying.owner.delete(f"{paying.path}/funds/auto-top-up").json()
    assert stopped["stopped_reason"] == "asked"


def test_what_goes_wrong_with_one_payment_stops_that_payment_alone(paying: Paying) -> None:
    """Not only what a processor says: a fault of ours with one payment leaves the others theirs."""
    payment = paying.paid(save_method=True)
    paying.owner.made(
        f"{paying.path}/funds/auto-top-up",
        {
            "threshold": amount(30),
            "amount": amount(30),
            "monthly_max": amount(60),
            "payment_id": payment["payment_id"],
        },
    )
    processors = paying.market.service.processors
    stripe = processors["stripe"]
    processors["stripe"] = object()  # type: ignore[index]  # it understands nothing it is asked
    paying.wait(130 * 86_400_000_000)
    with pytest.raises(PaymentsStopped):
        paying.jobs()
    assert paying.read(payment["payment_id"])["state"] == "confirmed", "the round went on"
    processors["stripe"] = stripe  # type: ignore[index]


def test_without_a_card_processor_there_is_the_bank(shared: Market) -> None:
    path = f"/v1/accounts/{shared.renter.account_id}/payments"
    card = shared.renter.post(path, {"method": "card", "amount": amount(25)})
    assert (card.status_code, card.json()["code"]) == (422, "payment_method_unavailable")
    assert "--method bank" in card.json()["detail"], "users B3"
    assert shared.renter.made(path, {"method": "bank", "amount": amount(25)})["instructions"]


def test_a_loss_is_written_off_against_a_reserve_of_take_revenue(paying: Paying) -> None:
    operator = paying.market.operator
    terms = paying.market.anybody.read("/v1/payment-terms")
    assert (terms["minimum"], terms["chargeback_window_days"]) == (amount(25), 120)
    poor = operator.post("/v1/chargeback-reserve", {"amount": amount(1)})
    assert (poor.status_code, poor.json()["code"]) == (402, "credit_too_low")
    off = operator.post(f"{paying.path}/write-offs", {"amount": amount(1), "reason": "gone"})
    assert off.json()["code"] == "amount_out_of_range"
