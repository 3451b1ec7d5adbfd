"""What the facts of `funds` book."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.funds.card_money import CardMoneyMoved
from domain.funds.debt import DebtRepaid, DebtWrittenOff, ReserveFunded
from domain.funds.deposit import CreditsPurchaseConfirmed, DepositConfirmed
from domain.funds.funding import PromotionExpired, PromotionGranted
from domain.funds.payment import (
    PaymentConfirmed,
    PaymentReceived,
    PaymentRefundAsked,
    PaymentRefunded,
    PaymentRefundFailed,
    PaymentReinstated,
    PaymentReversed,
)
from domain.funds.promotion import PromotionClosed, PromotionOpened, fund_of
from domain.money import Asset
from ledger.books.entry import Book, Entry, entry


def _deposit(fact: DepositConfirmed) -> Iterable[Entry]:
    units = fact.amount.units
    world = "world:bank" if fact.source == "cash" else "world:card"
    return entry(Asset.CREDIT, (world, units), (f"party:{fact.account_id}:{fact.source}", -units))


def _purchase(fact: CreditsPurchaseConfirmed) -> Iterable[Entry]:
    credits, burned = fact.credits.units, fact.tokens_burned.units
    buyer = "network:suspense" if fact.account_id is None else f"party:{fact.account_id}:burned"
    yield from entry(Asset.CREDIT, ("world:burned", credits), (buyer, -credits))
    yield from entry(Asset.TOKEN, ("recycle:authority", burned), ("recycle:pool", -burned))


def _world(is_final: bool) -> str:
    return "world:bank" if is_final else "world:card"


def _holder(account_id: str | None, is_final: bool) -> str:
    """Whose credits stand against money of the world; nobody's wait in suspense."""
    if account_id is None:
        return "network:suspense"
    return f"party:{account_id}:{'cash' if is_final else 'card'}"


def _received(fact: PaymentReceived) -> Iterable[Entry]:
    units, is_final = fact.amount.units, fact.confirm_at_us is None
    holder = _holder(fact.account_id, is_final)
    return entry(Asset.CREDIT, (_world(is_final), units), (holder, -units))


def _confirmed(fact: PaymentConfirmed) -> Iterable[Entry]:
    units = fact.amount.units
    return entry(Asset.CREDIT, ("world:bank", units), ("world:card", -units))


def _reversed(fact: PaymentReversed) -> Iterable[Entry]:
    return entry(
        Asset.CREDIT,
        (_holder(fact.account_id, fact.is_final), fact.unspent.units),
        (f"party:{fact.account_id}:owed", fact.spent.units),
        (_world(fact.is_final), -fact.amount.units),
    )


def _reinstated(fact: PaymentReinstated) -> Iterable[Entry]:
    units, holder = fact.amount.units, _holder(fact.account_id, fact.is_final)
    return entry(Asset.CREDIT, (_world(fact.is_final), units), (holder, -units))


def _refund_asked(fact: PaymentRefundAsked) -> Iterable[Entry]:
    units, holder = fact.amount.units, _holder(fact.account_id, fact.is_final)
    return entry(Asset.CREDIT, (holder, units), ("payout:in_flight", -units))


def _refunded(fact: PaymentRefunded) -> Iterable[Entry]:
    units = fact.amount.units
    return entry(Asset.CREDIT, ("payout:in_flight", units), (_world(fact.is_final), -units))


def _refund_failed(fact: PaymentRefundFailed) -> Iterable[Entry]:
    units, holder = fact.amount.units, _holder(fact.account_id, fact.is_final)
    return entry(Asset.CREDIT, ("payout:in_flight", units), (holder, -units))


def _card_money(fact: CardMoneyMoved) -> Iterable[Entry]:
    units, party = fact.to_cash.units, f"party:{fact.account_id}"
    return entry(Asset.CREDIT, (f"{party}:card", units), (f"{party}:cash", -units))


def _repaid(fact: DebtRepaid) -> Iterable[Entry]:
    party = f"party:{fact.account_id}"
    paid = [(f"{party}:{part.source}", part.amount.units) for part in fact.paid]
    return entry(Asset.CREDIT, *paid, (f"{party}:owed", -sum(units for _, units in paid)))


def _written_off(fact: DebtWrittenOff) -> Iterable[Entry]:
    units, owed = fact.amount.units, f"party:{fact.account_id}:owed"
    return entry(Asset.CREDIT, ("network:chargeback_reserve", units), (owed, -units))


def _reserve(fact: ReserveFunded) -> Iterable[Entry]:
    units = fact.amount.units
    lines = (("network:revenue:take", units), ("network:chargeback_reserve", -units))
    return entry(Asset.CREDIT, *lines)


def _promotion_opened(fact: PromotionOpened) -> Iterable[Entry]:
    """A fund is the sponsor's cash: whoever is paid with a grant is paid with money."""
    units, sponsor = fact.amount.units, f"party:{fact.sponsor_account_id}:cash"
    return entry(Asset.CREDIT, (sponsor, units), (fund_of(fact.program), -units))


def _promotion_closed(fact: PromotionClosed) -> Iterable[Entry]:
    units, sponsor = fact.amount.units, f"party:{fact.sponsor_account_id}:cash"
    return entry(Asset.CREDIT, (fund_of(fact.program), units), (sponsor, -units))


def _promotion_granted(fact: PromotionGranted) -> Iterable[Entry]:
    units, granted = fact.amount.units, f"party:{fact.account_id}:grant.{fact.program}"
    return entry(Asset.CREDIT, (fund_of(fact.program), units), (granted, -units))


def _promotion_expired(fact: PromotionExpired) -> Iterable[Entry]:
    units, granted = fact.amount.units, f"party:{fact.account_id}:grant.{fact.program}"
    return entry(Asset.CREDIT, (granted, units), ("network:breakage", -units))


BOOKS: dict[type[Any], Book] = {
    DepositConfirmed: _deposit,
    CreditsPurchaseConfirmed: _purchase,
    PaymentReceived: _received,
    PaymentConfirmed: _confirmed,
    PaymentReversed: _reversed,
    PaymentReinstated: _reinstated,
    PaymentRefundAsked: _refund_asked,
    PaymentRefunded: _refunded,
    PaymentRefundFailed: _refund_failed,
    CardMoneyMoved: _card_money,
    DebtRepaid: _repaid,
    DebtWrittenOff: _written_off,
    ReserveFunded: _reserve,
    PromotionOpened: _promotion_opened,
    PromotionClosed: _promotion_closed,
    PromotionGranted: _promotion_granted,
    PromotionExpired: _promotion_expired,
}
