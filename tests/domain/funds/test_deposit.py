"""Money in: once per payment, once per purchase on the chain."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.funds.deposit import (
    DEPOSIT_UNITS_MAX,
    ConfirmCreditsPurchase,
    ConfirmDeposit,
    CreditsPurchaseConfirmed,
    DepositConfirmed,
    deposit_id_of,
    deposit_of,
    purchase_of,
)
from domain.funds.reasons import FundsReason
from domain.money import credit, token
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.stream import Stream
from tests.domain.scenes.supply import ALICE, NOON_US, with_account
from tests.given import Scene

DEPOSIT = deposit_id_of("cash", "bank-0001")
DEPOSIT_STREAM = Stream("deposit", DEPOSIT)
BURNER = "0x" + "be" * 20
PURCHASE_STREAM = Stream("purchase", f"{BURNER}/1")

confirm = ConfirmDeposit(
    deposit_id=DEPOSIT,
    account_id=ALICE,
    source="cash",
    amount=credit(25_000_000),
    reference="bank-0001",
    confirmed_by="mem_ops",
    at_us=NOON_US,
)
confirmed = DepositConfirmed(
    deposit_id=DEPOSIT,
    account_id=ALICE,
    source="cash",
    amount=credit(25_000_000),
    reference="bank-0001",
    confirmed_by="mem_ops",
    at_us=NOON_US,
)
buy = ConfirmCreditsPurchase(
    burner=BURNER,
    purchase_id=1,
    account_id=ALICE,
    payer="0x" + "aa" * 20,
    tokens_burned=token(1_016_042_781),
    credits=credit(19_000_000),
    price_round=7,
    tx_hash="0x" + "07" * 32,
    log_index=2,
    block_number=101,
    at_us=NOON_US,
)
bought = CreditsPurchaseConfirmed(
    burner=BURNER,
    purchase_id=1,
    account_id=ALICE,
    payer="0x" + "aa" * 20,
    tokens_burned=token(1_016_042_781),
    credits=credit(19_000_000),
    price_round=7,
    tx_hash="0x" + "07" * 32,
    log_index=2,
    block_number=101,
    at_us=NOON_US,
)


def test_a_deposit_is_confirmed_to_its_account() -> None:
    with_account.when(confirm).then((DEPOSIT_STREAM, confirmed))
    assert deposit_of(with_account.after(confirm), DEPOSIT).confirmed == confirmed


def test_the_same_deposit_counts_once_whoever_confirms_it_again() -> None:
    scene = with_account.given((DEPOSIT_STREAM, confirmed))
    scene.when(replace(confirm, confirmed_by="mem_eve", at_us=NOON_US + 1)).then_nothing()


@pytest.mark.parametrize(
    "other",
    [
        replace(confirm, amount=credit(25_000_001)),
        replace(confirm, source="card"),
        replace(confirm, reference="bank-0002"),
    ],
)
def test_another_deposit_under_the_same_id_is_refused(other: ConfirmDeposit) -> None:
    with_account.given((DEPOSIT_STREAM, confirmed)).when(other).then_refused(
        FundsReason.DEPOSIT_EXISTS
    )


def test_one_payment_has_one_deposit_id() -> None:
    assert deposit_id_of("cash", "bank-0001") == DEPOSIT
    assert len({DEPOSIT, deposit_id_of("card", "bank-0001"), deposit_id_of("cash", "x")}) == 3


def test_money_for_nobody_is_refused() -> None:
    Scene().when(confirm).then_refused(PartiesReason.ACCOUNT_UNKNOWN)


def test_credits_enter_as_cash_or_by_card_only() -> None:
    with_account.when(replace(confirm, source="earned")).then_refused(
        FundsReason.DEPOSIT_SOURCE_UNKNOWN
    )


@pytest.mark.parametrize("units", [0, -1])
def test_a_deposit_is_positive(units: int) -> None:
    with_account.when(replace(confirm, amount=credit(units))).then_refused(
        FundsReason.AMOUNT_NOT_POSITIVE
    )


def test_a_deposit_is_of_credits_and_of_a_sane_size() -> None:
    with_account.when(replace(confirm, amount=token(5))).then_refused(
        PricesReason.AMOUNT_OUT_OF_RANGE
    )
    with_account.when(replace(confirm, amount=credit(DEPOSIT_UNITS_MAX + 1))).then_refused(
        PricesReason.AMOUNT_OUT_OF_RANGE
    )


def test_credits_bought_by_burning_go_to_the_buyer() -> None:
    with_account.when(buy).then((PURCHASE_STREAM, bought))
    assert purchase_of(with_account.after(buy), BURNER, 1).confirmed == bought


def test_credits_of_an_unknown_buyer_wait_for_one() -> None:
    Scene().when(buy).then((PURCHASE_STREAM, replace(bought, account_id=None)))
    with_account.when(replace(buy, account_id=None)).then(
        (PURCHASE_STREAM, replace(bought, account_id=None))
    )


def test_the_same_purchase_counts_once_even_if_its_buyer_became_known() -> None:
    with_account.given((PURCHASE_STREAM, bought)).when(replace(buy, at_us=9)).then_nothing()
    waiting = replace(bought, account_id=None)
    with_account.given((PURCHASE_STREAM, waiting)).when(buy).then_nothing()


def test_another_purchase_under_the_same_number_is_refused() -> None:
    with_account.given((PURCHASE_STREAM, bought)).when(
        replace(buy, credits=credit(19_000_001))
    ).then_refused(FundsReason.PURCHASE_EXISTS)


def test_a_purchase_burns_something_for_something() -> None:
    with_account.when(replace(buy, tokens_burned=token(0))).then_refused(
        FundsReason.AMOUNT_NOT_POSITIVE
    )
    with_account.when(replace(buy, credits=credit(0))).then_refused(FundsReason.AMOUNT_NOT_POSITIVE)


@given(st.lists(st.integers(1, 5), max_size=20))
def test_a_payment_counts_once_however_often_it_is_confirmed(numbers: list[int]) -> None:
    scene = with_account
    for number in numbers:
        reference = f"bank-{number}"
        scene = scene.after(
            replace(
                confirm,
                deposit_id=deposit_id_of("cash", reference),
                amount=credit(number),
                reference=reference,
            )
        )
    money = [fact.amount.units for _, fact in scene.past if isinstance(fact, DepositConfirmed)]
    assert sum(money) == sum(set(numbers))
