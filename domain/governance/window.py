"""A breaker over a moving window: how much may be minted or paid out in a while.

    agg' = amount + floor(agg x (W - min(W, dt)) / W);   agg' <= limit, or it is refused

`agg` fades to nothing in one window and needs no list of what happened. Any stretch of one window
lets at most twice the limit pass: the limit at once, and what fades meanwhile. A refusal changes
nothing, and a clock that runs backwards lets nothing fade. Source: design economics 11.
"""

from __future__ import annotations

from domain.funds.reasons import FundsReason
from domain.governance.reasons import GovernanceReason
from domain.record import dataclass
from domain.refusal import Refused


@dataclass(frozen=True, slots=True)
class Gauge:
    """The aggregate as it was at a moment; the beginning is nothing, long ago."""

    aggregate: int = 0
    last_us: int = 0


def faded(gauge: Gauge, window_us: int, at_us: int) -> int:
    """What is left of the aggregate at a moment: never more than it was."""
    assert window_us > 0, window_us
    passed_us = min(window_us, max(0, at_us - gauge.last_us))
    left = gauge.aggregate * (window_us - passed_us) // window_us
    assert 0 <= left <= gauge.aggregate, (gauge, left)
    return left


def let_pass(gauge: Gauge, amount: int, limit: int, window_us: int, at_us: int) -> Gauge:
    """The gauge after an amount passed. Raises Refused: AMOUNT_NOT_POSITIVE, BREAKER_LIMIT."""
    if amount <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, amount=amount)
    before = faded(gauge, window_us, at_us)
    if before + amount > limit:
        raise Refused(GovernanceReason.BREAKER_LIMIT, amount=amount, aggregate=before, limit=limit)
    return Gauge(before + amount, max(gauge.last_us, at_us))
