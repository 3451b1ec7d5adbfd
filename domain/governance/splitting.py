"""Whether one node shown as several earns more: an exact search, no sample.

    f(w) = 0 for no work, else min(cap, flat + sum over tiers of (work in the tier) x ppm)
    gains <=> some x, y >= 1 have f(x) + f(y) > f(x + y)

f bends only where a tier begins or the cap is reached, so f(x + y) - f(x) - f(y) is linear between
the lines x = b, y = b, x + y = b of its bends b, and smallest where two of them meet; further out
it no longer changes. Trying those points is trying all. If no two parts gain, no k parts do: join
them one by one. Floors at the end only take from the parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.governance.document import Tier
from domain.money import PPM
from domain.record import dataclass


@dataclass(frozen=True, slots=True)
class Gain:
    """`whole` units of work in two parts, and what they earn in millionths of a unit."""

    one: int
    other: int
    together: int
    apart: int

    @property
    def whole(self) -> int:
        return self.one + self.other


def earned_ppm(work: int, tiers: Sequence[Tier], flat: int, cap: int | None) -> int:
    """What an identity earns with so much work, in millionths of a unit, exact."""
    if work <= 0:
        return 0
    ordered = sorted(tiers, key=lambda one: one.from_units)
    ends = [one.from_units for one in ordered[1:]]
    earned = flat * PPM
    for index, tier in enumerate(ordered):
        end = min(work, ends[index]) if index < len(ends) else work
        earned += max(0, end - tier.from_units) * tier.ppm
    return earned if cap is None else min(earned, cap * PPM)


def best_split(tiers: Sequence[Tier], flat: int, cap: int | None) -> Gain | None:
    """The split in two that gains most, the smallest of equal ones; None when none gains."""
    bends = _bends(tiers, flat, cap)
    best: Gain | None = None
    for one in bends:
        others = {*bends, *(bend - one for bend in bends if bend > one)}
        for other in sorted(others):
            together = earned_ppm(one + other, tiers, flat, cap)
            apart = earned_ppm(one, tiers, flat, cap) + earned_ppm(other, tiers, flat, cap)
            if apart - together > (0 if best is None else best.apart - best.together):
                best = Gain(one, other, together, apart)
    return best


def _bends(tiers: Sequence[Tier], flat: int, cap: int | None) -> list[int]:
    """Where f bends, at least 1: whole numbers on both sides of where the cap is reached."""
    found = {1, *(one.from_units for one in tiers)}
    if cap is not None:
        found |= _reaches(tiers, flat, cap)
    return sorted(one for one in found if one >= 1)


def _reaches(tiers: Sequence[Tier], flat: int, cap: int) -> set[int]:
    """The last work that earns less than the cap, and the next."""
    low, high = 0, 1
    while earned_ppm(high, tiers, flat, None) < cap * PPM:
        low, high = high, high * 2
        if high > 2**80:  # it is never reached
            return set()
    while high - low > 1:
        middle = (low + high) // 2
        if earned_ppm(middle, tiers, flat, None) < cap * PPM:
            low = middle
        else:
            high = middle
    return {low, high}
