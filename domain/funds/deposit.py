"""Money in: confirmed deposits, and credits bought by burning tokens. One stream per deposit,
so the same deposit can never count twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from domain.frozen import replace
from domain.funds import card_money, debt
from domain.funds.reasons import FundsReason
from domain.money import Amount, Asset
from domain.parties.account import account_of, existing_account, require_open
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World, derive_id


@dataclass(frozen=True, slots=True, kw_only=True)
class DepositConfirmed:
    """Stream `deposit:{deposit_id}`."""

    deposit_id: str
    account_id: str
    source: str  # "cash" or "card"
    amount: Amount
    reference: str  # the payment's own number, for reconciliation
    confirmed_by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditsPurchaseConfirmed:
    """A final `CreditsPurchased` on chain. Stream `purchase:{burner}/{purchase_id}`."""

    burner: str
    purchase_id: int  # dense from 1
    account_id: str | None  # absent: nobody we know, the credits wait in suspense
    payer: str
    tokens_burned: Amount
    credits: Amount
    price_round: int
    tx_hash: str
    log_index: int
    block_number: int
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmDeposit:
    deposit_id: str
    account_id: str
    source: str
    amount: Amount
    reference: str
    confirmed_by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmCreditsPurchase:
    burner: str
    purchase_id: int
    account_id: str | None  # whom the buyer named; kept only if we know them
    payer: str
    tokens_burned: Amount
    credits: Amount
    price_round: int
    tx_hash: str
    log_index: int
    block_number: int
    at_us: int


DEPOSIT_SOURCES = ("cash", "card")

DEPOSIT_UNITS_MAX = 10**15
"""A thousand million credits at once: far above any deposit, far below what a balance can hold."""

# State.


@dataclass(frozen=True, slots=True)
class DepositState:
    confirmed: DepositConfirmed | None = None


@dataclass(frozen=True, slots=True)
class PurchaseState:
    confirmed: CreditsPurchaseConfirmed | None = None


def evolve(_state: DepositState, fact: DepositConfirmed) -> DepositState:
    return DepositState(fact)


def evolve_purchase(_state: PurchaseState, fact: CreditsPurchaseConfirmed) -> PurchaseState:
    return PurchaseState(fact)


# Decisions.


def deposit_id_of(source: str, reference: str) -> str:
    """The id of the deposit that a payment is: one payment, one stream, whoever confirms it."""
    return derive_id("deposit", source, reference)


def deposit_stream(deposit_id: str) -> Stream[DepositState]:
    return Stream("deposit", deposit_id)


def deposit_of(world: World, deposit_id: str) -> DepositState:
    return world.state(deposit_stream(deposit_id))


def purchase_stream(burner: str, purchase_id: int) -> Stream[PurchaseState]:
    return Stream("purchase", f"{burner}/{purchase_id}")


def purchase_of(world: World, burner: str, purchase_id: int) -> PurchaseState:
    return world.state(purchase_stream(burner, purchase_id))


def decide_deposit(command: ConfirmDeposit, world: World) -> list[Change]:
    """Money that arrived outside. The same deposit again changes nothing; another under its id
    is refused, whoever confirms it and when. A debt is repaid first. Money by card stays card
    money, for nobody tells when its chargeback window is over (`domain/funds/payment.py` knows).

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, DEPOSIT_EXISTS, DEPOSIT_SOURCE_UNKNOWN,
    AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE.
    """
    account = existing_account(world, command.account_id)
    present = deposit_of(world, command.deposit_id).confirmed
    confirmed = DepositConfirmed(
        deposit_id=command.deposit_id,
        account_id=command.account_id,
        source=command.source,
        amount=command.amount,
        reference=command.reference,
        confirmed_by=command.confirmed_by,
        at_us=command.at_us,
    )
    if present is not None:
        again = replace(confirmed, confirmed_by=present.confirmed_by, at_us=present.at_us)
        if again == present:
            return []
    require_open(account, command.account_id)
    if present is not None:
        raise Refused(FundsReason.DEPOSIT_EXISTS, deposit_id=command.deposit_id)
    if command.source not in DEPOSIT_SOURCES:
        raise Refused(
            FundsReason.DEPOSIT_SOURCE_UNKNOWN, source=command.source, allowed=DEPOSIT_SOURCES
        )
    _require_credits(command.amount)
    account_id, cause, at_us = command.account_id, command.deposit_id, command.at_us
    units, is_card = command.amount.units, command.source == "card"
    return [
        Change(deposit_stream(command.deposit_id), confirmed),
        *(card_money.came_in(world, account_id, units, cause, at_us) if is_card else ()),
        *debt.repayments(world, account_id, cause, at_us, moved={command.source: units}),
    ]


def decide_purchase(command: ConfirmCreditsPurchase, world: World) -> list[Change]:
    """Credits bought by burning tokens, final on chain. An unknown buyer's wait in suspense, and
    so do those of a closed account.

    Raises Refused: PURCHASE_EXISTS, AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE.
    """
    present = purchase_of(world, command.burner, command.purchase_id).confirmed
    known = command.account_id is not None and account_of(world, command.account_id).is_open
    confirmed = CreditsPurchaseConfirmed(
        burner=command.burner,
        purchase_id=command.purchase_id,
        account_id=command.account_id if known else None,
        payer=command.payer,
        tokens_burned=command.tokens_burned,
        credits=command.credits,
        price_round=command.price_round,
        tx_hash=command.tx_hash,
        log_index=command.log_index,
        block_number=command.block_number,
        at_us=command.at_us,
    )
    if present is not None:
        again = replace(confirmed, account_id=present.account_id, at_us=present.at_us)
        if again == present:
            return []
        raise Refused(FundsReason.PURCHASE_EXISTS, purchase_id=command.purchase_id)
    assert command.tokens_burned.asset is Asset.TOKEN, command
    if command.tokens_burned.units <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, units=command.tokens_burned.units)
    _require_credits(command.credits)
    return [Change(purchase_stream(command.burner, command.purchase_id), confirmed)]


def _require_credits(amount: Amount) -> None:
    if amount.units <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, units=amount.units)
    if amount.asset is not Asset.CREDIT or amount.units > DEPOSIT_UNITS_MAX:
        raise Refused(
            PricesReason.AMOUNT_OUT_OF_RANGE, asset=amount.asset.value, units=amount.units
        )


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "deposit": (DepositState(), evolve),
    "purchase": (PurchaseState(), evolve_purchase),
}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    ConfirmDeposit: decide_deposit,
    ConfirmCreditsPurchase: decide_purchase,
}
