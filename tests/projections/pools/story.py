"""Pools that nodes enter and leave, requests that wait, leave and get their turn, gangs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from domain.fleet.licence import LicenceRevoked
from domain.fleet.pooling import PoolNodeAdded, PoolNodeRemoved
from domain.jobs import gang
from domain.pools import component, controller, pool
from domain.pools import queue as pool_queue
from domain.pools.controller_address import ControllerNamed, controller_stream
from domain.pools.pool import DEFAULT_POLICY
from domain.pools.scheduling import GPU, Holding, Quantity, Waiting
from domain.stream import Stream

POOLS = ("pool_story", "pool_other")
DEMAND = (Quantity(GPU, 1_000_000),)


def pools(nodes: list[str], at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    """Every fact of pools and gangs, some of them more than once."""
    by: dict[str, Any] = {"by": "mem_a", "at_us": at_us}
    for pool_id in POOLS:
        yield (
            Stream("pool", pool_id),
            pool.PoolCreated(
                pool_id=pool_id,
                account_id="acct_provider",
                name=pool_id,
                policy=DEFAULT_POLICY,
                controller_address="0x" + "0a" * 20 if pool_id == POOLS[0] else None,
                **by,
            ),
        )
        for version in (2, 3):
            # In the end none keeps a queue: the nodes are there for everybody.
            scheduler = "drf" if version == 2 else "immediate"
            policy = replace(DEFAULT_POLICY, scheduler=scheduler, history_ppm=version)
            yield (
                Stream("pool", pool_id),
                pool.PoolPolicySet(pool_id=pool_id, version=version, policy=policy, **by),
            )
    for node_id in nodes:
        stream = Stream("node", node_id)
        for pool_id in POOLS:  # in, out, into the other, out, and back into the first
            yield stream, PoolNodeAdded(pool_id=pool_id, node_id=node_id, **by)
            yield stream, PoolNodeRemoved(pool_id=pool_id, node_id=node_id, **by)
        yield stream, PoolNodeAdded(pool_id=POOLS[0], node_id=node_id, **by)
    yield stream, PoolNodeRemoved(pool_id=POOLS[0], node_id=node_id, **by)
    yield from _queue(at_us)
    yield from _gangs(at_us)
    yield from _controllers(at_us)


def _queue(at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    stream = pool_queue.stream_of(POOLS[0])
    names = [f"request_{number}" for number in range(5)]
    for place, name in enumerate(names, 1):
        yield (
            stream,
            pool_queue.RequestQueued(
                pool_id=POOLS[0],
                request_id=name,
                account_id="acct_cash",
                project_id="prj",
                place=place,
                is_gang=place % 2 == 0,
                demand=DEMAND,
                at_us=at_us + place,
            ),
        )
    yield (
        stream,
        pool_queue.RequestLeftQueue(
            pool_id=POOLS[0], request_id=names[0], reason=pool_queue.WITHDRAWN, at_us=at_us + 6
        ),
    )
    for name in names[1:3]:
        yield (
            stream,
            pool_queue.ScheduleDecided(
                pool_id=POOLS[0],
                rule="first_come/1",
                policy_version=3,
                fleet_position=1,
                capacity=DEMAND,
                held=(Holding("acct_cash", DEMAND, 5),),
                waiting=(Waiting(name, "acct_cash", 2, False, DEMAND, True, False, at_us),),
                waiting_count=4,
                window_gpu_us=1_000_000,
                chosen=name,
                at_us=at_us + 7,
            ),
        )


def _controllers(at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    by: dict[str, Any] = {"by": "mem_a", "at_us": at_us}
    address = "0x" + "0a" * 20
    yield (
        controller_stream(address),
        ControllerNamed(address=address, pool_id=POOLS[0], at_us=at_us),
    )
    components = component.components_stream(POOLS[0])
    for number, licence_id in enumerate((None, "lic_story", "lic_story")):
        component_id = f"comp_{number}"
        registered = component.ComponentRegistered(
            pool_id=POOLS[0],
            component_id=component_id,
            kind="gateway" if licence_id is None else "licence",
            name=component_id,
            endpoint=None,
            licence_id=licence_id,
            **by,
        )
        yield components, registered
        for later, health in enumerate(("well", "well", "down", "down")):
            report = component.ComponentHealthReported(
                pool_id=POOLS[0],
                component_id=component_id,
                health=health,
                detail="",
                by="mem_a",
                at_us=at_us + later,
            )
            yield components, report
        if number == 1:  # the first of the licence leaves before it is revoked
            removed = component.ComponentRemoved(pool_id=POOLS[0], component_id=component_id, **by)
            yield components, removed
    yield Stream("licence", "lic_story"), LicenceRevoked(licence_id="lic_story", **by)
    own = controller.pool_controller_stream(POOLS[0])
    for number in (1, 2):
        entry = controller.MetadataEntry("n", str(number))
        metadata = controller.PoolMetadataSet(
            pool_id=POOLS[0], version=number, metadata=(entry,), sha256="0a" * 32, **by
        )
        yield own, metadata
        cut = controller.PoolHeadsCut(
            pool_id=POOLS[0],
            cut_position=number,
            allocation_head="0b" * 32,
            licence_head="0c" * 32,
            **by,
        )
        yield own, cut
        differences = ("metadata hash",) if number == 1 else ()
        yield (
            own,
            controller.PoolControllerChecked(
                pool_id=POOLS[0], block=number, differences=differences, at_us=at_us
            ),
        )


def _gangs(at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    for number, ends in enumerate(("open", "closed", "waiting")):
        gang_id = f"gang_{number}"
        stream, leases = Stream("gang", gang_id), tuple(f"lease_{gang_id}_{n}" for n in range(4))
        yield (
            stream,
            gang.GangRequested(
                gang_id=gang_id,
                job_id=f"job_{0:032x}",
                account_id="acct_cash",
                project_id="prj",
                pool_id=POOLS[0],
                members=4,
                min_members=2,
                gpus_per_member=1,
                term_us=None,
                funds=None,
                pay_with=None,
                key_id=None,
                timeout_us=600_000_000,
                at_us=at_us,
            ),
        )
        if ends == "waiting":
            continue
        yield (
            stream,
            gang.GangReserved(
                gang_id=gang_id,
                lease_ids=leases[:2],
                ready_until_us=at_us + 600_000_000,
                at_us=at_us,
            ),
        )
        yield (
            stream,
            gang.GangMemberReady(gang_id=gang_id, lease_id=leases[0], ready=1, at_us=at_us),
        )
        if ends == "closed":
            yield (
                stream,
                gang.GangClosed(
                    gang_id=gang_id, party="job", code=20_003, missing=(leases[1],), at_us=at_us + 9
                ),
            )
            continue
        yield (
            stream,
            gang.GangMemberReady(gang_id=gang_id, lease_id=leases[1], ready=2, at_us=at_us),
        )
        yield stream, gang.GangOpened(gang_id=gang_id, opened_at_us=at_us, at_us=at_us)
        for late in leases[2:]:
            yield stream, gang.GangGrown(gang_id=gang_id, lease_ids=(late,), at_us=at_us)
