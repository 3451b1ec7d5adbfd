"""What edge devices run: one deployment, begun again after a reboot and not after an exit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fleet.reasons import FleetReason
from domain.sites.edge_device import ReportEdgeDevice
from domain.sites.inference import (
    BOOTS_KEPT,
    EXITED,
    RUNS,
    DeployDeviceConfig,
    DeviceConfigDeployed,
    InferenceReported,
    ReportInference,
    inference_stream,
)
from domain.sites.reasons import SitesReason
from tests.domain.scenes.supply import ALICE, NOON_US, REGION
from tests.domain.sites.test_device_config import first
from tests.domain.sites.test_edge_device import add, remove, rich
from tests.examples import examples
from tests.given import Scene

FIRST_BOOT, SECOND_BOOT = "boot-0001", "boot-0002"
RUNNING = inference_stream("edge_1")
deploy = DeployDeviceConfig(
    device_id="edge_1", account_id=ALICE, config="counter", by="mem_alice", at_us=NOON_US
)
deployed = DeviceConfigDeployed(
    device_id="edge_1",
    account_id=ALICE,
    region_id=REGION,
    config="counter",
    revision=1,
    deployment=1,
    by="mem_alice",
    at_us=NOON_US,
)
added = rich.after(first).after(add("edge_1"))
is_up = ReportEdgeDevice(device_id="edge_1", account_id=ALICE, by="mem", at_us=NOON_US)
active = added.after(is_up)
running = active.after(deploy)


def tell(
    status: str = RUNS, boot_id: str = FIRST_BOOT, deployment: int = 1, exit_code: int | None = None
) -> ReportInference:
    return ReportInference(
        device_id="edge_1",
        account_id=ALICE,
        deployment=deployment,
        boot_id=boot_id,
        status=status,
        exit_code=0 if status == EXITED and exit_code is None else exit_code,
        by="mem_alice",
        at_us=NOON_US,
    )


def is_to_run(scene: Scene, boot_id: str) -> bool:
    found: bool = scene.state(RUNNING).is_to_run(boot_id)
    return found


def test_a_configuration_is_deployed_to_an_active_device_of_its_region() -> None:
    """C-34, C-35."""
    active.when(deploy).then((RUNNING, deployed))
    running.when(deploy).then_nothing()
    added.when(deploy).then_refused(SitesReason.DEVICE_STATE, rule="active")
    active.when(replace(deploy, config="other")).then_refused(SitesReason.DEVICE_CONFIG_UNKNOWN)
    active.when(replace(deploy, device_id="edge_9")).then_refused(FleetReason.DEVICE_UNKNOWN)
    active.when(replace(deploy, account_id="acct_no")).then_refused(FleetReason.DEVICE_UNKNOWN)
    gone = running.after(remove("edge_1", NOON_US))
    for command in (deploy, tell()):
        gone.when(command).then_refused(FleetReason.DEVICE_UNKNOWN)


def test_many_devices_share_one_and_a_device_runs_one() -> None:
    """C-35: the next deployment takes the place of the last; a new revision is deployed anew."""
    both = active.after(add("edge_2")).after(replace(is_up, device_id="edge_2"))
    both = both.after(deploy).after(replace(deploy, device_id="edge_2"))
    for name in ("edge_1", "edge_2"):
        assert both.state(inference_stream(name)).deployed.config == "counter"
    other = replace(first, name="other")
    scene = both.after(other).after(replace(deploy, config="other"))
    last = scene.state(RUNNING).deployed
    assert (last.config, last.deployment) == ("other", 2)
    newer = scene.after(replace(first, revision=2, work=replace(first.work, image="counter:2")))
    assert newer.state(inference_stream("edge_2")).deployed.revision == 1, "it keeps what it runs"
    again = newer.after(replace(deploy, device_id="edge_2"))
    assert again.state(inference_stream("edge_2")).deployed.revision == 2


def test_it_begins_again_after_a_reboot_and_not_when_the_command_exits() -> None:
    """C-34, the restart rule."""
    assert not is_to_run(active, FIRST_BOOT)
    assert is_to_run(running, FIRST_BOOT)
    fact = InferenceReported(
        device_id="edge_1",
        account_id=ALICE,
        deployment=1,
        boot_id=FIRST_BOOT,
        status=EXITED,
        exit_code=3,
        by="mem_alice",
        at_us=NOON_US,
    )
    started = running.after(tell())
    started.when(tell()).then_nothing()
    started.when(tell(EXITED, exit_code=3)).then((RUNNING, fact))
    over = started.after(tell(EXITED, exit_code=3))
    assert not is_to_run(over, FIRST_BOOT)
    over.when(tell()).then_refused(SitesReason.DEVICE_STATE, rule="exited")
    over.when(tell(EXITED, exit_code=3)).then_nothing()
    assert is_to_run(over, SECOND_BOOT)
    rebooted = over.after(tell(boot_id=SECOND_BOOT))
    assert rebooted.state(RUNNING).told.status == RUNS
    # Who wants it in the same boot deploys it once more.
    assert over.after(deploy).state(RUNNING).deployed.deployment == 2
    assert is_to_run(over.after(deploy), FIRST_BOOT)


def test_a_late_report_of_a_boot_that_is_over_changes_nothing() -> None:
    """It was on its way when the device began again: what runs now is not replaced by it."""
    again = running.after(tell()).after(tell(boot_id=SECOND_BOOT))
    again.when(tell(EXITED, FIRST_BOOT, exit_code=1)).then_nothing()
    again.when(tell(boot_id=FIRST_BOOT)).then_nothing()
    assert again.state(RUNNING).told.boot_id == SECOND_BOOT
    third = again.after(tell(boot_id="boot-0003"))
    third.when(tell(EXITED, SECOND_BOOT, exit_code=1)).then_nothing()
    for number in range(10, 10 + 2 * BOOTS_KEPT):
        third = third.after(tell(boot_id=f"boot-00{number}"))
    assert len(third.state(RUNNING).over) == BOOTS_KEPT


def test_what_is_told_of_an_older_deployment_changes_nothing_and_of_a_later_is_refused() -> None:
    second = running.after(tell(EXITED)).after(deploy)
    second.when(tell(EXITED)).then_nothing()
    assert is_to_run(second, FIRST_BOOT)
    second.when(tell(deployment=3)).then_refused(SitesReason.DEVICE_STATE, rule="deployment")
    active.when(tell()).then_refused(SitesReason.DEVICE_STATE, rule="deployment")


@pytest.mark.parametrize(
    ("field", "command"),
    [
        ("boot_id", tell(boot_id="short")),
        ("status", replace(tell(), status="pending")),
        ("exit_code", tell(exit_code=1)),
        ("exit_code", replace(tell(EXITED), exit_code=None)),
        ("exit_code", tell(EXITED, exit_code=256)),
    ],
)
def test_a_report_that_is_wrong_is_refused_by_its_field(
    field: str, command: ReportInference
) -> None:
    running.when(command).then_refused(SitesReason.DEVICE_INVALID, field=field)


events = st.lists(st.sampled_from(["exit", "reboot", "deploy"]), max_size=12)


@examples(60)
@given(events=events)
def test_it_is_to_run_in_a_boot_unless_its_command_exited_in_it(events: list[str]) -> None:
    scene, boot, exited = running, 0, False
    for event in events:
        number = scene.state(RUNNING).deployed.deployment
        name = f"boot-{boot:04d}"
        if event == "exit" and not exited:
            scene, exited = scene.after(tell(EXITED, name, number)), True
        elif event == "reboot":
            boot, exited = boot + 1, False
        elif event == "deploy":
            scene, exited = scene.after(deploy), False
        assert is_to_run(scene, f"boot-{boot:04d}") is not exited
