"""NVIDIA's boards: the PCI id, and the name, memory and compute capability that go with it.

A driver that is a fake says one thing here and another there: an A5000 with the PCI id of a 4090
fails. A board that is not in the table proves nothing, so it does not pass tier 2 until somebody
adds its row. Sources: pci.ids (vendor 10de) and NVIDIA's list of compute capabilities; the rows of
a board that was measured by us are named in docs/gpu-runs.md.
"""

from __future__ import annotations

from dataclasses import dataclass

NVIDIA_VENDOR = 0x10DE


@dataclass(frozen=True, slots=True)
class Board:
    """`name`: words that are all in the name NVML tells; memory in GB as it is sold."""

    name: str
    memory_gb: int
    compute_capability: str

    def is_named(self, told: str) -> bool:
        words = told.upper().replace("-", " ").split()
        return all(word in words for word in self.name.upper().split())

    def has_memory(self, mem_bytes: int) -> bool:
        """What NVML tells is a little less than what is sold, and never more than 3 % above it."""
        told_gib_tenths = mem_bytes * 10 // 2**30
        return self.memory_gb * 85 <= told_gib_tenths * 10 <= self.memory_gb * 103


BOARDS: dict[int, Board] = {
    0x1DB1: Board("V100 SXM2 16GB", 16, "7.0"),
    0x1DB4: Board("V100 PCIE 16GB", 16, "7.0"),
    0x1DB5: Board("V100 SXM2 32GB", 32, "7.0"),
    0x1DB6: Board("V100 PCIE 32GB", 32, "7.0"),
    0x1EB8: Board("T4", 16, "7.5"),
    0x20B0: Board("A100 SXM4 40GB", 40, "8.0"),
    0x20B2: Board("A100 SXM4 80GB", 80, "8.0"),
    0x20B5: Board("A100 80GB PCIE", 80, "8.0"),
    0x20B7: Board("A30", 24, "8.0"),
    0x20F1: Board("A100 PCIE 40GB", 40, "8.0"),
    0x2204: Board("RTX 3090", 24, "8.6"),
    0x2230: Board("RTX A6000", 48, "8.6"),
    0x2231: Board("RTX A5000", 24, "8.6"),
    0x2235: Board("A40", 48, "8.6"),
    0x2236: Board("A10", 24, "8.6"),
    0x24B0: Board("RTX A4000", 16, "8.6"),
    0x2321: Board("H100 NVL", 94, "9.0"),
    0x2330: Board("H100 80GB HBM3", 80, "9.0"),
    0x2331: Board("H100 PCIE", 80, "9.0"),
    0x2335: Board("H200", 141, "9.0"),
    0x233B: Board("H200 NVL", 141, "9.0"),
    0x2684: Board("RTX 4090", 24, "8.9"),
    0x2704: Board("RTX 4080", 16, "8.9"),
    0x26B1: Board("RTX 6000 ADA", 48, "8.9"),
    0x26B5: Board("L40", 48, "8.9"),
    0x26B9: Board("L40S", 48, "8.9"),
    0x27B8: Board("L4", 24, "8.9"),
    0x2B85: Board("RTX 5090", 32, "12.0"),
}


def board_of(pci_id: str | None) -> Board | None:
    """The board of a PCI id as NVML tells it: device in the upper half, vendor in the lower."""
    try:
        told = int(pci_id or "", 16)
    except ValueError:
        return None
    return BOARDS.get(told >> 16) if told & 0xFFFF == NVIDIA_VENDOR else None
