"""Backend `nvml`: NVIDIA GPUs through nvidia-ml-py. The only file that imports pynvml.

Not a meter and not a guess: an error that says the GPU is gone raises DeviceLost, one that says we
cannot see it raises MonitorBlind, and a call that this GPU does not have costs its own value only.
No call here changes a setting or needs root. MIG instances are not metered yet: a GPU in MIG mode
stands in the inventory and its time is unknown, because nobody could rent it whole.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pynvml

from node_reporter.gpus import Device, DeviceLost, Fault, MonitorBlind, Reading

_n: Any = pynvml  # it carries no types we could trust

GONE = frozenset({8, 11, 15, 16})
"""INSUFFICIENT_POWER, IRQ_ISSUE, GPU_IS_LOST, RESET_REQUIRED: unavailable."""
RESTART = frozenset({1, 9, 12, 17, 18})
"""UNINITIALIZED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, OPERATING_SYSTEM, LIB_RM_VERSION_MISMATCH:
nothing this process can call will ever answer again."""
ABSENT = frozenset({3, 4, 6, 13, 25})
"""NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH: this GPU
does not have that value. Everything else, 999 UNKNOWN above all, is blind."""
XIDS_OF_APPLICATIONS = frozenset({13, 31, 43, 45, 68, 109})
"""XIDs a program causes; any other means that the GPU is not fit to be rented."""
TIMEOUT = 10
RECOVERY_ACTION = 230
"""Field NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: not 0 means do not schedule here."""
XID_EVENT = 8


class NvmlGpus:
    """Every NVIDIA GPU of this machine. Open it once, in the process that keeps using it."""

    vendor = "nvml"

    def __init__(self) -> None:
        self._handles: dict[str, Any] = {}
        self._devices: tuple[Device, ...] = ()
        self._absent: dict[str, set[str]] = {}
        self._condemned: dict[str, int] = {}
        self._events: Any = None

    def open(self) -> None:
        """Load the driver library and describe the GPUs. Raises MonitorBlind."""
        _require_nvidia_ml_py()
        _must(_n.nvmlInit)
        found = [_found(index) for index in range(_must(_n.nvmlDeviceGetCount))]
        self._handles = {uuid: handle for uuid, handle in found if uuid is not None}
        self._absent = {uuid: set() for uuid in self._handles}
        self._devices = tuple(_described(uuid, h) for uuid, h in self._handles.items())
        self._events = self._subscribe()

    def close(self) -> None:
        """Let the library go. Not called while a thread hangs in it."""
        if self._events is not None:
            _try(_n.nvmlEventSetFree, self._events)
            self._events = None
        _try(_n.nvmlShutdown)

    def inventory(self) -> Sequence[Device]:
        return self._devices

    def look(self, board_id: str) -> Sequence[Device]:
        return tuple(device for device in self._devices if device.id == board_id)

    def read(self, device_id: str) -> Reading:
        """Ask one GPU. The cached handle is kept through errors: a new lookup can fail because a
        neighbour is lost. Raises DeviceLost, MonitorBlind."""
        handle = self._handles[device_id]
        ask = _Asking(self._absent[device_id])
        energy_mj = ask("energy", _n.nvmlDeviceGetTotalEnergyConsumption, handle)
        rates = ask("utilisation", _n.nvmlDeviceGetUtilizationRates, handle)
        memory = ask("memory", _n.nvmlDeviceGetMemoryInfo, handle, _n.nvmlMemory_v2)
        mig = ask("mig", _n.nvmlDeviceGetMigMode, handle)
        limits = ask("power limit", _n.nvmlDeviceGetPowerManagementLimitConstraints, handle)
        self._check_recovery(device_id, ask("fields", _recovery_action, handle))
        if not ask.answers:
            raise MonitorBlind(None, "no call answers on this GPU")
        if mig is not None and mig[0]:
            raise MonitorBlind(None, "MIG is on, instances are not metered yet")
        return Reading(
            energy_mj=None if energy_mj is None else int(energy_mj),
            power_limit_mw=None if limits is None else int(limits[1]),
            busy_ppm=None if rates is None else int(rates.gpu) * 10_000,
            mem_used_bytes=None if memory is None else int(memory.used),
        )

    def faults(self, timeout_s: float) -> Sequence[Fault]:
        """Wait for one XID. Raises MonitorBlind(restart) when the library on disk was replaced.

        An error of the wait itself says nothing about any GPU and is passed over.
        """
        if _library_was_replaced():
            raise MonitorBlind(None, "libnvidia-ml was replaced on disk", restart=True)
        if self._events is None:
            return ()
        event = _try(_n.nvmlEventSetWait_v2, self._events, int(timeout_s * 1_000))
        if event is None or not event.eventType & XID_EVENT:
            return ()
        code = int(event.eventData)
        fault = Fault(
            device_id=self._owner(event.device),
            code=code,
            fatal=code not in XIDS_OF_APPLICATIONS,
        )
        if fault.fatal and fault.device_id is not None:
            self._condemned[fault.device_id] = code
        return (fault,)

    def attest(self, device_id: str, nonce: bytes) -> bytes | None:
        """No attestation in this version."""
        del device_id, nonce
        return None

    def _check_recovery(self, device_id: str, action: int | None) -> None:
        """A fatal XID holds until the driver says that no recovery is needed any more."""
        xid = self._condemned.get(device_id)
        if action == 0:
            self._condemned.pop(device_id, None)
        if xid is not None:
            raise DeviceLost(xid, "fatal XID")
        if action:
            raise DeviceLost(action, "recovery action needed")

    def _subscribe(self) -> Any:
        """An event set for XIDs, or None: only Linux has them, and not every GPU."""
        events = _try(_n.nvmlEventSetCreate)
        if events is None:
            return None
        for handle in self._handles.values():
            _try(_n.nvmlDeviceRegisterEvents, handle, XID_EVENT, events)
        return events

    def _owner(self, handle: Any) -> str | None:
        uuid = _try(_n.nvmlDeviceGetUUID, handle)
        return uuid if uuid in self._handles else None


class _Asking:
    """Optional calls on one GPU: absent ones are remembered and cost nothing, others raise."""

    def __init__(self, absent: set[str]) -> None:
        self._absent = absent
        self.answers = 0

    def __call__(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        if name in self._absent:
            return None
        try:
            value = call(*arguments)
        except _n.NVMLError as error:
            if error.value not in ABSENT:
                raise _classified(error) from error
            self._absent.add(name)
            return None
        self.answers += 1
        return value


def _classified(error: Any) -> DeviceLost | MonitorBlind:
    code = int(error.value)
    if code in GONE:
        return DeviceLost(code, str(error))
    return MonitorBlind(code, str(error), restart=code in RESTART)


def _must(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except _n.NVMLError as error:
        raise _classified(error) from error


def _try(call: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or None for any error: for what describes a GPU, never for its health."""
    try:
        return call(*arguments)
    except _n.NVMLError:
        return None


def _found(index: int) -> tuple[str | None, Any]:
    handle = _try(_n.nvmlDeviceGetHandleByIndex, index)
    return (None if handle is None else _try(_n.nvmlDeviceGetUUID, handle)), handle


def _described(uuid: str, handle: Any) -> Device:
    memory = _try(_n.nvmlDeviceGetMemoryInfo, handle, _n.nvmlMemory_v2)
    pci = _try(_n.nvmlDeviceGetPciInfo, handle)
    capability = _try(_n.nvmlDeviceGetCudaComputeCapability, handle)
    limits = _try(_n.nvmlDeviceGetPowerManagementLimitConstraints, handle)
    mig = _try(_n.nvmlDeviceGetMigMode, handle)
    energy_mj = _try(_n.nvmlDeviceGetTotalEnergyConsumption, handle)
    rates = _try(_n.nvmlDeviceGetUtilizationRates, handle)
    return Device(
        id=uuid,
        name=_try(_n.nvmlDeviceGetName, handle),
        mem_bytes=None if memory is None else int(memory.total),
        pci=None if pci is None else _text(pci.busId),
        pci_id=None if pci is None else f"0x{pci.pciDeviceId:08x}",
        compute_capability=None if capability is None else "{}.{}".format(*capability),
        driver=_try(_n.nvmlSystemGetDriverVersion),
        serial=_try(_n.nvmlDeviceGetSerial, handle),
        vbios=_try(_n.nvmlDeviceGetVbiosVersion, handle),
        power_limit_mw=None if limits is None else int(limits[1]),
        pcie_gen=_try(_n.nvmlDeviceGetMaxPcieLinkGeneration, handle),
        pcie_lanes=_try(_n.nvmlDeviceGetMaxPcieLinkWidth, handle),
        mig_enabled=bool(mig is not None and mig[0]),
        busy_source="none" if rates is None else "util",
        energy_scope="none" if energy_mj is None else "device",
    )


def _recovery_action(handle: Any) -> int:
    """Field 230. Raises NVMLError like any other call when the field is not there."""
    (value,) = _n.nvmlDeviceGetFieldValues(handle, [RECOVERY_ACTION])
    if value.nvmlReturn:
        unknown_field = value.nvmlReturn == _n.NVML_ERROR_INVALID_ARGUMENT
        raise _n.NVMLError(_n.NVML_ERROR_NOT_SUPPORTED if unknown_field else value.nvmlReturn)
    return int(value.value.ullVal) & 0xFFFFFFFF


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _require_nvidia_ml_py() -> None:
    """Another distribution installs a module of the same name. Raises MonitorBlind."""
    try:
        version("nvidia-ml-py")
    except PackageNotFoundError as error:
        raise MonitorBlind(None, "the module pynvml here is not nvidia-ml-py") from error


def _library_was_replaced() -> bool:
    """A driver upgrade leaves the old library mapped: it answers wrongly even after a reload."""
    if sys.platform != "linux":
        return False
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return any("libnvidia-ml" in line and "(deleted)" in line for line in maps.splitlines())
