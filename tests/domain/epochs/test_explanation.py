"""An explanation is the settlement, told of one node; and what is zero has a reason."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from domain.epochs.explanation import Explanation, Totals, explain
from domain.epochs.settlement import Attested, NodeCut, Settlement, Use, settle
from tests.domain.epochs.test_settlement import HOUR_US, RULED, TERMS, cut, fleets, terms
from tests.domain.scenes.epochs import POLICY


def told(settlement: Settlement, node: NodeCut) -> Explanation:
    opening = settlement.cut.openings
    return explain(
        node,
        settlement.cut.policy,
        Totals(
            pool=settlement.compute_pool,
            carry_before=opening.compute_carry,
            weight=settlement.compute_weight,
        ),
        Totals(
            pool=settlement.availability_pool,
            carry_before=opening.availability_carry,
            weight=settlement.availability_weight,
        ),
        settlement.availability_tier_2_weight,
    )


@given(fleets, terms)
def test_every_explanation_comes_to_what_was_paid_and_zero_has_a_reason(
    fleet: tuple[NodeCut, ...], rules: object
) -> None:
    policy = replace(POLICY, rewards=replace(rules, owner_cap=None))  # type: ignore[type-var,arg-type]
    settlement = settle(cut(*fleet, policy=policy))
    for node, reward in zip(settlement.cut.nodes, settlement.nodes, strict=True):
        why = told(settlement, node)
        assert why.compute.paid == reward.compute
        assert why.availability_tier_2.paid + why.availability.paid == reward.availability
        assert why.compute.share * why.compute.all_weight + why.compute.lost == (
            why.compute.pool * why.compute.weight if why.compute.all_weight else 0
        )
        for kind, paid in (("compute", reward.compute), ("availability", reward.availability)):
            assert paid or any(reason.startswith(f"{kind}: ") for reason in why.reasons)


def reasons_of(node: NodeCut) -> tuple[str, ...]:
    return told(settle(cut(node, policy=RULED)), node).reasons


def test_an_owner_reads_why_there_was_nothing() -> None:
    assert reasons_of(NodeCut("n", "a")) == (
        "compute: only its owner used it, as far as this epoch's cut tells",
        "availability: no time of its devices was attested before this epoch's cut",
    )
    low = Attested("datacenter", 1, HOUR_US, HOUR_US)
    short = Attested("datacenter", 3, HOUR_US, 3 * HOUR_US)
    granted = (Use("grant.x", 5, 5),)
    assert reasons_of(NodeCut("n", "a", granted, attested=(low, short))) == (
        "compute: what grant.x paid for has no weight",
        "availability: it was there for less than 1.5 GPU-hours of 3 GPU-hours",
        "availability: trust tier 1: the policy asks for 2",
    )
    burned = NodeCut("n", "a", (Use("cash", 10, 5),), burned_tokens=7)
    assert reasons_of(burned)[0] == (
        "compute: 79,498.19230768 TOKEN was its share, and 0.00000007 TOKEN were burned for it:"
        " it gets at most 0.00000007 TOKEN"
    )


def test_time_that_too_little_was_burned_for_is_told_as_what_counts_of_it() -> None:
    rewards = replace(TERMS, burned_per_gpu_hour=10_000)
    policy = replace(POLICY, rewards=rewards, compute_base="gpu_time")
    node = NodeCut("n", "a", (Use("cash", 1, HOUR_US), Use("burned", 10_000, HOUR_US)), 10**13)
    why = told(settle(cut(node, policy=policy)), node)
    assert why.compute.weight == HOUR_US // 10_000 + HOUR_US
    assert why.reasons[0] == (
        "compute: 0.000001 CREDIT were burned for 1 GPU-hours paid with cash: 0.0001 GPU-hours"
        " count, at 0.01 CREDIT an hour"
    )
