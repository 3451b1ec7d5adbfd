"""The demands of a lease, asked of the streams again when it is quoted or reserved.

    reserved  =>  every demand of `need_of` is met, whichever way the lease was bought

The match was made from a view that may be late. What is no part of a stream (scores, attributes,
how old an inventory may be) comes with the command as the views told it (`domain/lease/looked.py`).
"""

from __future__ import annotations

from domain.fleet.device import DeviceState
from domain.fleet.node import NodeState
from domain.fleet.provider import RegionState, region_of
from domain.hardware.host_kind import kernel_number
from domain.jobs.job import job_of
from domain.lease.lease import LeaseRequested, ReserveLease
from domain.lease.turns import QuoteLease
from domain.market.dimensions import BY_NAME, OfferedNode
from domain.market.need import need_of
from domain.market.offer import OfferPublished
from domain.market.reasons import MarketReason
from domain.pools.pool import pool_of
from domain.refusal import Refused
from domain.storage.node_room import NO_ROOM, Room, room_of
from domain.stream import World

CHECKED = (
    "offer",
    "place",
    "pin",
    "pool",
    "queue",
    "spec_age",
    "kind",
    "vendor",
    "memory",
    "mode",
    "isolation",
    "cpu",
    "ram",
    "storage",
    "network",
    "network_class",
    "arch",
    "os",
    "kernel",
    "substrate",
    "capabilities",
    "setting",
    "workload",
    "security_tier",
    "provisional",
    "reputation",
    "renter",
    "attributes",
    "sla",
    "reclaim",
    "interruptible",
    "capacity",
)
ELSEWHERE = {
    "region": "a provider's own offer or bid opens its region",
    "sellable": "domain/leasing/terms.py",
    "node": "domain/leasing/terms.py",
    "model": "domain/leasing/terms.py",
    "gpus": "domain/leasing/terms.py",
    "lists": "domain/leasing/terms.py",
    "maintenance": "domain/leasing/terms.py",
    "available": "domain/leasing/terms.py",
    "settlement": "domain/leasing/terms.py",
    "usage_fee": "domain/leasing/terms.py",
    "price": "domain/leasing/terms.py",
    "free": "domain/fleet/device.py",
    "cloud_quota": "domain/cloud/quotas.py",
    "budget": "domain/lease/budgets.py",
    "funds": "domain/lease/holding.py",
}
"""Demands that have a rule and a reason of their own, and where it is."""


def require_demands(
    asked: LeaseRequested,
    match: ReserveLease | QuoteLease,
    offer: OfferPublished,
    node: NodeState,
    device: DeviceState,
    account_id: str,
    world: World,
) -> None:
    """`account_id`: the provider's. Raises Refused: OFFER_MISMATCH with the dimension that is not
    met.
    """
    base_pool_id = _base_pool(asked, world) if asked.overflow else None
    need = need_of(world, asked, match.at_us, match.looked, base_pool_id=base_pool_id)
    seen = _seen(asked, match, offer, node, device, account_id, world)
    for name in CHECKED:
        dimension = BY_NAME[name]
        if not dimension.meets(need, seen):
            raise Refused(
                MarketReason.OFFER_MISMATCH,
                dimension=name,
                offer_id=offer.offer_id,
                offered=dimension.offered(need, seen),
            )


def room_asked(asked: LeaseRequested) -> Room:
    """The disk and the network that a lease demands of its node."""
    demands = asked.constraints
    if demands is None:
        return NO_ROOM
    return Room(demands.storage_gib or 0, demands.network_mbps or 0)


def room_promised(offer: OfferPublished) -> Room:
    """The disk and the network that an offer promises of its node."""
    return Room(offer.terms.storage_gib or 0, offer.terms.network_mbps or 0)


def _base_pool(asked: LeaseRequested, world: World) -> str | None:
    """The pool that the job names: what is above its quota is rented elsewhere."""
    spec = job_of(world, asked.job_id).submitted
    return None if spec is None or spec.constraints is None else spec.constraints.pool_id


def _seen(
    asked: LeaseRequested,
    match: ReserveLease | QuoteLease,
    offer: OfferPublished,
    node: NodeState,
    device: DeviceState,
    account_id: str,
    world: World,
) -> OfferedNode:
    assert node.joined is not None
    assert node.specs is not None
    assert device.registered is not None
    host, looked, pool_id = node.specs.host, match.looked, node.pool_id
    # Only stated demands ask for the region: most leases state none, and read one stream less.
    region, taken = RegionState(), NO_ROOM
    if asked.constraints is not None or asked.volumes or asked.datasets:
        region = region_of(world, node.joined.region_id)
    if room_asked(asked):
        taken = room_of(world, offer.node_id).held
    return OfferedNode(
        node_id=offer.node_id,
        offer_id=offer.offer_id,
        account_id=account_id,
        price=offer.price_per_gpu_hour.units,
        pay_with=offer.pay_with,
        fractions=offer.fractions,
        served_gpu_us=0,
        devices=(),
        model=device.registered.model,
        memory_mib=device.registered.memory_mib,
        vendor=device.registered.vendor,
        kind=device.registered.kind,
        specs_at_us=node.specs_at_us,
        region_id=node.joined.region_id,
        pool_id=pool_id,
        keeps_queue=pool_id is not None and pool_of(world, pool_id).queues_requests,
        setting="datacenter" if region.opened is None else region.opened.setting,
        refused_workloads=region.refused_workloads,
        security_tier=region.security_tier,
        arch=host.arch,
        os=host.os,
        cpu_cores=host.cpu_cores,
        ram_mib=host.ram_mib,
        terms=offer.terms,
        reputation_ppm=looked.node_ppm,
        attributes=looked.attributes,
        held_storage_gib=taken.storage_gib,
        held_network_mbps=taken.network_mbps,
        kernel=kernel_number(host.kernel),
        substrate=host.substrate or (),
        capacity_class=node.capacity_class,
    )
