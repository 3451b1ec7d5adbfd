"""How many requests of one address are looked at at once, before it is known whose they are.

    of one address at the entrance <= AT_ENTRANCE
    of its long bodies read at once <= LONG_BODIES
    seconds that a request waits here <= WAIT_SECONDS_MAX

Everything up to a request's turn runs on the one event loop of a process, and so does every
refusal: sixty wrong keys at once would stand before the next caller's. So they come in one after
the other, and between two of them others are served. Nothing waits inside for a slow line, and for
the database only to look up a key that is not remembered: others behind one address wait shortly.
What should not take long and does makes nobody wait for ever.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from api.door.limits import Buckets
from api.telemetry import metrics

AT_ENTRANCE = 2
LONG_BODIES = 2
LONG_BODY_BYTES_PER_S = 4 * 1_048_576
"""What one of these places lets through: a body keeps its place for its share of a second."""
WAIT_SECONDS_MAX = 10.0
REFUSALS_PER_SECOND, REFUSALS_BURST = 10, 20
"""Refusals of one address that are told at once; later ones after `REFUSAL_SECONDS`, and up to so
much longer: all that were refused together would come back together."""
REFUSAL_SECONDS = 1.0
REFUSALS_HELD_MAX = 1_000
_chance = random.SystemRandom()
Asgi = Callable[[Any, Any, Any], Awaitable[None]]
LEAVE = "tallystick.entrance"
"""Where the scope of a request holds what lets the next one in."""


class Crowded(Exception):
    """Its place did not become free in time."""


class Places:
    """So many places for each name; who waits for one is served in order. Of one event loop."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._of: dict[str, tuple[asyncio.Semaphore, list[int]]] = {}

    @asynccontextmanager
    async def one(self, name: str) -> AsyncGenerator[Place, None]:
        """A place of this name for the time of the block, or longer: `leave_after`.

        Raises Crowded.
        """
        place = await self.take(name)
        try:
            yield place
        except BaseException:
            place.leave()
            raise
        if not place.is_kept:
            place.leave()

    async def through(self, app: Asgi, scope: Any, receive: Any, send: Any, name: str) -> None:
        """Answer with `app`, as one of the few of its name that are looked at now.

        Raises Crowded.
        """
        scope[LEAVE] = place = await self.take(name)
        try:
            await app(scope, receive, send)
        finally:
            place.leave()

    async def take(self, name: str) -> Place:
        """A place, to be left by hand. Raises Crowded."""
        semaphore, users = self._of.setdefault(name, (asyncio.Semaphore(self._each), [0]))
        users[0] += 1
        try:
            if semaphore.locked():
                async with asyncio.timeout(WAIT_SECONDS_MAX):
                    await semaphore.acquire()
            else:
                await semaphore.acquire()  # at once: no clock is set for it
        except BaseException as error:
            self._forget(name)
            if isinstance(error, TimeoutError):
                metrics.TURNED_AWAY.labels("crowded").inc()
                raise Crowded from None
            raise
        return Place(self, name)

    def left(self, name: str) -> None:
        """Called by the place that was left."""
        self._of[name][0].release()
        self._forget(name)

    def _forget(self, name: str) -> None:
        users = self._of[name][1]
        users[0] -= 1
        if not users[0]:
            del self._of[name]


class Place:
    """A place that somebody has; leaving it twice is once."""

    def __init__(self, places: Places, name: str) -> None:
        self._places: Places | None = places
        self._name = name
        self.is_kept = False

    def leave(self) -> None:
        """The next one may come."""
        if self._places is not None:
            places, self._places = self._places, None
            places.left(self._name)

    def leave_after(self, seconds: float) -> None:
        """Keep it for so long, for whoever comes next; the one who has it goes on at once."""
        self.is_kept = True
        asyncio.get_running_loop().call_later(seconds, self.leave)


class Refusals:
    """Who goes on asking although it is refused waits for the next refusal: each of them costs a
    server as much as it costs the caller.
    """

    def __init__(self) -> None:
        self._soon = Buckets(REFUSALS_PER_SECOND, REFUSALS_BURST)
        self._held = asyncio.Semaphore(REFUSALS_HELD_MAX)

    async def pace(self, address: str) -> None:
        """Return when a refusal of this address may be told."""
        if not self._soon.spend(address).allowed and not self._held.locked():
            async with self._held:
                await asyncio.sleep(REFUSAL_SECONDS * (1 + _chance.random()))


def leave(scope: Any) -> None:
    """The request of this scope is past the entrance, where it came through one."""
    place: Place | None = scope.get(LEAVE)
    if place is not None:
        place.leave()
