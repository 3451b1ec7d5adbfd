"""Hardware classes: which usage fee an accelerator pays, from its model's name. A dated registry.

A model matches by whole words of its name, the longest match wins, and a row counts from its date
on. An unknown model, or one that two rows of equal length put into two classes, has no class: it
is listed and not priced, never guessed (C-19). A later row never touches an open lease, because a
lease keeps its class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
    """From `from_us` on, models with these words side by side in their name are of this class."""

    words: tuple[str, ...]  # upper case, letters and digits only
    gpu_class: str
    from_us: int = 0


def words_of(model: str) -> tuple[str, ...]:
    """ "NVIDIA A100-SXM4-80GB" is NVIDIA, A100, SXM4, 80GB."""
    return tuple(re.findall(r"[A-Z0-9]+", model.upper()))


def _rows(gpu_class: str, names: Iterable[str]) -> tuple[ModelRow, ...]:
    return tuple(ModelRow(words_of(name), gpu_class) for name in names)


REGISTRY: tuple[ModelRow, ...] = (
    # Families, as the fee table names them.
    *_rows(DEVELOPMENT, ("GeForce", "Radeon", "TITAN")),
    *_rows(PROFESSIONAL, ("Quadro", "Radeon Pro", "RTX PRO")),
    *_rows(DATACENTER, ("Tesla", "Radeon Instinct", "Instinct")),
    # Names that drivers, inventories and traces print without their family.
    *_rows(
        DEVELOPMENT,
        (
            f"RTX {generation}0{tier}0{suffix}"
            for generation in (2, 3, 4, 5)
            for tier in (6, 7, 8, 9)
            for suffix in ("", "Ti", " Ti")
        ),
    ),
    *_rows(PROFESSIONAL, ("RTX A2000", "RTX A4000", "RTX A4500", "RTX A5000", "RTX A5500")),
    *_rows(PROFESSIONAL, ("RTX A6000", "A6000", "A5000", "A4000")),
    *_rows(PROFESSIONAL, (f"RTX {number} Ada" for number in (2000, 4000, 4500, 5000, 5880, 6000))),
    *_rows(DATACENTER, ("K80", "M40", "M60", "P4", "P40", "P100", "T4", "V100")),
    *_rows(DATACENTER, ("A2", "A10", "A10G", "A16", "A30", "A40", "A100", "A800")),
    *_rows(DATACENTER, ("L4", "L20", "L40", "L40S", "H20", "H100", "H200", "H800", "GH200")),
    *_rows(DATACENTER, ("B100", "B200", "B300", "GB200", "GB300")),
    *_rows(DATACENTER, ("MI50", "MI60", "MI100", "MI210", "MI250", "MI250X", "MI300X", "MI325X")),
    *_rows(DEVELOPMENT, ("Intel Arc",)),
    *_rows(PROFESSIONAL, ("Intel Arc Pro",)),
    *_rows(DATACENTER, ("Data Center GPU Max", "Data Center GPU Flex")),
    # Accelerators that are no GPUs, machines whose memory is one with the host's, and software.
    *_rows(ACCELERATOR, ("IPU", "Bow IPU", "GC200", "C600", "Gaudi", "Gaudi2", "Gaudi3")),
    *_rows(UNIFIED, ("GB10",)),
    *_rows(
        UNIFIED,
        (
            f"Apple M{generation}{size}"
            for generation in (1, 2, 3, 4, 5)
            for size in ("", " Pro", " Max", " Ultra")
        ),
    ),
    *_rows(SOFTWARE, ("ThirdAI",)),
    # The public Alibaba cluster trace: V100 by memory, and two data-centre models it does not name.
    *_rows(DATACENTER, ("V100M16", "V100M32", "G2", "G3")),
)


def class_of(model: str, at_us: int, registry: Sequence[ModelRow] = REGISTRY) -> str | None:
    """The class of a model at a moment; None if the registry does not know one class for it.

    Of rows with the same words the latest in force counts.
    """
    words = words_of(model)
    in_force: dict[tuple[str, ...], ModelRow] = {}
    for row in sorted(registry, key=lambda row: row.from_us):
        if row.from_us <= at_us and _contains(words, row.words):
            in_force[row.words] = row
    longest = max((len(row.words) for row in in_force.values()), default=0)
    classes = {row.gpu_class for row in in_force.values() if len(row.words) == longest}
    return classes.pop() if len(classes) == 1 else None


def _contains(words: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    size = len(wanted)
    return any(words[start : start + size] == wanted for start in range(len(words) - size + 1))
