"""Time and energy are conserved, whatever a device does between two polls."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from node_reporter.clock import Moment
from node_reporter.gpus.seam import PPM, Health, Reading
from node_reporter.meter.meter import Bucket, Meter, Poll, Step, split
from tests.examples import examples

TICK_US = 1_000_000
LIMIT_MW = 700_000


def at(seconds: int) -> Moment:
    return Moment(seconds * 1_000_000, seconds * 1_000_000, 10**15 + seconds * 1_000_000)


def poll(
    seconds: int,
    health: Health = Health.HEALTHY,
    *,
    energy_mj: int | None = None,
    shape: str = "whole",
    epoch: int = 1,
) -> Poll:
    reading = Reading(shape=shape, energy_mj=energy_mj, power_limit_mw=LIMIT_MW, busy_ppm=PPM)
    nothing = Reading()
    return Poll(
        at=at(seconds),
        health=health,
        driver_epoch=epoch,
        reading=reading if health is Health.HEALTHY else nothing,
    )


def metered(polls: list[Poll]) -> list[Step]:
    meter = Meter(TICK_US)
    return [step for step in map(meter.feed, polls) if step is not None]


def in_bucket(steps: list[Step], bucket: Bucket) -> int:
    return sum(step.len_us for step in steps if step.bucket is bucket)


def test_a_step_is_available_when_both_its_ends_were_healthy() -> None:
    steps = metered([poll(0), poll(1), poll(2)])
    assert [step.bucket for step in steps] == [Bucket.AVAILABLE, Bucket.AVAILABLE]


def test_an_outage_widens_by_one_step_at_each_edge_and_energy_bridges_it() -> None:
    steps = metered(
        [
            poll(0, energy_mj=10),
            poll(1, energy_mj=20),
            poll(2, Health.GONE),
            poll(3, Health.GONE),
            poll(4, energy_mj=90),
            poll(5, energy_mj=100),
        ]
    )
    assert in_bucket(steps, Bucket.AVAILABLE) == 2_000_000
    assert in_bucket(steps, Bucket.UNAVAILABLE) == 3_000_000
    assert sum(step.energy_mj or 0 for step in steps) == 90
    assert sum(step.energy_gaps for step in steps) == 0


def test_a_blind_poll_makes_time_unknown_not_unavailable() -> None:
    steps = metered([poll(0), poll(1, Health.BLIND), poll(2)])
    assert in_bucket(steps, Bucket.UNKNOWN) == 2_000_000
    assert in_bucket(steps, Bucket.UNAVAILABLE) == 0


def test_a_lost_device_seen_blind_at_the_other_end_is_unavailable() -> None:
    steps = metered([poll(0, Health.GONE), poll(1, Health.BLIND)])
    assert steps[0].bucket is Bucket.UNAVAILABLE


def test_a_step_longer_than_two_and_a_half_ticks_is_unknown() -> None:
    assert metered([poll(0), poll(3)])[0].bucket is Bucket.UNKNOWN
    assert metered([poll(0), poll(2)])[0].bucket is Bucket.AVAILABLE


def test_a_reshape_books_its_step_as_unknown_and_closes_the_row() -> None:
    steps = metered([poll(0), poll(1, shape="mig:1g.10gb"), poll(2, shape="mig:1g.10gb")])
    assert [step.bucket for step in steps] == [Bucket.UNKNOWN, Bucket.AVAILABLE]
    assert steps[0].closes == "reshape"


def test_a_reshape_hidden_by_an_outage_is_noticed_after_it() -> None:
    steps = metered([poll(0), poll(1, Health.GONE), poll(2, shape="mig:1g.10gb")])
    assert [step.closes for step in steps] == ["fault", "reshape"]


def test_a_driver_reload_is_a_reshape_and_never_a_jump_of_energy() -> None:
    steps = metered([poll(0, energy_mj=500), poll(1, energy_mj=600, epoch=2)])
    assert steps[0].bucket is Bucket.UNKNOWN
    assert (steps[0].energy_mj, steps[0].energy_gaps) == (None, 1)


def test_energy_that_runs_backwards_or_leaps_counts_a_gap_and_is_never_guessed() -> None:
    steps = metered(
        [
            poll(0, energy_mj=1_000),
            poll(1, energy_mj=500),
            poll(2, energy_mj=600),
            poll(3, energy_mj=10**15),
            poll(4, energy_mj=10**15 + 7),
        ]
    )
    assert [step.energy_mj for step in steps] == [None, 100, None, 7]
    assert [step.energy_gaps for step in steps] == [1, 0, 1, 0]


def test_energy_at_the_power_limit_plus_a_fifth_is_believed_and_one_more_is_not() -> None:
    most_mj = LIMIT_MW * 6 // 5
    believed = metered([poll(0, energy_mj=0), poll(1, energy_mj=most_mj)])
    refused = metered([poll(0, energy_mj=0), poll(1, energy_mj=most_mj + 1)])
    assert (believed[0].energy_mj, refused[0].energy_mj) == (most_mj, None)


def test_what_a_device_cannot_tell_is_none_and_never_zero() -> None:
    silent = Reading()
    polls = [
        Poll(at=at(second), health=Health.HEALTHY, driver_epoch=1, reading=silent)
        for second in range(2)
    ]
    step = metered(polls)[0]
    assert (step.busy_us, step.mem_byte_us, step.energy_mj) == (None, None, None)
    assert step.bucket is Bucket.AVAILABLE


def test_a_poll_that_comes_late_changes_nothing() -> None:
    meter = Meter(TICK_US)
    assert meter.feed(poll(5)) is None
    assert meter.feed(poll(4)) is None
    step = meter.feed(poll(6))
    assert step is not None
    assert (step.start_us, step.end_us) == (5_000_000, 6_000_000)


def test_time_since_an_earlier_process_is_an_unknown_gap() -> None:
    meter = Meter(TICK_US)
    meter.resume(1_000_000, 10**15, 1)
    step = meter.feed(poll(4, epoch=2))
    assert step is not None
    assert (step.len_us, step.bucket, step.closes) == (3_000_000, Bucket.UNKNOWN, "gap")


def test_a_wall_reading_within_a_millisecond_repeats_the_last_offset() -> None:
    meter = Meter(TICK_US)
    meter.feed(Poll(at=Moment(0, 0, 10**15), health=Health.HEALTHY, driver_epoch=1))
    near = Moment(10**6, 10**6, 10**15 + 10**6 + 900)
    far = Moment(2 * 10**6, 2 * 10**6, 10**15 + 2 * 10**6 + 1_001)
    steps = [meter.feed(Poll(at=m, health=Health.HEALTHY, driver_epoch=1)) for m in (near, far)]
    assert [(s.wall_from_us, s.wall_to_us) for s in steps if s] == [
        (10**15, 10**15),
        (10**15, 10**15 + 1_001),
    ]


@dataclass(frozen=True)
class Happening:
    """One thing a schedule lets happen before the next poll."""

    after_us: int
    health: Health
    energy_mj: int
    what: str


happenings = st.lists(
    st.builds(
        Happening,
        after_us=st.integers(1, 9_000_000),
        health=st.sampled_from(Health),
        energy_mj=st.integers(0, 2_000_000),
        what=st.sampled_from(
            ["nothing", "nothing", "reload", "reshape", "suspend", "backwards", "wall step"]
        ),
    ),
    min_size=1,
    max_size=40,
)


def polls_of(schedule: list[Happening]) -> list[Poll]:
    """What a meter would be fed if all this happened."""
    mono = boot = wall = 10**9
    wall += 10**15
    energy, epoch, shape = 0, 1, "whole"
    polls = []
    for index, one in enumerate(schedule):
        mono, boot, wall = mono + one.after_us, boot + one.after_us, wall + one.after_us
        energy += one.energy_mj
        if one.what == "reload":
            epoch, energy = epoch + 1, one.energy_mj
        elif one.what == "reshape":
            shape = f"mig:{index}"
        elif one.what == "suspend":
            boot, wall = boot + 10**7, wall + 10**7
        elif one.what == "backwards":
            energy = max(0, energy - 3 * one.energy_mj)
        elif one.what == "wall step":
            wall -= 86_400_000_000
        reading = Reading(
            shape=shape,
            energy_mj=energy,
            power_limit_mw=LIMIT_MW,
            busy_ppm=one.after_us % (PPM + 1),
            mem_used_bytes=one.energy_mj,
        )
        healthy = one.health is Health.HEALTHY
        polls.append(
            Poll(
                at=Moment(mono, boot, wall),
                health=one.health,
                driver_epoch=epoch,
                reading=reading if healthy else Reading(),
            )
        )
    return polls


@examples(300)
@given(happenings)
def test_time_is_conserved_over_any_schedule_of_faults(schedule: list[Happening]) -> None:
    polls = polls_of(schedule)
    steps = metered(polls)
    elapsed_us = polls[-1].at.mono_us - polls[0].at.mono_us
    assert sum(in_bucket(steps, bucket) for bucket in Bucket) == elapsed_us
    assert all(a.end_us == b.start_us for a, b in pairwise(steps))
    for step in steps:
        assert step.busy_us is None or 0 <= step.busy_us <= step.len_us
        assert step.bucket is Bucket.AVAILABLE or step.busy_us is None


@examples(300)
@given(happenings)
def test_energy_is_the_sum_of_the_believable_deltas_between_good_values(
    schedule: list[Happening],
) -> None:
    polls = polls_of(schedule)
    good = [one for one in polls if one.health is Health.HEALTHY]
    believed = gaps = 0
    for a, b in pairwise(good):
        delta_mj = (b.reading.energy_mj or 0) - (a.reading.energy_mj or 0)
        bound_nj = LIMIT_MW * (b.at.mono_us - a.at.mono_us) * 12 // 10
        if a.driver_epoch == b.driver_epoch and 0 <= delta_mj * 1_000_000 <= bound_nj:
            believed += delta_mj
        else:
            gaps += 1
    steps = metered(polls)
    assert sum(step.energy_mj or 0 for step in steps) == believed
    assert sum(step.energy_gaps for step in steps) == gaps


@given(st.data())
def test_splits_sum_to_the_whole(data: st.DataObject) -> None:
    length = data.draw(st.integers(2, 10**9))
    step = Step(
        start_us=7,
        end_us=7 + length,
        bucket=Bucket.AVAILABLE,
        driver_epoch=1,
        wall_from_us=10**15,
        wall_to_us=10**15 + 5_000,
        suspended_us=3,
        samples=1,
        busy_us=data.draw(st.none() | st.integers(0, length)),
        mem_byte_us=data.draw(st.none() | st.integers(0, 10**20)),
        energy_mj=data.draw(st.none() | st.integers(0, 10**9)),
        energy_gaps=1,
    )
    a, b = split(step, 7 + data.draw(st.integers(1, length - 1)))
    assert a.len_us + b.len_us == step.len_us
    assert (a.wall_from_us, a.wall_to_us, b.wall_to_us) == (10**15, b.wall_from_us, 10**15 + 5_000)
    for name in ("suspended_us", "samples", "energy_gaps"):
        assert getattr(a, name) + getattr(b, name) == getattr(step, name)
    for name in ("busy_us", "mem_byte_us", "energy_mj"):
        whole, parts = getattr(step, name), (getattr(a, name), getattr(b, name))
        assert parts == (None, None) if whole is None else sum(parts) == whole
    for part in (a, b):
        assert part.busy_us is None or part.busy_us <= part.len_us
