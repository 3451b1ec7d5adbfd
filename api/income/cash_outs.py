"""Money out: what an account has earned and when it matures, how it is paid, and its cash-outs.

An owner asks for cash-outs and says where to; the operator holds, releases, and confirms what is
made by bank transfer. Everything that leaves is decided in `domain/income/cash_out.py`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door import errors
from api.door.amounts import Money, credits_, credits_or_none, money
from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AccountInPath,
    AccountQuery,
    AnswerModel,
    Count,
    EmptyRequest,
    Moment,
    OpenQuery,
    Position,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit, Order
from api.door.second_person import checked
from api.parties.accounts import own, visible
from api.processors.configured import DESTINATIONS
from domain.duration import SECOND_US
from domain.funds.reasons import FundsReason
from domain.income.cash_out import (
    OPERATOR,
    POLICY,
    CancelCashOut,
    CashOutPolicy,
    ConfirmCashOutPaid,
    FailCashOut,
    HoldCashOuts,
    ReleaseCashOuts,
    RequestCashOut,
    SetCashOutMinimum,
    holds_stream,
    stream_of,
)
from domain.income.cash_out_matching import SettleDifference
from domain.income.maturity import (
    NETWORK,
    ForgoDust,
    SetMaturityWindow,
    SetPaymentMode,
    Windows,
    due_at_us,
    window_at,
)
from domain.income.maturity import stream_of as earnings_stream
from domain.income.reasons import IncomeReason
from domain.money import MoneyReason
from domain.parties.account import account_stream
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from projections.income import money_out
from projections.income.money_out import MONEY_OUT

resource = Resource("cash-outs")

READ = with_scope("earnings:read", "client", "operator")
OWN = with_scope("account:admin")
OPERATE = with_scope("operator")
APPROVE = with_scope("payout:approve")
"""Whoever lets money out needs this scope of its own."""
UPCOMING_MAX = 50

CashOutId = Annotated[str, Field(pattern=r"^cashout_[0-9A-Za-z]{1,64}$")]
CashOutInPath = Annotated[str, Path(pattern=r"^cashout_[0-9A-Za-z]{1,64}$")]
DifferenceInPath = Annotated[str, Path(pattern=r"^difference_[0-9A-Za-z]{1,64}$")]
Destination = Annotated[
    str,
    Field(
        pattern=r"^[!-~]{1,100}$", description="The payee's own account at the payment processor"
    ),
]
Why = Annotated[str, Field(min_length=1, max_length=200)]
HoldId = Annotated[str, Field(pattern=r"^[!-~]{1,100}$")]
Seconds = Annotated[int, Field(ge=0, le=90 * 86_400)]


# --- earnings on their way -------------------------------------------------------------------


class UpcomingMaturityAnswer(AnswerModel):
    """Credited to holdback by the fact at this position. `amount` is before what was reduced."""

    amount: Money
    at_position: Count
    posted_at: Told_at
    matures_at: Told_at


class CashOutHoldAnswer(AnswerModel):
    hold_id: HoldId
    reason: str
    by: str
    held_at: Told_at


class ClientUnitsAnswer(AnswerModel):
    """What of an amount is for work that one compute client brought; without a `client_id`: what
    no client is known of.
    """

    client_id: str | None = None
    amount: Money


class BroughtByClientAnswer(AnswerModel):
    """Lifetime totals by compute client. `received`: from accounts that are paid to this one, and
    from regions that share. `paid`: in cash, whatever came back of it.
    """

    client_id: str | None = None
    matured: Money
    received: Money
    swept: Money
    paid: Money


class EarningsMaturityAnswer(AnswerModel):
    """held_back -> payable -> earned. `matured`, `reduced`, `swept` are lifetime totals.

    `upcoming`: what matures next, in order, at most 50. `holds`: why no cash-out leaves now.
    `clients`: which compute clients brought it, at most 200, the one that brought most first.
    """

    account_id: AccountId
    held_back: Money
    payable: Money
    earned: Money
    matured: Money
    reduced: Money
    swept: Money
    upcoming: list[UpcomingMaturityAnswer]
    holds: list[CashOutHoldAnswer]
    clients: list[BroughtByClientAnswer]
    position: Position | None = None


class PaymentModeAnswer(AnswerModel):
    """Swept every UTC day: as credits to the billing account, or as cash to the destination.
    `destination_is`: what a destination is here.
    """

    account_id: AccountId
    mode: Literal["credits", "cash"]
    billing_account_id: AccountId
    destination: Destination | None = None
    destination_from: Told_at | None = None
    destination_is: str
    position: Position | None = None


class PaymentModeRequest(RequestModel):
    """`billing_account_id` absent: the account itself. `destination` absent: as it is."""

    mode: Literal["credits", "cash"]
    billing_account_id: AccountId | None = None
    destination: Destination | None = None

    model_config = with_examples(
        {"mode": "credits"}, {"mode": "cash", "destination": "acct_1NXabc"}
    )


@resource.get(
    "/v1/accounts/{account_id}/maturity",
    READ,
    EarningsMaturityAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def read_maturity(account_id: AccountInPath, call: Caller) -> Response:
    """Returns the earnings of an account: held back, payable, earned, and when they mature."""
    visible(call.principal, account_id)
    _existing(call, account_id)
    with call.read(MONEY_OUT) as view:
        payee = money_out.read_payee(view.connection, account_id)
        held = money_out.read_held(view.connection, account_id, limit=UPCOMING_MAX)
        holds = money_out.read_holds(view.connection, account_id)
        clients = money_out.read_brought(view.connection, account_id)
        windows = call.service.ledger.market.state_of(NETWORK).versions
        told = EarningsMaturityAnswer(
            account_id=account_id,
            held_back=credits_(call.service.ledger.books.balance(f"party:{account_id}:holdback")),
            payable=credits_(payee.payable),
            earned=credits_(payee.earned),
            matured=credits_(payee.matured),
            reduced=credits_(payee.reduced),
            swept=credits_(payee.swept),
            upcoming=[
                UpcomingMaturityAnswer(
                    amount=credits_(each.units),
                    at_position=each.position,
                    posted_at=moment(each.recorded_us),
                    matures_at=moment(due_at_us(windows, each.recorded_us)),
                )
                for each in held
            ],
            holds=[
                CashOutHoldAnswer(
                    hold_id=each.hold_id,
                    reason=each.reason,
                    by=each.held_by,
                    held_at=moment(each.held_us),
                )
                for each in holds
            ],
            clients=[
                BroughtByClientAnswer(
                    client_id=each.client_id or None,
                    matured=credits_(each.matured),
                    received=credits_(each.received),
                    swept=credits_(each.swept),
                    paid=credits_(each.paid),
                )
                for each in clients
            ],
        )
        return call.answer(view, told)


@resource.get(
    "/v1/accounts/{account_id}/payment-mode",
    READ,
    PaymentModeAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def read_payment_mode(account_id: AccountInPath, call: Caller) -> Response:
    """Returns how an account is paid."""
    visible(call.principal, account_id)
    _existing(call, account_id)
    with call.read(MONEY_OUT) as view:
        return call.answer(view, _mode(call, account_id, After.now(call.service)))


@resource.post(
    "/v1/accounts/{account_id}/payment-mode",
    OWN,
    PaymentModeAnswer,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        IncomeReason.PAYMENT_MODE,
    ],
)
def set_payment_mode(account_id: AccountInPath, body: PaymentModeRequest, call: Caller) -> Response:
    """Sets how an account is paid. A changed destination is paid after 72 hours."""

    def commands() -> SetPaymentMode:
        own(call.principal, account_id)
        _check_destination(call, body.destination)
        return SetPaymentMode(
            account_id=account_id,
            mode=body.mode,
            billing_account_id=body.billing_account_id or account_id,
            destination=body.destination,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _mode(call, account_id, after))


def _check_destination(call: Call, destination: str | None) -> None:
    """Raises Problem: 422 invalid, where the processor knows no account by such a name."""
    form, what = DESTINATIONS[call.service.payout_processor.name]
    if destination is not None and re.fullmatch(form, destination) is None:
        rule = f"a destination is {what}"
        raise errors.problem("invalid", f"#/destination: {rule}")


def _mode(call: Call, account_id: str, after: After) -> PaymentModeAnswer:
    state = after.state(earnings_stream(account_id))
    mode: Any = state.mode
    return PaymentModeAnswer(
        account_id=account_id,
        mode=mode,
        billing_account_id=state.billing_account_id or account_id,
        destination=state.destination,
        destination_from=moment_or_none(state.destination_from_us or None),
        destination_is=DESTINATIONS[call.service.payout_processor.name][1],
    )


class EarningsForgoneAnswer(AnswerModel):
    account_id: AccountId
    position: Position | None = None


@resource.post(
    "/v1/accounts/{account_id}/forgo-dust",
    OWN,
    EarningsForgoneAnswer,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PricesReason.AMOUNT_OUT_OF_RANGE,
    ],
)
def remove_dust(account_id: AccountInPath, body: EmptyRequest, call: Caller) -> Response:
    """Gives up earned credits of less than a cent, so that the account can be closed."""
    del body

    def commands() -> ForgoDust:
        own(call.principal, account_id)
        return ForgoDust(account_id=account_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(commands, lambda _after: EarningsForgoneAnswer(account_id=account_id))


# --- cash-outs -------------------------------------------------------------------------------


class CashOutRequest(RequestModel):
    """`amount` in whole cents (10,000 micro-credits); absent: everything earned."""

    amount: Money | None = None

    model_config = with_examples({}, {"amount": {"asset": "CREDIT", "units": "25000000"}})


class CashOutAnswer(AnswerModel):
    """requested -> started -> sent -> paid; or failed, or cancelled. `asked_at`: of the processor.

    `returned` is what came back after it was paid. `clients`: whose work it pays for; their amounts
    are the whole amount.
    """

    cash_out_id: CashOutId
    account_id: AccountId
    amount: Money
    clients: list[ClientUnitsAnswer]
    destination: str
    by: str
    state: Literal["requested", "started", "sent", "paid", "failed", "cancelled"]
    requested_at: Told_at
    processor: str | None = None
    asked_at: Told_at | None = None
    reference: str | None = None
    instructions: str | None = None
    reason: str | None = None
    ended_at: Told_at | None = None
    returned: Money | None = None
    position: Position | None = None


class CashOutStateAnswer(AnswerModel):
    cash_out_id: CashOutId
    state: Literal["requested", "started", "sent", "paid", "failed", "cancelled"]
    amount: Money
    position: Position | None = None


class CashOutFailureRequest(RequestModel):
    reason: Why

    model_config = with_examples({"reason": "the bank sent it back"})


class CashOutHoldRequest(RequestModel):
    reason: Why

    model_config = with_examples({"reason": "identity is being checked"})


class CashOutHoldReleaseRequest(RequestModel):
    """`hold_id` absent: the operator's own."""

    hold_id: HoldId = OPERATOR

    model_config = with_examples({})


class CashOutHoldsAnswer(AnswerModel):
    """The holds that are left."""

    account_id: AccountId
    hold_ids: list[HoldId]
    position: Position | None = None


@resource.get(
    "/v1/accounts/{account_id}/cash-outs",
    READ,
    page_of(CashOutAnswer),
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def list_account_cash_outs(
    account_id: AccountInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the cash-outs of an account."""
    visible(call.principal, account_id)
    _existing(call, account_id)
    return _page(call, account_id, order, limit, cursor)


@resource.get("/v1/cash-outs", OPERATE, page_of(CashOutAnswer), problems=["cursor_invalid"])
def list_cash_outs(
    call: Caller,
    order: InOrder,
    account_id: AccountQuery = None,
    is_open: OpenQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the cash-outs of all accounts.
    `open`: those that are not finished, or only those that are.
    """
    return _page(call, call.principal.among(account_id), order, limit, cursor, is_open)


def _page(
    call: Call,
    account_id: str | None,
    order: Order,
    limit: int,
    cursor: str | None,
    is_open: bool | None = None,
) -> Response:
    place = call.place(cursor, [0], order)
    with call.read(MONEY_OUT) as view:
        rows = money_out.read_cash_outs(
            view.connection,
            account_id=account_id,
            is_open=is_open,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _cash_out)


@resource.post(
    "/v1/accounts/{account_id}/cash-outs",
    OWN,
    CashOutStateAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        MoneyReason.DUPLICATE_ID,
        IncomeReason.PAYMENT_MODE,
        IncomeReason.CASH_OUT_HELD,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        FundsReason.AMOUNT_NOT_CENTS,
        FundsReason.CREDIT_TOO_LOW,
        IncomeReason.CASH_OUT_TOO_SMALL,
    ],
)
def submit_cash_out(account_id: AccountInPath, body: CashOutRequest, call: Caller) -> Response:
    """Requests a cash-out of earned credits, to the destination of the payment mode."""
    cash_out_id = call.id("cashout")

    def commands() -> RequestCashOut:
        own(call.principal, account_id)
        return RequestCashOut(
            cash_out_id=cash_out_id,
            account_id=account_id,
            amount=None if body.amount is None else body.amount.amount(),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _state(cash_out_id, after))


@resource.get(
    "/v1/accounts/{account_id}/cash-outs/{cash_out_id}",
    READ,
    CashOutAnswer,
    problems=[IncomeReason.CASH_OUT_UNKNOWN],
)
def read_cash_out(account_id: AccountInPath, cash_out_id: CashOutInPath, call: Caller) -> Response:
    """Returns one cash-out."""
    with call.read(MONEY_OUT) as view:
        found = money_out.read_cash_out(view.connection, cash_out_id)
        if (
            found is None
            or found.account_id != account_id
            or not call.principal.may_see(account_id)
        ):
            raise Refused(IncomeReason.CASH_OUT_UNKNOWN, cash_out_id=cash_out_id)
        return call.answer(view, _cash_out(found))


_CHANGES = [IncomeReason.CASH_OUT_UNKNOWN, IncomeReason.CASH_OUT_STATE]


@resource.post(
    "/v1/accounts/{account_id}/cash-outs/{cash_out_id}/cancel",
    OWN,
    CashOutStateAnswer,
    problems=_CHANGES,
)
def cancel_cash_out(
    account_id: AccountInPath, cash_out_id: CashOutInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Cancels a cash-out that the processor was not yet asked to pay."""
    del body

    def commands() -> CancelCashOut:
        if not call.principal.owns(account_id):
            raise Refused(IncomeReason.CASH_OUT_UNKNOWN, cash_out_id=cash_out_id)
        _of_account(call, account_id, cash_out_id)
        return CancelCashOut(
            cash_out_id=cash_out_id, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(commands, lambda after: _state(cash_out_id, after))


@resource.post(
    "/v1/accounts/{account_id}/cash-outs/{cash_out_id}/paid",
    APPROVE,
    CashOutStateAnswer,
    problems=_CHANGES,
    checked=True,
)
def confirm_cash_out(
    account_id: AccountInPath, cash_out_id: CashOutInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Confirms that a bank transfer was made."""
    del body

    def commands() -> ConfirmCashOutPaid:
        _of_account(call, account_id, cash_out_id)
        return ConfirmCashOutPaid(
            cash_out_id=cash_out_id, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(lambda: checked(call, commands()), lambda after: _state(cash_out_id, after))


@resource.post(
    "/v1/accounts/{account_id}/cash-outs/{cash_out_id}/failed",
    OPERATE,
    CashOutStateAnswer,
    problems=_CHANGES,
)
def report_cash_out_failed(
    account_id: AccountInPath, cash_out_id: CashOutInPath, body: CashOutFailureRequest, call: Caller
) -> Response:
    """Records that a transfer will not be made. The credits come back."""

    def commands() -> FailCashOut:
        _of_account(call, account_id, cash_out_id)
        return FailCashOut(
            cash_out_id=cash_out_id,
            reason=body.reason,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _state(cash_out_id, after))


@resource.post(
    "/v1/accounts/{account_id}/cash-outs/hold",
    OPERATE,
    CashOutHoldsAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, IncomeReason.CASH_OUT_HELD],
)
def add_cash_out_hold(
    account_id: AccountInPath, body: CashOutHoldRequest, call: Caller
) -> Response:
    """Holds all cash-outs of an account. None is requested or sent until the hold is released."""

    def commands() -> HoldCashOuts:
        return HoldCashOuts(
            account_id=account_id,
            hold_id=OPERATOR,
            reason=body.reason,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _holds(account_id, after))


@resource.post(
    "/v1/accounts/{account_id}/cash-outs/release",
    APPROVE,
    CashOutHoldsAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
    checked=True,
)
def remove_cash_out_hold(
    account_id: AccountInPath, body: CashOutHoldReleaseRequest, call: Caller
) -> Response:
    """Releases a hold. Other holds stay."""

    def commands() -> ReleaseCashOuts:
        return ReleaseCashOuts(
            account_id=account_id,
            hold_id=body.hold_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(lambda: checked(call, commands()), lambda after: _holds(account_id, after))


# --- differences -----------------------------------------------------------------------------


class PayoutDifferenceAnswer(AnswerModel):
    """A payout of the processor's list and our cash-outs do not agree; open until it is settled."""

    difference_id: str
    kind: Literal["unknown", "unexpected", "amount", "twice", "missing"]
    reference: str | None = None
    cash_out_id: str | None = None
    expected: Money | None = None
    found: Money | None = None
    found_at: Told_at
    note: str | None = None
    by: str | None = None
    settled_at: Told_at | None = None
    position: Position | None = None


class PayoutDifferenceClosedAnswer(AnswerModel):
    difference_id: str
    position: Position | None = None


class PayoutDifferenceNoteRequest(RequestModel):
    note: Annotated[str, Field(min_length=1, max_length=500)]

    model_config = with_examples({"note": "paid by hand for ticket 12, booked as a deposit"})


@resource.get(
    "/v1/cash-outs/differences",
    OPERATE,
    page_of(PayoutDifferenceAnswer),
    problems=["cursor_invalid"],
)
def list_payout_differences(
    call: Caller,
    order: InOrder,
    is_open: OpenQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists differences between the processor's payouts and our cash-outs."""
    place = call.place(cursor, [0], order)
    with call.read(MONEY_OUT) as view:
        rows = money_out.read_differences(
            view.connection, is_open=is_open, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _difference)


@resource.post(
    "/v1/cash-outs/differences/{difference_id}/settle",
    OPERATE,
    PayoutDifferenceClosedAnswer,
    problems=[IncomeReason.DIFFERENCE_UNKNOWN],
)
def close_payout_difference(
    difference_id: DifferenceInPath, body: PayoutDifferenceNoteRequest, call: Caller
) -> Response:
    """Explains a difference, which ends its alarm."""

    def commands() -> SettleDifference:
        return SettleDifference(
            difference_id=difference_id,
            note=body.note,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(
        commands, lambda _after: PayoutDifferenceClosedAnswer(difference_id=difference_id)
    )


# --- terms -----------------------------------------------------------------------------------


class MaturityWindowAnswer(AnswerModel):
    version: Count
    window_seconds: Count
    effective_from: Told_at
    set_at: Told_at
    by: str


class MoneyOutTermsAnswer(AnswerModel):
    """`window_seconds`: how long what is posted now waits until it matures."""

    window_seconds: Count
    windows: list[MaturityWindowAnswer]
    minimum: Money
    position: Position | None = None


class MaturityWindowRequest(RequestModel):
    """`version` is one more than the last. What was posted before keeps its window."""

    version: Annotated[int, Field(ge=1, le=1_000_000)]
    window_seconds: Seconds
    effective_from: Moment

    model_config = with_examples(
        {"version": 1, "window_seconds": 0, "effective_from": "2027-01-01T00:00:00Z"}
    )


class CashOutMinimumRequest(RequestModel):
    minimum: Money

    model_config = with_examples({"minimum": {"asset": "CREDIT", "units": "25000000"}})


@resource.get("/v1/cash-outs/terms", with_scope("earnings:read", "operator"), MoneyOutTermsAnswer)
def read_cash_out_terms(call: Caller) -> Response:
    """Returns the dispute windows, past and announced, and the smallest cash-out."""
    with call.read() as view:
        return call.answer(view, _terms(After.now(call.service), call.now_us))


@resource.post(
    "/v1/cash-outs/terms/window",
    with_scope("operator"),
    MoneyOutTermsAnswer,
    status=201,
    problems=[IncomeReason.MATURITY_WINDOW],
    checked=True,
)
def publish_maturity_window(body: MaturityWindowRequest, call: Caller) -> Response:
    """Sets how long earnings wait for disputes, for what is charged from then on."""

    def commands() -> SetMaturityWindow:
        return SetMaturityWindow(
            version=body.version,
            window_us=body.window_seconds * SECOND_US,
            effective_from_us=body.effective_from,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(lambda: checked(call, commands()), lambda after: _terms(after, call.now_us))


@resource.post(
    "/v1/cash-outs/terms/minimum",
    with_scope("operator"),
    MoneyOutTermsAnswer,
    status=201,
    problems=[PricesReason.AMOUNT_OUT_OF_RANGE, FundsReason.AMOUNT_NOT_CENTS],
)
def publish_cash_out_minimum(body: CashOutMinimumRequest, call: Caller) -> Response:
    """Sets the smallest cash-out, in whole cents."""

    def commands() -> SetCashOutMinimum:
        return SetCashOutMinimum(
            minimum=body.minimum.amount(), by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(commands, lambda after: _terms(after, call.now_us))


# --- what is told ----------------------------------------------------------------------------


def _existing(call: Call, account_id: str) -> None:
    """Raises Refused: ACCOUNT_UNKNOWN."""
    if not call.service.ledger.market.state_of(account_stream(account_id)).exists:
        raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)


def _of_account(call: Call, account_id: str, cash_out_id: str) -> None:
    """Raises Refused: CASH_OUT_UNKNOWN, for another account's as for none at all."""
    requested = call.service.ledger.market.state_of(stream_of(cash_out_id)).requested
    if requested is None or requested.account_id != account_id:
        raise Refused(IncomeReason.CASH_OUT_UNKNOWN, cash_out_id=cash_out_id)


def _state(cash_out_id: str, after: After) -> CashOutStateAnswer:
    state = after.state(stream_of(cash_out_id))
    status: Any = state.status
    assert state.requested is not None, cash_out_id
    return CashOutStateAnswer(
        cash_out_id=cash_out_id, state=status, amount=money(state.requested.amount)
    )


def _holds(account_id: str, after: After) -> CashOutHoldsAnswer:
    present = after.state(holds_stream(account_id)).present
    return CashOutHoldsAnswer(account_id=account_id, hold_ids=sorted(present))


def _terms(after: After, now_us: int) -> MoneyOutTermsAnswer:
    windows, policy = after.state(NETWORK), after.state(POLICY)
    assert isinstance(windows, Windows)
    assert isinstance(policy, CashOutPolicy)
    return MoneyOutTermsAnswer(
        window_seconds=window_at(windows.versions, now_us) // SECOND_US,
        windows=[
            MaturityWindowAnswer(
                version=each.version,
                window_seconds=each.window_us // SECOND_US,
                effective_from=moment(each.effective_from_us),
                set_at=moment(each.at_us),
                by=each.by,
            )
            for each in windows.versions
        ],
        minimum=money(policy.minimum),
    )


def _cash_out(row: money_out.CashOut) -> CashOutAnswer:
    state: Any = row.state
    return CashOutAnswer(
        cash_out_id=row.cash_out_id,
        account_id=row.account_id,
        amount=credits_(row.units),
        clients=[
            ClientUnitsAnswer(
                client_id=one["client_id"] or None, amount=credits_(int(one["units"]))
            )
            for one in row.clients
        ],
        destination=row.destination,
        by=row.requested_by,
        state=state,
        requested_at=moment(row.requested_us),
        processor=row.processor,
        asked_at=moment_or_none(row.asked_us),
        reference=row.reference,
        instructions=row.instructions,
        reason=row.reason,
        ended_at=moment_or_none(row.ended_us),
        returned=credits_(row.returned) if row.returned else None,
        position=row.position,
    )


def _difference(row: money_out.Difference) -> PayoutDifferenceAnswer:
    kind: Any = row.kind
    return PayoutDifferenceAnswer(
        difference_id=row.difference_id,
        kind=kind,
        reference=row.reference,
        cash_out_id=row.cash_out_id,
        expected=credits_or_none(row.expected),
        found=credits_or_none(row.found),
        found_at=moment(row.found_us),
        note=row.note,
        by=row.settled_by,
        settled_at=moment_or_none(row.settled_us),
        position=row.position,
    )
