"""The payment seam, and the processor that is always there."""

from __future__ import annotations

import pytest

from api.processors.seam import (
    Bank,
    EventForged,
    NewCharge,
    NewPayout,
    NewRefund,
    Processor,
    ProcessorRefused,
    SavedCharge,
    cents,
)
from domain.money import credit

BANK: Processor = Bank("To: Tallystick, IBAN DE00 0000.")


def test_amounts_outside_are_whole_cents() -> None:
    assert cents(credit(25_000_000)) == 2_500
    for units in (25_000_001, 0, -10_000):
        with pytest.raises(AssertionError):
            cents(credit(units))


def test_a_bank_tells_how_to_pay_and_waits_for_a_person() -> None:
    asked = NewCharge(
        payment_id="pay_1",
        account_id="acct_a",
        amount=credit(25_050_000),
        save_method=False,
        expires_at_us=0,
    )
    started = BANK.start_charge(asked)
    assert started == BANK.start_charge(asked), "asked again it answers alike"
    assert (started.reference, started.url) == ("pay_1", None)
    assert started.instructions == (
        "Transfer 25.05 USD with the reference pay_1. To: Tallystick, IBAN DE00 0000."
    )
    payout = NewPayout(
        payout_id="out_1", account_id="acct_a", destination="DE99", amount=credit(1_010_000)
    )
    made = BANK.pay_out(payout)
    assert (made.reference, made.state) == ("out_1", "pending")
    assert made.instructions == "Transfer 1.01 USD to DE99, reference out_1."
    refund = NewRefund(refund_id="ref_1", reference="pay_1", amount=credit(10_000))
    assert BANK.refund(refund).state == "pending"
    assert not BANK.lists_payouts
    assert BANK.payouts_since(0) == ()


def test_a_bank_takes_nothing_by_itself_and_sends_no_events() -> None:
    with pytest.raises(ProcessorRefused):
        BANK.charge_saved(
            SavedCharge(payment_id="p", account_id="a", amount=credit(10_000), saved_method="DE99")
        )
    with pytest.raises(EventForged):
        BANK.read_event(b"{}", "t=1,v1=00", 1)
