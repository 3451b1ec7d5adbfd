"""Hardware classes: which usage fee an accelerator pays, from its maker and its model's name.

A dated registry. A model matches a row of its maker by whole words of its name, if nothing stands
before them but the maker's own words: "NVIDIA Tesla T4" is a T4, and "Toaster T4" is not. The
longest match wins, and a row counts from its date on. An unknown model, or one that two rows of
equal length put into two classes, has no class: it is listed and not priced, never guessed (C-19).
A later row never touches an open lease, because a lease keeps its class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from domain.record import dataclass

# The last three are no GPUs of the fee table (C-20): a tariff that has no row for them, or an
# installation that publishes none, leaves such devices listed and unpriced.
DEVELOPMENT = "development"
PROFESSIONAL = "professional"
DATACENTER = "datacenter"
ACCELERATOR = "accelerator"
UNIFIED = "unified"
SOFTWARE = "software"


@dataclass(frozen=True, slots=True)
class ModelRow:
    """From `from_us` on, models of this maker with these words side by side are of this class."""

    vendor: str  # lower case
    words: tuple[str, ...]  # upper case, letters and digits only
    gpu_class: str
    from_us: int = 0


def words_of(model: str) -> tuple[str, ...]:
    """ "NVIDIA A100-SXM4-80GB" is NVIDIA, A100, SXM4, 80GB; marks such as (R) are no words."""
    return tuple(re.findall(r"[A-Z0-9]+", re.sub(r"\((?:R|TM)\)", " ", model.upper())))


def _rows(vendor: str, gpu_class: str, names: Iterable[str]) -> tuple[ModelRow, ...]:
    return tuple(ModelRow(vendor, words_of(name), gpu_class) for name in names)


NVIDIA, AMD, INTEL = "nvidia", "amd", "intel"
SIMULATED = "sim"
"""What a simulated device says as its maker: it is classed as the board that its model names."""


REGISTRY: tuple[ModelRow, ...] = (
    # Families, as the fee table names them.
    *_rows(NVIDIA, DEVELOPMENT, ("GeForce", "TITAN")),
    *_rows(AMD, DEVELOPMENT, ("Radeon",)),
    *_rows(NVIDIA, PROFESSIONAL, ("Quadro", "RTX PRO")),
    *_rows(AMD, PROFESSIONAL, ("Radeon Pro",)),
    *_rows(NVIDIA, DATACENTER, ("Tesla",)),
    *_rows(AMD, DATACENTER, ("Radeon Instinct", "Instinct")),
    # Names that drivers and inventories print without their family.
    *_rows(
        NVIDIA,
        DEVELOPMENT,
        (
            f"RTX {generation}0{tier}0{suffix}"
            for generation in (2, 3, 4, 5)
            for tier in (6, 7, 8, 9)
            for suffix in ("", "Ti", " Ti")
        ),
    ),
    *_rows(NVIDIA, PROFESSIONAL, ("RTX A2000", "RTX A4000", "RTX A4500", "RTX A5000", "RTX A5500")),
    *_rows(NVIDIA, PROFESSIONAL, ("RTX A6000", "A6000", "A5000", "A4000")),
    *_rows(
        NVIDIA,
        PROFESSIONAL,
        (f"RTX {number} Ada" for number in (2000, 4000, 4500, 5000, 5880, 6000)),
    ),
    *_rows(NVIDIA, DATACENTER, ("K80", "M40", "M60", "P4", "P40", "P100", "T4", "V100")),
    *_rows(NVIDIA, DATACENTER, ("A2", "A10", "A10G", "A16", "A30", "A40", "A100", "A800")),
    *_rows(NVIDIA, DATACENTER, ("L4", "L20", "L40", "L40S", "H20", "H100", "H200", "H800")),
    *_rows(NVIDIA, DATACENTER, ("GH200", "B100", "B200", "B300", "GB200", "GB300")),
    *_rows(
        AMD, DATACENTER, ("MI50", "MI60", "MI100", "MI210", "MI250", "MI250X", "MI300X", "MI325X")
    ),
    *_rows(INTEL, DEVELOPMENT, ("Arc",)),
    *_rows(INTEL, PROFESSIONAL, ("Arc Pro",)),
    *_rows(INTEL, DATACENTER, ("Data Center GPU Max", "Data Center GPU Flex")),
    # Accelerators that are no GPUs, machines whose memory is one with the host's, and software.
    *_rows("graphcore", ACCELERATOR, ("IPU", "Bow IPU", "GC200", "C600")),
    *_rows(INTEL, ACCELERATOR, ("Gaudi", "Gaudi2", "Gaudi3")),
    *_rows(NVIDIA, UNIFIED, ("GB10",)),
    *_rows(
        "apple",
        UNIFIED,
        (
            f"M{generation}{size}"
            for generation in (1, 2, 3, 4, 5)
            for size in ("", " Pro", " Max", " Ultra")
        ),
    ),
    *_rows("thirdai", SOFTWARE, ("ThirdAI",)),
)


def class_of(
    vendor: str, model: str, at_us: int, registry: Sequence[ModelRow] = REGISTRY
) -> str | None:
    """The class of a maker's model at a moment; None if the registry does not know one class.

    Of rows with the same words the latest in force counts.
    """
    words, maker = words_of(model), vendor.lower()
    if maker == SIMULATED and words:
        maker = words[0].lower()
    rows = [row for row in registry if row.vendor == maker]
    own = {word for row in rows for word in row.words} | {*words_of(maker)}
    in_force: dict[tuple[str, ...], ModelRow] = {}
    for row in sorted(rows, key=lambda row: row.from_us):
        if row.from_us <= at_us and _names(words, row.words, own):
            in_force[row.words] = row
    longest = max((len(row.words) for row in in_force.values()), default=0)
    classes = {row.gpu_class for row in in_force.values() if len(row.words) == longest}
    return classes.pop() if len(classes) == 1 else None


def _names(words: tuple[str, ...], wanted: tuple[str, ...], own: set[str]) -> bool:
    """Whether the words stand side by side, after nothing but words of the maker's own."""
    size = len(wanted)
    return any(
        words[start : start + size] == wanted and own.issuperset(words[:start])
        for start in range(len(words) - size + 1)
    )
