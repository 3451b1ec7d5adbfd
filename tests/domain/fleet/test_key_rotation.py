"""A node's key: handed on by itself, taken back by its owner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.fleet.key_rotation import RecordAlternatingBoots, RevokeNodeKey, RotateNodeKey
from domain.fleet.keys import (
    NodeBootsAlternated,
    NodeKeyRevoked,
    NodeKeyRotated,
    NodeOldKeyRevoked,
    key_id_of,
)
from domain.fleet.node import ActivateNode, NodeState, ReportSpecs
from domain.fleet.reasons import FleetReason
from tests.domain.scenes.supply import (
    HOST,
    NODE,
    NODE_STREAM,
    NOON_US,
    gpu,
    with_active_node,
    with_joined_node,
)
from tests.given import Scene

NEW, NEWER = "11" * 32, "22" * 32
rotate = RotateNodeKey(
    node_id=NODE,
    public_key=NEW,
    previous_key_id="nk_1",
    from_seq=8,
    last_seq=7,
    previous_signature="aa" * 64,
    signature="bb" * 64,
    at_us=NOON_US,
)
rotated = NodeKeyRotated(
    node_id=NODE,
    key_id=key_id_of(NEW),
    public_key=NEW,
    previous_key_id="nk_1",
    from_seq=8,
    previous_signature="aa" * 64,
    signature="bb" * 64,
    at_us=NOON_US,
    token_sha256=None,
    sealed_token=None,
)
revoke = RevokeNodeKey(node_id=NODE, key_id="nk_1", by="mem_alice", at_us=NOON_US)
revoked = NodeKeyRevoked(node_id=NODE, key_id="nk_1", by="mem_alice", at_us=NOON_US)
with_rotated_node = with_active_node.given((NODE_STREAM, rotated))
with_revoked_node = with_active_node.given((NODE_STREAM, revoked))
again = replace(rotate, public_key=NEWER, previous_key_id=key_id_of(NEW), from_seq=9, last_seq=8)


def test_the_key_that_was_confirmed_hands_on_to_the_next_one() -> None:
    with_active_node.when(rotate).then((NODE_STREAM, rotated))
    state = with_rotated_node.state(NODE_STREAM)
    assert isinstance(state, NodeState)
    assert (state.key_id, state.public_key) == (key_id_of(NEW), NEW)
    assert state.is_matchable


def test_a_rotation_told_twice_is_one_rotation() -> None:
    with_rotated_node.when(replace(rotate, at_us=NOON_US + 1, last_seq=20)).then_nothing()


def test_only_the_present_key_can_hand_on() -> None:
    with_rotated_node.when(replace(again, previous_key_id="nk_1")).then_refused(
        FleetReason.NODE_KEY_MISMATCH
    )
    with_rotated_node.when(again).then(
        (
            NODE_STREAM,
            replace(
                rotated,
                public_key=NEWER,
                key_id=key_id_of(NEWER),
                from_seq=9,
                previous_key_id=key_id_of(NEW),
            ),
        )
    )


def test_no_key_comes_back_and_no_report_is_signed_anew() -> None:
    with_rotated_node.when(replace(again, public_key=NEW)).then_refused(
        FleetReason.NODE_KEY_USED, key_id="02d449a31fbb267c"
    )
    with_active_node.when(replace(rotate, last_seq=8)).then_refused(
        FleetReason.NODE_KEY_USED, from_seq=8, last_seq=8
    )
    with_rotated_node.when(replace(again, from_seq=8, last_seq=0)).then_refused(
        FleetReason.NODE_KEY_USED, from_seq=8, last_seq=0
    )


def test_a_key_nobody_compared_yet_cannot_be_handed_on() -> None:
    with_joined_node.when(rotate).then_refused(FleetReason.NODE_STATE)
    Scene().when(rotate).then_refused(FleetReason.NODE_UNKNOWN)


def test_a_revoked_node_takes_no_lease_and_tells_nothing_more() -> None:
    with_active_node.when(revoke).then((NODE_STREAM, revoked))
    with_revoked_node.when(revoke).then_nothing()
    with_revoked_node.when(rotate).then_refused(FleetReason.NODE_STATE)
    with_revoked_node.when(ActivateNode(node_id=NODE, by="mem_alice", at_us=NOON_US)).then_refused(
        FleetReason.NODE_STATE
    )
    specs = ReportSpecs(node_id=NODE, devices=(gpu("GPU-x"),), host=HOST, at_us=NOON_US)
    with_revoked_node.when(specs).then_refused(FleetReason.NODE_STATE)
    state = with_revoked_node.state(NODE_STREAM)
    assert isinstance(state, NodeState)
    assert not state.is_matchable
    assert not state.accepts_usage


def test_a_key_of_another_node_is_not_revoked_here() -> None:
    with_active_node.when(replace(revoke, key_id="nk_2")).then_refused(
        FleetReason.NODE_KEY_MISMATCH
    )


def test_a_key_that_was_replaced_is_taken_back_alone_and_once() -> None:
    gone = NodeOldKeyRevoked(node_id=NODE, key_id="nk_1", by="mem_alice", at_us=NOON_US)
    with_rotated_node.when(revoke).then((NODE_STREAM, gone))
    after = with_rotated_node.given((NODE_STREAM, gone))
    after.when(revoke).then_nothing()
    state = after.state(NODE_STREAM)
    assert isinstance(state, NodeState)
    assert state.is_matchable
    present = replace(revoke, key_id=key_id_of(NEW))
    after.when(present).then((NODE_STREAM, replace(revoked, key_id=key_id_of(NEW))))


def test_boots_that_alternate_put_the_node_into_quarantine_once() -> None:
    told: dict[str, Any] = {
        "node_id": NODE,
        "lane": 3,
        "first_boot": "a",
        "second_boot": "b",
        "first_seq": 5,
        "second_seq": 6,
        "at_us": NOON_US,
    }
    command, fact = RecordAlternatingBoots(**told), NodeBootsAlternated(**told)
    with_active_node.when(command).then((NODE_STREAM, fact))
    after = with_active_node.given((NODE_STREAM, fact))
    after.when(command).then_nothing()
    state = after.state(NODE_STREAM)
    assert isinstance(state, NodeState)
    assert not state.is_matchable
    assert not state.accepts_usage
