"""Emission: a segment emits exactly its total, and nothing goes past the cap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.emission import EmissionSegment, Emitted, check_segments, emitted, scheduled
from domain.epochs.reasons import EpochsReason
from domain.refusal import Refused

RENDER_YEAR_2 = EmissionSegment(1, 52, 590_558_000_000_000)


@st.composite
def schedules(draw: st.DrawFn) -> list[EmissionSegment]:
    made: list[EmissionSegment] = []
    start = draw(st.integers(0, 5))
    for _ in range(draw(st.integers(0, 4))):
        length = draw(st.integers(1, 12))
        made.append(EmissionSegment(start, length, draw(st.integers(0, 10**15))))
        start += length + draw(st.integers(0, 3))
    return draw(st.permutations(made))


def end_of(segments: list[EmissionSegment]) -> int:
    return max((s.start_epoch + s.n_epochs for s in segments), default=0)


@given(schedules())
def test_a_schedule_emits_exactly_its_total(segments: list[EmissionSegment]) -> None:
    each = [scheduled(segments, epoch) for epoch in range(end_of(segments) + 2)]
    assert sum(each) == sum(segment.total for segment in segments)
    assert min(each) >= 0


@given(schedules(), st.integers(0, 4 * 10**15))
def test_the_cap_is_never_passed_and_clamps_epoch_by_epoch(
    segments: list[EmissionSegment], cap: int
) -> None:
    epochs = range(end_of(segments) + 2)
    before = 0
    for epoch, answer in zip(epochs, emitted(segments, list(epochs), cap), strict=True):
        assert answer.emission == min(scheduled(segments, epoch), cap - before)
        before += answer.emission
        assert answer.cumulative == before <= cap


def test_the_first_week_of_renders_second_year() -> None:
    assert scheduled([RENDER_YEAR_2], 1) == 11_356_884_615_384
    assert emitted([RENDER_YEAR_2], [52])[0] == Emitted(11_356_884_615_385, 590_558_000_000_000)


def test_before_between_and_after_segments_nothing_is_emitted() -> None:
    segments = [EmissionSegment(6, 2, 50), EmissionSegment(2, 2, 100)]
    assert [scheduled(segments, epoch) for epoch in range(9)] == [0, 0, 50, 50, 0, 0, 25, 25, 0]


@pytest.mark.parametrize(
    "segment", [EmissionSegment(0, 0, 1), EmissionSegment(-1, 1, 1), EmissionSegment(0, 1, -1)]
)
def test_a_segment_must_make_sense(segment: EmissionSegment) -> None:
    with pytest.raises(Refused) as caught:
        emitted([segment, EmissionSegment(0, 9, 1)], [-1])
    assert caught.value.reason is EpochsReason.BAD_SEGMENT


def test_segments_may_touch_but_not_overlap() -> None:
    check_segments([EmissionSegment(4, 1, 1), EmissionSegment(0, 4, 1)])
    with pytest.raises(Refused) as caught:
        emitted([EmissionSegment(4, 1, 1), EmissionSegment(0, 5, 1)], [-1])
    assert caught.value.reason is EpochsReason.SEGMENTS_OVERLAP


def test_there_is_no_epoch_before_the_first() -> None:
    with pytest.raises(Refused) as caught:
        emitted([], [0, -1])
    assert caught.value.reason is EpochsReason.BAD_EPOCH
