"""Which node gets a lease: the cheapest that fits, and among equals the one that wastes least.

    order = (own first, price, stranded share, GPU time served this epoch, node id)

Ties go to the node that would strand the least capacity, then to the one that has served least, so
that a node without work is not penalised. The rule is total: the same inputs, in any order, give
the same node. `MatchDecided` stores the inputs, so anyone can recompute the choice. Source: design
marketplace 3, rows C-1 and C-5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from domain.lease import Candidate
from domain.money import PPM
from domain.offer import SETTLEMENTS

RULE = "lowest_cost/1"
CANDIDATES_MAX = 20
"""How many candidates, best first, a recorded decision lists."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a lease asks of one node."""

    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: tuple[str, ...]  # allowed; empty: any
    price_max: int  # micro-credits per GPU-hour
    account_id: str
    settlements: tuple[str, ...] = SETTLEMENTS  # how the renter can pay; own nodes take any
    mode: str | None = None  # of sharing; None: by the shares
    mig_profile: str | None = None


@dataclass(frozen=True, slots=True)
class FreeDevice:
    """What is still free of one device."""

    device_id: str
    model: str
    free_share_ppm: int
    free_mem_ppm: int


@dataclass(frozen=True, slots=True)
class OfferedNode:
    """A node with a published offer, as the fleet projection sees it."""

    node_id: str
    offer_id: str
    account_id: str  # of the provider
    price: int  # micro-credits per GPU-hour; for the renter's own nodes the usage fee
    settlement: str
    fractions: bool
    served_gpu_us: int  # this epoch
    devices: tuple[FreeDevice, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """The decision: a node, its devices, and the candidates it was chosen from, best first."""

    node_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    considered: int


def choose(need: Need, nodes: Iterable[OfferedNode]) -> Match | None:
    """The best node for `need`, or None when none fits."""
    ranked = sorted(
        (
            (node.account_id != need.account_id, node.price, stranded, node.served_gpu_us,
             node.node_id, node.offer_id, devices)
            for node in nodes
            if (found := fit(need, node)) is not None
            for stranded, devices in (found,)
        ),
    )  # fmt: skip
    if not ranked:
        return None
    candidates = tuple(
        Candidate(node_id, offer_id, price, stranded, served)
        for _, price, stranded, served, node_id, offer_id, _ in ranked[:CANDIDATES_MAX]
    )
    best = ranked[0]
    return Match(best[4], best[5], best[6], candidates, len(ranked))


def less(node: OfferedNode, taken: Mapping[str, tuple[int, int]]) -> OfferedNode:
    """A node without the share and memory, in ppm, that were taken of its devices meanwhile."""
    if not any(device.device_id in taken for device in node.devices):
        return node
    left = []
    for device in node.devices:
        share, mem = taken.get(device.device_id, (0, 0))
        free_share, free_mem = device.free_share_ppm - share, device.free_mem_ppm - mem
        left.append(replace(device, free_share_ppm=free_share, free_mem_ppm=free_mem))
    return replace(node, devices=tuple(left))


def fit(need: Need, node: OfferedNode) -> tuple[int, tuple[str, ...]] | None:
    """The devices a node would give, and the share left over on them; None if it cannot.

    Best fit: the fullest devices that still have room, so that whole devices stay whole.
    """
    if node.price > need.price_max or (need.share_ppm < PPM and not node.fractions):
        return None
    if node.settlement not in need.settlements and node.account_id != need.account_id:
        return None
    fitting = sorted(
        (device.free_share_ppm, device.device_id)
        for device in node.devices
        if device.free_share_ppm >= need.share_ppm
        and device.free_mem_ppm >= need.mem_ppm
        and (not need.models or device.model in need.models)
    )[: need.gpu_count]
    if len(fitting) < need.gpu_count:
        return None
    stranded = sum(free - need.share_ppm for free, _ in fitting)
    return stranded, tuple(sorted(device_id for _, device_id in fitting))
