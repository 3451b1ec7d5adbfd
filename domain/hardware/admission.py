"""Which machines may join, and which may sell to others: two verdicts and every rule that fails.

    joinable  <=>  no rule of joining fails          sellable  <=>  no rule at all fails
    a fact that is not known fails its rules by name, and never passes one

A rule that is waived is still told as failing; it only stops nothing. Regions at home have numbers
of their own (K-15), dated like those of datacenters. Rows C-11 to C-18; the order
and the bounds are those of the conformance suite `hardware_admission`. Which rules a region insists
on is `domain/fleet/provider.py`, what a machine is built of `domain/hardware/facts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from domain.hardware.facts import SSD, SataDrive
from domain.money import PPM
from domain.record import dataclass

SATA_GB_MIN = 2_000
SATA_RPM_MIN = 7_200
FAST_PCIE_GEN = 4
PCIE, SXM, SOC = "pcie", "sxm", "soc"
"""How a GPU is connected. One that shares the host's memory on one chip has no lanes to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The numbers of the rules, from a moment on, for nodes in one setting."""

    from_us: int
    nvme_drives: int  # at least
    nvme_gb_per_two_gpus: int
    needs_tpm: bool
    sata_drives: int  # where storage is local
    ethernet_mbps: int  # where storage is central
    any_ethernet_mbps: int  # in any case
    any_drive_gb: int  # of all drives together
    ram_per_vram_ppm: int
    pcie_lanes: int
    cores_per_gpu: int
    cores_per_fast_gpu: int


DATACENTER_LIMITS = Limits(
    from_us=0,
    nvme_drives=2,
    nvme_gb_per_two_gpus=1_000,
    needs_tpm=True,
    sata_drives=3,
    ethernet_mbps=10_000,
    any_ethernet_mbps=0,
    any_drive_gb=0,
    ram_per_vram_ppm=2_000_000,
    pcie_lanes=8,
    cores_per_gpu=2,
    cores_per_fast_gpu=4,
)
HOME_LIMITS = Limits(
    from_us=0,
    nvme_drives=0,
    nvme_gb_per_two_gpus=0,
    needs_tpm=False,
    sata_drives=0,
    ethernet_mbps=100,
    any_ethernet_mbps=100,
    any_drive_gb=250,
    ram_per_vram_ppm=1_000_000,
    pcie_lanes=4,
    cores_per_gpu=2,
    cores_per_fast_gpu=2,
)
LIMITS: dict[str, tuple[Limits, ...]] = {"datacenter": (DATACENTER_LIMITS,), "edge": (HOME_LIMITS,)}
"""By setting of the region, oldest first: a change is another row with its date (K-15)."""


def limits_of(setting: str, at_us: int) -> Limits:
    """The numbers in force for nodes of a setting at a moment."""
    known = [one for one in LIMITS[setting] if one.from_us <= at_us]
    return known[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator, as far as the rules look at it."""

    model: str
    vram_mib: int
    connection: str  # PCIE, SXM or SOC
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
    limits: Limits = DATACENTER_LIMITS


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
    """1 TB for every two GPUs, rounded up; at home enough on drives of any sort."""
    needed = system.limits.nvme_gb_per_two_gpus * ((len(system.gpus) + 1) // 2)
    drives = system.nvme_drives_gb
    if needed and (drives is None or sum(drives) < needed):
        return False
    every = sum(drives or ()) + sum(drive.size_gb for drive in system.sata_drives or ())
    return every >= system.limits.any_drive_gb


def _sata_drives(system: System) -> bool:
    if system.storage_mode != "local":
        return True
    drives = system.sata_drives or ()
    return sum(_counts(drive) for drive in drives) >= system.limits.sata_drives


def _counts(drive: SataDrive) -> bool:
    is_fast = drive.kind == SSD or (drive.rpm or 0) >= SATA_RPM_MIN
    return is_fast and drive.size_gb >= SATA_GB_MIN


def _ethernet(system: System) -> bool:
    central = system.limits.ethernet_mbps if system.storage_mode == "central" else 0
    return (system.ethernet_mbps or 0) >= max(central, system.limits.any_ethernet_mbps)


def _ram(system: System) -> bool:
    vram_mib = sum(gpu.vram_mib for gpu in system.gpus)
    needed_ppm = system.limits.ram_per_vram_ppm * vram_mib
    return system.ram_mib is not None and system.ram_mib * PPM >= needed_ppm


def _pcie_lanes(system: System) -> bool:
    lanes = [gpu.pcie_lanes for gpu in system.gpus if gpu.connection == PCIE]
    return all(one is not None and one >= system.limits.pcie_lanes for one in lanes)


def _cpu_cores(system: System) -> bool:
    """A GPU on one chip with its processor counts as a fast one: it has no bus to wait for."""
    limits = system.limits
    on_bus = [gpu.pcie_gen for gpu in system.gpus if gpu.connection != SOC]
    if system.cpu_cores is None or None in on_bus:
        return False
    fast = sum((gen or 0) >= FAST_PCIE_GEN for gen in on_bus) + len(system.gpus) - len(on_bus)
    slow = len(system.gpus) - fast
    return system.cpu_cores >= limits.cores_per_fast_gpu * fast + limits.cores_per_gpu * slow


_RULES: dict[str, Callable[[System], bool]] = {
    "has_gpu": lambda system: len(system.gpus) + system.seats >= 1,
    "same_gpu_model": _same_model,
    "nvme_count": lambda system: len(system.nvme_drives_gb or ()) >= system.limits.nvme_drives,
    "nvme_size": _nvme_size,
    "tpm_2_0": lambda system: system.tpm_2_0 is True or not system.limits.needs_tpm,
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
