"""The live pages of a process, and the one reader that looks at their leases for all of them.

    looks a second of a process <= 1 / EVERY_SECONDS,  however many pages and leases
    queries of a look do not grow with the leases;   a page asks for nothing by itself
    open streams of a session <= STREAMS_EACH_MAX,  of an account <= STREAMS_OF_ACCOUNT_MAX,
    of a process <= STREAMS_MAX
    a session ends, or opens less than before  =>  its streams end within SESSION_EVERY_SECONDS
    a look fails  =>  the streams end: a browser asks again after a while, and says so until then

Each page's own principal is asked at each change whether it may see the lease. What is kept in
memory is one entry for each lease that is looked at, and goes with its last stream.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from api.console.renter.output import longer
from api.console.sessions import sessions
from api.console.sessions.sessions import Session
from api.console.visits.reading import refused
from api.leasing.watched import WATCHED_MAX, Seen, look
from api.process.service import Service
from domain.frozen import replace

logger = logging.getLogger(__name__)

EVERY_SECONDS, SESSION_EVERY_SECONDS = 1.0, 10.0
STREAMS_EACH_MAX, STREAMS_OF_ACCOUNT_MAX, STREAMS_MAX = 4, 20, 200
assert STREAMS_MAX <= WATCHED_MAX


@dataclass(slots=True)
class Watched:
    """A lease as it was seen last, with the end of what it has printed."""

    streams: list[Watcher] = field(default_factory=list)
    seen: Seen | None = None
    text: str = ""

    def take(self, now: Seen | None) -> None:
        """What a look has found; None: there is no such lease."""
        if now is None:
            self.end()
            return
        self.text = longer(self.text, now.printed)
        kept = replace(now, printed=b"")
        if kept != self.seen:
            self.seen = kept
            for each in self.streams:
                each.news.set()

    def end(self) -> None:
        for each in self.streams:
            each.end()


@dataclass(eq=False, slots=True)
class Watcher:
    """One live page, and what it has to be told."""

    session: Session
    watched: Watched
    asked_at: float
    news: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: bool = False

    def end(self) -> None:
        self.is_over = True
        self.news.set()

    async def changed(self, seconds: float) -> Seen | None:
        """The lease once it is another, for who may see it; None: it was the same all the time, or
        the stream `is_over`.
        """
        try:
            async with asyncio.timeout(seconds):
                await self.news.wait()
        except TimeoutError:
            return None
        self.news.clear()
        seen = self.watched.seen
        if self.is_over or (seen is not None and not seen.shows_to(self.session.principal)):
            self.is_over = True
            return None
        return seen

    def printed(self, seen: Seen) -> str:
        """The end of the output, for who may read it."""
        return self.watched.text if seen.prints_to(self.session.principal) else ""


@dataclass(eq=False, slots=True)
class _Reader:
    """Looks at all leases of one service, for as long as a page watches one of them."""

    service: Service
    leases: dict[str, Watched] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None

    def add(self, session: Session, lease_id: str) -> Watcher:
        watched = self.leases.setdefault(lease_id, Watched())
        stream = Watcher(session, watched, time.monotonic())
        watched.streams.append(stream)
        if watched.seen is not None:
            stream.news.set()
        if self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._run())
        return stream

    def remove(self, stream: Watcher, lease_id: str) -> None:
        watched = stream.watched
        watched.streams.remove(stream)
        if not watched.streams and self.leases.get(lease_id) is watched:
            del self.leases[lease_id]

    async def _run(self) -> None:
        try:
            while self.leases:
                began = time.monotonic()
                await self._look()
                took = time.monotonic() - began
                await asyncio.sleep(max(EVERY_SECONDS - took, EVERY_SECONDS / 4))
        except Exception:
            logger.exception("live pages end: their leases could not be read")
        finally:
            self.task = None
            for each in self.leases.values():
                each.end()

    async def _look(self) -> None:
        """Once at everything. What came while it was looked is for the next one."""
        leases, now = dict(self.leases), time.monotonic()
        due = [
            each
            for watched in leases.values()
            for each in watched.streams
            if now - each.asked_at >= SESSION_EVERY_SECONDS
        ]
        found, alive = await run_in_threadpool(_read, self.service, leases, due)
        for each in due:
            each.asked_at = now
            if each.session.row.session_id not in alive:
                each.end()
        for lease_id, watched in leases.items():
            watched.take(found.get(lease_id))


def _read(
    service: Service, leases: dict[str, Watched], due: Sequence[Watcher]
) -> tuple[dict[str, Seen], set[str]]:
    found = look(service, {lease_id: each.seen for lease_id, each in leases.items()})
    asked = {each.session.row.session_id: each.session for each in due}
    return found, sessions.alive(service, list(asked.values())) if asked else set()


class Watches:
    """The streams of this process."""

    def __init__(self) -> None:
        self._open: Counter[tuple[str, str]] = Counter()  # by account and session
        self.readers: dict[Service, _Reader] = {}

    def begun(self, account_id: str, session_id: str) -> None:
        """Count one more stream. Raises Refused."""
        self.require_room(account_id, session_id)
        self._open[account_id, session_id] += 1

    def ended(self, account_id: str, session_id: str) -> None:
        self._open[account_id, session_id] -= 1
        self._open += Counter()  # without those that are zero

    def require_room(self, account_id: str, session_id: str) -> None:
        """Raises Refused: too many streams."""
        if self._open.total() >= STREAMS_MAX:
            raise refused("busy", "too many pages are watched live; load this page again later")
        if self._open[account_id, session_id] >= STREAMS_EACH_MAX:
            raise refused("rate_limited", f"at most {STREAMS_EACH_MAX} live pages of one session")
        of_account = sum(count for (owner, _), count in self._open.items() if owner == account_id)
        if of_account >= STREAMS_OF_ACCOUNT_MAX:
            told = f"at most {STREAMS_OF_ACCOUNT_MAX} live pages of one account"
            raise refused("rate_limited", told)

    @contextmanager
    def one_more(
        self, service: Service, session: Session, lease_id: str
    ) -> Generator[Watcher, None, None]:
        """A stream of the lease, while it is open. Raises Refused."""
        by = session.principal.account_id, session.row.session_id
        self.begun(*by)
        reader = self.readers.setdefault(service, _Reader(service))
        stream = reader.add(session, lease_id)
        try:
            yield stream
        finally:
            reader.remove(stream, lease_id)
            if not reader.leases and self.readers.get(service) is reader:
                del self.readers[service]
            self.ended(*by)

    def __len__(self) -> int:
        return self._open.total()


WATCHES = Watches()
