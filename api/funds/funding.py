"""Funding: what an account may spend, who pays for whom, and monthly budgets.

One account can pay for many. Only the payer's account has the payments, deposits and balances; an
account that is paid for sees what it may use and no more (row C-25).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import BeforeValidator, Field, model_validator

from api.door.amounts import Money, credits_, credits_or_none
from api.door.auth import with_scope
from api.door.call import Caller
from api.door.models import (
    AccountId,
    AccountInPath,
    AnswerModel,
    EmptyRequest,
    Position,
    RequestModel,
    Told_at,
    no_address,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.parties.accounts import own, visible
from domain.funds.budget import ACCOUNT, SetBudget, budget_of, left_this_month, month_at, target_of
from domain.funds.funding import EndPayer, SetPayer, funding_of, sources_of
from domain.funds.reasons import FundsReason
from domain.market.offer import SETTLEMENTS
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from projections.funds import funding
from projections.funds.funding import FUNDING
from projections.parties import access
from projections.parties.access import ACCESS

resource = Resource("funding")

ADMIN = with_scope("account:admin")
READ = with_scope("account", "billing:read", "operator", "audit:read")
Target = Annotated[str, BeforeValidator(no_address), Field(pattern=r"^[0-9A-Za-z_.:/-]{1,100}$")]


class FundingSourceAnswer(AnswerModel):
    """One balance, in spend order. `expires_at` of a grant: what is unspent then is lost."""

    source: Annotated[str, Field(examples=["grant.spring-2026", "earned", "cash", "card"])]
    available: Money
    priority: int | None = None
    expires_at: Told_at | None = None


class AccountPayerAnswer(AnswerModel):
    """The account that pays what this account's own balances do not, and how much it has for that
    now.
    """

    payer_account_id: AccountId
    since: Told_at
    monthly_cap: Money | None = None
    available: Money


class AccountFundingAnswer(AnswerModel):
    """What an account may spend now: `sources` one after the other, then the payer's."""

    account_id: AccountId
    sources: list[FundingSourceAnswer]
    payer: AccountPayerAnswer | None = None
    position: Position


class FundedAccountRequest(RequestModel):
    """`monthly_cap` absent: as much as you have. Given again, it is set anew."""

    funded_account_id: AccountId
    monthly_cap: Money | None = None

    model_config = with_examples(
        {
            "funded_account_id": "acct_" + "2" * 32,
            "monthly_cap": {"asset": "CREDIT", "units": "500000000"},
        }
    )


class FundedAccountAnswer(AnswerModel):
    """`used`: of the cap, this month. Without a cap nothing is counted."""

    payer_account_id: AccountId
    funded_account_id: AccountId
    monthly_cap: Money | None = None
    used: Money | None = None
    since: Told_at | None = None
    ended_at: Told_at | None = None
    position: Position | None = None


class BudgetRequest(RequestModel):
    """`target`: a project, or the 8 characters of an API key. `monthly` absent: no cap any more."""

    scope: Literal["project", "key"]
    target: Target
    monthly: Money | None = None

    model_config = with_examples(
        {
            "scope": "project",
            "target": "train-7b",
            "monthly": {"asset": "CREDIT", "units": "250000000"},
        }
    )

    @model_validator(mode="after")
    def _is_credit(self) -> BudgetRequest:
        if self.monthly is not None and self.monthly.asset != "CREDIT":
            raise ValueError("a budget is in CREDIT")
        return self


class BudgetAnswer(AnswerModel):
    """`used`: what went into escrow this month less what came back of it. `alerted_percent`: the
    highest threshold crossed this month.
    """

    scope: Literal["project", "key", "account"]
    target: str
    monthly: Money | None = None
    month: Annotated[str, Field(examples=["2026-11"])]
    used: Money
    left: Money | None = None
    alerted_percent: int | None = None
    position: Position | None = None


@resource.get(
    "/v1/accounts/{account_id}/funding",
    READ,
    AccountFundingAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def read_funding(account_id: AccountInPath, call: Caller) -> Response:
    """Returns what an account may spend now, in spend order."""
    visible(call.principal, account_id)
    with call.read(ACCESS, FUNDING) as view:
        if access.read_account(view.connection, account_id) is None:
            raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)
        payer = funding.read_payer(view.connection, account_id)
        world = call.service.ledger.world()
        grants = {one.source: one for one in funding_of(world, account_id).promotions}
        found = [
            source
            for way in SETTLEMENTS
            for source in sources_of(world, account_id, way, call.now_us)
        ]
        told = AccountFundingAnswer(
            account_id=account_id,
            position=view.position,
            sources=[
                FundingSourceAnswer(
                    source=one.name,
                    available=credits_(one.units),
                    priority=grants[one.name].priority if one.name in grants else None,
                    expires_at=moment_or_none(
                        grants[one.name].expires_at_us if one.name in grants else None
                    ),
                )
                for one in found
                if one.account_id == account_id
            ],
            payer=None
            if payer is None
            else AccountPayerAnswer(
                payer_account_id=payer.payer_account_id,
                since=moment(payer.at_us),
                monthly_cap=credits_or_none(
                    budget_of(world, payer.payer_account_id, ACCOUNT, account_id).limit_units
                ),
                available=credits_(sum(one.units for one in found if one.account_id != account_id)),
            ),
        )
        return call.answer(view, told)


# --- one payer for many accounts ---------------------------------------------------------------


@resource.post(
    "/v1/accounts/{account_id}/funded-accounts",
    ADMIN,
    FundedAccountAnswer,
    status=201,
    problems=[
        PartiesReason.NOT_PERMITTED,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        FundsReason.PAYER_EXISTS,
        PricesReason.AMOUNT_OUT_OF_RANGE,
    ],
)
def fund_account(account_id: AccountInPath, body: FundedAccountRequest, call: Caller) -> Response:
    """Starts paying for another account from now on, up to a monthly cap."""
    cap = body.monthly_cap

    def commands() -> list[Any]:
        own(call.principal, account_id)
        by: dict[str, Any] = {"by": call.principal.member_id, "at_us": call.now_us}
        return [
            SetPayer(account_id=body.funded_account_id, payer_account_id=account_id, **by),
            SetBudget(
                account_id=account_id,
                scope=ACCOUNT,
                target=body.funded_account_id,
                monthly=None if cap is None else cap.amount(),
                **by,
            ),
        ]

    told = FundedAccountAnswer(
        payer_account_id=account_id, funded_account_id=body.funded_account_id, monthly_cap=cap
    )
    return call.record(commands, lambda _after: told)


@resource.get(
    "/v1/accounts/{account_id}/funded-accounts",
    READ,
    page_of(FundedAccountAnswer),
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def list_funded_accounts(
    account_id: AccountInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the accounts that an account pays for or paid for."""
    visible(call.principal, account_id)
    place = call.place(cursor, [0], order)
    with call.read(FUNDING) as view:
        rows = funding.read_funded(
            view.connection, account_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        world = call.service.ledger.world()

        def told(row: funding.Payer) -> FundedAccountAnswer:
            cap = budget_of(world, account_id, ACCOUNT, row.account_id)
            is_capped = row.ended_at_us is None and cap.limit_units is not None
            used = cap.used_in(month_at(call.now_us)) if is_capped else None
            return FundedAccountAnswer(
                payer_account_id=account_id,
                funded_account_id=row.account_id,
                monthly_cap=credits_or_none(cap.limit_units if is_capped else None),
                used=credits_or_none(used),
                since=moment(row.at_us),
                ended_at=moment_or_none(row.ended_at_us),
            )

        return call.page(view, place, rows, limit, lambda row: [row.position], told)


@resource.post(
    "/v1/accounts/{account_id}/funded-accounts/{funded_account_id}/end",
    ADMIN,
    FundedAccountAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, FundsReason.PAYER_UNKNOWN],
)
def stop_funding(
    account_id: AccountInPath, funded_account_id: AccountInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Stops paying for another account, or being paid for. Leases that hold money keep it."""
    del body

    def commands() -> EndPayer:
        if not call.principal.owns(funded_account_id):
            own(call.principal, account_id)
        return EndPayer(
            account_id=funded_account_id,
            payer_account_id=account_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = FundedAccountAnswer(
        payer_account_id=account_id,
        funded_account_id=funded_account_id,
        ended_at=moment(call.now_us),
    )
    return call.record(commands, lambda _after: told)


# --- budgets -----------------------------------------------------------------------------------


@resource.post(
    "/v1/accounts/{account_id}/budgets",
    ADMIN,
    BudgetAnswer,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.API_KEY_UNKNOWN,
        PricesReason.AMOUNT_OUT_OF_RANGE,
    ],
)
def set_budget(account_id: AccountInPath, body: BudgetRequest, call: Caller) -> Response:
    """Caps what goes into escrow in a calendar month (UTC), for a project or a key."""
    monthly = body.monthly

    def commands() -> SetBudget:
        own(call.principal, account_id)
        return SetBudget(
            account_id=account_id,
            scope=body.scope,
            target=body.target,
            monthly=None if monthly is None else monthly.amount(),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(_after: Any) -> AnswerModel:
        target = target_of(call.service.ledger.world(), account_id, body.scope, body.target)
        used = _budget(call, account_id, body.scope, target).used
        left = None if monthly is None else max(0, int(monthly.units) - int(used.units))
        return BudgetAnswer(
            scope=body.scope,
            target=target,
            monthly=monthly,
            month=month_at(call.now_us),
            used=used,
            left=credits_or_none(left),
        )

    return call.record(commands, told)


@resource.get(
    "/v1/accounts/{account_id}/budgets",
    READ,
    page_of(BudgetAnswer),
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def list_budgets(
    account_id: AccountInPath, call: Caller, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists the caps of an account, and how much of each is used this month."""
    visible(call.principal, account_id)
    place = call.place(cursor, ["", ""])
    with call.read(FUNDING) as view:
        rows = funding.read_budgets(
            view.connection, account_id, after=(place.after[0], place.after[1]), limit=limit + 1
        )
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.scope, row.target],
            lambda row: _budget(call, account_id, row.scope, row.target),
        )


def _budget(call: Caller, account_id: str, scope: str, target: str) -> BudgetAnswer:
    world, month = call.service.ledger.world(), month_at(call.now_us)
    budget = budget_of(world, account_id, scope, target)
    shown: Any = scope
    return BudgetAnswer(
        scope=shown,
        target=target,
        monthly=credits_or_none(budget.limit_units),
        month=month,
        used=credits_(budget.used_in(month)),
        left=credits_or_none(left_this_month(world, account_id, scope, target, call.now_us)),
        alerted_percent=budget.alerted.get(month),
    )
