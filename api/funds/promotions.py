"""Promotions: programs with a fund, and the credits they grant to accounts."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response
from pydantic import Field

from api.door.amounts import Money, credits_
from api.door.auth import with_scope
from api.door.call import After, Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    EmptyRequest,
    Moment,
    Position,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from domain.funds.promotion import (
    PRIORITY_MAX,
    PROGRAM,
    ClosePromotion,
    GrantPromotion,
    OpenPromotion,
    program_stream,
)
from domain.funds.reasons import FundsReason
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from projections.funds import funding
from projections.funds.funding import FUNDING

resource = Resource("promotions")

OPERATOR = with_scope("operator")
READ = with_scope("operator", "audit:read")
ProgramName = Annotated[str, Field(pattern=f"^{PROGRAM}$", examples=["spring-2026"])]
ProgramInPath = Annotated[str, Path(pattern=f"^{PROGRAM}$")]
Priority = Annotated[int, Field(ge=0, le=PRIORITY_MAX, description="Lower is spent first")]


class PromotionRequest(RequestModel):
    """`amount` is taken from the cash of the operator's own account: the fund is paid for."""

    program: ProgramName
    amount: Money

    model_config = with_examples(
        {"program": "spring-2026", "amount": {"asset": "CREDIT", "units": "1000000000"}}
    )


class PromotionAnswer(AnswerModel):
    """`left`: what the fund can still grant."""

    program: ProgramName
    sponsor_account_id: AccountId
    opened: Money
    granted: Money
    left: Money
    opened_at: Told_at
    closed_at: Told_at | None = None
    position: Position | None = None


class PromotionClosedAnswer(AnswerModel):
    program: ProgramName
    sponsor_account_id: AccountId
    position: Position | None = None


class PromotionGrantRequest(RequestModel):
    """More for an account of the same program has the same terms. `expires_at` absent: never."""

    account_id: AccountId
    amount: Money
    priority: Priority = 100
    expires_at: Moment | None = None

    model_config = with_examples(
        {
            "account_id": "acct_" + "1" * 32,
            "amount": {"asset": "CREDIT", "units": "25000000"},
            "priority": 10,
            "expires_at": "2027-01-01T00:00:00Z",
        }
    )


class PromotionGrantAnswer(AnswerModel):
    """`breakage`: what of it had expired unspent by now."""

    program: ProgramName
    account_id: AccountId
    granted: Money
    priority: Priority
    expires_at: Told_at | None = None
    breakage: Money
    granted_at: Told_at
    position: Position | None = None


@resource.post(
    "/v1/promotions",
    OPERATOR,
    PromotionAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        FundsReason.PROMOTION_EXISTS,
        FundsReason.BAD_PROGRAM,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        FundsReason.CREDIT_TOO_LOW,
    ],
)
def open_promotion(body: PromotionRequest, call: Caller) -> Response:
    """Opens a program with a fund from your own cash."""
    sponsor = call.principal.account_id

    def commands() -> OpenPromotion:
        return OpenPromotion(
            program=body.program,
            sponsor_account_id=sponsor,
            amount=body.amount.amount(),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = PromotionAnswer(
        program=body.program,
        sponsor_account_id=sponsor,
        opened=body.amount,
        granted=credits_(0),
        left=body.amount,
        opened_at=moment(call.now_us),
    )
    return call.record(commands, lambda _after: told)


@resource.get("/v1/promotions", READ, page_of(PromotionAnswer), problems=["cursor_invalid"])
def list_promotions(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists programs in order of opening, to the operator and auditors."""
    place, sees = call.place(cursor, [0], order), call.principal.sees_all
    with call.read(FUNDING) as view:
        after = place.after[0]
        found = funding.read_programs(view.connection, after=after, way=place.way, limit=limit + 1)
        rows = found if sees else []
        return call.page(view, place, rows, limit, lambda row: [row.position], _program)


@resource.get(
    "/v1/promotions/{program}", READ, PromotionAnswer, problems=[FundsReason.PROMOTION_UNKNOWN]
)
def read_promotion(program: ProgramInPath, call: Caller) -> Response:
    """Returns a program, to the operator and auditors."""
    with call.read(FUNDING) as view:
        found = funding.read_program(view.connection, program)
        if found is None or not call.principal.sees_all:
            raise Refused(FundsReason.PROMOTION_UNKNOWN, program=program)
        return call.answer(view, _program(found))


@resource.post(
    "/v1/promotions/{program}/close",
    OPERATOR,
    PromotionClosedAnswer,
    problems=[FundsReason.PROMOTION_UNKNOWN],
)
def close_promotion(program: ProgramInPath, body: EmptyRequest, call: Caller) -> Response:
    """Ends a program. Credits that were not granted return to the sponsor's cash. Grants go on."""
    del body

    def commands() -> ClosePromotion:
        return ClosePromotion(program=program, by=call.principal.member_id, at_us=call.now_us)

    def told(after: After) -> AnswerModel:
        opened = after.state(program_stream(program)).opened
        assert opened is not None, program
        return PromotionClosedAnswer(program=program, sponsor_account_id=opened.sponsor_account_id)

    return call.record(commands, told)


@resource.post(
    "/v1/promotions/{program}/grants",
    OPERATOR,
    PromotionGrantAnswer,
    status=201,
    problems=[
        FundsReason.PROMOTION_UNKNOWN,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        FundsReason.PROMOTION_ENDED,
        FundsReason.PROMOTION_TERMS,
        FundsReason.PROMOTION_FUND_SHORT,
        PartiesReason.COUNT_OUT_OF_RANGE,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
    ],
)
def grant_promotion(program: ProgramInPath, body: PromotionGrantRequest, call: Caller) -> Response:
    """Gives an account credits of a program."""

    def commands() -> GrantPromotion:
        return GrantPromotion(
            program=program,
            account_id=body.account_id,
            amount=body.amount.amount(),
            priority=body.priority,
            expires_at_us=body.expires_at,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = PromotionGrantAnswer(
        program=program,
        account_id=body.account_id,
        granted=body.amount,
        priority=body.priority,
        expires_at=moment_or_none(body.expires_at),
        breakage=credits_(0),
        granted_at=moment(call.now_us),
    )
    return call.record(commands, lambda _after: told)


@resource.get(
    "/v1/promotions/{program}/grants",
    READ,
    page_of(PromotionGrantAnswer),
    problems=[FundsReason.PROMOTION_UNKNOWN, "cursor_invalid"],
)
def list_promotion_grants(
    program: ProgramInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the grants of a program, account by account; to a party its own."""
    place, only = call.place(cursor, [0], order), call.principal.only
    with call.read(FUNDING) as view:
        own = funding.read_promotions(view.connection, account_id=only, program=program, limit=1)
        is_there = funding.read_program(view.connection, program) is not None
        if not is_there or not (own or call.principal.sees_all):
            raise Refused(FundsReason.PROMOTION_UNKNOWN, program=program)
        rows = funding.read_promotions(
            view.connection,
            account_id=only,
            program=program,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _grant)


def _program(row: funding.Program) -> PromotionAnswer:
    left = 0 if row.closed_at_us is not None else row.opened - row.granted
    return PromotionAnswer(
        program=row.program,
        sponsor_account_id=row.sponsor_account_id,
        opened=credits_(row.opened),
        granted=credits_(row.granted),
        left=credits_(left),
        opened_at=moment(row.at_us),
        closed_at=moment_or_none(row.closed_at_us),
    )


def _grant(row: funding.Promotion) -> PromotionGrantAnswer:
    return PromotionGrantAnswer(
        program=row.program,
        account_id=row.account_id,
        granted=credits_(row.granted),
        priority=row.priority,
        expires_at=moment_or_none(row.expires_at_us),
        breakage=credits_(row.breakage),
        granted_at=moment(row.at_us),
    )
