"""What a coalition takes of the rewards of others, in numbers: it pays for it, and no honest
competitor with the same use would take less.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.epochs.settlement import Attested, Cut, NodeCut, Openings, Settlement, Use, settle
from domain.governance.lint import WEIGHT_LEAST
from domain.money import PPM
from tests.domain.adversary.network import HONEST, OWNERS
from tests.domain.adversary.outsiders import COMPETITOR, Fell, replaced, require_fair
from tests.domain.adversary.rewards import EPOCH_US, POOL
from tests.domain.adversary.search import TOKEN, Pools, terms_of

MEMBERS = frozenset(OWNERS)
CREDIT = 10**6


def node(
    name: str, owner: str, burned: int, tokens: int, attested: tuple[Attested, ...] = ()
) -> NodeCut:
    return NodeCut(name, owner, (Use("cash", burned, burned),), tokens, None, attested)


def epoch(*nodes: NodeCut, pools: Pools, base: int = 0, least: int | None = None) -> Settlement:
    """`least`: the terms' `burned_per_gpu_hour`."""
    terms = terms_of(
        {"platform": 150_000, "provider": 350_000}, "burn", PPM, base=base, pools=pools
    )
    assert terms.policy.rewards is not None
    rewards = replace(terms.policy.rewards, burned_per_gpu_hour=least)
    cut = Cut(
        epoch=1,
        cut_position=0,
        policy=replace(terms.policy, rewards=rewards),
        openings=Openings(unissued=POOL),
        nodes=nodes,
    )
    return settle(cut)


def reward(settled: Settlement, name: str) -> int:
    return next(one.compute for one in settled.nodes if one.node_id == name)


HONEST_NODE = node("node_honest", HONEST, 20 * CREDIT, 10 * TOKEN)
WASHED = node("node_evil1", OWNERS[0], 20 * CREDIT, 10 * TOKEN)


def test_the_same_outside_revenue_is_no_bound_where_the_pool_is_small() -> None:
    """As the issue words it: a competitor without outside revenue takes nothing, a washer does."""
    paid = epoch(HONEST_NODE, WASHED, pools=Pools(10 * TOKEN))
    alone = replaced(paid.cut, MEMBERS, ())
    assert (reward(alone, "node_honest"), reward(paid, "node_honest")) == (10 * TOKEN, 5 * TOKEN)
    assert reward(paid, "node_evil1") == 5 * TOKEN, "of 10 that were burned with its own money"


def test_a_competitor_with_the_same_use_takes_as_much_and_what_was_lost_was_paid_for() -> None:
    paid = epoch(HONEST_NODE, WASHED, pools=Pools(10 * TOKEN))
    same = replaced(paid.cut, MEMBERS, WASHED.uses)
    assert reward(same, "node_honest") == reward(paid, "node_honest")
    assert reward(same, COMPETITOR) == reward(paid, "node_evil1")
    require_fair(paid, MEMBERS, {"node_evil1": ()})


def test_where_the_pool_is_not_small_nobody_loses_anything() -> None:
    paid = epoch(HONEST_NODE, WASHED, pools=Pools(POOL))
    assert reward(paid, "node_honest") == reward(replaced(paid.cut, MEMBERS, ()), "node_honest")


def test_time_shown_by_two_nodes_takes_no_more_than_by_one() -> None:
    there = Attested("datacenter", 3, EPOCH_US, EPOCH_US)
    one, two = (
        node(name, OWNERS[0], 10 * CREDIT, 5 * TOKEN, (there,)) for name in ("node_a", "node_b")
    )
    honest = HONEST_NODE._replace(attested=(there,))
    paid = epoch(honest, one, two, pools=Pools(10 * TOKEN, 500_000))
    require_fair(paid, MEMBERS, {"node_a": (), "node_b": ()})
    by_one = replaced(paid.cut, MEMBERS, (*one.uses, *two.uses))
    assert {one.availability for one in by_one.nodes if one.node_id == "node_honest"} == {
        one.availability for one in paid.nodes if one.node_id == "node_honest"
    }


def test_by_gpu_time_a_weight_costs_next_to_nothing() -> None:
    """Where the terms do not say what a GPU-hour costs, which the lint refuses."""
    cheap = NodeCut("node_evil1", OWNERS[0], (Use("cash", 1, 180 * CREDIT),), 1)
    paid = epoch(HONEST_NODE, cheap, pools=Pools(10 * TOKEN), base=1)
    assert reward(paid, "node_honest") == TOKEN, "of 10, though one micro-credit was burned"
    assert reward(paid, "node_evil1") == 1
    require_fair(paid, MEMBERS, {"node_evil1": ()})


def test_by_gpu_time_a_weight_costs_what_the_terms_say() -> None:
    """The same lease of 180 s for one micro-credit weighs the 0.36 s that it buys at a cent."""
    cheap = NodeCut("node_evil1", OWNERS[0], (Use("cash", 1, 180 * CREDIT),), 1)
    paid = epoch(HONEST_NODE, cheap, pools=Pools(10 * TOKEN), base=1, least=WEIGHT_LEAST)
    assert [one.compute_weight for one in paid.nodes] == [360_000, 20 * CREDIT]
    assert reward(paid, "node_honest") == 10 * TOKEN * 20_000 // 20_360
    require_fair(paid, MEMBERS, {"node_evil1": ()})


def test_a_weight_that_nobody_paid_for_is_a_breach() -> None:
    """Weights are more than the uses of the node: an outsider lost what nobody burned."""
    paid = epoch(HONEST_NODE, WASHED, pools=Pools(10 * TOKEN))
    cut = paid.cut
    swapped = [
        one._replace(uses=(Use("cash", 1, 1),)) if one == WASHED else one for one in cut.nodes
    ]
    less = epoch(*swapped, pools=Pools(10 * TOKEN))
    with pytest.raises(Fell):
        require_fair(replace(paid, cut=less.cut), MEMBERS, {"node_evil1": ()})
