"""Escrow: how long it lasts, and who gets what of it at the end. Everything on it ends together.

    charge(funds end) <= escrow < charge(funds end + 1 s)          exact to the whole second
    sum(paid) + sum(refunds) == deposits - reversed;   sum(paid) + sum(owed) == sum(due)

Rates are rationals and never rounded per second. A late timer still closes at the funds end, so
nobody runs for free and no balance is ever negative. Rule: conformance suite `escrow`.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.duration import SECOND_US
from domain.funds.reasons import FundsReason
from domain.gpu_time import GPU_HOUR_US, charge_for
from domain.record import dataclass
from domain.refusal import Refused

TIME_MAX_US = 2**53 - 1
"""No moment in a fact is later (year 2255): what never runs out ends there."""


def funded_gpu_us(escrow_units: int, price_per_gpu_hour: int) -> int:
    """U_max: the most GPU-microseconds whose charge is within the escrow; the price is above 0."""
    assert escrow_units >= 0, escrow_units
    assert price_per_gpu_hour > 0, price_per_gpu_hour
    return ((escrow_units + 1) * GPU_HOUR_US - 1) // price_per_gpu_hour


def funds_end_us(
    opened_at_us: int, escrow_units: int, price_per_gpu_hour: int, gpu_ppm_total: int
) -> int:
    """The last whole second after opening at which the charge is within the escrow, as a moment.

    `gpu_ppm_total` is the share of all devices together (one whole GPU: 1,000,000). A free lease,
    or one funded beyond the calendar, ends at the last whole second before `TIME_MAX_US`.
    """
    assert gpu_ppm_total > 0, gpu_ppm_total
    seconds_max = (TIME_MAX_US - opened_at_us) // SECOND_US
    assert seconds_max >= 0, opened_at_us
    if not price_per_gpu_hour:
        return opened_at_us + seconds_max * SECOND_US
    # One second of `gpu_ppm_total` ppm is exactly that many GPU-microseconds: nothing to floor.
    funded = funded_gpu_us(escrow_units, price_per_gpu_hour) // gpu_ppm_total
    seconds = min(funded, seconds_max)
    assert charge_for(seconds * gpu_ppm_total, price_per_gpu_hour) <= escrow_units
    return opened_at_us + seconds * SECOND_US


@dataclass(frozen=True, slots=True)
class Deposit:
    """Money put into an escrow; `reversed` is what the bank takes back after the run."""

    depositor: str
    amount: int
    reversed: int = 0


@dataclass(frozen=True, slots=True)
class Rate:
    """What one payee earns per second."""

    payee: str
    rate_per_second: int


@dataclass(frozen=True, slots=True)
class Refund:
    depositor: str
    amount: int


@dataclass(frozen=True, slots=True)
class Settled:
    """How an escrow came out. `end_second` is None when nothing is ever due."""

    end_second: int | None
    ran_seconds: int
    paid: dict[str, int]
    owed: dict[str, int]
    refunds: tuple[Refund, ...]


def settle(deposits: Sequence[Deposit], rates: Sequence[Rate], elapsed_seconds: int) -> Settled:
    """Pay the payees, first deposit first, and give the rest back to its depositors.

    Raises Refused: BAD_DEPOSIT, DUPLICATE_PAYEE, BAD_RATE, NEGATIVE_ELAPSED.
    """
    _check(deposits, rates, elapsed_seconds)
    per_second = sum(rate.rate_per_second for rate in rates)
    end = sum(deposit.amount for deposit in deposits) // per_second if per_second else None
    ran = elapsed_seconds if end is None else min(elapsed_seconds, end)
    due = {rate.payee: rate.rate_per_second * ran for rate in rates}
    left = sum(deposit.amount - deposit.reversed for deposit in deposits)
    paid = _pay(due, left)
    return Settled(
        end_second=end,
        ran_seconds=ran,
        paid=paid,
        owed={payee: due[payee] - paid[payee] for payee in due},
        refunds=_refund(deposits, sum(paid.values())),
    )


def _check(deposits: Sequence[Deposit], rates: Sequence[Rate], elapsed_seconds: int) -> None:
    sound = all(d.amount > 0 and 0 <= d.reversed <= d.amount for d in deposits)
    if not deposits or not sound:
        raise Refused(FundsReason.BAD_DEPOSIT)
    if len({rate.payee for rate in rates}) != len(rates):
        raise Refused(FundsReason.DUPLICATE_PAYEE)
    if any(rate.rate_per_second < 0 for rate in rates):
        raise Refused(FundsReason.BAD_RATE)
    if elapsed_seconds < 0:
        raise Refused(FundsReason.NEGATIVE_ELAPSED, elapsed_seconds=elapsed_seconds)


def _pay(due: dict[str, int], left: int) -> dict[str, int]:
    """All that is due, or, after a reversal, what is left in proportion."""
    whole = sum(due.values())
    if whole <= left:
        return due
    return pro_rata(due, left)


def pro_rata(due: dict[str, int], left: int) -> dict[str, int]:
    """floor(left x due / sum of due) for each: what is left of an escrow that is short. The units
    left over are the depositors'.
    """
    whole = sum(due.values())
    return {payee: left * owed // whole for payee, owed in due.items()}


def _refund(deposits: Sequence[Deposit], drawn: int) -> tuple[Refund, ...]:
    refunds: list[Refund] = []
    for deposit in deposits:
        held = deposit.amount - deposit.reversed
        taken = min(held, drawn)
        drawn -= taken
        refunds.append(Refund(deposit.depositor, held - taken))
    assert drawn == 0, drawn
    return tuple(refunds)
