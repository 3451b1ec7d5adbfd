"""Backend `intel`: Intel GPUs through Level Zero's system management, as pyzes binds it.

The only file that imports pyzes, and only when it is asked for: the package loads the library when
it is imported. Without root, without changing a setting. Answers are classified as NVML's are:

    gone     DEVICE_LOST, DEVICE_REQUIRES_RESET, SURVIVABILITY_MODE; wedged or to be repaired
    absent   unsupported feature, version or enumeration; no permission; no such function
    blind    everything else; UNINITIALIZED and DEPENDENCY_UNAVAILABLE ask for a new process

Busy is a counter with its own timestamp, so it covers all the time between two polls. Energy is a
counter in microjoules; one that underflows (3.69 TW were seen) is turned away by the delta rule of
`meter.py`. Throttle time is one number for all causes: it is not told. Source: design metering 7
and 10; the wheel pyzes 0.1.3. Not verified on hardware: see docs/explanation/metering.md.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from node_reporter.gpus import hardware
from node_reporter.gpus.seam import PPM, Device, DeviceLost, Fault, MonitorBlind, Reading

GONE = frozenset({0x70000001, 0x70000006, 0x78000020})
ABSENT = frozenset({0x78000002, 0x78000003, 0x7800000C, 0x7800000D, 0x70010000})
RESTART = frozenset({0x78000001, 0x70020000})
NO_PERMISSION = 0x70010000
GPU = 1
ENGINES = (0, 11, 1)
"""Groups by which a GPU is busy, the best first: all, render and compute, compute."""
DOMAINS = (1, 2, 5)
"""Where power is counted, the best first: card, package, GPU."""
IN_SYSTEM = 0
"""A memory module that is the host's."""
STATE_TYPE = 0x15
"""ZES_STRUCTURE_TYPE_DEVICE_STATE, which pyzes does not name."""


class _State(ctypes.Structure):
    """zes_device_state_t, which pyzes does not bind."""

    _fields_ = (
        ("stype", ctypes.c_int32),
        ("pNext", ctypes.c_void_p),
        ("reset", ctypes.c_uint32),
        ("repaired", ctypes.c_uint32),
    )


class IntelGpus:
    """Every Intel GPU of this machine. Open it once, in the process that keeps using it."""

    vendor = "intel"

    def __init__(self) -> None:
        self._is_open = False
        self._cards: dict[str, _Card] = {}

    def open(self) -> None:
        """Load Level Zero and describe the GPUs. Raises MonitorBlind."""
        zes = _pyzes()
        _must(zes.zesInit(0), "zesInit")
        drivers = _many(zes.zesDriverGet, zes.zes_driver_handle_t)
        found = [
            one
            for each in drivers
            for one in _many(zes.zesDeviceGet, zes.zes_device_handle_t, each)
        ]
        cards = [_Card(zes, handle) for handle in found]
        self._cards = {card.device.id: card for card in cards if card.is_gpu and card.device.id}
        self._is_open = True

    def close(self) -> None:
        """Level Zero has nothing to give back."""
        self._is_open = False

    def inventory(self) -> Sequence[Device]:
        return tuple(card.device for card in self._cards.values())

    def look(self, board_id: str) -> Sequence[Device]:
        """A card is metered as a whole, whatever tiles it has."""
        return (self._cards[board_id].device,)

    def read(self, device_id: str) -> Reading:
        """Raises DeviceLost, MonitorBlind."""
        if not self._is_open:
            raise MonitorBlind(0x78000001, "Level Zero is not open", restart=True)
        return self._cards[device_id].read()

    def denied(self, device_id: str) -> frozenset[str]:
        """What we may not see of a device, for `doctor`."""
        return frozenset(self._cards[device_id].denied)

    def faults(self, timeout_s: float) -> Sequence[Fault]:
        """None by themselves: what happened shows in `read`."""
        del timeout_s
        return ()

    def attest(self, device_id: str, nonce: bytes) -> bytes | None:
        """Level Zero has no attestation."""
        del device_id, nonce
        return None


@dataclass(frozen=True, slots=True)
class _Parts:
    """The handles of one card that are read at every poll."""

    power: Any
    engine: Any
    memory: tuple[Any, ...]


class _Card:
    """One GPU, asked by one thread."""

    def __init__(self, zes: Any, handle: Any) -> None:
        self._zes, self._handle = zes, handle
        self._absent: set[str] = set()
        self.denied: set[str] = set()
        self._answers = 0
        self._activity: tuple[int, int] | None = None
        self._limit_mw: int | None = None
        self._unified = False
        properties, own_id = self._properties()
        self.is_gpu = properties.core.type == GPU
        self._parts = _Parts(self._power(), self._engine(), self._memory())
        self.device = self._described(properties, own_id)

    def read(self) -> Reading:
        """Raises DeviceLost, MonitorBlind."""
        self._answers = 0
        state = self._ask("state", self._state, self._handle, _State(stype=STATE_TYPE))
        if state is not None and state.reset:
            raise DeviceLost(int(state.reset), "the GPU asks for a reset")
        reading = Reading(
            energy_mj=self._energy_mj(),
            power_limit_mw=self._limit_mw,
            busy_ppm=self._busy_ppm(),
            mem_used_bytes=self._mem_used(),
        )
        if not self._answers:
            raise MonitorBlind(None, "no call answers on this GPU")
        return reading

    def _energy_mj(self) -> int | None:
        counter = self._zes.zes_power_energy_counter_t()
        told = self._ask("energy", self._zes.zesPowerGetEnergyCounter, self._parts.power, counter)
        return None if told is None else int(told.energy) // 1_000

    def _busy_ppm(self) -> int | None:
        """Between the last reading and this one, by the engine's own clock."""
        stats = self._zes.zes_engine_stats_t()
        told = self._ask("utilisation", self._zes.zesEngineGetActivity, self._parts.engine, stats)
        if told is None:
            return None
        before, now = self._activity, (int(told.activeTime), int(told.timestamp))
        self._activity = now
        if before is None:
            return None
        active, passed = now[0] - before[0], now[1] - before[1]
        if passed <= 0 or not 0 <= active * 5 <= passed * 6:
            return None
        return min(active * PPM // passed, PPM)

    def _mem_used(self) -> int | None:
        states = [self._memory_state(number) for number in range(len(self._parts.memory))]
        if not states or None in states:
            return None
        return sum(int(one.size) - int(one.free) for one in states)

    def _memory_state(self, number: int) -> Any:
        state = self._zes.zes_mem_state_t(stype=self._zes.ZES_STRUCTURE_TYPE_MEM_STATE)
        module = self._parts.memory[number]
        return self._ask(
            "memory" if number == 0 else f"memory {number}",
            self._zes.zesMemoryGetState,
            module,
            state,
        )

    def _state(self, handle: Any, state: Any) -> int:
        # pyzes has no wrapper of this one; without it a wedged GPU would look well.
        call = self._zes.gpuLib.zesDeviceGetState
        call.argtypes, call.restype = [ctypes.c_void_p, ctypes.c_void_p], ctypes.c_int32
        return int(call(handle, state))

    def _ask(self, name: str, call: Callable[..., int], handle: Any, filled: Any) -> Any:
        """What the call filled in, or None for what this GPU does not tell.

        Raises DeviceLost, MonitorBlind.
        """
        if handle is None or name in self._absent:
            return None
        try:
            code = call(handle, ctypes.byref(filled))
        except AttributeError:
            code = min(ABSENT)  # the library is older than the function
        if code in ABSENT:
            self._absent.add(name)
            if code == NO_PERMISSION:
                self.denied.add(name)
            return None
        _must(code, name)
        self._answers += 1
        return filled

    def _attempt(self, call: Callable[..., int], handle: Any, filled: Any) -> Any:
        """Like `_ask`, None for any error: for what describes a GPU, never for its health."""
        try:
            return filled if call(handle, ctypes.byref(filled)) == 0 else None
        except AttributeError:
            return None

    def _listed(self, call: Callable[..., int], kind: Any) -> list[Any]:
        try:
            return _many(call, kind, self._handle)
        except (AttributeError, DeviceLost, MonitorBlind):
            return []

    # --- read once, when opened ---

    def _properties(self) -> tuple[Any, bytes]:
        """The properties, and the UUID: of the extension, where the driver fills it in."""
        zes = self._zes
        more = zes.zes_device_ext_properties_t(stype=zes.ZES_STRUCTURE_TYPE_DEVICE_EXT_PROPERTIES)
        told = zes.zes_device_properties_t(stype=zes.ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES)
        told.pNext = ctypes.addressof(more)
        self._attempt(zes.zesDeviceGetProperties, self._handle, told)
        told.pNext = None
        return told, bytes(more.uuid.id) if any(more.uuid.id) else bytes(told.core.uuid.id)

    def _power(self) -> Any:
        """The whole card's counter where there is one; a tile's own is never taken for it."""
        zes, best = self._zes, (len(DOMAINS), None)
        for handle in self._listed(zes.zesDeviceEnumPowerDomains, zes.zes_pwr_handle_t):
            more = zes.zes_power_ext_properties_t(stype=zes.ZES_STRUCTURE_TYPE_POWER_EXT_PROPERTIES)
            told = zes.zes_power_properties_t(stype=zes.ZES_STRUCTURE_TYPE_POWER_PROPERTIES)
            told.pNext = ctypes.addressof(more)
            if self._attempt(zes.zesPowerGetProperties, handle, told) is None or told.onSubdevice:
                continue
            domain = int(more.domain)
            rank = DOMAINS.index(domain) if domain in DOMAINS else len(DOMAINS) - 1
            if rank < best[0]:
                best, limits = (rank, handle), (int(told.maxLimit), int(told.defaultLimit))
                self._limit_mw = next((limit for limit in limits if limit > 0), None)
        return best[1]

    def _engine(self) -> Any:
        zes, best = self._zes, (len(ENGINES), None)
        for handle in self._listed(zes.zesDeviceEnumEngineGroups, zes.zes_engine_handle_t):
            told = zes.zes_engine_properties_t(stype=zes.ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES)
            if self._attempt(zes.zesEngineGetProperties, handle, told) is None or told.onSubdevice:
                continue
            rank = ENGINES.index(told.type) if told.type in ENGINES else len(ENGINES)
            if rank < best[0]:
                best = (rank, handle)
        return best[1]

    def _memory(self) -> tuple[Any, ...]:
        """The card's own modules; where it has none, the host's memory is what it works in."""
        zes = self._zes
        modules = self._listed(zes.zesDeviceEnumMemoryModules, zes.zes_mem_handle_t)
        places = []
        for module in modules:
            told = zes.zes_mem_properties_t(stype=zes.ZES_STRUCTURE_TYPE_MEM_PROPERTIES)
            found = self._attempt(zes.zesMemoryGetProperties, module, told)
            places.append(None if found is None else int(told.location))
        self._unified = bool(places) and all(place == IN_SYSTEM for place in places)
        pairs = zip(modules, places, strict=True)
        return tuple(module for module, place in pairs if self._unified or place != IN_SYSTEM)

    def _mem_bytes(self) -> int | None:
        if self._unified:
            return hardware.host_bytes()
        sizes = []
        for module in self._parts.memory:
            state = self._zes.zes_mem_state_t(stype=self._zes.ZES_STRUCTURE_TYPE_MEM_STATE)
            found = self._attempt(self._zes.zesMemoryGetState, module, state)
            sizes.append(0 if found is None else int(state.size))
        return sum(sizes) or None

    def _described(self, properties: Any, own_id: bytes) -> Device:
        zes, core = self._zes, properties.core
        pci = zes.zes_pci_properties_t(stype=zes.ZES_STRUCTURE_TYPE_PCI_PROPERTIES)
        slot = self._attempt(zes.zesDevicePciGetProperties, self._handle, pci)
        at = None if slot is None else slot.address
        return Device(
            id=str(uuid.UUID(bytes=own_id)) if any(own_id) else "",
            name=_text(properties.modelName) or _text(core.name),
            mem_bytes=self._mem_bytes(),
            memory="unified" if self._unified else None,
            pci=None
            if at is None
            else (f"{at.domain:08X}:{at.bus:02X}:{at.device:02X}.{at.function}"),
            pci_id=f"0x{core.deviceId:04x}{core.vendorId:04x}" if core.deviceId else None,
            driver=_text(properties.driverVersion),
            serial=_text(properties.serialNumber),
            power_limit_mw=self._limit_mw,
            pcie_gen=None if slot is None or slot.maxSpeed.gen <= 0 else int(slot.maxSpeed.gen),
            pcie_lanes=(
                None if slot is None or slot.maxSpeed.width <= 0 else int(slot.maxSpeed.width)
            ),
            busy_source="none" if self._parts.engine is None else "counter",
            energy_scope="none" if self._parts.power is None else "device",
        )


def _pyzes() -> Any:
    """The package. Raises MonitorBlind where it or Level Zero's library is not there."""
    try:
        import pyzes
    except ImportError as error:
        raise MonitorBlind(None, "pyzes is missing: install tallystick-node[intel]") from error
    except OSError as error:
        raise MonitorBlind(None, f"pyzes finds no Level Zero: {error}") from error
    return pyzes


def _must(code: int, what: str) -> None:
    """Raises DeviceLost or MonitorBlind for any result but success."""
    if code == 0:
        return
    said = f"{what}: Level Zero answered {code:#x}"
    if code in GONE:
        raise DeviceLost(code, said)
    raise MonitorBlind(code, said, restart=code in RESTART)


def _many(call: Callable[..., int], kind: Any, *owner: Any) -> list[Any]:
    """A list by asking its length first. Raises DeviceLost, MonitorBlind."""
    count = ctypes.c_uint32(0)
    _must(call(*owner, ctypes.byref(count), None), call.__name__)
    handles = (kind * count.value)()
    if count.value:
        _must(call(*owner, ctypes.byref(count), handles), call.__name__)
    return list(handles[: count.value])


def _text(value: bytes) -> str | None:
    told = value.decode(errors="replace").strip()
    return None if told in ("", "unknown") else told
