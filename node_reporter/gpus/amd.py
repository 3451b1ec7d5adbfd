"""Backend `amd`: AMD GPUs through amdsmi, without root and without changing a setting.

The only file that imports amdsmi, and only when it is asked for: the package loads the library of
ROCm when it is imported. Its answers are classified as NVML's are:

    gone     31 NOT_FOUND, 54 AMDGPU_RESTART_ERR                      -> DeviceLost
    absent   2, 3, 10, 20, 40, 45, 52, 55: not told on this GPU       -> None, and not asked again
    blind    everything else; 4, 5, 18, 32, 34 ask for a new process  -> MonitorBlind

Energy is an accumulator x its resolution (15.3 uJ). It was seen to stand still until a reboot, so a
counter that has not moved tells nothing; what it moved by is counted once it moves, by the delta
rule of `meter.py`, which also turns away one that goes backwards. Throttle accumulators are in
ticks of the firmware, not in time: they are not told. Source: design metering 7 and 10; the wheel
amdsmi 7.0.2. Not verified on hardware: see docs/explanation/metering.md.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from typing import Any

from node_reporter.gpus.seam import Device, DeviceLost, Fault, MonitorBlind, Reading

GONE = frozenset({31, 54})
"""NOT_FOUND, AMDGPU_RESTART_ERR."""
ABSENT = frozenset({2, 3, 10, 20, 40, 45, 52, 55})
"""NOT_SUPPORTED, NOT_YET_IMPLEMENTED, NO_PERM, DIRECTORY_NOT_FOUND, NO_DATA, NO_ENERGY_DRV,
FILE_NOT_FOUND, SETTING_UNAVAILABLE."""
RESTART = frozenset({4, 5, 18, 32, 34})
"""FAIL_LOAD_MODULE, FAIL_LOAD_SYMBOL, INIT_ERROR, NOT_INIT, DRIVER_NOT_LOADED."""
NO_PERMISSION = 10
DUAL_DIE = ("MI250",)
"""Cards of two processors: the first of each pair counts the energy of both."""
PERCENT_PPM = 10_000
NO_WATTS = 0xFFFF
"""What a gauge tells that the GPU does not have."""
MILLI, MICRO = 1_000, 1_000_000


class AmdGpus:
    """Every AMD GPU of this machine. Open it once, in the process that keeps using it."""

    vendor = "amd"

    def __init__(self) -> None:
        self._smi: Any = None
        self._cards: dict[str, _Card] = {}

    def open(self) -> None:
        """Load ROCm's library and describe the GPUs. Raises MonitorBlind."""
        smi = _amdsmi()
        self._must(smi, smi.amdsmi_init)
        self._smi = smi
        self._cards = {}
        handles = self._must(smi, smi.amdsmi_get_processor_handles)
        told = [(_attempt(smi, smi.amdsmi_get_gpu_device_uuid, one), one) for one in handles]
        # The bus address orders dies as they sit on their cards, whatever order they are told in.
        told.sort(key=lambda pair: _attempt(smi, smi.amdsmi_get_gpu_device_bdf, pair[1]) or "")
        seen = 0
        for uuid, handle in told:
            if uuid:
                card = _Card(smi, uuid, handle, seen)
                seen += card.is_die
                self._cards[uuid] = card

    def close(self) -> None:
        """Let the library go; nothing where it is closed."""
        smi, self._smi = self._smi, None
        if smi is not None:
            _attempt(smi, smi.amdsmi_shut_down)

    def inventory(self) -> Sequence[Device]:
        return tuple(card.device for card in self._cards.values())

    def look(self, board_id: str) -> Sequence[Device]:
        """A card is metered as a whole; partitions of one are not told apart."""
        return (self._cards[board_id].device,)

    def read(self, device_id: str) -> Reading:
        """Raises DeviceLost, MonitorBlind."""
        if self._smi is None:
            raise MonitorBlind(32, "amdsmi is not open", restart=True)
        return self._cards[device_id].read()

    def denied(self, device_id: str) -> frozenset[str]:
        """What we may not see of a device, for `doctor`."""
        return frozenset(self._cards[device_id].denied)

    def faults(self, timeout_s: float) -> Sequence[Fault]:
        """None by themselves: what happened shows in `read`."""
        del timeout_s
        return ()

    def attest(self, device_id: str, nonce: bytes) -> bytes | None:
        """amdsmi has no attestation."""
        del device_id, nonce
        return None

    @staticmethod
    def _must(smi: Any, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except smi.AmdSmiException as error:
            raise _classified(error) from error


class _Card:
    """One processor, asked by one thread."""

    def __init__(self, smi: Any, uuid: str, handle: Any, dies_before: int) -> None:
        self._smi, self._handle = smi, handle
        self._absent: set[str] = set()
        self.denied: set[str] = set()
        self._answers = 0
        self._energy: int | None = None
        name = _market_name(smi, handle)
        self.is_die = any(model in (name or "") for model in DUAL_DIE)
        self._counts_energy = not (self.is_die and dies_before % 2)
        self.device = self._describe(uuid, name)

    def read(self) -> Reading:
        """Raises DeviceLost, MonitorBlind."""
        self._answers = 0
        energy_mj = self._moved(self._energy_mj()) if self._counts_energy else None
        vram = self._smi.AmdSmiMemoryType.VRAM
        used = self._ask("memory", self._smi.amdsmi_get_gpu_memory_usage, vram)
        reading = Reading(
            energy_mj=energy_mj,
            power_limit_mw=self.device.power_limit_mw,
            power_mw=self._power_mw(),
            busy_ppm=self._busy_ppm(),
            mem_used_bytes=None if used is None else int(used),
        )
        if not self._answers:
            raise MonitorBlind(None, "no call answers on this GPU")
        return reading

    def _energy_mj(self) -> int | None:
        told = self._ask("energy", self._smi.amdsmi_get_energy_count)
        if told is None:
            return None
        resolution_uj = float(told["counter_resolution"])
        resolution_nj = round(resolution_uj * MILLI)
        return int(told["energy_accumulator"]) * resolution_nj // MICRO

    def _power_mw(self) -> int | None:
        """The gauge beside the counter, in whole watts: what it is now, or else its mean."""
        if not self._counts_energy:
            return None
        told = self._ask("power", self._smi.amdsmi_get_power_info)
        if told is None:
            return None
        names = ("current_socket_power", "average_socket_power")
        watts = (_number(told.get(name)) or 0 for name in names)
        return next((each * MILLI for each in watts if 0 < each < NO_WATTS), None)

    def _moved(self, energy_mj: int | None) -> int | None:
        """The counter, or None while it stands still: a GPU that is on draws power."""
        before, self._energy = self._energy, energy_mj
        return energy_mj if energy_mj != before else None

    def _busy_ppm(self) -> int | None:
        told = self._ask("utilisation", self._smi.amdsmi_get_gpu_activity)
        percent = None if told is None else _number(told["gfx_activity"])
        return None if percent is None or percent > 100 else percent * PERCENT_PPM

    def _ask(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """The answer, or None for what this GPU does not tell. Raises DeviceLost, MonitorBlind."""
        if name in self._absent:
            return None
        try:
            value = call(self._handle, *arguments)
        except self._smi.AmdSmiException as error:
            if _code(error) not in ABSENT:
                raise _classified(error) from error
            self._absent.add(name)
            if _code(error) == NO_PERMISSION:
                self.denied.add(name)
            return None
        self._answers += 1
        return value

    def _describe(self, uuid: str, name: str | None) -> Device:
        smi, handle = self._smi, self._handle
        asic = _attempt(smi, smi.amdsmi_get_gpu_asic_info, handle) or {}
        cap = _attempt(smi, smi.amdsmi_get_power_cap_info, handle) or {}
        slot = (_attempt(smi, smi.amdsmi_get_pcie_info, handle) or {}).get("pcie_static", {})
        energy = _attempt(smi, smi.amdsmi_get_energy_count, handle)
        activity = _attempt(smi, smi.amdsmi_get_gpu_activity, handle)
        vram = smi.AmdSmiMemoryType.VRAM
        driver = _attempt(smi, smi.amdsmi_get_gpu_driver_info, handle) or {}
        vbios = _attempt(smi, smi.amdsmi_get_gpu_vbios_info, handle) or {}
        # Microwatts; watts on the host of virtual machines, which come to nothing here.
        limit_mw = (_number(cap.get("max_power_cap")) or 0) // MILLI
        return Device(
            id=uuid,
            name=name,
            mem_bytes=_attempt(smi, smi.amdsmi_get_gpu_memory_total, handle, vram),
            pci=_attempt(smi, smi.amdsmi_get_gpu_device_bdf, handle),
            pci_id=_pci_id(asic),
            driver=_told(driver.get("driver_version")),
            serial=_told(asic.get("asic_serial")),
            vbios=_told(vbios.get("version")),
            power_limit_mw=limit_mw or None,
            pcie_gen=_number(slot.get("pcie_interface_version")),
            pcie_lanes=_number(slot.get("max_pcie_width")),
            busy_source="none" if activity is None else "util",
            energy_scope=self._scope(energy),
            connection="sxm" if slot.get("slot_type") == "OAM" else None,
        )

    def _scope(self, energy: Any) -> str:
        if energy is None or not self._counts_energy:
            return "none"
        return "module" if self.is_die else "device"


def _amdsmi() -> Any:
    """The package. Raises MonitorBlind: it loads ROCm's library, prints what it did not find (no
    fault on a machine without AMD GPUs, and told once by the exception otherwise), and stops at the
    first function that the library does not have.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            import amdsmi
    except ImportError as error:
        raise MonitorBlind(None, "amdsmi is missing: install tallystick-node[amd]") from error
    except (OSError, KeyError, AttributeError) as error:
        raise MonitorBlind(None, f"amdsmi cannot use ROCm's library: {error}") from error
    return amdsmi


def _attempt(smi: Any, call: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or None for any error: for what describes a GPU, never for its health."""
    try:
        return call(*arguments)
    except (smi.AmdSmiException, ValueError):
        return None  # ValueError: the package reads some numbers out of text


def _classified(error: Any) -> DeviceLost | MonitorBlind:
    code = _code(error)
    said = " ".join(str(error).split())
    if code in GONE:
        return DeviceLost(code, said)
    return MonitorBlind(code, said, restart=code in RESTART)


def _code(error: Any) -> int:
    told = getattr(error, "err_code", None)
    return -1 if told is None else int(told)


def _market_name(smi: Any, handle: Any) -> str | None:
    return _told((_attempt(smi, smi.amdsmi_get_gpu_asic_info, handle) or {}).get("market_name"))


def _pci_id(asic: dict[str, Any]) -> str | None:
    """Device and vendor, as NVML writes them."""
    device, vendor = _told(asic.get("device_id")), _told(asic.get("vendor_id"))
    if device is None or vendor is None:
        return None
    return f"0x{int(device, 16):04x}{int(vendor, 16):04x}"


def _told(value: Any) -> str | None:
    return None if value in (None, "", "N/A") else str(value)


def _number(value: Any) -> int | None:
    """The package writes "N/A" where a number would stand."""
    return value if isinstance(value, int) else None
