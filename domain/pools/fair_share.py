"""Fair share: what each queue is due, level by level, and what history takes off it.

    due = min(deserved, requested) + its part of what is left above that
    what is left goes to the highest priority that still asks, by over-quota weight, to `requested`
    sum of the children's due == min(parent's due, sum of what they request)     on every level

    usage = sum of GPU time x 0.5^(age / half-life) / what the pool can serve in the window

Shares are integers (parts per million of a GPU). What rounding leaves of a level goes, one by one,
to the largest remainder, ties by name. Decay is by a table of integer powers, so every machine
gets the same number. Source: design marketplace 6; the table method of design economics 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from domain.decay import integer_root
from domain.money import PPM, share_out_all
from domain.record import dataclass

STEPS = 64
"""Steps of one half-life in the table: an age is rounded down to one of them."""


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue of a level: what it is owed, what it asks for, and how it counts beyond that."""

    name: str
    deserved: int
    requested: int
    weight: int
    priority: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of the tree with the path of its ancestors, the outermost first."""

    path: tuple[str, ...]
    queue: Queue


def divide(total: int, queues: Sequence[Queue]) -> dict[str, int]:
    """What each queue of one level is due of `total`.

    Where even the deserved shares do not fit, they are cut down in proportion.
    """
    assert total >= 0, total
    owed = {queue.name: min(queue.deserved, queue.requested) for queue in queues}
    if sum(owed.values()) > total:
        return share_out_all(total, tuple(owed.items())).by_id
    due, left = dict(owed), total - sum(owed.values())
    for priority in sorted({queue.priority for queue in queues}, reverse=True):
        asking = [queue for queue in queues if queue.priority == priority]
        left -= _fill(left, asking, due)
    assert sum(due.values()) == min(total, sum(queue.requested for queue in queues)), due
    return due


def _fill(left: int, asking: Sequence[Queue], due: dict[str, int]) -> int:
    """Give `left` by weight, nobody more than asked for; how much was given."""
    given = 0
    open_ = [queue for queue in asking if due[queue.name] < queue.requested]
    while open_ and given < left:
        weights = {queue.name: queue.weight for queue in open_}
        if not any(weights.values()):  # history took it all: among themselves they are equal
            weights = dict.fromkeys(weights, 1)
        parts = share_out_all(left - given, tuple(weights.items())).by_id
        full = [q for q in open_ if due[q.name] + parts[q.name] >= q.requested]
        # Those whose part is more than they ask for are filled first; the others share anew.
        for queue in full or open_:
            part = min(parts[queue.name], queue.requested - due[queue.name])
            due[queue.name] += part
            given += part
        open_ = [queue for queue in open_ if queue not in full] if full else []
    return given


def divide_tree(total: int, leaves: Sequence[Leaf], parents: Mapping[str, Queue]) -> dict[str, int]:
    """What every queue of a tree is due, parents included: each level divides its parent's due.

    `parents` are the inner queues by name; what they request is the sum of their leaves.
    """
    due: dict[str, int] = {}
    _divide_level(total, 0, leaves, parents, due)
    return due


def _divide_level(
    total: int,
    depth: int,
    leaves: Sequence[Leaf],
    parents: Mapping[str, Queue],
    due: dict[str, int],
) -> None:
    here = [leaf.queue for leaf in leaves if len(leaf.path) == depth]
    below: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        if len(leaf.path) > depth:
            below.setdefault(leaf.path[depth], []).append(leaf)
    inner = [_asking(parents[name], children) for name, children in below.items()]
    due.update(divide(total, [*here, *inner]))
    for name, children in below.items():
        _divide_level(due[name], depth + 1, children, parents, due)


def _asking(parent: Queue, leaves: Iterable[Leaf]) -> Queue:
    requested = sum(leaf.queue.requested for leaf in leaves)
    return Queue(parent.name, parent.deserved, requested, parent.weight, parent.priority)


# History.


@lru_cache(maxsize=1)
def _table() -> tuple[int, ...]:
    """T[r] = floor(2^32 x 0.5^(r / STEPS)): the STEPS-th root of 2^(32 STEPS - r), by bisection."""
    return tuple(integer_root(1 << (32 * STEPS - r), STEPS) for r in range(STEPS))


def weight_of_age(age_us: int, half_life_us: int) -> int:
    """2^32 x 0.5^(age / half-life), the age rounded down to a 64th of a half-life."""
    assert age_us >= 0, age_us
    steps = age_us * STEPS // half_life_us
    return _table()[steps % STEPS] >> (steps // STEPS)


def decayed(usage: Iterable[tuple[int, int]], half_life_us: int) -> int:
    """GPU-microseconds of (age_us, gpu_us), each counted by its age: one floor, on the sum."""
    return sum(gpu_us * weight_of_age(age_us, half_life_us) for age_us, gpu_us in usage) >> 32


def usage_share_ppm(gpu_us: int, window_gpu_us: int) -> int:
    """What was used of what the pool can serve in the window: 24 of 100 GPU-hours are 240,000."""
    return gpu_us * PPM // max(1, window_gpu_us)


def weights_after_history(
    weights: Mapping[str, int], used_gpu_us: Mapping[str, int], window_gpu_us: int, history_ppm: int
) -> dict[str, int]:
    """Over-quota weights in ppm, less for who used more than its weight: max(0, w + k (w - u)).

    w is a queue's part of all weights, u its part of the window's capacity, k `history_ppm`.
    Where nobody keeps any weight, the weights stay as they are.
    """
    whole = sum(weights.values())
    if not history_ppm or not whole:
        return dict(weights)
    found = {}
    for name, weight in weights.items():
        share = weight * PPM // whole
        used = usage_share_ppm(used_gpu_us.get(name, 0), window_gpu_us)
        found[name] = max(0, share + history_ppm * (share - used) // PPM)
    return found if any(found.values()) else dict(weights)
