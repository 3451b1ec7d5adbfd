"""The admission of a physical machine, followed step by step (rows C-6 and C-32)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.fleet.condition import NodeProvisioned, NodeProvisioningStarted
from domain.fleet.node import (
    ActivateNode,
    AdmitNode,
    ConfirmNodeKey,
    IssueJoinCode,
    JoinNode,
    ReportSpecs,
    StartMaintenance,
    node_of,
)
from domain.fleet.provider import region_stream
from domain.fleet.reasons import FleetReason
from domain.machines.admission import (
    AdmissionRequested,
    DoFirmwareStep,
    InstallMachine,
    IssueInstalledCode,
    RefuseAdmission,
    RequestAdmission,
    ShipBootDrive,
    ValidateAdmission,
    admission_of,
    admission_stream,
)
from domain.parties.reasons import PartiesReason
from domain.stream import Change
from tests.domain.scenes.supply import (
    ALICE,
    CODE,
    GPU_0,
    HOST,
    NODE,
    NOON_US,
    PROVIDER,
    REGION,
    gpu,
    region_opened,
    with_provider,
    with_region,
)
from tests.given import Scene

ONE = "admission_1"
BY: dict[str, Any] = {"by": "mem", "at_us": NOON_US}
region = with_provider.given((region_stream(REGION), replace(region_opened, admission="approved")))
REQUEST = RequestAdmission(
    admission_id=ONE,
    account_id=ALICE,
    region_id=REGION,
    vendor="NVIDIA",
    model="NVIDIA A100-SXM4-80GB",
    gpus=1,
    **BY,
)
VALIDATE = ValidateAdmission(admission_id=ONE, **BY)
SHIP = ShipBootDrive(admission_id=ONE, tracking="1Z", **BY)
STEPS = [
    DoFirmwareStep(admission_id=ONE, step=step, **BY)
    for step in ("tpm_cleared", "csm_off", "secure_boot_off")
]
INSTALL = InstallMachine(admission_id=ONE, minion_id="minion-4f21", **BY)
TAKE = IssueInstalledCode(admission_id=ONE, code_sha256=CODE, **BY)
WAY = [REQUEST, VALIDATE, SHIP, *STEPS, INSTALL, TAKE]


def along(*commands: Any) -> Scene:
    scene = region
    for command in commands:
        scene = scene.after(command)
    return scene


def test_every_step_has_its_turn_and_the_same_again_changes_nothing() -> None:
    """C-6: request, validated, boot drive shipped, installed with its minion id, join code."""
    asked = AdmissionRequested(
        admission_id=ONE,
        account_id=ALICE,
        region_id=REGION,
        vendor="nvidia",
        model="NVIDIA A100-SXM4-80GB",
        gpus=1,
        **BY,
    )
    assert region.when(REQUEST).changes() == [Change(admission_stream(ONE), asked)]
    statuses = ["requested", "validated", "shipped", "shipped", "shipped", "shipped", "installed"]
    scene = region
    for command, status in zip(WAY[:-1], statuses, strict=True):
        scene = scene.after(command)
        assert admission_of(scene, ONE).status == status
        scene.when(command).then_nothing()
    assert admission_of(scene, ONE).minion_id == "minion-4f21"


@pytest.mark.parametrize("number", [2, 3, 6, 7])
def test_no_step_is_left_out(number: int) -> None:
    for done in range(1, number):
        along(*WAY[:done]).when(WAY[number]).then_refused(FleetReason.ADMISSION_STATE)


def test_secure_boot_is_turned_off_for_nvidia_only() -> None:
    """C-32: the TPM is cleared and CSM is off on every machine."""
    amd = replace(REQUEST, vendor="amd", model="AMD Instinct MI300X")
    scene = along(amd, VALIDATE, SHIP)
    scene.when(STEPS[2]).then_refused(PartiesReason.UNKNOWN_MODE, step="secure_boot_off")
    ready = scene.after(STEPS[1]).after(STEPS[0])
    assert len(ready.when(INSTALL).changes()) == 1
    bare = along(REQUEST, VALIDATE, SHIP, *STEPS[:2])
    bare.when(INSTALL).then_refused(FleetReason.ADMISSION_STATE, missing=("secure_boot_off",))


def test_a_request_is_of_ones_own_region_that_admits_by_the_procedure() -> None:
    with_region.when(REQUEST).then_refused(FleetReason.REGION_NOT_SUITED, what="admission")
    region.when(replace(REQUEST, gpus=0)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    region.when(replace(REQUEST, model="")).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    region.when(VALIDATE).then_refused(FleetReason.ADMISSION_UNKNOWN)


def test_the_operator_refuses_a_machine_that_is_not_installed_and_says_why() -> None:
    refuse = RefuseAdmission(admission_id=ONE, why="two models", **BY)
    refused = along(REQUEST, refuse)
    assert (admission_of(refused, ONE).status, admission_of(refused, ONE).why) == (
        "refused",
        "two models",
    )
    refused.when(refuse).then_nothing()
    refused.when(VALIDATE).then_refused(FleetReason.ADMISSION_STATE, status="refused")
    along(*WAY[:-1]).when(refuse).then_refused(FleetReason.ADMISSION_STATE, status="installed")


def test_the_installed_machine_joins_is_provisioned_and_becomes_active_by_toggle() -> None:
    """C-6: joined with its minion id, confirmed, admitted, provisioning, maintenance, active."""
    code = IssueJoinCode(code_sha256=CODE, provider_id=PROVIDER, region_id=REGION, **BY)
    region.when(code).then_refused(FleetReason.ADMISSION_STATE, region_id=REGION)
    join = JoinNode(
        code_sha256=CODE,
        node_id=NODE,
        key_id="nk_1",
        public_key="ab" * 32,
        token_sha256="cd" * 32,
        agent="0.1.0",
        client_id=None,
        devices=(gpu(GPU_0),),
        host=HOST,
        at_us=NOON_US,
    )
    joined = along(*WAY).after(join)
    assert node_of(joined, NODE).condition.minion_id == "minion-4f21"
    admitted = joined.after(ConfirmNodeKey(node_id=NODE, key_id="nk_1", **BY)).after(
        AdmitNode(node_id=NODE, **BY)
    )
    assert node_of(admitted, NODE).phase == "provisioning"
    started = [fact for _, fact in admitted.past if isinstance(fact, NodeProvisioningStarted)]
    assert len(started) == 1
    activate = ActivateNode(node_id=NODE, **BY)
    admitted.when(activate).then_refused(FleetReason.NODE_STATE, phase="provisioning")
    admitted.when(StartMaintenance(node_id=NODE, **BY)).then_refused(FleetReason.NODE_STATE)
    told = ReportSpecs(node_id=NODE, devices=(gpu(GPU_0),), host=HOST, at_us=NOON_US + 1)
    provisioned = admitted.after(told)
    assert NodeProvisioned(node_id=NODE, at_us=NOON_US + 1) == provisioned.past[-1][1]
    assert node_of(provisioned, NODE).phase == "maintenance", "not active by itself"
    assert node_of(provisioned.after(activate), NODE).phase == "active"
