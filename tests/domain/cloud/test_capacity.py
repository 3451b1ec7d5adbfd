"""Capacity classes: who may say which, and which leases go where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.cloud.capacity import SetNodeCapacityClass
from domain.cloud.reasons import CloudReason
from domain.fleet.node import NodeCapacityClassSet, NodeRetired
from domain.fleet.reasons import FleetReason
from domain.hardware.constraints import CAPACITY_CLASSES, Constraints, require_constraints
from domain.hardware.reasons import HardwareReason
from domain.market.dimensions import BY_NAME, Need, OfferedNode
from domain.market.offer import OfferTerms, PublishOffer
from domain.money import PPM, credit
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Stream
from tests.domain.scenes.supply import (
    NODE,
    NODE_STREAM,
    NOON_US,
    PROVIDER,
    registered,
    with_active_node,
    with_tariff,
)

committed = SetNodeCapacityClass(
    node_id=NODE, capacity_class="committed", by="mem_alice", at_us=NOON_US
)
preemptible = replace(committed, capacity_class="preemptible")


def test_a_node_is_on_demand_until_its_owner_says_otherwise() -> None:
    assert with_active_node.state(NODE_STREAM).capacity_class == "on_demand"
    with_active_node.when(replace(committed, capacity_class="on_demand")).then_nothing()
    fact = NodeCapacityClassSet(
        node_id=NODE, capacity_class="committed", by="mem_alice", at_us=NOON_US
    )
    with_active_node.when(committed).then((NODE_STREAM, fact))
    with_active_node.after(committed).when(committed).then_nothing()


def test_machines_of_google_cloud_are_on_demand_only() -> None:
    cloud = with_active_node.given((Stream("provider", PROVIDER), replace(registered, kind="gcp")))
    for command in (committed, preemptible):
        cloud.when(command).then_refused(CloudReason.CAPACITY_CLASS, kind="gcp")


def test_a_class_is_one_of_three_and_of_a_node_that_is_there() -> None:
    with_active_node.when(replace(committed, capacity_class="spot")).then_refused(
        PartiesReason.UNKNOWN_MODE
    )
    with_active_node.when(replace(committed, node_id="node_9")).then_refused(
        FleetReason.NODE_UNKNOWN
    )
    gone = with_active_node.given((NODE_STREAM, NodeRetired(node_id=NODE, by="m", at_us=NOON_US)))
    gone.when(committed).then_refused(FleetReason.NODE_STATE)


def test_an_offer_on_a_preemptible_node_takes_interruptible_leases() -> None:
    offer = PublishOffer(
        offer_id="offer_1",
        provider_id=PROVIDER,
        node_id=NODE,
        price_per_gpu_hour=credit(2_000_000),
        pay_with="cash",
        fractions=False,
        available_until_us=None,
        at_us=NOON_US,
    )
    scene = with_tariff.after(preemptible)
    scene.when(offer).then_refused(CloudReason.CAPACITY_CLASS, rule="interruptible")
    assert scene.when(replace(offer, terms=OfferTerms(interruptible=True))).changes()
    assert with_tariff.when(offer).changes()


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        (Constraints(), ("on_demand", "committed")),
        (Constraints(interruptible=True), CAPACITY_CLASSES),
        (Constraints(capacity_classes=("committed",)), ("committed",)),
        (Constraints(interruptible=True, capacity_classes=("preemptible",)), ("preemptible",)),
    ],
)
def test_preemptible_capacity_is_only_for_leases_that_may_be_paused(
    asked: Constraints, taken: tuple[str, ...]
) -> None:
    need = Need(1, PPM, PPM, (), 10, "acct_renter", constraints=asked)
    node = OfferedNode("node_1", "offer_1", "acct_owner", 1, "cash", True, 0, ())
    dimension = BY_NAME["capacity"]
    met = [
        one for one in CAPACITY_CLASSES if dimension.meets(need, replace(node, capacity_class=one))
    ]
    assert set(met) == set(taken)


def test_preemptible_without_interruptible_means_nothing() -> None:
    with pytest.raises(Refused) as refused:
        require_constraints(Constraints(capacity_classes=("preemptible",)))
    assert refused.value.reason is HardwareReason.CONSTRAINT_INVALID
    with pytest.raises(Refused):
        require_constraints(Constraints(capacity_classes=("spot",)))
