"""Is a machine fit for work? Stopped, in error, failed, and set up (rows C-7, C-10, C-32, C-33)."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from domain.fleet.condition import (
    IdleMiningSet,
    NodeErrored,
    NodeFailed,
    NodeSetupStated,
    NodeStopped,
    Phase,
    state_of,
)
from domain.fleet.device import DeviceReserved, device_stream
from domain.fleet.node import (
    ActivateNode,
    IssueJoinCode,
    StartMaintenance,
    ended_with_its_job,
    node_of,
)
from domain.fleet.reasons import FleetReason
from domain.leasing.drain import DrainNode
from domain.machines.condition import ERROR_LENGTH_MAX, FailNode, ReportNodeError, StopNode
from domain.machines.setup import SetIdleMining, StateNodeSetup, advised_upnp
from domain.parties.account import WalletLinked
from domain.parties.reasons import PartiesReason
from tests.domain.scenes.supply import (
    ALICE,
    ALICE_STREAM,
    GPU_0,
    NODE,
    NODE_STREAM,
    NOON_US,
    PROVIDER,
    REGION,
    with_active_node,
    with_confirmed_node,
    with_region,
)
from tests.given import Scene

PHASES = get_args(Phase)
STOP = StopNode(node_id=NODE, by="mem", at_us=NOON_US)
ERROR = ReportNodeError(node_id=NODE, error="Xid 79", at_us=NOON_US)
FAIL = FailNode(node_id=NODE, error="fan broken", by="mem", at_us=NOON_US)
ACTIVATE = ActivateNode(node_id=NODE, by="mem", at_us=NOON_US)
MAINTAIN = StartMaintenance(node_id=NODE, by="mem", at_us=NOON_US)
held = DeviceReserved(
    device_id=GPU_0,
    lease_id="lease_1",
    share_ppm=1_000_000,
    mem_ppm=1_000_000,
    at_us=NOON_US,
    mode="whole",
    mig=None,
)


@pytest.mark.parametrize(
    ("command", "fact", "phase"),
    [
        (STOP, NodeStopped(node_id=NODE, by="mem", at_us=NOON_US), "stopped"),
        (ERROR, NodeErrored(node_id=NODE, error="Xid 79", at_us=NOON_US), "errored"),
        (FAIL, NodeFailed(node_id=NODE, error="fan broken", by="mem", at_us=NOON_US), "failed"),
    ],
)
def test_a_node_that_is_out_of_order_takes_no_leases_and_comes_back_by_maintenance(
    command: StopNode, fact: NodeStopped, phase: str
) -> None:
    """C-7: by toggle, never by itself."""
    with_active_node.when(command).then((NODE_STREAM, fact))
    scene = with_active_node.after(command)
    scene.when(command).then_nothing()
    assert node_of(scene, NODE).phase == phase
    assert not node_of(scene, NODE).is_matchable
    scene.when(ACTIVATE).then_refused(FleetReason.NODE_STATE, phase=phase)
    drain = DrainNode(node_id=NODE, keep_leases=True, by="mem", at_us=NOON_US)
    scene.when(drain).then_refused(FleetReason.NODE_STATE, phase=phase)
    back = scene.after(MAINTAIN).after(ACTIVATE)
    assert node_of(back, NODE).is_matchable
    with_confirmed_node.when(command).then_refused(FleetReason.NODE_STATE, phase="confirmed")


def test_the_error_is_kept_and_a_failed_node_is_not_errored_again() -> None:
    failed = with_active_node.after(ERROR).after(FAIL)
    assert node_of(failed, NODE).condition.error == "fan broken"
    failed.when(ERROR).then_nothing()
    assert node_of(failed.after(MAINTAIN), NODE).condition.error == "fan broken"
    long = replace(ERROR, error="x" * (ERROR_LENGTH_MAX + 1))
    with_active_node.when(long).then_refused(PartiesReason.COUNT_OUT_OF_RANGE, field="error")
    with_active_node.when(replace(FAIL, error="a\nb")).then_refused(
        PartiesReason.COUNT_OUT_OF_RANGE
    )


def test_a_machine_is_not_turned_off_under_a_lease() -> None:
    busy = with_active_node.given((device_stream(GPU_0), held))
    busy.when(STOP).then_refused(FleetReason.NODE_BUSY, leases=("lease_1",))
    assert len(busy.when(ERROR).changes()) == 1, "an error asks nobody"


def test_every_phase_has_a_state_and_silence_makes_a_node_at_work_offline() -> None:
    """C-7: active, maintenance, offline, stopped, archived, errored, failed."""
    told = {phase: state_of(phase, is_quarantined=False, is_silent=False) for phase in PHASES}
    own = ("joining", "confirmed", "provisioning", "maintenance", "active", "stopped")
    assert {phase: told[phase] for phase in (*own, "errored", "failed")} == {
        phase: phase for phase in (*own, "errored", "failed")
    }
    assert (told["draining"], told["retired"]) == ("maintenance", "archived")
    silent = {phase: state_of(phase, is_quarantined=False, is_silent=True) for phase in PHASES}
    assert silent == {**told, "active": "offline"}
    assert state_of("active", is_quarantined=True, is_silent=False) == "failed"


def test_an_ephemeral_node_ends_with_the_last_lease_on_it_and_a_permanent_one_does_not() -> None:
    """C-31; the lifetime is that of its join code."""
    issue = IssueJoinCode(
        code_sha256="c1" * 32, provider_id=PROVIDER, region_id=REGION, by="mem", at_us=NOON_US
    )
    with_region.when(replace(issue, lifetime="brief")).then_refused(PartiesReason.UNKNOWN_MODE)
    terms = with_region.when(replace(issue, lifetime="ephemeral")).changes()[-1].fact
    assert (terms.lifetime, terms.minion_id) == ("ephemeral", None)
    brief = with_active_node.given((NODE_STREAM, _terms()), (device_stream(GPU_0), held))
    assert ended_with_its_job(with_active_node, NODE, "lease_1", NOON_US) == []
    assert ended_with_its_job(brief, NODE, "lease_2", NOON_US) == [], "another one runs there"
    changes = ended_with_its_job(brief, NODE, "lease_1", NOON_US)
    kinds = [type(change.fact).__name__ for change in changes]
    assert kinds == ["NodeRetired", "DeviceRetired", "DeviceRetired", "RegionMemberLeft"]
    gone = brief.given(*((change.stream, change.fact) for change in changes))
    assert ended_with_its_job(gone, NODE, "lease_1", NOON_US) == []


def _terms() -> object:
    from domain.fleet.condition import NodeTermsStated

    return NodeTermsStated(node_id=NODE, lifetime="ephemeral", minion_id=None, at_us=NOON_US)


def test_the_owner_states_uplink_upnp_and_exclusive_access() -> None:
    """C-32, C-33: UPnP off behind a corporate firewall, on behind an internet provider."""
    command = StateNodeSetup(
        node_id=NODE,
        uplink="internet_provider",
        upnp=True,
        exclusive_access=True,
        by="mem",
        at_us=NOON_US,
    )
    fact = NodeSetupStated(
        node_id=NODE,
        uplink="internet_provider",
        upnp=True,
        exclusive_access=True,
        by="mem",
        at_us=NOON_US,
    )
    with_active_node.when(command).then((NODE_STREAM, fact))
    scene = with_active_node.after(command)
    scene.when(replace(command, by="mem_2", at_us=NOON_US + 1)).then_nothing()
    assert node_of(scene, NODE).phase == "active"
    scene.when(replace(command, uplink="carrier pigeon")).then_refused(PartiesReason.UNKNOWN_MODE)
    advised = [advised_upnp(one) for one in ("corporate_firewall", "internet_provider", None)]
    assert advised == [False, True, None]


def test_idle_mining_needs_a_wallet_that_is_paid_and_is_no_usage_of_a_lease() -> None:
    """C-10: a wallet that is linked and still waits does not count."""
    on = SetIdleMining(node_id=NODE, is_on=True, by="mem", at_us=NOON_US)
    with_active_node.when(on).then_refused(FleetReason.WALLET_NEEDED, account_id=ALICE)
    linked = WalletLinked(
        account_id=ALICE,
        address="0x" + "1" * 40,
        message="",
        signature="",
        at_us=0,
        effective_at_us=NOON_US + 1,
    )
    scene = with_active_node.given((ALICE_STREAM, linked))
    scene.when(on).then_refused(FleetReason.WALLET_NEEDED)
    later = replace(on, at_us=NOON_US + 1)
    fact = IdleMiningSet(
        node_id=NODE, is_on=True, wallet="0x" + "1" * 40, by="mem", at_us=NOON_US + 1
    )
    scene.when(later).then((NODE_STREAM, fact))
    mining = scene.after(later)
    mining.when(later).then_nothing()
    assert node_of(mining, NODE).condition.is_mining
    assert node_of(mining, NODE).is_matchable, "whoever leases it comes first"
    off = mining.after(replace(later, is_on=False))
    assert not node_of(off, NODE).condition.is_mining


def test_a_node_that_has_left_is_set_up_no_more() -> None:
    from domain.fleet.node import RetireNode

    gone: Scene = with_active_node.after(RetireNode(node_id=NODE, by="mem", at_us=NOON_US))
    off = SetIdleMining(node_id=NODE, is_on=True, by="mem", at_us=NOON_US)
    gone.when(off).then_refused(FleetReason.NODE_STATE, phase="retired")
    gone.when(STOP).then_refused(FleetReason.NODE_STATE, phase="retired")
