"""What an account owes the network, how it becomes good again, and the reserve for what never does.

    owed > 0  =>  no new lease           a guard inside the append (`ledger/books/chart.py`)
    sum(owed so far) == owed now + repaid + written off

A debt arises when money that was spent is taken back (`domain/funds/payment.py`) or a fee finds
nothing to draw. It is repaid before anything else: whatever comes in as earned, cash or card
credits goes to the debt first, in the same append, and what came in otherwise follows by
`RepayDebt`. Grants and burned credits repay nothing: no money of the account is behind them. A
debt nobody will pay is written off against the chargeback reserve, which the operator sets aside
from take revenue; so a provider keeps what a renter paid with money that was taken back. Source:
design economics 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from domain.funds.reasons import FundsReason
from domain.money import Amount, Asset, credit
from domain.parties.account import existing_account
from domain.prices.reasons import PricesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, Stream, World

REPAYS = ("earned", "cash", "card")
"""Sources that repay a debt, in this order."""
RESERVE = "network:chargeback_reserve"
REVENUE = "network:revenue:take"
AMOUNT_UNITS_MAX = 10**15

# Facts.


@dataclass(frozen=True, slots=True)
class Repaid:
    source: str
    amount: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class DebtRepaid:
    """Stream `debt:{account_id}`."""

    account_id: str
    paid: tuple[Repaid, ...]  # in the order of REPAYS
    cause: str  # the payment, deposit or command that brought it about
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DebtWrittenOff:
    """The reserve pays what the account does not. Stream `debt:{account_id}`."""

    account_id: str
    amount: Amount
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveFunded:
    """Take revenue set aside for chargebacks. Stream `reserve:chargeback`."""

    amount: Amount
    by: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class RepayDebt:
    """Credits that came back to an account with a debt repay it: refunds of leases, sweeps."""

    account_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOffDebt:
    account_id: str
    amount: Amount
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FundReserve:
    amount: Amount
    by: str
    at_us: int


# State: how much of it there was; the present debt is in the books.


@dataclass(frozen=True, slots=True)
class Debt:
    repaid: int = 0
    written_off: int = 0


@dataclass(frozen=True, slots=True)
class Reserve:
    funded: int = 0


DebtFact: TypeAlias = DebtRepaid | DebtWrittenOff


def evolve(state: Debt, fact: DebtFact) -> Debt:
    if isinstance(fact, DebtWrittenOff):
        return Debt(state.repaid, state.written_off + fact.amount.units)
    return Debt(state.repaid + sum(part.amount.units for part in fact.paid), state.written_off)


def evolve_reserve(state: Reserve, fact: ReserveFunded) -> Reserve:
    return Reserve(state.funded + fact.amount.units)


# Decisions.


def owed_by(world: World, account_id: str) -> int:
    """Micro-credits an account owes now."""
    return world.balance(f"party:{account_id}:owed")


RESERVE_STREAM: Stream[Reserve] = Stream("reserve", "chargeback")


def debt_stream(account_id: str) -> Stream[Debt]:
    return Stream("debt", account_id)


def repayments(
    world: World,
    account_id: str,
    cause: str,
    at_us: int,
    *,
    moved: Mapping[str, int],
    owed_more: int = 0,
) -> list[Change]:
    """What repays the debt once the changes of the same append have `moved` so many micro-credits
    into each source and added `owed_more` to the debt.
    """
    stream = debt_stream(account_id)
    owed = owed_by(world, account_id) + owed_more
    if not owed:
        return []
    world.state(stream)  # two at once would both repay the same debt
    paid = []
    for source in REPAYS:
        held = world.balance(f"party:{account_id}:{source}") + moved.get(source, 0)
        units = min(owed, held)
        if units > 0:
            paid.append(Repaid(source, credit(units)))
            owed -= units
    if not paid:
        return []
    fact = DebtRepaid(account_id=account_id, paid=tuple(paid), cause=cause, at_us=at_us)
    return [Change(stream, fact)]


def decide_repay(command: RepayDebt, world: World) -> list[Change]:
    """Nothing owed, or nothing there to repay it with, is nothing done."""
    existing_account(world, command.account_id)
    return repayments(world, command.account_id, "set_off", command.at_us, moved={})


def decide_write_off(command: WriteOffDebt, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE (more than is
    owed), CREDIT_TOO_LOW (more than the reserve has).
    """
    existing_account(world, command.account_id)
    units = _credits(command.amount)
    owed = owed_by(world, command.account_id)
    if units > owed:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, units=units, owed=owed)
    reserve = world.balance(RESERVE)
    if units > reserve:
        raise Refused(FundsReason.CREDIT_TOO_LOW, units=units, reserve=reserve)
    fact = DebtWrittenOff(
        account_id=command.account_id,
        amount=command.amount,
        reason=command.reason,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(debt_stream(command.account_id), fact)]


def decide_fund(command: FundReserve, world: World) -> list[Change]:
    """Raises Refused: AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE, CREDIT_TOO_LOW (more than the
    take revenue there is).
    """
    units = _credits(command.amount)
    revenue = world.balance(REVENUE)
    if units > revenue:
        raise Refused(FundsReason.CREDIT_TOO_LOW, units=units, revenue=revenue)
    fact = ReserveFunded(amount=command.amount, by=command.by, at_us=command.at_us)
    return [Change(RESERVE_STREAM, fact)]


def _credits(amount: Amount) -> int:
    if amount.units <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, units=amount.units)
    if amount.asset is not Asset.CREDIT or amount.units > AMOUNT_UNITS_MAX:
        raise Refused(
            PricesReason.AMOUNT_OUT_OF_RANGE, asset=amount.asset.value, units=amount.units
        )
    return amount.units


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "debt": (Debt(), evolve),
    "reserve": (Reserve(), evolve_reserve),
}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    RepayDebt: decide_repay,
    WriteOffDebt: decide_write_off,
    FundReserve: decide_fund,
}
