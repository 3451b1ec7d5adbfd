"""What an edge device runs: the configuration that was deployed to it, and how that goes.

    a device runs one configuration: that of its last deployment
    it is to run in a boot  <=>  one was deployed, and its command did not exit in this boot

So the command begins again when the device was rebooted or something was deployed, and not when it
exits by itself (row C-34). The device tells which boot it is in; of an older deployment, what it
tells counts no more. While it runs, the command has the accelerator of the board and what is
plugged in of video and media (`ACCESS`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.refusal import Refused
from domain.sites.device_config import existing_device_config, require_store
from domain.sites.edge_device import Configured, edge_devices_of
from domain.sites.reasons import SitesReason
from domain.stream import Change, Stream, World

# Facts. Stream `inference:{device_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConfigDeployed:
    """From now on the device is to run this revision, and nothing else."""

    device_id: str
    account_id: str
    region_id: str
    config: str
    revision: int
    deployment: int  # 1, 2, ... of the device
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceReported:
    """The device told how its last deployment goes in this boot."""

    device_id: str
    account_id: str
    deployment: int
    boot_id: str
    status: str  # STATUSES
    exit_code: int | None  # of one that exited
    by: str
    at_us: int


Fact: TypeAlias = DeviceConfigDeployed | InferenceReported


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployDeviceConfig:
    """Deploy the last revision of a configuration of the device's region."""

    device_id: str
    account_id: str
    config: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInference:
    device_id: str
    account_id: str
    deployment: int
    boot_id: str
    status: str
    exit_code: int | None
    by: str
    at_us: int


RUNS, EXITED = "running", "exited"
STATUSES = (RUNS, EXITED)
ACCESS = ("accelerator", "video", "media")
"""Devices of the board that the command may use."""
BOOT_ID = r"[0-9A-Za-z-]{8,64}"
"""Another one after each boot, like Linux's `/proc/sys/kernel/random/boot_id`."""
EXIT_CODE_MAX = 255
BOOTS_KEPT = 20
"""Earlier boots of a device whose late reports are known as such."""


@dataclass(frozen=True, slots=True)
class Inference:
    """`told`: the last report about the last deployment. `over`: boots that others came after, the
    latest last.
    """

    deployed: DeviceConfigDeployed | None = None
    told: InferenceReported | None = None
    over: tuple[str, ...] = ()

    def is_to_run(self, boot_id: str) -> bool:
        """Whether the device runs, or begins to run, what was deployed, in this boot."""
        return self.deployed is not None and not self._exited_in(boot_id)

    def _exited_in(self, boot_id: str) -> bool:
        told = self.told
        return told is not None and (told.boot_id, told.status) == (boot_id, EXITED)


def evolve(state: Inference, fact: Fact) -> Inference:
    match fact:
        case DeviceConfigDeployed():
            return Inference(fact, over=state.over)
        case InferenceReported():
            return replace(state, told=fact, over=_over(state, fact.boot_id))
        case _:
            assert_never(fact)


def _over(state: Inference, boot_id: str) -> tuple[str, ...]:
    """The boots that are over once the device tells of this one."""
    if state.told is None or boot_id == state.told.boot_id:
        return state.over
    return (*state.over, state.told.boot_id)[-BOOTS_KEPT:]


def inference_stream(device_id: str) -> Stream[Inference]:
    return Stream("inference", device_id)


def existing_device(world: World, account_id: str, device_id: str) -> Configured:
    """Raises Refused: DEVICE_UNKNOWN, also for one that was removed."""
    device = edge_devices_of(world, account_id).devices.get(device_id)
    if device is None or device.last_day is not None:
        raise Refused(FleetReason.DEVICE_UNKNOWN, device_id=device_id)
    return device


def decide_deploy(command: DeployDeviceConfig, world: World) -> list[Change]:
    """To an active device, a configuration of its own region. The revision that it has already
    changes nothing, unless its command exited: then it begins once more.

    Raises Refused: DEVICE_UNKNOWN, DEVICE_STATE, DEVICE_CONFIG_UNKNOWN, PLAN_NEEDED,
    DATASTORE_UNKNOWN.
    """
    device = existing_device(world, command.account_id, command.device_id)
    if not device.is_active:
        raise Refused(SitesReason.DEVICE_STATE, device_id=command.device_id, rule="active")
    config = existing_device_config(world, device.region_id, command.config)
    require_store(world, command.account_id, device.region_id, config.work)
    stream = inference_stream(command.device_id)
    state = world.state(stream)
    before = state.deployed
    exited = state.told is not None and state.told.status == EXITED
    is_there = before is not None and (before.config, before.revision) == (
        command.config,
        config.revision,
    )
    if is_there and not exited:
        return []
    told = DeviceConfigDeployed(
        device_id=command.device_id,
        account_id=command.account_id,
        region_id=device.region_id,
        config=command.config,
        revision=config.revision,
        deployment=1 if before is None else before.deployment + 1,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream, told)]


def decide_report(command: ReportInference, world: World) -> list[Change]:
    """What a device tells of an older deployment, or late of a boot that is over, changes nothing,
    and neither does the same again.

    Raises Refused: DEVICE_UNKNOWN, DEVICE_INVALID, DEVICE_STATE.
    """
    existing_device(world, command.account_id, command.device_id)
    _require_told(command)
    stream = inference_stream(command.device_id)
    state = world.state(stream)
    last = 0 if state.deployed is None else state.deployed.deployment
    if command.deployment > last:
        raise Refused(SitesReason.DEVICE_STATE, device_id=command.device_id, rule="deployment")
    if command.deployment < last or command.boot_id in state.over:
        return []
    told = InferenceReported(
        device_id=command.device_id,
        account_id=command.account_id,
        deployment=command.deployment,
        boot_id=command.boot_id,
        status=command.status,
        exit_code=command.exit_code,
        by=command.by,
        at_us=command.at_us,
    )
    before = state.told
    if before is not None and replace(told, by=before.by, at_us=before.at_us) == before:
        return []
    if not state.is_to_run(command.boot_id):
        raise Refused(SitesReason.DEVICE_STATE, device_id=command.device_id, rule="exited")
    return [Change(stream, told)]


def _require_told(command: ReportInference) -> None:
    """Raises Refused: DEVICE_INVALID."""
    if re.fullmatch(BOOT_ID, command.boot_id, re.ASCII) is None:
        raise _invalid("boot_id", "8 to 64 letters, digits and hyphens")
    if command.status not in STATUSES:
        raise _invalid("status", ", ".join(STATUSES))
    if (command.exit_code is not None) != (command.status == EXITED):
        raise _invalid("exit_code", "the code of a command that exited, and none of one that runs")
    if command.exit_code is not None and not 0 <= command.exit_code <= EXIT_CODE_MAX:
        raise _invalid("exit_code", f"0 to {EXIT_CODE_MAX}")


def _invalid(field: str, rule: str) -> Refused:
    return Refused(SitesReason.DEVICE_INVALID, field=field, rule=rule)


STREAMS: dict[str, tuple[Any, Any]] = {"inference": (Inference(), evolve)}
DECIDERS: dict[type[Any], Any] = {DeployDeviceConfig: decide_deploy, ReportInference: decide_report}
