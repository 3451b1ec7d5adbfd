"""A rehearsal: the policy that was in force changes nothing, another one keeps every invariant."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.emission import EmissionSegment
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_terms import REWARD_TERMS, RewardTerms
from domain.epochs.settlement import Cut, NodeCut, Openings, Use, settle
from domain.governance.rehearsal import RehearsalStops, Summary, plans, rehearse
from tests.domain.epochs.test_settlement import RULED, deltas, fleets, terms
from tests.domain.scenes.epochs import POLICY
from tests.examples import examples

EPOCHS = st.lists(st.tuples(fleets, st.integers(0, 10**13), deltas), min_size=1, max_size=5)


def history(
    policy: PolicyPublished, told: list[tuple[tuple[NodeCut, ...], int, object]]
) -> list[Cut]:
    """Epochs as they really follow each other: what one leaves, the next begins with; in between
    TOKEN are burned and corrections come in.
    """
    cuts: list[Cut] = []
    openings = Openings(unissued=10**15)
    for number, (nodes, burned, corrections) in enumerate(told, 1):
        adjustments = dict(openings.adjustments)
        for who, delta in dict(corrections).items():  # type: ignore[call-overload]
            adjustments[who] = adjustments.get(who, 0) + delta
        openings = replace(
            openings,
            recyclable=openings.recyclable + burned,
            adjustments=tuple((who, d) for who, d in sorted(adjustments.items()) if d),
        )
        cut = Cut(epoch=number, cut_position=number, policy=policy, openings=openings, nodes=nodes)
        cuts.append(cut)
        s = settle(cut)
        openings = Openings(
            unissued=openings.unissued - s.emission + s.returned_emission,
            recyclable=openings.recyclable - s.release + s.returned_release,
            compute_carry=s.compute_carry,
            availability_carry=s.availability_carry,
            adjustments=s.adjustments,
        )
    return cuts


def summary_of(cuts: list[Cut], policy: PolicyPublished, first: int = 1) -> Summary:
    found = Summary()
    for one in rehearse(map(settle, cuts), policy, first):
        found.take(one)
    return found


@examples(50)
@given(EPOCHS, terms)
def test_the_policy_that_was_in_force_would_have_paid_exactly_the_same(
    told: list[tuple[tuple[NodeCut, ...], int, object]], reward_terms: RewardTerms
) -> None:
    policy = replace(POLICY, rewards=reward_terms)
    for one in rehearse(
        map(settle, history(policy, told)), replace(policy, version=7, by="another")
    ):
        assert one.deltas() == {}
        assert one.would_be.cut.openings == one.was.cut.openings
        assert one.would_be.nodes == one.was.nodes
        assert one.would_be.unallocated == one.was.unallocated


@examples(50)
@given(EPOCHS, terms, terms, st.integers(1, 4))
def test_another_policy_keeps_every_invariant_and_the_epochs_before_it_as_they_were(
    told: list[tuple[tuple[NodeCut, ...], int, object]],
    before: RewardTerms,
    after: RewardTerms,
    first: int,
) -> None:
    policy = replace(POLICY, rewards=before)
    proposed = replace(
        POLICY,
        rewards=after,
        compute_base="gpu_time",
        compute_ppm=500_000,
        availability_ppm=400_000,
    )
    cuts = history(policy, told)
    found = summary_of(cuts, proposed, first)
    assert [told.broken for told in found.epochs] == [()] * len(cuts)
    assert all(told.changed == 0 for told in found.epochs if told.epoch < first)
    was, would_be = found.totals()
    assert sum(each.delta for each in found.differences()) == would_be.rewards - was.rewards
    assert was.rewards == sum(settle(cut).total for cut in cuts)


def node(name: str, burned: int, gpu_us: int = 0) -> NodeCut:
    return NodeCut(f"node_{name}", f"acct_{name}", (Use("cash", burned, gpu_us),), 10**13)


def test_a_carry_goes_on_under_the_proposed_rules_and_who_loses_is_told_first() -> None:
    """What nobody could be given in epoch 1 is given in epoch 2, so both epochs change."""
    fleet = (node("a", 100, 1), node("b", 100, 3))
    uncapped = replace(RULED, rewards=replace(REWARD_TERMS, cap_multiple_ppm=None))
    cuts = history(uncapped, [((), 0, {}), (fleet, 0, {})])
    by_time = replace(uncapped, compute_base="gpu_time", compute_ppm=650_000, treasury_ppm=150_000)
    found = summary_of(cuts, by_time)
    pool = cuts[0].policy.segments[0].total // 52 * 2  # of both epochs, about
    loser, *_, winner = found.differences()
    assert (loser.account_id, winner.account_id) == ("acct_a", "acct_b")
    assert abs(loser.was - pool * 7 // 20) < 100
    assert abs(loser.would_be - pool * 13 // 80) < 100
    assert found.epochs[0].changed == 1  # the treasury
    assert found.epochs[1].changed == 3
    assert found.epochs[0].was.zero_weight > found.epochs[0].would_be.zero_weight > 0


def test_an_epoch_that_the_proposal_does_not_plan_for_emits_what_it_did() -> None:
    cuts = history(RULED, [((node("a", 5),), 0, {})] * 2)
    later = replace(RULED, segments=(EmissionSegment(2, 52, 52),))
    assert [plans(later, epoch) for epoch in (1, 2, 54)] == [False, True, False]
    one, two = list(rehearse(map(settle, cuts), later))
    assert one.would_be.emission == one.was.emission
    assert two.would_be.emission == 1


def test_a_missing_epoch_and_a_cap_that_would_not_have_held_stop_the_rehearsal() -> None:
    cuts = history(RULED, [((node("a", 5),), 0, {})] * 3)
    with pytest.raises(RehearsalStops, match="epoch 1 is followed by epoch 3"):
        list(rehearse(map(settle, [cuts[0], cuts[2]]), RULED))
    all_at_once = replace(RULED, segments=(EmissionSegment(1, 1, 10**15),))
    taken = [cuts[0], replace(cuts[1], openings=replace(cuts[1].openings, unissued=5))]
    with pytest.raises(RehearsalStops, match="unissued"):
        list(rehearse(map(settle, taken), all_at_once))
