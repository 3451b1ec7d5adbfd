"""Streams side by side: every row once, the rows of a node together, and none read too far."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.epochs import streams
from projections.epochs.streams import Known, Row, sliced

rows = st.lists(st.tuples(st.sampled_from("abcdeé"), st.integers(0, 9)), max_size=20)


class Watched(Known):
    """Counts the rows that were taken and are in no slice yet."""

    def __init__(self, told: Sequence[Row]) -> None:
        super().__init__(told)
        self.ahead = 0

    def fetchmany(self, size: int, /) -> Sequence[Row]:
        found = super().fetchmany(size)
        self.ahead += len(found)
        return found


@given(
    st.lists(rows, min_size=1, max_size=4),
    st.integers(1, 5),
    st.dictionaries(st.integers(0, 3), st.integers(1, 4)),
)
def test_slices_are_all_rows_in_order_and_no_node_is_in_two(
    told: list[list[Row]], at_once: int, widths: dict[int, int]
) -> None:
    sources = [Watched(some) for some in told]
    mosts = []
    for place, some in enumerate(told):
        room = at_once * widths.get(place, 1)
        mosts.append(room + max((len(_of(some, name)) for name in "abcdeé"), default=0))
    found: list[list[Row]] = [[] for _ in told]
    last = ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "ROWS_MAX", at_once)
        for taken in sliced(sources, widths):
            nodes = sorted({row[0] for some in taken for row in some})
            assert nodes
            assert nodes[0] > last
            last = nodes[-1]
            for source, some, kept, most in zip(sources, taken, found, mosts, strict=True):
                assert source.ahead <= most
                source.ahead -= len(some)
                kept += some
    assert found == [sorted(some, key=lambda row: row[0]) for some in told]


def test_a_source_with_many_rows_of_a_node_makes_no_smaller_slices() -> None:
    names = [f"{number:05}" for number in range(3 * streams.ROWS_MAX)]
    wide = Known([(name, number) for name in names for number in range(4)])
    slices = [len(taken[0]) for taken in sliced([Known([(name,) for name in names]), wide], {1: 4})]
    assert min(slices[:3]) >= streams.ROWS_MAX - 1
    assert sum(slices) == len(names)


def _of(some: list[Row], name: str) -> list[Row]:
    return [row for row in some if row[0] == name]
