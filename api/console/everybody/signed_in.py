"""One's sessions: the browsers that are signed in, each of which can be signed out from here."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from api.console.sessions import sessions
from api.console.sessions.sessions import Session
from api.console.visits import headers
from api.console.visits.reading import refused
from api.console.visits.visit import Visit
from api.door.moments import moment


async def show(visit: Visit) -> Response:
    """`/sessions`"""
    found = await run_in_threadpool(sessions.others, visit.service, _session(visit))
    rows = [
        {
            "session_id": each.session_id,
            "browser": each.browser or "no name",
            "begun_at": moment(each.begun_us),
            "seen_at": moment(each.seen_us),
            "ends_at": moment(each.ends_us),
            "by": each.wallet or each.key_id,
            "is_this": each.session_id == _session(visit).row.session_id,
        }
        for each in found
    ]
    return visit.show("everybody/sessions.html", sessions=rows)


async def end(visit: Visit) -> Response:
    """Sign one of one's browsers out."""
    session_id = visit.params["session_id"]
    if not await run_in_threadpool(sessions.end, visit.service, _session(visit), session_id):
        raise refused("not_found", "this session is over already, or it is not yours")
    return visit.to("/sessions")


async def end_others(visit: Visit) -> Response:
    """Sign every browser of one's out but this one."""
    session = _session(visit)
    for each in await run_in_threadpool(sessions.others, visit.service, session):
        if each.session_id != session.row.session_id:
            await run_in_threadpool(sessions.end, visit.service, session, each.session_id)
    return visit.to("/sessions")


async def sign_out(visit: Visit) -> Response:
    """Sign this browser out: its row is deleted, so the cookie opens nothing any more."""
    session = _session(visit)
    await run_in_threadpool(sessions.end, visit.service, session, session.row.session_id)
    response = visit.to("/sign-in")
    headers.drop_cookie(visit.request, response, headers.SESSION)
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


def _session(visit: Visit) -> Session:
    assert visit.session is not None, "the page is not public"
    return visit.session
