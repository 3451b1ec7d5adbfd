"""What a machine is built of, as far as the rules of joining and selling need it (C-11 to C-18).

Told by the node beside its devices and its host (domain/fleet/node.py: `DeviceSpec` has model,
memory, connection and PCIe lanes, `HostSpec` architecture and operating system), and no more than
told: None is not known, never none. Whether a machine stores locally is its region's to say. Not
the rules: they read this.
"""

from __future__ import annotations

from domain.record import dataclass

SSD, HDD = "ssd", "hdd"
DRIVES_MAX = 256


@dataclass(frozen=True, slots=True)
class SataDrive:
    """One SATA drive; decimal gigabytes, rounded down. A drive without platters turns 0 times."""

    size_gb: int
    kind: str  # ssd or hdd
    rpm: int | None = None  # None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareFacts:
    """Of one machine. An empty list of drives says that there are none, None that nobody looked."""

    nvme_drives_gb: tuple[int, ...] | None = None  # decimal gigabytes each, rounded down
    sata_drives: tuple[SataDrive, ...] | None = None
    tpm_2_0: bool | None = None  # a TPM or fTPM that speaks 2.0
    ram_gb: int | None = None  # built in, binary gigabytes; `HostSpec.ram_mib` is what programs get
    cpu_cores: int | None = None  # real ones; `HostSpec.cpu_cores` counts threads
    ethernet_mbps: int | None = None  # of the fastest port that has a link
