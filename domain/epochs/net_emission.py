"""Net emission: burned tokens may come back, slowly, from a pool that recorded burns alone feed.

    pool += burned;   release = min(cap, floor(pool / tau));   pool -= release
    sum(released) + pool at the end == pool at the start + sum(burned);   0 <= release <= cap

What is not released stays in the pool, so less than tau units never leave it. Burns are what was
recorded as burned, never the difference of two supplies. Not the schedule: that is
`domain/epochs/emission.py`. Rule: conformance suite `net_emission`; design economics 7.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.epochs.reasons import EpochsReason
from domain.record import dataclass
from domain.refusal import Refused


@dataclass(frozen=True, slots=True)
class NetEmission:
    """Token units released, epoch by epoch, and what is left in the pool for later ones."""

    released: tuple[int, ...]
    pool_end: int


def release(pool: int, tau: int, cap: int) -> int:
    """How much of a pool one epoch gives back, the epoch's burns being in the pool already.

    Raises Refused: BAD_TAU.
    """
    assert pool >= 0, pool
    assert cap >= 0, cap
    if tau < 1:
        raise Refused(EpochsReason.BAD_TAU, tau=tau)
    return min(cap, pool // tau)


def net_emission(burns: Sequence[int], pool_start: int, tau: int, cap: int) -> NetEmission:
    """The releases of a run of epochs, given what was burned in each.

    Raises Refused: BAD_TAU, NEGATIVE_BURN.
    """
    if tau < 1:
        raise Refused(EpochsReason.BAD_TAU, tau=tau)
    if any(burn < 0 for burn in burns):
        raise Refused(EpochsReason.NEGATIVE_BURN, burn=min(burns))
    pool, released = pool_start, []
    for burn in burns:
        pool += burn
        released.append(release(pool, tau, cap))
        pool -= released[-1]
    assert sum(released) + pool == pool_start + sum(burns), (released, pool)
    return NetEmission(tuple(released), pool)
