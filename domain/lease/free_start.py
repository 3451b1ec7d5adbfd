"""How long the start of a program is free, and when it ceases to be.

    free of a start == at_most_us        while fewer than `failed_per_hour` starts failed in an hour
                    == 0                 from then on: billed since the node took the work up
    unpaid before `ready` <= free        the executor says `ready` when the program's start has
                                         succeeded, and when the free time is over at the latest
    failed <=> paid time < free time     of a start that its node took up and that is over

What is paid is paid by signed rows of the lease like any other time; nothing is charged afterwards.
So an owner gains nothing by a wrong word: `ready` said at once, which it could always say, is worth
more to it than any start that it lets fail. A renter gains at most `failed_per_hour` x `at_most_us`
an hour by starts that follow on each other, and `at_most_us` for each lease that it holds at once.
A start never counts against the renter where the node or the network ended it, where the node did
not say `ready` in time, and where a command ended by itself with exit code 0: that was short work.

Both numbers stand in the tariff that the lease was reserved under (`domain/prices/tariff.py`); of a
version without them the whole time before `ready` is free, as it was. Decision 0073.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.duration import HOUR_US
from domain.lease.close_codes import fault_of
from domain.prices.tariff import FAILED_STARTS_MAX, FreeStart
from domain.stream import Stream

NODES_SIDE = ("provider", "network")
"""Parties whose fault is never the renter's failed start."""

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFailed:
    """Stream `starts:{account_id}`, of the renter: a lease ended before it had been paid for as
    long as its start was free.
    """

    account_id: str
    lease_id: str
    node_id: str
    free_us: int  # from the moment the node took the work up
    paid_us: int
    at_us: int


# What is remembered.


@dataclass(frozen=True, slots=True)
class Starts:
    """When the newest starts of an account failed."""

    failed_us: tuple[int, ...] = ()

    def failed_since(self, at_us: int) -> int:
        return sum(1 for one in self.failed_us if one > at_us)


def evolve(state: Starts, fact: StartFailed) -> Starts:
    return Starts((*state.failed_us, fact.at_us)[-FAILED_STARTS_MAX:])


def starts_stream(account_id: str) -> Stream[Starts]:
    return Stream("starts", account_id)


# How we decide.


def free_us(rule: FreeStart | None, starts: Starts, at_us: int) -> int | None:
    """How much of a start is free that is taken up now; None: all of it, the tariff has no rule."""
    if rule is None:
        return None
    is_used_up = starts.failed_since(at_us - HOUR_US) >= rule.failed_per_hour
    return 0 if is_used_up else rule.at_most_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A start that is over. `ready_us` None: the node never said it."""

    taken_up_us: int
    free_us: int | None  # as it was told to the node
    ready_us: int | None
    closed_us: int
    paid_us: int
    code: int
    is_short_work: bool  # a command that ended by itself with exit code 0

    @property
    def was_free_us(self) -> int:
        """What of it was free."""
        until_us = self.closed_us if self.ready_us is None else self.ready_us
        return max(0, min(self.free_us or 0, until_us - self.taken_up_us))

    @property
    def is_overdue(self) -> bool:
        """Whether the node did not say `ready` when the free time was over."""
        return self.ready_us is None and self.closed_us - self.taken_up_us > (self.free_us or 0)

    @property
    def has_failed(self) -> bool:
        """Whether it counts against the renter."""
        if self.free_us is None or self.is_short_work or self.is_overdue:
            return False
        return fault_of(self.code) not in NODES_SIDE and self.paid_us < self.was_free_us


STREAMS: dict[str, tuple[Any, Any]] = {"starts": (Starts(), evolve)}
DECIDERS: dict[type[Any], Any] = {}
