"""Dominant resource fairness: the published table, and what makes it fair."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.hardware.reasons import HardwareReason
from domain.pools.drf import Ratio, User, allocate
from domain.pools.reasons import PoolsReason
from domain.refusal import Reason, Refused
from tests.domain.pools.divisible import divide

CPU_MEM = {"cpu": 9, "gb": 18}
A, B = User("A", {"cpu": 1, "gb": 4}, 1), User("B", {"cpu": 3, "gb": 1}, 1)


def fraction(ratio: Ratio) -> Fraction:
    return Fraction(ratio.part, ratio.whole)


# The table of design marketplace 6.


@pytest.mark.parametrize(("first", "order"), [("A", "ABABA"), ("B", "BAABA")])
def test_the_paper_s_example_gives_three_and_two_whoever_is_first(first: str, order: str) -> None:
    ties = [first, "B" if first == "A" else "A"]
    found = allocate(CPU_MEM, [A, B], ties)
    assert found.tasks == {"A": 3, "B": 2}
    assert "".join(found.order) == order
    assert {str(share) for share in found.dominant_share.values()} == {"2/3"}


def test_a_hundred_cpus_and_ten_thousand_gigabytes_give_twenty_and_ten() -> None:
    users = [User("A", {"cpu": 2, "gb": 300}, 1), User("B", {"cpu": 6, "gb": 100}, 1)]
    assert allocate({"cpu": 100, "gb": 10_000}, users, ["A", "B"]).tasks == {"A": 20, "B": 10}


def test_twice_the_weight_gives_four_and_one() -> None:
    found = allocate(CPU_MEM, [User("A", A.demand, 2), B], ["A", "B"])
    assert found.tasks == {"A": 4, "B": 1}
    assert found.used == {"cpu": 7, "gb": 17}


def test_training_and_inference_share_eight_gpus_as_five_and_three() -> None:
    users = [
        User("train", {"gpu": 1, "vram": 80, "ram": 64}, 1),
        User("infer", {"gpu": 1, "vram": 20, "ram": 192}, 1),
    ]
    capacity = {"gpu": 8, "vram": 640, "ram": 1024}
    assert allocate(capacity, users, ["train", "infer"]).tasks == {"train": 5, "infer": 3}


@pytest.mark.parametrize(
    ("users", "ties", "reason"),
    [
        ([A, A], ["A", "A"], PoolsReason.DUPLICATE_USER),
        ([User("A", {"tpu": 1}, 1)], ["A"], HardwareReason.UNKNOWN_RESOURCE),
        ([User("A", {"cpu": 0}, 1)], ["A"], PoolsReason.EMPTY_DEMAND),
        ([User("A", {"cpu": 1}, 0)], ["A"], PoolsReason.BAD_WEIGHT),
        ([A, B], ["A"], PoolsReason.BAD_TIE_ORDER),
    ],
)
def test_what_cannot_be_shared_is_refused(
    users: list[User], ties: list[str], reason: Reason
) -> None:
    with pytest.raises(Refused) as refused:
        allocate(CPU_MEM, users, ties)
    assert refused.value.reason is reason


# Whole tasks.

RESOURCES = ("cpu", "gb", "gpu")


@st.composite
def asking(draw: st.DrawFn, users_max: int = 4, weights: int = 3) -> list[User]:
    """Users that each demand something of at least one resource."""
    count = draw(st.integers(1, users_max))
    demands = st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any)
    return [
        User(
            f"u{n}", dict(zip(RESOURCES, draw(demands), strict=True)), draw(st.integers(1, weights))
        )
        for n in range(count)
    ]


capacities = st.fixed_dictionaries({name: st.integers(1, 40) for name in RESOURCES})


@given(capacities, asking())
def test_capacity_is_never_exceeded_and_no_user_is_left_who_still_fits(
    capacity: dict[str, int], users: list[User]
) -> None:
    found = allocate(capacity, users, [user.name for user in users])
    for name, whole in capacity.items():
        used = sum(found.tasks[user.name] * user.demand[name] for user in users)
        assert used == found.used[name] <= whole
    for user in users:
        assert any(found.used[name] + user.demand[name] > capacity[name] for name in RESOURCES)
    assert len(found.order) == sum(found.tasks.values())


# The divisible form, where the four properties are exact.


def tasks_of(bundle: dict[str, Fraction], demand: dict[str, int]) -> Fraction:
    """How many tasks of one demand a bundle of resources is good for."""
    return min(bundle[name] / units for name, units in demand.items() if units)


def bundle_of(tasks: Fraction, demand: dict[str, int]) -> dict[str, Fraction]:
    return {name: tasks * units for name, units in demand.items()}


def demand_of(user: User) -> dict[str, int]:
    return dict(user.demand)


@given(capacities, asking())
def test_nobody_would_be_better_off_with_its_part_of_everything(
    capacity: dict[str, int], users: list[User]
) -> None:
    """Sharing incentive: with weight w of W, at least w/W of every resource's worth of tasks."""
    whole = sum(user.weight for user in users)
    for user in users:
        part = {name: Fraction(units * user.weight, whole) for name, units in capacity.items()}
        assert fraction(divide(capacity, users)[user.name]) >= tasks_of(part, demand_of(user))


@given(capacities, asking())
def test_nobody_would_rather_have_what_another_has(
    capacity: dict[str, int], users: list[User]
) -> None:
    """Envy-freeness, by weight: another's bundle, brought to one's own weight, is worth no more."""
    found = divide(capacity, users)
    for mine in users:
        for theirs in users:
            scale = Fraction(mine.weight, theirs.weight)
            bundle = bundle_of(fraction(found[theirs.name]) * scale, demand_of(theirs))
            assert tasks_of(bundle, demand_of(mine)) <= fraction(found[mine.name])


@given(capacities, asking())
def test_nobody_can_get_more_without_somebody_getting_less(
    capacity: dict[str, int], users: list[User]
) -> None:
    """Pareto efficiency: everybody needs something of which nothing is left."""
    found = divide(capacity, users)
    used = {
        name: sum((fraction(found[user.name]) * user.demand[name] for user in users), Fraction(0))
        for name in RESOURCES
    }
    assert all(used[name] <= capacity[name] for name in RESOURCES)
    full = {name for name in RESOURCES if used[name] == capacity[name]}
    assert all(full & {name for name in RESOURCES if user.demand[name]} for user in users)


@given(capacities, asking(), st.data())
def test_nobody_gets_more_by_asking_for_something_else(
    capacity: dict[str, int], users: list[User], data: st.DataObject
) -> None:
    """Strategy-proofness: counted in tasks that one really wants to run."""
    liar = data.draw(st.sampled_from(users))
    lie = data.draw(st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any))
    told = User(liar.name, dict(zip(RESOURCES, lie, strict=True)), liar.weight)
    honest = fraction(divide(capacity, users)[liar.name])
    lying = divide(capacity, [told if user is liar else user for user in users])[liar.name]
    got = bundle_of(fraction(lying), demand_of(told))
    assert tasks_of(got, demand_of(liar)) <= honest


def test_the_divisible_form_of_the_paper_s_example_is_three_and_two() -> None:
    assert {name: str(one) for name, one in divide(CPU_MEM, [A, B]).items()} == {
        "A": "3/1",
        "B": "2/1",
    }


@given(
    st.tuples(st.integers(0, 99), st.integers(1, 99)),
    st.tuples(st.integers(0, 99), st.integers(1, 99)),
)
def test_shares_compare_as_fractions_do(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (Ratio(*one) < Ratio(*other)) == (Fraction(*one) < Fraction(*other))
    assert (Ratio(*one) == Ratio(*other)) == (Fraction(*one) == Fraction(*other))
    assert str(Ratio(*one)) == "{}/{}".format(*Fraction(*one).as_integer_ratio())
