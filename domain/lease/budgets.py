"""Which budgets a lease counts against, and what of its escrow was counted there.

    counted(budget, lease) == put in - given back          of the deposits counted there, always

A deposit for the lease's own account counts for its project and for the API key that asked for the
lease; what a payer put in counts for what the payer allows that account. Somebody else's top-up
counts for nobody but its own payer. The lease remembers the deposits, so what comes back of them,
and of no others, is given back to the same budgets.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.funds.budget import (
    ACCOUNT,
    KEY,
    PROJECT,
    Claim,
    hold,
    left_this_month,
    release,
    stream_of,
    target_of,
)
from domain.lease.funds import EscrowPart, Held, total
from domain.record import dataclass
from domain.stream import Change, World


@dataclass(frozen=True, slots=True)
class Counted:
    """Deposits of a lease that count against one budget."""

    account_id: str
    scope: str
    target: str
    deposits: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeaseParty:
    """Whose lease it is, and by which project and key."""

    lease_id: str
    account_id: str
    project_id: str
    key_id: str | None

    def own_budgets(self, world: World) -> tuple[tuple[str, str], ...]:
        """(scope, target) of the caps the account sets for itself; a rotated key keeps its cap."""
        found = ((PROJECT, self.project_id), (KEY, self.key_id or ""))
        return tuple(
            (scope, target_of(world, self.account_id, scope, target))
            for scope, target in found
            if target
        )


def count_budgets(
    world: World, party: LeaseParty, for_account_id: str, parts: Held, at_us: int
) -> tuple[tuple[Counted, ...], list[Change]]:
    """Hold these new deposits, made for an account, against every budget that has a cap.

    Raises Refused: BUDGET_EXHAUSTED.
    """
    by_budget: dict[tuple[str, str, str], list[EscrowPart]] = {}
    own_budgets = party.own_budgets(world) if for_account_id == party.account_id else ()
    for part in parts:
        for scope, target in own_budgets:
            by_budget.setdefault((party.account_id, scope, target), []).append(part)
        depositor = part.account_id or party.account_id
        if depositor != for_account_id:
            by_budget.setdefault((depositor, ACCOUNT, for_account_id), []).append(part)
    claims = [Claim(*budget, total(counted)) for budget, counted in by_budget.items()]
    changes = hold(world, claims, party.lease_id, at_us)
    held = {change.stream for change in changes}
    counted = tuple(
        Counted(*budget, tuple(dict.fromkeys(part.number for part in of_it)))
        for budget, of_it in by_budget.items()
        if stream_of(*budget) in held
    )
    return counted, changes


def uncount_budgets(
    world: World,
    lease_id: str,
    counted: Sequence[Counted],
    refund: Held,
    at_us: int,
    *,
    is_final: bool,
) -> list[Change]:
    """Give back to the budgets what of their deposits comes back."""
    claims: dict[tuple[str, str, str], int] = {}
    for one in counted:
        back = total(part for part in refund if part.number in one.deposits)
        budget = (one.account_id, one.scope, one.target)
        claims[budget] = claims.get(budget, 0) + back
    asked = [Claim(*budget, units) for budget, units in claims.items()]
    return release(world, asked, lease_id, at_us, is_final=is_final)


def left_of(world: World, party: LeaseParty, units: int, at_us: int) -> int:
    """`units`, or less where the caps of the lease's own account leave less this month."""
    for scope, target in party.own_budgets(world):
        left = left_this_month(world, party.account_id, scope, target, at_us)
        units = units if left is None else min(units, left)
    return units
