"""The payment seam: what the network asks of whoever moves real money, and what it is told back.

    one id of ours == one movement at the processor, however often it is asked for

Every request carries an id of ours; the processor is asked under that id again after a lost answer
and does nothing twice. Amounts are micro-credits, 1 credit = 1 US dollar, and always whole cents.
No rule of the marketplace is here and nothing is recorded here: `domain/funds/payment.py` decides
what a movement means for the books. `Bank` is the processor that needs no company: money moves by
bank transfer and a person says so. Another one is in `api/processors/stripe_cards.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from domain.money import Amount, Asset
from domain.record import dataclass

CENT_UNITS = 10_000
"""Micro-credits in a US cent: the smallest amount that moves outside."""
PAYOUTS_LISTED_MAX = 10_000


def cents(amount: Amount) -> int:
    """The amount in US cents; the domain refuses what is not whole cents before it comes here."""
    whole, rest = divmod(amount.units, CENT_UNITS)
    assert amount.asset is Asset.CREDIT, amount
    assert rest == 0, amount
    assert whole > 0, amount
    return whole


class ProcessorAway(Exception):
    """The processor did not answer. It may have done it all the same: ask again, same id."""


class ProcessorRefused(Exception):
    """The processor said no, and will say no again. `code` is its own word for why."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code


class EventForged(Exception):
    """The signature of an inbound event is missing, wrong or too old. Nothing of it is believed."""


# --- money in --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCharge:
    """Ask somebody to pay. With `save_method` the processor keeps what they pay with, so that
    `charge_saved` may use it without them.
    """

    payment_id: str
    account_id: str
    amount: Amount
    save_method: bool
    expires_at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeStarted:
    """Where or how to pay: an address of a page, or instructions in words."""

    reference: str
    url: str | None = None
    instructions: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCharge:
    """Charge what was saved, with nobody there (auto top-up)."""

    payment_id: str
    account_id: str
    amount: Amount
    saved_method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeMade:
    """`pending`: an event will say how it ended."""

    reference: str
    state: Literal["paid", "pending"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRefund:
    """Give back a part of a payment the way it came; `reference` is that of the paid charge."""

    refund_id: str
    reference: str
    amount: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundMade:
    reference: str
    state: Literal["paid", "pending"]


# --- money out -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPayout:
    """Pay a provider. `destination` is the provider's own account at the processor."""

    payout_id: str
    account_id: str
    destination: str
    amount: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutMade:
    """`pending`: the processor (or, at a bank, a person) will still say how it ended."""

    reference: str
    state: Literal["paid", "pending"]
    instructions: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutSeen:
    """A payout as the processor's own list has it, to be matched with ours. `payout_id` is our id
    where the processor kept one; None: somebody paid it out by hand. `amount` is what was paid and
    `taken_back` what of it came back since (0 in general).
    """

    payout_id: str | None
    reference: str
    destination: str
    amount: Amount
    taken_back: Amount
    at_us: int


# --- what a processor tells by itself --------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargePaid:
    """The money is with the processor. `saved_method` is what `charge_saved` may be given."""

    payment_id: str
    account_id: str
    reference: str
    amount: Amount
    saved_method: str | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeFailed:
    """It will not be paid any more: declined for good, or nobody paid in time."""

    payment_id: str
    reference: str
    reason: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeReversed:
    """The bank of whoever paid took money back. `charge` is the reference the charge was paid
    under, `dispute` the processor's number of the taking.
    """

    charge: str
    dispute: str
    amount: Amount
    reason: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeReinstated:
    """A reversal was won: the money of this dispute is back."""

    charge: str
    dispute: str
    amount: Amount
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRefunded:
    """One refund reached whoever paid. `refund_id` is ours; None: made by hand at the processor."""

    charge: str
    refund_id: str | None
    reference: str
    amount: Amount
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundFailed:
    """One refund did not reach whoever paid: the money is back with the processor."""

    charge: str
    refund_id: str | None
    reference: str
    amount: Amount
    reason: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutTakenBack:
    """A payout came back, wholly or in part; `taken_back` is the sum so far."""

    payout_id: str | None
    reference: str
    taken_back: Amount
    reason: str
    at_us: int


Event: TypeAlias = (
    ChargePaid
    | ChargeFailed
    | ChargeReversed
    | ChargeReinstated
    | ChargeRefunded
    | RefundFailed
    | PayoutTakenBack
)


class Processor(Protocol):
    """Whoever moves real money for us.

    Every method but `read_event` raises ProcessorAway and ProcessorRefused; asked again under the
    same id of ours, each answers as the first time.
    """

    @property
    def name(self) -> str:
        """As stored in facts and in the address of its events: lower-case letters."""
        ...

    @property
    def signature_header(self) -> str | None:
        """The header of an event that holds its signature; None: it sends none."""
        ...

    @property
    def lists_payouts(self) -> bool:
        """Whether `payouts_since` knows anything, so that payouts can be matched."""
        ...

    def start_charge(self, charge: NewCharge) -> ChargeStarted:
        """Ask for money: how to pay. Whether it was paid, an event tells."""
        ...

    def charge_saved(self, charge: SavedCharge) -> ChargeMade:
        """Take money by a saved method."""
        ...

    def refund(self, refund: NewRefund) -> RefundMade:
        """Give money back the way it came."""
        ...

    def pay_out(self, payout: NewPayout) -> PayoutMade:
        """Send money to a provider."""
        ...

    def payouts_since(self, since_us: int) -> Sequence[PayoutSeen]:
        """Every payout made at or after a moment, oldest first, at most PAYOUTS_LISTED_MAX."""
        ...

    def read_event(self, body: bytes, signature: str | None, now_us: int) -> Event | None:
        """What an inbound message tells, once its signature is found good; None: nothing for us.

        Raises EventForged.
        """
        ...


# --- the one that is always there ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bank:
    """Bank transfers, confirmed by a person: nothing here moves money or is told of it.

    `instructions` say where to transfer to; the payment's id is the reference to give.
    """

    instructions: str

    @property
    def name(self) -> str:
        return "bank"

    @property
    def signature_header(self) -> str | None:
        return None

    @property
    def lists_payouts(self) -> bool:
        return False

    def start_charge(self, charge: NewCharge) -> ChargeStarted:
        dollars = f"{cents(charge.amount) // 100}.{cents(charge.amount) % 100:02}"
        told = f"Transfer {dollars} USD with the reference {charge.payment_id}. {self.instructions}"
        return ChargeStarted(reference=charge.payment_id, instructions=told.strip())

    def charge_saved(self, charge: SavedCharge) -> ChargeMade:
        """Raises ProcessorRefused: nobody can take money from a bank account without its owner."""
        raise ProcessorRefused("no_saved_method", f"{charge.payment_id} needs a person")

    def refund(self, refund: NewRefund) -> RefundMade:
        """A person transfers it back and says so."""
        return RefundMade(reference=refund.refund_id, state="pending")

    def pay_out(self, payout: NewPayout) -> PayoutMade:
        """A person transfers it and says so."""
        dollars = f"{cents(payout.amount) // 100}.{cents(payout.amount) % 100:02}"
        told = f"Transfer {dollars} USD to {payout.destination}, reference {payout.payout_id}."
        return PayoutMade(reference=payout.payout_id, state="pending", instructions=told)

    def payouts_since(self, since_us: int) -> Sequence[PayoutSeen]:
        del since_us
        return ()

    def read_event(self, body: bytes, signature: str | None, now_us: int) -> Event | None:
        """Raises EventForged: a bank does not call."""
        del body, signature, now_us
        raise EventForged("a bank sends no events: an operator confirms its transfers")
