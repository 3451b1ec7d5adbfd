"""What another renter waits while one asks as much as it may, on a machine of one processor: Python
runs one thread of a process at a time, so that each request beside another makes both slower.

    others' p99 under one renter's worst behaviour <= 2 x quiet

Time is the test's own, and what a request costs is as it was measured on two cores, some slow,
some fast. The same on a real server is a benchmark: `benchmarks/door/under_attack.py`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pytest

from api.door.limits import Buckets
from api.door.lines.turns import TooMany, Turn, Turns
from api.settings import Settings

SECONDS, RATE, BEFORE_S = 25.0, 20, 1.0
FIGURE = 2.0


class Cost(NamedTuple):
    """Seconds of the processor, half before and half after it waits for the database."""

    processor_s: float
    database_s: float


OFFERS, LEASES, OPEN, CLOSE = (
    Cost(0.03, 0.012),
    Cost(0.014, 0.002),
    Cost(0.03, 0.03),
    Cost(0.01, 0.015),
)
HARMLESS = (OFFERS, LEASES, OFFERS, LEASES, OPEN)
ATTACKS = {
    "reads": (Cost(0.09, 0.02), LEASES, Cost(0.01, 0.02)),
    "leases": (OPEN, CLOSE),
    "unmatched": (Cost(0.038, 0.01),),
    "closes": (Cost(0.005, 0.015),),
}
FAST_OPEN, FAST_CLOSE = Cost(0.006, 0.004), Cost(0.003, 0.003)
FAST_HARMLESS = (Cost(0.005, 0.003), Cost(0.003, 0.0015)) * 2 + (FAST_OPEN,)
FAST_ATTACKS = {
    "reads": (Cost(0.013, 0.012), Cost(0.0095, 0.007), Cost(0.0013, 0.0014)),
    "leases": (FAST_OPEN, FAST_CLOSE),
    "unmatched": (Cost(0.008, 0.003),),
    "closes": (Cost(0.003, 0.004),),
}
"""On cores that answer faster than a caller may ask: what a rate holds back comes at once."""


class Machine:
    """Requests share one processor in equal parts, and wait for the database side by side."""

    def __init__(self) -> None:
        self.now_s = 0.0
        settings = Settings()
        self.turns = Turns(
            settings.requests_at_once,
            settings.account_requests_at_once,
            settings.account_requests_waiting,
            lambda: self.now_s,
        )
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._computing: list[list[Any]] = []
        self._number = count()
        self._again_s: float | None = None

    def at(self, at_s: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._due, (at_s, next(self._number), do))

    def ask(self, name: str, cost: Cost, done: Callable[[], None]) -> None:
        """`done` is called when it is answered; who is refused asks again a second later."""
        made: list[Turn] = []

        def begin() -> None:
            self._compute(cost.processor_s / 2, wait)

        def wait() -> None:
            self.at(self.now_s + cost.database_s, lambda: self._compute(cost.processor_s / 2, end))

        def end() -> None:
            self.turns.end(made[0])
            self._look()
            done()

        try:
            made.append(self.turns.ask(name, begin))
        except TooMany:
            self.at(self.now_s + 1.0, lambda: self.ask(name, cost, done))
        self._look()

    def run(self, until_s: float) -> None:
        while (now_s := self._next_s()) <= until_s:
            passed_s = (now_s - self.now_s) / max(1, len(self._computing))
            self.now_s = now_s
            for one in self._computing:
                one[0] -= passed_s
            ended = [one for one in self._computing if one[0] <= 1e-9]
            self._computing = [one for one in self._computing if one[0] > 1e-9]
            for _, then in ended:
                then()
            while self._due and self._due[0][0] <= now_s:
                heapq.heappop(self._due)[2]()
            self._look()

    def _compute(self, seconds: float, then: Callable[[], None]) -> None:
        self._computing.append([seconds, then])

    def _look(self) -> None:
        seconds = self.turns.look()
        self._again_s = None if seconds is None else self.now_s + seconds

    def _next_s(self) -> float:
        times = [float("inf")]
        if self._computing:
            least = min(left for left, _ in self._computing)
            times.append(self.now_s + least * len(self._computing))
        times += [self._due[0][0]] if self._due else []
        times += [] if self._again_s is None else [self._again_s]
        return max(self.now_s, min(times))


class Speed(NamedTuple):
    """Of the processor, and how much longer than measured the database takes."""

    processor: float = 1.0
    database_times: float = 1.0

    def of(self, cost: Cost) -> Cost:
        return Cost(cost.processor_s / self.processor, cost.database_s * self.database_times)


def harmless(
    machine: Machine, speed: Speed, kinds: Sequence[Cost] = HARMLESS, close: Cost = CLOSE
) -> list[float]:
    """What each request waits, of a renter who asks at a steady rate; filled while it runs."""
    took: list[float] = []

    def ask(kind: Cost) -> None:
        asked_s = machine.now_s

        def done() -> None:
            took.append(machine.now_s - asked_s)
            if kind is kinds[-1]:
                machine.ask("other", speed.of(close), lambda: None)

        machine.ask("other", speed.of(kind), done)

    for number in range(int(SECONDS * RATE)):
        kind = kinds[number % len(kinds)]
        machine.at(BEFORE_S + number / RATE, partial(ask, kind))
    return took


def p99(machine: Machine, took: list[float]) -> float:
    machine.run(BEFORE_S + SECONDS)
    assert len(took) >= SECONDS * RATE - 10, "all are answered in time"
    return sorted(took)[int(len(took) * 0.99)]


def quiet(speed: Speed) -> float:
    machine = Machine()
    return p99(machine, harmless(machine, speed))


@pytest.mark.parametrize(
    ("connections", "processor"), [(64, 1.0), (64, 1.4), (9, 1.4), (5, 1.4), (3, 1.4), (2, 1.4)]
)
@pytest.mark.parametrize("name", ATTACKS)
def test_others_wait_at_most_twice_as_long_as_when_all_is_quiet(
    name: str, connections: int, processor: float
) -> None:
    """Also one with few connections, each of which asks again as soon as it is answered."""
    machine, speed, kinds, answered = Machine(), Speed(processor), count(), count()
    took = harmless(machine, speed)

    def worst() -> None:
        cost = ATTACKS[name][next(kinds) % len(ATTACKS[name])]
        machine.ask("worst", speed.of(cost), again)

    def again() -> None:
        next(answered)
        machine.at(machine.now_s + 0.002, worst)

    for number in range(connections):
        machine.at(BEFORE_S + number / 1_000, worst)
    assert p99(machine, took) <= FIGURE * quiet(speed)
    assert next(answered) >= SECONDS * 5, "who asks too much is served, too: what the other leaves"


@pytest.mark.parametrize("name", FAST_ATTACKS)
def test_what_a_rate_held_back_and_comes_at_once_delays_others_little(name: str) -> None:
    """Between two gusts a fast server is idle, and what the caller owed is forgiven: each gust
    began with four at work.
    """
    machine, speed, kinds = Machine(), Speed(), count()
    took = harmless(machine, speed, FAST_HARMLESS, FAST_CLOSE)
    settings = Settings()
    rate = Buckets(
        settings.requests_per_second, settings.requests_burst, lambda: int(machine.now_s * 10**9)
    )

    def worst() -> None:
        if not rate.spend("worst").allowed:
            machine.at(machine.now_s + 1.0, worst)
            return
        cost = FAST_ATTACKS[name][next(kinds) % len(FAST_ATTACKS[name])]
        machine.ask("worst", cost, lambda: machine.at(machine.now_s + 0.002, worst))

    for number in range(64):
        machine.at(BEFORE_S + number / 1_000, worst)
    alone = Machine()
    quietly = p99(alone, harmless(alone, speed, FAST_HARMLESS, FAST_CLOSE))
    assert p99(machine, took) <= FIGURE * quietly


@pytest.mark.parametrize(("cost", "per_s"), [(Cost(0.005, 0.015), 20), (Cost(0.012, 0.001), 14)])
def test_who_asks_for_little_holds_up_nobody_who_asks_for_more(cost: Cost, per_s: int) -> None:
    """As closes and large bodies come that a rate holds back: there is room for both, and the one
    who asked for more waited 250 ms for each request, then for all that had gathered.
    """
    machine, speed = Machine(), Speed(1.25, 4.0)
    took = harmless(machine, speed)
    for number in range(int(SECONDS * per_s)):
        ask = partial(machine.ask, "little", speed.of(cost), lambda: None)
        machine.at(BEFORE_S + number / per_s, ask)
    assert p99(machine, took) <= FIGURE * quiet(speed)
