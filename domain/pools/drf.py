"""Dominant resource fairness: whoever has least of what they need most is next.

    dominant share = max over demanded resources of tasks x demand / capacity
    next           = the smallest dominant share / weight, ties by arrival, then by id

If the next task of that user does not fit, the user is skipped and the others go on, until none
fits. Shares are compared by cross-multiplication, so there is no rounding. Source: Ghodsi et al.,
Dominant Resource Fairness (NSDI 2011); design marketplace 6; conformance suite `drf`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import total_ordering

from domain.hardware.reasons import HardwareReason
from domain.pools.reasons import PoolsReason
from domain.record import dataclass
from domain.refusal import Refused


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """A fraction over a positive whole, compared exactly: a/b < c/d when a x d < c x b."""

    part: int
    whole: int

    def __post_init__(self) -> None:
        assert self.whole > 0, self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ratio) and self.part * other.whole == other.part * self.whole

    def __lt__(self, other: Ratio) -> bool:
        return self.part * other.whole < other.part * self.whole

    def __hash__(self) -> int:
        common = _common(self.part, self.whole) or 1
        return hash((self.part // common, self.whole // common))

    def __str__(self) -> str:
        common = _common(self.part, self.whole) or 1
        return f"{self.part // common}/{self.whole // common}"


NONE = Ratio(0, 1)


def _common(one: int, other: int) -> int:
    """The greatest common divisor, by Euclid."""
    while other:
        one, other = other, one % other
    return one


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who asks for tasks of one size; what is missing in `demand` is 0."""

    name: str
    demand: Mapping[str, int]  # per task
    weight: int


@dataclass(frozen=True, slots=True)
class Allocation:
    """How many tasks each user got, what of each resource is used, and in which order."""

    tasks: Mapping[str, int]
    used: Mapping[str, int]
    order: tuple[str, ...]
    dominant_share: Mapping[str, Ratio]


def dominant_share(used: Mapping[str, int], capacity: Mapping[str, int]) -> Ratio:
    """The largest part of any resource that is taken; resources nobody has any of do not count."""
    shares = (Ratio(used.get(name, 0), whole) for name, whole in capacity.items() if whole > 0)
    return max(shares, default=NONE)


def weighted(share: Ratio, weight: int) -> Ratio:
    """A share per weight, by which users are compared."""
    return Ratio(share.part, share.whole * weight)


def fits(demand: Mapping[str, int], used: Mapping[str, int], capacity: Mapping[str, int]) -> bool:
    """Whether what is left of every resource is enough for one more task."""
    return all(used.get(name, 0) + units <= capacity.get(name, 0) for name, units in demand.items())


def allocate(
    capacity: Mapping[str, int], users: Sequence[User], tie_order: Sequence[str]
) -> Allocation:
    """Progressive filling with whole tasks.

    Raises Refused: DUPLICATE_USER, UNKNOWN_RESOURCE, EMPTY_DEMAND, BAD_WEIGHT, BAD_TIE_ORDER.
    """
    _check(capacity, users, tie_order)
    by_name = {user.name: user for user in users}
    taken = {user.name: dict.fromkeys(user.demand, 0) for user in users}
    used, tasks = dict.fromkeys(capacity, 0), dict.fromkeys(by_name, 0)
    active, order = list(tie_order), list[str]()
    while active:
        name = min(
            active,
            key=lambda one: weighted(dominant_share(taken[one], capacity), by_name[one].weight),
        )
        demand = by_name[name].demand
        if not fits(demand, used, capacity):
            active.remove(name)
            continue
        for resource, units in demand.items():
            used[resource] = used.get(resource, 0) + units
            taken[name][resource] += units
        tasks[name] += 1
        order.append(name)
    assert all(used[resource] <= whole for resource, whole in capacity.items()), used
    shares = {name: dominant_share(mine, capacity) for name, mine in taken.items()}
    return Allocation(tasks, {name: used[name] for name in capacity}, tuple(order), shares)


def _check(capacity: Mapping[str, int], users: Sequence[User], tie_order: Sequence[str]) -> None:
    names = [user.name for user in users]
    if len(set(names)) != len(names):
        raise Refused(PoolsReason.DUPLICATE_USER)
    for user in users:
        unknown = [
            name for name, units in user.demand.items() if units > 0 and name not in capacity
        ]
        if unknown:
            raise Refused(HardwareReason.UNKNOWN_RESOURCE, user=user.name, resource=unknown[0])
    for user in users:
        if not any(units > 0 for units in user.demand.values()):
            raise Refused(PoolsReason.EMPTY_DEMAND, user=user.name)
    for user in users:
        if user.weight < 1:
            raise Refused(PoolsReason.BAD_WEIGHT, user=user.name, weight=user.weight)
    if sorted(tie_order) != sorted(names):
        raise Refused(PoolsReason.BAD_TIE_ORDER)
