"""Values that NVML keeps by number, asked for in one call: recovery action, throttling.

Field 75 is the thermal policy; 76, which is next to it, is sync boost and says nothing of heat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from node_reporter.gpus.nvml.driver import ABSENT, INVALID_ARGUMENT, Asking, classified, nvml

RECOVERY_ACTION = 230
"""NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: not 0 means do not schedule here."""
POWER, POWER_BRAKE = 74, 271
THERMAL, THERMAL_SOFTWARE, THERMAL_HARDWARE = 75, 269, 270
"""Nanoseconds for which clocks were held back, since the driver was loaded."""
ASKED = (RECOVERY_ACTION, POWER, POWER_BRAKE, THERMAL, THERMAL_SOFTWARE, THERMAL_HARDWARE)
_MEMBERS = {1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""Which member of the union holds a whole number, by its valueType."""


@dataclass(frozen=True, slots=True)
class Fields:
    """What one GPU told; None: it does not keep that."""

    recovery_action: int | None = None
    throttle_power_ns: int | None = None
    throttle_thermal_ns: int | None = None


def read_fields(ask: Asking, handle: Any) -> Fields:
    """All of them in one call. Raises DeviceLost, MonitorBlind."""
    values = ask("fields", nvml.nvmlDeviceGetFieldValues, handle, list(ASKED))
    if values is None:
        return Fields()
    told = {value.fieldId: _whole(value) for value in values}
    thermal_ns = told[THERMAL]
    if thermal_ns is None:
        thermal_ns = _sum(told[THERMAL_SOFTWARE], told[THERMAL_HARDWARE])
    return Fields(told[RECOVERY_ACTION], _sum(told[POWER], told[POWER_BRAKE]), thermal_ns)


def _whole(value: Any) -> int | None:
    """None for a field that is not there. Raises DeviceLost, MonitorBlind for any other error."""
    code = int(value.nvmlReturn)
    if code in ABSENT or code == INVALID_ARGUMENT:
        return None
    if code:
        raise classified(nvml.NVMLError(code))
    member = _MEMBERS.get(value.valueType)
    return None if member is None else int(getattr(value.value, member))


def _sum(*parts: int | None) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
