"""The Stripe adapter against a local double of its HTTP API: what is sent, what is believed."""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import replace

import pytest

from api.processors.seam import (
    ChargeFailed,
    ChargePaid,
    ChargeRefunded,
    ChargeReinstated,
    ChargeReversed,
    EventForged,
    NewCharge,
    NewPayout,
    NewRefund,
    PayoutTakenBack,
    Processor,
    ProcessorAway,
    ProcessorRefused,
    RefundFailed,
    SavedCharge,
)
from api.processors.stripe_cards import Stripe
from api.settings import Settings, SettingsInvalid, load
from domain.money import credit
from tests.scenes.stripe_double import NOW_S, SECRET_KEY, WEBHOOK_SECRET, Double, running, signed

NOW_US = NOW_S * 1_000_000
CHARGE = NewCharge(
    payment_id="pay_1",
    account_id="acct_a",
    amount=credit(25_000_000),
    save_method=True,
    expires_at_us=NOW_US + 86_400_000_000,
)
SAVED = SavedCharge(
    payment_id="pay_2", account_id="acct_a", amount=credit(30_000_000), saved_method="cus_1/pm_1"
)
PAYOUT = NewPayout(
    payout_id="out_1", account_id="acct_p", destination="acct_1Connected", amount=credit(7_500_000)
)
REFUND = NewRefund(refund_id="ref_1", reference="pi_9", amount=credit(5_000_000))


class Scene:
    def __init__(self, double: Double, url: str) -> None:
        self.double = double
        self.url = url
        self.stripe: Processor = Stripe(
            SECRET_KEY, WEBHOOK_SECRET, "https://ours.example/paid", url=url
        )

    def posts(self, path: str) -> int:
        return sum(seen[:2] == ("POST", f"/v1/{path}") for seen in self.double.seen)


@pytest.fixture
def scene() -> Generator[Scene, None, None]:
    with running() as (double, url):
        yield Scene(double, url)


def test_a_charge_is_a_page_to_pay_on_and_asked_again_it_is_the_same_page(scene: Scene) -> None:
    started = scene.stripe.start_charge(CHARGE)
    assert started == scene.stripe.start_charge(CHARGE)
    assert started.url == f"https://checkout.stripe.test/{started.reference}"
    assert len(scene.double.objects["checkout/sessions"]) == 1
    _, _, form = scene.double.seen[0]
    assert form["line_items"]["0"]["price_data"]["unit_amount"] == "2500"
    assert form["payment_intent_data"]["metadata"] == {
        "payment_id": "pay_1",
        "account_id": "acct_a",
    }
    assert form["payment_intent_data"]["setup_future_usage"] == "off_session"
    assert form["success_url"] == "https://ours.example/paid"
    assert list(scene.double.keys) == ["tallystick/charge/pay_1"]


def test_the_same_id_for_another_amount_is_refused_and_moves_nothing(scene: Scene) -> None:
    scene.stripe.start_charge(CHARGE)
    with pytest.raises(ProcessorRefused):
        scene.stripe.start_charge(replace(CHARGE, amount=credit(26_000_000)))


@pytest.mark.parametrize("is_key_forgotten", [False, True])
def test_a_saved_card_is_charged_once_though_the_answer_was_lost(
    scene: Scene, is_key_forgotten: bool
) -> None:
    """Stripe forgets idempotency keys after a day; our id in its metadata stays."""
    scene.double.loses_answers = 1
    with pytest.raises(ProcessorAway):
        scene.stripe.charge_saved(SAVED)
    if is_key_forgotten:
        scene.double.keys.clear()
    made = scene.stripe.charge_saved(SAVED)
    assert made.state == "paid"
    assert [one["amount"] for one in scene.double.objects["payment_intents"].values()] == [3_000]


def test_a_declined_card_is_a_no_with_its_reason(scene: Scene) -> None:
    scene.double.declines = "insufficient_funds"
    with pytest.raises(ProcessorRefused) as caught:
        scene.stripe.charge_saved(SAVED)
    assert caught.value.code == "insufficient_funds"


def test_a_processor_that_is_away_or_does_not_know_our_key_refuses_nobody(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = Stripe("sk_test_other_key", "whsec_x", "https://ours.example", url=scene.url)
    with caplog.at_level(logging.DEBUG), pytest.raises(ProcessorAway):
        stranger.charge_saved(SAVED)
    assert "sk_test_other_key" not in caplog.text
    scene.double.is_away = True
    with pytest.raises(ProcessorAway):
        scene.stripe.charge_saved(SAVED)
    gone = Stripe(SECRET_KEY, "whsec_x", "https://ours.example", url="http://127.0.0.1:9")
    with pytest.raises(ProcessorAway):
        gone.start_charge(CHARGE)


@pytest.mark.parametrize("is_key_forgotten", [False, True])
def test_a_refund_and_a_payout_move_once_though_the_answer_was_lost(
    scene: Scene, is_key_forgotten: bool
) -> None:
    for ask in (lambda: scene.stripe.refund(REFUND), lambda: scene.stripe.pay_out(PAYOUT)):
        scene.double.loses_answers = 1
        with pytest.raises(ProcessorAway):
            ask()
        if is_key_forgotten:
            scene.double.keys.clear()
        first = ask()
        assert ask() == first
        assert first.state == "paid"
    assert len(scene.double.objects["refunds"]) == len(scene.double.objects["transfers"]) == 1
    (transfer,) = scene.double.objects["transfers"].values()
    assert (transfer["amount"], transfer["destination"]) == (750, "acct_1Connected")
    assert transfer["metadata"] == {"payout_id": "out_1", "account_id": "acct_p"}


def test_a_refund_stripe_gave_up_is_a_no(scene: Scene) -> None:
    scene.double.refund_status = "failed"
    with pytest.raises(ProcessorRefused):
        scene.stripe.refund(REFUND)


def test_payouts_are_listed_page_by_page_oldest_first(scene: Scene) -> None:
    scene.double.page_max = 2
    for number in range(5):
        scene.stripe.pay_out(replace(PAYOUT, payout_id=f"out_{number}"))
    (third,) = [
        one
        for one in scene.double.objects["transfers"].values()
        if one["metadata"]["payout_id"] == "out_3"
    ]
    third["amount_reversed"] = 150
    third["metadata"] = {}
    seen = scene.stripe.payouts_since((NOW_S + 1) * 1_000_000)
    assert [one.payout_id for one in seen] == ["out_1", "out_2", None, "out_4"]
    assert [one.taken_back.units for one in seen] == [0, 0, 1_500_000, 0]
    assert all(one.amount == credit(7_500_000) for one in seen)


# --- events ------------------------------------------------------------------------------------


def test_a_paid_page_is_told_with_the_saved_card(scene: Scene) -> None:
    started = scene.stripe.start_charge(CHARGE)
    body = scene.double.pay(started.reference)
    intent = scene.double.last_intent()
    assert scene.stripe.read_event(body, signed(body), NOW_US) == ChargePaid(
        payment_id="pay_1",
        account_id="acct_a",
        reference=intent["id"],
        amount=credit(25_000_000),
        saved_method=f"{intent['customer']}/{intent['payment_method']}",
        at_us=NOW_US,
    )


def test_each_kind_of_event_is_read(scene: Scene) -> None:
    double, ours = scene.double, {"payment_id": "pay_1"}
    refund = {
        "id": "re_1",
        "payment_intent": "pi_1",
        "amount": 500,
        "currency": "usd",
        "status": "succeeded",
        "metadata": {"refund_id": "ref_1"},
    }
    failed = {**refund, "status": "failed", "failure_reason": "expired_card", "metadata": {}}
    declined = {
        "id": "pi_2",
        "metadata": {**ours, "saved": "yes"},
        "last_payment_error": {"decline_code": "do_not_honor"},
    }
    back = {"id": "tr_1", "amount_reversed": 100, "metadata": {"payout_id": "out_1"}}
    told = {
        double.event("checkout.session.expired", {"id": "cs_1", "metadata": ours}): ChargeFailed(
            payment_id="pay_1", reference="cs_1", reason="expired", at_us=NOW_US
        ),
        double.event("payment_intent.payment_failed", declined): ChargeFailed(
            payment_id="pay_1", reference="pi_2", reason="do_not_honor", at_us=NOW_US
        ),
        double.dispute("pi_1", 2_500, "dp_1", "funds_withdrawn"): ChargeReversed(
            charge="pi_1",
            dispute="dp_1",
            amount=credit(25_000_000),
            reason="fraudulent",
            at_us=NOW_US,
        ),
        double.dispute("pi_1", 2_500, "dp_1", "funds_reinstated"): ChargeReinstated(
            charge="pi_1", dispute="dp_1", amount=credit(25_000_000), at_us=NOW_US
        ),
        double.event("refund.updated", refund): ChargeRefunded(
            charge="pi_1",
            refund_id="ref_1",
            reference="re_1",
            amount=credit(5_000_000),
            at_us=NOW_US,
        ),
        double.event("refund.failed", failed): RefundFailed(
            charge="pi_1",
            refund_id=None,
            reference="re_1",
            amount=credit(5_000_000),
            reason="expired_card",
            at_us=NOW_US,
        ),
        double.event("transfer.reversed", back): PayoutTakenBack(
            payout_id="out_1",
            reference="tr_1",
            taken_back=credit(1_000_000),
            reason="reversed",
            at_us=NOW_US,
        ),
    }
    for body, event in told.items():
        assert scene.stripe.read_event(body, signed(body), NOW_US) == event


def test_what_is_not_ours_is_nothing(scene: Scene) -> None:
    double = scene.double
    tried = {"id": "pi_1", "metadata": {"payment_id": "pay_1"}}
    foreign = {
        "id": "pi_1",
        "metadata": {"payment_id": "p"},
        "currency": "eur",
        "amount_received": 1,
    }
    pending = {
        "id": "re_1",
        "payment_intent": "pi_1",
        "amount": 500,
        "currency": "usd",
        "status": "pending",
        "metadata": {},
    }
    for body in (
        double.event("customer.created", {"id": "cus_1"}),
        double.event("payment_intent.succeeded", {"id": "pi_1", "metadata": {}}),
        double.event("payment_intent.succeeded", foreign),
        double.event("payment_intent.payment_failed", tried),
        double.event("refund.created", pending),
        double.event("checkout.session.expired", {"id": "cs_1", "metadata": None}),
        double.event("transfer.reversed", {}, account="acct_1Connected"),
    ):
        assert scene.stripe.read_event(body, signed(body), NOW_US) is None


def test_an_event_is_believed_only_with_a_good_and_recent_signature(scene: Scene) -> None:
    body = scene.double.event("customer.created", {"id": "cus_1"})
    good = signed(body)
    assert scene.stripe.read_event(body, good, NOW_US + 300_000_000) is None
    late = NOW_US + 301_000_000
    forged: list[tuple[bytes, str | None, int]] = [
        (body, None, NOW_US),
        (body, "", NOW_US),
        (body, "t=1", NOW_US),
        (body, "nonsense", NOW_US),
        (body, signed(body, secret="whsec_other"), NOW_US),
        (body.replace(b"cus_1", b"cus_2"), good, NOW_US),
        (body, good.replace(f"t={NOW_S}", f"t={NOW_S + 1}"), NOW_US),
        (body + b"\xff", good, NOW_US),
        (body, good, late),
        (body, good, NOW_US - 301_000_000),
        (body, good.replace("v1=", "v2="), NOW_US),
    ]
    for told, header, now_us in forged:
        with pytest.raises(EventForged) as caught:
            scene.stripe.read_event(told, header, now_us)
        assert "cus_" not in str(caught.value)


# --- settings ----------------------------------------------------------------------------------


def test_the_keys_are_masked_wherever_settings_are_shown() -> None:
    environ = {
        "TALLYSTICK_STRIPE_SECRET_KEY": SECRET_KEY,
        "TALLYSTICK_STRIPE_WEBHOOK_SECRET": "whsec_9",
        "TALLYSTICK_PAYMENT_RETURN_URL": "https://ours.example/paid",
    }
    loaded = load(environ=environ)
    shown = loaded.shown()
    assert shown["stripe_secret_key"]["value"] == shown["stripe_webhook_secret"]["value"]
    assert shown["stripe_secret_key"]["value"] == "********"
    told = f"{loaded.settings!r} {shown}"
    assert SECRET_KEY not in told
    assert "whsec_9" not in told


@pytest.mark.parametrize(
    "changes",
    [
        {"stripe_secret_key": "sk_test_12345678"},
        {
            "stripe_secret_key": "short",
            "stripe_webhook_secret": "w",
            "payment_return_url": "https://a",
        },
        {"stripe_url": "http://elsewhere.example"},
        {"payment_return_url": "javascript:alert(1)"},
    ],
)
def test_half_a_configuration_and_open_lines_are_refused(changes: dict[str, str]) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        Settings(**changes)  # type: ignore[arg-type]
    assert "sk_test" not in str(caught.value)


@pytest.mark.parametrize("signature", [None, "", "t=1,v1=\xe9", "t=x,v1=0", "v1=0", ",=,", "t"])
@pytest.mark.parametrize("body", [b"{}", b"\xff", b"null", b"[" * 5_000])
def test_no_signature_and_no_body_is_more_than_forged(signature: str | None, body: bytes) -> None:
    """The route is public: whatever is sent there, it is refused and breaks nothing."""
    with pytest.raises(EventForged):
        Stripe("sk_test_12345678", "whsec_x", "https://x.example/").read_event(body, signature, 1)
