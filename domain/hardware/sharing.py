"""Sharing modes: how several leases may hold parts of one device at once, and what each may ask.

    sum(share_ppm) <= 1_000_000  and  sum(mem_ppm) <= 1_000_000        two sums, at every instant
    the holders of a device all hold it in one mode                    at every instant

    mode        share_ppm                   guarantees                       beside it
    whole       1,000,000, and all memory   everything                       nothing
    mig         compute slices / the GPU's  isolation, quality of service    legal placements
    mps         thread percentage x 10,000  memory and compute limits        more percentages
    time_slice  10^6 // N                   none                             slices of the same N
    memory      any                         its memory; compute contends     parts <= capacity

Compute and memory are two dimensions. Their larger one is never what is conserved: 4g + 3g of an
A100 is legal and would add up to 15/14. It is a price weight only (`price_weight_ppm`).
"""

from __future__ import annotations

from collections.abc import Collection

from domain.hardware import mig
from domain.hardware.reasons import HardwareReason
from domain.money import PPM
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Refused

WHOLE, MIG, MPS, TIME_SLICE, MEMORY = "whole", "mig", "mps", "time_slice", "memory"
SHARING_MODES = (WHOLE, MIG, MPS, TIME_SLICE, MEMORY)

MPS_STEP_PPM = 10_000
"""One percent of a device's threads: what MPS can limit a client to."""
SLICES_MAX = 1_000
"""Up to here 10^6 // N is another share for every N, so the share names its N."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """What decides which modes a device can do."""

    vendor: str
    model: str
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Held:
    """What one lease holds of one device."""

    share_ppm: int  # of compute
    mem_ppm: int
    mode: str = MEMORY
    profile: str | None = None  # of a MIG instance
    start: int | None = None  # the memory slice at which the instance begins


def mode_of(mode: str | None, share_ppm: int, mem_ppm: int) -> str:
    """The mode that was asked for; without one, the whole device or parts of it by memory."""
    if mode is not None:
        return mode
    return WHOLE if share_ppm == mem_ppm == PPM else MEMORY


def require_mode(mode: str | None, profile: str | None, share_ppm: int, mem_ppm: int) -> str:
    """The mode, when a request of this shape can be met by some device at all.

    Raises Refused: UNKNOWN_MODE, UNKNOWN_PROFILE, SHARE_OUT_OF_RANGE, each with the rule's name.
    """
    if mode not in (None, *SHARING_MODES):
        raise Refused(
            PartiesReason.UNKNOWN_MODE, mode=mode, rule="sharing_mode", allowed=SHARING_MODES
        )
    if not (1 <= share_ppm <= PPM and 1 <= mem_ppm <= PPM):
        raise _out_of_range(share_ppm, mem_ppm, "share_1_to_1000000_ppm")
    asked = mode_of(mode, share_ppm, mem_ppm)
    if (asked == MIG) != (profile is not None):
        raise Refused(
            HardwareReason.UNKNOWN_PROFILE, mode=asked, mig_profile=profile, rule="mig_profile"
        )
    if asked == WHOLE and not share_ppm == mem_ppm == PPM:
        raise _out_of_range(share_ppm, mem_ppm, "whole_is_1000000_ppm")
    if asked == MPS and share_ppm % MPS_STEP_PPM:
        raise _out_of_range(share_ppm, mem_ppm, "mps_whole_percent")
    if asked == TIME_SLICE and slices_of(share_ppm) is None:
        raise _out_of_range(share_ppm, mem_ppm, "time_slice_one_of_n")
    if profile is not None and (share_ppm, mem_ppm) not in mig.sizes_ppm(profile):
        least = mig.asked_ppm(profile)
        raise _out_of_range(share_ppm, mem_ppm, f"mig_{profile}_is_{least[0]}_and_{least[1]}_ppm")
    return asked


def part_of(mode: str, profile: str | None, share_ppm: int, mem_ppm: int, gpu: Gpu) -> Held:
    """What a lease would hold of such a device, not placed yet. A MIG profile has the shares that
    this GPU gives it; in all other modes they are as asked.

    Raises Refused: MODE_NOT_SUPPORTED.
    """
    if mode == MPS and gpu.vendor.lower() != "nvidia":
        raise _unsupported(mode, profile, gpu, "mps_needs_cuda")
    if mode != MIG:
        return Held(share_ppm, mem_ppm, mode)
    assert profile is not None
    table = mig.table_of(gpu.model, gpu.memory_mib)
    if table is None:
        raise _unsupported(mode, profile, gpu, "mig_not_on_this_model")
    found = table.profile(profile)
    if found is None:
        raise _unsupported(mode, profile, gpu, "mig_profile_not_on_this_model")
    return Held(table.share_ppm(found), table.mem_ppm(found), mode, profile)


def admit(part: Held, holders: Collection[Held], gpu: Gpu) -> Held:
    """The part as it will be held beside `holders`: a MIG instance gets its start.

    Raises Refused: DEVICE_TAKEN, with the rule that it would break and what is still free.
    """
    free = free_of(holders)
    others = {held.mode for held in holders} - {part.mode}
    if others:
        raise Refused(HardwareReason.DEVICE_TAKEN, rule="one_mode_at_a_time", mode=min(others))
    sizes = {held.share_ppm for held in holders} - {part.share_ppm}
    if part.mode == TIME_SLICE and sizes:
        raise Refused(HardwareReason.DEVICE_TAKEN, rule="time_slices_of_one_n")
    if part.share_ppm > free[0] or part.mem_ppm > free[1]:
        raise Refused(
            HardwareReason.DEVICE_TAKEN,
            rule="parts_within_the_device",
            free_share_ppm=free[0],
            free_mem_ppm=free[1],
        )
    if part.mode != MIG:
        return part
    table = mig.table_of(gpu.model, gpu.memory_mib)
    assert table is not None, gpu
    assert part.profile is not None
    try:
        start = mig.place(table, instances_of(holders), part.profile)
    except Refused as refused:
        raise Refused(
            HardwareReason.DEVICE_TAKEN, rule=refused.reason.value, **refused.facts
        ) from None
    return Held(part.share_ppm, part.mem_ppm, MIG, part.profile, start)


def free_of(holders: Collection[Held]) -> tuple[int, int]:
    """Compute and memory, in ppm, that nobody holds."""
    return (
        PPM - sum(held.share_ppm for held in holders),
        PPM - sum(held.mem_ppm for held in holders),
    )


def blocked_ppm(holders: Collection[Held], gpu: Gpu) -> int:
    """Compute that nobody holds and nobody can, as the device is partitioned: it is stranded.

    3g + 3g strands 142,858 ppm, 7 x 1g strands 1; so does a whole memory beside half the compute.
    """
    share_free, mem_free = free_of(holders)
    return share_free - min(share_free, _sellable(holders, share_free, mem_free, gpu))


def _sellable(holders: Collection[Held], share_free: int, mem_free: int, gpu: Gpu) -> int:
    first = next(iter(holders), None)
    if first is None:
        return share_free
    if mem_free == 0:
        return 0
    if first.mode == TIME_SLICE:
        slices = slices_of(first.share_ppm)
        assert slices is not None, first
        return (slices - len(holders)) * first.share_ppm
    if first.mode == MIG:
        table = mig.table_of(gpu.model, gpu.memory_mib)
        # A model whose name was reported anew since cannot be told apart: nothing is stranded.
        return share_free if table is None else _further_ppm(table, holders)
    return share_free


def _further_ppm(table: mig.Table, holders: Collection[Held]) -> int:
    return mig.further_slices(table, instances_of(holders)) * PPM // table.compute


def slices_of(share_ppm: int) -> int | None:
    """N of a time slice: a share of 10^6 // N names it. None: no N has this share."""
    if not PPM // SLICES_MAX <= share_ppm <= PPM // 2:
        return None
    slices = PPM // share_ppm
    return slices if PPM // slices == share_ppm else None


def price_weight_ppm(part: Held) -> int:
    """What of a whole device's price an instance costs: its larger dimension, for what it takes
    from others is that. All other modes cost their share.
    """
    return max(part.share_ppm, part.mem_ppm) if part.mode == MIG else part.share_ppm


def instances_of(holders: Collection[Held]) -> frozenset[mig.Instance]:
    """The MIG instances among them."""
    return frozenset(
        mig.Instance(held.start, held.profile)
        for held in holders
        if held.start is not None and held.profile is not None
    )


def _out_of_range(share_ppm: int, mem_ppm: int, rule: str) -> Refused:
    return Refused(
        PartiesReason.SHARE_OUT_OF_RANGE, share_ppm=share_ppm, mem_ppm=mem_ppm, rule=rule
    )


def _unsupported(mode: str, profile: str | None, gpu: Gpu, rule: str) -> Refused:
    return Refused(
        HardwareReason.MODE_NOT_SUPPORTED,
        mode=mode,
        mig_profile=profile,
        vendor=gpu.vendor,
        model=gpu.model,
        memory_mib=gpu.memory_mib,
        rule=rule,
    )
