"""What signed rows of resources say of the node that sold them: nothing gains by them (R-7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.lease.lease import LATE_WINDOW_US
from domain.leasing.other_resources import ResourceReturned, stream_of
from domain.leasing.work import EndWork
from domain.metering.resources import MeteredRow
from domain.trust.evidence import SLACK_US, Fact, Lent, Row, missed, unmetered, weighed
from domain.trust.reputation_terms import NODE, PROVIDER, UPTIME
from domain.trust.scores import rate
from tests.domain.leasing.test_other_resources import accrue, row
from tests.domain.scenes import market
from tests.domain.scenes.market import LEASE, NOON_US
from tests.domain.scenes.metered import EXECUTOR, agreed
from tests.examples import examples
from tests.given import Scene

SECOND_US = 1_000_000
OVER_US = NOON_US + HOUR_US + LATE_WINDOW_US


def taken_up(maxima: dict[str, int] | None = None) -> Scene:
    """A lease that runs since noon; an executor of its node took up its work."""
    return agreed(maxima, taken_up=True)


def over(scene: Scene, after_us: int = HOUR_US) -> Scene:
    return scene.after(market.close(after_us)).after(market.settle(after_us + LATE_WINDOW_US))


def returned(scene: Scene, meter: str = "cpu", at_us: int = OVER_US) -> ResourceReturned:
    changes = scene.when(accrue(meter=meter, at_us=at_us)).changes()
    assert changes[0].stream == stream_of(LEASE, meter)
    assert isinstance(changes[0].fact, ResourceReturned)
    return changes[0].fact


def span(fact: ResourceReturned) -> tuple[int, int, int, int]:
    since_noon = (fact.from_us - NOON_US, fact.until_us - NOON_US)
    return (*since_noon, fact.ran_us, fact.told_us)


def test_the_end_of_a_meter_says_how_much_of_the_work_its_rows_tell() -> None:
    scene = taken_up().after(accrue(row(1, 10, 0, 600))).after(accrue(row(2, 10, 1_800, 2_400)))
    assert span(returned(over(scene))) == (0, HOUR_US, HOUR_US, 1_200 * SECOND_US)
    assert span(returned(over(scene), "network")) == (0, HOUR_US, HOUR_US, 0)


def test_rows_that_only_the_renters_maximum_refuses_are_told_all_the_same() -> None:
    """A renter who agrees to a millionth of a credit takes no reputation from a node."""
    scene = taken_up({"cpu": 1}).after(accrue(row(1, 14_400)))
    fact = returned(over(scene))
    assert fact.parts, "nothing was charged"
    assert fact.told_us == fact.ran_us == HOUR_US


def test_a_meter_of_which_all_was_charged_ends_too() -> None:
    scene = taken_up({"cpu": 144_000}).after(accrue(row(1, 14_400)))
    fact = returned(over(scene))
    assert fact.parts == ()
    assert fact.told_us == HOUR_US
    over(scene).after(accrue(at_us=OVER_US)).when(accrue(at_us=OVER_US)).then_nothing()


@pytest.mark.parametrize(
    ("bad", "told_s"),
    [
        ({"quantity": 10**18}, 0),
        ({"received_us": NOON_US + 100 * SECOND_US}, 0),
        ({"from_us": NOON_US - HOUR_US, "to_us": NOON_US}, 0),
        ({}, 3_600),
    ],
    ids=["more than any machine uses", "ahead of its receipt", "before the lease", "honest"],
)
def test_rows_that_cannot_be_true_tell_nothing(bad: dict[str, Any], told_s: int) -> None:
    scene = taken_up().after(accrue(replace(row(1, 10), **bad), at_us=NOON_US + 2 * HOUR_US))
    assert returned(over(scene)).told_us == told_s * SECOND_US


def test_time_after_the_work_and_work_that_nobody_took_up_are_no_time_to_meter() -> None:
    """A lease without work has nothing to measure, and a node that says so loses nothing."""
    assert span(returned(over(agreed())))[2:] == (0, 0)
    ended = EndWork(
        lease_id=LEASE,
        node_id=market.NODE,
        executor=EXECUTOR,
        outcome="exited",
        exit_code=0,
        at_us=NOON_US + 600 * SECOND_US,
    )
    scene = taken_up().after(accrue(row(1, 5, 0, 600))).after(ended)
    fact = returned(over(scene, 1_200 * SECOND_US))
    assert fact.ran_us == fact.told_us == 600 * SECOND_US


# --- what that counts for -----------------------------------------------------------------------

LENT = Lent(LEASE, "node_a", "prov_1", "acct_r", "acct_io", 2_000_000, False, 1)
FACT = Fact(9, 20_000 * 86_400_000_000, 0)


def rows_of(
    told_us: int,
    *,
    ran_us: int = HOUR_US,
    already: int = 0,
    has_told: bool = True,
    excused: int = 0,
) -> tuple[Row, ...]:
    return unmetered(FACT, LENT, ran_us, told_us, excused, 4, already, has_told=has_told)


def test_time_that_was_sold_and_not_metered_is_as_bad_as_silence() -> None:
    lost = missed(FACT, LENT, HOUR_US - SLACK_US, 4, was_announced=False)
    assert rows_of(0) == lost
    assert [(one.kind, one.input, one.good, one.total) for one in lost] == [
        (NODE, UPTIME, -(HOUR_US - SLACK_US) // 2, 0),
        (PROVIDER, UPTIME, -(HOUR_US - SLACK_US) // 2, 0),
    ]


def test_what_silence_took_already_is_not_taken_twice_nor_is_announced_time() -> None:
    silent = -missed(FACT, LENT, HOUR_US // 2, 4, was_announced=False)[0].good
    assert rows_of(0, already=silent)[0].good == rows_of(0)[0].good + silent
    assert rows_of(0, already=HOUR_US) == ()
    assert rows_of(0, excused=HOUR_US) == ()
    assert rows_of(HOUR_US - SLACK_US) == ()


def test_a_node_that_never_told_of_a_resource_never_sold_it() -> None:
    """A renter who names a maximum on a node that cannot measure takes nothing from it."""
    assert rows_of(0, has_told=False) == ()


minutes = st.lists(
    st.sampled_from(("tell", "skip", "inflate", "twice", "ahead", "later")), min_size=1, max_size=60
)


@examples(40)
@given(told=minutes)
def test_no_way_of_telling_is_better_than_telling_each_minute_once(told: list[str]) -> None:
    """good <= 0 and told <= ran, whatever the node signs; and to measure each minute costs nothing.

    So a score with these rows is never above the score without them.
    """
    scene, honest = taken_up(), taken_up()
    length_us = len(told) * 60 * SECOND_US
    rows: list[MeteredRow] = []
    for minute, how in enumerate(told):
        one = row(minute + 1, 60, 60 * minute, 60 * minute + 60)
        honest = honest.after(accrue(one, at_us=NOON_US + 2 * HOUR_US))
        if how == "inflate":
            one = replace(one, quantity=10**16)
        elif how == "ahead":
            one = replace(one, received_us=one.from_us)
        elif how == "later":
            one = row(minute + 1, 60, 60 * minute, 60 * minute + 90)
        rows += [] if how == "skip" else [one, one] if how == "twice" else [one]
    if rows:
        scene = scene.after(accrue(*rows, at_us=NOON_US + 2 * HOUR_US))
    at_us = NOON_US + length_us + LATE_WINDOW_US
    fact = returned(over(scene, length_us), at_us=at_us)
    best = returned(over(honest, length_us), at_us=at_us)
    assert 0 <= fact.told_us <= best.told_us == best.ran_us == fact.ran_us
    lost = rows_of(fact.told_us, ran_us=fact.ran_us)
    assert rows_of(best.told_us, ran_us=best.ran_us) == ()
    assert all(one.good < 0 and one.total == 0 for one in lost)
    there = Row(
        NODE,
        "node_a",
        UPTIME,
        2,
        2,
        2,
        "GPU-1",
        "",
        None,
        FACT.day,
        FACT.day,
        86_400 * SECOND_US,
        86_400 * SECOND_US,
    )
    mine = [one for one in lost if one.kind == NODE]
    before, after = (
        rate(NODE, weighed(found, FACT.day)).score_ppm for found in ([there], [there, *mine])
    )
    assert after <= before
