"""A lease as it runs, told to an open page once a second (server-sent events).

    open streams of a session <= STREAMS_EACH_MAX,  of an account <= STREAMS_OF_ACCOUNT_MAX,
    of a process <= STREAMS_MAX
    reads of a lease <= 1 / EVERY_SECONDS, however many streams of an account look at it
    reads of a process <= READS_PER_SECOND
    a session ends  =>  its streams end within SESSION_EVERY_SECONDS

What is kept in memory is one entry for each lease that is looked at, and goes with its last stream.
A stream keeps nobody signed in. Format: WHATWG HTML, section 9.2, server-sent events.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from api.console.drawing.words import GPU_HOUR_US, PLACES, decimal
from api.console.drawing.zones import Zone, moment_of
from api.console.renter import output
from api.console.renter.output import Output
from api.console.sessions import sessions
from api.console.visits.reading import Reader, Refused, Told, refused
from api.console.visits.visit import Visit

EVERY_SECONDS, BEAT_SECONDS, SESSION_EVERY_SECONDS = 1.0, 15.0, 10.0
READS_PER_SECOND = 40
STREAMS_EACH_MAX, STREAMS_OF_ACCOUNT_MAX, STREAMS_MAX = 4, 20, 200
OVER = frozenset({"settled", "resolved", "archived"})
Key = tuple[str, frozenset[str], str]


@dataclass(slots=True)
class Watched:
    """What was read of one lease last, for the streams that look at it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    streams: int = 0
    at: float = -1e9
    lease: Told = field(default_factory=dict)
    printed: Output | None = None


class Watches:
    """The streams of this process, and the leases that they look at."""

    def __init__(self) -> None:
        self._open: Counter[tuple[str, str]] = Counter()  # by account and session
        self._watched: dict[Key, Watched] = {}

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
    def one_more(self, session_id: str, key: Key) -> Generator[Watched, None, None]:
        """What is known of the lease, while the stream is open. Raises Refused."""
        by = key[0], session_id
        self.require_room(*by)
        self._open[by] += 1
        watched = self._watched.setdefault(key, Watched())
        watched.streams += 1
        try:
            yield watched
        finally:
            watched.streams -= 1
            self._open[by] -= 1
            self._open += Counter()  # without those that are zero
            if not watched.streams:
                self._watched.pop(key, None)

    @property
    def pause(self) -> float:
        """How long what was read is good for."""
        return max(EVERY_SECONDS, 2 * len(self._watched) / READS_PER_SECOND)

    def __len__(self) -> int:
        return self._open.total()


WATCHES = Watches()


async def show(visit: Visit) -> Response:
    """`/leases/{lease_id}/live`"""
    lease_id = visit.params["lease_id"]
    assert visit.session is not None, "the page is not public"
    await visit.read(f"/v1/leases/{lease_id}")
    WATCHES.require_room(visit.account_id, visit.session.row.session_id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        _told(visit, lease_id), headers=headers, media_type="text/event-stream"
    )


async def _told(visit: Visit, lease_id: str) -> AsyncGenerator[bytes, None]:
    """Events for as long as the session and the page last; a refusal ends the stream."""
    session, principal = visit.session, visit.principal
    assert session is not None
    key = (principal.account_id, principal.scopes, lease_id)
    before: Told = {}
    said = alive = time.monotonic()
    try:
        with WATCHES.one_more(session.row.session_id, key) as watched:
            yield b"retry: 5000\n\n"
            while True:
                if time.monotonic() - alive >= SESSION_EVERY_SECONDS:
                    if not await run_in_threadpool(sessions.is_alive, visit.service, session):
                        return
                    alive = time.monotonic()
                await _look(watched, visit.reader, lease_id)
                values = values_of(watched.lease, watched.printed, visit.zone)
                if event := _event(before, values):
                    yield event
                    said = time.monotonic()
                elif time.monotonic() - said >= BEAT_SECONDS:
                    yield b": still here\n\n"
                    said = time.monotonic()
                before = values
                await asyncio.sleep(WATCHES.pause)
    except Refused:
        return


async def _look(watched: Watched, reader: Reader, lease_id: str) -> None:
    """Read the lease again, unless another stream did so just now. Raises Refused."""
    async with watched.lock:
        if time.monotonic() - watched.at < WATCHES.pause * 0.9:
            return
        reader.positions.clear()
        watched.lease = await reader.read(f"/v1/leases/{lease_id}")
        if watched.printed is None:
            watched.printed = await output.end_of(reader, lease_id)
        elif not watched.printed.ended:
            watched.printed = await output.go_on(reader, lease_id, watched.printed)
        watched.at = time.monotonic()


def values_of(lease: Told, printed: Output | None, zone: Zone) -> Told:
    """What the page shows of the lease, as text, by the names of its places."""
    found = lease.get("estimate") or lease
    mark = "≈ " if "estimate" in lease else ""
    hundredths = (int(found["gpu_us"]) * 100 + GPU_HOUR_US // 2) // GPU_HOUR_US
    until = lease.get("funds_end_at") or lease.get("term_end_at")
    return {
        "state": str(lease["state"]).replace("_", " "),
        "cost": mark + decimal(int(found["charge"]["units"]), PLACES["CREDIT"], 2),
        "used": decimal(hundredths, 2),
        "until": zone.short(moment_of(until)) if until else "not started",
        "log": printed.text if printed is not None else "",
    }


def _event(before: Told, values: Told) -> bytes:
    """What has changed, as one event; empty: nothing has."""
    changed = {name: value for name, value in values.items() if before.get(name) != value}
    if not changed:
        return b""
    told: Told = {"values": changed}
    if before and "state" in changed:
        told["say"] = f"The lease is {values['state']}"
    return f"data: {json.dumps(told)}\n\n".encode()
