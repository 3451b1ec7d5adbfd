"""What reported time is worth, row by row."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.metering.counting import (
    CLOCK_DRIFT_PPM,
    CLOCK_TOLERANCE_US,
    REFUSED_US_MAX,
    RULES,
    Pause,
    Reach,
    UsageRow,
    Watermark,
    Window,
    count,
    due,
    most_us,
    refusals,
)
from ledger.log.codec import JSON_INT_MAX

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
    assert refused([fast]) == {"clock_drift": 1_000_000}, "an honest clock may run that fast"


@pytest.mark.parametrize(("over_us", "rule"), [(0, "clock_drift"), (1, "faster_than_time")])
def test_a_claim_above_what_an_honest_clock_can_show_is_raised(over_us: int, rule: str) -> None:
    """Formula: claimed > elapsed x 1.0005 + 2 s."""
    hour_us = 60 * MINUTE_US
    most = most_us(hour_us)
    assert most == hour_us + 1_800_000 + 2_000_000
    row_us = most + over_us
    claim = UsageRow(
        position=1,
        device_id="GPU-a",
        boot="b",
        mono_start_us=0,
        mono_end_us=row_us,
        wall_start_us=NOON_US,
        wall_end_us=NOON_US + hour_us,
        available_us=row_us,
        share_ppm=1_000_000,
        received_us=NOON_US + hour_us,
    )
    window = Window(NOON_US, NOON_US + 100 * MINUTE_US, ("GPU-a",), 1_000_000)
    counted = count([claim], window, {})
    assert counted.ppm_us == hour_us * 1_000_000, "what is above elapsed earns nothing either way"
    assert [(one.rule, one.us) for one in counted.refused] == [(rule, row_us - hour_us)]


@given(
    st.lists(
        st.tuples(
            st.integers(-5, 70),
            st.integers(1, 5),
            st.sampled_from(["GPU-a", "GPU-b", "GPU-z"]),
            st.integers(0, 3),
        ),
        max_size=40,
    ),
    st.integers(0, 40),
)
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


@given(
    st.lists(
        st.tuples(
            st.integers(1, 30),
            st.integers(-40, 40),
            st.integers(-1, 30),
            st.sampled_from(["GPU-a", "GPU-b", "GPU-z"]),
        ),
        max_size=30,
    ),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 30)), max_size=6),
)
def test_totals_do_not_depend_on_where_accruals_fall_however_the_clock_moves(
    shapes: list[tuple[int, int, int, str]], accruals: list[tuple[int, int]]
) -> None:
    """A row that ends after the hour waits; those behind it of its device, whose clock was set
    back, wait with it. Else the first would overlap what came after it.
    """
    rows, minute = [], 0
    for index, (minutes, stepped, late, device) in enumerate(shapes):
        end_us = NOON_US + (minute + minutes + stepped) * MINUTE_US
        rows.append(
            row(
                minute,
                minutes,
                device,
                position=index // 2 + 1,
                wall_start_us=end_us - minutes * MINUTE_US,
                wall_end_us=end_us,
                received_us=end_us + late * MINUTE_US,
            )
        )
        minute += minutes
    whole = count(rows, WINDOW, {})
    reached, position, until_us, resume, ppm_us = Reach(0, NOON_US), 0, NOON_US, 0, 0
    marks: dict[str, Watermark] = {}
    lost: dict[str, int] = {}
    for more_positions, more_minutes in [*accruals, (len(rows), -1)]:
        position, until_us = position + more_positions, until_us + more_minutes * MINUTE_US
        read = [r for r in rows if resume < r.position <= position]
        found = due(read, reached, None if more_minutes < 0 else until_us)
        counted = count(found.rows, WINDOW, marks)
        ppm_us += counted.ppm_us
        marks.update((mark.device_id, mark) for mark in counted.watermarks)
        for each in counted.refused:
            lost[each.rule] = lost.get(each.rule, 0) + each.us
        resume = position if found.resume_position is None else found.resume_position
        reached = Reach(position, until_us)
    assert ppm_us == whole.ppm_us
    assert tuple(marks[d] for d in WINDOW.device_ids if d in marks) == whole.watermarks
    assert lost == {each.rule: each.us for each in whole.refused}


def test_a_row_that_ends_ahead_of_its_receipt_is_judged_at_once_and_holds_up_nothing() -> None:
    """It earns nothing whenever it is judged; waiting for its end would mean reading everything
    after it again at every accrual.
    """
    ahead = row(500_000, received_us=NOON_US, position=1)
    found = due([ahead, row(0, position=2)], Reach(0, 0), NOON_US + MINUTE_US)
    assert found.resume_position is None
    assert [each.position for each in found.rows] == [1, 2]
    again = due([ahead, row(0, position=2)], Reach(2, NOON_US + MINUTE_US), None)
    assert again.rows == ()


def test_time_refused_is_told_up_to_the_greatest_number_a_fact_can_hold() -> None:
    """A thousand rows of a day each, in every report: signed nonsense must not stop the lease."""
    day = row(0, device="GPU-z", available_us=86_400_000_000)
    assert refused([day] * 110_000) == {"unknown_device": REFUSED_US_MAX}
    assert REFUSED_US_MAX <= JSON_INT_MAX


@given(
    st.lists(
        st.tuples(
            st.integers(-5, 70),
            st.integers(1, 5),
            st.sampled_from(["GPU-a", "GPU-b", "GPU-z"]),
            st.integers(-4, 3),
        ),
        max_size=30,
    )
)
def test_what_is_refused_row_by_row_is_what_is_refused_of_all(
    told: list[tuple[int, int, str, int]],
) -> None:
    """Formula: sum(refusals by rule) == refused of `count`."""
    rows = [
        row(minute, minutes, device, received_us=NOON_US + (minute + minutes + late) * MINUTE_US)
        for minute, minutes, device, late in told
    ]
    found = refusals(rows, WINDOW, {})
    counted = dict.fromkeys(RULES, 0)
    for one in found:
        counted[one.rule] += one.us
    assert {rule: us for rule, us in counted.items() if us} == refused(rows)


def test_an_hour_takes_the_rows_that_end_in_it_and_the_next_one_begins_before_the_rest() -> None:
    rows = [row(58), row(59), row(60), row(61)]
    hour_us = NOON_US + 60 * MINUTE_US
    first = due(rows, Reach(0, 0), hour_us)
    assert first.rows == (rows[0], rows[1])
    assert first.resume_position == rows[2].position - 1
    assert due(rows, Reach(0, 0), hour_us - 1).rows == (rows[0],)
    assert due(rows, Reach(0, 0), None).rows == tuple(rows)
    assert due(rows, Reach(0, 0), None).resume_position is None


def test_a_pause_is_no_time_in_which_a_device_could_earn() -> None:
    """20 minutes with a pause of 10: of 22 that a fast clock claims 10 are credited."""
    window = replace(WINDOW, pauses=(Pause(NOON_US + 5 * MINUTE_US, NOON_US + 15 * MINUTE_US),))
    fast = row(0, 20, available_us=22 * MINUTE_US)
    assert earned_us([fast], window) == 10 * MINUTE_US
    assert refused([fast], window) == {
        "outside_window": 10 * MINUTE_US,
        "faster_than_time": 2 * MINUTE_US,
    }
    assert earned_us([row(0, 5), row(15, 5)], window) == 10 * MINUTE_US
    assert earned_us([row(5, 10)], window) == 0


def test_what_a_clock_may_be_off_in_numbers() -> None:
    """Two seconds and 0.05 %; what is refused is told up to 2^53 - 1."""
    assert (CLOCK_TOLERANCE_US, CLOCK_DRIFT_PPM) == (2_000_000, 500)
    assert REFUSED_US_MAX == 9_007_199_254_740_991
