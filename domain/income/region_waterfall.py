"""How a region shares out a day: its infrastructure first, then who was there, then who earned.

    infra + sum(participation) + sum(usage) + carry == pool            to the unit, always
    due + arrears before == infra + arrears after + forgone            what control and ingress cost

    infra         = min(floor(pool x INFRA_MAX_PPM / 10^6), due + arrears)   to its operator
    participation = floor((pool - infra) x participation_ppm / 10^6)    by attested available time
    usage         = the rest                                            by revenue earned

However dear control is by the terms, at most half of what the nodes earned pays for it: the rest is
due another day, as arrears, or never. Else terms could call everything infrastructure, and whoever
shares a node without setting the terms would get nothing (decision 0047).

A node without work is paid for having been there. Where nobody was there by attested time, nothing
is set aside for being there: it is usage. Both parts are floored per recipient, so equal work earns
equal; what the floors leave, and what nobody earned, is the carry, which joins the next day's pool.

Source: design economics 9, after the aims of AEP-60; row K-2. Not where the pool comes from
(`domain/income/region_pool.py`), nor who may set the terms (`domain/income/region_sharing.py`).
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.money import PPM, share_out
from domain.record import dataclass

Weights = Sequence[tuple[str, int]]

INFRA_MAX_PPM = 500_000
"""So much of what a region's nodes earned pays for its infrastructure at most."""


@dataclass(frozen=True, slots=True)
class Infra:
    """Micro-credits that control and ingress cost. `arrears_max`: no more waits for better days."""

    due: int
    arrears: int
    arrears_max: int


@dataclass(frozen=True, slots=True)
class Fallen:
    """Where the pool went, in micro-credits. `forgone`: cost that nobody will ever pay."""

    infra: int
    arrears: int
    forgone: int
    participation: dict[str, int]  # by node
    usage: dict[str, int]  # by whatever the revenue was told by
    carry: int

    @property
    def shared(self) -> int:
        """What the recipients of participation and usage get together."""
        return sum(self.participation.values()) + sum(self.usage.values())


def fall(
    pool: int, infra: Infra, participation_ppm: int, available: Weights, revenue: Weights
) -> Fallen:
    """Share out one day's pool. `available`: GPU-microseconds per node; `revenue`: micro-credits
    per earner. Raises Refused like `share_out`: NEGATIVE_POOL, DUPLICATE_ID, NEGATIVE_WEIGHT.
    """
    asked = infra.due + infra.arrears
    paid = min(max(pool, 0) * INFRA_MAX_PPM // PPM, asked)
    arrears = min(asked - paid, infra.arrears_max)
    rest = pool - paid
    is_attested = any(weight for _, weight in available)
    set_aside = rest * participation_ppm // PPM if is_attested else 0
    there = share_out(set_aside, available)
    earned = share_out(rest - set_aside, revenue)
    fallen = Fallen(
        infra=paid,
        arrears=arrears,
        forgone=asked - paid - arrears,
        participation=there.by_id,
        usage=earned.by_id,
        carry=there.carry + earned.carry,
    )
    assert fallen.infra * PPM <= max(pool, 0) * INFRA_MAX_PPM, fallen
    assert fallen.infra + fallen.shared + fallen.carry == pool, fallen
    assert infra.due + infra.arrears == fallen.infra + fallen.arrears + fallen.forgone, fallen
    return fallen
