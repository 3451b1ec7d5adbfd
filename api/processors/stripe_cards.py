"""Cards by Stripe, on its official library: checkout pages, saved cards, refunds, payouts, events.

    one id of ours == one object at Stripe            its metadata carries the id

Every request that moves money carries an Idempotency-Key made from our id. Stripe forgets such keys
after a day, so before money moves without its owner (a saved card, a refund, a payout) the objects
that are there are asked for our id first. Secrets stay in this object: they are in no message, no
log and no fact. What an event says is believed only after its signature (HMAC-SHA256 over time and
body) is found good and not older than `TOLERANCE_SECONDS`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import stripe

from api.processors.seam import (
    CENT_UNITS,
    PAYOUTS_LISTED_MAX,
    ChargeFailed,
    ChargeMade,
    ChargePaid,
    ChargeRefunded,
    ChargeReinstated,
    ChargeReversed,
    ChargeStarted,
    Event,
    EventForged,
    NewCharge,
    NewPayout,
    NewRefund,
    PayoutMade,
    PayoutSeen,
    PayoutTakenBack,
    ProcessorAway,
    ProcessorRefused,
    RefundFailed,
    RefundMade,
    SavedCharge,
    cents,
)
from domain.duration import SECOND_US
from domain.money import Amount, credit

logger = logging.getLogger(__name__)

NAME = "stripe"
CURRENCY = "usd"
TOLERANCE_SECONDS = 300
TIMEOUT_SECONDS = 8.0
PAGE = 100
LOOKED_AT_MAX = 1_000
"""Objects of one customer, payment or payout that are looked through for our id."""


class Stripe:
    """A `Processor`, safe to use from many threads. Payers come back to the page `return_url`."""

    def __init__(
        self, secret_key: str, webhook_secret: str, return_url: str, *, url: str | None = None
    ) -> None:
        self._webhook_secret = webhook_secret
        self._return_url = return_url
        self._client = stripe.StripeClient(
            secret_key,
            base_addresses={} if url is None else {"api": url.rstrip("/")},
            max_network_retries=0,  # the caller asks again, under the same id
            http_client=stripe.RequestsClient(timeout=TIMEOUT_SECONDS),
        ).v1

    @property
    def name(self) -> str:
        return NAME

    @property
    def signature_header(self) -> str | None:
        return "Stripe-Signature"

    @property
    def lists_payouts(self) -> bool:
        return True

    # --- money in ------------------------------------------------------------------------------

    def start_charge(self, charge: NewCharge) -> ChargeStarted:
        """A page of Stripe's to pay on."""
        marks = {"payment_id": charge.payment_id, "account_id": charge.account_id}
        intent: dict[str, Any] = {"metadata": marks}
        more: dict[str, Any] = {}
        if charge.save_method:
            intent["setup_future_usage"] = "off_session"
            more["customer_creation"] = "always"
        price = {
            "currency": CURRENCY,
            "unit_amount": cents(charge.amount),
            "product_data": {"name": "Compute credits"},
        }
        session: Any = {
            "mode": "payment",
            "line_items": [{"price_data": price, "quantity": 1}],
            "client_reference_id": charge.payment_id,
            "metadata": marks,
            "payment_intent_data": intent,
            "success_url": self._return_url,
            "cancel_url": self._return_url,
            # Stripe takes at most a day from its own clock, which may be behind ours.
            "expires_at": charge.expires_at_us // SECOND_US - 60,
            **more,
        }
        with _asked():
            made = self._client.checkout.sessions.create(
                session, _once("charge", charge.payment_id)
            )
        return ChargeStarted(reference=made.id, url=made.url)

    def charge_saved(self, charge: SavedCharge) -> ChargeMade:
        """`saved_method` is `customer/payment method`, as `ChargePaid` told it."""
        customer, _, method = charge.saved_method.partition("/")
        with _asked():
            there = self._client.payment_intents.list({"customer": customer, "limit": PAGE})
            made = _found(there.auto_paging_iter(), "payment_id", charge.payment_id)
            if made is None:
                made = self._client.payment_intents.create(
                    {
                        "amount": cents(charge.amount),
                        "currency": CURRENCY,
                        "customer": customer,
                        "payment_method": method,
                        "off_session": True,
                        "confirm": True,
                        "metadata": {
                            "payment_id": charge.payment_id,
                            "account_id": charge.account_id,
                            "saved": "yes",
                        },
                    },
                    _once("charge", charge.payment_id),
                )
        if made.status == "succeeded":
            return ChargeMade(reference=made.id, state="paid")
        if made.status == "processing":
            return ChargeMade(reference=made.id, state="pending")
        raise ProcessorRefused(str(made.status))

    def refund(self, refund: NewRefund) -> RefundMade:
        with _asked():
            there = self._client.refunds.list({"payment_intent": refund.reference, "limit": PAGE})
            made = _found(there.auto_paging_iter(), "refund_id", refund.refund_id)
            if made is None:
                made = self._client.refunds.create(
                    {
                        "payment_intent": refund.reference,
                        "amount": cents(refund.amount),
                        "metadata": {"refund_id": refund.refund_id},
                    },
                    _once("refund", refund.refund_id),
                )
        if made.status in ("failed", "canceled"):
            raise ProcessorRefused(str(made.failure_reason or made.status))
        return RefundMade(
            reference=made.id, state="paid" if made.status == "succeeded" else "pending"
        )

    # --- money out -----------------------------------------------------------------------------

    def pay_out(self, payout: NewPayout) -> PayoutMade:
        """A transfer to the provider's connected account; its bank is between them and Stripe."""
        with _asked():
            group = {"transfer_group": payout.payout_id, "limit": PAGE}
            there = self._client.transfers.list(group)  # type: ignore[arg-type]
            made = _found(there.auto_paging_iter(), "payout_id", payout.payout_id)
            if made is None:
                made = self._client.transfers.create(
                    {
                        "amount": cents(payout.amount),
                        "currency": CURRENCY,
                        "destination": payout.destination,
                        "transfer_group": payout.payout_id,
                        "metadata": {
                            "payout_id": payout.payout_id,
                            "account_id": payout.account_id,
                        },
                    },
                    _once("payout", payout.payout_id),
                )
        return PayoutMade(reference=made.id, state="paid")

    def payouts_since(self, since_us: int) -> Sequence[PayoutSeen]:
        """Transfers, oldest first. Raises ProcessorRefused: more than PAYOUTS_LISTED_MAX."""
        found: list[PayoutSeen] = []
        with _asked():
            since = {"created": {"gte": since_us // SECOND_US}, "limit": PAGE}
            there = self._client.transfers.list(since)  # type: ignore[arg-type]
            for each in there.auto_paging_iter():
                if len(found) >= PAYOUTS_LISTED_MAX:
                    raise ProcessorRefused("too_many", f"more than {PAYOUTS_LISTED_MAX} payouts")
                found.append(
                    PayoutSeen(
                        payout_id=_mark(each, "payout_id"),
                        reference=each.id,
                        destination=str(each.destination),
                        amount=_amount(each.amount),
                        taken_back=_amount(each.amount_reversed),
                        at_us=each.created * SECOND_US,
                    )
                )
        return found[::-1]

    # --- events --------------------------------------------------------------------------------

    def read_event(self, body: bytes, signature: str | None, now_us: int) -> Event | None:
        """Raises EventForged."""
        if signature is not None and not signature.isascii():
            raise EventForged("the signature is not ASCII")  # the library cannot compare it
        try:
            stripe.WebhookSignature.verify_header(body, signature, self._webhook_secret)
        except (stripe.SignatureVerificationError, UnicodeDecodeError):
            # Not the library's own text: it quotes the body.
            raise EventForged("the signature is not one of Stripe over these bytes") from None
        assert signature is not None
        told_s = next(int(part[2:]) for part in signature.split(",") if part.startswith("t="))
        if abs(now_us // SECOND_US - told_s) > TOLERANCE_SECONDS:
            raise EventForged(f"signed more than {TOLERANCE_SECONDS} seconds from now")
        event = json.loads(body)
        read = _READ.get(event["type"])
        if read is None or event.get("account"):  # nothing for us, or of a provider's own account
            return None
        return read(event["data"]["object"], event["created"] * SECOND_US)


def _once(kind: str, our_id: str) -> stripe.RequestOptions:
    return {"idempotency_key": f"tallystick/{kind}/{our_id}"}


def _found(objects: Iterable[Any], name: str, our_id: str) -> Any | None:
    """The object that carries our id; the newest ones come first."""
    for number, each in enumerate(objects):
        if number == LOOKED_AT_MAX:
            break
        if _mark(each, name) == our_id:
            return each
    return None


def _mark(told: Any, name: str) -> str | None:
    """What an object's metadata says under this name."""
    marks = told.metadata
    return None if marks is None else marks.to_dict().get(name)


@contextmanager
def _asked() -> Generator[None, None, None]:
    """Stripe's errors as those of the seam. A key that is not let in is our mistake, and no
    reason to refuse anybody's payment.
    """
    try:
        yield
    except (stripe.AuthenticationError, stripe.PermissionError) as error:
        logger.error("Stripe does not accept our key: %s", type(error).__name__)
        raise ProcessorAway("Stripe does not accept our key") from None
    except stripe.CardError as error:
        declined = getattr(error.error, "decline_code", None)
        raise ProcessorRefused(str(declined or error.code or "card_declined")) from None
    except (stripe.InvalidRequestError, stripe.IdempotencyError) as error:
        logger.error("Stripe refuses a request: %s", error.user_message or type(error).__name__)
        raise ProcessorRefused(str(error.code or "invalid_request")) from None
    except stripe.StripeError as error:
        raise ProcessorAway(f"Stripe: {type(error).__name__}") from None


def _amount(in_cents: int) -> Amount:
    return credit(in_cents * CENT_UNITS)


def _in_dollars(told: Mapping[str, Any]) -> bool:
    return bool(told.get("currency") == CURRENCY)


# What each kind of event means; every other kind is nothing for us.


def _paid(told: Mapping[str, Any], at_us: int) -> Event | None:
    marks = told.get("metadata") or {}
    if "payment_id" not in marks or not _in_dollars(told):
        return None
    saved = None
    if told.get("setup_future_usage") == "off_session" and told.get("customer"):
        saved = f"{told['customer']}/{told['payment_method']}"
    return ChargePaid(
        payment_id=marks["payment_id"],
        account_id=marks.get("account_id", ""),
        reference=told["id"],
        amount=_amount(told["amount_received"]),
        saved_method=saved,
        at_us=at_us,
    )


def _expired(told: Mapping[str, Any], at_us: int) -> Event | None:
    marks = told.get("metadata") or {}
    if "payment_id" not in marks:
        return None
    return ChargeFailed(
        payment_id=marks["payment_id"], reference=told["id"], reason="expired", at_us=at_us
    )


def _declined(told: Mapping[str, Any], at_us: int) -> Event | None:
    """Only with a saved card is it the end: on its page somebody may try another card."""
    marks = told.get("metadata") or {}
    if "payment_id" not in marks or marks.get("saved") != "yes":
        return None
    error = told.get("last_payment_error") or {}
    reason = str(error.get("decline_code") or error.get("code") or "declined")
    return ChargeFailed(
        payment_id=marks["payment_id"], reference=told["id"], reason=reason, at_us=at_us
    )


def _withdrawn(told: Mapping[str, Any], at_us: int) -> Event | None:
    if not told.get("payment_intent") or not _in_dollars(told):
        return None
    return ChargeReversed(
        charge=told["payment_intent"],
        dispute=told["id"],
        amount=_amount(told["amount"]),
        reason=str(told.get("reason") or "dispute"),
        at_us=at_us,
    )


def _returned(told: Mapping[str, Any], at_us: int) -> Event | None:
    if not told.get("payment_intent") or not _in_dollars(told):
        return None
    return ChargeReinstated(
        charge=told["payment_intent"],
        dispute=told["id"],
        amount=_amount(told["amount"]),
        at_us=at_us,
    )


def _refunded(told: Mapping[str, Any], at_us: int) -> Event | None:
    if not told.get("payment_intent") or not _in_dollars(told):
        return None
    marks = told.get("metadata") or {}
    what: dict[str, Any] = {
        "charge": told["payment_intent"],
        "refund_id": marks.get("refund_id"),
        "reference": told["id"],
        "amount": _amount(told["amount"]),
        "at_us": at_us,
    }
    if told["status"] == "succeeded":
        return ChargeRefunded(**what)
    if told["status"] in ("failed", "canceled"):
        return RefundFailed(**what, reason=str(told.get("failure_reason") or told["status"]))
    return None


def _payout_back(told: Mapping[str, Any], at_us: int) -> Event | None:
    return PayoutTakenBack(
        payout_id=(told.get("metadata") or {}).get("payout_id"),
        reference=told["id"],
        taken_back=_amount(told["amount_reversed"]),
        reason="reversed",
        at_us=at_us,
    )


_READ: Mapping[str, Callable[[Mapping[str, Any], int], Event | None]] = {
    "payment_intent.succeeded": _paid,
    "payment_intent.payment_failed": _declined,
    "checkout.session.expired": _expired,
    "charge.dispute.funds_withdrawn": _withdrawn,
    "charge.dispute.funds_reinstated": _returned,
    "refund.created": _refunded,
    "refund.updated": _refunded,
    "refund.failed": _refunded,
    "transfer.reversed": _payout_back,
}
