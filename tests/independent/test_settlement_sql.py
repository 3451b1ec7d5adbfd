"""Two implementations of a settlement that share no formula agree to the unit, on any cut."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.epoch_file import epoch_file
from domain.epochs.reward_terms import REWARD_TERMS, UNISSUED
from domain.epochs.settlement import Attested, NodeCut, Use, settle
from domain.money import PPM
from tests.domain.epochs.test_settlement import cut, deltas, fleets, terms
from tests.domain.scenes.epochs import POLICY
from tests.examples import examples
from tests.independent.settlement_sql import breaks, differences


def told(settlement: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(epoch_file(settlement))
    return document


@examples(25)
@given(
    fleets,
    st.none() | terms,
    st.integers(0, 10**14),
    st.integers(0, 10**14),
    st.integers(0, 10**14),
    deltas,
    st.sampled_from(["burned_value", "gpu_time"]),
)
def test_the_second_implementation_gives_the_same_file(
    fleet: tuple[NodeCut, ...],
    rewards: Any,
    carry: int,
    idle: int,
    burned: int,
    delta: Any,
    base: str,
) -> None:
    policy = replace(POLICY, rewards=rewards, compute_base=base)
    opening = {"compute_carry": carry, "availability_carry": idle, "recyclable": burned}
    settled = settle(cut(*fleet, policy=policy, adjustments=delta, **opening))
    assert differences(told(settled)) == []


def test_products_beyond_127_bits_are_exact() -> None:
    """2^62 units shared by weights of nearly 2^64: the product has 126 bits, with the bonus 127."""
    most = 2**63 - 1
    fleet = [
        NodeCut(
            f"n{n}",
            f"a{n}",
            (Use("cash", most - n, 0), Use("burned", most - n, 0)),
            most,
            PPM,
            (Attested("datacenter", 4, most - n, 0),),
        )
        for n in range(40)
    ]
    rewards = replace(REWARD_TERMS, cap_goes_to=UNISSUED)
    whole = cut(
        *fleet,
        policy=replace(POLICY, rewards=rewards),
        unissued=most,
        compute_carry=2**62,
        availability_carry=2**61,
    )
    settled = settle(whole)
    assert (settled.compute_pool + 2**62) * settled.nodes[0].compute_weight > 2**126
    assert differences(told(settled)) == []


def test_each_changed_result_is_named() -> None:
    node = NodeCut("n", "a", (Use("cash", 10, 0),), 10**9, None, (Attested("x", 3, 9, 9),))
    honest = told(settle(cut(node, recyclable=10**9, adjustments=(("z", -1),))))
    assert differences(honest) == []
    for name, other in {
        "emission": "1",
        "release": "7",
        "rewards": [["a", "1"]],
        "unallocated": [],
        "carries": {"compute": "0", "availability": "1"},
        "adjustments_open": [],
        "returned": {"emission": "0", "release": "0"},
    }.items():
        (difference,) = differences({**honest, name: other})
        assert f"{name} is" in difference


def test_an_epoch_starts_from_what_the_one_before_left() -> None:
    first = told(settle(cut(recyclable=70)))
    left = settle(
        replace(
            cut(
                unissued=10**17 - int(first["emission"]) + int(first["returned"]["emission"]),
                compute_carry=int(first["carries"]["compute"]),
                availability_carry=int(first["carries"]["availability"]),
                recyclable=70 - int(first["release"]) + 5,
            ),
            epoch=2,
            cut_position=10,
        )
    )
    second = told(left)
    assert list(breaks([first, second], {2: 5}, {})) == []
    assert list(breaks([first, second], {2: 6}, {})) != []
    assert list(breaks([first, second], {2: 5}, {2: {"a": 1}})) != []
    for name in ("unissued", "compute_carry", "availability_carry", "recyclable"):
        changed = {**second, "openings": {**second["openings"], name: "4"}}
        (found,) = breaks([first, changed], {2: 5})
        assert name in found
    assert list(breaks([first, {**second, "cut_position": "9"}])) != []
