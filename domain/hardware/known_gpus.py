"""GPU boards by PCI id, and the name, memory and compute capability that go with each.

A driver that is a fake says one thing here and another there: an A5000 with the PCI id of a 4090
fails. A board that is not in the table proves nothing, so it does not pass tier 2 until somebody
adds its row; nor does a second board under one PCI id (744c is the RX 7900 XT too, and tells them
apart by revision, which drivers are not asked for). Sources: pci.ids (vendor 10de), NVIDIA's lists
of compute capabilities and data sheets; amdgpu.ids of libdrm (1002); the device tables of Intel's
compute-runtime (8086). None was measured by us: docs/gpu-runs.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

NVIDIA_VENDOR, AMD_VENDOR, INTEL_VENDOR = 0x10DE, 0x1002, 0x8086
MULTIPLY_ADDS_A_CLOCK = 64
"""Of 32-bit integers, of one multiprocessor: NVIDIA's table for compute capability 7.0 and up."""


@dataclass(frozen=True, slots=True)
class Board:
    """`name`: words that are all in the name the driver tells; memory in GB as it is sold.

    NVIDIA's have a compute capability, and `multiprocessors` at `boost_mhz`: how much work a
    challenge is. Others tell none of it, and there is no challenge for them.
    """

    name: str
    memory_gb: int
    compute_capability: str | None = None
    multiprocessors: int = 0
    boost_mhz: int = 0

    @property
    def multiply_adds_per_s(self) -> int:
        """The most it can do, on paper."""
        return self.multiprocessors * self.boost_mhz * 1_000_000 * MULTIPLY_ADDS_A_CLOCK

    def is_named(self, told: str) -> bool:
        return _is_named(self.name, told)

    def has_memory(self, mem_bytes: int) -> bool:
        """What drivers tell is a little less than what is sold, and never more than 3 % above."""
        told_gib_tenths = mem_bytes * 10 // 2**30
        return self.memory_gb * 85 <= told_gib_tenths * 10 <= self.memory_gb * 103


@lru_cache(maxsize=1_024)  # a fleet has some dozens of names
def _is_named(name: str, told: str) -> bool:
    words = told.upper().replace("-", " ").split()
    return all(word in words for word in name.upper().split())


_NVIDIA: dict[int, Board] = {
    0x1DB1: Board("V100 SXM2 16GB", 16, "7.0", 80, 1530),
    0x1DB4: Board("V100 PCIE 16GB", 16, "7.0", 80, 1380),
    0x1DB5: Board("V100 SXM2 32GB", 32, "7.0", 80, 1530),
    0x1DB6: Board("V100 PCIE 32GB", 32, "7.0", 80, 1380),
    0x1EB8: Board("T4", 16, "7.5", 40, 1590),
    0x20B0: Board("A100 SXM4 40GB", 40, "8.0", 108, 1410),
    0x20B2: Board("A100 SXM4 80GB", 80, "8.0", 108, 1410),
    0x20B5: Board("A100 80GB PCIE", 80, "8.0", 108, 1410),
    0x20B7: Board("A30", 24, "8.0", 56, 1440),
    0x20F1: Board("A100 PCIE 40GB", 40, "8.0", 108, 1410),
    0x2204: Board("RTX 3090", 24, "8.6", 82, 1695),
    0x2230: Board("RTX A6000", 48, "8.6", 84, 1800),
    0x2231: Board("RTX A5000", 24, "8.6", 64, 1695),
    0x2235: Board("A40", 48, "8.6", 84, 1740),
    0x2236: Board("A10", 24, "8.6", 72, 1695),
    0x24B0: Board("RTX A4000", 16, "8.6", 48, 1560),
    0x2321: Board("H100 NVL", 94, "9.0", 132, 1785),
    0x2330: Board("H100 80GB HBM3", 80, "9.0", 132, 1980),
    0x2331: Board("H100 PCIE", 80, "9.0", 114, 1755),
    0x2335: Board("H200", 141, "9.0", 132, 1980),
    0x233B: Board("H200 NVL", 141, "9.0", 132, 1785),
    0x2684: Board("RTX 4090", 24, "8.9", 128, 2520),
    0x2704: Board("RTX 4080", 16, "8.9", 76, 2505),
    0x26B1: Board("RTX 6000 ADA", 48, "8.9", 142, 2505),
    0x26B5: Board("L40", 48, "8.9", 142, 2490),
    0x26B9: Board("L40S", 48, "8.9", 142, 2520),
    0x27B8: Board("L4", 24, "8.9", 58, 2040),
    0x2B85: Board("RTX 5090", 32, "12.0", 170, 2407),
}


_AMD: dict[int, Board] = {
    0x738C: Board("MI100", 32),
    0x73A3: Board("W6800", 32),
    0x7408: Board("MI250X", 64),  # each of its two dies is a device
    0x740C: Board("MI250", 64),
    0x740F: Board("MI210", 64),
    0x7448: Board("W7900", 48),
    0x744A: Board("W7900", 48),
    0x744C: Board("RX 7900 XTX", 24),
    0x745E: Board("W7800", 32),
    0x74A1: Board("MI300X", 192),
    0x74A5: Board("MI325X", 256),
    0x74B5: Board("MI300X", 192),  # given to a virtual machine as a whole
}
_INTEL: dict[int, Board] = {
    0x0BD5: Board("MAX 1550", 128),
    0x0BD6: Board("MAX 1550", 128),
    0x0BD9: Board("MAX 1100", 48),
    0x0BDA: Board("MAX 1100", 48),
    0x0BDB: Board("MAX 1100", 48),
    0x56A0: Board("A770", 16),
    0x56A1: Board("A750", 8),
    0x56C0: Board("FLEX 170", 16),
    0xE20B: Board("B580", 12),
    0xE20C: Board("B570", 10),
}
BOARDS: dict[int, dict[int, Board]] = {
    NVIDIA_VENDOR: _NVIDIA,
    AMD_VENDOR: _AMD,
    INTEL_VENDOR: _INTEL,
}
"""By vendor and device."""


@lru_cache(maxsize=1_024)
def vendor_of(pci_id: str | None) -> int | None:
    """The vendor in a PCI id: device in the upper half, vendor in the lower, as NVML tells it."""
    try:
        return int(pci_id or "", 16) & 0xFFFF
    except ValueError:
        return None


@lru_cache(maxsize=1_024)
def board_of(pci_id: str | None) -> Board | None:
    """The board of a PCI id; None for one that is not in the table."""
    vendor = vendor_of(pci_id)
    if vendor not in BOARDS:
        return None
    return BOARDS[vendor].get(int(pci_id or "", 16) >> 16)
