"""How a region grows: its phases, its cap, which nodes go together, and what roles do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fleet.growth import GrowthTerms, SetRegionGrowth, SetRegionPhase, growth_of
from domain.fleet.node import (
    AdmitNode,
    ConfirmNodeKey,
    DeviceSpec,
    IssueJoinCode,
    JoinNode,
    RetireNode,
    node_of,
)
from domain.fleet.reasons import FleetReason
from domain.fleet.roles import SetNodeRole
from domain.money import PPM
from domain.parties.reasons import PartiesReason
from tests.domain.scenes.supply import HOST, NOON_US, PROVIDER, REGION, with_region
from tests.examples import examples
from tests.given import Scene, refused

A100, T4 = "NVIDIA A100-SXM4-80GB", "Tesla T4"


class Region:
    """A region to whose scene commands add."""

    def __init__(self, scene: Scene = with_region) -> None:
        self.scene = scene

    def do(self, command: Any) -> Region:
        self.scene = self.scene.after(command)
        return self

    def grows(self, *, waitlisted: bool = False, **terms: Any) -> Region:
        return self.do(grow(waitlisted=waitlisted, **terms))

    def joins(self, name: str, model: str = A100, kind: str | None = None) -> Region:
        self.do(code(name)).do(join(name, model, kind))
        return self.do(ConfirmNodeKey(node_id=name, key_id="nk_1", by="mem", at_us=NOON_US))

    def admits(self, name: str, model: str = A100, role: str = "worker") -> Region:
        self.joins(name, model)
        if role != "worker":
            self.do(as_role(name, role))
        return self.do(AdmitNode(node_id=name, by="mem_ops", at_us=NOON_US))

    @property
    def growth(self) -> Any:
        return growth_of(self.scene, REGION)

    def load(self) -> dict[str | None, int]:
        return dict(Counter(one.ingress_node_id for one in self.growth.workers))


def grow(*, waitlisted: bool = False, **terms: Any) -> SetRegionGrowth:
    return SetRegionGrowth(
        region_id=REGION, terms=GrowthTerms(**terms), waitlisted=waitlisted, by="mem", at_us=NOON_US
    )


def phase(name: str) -> SetRegionPhase:
    return SetRegionPhase(region_id=REGION, phase=name, by="mem", at_us=NOON_US)


def as_role(node_id: str, role: str, ingress: str | None = None) -> SetNodeRole:
    return SetNodeRole(node_id=node_id, role=role, ingress_node_id=ingress, by="mem", at_us=NOON_US)


def code(name: str) -> IssueJoinCode:
    return IssueJoinCode(
        code_sha256=name, provider_id=PROVIDER, region_id=REGION, by="mem", at_us=NOON_US
    )


def join(name: str, model: str = A100, kind: str | None = None) -> JoinNode:
    device = DeviceSpec(f"GPU-{name}", "nvidia", model, 81_920, kind=kind)
    return JoinNode(
        code_sha256=name,
        node_id=name,
        key_id="nk_1",
        public_key="ab" * 32,
        token_sha256="cd" * 32,
        agent="0.1.0",
        client_id=None,
        devices=(device,),
        host=HOST,
        at_us=NOON_US,
    )


admit_b = AdmitNode(node_id="b", by="mem_ops", at_us=NOON_US)


def test_a_region_without_terms_is_open_and_mixed() -> None:
    region = Region().admits("a").admits("b", T4)
    assert (region.growth.phase, len(region.growth.workers)) == ("open", 2)


def test_a_region_opens_with_its_smallest_number_of_workers() -> None:
    region = Region().grows(workers_min=2)
    assert region.growth.phase == "opening"
    assert refused(region, phase("open")) is FleetReason.REGION_PHASE
    assert region.admits("a").growth.phase == "opening"
    assert region.admits("c", role="control").growth.phase == "opening", "control is no worker"
    assert region.admits("b").growth.phase == "open"


def test_no_worker_joins_above_the_cap_and_a_control_node_is_none() -> None:
    region = Region().grows(workers_max=1).admits("a")
    assert refused(region, code("b")) is FleetReason.REGION_FULL
    waits = Region().grows(workers_max=1).joins("a").joins("b")
    waits.do(AdmitNode(node_id="a", by="mem_ops", at_us=NOON_US))
    waits.scene.when(admit_b).then_refused(FleetReason.REGION_FULL, workers=1, at_most=1)
    waits.do(as_role("a", "control")).do(admit_b)
    assert refused(waits, as_role("a", "worker")) is FleetReason.REGION_FULL
    waits.do(RetireNode(node_id="b", by="mem", at_us=NOON_US))
    assert len(waits.do(as_role("a", "worker")).growth.workers) == 1


def test_a_homogeneous_region_takes_one_model_at_joining_and_at_admission() -> None:
    region = Region().grows(homogeneous=True).admits("a").do(code("b"))
    region.scene.when(join("b", T4)).then_refused(
        FleetReason.REGION_MIX, rule="one_model", present=(A100,)
    )
    both = Region().grows(homogeneous=True).joins("a").joins("b", T4)
    both.do(AdmitNode(node_id="a", by="mem_ops", at_us=NOON_US))
    both.scene.when(admit_b).then_refused(FleetReason.REGION_MIX, rule="one_model")
    mixed = Region().admits("a").admits("b", T4)
    assert refused(mixed, grow(homogeneous=True)) is FleetReason.REGION_MIX


def test_a_region_without_mixing_takes_nodes_of_gpus_or_of_processors() -> None:
    region = Region().grows(cpu_and_gpu=False).admits("a").do(code("b"))
    region.scene.when(join("b", "ThirdAI", "seat")).then_refused(
        FleetReason.REGION_MIX, rule="cpu_or_gpu"
    )
    Region().grows(cpu_and_gpu=True).admits("a").joins("b", "ThirdAI", "seat")


def test_a_region_goes_from_phase_to_phase_and_nobody_joins_a_closed_one() -> None:
    region = Region().grows(waitlisted=True)
    assert region.growth.phase == "waitlisted"
    assert refused(region, code("a")) is FleetReason.REGION_PHASE
    region.do(phase("opening"))
    assert region.growth.phase == "open", "nothing is left to wait for"
    region.admits("a").do(phase("draining"))
    assert refused(region, code("b")) is FleetReason.REGION_PHASE
    assert refused(region, phase("closed")) is FleetReason.REGION_PHASE, "a node is left"
    assert refused(region, grow(waitlisted=True)) is FleetReason.REGION_PHASE
    region.do(RetireNode(node_id="a", by="mem", at_us=NOON_US)).do(phase("closed"))
    assert refused(region, phase("open")) is FleetReason.REGION_PHASE
    region.scene.when(phase("closed")).then_nothing()
    assert refused(region, phase("asleep")) is PartiesReason.UNKNOWN_MODE


@pytest.mark.parametrize(
    "terms",
    [
        {"workers_min": -1},
        {"workers_min": 3, "workers_max": 2},
        {"workers_max": 0},
        {"workers_max": 10_001},
    ],
)
def test_counts_of_workers_are_within_bounds(terms: dict[str, int]) -> None:
    wrong: Any = terms
    assert refused(Region(), grow(**wrong)) is PartiesReason.COUNT_OUT_OF_RANGE


def test_an_owners_part_is_a_part() -> None:
    assert refused(Region(), grow(owner_share_ppm=PPM + 1)) is PartiesReason.SHARE_OUT_OF_RANGE


# --- roles -----------------------------------------------------------------------------------


def test_a_worker_stands_behind_an_ingress_of_its_region_and_nobody_else_does() -> None:
    region = Region().admits("in", role="ingress").admits("w").joins("late")
    region.scene.when(as_role("w", "control", "in")).then_refused(
        FleetReason.NODE_ROLE, rule="a_worker_behind_an_ingress"
    )
    region.scene.when(as_role("w", "worker", "w")).then_refused(
        FleetReason.NODE_ROLE, rule="a_worker_behind_an_ingress"
    )
    region.scene.when(as_role("late", "worker", "in")).then_refused(
        FleetReason.NODE_ROLE, rule="admitted_first"
    )
    assert refused(region, as_role("w", "gateway")) is PartiesReason.UNKNOWN_MODE
    region.scene.when(as_role("w", "worker", "in")).then_nothing()
    assert region.load() == {"in": 1}


def test_only_a_worker_is_leased() -> None:
    region = Region().admits("a").admits("c", role="control")
    active = replace(node_of(region.scene, "a"), phase="active")
    assert active.is_matchable
    control = replace(node_of(region.scene, "c"), phase="active")
    assert not control.is_matchable


def test_an_ingress_that_comes_takes_who_had_none_and_one_that_leaves_gives_them_away() -> None:
    region = Region().admits("a").admits("b").admits("in1", role="ingress")
    assert region.load() == {"in1": 2}
    region.admits("in2", role="ingress").admits("c").admits("d")
    assert region.load() == {"in1": 2, "in2": 2}
    region.do(RetireNode(node_id="in1", by="mem", at_us=NOON_US))
    assert region.load() == {"in2": 4}
    region.do(as_role("in2", "worker"))
    assert region.load() == {None: 5}


@examples(20)
@given(st.lists(st.sampled_from(("worker", "worker", "ingress", "control")), max_size=12))
def test_new_workers_are_dealt_evenly(roles: list[str]) -> None:
    region = Region().admits("in0", role="ingress").admits("in1", role="ingress")
    for number, role in enumerate(roles):
        if role != "ingress":
            region.admits(f"n{number}", role=role)
    load = region.load()
    assert None not in load
    assert abs(load.get("in0", 0) - load.get("in1", 0)) <= 1
