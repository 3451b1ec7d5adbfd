"""What corrections take back: carried within an account, to the unit, in whatever pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.taken_back import owed_after, set_off

UNITS = st.integers(-(10**12), 10**12)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), UNITS), max_size=8))
def test_what_counts_and_what_is_owed_is_what_was_moved(epochs: list[dict[str, int]]) -> None:
    """sum of counted(1 .. e) + owed(e) == sum of moved(1 .. e)"""
    owed = counted = moved = 0
    for epoch in epochs:
        told = set_off(epoch, owed)
        assert all(0 <= told.counted[node] <= max(0, epoch[node]) for node in epoch)
        assert told.owed == owed_after([sum(epoch.values())], owed)
        owed = told.owed
        counted += sum(told.counted.values())
        moved += sum(epoch.values())
        assert counted + owed == moved
    assert owed == owed_after(sum(epoch.values()) for epoch in epochs)


@given(st.lists(st.tuples(UNITS, UNITS), max_size=8))
def test_a_node_that_is_split_into_two_keeps_no_more(epochs: list[tuple[int, int]]) -> None:
    """Nobody keeps a reward by leaving what was taken back on another node."""
    owed_of_one = owed_of_two = 0
    for first, second in epochs:
        one = set_off({"whole": first + second}, owed_of_one)
        two = set_off({"first": first, "second": second}, owed_of_two)
        assert sum(two.counted.values()) == sum(one.counted.values())
        owed_of_one, owed_of_two = one.owed, two.owed
        assert owed_of_one == owed_of_two


def test_a_sealed_reward_is_paid_back_out_of_later_work() -> None:
    first = set_off({"a": 100})
    second = set_off({"a": -100, "b": 30}, first.owed)
    third = set_off({"b": 90}, second.owed)
    assert (first, second, third) == (({"a": 100}, 0), ({"a": 0, "b": 0}, -70), ({"b": 20}, 0))
