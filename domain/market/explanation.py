"""Why this node, why none, and which one demand to ease: answers before buying and afterwards.

    nodes_left(d)   == nodes that meet every demand up to and with d
    relaxation(f)   => the same request with field f as told has a match, and told no nearer value

Only single demands are eased: "memory 80 -> 48 GB: 3 nodes". Nearest first: numbers by how far they
move, |asked - offered| / asked, in ppm; words count as a whole. Source: design marketplace 3.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from domain.duration import SECOND_US
from domain.frozen import replace
from domain.hardware.constraints import ISOLATIONS
from domain.hardware.host_kind import NETWORK_CLASSES, kernel_version
from domain.hardware.sharing import MPS_STEP_PPM, slices_of
from domain.lease.choice import Narrowed
from domain.market.dimensions import (
    BY_NAME,
    DIMENSIONS,
    LASTING,
    MIG_MODE,
    MORE,
    NEVER_US,
    ONE,
    SLICE_MODE,
    WHOLE_MODE,
    YES,
    Dimension,
    Need,
    OfferedNode,
    capacity_classes_of,
    device_fits,
    lease_memory_mib,
    modes_of,
)
from domain.money import PPM

WORDS_TOLD_MAX = 8
_IN_SECONDS = ("reclaim", "spec_age")


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Easing this one field gives a match on so many nodes."""

    field: str
    required: str
    offered: str
    nodes: int
    distance_ppm: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """`relaxations` are told where there is no match; `impossible` names the demand that no
    registered node could ever meet, whoever uses it now.
    """

    nodes: int  # looked at
    dimensions: tuple[Narrowed, ...]
    relaxations: tuple[Relaxation, ...] = ()
    impossible: str | None = None


def explain(need: Need, nodes: Sequence[OfferedNode]) -> Explanation:
    """For a fleet as a plain list: the reference for `projections/market/match.py`."""
    left, told = list(nodes), []
    for dimension in DIMENSIONS:
        if dimension.required(need) is None:
            continue
        before, left = left, [node for node in left if dimension.meets(need, node)]
        best = best_of(dimension, [dimension.offered(need, node) for node in before])
        told.append(
            Narrowed(
                dimension.name,
                required_told(dimension, need),
                best,
                count(left),
                count(before) - count(left),
            )
        )
    if left:
        return Explanation(count(nodes), tuple(told))
    return Explanation(
        count(nodes), tuple(told), in_order(_relaxations(need, nodes)), impossible(need, nodes)
    )


def count(nodes: Iterable[OfferedNode]) -> int:
    """Different nodes: one may stand there with several offers."""
    return len({node.node_id for node in nodes})


def impossible(need: Need, nodes: Sequence[OfferedNode]) -> str | None:
    """The first demand after which no registered node is left that could ever meet them all."""
    left = [node for node in nodes if node.phase != "retired"]
    if not left:
        return None  # nobody is here yet
    for name in LASTING:
        left = [node for node in left if BY_NAME[name].meets(need, node)]
        if not left:
            return name
    return None


# --- how things are told ---------------------------------------------------------------------


def required_told(dimension: Dimension, need: Need) -> str:
    """What is asked for, as text."""
    wanted = dimension.required(need)
    if dimension.name == "mode":
        return need.mode
    if dimension.name == "capabilities":
        return listed(need.constraints.capabilities or ())
    if dimension.name == "attributes":
        return listed([one.name for one in need.constraints.attributes or ()])
    if dimension.name == "substrate":
        return str(need.constraints.substrate)
    if dimension.name == "workload":
        return str(need.constraints.workload_class)
    if dimension.name == "available":
        return str((need.until_us - need.at_us) // SECOND_US)
    if wanted == YES:
        return "yes"
    if dimension.order == ONE:
        return listed([one for one in wanted if one is not None])
    return value_told(dimension, wanted)


def value_told(dimension: Dimension, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if dimension.name == "isolation":
        return ISOLATIONS[value]
    if dimension.name == "network_class":
        return NETWORK_CLASSES[value]
    if dimension.name == "kernel":
        return kernel_version(value)
    if dimension.name in _IN_SECONDS:
        return str(value // SECOND_US)
    return "" if value is None else str(value)


def listed(words: Iterable[str]) -> str:
    shown = list(words)
    more = f", and {len(shown) - WORDS_TOLD_MAX} more" if len(shown) > WORDS_TOLD_MAX else ""
    return ", ".join(shown[:WORDS_TOLD_MAX]) + more


def best_of(dimension: Dimension, offered: Iterable[Any]) -> str | None:
    """The best value: most, least, or the commonest word (of equals the first by name)."""
    values = [value for value in offered if value is not None]
    if not values or dimension.name == "available":
        return None
    if dimension.order == ONE:
        if isinstance(values[0], bool):
            return value_told(dimension, any(values))
        return commonest(Counter(values))
    return value_told(dimension, max(values) if dimension.order == MORE else min(values))


def commonest(counts: Counter[str]) -> str:
    return min(counts, key=lambda word: (-counts[word], word))


def distance(required: int, offered: int) -> int:
    """floor(10^6 x |required - offered| / required)."""
    return abs(required - offered) * PPM // max(1, required)


FIELDS = tuple(d.field for d in DIMENSIONS if d.field is not None)


def in_order(found: Iterable[Relaxation]) -> tuple[Relaxation, ...]:
    """Nearest first."""
    return tuple(sorted(found, key=lambda one: (one.distance_ppm, _place(one.field), one.offered)))


def _place(field: str) -> int:
    return FIELDS.index(field) if field in FIELDS else len(FIELDS)


# --- which demand to ease --------------------------------------------------------------------

TOGETHER: dict[str, tuple[str, ...]] = {
    "gpu_count": ("gpus", "free"),
    "share_ppm": ("mode", "free"),
    "mode": ("mode", "free"),
    "mig_profile": ("free",),
    "term_seconds": ("maintenance", "available"),
}
"""Fields that several dimensions look at; every other field has its own dimension alone."""
PLAIN = tuple(
    dimension
    for dimension in DIMENSIONS
    if dimension.field is not None and dimension.field not in TOGETHER
)


def meeting(need: Need, nodes: Iterable[OfferedNode], but: Iterable[str]) -> list[OfferedNode]:
    """The nodes that meet every demand, these dimensions left out."""
    left_out = set(but)
    others = [one for one in DIMENSIONS if one.name not in left_out]
    return [node for node in nodes if all(one.meets(need, node) for one in others)]


def _relaxations(need: Need, nodes: Sequence[OfferedNode]) -> Iterable[Relaxation]:
    for dimension in PLAIN:
        if dimension.required(need) is not None:
            rest = meeting(need, nodes, (dimension.name,))
            if dimension.name == "interruptible":
                classes = capacity_classes_if_not_paused(need)
                rest = [node for node in rest if node.capacity_class in classes]
            yield from _eased(dimension, need, rest)
    for field, ease in _EASE.items():
        rest = meeting(need, nodes, TOGETHER[field])
        if rest:
            yield from ease(need, rest)


def capacity_classes_if_not_paused(need: Need) -> tuple[str, ...]:
    """What the lease might be placed on were it not interruptible: nothing that is taken back."""
    return capacity_classes_of(
        replace(need, constraints=replace(need.constraints, interruptible=None))
    )


def _eased(dimension: Dimension, need: Need, rest: list[OfferedNode]) -> Iterable[Relaxation]:
    """One dimension by itself, over the nodes that only it refuses."""
    offered = [(dimension.offered(need, node), node) for node in rest]
    known = [(value, node) for value, node in offered if value is not None]
    field, wanted = dimension.field, dimension.required(need)
    assert field is not None
    if not known:
        return
    if dimension.order != ONE:
        values = [value for value, _ in known]
        best = max(values) if dimension.order == MORE else min(values)
        if dimension.name != "memory" or best > 0:
            holding = count(node for value, node in known if value == best)
            yield Relaxation(
                field,
                required_told(dimension, need),
                value_told(dimension, best),
                holding,
                distance(wanted, best),
            )
        return
    if isinstance(known[0][0], bool):
        yield Relaxation(field, required_told(dimension, need), ANYTHING, count(rest), PPM)
        return
    words = Counter(dict.fromkeys(((value, node.node_id) for value, node in known)).keys())
    counts = Counter(value for value, _ in words)
    best_word = commonest(counts)
    yield Relaxation(field, required_told(dimension, need), best_word, counts[best_word], PPM)


ANYTHING = "not asked for"


def _fewer(need: Need, rest: list[OfferedNode]) -> Iterable[Relaxation]:
    fitting = [(sum(device_fits(need, one) for one in node.devices), node) for node in rest]
    best = max(fits for fits, _ in fitting)
    if best > 0:
        yield _number("gpu_count", need.gpu_count, best, [n for f, n in fitting if f == best])


def _number(field: str, asked: int, best: int, nodes: Iterable[OfferedNode]) -> Relaxation:
    return Relaxation(field, str(asked), str(best), count(nodes), distance(asked, best))


def shared_mode(need: Need) -> str | None:
    """The mode of a smaller share, where there can be one."""
    mode = need.constraints.mode
    if mode is None:
        return "memory"
    return mode if mode in ("memory", "mps") else None


def _smaller(need: Need, rest: list[OfferedNode]) -> Iterable[Relaxation]:
    mode = shared_mode(need)
    if mode is None:
        return
    roomy = [(room_of(need, node, mode), node) for node in rest if mode in modes_of(node)]
    best = max((room for room, _ in roomy), default=0)
    if best > 0:
        yield _number("share_ppm", need.share_ppm, best, [n for r, n in roomy if r == best])


def room_of(need: Need, node: OfferedNode, mode: str) -> int:
    """The largest share that `gpu_count` devices still have; memory goes with it where it did.

    0 where there is none, or where less memory would be too little.
    """
    together = need.share_ppm == need.mem_ppm
    rooms = sorted(
        (
            min(one.free_share_ppm, one.free_mem_ppm) if together else one.free_share_ppm
            for one in node.devices
            if one.is_divisible
            and one.mode in (None, mode)
            and (together or one.free_mem_ppm >= need.mem_ppm)
        ),
        reverse=True,
    )
    if len(rooms) < need.gpu_count:
        return 0
    room = min(rooms[need.gpu_count - 1], need.share_ppm - 1)
    room -= room % MPS_STEP_PPM if mode == "mps" else 0
    asked = need.constraints.memory_mib
    if together and asked and lease_memory_mib(node.memory_mib, room) < asked:
        return 0
    return room


def other_modes(need: Need) -> tuple[str, ...]:
    """Modes that a request of this shape could have instead."""
    if need.mode in (MIG_MODE, WHOLE_MODE):
        return ()
    found = ["memory"]
    if need.share_ppm % MPS_STEP_PPM == 0:
        found.append("mps")
    if slices_of(need.share_ppm) is not None:
        found.append(SLICE_MODE)
    return tuple(mode for mode in found if mode != need.mode)


def with_mode(need: Need, mode: str) -> Need:
    return replace(need, constraints=replace(need.constraints, mode=mode))


def _otherwise(need: Need, rest: list[OfferedNode]) -> Iterable[Relaxation]:
    for mode in other_modes(need):
        other = with_mode(need, mode)
        able = [
            n for n in rest if BY_NAME["mode"].meets(other, n) and BY_NAME["free"].meets(other, n)
        ]
        if able:
            yield Relaxation("mode", need.mode, mode, count(able), PPM)


def _profile(need: Need, rest: list[OfferedNode]) -> Iterable[Relaxation]:
    if need.mode != MIG_MODE:
        return
    for profile in sorted({one for n in rest for d in n.devices for one in d.profiles}):
        other = replace(need, constraints=replace(need.constraints, mig_profile=profile))
        able = [node for node in rest if BY_NAME["free"].meets(other, node)]
        if able and profile != need.constraints.mig_profile:
            asked = need.constraints.mig_profile or ""
            yield Relaxation("mig_profile", asked, profile, count(able), PPM)


def free_until_us(need: Need, node: OfferedNode) -> int:
    """How long the node is there without an interruption."""
    ends = [from_us for from_us, until_us in node.maintenance if until_us > need.at_us]
    ends.append(NEVER_US if node.available_until_us is None else node.available_until_us)
    return min(ends)


def _shorter(need: Need, rest: list[OfferedNode]) -> Iterable[Relaxation]:
    if not need.is_fixed_term:
        return
    best = max(free_until_us(need, node) for node in rest)
    seconds, asked = (best - need.at_us) // SECOND_US, (need.until_us - need.at_us) // SECOND_US
    if seconds > 0:
        able = [node for node in rest if free_until_us(need, node) == best]
        yield _number("term_seconds", asked, seconds, able)


Ease = Callable[[Need, list[OfferedNode]], Iterable[Relaxation]]
_EASE: dict[str, Ease] = {
    "gpu_count": _fewer,
    "share_ppm": _smaller,
    "mode": _otherwise,
    "mig_profile": _profile,
    "term_seconds": _shorter,
}
