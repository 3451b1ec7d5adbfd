"""Pools: whose nodes are in which, and what a policy may say; the queue and its decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.fleet.pooling import PoolNodeAdded, PoolNodeRemoved
from domain.fleet.reasons import FleetReason
from domain.hardware.constraints import Constraints
from domain.lease.lease import CloseLease, LeaseQueued
from domain.market.reasons import MarketReason
from domain.parties.reasons import PartiesReason
from domain.pools.pool import (
    DEFAULT_POLICY,
    AddPoolNode,
    CreatePool,
    PoolPolicySet,
    PoolQueue,
    RemovePoolNode,
    SetPoolPolicy,
)
from domain.pools.queue import (
    LOOKED_AT_MAX,
    LOOKED_AT_OF_ONE_MAX,
    QUEUE_MAX,
    QUEUE_OF_ONE_MAX,
    DecideSchedule,
    LeaveQueue,
    QueueRequest,
    QueueState,
    RequestLeftQueue,
    RequestQueued,
    ScheduleDecided,
    evolve,
    inputs_of,
    stream_of,
)
from domain.pools.reasons import PoolsReason
from domain.pools.scheduling import GPU, Inputs, Quantity, Waiting, next_request
from domain.stream import Stream
from tests.domain.scenes.market import (
    LEASE,
    NODE,
    NOON_US,
    OWNER,
    RENTER,
    job,
    lease_stream,
    request,
    reserve,
    scene,
)
from tests.given import Scene

POOL, OTHER = "pool_a", "pool_b"
DEMAND = (Quantity(GPU, 1_000_000),)
node = Stream("node", NODE)


def create(pool_id: str = POOL, **changes: Any) -> CreatePool:
    made = CreatePool(
        pool_id=pool_id,
        account_id=OWNER,
        name="research",
        policy=DEFAULT_POLICY,
        controller_address=None,
        by="mem",
        at_us=NOON_US,
    )
    return replace(made, **changes)


def add(pool_id: str = POOL, account_id: str = OWNER) -> AddPoolNode:
    return AddPoolNode(
        pool_id=pool_id, node_id=NODE, account_id=account_id, by="mem", at_us=NOON_US
    )


def remove(pool_id: str = POOL, account_id: str = OWNER) -> RemovePoolNode:
    return RemovePoolNode(
        pool_id=pool_id, node_id=NODE, account_id=account_id, by="mem", at_us=NOON_US
    )


def queue(request_id: str = LEASE) -> QueueRequest:
    return QueueRequest(
        pool_id=POOL,
        request_id=request_id,
        account_id=RENTER,
        project_id="p",
        is_gang=False,
        demand=DEMAND,
        at_us=NOON_US,
    )


def pooled(**changes: Any) -> Scene:
    """A pool with the one node in it, and a lease that names it and was asked for."""
    asked = job(constraints=Constraints(pool_id=POOL))
    policy = replace(DEFAULT_POLICY, **changes)
    return scene().after(create(policy=policy)).after(add()).after(asked).after(request())


def test_a_node_enters_and_leaves_a_pool_once() -> None:
    told: dict[str, Any] = {"pool_id": POOL, "node_id": NODE, "by": "mem", "at_us": NOON_US}
    market = scene().after(create())
    market.when(add()).then((node, PoolNodeAdded(**told)))
    market.after(add()).when(add()).then_nothing()
    market.after(add()).when(remove()).then((node, PoolNodeRemoved(**told)))
    market.when(remove()).then_nothing()


def test_a_node_is_in_one_pool_at_most() -> None:
    market = scene().after(create()).after(create(OTHER)).after(add())
    market.when(add(OTHER)).then_refused(FleetReason.NODE_POOLED)
    market.after(remove()).when(add(OTHER)).changes()


def test_only_its_provider_adds_a_node_and_the_pool_s_owner_may_take_it_out() -> None:
    market = scene().after(create(account_id=RENTER))
    market.when(add(account_id=RENTER)).then_refused(FleetReason.NODE_UNKNOWN)
    market.after(add()).when(remove(account_id=RENTER)).changes()
    closed = replace(DEFAULT_POLICY, open_to_providers=False)
    kept = scene().after(create(account_id=RENTER, policy=closed))
    kept.when(add()).then_refused(PartiesReason.NOT_PERMITTED)


def test_a_policy_has_versions_and_setting_it_again_gives_no_fact() -> None:
    fairer = replace(DEFAULT_POLICY, scheduler="drf")
    setting = SetPoolPolicy(pool_id=POOL, policy=fairer, by="mem", at_us=NOON_US)
    market = scene().after(create())
    market.when(replace(setting, policy=DEFAULT_POLICY)).then_nothing()
    told = PoolPolicySet(pool_id=POOL, version=2, policy=fairer, by="mem", at_us=NOON_US)
    market.when(setting).then((Stream("pool", POOL), told))
    market.when(replace(setting, pool_id=OTHER)).then_refused(PoolsReason.POOL_UNKNOWN)
    market.when(create()).then_refused(PoolsReason.POOL_EXISTS)


def leaf(name: str, **changes: Any) -> PoolQueue:
    made = PoolQueue(
        name=name,
        parent=None,
        deserved_ppm=0,
        weight=1,
        priority=0,
        account_id=None,
        project_id=None,
    )
    return replace(made, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"scheduler": "lottery"},
        {"pricing": "free"},
        {"rank": "best"},
        {"precedence": ()},
        {"precedence": ("arrival", "share")},
        {"precedence": ("share", "share", "arrival")},
        {"half_life_us": 0},
        {"gang_timeout_us": 1},
        {"history_ppm": -1},
        {"queues": (leaf("a"), leaf("a"))},
        {"queues": (leaf("a", parent="b"), leaf("b"))},
        {"queues": (leaf("a", weight=0),)},
        {"queues": (leaf("a", deserved_ppm=-1),)},
        {"queues": (leaf("a", project_id="p"),)},
        {"queues": (leaf("a/b"),)},
        {"queues": (leaf("a", account_id="x"), leaf("b", account_id="x"))},
        {"queues": (leaf("a", account_id="x"), leaf("b", parent="a"))},
    ],
)
def test_a_policy_that_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    policy = replace(DEFAULT_POLICY, **changes)
    scene().when(create(policy=policy)).then_refused(PoolsReason.POOL_POLICY_INVALID)


def test_a_controller_s_address_is_one() -> None:
    scene().when(create(controller_address="0x12")).then_refused(PartiesReason.BAD_ADDRESS)
    scene().when(create(controller_address="0x" + "aB" * 20)).changes()


def test_a_request_gets_one_place_at_the_end_of_the_queue() -> None:
    market = pooled()
    queued = RequestQueued(
        pool_id=POOL,
        request_id=LEASE,
        account_id=RENTER,
        project_id="p",
        place=1,
        is_gang=False,
        demand=DEMAND,
        at_us=NOON_US,
    )
    told = LeaseQueued(lease_id=LEASE, pool_id=POOL, place=1, at_us=NOON_US)
    market.when(queue()).then((stream_of(POOL), queued), (lease_stream, told))
    market.after(queue()).when(queue()).then_nothing()


def test_a_pool_that_keeps_nobody_waiting_and_a_full_queue_refuse() -> None:
    pooled(scheduler="immediate").when(queue()).then_refused(MarketReason.NO_MATCH)
    crowd = [
        (
            stream_of(POOL),
            RequestQueued(
                pool_id=POOL,
                request_id=f"r{place}",
                account_id=RENTER,
                project_id="p",
                place=place,
                is_gang=True,
                demand=DEMAND,
                at_us=NOON_US,
            ),
        )
        for place in range(1, QUEUE_MAX + 1)
    ]
    pooled().given(*crowd).when(queue()).then_refused(
        PoolsReason.QUEUE_FULL, pool_id="pool_a", waiting=1000
    )
    pooled().given(*crowd[: QUEUE_OF_ONE_MAX - 1]).when(queue()).changes()
    pooled().given(*crowd[:QUEUE_OF_ONE_MAX]).when(queue()).then_refused(
        PoolsReason.QUEUE_FULL, pool_id="pool_a", waiting=250, account_id="acct_renter"
    )
    others = [(stream, replace(fact, account_id=OTHER)) for stream, fact in crowd]
    pooled().given(*others[:QUEUE_OF_ONE_MAX]).when(queue()).changes()


def test_a_decision_looks_at_the_earliest_and_of_one_account_not_at_too_many() -> None:
    asked = [(RENTER, number) for number in range(2 * LOOKED_AT_MAX)]
    asked += [(f"acct_{number}", number) for number in range(2 * LOOKED_AT_MAX)]
    state = QueueState()
    for place, (account_id, number) in enumerate(asked, 1):
        queued = RequestQueued(
            pool_id=POOL,
            request_id=f"{account_id}/{number}",
            account_id=account_id,
            project_id="p",
            place=place,
            is_gang=False,
            demand=DEMAND,
            at_us=NOON_US,
        )
        state = evolve(state, queued)
    assert len(state.first) == LOOKED_AT_MAX
    whose = [one.account_id for one in state.first]
    assert whose[:LOOKED_AT_OF_ONE_MAX] == [RENTER] * LOOKED_AT_OF_ONE_MAX
    assert whose[LOOKED_AT_OF_ONE_MAX] == "acct_0"
    assert whose.count(RENTER) == LOOKED_AT_OF_ONE_MAX


def test_a_pool_s_nodes_are_for_who_names_it_and_nobody_goes_before_the_queue() -> None:
    unnamed = scene().after(create()).after(add()).after(job()).after(request())
    unnamed.when(reserve()).then_refused(MarketReason.OFFER_MISMATCH, dimension="queue")
    elsewhere = job(constraints=Constraints(pool_id=OTHER))
    named = scene().after(create()).after(add()).after(elsewhere).after(request())
    named.when(reserve()).then_refused(MarketReason.OFFER_MISMATCH, dimension="pool")
    pooled().when(reserve()).changes()
    pooled().after(queue()).when(reserve()).then_refused(PoolsReason.QUEUE_MOVED)
    free = replace(DEFAULT_POLICY, scheduler="immediate")
    open_to_all = scene().after(create(policy=free)).after(add()).after(job()).after(request())
    open_to_all.when(reserve()).changes()


def looked(*names: str) -> Inputs:
    waiting = tuple(
        Waiting(name, RENTER, place, False, DEMAND, True, False, NOON_US)
        for place, name in enumerate(names, 1)
    )
    return Inputs(capacity=DEMAND, held=(), waiting=waiting, window_gpu_us=1, at_us=NOON_US)


def decide(chosen: str, *names: str, version: int = 1) -> DecideSchedule:
    return DecideSchedule(
        pool_id=POOL,
        policy_version=version,
        fleet_position=7,
        inputs=looked(*names),
        chosen=chosen,
        at_us=NOON_US,
    )


def test_a_decision_takes_its_request_out_and_lets_it_be_reserved() -> None:
    market = pooled().after(queue())
    ((stream, decided),) = [
        (change.stream, change.fact) for change in market.when(decide(LEASE, LEASE)).changes()
    ]
    assert isinstance(decided, ScheduleDecided)
    assert (stream, decided.chosen, decided.rule) == (stream_of(POOL), LEASE, "first_come/1")
    assert next_request(DEFAULT_POLICY, inputs_of(decided)) == LEASE
    after = market.after(decide(LEASE, LEASE))
    assert after.state(stream_of(POOL)).waiting == {}
    after.when(reserve()).changes()


def test_a_decision_about_another_queue_or_policy_is_refused() -> None:
    market = pooled().after(queue())
    market.when(decide(LEASE, LEASE, "r9")).then_refused(PoolsReason.QUEUE_MOVED, pool_id="pool_a")
    market.when(decide(LEASE, LEASE, version=2)).then_refused(
        PoolsReason.QUEUE_MOVED, policy_version=1
    )


def test_a_decision_that_does_not_follow_from_its_inputs_is_a_bug() -> None:
    market = pooled().after(queue())
    with pytest.raises(AssertionError):
        market.when(decide("somebody else", LEASE)).changes()


def test_who_withdraws_leaves_the_queue() -> None:
    close = CloseLease(
        lease_id=LEASE, closed_at_us=NOON_US, party="renter", code=101, at_us=NOON_US
    )
    facts = [change.fact for change in pooled().after(queue()).when(close).changes()]
    (left,) = [fact for fact in facts if isinstance(fact, RequestLeftQueue)]
    assert (left.request_id, left.reason) == (LEASE, "withdrawn")
    leave = LeaveQueue(pool_id=POOL, request_id="nobody", reason="unpaid", at_us=NOON_US)
    pooled().when(leave).then_nothing()
