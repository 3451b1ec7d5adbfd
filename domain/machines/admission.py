"""The admission of a physical machine, followed step by step.

    requested --Validated--> validated --BootDriveShipped--> shipped
    shipped --FirmwareStepDone*--> shipped --MachineInstalled (minion_id)--> installed
    installed --join code--> the node joins, is confirmed, admitted, provisioned, in maintenance
    every state before installed --AdmissionRefused--> refused

A region with the admission "approved" takes machines only this way: the owner asks, the operator
validates and ships the boot drive, and the owner sets the firmware up and starts from the drive,
which is never removed. Firmware steps that a machine needs: its TPM is cleared, CSM is off, and
with NVIDIA GPUs Secure Boot is off. What happens after the join code is the node's own stream
(`domain/fleet/node.py`). Rows C-6 and C-32.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.fleet.node import IssueJoinCode, decide_issue_code, join_code_of
from domain.fleet.provider import APPROVED, existing_provider, existing_region
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts. Stream `admission:{admission_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequested:
    admission_id: str
    account_id: str
    region_id: str
    vendor: str  # of its GPUs, lower case
    model: str
    gpus: int
    at_us: int
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionValidated:
    admission_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRefused:
    admission_id: str
    why: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BootDriveShipped:
    admission_id: str
    tracking: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareStepDone:
    admission_id: str
    step: str  # FIRMWARE_STEPS
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineInstalled:
    """Started from its boot drive, which stays in it; `minion_id` is what the machine shows."""

    admission_id: str
    minion_id: str
    by: str
    at_us: int


Fact: TypeAlias = (
    AdmissionRequested
    | AdmissionValidated
    | AdmissionRefused
    | BootDriveShipped
    | FirmwareStepDone
    | MachineInstalled
)

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAdmission:
    admission_id: str
    account_id: str
    region_id: str
    vendor: str
    model: str
    gpus: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateAdmission:
    admission_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseAdmission:
    admission_id: str
    why: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipBootDrive:
    admission_id: str
    tracking: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DoFirmwareStep:
    admission_id: str
    step: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallMachine:
    admission_id: str
    minion_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueInstalledCode:
    """A join code for the installed machine; another one if the first was not used in time."""

    admission_id: str
    code_sha256: str
    by: str
    at_us: int


FIRMWARE_STEPS = ("tpm_cleared", "csm_off", "secure_boot_off")
NVIDIA_ONLY = "secure_boot_off"
GPUS_MAX = 64
WORDS_MAX = 100

# State.


@dataclass(frozen=True, slots=True)
class Admission:
    """`code_sha256` is that of the last code."""

    requested: AdmissionRequested | None = None
    status: str = ""  # "", requested, validated, shipped, installed, refused
    tracking: str | None = None
    why: str | None = None
    steps: tuple[str, ...] = field(default=())
    minion_id: str | None = None

    @property
    def needed_steps(self) -> tuple[str, ...]:
        """What the firmware of this machine needs before it starts from the drive."""
        is_nvidia = self.requested is not None and self.requested.vendor == "nvidia"
        return tuple(step for step in FIRMWARE_STEPS if is_nvidia or step != NVIDIA_ONLY)


def evolve(state: Admission, fact: Fact) -> Admission:
    match fact:
        case AdmissionRequested():
            return Admission(fact, "requested")
        case AdmissionValidated():
            return replace(state, status="validated")
        case AdmissionRefused():
            return replace(state, status="refused", why=fact.why)
        case BootDriveShipped():
            return replace(state, status="shipped", tracking=fact.tracking)
        case FirmwareStepDone():
            return replace(state, steps=(*state.steps, fact.step))
        case MachineInstalled():
            return replace(state, status="installed", minion_id=fact.minion_id)
        case _:
            assert_never(fact)


def admission_stream(admission_id: str) -> Stream[Admission]:
    return Stream("admission", admission_id)


def admission_of(world: World, admission_id: str) -> Admission:
    return world.state(admission_stream(admission_id))


# How we decide.


def decide_request(command: RequestAdmission, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, REGION_UNKNOWN, REGION_NOT_SUITED,
    COUNT_OUT_OF_RANGE.
    """
    open_account(world, command.account_id)
    region = existing_region(world, command.region_id)
    if existing_provider(world, region.provider_id).account_id != command.account_id:
        raise Refused(FleetReason.REGION_UNKNOWN, region_id=command.region_id)
    if admission_of(world, command.admission_id).requested is not None:
        return []
    if region.admission != APPROVED:
        raise Refused(FleetReason.REGION_NOT_SUITED, region_id=command.region_id, what="admission")
    if not 1 <= command.gpus <= GPUS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field="gpus", at_least=1, at_most=GPUS_MAX)
    _require_words("vendor", command.vendor)
    _require_words("model", command.model)
    fact = AdmissionRequested(
        admission_id=command.admission_id,
        account_id=command.account_id,
        region_id=command.region_id,
        vendor=command.vendor.lower(),
        model=command.model,
        gpus=command.gpus,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(admission_stream(command.admission_id), fact)]


def decide_validate(command: ValidateAdmission, world: World) -> list[Change]:
    """Raises Refused: ADMISSION_UNKNOWN, ADMISSION_STATE."""
    if _at(command.admission_id, "requested", world).status == "validated":
        return []
    fact = AdmissionValidated(admission_id=command.admission_id, by=command.by, at_us=command.at_us)
    return [Change(admission_stream(command.admission_id), fact)]


def decide_refuse(command: RefuseAdmission, world: World) -> list[Change]:
    """Raises Refused: ADMISSION_UNKNOWN, ADMISSION_STATE, COUNT_OUT_OF_RANGE."""
    state = _existing(command.admission_id, world)
    if (state.status, state.why) == ("refused", command.why):
        return []
    if state.status in ("installed", "refused"):
        raise Refused(
            FleetReason.ADMISSION_STATE, admission_id=command.admission_id, status=state.status
        )
    _require_words("why", command.why)
    fact = AdmissionRefused(
        admission_id=command.admission_id, why=command.why, by=command.by, at_us=command.at_us
    )
    return [Change(admission_stream(command.admission_id), fact)]


def decide_ship(command: ShipBootDrive, world: World) -> list[Change]:
    """Raises Refused: ADMISSION_UNKNOWN, ADMISSION_STATE, COUNT_OUT_OF_RANGE."""
    state = _at(command.admission_id, "validated", world)
    if (state.status, state.tracking) == ("shipped", command.tracking):
        return []
    _require_words("tracking", command.tracking)
    fact = BootDriveShipped(
        admission_id=command.admission_id,
        tracking=command.tracking,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(admission_stream(command.admission_id), fact)]


def decide_step(command: DoFirmwareStep, world: World) -> list[Change]:
    """Steps in any order; Secure Boot is turned off for NVIDIA GPUs only.

    Raises Refused: ADMISSION_UNKNOWN, ADMISSION_STATE, UNKNOWN_MODE.
    """
    state = _at(command.admission_id, "shipped", world)
    if command.step in state.steps:
        return []
    if command.step not in state.needed_steps:
        raise Refused(PartiesReason.UNKNOWN_MODE, step=command.step)
    fact = FirmwareStepDone(
        admission_id=command.admission_id, step=command.step, by=command.by, at_us=command.at_us
    )
    return [Change(admission_stream(command.admission_id), fact)]


def decide_install(command: InstallMachine, world: World) -> list[Change]:
    """Raises Refused: ADMISSION_UNKNOWN, ADMISSION_STATE, COUNT_OUT_OF_RANGE."""
    state = _at(command.admission_id, "shipped", world)
    if (state.status, state.minion_id) == ("installed", command.minion_id):
        return []
    missing = tuple(step for step in state.needed_steps if step not in state.steps)
    if missing:
        raise Refused(
            FleetReason.ADMISSION_STATE, admission_id=command.admission_id, missing=missing
        )
    _require_words("minion_id", command.minion_id)
    fact = MachineInstalled(
        admission_id=command.admission_id,
        minion_id=command.minion_id,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(admission_stream(command.admission_id), fact)]


def decide_code(command: IssueInstalledCode, world: World) -> list[Change]:
    """The join code of an installed machine; the node that uses it carries its `minion_id`.

    Raises Refused: ADMISSION_UNKNOWN, ADMISSION_STATE, and what issuing a code refuses.
    """
    state = _existing(command.admission_id, world)
    if state.status != "installed" or state.requested is None:
        raise Refused(
            FleetReason.ADMISSION_STATE, admission_id=command.admission_id, status=state.status
        )
    issue = IssueJoinCode(
        code_sha256=command.code_sha256,
        provider_id=existing_region(world, state.requested.region_id).provider_id,
        region_id=state.requested.region_id,
        minion_id=state.minion_id,
        by=command.by,
        at_us=command.at_us,
    )
    assert join_code_of(world, command.code_sha256).issued is None, command
    return decide_issue_code(issue, world)


def _existing(admission_id: str, world: World) -> Admission:
    state = admission_of(world, admission_id)
    if state.requested is None:
        raise Refused(FleetReason.ADMISSION_UNKNOWN, admission_id=admission_id)
    return state


_ORDER = ("requested", "validated", "shipped", "installed")


def _at(admission_id: str, status: str, world: World) -> Admission:
    """The admission in this state, or in the next one: a command that is sent again."""
    state = _existing(admission_id, world)
    after = _ORDER[_ORDER.index(status) + 1]
    if state.status not in (status, after):
        raise Refused(FleetReason.ADMISSION_STATE, admission_id=admission_id, status=state.status)
    return state


def _require_words(field: str, text: str) -> None:
    if not 1 <= len(text) <= WORDS_MAX or not text.isprintable():
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field=field, at_most=WORDS_MAX)


STREAMS: dict[str, tuple[Any, Any]] = {"admission": (Admission(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    RequestAdmission: decide_request,
    ValidateAdmission: decide_validate,
    RefuseAdmission: decide_refuse,
    ShipBootDrive: decide_ship,
    DoFirmwareStep: decide_step,
    InstallMachine: decide_install,
    IssueInstalledCode: decide_code,
}
