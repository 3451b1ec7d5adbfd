"""Fair share: what queues are due on every level, and how their past counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.pools.fair_share import (
    STEPS,
    Leaf,
    Queue,
    decayed,
    divide,
    divide_tree,
    usage_share_ppm,
    weight_of_age,
    weights_after_history,
)

GPU, HOUR_US = 1_000_000, 3_600_000_000
MANY = 10_000 * GPU


def asking(name: str, weight: int = 1, deserved: int = 0, requested: int = MANY) -> Queue:
    return Queue(name, deserved, requested, weight, 0)


def under(parent: str, *children: Queue) -> list[Leaf]:
    return [Leaf((parent,), child) for child in children]


def test_two_equal_parents_share_300_gpus_as_150_and_150_and_children_by_weight() -> None:
    leaves = [
        *under("left", asking("a"), asking("b"), asking("c", weight=3)),
        *under("right", asking("only")),
    ]
    parents = {name: asking(name, deserved=150 * GPU) for name in ("left", "right")}
    due = divide_tree(300 * GPU, leaves, parents)
    assert (due["left"], due["right"]) == (150 * GPU, 150 * GPU)
    assert [due[name] for name in "abc"] == [30 * GPU, 30 * GPU, 90 * GPU]
    assert due["only"] == 150 * GPU


def test_who_asks_for_less_than_it_deserves_leaves_the_rest_to_the_others() -> None:
    modest = asking("modest", deserved=5 * GPU, requested=2 * GPU)
    eager = asking("eager", deserved=5 * GPU)
    assert divide(10 * GPU, [modest, eager]) == {"modest": 2 * GPU, "eager": 8 * GPU}


def test_what_is_above_the_deserved_shares_goes_to_the_higher_priority_first() -> None:
    low, high = asking("low", deserved=2), Queue("high", 2, 7, 1, 5)
    assert divide(10, [low, high]) == {"low": 3, "high": 7}


def test_deserved_shares_that_do_not_fit_are_cut_in_proportion() -> None:
    queues = [asking("a", deserved=30), asking("b", deserved=10)]
    assert divide(20, queues) == {"a": 15, "b": 5}


queues = st.lists(
    st.builds(
        lambda deserved, requested, weight, priority: (deserved, requested, weight, priority),
        st.integers(0, 50),
        st.integers(0, 90),
        st.integers(0, 5),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=6,
).map(lambda rows: [Queue(f"q{n}", *row) for n, row in enumerate(rows)])


@given(st.integers(0, 200), queues)
def test_all_is_given_nobody_gets_more_than_asked_and_what_is_deserved_comes_first(
    total: int, level: list[Queue]
) -> None:
    due = divide(total, level)
    assert sum(due.values()) == min(total, sum(queue.requested for queue in level))
    owed = {queue.name: min(queue.deserved, queue.requested) for queue in level}
    for queue in level:
        assert 0 <= due[queue.name] <= queue.requested
        if sum(owed.values()) <= total:
            assert due[queue.name] >= owed[queue.name]


@given(st.integers(0, 400), queues, queues)
def test_children_divide_exactly_what_their_parent_is_due(
    total: int, left: list[Queue], right: list[Queue]
) -> None:
    trees = {"left": left, "right": right}
    leaves = [
        Leaf((name,), Queue(f"{name}/{q.name}", q.deserved, q.requested, q.weight, q.priority))
        for name, level in trees.items()
        for q in level
    ]
    due = divide_tree(total, leaves, {name: asking(name) for name in trees})
    for name, level in trees.items():
        assert sum(due[f"{name}/{queue.name}"] for queue in level) == due[name]


# History.


def test_24_gpu_hours_in_a_window_of_10_gpus_and_10_hours_are_24_hundredths() -> None:
    used = decayed([(0, 24 * HOUR_US)], half_life_us=HOUR_US)
    assert usage_share_ppm(used, 10 * 10 * HOUR_US) == 240_000


def test_a_gpu_second_one_half_life_ago_counts_half() -> None:
    assert decayed([(24 * HOUR_US, 1_000_000)], half_life_us=24 * HOUR_US) == 500_000
    assert decayed([(48 * HOUR_US, 1_000_000)], half_life_us=24 * HOUR_US) == 250_000


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(STEPS, 10**12))
def test_older_usage_never_counts_more(one: int, other: int, half_life_us: int) -> None:
    earlier, later = sorted((one, other))
    assert weight_of_age(later, half_life_us) <= weight_of_age(earlier, half_life_us) <= 1 << 32


@given(st.integers(0, STEPS - 1))
def test_the_table_is_the_floor_of_the_root_and_nothing_else(step: int) -> None:
    weight = weight_of_age(step, STEPS)
    assert weight**STEPS <= 1 << (32 * STEPS - step) < (weight + 1) ** STEPS


def test_who_used_more_than_its_weight_counts_for_less() -> None:
    weights = {"often": 1, "never": 1}
    used = {"often": 30 * HOUR_US}
    after = weights_after_history(weights, used, 100 * HOUR_US, 1_000_000)
    assert after == {"often": 500_000 + (500_000 - 300_000), "never": 1_000_000}
    assert weights_after_history(weights, used, 100 * HOUR_US, 0) == weights
    everything = {"often": 100 * HOUR_US, "never": 100 * HOUR_US}
    assert weights_after_history(weights, everything, 100 * HOUR_US, 1_000_000) == weights
