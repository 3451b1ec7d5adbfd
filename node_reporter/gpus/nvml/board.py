"""One GPU, asked by one thread: what it is now, what it tells, whether it is well.

Its handle is looked up once and kept through errors: a new lookup can fail because a neighbour is
lost. A board in MIG mode is its instances. They have no energy counter of their own, so each is
given its share of the board's, and a fault that names an instance is that instance's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from node_reporter.gpus.nvml.busy import BusySource, Gpm, source_of
from node_reporter.gpus.nvml.described import describe
from node_reporter.gpus.nvml.driver import Asking, nvml
from node_reporter.gpus.nvml.fields import Fields, read_fields
from node_reporter.gpus.nvml.instances import Instance, Instances
from node_reporter.gpus.seam import PPM, Device, DeviceLost, MonitorBlind, Reading

XID_OF_BOARD = None
"""Stands for the whole board where an instance's number would stand."""


@dataclass(frozen=True, slots=True)
class _Common:
    """What is read once per poll for a board and all its instances."""

    energy_mj: int | None = None
    power_mw: int | None = None
    fields: Fields = field(default_factory=Fields)
    lost: dict[int | None, int] = field(default_factory=dict)


class Board:
    """One GPU of this machine. Only its own thread may call `look` and `read`."""

    def __init__(self, uuid: str, handle: Any, now_s: Callable[[], float]) -> None:
        self.handle, self._now_s = handle, now_s
        self._busy = source_of(handle, now_s)
        self.device = describe(uuid, handle, "none" if self._busy is None else self._busy.name)
        self._ask = Asking()
        self._instances = Instances(self.device, handle)
        self._found: dict[str, Instance] = {}
        self._busy_of: dict[tuple[str, int], BusySource] = {}
        self._common = _Common()
        self._condemned: dict[int | None, int] = {}
        with suppress(DeviceLost, MonitorBlind):
            self.look()

    def present(self) -> Iterator[Device]:
        """The board, and the instances it was found to be cut into."""
        yield self.device
        for instance in tuple(self._found.values()):
            yield instance.device

    def look(self) -> tuple[Device, ...]:
        """The board itself, or its instances. Raises DeviceLost, MonitorBlind."""
        if not self._is_cut():
            self._keep(())
            return (self.device,)
        source = "gpm" if isinstance(self._busy, Gpm) else "none"
        self._keep(self._instances.find(self._ask, source))
        if not self._found:
            return (self.device,)
        self._common = self._read_common()
        return tuple(instance.device for instance in self._found.values())

    def read(self, device_id: str) -> Reading:
        """Ask the board or an instance it was found to have. Raises DeviceLost, MonitorBlind."""
        if device_id != self.device.id:
            return self._read_instance(self._found[device_id])
        self._ask.answers = 0
        is_cut = self._is_cut()
        common = self._read_common()
        _check(common, XID_OF_BOARD)
        busy_ppm = None if is_cut or self._busy is None else self._busy.busy_ppm(self._ask)
        used_bytes = self._memory_used("memory", self.handle)
        if not self._ask.answers:
            raise MonitorBlind(None, "no call answers on this GPU")
        if is_cut:
            raise MonitorBlind(None, "MIG is on: only instances can be rented")
        return self._reading(self.device, common, PPM, busy_ppm, used_bytes)

    @property
    def denied(self) -> frozenset[str]:
        """What this GPU has and we are not let in to see, by the names it is asked under."""
        return frozenset(self._ask.denied)

    def condemn(self, gi: int | None, xid: int) -> Device:
        """A fatal XID: what it names is lost until the driver needs no recovery any more."""
        holder = self.holder(gi)
        self._condemned[XID_OF_BOARD if holder is self.device else gi] = xid
        return holder

    def holder(self, gi: int | None) -> Device:
        """The instance that an event names, or the board where it names none that is known."""
        named = (one.device for one in tuple(self._found.values()) if one.device.gi == gi)
        return self.device if gi is None else next(named, self.device)

    def close(self) -> None:
        """Give GPM's buffers back."""
        for source in (self._busy, *self._busy_of.values()):
            if source is not None:
                source.close()

    def _is_cut(self) -> bool:
        mode = self._ask("mig", nvml.nvmlDeviceGetMigMode, self.handle)
        return bool(mode is not None and mode[0])

    def _keep(self, found: tuple[Instance, ...]) -> None:
        """Samples of an instance that is gone say nothing about the one that took its place."""
        self._found = {instance.device.id: instance for instance in found}
        keys = {(instance.device.id, instance.gi) for instance in found}
        for key in self._busy_of.keys() - keys:
            self._busy_of.pop(key).close()

    def _read_common(self) -> _Common:
        """A fatal XID holds for this poll at least, and then until no recovery is asked for."""
        energy_mj = self._ask("energy", nvml.nvmlDeviceGetTotalEnergyConsumption, self.handle)
        power_mw = self._ask("power", nvml.nvmlDeviceGetPowerUsage, self.handle)
        fields = read_fields(self._ask, self.handle)
        lost = dict(self._condemned)
        if fields.recovery_action == 0:
            for place in lost:
                self._condemned.pop(place, None)
        return _Common(_whole(energy_mj), _whole(power_mw), fields, lost)

    def _read_instance(self, instance: Instance) -> Reading:
        common, device = self._common, instance.device
        _check(common, device.gi)
        used_bytes = self._memory_used(f"memory {device.id}", instance.handle)
        busy_ppm = self._busy_of_instance(instance)
        return self._reading(device, common, device.share_ppm, busy_ppm, used_bytes)

    def _busy_of_instance(self, instance: Instance) -> int | None:
        if instance.device.busy_source != "gpm":
            return None
        key = (instance.device.id, instance.gi)
        if key not in self._busy_of:
            self._busy_of[key] = Gpm(self.handle, self._now_s, instance.gi, instance.device.id)
        return self._busy_of[key].busy_ppm(self._ask)

    def _memory_used(self, name: str, handle: Any) -> int | None:
        told = self._ask(name, nvml.nvmlDeviceGetMemoryInfo, handle, nvml.nvmlMemory_v2)
        return None if told is None else int(told.used)

    def _reading(
        self,
        device: Device,
        common: _Common,
        share_ppm: int,
        busy_ppm: int | None,
        used_bytes: int | None,
    ) -> Reading:
        """`share_ppm`: the part of the board's energy and power that this device is given."""
        is_whole = device is self.device
        return Reading(
            shape=device.shape if is_whole else f"{device.shape} {device.gi}/{device.ci}",
            energy_mj=_part(common.energy_mj, share_ppm),
            power_mw=_part(common.power_mw, share_ppm),
            power_limit_mw=self.device.power_limit_mw,
            busy_ppm=busy_ppm,
            mem_used_bytes=used_bytes,
            throttle_power_ns=common.fields.throttle_power_ns,
            throttle_thermal_ns=common.fields.throttle_thermal_ns,
        )


def _whole(told: Any) -> int | None:
    return None if told is None else int(told)


def _part(told: int | None, share_ppm: int) -> int | None:
    return None if told is None else told * share_ppm // PPM


def _check(common: _Common, gi: int | None) -> None:
    """Raises DeviceLost where the board, or this instance of it, is not fit to be rented."""
    for place in (XID_OF_BOARD, gi):
        if place in common.lost:
            raise DeviceLost(common.lost[place], "fatal XID")
    if common.fields.recovery_action:
        raise DeviceLost(common.fields.recovery_action, "recovery action needed")
