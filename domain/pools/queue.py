"""Who waits for a pool, and each decision about who is next.

    places only grow;   a request waits at most once;   a decision takes exactly one out

Requests are leases and gangs. A decision records what it looked at, so that anybody can make it
again with `domain.pools.scheduling.next_request`: it is checked here, too, before it is recorded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, assert_never

from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.lease.close_codes import EXPIRED as EXPIRED_CODE
from domain.lease.close_codes import NO_MATCH
from domain.lease.lease import CloseLease, Lease, LeaseQueued, lease_of, lease_stream
from domain.lease.reasons import LeaseReason
from domain.market.reasons import MarketReason
from domain.money import Big
from domain.pools.pool import pool_of
from domain.pools.reasons import PoolsReason
from domain.pools.scheduling import RULES, Holding, Inputs, Quantity, Waiting, next_request
from domain.refusal import Reason, Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestQueued:
    """Stream `pool_queue:{pool_id}`."""

    pool_id: str
    request_id: str  # of a lease or a gang
    account_id: str
    project_id: str
    place: int  # 1 and up; nobody ever gets an earlier one
    is_gang: bool
    demand: tuple[Quantity, ...]  # of a gang: of the members it cannot do without
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLeftQueue:
    """Not placed: withdrawn by who asked, or it could not be paid for when its turn came."""

    pool_id: str
    request_id: str
    reason: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDecided:
    """Who is next, and all that was looked at. The reservation is in the same append."""

    pool_id: str
    rule: str  # "drf/1"
    policy_version: int
    fleet_position: int
    capacity: tuple[Quantity, ...]
    held: tuple[Holding, ...]
    waiting: tuple[Waiting, ...]  # the first ones, in order of place
    waiting_count: int
    window_gpu_us: Big  # what the pool could have served in the policy's window
    chosen: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRequest:
    """Let a request that cannot be placed now wait for the pool."""

    pool_id: str
    request_id: str
    account_id: str
    project_id: str
    is_gang: bool
    demand: tuple[Quantity, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveQueue:
    pool_id: str
    request_id: str
    reason: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideSchedule:
    """Take the next request out of the queue, by these inputs. Its reservation follows at once."""

    pool_id: str
    policy_version: int
    fleet_position: int
    inputs: Inputs
    chosen: str
    at_us: int


QUEUE_MAX = 1_000
"""Requests that wait for one pool at once."""
LOOKED_AT_MAX = 32
"""Waiting requests that one decision looks at, first come first."""
HOLDERS_MAX = 64
"""Users whose holdings one decision lists."""

LOOKED_AT_OF_ONE_MAX = 8
"""Of these, requests of one account: whoever asks for much leaves the others their turns."""
QUEUE_OF_ONE_MAX = 250
"""Of one account, of those that wait."""

WITHDRAWN, UNPAID, EXPIRED, IMPOSSIBLE = "withdrawn", "unpaid", "expired", "impossible"

# State.


@dataclass(frozen=True, slots=True)
class QueueState:
    waiting: dict[str, RequestQueued] = field(default_factory=dict)  # in order of place
    places: int = 0
    turn: str | None = None  # whose turn it was last

    def place_of(self, request_id: str) -> int | None:
        """How many are before it, itself included: 1 is the first. None: it does not wait."""
        for number, one in enumerate(self.waiting, 1):
            if one == request_id:
                return number
        return None

    @property
    def first(self) -> tuple[RequestQueued, ...]:
        """The requests a decision looks at: the earliest, and of one account not too many."""
        found: list[RequestQueued] = []
        counts: Counter[str] = Counter()
        for one in self.waiting.values():
            if counts[one.account_id] < LOOKED_AT_OF_ONE_MAX:
                counts[one.account_id] += 1
                found.append(one)
            if len(found) == LOOKED_AT_MAX:
                break
        return tuple(found)


QueueFact = RequestQueued | RequestLeftQueue | ScheduleDecided


def evolve(state: QueueState, fact: QueueFact) -> QueueState:
    match fact:
        case RequestQueued():
            waiting = {**state.waiting, fact.request_id: fact}
            return replace(state, waiting=waiting, places=fact.place)
        case RequestLeftQueue():
            return replace(state, waiting=_without(state, fact.request_id))
        case ScheduleDecided():
            return replace(state, waiting=_without(state, fact.chosen), turn=fact.chosen)
        case _:
            assert_never(fact)


def _without(state: QueueState, request_id: str) -> dict[str, RequestQueued]:
    return {name: one for name, one in state.waiting.items() if name != request_id}


def stream_of(pool_id: str) -> Stream[QueueState]:
    return Stream("pool_queue", pool_id)


def queue_of(world: World, pool_id: str) -> QueueState:
    return world.state(stream_of(pool_id))


# Decisions.


def decide_queue(command: QueueRequest, world: World) -> list[Change]:
    """A place at the end. Asking twice gives no second one.

    Raises Refused: POOL_UNKNOWN, QUEUE_FULL, NO_MATCH where the pool keeps nobody waiting,
    LEASE_UNKNOWN, LEASE_STATE.
    """
    pool, queue = pool_of(world, command.pool_id), queue_of(world, command.pool_id)
    if command.request_id in queue.waiting:
        return []
    if not pool.queues_requests:
        raise Refused(
            MarketReason.NO_MATCH, pool_id=command.pool_id, scheduler=pool.policy.scheduler
        )
    if len(queue.waiting) >= QUEUE_MAX:
        raise Refused(PoolsReason.QUEUE_FULL, pool_id=command.pool_id, waiting=len(queue.waiting))
    own = sum(one.account_id == command.account_id for one in queue.waiting.values())
    if own >= QUEUE_OF_ONE_MAX:
        raise Refused(
            PoolsReason.QUEUE_FULL,
            pool_id=command.pool_id,
            waiting=own,
            account_id=command.account_id,
        )
    queued = RequestQueued(
        pool_id=command.pool_id,
        request_id=command.request_id,
        account_id=command.account_id,
        project_id=command.project_id,
        place=queue.places + 1,
        is_gang=command.is_gang,
        demand=command.demand,
        at_us=command.at_us,
    )
    changes = [Change(stream_of(command.pool_id), queued)]
    if command.is_gang:
        return changes
    lease = lease_of(world, command.request_id)
    if lease.status != "requested":
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.request_id, status=lease.status)
    told = LeaseQueued(
        lease_id=command.request_id,
        pool_id=command.pool_id,
        place=queued.place,
        at_us=command.at_us,
    )
    return [*changes, Change(lease_stream(command.request_id), told)]


def decide_leave(command: LeaveQueue, world: World) -> list[Change]:
    """Who does not wait leaves no fact."""
    if command.request_id not in queue_of(world, command.pool_id).waiting:
        return []
    left = RequestLeftQueue(
        pool_id=command.pool_id,
        request_id=command.request_id,
        reason=command.reason,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.pool_id), left)]


def left_queue(lease: Lease, command: CloseLease) -> list[Change]:
    """What takes a lease that is closed while it waits out of the queue."""
    if lease.status != "requested" or lease.queued_in is None:
        return []
    left = RequestLeftQueue(
        pool_id=lease.queued_in,
        request_id=command.lease_id,
        reason=reason_of(command.party, command.code),
        at_us=command.at_us,
    )
    return [Change(stream_of(lease.queued_in), left)]


def reason_of(party: str, code: int) -> str:
    """Why a request that this party closed with this code leaves the queue."""
    if party != "job":
        return WITHDRAWN
    return {EXPIRED_CODE: EXPIRED, NO_MATCH: IMPOSSIBLE}.get(code, UNPAID)


def decide_schedule(command: DecideSchedule, world: World) -> list[Change]:
    """The rule, applied again: only what it gives for these inputs is recorded.

    Raises Refused: POOL_UNKNOWN; QUEUE_MOVED, when the queue or the policy is another by now.
    """
    pool, queue = pool_of(world, command.pool_id), queue_of(world, command.pool_id)
    inputs = command.inputs
    looked_at = [one.request_id for one in inputs.waiting]
    if looked_at != [one.request_id for one in queue.first]:
        raise Refused(PoolsReason.QUEUE_MOVED, pool_id=command.pool_id)
    if command.policy_version != pool.version:
        raise Refused(PoolsReason.QUEUE_MOVED, policy_version=pool.version)
    assert next_request(pool.policy, inputs) == command.chosen, command
    decided = ScheduleDecided(
        pool_id=command.pool_id,
        rule=RULES[pool.policy.scheduler],
        policy_version=pool.version,
        fleet_position=command.fleet_position,
        capacity=inputs.capacity,
        held=inputs.held,
        waiting=inputs.waiting,
        waiting_count=len(queue.waiting),
        window_gpu_us=inputs.window_gpu_us,
        chosen=command.chosen,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.pool_id), decided)]


def inputs_of(decided: ScheduleDecided) -> Inputs:
    """What a recorded decision looked at, to make it again."""
    return Inputs(
        capacity=decided.capacity,
        held=decided.held,
        waiting=decided.waiting,
        window_gpu_us=decided.window_gpu_us,
        at_us=decided.at_us,
    )


STREAMS: dict[str, tuple[Any, Any]] = {"pool_queue": (QueueState(), evolve)}
REFUSES: dict[type[Any], tuple[Reason, ...]] = {
    QueueRequest: (
        PoolsReason.POOL_UNKNOWN,
        PoolsReason.QUEUE_FULL,
        MarketReason.NO_MATCH,
        LeaseReason.LEASE_UNKNOWN,
        FleetReason.LEASE_STATE,
    )
}
"""What a command can be refused for, in the order of its docstring."""
DECIDERS: dict[type[Any], Any] = {
    QueueRequest: decide_queue,
    LeaveQueue: decide_leave,
    DecideSchedule: decide_schedule,
}
