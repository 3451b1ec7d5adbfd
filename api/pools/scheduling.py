"""Who waits for a pool gets its turn: looking, deciding, reserving, all in one append.

    a decision is recorded  <=>  its reservation is, too

What a decision looks at is read here, the rule is `domain/pools/scheduling.py`, and what it gave is
recorded with everything it looked at. Repeating the job is harmless: it only ever decides about
who still waits, and the queue's own stream says who that is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from typing import Any

from api.market.matching import MATCH_AGAIN, waits_for_room, wish_again
from api.market.placing import at_once, has_waiting
from api.pools.gang_orders import growth, reservation
from api.process.lease_desk import Round, streams_read
from api.process.one_by_one import OneByOne
from api.process.service import Service
from domain.duration import HOUR_US
from domain.fleet.device import device_stream
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.jobs.gang import CloseGang, gang_stream
from domain.jobs.job import job_stream
from domain.jobs.reasons import JobsReason
from domain.lease.close_codes import CANCELLED_BEFORE_START, EXPIRED, NO_MATCH
from domain.lease.lease import CloseLease, ReserveLease, lease_stream
from domain.market.reasons import MarketReason
from domain.money import PPM
from domain.parties.reasons import PartiesReason
from domain.pools.fair_share import decayed
from domain.pools.pool import PoolPolicy, pool_stream
from domain.pools.queue import HOLDERS_MAX, DecideSchedule, QueueState, RequestQueued, stream_of
from domain.pools.reasons import PoolsReason
from domain.pools.scheduling import (
    CPU_CORES,
    GPU,
    GPU_MEMORY,
    RAM_MIB,
    Holding,
    Inputs,
    Waiting,
    next_request,
    quantities,
    queue_for,
)
from domain.prices.reasons import PricesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.sites.reasons import SitesReason
from domain.storage.reasons import NOT_MOUNTABLE
from projections.fleet.fleet import FLEET
from projections.pools import pools
from projections.pools.pools import POOLS
from projections.runner import Connection

logger = logging.getLogger(__name__)

DECISIONS_MAX = 200
"""Decisions for one pool in one run of the job; the others wait for the next."""
MISSES_MAX = 3
"""How often a pool is looked at anew in one run because others were faster."""
OTHERS = "others"
"""Queues that hold too little to be listed, together."""

_UNPAID = frozenset(
    {
        FundsReason.CREDIT_TOO_LOW,
        FundsReason.UNPAID_DEBT,
        PartiesReason.BUDGET_EXHAUSTED,
        PartiesReason.ACCOUNT_CLOSED,
        JobsReason.JOB_STATE,
        PartiesReason.QUOTA_EXHAUSTED,
        PoolsReason.BASE_FULL,
        PartiesReason.COUNTERPARTY_DENIED,
        PricesReason.PRICE_ABOVE_CAP,
        PricesReason.GPU_CLASS_UNPRICED,
        PartiesReason.CLIENT_NOT_AUTHORISED,
        *NOT_MOUNTABLE,
        SitesReason.RESERVATION_UNKNOWN,
    }
)
"""Why a request whose turn came is taken out of the queue: it could never be reserved as it is."""
_MOVED = MATCH_AGAIN | {
    PoolsReason.QUEUE_MOVED,
    MarketReason.NO_MATCH,
    JobsReason.GANG_STATE,
    FleetReason.LEASE_STATE,
    SitesReason.RESERVATION_HELD,
}


def run_schedule(service: Service, connection: Connection, now_us: int) -> int:
    """Place who waits, pool by pool, as long as somebody fits; then let open gangs grow."""
    service.follow(connection, [POOLS])
    turns = OneByOne(logger, "the turns of %s stop")
    for gang_id in pools.gangs_expired(connection, now_us):
        turns.take(gang_id, _expire, service, gang_id, now_us)
    for pool_id in pools.pools_with_waiting(connection):
        turns.take(pool_id, schedule_pool, service, connection, pool_id, now_us)
    for gang_id in pools.gangs_to_grow(connection):
        turns.take(gang_id, _grow, service, gang_id, now_us)
    return turns.end(ScheduleStopped)


def _expire(service: Service, gang_id: str, now_us: int) -> int:
    """A gang that has waited for too long ends."""
    close = CloseGang(gang_id=gang_id, party="job", code=EXPIRED, at_us=now_us)
    return len(service.ledger.handle(close, key=None, now_us=now_us).changes)


class ScheduleStopped(Exception):
    """Some pools could not be decided about, or gangs could not grow; the others could."""


def schedule_pool(service: Service, connection: Connection, pool_id: str, now_us: int) -> int:
    """Decide about one pool until nobody who waits can be placed; how many were."""
    done = misses = 0
    while done < DECISIONS_MAX and misses < MISSES_MAX:
        service.follow(connection, [POOLS, FLEET])
        looked = look(service, connection, pool_id, now_us)
        if looked is None:
            break
        if looked.impossible:
            for one in looked.impossible:
                _turn_away(service, one, NO_MATCH, now_us)
            continue
        chosen = next_request(looked.policy, looked.inputs)
        if chosen is None:
            break
        try:
            _record(service, looked, chosen, now_us)
            done += 1
        except Refused as refused:
            if refused.reason in _UNPAID:
                _turn_away(service, looked.queued[chosen], CANCELLED_BEFORE_START, now_us)
            elif refused.reason in _MOVED:
                misses += 1
            else:
                raise
    return done


@dataclass(frozen=True, slots=True)
class Looked:
    """What a decision looks at, and the commands that would carry it out for each that fits.

    `impossible`: those who have waited for the pool's patience for what no node has any more.
    """

    pool_id: str
    policy: PoolPolicy
    policy_version: int
    fleet_position: int
    inputs: Inputs
    queued: Mapping[str, RequestQueued]
    commands: Mapping[str, Sequence[Any]]
    impossible: Sequence[RequestQueued] = ()


def look(service: Service, connection: Connection, pool_id: str, now_us: int) -> Looked | None:
    """What there is to decide for a pool; None when nobody waits."""
    market = service.ledger.market
    pool, queue = market.state_of(pool_stream(pool_id)), market.state_of(stream_of(pool_id))
    if not queue.waiting:
        return None
    commands: dict[str, Sequence[Any]] = {}
    in_vain: set[str] = set()
    impossible: list[RequestQueued] = []
    positions = [service.head(connection)]
    for one in queue.first:
        try:
            commands[one.request_id] = _commands_of(service, one, now_us)
        except Refused as refused:
            if refused.reason not in (MarketReason.NO_MATCH, MarketReason.MATCH_IMPOSSIBLE):
                logger.warning("%s cannot be placed: %s", one.request_id, refused)
            if not waits_for_room(refused):
                in_vain.add(one.request_id)
            is_patient = now_us - one.at_us < pool.policy.gang_patience_us
            if refused.reason is MarketReason.MATCH_IMPOSSIBLE and not is_patient:
                impossible.append(one)
            continue
        positions += [
            command.fleet_position
            for command in commands[one.request_id]
            if isinstance(command, ReserveLease)
        ]
    inputs = _inputs(service, connection, pool.policy, queue, commands, in_vain, now_us)
    waiting = {one.request_id: one for one in queue.first}
    return Looked(
        pool_id, pool.policy, pool.version, min(positions), inputs, waiting, commands, impossible
    )


def _commands_of(service: Service, one: RequestQueued, now_us: int) -> Sequence[Any]:
    """What would reserve a waiting request now. Raises Refused: NO_MATCH."""
    market = service.ledger.market
    if one.is_gang:
        gang = market.state_of(gang_stream(one.request_id))
        assert gang.requested is not None
        return reservation(service, gang.requested, now_us)
    lease = market.state_of(lease_stream(one.request_id))
    assert lease.requested is not None
    here = Round.of_one(service.ledger.world(), now_us)
    return at_once(service, wish_again(service, lease.requested), here)


def _inputs(
    service: Service,
    connection: Connection,
    policy: PoolPolicy,
    queue: QueueState,
    commands: Mapping[str, Sequence[Any]],
    in_vain: Set[str],
    now_us: int,
) -> Inputs:
    """`in_vain`: who waits for something else than room. Room is not kept for them."""
    first = queue.first[0]
    is_patient = now_us - first.at_us < policy.gang_patience_us or first.request_id in in_vain
    models = _models_of(service, first)
    waiting = tuple(
        Waiting(
            request_id=one.request_id,
            queue=queue_for(policy, one.account_id, one.project_id),
            place=one.place,
            is_gang=one.is_gang,
            demand=one.demand,
            fits=one.request_id in commands,
            delays_first=not is_patient
            and one is not first
            and _would_use(service, commands.get(one.request_id, ()), models),
            since_us=one.at_us,
        )
        for one in queue.first
    )
    capacity = pools.read_capacity(connection, first.pool_id)
    return Inputs(
        capacity=quantities(
            {
                GPU: capacity.devices * PPM,
                GPU_MEMORY: capacity.devices * PPM,
                CPU_CORES: capacity.cpu_cores,
                RAM_MIB: capacity.ram_mib,
            }
        ),
        held=_held(connection, policy, first.pool_id, waiting, now_us),
        waiting=waiting,
        window_gpu_us=capacity.devices * policy.window_us,
        at_us=now_us,
    )


def _models_of(service: Service, one: RequestQueued) -> tuple[str, ...]:
    """Models the request takes; empty: any."""
    market = service.ledger.market
    gang = market.state_of(gang_stream(one.request_id)) if one.is_gang else None
    asked = (gang or market.state_of(lease_stream(one.request_id))).requested
    assert asked is not None, one.request_id
    submitted = market.state_of(job_stream(asked.job_id)).submitted
    assert submitted is not None, asked.job_id
    return submitted.models


def _would_use(service: Service, commands: Sequence[Any], models: tuple[str, ...]) -> bool:
    """Whether any device these commands reserve is of a model the other request takes."""
    for command in commands:
        for device_id in command.device_ids if isinstance(command, ReserveLease) else ():
            device = service.ledger.market.state_of(device_stream(device_id))
            assert device.registered is not None
            if not models or device.registered.model in models:
                return True
    return False


def _held(
    connection: Connection,
    policy: PoolPolicy,
    pool_id: str,
    waiting: Sequence[Waiting],
    now_us: int,
) -> tuple[Holding, ...]:
    """What each queue holds and used before: those that wait, and the largest of the others."""
    held: dict[str, dict[str, int]] = {one.queue: {} for one in waiting}
    for row in pools.read_held(connection, pool_id):
        mine = held.setdefault(queue_for(policy, row.account_id, row.project_id), {})
        for name, units in (
            (GPU, row.gpu),
            (GPU_MEMORY, row.gpu_memory),
            (CPU_CORES, row.cpu_cores),
            (RAM_MIB, row.ram_mib),
        ):
            mine[name] = mine.get(name, 0) + units
    used = _used(connection, policy, pool_id, now_us)
    for name in used:
        held.setdefault(name, {})
    listed = list(held)[:HOLDERS_MAX]
    found = {name: (held[name], used.get(name, 0)) for name in listed}
    for name in list(held)[HOLDERS_MAX:]:
        summed, before = found.get(OTHERS, ({}, 0))
        for resource, amount in held[name].items():
            summed[resource] = summed.get(resource, 0) + amount
        found[OTHERS] = (summed, before + used.get(name, 0))
    return tuple(Holding(name, quantities(mine), before) for name, (mine, before) in found.items())


def _used(connection: Connection, policy: PoolPolicy, pool_id: str, now_us: int) -> dict[str, int]:
    """GPU time of each queue in the policy's window, decayed by age. Only where it counts."""
    if not policy.history_ppm:
        return {}
    samples: dict[str, list[tuple[int, int]]] = {}
    for row in pools.read_used(connection, pool_id, now_us - policy.window_us):
        age_us = max(0, now_us - (row.hour + 1) * HOUR_US)
        name = queue_for(policy, row.account_id, row.project_id)
        samples.setdefault(name, []).append((age_us, row.gpu_us))
    return {name: decayed(some, policy.half_life_us) for name, some in samples.items()}


def _record(service: Service, looked: Looked, chosen: str, now_us: int) -> None:
    """The decision and its reservation, in one append. Raises Refused when either moved."""
    decide = DecideSchedule(
        pool_id=looked.pool_id,
        policy_version=looked.policy_version,
        fleet_position=looked.fleet_position,
        inputs=looked.inputs,
        chosen=chosen,
        at_us=now_us,
    )
    service.ledger.handle(
        [decide, *looked.commands[chosen]], key=None, now_us=now_us, reads=streams_read
    )


def _turn_away(service: Service, one: RequestQueued, code: int, now_us: int) -> None:
    """It cannot be paid for now that its turn has come, or nothing there is could ever take it: it
    ends, and the next one is looked at.
    """
    ends: dict[str, Any] = {"party": "job", "code": code, "at_us": now_us}
    end: Any = CloseLease(lease_id=one.request_id, closed_at_us=now_us, **ends)
    if one.is_gang:
        end = CloseGang(gang_id=one.request_id, **ends)
    service.ledger.handle(end, key=None, now_us=now_us)


def _grow(service: Service, gang_id: str, now_us: int) -> int:
    """Members beyond those a gang needed, when there is room and nobody waits for it."""
    gang = service.ledger.market.state_of(gang_stream(gang_id))
    assert gang.requested is not None
    pool_id = gang.requested.pool_id
    if pool_id is not None and has_waiting(service, pool_id):
        return 0
    try:
        commands = growth(service, gang, now_us)
        if commands:
            service.ledger.handle(commands, key=None, now_us=now_us)
    except Refused:
        return 0  # no room or no money: what it has is what it needs
    return len(commands)
