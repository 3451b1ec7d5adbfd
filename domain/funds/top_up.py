"""Funds that run low: warnings at thresholds, and a top-up by itself with a saved method.

    warned of a threshold once, and again only after the balance was at or above it
    sum(top-ups of one UTC month that did not fail) <= monthly_max

One top-up is under way at a time: it is a payment like any other (`domain/funds/payment.py`), and
what became of that payment ends it. After a failure the next one waits, twice as long each time;
after `FAILURES_MAX` in a row auto top-up stops by itself and says why. What counts is what the
account may spend now (`domain/funds/funding.py`), not what its leases hold. Row C-25.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.calendar import day_of, month_of_day
from domain.frozen import replace
from domain.funds.funding import sources_of
from domain.funds.payment import PAYMENT_UNITS_MAX, StartPayment, decide_start, payment_of
from domain.funds.payment_terms import CENT_UNITS, terms_at
from domain.funds.reasons import FundsReason
from domain.money import Amount, Asset, Big, credit
from domain.parties.account import account_of, open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World, derive_id

THRESHOLDS_MAX = 5
FAILURES_MAX = 4
RETRY_US = 3_600_000_000
RETRY_US_MAX = 24 * RETRY_US

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceWarningsSet:
    """Stream `top_up:{account_id}`, as all that follow."""

    account_id: str
    thresholds: tuple[Amount, ...]  # highest first; none: no warnings
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceWarned:
    account_id: str
    threshold: Amount  # the lowest one that the balance has newly fallen below
    balance: Amount
    below: tuple[Amount, ...]  # every threshold above the balance now
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceRecovered:
    account_id: str
    balance: Amount
    below: tuple[Amount, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoTopUpSet:
    account_id: str
    threshold: Amount
    amount: Amount
    monthly_max: Amount
    payment_id: str  # whose saved method is used
    processor: str
    saved_method: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoTopUpStopped:
    account_id: str
    reason: str  # "asked", "failures", or the rule that refused to start a payment
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpStarted:
    account_id: str
    number: int  # from 1
    payment_id: str
    amount: Amount
    balance: Amount  # that brought it about
    month: int  # UTC, months since year 0
    month_total: Amount  # with this one
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpEnded:
    account_id: str
    payment_id: str
    is_paid: bool
    reason: str | None
    failures: int  # in a row
    retry_at_us: int | None
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBalanceWarnings:
    account_id: str
    thresholds: tuple[Amount, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAutoTopUp:
    account_id: str
    threshold: Amount
    amount: Amount
    monthly_max: Amount
    payment_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAutoTopUp:
    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFunds:
    """Look at the balance: warn, end the top-up whose payment ended, start the next one."""

    account_id: str
    at_us: int


# State.


@dataclass(frozen=True, slots=True)
class TopUps:
    thresholds: tuple[Big, ...] = ()
    below: tuple[Big, ...] = ()
    setting: AutoTopUpSet | None = None
    stopped: AutoTopUpStopped | None = None
    open_payment_id: str | None = None
    open_units: Big = 0
    count: int = 0
    failures: int = 0
    retry_at_us: int | None = None
    month: int = 0
    month_units: Big = 0


Fact: TypeAlias = (
    BalanceWarningsSet
    | BalanceWarned
    | BalanceRecovered
    | AutoTopUpSet
    | AutoTopUpStopped
    | TopUpStarted
    | TopUpEnded
)


def evolve(state: TopUps, fact: Fact) -> TopUps:
    match fact:
        case BalanceWarningsSet():
            return replace(state, thresholds=_units(fact.thresholds), below=())
        case BalanceWarned() | BalanceRecovered():
            return replace(state, below=_units(fact.below))
        case AutoTopUpSet():
            return replace(state, setting=fact, stopped=None, failures=0, retry_at_us=None)
        case AutoTopUpStopped():
            return replace(state, setting=None, stopped=fact)
        case TopUpStarted():
            return replace(
                state,
                open_payment_id=fact.payment_id,
                open_units=fact.amount.units,
                count=fact.number,
                month=fact.month,
                month_units=fact.month_total.units,
            )
        case TopUpEnded():
            given_back = 0 if fact.is_paid else state.open_units
            return replace(
                state,
                open_payment_id=None,
                open_units=0,
                failures=fact.failures,
                retry_at_us=fact.retry_at_us,
                month_units=state.month_units - given_back,
            )
        case _:
            assert_never(fact)


def _units(amounts: tuple[Amount, ...]) -> tuple[int, ...]:
    return tuple(amount.units for amount in amounts)


# Decisions.


def stream_of(account_id: str) -> Stream[TopUps]:
    return Stream("top_up", account_id)


def top_ups_of(world: World, account_id: str) -> TopUps:
    return world.state(stream_of(account_id))


def spendable(world: World, account_id: str, at_us: int) -> int:
    """Micro-credits a lease could be paid with now."""
    return sum(source.units for source in sources_of(world, account_id, "cash", at_us))


def decide_set_warnings(command: SetBalanceWarnings, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, TOP_UP_INVALID."""
    open_account(world, command.account_id)
    units = _units(command.thresholds)
    if len(units) > THRESHOLDS_MAX:
        raise _invalid("thresholds", f"at most {THRESHOLDS_MAX}")
    if sorted(set(units), reverse=True) != list(units):
        raise _invalid("thresholds", "highest first, none twice")
    for amount in command.thresholds:
        _credits("thresholds", amount)
    if top_ups_of(world, command.account_id).thresholds == units:
        return []
    fact = BalanceWarningsSet(
        account_id=command.account_id,
        thresholds=command.thresholds,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.account_id), fact)]


def decide_set(command: SetAutoTopUp, world: World) -> list[Change]:
    """Use the method that the account saved with an earlier payment of its own.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, PAYMENT_UNKNOWN (none of this account),
    PAYMENT_STATE (it saved no method), TOP_UP_INVALID.
    """
    open_account(world, command.account_id)
    payment = payment_of(world, command.payment_id)
    started, received = payment.started, payment.received
    if started is None or started.account_id != command.account_id:
        raise Refused(FundsReason.PAYMENT_UNKNOWN, payment_id=command.payment_id)
    if received is None or received.saved_method is None:
        raise Refused(FundsReason.PAYMENT_STATE, payment_id=command.payment_id, saved_method="none")
    _credits("threshold", command.threshold)
    minimum = terms_at(world, command.at_us).minimum.units
    if _credits("amount", command.amount) < minimum:
        raise _invalid("amount", "at least the smallest payment", least=minimum)
    if command.amount.units % CENT_UNITS:
        raise _invalid("amount", "whole cents")
    if _credits("monthly_max", command.monthly_max) < command.amount.units:
        raise _invalid("monthly_max", "at least one amount")
    fact = AutoTopUpSet(
        account_id=command.account_id,
        threshold=command.threshold,
        amount=command.amount,
        monthly_max=command.monthly_max,
        payment_id=command.payment_id,
        processor=started.processor,
        saved_method=received.saved_method,
        by=command.by,
        at_us=command.at_us,
    )
    present = top_ups_of(world, command.account_id).setting
    if present is not None and replace(present, by=command.by, at_us=command.at_us) == fact:
        return []
    return [Change(stream_of(command.account_id), fact)]


def decide_stop(command: StopAutoTopUp, world: World) -> list[Change]:
    """Twice is once. A top-up under way still ends as its payment does."""
    if top_ups_of(world, command.account_id).setting is None:
        return []
    return [_stopping(command.account_id, "asked", command.by, command.at_us)]


def decide_check(command: CheckFunds, world: World) -> list[Change]:
    """Nothing to tell is nothing done."""
    account_id, at_us = command.account_id, command.at_us
    state = top_ups_of(world, account_id)
    units = spendable(world, account_id, at_us)
    changes = _warnings(state, account_id, units, at_us)
    if state.open_payment_id is not None:
        return changes + _ended(state, world, account_id, at_us)
    setting = state.setting
    if setting is None or units >= setting.threshold.units:
        return changes
    if state.retry_at_us is not None and at_us < state.retry_at_us:
        return changes
    if not account_of(world, account_id).is_open:
        return [*changes, _stopping(account_id, PartiesReason.ACCOUNT_CLOSED.value, "job", at_us)]
    return changes + _start(state, setting, world, units, at_us)


def _warnings(state: TopUps, account_id: str, units: int, at_us: int) -> list[Change]:
    below = tuple(threshold for threshold in state.thresholds if units < threshold)
    if below == state.below:
        return []
    fallen = [threshold for threshold in below if threshold not in state.below]
    told: dict[str, Any] = {
        "account_id": account_id,
        "balance": credit(units),
        "below": tuple(credit(threshold) for threshold in below),
        "at_us": at_us,
    }
    if fallen:
        return [Change(stream_of(account_id), BalanceWarned(threshold=credit(fallen[-1]), **told))]
    return [Change(stream_of(account_id), BalanceRecovered(**told))]


def _ended(state: TopUps, world: World, account_id: str, at_us: int) -> list[Change]:
    """What became of the open top-up's payment."""
    assert state.open_payment_id is not None
    payment = payment_of(world, state.open_payment_id)
    if payment.received is None and payment.failed is None:
        return []
    is_paid = payment.received is not None
    failures = 0 if is_paid else state.failures + 1
    wait_us = min(RETRY_US << max(0, failures - 1), RETRY_US_MAX)
    ended = TopUpEnded(
        account_id=account_id,
        payment_id=state.open_payment_id,
        is_paid=is_paid,
        reason=None if is_paid or payment.failed is None else payment.failed.reason,
        failures=failures,
        retry_at_us=None if is_paid else at_us + wait_us,
        at_us=at_us,
    )
    changes = [Change(stream_of(account_id), ended)]
    if failures >= FAILURES_MAX and state.setting is not None:
        changes.append(_stopping(account_id, "failures", "job", at_us))
    return changes


def _start(
    state: TopUps, setting: AutoTopUpSet, world: World, units: int, at_us: int
) -> list[Change]:
    month = month_of_day(day_of(at_us))
    total = setting.amount.units + (state.month_units if state.month == month else 0)
    if total > setting.monthly_max.units:
        return []
    account_id, number = setting.account_id, state.count + 1
    payment_id = derive_id("pay", account_id, "top_up", number)
    start = StartPayment(
        payment_id=payment_id,
        account_id=account_id,
        method="card",
        processor=setting.processor,
        amount=setting.amount,
        by="job",
        at_us=at_us,
        cause="top_up",
        saved_method=setting.saved_method,
    )
    try:
        started = decide_start(start, world)
    except Refused as refused:  # the terms have changed since it was set
        return [_stopping(account_id, refused.reason.value, "job", at_us)]
    fact = TopUpStarted(
        account_id=account_id,
        number=number,
        payment_id=payment_id,
        amount=setting.amount,
        balance=credit(units),
        month=month,
        month_total=credit(total),
        at_us=at_us,
    )
    return [Change(stream_of(account_id), fact), *started]


def _stopping(account_id: str, reason: str, by: str, at_us: int) -> Change:
    fact = AutoTopUpStopped(account_id=account_id, reason=reason, by=by, at_us=at_us)
    return Change(stream_of(account_id), fact)


def _credits(field: str, amount: Amount) -> int:
    if amount.asset is not Asset.CREDIT or not 0 < amount.units <= PAYMENT_UNITS_MAX:
        raise _invalid(field, "credits, and not too many", most=PAYMENT_UNITS_MAX)
    return amount.units


def _invalid(field: str, rule: str, **facts: int) -> Refused:
    return Refused(FundsReason.TOP_UP_INVALID, field=field, rule=rule, **facts)


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"top_up": (TopUps(), evolve)}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    SetBalanceWarnings: decide_set_warnings,
    SetAutoTopUp: decide_set,
    StopAutoTopUp: decide_stop,
    CheckFunds: decide_check,
}
