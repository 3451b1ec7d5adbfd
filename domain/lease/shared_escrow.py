"""One escrow for all leases of a job: they draw on it together, and end together.

    end == the last whole second after the first opening at which sum(charges) <= escrow
    held >= sum over members of (largest charge still possible - charged)            always
    put in == drawn + returned + taken back + held           for every deposit and source, always

Rates are rationals and never rounded per second. The end is forecast as if all time not reported
were billed, and anew when a lease opens, ends or is settled, and when somebody puts more in or a
payment is reversed; what has ended stays ended. Deposits are drained in order of their arrival,
whichever lease draws. A lease of a job with an escrow that names neither a term nor funds of its
own draws on it. What is left when nothing runs any more goes back, deposit by deposit.
Source: marketplace 2; decision 0031.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from domain.duration import SECOND_US
from domain.frozen import replace
from domain.gpu_time import charge_for
from domain.lease.budgets import Counted
from domain.lease.escrow import TIME_MAX_US
from domain.lease.funds import Held, deposits_of, total, without
from domain.money import PPM, Amount, Big
from domain.stream import Stream, World

# Facts. Stream `escrow:{escrow_id}`; the id is that of the job.


@dataclass(frozen=True, slots=True, kw_only=True)
class EscrowFunded:
    escrow_id: str
    account_id: str  # the job's
    depositor_account_id: str
    parts: Held
    put_in: Amount  # so far, these parts included
    ends_us: int | None  # None: none of its leases runs
    at_us: int
    counted: tuple[Counted, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EscrowMemberTold:
    """A lease that draws on it, as it is from now on."""

    escrow_id: str
    lease_id: str
    phase: str  # reserved, running, closed, over
    gpu_ppm: int  # the share of all its devices together
    price_per_gpu_hour: Amount
    opened_at_us: int | None
    until_us: int | None  # of a lease that is closed
    ends_us: int | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EscrowDrawn:
    """What an accrual of one lease took. `charged`: by that lease so far."""

    escrow_id: str
    lease_id: str
    parts: Held
    charged: Amount
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EscrowReturned:
    """What is left goes back, each deposit to whoever made it."""

    escrow_id: str
    account_id: str
    parts: Held
    at_us: int


@dataclass(frozen=True, slots=True)
class Allotted:
    """What is left for one lease of an escrow that cannot pay all that its leases have used."""

    lease_id: str
    units: Big


@dataclass(frozen=True, slots=True, kw_only=True)
class EscrowFundsTaken:
    """Money of a payment that was reversed leaves it. `allotted`: it is short, and each lease has
    floor(left x due / sum of due) of what is left. The units left over go back with the rest.
    """

    escrow_id: str
    account_id: str  # whose payment it was, and who owes what the escrow no longer pays
    payment_id: str
    parts: Held
    allotted: tuple[Allotted, ...] | None
    ends_us: int | None
    at_us: int


Fact: TypeAlias = EscrowFunded | EscrowMemberTold | EscrowDrawn | EscrowReturned | EscrowFundsTaken

MEMBERS_MAX = 128
"""Leases that draw on one escrow at once: each opening tells all of them their new end."""

# State.


@dataclass(frozen=True, slots=True)
class Member:
    """A lease that draws, or may still draw, on an escrow."""

    gpu_ppm: int
    price: Big
    opened_at_us: int | None = None
    until_us: int | None = None
    charged: Big = 0
    allotted: Big | None = None  # what is left for it, where the escrow is short

    def most(self, until_us: int) -> int:
        """The largest charge possible up to a moment."""
        if self.opened_at_us is None:
            return 0
        end_us = until_us if self.until_us is None else self.until_us
        ran_us = max(0, end_us - self.opened_at_us)
        return charge_for(self.gpu_ppm * ran_us // PPM, self.price)

    def due(self, until_us: int) -> int:
        """What of it is not drawn yet."""
        due = max(0, self.most(until_us) - self.charged)
        return due if self.allotted is None else min(due, self.allotted)


@dataclass(frozen=True, slots=True)
class Escrow:
    """`members` are the leases that are not settled."""

    account_id: str = ""
    held: Held = ()
    deposits: int = 0
    put_in: Big = 0
    members: dict[str, Member] = field(default_factory=dict)
    first_us: int | None = None  # the opening whole seconds are counted from
    ends_us: int | None = None
    counted: tuple[Counted, ...] = ()
    short_of: str | None = None

    @property
    def running(self) -> dict[str, Member]:
        return {
            lease_id: one
            for lease_id, one in self.members.items()
            if one.opened_at_us is not None and one.until_us is None
        }

    @property
    def is_short(self) -> bool:
        """Whether it cannot pay all that leases on it have used: what is left is dealt out."""
        return any(one.allotted is not None for one in self.members.values())

    def for_lease(self, lease_id: str) -> int:
        """The units one accrual of a lease may draw at most."""
        member = self.members[lease_id]
        return total(self.held) if member.allotted is None else member.allotted


def evolve(escrow: Escrow, fact: Fact) -> Escrow:
    match fact:
        case EscrowFunded():
            return replace(
                escrow,
                account_id=fact.account_id,
                held=(*escrow.held, *fact.parts),
                deposits=max(escrow.deposits, deposits_of(fact.parts)),
                put_in=fact.put_in.units,
                ends_us=fact.ends_us or escrow.ends_us,
                counted=(*escrow.counted, *fact.counted),
            )
        case EscrowMemberTold():
            return _with_member(escrow, fact)
        case EscrowDrawn():
            member = escrow.members[fact.lease_id]
            left = member.allotted
            if left is not None:
                left -= total(fact.parts)
            drawn = replace(member, charged=fact.charged.units, allotted=left)
            members = {**escrow.members, fact.lease_id: drawn}
            return replace(escrow, held=without(escrow.held, fact.parts), members=members)
        case EscrowReturned():
            return replace(escrow, held=without(escrow.held, fact.parts), short_of=None)
        case EscrowFundsTaken():
            units = {one.lease_id: one.units for one in fact.allotted or ()}
            members = {
                lease_id: replace(one, allotted=units.get(lease_id, one.allotted))
                for lease_id, one in escrow.members.items()
            }
            return replace(
                escrow,
                held=without(escrow.held, fact.parts),
                members=members,
                short_of=fact.account_id,
                ends_us=fact.ends_us,
            )
        case _:
            assert_never(fact)


def _with_member(escrow: Escrow, fact: EscrowMemberTold) -> Escrow:
    members = dict(escrow.members)
    if fact.phase == "over":
        members.pop(fact.lease_id, None)
    else:
        was = members.get(fact.lease_id, Member(fact.gpu_ppm, fact.price_per_gpu_hour.units))
        members[fact.lease_id] = replace(
            was, opened_at_us=fact.opened_at_us, until_us=fact.until_us
        )
    first_us = escrow.first_us
    if first_us is None:
        first_us = fact.opened_at_us
    if not members:
        first_us = None  # the next one to open is the first again
    return replace(
        escrow, members=members, first_us=first_us, ends_us=fact.ends_us if members else None
    )


def stream_of(escrow_id: str) -> Stream[Escrow]:
    return Stream("escrow", escrow_id)


def escrow_of(world: World, escrow_id: str) -> Escrow:
    return world.state(stream_of(escrow_id))


# When it ends.


def shared_end_us(first_us: int, members: Iterable[Member], units: int, at_us: int) -> int:
    """The last whole second after `first_us` at which all that may still be charged is within
    `units`, but not before `at_us`: then nothing more than is due by then can be paid.

    Free leases, or what is funded beyond the calendar, end at `TIME_MAX_US`.
    """
    drawing = list(members)

    def is_funded(moment_us: int) -> bool:
        return sum(one.due(moment_us) for one in drawing) <= units

    low, high = 0, max(0, (TIME_MAX_US - first_us) // SECOND_US)
    while low < high:
        middle = (low + high + 1) // 2
        if is_funded(first_us + middle * SECOND_US):
            low = middle
        else:
            high = middle - 1
    return max(at_us, first_us + low * SECOND_US)


def end_of(escrow: Escrow, at_us: int) -> int | None:
    """The shared end as it is forecast at a moment; None: nothing runs. What has ended stays so."""
    if not escrow.running or escrow.first_us is None:
        return None
    if escrow.ends_us is not None and escrow.ends_us <= at_us:
        return escrow.ends_us
    return shared_end_us(escrow.first_us, escrow.members.values(), total(escrow.held), at_us)
