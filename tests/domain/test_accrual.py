"""What reported time is worth, row by row."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.accrual import CLOCK_TOLERANCE_US, Reach, UsageRow, Window, count, due

NOON_US = 1_795_176_000_000_000
MINUTE_US = 60_000_000
WINDOW = Window(NOON_US, NOON_US + 60 * MINUTE_US, ("GPU-a", "GPU-b"), 1_000_000)


def row(minute: int, minutes: int = 1, device: str = "GPU-a", **changes: object) -> UsageRow:
    """Time of one device, from `minute` after noon; received as it ends."""
    start_us, end_us = minute * MINUTE_US, (minute + minutes) * MINUTE_US
    honest = UsageRow(
        position=minute + 100,
        device_id=device,
        boot="boot-1",
        mono_start_us=10**9 + start_us,
        mono_end_us=10**9 + end_us,
        wall_start_us=NOON_US + start_us,
        wall_end_us=NOON_US + end_us,
        available_us=end_us - start_us,
        share_ppm=1_000_000,
        received_us=NOON_US + end_us,
    )
    return replace(honest, **changes)  # type: ignore[arg-type]


def refused(rows: list[UsageRow], window: Window = WINDOW) -> dict[str, int]:
    return {lost.rule: lost.us for lost in count(rows, window, {}).refused}


def earned_us(rows: list[UsageRow], window: Window = WINDOW) -> int:
    return count(rows, window, {}).ppm_us // 1_000_000


def test_available_time_inside_the_window_is_credited() -> None:
    assert earned_us([row(0), row(1), row(2, device="GPU-b")]) == 3 * MINUTE_US


def test_a_gap_costs_nothing() -> None:
    assert earned_us([row(0), row(30)]) == 2 * MINUTE_US


def test_the_share_is_the_lesser_of_lease_and_row() -> None:
    half = replace(WINDOW, share_ppm=500_000)
    assert earned_us([row(0)], half) == MINUTE_US // 2
    assert earned_us([row(0, share_ppm=250_000)], half) == MINUTE_US // 4


def test_a_device_the_lease_does_not_hold_earns_nothing() -> None:
    assert refused([row(0, device="GPU-z")]) == {"unknown_device": MINUTE_US}


def test_a_row_that_overlaps_time_already_counted_earns_nothing() -> None:
    assert refused([row(0, 2), row(1, 2), row(2, 1)]) == {"overlap": 2 * MINUTE_US}


def test_after_a_reboot_overlap_is_judged_by_the_wall_clock() -> None:
    again = row(1, 2, boot="boot-2", mono_start_us=5, mono_end_us=5 + 2 * MINUTE_US)
    assert refused([row(0, 2), again]) == {"overlap": 2 * MINUTE_US}
    later = replace(
        again, wall_start_us=NOON_US + 2 * MINUTE_US, wall_end_us=NOON_US + 4 * MINUTE_US
    )
    assert refused([row(0, 2), replace(later, received_us=later.wall_end_us)]) == {}


def test_a_row_that_ends_after_its_receipt_does_not_move_the_watermark() -> None:
    ahead = row(0, received_us=NOON_US + MINUTE_US - CLOCK_TOLERANCE_US - 1)
    counted = count([ahead], WINDOW, {})
    assert counted.watermarks == ()
    assert refused([ahead]) == {"ahead_of_receipt": MINUTE_US}
    assert earned_us([ahead, row(0)]) == MINUTE_US


def test_time_outside_the_window_is_taken_from_available_time() -> None:
    early = row(-1, 2)
    assert earned_us([early]) == MINUTE_US
    assert refused([early]) == {"outside_window": MINUTE_US}
    assert earned_us([row(59, 2)]) == MINUTE_US


def test_nobody_earns_faster_than_the_servers_clock() -> None:
    fast = row(0, 1, received_us=NOON_US + MINUTE_US - 1_000_000)
    assert earned_us([fast]) == MINUTE_US - 1_000_000
    assert refused([fast]) == {"faster_than_time": 1_000_000}


@given(
    st.lists(
        st.tuples(
            st.integers(-5, 70), st.integers(1, 5), st.sampled_from(["GPU-a", "GPU-b", "GPU-z"]),
            st.integers(0, 3),
        ),
        max_size=40,
    ),
    st.integers(0, 40),
)  # fmt: skip
def test_totals_do_not_depend_on_how_rows_are_batched(
    shapes: list[tuple[int, int, str, int]], cut: int
) -> None:
    rows = [
        row(minute, minutes, device, received_us=NOON_US + (minute + minutes + late) * MINUTE_US)
        for minute, minutes, device, late in shapes
    ]
    whole = count(rows, WINDOW, {})
    first = count(rows[:cut], WINDOW, {})
    second = count(rows[cut:], WINDOW, {mark.device_id: mark for mark in first.watermarks})
    assert whole.ppm_us == first.ppm_us + second.ppm_us
    assert whole.watermarks == second.watermarks


@given(st.lists(st.tuples(st.integers(-5, 70), st.integers(1, 5), st.integers(-2, 3)), max_size=40))
def test_a_device_never_earns_more_than_the_window_and_twice_the_same_rows_earn_once(
    shapes: list[tuple[int, int, int]],
) -> None:
    rows = [
        row(minute, minutes, received_us=NOON_US + (minute + minutes + late) * MINUTE_US)
        for minute, minutes, late in shapes
    ]
    assert earned_us(rows) <= WINDOW.end_us - WINDOW.opened_us
    if rows:
        newest = max(rows, key=lambda r: r.received_us)
        assert earned_us(rows) <= max(0, newest.received_us - WINDOW.opened_us)
    repeated = [r for r in sorted(rows, key=lambda r: r.wall_end_us) for _ in range(2)]
    once = sorted(rows, key=lambda r: r.wall_end_us)
    assert earned_us(repeated) == earned_us(once)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=30),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60)), max_size=6),
)
def test_every_row_is_consumed_exactly_once_however_accruals_fall(
    shapes: list[tuple[int, int]], accruals: list[tuple[int, int]]
) -> None:
    rows = [
        row(minute, minutes, position=index // 3 + 1)
        for index, (minute, minutes) in enumerate(shapes)
    ]
    consumed: list[UsageRow] = []
    reached, position, until, resume = Reach(0, 0), 0, 0, 0
    for more_positions, more_minutes in accruals:
        position, until = position + more_positions, until + more_minutes
        until_us = NOON_US + until * MINUTE_US
        read = [r for r in rows if resume < r.position <= position]
        found = due(read, reached, until_us)
        consumed.extend(found.rows)
        resume = position if found.resume_position is None else found.resume_position
        reached = Reach(position, until_us)
    rest = due([r for r in rows if r.position > resume], reached, None)
    assert sorted((*consumed, *rest.rows), key=repr) == sorted(rows, key=repr)
