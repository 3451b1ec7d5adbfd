"""When does the money end? Of one lease: its funds. Of an account: the balance that could go on.

    cost(t) = sum over leases of rate_i x max(0, min(t, term end_i) - funds end_i)      exact
    cost(lasts_until) <= balance < cost(lasts_until + 1 s)

A lease first uses up what is held for it; from its funds end on it would draw on the balance at its
own rate, until its term ends. Rates are rationals and never rounded, as those of an escrow. What
is deposited, closed or opened later is not foreseen. Pure. Source: design economics 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.duration import SECOND_US
from domain.gpu_time import GPU_HOUR_US
from domain.lease.escrow import TIME_MAX_US
from domain.money import PPM
from domain.record import dataclass


@dataclass(frozen=True, slots=True)
class Draw:
    """A running lease: its price for all its devices, and when it would begin to draw, and end."""

    price_per_gpu_hour: int
    gpu_ppm_total: int
    funds_end_us: int
    term_end_us: int | None = None

    @property
    def rate(self) -> int:
        """Micro-credits per hour, times 10^6."""
        return self.price_per_gpu_hour * self.gpu_ppm_total

    def drawn_us(self, until_us: int) -> int:
        """For how long it has drawn on the balance by a moment."""
        ends_us = until_us if self.term_end_us is None else min(until_us, self.term_end_us)
        return max(0, ends_us - self.funds_end_us)


_EXACT = PPM * GPU_HOUR_US
"""`rate` x microseconds is in this part of a micro-credit."""


def cost(draws: Sequence[Draw], until_us: int) -> int:
    """What they have drawn by a moment, in `_EXACT` parts of a micro-credit: nothing is floored."""
    return sum(draw.rate * draw.drawn_us(until_us) for draw in draws)


def lasts_until_us(balance: int, draws: Sequence[Draw], now_us: int) -> int | None:
    """The last whole second after `now_us` at which the balance still covers what was drawn.

    None: it lasts for ever, as far as there are moments (year 2255).
    """
    assert balance >= 0, balance
    covered = balance * _EXACT
    low, high = 0, (TIME_MAX_US - now_us) // SECOND_US
    if cost(draws, now_us + high * SECOND_US) <= covered:
        return None
    while low < high - 1:
        middle = (low + high) // 2
        if cost(draws, now_us + middle * SECOND_US) <= covered:
            low = middle
        else:
            high = middle
    return now_us + low * SECOND_US


def charge_per_hour(draws: Sequence[Draw]) -> int:
    """What they cost together in an hour in which all of them run, floored once on the sum."""
    return sum(draw.rate for draw in draws) // PPM
