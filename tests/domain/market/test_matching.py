"""Which node gets a lease: the cheapest that fits, own first, in whatever order nodes are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.hardware.constraints import Constraints, Weights
from domain.hardware.host_kind import kernel_number
from domain.lease.choice import Candidate
from domain.lease.lease import MatchDecided
from domain.market.dimensions import Near
from domain.market.explanation import ANYTHING, Relaxation, explain
from domain.market.matching import (
    CANDIDATES_MAX,
    DISPLACED,
    FreeDevice,
    Need,
    OfferedNode,
    choose,
    factors_of,
    fit,
    recompute,
    rule_of,
)
from domain.market.offer import OfferTerms
from domain.money import PPM
from tests.domain.scenes.fleets import FEES, OWNER, RENTER, as_seen_by, fleets, needs, with_peers

T = TypeVar("T")


def device(number: int = 0, model: str = "A100", share: int = PPM, mem: int = PPM) -> FreeDevice:
    return FreeDevice(f"GPU-{number}", model, share, mem)


def node(name: str, price: int = 100, *devices: FreeDevice, **changes: object) -> OfferedNode:
    offered = OfferedNode(
        node_id=f"node_{name}",
        offer_id=f"offer_{name}",
        account_id=OWNER,
        price=price,
        pay_with="cash",
        fractions=True,
        served_gpu_us=0,
        devices=devices or (device(0), device(1)),
    )
    return replace(offered, **changes)  # type: ignore[arg-type]


def need(gpus: int = 1, share: int = PPM, **changes: object) -> Need:
    asked = Need(gpus, share, share, (), 10**9, RENTER)
    return replace(asked, **changes)  # type: ignore[arg-type]


def seen(rows: Sequence[OfferedNode]) -> list[OfferedNode]:
    return [as_seen_by(RENTER, row) for row in rows]


@given(needs(), fleets(), st.randoms(use_true_random=False))
def test_the_order_of_nodes_and_devices_does_not_matter(
    asked: Need, fleet: list[OfferedNode], random: Random
) -> None:
    shuffled = [
        replace(each, devices=tuple(_shuffled(each.devices, random)))
        for each in _shuffled(seen(fleet), random)
    ]
    assert choose(asked, shuffled) == choose(asked, seen(fleet))
    assert explain(asked, shuffled) == explain(asked, seen(fleet))


def _shuffled(things: Sequence[T], random: Random) -> list[T]:
    mixed = list(things)
    random.shuffle(mixed)
    return mixed


@given(needs(), fleets())
def test_own_nodes_come_first_and_no_fitting_node_is_better_than_the_chosen_one(
    asked: Need, fleet: list[OfferedNode]
) -> None:
    """C-5, then the rule: nothing that fits may come before the chosen one."""
    asked = replace(asked, constraints=replace(asked.constraints, rank="lowest_cost"))
    match = choose(asked, seen(fleet))
    fitting = [each for each in seen(fleet) if fit(asked, each) is not None]
    if match is None:
        assert not fitting
        return
    chosen = next(each for each in fitting if each.offer_id == match.offer_id)
    if any(each.account_id == RENTER for each in fitting):
        assert chosen.account_id == RENTER, "own nodes first"
    ranks = asked.constraints.workload_class
    keys = [
        (each.account_id != RENTER, ranks in each.down_ranked_workloads, each.price)
        for each in (chosen, *fitting)
    ]
    assert keys[0] == min(keys)
    assert match.considered == len(fitting)
    assert match.candidates[0].node_id == match.node_id


@given(needs(), fleets())
def test_every_candidate_passes_every_hard_constraint(
    asked: Need, fleet: list[OfferedNode]
) -> None:
    """Spelled out beside the rule itself: what was asked for is what is given."""
    match = choose(asked, seen(fleet))
    for candidate in () if match is None else match.candidates:
        node = next(each for each in seen(fleet) if each.offer_id == candidate.offer_id)
        wanted, is_own = asked.constraints, node.account_id == RENTER
        assert node.phase == "active"
        assert is_own or node.is_public
        assert not asked.models or node.device_model in asked.models
        assert wanted.arch in (None, node.arch)
        assert wanted.setting in (None, node.setting)
        assert (node.kernel or 0) >= (kernel_number(wanted.min_kernel) or 0)
        assert wanted.substrate is None or wanted.substrate in node.substrate
        assert (node.cpu_cores or 0) >= (wanted.cpu_cores or 0)
        assert (node.ram_mib or 0) >= (wanted.ram_mib or 0)
        assert node.memory_mib * asked.mem_ppm // PPM >= (wanted.memory_mib or 0)
        assert set(wanted.capabilities or ()) <= set(node.terms.capabilities or ())
        assert wanted.workload_class not in node.refused_workloads
        if wanted.min_reputation_ppm is not None and not is_own:
            known = node.reputation_ppm
            assert (
                wanted.accept_provisional if known is None else known >= wanted.min_reputation_ppm
            )
        roomy = [one for one in node.devices if one.free_share_ppm >= asked.share_ppm]
        assert wanted.mode == "mig" or len(roomy) >= asked.gpu_count


@given(needs(), fleets())
def test_no_trade_is_outside_what_both_parties_accept(
    asked: Need, fleet: list[OfferedNode]
) -> None:
    """V-9: between what the provider asks, never below the usage fee, and the renter's cap."""
    match = choose(asked, seen(fleet))
    if match is None:
        return
    row = next(each for each in fleet if each.offer_id == match.offer_id)
    price, fee = match.candidates[0].price_per_gpu_hour, FEES[row.gpu_class or ""]
    assert fee <= price <= asked.price_max
    assert price == (fee if row.account_id == RENTER else row.price)


@given(needs(), fleets())
def test_each_single_relaxation_that_is_told_gives_a_match(
    asked: Need, fleet: list[OfferedNode]
) -> None:
    explained = explain(asked, seen(fleet))
    for eased in explained.relaxations:
        easier = with_relaxation(asked, eased)
        if easier is not None:
            assert choose(easier, seen(fleet)) is not None, eased


def test_a_node_that_is_taken_back_is_no_reason_to_ask_for_less_interruptible() -> None:
    """Its class was set after its offer, which no lease takes any more."""
    asked = need(constraints=Constraints(interruptible=True))
    for capacity_class, helps in (("preemptible", False), ("on_demand", True)):
        told = explain(asked, [node("a", capacity_class=capacity_class)]).relaxations
        assert ("interruptible" in {one.field for one in told}) == helps


@given(needs(), fleets())
def test_a_recorded_decision_is_recomputed_and_a_changed_one_is_found(
    asked: Need, fleet: list[OfferedNode]
) -> None:
    match = choose(asked, seen(fleet))
    if match is None:
        return
    fact = MatchDecided(
        lease_id="lease_1",
        rule=rule_of(asked),
        fleet_position=1,
        candidates=match.candidates,
        considered=match.considered,
        node_id=match.node_id,
        offer_id=match.offer_id,
        device_ids=match.device_ids,
        at_us=1,
        weights=asked.constraints.weights,
        pricing=None,
        narrowed=(),
    )
    again = recompute(fact)
    assert again.differences == ()
    assert again.order[0] == match.node_id
    if len(match.candidates) > 1:
        assert again.runner_up == match.candidates[1].node_id
        assert again.deciding is not None
        swapped = (match.candidates[1], match.candidates[0], *match.candidates[2:])
        assert recompute(replace(fact, candidates=swapped)).differences
    score = match.candidates[0].score_ppm or 0
    other = replace(match.candidates[0], score_ppm=score + 1)
    assert recompute(replace(fact, candidates=(other, *match.candidates[1:]))).differences


def test_the_six_factors_and_the_score_of_one_node_by_hand() -> None:
    """R-5: what `factors_of` documents, with numbers that no other formula gives."""
    offered = node(
        "1",
        700,
        device(0),
        device(1),
        device(2),
        device(3, share=0, mem=0),
        memory_mib=80_000,
        region_id="region_a",
        provider_id="prov_a",
        reputation_ppm=930_000,
        terms=OfferTerms(storage_gib=1_000),
        held_storage_gib=300,
        peers_free=1,
        peers_devices=3,
    )
    here = Near(frozenset({"region_a"}), frozenset())
    same_provider = Near(frozenset({"region_b"}), frozenset({"prov_a"}))
    far = Near(frozenset({"region_b"}), frozenset({"prov_b"}))
    weights = Weights(
        spec_fit=100_000,
        reputation=200_000,
        locality=300_000,
        free_peers=150_000,
        storage=50_000,
        price=200_000,
    )
    asked = need(
        2,
        price_max=1_000,
        near=(here, same_provider, far),
        constraints=Constraints(
            memory_mib=20_000, storage_gib=200, weights=weights, rank="best_score"
        ),
    )
    assert factors_of(asked, offered) == (
        375_000,  # a quarter of the memory and half of the GPUs
        930_000,
        500_000,  # at home, with the same provider, far away
        285_714,  # 2 of 7: three fit, two go, one is free beside them; of 4 and 3 devices
        500_000,  # 1,000 less 300 less 200
        300_000,  # 700 of at most 1,000
    )
    assert factors_of(asked, replace(offered, reputation_ppm=None))[1] == 500_000, "provisional"
    match = choose(asked, [offered])
    assert match is not None
    assert match.candidates[0].score_ppm == 37_500 + 186_000 + 150_000 + 42_857 + 25_000 + 60_000
    cheaper = replace(offered, node_id="node_2", offer_id="offer_2", price=699)
    best = choose(asked, [offered, cheaper])
    assert best is not None
    assert best.node_id == "node_2"


def test_a_renter_without_a_reputation_counts_as_half() -> None:
    for least, is_taken in ((500_000, True), (500_001, False)):
        picky = node("1", terms=OfferTerms(min_renter_ppm=least))
        assert (choose(need(), [picky]) is not None) is is_taken
        assert choose(need(renter_ppm=least), [picky]) is not None


def test_peers_are_the_other_devices_of_the_region() -> None:
    """R-5: a node whose region has more free devices beside it scores higher."""
    one = node("1", 100, device(1), region_id="region_a")
    beside = node("2", 100, device(2), device(3, share=0, mem=0), region_id="region_a")
    gone = replace(beside, node_id="node_3", phase="retired")
    alone = node("4", 100, device(4), region_id="region_b")
    fleet = with_peers([one, beside, gone, alone])
    assert [(each.peers_free, each.peers_devices) for each in fleet] == [
        (1, 2),
        (1, 1),
        (2, 3),
        (0, 0),
    ]
    asked = need(constraints=Constraints(weights=Weights(free_peers=PPM), rank="best_score"))
    factors = [factors_of(asked, each)[3] for each in fleet]
    assert factors[0] == 333_333, "of three devices one would be left"
    assert factors[3] == 0
    best = choose(asked, [fleet[3], fleet[0]])
    assert best is not None
    assert best.node_id == one.node_id


def test_where_standing_bids_make_room_the_lowest_one_does() -> None:
    """R-5: the record of a displacement is recomputed, and a changed one is found."""
    rooms = tuple(
        Candidate(node_id, f"offer_{node_id}", 5, 0, 0, paused_bid=bid)
        for node_id, bid in (("node_b", 3), ("node_a", 3), ("node_c", 4))
    )
    fact = MatchDecided(
        lease_id="lease_1",
        rule=DISPLACED,
        fleet_position=1,
        candidates=rooms,
        considered=3,
        node_id="node_b",
        offer_id="offer_node_b",
        device_ids=(),
        at_us=1,
        weights=None,
        pricing=None,
        narrowed=(),
    )
    again = recompute(fact)
    assert (again.order[0], again.runner_up, again.deciding) == ("node_b", "node_a", "arrival")
    assert again.differences == ()
    for changed in (
        replace(fact, candidates=(rooms[2], *rooms[:2])),
        replace(fact, node_id="node_c", offer_id="offer_node_c"),
        replace(fact, considered=2),
        replace(fact, candidates=(replace(rooms[0], paused_bid=None), *rooms[1:])),
        replace(fact, candidates=()),
    ):
        assert recompute(changed).differences


def with_relaxation(asked: Need, eased: Relaxation) -> Need | None:
    """The request with this one field as told; None where it is not the renter's to ask."""
    wanted, to = asked.constraints, eased.offered
    if eased.field in ("gpu_count", "share_ppm"):
        changes: dict[str, Any] = {eased.field: int(to)}
        if eased.field == "share_ppm" and asked.share_ppm == asked.mem_ppm:
            changes["mem_ppm"] = int(to)
        return replace(asked, **changes)
    if eased.field == "max_price_per_gpu_hour":
        return replace(asked, price_max=int(to))
    if eased.field == "models":
        return replace(asked, models=(to,))
    if eased.field == "settlement":
        return replace(asked, settlements=(to,))
    if eased.field == "sla_class":
        return replace(asked, sla_classes=(to,))
    if eased.field == "term_seconds":
        return replace(asked, until_us=asked.at_us + int(to) * 1_000_000)
    return replace(asked, constraints=_eased(wanted, eased.field, to))


def _eased(wanted: Constraints, field: str, to: str) -> Constraints:
    lists = ("kinds", "vendors", "regions")
    if to == ANYTHING:
        value: Any = True if field == "accept_provisional" else None
    elif field == "reclaim_window_seconds":
        return replace(wanted, reclaim_window_us=int(to) * 1_000_000 or None)
    elif field in lists:
        value = (to,)
    else:
        value = int(to) if to.isdecimal() else to
    return replace(wanted, **{field: value})


def test_the_cheapest_node_that_fits_wins() -> None:
    match = choose(need(2), [node("a", 300), node("b", 100, device(0)), node("c", 200)])
    assert match is not None
    assert (match.node_id, match.considered) == ("node_c", 2), "the cheapest has one device only"


def test_the_renters_own_node_goes_first_even_when_a_foreign_one_is_cheaper() -> None:
    match = choose(need(), [node("foreign", 100), node("own", 250, account_id=RENTER)])
    assert match is not None
    assert match.node_id == "node_own"


def test_at_one_price_the_node_that_strands_least_wins_and_whole_devices_stay_whole() -> None:
    half = node("half", 100, device(0), device(1, share=PPM // 2))
    match = choose(need(share=PPM // 2), [node("whole"), half])
    assert match is not None
    assert (match.node_id, match.device_ids) == ("node_half", ("GPU-1",))
    assert match.candidates[0].stranded_ppm == 0


def test_among_equals_the_node_that_has_served_least_wins_and_then_the_lower_id() -> None:
    busy, idle = node("a", served_gpu_us=5), node("z", served_gpu_us=4)
    match = choose(need(), [busy, idle])
    assert match is not None
    assert match.node_id == "node_z"
    match = choose(need(), [node("b"), node("a")])
    assert match is not None
    assert match.node_id == "node_a"


@pytest.mark.parametrize(
    "unfit",
    [
        node("price", 101),
        node("model", 100, device(0, "T4")),
        node("share", 100, device(0, share=PPM // 2 - 1)),
        node("memory", 100, device(0, mem=PPM // 2 - 1)),
        node("fractions", 100, device(0), fractions=False),
    ],
    ids=lambda unfit: unfit.offer_id,
)
def test_a_node_that_misses_one_wish_is_never_chosen(unfit: OfferedNode) -> None:
    asked = need(share=PPM // 2, models=("A100",), price_max=100)
    assert choose(asked, [unfit]) is None
    match = choose(asked, [unfit, node("fits")])
    assert match is not None
    assert match.node_id == "node_fits"


def test_a_recorded_decision_lists_the_best_twenty_and_says_how_many_there_were() -> None:
    match = choose(need(), [node(f"{number:02}", 100 + number) for number in range(30)])
    assert match is not None
    assert len(match.candidates) == CANDIDATES_MAX == 20
    assert match.considered == 30
    prices = [candidate.price_per_gpu_hour for candidate in match.candidates]
    assert prices == sorted(prices)


def test_an_offer_the_renter_cannot_pay_for_in_its_way_is_passed_over() -> None:
    burning = node("a", price=1, pay_with="burn")
    paid = node("b", price=2)
    found = choose(need(settlements=("cash",)), [burning, paid])
    assert found is not None
    assert found.node_id == "node_b"
