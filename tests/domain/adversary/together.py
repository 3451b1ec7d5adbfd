"""What several do together: gangs, pools with a queue, jobs with a federated fee."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.hardware.constraints import Constraints
from domain.jobs.gang import CloseGang, RequestGang, ReserveGang
from domain.lease.close_codes import CANCELLED_BEFORE_START
from domain.lease.lease import CloseLease, ReadyLease, RequestLease
from domain.money import PPM, credit
from domain.pools.pool import (
    DEFAULT_POLICY,
    GANG_TIMEOUT_US,
    AddPoolNode,
    CreatePool,
    RemovePoolNode,
    pool_of,
)
from domain.pools.queue import DecideSchedule, QueueRequest, queue_of
from domain.pools.scheduling import GPU, Inputs, Quantity, Waiting, next_request
from tests.domain.adversary.network import PRICE, Network


def gang(network: Network, renter: str, nodes: list[str], pay_with: str, ready: int) -> list[str]:
    """Leases that start together, once all of them are ready; else none is charged."""
    asked, gang_id = network.job_of(renter, client=True), network.name("gang")
    if not network.try_(
        asked,
        RequestGang(
            gang_id=gang_id,
            job_id=asked.job_id,
            account_id=renter,
            pool_id=None,
            members=len(nodes),
            min_members=len(nodes),
            term_us=None,
            funds=credit(PRICE * 3),
            at_us=network.now_us,
        ),
    ):
        return []
    members = []
    for node in nodes:
        lease_id, free = network.name("lease"), network.free(node)
        if free is None or not network.try_(
            RequestLease(
                lease_id=lease_id,
                job_id=asked.job_id,
                account_id=renter,
                term_us=None,
                funds=credit(PRICE * 3),
                gang_id=gang_id,
                start_timeout_us=GANG_TIMEOUT_US,
                at_us=network.now_us,
            ),
            network.reservation(lease_id, node, pay_with, free, "lowest_cost/1"),
        ):
            break
        members.append((lease_id, node))
    names = tuple(name for name, _ in members)
    begun = len(members) == len(nodes) and network.try_(
        ReserveGang(gang_id=gang_id, lease_ids=names, at_us=network.now_us)
    )
    for lease_id, node in members[:ready] if begun else ():
        network.try_(
            ReadyLease(lease_id=lease_id, node_id=node, endpoint=None, at_us=network.now_us)
        )
    if begun and ready >= len(members):
        network.leases.extend(names)
        return list(names)
    end: dict[str, Any] = {
        "party": "renter",
        "code": CANCELLED_BEFORE_START,
        "at_us": network.now_us,
    }
    network.try_(CloseGang(gang_id=gang_id, **end))
    for name in names:
        network.try_(CloseLease(lease_id=name, closed_at_us=network.now_us, **end))
    return []


def pooled(
    network: Network, owner: str, renter: str, node: str, pay_with: str, waits: int
) -> str | None:
    """A pool of the coalition serves those who wait for its node; the last of them runs."""
    pool_id, at_us = network.name("pool"), network.now_us
    member: dict[str, Any] = {"pool_id": pool_id, "node_id": node, "by": "m", "at_us": at_us}
    provider = network.owner_of[node]
    if not network.try_(
        CreatePool(
            pool_id=pool_id,
            account_id=owner,
            name="p",
            policy=DEFAULT_POLICY,
            controller_address=None,
            by="m",
            at_us=at_us,
        ),
        AddPoolNode(account_id=provider, **member),
    ):
        return None
    running = None
    for _ in range(waits):
        running = _served(network, pool_id, renter, node, pay_with) or running
    network.try_(RemovePoolNode(account_id=provider, **member))
    return running


def _served(network: Network, pool_id: str, renter: str, node: str, pay_with: str) -> str | None:
    """Asks, waits and has its turn."""
    asked = replace(network.job_of(renter, client=True), constraints=Constraints(pool_id=pool_id))
    lease_id, free, demand = network.name("lease"), network.free(node), (Quantity(GPU, PPM),)
    if free is None or not network.try_(
        asked,
        RequestLease(
            lease_id=lease_id,
            job_id=asked.job_id,
            account_id=renter,
            term_us=None,
            funds=credit(PRICE * 3),
            at_us=network.now_us,
        ),
        QueueRequest(
            pool_id=pool_id,
            request_id=lease_id,
            account_id=renter,
            project_id=asked.project_id,
            is_gang=False,
            demand=demand,
            at_us=network.now_us,
        ),
    ):
        return None
    waiting = tuple(
        Waiting(one.request_id, one.account_id, one.place, False, demand, True, False, one.at_us)
        for one in queue_of(network, pool_id).first
    )
    inputs = Inputs(demand, (), waiting, 0, network.now_us)
    chosen = next_request(pool_of(network, pool_id).policy, inputs)
    assert chosen is not None
    turn = DecideSchedule(
        pool_id=pool_id,
        policy_version=1,
        fleet_position=1,
        inputs=inputs,
        chosen=chosen,
        at_us=network.now_us,
    )
    if not network.try_(
        turn,
        network.reservation(chosen, node, pay_with, free, "lowest_cost/1"),
        ReadyLease(lease_id=chosen, node_id=node, endpoint=None, at_us=network.now_us),
    ):
        return None
    network.leases.append(chosen)
    return chosen


def federated(
    network: Network, creator: str, renter: str, node: str, kind: str, pay_with: str
) -> str | None:
    """Another account rents for a job; its creator pays the federated fee beside it."""
    asked = replace(network.job_of(creator, client=True), federated=kind, participants=(renter,))
    return network.run(asked, node, pay_with, PRICE * 3, account_id=renter)
