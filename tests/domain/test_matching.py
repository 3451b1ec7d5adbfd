"""Which node gets a lease: the cheapest that fits, own first, in whatever order nodes are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.matching import CANDIDATES_MAX, FreeDevice, Need, OfferedNode, choose, fit
from domain.money import PPM
from domain.offer import SETTLEMENTS

T = TypeVar("T")

RENTER, OWNER = "acct_renter", "acct_owner"

shares = st.integers(1, 10).map(lambda tenths: tenths * PPM // 10)
free = st.integers(0, 10).map(lambda tenths: tenths * PPM // 10)
models = st.sampled_from(("A100", "T4"))


def device(number: int = 0, model: str = "A100", share: int = PPM, mem: int = PPM) -> FreeDevice:
    return FreeDevice(f"GPU-{number}", model, share, mem)


def node(name: str, price: int = 100, *devices: FreeDevice, **changes: object) -> OfferedNode:
    offered = OfferedNode(
        node_id=f"node_{name}", offer_id=f"offer_{name}", account_id=OWNER, price=price,
        settlement="cash", fractions=True, served_gpu_us=0,
        devices=devices or (device(0), device(1)),
    )  # fmt: skip
    return replace(offered, **changes)  # type: ignore[arg-type]


def need(gpus: int = 1, share: int = PPM, **changes: object) -> Need:
    asked = Need(gpus, share, share, (), 10**9, RENTER)
    return replace(asked, **changes)  # type: ignore[arg-type]


needs = st.builds(
    Need,
    gpu_count=st.integers(1, 3),
    share_ppm=shares,
    mem_ppm=shares,
    models=st.sets(models, max_size=1).map(tuple),
    price_max=st.integers(0, 5),
    account_id=st.just(RENTER),
)


@st.composite
def fleets(draw: st.DrawFn) -> list[OfferedNode]:
    """Nodes with few prices and sizes, so that ties are common."""
    return [
        OfferedNode(
            node_id=f"node_{number}",
            offer_id=f"offer_{number}",
            account_id=draw(st.sampled_from((RENTER, OWNER))),
            price=draw(st.integers(0, 5)),
            settlement=draw(st.sampled_from(SETTLEMENTS)),
            fractions=draw(st.booleans()),
            served_gpu_us=draw(st.integers(0, 2)),
            devices=tuple(
                FreeDevice(f"GPU-{number}-{slot}", draw(models), draw(free), draw(free))
                for slot in range(draw(st.integers(0, 3)))
            ),
        )
        for number in range(draw(st.integers(0, 6)))
    ]


@given(needs, fleets(), st.randoms(use_true_random=False))
def test_the_order_of_nodes_and_devices_does_not_matter(
    asked: Need, fleet: list[OfferedNode], random: Random
) -> None:
    shuffled = [
        replace(each, devices=tuple(_shuffled(each.devices, random)))
        for each in _shuffled(fleet, random)
    ]
    assert choose(asked, shuffled) == choose(asked, fleet)


def _shuffled(things: Sequence[T], random: Random) -> list[T]:
    mixed = list(things)
    random.shuffle(mixed)
    return mixed


@given(needs, fleets())
def test_no_fitting_node_is_better_than_the_chosen_one(
    asked: Need, fleet: list[OfferedNode]
) -> None:
    """Own before foreign, then cheaper: no other node that fits may beat the chosen on both."""
    match = choose(asked, fleet)
    fitting = {each.node_id: each for each in fleet if fit(asked, each) is not None}
    if match is None:
        assert not fitting
        return
    chosen = fitting[match.node_id]
    best = min((each.account_id != RENTER, each.price) for each in fitting.values())
    assert (chosen.account_id != RENTER, chosen.price) == best
    assert match.considered == len(fitting)
    assert match.candidates[0].node_id == match.node_id


@given(needs, fleets())
def test_what_is_given_was_free_of_an_allowed_model_and_below_the_cap(
    asked: Need, fleet: list[OfferedNode]
) -> None:
    match = choose(asked, fleet)
    if match is None:
        return
    chosen = next(each for each in fleet if each.node_id == match.node_id)
    given_devices = {each.device_id: each for each in chosen.devices}
    assert len(set(match.device_ids)) == len(match.device_ids) == asked.gpu_count
    for device_id in match.device_ids:
        assert given_devices[device_id].free_share_ppm >= asked.share_ppm
        assert given_devices[device_id].free_mem_ppm >= asked.mem_ppm
        assert not asked.models or given_devices[device_id].model in asked.models
    assert chosen.price <= asked.price_max
    assert chosen.fractions or asked.share_ppm == PPM


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
    burning = node("a", price=1, settlement="burn")
    paid = node("b", price=2)
    found = choose(need(settlements=("cash",)), [burning, paid])
    assert found is not None
    assert found.node_id == "node_b"
