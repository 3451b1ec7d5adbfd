"""What a lease holds: credits of one or more depositors, drained in the order of their arrival.

    put in == drawn + given back + held                       for every deposit and source, always

Each deposit has a number of its own, and what is left of it goes back to where it came from: a
grant's rest restores the grant, never cash. Credits held for the federated fee are apart from those
held for usage; a lease ends when either of the two ends. Source: marketplace 2, economics 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from domain.duration import SECOND_US
from domain.frozen import replace
from domain.funds.funding import Source
from domain.gpu_time import GPU_HOUR_US, fee_for
from domain.lease.escrow import TIME_MAX_US
from domain.money import Amount, credit

FEDERATED = "federated"
"""The purpose of credits that pay the federated fee; None: they pay for usage."""


@dataclass(frozen=True, slots=True)
class EscrowPart:
    """Credits of one source held for one lease. Drained in order."""

    source: str  # "grant.{program}", "earned", "cash", "card" or "burned"
    amount: Amount
    deposit: int | None = None  # which deposit of the escrow; None: the first
    account_id: str | None = None  # whose credits they are; None: the lease's own account's
    purpose: str | None = None  # FEDERATED, or None for usage

    @property
    def number(self) -> int:
        return 1 if self.deposit is None else self.deposit

    @property
    def place(self) -> tuple[int, str]:
        """What tells one part of an escrow from the others."""
        return self.number, self.source


Held = tuple[EscrowPart, ...]


def total(parts: Iterable[EscrowPart]) -> int:
    return sum(part.amount.units for part in parts)


def for_purpose(held: Held, purpose: str | None) -> Held:
    """The part of an escrow that pays for one thing."""
    return tuple(part for part in held if part.purpose == purpose)


def collect(
    sources: Iterable[Source],
    units: int,
    *,
    lease_account_id: str,
    deposits: int,
    purpose: str | None = None,
) -> Held:
    """At most `units` of these sources in their order, as new deposits after the first `deposits`.

    A deposit is one depositor's: where the account changes, a new number begins.
    """
    parts: list[EscrowPart] = []
    number, depositor, left = deposits, None, units
    for source in sources:
        here = min(left, source.units)
        if here <= 0:
            continue
        if source.account_id != depositor:
            number, depositor = number + 1, source.account_id
        parts.append(
            EscrowPart(
                source.name,
                credit(here),
                deposit=None if number == 1 else number,
                account_id=None if depositor == lease_account_id else depositor,
                purpose=purpose,
            )
        )
        left -= here
    return tuple(parts)


def less(sources: Iterable[Source], taken: Held, lease_account_id: str) -> tuple[Source, ...]:
    """What is left of these sources: one decision must not take the same credits twice."""
    gone: dict[tuple[str, str], int] = {}
    for part in taken:
        whose = (part.account_id or lease_account_id, part.source)
        gone[whose] = gone.get(whose, 0) + part.amount.units
    left = (
        replace(one, units=one.units - gone.get((one.account_id, one.name), 0)) for one in sources
    )
    return tuple(one for one in left if one.units > 0)


def take(held: Held, units: int) -> Held:
    """The first `units` of an escrow, in the order it is drained."""
    taken, left = [], units
    for part in held:
        here = min(left, part.amount.units)
        if here:
            taken.append(replace(part, amount=credit(here)))
            left -= here
    assert left == 0, (held, units)
    return tuple(taken)


def without(held: Held, taken: Held) -> Held:
    """An escrow less some of its parts."""
    less: dict[tuple[int, str], int] = {}
    for part in taken:
        less[part.place] = less.get(part.place, 0) + part.amount.units
    rest = [
        replace(part, amount=credit(part.amount.units - less.pop(part.place, 0))) for part in held
    ]
    assert not less, (held, taken)
    assert all(part.amount.units >= 0 for part in rest), (held, taken)
    return tuple(part for part in rest if part.amount.units)


def deposits_of(parts: Iterable[EscrowPart]) -> int:
    """The highest number of a deposit among these; 0 when there is none."""
    return max((part.number for part in parts), default=0)


def fee_funds_end_us(opened_at_us: int, units: int, fee_per_hour: int) -> int:
    """The last whole second after opening at which a fee by time is within `units`, as a moment."""
    seconds = (TIME_MAX_US - opened_at_us) // SECOND_US
    if fee_per_hour:
        funded = ((units + 1) * (GPU_HOUR_US // SECOND_US) - 1) // fee_per_hour
        seconds = min(seconds, funded)
        assert fee_for(seconds * SECOND_US, fee_per_hour) <= units
    return opened_at_us + seconds * SECOND_US
