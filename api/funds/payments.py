"""Payments: paying by card or bank, what became of it, money back, warnings and auto top-up.

Card money is spendable at once and confirmed after its chargeback window; a bank transfer counts
when the operator confirms it. What a processor tells arrives at `/v1/payments/events/{processor}`:
public, believed for its signature alone, and harmless to tell again.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import BaseModel, ConfigDict, Field

from api.door import errors
from api.door.amounts import INTEGER_MAX, Money, credits_, credits_or_none, money
from api.door.auth import everybody, with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AccountInPath,
    AnswerModel,
    Moment,
    Position,
    Reference,
    RequestModel,
    Short,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.door.second_person import checked
from api.door.unverified import require_few_payments
from api.funds.payment_events import commands_of
from api.funds.reversals import reversing
from api.parties.accounts import own, visible
from api.processors.configured import processor_for
from api.processors.seam import (
    ChargeStarted,
    EventForged,
    NewCharge,
    Processor,
    ProcessorAway,
    ProcessorRefused,
)
from domain.duration import DAY_US
from domain.funds.debt import RESERVE_STREAM, FundReserve, WriteOffDebt
from domain.funds.payment import (
    AskRefund,
    ConfirmRefund,
    OfferPayment,
    Payment,
    ReceivePayment,
    ReversePayment,
    StartPayment,
    stream_of,
)
from domain.funds.payment_terms import TERMS, PublishPaymentTerms
from domain.funds.reasons import FundsReason
from domain.funds.top_up import (
    THRESHOLDS_MAX,
    SetAutoTopUp,
    SetBalanceWarnings,
    StopAutoTopUp,
    TopUps,
)
from domain.funds.top_up import stream_of as top_up_stream
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from projections.funds import payments
from projections.funds.payments import PAYMENTS
from projections.parties import access
from projections.parties.access import ACCESS

resource = Resource("payments")

Method = Literal["card", "bank"]
State = Literal["started", "failed", "pending", "confirmed", "reversed", "refunded"]
PaymentId = Annotated[str, Field(pattern=r"^pay_[0-9A-Za-z]{1,64}$")]
PaymentInPath = Annotated[str, Path(pattern=r"^pay_[0-9A-Za-z]{1,64}$")]
RefundInPath = Annotated[str, Path(pattern=r"^refund_[0-9A-Za-z]{1,64}$")]
ProcessorInPath = Annotated[str, Path(pattern=r"^[a-z]{1,32}$")]

READ = with_scope("account", "billing:read", "operator", "audit:read")
PAY = with_scope("account:admin", "operator")
OPERATOR = with_scope("operator")
AMOUNTS = (FundsReason.AMOUNT_NOT_POSITIVE, PricesReason.AMOUNT_OUT_OF_RANGE)
STATES = (FundsReason.PAYMENT_UNKNOWN, FundsReason.PAYMENT_STATE)
CREDITS_25 = {"asset": "CREDIT", "units": "25000000"}


class PaymentRequest(RequestModel):
    """`save_method`: keep the card with the processor, for auto top-up."""

    method: Method
    amount: Money
    save_method: bool = False

    model_config = with_examples({"method": "bank", "amount": CREDITS_25})


class PaymentReturnAnswer(AnswerModel):
    """Money of a payment that went back, or is going: a reversal or a refund."""

    id: Short
    kind: Literal["reversal", "refund"]
    state: Literal["reversed", "reinstated", "refunding", "refunded", "refund_failed"]
    amount: Money
    reason: str | None = None
    at: Told_at


class PaymentAnswer(AnswerModel):
    """`pay_at` or `instructions` say how to pay, in the answer that starts it. `received` is what
    arrived, `left` what of it was not taken back. `has_saved_method`: auto top-up can use it.
    """

    payment_id: PaymentId
    account_id: AccountId
    method: Method
    processor: Short
    state: State
    amount: Money
    received: Money | None = None
    left: Money | None = None
    pay_at: str | None = None
    instructions: str | None = None
    cause: Literal["order", "top_up"]
    has_saved_method: bool | None = None
    failed_reason: str | None = None
    started_at: Told_at
    expires_at: Told_at
    received_at: Told_at | None = None
    confirms_at: Told_at | None = None
    confirmed_at: Told_at | None = None
    takings: list[PaymentReturnAnswer] | None = None
    position: Position | None = None


@resource.post(
    "/v1/accounts/{account_id}/payments",
    PAY,
    PaymentAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        *AMOUNTS,
        FundsReason.AMOUNT_NOT_CENTS,
        FundsReason.PAYMENT_BELOW_MINIMUM,
        FundsReason.PAYMENT_STATE,
        "payment_method_unavailable",
        "processor_away",
        "processor_refused",
    ],
)
def create_payment(account_id: AccountInPath, body: PaymentRequest, call: Caller) -> Response:
    """Starts a payment. The answer says where or how to pay.

    The payment is recorded before the processor is asked, so that no money can arrive for an
    unknown payment. A second call with the same key answers with the same page.
    """
    payment_id = call.id("pay")
    processor = processor_for(body.method, call.service.processors)
    if processor is None:
        other = "bank" if body.method == "card" else "card"
        how = (
            f"This installation takes no payments by {body.method}."
            f" Try `tallystick payment create --method {other}`, or ask the operator."
        )
        raise errors.problem("payment_method_unavailable", how)

    @cache
    def offered() -> ChargeStarted:
        start = StartPayment(
            payment_id=payment_id,
            account_id=account_id,
            method=body.method,
            processor=processor.name,
            amount=body.amount.amount(),
            by=call.principal.member_id,
            at_us=call.now_us,
        )
        call.service.ledger.handle(start, key=None, now_us=call.now_us)
        started = _payment(call, payment_id).started
        assert started is not None
        charge = NewCharge(
            payment_id=payment_id,
            account_id=account_id,
            amount=started.amount,
            save_method=body.save_method,
            expires_at_us=started.expires_at_us,
        )
        return _asked(processor, charge)

    def commands() -> OfferPayment:
        _payer(call, account_id)
        require_few_payments(call, payment_id)
        return OfferPayment(payment_id=payment_id, reference=offered().reference, at_us=call.now_us)

    def told(after: After) -> AnswerModel:
        made = offered()
        return _state_told(
            payment_id, after.state(stream_of(payment_id)), made.url, made.instructions
        )

    return call.record(commands, told)


def _asked(processor: Processor, charge: NewCharge) -> ChargeStarted:
    try:
        return processor.start_charge(charge)
    except ProcessorAway as away:
        raise errors.problem("processor_away", str(away), Retry_After="5") from None
    except ProcessorRefused as refused:
        raise errors.problem("processor_refused", refused.code) from None


def _payer(call: Call, account_id: str) -> None:
    if not call.principal.is_operator:
        own(call.principal, account_id)


def _payment(call: Call, payment_id: str) -> Payment:
    return call.service.ledger.market.state_of(stream_of(payment_id))


def _state_told(
    payment_id: str, state: Payment, url: str | None = None, instructions: str | None = None
) -> PaymentAnswer:
    """What the answer of a change says, from the stream."""
    started, received = state.started, state.received
    assert started is not None
    shown: Any = state.status
    method: Any = started.method
    cause: Any = started.cause
    return PaymentAnswer(
        payment_id=payment_id,
        account_id=started.account_id,
        method=method,
        processor=started.processor,
        state=shown,
        amount=money(started.amount),
        received=None if received is None else money(received.amount),
        left=None if received is None else credits_(state.left),
        pay_at=url,
        instructions=instructions,
        cause=cause,
        started_at=moment(started.at_us),
        expires_at=moment(started.expires_at_us),
        received_at=None if received is None else moment(received.at_us),
        confirms_at=None if received is None else moment_or_none(received.confirm_at_us),
    )


@resource.get(
    "/v1/accounts/{account_id}/payments",
    READ,
    page_of(PaymentAnswer),
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def list_payments(
    account_id: AccountInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists payments of an account, in order of starting."""
    visible(call.principal, account_id)
    place = call.place(cursor, [0], order)
    with call.read(ACCESS, PAYMENTS) as view:
        if access.read_account(view.connection, account_id) is None:
            raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)
        rows = payments.read_payments(
            view.connection,
            account_id=account_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _row_told)


@resource.get(
    "/v1/payments/{payment_id}", READ, PaymentAnswer, problems=[FundsReason.PAYMENT_UNKNOWN]
)
def read_payment(payment_id: PaymentInPath, call: Caller) -> Response:
    """Returns a payment and how much of it went back."""
    with call.read(PAYMENTS) as view:
        row = payments.read_payment(view.connection, payment_id)
        if row is None or not call.principal.may_see(row.account_id):
            raise Refused(FundsReason.PAYMENT_UNKNOWN, payment_id=payment_id)
        takings = [
            _taking_told(each) for each in payments.read_takings(view.connection, payment_id)
        ]
        return call.answer(view, _row_told(row).model_copy(update={"takings": takings}))


def _row_told(row: payments.PaymentRow) -> PaymentAnswer:
    known: Any = row
    is_there = row.received_units is not None
    return PaymentAnswer(
        payment_id=row.payment_id,
        account_id=row.account_id,
        method=known.method,
        processor=row.processor,
        state=known.state,
        amount=credits_(row.units),
        received=credits_or_none(row.received_units),
        left=credits_(row.units_left) if is_there else None,
        cause=known.cause,
        has_saved_method=row.method_saved,
        failed_reason=row.failed_reason,
        started_at=moment(row.started_at_us),
        expires_at=moment(row.expires_at_us),
        received_at=moment_or_none(row.received_at_us),
        confirms_at=moment_or_none(row.confirm_at_us),
        confirmed_at=moment_or_none(row.confirmed_at_us),
        position=row.position,
    )


def _taking_told(row: payments.TakingRow) -> PaymentReturnAnswer:
    known: Any = row
    return PaymentReturnAnswer(
        id=row.taking_id,
        kind=known.kind,
        state=known.state,
        amount=credits_(row.units),
        reason=row.reason,
        at=moment(row.at_us),
    )


# --- bank transfers, by hand -------------------------------------------------------------------


class BankConfirmationRequest(RequestModel):
    """`reference`: of the line on the bank's statement. `amount` absent: what was asked for."""

    reference: Reference
    amount: Money | None = None

    model_config = with_examples({"reference": "statement 2026-11/17"})


class BankReversalRequest(RequestModel):
    amount: Money
    reference: Reference
    reason: Reference

    model_config = with_examples(
        {"amount": CREDITS_25, "reference": "statement 2026-11/44", "reason": "recalled"}
    )


def _by_hand(call: Call, payment_id: str) -> Payment:
    """A bank transfer: what cards do, their processor tells. Raises Refused."""
    state = _payment(call, payment_id)
    if state.started is None:
        raise Refused(FundsReason.PAYMENT_UNKNOWN, payment_id=payment_id)
    if state.started.method != "bank":
        raise Refused(PartiesReason.NOT_PERMITTED, method=state.started.method)
    return state


def _record(call: Call, payment_id: str, commands: Any) -> Response:
    return call.record(
        commands, lambda after: _state_told(payment_id, after.state(stream_of(payment_id)))
    )


@resource.post(
    "/v1/payments/{payment_id}/confirm",
    OPERATOR,
    PaymentAnswer,
    problems=[PartiesReason.NOT_PERMITTED, *STATES, *AMOUNTS, FundsReason.AMOUNT_NOT_CENTS],
    checked=True,
)
def confirm_payment(
    payment_id: PaymentInPath, body: BankConfirmationRequest, call: Caller
) -> Response:
    """Confirms that a bank transfer arrived. Its credits are cash at once."""

    def commands() -> ReceivePayment:
        started = _by_hand(call, payment_id).started
        assert started is not None
        amount = started.amount if body.amount is None else body.amount.amount()
        return ReceivePayment(
            payment_id=payment_id,
            amount=amount,
            reference=body.reference,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return _record(call, payment_id, lambda: checked(call, commands()))


@resource.post(
    "/v1/payments/{payment_id}/reversals",
    OPERATOR,
    PaymentAnswer,
    status=201,
    problems=[PartiesReason.NOT_PERMITTED, *STATES, *AMOUNTS, FundsReason.CREDIT_TOO_LOW],
)
def create_reversal(payment_id: PaymentInPath, body: BankReversalRequest, call: Caller) -> Response:
    """Records that the payer's bank reversed a transfer.
    Leases return what they hold of it; the part that was used is owed.
    """

    def commands() -> list[Any]:
        _by_hand(call, payment_id)
        reversed_ = ReversePayment(
            payment_id=payment_id,
            amount=body.amount.amount(),
            reference=body.reference,
            reason=body.reason,
            at_us=call.now_us,
        )
        return reversing(call.service, reversed_)

    return _record(call, payment_id, commands)


# --- refunds -----------------------------------------------------------------------------------


class PaymentRefundRequest(RequestModel):
    amount: Money

    model_config = with_examples({"amount": {"asset": "CREDIT", "units": "5000000"}})


class RefundConfirmationRequest(RequestModel):
    reference: Reference

    model_config = with_examples({"reference": "statement 2026-11/51"})


class PaymentRefundAnswer(AnswerModel):
    refund_id: Short
    payment: PaymentAnswer
    position: Position | None = None


@resource.post(
    "/v1/payments/{payment_id}/refunds",
    OPERATOR,
    PaymentRefundAnswer,
    status=201,
    problems=[*STATES, *AMOUNTS, FundsReason.AMOUNT_NOT_CENTS, FundsReason.CREDIT_TOO_LOW],
)
def create_refund(payment_id: PaymentInPath, body: PaymentRefundRequest, call: Caller) -> Response:
    """Refunds unspent money the way it came. It leaves the balance at once."""
    refund_id = call.id("refund")

    def commands() -> AskRefund:
        return AskRefund(
            payment_id=payment_id,
            refund_id=refund_id,
            amount=body.amount.amount(),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        state = after.state(stream_of(payment_id))
        return PaymentRefundAnswer(refund_id=refund_id, payment=_state_told(payment_id, state))

    return call.record(commands, told)


@resource.post(
    "/v1/payments/{payment_id}/refunds/{refund_id}/confirm",
    OPERATOR,
    PaymentAnswer,
    problems=[PartiesReason.NOT_PERMITTED, *STATES, FundsReason.CREDIT_TOO_LOW],
)
def confirm_refund(
    payment_id: PaymentInPath,
    refund_id: RefundInPath,
    body: RefundConfirmationRequest,
    call: Caller,
) -> Response:
    """Confirms that the bank transfer of a refund was made."""

    def commands() -> ConfirmRefund:
        _by_hand(call, payment_id)
        return ConfirmRefund(
            payment_id=payment_id, refund_id=refund_id, reference=body.reference, at_us=call.now_us
        )

    return _record(call, payment_id, commands)


# --- events ------------------------------------------------------------------------------------


class PaymentEventRequest(BaseModel):
    """Whatever the processor sends: its bytes are checked against its signature, then read."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"examples": [{"type": "payment_intent.succeeded"}]}
    )


class PaymentEventAnswer(AnswerModel):
    """`recorded`: whether it told anything that was not known."""

    recorded: bool
    position: Position | None = None


@resource.post(
    "/v1/payments/events/{processor}",
    everybody(),
    PaymentEventAnswer,
    records=False,
    problems=[
        "not_found",
        "event_forged",
        *STATES,
        *AMOUNTS,
        FundsReason.AMOUNT_NOT_CENTS,
        FundsReason.CREDIT_TOO_LOW,
    ],
)
def ingest_payment_event(
    processor: ProcessorInPath, body: PaymentEventRequest, call: Caller
) -> Response:
    """Records an event that a payment processor signed. A second delivery changes nothing.

    Kinds of events without meaning here are answered 200. An event that cannot be recorded yet is
    refused, and the processor must send it again later.
    """
    del body  # read by the processor's own rules, from the bytes that were signed
    found = call.service.processors.get(processor)
    if found is None:
        raise errors.problem("not_found")
    header = found.signature_header
    signature = None if header is None else call.request.headers.get(header)
    try:
        event = found.read_event(call.body, signature, call.now_us)
    except EventForged as forged:
        raise errors.problem("event_forged", str(forged)) from None

    def commands() -> list[Any]:
        return [] if event is None else commands_of(call.service, processor, event, call.now_us)

    return call.record(commands, lambda after: PaymentEventAnswer(recorded=bool(after.changes)))


# --- warnings and auto top-up ------------------------------------------------------------------


class BalanceWarningsRequest(RequestModel):
    """Highest first; none: no warnings."""

    thresholds: Annotated[list[Money], Field(max_length=THRESHOLDS_MAX)]

    model_config = with_examples({"thresholds": [CREDITS_25]})


class AutoTopUpRequest(RequestModel):
    """Pay `amount` when less than `threshold` is spendable, with what `payment_id` saved, and never
    more than `monthly_max` in a UTC month.
    """

    threshold: Money
    amount: Money
    monthly_max: Money
    payment_id: PaymentId

    model_config = with_examples(
        {
            "threshold": {"asset": "CREDIT", "units": "10000000"},
            "amount": CREDITS_25,
            "monthly_max": {"asset": "CREDIT", "units": "100000000"},
            "payment_id": "pay_1",
        }
    )


class AutoTopUpAnswer(AnswerModel):
    threshold: Money
    amount: Money
    monthly_max: Money
    payment_id: PaymentId


class FundsSettingsAnswer(AnswerModel):
    """`below`: thresholds above the balance when it was last looked at. `auto_top_up` absent: off,
    and `stopped_reason` says why if it was on before.
    """

    account_id: AccountId
    warnings: list[Money]
    below: list[Money]
    auto_top_up: AutoTopUpAnswer | None = None
    stopped_reason: str | None = None
    open_payment_id: PaymentId | None = None
    failures: Annotated[int, Field(ge=0, le=INTEGER_MAX)]
    retry_at: Told_at | None = None
    position: Position | None = None


def _funds_told(account_id: str, state: TopUps) -> FundsSettingsAnswer:
    setting = state.setting
    return FundsSettingsAnswer(
        account_id=account_id,
        warnings=[credits_(units) for units in state.thresholds],
        below=[credits_(units) for units in state.below],
        auto_top_up=None
        if setting is None
        else AutoTopUpAnswer(
            threshold=money(setting.threshold),
            amount=money(setting.amount),
            monthly_max=money(setting.monthly_max),
            payment_id=setting.payment_id,
        ),
        stopped_reason=None if state.stopped is None else state.stopped.reason,
        open_payment_id=state.open_payment_id,
        failures=state.failures,
        retry_at=moment_or_none(state.retry_at_us),
    )


@resource.get(
    "/v1/accounts/{account_id}/funds",
    READ,
    FundsSettingsAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def read_funds(account_id: AccountInPath, call: Caller) -> Response:
    """Returns warnings and auto top-up of an account, and their state."""
    visible(call.principal, account_id)
    with call.read(ACCESS) as view:
        if access.read_account(view.connection, account_id) is None:
            raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)
        state = call.service.ledger.market.state_of(top_up_stream(account_id))
        return call.answer(view, _funds_told(account_id, state))


def _set_funds(call: Call, account_id: str, make: Any) -> Response:
    def commands() -> Any:
        own(call.principal, account_id)
        return make()

    return call.record(
        commands, lambda after: _funds_told(account_id, after.state(top_up_stream(account_id)))
    )


@resource.post(
    "/v1/accounts/{account_id}/funds/warnings",
    with_scope("account:admin"),
    FundsSettingsAnswer,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        FundsReason.TOP_UP_INVALID,
    ],
)
def set_balance_warnings(
    account_id: AccountInPath, body: BalanceWarningsRequest, call: Caller
) -> Response:
    """Sets the levels of the spendable balance below which the account is warned."""
    asked = SetBalanceWarnings(
        account_id=account_id,
        thresholds=tuple(each.amount() for each in body.thresholds),
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return _set_funds(call, account_id, lambda: asked)


@resource.post(
    "/v1/accounts/{account_id}/funds/auto-top-up",
    with_scope("account:admin"),
    FundsSettingsAnswer,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        FundsReason.TOP_UP_INVALID,
        *STATES,
    ],
)
def set_auto_top_up(account_id: AccountInPath, body: AutoTopUpRequest, call: Caller) -> Response:
    """Sets automatic payments, with the card that an earlier payment saved."""
    asked = SetAutoTopUp(
        account_id=account_id,
        threshold=body.threshold.amount(),
        amount=body.amount.amount(),
        monthly_max=body.monthly_max.amount(),
        payment_id=body.payment_id,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return _set_funds(call, account_id, lambda: asked)


@resource.delete(
    "/v1/accounts/{account_id}/funds/auto-top-up",
    with_scope("account:admin"),
    FundsSettingsAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def delete_auto_top_up(account_id: AccountInPath, call: Caller) -> Response:
    """Ends automatic payments. A second call changes nothing."""
    asked = StopAutoTopUp(account_id=account_id, by=call.principal.member_id, at_us=call.now_us)
    return _set_funds(call, account_id, lambda: asked)


# --- terms, debts and the reserve --------------------------------------------------------------


class PaymentTermsRequest(RequestModel):
    """The next version. A payment keeps the terms it was started under."""

    version: Annotated[int, Field(ge=1, le=INTEGER_MAX)]
    minimum: Money
    chargeback_window_days: Annotated[int, Field(ge=0, le=730)]
    effective_from: Moment

    model_config = with_examples(
        {
            "version": 1,
            "minimum": CREDITS_25,
            "chargeback_window_days": 120,
            "effective_from": "2030-01-01T00:00:00Z",
        }
    )


class PaymentTermsAnswer(AnswerModel):
    """Version 0: what holds until something is published."""

    version: Annotated[int, Field(ge=0, le=INTEGER_MAX)]
    minimum: Money
    chargeback_window_days: Annotated[int, Field(ge=0, le=730)]
    effective_from: Told_at
    position: Position | None = None


def _terms_told(terms: Any) -> PaymentTermsAnswer:
    return PaymentTermsAnswer(
        version=terms.version,
        minimum=money(terms.minimum),
        chargeback_window_days=terms.chargeback_window_us // DAY_US,
        effective_from=moment(terms.effective_from_us),
    )


@resource.get("/v1/payment-terms", everybody(), PaymentTermsAnswer)
def read_payment_terms(call: Caller) -> Response:
    """Returns the terms on which money is taken now."""
    state = call.service.ledger.market.state_of(TERMS)
    with call.read() as view:
        return call.answer(view, _terms_told(state.at(call.now_us)))


@resource.post(
    "/v1/payment-terms",
    with_scope("operator"),
    PaymentTermsAnswer,
    status=201,
    problems=[FundsReason.PAYMENT_TERMS_VERSION, FundsReason.PAYMENT_TERMS_INVALID],
)
def publish_payment_terms(body: PaymentTermsRequest, call: Caller) -> Response:
    """Publishes the next terms."""
    asked = PublishPaymentTerms(
        version=body.version,
        minimum=body.minimum.amount(),
        chargeback_window_us=body.chargeback_window_days * DAY_US,
        effective_from_us=body.effective_from,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return call.record(
        lambda: asked, lambda after: _terms_told(after.state(TERMS).published[body.version - 1])
    )


class DebtWriteOffRequest(RequestModel):
    amount: Money
    reason: Reference

    model_config = with_examples({"amount": CREDITS_25, "reason": "insolvent"})


class DebtWriteOffAnswer(AnswerModel):
    account_id: AccountId
    amount: Money
    position: Position | None = None


class ChargebackReserveRequest(RequestModel):
    amount: Money

    model_config = with_examples({"amount": CREDITS_25})


class ChargebackReserveAnswer(AnswerModel):
    """`funded`: set aside so far."""

    amount: Money
    funded: Money
    position: Position | None = None


@resource.post(
    "/v1/accounts/{account_id}/write-offs",
    OPERATOR,
    DebtWriteOffAnswer,
    status=201,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, *AMOUNTS, FundsReason.CREDIT_TOO_LOW],
    checked=True,
)
def create_write_off(
    account_id: AccountInPath, body: DebtWriteOffRequest, call: Caller
) -> Response:
    """Lets the charge-back reserve pay a debt that the account will not pay."""
    asked = WriteOffDebt(
        account_id=account_id,
        amount=body.amount.amount(),
        reason=body.reason,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return call.record(
        lambda: checked(call, asked),
        lambda _after: DebtWriteOffAnswer(account_id=account_id, amount=body.amount),
    )


@resource.post(
    "/v1/chargeback-reserve",
    OPERATOR,
    ChargebackReserveAnswer,
    status=201,
    problems=[*AMOUNTS, FundsReason.CREDIT_TOO_LOW],
)
def add_reserve(body: ChargebackReserveRequest, call: Caller) -> Response:
    """Sets platform revenue aside for charge-backs."""
    asked = FundReserve(amount=body.amount.amount(), by=call.principal.member_id, at_us=call.now_us)

    def told(after: After) -> AnswerModel:
        funded = after.state(RESERVE_STREAM).funded
        return ChargebackReserveAnswer(amount=body.amount, funded=credits_(funded))

    return call.record(lambda: asked, told)
