"""Who is behind what, and waiting for it: bounded, and without a thread for each who waits.

    waiting <= WAITERS_MAX in one process; each at most WAIT_SECONDS

Named here, because service, jobs, probes and problems all know it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool

from domain.record import dataclass

WAITERS_MAX = 100
"""Reads that wait for a position at once; one more is told to come back."""
WAIT_SECONDS = 2.0
LOOK_EVERY_SECONDS = 0.01


class ProjectionBehind(Exception):
    """A view has not reached the position asked for in time. Ask again."""


@dataclass(frozen=True, slots=True)
class JobLag:
    """How far one background job is behind what it follows."""

    name: str
    position: int
    head: int
    waiting_since_us: int | None = None

    @property
    def behind(self) -> int:
        return max(0, self.head - self.position)


class HeadWait:
    """Reads that wait for the log to reach a position: one question to it for all of them.

    `head` asks the log and may block; it runs in a thread. Belongs to one event loop.
    """

    def __init__(self, head: Callable[[], int]) -> None:
        self._head = head
        self._known = 0  # it never falls
        self._waiting = 0
        self._asked: asyncio.Task[int] | None = None

    async def until(self, position: int) -> None:
        """Return once the log holds this position.

        Raises ProjectionBehind after `WAIT_SECONDS`, and at once when too many wait already.
        """
        if position <= self._known:
            return
        if self._waiting >= WAITERS_MAX:
            raise ProjectionBehind("too many calls wait for a position")
        self._waiting += 1
        try:
            ends = asyncio.get_running_loop().time() + WAIT_SECONDS
            while (await self._ask()) < position:
                if asyncio.get_running_loop().time() > ends:
                    raise ProjectionBehind(f"the log is at {self._known} of {position}")
                await asyncio.sleep(LOOK_EVERY_SECONDS)
        finally:
            self._waiting -= 1

    async def now(self) -> int:
        """The present head; all who ask at once share one question."""
        return await self._ask()

    async def _ask(self) -> int:
        """The present head; who comes while somebody asks gets the same answer."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.ensure_future(run_in_threadpool(self._head))
        self._known = max(self._known, await asyncio.shield(self._asked))
        return self._known
