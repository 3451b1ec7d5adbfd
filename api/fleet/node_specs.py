"""The form in which a node tells its machine: devices, host, drives and the facts of admission.

Read strictly when a node joins or reports its specification, told again as it was recorded.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from api.door.call import Call
from api.door.models import DeviceId, RequestModel, Short, with_examples
from api.process import founding
from domain.fleet.node import DeviceSpec, HostSpec
from domain.fleet.reasons import FleetReason
from domain.hardware.facts import DRIVES_MAX, HardwareFacts, SataDrive
from domain.hardware.host_kind import SUBSTRATES_MAX
from domain.refusal import Refused
from domain.trust.tiers import is_fake_driver

Mib = Annotated[int, Field(ge=0, le=2**40)]
Small = Annotated[int, Field(ge=0, le=1_000_000)]
Substrate = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,31}$")]


class DeviceForm(RequestModel):
    """One accelerator as its node describes it; null: not known."""

    device_id: DeviceId
    vendor: Short
    model: Short
    memory_mib: Mib
    connection: Literal["pcie", "sxm", "soc"] = "pcie"
    pcie_gen: Small | None = None
    pcie_lanes: Small | None = None
    kind: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,31}$")] | None = None
    memory: Literal["unified"] | None = None

    def spec(self) -> DeviceSpec:
        return DeviceSpec(**self.model_dump())


class HostForm(RequestModel):
    """The machine around the accelerators; null: not known."""

    arch: Short
    os: Short
    cpu_cores: Small | None = None
    ram_mib: Mib | None = None
    driver: Short | None = None
    kernel: Short | None = None
    substrate: Annotated[list[Substrate], Field(max_length=SUBSTRATES_MAX)] | None = None

    def spec(self) -> HostSpec:
        told = self.model_dump(exclude={"substrate"})
        return HostSpec(**told, substrate=None if self.substrate is None else tuple(self.substrate))


class SataDriveForm(RequestModel):
    """Decimal gigabytes; a drive without platters turns 0 times a minute; null: not known."""

    size_gb: Small
    kind: Literal["ssd", "hdd"]
    rpm: Small | None = None


class HardwareForm(RequestModel):
    """What the rules of joining and selling need; null: not known, an empty list: none. Drives in
    decimal gigabytes; `ram_gb` is what is built in, `cpu_cores` counts no threads,
    `ethernet_mbps` is the fastest port that has a link.
    """

    nvme_drives_gb: Annotated[list[Small], Field(max_length=DRIVES_MAX)] | None = None
    sata_drives: Annotated[list[SataDriveForm], Field(max_length=DRIVES_MAX)] | None = None
    tpm_2_0: bool | None = None
    ram_gb: Small | None = None
    cpu_cores: Small | None = None
    ethernet_mbps: Annotated[int, Field(ge=0, le=10_000_000)] | None = None

    def facts(self) -> HardwareFacts:
        drives, sata = self.nvme_drives_gb, self.sata_drives
        return HardwareFacts(
            nvme_drives_gb=None if drives is None else tuple(drives),
            sata_drives=None if sata is None else tuple(_sata_drive(drive) for drive in sata),
            tpm_2_0=self.tpm_2_0,
            ram_gb=self.ram_gb,
            cpu_cores=self.cpu_cores,
            ethernet_mbps=self.ethernet_mbps,
        )


def _sata_drive(form: SataDriveForm) -> SataDrive:
    return SataDrive(**form.model_dump())


def facts_of(form: HardwareForm | None) -> HardwareFacts | None:
    return None if form is None else form.facts()


_DEVICE = {
    "device_id": "GPU-5c1d8f3e",
    "vendor": "nvidia",
    "model": "NVIDIA H100 80GB HBM3",
    "memory_mib": 81559,
    "connection": "sxm",
}
EXAMPLE_SPECS = {"devices": [_DEVICE], "host": {"arch": "x86_64", "os": "linux"}}
DEVICES_MAX = 256
"""Of one node, seats of licences among them."""
Devices = Annotated[list[DeviceForm], Field(max_length=DEVICES_MAX)]


class NodeSpecsRequest(RequestModel):
    """`agent`: version of the reporter that tells this; left out, as it was."""

    devices: Devices
    host: HostForm
    hardware: HardwareForm | None = None
    agent: Annotated[str, Field(min_length=1, max_length=32)] | None = None

    model_config = with_examples({"agent": "0.1.0", **EXAMPLE_SPECS})


def require_driver(call: Call, driver: str | None) -> None:
    """A driver that calls itself simulated or fake has no place where money is real.

    Raises Refused: NODE_NOT_JOINABLE.
    """
    if is_fake_driver(driver) and not founding.is_development(call.service.ledger):
        raise Refused(FleetReason.NODE_NOT_JOINABLE, failing=("real_driver",), driver=driver)
