"""What no report proves: the stretches of a window between the spans of proof."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.hardware.capacity import PROOF_GAP_US, Span, unproven

SECOND_US = 1_000_000
WINDOW = Span(100 * SECOND_US, 200 * SECOND_US)
spans = st.tuples(st.integers(50, 250), st.integers(1, 60)).map(
    lambda one: Span(one[0] * SECOND_US, (one[0] + one[1]) * SECOND_US)
)


@given(st.lists(spans, max_size=8))
def test_every_second_is_proven_or_unproven_but_for_gaps_that_clocks_make(
    proven: list[Span],
) -> None:
    gaps = unproven(WINDOW, proven)
    for at_us in range(WINDOW.from_us, WINDOW.to_us, SECOND_US):
        is_proven = any(one.from_us <= at_us < one.to_us for one in proven)
        is_unproven = any(one.from_us <= at_us < one.to_us for one in gaps)
        assert not (is_proven and is_unproven), at_us
        if not (is_proven or is_unproven):
            near = range(at_us - PROOF_GAP_US, at_us + PROOF_GAP_US + 1, SECOND_US)
            assert any(one.from_us in near or one.to_us in near for one in proven)
    assert all(WINDOW.from_us <= one.from_us < one.to_us <= WINDOW.to_us for one in gaps)


def test_a_node_that_signed_nothing_proves_nothing() -> None:
    assert unproven(WINDOW, []) == (WINDOW,)


def test_two_seconds_between_two_rows_are_the_clocks_and_more_is_silence() -> None:
    first = Span(WINDOW.from_us, WINDOW.from_us + 10 * SECOND_US)
    after = Span(first.to_us + PROOF_GAP_US, WINDOW.to_us)
    assert unproven(WINDOW, [first, after]) == ()
    later = Span(first.to_us + PROOF_GAP_US + 1, WINDOW.to_us)
    assert unproven(WINDOW, [later, first]) == (Span(first.to_us, later.from_us),)
