"""Where one device's time goes: leased, stranded, unavailable, mined, and idle, the rest.

    leased + idle + mined + stranded + unavailable == physical      at every moment, in every sum

A device is full to some level from a moment on, until the next level. At each moment:

- what leases hold is leased, also while the device is unavailable;
- it is unavailable while its node is offline, in maintenance or silent: no signed report says that
  the device was available then (`unproven`);
- while it is unavailable, all the rest is unavailable;
- else what the present partition cannot sell (`blocked_ppm`) is stranded, and so is what is left
  when that is less than the smallest share that can be sold;
- the rest of a device of which no lease holds a part is mined while its node mines, as its provider
  states (row C-10); otherwise it is idle.

Source: conformance suite `conservation`, design marketplace 7. Which part a partition cannot
sell says `domain/hardware/sharing.py`; what is held at all, `domain/fleet/device.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from domain.frozen import replace
from domain.hardware.reasons import HardwareReason
from domain.money import PPM, Big, MoneyReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused

US_PER_MS = 1_000
PPM_US_PER_GPU_MS = PPM * US_PER_MS


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time [from_us, to_us)."""

    from_us: int
    to_us: int


@dataclass(frozen=True, slots=True)
class Level:
    """How full the device is from a moment on, until the next level."""

    from_us: int
    share_ppm: int
    blocked_ppm: int  # not leased, and not to be sold as the device is partitioned now
    is_present: bool  # registered and not retired


@dataclass(frozen=True, slots=True)
class Totals:
    """Where the time went since the first registration, unfloored."""

    physical_us: Big = 0
    leased_ppm_us: Big = 0
    stranded_ppm_us: Big = 0
    unavailable_ppm_us: Big = 0
    mined_ppm_us: Big = 0

    def booked_ms(self) -> Booked:
        """Whole GPU-milliseconds: floor(ppm x us / 10^9), on the cumulative sum."""
        return Booked(
            physical=self.physical_us // US_PER_MS,
            leased=self.leased_ppm_us // PPM_US_PER_GPU_MS,
            stranded=self.stranded_ppm_us // PPM_US_PER_GPU_MS,
            unavailable=self.unavailable_ppm_us // PPM_US_PER_GPU_MS,
            mined=self.mined_ppm_us // PPM_US_PER_GPU_MS,
        )


NO_TIME = Totals()


@dataclass(frozen=True, slots=True)
class Booked:
    """GPU-milliseconds, or whatever unit all of them have."""

    physical: int
    leased: int
    stranded: int
    unavailable: int
    mined: int = 0

    @property
    def idle(self) -> int:
        """The rest, which owns every remainder. Never below zero."""
        return self.physical - self.leased - self.stranded - self.unavailable - self.mined


def counted(
    before: Totals,
    levels: Sequence[Level],
    window: Span,
    unavailable: Iterable[Span],
    min_share_ppm: int,
    mining: Iterable[Span] = (),
) -> Totals:
    """The totals with `window` added, piece by piece: a piece ends wherever a level or a span in
    which the device is unavailable or its node mines begins or ends. Spans may overlap and reach
    beyond the window.
    """
    out, mined = tuple(unavailable), tuple(mining)
    edges = {window.from_us, window.to_us, *(level.from_us for level in levels)}
    for span in (*out, *mined):
        edges.update((span.from_us, span.to_us))
    cuts = sorted(edge for edge in edges if window.from_us <= edge <= window.to_us)
    totals = before
    for start_us, end_us in pairwise(cuts):
        level = _level_at(levels, start_us)
        if level is not None and level.is_present:
            parts = _parts(level, min_share_ppm, out=_covers(out, start_us))
            if not level.share_ppm and _covers(mined, start_us):
                parts = replace(parts, mined=parts.idle)
            totals = _added(totals, parts, end_us - start_us)
    return totals


PROOF_GAP_US = 2_000_000
"""Rows of one device that follow each other as closely as this prove what lies between them: a
clock is set right by less than that from one report to the next.
"""


def unproven(window: Span, proven: Iterable[Span]) -> tuple[Span, ...]:
    """The stretches of `window` that no span of proof covers; gaps of PROOF_GAP_US are none."""
    gaps, reached_us = [], window.from_us - PROOF_GAP_US
    for span in sorted(proven, key=lambda one: one.from_us):
        if span.from_us >= window.to_us:
            break
        if span.from_us > reached_us + PROOF_GAP_US:
            gaps.append(Span(max(reached_us, window.from_us), span.from_us))
        reached_us = max(reached_us, span.to_us)
    if reached_us + PROOF_GAP_US < window.to_us:
        gaps.append(Span(max(reached_us, window.from_us), window.to_us))
    return tuple(gaps)


def _covers(spans: Iterable[Span], at_us: int) -> bool:
    return any(span.from_us <= at_us < span.to_us for span in spans)


def _level_at(levels: Sequence[Level], at_us: int) -> Level | None:
    return next((level for level in reversed(levels) if level.from_us <= at_us), None)


def _parts(level: Level, min_share_ppm: int, *, out: bool) -> Booked:
    """What the parts of the device are at one moment, in ppm; nothing is mined yet."""
    rest = PPM - level.share_ppm
    free = rest - level.blocked_ppm
    assert free >= 0, level
    stranded = level.blocked_ppm + (free if free < min_share_ppm else 0)
    away = (0, rest) if out else (stranded, 0)
    return Booked(PPM, level.share_ppm, *away)


def _added(totals: Totals, parts: Booked, us: int) -> Totals:
    assert parts.idle >= 0, parts
    return Totals(
        physical_us=totals.physical_us + us,
        leased_ppm_us=totals.leased_ppm_us + parts.leased * us,
        stranded_ppm_us=totals.stranded_ppm_us + parts.stranded * us,
        unavailable_ppm_us=totals.unavailable_ppm_us + parts.unavailable * us,
        mined_ppm_us=totals.mined_ppm_us + parts.mined * us,
    )


# A stretch of time as anybody can recompute it, from shares alone.


@dataclass(frozen=True, slots=True)
class ShareHeld:
    """A share of the device over a stretch of time; a lease's has its id."""

    share_ppm: int
    span: Span
    lease_id: str | None = None


@dataclass(frozen=True, slots=True)
class Conserved:
    """GPU-microseconds of one device over a window, and of each lease on it."""

    booked: Booked
    per_lease: dict[str, int]


def conserve(
    window: Span,
    leases: Sequence[ShareHeld],
    blocked: Sequence[ShareHeld],
    unavailable: Sequence[Span],
    min_share_ppm: int,
) -> Conserved:
    """Where the time of `window` went; all else is clipped to it. One floor per lease, one for
    stranded, one for unavailable; idle owns every remainder.

    Raises Refused: BAD_INTERVAL, DUPLICATE_ID, SHARE_OUT_OF_RANGE, OVER_ALLOCATED.
    """
    held = (*leases, *blocked)
    _require_spans([window])
    if len({lease.lease_id for lease in leases}) != len(leases):
        raise Refused(MoneyReason.DUPLICATE_ID)
    _require_spans([*(one.span for one in held), *unavailable])
    for one in held:
        if not 1 <= one.share_ppm <= PPM:
            raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, share_ppm=one.share_ppm)
    levels = _levels_of(window, leases, blocked)
    totals = counted(NO_TIME, levels, window, unavailable, min_share_ppm)
    per_lease = {
        str(lease.lease_id): lease.share_ppm * _inside_us(lease.span, window) // PPM
        for lease in leases
    }
    booked = Booked(
        physical=totals.physical_us,
        leased=sum(per_lease.values()),
        stranded=totals.stranded_ppm_us // PPM,
        unavailable=totals.unavailable_ppm_us // PPM,
    )
    return Conserved(booked, per_lease)


def _require_spans(spans: Iterable[Span]) -> None:
    for span in spans:
        if span.from_us >= span.to_us:
            raise Refused(HardwareReason.BAD_INTERVAL, from_us=span.from_us, to_us=span.to_us)


def _inside_us(span: Span, window: Span) -> int:
    return max(0, min(span.to_us, window.to_us) - max(span.from_us, window.from_us))


def _levels_of(
    window: Span, leases: Sequence[ShareHeld], blocked: Sequence[ShareHeld]
) -> list[Level]:
    edges = {window.from_us}
    for one in (*leases, *blocked):
        edges.update((one.span.from_us, one.span.to_us))
    levels = []
    for at_us in sorted(edge for edge in edges if window.from_us <= edge < window.to_us):
        level = Level(at_us, _sum_at(leases, at_us), _sum_at(blocked, at_us), is_present=True)
        if level.share_ppm + level.blocked_ppm > PPM:
            raise Refused(HardwareReason.OVER_ALLOCATED, at_us=at_us)
        levels.append(level)
    return levels


def _sum_at(held: Sequence[ShareHeld], at_us: int) -> int:
    return sum(one.share_ppm for one in held if one.span.from_us <= at_us < one.span.to_us)
