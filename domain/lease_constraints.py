"""The demands of a lease, asked of the streams again when it is reserved.

    reserved  =>  every demand that the offer, the node, its region or its devices answer is met

The match was made from a view that may be late. Reputation, lists, attributes and pools have facts
of other accounts behind them and are asked where those are decided.
"""

from __future__ import annotations

from domain.device import DeviceState
from domain.host_kind import kernel_number
from domain.lease import LeaseRequested
from domain.match_dimensions import BY_NAME, Need, OfferedNode
from domain.node import NodeState
from domain.offer import OfferPublished
from domain.provider import region_of
from domain.refusal import Reason, Refused
from domain.stream import World

CHECKED = (
    "place", "kind", "vendor", "memory", "mode", "isolation", "cpu", "ram", "storage", "network",
    "network_class", "arch", "os", "kernel", "substrate", "capabilities", "setting", "workload",
    "security_tier", "reclaim", "interruptible",
)  # fmt: skip


def require_demands(
    asked: LeaseRequested,
    offer: OfferPublished,
    node: NodeState,
    device: DeviceState,
    world: World,
) -> None:
    """Raises Refused: OFFER_MISMATCH with the dimension that is not met."""
    if asked.constraints is None:
        return
    need = Need(
        gpu_count=asked.gpu_count, share_ppm=asked.share_ppm, mem_ppm=asked.mem_ppm,
        models=asked.models, price_max=asked.max_price_per_gpu_hour.units,
        account_id=asked.account_id, constraints=asked.constraints,
    )  # fmt: skip
    seen = _seen(offer, node, device, world)
    for name in CHECKED:
        dimension = BY_NAME[name]
        if not dimension.meets(need, seen):
            raise Refused(
                Reason.OFFER_MISMATCH, dimension=name, offer_id=offer.offer_id,
                offered=dimension.offered(need, seen),
            )  # fmt: skip


def _seen(offer: OfferPublished, node: NodeState, device: DeviceState, world: World) -> OfferedNode:
    assert node.joined is not None
    assert node.specs is not None
    assert device.registered is not None
    host, region = node.specs.host, region_of(world, node.joined.region_id)
    return OfferedNode(
        node_id=offer.node_id, offer_id=offer.offer_id, account_id="",
        price=offer.price_per_gpu_hour.units, settlement=offer.settlement,
        fractions=offer.fractions, served_gpu_us=0, devices=(),
        model=device.registered.model, memory_mib=device.registered.memory_mib,
        vendor=device.registered.vendor, kind=device.registered.kind,
        region_id=node.joined.region_id,
        setting="datacenter" if region.opened is None else region.opened.setting,
        refused_workloads=region.refused_workloads, security_tier=region.security_tier,
        arch=host.arch, os=host.os, cpu_cores=host.cpu_cores, ram_mib=host.ram_mib,
        terms=offer.terms, kernel=kernel_number(host.kernel),
        substrate=host.substrate or (),
    )  # fmt: skip
