"""When there will be room for a lease that finds none now: the ends of those who hold it.

    room at `free_at_us`  =>  what ends by then, and nothing else, made it

An end is that of a lease's term, or of its funds as they are now. It is the latest such moment
only: a lease that is closed early frees its devices sooner, one that is extended or topped up
later. Where an end is not known (a lease that has not started) the device has no moment at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.frozen import replace
from domain.market.dimensions import (
    DIMENSIONS,
    MIG_MODE,
    FreeDevice,
    Need,
    OfferedNode,
    device_fits,
)

PASSING = frozenset({"free", "spec_age"})
"""What is otherwise by then: room, and the age of an inventory, which is reported again."""


@dataclass(frozen=True, slots=True)
class Held:
    """What one lease holds of a device, and when it ends; None: not known."""

    share_ppm: int
    mem_ppm: int
    ends_us: int | None


Holdings = Mapping[str, Sequence[Held]]
"""Device -> what is held of it."""


def free_at_us(
    need: Need, nodes: Iterable[OfferedNode], holdings: Holdings, members: int = 1
) -> int | None:
    """From when on there is room for so many leases of a need; None: not known. `nodes` meet
    every demand but room. MIG is not told: where the next instance fits depends on what is left.
    """
    if need.mode == MIG_MODE:
        return None
    moments = sorted(
        at_us
        for node in nodes
        for at_us in _moments(need, node, holdings)
        if _is_met(need, node, at_us)
    )
    return moments[members - 1] if len(moments) >= members else None


def _moments(need: Need, node: OfferedNode, holdings: Holdings) -> list[int]:
    """When the node has room for its first lease of the need, for its second and so on: each takes
    other devices, so parts of one device are counted once.
    """
    found = (_fits_at(need, one, holdings.get(one.device_id, ())) for one in node.devices)
    known = sorted(at_us for at_us in found if at_us is not None)
    return known[need.gpu_count - 1 :: need.gpu_count]


def _fits_at(need: Need, device: FreeDevice, held: Sequence[Held]) -> int | None:
    """When enough of those who hold a device have ended. The last to end leave it in no mode."""
    if device_fits(need, device):
        return need.at_us
    ends = sorted(
        (one.ends_us, one.share_ppm, one.mem_ppm) for one in held if one.ends_us is not None
    )
    for number, (ends_us, share_ppm, mem_ppm) in enumerate(ends, start=1):
        device = replace(
            device,
            free_share_ppm=device.free_share_ppm + share_ppm,
            free_mem_ppm=device.free_mem_ppm + mem_ppm,
        )
        if number == len(held):
            device = replace(device, mode=None, slice_ppm=None)
        if device_fits(need, device):
            return max(need.at_us, ends_us)
    return None


def _is_met(need: Need, node: OfferedNode, at_us: int) -> bool:
    """Whether the node meets the other demands then too: it may be offered until before, or have
    maintenance.
    """
    later = replace(need, at_us=at_us, until_us=at_us + need.until_us - need.at_us)
    return all(one.meets(later, node) for one in DIMENSIONS if one.name not in PASSING)
