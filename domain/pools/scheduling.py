"""Which waiting request of a pool is next: a pure function of what a decision looked at.

    first come    the earliest that fits
    fair share    level by level a queue below its deserved share, then the one that holds least of
                  what it is due; its earliest request
    drf           the queue with the smallest dominant share / weight; its earliest request

Whose request does not fit is skipped and the others go on. Once the earliest request has waited
for the pool's patience, later ones that could take what it needs are not placed before it. The
policy's precedence says what compares first: priority, share, arrival. Source: design marketplace
5 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.money import Big
from domain.pools.drf import NONE, Ratio, dominant_share, weighted
from domain.pools.fair_share import Leaf, Queue, divide_tree, weights_after_history
from domain.pools.pool import ARRIVAL, DRF, FAIR_SHARE, FIRST_COME, PRIORITY, PoolPolicy, PoolQueue
from domain.record import dataclass

RULES = {FIRST_COME: "first_come/1", FAIR_SHARE: "fair_share/1", DRF: "drf/1"}
GPU, GPU_MEMORY, CPU_CORES, RAM_MIB = "gpu", "gpu_memory", "cpu_cores", "ram_mib"
"""`gpu` and `gpu_memory` are counted in parts per million of one device."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """So much of one resource."""

    resource: str
    units: Big


def quantities(units: Mapping[str, int]) -> tuple[Quantity, ...]:
    """By resource, without those of which there is nothing."""
    return tuple(Quantity(name, amount) for name, amount in units.items() if amount)


@dataclass(frozen=True, slots=True)
class Holding:
    """What one queue holds now, and what it used before, decayed."""

    queue: str
    held: tuple[Quantity, ...]
    used_gpu_us: Big


@dataclass(frozen=True, slots=True)
class Waiting:
    """One waiting request as the decision saw it."""

    request_id: str
    queue: str
    place: int
    is_gang: bool
    demand: tuple[Quantity, ...]
    fits: bool  # there is room for it now, all of it
    delays_first: bool  # it would take devices that the earliest request could use
    since_us: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a decision looks at, beside the policy."""

    capacity: tuple[Quantity, ...]
    held: tuple[Holding, ...]
    waiting: tuple[Waiting, ...]  # in order of place
    window_gpu_us: int
    at_us: int


def next_request(policy: PoolPolicy, inputs: Inputs) -> str | None:
    """Who is next; None when nobody who may be placed fits."""
    for one in ranked(policy, inputs):
        if one.fits and not is_held_back(policy, inputs, one):
            return one.request_id
    return None


def is_held_back(policy: PoolPolicy, inputs: Inputs, one: Waiting) -> bool:
    """Whether the earliest request has waited so long that this one may not delay it."""
    first = inputs.waiting[0]
    patient = inputs.at_us - first.since_us < policy.gang_patience_us
    return not patient and one.place > first.place and one.delays_first


def ranked(policy: PoolPolicy, inputs: Inputs) -> list[Waiting]:
    """Every request that could be next, best first: of a queue only its earliest."""
    priorities = {queue.name: queue.priority for queue in policy.queues}
    heads: Sequence[Waiting] = inputs.waiting
    shares: Mapping[str, tuple[Ratio, ...]] = {}
    if policy.scheduler != FIRST_COME:
        earliest: dict[str, Waiting] = {}
        for one in inputs.waiting:
            earliest.setdefault(one.queue, one)
        heads = list(earliest.values())
        shares = _shares(policy, inputs)

    def key(one: Waiting) -> tuple[object, ...]:
        values: dict[str, object] = {PRIORITY: -priorities.get(one.queue, 0), ARRIVAL: one.place}
        found = [values.get(name, shares.get(one.queue, (NONE,))) for name in policy.precedence]
        return (*found, one.place)

    return sorted(heads, key=key)


def queue_for(policy: PoolPolicy, account_id: str, project_id: str) -> str:
    """The leaf a request belongs to: of its project, of its account, else one of its own."""
    by_user = {(queue.account_id, queue.project_id): queue.name for queue in policy.queues}
    for user in ((account_id, project_id), (account_id, None)):
        if user in by_user:
            return by_user[user]
    return account_id


def _shares(policy: PoolPolicy, inputs: Inputs) -> Mapping[str, tuple[Ratio, ...]]:
    if policy.scheduler == DRF:
        return _dominant(policy, inputs)
    assert policy.scheduler == FAIR_SHARE, policy.scheduler
    return _of_due(policy, inputs)


def _dominant(policy: PoolPolicy, inputs: Inputs) -> Mapping[str, tuple[Ratio, ...]]:
    capacity = _units(inputs.capacity)
    weights = {queue.name: queue.weight for queue in policy.queues}
    return {
        one.queue: (
            weighted(dominant_share(_units(one.held), capacity), weights.get(one.queue, 1)),
        )
        for one in inputs.held
    }


def _of_due(policy: PoolPolicy, inputs: Inputs) -> Mapping[str, tuple[Ratio, ...]]:
    """Held / due, from the outermost queue to the leaf. Who is due nothing comes last."""
    held = {one.queue: _units(one.held).get(GPU, 0) for one in inputs.held}
    asked = dict(held)
    for one in inputs.waiting:
        asked[one.queue] = asked.get(one.queue, 0) + _units(one.demand).get(GPU, 0)
    known = {queue.name: queue for queue in policy.queues}
    weights = _weights(policy, inputs, asked)
    leaves = [
        Leaf(_path(known, name), _queue(known.get(name), name, asked[name], weights[name]))
        for name in asked
    ]
    parents = {
        name: _queue(queue, name, 0, weights.get(name, queue.weight))
        for name, queue in known.items()
    }
    total = _units(inputs.capacity).get(GPU, 0)
    due = divide_tree(total, leaves, parents)
    holds: dict[str, int] = {}
    for leaf in leaves:
        for name in (*leaf.path, leaf.queue.name):
            holds[name] = holds.get(name, 0) + held.get(leaf.queue.name, 0)
    return {
        leaf.queue.name: tuple(
            ratio
            for name in (*leaf.path, leaf.queue.name)
            for ratio in _of(holds[name], known.get(name), due[name], total)
        )
        for leaf in leaves
    }


def _of(held: int, queue: PoolQueue | None, due: int, total: int) -> tuple[Ratio, Ratio]:
    """Below what it deserves comes first; then who holds the smaller part of what it is due."""
    is_over = queue is None or held >= queue.deserved_ppm
    part = Ratio(held, due) if due > 0 else Ratio(held + total + 1, 1)
    return Ratio(int(is_over), 1), part


def _weights(policy: PoolPolicy, inputs: Inputs, asked: Mapping[str, int]) -> dict[str, int]:
    """Over-quota weights, corrected by history among the queues of one parent."""
    known = {queue.name: queue for queue in policy.queues}
    used = {one.queue: one.used_gpu_us for one in inputs.held}
    for one in inputs.held:
        for parent in _path(known, one.queue):
            used[parent] = used.get(parent, 0) + one.used_gpu_us
    levels: dict[str | None, dict[str, int]] = {}
    for name in (*asked, *(queue.name for queue in policy.queues)):
        queue = known.get(name)
        level = levels.setdefault(None if queue is None else queue.parent, {})
        level[name] = 1 if queue is None else queue.weight
    found: dict[str, int] = {}
    for level in levels.values():
        found.update(weights_after_history(level, used, inputs.window_gpu_us, policy.history_ppm))
    return found


def _path(known: Mapping[str, PoolQueue], name: str) -> tuple[str, ...]:
    """The ancestors of a leaf, the outermost first."""
    path: list[str] = []
    queue = known.get(name)
    while queue is not None and queue.parent is not None:
        path.insert(0, queue.parent)
        queue = known[queue.parent]
    return tuple(path)


def _queue(queue: PoolQueue | None, name: str, requested: int, weight: int) -> Queue:
    if queue is None:
        return Queue(name, 0, requested, weight, 0)
    return Queue(name, queue.deserved_ppm, requested, weight, queue.priority)


def _units(quantities: Sequence[Quantity]) -> dict[str, int]:
    return {one.resource: one.units for one in quantities}
