"""The plan of an account: what the operator has agreed with it."""

from __future__ import annotations

from typing import Literal, get_args

from fastapi import Response

from api.door.auth import with_scope
from api.door.call import Caller
from api.door.models import (
    AccountId,
    AccountInPath,
    AnswerModel,
    Position,
    RequestModel,
    with_examples,
)
from api.door.operation import Resource
from api.parties.accounts import READ, visible
from domain.parties.plan import PLANS, SetAccountPlan, plan_stream
from domain.parties.reasons import PartiesReason

resource = Resource("accounts")

Plan = Literal["individual", "team", "enterprise"]
assert get_args(Plan) == PLANS


class AccountPlanRequest(RequestModel):
    plan: Plan

    model_config = with_examples({"plan": "team"})


class AccountPlanAnswer(AnswerModel):
    """A plan unlocks what lower ones do: `team` has datastores and reservations."""

    account_id: AccountId
    plan: Plan
    position: Position | None = None


@resource.post(
    "/v1/accounts/{account_id}/plan",
    with_scope("operator"),
    AccountPlanAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, PartiesReason.ACCOUNT_CLOSED],
)
def set_plan(account_id: AccountInPath, body: AccountPlanRequest, call: Caller) -> Response:
    """Sets the plan of an account."""
    command = SetAccountPlan(
        account_id=account_id, plan=body.plan, by=call.principal.member_id, at_us=call.now_us
    )
    told = AccountPlanAnswer(account_id=account_id, plan=body.plan)
    return call.record(lambda: command, lambda _after: told)


@resource.get(
    "/v1/accounts/{account_id}/plan",
    READ,
    AccountPlanAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def read_plan(account_id: AccountInPath, call: Caller) -> Response:
    """Returns the plan of an account."""
    visible(call.principal, account_id)
    with call.read() as view:
        found = call.service.ledger.market.state_of(plan_stream(account_id)).plan
        plan: Plan = next(one for one in get_args(Plan) if one == found)
        return call.answer(view, AccountPlanAnswer(account_id=account_id, plan=plan))
