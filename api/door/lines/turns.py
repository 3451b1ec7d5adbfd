"""Whose request is at work next: so many of one caller at once, and who had less goes first.

    at work in a process <= at_once, of one line <= each; waiting in one line <= waiting
    at rest in a process <= RESTING_MAX, and a request at rest is one of the `each` of its line
    who comes without a debt sees, of each other, begin at most CREDIT_S of work and a request more

Callers share a process as flows share a line (start-time fair queueing, Goyal, Vin and Cheng 1996,
with `at_once` places as in Jin, Chase and Kaur 2004): `had` is the work that a caller was given, in
seconds of a place, and the one with the least is next. Work counts more, the more of a caller is
here: who asks for all at once has a smaller share than who asks for one after the other, and all of
it when nobody else is there. Nobody saves up more than `CREDIT_S` by being away. Of two who
have as many here and both want more than half, each gets half and waits.

Python runs one thread at a time, so that each request beside another makes both slower. So who
had clearly more than another that is about has fewer at work, the longer its line is: down to one
(another after `ABOUT_S`), which begins when none of those is at work, or has waited until they
caught up, at most `YIELD_S`. Whose line is short does not wait for others while there are places,
however little they ask for: what it takes, they do not want.

A request rests while another thread works for it and for many others: it has no place then, and is
charged its part of that work. Who comes back for work of its own is the next of its line.

Who a caller is: an account with all its members and keys, a node, an executor; strangers by
address; accounts that signed themselves up and were not looked at, by address too, for they cost
nothing. Keys are looked up in lines of their own: of whose they were, and those of an address that
were never good.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from api.door import errors
from api.door.auth import PUBLIC, Principal
from api.telemetry import metrics

CREDIT_S = 0.25
"""How much less than the others somebody who was away is held to have had."""
NEAR_S = 0.25
"""Who had so much more than another, or less, counts as its equal: neither waits for the other."""
AHEAD_S = 0.03
"""Who had so much more than those who are served has fewer at work."""
DEBT_S = 2.0
"""How much more than the others a caller is held to have had at most."""
TIMES_MAX = 8.0
"""What work counts at most: once for each request that its caller has here, at work or waiting."""
YIELD_S = 0.25
ABOUT_S = 1.0
"""So long after its last request a caller is still about."""
COST_MIN_S = 0.001
COST_FIRST_S = 0.01
"""What a caller's first request is taken to cost before it is known."""
BODY_BYTES_PER_S = 64 * 1_048_576
"""Bytes of a body that cost as much as a second: they were read before its turn came."""
WAIT_SECONDS_MAX = 10.0
FULL_SECONDS = 1.0
"""After which it is said that a line is full."""
CALLERS_MAX = 10_000
RESTING_MAX = 128
"""Requests of a process that rest: two rounds of the desk. One more keeps its place, so that lines
grow, which is told, and not a queue behind them.
"""
OUTDATED_MAX = 1_000
"""What an order of callers holds beside those who are there."""


T = TypeVar("T")


class TooMany(Exception):
    """So many requests of the caller wait that one more may not; in so many seconds it might."""

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self.seconds = seconds


@dataclass(slots=True, eq=False)
class Turn:
    """A request that waits or is at work."""

    caller: _Caller
    begin: Callable[[], None]
    foreseen_s: float = 0.0
    began_s: float | None = None
    more_s: float = 0.0
    """What it costs beside its time at work."""
    times: float = 1.0
    """How many times its work counts: more, the longer the line behind it was."""
    charged_s: float = 0.0
    """What was added to what its caller had, before it is known what it costs."""
    rests_from_s: float | None = None
    """Since when another works for it, so that its place is free."""


@dataclass(slots=True, eq=False)
class _Caller:
    name: str
    had: float
    at_work: int = 0
    resting: int = 0
    usual_s: float = COST_FIRST_S
    yields_from_s: float = 0.0  # when its first in line began to wait
    ended_s: float = 0.0
    line: deque[Turn] = field(default_factory=deque)

    @property
    def is_idle(self) -> bool:
        return not self.at_work and not self.line

    @property
    def has_place(self) -> bool:
        return self.at_work > self.resting


class _Least:
    """Callers, the one who had least first; of equals who came first. A step of n takes log n."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, _Caller]] = []
        self._places: dict[str, int] = {}
        self._number = itertools.count()

    def put(self, caller: _Caller) -> None:
        """It is here, with what it has had by now."""
        self._places[caller.name] = place = next(self._number)
        heapq.heappush(self._heap, (caller.had, place, caller))
        if len(self._heap) > 2 * len(self._places) + OUTDATED_MAX:
            self._heap = [one for one in self._heap if self._is_here(one)]
            heapq.heapify(self._heap)

    def drop(self, caller: _Caller) -> None:
        self._places.pop(caller.name, None)

    def __contains__(self, caller: _Caller) -> bool:
        return caller.name in self._places

    def first(self) -> _Caller | None:
        """Who had least."""
        while self._heap and not self._is_here(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][2] if self._heap else None

    def in_order(self) -> Generator[_Caller, None, None]:
        """One after the other, as far as it is asked for. Close it."""
        passed = []
        try:
            while self.first() is not None:
                passed.append(heapq.heappop(self._heap))
                yield passed[-1][2]
        finally:
            for one in filter(self._is_here, passed):
                heapq.heappush(self._heap, one)

    def _is_here(self, one: tuple[float, int, _Caller]) -> bool:
        return self._places.get(one[2].name) == one[1]


class Turns:
    """The requests of one process; no clock, thread or event loop of its own.

    `ask` and `end` call `begin` of every turn that begins. Whoever holds it calls `look` again
    after the seconds that `look` tells.
    """

    def __init__(
        self, at_once: int, each: int, waiting: int, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.at_once, self.each, self.waiting = at_once, each, waiting
        self.at_work = self.at_rest = self.in_line = 0
        self._now_s = now_s
        self._callers: dict[str, _Caller] = {}
        self._lines, self._about = _Least(), _Least()
        self._working: dict[str, _Caller] = {}
        self._gone: deque[tuple[float, _Caller]] = deque()
        """Who ended its last request, and when: for `ABOUT_S` it is about."""
        self._reached = 0.0
        """What those who are served now have had: where a caller who comes back goes on."""
        self._idle_from_s = now_s()

    def ask(self, name: str, begin: Callable[[], None], *, more_s: float = 0.0) -> Turn:
        """A place in this caller's line; its turn may begin at once. Raises TooMany."""
        now_s = self._now_s()
        caller = self._caller(name, now_s)
        if len(caller.line) >= self.waiting:
            ahead_s = len(caller.line) * caller.usual_s / max(1, caller.at_work)  # as it goes now
            raise TooMany(max(1, -int(-ahead_s // 1)))
        if caller.is_idle:
            caller.had = max(caller.had, self._reached - CREDIT_S)
        turn = Turn(caller, begin, more_s=more_s)
        caller.line.append(turn)
        if len(caller.line) == 1:
            caller.yields_from_s = now_s
            self._lines.put(caller)
        self.in_line += 1
        self.look()
        return turn

    def end(self, turn: Turn) -> None:
        """It is done, or nobody waits for it any more. Twice is once."""
        caller, now_s = turn.caller, self._now_s()
        if turn.began_s is None:
            with suppress(ValueError):
                caller.line.remove(turn)
                self.in_line -= 1
            if not caller.line:
                self._lines.drop(caller)
        elif turn.foreseen_s:
            rests_from_s = turn.rests_from_s
            worked_s = (now_s if rests_from_s is None else rests_from_s) - turn.began_s
            cost_s = max(COST_MIN_S, worked_s + turn.more_s)
            caller.usual_s += (cost_s - caller.usual_s) / 8
            caller.at_work -= 1
            if rests_from_s is None:
                self.at_work -= 1
            else:
                caller.resting -= 1
                self.at_rest -= 1
            caller.ended_s = now_s
            self._charge(caller, cost_s * turn.times - turn.charged_s)
            turn.foreseen_s = 0.0
            if not caller.has_place:
                self._working.pop(caller.name, None)
            if not caller.at_work:
                self._gone.append((now_s, caller))
            if not self.at_work and not self.at_rest:
                self._idle_from_s = now_s
        self.look()

    def rest(self, turn: Turn, more_s: float = 0.0) -> None:
        """From now on another works for it, and for many at once: others get its place, and it is
        still one of the few of its caller. `more_s`: what its part of that work costs, once known.
        """
        assert turn.foreseen_s, "it is not at work"
        turn.more_s += more_s
        if turn.rests_from_s is not None or self.at_rest >= RESTING_MAX:
            return
        turn.rests_from_s, caller = self._now_s(), turn.caller
        caller.resting += 1
        self.at_work -= 1
        self.at_rest += 1
        if not caller.has_place:
            del self._working[caller.name]
        self.look()

    def again(self, turn: Turn, begin: Callable[[], None]) -> Turn:
        """A place at the head of its caller's line for one that is at work or rests, and ends so:
        it was in that line before all that stand there.
        """
        caller, now_s = turn.caller, self._now_s()
        next_ = Turn(caller, begin)
        caller.line.appendleft(next_)
        self.in_line += 1
        if len(caller.line) == 1:
            caller.yields_from_s = now_s
            self._lines.put(caller)
        self.end(turn)
        return next_

    def look(self) -> float | None:
        """Begin what may begin. In how many seconds to look again, where nothing else will."""
        now_s = self._now_s()
        self._forget_gone(now_s)
        while self.at_work < self.at_once:
            waits = [math.inf]
            with closing(self._lines.in_order()) as in_order:
                for caller in in_order:
                    waits.append(self._must_wait_s(caller, now_s))
                    if waits[-1] <= 0:
                        self._begin(caller, now_s)
                        break
                else:
                    return None if min(waits) == math.inf else min(waits)
        return None

    def _must_wait_s(self, caller: _Caller, now_s: float) -> float:
        """Seconds until its next turn may begin; infinite: until one of its own has ended."""
        if caller.at_work >= self.each:
            return math.inf
        beside = max(1, int(self.each / self._times(caller)))
        about = self._about.first()
        least = math.inf if about is None else max(about.had, self._reached)
        if caller.at_work >= beside and caller.had > least + AHEAD_S:
            # one of its own that does not end holds the others up shortly
            return max(0.0, caller.yields_from_s + ABOUT_S - now_s)
        working = min((one.had for one in self._working.values()), default=math.inf)
        yields_s = min(YIELD_S, caller.had - working - NEAR_S) if beside == 1 else 0.0
        return max(0.0, caller.yields_from_s + yields_s - now_s) if yields_s > 0 else 0.0

    def _times(self, caller: _Caller) -> float:
        """How many times the work of its next turn counts."""
        return min(TIMES_MAX, max(1.0, len(caller.line) + caller.at_work))

    def _begin(self, caller: _Caller, now_s: float) -> None:
        served = min(one.had for one in (caller, *self._working.values()))
        self._reached = max(self._reached, served)
        times = self._times(caller)
        turn = caller.line.popleft()
        self.in_line -= 1
        turn.began_s, turn.foreseen_s = now_s, max(COST_MIN_S, caller.usual_s)
        turn.times = times
        caller.yields_from_s = now_s
        caller.at_work += 1
        self.at_work += 1
        self._working[caller.name] = caller
        if not caller.line:
            self._lines.drop(caller)
        turn.charged_s = self._charge(caller, turn.foreseen_s * turn.times)
        turn.begin()

    def _charge(self, caller: _Caller, work_s: float) -> float:
        """What of it was added: a debt is bounded, and what was not added is not given back."""
        before = caller.had
        caller.had = min(before + work_s, max(before, self._reached + DEBT_S))
        self._about.put(caller)
        if caller in self._lines:
            self._lines.put(caller)
        return caller.had - before

    def _forget_gone(self, now_s: float) -> None:
        while self._gone and self._gone[0][0] + ABOUT_S <= now_s:
            ended_s, caller = self._gone.popleft()
            if not caller.at_work and caller.ended_s == ended_s:
                self._about.drop(caller)

    def _caller(self, name: str, now_s: float) -> _Caller:
        """Time in which nothing was at work makes all debts smaller."""
        if not self.at_work and not self.at_rest:
            self._reached += now_s - self._idle_from_s
            self._idle_from_s = now_s
        found = self._callers.get(name)
        if found is None:
            if len(self._callers) >= CALLERS_MAX:
                self._forget()
            found = self._callers[name] = _Caller(name, self._reached - CREDIT_S)
        return found

    def _forget(self) -> None:
        """Who owes nothing is like one who never came. Where too many owe, all are forgiven."""
        least = self._reached - CREDIT_S
        busy = {name: one for name, one in self._callers.items() if not one.is_idle}
        owing = {name: one for name, one in self._callers.items() if one.had > least}
        self._callers = busy | owing if len(owing) < CALLERS_MAX // 2 else busy


def caller_of(principal: Principal, address: str) -> str:
    """Whose line a request stands in."""
    if principal.kind == PUBLIC or principal.is_unverified:
        return stranger_at(address)
    return principal.caller


def keys_of(caller: str) -> str:
    """The line in which keys are looked up: of a caller, or those never good here of an address."""
    return f"{caller}/keys"


def stranger_at(address: str) -> str:
    """The line of all at an address who did not show who they are, or may be anybody."""
    return f"address/{address}"


class Waiting:
    """`Turns` for requests of one event loop."""

    def __init__(self, at_once: int, each: int, waiting: int) -> None:
        self._turns = Turns(at_once, each, waiting)
        self._again: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(
        self, name: str, gone: Callable[[], Awaitable[Any]], *, body_bytes: int = 0
    ) -> AsyncGenerator[AtWork, None]:
        """Work in this block when the turn has come. `gone` ends once the client is not there.

        Raises Problem: 429 too_many_at_once where too many wait, or it has waited too long.
        """
        work = AtWork(self, name, gone)
        try:
            await work.begin(body_bytes)
            yield work
        finally:
            work.end()

    async def begun(
        self, name: str, gone: Callable[[], Awaitable[Any]], body_bytes: int = 0
    ) -> Turn:
        """A turn that has come, to be ended. Raises Problem."""
        begun = asyncio.Event()
        try:
            turn = self._turns.ask(name, begun.set, more_s=body_bytes / BODY_BYTES_PER_S)
        except TooMany as full:
            metrics.TURNED_AWAY.labels("line_full").inc()
            await asyncio.sleep(FULL_SECONDS)  # who asks on and on is not refused on and on
            raise errors.too_many_at_once(full.seconds) from None
        await self._until_begun(turn, begun, gone)
        return turn

    async def begun_again(self, before: Turn, gone: Callable[[], Awaitable[Any]]) -> Turn:
        """See `Turns.again`: a turn that has come. Raises Problem."""
        begun = asyncio.Event()
        turn = self._turns.again(before, begun.set)
        await self._until_begun(turn, begun, gone)
        return turn

    async def _until_begun(
        self, turn: Turn, begun: asyncio.Event, gone: Callable[[], Awaitable[Any]]
    ) -> None:
        try:
            if not begun.is_set():
                self._look_again()
                await self._wait(begun, gone)
        except BaseException:
            self.end(turn)
            raise

    def end(self, turn: Turn) -> None:
        """It is done. Twice is once."""
        self._turns.end(turn)
        self._look_again()

    def rest(self, turn: Turn, more_s: float = 0.0) -> None:
        """See `Turns.rest`."""
        self._turns.rest(turn, more_s)
        self._look_again()

    async def _wait(self, begun: asyncio.Event, gone: Callable[[], Awaitable[Any]]) -> None:
        since_s = time.monotonic()
        begins = asyncio.ensure_future(begun.wait())
        leaves = asyncio.ensure_future(gone())
        try:
            await asyncio.wait(
                {begins, leaves}, timeout=WAIT_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            begins.cancel()
            leaves.cancel()
            metrics.TURN_SECONDS.observe(time.monotonic() - since_s)
        if not begun.is_set():
            metrics.TURNED_AWAY.labels("gone" if leaves.done() else "waited").inc()
            raise errors.too_many_at_once()

    def _look_again(self) -> None:
        """What only yields begins by the clock; ends of others begin everything else."""
        metrics.TURNS_WAITING.set(self._turns.in_line)
        if self._again is not None:
            self._again.cancel()
            self._again = None
        seconds = self._turns.look()
        if seconds is not None:
            self._again = asyncio.get_running_loop().call_later(seconds, self._look_again)


class AtWork:
    """A request that waits for its turn or has it."""

    def __init__(self, waiting: Waiting, name: str, gone: Callable[[], Awaitable[Any]]) -> None:
        self._waiting, self._name, self._gone = waiting, name, gone
        self._turn: Turn | None = None

    async def begin(self, body_bytes: int = 0) -> None:
        """Return when the turn has come. Raises Problem."""
        self._turn = await self._waiting.begun(self._name, self._gone, body_bytes)

    async def wait_for(self, shared: Awaitable[tuple[T, float]]) -> T:
        """What another thread makes of many requests at once, with the seconds that this one cost:
        meanwhile others have its place.
        """
        assert self._turn is not None
        self._waiting.rest(self._turn)
        value, cost_s = await shared
        self._waiting.rest(self._turn, cost_s)
        return value

    async def begin_again(self) -> None:
        """After `wait_for`, for work of its own: it is the next of its line. Raises Problem."""
        assert self._turn is not None
        before, self._turn = self._turn, None
        self._turn = await self._waiting.begun_again(before, self._gone)

    def end(self) -> None:
        """The next may begin."""
        if self._turn is not None:
            self._waiting.end(self._turn)
            self._turn = None
