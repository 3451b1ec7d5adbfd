"""The MIG instances of one board, found anew at every poll.

    share_ppm == floor(compute slices x 10^6 / the board's)           so their sum is at most 10^6

A handle may be reused for another instance, so UUID, GPU instance and compute instance are read
every time: an instance that was made anew in the same place is another device. Only what these
three do not change is remembered. Slices of a board: `domain.hardware.mig`, seven where it is not
listed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from domain.hardware import mig
from domain.metering.report import SHAPE_PATTERN
from node_reporter.gpus.nvml.driver import (
    ABSENT,
    INVALID_ARGUMENT,
    Asking,
    attempt,
    classified,
    nvml,
)
from node_reporter.gpus.seam import PPM, Device

SLICES = 7
MIB = 1_048_576
_PROFILE = re.compile(r"MIG ([0-9a-z.+-]{1,32})$")
_SHAPE = re.compile(SHAPE_PATTERN)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instance is, and which one it is: its identity, with the handle to ask it by."""

    uuid: str
    gi: int
    ci: int | None


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance as it was found: its inventory entry and its handle of this poll."""

    device: Device
    handle: Any

    @property
    def gi(self) -> int:
        assert self.device.gi is not None
        return self.device.gi


class Instances:
    """Finds the instances of one board."""

    def __init__(self, board: Device, handle: Any) -> None:
        self._board, self._handle = board, handle
        self._known: dict[tuple[Place, bool], Device] = {}

    def find(self, ask: Asking, busy_source: str) -> tuple[Instance, ...]:
        """The instances there are now. Raises DeviceLost, MonitorBlind for the whole board."""
        most = ask("instances", nvml.nvmlDeviceGetMaxMigDeviceCount, self._handle) or 0
        found = [pair for index in range(most) if (pair := self._at(index)) is not None]
        places = [place for place, _ in found]
        alone = {place: sum(p.gi == place.gi for p in places) == 1 for place in places}
        self._known = {key: old for key, old in self._known.items() if key[0] in alone}
        return tuple(
            Instance(self._device(place, handle, busy_source, is_alone=alone[place]), handle)
            for place, handle in found
        )

    def _at(self, index: int) -> tuple[Place, Any] | None:
        """The instance at an index, or None: indexes have gaps, and one may go while we ask."""
        try:
            handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(self._handle, index)
            uuid = nvml.nvmlDeviceGetUUID(handle)
            gi = int(nvml.nvmlDeviceGetGpuInstanceId(handle))
            ci = int(nvml.nvmlDeviceGetComputeInstanceId(handle))
        except nvml.NVMLError as error:
            if int(error.value) not in ABSENT | {INVALID_ARGUMENT}:
                raise classified(error) from error
            return None
        return Place(uuid, gi, None if ci == 0xFFFFFFFF else ci), handle

    def _device(self, place: Place, handle: Any, busy_source: str, *, is_alone: bool) -> Device:
        key = (place, is_alone)
        if key not in self._known:
            self._known[key] = self._described(place, handle, busy_source, is_alone=is_alone)
        return self._known[key]

    def _described(self, place: Place, handle: Any, busy_source: str, *, is_alone: bool) -> Device:
        """A compute instance that shares its GPU instance has its own slices of it, and nobody can
        say how busy it alone was.
        """
        told = attempt(nvml.nvmlDeviceGetAttributes_v2, handle)
        slices = 1
        if told is not None:
            slices = int(told.gpuInstanceSliceCount if is_alone else told.computeInstanceSliceCount)
        name = attempt(nvml.nvmlDeviceGetName, handle)
        mem_bytes = 0 if told is None else int(told.memorySizeMB) * MIB
        whole = self._board.mem_bytes or 0
        return Device(
            id=place.uuid,
            name=None if name is None else str(name),
            mem_bytes=mem_bytes or None,
            parent=self._board.id,
            gi=place.gi,
            ci=place.ci,
            shape=_shape(name, slices),
            share_ppm=min(PPM, max(1, slices * PPM // slices_of(self._board))),
            mem_ppm=min(PPM, max(1, mem_bytes * PPM // whole)) if whole else PPM,
            pci=self._board.pci,
            pci_id=self._board.pci_id,
            compute_capability=self._board.compute_capability,
            vbios=self._board.vbios,
            driver=self._board.driver,
            power_limit_mw=self._board.power_limit_mw,
            busy_source=busy_source if is_alone else "none",
            energy_scope="none" if self._board.energy_scope == "none" else "board_share",
        )


def slices_of(board: Device) -> int:
    """How many compute slices a board has."""
    table = mig.table_of(board.name or "", (board.mem_bytes or 0) // MIB)
    return SLICES if table is None else table.compute


def _shape(name: Any, slices: int) -> str:
    """The profile as the driver names it; by its slices where the name does not say."""
    told = None if name is None else _PROFILE.search(str(name))
    shape = f"mig:{told[1]}" if told else f"mig:{slices}g"
    return shape if _SHAPE.fullmatch(shape) else f"mig:{slices}g"
