"""Money out over HTTP: asked for by its owner, held by the operator, nobody else's to see."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from domain.duration import HOUR_US
from domain.funds.payment import ReceivePayment, ReversePayment, StartPayment
from domain.income.cash_out_matching import Difference, RecordDifference
from domain.income.maturity import DEFAULT_WINDOW_US, DESTINATION_DELAY_US
from domain.money import credit
from tests.scenes.server import NOW_US, Scene
from tests.scenes.work import MINUTE_US, accrue_now, credits_, hours_of_work, reported, send
from tests.scenes.work import run_income as run

EARNED = 875_000
CENTS = 870_000  # whole ones of it


def swept(scene: Scene) -> str:
    """An hour was earned and swept; the smallest cash-out is a cent. The account's address."""
    scene.operator.made("/v1/cash-outs/terms/minimum", {"minimum": credits_(10_000)})
    hours_of_work(scene)
    scene.clock.advance(DEFAULT_WINDOW_US)  # type: ignore[attr-defined]
    run(scene, "maturity", "sweep")
    return f"/v1/accounts/{scene.owner.account_id}"


def test_held_back_payable_earned_and_when_it_matures_can_be_read(scene: Scene) -> None:
    """C-23: each posting matures by itself, 72 hours after it unless another window is set."""
    hours_of_work(scene)
    path = f"/v1/accounts/{scene.owner.account_id}"
    told = scene.owner.read(f"{path}/maturity")
    assert (told["held_back"], told["payable"], told["earned"]) == (
        credits_(EARNED),
        credits_(0),
        credits_(0),
    )
    (one,) = told["upcoming"]
    assert one["amount"] == credits_(EARNED)
    assert one["posted_at"][:10] < one["matures_at"][:10]
    assert one["posted_at"][10:] == one["matures_at"][10:], "three days later"
    terms = scene.owner.read("/v1/cash-outs/terms")
    assert (terms["window_seconds"], terms["minimum"]) == (259_200, credits_(25_000_000))
    assert scene.rival.get(f"{path}/maturity").status_code == 404
    assert scene.operator.read(f"{path}/maturity")["held_back"] == credits_(EARNED)


def wait_for_destination(scene: Scene) -> None:
    """The first destination waits as later ones do."""
    scene.clock.advance(DESTINATION_DELAY_US)  # type: ignore[attr-defined]


def test_an_owner_asks_for_cash_and_the_operator_says_it_was_paid(scene: Scene) -> None:
    path = swept(scene)
    refused = scene.owner.post(f"{path}/cash-outs")
    assert (refused.status_code, refused.json()["code"]) == (422, "payment_mode")
    assert "`tallystick cash-out mode" in refused.json()["detail"], "users B12"
    mode = {"mode": "credits", "destination": "acct_owner_bank"}
    assert scene.owner.made(f"{path}/payment-mode", mode)["destination"] == "acct_owner_bank"
    told = scene.owner.read(f"{path}/payment-mode")
    assert (told["mode"], "like an IBAN" in told["destination_is"]) == ("credits", True)
    wait_for_destination(scene)
    asked = scene.owner.post(f"{path}/cash-outs", key="once")
    again = scene.owner.post(f"{path}/cash-outs", key="once")
    assert asked.json() == again.json(), "one request, one cash-out"
    one = f"{path}/cash-outs/{asked.json()['cash_out_id']}"
    assert scene.owner.read(one)["amount"] == credits_(CENTS)
    too_early = scene.operator.post(f"{one}/paid")
    assert (too_early.status_code, too_early.json()["code"]) == (409, "cash_out_state")
    run(scene, "cash_out", "payout_match")
    sent = scene.owner.read(one)
    assert sent["state"] == "sent"
    assert [one["state"] for one in scene.operator.read("/v1/cash-outs", open=True)["data"]] == [
        "sent"
    ]
    assert scene.operator.read("/v1/cash-outs", open=False)["data"] == []
    assert "0.87 USD to acct_owner_bank" in sent["instructions"]
    assert scene.owner.post(f"{one}/paid").status_code == 403
    assert scene.operator.made(f"{one}/paid")["state"] == "paid"
    (listed,) = scene.operator.read("/v1/cash-outs")["data"]
    assert listed["state"] == "paid"
    assert scene.operator.read("/v1/cash-outs", open=False)["data"] == [listed]
    assert scene.operator.read("/v1/cash-outs", open=True)["data"] == []
    told = scene.owner.read(f"{path}/maturity")
    assert (told["earned"], told["swept"]) == (credits_(EARNED - CENTS), credits_(EARNED))
    scene.owner.made(f"{path}/forgo-dust")
    assert scene.owner.read(f"{path}/maturity")["earned"] == credits_(0)
    for foreign in (scene.rival, scene.stranger):
        assert foreign.get(one).status_code == 404
        assert foreign.get(f"{path}/cash-outs").status_code == 404
        assert foreign.post(f"{path}/cash-outs").status_code == 404
        assert foreign.post(f"{one}/cancel").status_code == 404
    assert scene.service.ledger.books.books_balanced()


def test_what_is_held_stays_and_what_is_cancelled_or_fails_comes_back(scene: Scene) -> None:
    path = swept(scene)
    scene.owner.made(f"{path}/payment-mode", {"mode": "credits", "destination": "acct_x"})
    wait_for_destination(scene)
    held = scene.operator.made(f"{path}/cash-outs/hold", {"reason": "a look"})
    assert held["hold_ids"] == ["operator"]
    refused = scene.owner.post(f"{path}/cash-outs")
    assert (refused.status_code, refused.json()["code"]) == (409, "cash_out_held")
    assert "a look" in refused.json()["facts"]["holds"]
    assert [one["hold_id"] for one in scene.owner.read(f"{path}/maturity")["holds"]] == ["operator"]
    assert scene.owner.post(f"{path}/cash-outs/release").status_code == 403
    assert scene.operator.made(f"{path}/cash-outs/release")["hold_ids"] == []
    first = scene.owner.made(f"{path}/cash-outs", {"amount": credits_(500_000)})
    cancelled = scene.owner.made(f"{path}/cash-outs/{first['cash_out_id']}/cancel")
    assert cancelled["state"] == "cancelled"
    second = scene.owner.made(f"{path}/cash-outs")
    assert second["amount"] == credits_(CENTS)
    run(scene, "cash_out")
    failed = f"{path}/cash-outs/{second['cash_out_id']}/failed"
    assert scene.operator.made(failed, {"reason": "no such account"})["state"] == "failed"
    rows = scene.owner.read(f"{path}/cash-outs")["data"]
    assert [(one["state"], one.get("reason")) for one in rows] == [
        ("cancelled", None),
        ("failed", "no such account"),
    ]
    assert scene.owner.read(f"{path}/maturity")["earned"] == credits_(EARNED)


def test_differences_are_the_operators_to_read_and_to_explain(scene: Scene) -> None:
    seen = Difference("unknown", "po_9", None, None, 10_000)
    now_us = scene.clock.now_us()
    record: Any = RecordDifference(difference=seen, at_us=now_us)
    scene.service.ledger.handle(record, key=None, now_us=now_us)
    path = "/v1/cash-outs/differences"
    assert scene.owner.get(path).status_code == 403
    (one,) = scene.operator.read(path, open="true")["data"]
    assert (one["kind"], one["reference"], one["found"]) == ("unknown", "po_9", credits_(10_000))
    settle = f"{path}/{one['difference_id']}/settle"
    assert scene.operator.post(f"{path}/difference_none/settle", {"note": "x"}).status_code == 404
    scene.operator.made(settle, {"note": "paid by hand"})
    assert scene.operator.read(path, open="true")["data"] == []
    (done,) = scene.operator.read(path)["data"]
    assert done["note"] == "paid by hand"


def test_e_m5_a_card_thief_is_not_paid_from_the_cash_of_others(scene: Scene) -> None:
    """Stolen card, own node, 72 hours, cash out, charge-back: the bank that customers had filled
    paid. It waits until the card money is confirmed, or the operator's own money covers it.
    """
    thief, ledger, clock = scene.account(), scene.service.ledger, scene.clock
    at: dict[str, Any] = {"at_us": clock.now_us()}
    taken = credit(25_000_000)
    start = StartPayment(
        payment_id="pay_1",
        account_id=thief.account_id,
        method="card",
        processor="fake",
        amount=taken,
        by="m",
        **at,
    )
    came = ReceivePayment(payment_id="pay_1", amount=taken, reference="ch_1", by="job", **at)
    ledger.handle([start, came], key=None, now_us=clock.now_us())
    scene.operator.made("/v1/cash-outs/terms/minimum", {"minimum": credits_(10_000)})
    lease = scene.running(renter=thief)
    clock.advance(HOUR_US)  # type: ignore[attr-defined]
    send(scene, scene.provider, reported(scene.provider, lease))
    thief.made(f"/v1/leases/{lease['lease_id']}/close")
    accrue_now(scene, lease["lease_id"])
    clock.advance(DEFAULT_WINDOW_US)  # type: ignore[attr-defined]
    run(scene, "maturity", "sweep")
    path = f"/v1/accounts/{scene.owner.account_id}"
    scene.owner.made(f"{path}/payment-mode", {"mode": "credits", "destination": "acct_x"})
    wait_for_destination(scene)
    asked = scene.owner.made(f"{path}/cash-outs")
    one = f"{path}/cash-outs/{asked['cash_out_id']}"
    bank, customers = ledger.books.balance("world:bank"), ledger.books.customers_cash()
    assert bank == customers > CENTS, "customers filled the bank, and nobody else"
    run(scene, "cash_out", "payout_match")
    assert scene.owner.read(one)["state"] == "requested"
    reversal = ReversePayment(
        payment_id="pay_1", reference="cb", amount=taken, reason="fraud", at_us=clock.now_us()
    )
    ledger.handle(reversal, key=None, now_us=clock.now_us())
    run(scene, "cash_out", "payout_match")
    assert scene.owner.read(one)["state"] == "requested"
    assert ledger.books.balance("world:bank") == customers
    lease = scene.running()  # what a customer pays for work is theirs no more
    opened = (clock.now_us() - NOW_US) // MINUTE_US
    clock.advance(HOUR_US)  # type: ignore[attr-defined]
    send(scene, scene.provider, reported(scene.provider, lease, first=opened))
    accrue_now(scene, lease["lease_id"])
    run(scene, "cash_out", "payout_match")
    assert scene.owner.read(one)["state"] == "sent"
    left = ledger.books.balance("world:bank") - CENTS
    assert left >= ledger.books.customers_cash()


def test_a_destination_that_the_processor_cannot_know_is_refused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Stripe pays out, only an account there is one."""
    stripe = SimpleNamespace(name="stripe")
    monkeypatch.setattr(scene.service, "payout_processor", stripe)
    path = f"/v1/accounts/{scene.owner.account_id}/payment-mode"
    for destination in ("DE89370400440532013000", "acct_", "acct_1NX-abc"):
        wrong = scene.owner.post(path, {"mode": "cash", "destination": destination})
        assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid")
        assert "a destination is your account at Stripe, like acct_" in wrong.json()["detail"]
    assert "destination" not in scene.owner.read(path)
    body = {"mode": "cash", "destination": "acct_1NXabc2eZvKYlo2C"}
    assert scene.owner.made(path, body)["destination"] == body["destination"]
