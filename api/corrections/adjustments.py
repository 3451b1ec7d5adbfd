"""Adjustments: what was corrected of a charge, line by line; and an operator's goodwill."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from api.corrections.corrections_timer import late_command
from api.door.amounts import Money, SignedMoney, Units, credits_, credits_or_none
from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    Digits,
    FactAnswer,
    LeaseId,
    LeaseQuery,
    Position,
    RequestModel,
    Told_at,
    VolumeId,
    VolumeQuery,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.door.second_person import checked
from domain.corrections.late_usage import BillLateUsage
from domain.corrections.reasons import CorrectionsReason
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.income.adjustment import AdjustmentBooked, GrantGoodwill
from domain.income.reasons import IncomeReason
from domain.lease.reasons import LeaseReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from ledger.beside.charged import charged_line
from projections.corrections import disputes
from projections.corrections.disputes import DISPUTES

resource = Resource("adjustments")

READ = with_scope("renter", "provider", "billing:read", "operator", "audit:read")
AdjustmentId = Annotated[str, Field(pattern=r"^adj_[0-9a-f]{32}$")]
AdjustmentInPath = Annotated[str, Path(pattern=r"^adj_[0-9a-f]{32}$")]
CorrectsQuery = Annotated[
    Annotated[int, Field(ge=1, le=2**53 - 1), Digits] | None,
    Query(description="Adjustments of the charge at this market position"),
]


class GoodwillAdjustmentRequest(RequestModel):
    """Part of a charge, given back at the network's own cost."""

    corrects_position: Annotated[int, Field(ge=1, le=2**53 - 1)]
    amount: Money

    model_config = with_examples(
        {"corrects_position": 42, "amount": {"asset": "CREDIT", "units": "500000"}}
    )


class LateUsageAdjustmentRequest(RequestModel):
    """A settled lease whose late reports are to be charged."""

    lease_id: LeaseId

    model_config = with_examples({"lease_id": "lease_" + "1" * 32})


class BookLineAnswer(AnswerModel):
    account: str
    movement: SignedMoney


class AdjustmentAnswer(FactAnswer):
    """`returned` of the charge is the payer's; `recovered` is what the accounts that were paid
    answer for. `owed`: of `returned`, what the network cannot pay yet; below zero, what it pays now
    of that. `charge_new`: the cost of usage that came late.
    """

    adjustment_id: AdjustmentId
    corrects_position: Position
    lease_id: LeaseId | None = None
    volume_id: VolumeId | None = None
    account_id: AccountId
    provider_account_id: AccountId
    reason: Literal["late_usage", "dispute", "sla", "goodwill", "owed"]
    cause: str
    returned: Money
    recovered: Money
    owed: SignedMoney
    gpu_us_new: Units | None = None
    charge_new: Money | None = None
    lines: list[BookLineAnswer]
    booked_at: Told_at
    position: Position | None = None


@resource.post(
    "/v1/adjustments",
    with_scope("operator"),
    AdjustmentAnswer,
    status=201,
    problems=[
        CorrectionsReason.LINE_UNKNOWN,
        IncomeReason.LINE_DISPUTED,
        IncomeReason.ADJUSTMENT_TOO_LARGE,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        FundsReason.CREDIT_TOO_LOW,
    ],
    checked=True,
)
def create_adjustment(body: GoodwillAdjustmentRequest, call: Caller) -> Response:
    """Returns part of a charge to a renter, paid by the network's revenue (operator)."""
    adjustment_id = call.id("adj")

    def commands() -> GrantGoodwill:
        if body.amount.asset != "CREDIT":
            raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, asset=body.amount.asset)
        ledger = call.service.ledger
        return GrantGoodwill(
            adjustment_id=adjustment_id,
            line=charged_line(ledger.market, ledger.books, body.corrects_position),
            units=body.amount.amount().units,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(lambda: checked(call, commands()), booked)


@resource.post(
    "/v1/adjustments/late-usage",
    with_scope("operator"),
    AdjustmentAnswer,
    status=201,
    problems=[
        LeaseReason.LEASE_UNKNOWN,
        FleetReason.LEASE_STATE,
        CorrectionsReason.NO_LATE_USAGE,
        IncomeReason.ADJUSTMENT_TOO_LARGE,
        FundsReason.CREDIT_TOO_LOW,
    ],
)
def create_late_usage_adjustment(body: LateUsageAdjustmentRequest, call: Caller) -> Response:
    """Charges signed usage that was reported after the lease was settled (operator)."""
    adjustment_id = call.id("adj")

    def commands() -> BillLateUsage:
        with call.service.connect() as connection:
            return late_command(
                call.service.ledger,
                connection,
                body.lease_id,
                adjustment_id,
                call.principal.member_id,
                call.now_us,
            )

    return call.record(commands, booked)


@resource.get("/v1/adjustments", READ, page_of(AdjustmentAnswer), problems=["cursor_invalid"])
def list_adjustments(
    call: Caller,
    order: InOrder,
    lease_id: LeaseQuery = None,
    volume_id: VolumeQuery = None,
    corrects_position: CorrectsQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists corrections of charges that you paid or were paid, in booking order."""
    place = call.place(cursor, [0], order)
    with call.read(DISPUTES) as view:
        rows = disputes.read_adjustments(
            view.connection,
            account_id=call.principal.only,
            lease_id=lease_id,
            volume_id=volume_id,
            corrects_position=corrects_position,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(
            view, place, rows, limit, lambda row: [row.position], lambda row: _told(row, call)
        )


@resource.get(
    "/v1/adjustments/{adjustment_id}",
    READ,
    AdjustmentAnswer,
    problems=[CorrectionsReason.ADJUSTMENT_UNKNOWN],
)
def read_adjustment(adjustment_id: AdjustmentInPath, call: Caller) -> Response:
    """Returns one correction and every account it moved."""
    with call.read(DISPUTES) as view:
        found = disputes.read_adjustment(
            view.connection, adjustment_id, account_id=call.principal.only
        )
        if found is None:
            raise Refused(CorrectionsReason.ADJUSTMENT_UNKNOWN, adjustment_id=adjustment_id)
        return call.answer(view, _told(found, call))


def booked(after: After) -> AdjustmentAnswer:
    """The adjustment that a call has just booked."""
    facts = [one.fact for one in after.changes if isinstance(one.fact, AdjustmentBooked)]
    assert len(facts) == 1, facts
    fact = facts[0]
    reason: Any = fact.reason
    return AdjustmentAnswer(
        adjustment_id=fact.adjustment_id,
        corrects_position=fact.corrects_position,
        lease_id=fact.lease_id,
        volume_id=fact.volume_id,
        account_id=fact.account_id,
        provider_account_id=fact.provider_account_id,
        reason=reason,
        cause=fact.cause,
        returned=credits_(fact.returned),
        recovered=credits_(fact.recovered),
        owed=SignedMoney(asset="CREDIT", units=str(fact.owed)),
        gpu_us_new=None if fact.late is None else str(fact.late.gpu_us_new),
        charge_new=None if fact.late is None else credits_(fact.late.charge_new.units),
        lines=[_line(line.account, line.units) for line in fact.lines],
        booked_at=moment(fact.at_us),
    )


def _told(row: disputes.AdjustmentRow, call: Call) -> AdjustmentAnswer:
    reason: Any = row.reason
    lines = [(str(line["account"]), int(line["units"])) for line in row.lines]
    return AdjustmentAnswer(
        adjustment_id=row.adjustment_id,
        corrects_position=row.corrects_position,
        lease_id=row.lease_id,
        volume_id=row.volume_id,
        account_id=row.account_id,
        provider_account_id=row.provider_account_id,
        reason=reason,
        cause=row.cause,
        returned=credits_(row.returned),
        recovered=credits_(row.recovered),
        owed=SignedMoney(asset="CREDIT", units=str(row.owed)),
        gpu_us_new=None if row.gpu_us_new is None else str(row.gpu_us_new),
        charge_new=credits_or_none(row.charge_new),
        lines=[_line(*line) for line in lines if _may_see(call, row, line[0])],
        booked_at=moment(row.at_us),
        position=row.position,
    )


def _may_see(call: Call, row: disputes.AdjustmentRow, account: str) -> bool:
    """Balances of the two parties and of the network; not those of others (a payer, an owner)."""
    if call.principal.sees_all or not account.startswith("party:"):
        return True
    return account.split(":")[1] in (row.account_id, row.provider_account_id)


def _line(account: str, units: int) -> BookLineAnswer:
    return BookLineAnswer(account=account, movement=SignedMoney(asset="CREDIT", units=str(units)))
