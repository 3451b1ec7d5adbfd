"""Budgets: how much may go into escrow in a calendar month, per project, per API key, per account.

    used(month) == sum held in it - sum that came back of what was held in it
    used(month) <= limit          after every hold, whatever runs at the same time

`project` and `key` are caps an account sets for itself; `account` is what a payer allows an account
it pays for, and counts only what the payer's own balances pay. The cap of a key is one for the
whole chain of its rotations, and what was used counts on, in the stream of the first key. A hold is
a fact of the budget's own stream, in the append of the lease: two leases that would pass the cap
together meet there. What comes back is taken off the month it was held in, the latest hold of the
lease first. Counting begins when a cap is set. Months are UTC's.

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.calendar import day_of, day_text
from domain.frozen import replace
from domain.money import Amount, Asset, Big, credit
from domain.parties.account import account_of, existing_account
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts. Stream `budget:{account_id}|{scope}|{target}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSet:
    """`monthly` None: no cap any more."""

    account_id: str
    scope: str  # SCOPES
    target: str  # a project, the first key of a chain of rotations, or an account that is paid for
    monthly: Amount | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetHeld:
    account_id: str
    scope: str
    target: str
    month: str  # "2026-11"
    lease_id: str  # or what else was paid with it
    amount: Amount
    used: Big  # micro-credits of the month, this hold included
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReleased:
    """What came back of a lease's escrow; with `is_final` nothing more will."""

    account_id: str
    scope: str
    target: str
    lease_id: str
    amount: Amount
    is_final: bool
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAlerted:
    """Once per month and threshold."""

    account_id: str
    scope: str
    target: str
    month: str
    percent: int  # ALERT_PERCENTS
    used: Big
    limit: Big
    at_us: int


Fact: TypeAlias = BudgetSet | BudgetHeld | BudgetReleased | BudgetAlerted

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBudget:
    account_id: str
    scope: str
    target: str
    monthly: Amount | None
    by: str
    at_us: int


PROJECT, KEY, ACCOUNT = "project", "key", "account"
SCOPES = (PROJECT, KEY, ACCOUNT)
ALERT_PERCENTS = (80, 100)
BUDGET_UNITS_MAX = 10**15
"""A billion credits a month: far below what an account of the books can hold."""

# State.


@dataclass(frozen=True, slots=True)
class Hold:
    """What one lease holds of one month."""

    lease_id: str
    month: str
    units: int


@dataclass(frozen=True, slots=True)
class Budget:
    """`used` and `alerted` by month. `holds`: of leases that are not settled, oldest first."""

    limit_units: int | None = None
    used: dict[str, int] = field(default_factory=dict)
    alerted: dict[str, int] = field(default_factory=dict)
    holds: tuple[Hold, ...] = ()

    def used_in(self, month: str) -> int:
        return self.used.get(month, 0)

    def left_in(self, month: str) -> int | None:
        """Micro-credits that may still be held; None without a cap."""
        return None if self.limit_units is None else max(0, self.limit_units - self.used_in(month))


def evolve(budget: Budget, fact: Fact) -> Budget:
    match fact:
        case BudgetSet():
            limit_units = None if fact.monthly is None else fact.monthly.units
            return replace(budget, limit_units=limit_units, alerted={})
        case BudgetHeld():
            # Only the months of open holds, and the present one, can still change.
            open_months = {hold.month for hold in budget.holds} | {fact.month}
            used = {month: units for month, units in budget.used.items() if month in open_months}
            return replace(
                budget,
                used={**used, fact.month: fact.used},
                alerted={
                    month: percent
                    for month, percent in budget.alerted.items()
                    if month in open_months
                },
                holds=(*budget.holds, Hold(fact.lease_id, fact.month, fact.amount.units)),
            )
        case BudgetReleased():
            return _released(budget, fact)
        case BudgetAlerted():
            return replace(budget, alerted={**budget.alerted, fact.month: fact.percent})
        case _:
            assert_never(fact)


def _released(budget: Budget, fact: BudgetReleased) -> Budget:
    left, used, holds = fact.amount.units, dict(budget.used), list[Hold]()
    for hold in reversed(budget.holds):
        if hold.lease_id != fact.lease_id:
            holds.append(hold)
            continue
        back = min(left, hold.units)
        left -= back
        used[hold.month] = used.get(hold.month, 0) - back
        if hold.units > back and not fact.is_final:
            holds.append(replace(hold, units=hold.units - back))
    return replace(budget, used=used, holds=tuple(reversed(holds)))


def month_at(at_us: int) -> str:
    """The UTC month of a moment, `2026-11`."""
    return day_text(day_of(at_us))[:7]


def stream_of(account_id: str, scope: str, target: str) -> Stream[Budget]:
    return Stream("budget", f"{account_id}|{scope}|{target}")


def target_of(world: World, account_id: str, scope: str, target: str) -> str:
    """What a cap is kept for: of a key, the first one of its chain of rotations."""
    return account_of(world, account_id).root_of(target) if scope == KEY else target


def budget_of(world: World, account_id: str, scope: str, target: str) -> Budget:
    return world.state(stream_of(account_id, scope, target))


def left_this_month(
    world: World, account_id: str, scope: str, target: str, at_us: int
) -> int | None:
    """Micro-credits that may still go into escrow this month; None without a cap."""
    return budget_of(world, account_id, scope, target).left_in(month_at(at_us))


# Decisions.


def decide_set(command: SetBudget, world: World) -> list[Change]:
    """Setting what is set already gives no fact. A cap below what is used refuses the next hold.

    Raises Refused: ACCOUNT_UNKNOWN, UNKNOWN_MODE, API_KEY_UNKNOWN, AMOUNT_OUT_OF_RANGE.
    """
    account = existing_account(world, command.account_id)
    if command.scope not in SCOPES:
        raise Refused(PartiesReason.UNKNOWN_MODE, scope=command.scope, allowed=SCOPES)
    if command.scope == KEY and command.target not in account.keys:
        raise Refused(PartiesReason.API_KEY_UNKNOWN, key_id=command.target)
    monthly = command.monthly
    if monthly is not None and (
        monthly.asset is not Asset.CREDIT or not 0 <= monthly.units <= BUDGET_UNITS_MAX
    ):
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field="monthly", units=monthly.units)
    target = target_of(world, command.account_id, command.scope, command.target)
    present = budget_of(world, command.account_id, command.scope, target).limit_units
    if present == (None if monthly is None else monthly.units):
        return []
    fact = BudgetSet(
        account_id=command.account_id,
        scope=command.scope,
        target=target,
        monthly=monthly,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.account_id, command.scope, target), fact)]


@dataclass(frozen=True, slots=True)
class Claim:
    """So much of one budget, if it has a cap."""

    account_id: str
    scope: str
    target: str
    units: int

    @property
    def name(self) -> str:
        """The id of the budget's stream: what a lease remembers of it."""
        return f"{self.account_id}|{self.scope}|{self.target}"


def hold(world: World, claims: Sequence[Claim], lease_id: str, at_us: int) -> list[Change]:
    """Count what goes into escrow against every budget that has a cap.

    Raises Refused: BUDGET_EXHAUSTED, with the first cap that would be passed.
    """
    month, changes = month_at(at_us), list[Change]()
    for claim in claims:
        budget = budget_of(world, claim.account_id, claim.scope, claim.target)
        limit = budget.limit_units
        if limit is None or not claim.units:
            continue
        used = budget.used_in(month) + claim.units
        if used > limit:
            raise Refused(
                PartiesReason.BUDGET_EXHAUSTED,
                scope=claim.scope,
                target=claim.target,
                month=month,
                limit=limit,
                used=budget.used_in(month),
                asked=claim.units,
            )
        where = stream_of(claim.account_id, claim.scope, claim.target)
        whose: dict[str, str] = {
            "account_id": claim.account_id,
            "scope": claim.scope,
            "target": claim.target,
            "month": month,
        }
        amount = credit(claim.units)
        held = BudgetHeld(**whose, lease_id=lease_id, amount=amount, used=used, at_us=at_us)
        changes.append(Change(where, held))
        crossed = [percent for percent in ALERT_PERCENTS if used * 100 >= limit * percent]
        changes += [
            Change(
                where, BudgetAlerted(**whose, percent=percent, used=used, limit=limit, at_us=at_us)
            )
            for percent in crossed
            if percent > budget.alerted.get(month, 0)
        ]
    return changes


def spend(world: World, claim: Claim, reference: str, at_us: int) -> list[Change]:
    """Count what is taken for good and not held: nothing of it comes back. `reference` is no lease.

    Raises Refused: BUDGET_EXHAUSTED.
    """
    held = hold(world, [claim], reference, at_us)
    if not held:
        return []
    over = BudgetReleased(
        account_id=claim.account_id,
        scope=claim.scope,
        target=claim.target,
        lease_id=reference,
        amount=credit(0),
        is_final=True,
        at_us=at_us,
    )
    return [*held, Change(held[0].stream, over)]


def release(
    world: World, claims: Sequence[Claim], lease_id: str, at_us: int, *, is_final: bool
) -> list[Change]:
    """Take what came back off the budgets a lease was counted against."""
    changes = list[Change]()
    for claim in claims:
        budget = budget_of(world, claim.account_id, claim.scope, claim.target)
        counted = sum(one.units for one in budget.holds if one.lease_id == lease_id)
        units = min(claim.units, counted)
        if not units and not (is_final and counted):
            continue
        fact = BudgetReleased(
            account_id=claim.account_id,
            scope=claim.scope,
            target=claim.target,
            lease_id=lease_id,
            amount=credit(units),
            is_final=is_final,
            at_us=at_us,
        )
        changes.append(Change(stream_of(claim.account_id, claim.scope, claim.target), fact))
    return changes


STREAMS: dict[str, tuple[Any, Any]] = {"budget": (Budget(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetBudget: decide_set}
