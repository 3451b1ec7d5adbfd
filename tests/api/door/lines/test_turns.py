"""Whose request is at work next: bounds and fairness of the lines, with a clock moved by hand."""

from __future__ import annotations

import asyncio
import heapq
from contextlib import closing, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.door.auth import EXECUTOR, KEY, NODE, PUBLIC, Principal
from api.door.errors import Problem
from api.door.lines import turns
from api.door.lines.turns import CREDIT_S, DEBT_S, YIELD_S, TooMany, Turn, Turns, Waiting, caller_of


class Hall:
    """Requests that cost what the test says, served as `Turns` lets them begin."""

    def __init__(self, at_once: int, each: int, waiting: int) -> None:
        self.now_s = 100.0
        self.turns = Turns(at_once, each, waiting, lambda: self.now_s)
        self.begun: list[tuple[float, str]] = []
        self.running: list[tuple[float, int, Turn]] = []
        self._number = 0

    def ask(self, name: str, cost_s: float) -> Turn:
        made: list[Turn] = []

        def begin() -> None:
            self._number += 1
            self.begun.append((self.now_s, name))
            ends = self.now_s + cost_s, self._number
            if made:
                heapq.heappush(self.running, (*ends, made[0]))
            else:
                at_once.append(ends)

        at_once: list[tuple[float, int]] = []
        turn = self.turns.ask(name, begin)
        made.append(turn)
        for ends in at_once:
            heapq.heappush(self.running, (*ends, turn))
        return turn

    def go(self, until_s: float) -> None:
        """Let the clock run: what ends lets others begin, and who yields is looked at in time."""
        while True:
            again_s = self.turns.look()
            due = [self.running[0][0]] if self.running else []
            due += [] if again_s is None else [self.now_s + again_s]
            if not due or min(due) > until_s:
                self.now_s = until_s
                return
            self.now_s = max(self.now_s, min(due))
            while self.running and self.running[0][0] <= self.now_s:
                self.turns.end(heapq.heappop(self.running)[2])

    def work_of(self, name: str, since_s: float, until_s: float) -> int:
        return sum(one == name and since_s <= at < until_s for at, one in self.begun)


@given(
    st.integers(2, 6),
    st.integers(1, 3),
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.floats(0.002, 0.3), st.floats(0, 0.1)),
        min_size=1,
        max_size=60,
    ),
)
def test_no_more_are_at_work_than_may_be_and_everybody_has_a_turn(
    at_once: int, each: int, asked: list[tuple[str, float, float]]
) -> None:
    hall = Hall(at_once, each, 100)
    for name, cost_s, pause_s in asked:
        hall.ask(name, cost_s)
        working = [turn.caller.name for _, _, turn in hall.running]
        assert len(working) == hall.turns.at_work <= at_once
        assert max(map(working.count, working), default=0) <= each
        hall.go(hall.now_s + pause_s)
    hall.go(hall.now_s + 1_000)
    assert len(hall.begun) == len(asked)
    assert hall.turns.at_work == hall.turns.in_line == 0


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0.01, 0.2), min_size=1),
    st.integers(1, 4),
    st.floats(0.5, 3.0),
)
def test_who_comes_waits_for_a_bounded_number_of_requests_of_each_other(
    costs: dict[str, float], each: int, at_s: float
) -> None:
    """begun of one other <= (credit + its own at work) / what one costs + 1, whatever is in line"""
    hall = Hall(4, each, 1_000)
    for name, cost_s in costs.items():
        for _ in range(500):
            hall.ask(name, cost_s)
    hall.go(hall.now_s + at_s)
    came_s = hall.now_s
    turn = hall.ask("light", 0.01)
    hall.go(came_s + 1_000)
    assert turn.began_s is not None
    for name, cost_s in costs.items():
        most = CREDIT_S / cost_s + each + 1
        assert hall.work_of(name, came_s, turn.began_s) <= most, name


def test_one_renter_with_sixty_four_requests_keeps_another_waiting_for_nothing() -> None:
    hall = Hall(8, 4, 60)
    for _ in range(64):
        hall.ask("heavy", 0.05)
    hall.go(hall.now_s + 0.3)
    for _ in range(20):
        asked_s = hall.now_s
        turn = hall.ask("light", 0.03)
        assert turn.began_s == asked_s, "a place is free for who had less"
        hall.go(hall.now_s + 0.05)


def test_beside_who_had_less_a_caller_has_one_at_work_and_begins_it_when_they_are_done() -> None:
    hall = Hall(8, 4, 100)
    hall.ask("light", 0.1)
    hall.go(hall.now_s + 1.5)
    for _ in range(100):
        hall.ask("heavy", 0.05)
    hall.go(hall.now_s + 0.5)
    hall.ask("light", 0.1)
    began_s = hall.now_s
    hall.go(began_s + 0.0999)
    assert hall.work_of("heavy", began_s, hall.now_s) == 0
    hall.go(began_s + 0.8)
    assert len([turn for _, _, turn in hall.running if turn.caller.name == "heavy"]) == 1
    assert 10 <= hall.work_of("heavy", began_s, hall.now_s) <= 15, "one after the other"
    hall.go(began_s + 3)
    assert hall.turns.in_line == 0, "and alone again as many as it may"


def test_a_request_that_does_not_end_holds_up_its_own_caller_for_a_second_at_most() -> None:
    hall = Hall(8, 4, 60)
    hall.ask("light", 0.01)
    for _ in range(2):
        hall.ask("heavy", 0.1)
    hall.go(hall.now_s + 0.5)
    hall.ask("light", 0.01)
    hall.ask("heavy", 60.0)
    hall.go(hall.now_s + 0.5)
    asked_s = hall.now_s
    hall.ask("light", 60.0)
    second = hall.ask("heavy", 60.0)
    hall.go(asked_s + 2)
    assert second.began_s is not None
    assert second.began_s - asked_s <= turns.ABOUT_S


def test_who_yields_begins_all_the_same_after_a_moment() -> None:
    hall = Hall(8, 4, 60)
    for _ in range(8):
        hall.ask("heavy", 0.5)
    hall.ask("light", 60.0)
    begins = hall.now_s
    hall.go(begins + 20)
    assert hall.work_of("heavy", 0, hall.now_s) == 8
    assert hall.begun[-1][0] - begins <= 0.5 + 4 * (0.5 + YIELD_S)


def keep_asking(hall: Hall, name: str, cost_s: float) -> None:
    """Fill its line."""
    with suppress(TooMany):
        while True:
            hall.ask(name, cost_s)


def test_callers_who_had_nearly_the_same_fill_all_places_at_once() -> None:
    hall = Hall(8, 4, 60)
    hall.ask("longest", 60.0)
    for number in range(7):
        for _ in range(number):
            hall.ask(f"caller {number}", 0.025)
    hall.go(hall.now_s + 2)
    at_once = [hall.ask(f"caller {number}", 0.5) for number in range(7)]
    assert {turn.began_s for turn in at_once} == {hall.now_s}


def test_of_two_who_want_all_the_one_with_the_short_line_has_more() -> None:
    hall = Hall(1, 4, 60)
    began_s = hall.now_s
    for _ in range(1_000):
        keep_asking(hall, "long", 0.01)
        if hall.turns._caller("short", hall.now_s).line:
            hall.go(hall.now_s + 0.01)
        else:
            hall.ask("short", 0.01)
    of = [hall.work_of(name, began_s, hall.now_s) for name in ("short", "long")]
    assert of[0] > 4 * of[1]
    assert of[1] > sum(of) // 20, "and the other one is served still"


def test_a_debt_is_bounded() -> None:
    hall = Hall(8, 4, 60)
    hall.ask("other", 100.0)
    for _ in range(1_000):
        keep_asking(hall, "long", 0.1)
        hall.go(hall.now_s + 0.05)
    long, other = (hall.turns._callers[name] for name in ("long", "other"))
    assert long.had <= other.had + CREDIT_S + DEBT_S


def test_what_a_debt_did_not_take_is_not_given_back() -> None:
    """Dear requests that a full debt leaves uncharged, and cheap ones in their place at the end."""
    hall = Hall(8, 4, 60)
    hall.ask("other", 100.0)
    for _ in range(200):
        keep_asking(hall, "mixed", 0.3)
        hall.go(hall.now_s + 0.05)
    for _ in range(400):
        keep_asking(hall, "mixed", 0.001)
        hall.go(hall.now_s + 0.01)
        assert hall.turns._callers["mixed"].had >= hall.turns._reached - CREDIT_S


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 5), st.booleans())))
def test_the_least_come_first_whatever_was_put_in_and_taken_out(
    steps: list[tuple[str, int, bool]],
) -> None:
    least, here = turns._Least(), dict[str, turns._Caller]()
    known = {name: turns._Caller(name, 0.0) for name in "abcdef"}
    for name, had, stays in steps:
        known[name].had = had
        here.pop(name, None)
        if stays:
            least.put(known[name])
            here[name] = known[name]
        else:
            least.drop(known[name])
        with closing(least.in_order()) as passed:
            next(passed, None)
        with closing(least.in_order()) as passed:
            told = list(passed)
        assert told == sorted(here.values(), key=lambda one: one.had)
        assert least.first() is (told[0] if told else None)


def test_who_rests_gives_its_place_away_and_counts_still_as_one_of_its_caller() -> None:
    now_s = 0.0
    turns, begun = Turns(2, 2, 10, lambda: now_s), list[str]()
    first, second = (turns.ask("a", lambda: begun.append("a")) for _ in range(2))
    turns.ask("a", lambda: begun.append("a"))
    other = turns.ask("b", lambda: begun.append("b"))
    assert begun == ["a", "a"]
    now_s = 0.5
    turns.rest(first)
    turns.rest(second)
    assert begun == ["a", "a", "b"], "both places are free, and two of a are still here"
    assert (turns.at_work, turns.at_rest) == (1, 2)
    now_s = 60.0
    turns.rest(first, 0.25)
    turns.end(first)
    caller = first.caller
    assert begun == ["a", "a", "b", "a"]
    assert (turns.at_work, turns.at_rest, caller.at_work) == (2, 1, 2)
    assert caller.usual_s == pytest.approx(turns_cost(0.75)), "its own work and its part, no rest"
    turns.end(first)
    turns.end(second)
    turns.end(other)
    assert (turns.at_work, turns.at_rest, caller.at_work) == (1, 0, 1)


def turns_cost(cost_s: float) -> float:
    """What a caller's next request is taken to cost, after its first one cost so much."""
    return turns.COST_FIRST_S + (cost_s - turns.COST_FIRST_S) / 8


def test_so_many_rest_and_the_next_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "RESTING_MAX", 2)
    here, begun = Turns(1, 4, 10, lambda: 0.0), list[str]()
    for name in "abc":
        here.rest(here.ask(name, lambda: None))
    assert (here.at_work, here.at_rest) == (1, 2)
    waits = here.ask("d", lambda: begun.append("d"))
    assert not begun
    here.end(waits)
    assert (here.at_work, here.at_rest, here.in_line) == (1, 2, 0)


def test_who_rests_alone_holds_nobody_up() -> None:
    hall = Hall(8, 4, 60)
    for _ in range(54):
        hall.ask("batch", 0.01)
    resting = hall.turns.ask("light", lambda: None)
    hall.turns.rest(resting)
    hall.go(hall.now_s + 3)
    assert hall.work_of("batch", 100.0, 103.0) >= 54


def test_who_comes_back_for_work_of_its_own_is_the_next_of_its_line_however_full() -> None:
    begun: list[str] = []
    here = Turns(2, 1, 1, lambda: 0.0)
    rests = here.ask("a", lambda: None)
    here.rest(rests)
    others = [here.ask(name, lambda: None) for name in "bc"]
    here.ask("a", lambda: begun.append("later"))
    with pytest.raises(TooMany):
        here.ask("a", lambda: None)
    again = here.again(rests, lambda: begun.append("again"))
    assert not begun
    here.end(others[0])
    assert begun == ["again"]
    here.end(again)
    assert begun == ["again", "later"]


def test_no_debt_is_forgiven_while_another_works_for_those_who_rest() -> None:
    now_s = 0.0
    turns = Turns(1, 1, 10, lambda: now_s)
    turn = turns.ask("a", lambda: None)
    turns.rest(turn)
    before, now_s = turns._reached, 5.0
    turns.ask("b", lambda: None)
    assert turns._reached - before < 1.0, "the process was not idle"


def test_a_line_is_bounded_and_says_when_to_come_back() -> None:
    hall = Hall(2, 1, 3)
    for _ in range(4):
        hall.ask("a", 8.0)
    hall.ask("b", 1.0)
    with pytest.raises(TooMany) as full:
        hall.ask("a", 1.0)
    assert full.value.seconds == 1
    hall.go(hall.now_s + 17)
    hall.ask("a", 1.0)
    hall.ask("a", 1.0)
    with pytest.raises(TooMany) as full:
        hall.ask("a", 1.0)
    assert full.value.seconds >= 3


def test_who_leaves_the_line_is_never_begun() -> None:
    hall = Hall(1, 1, 10)
    hall.ask("a", 1.0)
    left, stays = hall.ask("a", 1.0), hall.ask("b", 1.0)
    hall.turns.end(left)
    hall.turns.end(left)
    hall.go(hall.now_s + 10)
    assert left.began_s is None
    assert stays.began_s is not None
    assert hall.turns.in_line == hall.turns.at_work == 0


def test_the_memory_of_callers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "CALLERS_MAX", 20)
    monkeypatch.setattr(turns, "OUTDATED_MAX", 20)
    hall = Hall(4, 4, 10)
    hall.ask("longest", 1_000.0)
    for number in range(200):
        hall.ask(f"caller {number}", 1.0)
        hall.go(hall.now_s + 0.5)
    assert len(hall.turns._callers) <= 20
    assert len(hall.turns._about._heap) <= 3 * 20


def test_whose_line_a_request_stands_in() -> None:
    member = Principal(KEY, "acct_a", "renter", "mem_1", "key_1")
    other = Principal(KEY, "acct_a", "renter", "mem_2", "key_2")
    assert caller_of(member, "192.0.2.1") == caller_of(other, "192.0.2.2"), "one account"
    unknown = Principal(KEY, "acct_b", is_unverified=True)
    assert caller_of(unknown, "192.0.2.1") == caller_of(Principal(PUBLIC), "192.0.2.1")
    nodes = {caller_of(Principal(NODE, f"node_{each}"), "192.0.2.1") for each in range(1_000)}
    assert len(nodes) == 1_000, "each node of a provider has a line of its own"
    assert caller_of(Principal(EXECUTOR, "node_1"), "192.0.2.1") not in nodes


# --- in an event loop ---------------------------------------------------------------------------


async def _stays() -> None:
    await asyncio.Event().wait()


def test_a_client_that_leaves_leaves_the_line() -> None:
    async def scenario() -> None:
        waiting, left = Waiting(1, 1, 10), asyncio.Event()

        async def asks(gone: asyncio.Event) -> None:
            async with waiting.turn("a", gone.wait):
                raise AssertionError("nobody is there")

        async with waiting.turn("a", _stays):
            task = asyncio.create_task(asks(left))
            await asyncio.sleep(0)
            left.set()
            with pytest.raises(Problem):
                await task
            assert waiting._turns.in_line == 0
        async with waiting.turn("a", _stays):
            pass

    asyncio.run(scenario())


def test_who_waited_for_another_thread_comes_back_in_line_for_work_of_its_own() -> None:
    async def scenario() -> None:
        waiting = Waiting(1, 1, 10)
        shared: asyncio.Future[tuple[str, float]] = asyncio.get_running_loop().create_future()
        async with waiting.turn("a", _stays) as first:
            made = asyncio.create_task(first.wait_for(shared))
            await asyncio.sleep(0)
            async with waiting.turn("b", _stays):
                shared.set_result(("made", 0.1))
                assert await made == "made"
                again = asyncio.create_task(first.begin_again())
                await asyncio.sleep(0)
                assert not again.done()
            await again
            assert waiting._turns.at_work == 1
        assert (waiting._turns.at_work, waiting._turns.at_rest) == (0, 0)

    asyncio.run(scenario())


def test_who_waits_too_long_is_told_so_and_is_not_begun_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "WAIT_SECONDS_MAX", 0.05)
    monkeypatch.setattr(turns, "FULL_SECONDS", 0.0)

    async def scenario() -> None:
        waiting = Waiting(1, 1, 1)
        async with waiting.turn("a", _stays):
            with pytest.raises(Problem) as told:
                async with waiting.turn("a", _stays):
                    raise AssertionError("its turn has not come")
            assert (told.value.status, told.value.code) == (429, "too_many_at_once")
            assert int(told.value.headers["Retry-After"]) >= 1
            waits = asyncio.create_task(_turn_of(waiting))
            await asyncio.sleep(0)
            with pytest.raises(Problem, match="too_many_at_once"):
                await _turn_of(waiting)  # the line is full
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
        assert waiting._turns.at_work == 0

    asyncio.run(scenario())


async def _turn_of(waiting: Waiting) -> None:
    async with waiting.turn("a", _stays):
        pass
