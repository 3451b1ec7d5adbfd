"""How a stranger's machine comes to be trusted with leases, and how it leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.fleet.device import DeviceReserved, DeviceRetired, device_of
from domain.fleet.growth import RegionMemberLeft
from domain.fleet.node import (
    JOIN_CODE_LIFE_US,
    ActivateNode,
    AdmitNode,
    ConfirmNodeKey,
    DeviceSpec,
    IssueJoinCode,
    JoinNode,
    NodeActivated,
    NodeAdmitted,
    NodeEquivocated,
    NodeMaintenanceStarted,
    NodeRetired,
    NodeSpecReported,
    RecordEquivocation,
    ReportSpecs,
    RetireNode,
    StartMaintenance,
    join_code_of,
    node_of,
)
from domain.fleet.reasons import FleetReason
from domain.hardware.facts import HardwareFacts
from domain.refusal import Refused
from domain.stream import Stream
from tests.domain.scenes.supply import (
    CODE,
    CODE_STREAM,
    GPU_0,
    GPU_1,
    GROWTH_STREAM,
    HOST,
    NODE,
    NODE_STREAM,
    NOON_US,
    PROVIDER,
    REGION,
    admitted,
    code_issued,
    code_used,
    confirmed,
    device_registered,
    gpu,
    joined,
    member,
    registered,
    specs,
    with_active_node,
    with_admitted_node,
    with_code,
    with_confirmed_node,
    with_joined_node,
    with_provider,
    with_region,
)
from tests.given import Scene

LATER_US = NOON_US + 60_000_000
DEVICE_0, DEVICE_1 = Stream("device", GPU_0), Stream("device", GPU_1)

issue_code = IssueJoinCode(
    code_sha256=CODE, provider_id=PROVIDER, region_id=REGION, by="mem_alice", at_us=NOON_US
)
join = JoinNode(
    code_sha256=CODE,
    node_id=NODE,
    key_id="nk_1",
    public_key="ab" * 32,
    token_sha256="cd" * 32,
    agent="tallystick-node/0.1.0",
    client_id=None,
    devices=(gpu(GPU_0), gpu(GPU_1)),
    host=HOST,
    at_us=NOON_US,
)
report_specs = ReportSpecs(
    node_id=NODE, devices=(gpu(GPU_0), gpu(GPU_1)), host=HOST, at_us=LATER_US
)
confirm = ConfirmNodeKey(node_id=NODE, key_id="nk_1", by="mem_alice", at_us=NOON_US)
admit = AdmitNode(node_id=NODE, by="mem_ops", at_us=NOON_US)
activate = ActivateNode(node_id=NODE, by="mem_alice", at_us=NOON_US)
maintain = StartMaintenance(node_id=NODE, by="mem_alice", at_us=LATER_US)
maintenance = NodeMaintenanceStarted(node_id=NODE, by="mem_alice", at_us=LATER_US)
retire = RetireNode(node_id=NODE, by="mem_alice", at_us=LATER_US)
member_left = RegionMemberLeft(region_id=REGION, node_id=NODE, at_us=LATER_US)
retired = NodeRetired(node_id=NODE, by="mem_alice", at_us=LATER_US)
record = RecordEquivocation(
    node_id=NODE, lane=3, node_seq=9, first_leaf="aa" * 32, second_leaf="bb" * 32, at_us=NOON_US
)
equivocated = NodeEquivocated(
    node_id=NODE, lane=3, node_seq=9, first_leaf="aa" * 32, second_leaf="bb" * 32, at_us=NOON_US
)


def device_retired(device_id: str) -> DeviceRetired:
    return DeviceRetired(device_id=device_id, node_id=NODE, at_us=LATER_US)


def reserved(device_id: str) -> DeviceReserved:
    return DeviceReserved(
        device_id=device_id,
        lease_id="lease_1",
        share_ppm=1,
        mem_ppm=1,
        at_us=NOON_US,
        mode="memory",
        mig=None,
    )


with_quarantined_node = with_active_node.given((NODE_STREAM, equivocated))
with_retired_node = with_active_node.given(
    (NODE_STREAM, retired), (DEVICE_0, device_retired(GPU_0)), (DEVICE_1, device_retired(GPU_1))
)


# The code.


def test_a_join_code_lives_ten_minutes() -> None:
    with_region.when(issue_code).then((CODE_STREAM, code_issued))
    assert code_issued.expires_at_us == NOON_US + JOIN_CODE_LIFE_US


def test_a_join_code_is_for_a_region_of_the_provider() -> None:
    with_provider.when(issue_code).then_refused(FleetReason.REGION_UNKNOWN)
    Scene().when(issue_code).then_refused(FleetReason.PROVIDER_UNKNOWN)
    stranger = replace(registered, provider_id="prov_bob")
    with_region.given((Stream("provider", "prov_bob"), stranger)).when(
        replace(issue_code, provider_id="prov_bob")
    ).then_refused(FleetReason.REGION_UNKNOWN)


def test_a_join_code_is_issued_once() -> None:
    with_code.when(issue_code).then_refused(FleetReason.JOIN_CODE_USED)


def test_a_node_joins_with_a_code_its_key_and_its_inventory() -> None:
    with_code.when(join).then((CODE_STREAM, code_used), (NODE_STREAM, joined), (NODE_STREAM, specs))
    assert join_code_of(with_code.after(join), CODE).node_id == NODE


def test_an_unknown_code_lets_nobody_in() -> None:
    with_region.when(join).then_refused(FleetReason.JOIN_CODE_UNKNOWN)


def test_a_code_lets_one_node_in() -> None:
    with_joined_node.when(replace(join, node_id="node_2")).then_refused(FleetReason.JOIN_CODE_USED)
    with_joined_node.when(replace(join, public_key="ef" * 32)).then_refused(
        FleetReason.JOIN_CODE_USED
    )


def test_a_node_that_lost_the_answer_may_ask_again_even_late() -> None:
    with_joined_node.when(replace(join, at_us=NOON_US + 2 * JOIN_CODE_LIFE_US)).then_nothing()


def test_a_code_expires_at_its_end_and_not_before() -> None:
    last_us = NOON_US + JOIN_CODE_LIFE_US
    with_code.when(replace(join, at_us=last_us)).then_refused(FleetReason.JOIN_CODE_EXPIRED)
    assert len(with_code.when(replace(join, at_us=last_us - 1)).changes()) == 3


def test_a_node_joins_once() -> None:
    second_code = replace(code_issued, code_sha256="c1" * 32)
    with_joined_node.given((Stream("join", "c1" * 32), second_code)).when(
        replace(join, code_sha256="c1" * 32)
    ).then_refused(FleetReason.NODE_EXISTS)


# Specs and key.


def test_a_new_inventory_is_recorded_and_an_equal_one_is_not() -> None:
    with_joined_node.when(report_specs).then_nothing()
    fewer = replace(report_specs, devices=(gpu(GPU_0),))
    with_joined_node.when(fewer).then(
        (
            NODE_STREAM,
            NodeSpecReported(
                node_id=NODE,
                devices=(gpu(GPU_0),),
                host=HOST,
                at_us=LATER_US,
                hardware=None,
                agent="tallystick-node/0.1.0",
            ),
        )
    )


def test_what_a_machine_is_built_of_is_part_of_its_inventory() -> None:
    built_of = HardwareFacts(nvme_drives_gb=(1_000, 1_000), tpm_2_0=True)
    told = replace(report_specs, hardware=built_of)
    with_joined_node.when(told).then(
        (NODE_STREAM, replace(specs, hardware=built_of, at_us=LATER_US))
    )
    (_, _, with_hardware) = with_code.when(replace(join, hardware=built_of)).changes()
    assert with_hardware.fact == replace(specs, hardware=built_of)


def test_the_owner_confirms_the_key_they_compared() -> None:
    with_joined_node.when(confirm).then((NODE_STREAM, confirmed))
    with_joined_node.when(replace(confirm, key_id="nk_2")).then_refused(
        FleetReason.NODE_KEY_MISMATCH
    )


def test_confirming_twice_is_once() -> None:
    with_confirmed_node.when(confirm).then_nothing()
    with_active_node.when(confirm).then_nothing()


def test_usage_is_taken_once_the_key_is_confirmed() -> None:
    assert not node_of(with_joined_node, NODE).accepts_usage
    assert node_of(with_confirmed_node, NODE).accepts_usage
    assert node_of(with_active_node, NODE).accepts_usage


# Admission.


def test_admission_gives_every_device_a_stream_with_its_class() -> None:
    with_confirmed_node.when(admit).then(
        (NODE_STREAM, admitted),
        (GROWTH_STREAM, member),
        (DEVICE_0, device_registered(GPU_0)),
        (DEVICE_1, device_registered(GPU_1)),
    )
    state = node_of(with_confirmed_node.after(admit), NODE)
    assert state.phase == "maintenance"
    assert state.device_ids == (GPU_0, GPU_1)
    assert not state.is_matchable


def test_a_model_in_no_class_is_registered_without_one() -> None:
    strange = replace(specs, devices=(gpu(GPU_0, model="Quantum One"),))
    with_confirmed_node.given((NODE_STREAM, strange)).when(admit).then(
        (NODE_STREAM, admitted),
        (GROWTH_STREAM, replace(member, models=("Quantum One",))),
        (DEVICE_0, device_registered(GPU_0, model="Quantum One", gpu_class=None)),
    )


def test_admission_waits_for_the_owners_confirmation() -> None:
    with_joined_node.when(admit).then_refused(FleetReason.NODE_STATE)


def test_admission_waits_for_an_inventory() -> None:
    bare = with_code.given((NODE_STREAM, joined), (NODE_STREAM, confirmed))
    bare.when(admit).then_refused(FleetReason.NODE_SPECS_MISSING)


@pytest.mark.parametrize(
    ("devices", "failing"),
    [
        ((), ("has_gpu",)),
        ((gpu(GPU_0), gpu(GPU_1)), ()),
        ((gpu(GPU_0, model="A100"), gpu(GPU_1, model="RTX 3090")), ("same_gpu_model",)),
        ((gpu(GPU_0), gpu(GPU_0)), ("unique_device",)),
        ((gpu(GPU_0, model="A100"), gpu(GPU_0, model="a100")), ("same_gpu_model", "unique_device")),
    ],
)
def test_all_accelerators_of_one_machine_are_of_one_model_and_listed_once(
    devices: tuple[DeviceSpec, ...], failing: tuple[str, ...]
) -> None:
    scene = with_confirmed_node.given((NODE_STREAM, replace(specs, devices=devices)))
    if failing:
        with pytest.raises(Refused) as caught:
            scene.when(admit).changes()
        assert caught.value.reason is FleetReason.NODE_NOT_JOINABLE
        assert caught.value.facts["failing"] == failing
    else:
        assert node_of(scene.after(admit), NODE).is_admitted


def test_a_device_lives_on_one_node() -> None:
    elsewhere = (DEVICE_0, device_registered(GPU_0, node_id="node_2"))
    with_confirmed_node.given(elsewhere).when(admit).then_refused(
        FleetReason.DEVICE_ELSEWHERE, device_id="GPU-0"
    )


def test_a_device_may_move_when_its_old_node_has_retired() -> None:
    moved = with_confirmed_node.given(
        (DEVICE_0, device_registered(GPU_0, node_id="node_2")),
        (DEVICE_0, DeviceRetired(device_id=GPU_0, node_id="node_2", at_us=NOON_US)),
    ).after(admit)
    assert device_of(moved, GPU_0).node_id == NODE
    assert device_of(moved, GPU_0).is_live


def test_admitting_twice_is_once() -> None:
    with_admitted_node.when(admit).then_nothing()
    with_active_node.when(admit).then_nothing()


def test_admitting_again_follows_a_changed_inventory_and_keeps_the_node_active() -> None:
    changed = replace(specs, devices=(gpu(GPU_0), gpu("GPU-2")))
    again = replace(admit, at_us=LATER_US)
    scene = with_active_node.given((NODE_STREAM, changed))
    scene.when(again).then(
        (NODE_STREAM, replace(admitted, at_us=LATER_US)),
        (Stream("device", "GPU-2"), device_registered("GPU-2", at_us=LATER_US)),
        (DEVICE_1, device_retired(GPU_1)),
    )
    assert node_of(scene.after(again), NODE).phase == "active"


def test_a_missing_device_stays_while_a_lease_holds_it() -> None:
    changed = replace(specs, devices=(gpu(GPU_0),))
    held = with_active_node.given((NODE_STREAM, changed), (DEVICE_1, reserved(GPU_1)))
    held.when(admit).then_nothing()


def test_admitting_again_prices_a_model_the_registry_has_learned() -> None:
    unknown = (DEVICE_0, device_registered(GPU_0, gpu_class=None))
    with_active_node.given(unknown).when(admit).then(
        (NODE_STREAM, admitted), (DEVICE_0, device_registered(GPU_0))
    )


# Active, maintenance, retired.


def test_an_admitted_node_is_activated_and_then_matched() -> None:
    with_admitted_node.when(activate).then(
        (NODE_STREAM, NodeActivated(node_id=NODE, by="mem_alice", at_us=NOON_US))
    )
    assert node_of(with_active_node, NODE).is_matchable
    with_active_node.when(activate).then_nothing()
    with_confirmed_node.when(activate).then_refused(FleetReason.NODE_STATE)


def test_maintenance_stops_new_leases_and_breaks_no_running_one() -> None:
    busy = with_active_node.given((DEVICE_0, reserved(GPU_0)))
    busy.when(maintain).then((NODE_STREAM, maintenance))
    assert not node_of(busy.after(maintain), NODE).is_matchable
    with_admitted_node.when(maintain).then_nothing()
    with_joined_node.when(maintain).then_refused(FleetReason.NODE_STATE)


def test_a_retired_node_takes_its_devices_along() -> None:
    with_active_node.when(retire).then(
        (NODE_STREAM, retired),
        (DEVICE_0, device_retired(GPU_0)),
        (DEVICE_1, device_retired(GPU_1)),
        (GROWTH_STREAM, member_left),
    )
    with_retired_node.when(retire).then_nothing()


def test_a_node_does_not_retire_while_a_device_is_held() -> None:
    with_active_node.given((DEVICE_1, reserved(GPU_1))).when(retire).then_refused(
        FleetReason.NODE_BUSY
    )


def test_a_node_that_was_never_admitted_may_retire() -> None:
    with_joined_node.when(retire).then((NODE_STREAM, retired))


def test_retiring_leaves_a_device_alone_that_has_moved_on() -> None:
    moved = with_active_node.given(
        (DEVICE_1, device_retired(GPU_1)), (DEVICE_1, device_registered(GPU_1, node_id="node_2"))
    )
    moved.when(retire).then(
        (NODE_STREAM, retired), (DEVICE_0, device_retired(GPU_0)), (GROWTH_STREAM, member_left)
    )


def test_a_retired_node_is_retired_for_good_but_still_empties_its_spool() -> None:
    for command in (report_specs, confirm, admit, activate, maintain):
        with_retired_node.when(command).then_refused(FleetReason.NODE_STATE)
    assert node_of(with_retired_node, NODE).accepts_usage


# Equivocation.


def test_two_bodies_under_one_number_put_a_node_into_quarantine() -> None:
    with_active_node.when(record).then((NODE_STREAM, equivocated))
    state = node_of(with_quarantined_node, NODE)
    assert not state.is_matchable
    assert not state.accepts_usage


def test_one_proof_is_enough() -> None:
    with_quarantined_node.when(replace(record, node_seq=10)).then_nothing()


def test_a_quarantined_node_is_neither_activated_nor_admitted() -> None:
    with_quarantined_node.when(admit).then_refused(FleetReason.NODE_STATE)
    with_quarantined_node.when(activate).then_refused(FleetReason.NODE_STATE)


def test_a_quarantined_node_may_retire() -> None:
    with_quarantined_node.when(retire).then(
        (NODE_STREAM, retired),
        (DEVICE_0, device_retired(GPU_0)),
        (DEVICE_1, device_retired(GPU_1)),
        (GROWTH_STREAM, member_left),
    )


def test_an_unknown_node_is_refused_by_every_command() -> None:
    for command in (report_specs, confirm, admit, activate, maintain, retire, record):
        with_region.when(command).then_refused(FleetReason.NODE_UNKNOWN)


def test_admission_is_recorded_with_who_admitted() -> None:
    changes = with_confirmed_node.when(replace(admit, by="region_policy")).changes()
    assert isinstance(changes[0].fact, NodeAdmitted)
    assert changes[0].fact.by == "region_policy"
