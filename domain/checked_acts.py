"""The acts of operators that take a second person: which they are, and what each puts at stake.

    every command of ACTS that a person asks for goes through `decide_checked`

The limits are numbers of the policy in force (`ActLimits`), so governors' votes change them. An act
without an amount always takes two. What only lowers a risk takes one: a lower limit, a hold, a
price source less. What our own jobs ask for is no act of a person and is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from domain.authority.acts import LIMITS, ActLimits, ActRequest, taken
from domain.authority.governors import has_opened
from domain.corrections.dispute import RuleDispute, dispute_of
from domain.corrections.dispute_ruling import decide_rule
from domain.epochs.epoch import CloseEpoch, decide_close
from domain.epochs.policy import governance_of, standing_policies
from domain.funds.debt import WriteOffDebt, decide_write_off
from domain.funds.deposit import ConfirmDeposit, decide_deposit
from domain.funds.payment import ReceivePayment, decide_receive
from domain.governance.breakers import SetBreaker, breaker_of, decide_set
from domain.income.adjustment import GrantGoodwill, decide_goodwill
from domain.income.cash_out import (
    ConfirmCashOutPaid,
    ReleaseCashOuts,
    cash_out_of,
    decide_paid,
    decide_release,
)
from domain.income.maturity import SetMaturityWindow, decide_set_window
from domain.prices.price_feed import SetPriceSources, decide_sources, feed_of
from domain.prices.tariff import PublishTariff, decide_publish
from domain.record import dataclass
from domain.stream import Change, World
from domain.trust.record import ForgetDriverLibrary, KnowDriverLibrary, decide_forget, decide_know

Units = Callable[[Any, World], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAct:
    """A command of ACTS as a person asks for it, and who signed the request."""

    command: Any
    asked: ActRequest


@dataclass(frozen=True, slots=True)
class Act:
    """`limit`: the field of the policy's limits, with `units` at stake; None: it always takes two.
    `adds_risk`: whether this one does.
    """

    name: str
    decide: Callable[[Any, World], list[Change]]
    units: Units | None = None
    adds_risk: Callable[[Any, World], bool] = lambda _command, _world: True

    def limit(self, limits: ActLimits) -> int | None:
        return None if self.units is None else getattr(limits, self.name)


def _amount(command: Any, _world: World) -> int:
    units: int = command.amount.units
    return units


def _claimed(command: RuleDispute, world: World) -> int:
    """Upheld or rejected: so much is taken from one side."""
    opened = dispute_of(world, command.dispute_id).opened
    return 0 if opened is None else sum(line.claimed.units for line in opened.lines)


def _requested(command: ConfirmCashOutPaid, world: World) -> int:
    requested = cash_out_of(world, command.cash_out_id).requested
    return 0 if requested is None else requested.amount.units


def _raises_breaker(command: SetBreaker, world: World) -> bool:
    """A higher limit or none, or the same in a shorter window."""
    present = breaker_of(world, command.breaker)
    if present.limit is None:
        return False
    is_higher = command.limit is None or command.limit > present.limit
    return is_higher or command.window_us < present.window_us


def _adds_source(command: SetPriceSources, world: World) -> bool:
    """A source or a feeder that was not there; fewer of those that are is no such thing."""
    present = feed_of(world).feeders
    return any(present.get(one.source) != one.member_id for one in command.sources)


def _overrides(command: CloseEpoch, _world: World) -> bool:
    return bool(command.missing)


ACTS: dict[type[Any], Act] = {
    ConfirmDeposit: Act("deposit", decide_deposit, _amount),
    ReceivePayment: Act("deposit", decide_receive, _amount),
    GrantGoodwill: Act("goodwill", decide_goodwill, lambda command, _world: command.units),
    RuleDispute: Act("ruling", decide_rule, _claimed),
    WriteOffDebt: Act("write_off", decide_write_off, _amount),
    ConfirmCashOutPaid: Act("cash_out", decide_paid, _requested),
    ReleaseCashOuts: Act("cash_out_release", decide_release),
    PublishTariff: Act("tariff", decide_publish),
    SetMaturityWindow: Act("dispute_window", decide_set_window),
    SetBreaker: Act("breaker", decide_set, adds_risk=_raises_breaker),
    SetPriceSources: Act("price_sources", decide_sources, adds_risk=_adds_source),
    KnowDriverLibrary: Act("driver_library", decide_know),
    ForgetDriverLibrary: Act("driver_library", decide_forget),
    CloseEpoch: Act("epoch_gate", decide_close, adds_risk=_overrides),
}
"""The one list. Forgetting a library is no lower risk: it takes every owner's tier."""


def decide_checked(command: CheckedAct, world: World) -> list[Change]:
    """What the act leads to, and before it who signed; what changes nothing is no act.

    Raises Refused: what the act itself is refused for, ACT_SIGNATURE_VOID, CHECKER_NEEDED.
    """
    act, inner = ACTS[type(command.command)], command.command
    changes = act.decide(inner, world)
    if not changes or not act.adds_risk(inner, world):
        return changes
    units = None if act.units is None else act.units(inner, world)
    limit = act.limit(limits_of(world))
    return [taken(world, act.name, units, limit, command.asked), *changes]


def limits_of(world: World) -> ActLimits:
    """The limits of the policy in force, whose first epoch was opened."""
    for policy in reversed(standing_policies(world)):
        first = policy.effective_from_epoch
        if first == 1 or has_opened(world, first):
            return governance_of(policy).alone or LIMITS
    return LIMITS


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {CheckedAct: decide_checked}
