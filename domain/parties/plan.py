"""Plans of accounts: what the operator has agreed with an account beside the tariff.

    individual < team < enterprise          a higher plan unlocks what a lower one does

The operator sets them; every account begins with the first. Row C-9.
"""

from __future__ import annotations

from typing import Any

from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, Stream, World

INDIVIDUAL, TEAM, ENTERPRISE = "individual", "team", "enterprise"
PLANS = (INDIVIDUAL, TEAM, ENTERPRISE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPlanSet:
    """Stream `plan:{account_id}`; the latest counts."""

    account_id: str
    plan: str  # PLANS
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAccountPlan:
    account_id: str
    plan: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True)
class PlanState:
    plan: str = INDIVIDUAL


def evolve(_state: PlanState, fact: AccountPlanSet) -> PlanState:
    return PlanState(fact.plan)


def plan_stream(account_id: str) -> Stream[PlanState]:
    return Stream("plan", account_id)


def plan_of(world: World, account_id: str) -> str:
    return world.state(plan_stream(account_id)).plan


def has_plan(world: World, account_id: str, plan: str) -> bool:
    """Whether an account has this plan or a higher one."""
    return PLANS.index(plan_of(world, account_id)) >= PLANS.index(plan)


def decide_plan(command: SetAccountPlan, world: World) -> list[Change]:
    """What a lower plan does not unlock stays where it is, and takes no new use.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, UNKNOWN_MODE.
    """
    open_account(world, command.account_id)
    if command.plan not in PLANS:
        raise Refused(PartiesReason.UNKNOWN_MODE, plan=command.plan)
    if plan_of(world, command.account_id) == command.plan:
        return []
    told = AccountPlanSet(
        account_id=command.account_id, plan=command.plan, by=command.by, at_us=command.at_us
    )
    return [Change(plan_stream(command.account_id), told)]


STREAMS: dict[str, tuple[Any, Any]] = {"plan": (PlanState(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetAccountPlan: decide_plan}
