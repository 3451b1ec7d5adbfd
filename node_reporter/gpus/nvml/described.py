"""What one board is: the entry of the inventory, read once when the driver is opened.

Nothing here says whether the board is well: what it does not tell is None.
"""

from __future__ import annotations

from typing import Any

from node_reporter.gpus import hardware
from node_reporter.gpus.nvml.driver import NOT_SUPPORTED, attempt, nvml, text
from node_reporter.gpus.seam import Device

MODULES = ("GH200", "GB200", "GB300")
"""Boards whose energy counter counts the processor beside the GPU as well."""


def describe(uuid: str, handle: Any, busy_source: str) -> Device:
    """The board with this UUID."""
    pci = attempt(nvml.nvmlDeviceGetPciInfo, handle)
    capability = attempt(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    limits = attempt(nvml.nvmlDeviceGetPowerManagementLimitConstraints, handle)
    mig = attempt(nvml.nvmlDeviceGetMigMode, handle)
    name = attempt(nvml.nvmlDeviceGetName, handle)
    mem_bytes, memory = _memory(handle)
    return Device(
        id=uuid,
        name=None if name is None else text(name),
        mem_bytes=mem_bytes,
        memory=memory,
        pci=None if pci is None else text(pci.busId),
        pci_id=None if pci is None else f"0x{pci.pciDeviceId:08x}",
        compute_capability=None if capability is None else "{}.{}".format(*capability),
        driver=attempt(nvml.nvmlSystemGetDriverVersion),
        serial=attempt(nvml.nvmlDeviceGetSerial, handle),
        vbios=attempt(nvml.nvmlDeviceGetVbiosVersion, handle),
        power_limit_mw=None if limits is None else int(limits[1]),
        pcie_gen=attempt(nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle),
        pcie_lanes=attempt(nvml.nvmlDeviceGetMaxPcieLinkWidth, handle),
        mig_enabled=bool(mig is not None and mig[0]),
        busy_source=busy_source,
        energy_scope=_energy_scope(handle, name),
    )


def _energy_scope(handle: Any, name: Any) -> str:
    if attempt(nvml.nvmlDeviceGetTotalEnergyConsumption, handle) is None:
        return "none"
    return "module" if name is not None and any(m in text(name) for m in MODULES) else "device"


def _memory(handle: Any) -> tuple[int | None, str | None]:
    """(bytes, "unified" or None). A GPU that says it has no memory of its own uses the host's."""
    try:
        told = nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)
    except nvml.NVMLError as error:
        if int(error.value) != NOT_SUPPORTED:
            return None, None
        return hardware.host_bytes(), "unified"
    return int(told.total), None
