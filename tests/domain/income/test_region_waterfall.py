"""The waterfall of a region's day: everybody there is paid, and every unit has an owner."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.income.region_waterfall import INFRA_MAX_PPM, Infra, Weights, fall
from domain.money import PPM
from tests.examples import examples

CREDIT = 1_000_000
DAY_GPU_US = 86_400_000_000
NO_COST = Infra(due=0, arrears=0, arrears_max=0)
UNITS = st.integers(0, 10**12)
PARTS = st.integers(0, PPM)
WEIGHTS = st.lists(UNITS, max_size=6)
COSTS = st.builds(Infra, due=UNITS, arrears=UNITS, arrears_max=UNITS)


def named(weights: list[int]) -> Weights:
    return [(f"n{place}", weight) for place, weight in enumerate(weights)]


def test_the_worked_day_comes_out_to_the_unit() -> None:
    """Design economics 9: R = 100, infrastructure 12, 20 %."""
    fallen = fall(
        100 * CREDIT,
        Infra(due=12 * CREDIT, arrears=0, arrears_max=0),
        200_000,
        [("a", DAY_GPU_US), ("b", DAY_GPU_US), ("c", DAY_GPU_US // 2)],
        [("a", 75 * CREDIT), ("b", 0), ("c", 25 * CREDIT)],
    )
    assert fallen.infra == 12_000_000
    assert fallen.participation == {"a": 7_040_000, "b": 7_040_000, "c": 3_520_000}
    assert fallen.usage == {"a": 52_800_000, "b": 0, "c": 17_600_000}
    assert fallen.carry == 0
    totals = [fallen.participation[node] + fallen.usage[node] for node in "abc"]
    assert totals == [59_840_000, 7_040_000, 21_120_000]


@examples(60)
@given(UNITS, COSTS, PARTS, WEIGHTS, WEIGHTS)
def test_infra_participation_usage_and_carry_are_the_pool_to_the_unit(
    pool: int, cost: Infra, ppm: int, available: list[int], revenue: list[int]
) -> None:
    fallen = fall(pool, cost, ppm, named(available), named(revenue))
    parts = [*fallen.participation.values(), *fallen.usage.values()]
    assert fallen.infra + sum(parts) + fallen.carry == pool
    assert fallen.infra + fallen.arrears + fallen.forgone == cost.due + cost.arrears
    assert min(*parts, fallen.infra, fallen.carry, fallen.arrears, fallen.forgone, 0) == 0
    assert fallen.arrears <= cost.arrears_max
    if any(revenue):  # else there is nobody to have the rest
        assert fallen.carry <= max(0, len(available) - 1) + max(0, len(revenue) - 1)


@examples(30)
@given(st.integers(10**6, 10**12), st.integers(1, PPM), st.integers(1, 10**9))
def test_a_node_without_work_is_paid_for_having_been_there(pool: int, ppm: int, time: int) -> None:
    fallen = fall(pool, NO_COST, ppm, [("busy", time), ("idle", time)], [("busy", 1), ("idle", 0)])
    assert fallen.participation["idle"] == fallen.participation["busy"]
    assert fallen.participation["idle"] == pool * ppm // PPM // 2
    assert fallen.usage["idle"] == 0


def test_of_a_pool_below_the_cost_half_goes_to_the_infrastructure_and_the_rest_is_in_arrears() -> (
    None
):
    cost = Infra(due=12, arrears=3, arrears_max=8)
    fallen = fall(5, cost, 200_000, [("a", 1)], [("a", 5)])
    assert (fallen.infra, fallen.arrears, fallen.forgone) == (2, 8, 5)
    assert (fallen.shared, fallen.carry) == (3, 0)


def test_terms_that_call_everything_infrastructure_take_half() -> None:
    """Economics M8: of a pool of 1,000 credits infrastructure got 1,000 and a co-owner 0."""
    cost = Infra(due=10**6 * CREDIT, arrears=0, arrears_max=10**6 * CREDIT)
    fallen = fall(1_000 * CREDIT, cost, 0, [], [("co-owner", 1)])
    assert (fallen.infra, fallen.usage) == (500 * CREDIT, {"co-owner": 500 * CREDIT})


@examples(60)
@given(UNITS, COSTS)
def test_infrastructure_is_at_most_its_share_of_the_pool(pool: int, cost: Infra) -> None:
    fallen = fall(pool, cost, 0, [], [("a", 1)])
    assert fallen.infra * PPM <= pool * INFRA_MAX_PPM
    assert fallen.infra in (cost.due + cost.arrears, pool * INFRA_MAX_PPM // PPM)


def test_arrears_are_paid_before_anybody_else_and_once() -> None:
    fallen = fall(100, Infra(due=12, arrears=8, arrears_max=50), 0, [], [("a", 1)])
    assert (fallen.infra, fallen.arrears, fallen.usage) == (20, 0, {"a": 80})


def test_a_day_without_revenue_pays_nobody_and_remembers_the_cost() -> None:
    fallen = fall(0, Infra(due=12, arrears=0, arrears_max=30), 200_000, [("a", 9)], [])
    assert (fallen.infra, fallen.arrears, fallen.shared, fallen.carry) == (0, 12, 0, 0)


def test_where_nobody_was_there_by_attested_time_all_is_usage() -> None:
    fallen = fall(100, NO_COST, 200_000, [("a", 0)], [("a", 3), ("b", 1)])
    assert fallen.participation == {"a": 0}
    assert fallen.usage == {"a": 75, "b": 25}


def test_what_nobody_earned_waits_for_the_next_day() -> None:
    fallen = fall(10, NO_COST, 200_000, [("a", 1)], [])
    assert (fallen.participation, fallen.carry) == ({"a": 2}, 8)


@examples(40)
@given(UNITS, PARTS, UNITS, UNITS, WEIGHTS)
def test_equal_work_earns_equal_whoever_else_is_there(
    pool: int, ppm: int, time: int, units: int, others: list[int]
) -> None:
    available = [("x", time), *named(others), ("y", time)]
    revenue = [("x", units), *named(others), ("y", units)]
    fallen = fall(pool, NO_COST, ppm, available, revenue)
    assert fallen.participation["x"] == fallen.participation["y"]
    assert fallen.usage["x"] == fallen.usage["y"]


@examples(40)
@given(UNITS, COSTS, PARTS, WEIGHTS, WEIGHTS, st.randoms(use_true_random=False))
def test_the_order_in_which_nodes_are_told_changes_nothing(
    pool: int, cost: Infra, ppm: int, available: list[int], revenue: list[int], shuffle: object
) -> None:
    told, earned = list(named(available)), list(named(revenue))
    before = fall(pool, cost, ppm, told, earned)
    shuffle.shuffle(told)  # type: ignore[attr-defined]
    shuffle.shuffle(earned)  # type: ignore[attr-defined]
    assert fall(pool, cost, ppm, told, earned) == before


@examples(40)
@given(UNITS, PARTS, WEIGHTS, UNITS, st.integers(0, 10**9))
def test_more_time_or_more_revenue_never_earns_less(
    pool: int, ppm: int, others: list[int], mine: int, more: int
) -> None:
    def total(time: int, units: int) -> int:
        available, revenue = [("x", time), *named(others)], [("x", units), *named(others)]
        fallen = fall(pool, NO_COST, ppm, available, revenue)
        return fallen.participation["x"] + fallen.usage["x"]

    if not any([mine, *others]):
        return  # of nobody's time nothing is set aside at all
    assert total(mine + more, mine) >= total(mine, mine)
    assert total(mine, mine + more) >= total(mine, mine)


def test_the_infrastructure_of_a_region_has_half_of_a_day_at_most() -> None:
    """Design economics 9."""
    assert INFRA_MAX_PPM == 500_000
