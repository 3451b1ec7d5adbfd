"""What an accelerator is to us: the one seam every vendor, the simulator and the tests fill.

Not a meter: a backend says what a device answers now, `meter.py` turns answers into time. Unknown
is `None`, never 0. A backend is called from one thread per device and must not share a lock
between devices, so that a call that hangs blinds its own device only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Protocol

from domain.metering import report

PPM = 1_000_000


class Health(StrEnum):
    """What a poll of a device found."""

    HEALTHY = "healthy"
    GONE = "gone"
    BLIND = "blind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator as the inventory knows it. `id` is the hardware UUID."""

    id: str
    name: str | None = None
    mem_bytes: int | None = None
    pci: str | None = None
    pci_id: str | None = None
    compute_capability: str | None = None
    driver: str | None = None
    serial: str | None = None
    vbios: str | None = None
    power_limit_mw: int | None = None
    pcie_gen: int | None = None
    pcie_lanes: int | None = None
    mig_enabled: bool = False
    parent: str | None = None  # the board that a MIG instance is a part of
    gi: int | None = None
    ci: int | None = None
    shape: str = "whole"
    share_ppm: int = PPM
    mem_ppm: int = PPM
    busy_source: str = "none"
    energy_scope: str = "none"
    vendor: str | None = None  # None: the backend's
    kind: str | None = None  # "ipu", "seat" and so on; None: a GPU
    connection: str | None = None  # "pcie" or "sxm", where the driver tells it
    memory: str | None = None  # "unified": the host's own

    @property
    def board(self) -> str:
        """What one thread polls: the device, or the board it is a part of."""
        return self.parent or self.id

    def reported(self) -> report.Device:
        """The part of the inventory that every report repeats."""
        return report.Device(
            id=self.id,
            parent=self.parent,
            gi=self.gi,
            ci=self.ci,
            shape=self.shape,
            share_ppm=self.share_ppm,
            mem_ppm=self.mem_ppm,
            busy_source=self.busy_source,
            energy_scope=self.energy_scope,
        )

    def described(self) -> dict[str, Any]:
        """The whole inventory entry as plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a healthy device answered at one poll; None is a value it cannot tell."""

    shape: str = "whole"
    energy_mj: int | None = None
    power_limit_mw: int | None = None
    busy_ppm: int | None = None  # of the time since the device was read before
    mem_used_bytes: int | None = None
    throttle_power_ns: int | None = None  # counters since the driver was loaded
    throttle_thermal_ns: int | None = None
    power_mw: int | None = None  # a gauge, for evidence only


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something the driver reported by itself between two polls."""

    device_id: str | None
    code: int
    fatal: bool
    gi: int | None = None
    ci: int | None = None


class DeviceLost(Exception):
    """The device is gone or needs a reset: its time is unavailable. `code` is the vendor's."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(f"{why} ({code})")
        self.code = code


class MonitorBlind(Exception):
    """We cannot see the device, which may be well: its time is unknown.

    `restart` means that no later call of this process can succeed, so the agent exits with 75.
    """

    def __init__(self, code: int | None, why: str, *, restart: bool = False) -> None:
        super().__init__(why if code is None else f"{why} ({code})")
        self.code = code
        self.restart = restart


def counted(devices: Sequence[Device]) -> tuple[Device, ...]:
    """The devices of an inventory that time is counted for: a board that is cut into instances is
    counted as these.
    """
    cut = {device.parent for device in devices}
    return tuple(device for device in devices if device.id not in cut)


class Backend(Protocol):
    """One vendor's accelerators on this machine."""

    @property
    def vendor(self) -> str: ...

    def open(self) -> None:
        """Load the driver library. Raises MonitorBlind where there is none."""
        ...

    def close(self) -> None: ...

    def inventory(self) -> Sequence[Device]:
        """Every board found at `open`, one that could not be described left out, each followed by
        the instances it was cut into when it was last looked at.
        """
        ...

    def look(self, board_id: str) -> Sequence[Device]:
        """What a board is now: itself, or the instances it is cut into.

        Raises DeviceLost or MonitorBlind, for all of it.
        """
        ...

    def read(self, device_id: str) -> Reading:
        """Ask one device that its board was found to be. Raises DeviceLost or MonitorBlind."""
        ...

    def faults(self, timeout_s: float) -> Sequence[Fault]:
        """Wait at most `timeout_s` for faults the driver reports by itself."""
        ...

    def attest(self, device_id: str, nonce: bytes) -> bytes | None:
        """Evidence of identity bound to `nonce`, or None where the device has none."""
        ...
