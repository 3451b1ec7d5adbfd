"""Emission: how many tokens an epoch may bring into being, from segments fixed in advance.

    emission(epoch) = floor(A (k + 1) / N) - floor(A k / N),   k = epoch - start
    sum over a segment == A exactly;   sum over all epochs <= cap

What a cap withholds is never emitted later. Neither price nor demand enters. Rule: conformance
suite `emission`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from domain.epochs.reasons import EpochsReason
from domain.money import Big
from domain.record import dataclass
from domain.refusal import Refused


@dataclass(frozen=True, slots=True)
class EmissionSegment:
    """`total` units emitted over `n_epochs` epochs from `start_epoch`. The ledger's epochs count
    from 1, and so do its segments; the formula itself takes any index from 0 on.
    """

    start_epoch: int
    n_epochs: int
    total: Big


def check_segments(segments: Sequence[EmissionSegment]) -> None:
    """Touching segments are fine. Raises Refused: BAD_SEGMENT, SEGMENTS_OVERLAP."""
    if any(s.n_epochs < 1 or s.start_epoch < 0 or s.total < 0 for s in segments):
        raise Refused(EpochsReason.BAD_SEGMENT)
    ordered = sorted(segments, key=lambda segment: segment.start_epoch)
    for one, following in pairwise(ordered):
        if one.start_epoch + one.n_epochs > following.start_epoch:
            raise Refused(EpochsReason.SEGMENTS_OVERLAP, start_epoch=following.start_epoch)


def scheduled_through(segments: Sequence[EmissionSegment], epoch: int) -> int:
    """Units scheduled in all epochs up to and including this one."""
    emitted = 0
    for segment in segments:
        passed = min(max(epoch - segment.start_epoch + 1, 0), segment.n_epochs)
        emitted += segment.total * passed // segment.n_epochs
    return emitted


def scheduled(segments: Sequence[EmissionSegment], epoch: int) -> int:
    """Units scheduled in this epoch alone."""
    return scheduled_through(segments, epoch) - scheduled_through(segments, epoch - 1)


@dataclass(frozen=True, slots=True)
class Emitted:
    """What one epoch emits, and all epochs up to and including it."""

    emission: int
    cumulative: int


def emitted(
    segments: Sequence[EmissionSegment], epochs: Sequence[int], cap: int | None = None
) -> list[Emitted]:
    """The emission of each asked epoch under a cap on everything ever emitted.

    Clamping each epoch to what the cap has left is the same as clamping the running total.
    Raises Refused: BAD_SEGMENT, SEGMENTS_OVERLAP, BAD_EPOCH.
    """
    check_segments(segments)
    if any(epoch < 0 for epoch in epochs):
        raise Refused(EpochsReason.BAD_EPOCH)

    def through(epoch: int) -> int:
        total = scheduled_through(segments, epoch)
        return total if cap is None else min(total, cap)

    return [Emitted(through(n) - (through(n - 1) if n else 0), through(n)) for n in epochs]
