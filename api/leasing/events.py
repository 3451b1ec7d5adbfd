"""Lease events as they happen, as server-sent events: one for each fact of the caller's leases.

    events of a reader who comes back with the last id it saw == the history of its leases, no gap

An event's id is the fact's position, so a browser's EventSource goes on by itself where it was. A
stream ends after `seconds` and the reader comes back: a key that was taken back is found out then.
Format: WHATWG HTML, section 9.2, server-sent events.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from typing import Annotated

from fastapi import Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from api.door import errors
from api.door.auth import with_scope
from api.door.call import Call, Caller
from api.door.errors import Problem
from api.door.models import AnswerModel, LeaseQuery, Position, Told_at
from api.door.moments import moment
from api.door.operation import Resource
from api.door.positions import POSITION
from domain.lease.reasons import LeaseReason
from domain.refusal import Refused
from projections.lease import leases
from projections.lease.leases import LEASES, LeaseFact

resource = Resource("leases")

READ = with_scope("renter", "provider", "client", "operator", "audit:read")
STREAM_SECONDS_MAX = 300
STREAMS_MAX = 100
"""Open streams of one process; each asks the log whether it grew."""
STREAMS_EACH_MAX = 8
LOOK_EVERY_SECONDS = 0.25
BEAT_SECONDS = 15.0
"""A comment is sent so often, so that nobody in between takes the silence for the end."""
PAGE = 200
WINDOW = 20_000
"""Positions looked through at once, for a reader who comes back after a long time."""


class LeaseEventAnswer(AnswerModel):
    """`data` of one event; `type` is also the event's name, and `position` its id."""

    lease_id: str
    type: str
    at: Told_at
    state: str
    position: Position


class Streams:
    """How many streams are open, and whose."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def one_more(self, whose: str) -> Generator[None, None, None]:
        """Raises Problem: 503 busy, 429 rate_limited."""
        if sum(self._open.values()) >= STREAMS_MAX:
            raise errors.problem("busy", "too many streams are open", Retry_After="5")
        if self._open[whose] >= STREAMS_EACH_MAX:
            raise Problem(
                429,
                "rate_limited",
                f"at most {STREAMS_EACH_MAX} streams of one key",
                headers={"Retry-After": "5"},
            )
        self._open[whose] += 1
        try:
            yield
        finally:
            self._open[whose] -= 1
            if not self._open[whose]:
                del self._open[whose]


STREAMS = Streams()

Seconds = Annotated[
    int,
    Query(
        ge=0,
        le=STREAM_SECONDS_MAX,
        description="How long to stay for what is yet to happen; 0: what there is, and the end",
    ),
]
After = Annotated[
    int | None,
    Query(
        ge=0,
        le=2**53 - 1,
        description="The last position seen; absent: Last-Event-ID, or else only what comes",
    ),
]


@resource.get(
    "/v1/lease-events",
    READ,
    None,
    problems=[LeaseReason.LEASE_UNKNOWN],
    media_type="text/event-stream",
)
def stream_lease_events(
    call: Caller, lease_id: LeaseQuery = None, after: After = None, seconds: Seconds = 0
) -> Response:
    """Streams what happens to your leases, live (server-sent events)."""
    with call.read(LEASES) as view:
        account_id = call.principal.only
        if lease_id is not None:
            found = leases.read_lease(view.connection, lease_id, account_id=account_id)
            if found is None:
                raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
        begins = _begins(call, after, view.position)
    headers = {POSITION: str(begins), "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    told = _told(call, account_id, lease_id, begins, seconds)
    return StreamingResponse(told, headers=headers, media_type=call.operation.media_type)


def _begins(call: Call, after: int | None, head: int) -> int:
    """After which position to begin. Raises Problem: 400 malformed_header."""
    if after is not None:
        return min(after, head)
    last = call.request.headers.get("last-event-id")
    if last is None:
        return head
    if not last.isascii() or not last.isdigit() or len(last) > 16:
        raise errors.problem("malformed_header", "Last-Event-ID is a position")
    return min(int(last), head)


async def _told(
    call: Call, account_id: str | None, lease_id: str | None, begins: int, seconds: int
) -> AsyncGenerator[bytes, None]:
    """The events from here on; the stream's own bounds are those of the module."""
    ends = time.monotonic() + seconds
    at, said = begins, time.monotonic()
    try:
        with STREAMS.one_more(call.principal.key_id or call.principal.name):
            yield b"retry: 1000\n\n"
            while True:
                rows, reached = await _next(call, account_id, lease_id, at)
                for row in rows:
                    yield _event(row)
                is_all = reached == at and not rows
                at = rows[-1].position if len(rows) == PAGE else reached
                now = time.monotonic()
                said = now if rows else said
                if is_all and now >= ends:
                    return
                if is_all:
                    if now - said >= BEAT_SECONDS:
                        said = now
                        yield b": still here\n\n"
                    await asyncio.sleep(LOOK_EVERY_SECONDS)
    except Problem as problem:
        # The answer has begun: it can only be told as an event, and the reader comes back later.
        yield f"event: problem\ndata: {problem.code}\nretry: 5000\n\n".encode()


async def _next(
    call: Call, account_id: str | None, lease_id: str | None, after: int
) -> tuple[Sequence[LeaseFact], int]:
    """A page of facts after a position, and how far everything has been looked through."""
    if await call.request.app.state.heads.now() <= after:
        return (), after
    return await run_in_threadpool(_rows, call, account_id, lease_id, after)


def _rows(
    call: Call, account_id: str | None, lease_id: str | None, after: int
) -> tuple[Sequence[LeaseFact], int]:
    with call.read(LEASES) as view:
        until = min(view.position, after + WINDOW)
        rows = leases.read_lease_events(
            view.connection,
            account_id=account_id,
            lease_id=lease_id,
            after=after,
            until=until,
            limit=PAGE,
        )
        return rows, until


def _event(row: LeaseFact) -> bytes:
    told = LeaseEventAnswer(
        lease_id=row.lease_id,
        type=row.topic,
        at=moment(row.at_us),
        state=row.state,
        position=row.position,
    )
    data = told.model_dump_json(exclude_none=True)
    return f"id: {row.position}\nevent: {row.topic}\ndata: {data}\n\n".encode()
