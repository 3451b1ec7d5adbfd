"""A pool: nodes of one or many providers under one scheduling policy, administered in one place.

    pools of a node <= 1          the node's own stream says in which

The owner of a pool sets its policy; a provider puts its own nodes in and takes them out. How the
policy's scheduler works is in `domain/pools/scheduling.py`, who waits in `domain/pools/queue.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from domain.duration import DAY_US, MINUTE_US
from domain.fleet.node import NodeState, existing_node, node_stream
from domain.fleet.pooling import PoolNodeAdded, PoolNodeRemoved
from domain.fleet.provider import existing_provider
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.hardware.constraints import RANKS, Constraints, Weights
from domain.money import PPM
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.pools.controller_address import name_controller
from domain.pools.reasons import PoolsReason
from domain.prices.modules import MODULES
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True)
class PoolQueue:
    """One queue of a fair-share tree; with `account_id` it is a leaf that account's requests use.

    `deserved_ppm`: GPUs it is owed before anybody is over quota, a whole GPU being 1,000,000.
    """

    name: str
    parent: str | None
    deserved_ppm: int
    weight: int  # of what is left above everybody's deserved share, and of a dominant share
    priority: int  # higher first, for what is above the deserved share
    account_id: str | None
    project_id: str | None  # None: every project of the account


@dataclass(frozen=True, slots=True)
class PoolPolicy:
    """How a pool prices, ranks and shares out. Its versions are kept; a decision names its own."""

    pricing: str  # of a module of domain/prices/modules.py
    scheduler: str  # SCHEDULERS
    rank: str  # RANKS: how nodes are ranked for one request
    precedence: tuple[str, ...]  # PRECEDENCE: what decides first between waiting requests
    queues: tuple[PoolQueue, ...]
    half_life_us: int  # of what was used before, which counts against a queue's fair share
    window_us: int  # how far back that is looked at
    history_ppm: int  # how much it counts; 0: not at all
    gang_timeout_us: int
    gang_patience_us: int
    open_to_providers: bool  # whether others than the owner may add their nodes


BEST_REPUTATION = Weights(reputation=PPM)
"""What counts in a pool that ranks by score, where a job says nothing of its own (R-9)."""


def ranked_by(policy: PoolPolicy, asked: Constraints) -> Constraints:
    """The demands of a job that names a pool, ranked as the pool ranks where the job does not."""
    if asked.rank is not None or policy.rank == "lowest_cost":
        return asked
    return replace(asked, rank=policy.rank, weights=asked.weights or BEST_REPUTATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCreated:
    """Stream `pool:{pool_id}`. `controller_address`: of the pool's controller contract
    (`contracts/src/PoolController.sol`), deployed for this pool alone.
    """

    pool_id: str
    account_id: str  # the owner: a provider's account or an operator's
    name: str
    policy: PoolPolicy
    controller_address: str | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPolicySet:
    pool_id: str
    version: int  # 2 and up
    policy: PoolPolicy
    by: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePool:
    pool_id: str
    account_id: str
    name: str
    policy: PoolPolicy
    controller_address: str | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPoolPolicy:
    pool_id: str
    policy: PoolPolicy
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPoolNode:
    """`account_id`: of the provider of the node."""

    pool_id: str
    node_id: str
    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePoolNode:
    """`account_id`: of the node's provider or of the pool's owner."""

    pool_id: str
    node_id: str
    account_id: str
    by: str
    at_us: int


IMMEDIATE, FIRST_COME, FAIR_SHARE, DRF = "immediate", "first_come", "fair_share", "drf"
SCHEDULERS = (IMMEDIATE, FIRST_COME, FAIR_SHARE, DRF)
"""`immediate` refuses what cannot be placed now; with the others it waits in the pool's queue."""
PRIORITY, SHARE, ARRIVAL = "priority", "share", "arrival"
PRECEDENCE = (PRIORITY, SHARE, ARRIVAL)

QUEUES_MAX = 64
NAME_MAX = 64
WEIGHT_MAX = 1_000_000
GPUS_PPM_MAX = 10**12  # a million GPUs
GANG_TIMEOUT_US = 10 * MINUTE_US
GANG_PATIENCE_US = 30 * MINUTE_US
HALF_LIFE_US = DAY_US
WINDOW_US = 7 * DAY_US

DEFAULT_POLICY = PoolPolicy(
    pricing="posted",
    scheduler=FIRST_COME,
    rank="lowest_cost",
    precedence=PRECEDENCE,
    queues=(),
    half_life_us=HALF_LIFE_US,
    window_us=WINDOW_US,
    history_ppm=0,
    gang_timeout_us=GANG_TIMEOUT_US,
    gang_patience_us=GANG_PATIENCE_US,
    open_to_providers=True,
)

# State.


@dataclass(frozen=True, slots=True)
class PoolState:
    created: PoolCreated | None = None
    policy: PoolPolicy = DEFAULT_POLICY
    version: int = 0  # of the policy

    @property
    def queues_requests(self) -> bool:
        """Whether a request that cannot be placed now waits."""
        return self.policy.scheduler != IMMEDIATE


def evolve(state: PoolState, fact: PoolCreated | PoolPolicySet) -> PoolState:
    match fact:
        case PoolCreated():
            return PoolState(fact, fact.policy, 1)
        case PoolPolicySet():
            return PoolState(state.created, fact.policy, fact.version)
        case _:
            assert_never(fact)


def pool_stream(pool_id: str) -> Stream[PoolState]:
    return Stream("pool", pool_id)


def pool_of(world: World, pool_id: str) -> PoolState:
    """Raises Refused: POOL_UNKNOWN."""
    state = world.state(pool_stream(pool_id))
    if state.created is None:
        raise Refused(PoolsReason.POOL_UNKNOWN, pool_id=pool_id)
    return state


# Decisions.


def decide_create(command: CreatePool, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, POOL_EXISTS, POOL_POLICY_INVALID,
    BAD_ADDRESS, CONTROLLER_TAKEN.
    """
    open_account(world, command.account_id)
    stream = pool_stream(command.pool_id)
    if world.state(stream).created is not None:
        raise Refused(PoolsReason.POOL_EXISTS, pool_id=command.pool_id)
    if not 1 <= len(command.name) <= NAME_MAX:
        raise _invalid("a name has 1 to 64 characters", "name")
    check_policy(command.policy)
    fact = PoolCreated(
        pool_id=command.pool_id,
        account_id=command.account_id,
        name=command.name,
        policy=command.policy,
        controller_address=command.controller_address,
        by=command.by,
        at_us=command.at_us,
    )
    address = command.controller_address
    if address is None:
        return [Change(stream, fact)]
    named = name_controller(world, address, command.pool_id, command.at_us)
    return [Change(stream, fact), named]


def decide_set_policy(command: SetPoolPolicy, world: World) -> list[Change]:
    """Setting what is in force gives no fact. Raises Refused: POOL_UNKNOWN, POOL_POLICY_INVALID."""
    pool = pool_of(world, command.pool_id)
    check_policy(command.policy)
    if command.policy == pool.policy:
        return []
    fact = PoolPolicySet(
        pool_id=command.pool_id,
        version=pool.version + 1,
        policy=command.policy,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(pool_stream(command.pool_id), fact)]


def decide_add_node(command: AddPoolNode, world: World) -> list[Change]:
    """A provider puts a node of its own into a pool. Adding it again gives no fact.

    Raises Refused: NOT_PERMITTED, POOL_UNKNOWN, NODE_UNKNOWN, NODE_STATE, NODE_POOLED.
    """
    pool = pool_of(world, command.pool_id)
    assert pool.created is not None
    node = _node_of(world, command.node_id, command.account_id)
    if not pool.policy.open_to_providers and command.account_id != pool.created.account_id:
        raise Refused(PartiesReason.NOT_PERMITTED, pool_id=command.pool_id, open_to_providers=False)
    if node.pool_id == command.pool_id:
        return []
    if node.phase == "retired":
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=node.phase)
    if node.pool_id is not None:
        raise Refused(FleetReason.NODE_POOLED, node_id=command.node_id, pool_id=node.pool_id)
    fact = PoolNodeAdded(
        pool_id=command.pool_id, node_id=command.node_id, by=command.by, at_us=command.at_us
    )
    return [Change(node_stream(command.node_id), fact)]


def decide_remove_node(command: RemovePoolNode, world: World) -> list[Change]:
    """Its provider or the pool's owner takes a node out. Leases that run there go on.

    Raises Refused: POOL_UNKNOWN, NODE_UNKNOWN.
    """
    pool = pool_of(world, command.pool_id)
    assert pool.created is not None
    if command.account_id == pool.created.account_id:
        node = existing_node(world, command.node_id)
    else:
        node = _node_of(world, command.node_id, command.account_id)
    if node.pool_id != command.pool_id:
        return []
    fact = PoolNodeRemoved(
        pool_id=command.pool_id, node_id=command.node_id, by=command.by, at_us=command.at_us
    )
    return [Change(node_stream(command.node_id), fact)]


def _node_of(world: World, node_id: str, account_id: str) -> NodeState:
    """Raises Refused: NODE_UNKNOWN, also where it is somebody else's."""
    node = existing_node(world, node_id)
    assert node.joined is not None
    if existing_provider(world, node.joined.provider_id).account_id != account_id:
        raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)
    return node


# The policy.


def check_policy(policy: PoolPolicy) -> None:
    """Raises Refused: POOL_POLICY_INVALID, with the field and its rule."""
    choices = {
        "pricing": (policy.pricing, tuple(sorted(MODULES))),
        "scheduler": (policy.scheduler, SCHEDULERS),
        "rank": (policy.rank, RANKS),
    }
    for field, (value, known) in choices.items():
        if value not in known:
            raise _invalid(f"one of {', '.join(known)}", field)
    order = policy.precedence
    if len(set(order)) != len(order) or not set(order) <= set(PRECEDENCE):
        raise _invalid(f"each of {', '.join(PRECEDENCE)} once at most", "precedence")
    if not order or order[-1] != ARRIVAL:
        raise _invalid("ends with arrival, so that no two requests are equal", "precedence")
    times = {
        "half_life_us": (policy.half_life_us, MINUTE_US, 366 * DAY_US),
        "window_us": (policy.window_us, MINUTE_US, 366 * DAY_US),
        "history_ppm": (policy.history_ppm, 0, 10_000_000),
        "gang_timeout_us": (policy.gang_timeout_us, MINUTE_US, DAY_US),
        "gang_patience_us": (policy.gang_patience_us, 0, 366 * DAY_US),
    }
    for field, (number, least, most) in times.items():
        if not least <= number <= most:
            raise _invalid("in range", field, least=least, most=most)
    _check_queues(policy.queues)


def _check_queues(queues: Sequence[PoolQueue]) -> None:
    names = [queue.name for queue in queues]
    known = set(names)
    if len(queues) > QUEUES_MAX or len(known) != len(names):
        raise _invalid(f"at most {QUEUES_MAX}, each name once", "queues")
    users = [(queue.account_id, queue.project_id) for queue in queues if queue.account_id]
    if len(set(users)) != len(users):
        raise _invalid("an account, or a project of it, has one queue", "queues")
    parents = {queue.parent for queue in queues}
    seen: set[str] = set()
    for queue in queues:
        if not 1 <= len(queue.name) <= NAME_MAX or "/" in queue.name:
            raise _invalid("a name has 1 to 64 characters and no /", "queues")
        if queue.parent is not None and queue.parent not in seen:
            raise _invalid("a parent stands before its children", "queues")
        if queue.project_id is not None and queue.account_id is None:
            raise _invalid("a project is named with its account", "queues")
        if queue.account_id is not None and queue.name in parents:
            raise _invalid("only a leaf names an account", "queues")
        if not (0 <= queue.deserved_ppm <= GPUS_PPM_MAX and 1 <= queue.weight <= WEIGHT_MAX):
            raise _invalid("deserved GPUs from 0, weight from 1", "queues")
        if not 0 <= queue.priority <= WEIGHT_MAX:
            raise _invalid("priority from 0", "queues")
        seen.add(queue.name)


def _invalid(rule: str, field: str, **facts: int) -> Refused:
    return Refused(PoolsReason.POOL_POLICY_INVALID, field=field, rule=rule, **facts)


STREAMS: dict[str, tuple[Any, Any]] = {"pool": (PoolState(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    CreatePool: decide_create,
    SetPoolPolicy: decide_set_policy,
    AddPoolNode: decide_add_node,
    RemovePoolNode: decide_remove_node,
}
