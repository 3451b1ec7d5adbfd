"""What is wrong and how far the followers are, told to the operator's open page as it changes.

    open streams of a process <= STREAMS_MAX;   questions of a stream <= 3 each EVERY_SECONDS
    a session ends, or opens less than before  =>  its streams end within SESSION_EVERY_SECONDS
    what is asked is refused, or the database is away  =>  the stream ends, and a browser asks again

Each question passes the API's door as the session's principal. What a table has not, such as a new
alert, is said in the status line with the advice to load the page again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

import psycopg
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from api.console.drawing.zones import moment_of
from api.console.operator import operate
from api.console.sessions import sessions
from api.console.visits.reading import Refused, Told, refused
from api.console.visits.streams import event_of
from api.console.visits.visit import Visit

EVERY_SECONDS, SESSION_EVERY_SECONDS, BEAT_SECONDS = 2.0, 10.0, 15.0
STREAMS_MAX = 10
_open = 0


async def show(visit: Visit) -> Response:
    """`/operate/live`"""
    if _open >= STREAMS_MAX:
        raise refused("busy", "too many pages are watched live; load this page again later")
    await visit.read("/v1/timers")  # a server that cannot answer says so with a status
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_told(visit), headers=headers, media_type="text/event-stream")


async def _told(visit: Visit) -> AsyncGenerator[bytes, None]:
    """Events for as long as the session and the page last; a refusal ends the stream."""
    global _open
    if _open >= STREAMS_MAX:
        return
    session, before = visit.session, dict[str, str]()
    assert session is not None, "the page is the operator's"
    asked = said = time.monotonic()
    _open += 1
    try:
        yield b"retry: 5000\n\n"
        while True:
            await asyncio.sleep(EVERY_SECONDS)  # the page itself is that new
            if time.monotonic() - asked >= SESSION_EVERY_SECONDS:
                asked = time.monotonic()
                if not await run_in_threadpool(sessions.alive, visit.service, [session]):
                    return
            values = await read(visit)
            event = event_of(before, values, values["wrong"], "wrong")
            if event or time.monotonic() - said >= BEAT_SECONDS:
                said = time.monotonic()
                yield event or b": still here\n\n"
            before = values
    except (Refused, psycopg.OperationalError):  # the database is away: the browser asks again
        return
    finally:
        _open -= 1


async def read(visit: Visit) -> dict[str, str]:
    """What the page shows, as text, by the names of its places. Raises Refused."""
    visit.reader.positions.clear()
    alerts, timers = await visit.read("/v1/alerts"), await visit.read("/v1/timers")
    ready = await operate.ready(visit)
    return values_of(visit, alerts, timers["data"], ready)


def values_of(visit: Visit, alerts: Told, timers: list[Told], ready: Told) -> dict[str, str]:
    """The same of what was read."""
    found = {"wrong": operate.said(alerts["data"])}
    for one in operate.outside(alerts["figures"]):
        found[f"outside {one['name']} {one.get('of') or ''}"] = str(one["value"])
    for one in timers:
        ran = moment_of(one["ran_at"])
        found[f"ran {one['name']}"] = visit.zone.short(ran)
        found[f"error {one['name']}"] = str(one.get("error", ""))
    for one in ready.get("jobs", ()):
        if "position" in one:
            for name in ("position", "head", "behind", "behind_seconds"):
                found[f"{name} {one['name']}"] = f"{one[name]:,}"
    return found
