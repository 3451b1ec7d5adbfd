"""A lease as it runs, told to an open page as it changes (server-sent events).

    what a page shows is at most EVERY_SECONDS and one look older than what is recorded

One reader looks at the leases of all pages of a process (`watches`). A stream keeps nobody signed
in. Format: WHATWG HTML, section 9.2, server-sent events.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from starlette.responses import Response, StreamingResponse

from api.console.drawing.words import GPU_HOUR_US, PLACES, decimal
from api.console.drawing.zones import Zone, moment_of
from api.console.renter.watches import WATCHES
from api.console.sessions.sessions import Session
from api.console.visits.reading import Refused, Told
from api.console.visits.streams import event_of
from api.console.visits.visit import Visit
from api.leasing.watched import Seen
from api.process.service import Service

BEAT_SECONDS = 15.0
OVER = frozenset({"settled", "resolved", "archived"})


async def show(visit: Visit) -> Response:
    """`/leases/{lease_id}/live`"""
    lease_id = visit.params["lease_id"]
    assert visit.session is not None, "the page is not public"
    await visit.read(f"/v1/leases/{lease_id}")
    WATCHES.require_room(visit.account_id, visit.session.row.session_id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    told = _told(visit.service, visit.session, visit.zone, lease_id)
    return StreamingResponse(told, headers=headers, media_type="text/event-stream")


async def _told(
    service: Service, session: Session, zone: Zone, lease_id: str
) -> AsyncGenerator[bytes, None]:
    """Events for as long as the session and the page last; a refusal ends the stream."""
    before: Told = {}
    try:
        with WATCHES.one_more(service, session, lease_id) as stream:
            yield b"retry: 5000\n\n"
            while True:
                seen = await stream.changed(BEAT_SECONDS)
                if stream.is_over:
                    return
                values = before if seen is None else values_of(seen, stream.printed(seen), zone)
                say = f"The lease is {values.get('state')}"
                yield event_of(before, values, say, "state") or b": still here\n\n"
                before = values
    except Refused:
        return


def values_of(seen: Seen, printed: str, zone: Zone) -> Told:
    """What the page shows of the lease, as text, by the names of its places."""
    mark = "" if seen.estimate is None else "≈ "
    hundredths = (seen.gpu_us * 100 + GPU_HOUR_US // 2) // GPU_HOUR_US
    return {
        "state": seen.standing.state.replace("_", " "),
        "cost": mark + decimal(seen.charge_units, PLACES["CREDIT"], 2),
        "used": decimal(hundredths, 2),
        "until": "not started" if seen.until is None else zone.short(moment_of(seen.until)),
        "log": printed,
    }
