"""Which machines may join, and which may sell to others: two verdicts and every rule that fails.

    joinable  <=>  no rule of joining fails          sellable  <=>  no rule at all fails
    a fact that is not known fails its rules by name, and never passes one

A rule that is waived is still told as failing; it only stops nothing. Rows C-11 to C-18; the order
and the bounds are those of the conformance suite `hardware_admission`. Which rules a region insists
on is `domain/fleet/provider.py`, what a machine is built of `domain/hardware/facts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from domain.hardware.facts import SSD, SataDrive

TB_GB = 1_000
NVME_DRIVES_MIN = 2
SATA_DRIVES_MIN = 3
SATA_GB_MIN = 2_000
SATA_RPM_MIN = 7_200
ETHERNET_MBPS_MIN = 10_000
PCIE_LANES_MIN = 8
RAM_PER_VRAM = 2
CORES_PER_GPU, CORES_PER_FAST_GPU = 2, 4
FAST_PCIE_GEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator, as far as the rules look at it."""

    model: str
    vram_mib: int
    connection: str  # "pcie" or "sxm"
    pcie_gen: int | None
    pcie_lanes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One machine in its region; None is not known. Drives in decimal gigabytes."""

    gpus: tuple[Gpu, ...]
    storage_mode: str  # of the region: "local" or "central"
    nvme_drives_gb: tuple[int, ...] | None = None
    tpm_2_0: bool | None = None
    ram_mib: int | None = None
    cpu_cores: int | None = None
    sata_drives: tuple[SataDrive, ...] | None = None
    ethernet_mbps: int | None = None
    seats: int = 0  # of licences: devices that are no accelerators of the machine


@dataclass(frozen=True, slots=True)
class Verdict:
    """`failing`: every rule that does not hold, in the order of RULES, waived or not."""

    failing: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()  # of the failing ones: those that stop nothing here

    @property
    def stopping(self) -> tuple[str, ...]:
        return tuple(name for name in self.failing if name not in self.waived)

    @property
    def joinable(self) -> bool:
        return not any(name in JOINING for name in self.stopping)

    @property
    def sellable(self) -> bool:
        return not self.stopping


def judge(system: System, waived: Collection[str] = ()) -> Verdict:
    """Every rule, one by one. Source: rows C-11 to C-18, conformance suite `hardware_admission`."""
    failing = tuple(name for name, holds in _RULES.items() if not holds(system))
    return Verdict(failing, tuple(name for name in failing if name in waived))


def _same_model(system: System) -> bool:
    return len({gpu.model for gpu in system.gpus}) <= 1


def _nvme_size(system: System) -> bool:
    """1 TB for every two GPUs, rounded up."""
    drives = system.nvme_drives_gb
    return drives is not None and sum(drives) >= TB_GB * ((len(system.gpus) + 1) // 2)


def _sata_drives(system: System) -> bool:
    if system.storage_mode != "local":
        return True
    drives = system.sata_drives or ()
    return sum(_counts(drive) for drive in drives) >= SATA_DRIVES_MIN


def _counts(drive: SataDrive) -> bool:
    is_fast = drive.kind == SSD or (drive.rpm or 0) >= SATA_RPM_MIN
    return is_fast and drive.size_gb >= SATA_GB_MIN


def _ethernet(system: System) -> bool:
    return system.storage_mode != "central" or (system.ethernet_mbps or 0) >= ETHERNET_MBPS_MIN


def _ram(system: System) -> bool:
    vram_mib = sum(gpu.vram_mib for gpu in system.gpus)
    return system.ram_mib is not None and system.ram_mib >= RAM_PER_VRAM * vram_mib


def _pcie_lanes(system: System) -> bool:
    lanes = [gpu.pcie_lanes for gpu in system.gpus if gpu.connection != "sxm"]
    return all(one is not None and one >= PCIE_LANES_MIN for one in lanes)


def _cpu_cores(system: System) -> bool:
    generations = [gpu.pcie_gen for gpu in system.gpus]
    if system.cpu_cores is None or None in generations:
        return False
    needed = sum(
        CORES_PER_FAST_GPU if (gen or 0) >= FAST_PCIE_GEN else CORES_PER_GPU for gen in generations
    )
    return system.cpu_cores >= needed


_RULES: dict[str, Callable[[System], bool]] = {
    "has_gpu": lambda system: len(system.gpus) + system.seats >= 1,
    "same_gpu_model": _same_model,
    "nvme_count": lambda system: len(system.nvme_drives_gb or ()) >= NVME_DRIVES_MIN,
    "nvme_size": _nvme_size,
    "tpm_2_0": lambda system: system.tpm_2_0 is True,
    "sata_drives": _sata_drives,
    "ethernet": _ethernet,
    "ram": _ram,
    "pcie_lanes": _pcie_lanes,
    "cpu_cores": _cpu_cores,
}
RULES = tuple(_RULES)
"""Every rule, in the order in which they are told."""
SELLING = ("ram", "pcie_lanes", "cpu_cores")
JOINING = tuple(name for name in RULES if name not in SELLING)
ALWAYS = ("has_gpu", "same_gpu_model")
"""Rules that nobody waives: without them there is nothing to rent, or no one price for it."""
WAIVABLE = tuple(name for name in RULES if name not in ALWAYS)
