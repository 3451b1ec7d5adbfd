"""Who is next: by arrival, by fair share, by dominant share; and who may not delay the earliest."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.pools.pool import (
    ARRIVAL,
    DEFAULT_POLICY,
    DRF,
    FAIR_SHARE,
    FIRST_COME,
    PRIORITY,
    SHARE,
    PoolPolicy,
    PoolQueue,
)
from domain.pools.scheduling import (
    CPU_CORES,
    GPU,
    Holding,
    Inputs,
    Quantity,
    Waiting,
    is_held_back,
    next_request,
    queue_for,
    ranked,
)

GPUS = 1_000_000
NOW_US, MINUTE_US, HOUR_US = 1_795_176_000_000_000, 60_000_000, 3_600_000_000


def policy(scheduler: str, *queues: PoolQueue, **changes: object) -> PoolPolicy:
    made = replace(DEFAULT_POLICY, scheduler=scheduler, queues=queues)
    return replace(made, **changes)  # type: ignore[arg-type]


def queue(name: str, **changes: object) -> PoolQueue:
    made = PoolQueue(
        name=name,
        parent=None,
        deserved_ppm=0,
        weight=1,
        priority=0,
        account_id=name,
        project_id=None,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def waits(place: int, who: str, gpus: int = 1, *, fits: bool = True, **changes: object) -> Waiting:
    made = Waiting(
        request_id=f"r{place}",
        queue=who,
        place=place,
        is_gang=False,
        demand=(Quantity(GPU, gpus * GPUS),),
        fits=fits,
        delays_first=False,
        since_us=NOW_US,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def holds(who: str, gpus: int, used_gpu_us: int = 0, cores: int = 0) -> Holding:
    held = (Quantity(GPU, gpus * GPUS), Quantity(CPU_CORES, cores))
    return Holding(who, held, used_gpu_us)


def inputs(waiting: list[Waiting], *held: Holding, gpus: int = 10, cores: int = 0) -> Inputs:
    return Inputs(
        capacity=(Quantity(GPU, gpus * GPUS), Quantity(CPU_CORES, cores)),
        held=held,
        waiting=tuple(waiting),
        window_gpu_us=gpus * 10 * HOUR_US,
        at_us=NOW_US,
    )


def test_first_come_takes_the_earliest_that_fits() -> None:
    asked = [waits(1, "a", fits=False), waits(2, "b"), waits(3, "c")]
    assert next_request(policy(FIRST_COME), inputs(asked)) == "r2"
    assert next_request(policy(FIRST_COME), inputs([waits(1, "a", fits=False)])) is None


def test_a_higher_priority_goes_before_an_earlier_request() -> None:
    asked = [waits(1, "a"), waits(2, "vip")]
    ranks = (queue("vip", priority=9),)
    assert next_request(policy(FIRST_COME, *ranks), inputs(asked)) == "r2"
    by_arrival = policy(FIRST_COME, *ranks, precedence=(ARRIVAL,))
    assert next_request(by_arrival, inputs(asked)) == "r1"


def test_drf_takes_the_smallest_dominant_share_per_weight() -> None:
    """a holds 4 of 10 GPUs, b holds 3 GPUs but 50 of 100 cores: b's dominant share is larger."""
    asked = [waits(1, "b"), waits(2, "a")]
    seen = inputs(asked, holds("a", 4), holds("b", 3, cores=50), cores=100)
    assert next_request(policy(DRF), seen) == "r2"
    heavy = policy(DRF, queue("b", weight=2))
    assert next_request(heavy, seen) == "r1", "0.5 / 2 is less than 0.4"


def test_a_queue_whose_earliest_does_not_fit_is_skipped_and_the_others_go_on() -> None:
    asked = [waits(1, "a", 8, fits=False), waits(2, "a"), waits(3, "b")]
    seen = inputs(asked, holds("b", 5))
    assert next_request(policy(DRF), seen) == "r3", "not a's later one"


def test_fair_share_serves_who_is_below_its_deserved_share_first() -> None:
    asked = [waits(1, "a", 5), waits(2, "b", 5)]
    owed = policy(FAIR_SHARE, queue("b", deserved_ppm=4 * GPUS))
    assert next_request(owed, inputs(asked, holds("a", 0), holds("b", 3))) == "r2"
    assert next_request(owed, inputs(asked, holds("a", 0), holds("b", 4))) == "r1"


def test_fair_share_compares_parents_before_their_children() -> None:
    queues = (
        queue("left", account_id=None),
        queue("right", account_id=None),
        queue("l", parent="left"),
        queue("r1", parent="right"),
        queue("r2", parent="right"),
    )
    asked = [waits(1, "r1", 5), waits(2, "r2", 5), waits(3, "l", 5)]
    seen = inputs(asked, holds("r1", 4), holds("r2", 0), holds("l", 2))
    order = [one.queue for one in ranked(policy(FAIR_SHARE, *queues), seen)]
    assert order == ["l", "r2", "r1"]


def test_who_used_much_before_waits_longer() -> None:
    asked = [waits(1, "often", 9), waits(2, "never", 9)]
    seen = inputs(asked, holds("often", 2, used_gpu_us=60 * HOUR_US), holds("never", 2))
    forgets = policy(FAIR_SHARE)
    remembers = policy(FAIR_SHARE, history_ppm=1_000_000)
    assert next_request(forgets, seen) == "r1"
    assert next_request(remembers, seen) == "r2"


def test_after_the_patience_who_would_delay_the_earliest_is_held_back() -> None:
    first = waits(1, "a", 8, fits=False, is_gang=True, since_us=NOW_US - 30 * MINUTE_US)
    takes_it, elsewhere = waits(2, "b", delays_first=True), waits(3, "c")
    seen = inputs([first, takes_it, elsewhere])
    assert next_request(policy(FIRST_COME), seen) == "r3"
    assert is_held_back(policy(FIRST_COME), seen, takes_it)
    patient = policy(FIRST_COME, gang_patience_us=31 * MINUTE_US)
    assert next_request(patient, seen) == "r2"


def test_a_project_s_queue_goes_before_its_account_s() -> None:
    queues = (queue("all", account_id="acct"), queue("one", account_id="acct", project_id="p"))
    rules = policy(FAIR_SHARE, *queues)
    assert queue_for(rules, "acct", "p") == "one"
    assert queue_for(rules, "acct", "other") == "all"
    assert queue_for(rules, "stranger", "p") == "stranger"


NAMES = ("a", "b", "c", "d")


@st.composite
def seen(draw: st.DrawFn) -> tuple[PoolPolicy, Inputs]:
    chosen = draw(st.sampled_from((FIRST_COME, FAIR_SHARE, DRF)))
    precedence = draw(st.sampled_from(((ARRIVAL,), (SHARE, ARRIVAL), (PRIORITY, SHARE, ARRIVAL))))
    queues = tuple(
        queue(
            name,
            deserved_ppm=draw(st.integers(0, 4)) * GPUS,
            weight=draw(st.integers(1, 4)),
            priority=draw(st.integers(0, 2)),
        )
        for name in NAMES[: draw(st.integers(0, 4))]
    )
    rules = policy(
        chosen, *queues, precedence=precedence, history_ppm=draw(st.sampled_from((0, 10**6)))
    )
    asked = [
        waits(
            place,
            draw(st.sampled_from(NAMES)),
            draw(st.integers(1, 5)),
            fits=draw(st.booleans()),
            delays_first=place > 1 and draw(st.booleans()),
            since_us=NOW_US - draw(st.integers(0, 60)) * MINUTE_US,
        )
        for place in range(1, draw(st.integers(2, 7)))
    ]
    held = [holds(name, draw(st.integers(0, 4)), draw(st.integers(0, 10**12))) for name in NAMES]
    return rules, inputs(asked, *held)


@given(seen())
def test_every_scheduler_serves_somebody_as_long_as_somebody_may_be_served(
    found: tuple[PoolPolicy, Inputs],
) -> None:
    rules, asked = found
    chosen = next_request(rules, asked)
    eligible = [
        one for one in ranked(rules, asked) if one.fits and not is_held_back(rules, asked, one)
    ]
    assert (chosen is None) == (not eligible)
    assert chosen is None or chosen == eligible[0].request_id
    assert len({one.queue for one in ranked(rules, asked)}) == len({q.queue for q in asked.waiting})


@given(seen(), st.randoms(use_true_random=False))
def test_the_order_in_which_holdings_are_listed_makes_no_difference(
    found: tuple[PoolPolicy, Inputs], random: st.DataObject
) -> None:
    rules, asked = found
    held = list(asked.held)
    random.shuffle(held)  # type: ignore[attr-defined]
    assert next_request(rules, asked) == next_request(rules, replace(asked, held=tuple(held)))


@pytest.mark.parametrize("scheduler", [FAIR_SHARE, DRF])
def test_repeating_decisions_shares_eight_gpus_between_two_greedy_users(scheduler: str) -> None:
    held = {"a": 0, "b": 0}
    for turn in range(8):
        asked = [waits(2 * turn + 1, "a"), waits(2 * turn + 2, "b")]
        now = inputs(asked, *(holds(name, gpus) for name, gpus in held.items()), gpus=8)
        chosen = next_request(policy(scheduler), now)
        held[next(one.queue for one in asked if one.request_id == chosen)] += 1
    assert held == {"a": 4, "b": 4}
