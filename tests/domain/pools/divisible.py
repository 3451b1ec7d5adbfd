"""Dominant resource fairness of divisible tasks: the four properties hold for it exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from domain.pools.drf import NONE, Ratio, User, dominant_share


def divide(capacity: Mapping[str, int], users: Sequence[User]) -> dict[str, Ratio]:
    """The divisible form: how many tasks, as exact fractions, each user gets.

    Weighted dominant shares grow together; when a resource is used up, everybody who demands it
    stops, and the others go on. This is the form for which the four properties hold exactly.
    """
    left = {name: Ratio(units, 1) for name, units in capacity.items() if units > 0}
    found = {user.name: NONE for user in users}
    growing = {user.name: rates for user in users if (rates := _rates(user, capacity)) is not None}
    while growing:
        pace = {
            name: _sum(
                _times(rates.tasks, Ratio(rates.demand.get(name, 0), 1))
                for rates in growing.values()
            )
            for name in left
        }
        # How far everybody can grow before the first resource is used up.
        step = min(_over(left[name], rate) for name, rate in pace.items() if rate.part > 0)
        for user, rates in growing.items():
            found[user] = _sum((found[user], _times(rates.tasks, step)))
        left = {name: _less(whole, _times(pace[name], step)) for name, whole in left.items()}
        full = {name for name, whole in left.items() if whole.part == 0}
        growing = {
            user: rates
            for user, rates in growing.items()
            if not any(rates.demand.get(name, 0) for name in full)
        }
        left = {name: whole for name, whole in left.items() if name not in full}
    return found


@dataclass(frozen=True, slots=True)
class _Rates:
    demand: Mapping[str, int]
    tasks: Ratio  # per unit of weighted dominant share


def _rates(user: User, capacity: Mapping[str, int]) -> _Rates | None:
    """Tasks that one unit of weighted dominant share is; None where none can ever run."""
    if any(units > 0 and not capacity.get(name, 0) for name, units in user.demand.items()):
        return None
    one = dominant_share(user.demand, capacity)
    return _Rates(user.demand, _lowest(user.weight * one.whole, one.part))


def _lowest(part: int, whole: int) -> Ratio:
    common = gcd(part, whole) or 1
    return Ratio(part // common, whole // common)


def _sum(ratios: Iterable[Ratio]) -> Ratio:
    part, whole = 0, 1
    for one in ratios:
        part, whole = part * one.whole + one.part * whole, whole * one.whole
        common = gcd(part, whole)
        part, whole = part // common, whole // common
    return Ratio(part, whole)


def _less(one: Ratio, other: Ratio) -> Ratio:
    return _lowest(one.part * other.whole - other.part * one.whole, one.whole * other.whole)


def _times(one: Ratio, other: Ratio) -> Ratio:
    return _lowest(one.part * other.part, one.whole * other.whole)


def _over(one: Ratio, other: Ratio) -> Ratio:
    return _lowest(one.part * other.whole, one.whole * other.part)
