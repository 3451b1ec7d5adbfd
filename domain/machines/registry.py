"""What the room `machines` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.machines import admission, condition, setup

FILES = (admission, condition, setup)
FACTS: dict[str, type[Any]] = {
    "admission.requested.v1": admission.AdmissionRequested,
    "admission.validated.v1": admission.AdmissionValidated,
    "admission.refused.v1": admission.AdmissionRefused,
    "admission.boot_drive_shipped.v1": admission.BootDriveShipped,
    "admission.firmware_step_done.v1": admission.FirmwareStepDone,
    "admission.machine_installed.v1": admission.MachineInstalled,
}
